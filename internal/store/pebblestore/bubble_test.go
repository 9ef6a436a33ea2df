package pebblestore

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// With a file system in memory the whole engine runs in a bubble, where time is
// moved and a goroutine left running fails the test: so a drain, its sweep, a
// crash and the start after it can be one deterministic test.
func TestRunsInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		o := small(fs)
		s, err := Open("data", o)
		if err != nil {
			t.Fatal(err)
		}
		h := acquire(t, s)
		fill(t, h, 0, 3000, 1<<10)
		drain(t, h, 0, 3000, func(i int) bool { return i%100 == 0 })
		time.Sleep(time.Hour) // how much of the 3 MiB is swept before depends on how the engine's goroutines run
		if after := tablesBytes(s.(*Store)); after == 0 || after > 200<<10 {
			t.Errorf("tables take %d KiB an hour after they were drained", after>>10)
		}
		o.FS = fs.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 2))})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		again, err := Open("data", o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := acquire(t, again).Scan(nil, nil, func(_, _ []byte) bool { n++; return true }); err != nil || n != 30 {
			t.Errorf("%d keys after the crash, want 30; %v", n, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}
