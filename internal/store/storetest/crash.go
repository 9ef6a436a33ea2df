package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nixiemq/nixie/internal/store"
)

// crash takes the power from s and opens what is left.
func crash(t testing.TB, o Opener, s store.Store) store.Store {
	t.Helper()
	if o.Crash == nil {
		t.Skip("the engine cannot be crashed")
	}
	o.Crash(t, s)
	closed(t, s)
	return open(t, o)
}

func testCrashDurable(t *testing.T, o Opener) {
	s := open(t, o)
	for round := range 5 {
		h := acquire(t, s, 1)
		for i := range 20 {
			must(t, h, func(b *store.Batch) { b.Put(fmt.Appendf(nil, "%d %02d", round, i), make([]byte, 1<<(i%14))) })
		}
		must(t, h, func(b *store.Batch) { b.Delete(fmt.Appendf(nil, "%d 00", round)) })
		s = crash(t, o, s)
	}
	if got := len(pairs(t, acquire(t, s, 1), nil, nil)); got != 5*19 {
		t.Errorf("%d keys after 5 crashes, want %d", got, 5*19)
	}
}

// A batch that took effect has those before it beside it, so a crash at any
// time leaves a beginning of what was handed over.
func testCrashPrefix(t *testing.T, o Opener) {
	s := open(t, o)
	for round := range 6 {
		h := acquire(t, s, uint16(round))
		const n = 300
		var durable atomic.Int64 // batches known to be durable
		half := make(chan struct{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			last := make(chan struct{})
			for i := range n {
				b := &store.Batch{}
				b.PutOnce(fmt.Appendf(nil, "%04d a", i), make([]byte, 100*round))
				b.PutOnce(fmt.Appendf(nil, "%04d b", i), nil)
				if i%3 == 2 {
					b.Relax()
				}
				relaxed := b.Relaxed()
				h.Commit(b, func(err error) {
					if err == nil && !relaxed {
						durable.Store(int64(i + 1))
					}
					switch i {
					case 30 * round:
						close(half)
					case n - 1:
						close(last)
					}
				})
			}
			<-last
		}()
		<-half
		atLeast := durable.Load()
		s = crash(t, o, s)
		<-over
		keys := pairs(t, acquire(t, s, uint16(round)), nil, nil)
		for i, k := range keys {
			if want := fmt.Sprintf("%04d %c", i/2, "ab"[i%2]); k[:6] != want {
				t.Fatalf("round %d: %s stands where %s was due", round, k[:6], want)
			}
		}
		if len(keys)%2 != 0 || int64(len(keys)) < 2*atLeast {
			t.Fatalf("round %d: %d keys; %d batches of 2 had been answered", round, len(keys), atLeast)
		}
	}
}

func testCrashRelaxed(t *testing.T, o Opener) {
	relax := func(h store.Shard, k string) {
		var b store.Batch
		b.Put([]byte(k), nil)
		b.Relax()
		if err := commit(t, h, &b); err != nil {
			t.Fatal(err)
		}
	}
	for name, durable := range map[string]func(b *store.Batch){
		"a put":          func(b *store.Batch) { b.Put([]byte("durable"), nil) },
		"an empty batch": func(*store.Batch) {},
	} {
		s := open(t, o)
		h := acquire(t, s, 1)
		must(t, h, func(b *store.Batch) { b.DeleteRange(nil, nil) })
		relax(h, "a")
		relax(h, "b")
		must(t, h, durable)
		relax(h, "z")
		s = crash(t, o, s)
		h = acquire(t, s, 1)
		for _, k := range []string{"a", "b"} {
			if _, err := h.Get([]byte(k)); err != nil {
				t.Errorf("%s after a crash, with %s answered behind it: %v", k, name, err)
			}
		}
		closed(t, s)
		if o.Forgets {
			return
		}
	}
}

func testCrashFence(t *testing.T, o Opener) {
	s := open(t, o)
	for range 3 {
		old := acquire(t, s, 1)
		s = crash(t, o, s)
		h := acquire(t, s, 1)
		var b store.Batch
		b.Put([]byte("k"), nil)
		if err := commit(t, old, &b); err == nil {
			t.Error("an owner of before the crash could commit")
		}
		if got := pairs(t, h, nil, nil); len(got) != 0 {
			t.Errorf("%q after the crash", got)
		}
	}
}
