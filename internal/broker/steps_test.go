package broker

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A wrongClock is a clock that can be set, on a machine where time passes as it does.
type wrongClock struct {
	clock.System
	begin time.Time
	off   atomic.Int64 // by how much it is wrong, nanoseconds
}

func (c *wrongClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.off.Load()))
}

func (c *wrongClock) At(t time.Time) (<-chan time.Time, func()) {
	if t.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(t.Sub(c.Now())) // which does not hear of it when the clock is set
	return timer.C, func() { timer.Stop() }
}

func (c *wrongClock) Since(time.Time) time.Duration { return time.Since(c.begin) }

func (c *wrongClock) set(by time.Duration) { c.off.Add(int64(by)) }

// anHourLater is a policy that brings what failed back after an hour.
func anHourLater(message.Destination) Policy {
	return Policy{Rules: redelivery.Rules{Redelivery: &redelivery.Policy{MaximumRedeliveries: 5, InitialRedeliveryDelay: time.Hour, RedeliveryDelay: time.Hour}}}
}

// A machine that slept, or whose clock was set, has everybody who waits for a time reckon
// anew: what is due by the clock comes, although the timer that was set for it would go on
// for as long as the machine slept.
func TestWhatIsDueComesAlthoughTheMachineSlept(t *testing.T) {
	k := &wrongClock{begin: time.Now()}
	inHouse(t, func(o *Options) { k.begin = time.Now(); o.Clock, o.Policy = k, anHourLater }, func(h *house) {
		c := h.client()
		id := c.consume(orders)
		c.must(c.send(c.msg(orders, "fails"), ""))
		got := c.take()
		c.must(c.ack(queue.Poison, id, got[0], got[0], 1, "", poisonText(1)))
		later := c.msg(orders, "later")
		later.Schedule = &message.Schedule{Delay: time.Hour.Milliseconds()}
		c.must(c.send(later, ""))
		time.Sleep(time.Minute)
		k.set(time.Hour)
		time.Sleep(2 * stepInterval)
		got = c.take()
		if len(got) != 2 {
			t.Errorf("%q came, want what failed and what was scheduled", texts(got))
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A clock that was wrong and is set right takes its error with it: what fails afterwards
// waits as long as its policy says.
func TestClockThatIsSetBackDelaysNothing(t *testing.T) {
	k := &wrongClock{}
	inHouse(t, func(o *Options) { k.begin = time.Now(); o.Clock, o.Policy = k, anHourLater }, func(h *house) {
		c := h.client()
		id := c.consume(orders)
		k.set(24 * time.Hour)
		time.Sleep(2 * stepInterval)
		c.must(c.send(c.msg(orders, "m1"), "")) // the queue sees the wrong time
		c.take()
		k.set(-24 * time.Hour)
		time.Sleep(2 * stepInterval)
		c.must(c.send(c.msg(orders, "m2"), ""))
		got := c.take()
		c.must(c.ack(queue.Poison, id, got[0], got[0], 1, "", poisonText(1)))
		time.Sleep(time.Hour + time.Minute)
		want(t, "after its hour", c.take(), "m2*1?")
		c.c.Close(message.Closed, "", -1)
	})
}
