package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// delayed is a policy of the broker's with one delay for all redeliveries.
func delayed(limit int, delay time.Duration) func(message.Destination) Policy {
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, delay, delay
	return func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{Redelivery: &p}} }
}

// What is scheduled keeps its time; the next failure is decided by the new policy,
// for queues and durable subscriptions that are there, and for those that come.
func TestReloadChangesPoliciesOfWhatIsThere(t *testing.T) { // issue 3, item 10
	t.Parallel()
	inHouse(t, func(o *Options) { o.Policy = delayed(5, time.Hour) }, func(h *house) {
		c := h.client()
		k := c.consume(parcels)
		s := c.consume(topicNamed("NEWS"), func(s *ConsumerSpec) { s.Subscription = "s" })
		c.must(c.send(c.msg(parcels, "m"), ""))
		c.must(c.send(c.msg(topicNamed("NEWS"), "n"), ""))
		fail := func() {
			h.t.Helper()
			for _, d := range c.take() {
				if d.Destination == parcels {
					c.failAsJava(k, d)
				} else {
					c.failAsJava(s, d)
				}
			}
		}
		fail()
		c.must(h.broker.Reload(h.t.Context(), Reload{Policy: delayed(2, 10*time.Minute)}))
		got, after := c.within(2 * time.Hour)
		want(t, "first redelivery", got, "m*1?", "n*1?")
		late(t, "what was scheduled before", after, time.Hour)
		c.got = got
		fail()
		got, after = c.within(2 * time.Hour)
		want(t, "second redelivery", got, "m*2?", "n*2?")
		late(t, "what failed after the reload", after, 10*time.Minute)
		c.got = got
		fail()
		c.take()
		if n := h.depth(dlq.Name); n != 2 { // the limit is 2 now
			t.Errorf("%d dead letters", n)
		}
		q := c.consume(shelf)
		c.must(c.send(c.msg(shelf, "new"), ""))
		c.failAsJava(q, c.take()[0])
		_, after = c.within(2 * time.Hour)
		late(t, "a queue that came later", after, 10*time.Minute)
		c.c.Close(message.Closed, "", -1)
	})
}

func TestReloadChangesWhereDeadLettersGo(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.deadLetters(parcels, 1)
		own := redelivery.IndividualStrategy()
		own.QueuePrefix = "DLQ."
		h.client().must(h.broker.Reload(h.t.Context(), Reload{Policy: func(message.Destination) Policy {
			return Policy{Rules: redelivery.Rules{DeadLetter: own}}
		}}))
		h.deadLetters(parcels, 1)
		if a, b := h.depth(dlq.Name), h.depth("DLQ.PARCELS"); a != 1 || b != 1 {
			t.Errorf("%d in the old place, %d in the new one", a, b)
		}
		o, err := h.broker.Redrive(h.t.Context(), At(queueNamed("DLQ.PARCELS")), Selection{})
		h.came("redrive", o, err, Outcome{Taken: 1})
		// Nobody's dead letters go to the old one now, and yet it has one.
		o, err = h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("redrive of the old one", o, err, Outcome{Taken: 1})
		if _, err = h.broker.Redrive(h.t.Context(), dlqAt, Selection{}); !errors.Is(err, message.ErrState) {
			t.Errorf("redrive of the old one again: %v", err)
		}
	})
}

func TestReloadChangesInterceptorsAndDestinations(t *testing.T) {
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		c := h.client()
		c.make("Consumer.A.VirtualTopic.X")
		x := topicNamed("VirtualTopic.X")
		c.must(c.send(c.msg(x, "1"), ""))
		circle := Reload{
			Interceptors: Interceptors{Composites: []Composite{{Destination: parcels, ForwardTo: []Forward{{Destination: parcels}}}}},
			Destinations: []message.Destination{queueNamed("NEW")},
		}
		if err := h.broker.Reload(h.t.Context(), circle); !errors.Is(err, message.ErrInvalid) {
			t.Errorf("a circle: %v", err)
		}
		if err := h.broker.Reload(h.t.Context(), Reload{Destinations: []message.Destination{queueNamed("A.>")}}); !errors.Is(err, message.ErrInvalid) {
			t.Errorf("a pattern: %v", err)
		}
		c.must(c.send(c.msg(x, "2"), "")) // nothing has changed
		c.must(h.broker.Reload(h.t.Context(), Reload{
			Interceptors: Interceptors{Composites: []Composite{{Destination: parcels, ForwardOnly: true, ForwardTo: []Forward{{Destination: shelf}}}}},
			Destinations: []message.Destination{queueNamed("NEW"), topicNamed("T")},
		}))
		c.must(c.send(c.msg(x, "3"), ""))
		c.must(c.send(c.msg(parcels, "p"), ""))
		h.holds(At(queueNamed("Consumer.A.VirtualTopic.X")), "1", "2")
		h.holds(At(shelf), "p")
		h.holds(At(queueNamed("NEW")))
	})
}
