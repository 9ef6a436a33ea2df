package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/store"
)

func patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func testAtomic(t *testing.T, o Opener) {
	const keys, generations = 20, 200
	h := acquire(t, open(t, o), 1)
	answered := make(chan error, generations)
	over := make(chan struct{})
	go func() {
		for g := range generations {
			var b store.Batch
			for k := range keys {
				b.Put(fmt.Appendf(nil, "key %02d", k), fmt.Appendf(nil, "%d", g))
			}
			h.Commit(&b, func(err error) { answered <- err })
		}
		close(over)
	}()
	for done := false; !done; {
		select {
		case <-over:
			done = true
		default:
		}
		values := map[string]int{}
		if err := h.Scan(nil, nil, func(_, v []byte) bool { values[string(v)]++; return true }); err != nil {
			t.Fatal(err)
		}
		for v, n := range values {
			if len(values) != 1 || n != keys {
				t.Fatalf("a scan saw %d of %d keys of batch %s, and %d batches", n, keys, v, len(values))
			}
		}
	}
	for range generations {
		if err := await(t, answered, "answer"); err != nil {
			t.Fatal(err)
		}
	}
}

func testOrder(t *testing.T, o Opener) {
	const n = 600
	s := open(t, o)
	h := acquire(t, s, 1)
	answers := make(chan int, n)
	for i := range n {
		b := &store.Batch{}
		switch i % 5 {
		case 0:
			b.Put([]byte("relaxed"), fmt.Append(nil, i))
			b.Relax()
		case 1: // empty, and durable
		case 2:
			b.Put(make([]byte, s.Limits().KeyBytes+1), nil) // refused
		case 3:
			b.Put(fmt.Append(nil, i), nil)
			b.PutOff()
		default:
			b.Put(fmt.Append(nil, i), make([]byte, i))
		}
		refused := i%5 == 2
		h.Commit(b, func(err error) {
			if refused != (err != nil) {
				t.Errorf("batch %d: %v", i, err)
			}
			answers <- i
		})
	}
	for i := range n {
		if got := await(t, answers, "answer"); got != i {
			t.Fatalf("answer to batch %d where that to %d was due", got, i)
		}
	}
}

func testForeignGoroutine(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, 1)
	var mu sync.Mutex // as a caller's that hands over under a lock and takes it when answered
	answers := make(chan error, 1)
	hand := func(b *store.Batch) error {
		mu.Lock()
		h.Commit(b, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			answers <- err
		})
		mu.Unlock()
		return await(t, answers, "answer")
	}
	good, bad := &store.Batch{}, &store.Batch{}
	good.Put([]byte("k"), nil)
	bad.Put(nil, make([]byte, s.Limits().ValueBytes+1))
	if err := hand(good); err != nil {
		t.Error(err)
	}
	wantError(t, "over the limit", hand(bad), store.ErrLimit)
	acquire(t, s, 1)
	wantError(t, "fenced", hand(good), store.ErrFenced)
	closed(t, s)
	if err := hand(good); err == nil {
		t.Error("a commit after Close succeeded")
	}
}

func testManyCommitters(t *testing.T, o Opener) {
	const shards, committers, each = 3, 24, 40
	s := open(t, o)
	var hs [shards]store.Shard
	for i := range hs {
		hs[i] = acquire(t, s, uint16(i))
	}
	var wg sync.WaitGroup
	for c := range committers {
		wg.Go(func() {
			answer := make(chan error, 1)
			for i := range each {
				var b store.Batch
				b.PutOnce(fmt.Appendf(nil, "%02d %03d", c, i), []byte("v"))
				if i > 0 && i%2 == 0 {
					b.DeleteOnce(fmt.Appendf(nil, "%02d %03d", c, i-1))
				}
				hs[c%shards].Commit(&b, func(err error) { answer <- err })
				if err := <-answer; err != nil {
					t.Errorf("committer %d, batch %d: %v", c, i, err)
				}
			}
		})
	}
	wg.Wait()
	for i, h := range hs {
		var want []string
		for c := i; c < committers; c += shards {
			for n := range each {
				if n%2 == 0 || n == each-1 {
					want = append(want, fmt.Sprintf("%02d %03d=v", c, n))
				}
			}
		}
		if diff := cmp.Diff(want, pairs(t, h, nil, nil)); diff != "" {
			t.Errorf("shard %d (-want +got):\n%s", i, diff)
		}
	}
}

func testInFlight(t *testing.T, o Opener) {
	const committers, each = 8, 20
	s := open(t, o)
	valueBytes := min(s.Limits().InFlightBytes/32, s.Limits().ValueBytes)
	h := acquire(t, s, 1)
	var flying, most atomic.Int64
	var wg sync.WaitGroup
	answers := make(chan error, committers*each)
	for c := range committers {
		wg.Go(func() {
			for i := range each {
				b := &store.Batch{}
				b.Put(fmt.Appendf(nil, "%d %d", c, i%4), make([]byte, valueBytes))
				size := int64(b.SizeBytes())
				h.Commit(b, func(err error) {
					flying.Add(-size)
					answers <- err
				})
				now := flying.Add(size) // may be late, so this counts too little, never too much
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
			}
		})
	}
	wg.Wait()
	for range committers * each {
		if err := await(t, answers, "answer"); err != nil {
			t.Error(err)
		}
	}
	bound := int64(s.Limits().InFlightBytes + committers*(valueBytes+1<<10))
	if got := most.Load(); got > bound {
		t.Errorf("%d bytes in flight, at most %d", got, bound)
	}
}

func testReuse(t *testing.T, o Opener) {
	h := acquire(t, open(t, o), 1)
	var b store.Batch
	key, value := []byte("a"), []byte("1")
	for i := range byte(5) {
		key[0], value[0] = 'a'+i, '1'+i
		b.Reset()
		b.Put(key, value)
		if err := commit(t, h, &b); err != nil {
			t.Fatal(err)
		}
	}
	clear(key)
	clear(value)
	want := []string{"a=1", "b=2", "c=3", "d=4", "e=5"}
	if got := pairs(t, h, nil, nil); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
