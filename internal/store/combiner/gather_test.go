package combiner

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
)

// clients commit, wait for the answer, and are back after a round trip, n times each.
func clients(o *Owner, w *sync.WaitGroup, count, n int, roundTrip func(client int) time.Duration) {
	for k := range count {
		w.Go(func() {
			answer := make(chan error, 1)
			for range n {
				o.Commit(put(fmt.Sprint(k), 10), func(err error) { answer <- err })
				<-answer
				time.Sleep(roundTrip(k))
			}
		})
	}
}

// Clients who come back a moment after their answers share each sync, where it is slow;
// one alone waits for nobody, and neither does anyone where the disk is fast.
func TestWhoComesBackIsAwaited(t *testing.T) {
	t.Parallel()
	const ms, turns = time.Millisecond, 200
	for _, tt := range []struct {
		name            string
		sync, roundTrip time.Duration
		clients         int
		most            time.Duration // for all turns
	}{
		{"eight and a slow disk", 5 * ms, ms / 5, 8, turns * 55 * ms / 10},
		{"two and a slow disk", 5 * ms, ms / 5, 2, turns * 55 * ms / 10},
		{"many and a slow disk", 20 * ms, 2 * ms, 64, turns * 23 * ms},
		{"one", 5 * ms, ms / 5, 1, turns * 52 * ms / 10},
		{"one with a long way", 5 * ms, 20 * ms, 1, turns * 25 * ms},
		{"eight with a way longer than the sync", 2 * ms, 10 * ms, 8, turns * 16 * ms},
		{"eight and a fast disk", ms / 4, ms / 5, 8, turns * 55 * ms / 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := limits()
				l.InFlightBytes = 1 << 20
				c, o := bed(t, &slow{syncTime: tt.sync}, Options{Limits: l, Clock: clock.System{}})
				begin := time.Now()
				var w sync.WaitGroup
				clients(o, &w, tt.clients, turns, func(int) time.Duration { return tt.roundTrip })
				w.Wait()
				if took := time.Since(begin); took > tt.most {
					t.Errorf("%v, want %v at the most", took, tt.most)
				}
				c.Close()
			})
		})
	}
}

// Who does not come back is not awaited for long.
func TestWhoStopsIsAwaitedInVainAFewTimes(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c, o := bed(t, &slow{syncTime: 5 * ms}, Options{Clock: clock.System{}})
		var w sync.WaitGroup
		clients(o, &w, 8, 100, func(int) time.Duration { return ms / 5 })
		w.Wait()
		begin := time.Now()
		clients(o, &w, 1, 100, func(int) time.Duration { return ms / 5 })
		w.Wait()
		if took, most := time.Since(begin), 100*52*ms/10+20*ms; took > most {
			t.Errorf("one alone after seven have gone: %v, want %v at the most", took, most)
		}
		c.Close()
	})
}

// Whatever comes when, all is answered, in order, and nothing waits longer than a hold
// and two syncs.
func TestNothingIsHeldTooLong(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c, o := bed(t, &slow{syncTime: 4 * ms}, Options{Clock: clock.System{}})
		var w sync.WaitGroup
		for k := range 6 {
			w.Go(func() {
				answer := make(chan error, 1)
				for i := range 200 {
					begin := time.Now()
					o.Commit(put(fmt.Sprint(k), 10), func(err error) { answer <- err })
					if err := <-answer; err != nil {
						t.Error(err)
					}
					if took := time.Since(begin); took > 2*4*ms+2*ms {
						t.Errorf("%v", took)
					}
					time.Sleep(time.Duration((i*7+k*13)%29) * ms / 4)
				}
			})
		}
		w.Wait()
		c.Close()
	})
}
