// Package memstore is the engine that keeps nothing: an ordered map in memory
// behind the same door, with answers from a goroutine of its own and in order,
// as an engine with a disk gives them. It serves `--data :memory:` and tests.
//
// It makes no system call and starts no goroutine that outlives Close, so a
// broker on it runs in a testing/synctest bubble. For tests it can also lose
// power (Options.Crashable, Crash), take a time for each sync, and tell of a
// promise of package store that a caller has broken (Options.OnMisuse).
package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/combiner"
	"github.com/tidwall/btree"
)

// Options say what a store does beside keeping keys. The zero value is a plain
// fast one.
type Options struct {
	// Limits; fields that are zero take those of DefaultLimits.
	Limits store.Limits
	// Crashable makes Crash possible. It costs a copy of every touched path of
	// the tree per commit.
	Crashable bool
	// SyncTime is how long a durable commit takes on the clock; zero: none.
	SyncTime time.Duration
	// Clock measures SyncTime; nil: clock.System.
	Clock clock.Clock
	// OnMisuse, if set, is told of broken promises: PutOnce of a key that was
	// written before, DeleteOnce of a key that is not there or was written by
	// Put. Engines with a disk do not notice, and give old values back. It is
	// called from an engine goroutine, remembers every key ever written, and is
	// for tests.
	OnMisuse func(text string)
}

// DefaultLimits are the limits of a store that was not told others.
func DefaultLimits() store.Limits {
	return store.Limits{BatchBytes: 64 << 20, KeyBytes: 1 << 10, ValueBytes: 8 << 20, InFlightBytes: 16 << 20}
}

// errPower answers what a crash caught before it was durable.
var errPower = errors.New("power lost")

// A Store is a store.Store in memory.
type Store struct {
	o        Options
	combiner *combiner.Combiner
	promises *promises // nil unless OnMisuse; apply's goroutine alone has it

	mu      sync.RWMutex
	tree    *btree.BTreeG[pair]
	durable *btree.BTreeG[pair] // what a crash leaves; nil unless Crashable
	epochs  map[uint16]uint64
	crashed bool
	closed  bool
}

// A pair is an entry of the tree. Its bytes are never changed.
type pair struct {
	shard uint16
	key   []byte
	value []byte
}

func before(a, b pair) bool {
	if a.shard != b.shard {
		return a.shard < b.shard
	}
	return bytes.Compare(a.key, b.key) < 0
}

// New starts an empty store.
func New(o Options) *Store {
	return start(o, newTree(), map[uint16]uint64{})
}

func newTree() *btree.BTreeG[pair] {
	return btree.NewBTreeGOptions(before, btree.Options{NoLocks: true})
}

func start(o Options, tree *btree.BTreeG[pair], epochs map[uint16]uint64) *Store {
	d := DefaultLimits()
	if o.Limits.BatchBytes == 0 {
		o.Limits.BatchBytes = d.BatchBytes
	}
	if o.Limits.KeyBytes == 0 {
		o.Limits.KeyBytes = d.KeyBytes
	}
	if o.Limits.ValueBytes == 0 {
		o.Limits.ValueBytes = d.ValueBytes
	}
	if o.Limits.InFlightBytes == 0 {
		o.Limits.InFlightBytes = d.InFlightBytes
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	s := &Store{o: o, tree: tree, epochs: epochs}
	if o.Crashable {
		s.durable = tree.Copy()
	}
	if o.OnMisuse != nil {
		s.promises = newPromises(o.OnMisuse)
	}
	c := combiner.Options{Limits: o.Limits, Epochs: epochs}
	if o.SyncTime > 0 { // else there is nothing to be shared
		c.Clock = o.Clock
	}
	s.combiner = combiner.New((*engine)(s), c)
	return s
}

// Acquire makes owner the writer of the shard; it never waits for another.
func (s *Store) Acquire(ctx context.Context, number uint16, owner string) (store.Shard, error) {
	o, err := s.combiner.Acquire(ctx, number, owner)
	if err != nil {
		return nil, err
	}
	return &shard{Owner: o, s: s}, nil
}

// Limits are those of the options.
func (s *Store) Limits() store.Limits { return s.combiner.Limits() }

// Space is nothing: memory is not counted here.
func (s *Store) Space() (store.Space, error) { return store.Space{}, nil }

// Close answers what is in flight and ends the store. What it held is gone.
func (s *Store) Close() error {
	s.combiner.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Crash takes the power from s and returns the store that a machine would find
// after it: with every batch that was answered as durable, and without the
// relaxed ones that no durable one followed. Nothing that s had not answered is
// answered without an error any more; Close s as any other. It panics unless
// Options.Crashable was set.
func (s *Store) Crash() *Store {
	s.mu.Lock()
	if s.durable == nil {
		s.mu.Unlock()
		panic("memstore: Crash of a store that is not Options.Crashable")
	}
	s.crashed = true
	tree, epochs := s.durable.Copy(), maps.Clone(s.epochs)
	s.mu.Unlock()
	s.combiner.Break(errPower)
	return start(s.o, tree, epochs)
}

// view returns the tree as it is now, for reading without a lock.
func (s *Store) view() (*btree.BTreeG[pair], error) {
	s.mu.Lock() // not RLock: a copy marks the nodes of both as shared
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	return s.tree.Copy(), nil
}

// A shard is a store.Shard: combiner.Owner writes, it reads.
type shard struct {
	*combiner.Owner
	s *Store
}

// Scan reads from one view of the store; writers go on meanwhile.
func (h *shard) Scan(lo, hi []byte, f func(k, v []byte) bool) error {
	view, err := h.s.view()
	if err != nil {
		return fmt.Errorf("scan shard %d: %w", h.Shard(), err)
	}
	view.Ascend(pair{shard: h.Shard(), key: lo}, func(p pair) bool {
		if p.shard != h.Shard() || hi != nil && bytes.Compare(p.key, hi) >= 0 {
			return false
		}
		return f(p.key, p.value)
	})
	return nil
}

// Get returns a copy of the value.
func (h *shard) Get(k []byte) ([]byte, error) {
	h.s.mu.RLock()
	defer h.s.mu.RUnlock()
	if h.s.closed {
		return nil, fmt.Errorf("get from shard %d: %w", h.Shard(), store.ErrClosed)
	}
	p, ok := h.s.tree.Get(pair{shard: h.Shard(), key: k})
	if !ok {
		return nil, store.ErrNotFound
	}
	return append([]byte{}, p.value...), nil
}
