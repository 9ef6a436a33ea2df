package pebblestore

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/store"
)

// diskBytes is what the files in dir take.
func diskBytes(t testing.TB, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && e.Name() != reserveFile {
			n += info.Size()
		}
	}
	return n
}

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
