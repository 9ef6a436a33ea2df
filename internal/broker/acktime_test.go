package broker

import (
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// limited gives every destination a time limit for acknowledgements, and a policy if
// limit is not negative.
func limited(ack time.Duration, limit int, delay time.Duration) func(*Options) {
	return func(o *Options) {
		p := redelivery.DefaultPolicy()
		p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, delay, delay
		o.Policy = func(message.Destination) Policy {
			policy := Policy{AckTimeout: ack}
			if limit >= 0 {
				policy.Rules.Redelivery = &p
			}
			return policy
		}
	}
}

func TestAckTimeoutIsAFailure(t *testing.T) { // by the rules: counted, delayed, dead lettered
	inHouse(t, limited(10*time.Second, 1, 2*time.Second), func(h *house) {
		c, other := h.client(), h.client()
		for _, s := range []string{"stuck", "behind", "later"} {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 2 })
		got := c.take()
		want(t, "the first", got, "stuck", "behind")
		ko := other.consume(orders)
		rest := other.take()
		want(t, "the other", rest, "later")
		other.must(other.ack(queue.Standard, ko, rest[0], rest[0], 1, ""))
		behind, after := other.within(time.Minute)
		want(t, "what was behind it goes back uncounted", behind, "behind*1?")
		late(t, "behind", after, 10*time.Second-2*tick)
		other.must(other.ack(queue.Standard, ko, behind[0], behind[0], 1, ""))
		again, after := other.within(time.Minute)
		want(t, "what was stuck comes later, by the policy", again, "stuck*1?")
		late(t, "stuck", after, 2*time.Second-tick)
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, "")) // it was slow, and is not to know
		c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
		if n := h.broker.Counted(StrayAck); n != 2 {
			t.Errorf("%d stray acknowledgements, want 2", n)
		}
		if n := h.broker.CountedBy(Failed)["ack-timeout"]; n != 1 {
			t.Errorf("%d failures by time limit, want 1", n)
		}
		time.Sleep(10 * time.Second) // the other does not acknowledge it either
		c.take()
		c.consume(dlq)
		dead := c.take()
		found := false
		for _, d := range dead {
			found = found || string(d.Message.Body) == "stuck"
		}
		p, err := h.broker.FindMessage(h.t.Context(), At(dlq), got[0].Entry.ID.String())
		if err != nil || !found {
			t.Fatalf("dead letters %v, %v", texts(dead), err)
		}
		story, err := h.broker.Story(p)
		c.must(err)
		if len(story) != 2 || story[0].Cause != message.AckTimeout || !story[0].Counted || story[0].Text != "no acknowledgement within 10s" || story[1].Decision != "dead-letter" {
			t.Errorf("story %+v", story)
		}
		c.c.Close(message.Closed, "", -1)
		other.c.Close(message.Closed, "", -1)
	})
}

func TestIdleConsumerGetsNothingUntilItIsHeardOf(t *testing.T) {
	inHouse(t, limited(10*time.Second, -1, 0), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		k := c.consume(orders)
		d := c.take()[0]
		time.Sleep(time.Hour)
		want(t, "to the one that is stuck", c.take())
		c.must(c.send(c.msg(orders, "next"), ""))
		want(t, "nor what is new", c.take())
		c.must(c.ack(queue.Standard, k, d, d, 1, ""))
		got := c.take()
		want(t, "once it is heard of", got, "m*1", "next")
		if !got[0].Renamed || got[1].Renamed {
			t.Error("its client would take the message for a copy")
		}
		c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
		if n := h.depth(orders.Name); n != 0 {
			t.Errorf("%d are left", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestAckTimeoutAndTransactions(t *testing.T) {
	inHouse(t, limited(10*time.Second, -1, 0), func(h *house) {
		out := queueNamed("OUT")
		c := h.client()
		for _, s := range []string{"a", "b"} {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders)
		got := c.take()
		c.must(c.c.Begin("TX:1"))
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, "TX:1"))
		c.must(c.send(c.msg(out, "result"), "TX:1"))
		time.Sleep(11 * time.Second) // a is the transaction's; b has been too long
		c.must(c.ack(queue.Standard, k, got[1], got[1], 1, "TX:1"))
		if err := c.settle(c.c.Commit, "TX:1"); err == nil {
			t.Error("a transaction was committed although its message is somebody else's")
		}
		other := h.client()
		other.consume(orders)
		got, _ = other.within(time.Minute)
		if len(got) == 0 || h.depth("OUT") != 0 {
			t.Errorf("%v came again, %d results", texts(got), h.depth("OUT"))
		}
		c.c.Close(message.Closed, "", -1)
		other.c.Close(message.Closed, "", -1)
	})
}

func TestWorkInTimeNeverLapses(t *testing.T) { // a long buffer, worked off one by one
	inHouse(t, limited(10*time.Second, -1, 0), func(h *house) {
		c := h.client()
		for _, s := range bodies(20) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders)
		for _, d := range c.take() { // 140 s for all of them
			time.Sleep(7 * time.Second)
			c.must(c.ack(queue.Standard, k, d, d, 1, ""))
		}
		if n := h.broker.Counted(Failed); n != 0 || h.depth(orders.Name) != 0 {
			t.Errorf("%d failures, %d left", n, h.depth(orders.Name))
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestLocalRedeliveryHasNoTimeLimit(t *testing.T) { // what its client holds for a redelivery is the client's
	inHouse(t, limited(10*time.Second, 5, time.Second), func(h *house) {
		c, other := h.client(), h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		k := c.consume(orders)
		d := c.take()[0]
		other.consume(orders)
		c.rollBack(k, d, "TX:1")
		c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
		time.Sleep(time.Hour)
		want(t, "to another", other.take())
		c.must(c.ack(queue.Standard, k, d, d, 1, ""))
		c.c.Close(message.Closed, "", -1)
		other.c.Close(message.Closed, "", -1)
	})
}
