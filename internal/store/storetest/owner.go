package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/nixiemq/nixie/internal/store"
)

func testFence(t *testing.T, o Opener) {
	s := open(t, o)
	first := acquire(t, s, 3)
	must(t, first, func(b *store.Batch) { b.Put([]byte("k"), []byte("first")) })
	select {
	case <-first.Lost():
		t.Error("lost before anyone took it")
	default:
	}
	second := acquire(t, s, 3)
	await(t, first.Lost(), "loss")
	var b store.Batch
	b.Put([]byte("k"), []byte("too late"))
	wantError(t, "commit of the first owner", commit(t, first, &b), store.ErrFenced)
	if got := pairs(t, second, nil, nil); len(got) != 1 || got[0] != "k=first" {
		t.Errorf("%q, want k=first", got)
	}
	must(t, second, func(b *store.Batch) { b.Put([]byte("k"), []byte("second")) })
	if got := pairs(t, second, nil, nil); len(got) != 1 || got[0] != "k=second" {
		t.Errorf("%q, want k=second", got)
	}
	if err := first.Release(context.Background()); err != nil {
		t.Errorf("release of a lost shard: %v", err)
	}
	must(t, second, func(b *store.Batch) { b.Put([]byte("k"), []byte("still")) })
}

func testFenceUnderLoad(t *testing.T, o Opener) {
	s := open(t, o)
	key := []byte("counter")
	var wg sync.WaitGroup
	defer wg.Wait()
	for round := range 8 {
		h := acquire(t, s, 1)
		before, err := h.Get(key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		for range 3 {
			again, _ := h.Get(key)
			if string(again) != string(before) {
				t.Fatalf("round %d: %q became %q although its writer was deposed", round, before, again)
			}
		}
		busy := make(chan struct{}) // closed once this owner's writing is under way
		wg.Go(func() {
			answers := make(chan error, 4) // the sender of each waits for room, so few are in flight
			for i := 0; ; i++ {
				b := &store.Batch{}
				b.Put(key, fmt.Appendf(nil, "%d %d", round, i))
				h.Commit(b, func(err error) { answers <- err })
				if i == 3 {
					close(busy)
				}
				if i < 3 {
					continue
				}
				if err := <-answers; err != nil {
					wantError(t, "commit of a deposed owner", err, store.ErrFenced)
					return
				}
			}
		})
		<-busy
	}
	acquire(t, s, 1)
}

func testRelease(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, 1)
	answers := make(chan error, 100)
	for i := range 100 {
		b := &store.Batch{}
		b.Put(fmt.Append(nil, i), nil)
		h.Commit(b, func(err error) { answers <- err })
	}
	ctx, cancel := patient()
	defer cancel()
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(answers); n != 100 {
		t.Errorf("%d of 100 answered when Release returned", n)
	}
	await(t, h.Lost(), "loss")
	var b store.Batch
	b.Put([]byte("late"), nil)
	wantError(t, "commit after release", commit(t, h, &b), store.ErrFenced)
	if got := pairs(t, acquire(t, s, 1), nil, nil); len(got) != 100 {
		t.Errorf("%d keys, want 100", len(got))
	}
}

func testAcquireCancelled(t *testing.T, o Opener) {
	s := open(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Acquire(ctx, 1, "nobody"); err == nil {
		t.Error("acquired with a context that was over")
	}
	acquire(t, s, 1)
}

func testCloseBusy(t *testing.T, o Opener) {
	const committers = 16
	s := o.Open(t)
	h := acquire(t, s, 1)
	var kept sync.Map // used by all committers at once, read when they are gone
	var wg sync.WaitGroup
	running := make(chan struct{}, committers)
	for c := range committers {
		wg.Go(func() {
			answer := make(chan error, 1)
			for i := 0; ; i++ {
				k := fmt.Sprintf("%d %d", c, i)
				var b store.Batch
				b.Put([]byte(k), make([]byte, 1<<10))
				h.Commit(&b, func(err error) { answer <- err })
				err := <-answer
				if i == 2 {
					running <- struct{}{}
				}
				if err != nil {
					wantError(t, "commit while closing", err, store.ErrClosed)
					return
				}
				kept.Store(k, true)
			}
		})
	}
	for range committers {
		<-running
	}
	closed(t, s)
	wg.Wait()
	if o.Forgets {
		return
	}
	again := acquire(t, open(t, o), 1)
	kept.Range(func(k, _ any) bool {
		if _, err := again.Get([]byte(k.(string))); err != nil {
			t.Errorf("%s was answered and is gone: %v", k, err)
		}
		return true
	})
}

func testAfterClose(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, 1)
	must(t, h, func(b *store.Batch) { b.Put([]byte("k"), nil) })
	closed(t, s)
	await(t, h.Lost(), "loss")
	var b store.Batch
	b.Put([]byte("k"), nil)
	wantError(t, "commit", commit(t, h, &b), store.ErrClosed)
	_, err := s.Acquire(context.Background(), 1, "late")
	wantError(t, "acquire", err, store.ErrClosed)
	_, err = h.Get([]byte("k"))
	wantError(t, "get", err, store.ErrClosed)
	wantError(t, "scan", h.Scan(nil, nil, func(_, _ []byte) bool { return true }), store.ErrClosed)
	if err := h.Release(context.Background()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func testReopen(t *testing.T, o Opener) {
	if o.Forgets {
		t.Skip("the engine keeps nothing over Close")
	}
	s := open(t, o)
	must(t, acquire(t, s, 1), func(b *store.Batch) { b.Put([]byte("k"), []byte("v")) })
	var relaxed store.Batch
	relaxed.Put([]byte("r"), []byte("v"))
	relaxed.Relax()
	if err := commit(t, acquire(t, s, 1), &relaxed); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		closed(t, s)
		s = open(t, o)
		if got := pairs(t, acquire(t, s, 1), nil, nil); len(got) != 2 {
			t.Fatalf("%q after Close, want k and r", got)
		}
	}
}
