package records

import (
	"bytes"
	"sync"

	"github.com/nixiemq/nixie/internal/store"
)

// A tape is a shard that remembers every batch handed over, so that a test can
// ask what a crash after any of them leaves. Where it holds answers back, a
// batch takes effect only when the test says so, as late as a store may.
type tape struct {
	store.Shard
	t    failer
	hold bool // set while nobody commits

	mu      sync.Mutex
	handed  []*store.Batch // copies, in order
	waiting []func()       // apply and answer the batches held back
}

func (s *tape) Commit(b *store.Batch, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed = append(s.handed, clone(b))
	if !s.hold {
		s.Shard.Commit(b, done)
		return
	}
	s.waiting = append(s.waiting, func() {
		answered := make(chan struct{})
		s.Shard.Commit(b, func(err error) {
			if err != nil {
				s.t.Errorf("commit: %v", err)
			}
			done(err)
			close(answered)
		})
		<-answered
	})
}

// answer lets the first n of the batches held back take effect.
func (s *tape) answer(n int) {
	s.mu.Lock()
	ready := s.waiting[:n]
	s.waiting = s.waiting[n:]
	s.mu.Unlock()
	for _, f := range ready {
		f()
	}
}

func clone(b *store.Batch) *store.Batch {
	c := &store.Batch{}
	for _, op := range b.Ops() {
		k, v := bytes.Clone(op.Key), bytes.Clone(op.Value)
		switch op.Kind {
		case store.OpPut:
			c.Put(k, v)
		case store.OpPutOnce:
			c.PutOnce(k, v)
		case store.OpDelete:
			c.Delete(k)
		case store.OpDeleteOnce:
			c.DeleteOnce(k)
		case store.OpDeleteRange:
			c.DeleteRange(k, v)
		}
	}
	return c
}

// replay applies batches to a shard.
func replay(t failer, shard store.Shard, batches []*store.Batch) {
	t.Helper()
	if len(batches) == 0 {
		return
	}
	answers := make(chan error, len(batches)) // one answer each
	for _, b := range batches {
		shard.Commit(clone(b), func(err error) { answers <- err })
	}
	for range batches {
		if err := <-answers; err != nil {
			t.Fatalf("replay: %v", err)
		}
	}
}
