package pebblestore

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/store"
)

// drain deletes the messages from..to one by one, in batches, but for those
// that keep says.
func drain(t testing.TB, h store.Shard, from, to int, keep func(i int) bool) {
	t.Helper()
	for i := from; i < to; {
		var b store.Batch
		for ; i < to && b.Len() < 500; i++ {
			if !keep(i) {
				b.DeleteOnce(key(i))
			}
		}
		if err := committed(h, &b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDrainedSpaceComesBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		keep func(i int) bool
		left float64 // at most this share of what a full store takes
	}{
		"all drained":                  {func(int) bool { return false }, 0.05},
		"every twentieth is kept":      {func(i int) bool { return i%20 == 0 }, 0.15},
		"the newest quarter is kept":   {func(i int) bool { return i >= 4500 }, 0.40},
		"hardly anything is drained":   {func(i int) bool { return i >= 60 }, 1.1},
		"every second message is kept": {func(i int) bool { return i%2 == 0 }, 0.65},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n, size = 6000, 3 << 10
			dir := t.TempDir()
			s := opened(t, dir, Options{MemTableBytes: 2 << 20, QuietTime: -1, ReserveBytes: -1})
			h := acquire(t, s)
			fill(t, h, 0, n, size)
			drain(t, h, 0, n, tt.keep)
			if err := s.sweeper.sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
			used := tablesBytes(s)
			if limit := tt.left * n * size; float64(used) > limit {
				t.Errorf("tables take %d KiB after the sweep, want at most %.0f", used>>10, limit/(1<<10))
			}
			i := 0
			err := h.Scan(nil, nil, func(k, _ []byte) bool {
				for !tt.keep(i) {
					i++
				}
				if !bytes.Equal(k, key(i)) {
					t.Errorf("%s where %s was due", k, key(i))
					return false
				}
				i++
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// tablesBytes is what the live tables take; files that they replaced are deleted in
// the background.
func tablesBytes(s *Store) int64 {
	m := s.db.Metrics()
	return int64(m.Table.Local.LiveSize)
}

// The whole way: writing ends, and the space comes back by itself.
func TestIdleStoreSweepsByItself(t *testing.T) {
	t.Parallel()
	s := opened(t, "data", Options{FS: vfs.NewMem(), MemTableBytes: 1 << 20, QuietTime: 50 * time.Millisecond, ReserveBytes: -1})
	h := acquire(t, s)
	fill(t, h, 0, 5000, 1<<10)
	drain(t, h, 0, 5000, func(int) bool { return false })
	deadline := time.After(30 * time.Second)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for tablesBytes(s) > 100<<10 {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("tables still take %d KiB", tablesBytes(s)>>10)
		}
	}
}

// TestKeptLogsAreDropped writes the table in memory out again and again, which leaves
// logs that Pebble keeps for reuse: a quiet store has none, a busy one drops those that
// it does not come to, and what it writes then is there after a power cut (C25).
func TestKeptLogsAreDropped(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s, err := Open("/d", Options{FS: mem, QuietTime: -1, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	p := s.(*Store)
	h, err := s.Acquire(t.Context(), 0, "test")
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	write := func(n int) {
		t.Helper()
		for range n {
			var b store.Batch
			b.Put(key(written), []byte("v"))
			if err := committed(h, &b); err != nil {
				t.Fatal(err)
			}
			written++
			if err := p.sweeper.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	logs := func() (n int) {
		t.Helper()
		names, err := mem.List("/d")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, logSuffix) {
				n++
			}
		}
		return n
	}
	want := func(what string, n int) {
		t.Helper()
		if got := logs(); got != n {
			t.Errorf("%s: %d logs, want %d", what, got, n)
		}
	}
	write(4)
	if n := logs(); n < 2 {
		t.Fatalf("%d logs: Pebble keeps none, and this tests nothing", n)
	}
	p.sweeper.dropLogs(1)
	want("a quiet store", 1)
	write(4)
	kept := logs()
	for range keptLooks - 1 {
		p.sweeper.dropLogs(keptLooks)
		want("a busy store, at first", kept)
	}
	p.sweeper.dropLogs(keptLooks)
	want("a busy store, later", 1)
	write(10) // what was to be used again is gone, and is made anew
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open("/d", Options{FS: after, QuietTime: -1, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if h, err = s.Acquire(t.Context(), 0, "test"); err != nil {
		t.Fatal(err)
	}
	for i := range written {
		if _, err := h.Get(key(i)); err != nil {
			t.Errorf("key %d: %v", i, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
