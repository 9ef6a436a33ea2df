package memstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Opener {
		var mu sync.Mutex
		var left *Store // by a crash
		return storetest.Opener{
			Forgets: true,
			Open: func(storetest.TB) store.Store {
				mu.Lock()
				defer mu.Unlock()
				if s := left; s != nil {
					left = nil
					return s
				}
				return New(Options{Crashable: true, Limits: store.Limits{BatchBytes: 2 << 20, ValueBytes: 1 << 20, InFlightBytes: 1 << 20}})
			},
			Crash: func(_ storetest.TB, s store.Store) {
				mu.Lock()
				defer mu.Unlock()
				left = s.(*Store).Crash()
			},
		}
	})
}

func acquire(t *testing.T, s *Store) store.Shard {
	t.Helper()
	h, err := s.Acquire(t.Context(), 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// In a bubble a goroutine that outlives Close, a system call or a lock held
// while waiting fails the test.
func TestRunsInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Crashable: true, SyncTime: time.Millisecond})
		h := acquire(t, s)
		start := time.Now()
		const n = 10
		answers := make(chan error, n)
		for i := range n {
			b := &store.Batch{}
			b.Put(fmt.Append(nil, i), nil)
			h.Commit(b, func(err error) { answers <- err })
			time.Sleep(time.Hour)
		}
		for range n {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took != n*time.Hour {
			t.Errorf("%v", took)
		}
		next := s.Crash()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		keys := 0
		if err := acquire(t, next).Scan(nil, nil, func(_, _ []byte) bool { keys++; return true }); err != nil || keys != n {
			t.Errorf("%d keys after the crash; %v", keys, err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCrashLosesWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Crashable: true, SyncTime: time.Second})
		h := acquire(t, s)
		var b store.Batch
		b.Put([]byte("k"), []byte("v"))
		answer := make(chan error, 1)
		h.Commit(&b, func(err error) { answer <- err })
		synctest.Wait()
		if _, err := h.Get([]byte("k")); err != nil {
			t.Errorf("before the crash it is seen: %v", err)
		}
		next := s.Crash()
		if err := <-answer; !errors.Is(err, store.ErrUnknown) {
			t.Errorf("answer %v, want ErrUnknown", err)
		}
		if _, err := acquire(t, next).Get([]byte("k")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after the crash: %v, want ErrNotFound", err)
		}
		s.Close()
		next.Close()
	})
}

func TestMisuseIsTold(t *testing.T) {
	t.Parallel()
	k := []byte("k")
	tests := map[string]struct {
		fill func(b *store.Batch)
		want string // "" for none
	}{
		"right use":                    {func(b *store.Batch) { b.PutOnce(k, nil); b.DeleteOnce(k) }, ""},
		"put many times":               {func(b *store.Batch) { b.Put(k, nil); b.Put(k, nil); b.Delete(k); b.Delete(k) }, ""},
		"once after once":              {func(b *store.Batch) { b.PutOnce(k, nil); b.PutOnce(k, nil) }, "PutOnce of a key that was written before"},
		"once again after its end":     {func(b *store.Batch) { b.PutOnce(k, nil); b.DeleteOnce(k); b.PutOnce(k, nil) }, "PutOnce of a key that was written before"},
		"put over once":                {func(b *store.Batch) { b.PutOnce(k, nil); b.Put(k, nil) }, "Put of a key that was written with PutOnce"},
		"delete once of nothing":       {func(b *store.Batch) { b.DeleteOnce(k) }, "DeleteOnce of a key that is not there"},
		"delete once twice":            {func(b *store.Batch) { b.PutOnce(k, nil); b.DeleteOnce(k); b.DeleteOnce(k) }, "DeleteOnce of a key that is not there"},
		"delete once after its range":  {func(b *store.Batch) { b.PutOnce(k, nil); b.DeleteRange(k, nil); b.DeleteOnce(k) }, "DeleteOnce of a key that is not there"},
		"delete once of what was put":  {func(b *store.Batch) { b.Put(k, nil); b.DeleteOnce(k) }, "DeleteOnce of a key that was written with Put"},
		"a range over once is allowed": {func(b *store.Batch) { b.PutOnce(k, nil); b.DeleteRange(k, nil) }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []string
			s := New(Options{OnMisuse: func(text string) { told = append(told, text) }})
			var b store.Batch
			tt.fill(&b)
			acquire(t, s).Commit(&b, func(error) {})
			s.Close()
			if slices.ContainsFunc(told, func(text string) bool { return tt.want == "" || !strings.HasPrefix(text, tt.want) }) || len(told) == 0 != (tt.want == "") {
				t.Errorf("told %q, want %q", told, tt.want)
			}
		})
	}
}

func BenchmarkCommit(b *testing.B) {
	s := New(Options{})
	defer s.Close()
	h, err := s.Acquire(b.Context(), 1, "bench")
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 1<<10)
	answer := make(chan error, 1)
	var batch store.Batch
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		batch.Reset()
		batch.Put(fmt.Appendf(nil, "%010d", i%100_000), value)
		h.Commit(&batch, func(err error) { answer <- err })
		if err := <-answer; err != nil {
			b.Fatal(err)
		}
	}
}
