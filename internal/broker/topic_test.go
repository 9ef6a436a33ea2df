package broker

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

// A durable subscription with noLocal keeps nothing of its own client's, whether
// anybody uses it at the time or not (JMS 2.0, 8.3.3).
func TestNoLocalHoldsWhileADurableSubscriberIsAway(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		news := topicNamed("NEWS")
		c, other := h.client(), h.client()
		sub := func(s *ConsumerSpec) { s.Subscription, s.NoLocal = "sub", true }
		k := c.consume(news, sub)
		c.must(c.send(c.msg(news, "own"), ""))
		c.closeConsumer(k, Delivery{})
		c.must(c.send(c.msg(news, "own while away"), ""))
		c.must(c.c.Begin("tx"))
		c.must(c.send(c.msg(news, "own in a transaction"), "tx"))
		c.must(c.settle(c.c.Commit, "tx"))
		other.must(other.send(other.msg(news, "other's"), ""))
		h.holds(Place{ClientID: c.id, Subscription: "sub"}, "other's")
		c.consume(news, sub)
		want(t, "back", c.take(), "other's")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestDurableSubscriptionToATemporaryTopicIsRefused(t *testing.T) { // JMS 1.1, 6.11.1
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		temp := message.Destination{Kind: message.TempTopic, Name: c.id + ":1"}
		c.must(c.c.AddDestination(h.t.Context(), temp))
		err := c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:1", Session: c.id + ":1", Destination: temp, Subscription: "sub"})
		if !errors.Is(err, message.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
		if all := h.broker.Subscriptions(); len(all) > 0 {
			t.Errorf("there are subscriptions: %+v", all)
		}
		c.consume(temp) // without a name it may
		c.must(c.send(c.msg(temp, "reply"), ""))
		want(t, "the temporary topic", c.take(), "reply")
		c.c.Close(message.Closed, "", -1)
	})
}

// A topic that was removed begins anew when it is used again: it is there for those who
// look, who watch are told, and nothing of what the first one had kept comes back.
func TestRemovedTopicBeginsAnew(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *Options) {
		withProperties(o)
		o.Policy = func(message.Destination) Policy { return Policy{Recovery: Recovery{Count: 5, Retained: true}} }
	}, func(h *house) {
		news := topicNamed("NEWS")
		c := h.client()
		send := func(m *message.Message) { c.must(c.send(m, "")) }
		added := func() (n int) {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, e := range h.events {
				if e.Kind == QueueAdded && e.Destination == news {
					n++
				}
			}
			return n
		}
		send(c.msg(news, "retained", retain))
		send(c.msg(news, "old"))
		c.must(c.c.RemoveDestination(h.t.Context(), news))
		if slices.Contains(h.broker.Topics(), news) {
			t.Error("it is there after it was removed")
		}
		send(c.msg(news, "new"))
		if diff := cmp.Diff([]message.Destination{news}, h.broker.Topics()); diff != "" {
			t.Errorf("topics (-want +got):\n%s", diff)
		}
		if n := added(); n != 2 {
			t.Errorf("it was told of %d times that it is there, want 2", n)
		}
		c.consume(news, func(s *ConsumerSpec) { s.Retroactive = true })
		want(t, "kept", c.take(), "new")
		c.c.Close(message.Closed, "", -1)
	})
}
