package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if os.Getenv(childEndsLog) != "" {
			endLog(dir)
			return
		}
		child(dir)
	}
	os.Exit(m.Run())
}

// small are options under which little data already does what a lot does
// otherwise: tables are written, batches are larger than half of one.
func small(fs vfs.FS) Options {
	return Options{
		FS:            fs,
		MemTableBytes: 1 << 20,
		CacheBytes:    1 << 20,
		Limits:        store.Limits{BatchBytes: 2 << 20, ValueBytes: 1 << 20, InFlightBytes: 1 << 20},
		ReserveBytes:  -1,
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Opener {
		var mu sync.Mutex
		fs := vfs.NewCrashableMem()
		return storetest.Opener{
			Open: func(t storetest.TB) store.Store {
				mu.Lock()
				defer mu.Unlock()
				o := small(fs)
				o.OnFatal = func(err error) { t.Errorf("fatal: %v", err) }
				s, err := Open("data", o)
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				return s
			},
			Crash: func(storetest.TB, store.Store) {
				mu.Lock()
				defer mu.Unlock()
				fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 2))})
			},
		}
	})
}

func opened(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s.(*Store)
}

func acquire(t testing.TB, s store.Store) store.Shard {
	t.Helper()
	h, err := s.Acquire(t.Context(), 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// committed hands b over and waits for the answer.
func committed(h store.Shard, b *store.Batch) error {
	answer := make(chan error, 1)
	h.Commit(b, func(err error) { answer <- err })
	return <-answer
}

// fill puts n values of a size, from key number from on, in batches of 100.
func fill(t testing.TB, h store.Shard, from, n, size int) {
	t.Helper()
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	for at := from; at < from+n; {
		var b store.Batch
		for ; at < from+n && b.Len() < 100; at++ {
			b.PutOnce(key(at), value)
		}
		if err := committed(h, &b); err != nil {
			t.Fatal(err)
		}
	}
}

func key(i int) []byte { return fmt.Appendf(nil, "m/%010d", i) }

// A key that is deleted and put once again is gone when it is deleted once, wherever in the
// tables what was written before lies by then.
func TestDeletedAndPutOnceAgain(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), Options{QuietTime: -1, ReserveBytes: -1})
	h := acquire(t, s)
	after := []func() error{
		func() error { return nil },
		s.db.Flush,
		func() error { return s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false) },
	}
	for n := range 3 * 3 * 3 {
		k := fmt.Appendf(nil, "%d", n)
		for i, step := range []func(b *store.Batch){
			func(b *store.Batch) { b.PutOnce(k, []byte("1")) },
			func(b *store.Batch) { b.Delete(k); b.PutOnce(k, []byte("2")) },
			func(b *store.Batch) { b.DeleteOnce(k) },
		} {
			var b store.Batch
			step(&b)
			if err := committed(h, &b); err != nil {
				t.Fatal(err)
			}
			if err := after[n/[]int{1, 3, 9}[i]%3](); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Get(k); (err == nil) != (i < 2) {
				t.Errorf("%d, after step %d: %v", n, i, err)
			}
		}
	}
	if err := after[2](); err != nil {
		t.Fatal(err)
	}
	if err := h.Scan([]byte("0"), nil, func(k, _ []byte) bool { t.Errorf("%q is there", k); return true }); err != nil {
		t.Fatal(err)
	}
}
