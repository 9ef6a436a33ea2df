package queue

import "testing"

// TestPauseIsNotHeldAgainstConsumers: who is handed nothing, since the queue is paused,
// is not slow for it.
func TestPauseIsNotHeldAgainstConsumers(t *testing.T) {
	t.Parallel()
	s := newSlowTrial(Options{Redelivers: true, Slow: SlowLimits{Rate: 1, Period: 10_000}}, 100)
	s.do(Pause{On: true})
	s.send(20)
	s.do(Pause{}) // a period begins with 20 messages, of which 10 are to be acknowledged
	s.ack(5)
	s.do(Pause{On: true})
	s.sleep(60)
	s.do(Pause{}) // another one begins
	s.sleep(5)
	s.ack(15)
	s.sleep(20)
	if len(s.told) > 0 {
		t.Errorf("told %q", s.told)
	}
}
