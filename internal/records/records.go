package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// Options are the settings of Records.
type Options struct {
	// ChunkBytes is the size above which body and properties of a message are
	// cut into pieces, from MinChunkBytes to MaxChunkBytes; 0: DefaultChunkBytes.
	// It is decided when a store is created; an existing one keeps its own.
	ChunkBytes int
	// BatchBytes is store.Limits.BatchBytes: a batch above it is answered with
	// message.ErrOverLimit. 0: no limit.
	BatchBytes int
	// stride is by how many sequences the reservation is ahead; 0: strideDefault.
	stride uint64
	// keep is references.keep; 0: keptReferences.
	keep int
}

// strideDefault is the number of sequences reserved at a time: a restart skips at
// most as many. A quarter of it is never handed out before the next reservation
// is in the store's hands.
const strideDefault = 1 << 20

// Records is all that the broker keeps in one shard, of which it must be the only
// writer. It is safe for concurrent use.
type Records struct {
	shard      store.Shard
	chunk      int
	batchBytes int
	stride     uint64
	found      []QueueInfo // those of the store at Open, in the order of their ids
	prepared   []Prepared

	next     atomic.Uint64         // the next sequence
	low      atomic.Uint64         // above it Next sees to the reservation itself
	answered atomic.Uint64         // number of the last batch answered
	broken   atomic.Pointer[error] // the first error of the store

	// order makes the order of hand-overs, and guards what follows from it. It is
	// held while the store takes a batch, which may wait for room, so that two
	// batches reach the store as they were decided.
	order    sync.Mutex
	handed   uint64 // number of the last batch handed over
	reserved uint64 // sequences below it are reserved by what was handed over
	refs     references
	staged   map[uint64]int32 // Message.SizeBytes of staged bodies that are in pieces

	// mu is taken for moments only, by a hand-over too, within order: who asks for
	// a count must not wait for the store.
	mu      sync.Mutex
	queues  map[QueueID]*queueState
	dropped dropped

	aside   atomic.Int64 // damaged records that are kept aside
	telling sync.Mutex
	listen  func(Mended) // guarded by telling, as untold is: what was mended before anyone listened
	untold  []Mended
}

// Open reads what is known of the queues in a shard: not their messages. It
// deletes what was not to outlive the process before, and bodies of transactions
// that were neither committed nor prepared. It returns when that is on disk, or when ctx ends.
// A store of a newer format is refused with message.ErrState. Single records that are
// damaged are mended (Reading), but for that of the store itself.
func Open(ctx context.Context, shard store.Shard, o Options) (*Records, error) {
	r := &Records{
		shard: shard, chunk: cmp.Or(o.ChunkBytes, DefaultChunkBytes), batchBytes: o.BatchBytes, stride: cmp.Or(o.stride, strideDefault),
		queues: map[QueueID]*queueState{}, staged: map[uint64]int32{},
		refs: references{of: map[refKey]reference{}, keep: cmp.Or(o.keep, keptReferences)},
	}
	if r.chunk < MinChunkBytes || r.chunk > MaxChunkBytes {
		return nil, fmt.Errorf("chunk size %d is not from %d to %d: %w", r.chunk, MinChunkBytes, MaxChunkBytes, message.ErrInvalid)
	}
	for _, step := range []func() error{r.loadMeta, r.loadQueues, r.loadCounters, r.loadFloors, r.adopt, r.loadSelectors, r.loadPrepared, r.loadAside,
		func() error { return r.sweep(ctx) }} {
		if err := r.Reading(message.Destination{}, settled, step); err != nil {
			return nil, fmt.Errorf("open records: %w", err)
		}
	}
	return r, nil
}

// BatchBytes is above what size a batch is refused; 0: none is.
func (r *Records) BatchBytes() int { return r.batchBytes }

func (r *Records) loadQueues() error {
	prefix := []byte{byte(kindQueue)}
	r.found = nil
	return r.scan(prefix, successor(prefix), 5, 0, func(k []byte, f *reader) bool {
		i := QueueInfo{ID: queueAt(k)}
		ok := decodeQueue(f, &i)
		r.found = append(r.found, i)
		r.queueLocked(i.ID).durable = true
		return ok
	})
}

// foundQueue is what Open found of a queue; nil: nothing.
func (r *Records) foundQueue(q QueueID) *QueueInfo {
	i, ok := slices.BinarySearchFunc(r.found, q, func(info QueueInfo, q QueueID) int { return cmp.Compare(info.ID, q) })
	if !ok {
		return nil
	}
	return &r.found[i]
}

func (r *Records) loadSelectors() error {
	prefix := []byte{byte(kindSelectors)}
	return r.scan(prefix, successor(prefix), 5, 0, func(k []byte, f *reader) bool {
		all, ok := decodeSelectors(f)
		r.queueLocked(queueAt(k)) // so that no other queue is given its number
		if i := r.foundQueue(queueAt(k)); ok && i != nil {
			i.Selectors = all
		}
		return ok
	})
}

func (r *Records) loadCounters() error {
	prefix := []byte{byte(kindCounter)}
	return r.scan(prefix, successor(prefix), 5, 0, func(k []byte, f *reader) bool {
		s := r.queueLocked(queueAt(k))
		s.durable, s.counted = true, true
		return decodeCounter(f, func(l Lane, c Count) { s.lane(l).durable = c })
	})
}

func (r *Records) loadFloors() error {
	prefix := []byte{byte(kindFloor)}
	return r.scan(prefix, successor(prefix), 6, 0, func(k []byte, f *reader) bool {
		floor, ok := decodeFloor(f)
		r.queueLocked(queueAt(k)).lane(Lane(k[5])).floor = floor
		return ok
	})
}

// sweepOps is the number of operations in a batch of sweep.
const sweepOps = 1000

// sweep deletes what does not outlive a process, and reserves sequences.
func (r *Records) sweep(ctx context.Context) error {
	var b Batch
	var pending []Batch
	kept := r.keptStaged()
	prefix := []byte{byte(kindStaged)}
	err := r.scan(prefix, successor(prefix), 9, 0, func(k []byte, f *reader) bool {
		seq := uint64At(k, 1)
		size, tx, ok := decodeStaged(f)
		if _, named := kept[seq]; !ok || named || r.nameAgain(tx, seq, size) {
			return ok
		}
		b.physical.Delete(b.seqKey(false, kindStaged, seq))
		if pieces(size, r.chunk) > 0 { // not all of it need be there
			b.physical.DeleteRange(b.seqKey(false, kindBody, seq), b.seqKey(false, kindBody, seq+1))
			b.physical.DeleteRange(b.seqKey(false, kindPiece, seq), b.seqKey(false, kindPiece, seq+1))
		} else {
			b.deleteBody(false, seq, size, r.chunk)
		}
		if b.physical.Len() > sweepOps {
			pending, b = append(pending, b), Batch{}
		}
		return ok
	})
	if err != nil {
		return err
	}
	for seq, size := range r.keptStaged() {
		if pieces(size, r.chunk) > 0 {
			r.staged[seq] = size
		}
	}
	transient := []byte{byte(kindTransient)}
	b.physical.DeleteRange(transient, successor(transient))
	r.putReservationLocked(&b)
	pending = append(pending, b)
	answers := make(chan error, len(pending)) // an answer each, so that the store never waits
	for i := range pending {
		r.handed++
		number := r.handed
		r.shard.Commit(&pending[i].physical, func(err error) {
			r.settle(number, err)
			answers <- err
		})
	}
	for range pending {
		select {
		case err := <-answers:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// get reads the fields of a record.
func (r *Records) get(k []byte) ([]byte, error) {
	v, err := r.shard.Get(k)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("%s: %w", describe(k), message.ErrNotFound)
	case errors.Is(err, store.ErrDamaged):
		return nil, fmt.Errorf("read %s: %w: %w", describe(k), message.ErrCorrupt, err)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", describe(k), err)
	}
	return unseal(k, v)
}

// scanKeys gives the keys in [lo, hi) to f that have length bytes, until it has taken n:
// those of an index, whose values say nothing and need not be what they were. f returns
// false for one that cannot be ours, and is passed over.
func (r *Records) scanKeys(lo, hi []byte, length, n int, f func(k []byte) bool) error {
	seen := 0
	return r.shard.Scan(lo, hi, func(k, _ []byte) bool {
		if len(k) == length && f(k) {
			seen++
		}
		return seen < n
	})
}

// scan gives the fields of each record in [lo, hi) to f, at most n if that is not
// 0, with its key, which must have length bytes if that is not 0. Where f returns
// false the record is damaged. Both are valid only within f.
func (r *Records) scan(lo, hi []byte, length, n int, f func(k []byte, fields *reader) bool) error {
	var damage error
	var fields reader
	seen := 0
	err := r.shard.Scan(lo, hi, func(k, v []byte) bool {
		if length != 0 && len(k) != length {
			damage = corrupt(k)
			return false
		}
		fields.b, damage = unseal(k, v)
		fields.bad = false
		if damage == nil && !f(k, &fields) {
			damage = corrupt(k)
		}
		seen++
		return damage == nil && seen != n
	})
	if err == nil {
		err = damage
	}
	return err
}
