package records

import (
	"context"
	"fmt"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// blackHole answers at once and keeps nothing, to measure records alone.
type blackHole struct{ store.Shard }

func (blackHole) Commit(_ *store.Batch, done func(error)) { done(nil) }

func benchRecords(b *testing.B, wrap func(store.Shard) store.Shard) *Records {
	b.Helper()
	s := memstore.New(memstore.Options{})
	b.Cleanup(func() { _ = s.Close() })
	shard, err := s.Acquire(context.Background(), 1, "bench")
	if err != nil {
		b.Fatal(err)
	}
	r, err := Open(context.Background(), wrap(shard), Options{})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func benchMessage() *message.Message {
	m := fullMessage()
	m.Body, m.Added, m.Extra = make([]byte, 1<<10), nil, nil
	return m
}

// Making and handing over a batch of n messages of 1 KiB, without the store.
func BenchmarkEnqueue(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			r := benchRecords(b, func(s store.Shard) store.Shard { return blackHole{s} })
			m := benchMessage()
			e := entryFor(m, 0, 0)
			var batch Batch
			b.ReportAllocs()
			b.SetBytes(int64(n) << 10)
			for b.Loop() {
				batch.Reset()
				for range n {
					seq := r.Next(1)
					e.Position, e.Body = seq, seq
					batch.PutMessage(seq, m, 1)
					batch.Append(1, DefaultLane, e)
				}
				r.Commit(&batch, nil)
			}
		})
	}
}

// Removing n entries in a batch, without the store.
func BenchmarkRemove(b *testing.B) {
	for _, n := range []int{1, 100} {
		for _, shared := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/shared=%v", n, shared), func(b *testing.B) {
				r := benchRecords(b, func(s store.Shard) store.Shard { return blackHole{s} })
				e := entryFor(benchMessage(), 0, 0)
				e.Shared = shared
				var batch Batch
				b.ReportAllocs()
				for b.Loop() {
					batch.Reset()
					for range n {
						e.Position++
						e.Body++
						batch.Remove(1, DefaultLane, e, nil, false)
					}
					r.Commit(&batch, nil)
				}
			})
		}
	}
}

// A page of 256 entries, of which one in ten has counts, from memory.
func BenchmarkPage(b *testing.B) {
	r := benchRecords(b, func(s store.Shard) store.Shard { return s })
	m := &message.Message{ID: message.ID{Producer: "ID:host-12345-1780000000000-1:1:1:1"}}
	commit(b, r, func(batch *Batch) {
		for pos := range uint64(1000) {
			m.ID.Sequence++
			batch.Append(1, DefaultLane, entryFor(m, pos+1, pos+1))
			if pos%10 == 0 {
				batch.PutCounts(1, DefaultLane, pos+1, &message.Counts{Failures: 1})
			}
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		page, err := r.Page(1, DefaultLane, 100, 256)
		if err != nil || len(page) != 256 {
			b.Fatalf("page of %d: %v", len(page), err)
		}
	}
}

// Reading a message of 1 KiB, from memory.
func BenchmarkMessage(b *testing.B) {
	r := benchRecords(b, func(s store.Shard) store.Shard { return s })
	commit(b, r, func(batch *Batch) { batch.PutMessage(1, benchMessage(), 1) })
	b.ReportAllocs()
	b.SetBytes(1 << 10)
	for b.Loop() {
		if _, err := r.Message(&message.Entry{Body: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
