package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// stale sends messages that no selector of these tests wants, without waiting for each.
func (c *client) stale(n int, set ...func(*message.Message)) {
	c.h.t.Helper()
	answered := make(chan error, n)
	for range n {
		c.c.Send(c.h.t.Context(), c.msg(orders, "stale", set...), "", func(err error) { answered <- err })
	}
	for range n {
		c.must(<-answered)
	}
}

func correlated(id string) func(*message.Message) {
	return func(m *message.Message) { m.CorrelationID = id }
}

func waitingFor(id string) func(*ConsumerSpec) {
	return func(s *ConsumerSpec) { s.Selector = "JMSCorrelationID = '" + id + "'"; s.Prefetch = 1 }
}

// TestASelectorReachesAnyDepth: 100,000 messages lie before the one that is wanted, at
// once and after a restart, and nothing of them changes.
func TestASelectorReachesAnyDepth(t *testing.T) {
	const n = 100_000
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.stale(n)
		c.must(c.send(c.msg(orders, "reply", correlated("x")), ""))
		for range 2 {
			c = h.client()
			k := c.consume(orders, waitingFor("x"))
			want(t, "what it waits for", c.take(), "reply")
			c.must(c.c.Pull(h.t.Context(), k, -1)) // nothing to a consumer with a window
			c.c.Close(message.Closed, "", -1)
			h.restart()
		}
		c = h.client()
		k := c.consume(orders, waitingFor("x"))
		got := c.take()
		want(t, "given back unread, after the restart", got, "reply")
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		c.must(c.send(c.msg(orders, "another", correlated("x")), ""))
		want(t, "what comes later", c.take(), "another")
		if st := h.broker.Queues()[0].Stats; st.Waiting != n || st.Out != 1 {
			t.Errorf("%+v", st)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// TestReceiveNoWaitLooksThroughTheQueue: a consumer of prefetch 0 is told that there is
// nothing when there is nothing (R-CLIENT-50).
func TestReceiveNoWaitLooksThroughTheQueue(t *testing.T) {
	inHouse(t, fourInMemory(nil), func(h *house) {
		c := h.client()
		c.stale(3000)
		c.must(c.send(c.msg(orders, "reply", correlated("x")), ""))
		k := c.consume(orders, waitingFor("x"), func(s *ConsumerSpec) { s.Prefetch = 0 })
		c.must(c.c.Pull(h.t.Context(), k, -1))
		want(t, "there is one", c.take(), "reply")
		c.must(c.c.Pull(h.t.Context(), k, -1))
		want(t, "there is none", c.take(), "nothing")
		c.c.Close(message.Closed, "", 0)
	})
}

// A client that refuses the answer to its pull as a duplicate goes on waiting: the pull
// stands, for the time that it had (R-CLIENT-50, R-EDGE-09).
func TestAPullOutlivesASuppressedDuplicate(t *testing.T) {
	for name, of := range map[string]message.Destination{"of one queue": orders, "of several": queueNamed(orders.Name + ",OTHER")} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				k := c.consume(of, func(s *ConsumerSpec) { s.Prefetch = 0 })
				refuse := func(d Delivery) {
					c.must(c.ack(queue.Poison, k, d, d, 1, "", "java.lang.Throwable: Suppressing duplicate delivery on connection, consumer x"))
				}
				c.must(c.send(c.msg(orders, "m0"), ""))
				c.must(c.c.Pull(h.t.Context(), k, 3*time.Second))
				got := c.take()
				want(t, "the pull", got, "m0")
				refuse(got[0])
				got = c.take()
				want(t, "under another name", got, "m0*1?")
				c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))

				c.must(c.send(c.msg(orders, "m1", expiring(2*time.Second)), ""))
				begin := time.Now()
				c.must(c.c.Pull(h.t.Context(), k, 3*time.Second))
				got = c.take()
				want(t, "the next pull", got, "m1")
				time.Sleep(2500 * time.Millisecond)
				refuse(got[0])
				got, _ = c.within(time.Minute)
				want(t, "no other comes", got, "nothing")
				if d := time.Since(begin); d < 3*time.Second || d > 3100*time.Millisecond {
					t.Errorf("told after %v", d)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// TestRepliesOnAQueueOfStaleOnes: many wait for a reply each, on one queue, while others
// come in that nobody wants.
func TestRepliesOnAQueueOfStaleOnes(t *testing.T) {
	const n = 50
	inHouse(t, func(o *Options) { o.Limits.WindowEntries = 20 }, func(h *house) {
		s := h.client()
		s.stale(2000, correlated("old"))
		var waiting []*client
		for i := range n {
			c := h.client()
			c.consume(orders, waitingFor(fmt.Sprint("id", i)))
			waiting = append(waiting, c)
		}
		for i := range n {
			s.stale(7)
			s.must(s.send(s.msg(orders, fmt.Sprint("r", i), correlated(fmt.Sprint("id", i))), ""))
		}
		for i, c := range waiting {
			want(t, "its reply", c.take(), fmt.Sprint("r", i))
			c.c.Close(message.Closed, "", 0)
		}
		s.c.Close(message.Closed, "", 0)
	})
}

// TestADeepMessageIsRedelivered: what was taken out of the middle comes back with its
// delay, becomes a dead letter, and is redriven as any other.
func TestADeepMessageIsRedelivered(t *testing.T) {
	inHouse(t, fourInMemory(policed(1, time.Minute, time.Minute, 0)), func(h *house) {
		c := h.client()
		c.stale(500)
		c.must(c.send(c.msg(orders, "reply", correlated("x")), ""))
		c.stale(500)
		k := c.consume(orders, waitingFor("x"))
		got := c.take()
		want(t, "at first", got, "reply")
		c.failAsJava(k, got[0])
		want(t, "it waits", c.take())
		got, _ = c.within(2 * time.Minute)
		want(t, "after its delay", got, "reply*1?")
		c.failAsJava(k, got[0])
		want(t, "it is dead", c.take())
		if o, err := h.broker.Redrive(h.t.Context(), At(dlq), Selection{}); err != nil || o.Taken != 1 {
			t.Fatalf("redrive: %+v, %v", o, err)
		}
		want(t, "redriven, behind all others", c.take(), "reply")
		c.c.Close(message.Closed, "", 0)
	})
}

// TestAGroupBehindAnother: a consumer has what lies behind a window full of messages
// whose group is another's (R-GRP-01).
func TestAGroupBehindAnother(t *testing.T) {
	inHouse(t, fourInMemory(nil), func(h *house) {
		of := func(group string) func(*message.Message) { return func(m *message.Message) { m.GroupID = group } }
		a, b := h.client(), h.client()
		a.stale(3000, of("A"))
		a.must(a.send(a.msg(orders, "b", of("B")), ""))
		a.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 1 })
		want(t, "the owner of A", a.take(), "stale")
		b.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 5 })
		want(t, "what is not A's", b.take(), "b")
		a.c.Close(message.Closed, "", -1)
		want(t, "when the owner has gone", b.take(), "stale", "stale", "stale", "stale")
		b.c.Close(message.Closed, "", 0)
	})
}

// TestACostlySelectorStopsNobody: 50 conditions on 30 KB each. Others of the queue have
// theirs, producers are answered, a purge and the stop of the broker come through.
func TestACostlySelectorStopsNobody(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		slow, quick, s := h.client(), h.client(), h.client()
		long := correlated(strings.Repeat("abc", 10_000))
		slow.consume(orders, func(spec *ConsumerSpec) {
			spec.Selector = "JMSCorrelationID LIKE '%b_c_a%'" + strings.Repeat(" OR JMSCorrelationID LIKE '%b_c_a%'", 49)
		})
		quick.consume(orders, func(spec *ConsumerSpec) { spec.Selector = "JMSType = 'q'" })
		s.stale(10, long)
		s.must(s.send(s.msg(orders, "q", func(m *message.Message) { m.Type = "q" }), ""))
		want(t, "the quick one's", quick.take(), "q")
		s.stale(10, long)
		begin := time.Now()
		if o, err := h.broker.Purge(h.t.Context(), At(orders), Selection{}); err != nil || o.Taken != 20 {
			t.Errorf("purge: %+v, %v", o, err)
		}
		if took := time.Since(begin); took > time.Second { // of virtual time: nobody waits for a timer
			t.Errorf("the purge took %v", took)
		}
		s.stale(10, long) // at which the slow one is when the broker stops
		quick.c.Close(message.Closed, "", 0)
	})
}

// TestASelectorIsAskedAlsoWithoutMemory: a message that is on its way to the disk, and
// for which there is no memory, is judged when it can be read.
func TestASelectorIsAskedAlsoWithoutMemory(t *testing.T) {
	inHouse(t, func(o *Options) { o.Limits.MessageBytes = 1 }, func(h *house) {
		c, k := h.client(), h.client()
		for _, id := range []string{"y", "x", "y"} {
			c.c.Send(h.t.Context(), c.msg(orders, id, correlated(id)), "", nil)
		}
		time.Sleep(100 * time.Microsecond) // its turn has ended, its batch is not on disk yet
		k.consume(orders, waitingFor("x"))
		want(t, "what it waits for", k.take(), "x")
		c.c.Close(message.Closed, "", 0)
		k.c.Close(message.Closed, "", 0)
	})
}
