package records

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// Several queues take and release copies of the same bodies at once. After every
// batch, in the order of the hand-overs, the laws hold; at the end nothing is left.
func TestQueuesShareBodiesConcurrently(t *testing.T) {
	t.Parallel()
	const queues, senders, messages = 4, 3, 40
	shard := &tape{Shard: openShard(t), t: t}
	r, err := Open(context.Background(), shard, Options{ChunkBytes: MinChunkBytes, stride: 16, keep: 4})
	if err != nil {
		t.Fatal(err)
	}
	arrived := make([]chan message.Entry, queues)
	for q := range arrived {
		arrived[q] = make(chan message.Entry, senders*messages) // never full
	}
	var running sync.WaitGroup
	for s := range senders {
		running.Go(func() {
			for i := range messages {
				sendToAll(t, r, arrived, (s+i)%3*MinChunkBytes)
			}
		})
	}
	for q, c := range arrived {
		running.Go(func() { removeAll(t, r, QueueID(q), c, senders*messages) })
	}
	running.Wait()
	everyPrefix(t, shard)
	a := auditShard(t, shard.Shard, false)
	if n := len(a.bodies) + len(a.places) + len(a.pieces) + len(a.refs); n > 0 {
		t.Errorf("%d records are left", n)
	}
	for q := range QueueID(queues) {
		if c := r.Count(q); c != (Count{}) {
			t.Errorf("queue %d counts %v", q, c)
		}
	}
}

// sendToAll commits one message with an entry in each queue, and says so there
// before the answer comes.
func sendToAll(t *testing.T, r *Records, arrived []chan message.Entry, size int) {
	first := r.Next(1 + len(arrived))
	m := &message.Message{Body: make([]byte, size)}
	b := new(Batch)
	b.PutMessage(first, m, len(arrived))
	var entries []*message.Entry
	for q := range arrived {
		e := entryFor(m, first+1+uint64(q), first)
		e.Shared = true
		b.Append(QueueID(q), DefaultLane, e)
		entries = append(entries, e)
	}
	r.Commit(b, func(err error) {
		if err != nil {
			t.Errorf("send: %v", err)
		}
	})
	for q, e := range entries {
		arrived[q] <- *e
	}
}

func removeAll(t *testing.T, r *Records, q QueueID, arrived chan message.Entry, n int) {
	for i := range n {
		e := <-arrived
		b := new(Batch)
		b.Remove(q, DefaultLane, &e, nil, false)
		answered := make(chan error, 1) // the one answer
		r.Commit(b, func(err error) { answered <- err })
		if i%8 == 0 { // else the next is handed over before the answer
			if err := <-answered; err != nil {
				t.Errorf("remove: %v", err)
			}
		}
	}
	if err := tryCommit(r, func(*Batch) {}); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// everyPrefix audits the store after each batch of a tape.
func everyPrefix(t *testing.T, s *tape) {
	t.Helper()
	shard := openShard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.handed {
		replay(t, shard, s.handed[i:i+1])
		auditShard(t, shard, false)
		if t.Failed() {
			t.Fatalf("after batch %d of %d", i+1, len(s.handed))
		}
	}
}

// Sequences are distinct for all who ask at once.
func TestNextIsDistinctForAll(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	var mu sync.Mutex
	given := map[uint64]bool{}
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			for range 200 {
				first := r.Next(1 + g)
				mu.Lock()
				for i := range uint64(1 + g) {
					if given[first+i] {
						t.Errorf("%d was given twice", first+i)
					}
					given[first+i] = true
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	commit(t, r, func(*Batch) {})
	if want := 200 * (1 + 2 + 3 + 4); len(given) != want {
		t.Errorf("%d sequences, want %d", len(given), want)
	}
}

// Memory for references does not grow with the number of messages.
func TestReferencesAreForgotten(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	for range 500 {
		seq := r.Next(3)
		m := &message.Message{}
		a, z := entryFor(m, seq+1, seq), entryFor(m, seq+2, seq)
		a.Shared, z.Shared = true, true
		commit(t, r, func(b *Batch) { b.PutMessage(seq, m, 2); b.Append(1, 5, a); b.Append(2, 5, z) })
		commit(t, r, func(b *Batch) { b.Remove(1, 5, a, nil, false) })
	}
	r.order.Lock()
	defer r.order.Unlock()
	if n := len(r.refs.of) + len(r.refs.changes); n > 4*(4+2)+2 {
		t.Errorf("%s", fmt.Sprintf("%d references are remembered", n))
	}
}
