package queue

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

// A slowTrial is a queue, or a topic's subscription, with one consumer.
type slowTrial struct {
	m    *Machine
	now  int64
	sent uint64
	told []string // "SECONDS: slow" and "SECONDS: abort: TEXT"
}

func newSlowTrial(o Options, prefetch int) *slowTrial {
	o.Destination = message.Destination{Kind: message.Queue, Name: "Q"}
	o.Tells.Slow, o.Properties = true, valued
	s := &slowTrial{m: New(o), now: begin}
	s.do(Attach{Consumer: &Consumer{ID: "c", Prefetch: prefetch}})
	return s
}

func (s *slowTrial) do(c Command) {
	for _, e := range s.m.EndTurn(s.m.Apply(c, s.now, nil)) {
		at := float64(s.now-begin) / 1000
		switch {
		case e.Kind == Tell && e.Event == ConsumerSlow:
			s.told = append(s.told, fmt.Sprintf("%g: slow", at))
		case e.Kind == Abort:
			s.told = append(s.told, fmt.Sprintf("%g: abort, %v: %s", at, e.Cause, e.Text))
		}
	}
}

func (s *slowTrial) send(n int) {
	for range n {
		s.sent++
		s.do(Enqueue{Item: NewItem(s.sent, &message.Message{ID: message.ID{Producer: "P", Sequence: int64(s.sent)}})})
	}
}

// ack acknowledges the oldest messages.
func (s *slowTrial) ack(n int) {
	for range n {
		if it := s.m.byID["c"].held.head; it != nil {
			s.do(Ack{Consumer: "c", Type: Individual, Last: Ref{Position: it.Position}, Count: 1})
		}
	}
}

// sleep lets seconds pass, with all that is due in them.
func (s *slowTrial) sleep(seconds float64) {
	for until := s.now + int64(seconds*1000); s.now < until; {
		next := s.m.Next()
		if next == 0 || next > until {
			s.now = until
			return
		}
		s.now = max(next, s.now)
		s.do(Tick{})
		if s.m.Next() != 0 && s.m.Next() <= s.now {
			panic("time stands still")
		}
	}
}

func TestSlowConsumersAreAborted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o        Options
		queue    bool
		prefetch int
		run      func(s *slowTrial)
		want     []string
	}{
		"R-BRK-40 one of a queue that hangs": {Options{Slow: SlowLimits{For: 30_000}}, true, 2,
			func(s *slowTrial) { s.send(3); s.sleep(100) }, []string{"0: slow", "30: abort, closed: the consumer was slow for 30s"}},
		"not one that has a backlog, and works": {Options{Slow: SlowLimits{For: 30_000}}, true, 2,
			func(s *slowTrial) {
				s.send(20)
				for s.m.Stats().Waiting > 0 {
					s.sleep(29)
					s.ack(1)
				}
			}, []string{"0: slow"}},
		"not one whose window is not full": {Options{Slow: SlowLimits{For: 30_000}}, true, 2, func(s *slowTrial) { s.send(1); s.sleep(100) }, nil},
		"not one for which nothing waits":  {Options{Slow: SlowLimits{For: 30_000}}, true, 2, func(s *slowTrial) { s.send(2); s.sleep(100) }, nil},
		"a topic's, when twice its window waits, although it works": {Options{Slow: SlowLimits{For: 30_000}}, false, 2,
			func(s *slowTrial) {
				s.send(4)
				s.sleep(5)
				s.send(8)
				for s.m.Stats().Waiting > 0 && s.now < begin+60_000 {
					s.sleep(7)
					s.ack(1)
				}
			}, []string{"5: slow", "35: abort, closed: the consumer was slow for 30s"}},
		"a topic's of which something was evicted": {Options{Slow: SlowLimits{For: 30_000}, Backlog: Backlog{Limits: ConstantLimit, Most: 1}}, false, 1,
			func(s *slowTrial) { s.send(2); s.sleep(5); s.send(1); s.sleep(100) }, []string{"5: slow", "35: abort, closed: the consumer was slow for 30s"}},
		"one that has caught up is well": {Options{Slow: SlowLimits{For: 30_000}}, false, 2,
			func(s *slowTrial) { s.send(5); s.sleep(20); s.ack(5); s.sleep(100) }, []string{"0: slow"}},
		"too often": {Options{Slow: SlowLimits{Times: 3, Well: 10_000}}, true, 1,
			func(s *slowTrial) {
				for range 3 {
					s.send(2)
					s.ack(2)
					s.sleep(9)
				}
			}, []string{"0: slow", "9: slow", "18: slow", "18: abort, closed: the consumer was slow 3 times"}},
		"but not, if it was well between": {Options{Slow: SlowLimits{Times: 2, Well: 10_000}}, true, 1,
			func(s *slowTrial) {
				for range 3 {
					s.send(2)
					s.ack(2)
					s.sleep(10)
				}
			}, []string{"0: slow", "10: slow", "20: slow"}},
		"R-BRK-41 one that acknowledges nothing": {Options{Slow: SlowLimits{Unacked: 30_000}}, true, 10,
			func(s *slowTrial) { s.sleep(100); s.send(2); s.sleep(10); s.ack(1); s.sleep(50) }, []string{"140: abort, ack-timeout: the consumer acknowledged nothing for 30s"}},
		"of a topic, too": {Options{Slow: SlowLimits{Unacked: 30_000}}, false, 10,
			func(s *slowTrial) { s.send(1); s.sleep(50) }, []string{"30: abort, ack-timeout: the consumer acknowledged nothing for 30s"}},
		"not one that has nothing": {Options{Slow: SlowLimits{Unacked: 30_000}}, true, 10,
			func(s *slowTrial) { s.send(1); s.sleep(20); s.ack(1); s.sleep(100) }, nil},
		"not one whose transaction has acknowledged all": {Options{Slow: SlowLimits{Unacked: 30_000}}, true, 10,
			func(s *slowTrial) {
				s.send(1)
				s.do(Ack{Consumer: "c", Type: Standard, Last: Ref{Position: 1}, Count: 1, Tx: "T"})
				s.sleep(100)
			}, nil},
		"a rate that is too low": {Options{Slow: SlowLimits{Rate: 2, Period: 5000}}, true, 100,
			func(s *slowTrial) { s.send(1); s.send(50); s.sleep(2); s.ack(9); s.sleep(20) }, []string{"10: abort, closed: the consumer acknowledged 0 messages in 5s, and not 10"}},
		"a rate that is high enough": {Options{Slow: SlowLimits{Rate: 2, Period: 5000}}, true, 100,
			func(s *slowTrial) {
				s.send(50)
				for range 4 {
					s.sleep(0.1)
					s.ack(10)
					s.sleep(4.9)
				}
			}, nil},
		"too little to measure a rate by": {Options{Slow: SlowLimits{Rate: 2, Period: 5000}}, true, 100,
			func(s *slowTrial) { s.send(9); s.sleep(100) }, nil},
		"told only": {Options{Slow: SlowLimits{Rate: 2, Period: 5000, Notify: true}}, true, 100,
			func(s *slowTrial) { s.send(1); s.send(50); s.sleep(11) }, []string{"10: slow"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.o.Redelivers = tt.queue
			s := newSlowTrial(tt.o, tt.prefetch)
			tt.run(s)
			if diff := cmp.Diff(tt.want, s.told); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAbortedConsumersGetNothing: what it has goes back when it is detached, and what
// comes goes to others.
func TestAbortedConsumersGetNothing(t *testing.T) {
	t.Parallel()
	s := newSlowTrial(Options{Redelivers: true, Slow: SlowLimits{For: 1000}}, 1)
	s.send(2)
	s.sleep(2)
	s.do(Attach{Consumer: &Consumer{ID: "other", Prefetch: 10}})
	s.send(1)
	s.ack(1)
	if n, other := s.m.byID["c"].Held(), s.m.byID["other"].Held(); n != 0 || other != 2 {
		t.Errorf("it has %d, the other %d", n, other)
	}
}

// TestWhatAnAbortedConsumerIsAtFails, unless it has acknowledged that as it closes.
func TestWhatAnAbortedConsumerIsAtFails(t *testing.T) {
	t.Parallel()
	for acks, want := range map[int]int64{0: 1, 1: 0} {
		s := newSlowTrial(Options{Redelivers: true, Slow: SlowLimits{Unacked: 1000}}, 10)
		s.send(3)
		s.sleep(1.5)
		s.ack(acks)
		s.do(Detach{Consumer: "c", Last: UnknownLast, Cause: message.AckTimeout, Charge: true})
		if st := s.m.Stats(); st.Failed != want || st.Waiting != int64(3-acks) {
			t.Errorf("%d acknowledged: %+v", acks, st)
		}
	}
}

// TestSlowLimitsChange: a reload holds for consumers that are slow already.
func TestSlowLimitsChange(t *testing.T) {
	t.Parallel()
	s := newSlowTrial(Options{Redelivers: true}, 1)
	s.send(2)
	s.sleep(50)
	s.do(SetPolicy{Slow: SlowLimits{For: 60_000}, Tells: Tells{Slow: true}})
	s.sleep(5)
	s.do(SetPolicy{Slow: SlowLimits{Unacked: 57_000}, Tells: Tells{Slow: true}})
	s.sleep(5)
	if diff := cmp.Diff([]string{"0: slow", "57: abort, ack-timeout: the consumer acknowledged nothing for 57s"}, s.told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOneByOne fills one consumer's window before the next one's (strictOrderDispatch).
func TestOneByOne(t *testing.T) {
	t.Parallel()
	for oneByOne, want := range map[bool][2]int{true: {3, 1}, false: {2, 2}} {
		m, do := newQueue(Options{OneByOne: oneByOne})
		for _, id := range []string{"a", "b"} {
			do(Attach{Consumer: &Consumer{ID: id, Prefetch: 3}})
		}
		for i := range uint64(4) {
			do(Enqueue{Item: durableItem(i + 1)})
		}
		if got := [2]int{m.byID["a"].Held(), m.byID["b"].Held()}; got != want {
			t.Errorf("%v: %v, want %v", oneByOne, got, want)
		}
	}
}
