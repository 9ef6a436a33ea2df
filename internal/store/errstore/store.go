// Package errstore makes any store fail or hesitate when a test says so. Batches
// and answers keep their order, as the laws of package store want it.
//
//	s := errstore.Wrap(memstore.New(memstore.Options{}))
//	s.Fail(3, errstore.Fault{Err: store.ErrUnknown, Applied: true}) // the third commit from now
package errstore

import (
	"context"
	"sync"

	"github.com/nixiemq/nixie/internal/store"
)

// A Fault is what happens to one commit.
type Fault struct {
	// Err is the answer; nil answers as the store does.
	Err error
	// Applied lets the batch take effect although its answer is Err, as an
	// outcome that is unknown may have it.
	Applied bool
	// Hold keeps back this answer, and so every later one of the shard, until
	// the channel is closed; nil: not.
	Hold <-chan struct{}
	// Dead refuses every later commit of the shard with Err too, as a shard that
	// was lost does, and closes Lost.
	Dead bool
}

// A Store is a store.Store whose commits can be made to fail.
type Store struct {
	store.Store

	mu     sync.Mutex
	commit int           // commits handed over so far, of all shards
	faults map[int]Fault // by number of commit
	pick   func(shard uint16, b *store.Batch) (Fault, bool)
}

// Wrap returns s with faults; until one is set it behaves as s.
func Wrap(s store.Store) *Store {
	return &Store{Store: s, faults: map[int]Fault{}}
}

// Fail makes the nth commit from now, 1 being the next, of any shard meet f.
func (s *Store) Fail(n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[s.commit+n] = f
}

// FailWhen asks pick about every commit from now; what it returns with true
// happens. pick is called in the order of the commits of a shard, and may be by
// several goroutines at once. Nil asks no more.
func (s *Store) FailWhen(pick func(shard uint16, b *store.Batch) (Fault, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pick = pick
}

// Commits is the number of commits handed over so far.
func (s *Store) Commits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit
}

// Acquire is the store's, with faults in what it returns. The shard is lost at
// the latest when the store is closed.
func (s *Store) Acquire(ctx context.Context, number uint16, owner string) (store.Shard, error) {
	h, err := s.Store.Acquire(ctx, number, owner)
	if err != nil {
		return nil, err
	}
	f := &shard{Shard: h, s: s, number: number, lost: make(chan struct{})}
	go f.watch()
	return f, nil
}

// next is the fault of the commit that is handed over now.
func (s *Store) next(number uint16, b *store.Batch) Fault {
	s.mu.Lock()
	s.commit++
	f, set := s.faults[s.commit]
	delete(s.faults, s.commit)
	pick := s.pick
	s.mu.Unlock()
	if !set && pick != nil {
		if picked, ok := pick(number, b); ok {
			return picked
		}
	}
	return f
}
