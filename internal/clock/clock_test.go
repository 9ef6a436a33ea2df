package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCallWhenTheTimeHasCome is the same of both clocks: what is called for a time is
// called then, once, and not if it was taken back.
func TestCallWhenTheTimeHasCome(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		clock func() Clock
		pass  func(Clock, time.Duration)
	}{
		"system": {func() Clock { return System{} }, func(_ Clock, d time.Duration) { time.Sleep(d) }},
		"manual": {func() Clock { m := new(Manual); m.Set(begin); return m }, func(c Clock, d time.Duration) { c.(*Manual).Set(c.Now().Add(d)) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := c.clock()
				calls := make(chan string, 10)
				call := func(after time.Duration, what string) func() bool {
					return k.Call(k.Now().Add(after), func() { calls <- what })
				}
				call(time.Second, "one second")
				early := call(2*time.Second, "taken back")
				late := call(time.Second, "one second as well")
				c.pass(k, 1500*time.Millisecond)
				synctest.Wait()
				if len(calls) != 2 {
					t.Errorf("%d calls after 1.5 s, want 2", len(calls))
				}
				if !early() || early() || late() {
					t.Error("what waits can be taken back, once; what was called cannot")
				}
				call(-time.Second, "long past")
				c.pass(k, time.Second)
				synctest.Wait()
				if len(calls) != 3 {
					t.Errorf("%d calls after 2.5 s, want 3", len(calls))
				}
			})
		})
	}
}
