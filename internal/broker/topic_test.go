package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
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

// What goes by itself is kept for nobody: temporary topics end with their connections (JMS 1.1,
// 6.11.1), and advisories would pile up for a watcher that stays away.
func TestDurableSubscriptionToWhatIsNotKeptIsRefused(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		temp := message.Destination{Kind: message.TempTopic, Name: c.id + ":1"}
		c.must(c.c.AddDestination(h.t.Context(), temp))
		for _, to := range []message.Destination{temp, topicNamed("ActiveMQ.Advisory.Connection"), topicNamed("NEWS,ActiveMQ.Advisory.Queue")} {
			err := c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:1", Session: c.id + ":1", Destination: to, Subscription: "sub"})
			if !errors.Is(err, message.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", to, err)
			}
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

// What a producer is opened for is there before its first message, as in ActiveMQ, for those
// who look and those who watch; a composite of the configuration that only hands on stays away.
func TestProducersMakeTheirDestinations(t *testing.T) {
	t.Parallel()
	fan := Composite{Destination: queueNamed("FAN"), ForwardOnly: true, ForwardTo: []Forward{{Destination: queueNamed("F.A")}}}
	inHouse(t, intercepting(Interceptors{Composites: []Composite{fan}}), func(h *house) {
		c := h.client()
		c.c.AddProducer(c.id+":1:1", queueNamed("A,topic://B"))
		c.c.AddProducer(c.id+":1:2", queueNamed("FAN"))
		c.c.AddProducer(c.id+":1:3", message.Destination{})
		c.c.AddProducer(c.id+":1:4", queueNamed("A"))
		c.c.CloseProducer(h.t.Context(), c.id+":1:1")
		var told []string
		h.mu.Lock()
		for _, e := range h.events {
			switch e.Kind {
			case QueueAdded:
				told = append(told, "new "+e.Destination.String())
			case ProducerJoined, ProducerLeft:
				told = append(told, fmt.Sprintf("%s: %d", e.Destination, e.Count))
			}
		}
		h.mu.Unlock()
		if diff := cmp.Diff([]string{"new queue://A", "new topic://B", "queue://A: 1", "topic://B: 1", "queue://FAN: 1", ": 1", "queue://A: 2", "queue://A: 1", "topic://B: 0"}, told); diff != "" {
			t.Error(diff)
		}
		if got := h.broker.Names(); len(got) != 2 {
			t.Errorf("there are %v", got)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A topic counts what is sent to it once, whoever gets it, and what was counted does not go
// away with a subscriber: monitors reckon rates from it.
func TestTopicsCountWhatIsSentToThem(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		news := topicNamed("NEWS")
		counts := func(dequeued, dispatched int64) {
			t.Helper()
			want := TopicStatus{Sent: 3, Dequeued: dequeued, Dispatched: dispatched}
			if diff := cmp.Diff(want, h.broker.Topic(news)); diff != "" {
				t.Error(diff)
			}
		}
		c.must(c.send(c.msg(news, "to nobody"), ""))
		var all []string
		for _, to := range []message.Destination{news, topicNamed("NEWS,MORE"), topicNamed(">")} {
			all = append(all, c.consume(to))
		}
		durable := c.consume(news, func(s *ConsumerSpec) { s.Subscription = "sub" })
		c.must(c.send(c.msg(news, "m0"), ""))
		c.must(c.c.Begin("tx"))
		c.must(c.send(c.msg(news, "m1"), "tx"))
		c.must(c.settle(c.c.Commit, "tx"))
		for _, d := range c.take() {
			c.must(c.ack(queue.Standard, d.Consumer, d, d, 1, ""))
		}
		counts(8, 8)
		for _, k := range all {
			c.closeConsumer(k, Delivery{})
		}
		counts(8, 8)
		c.closeConsumer(durable, Delivery{})
		if err := c.c.RemoveDestination(h.t.Context(), news); !errors.Is(err, message.ErrState) || !strings.Contains(err.Error(), "durable subscription sub of client "+c.id) {
			t.Errorf("the topic goes: %v", err)
		}
		c.must(c.c.Unsubscribe(h.t.Context(), "sub"))
		counts(8, 8)
		if got := h.broker.Ended().Dequeued; got != 8 {
			t.Errorf("%d were dequeued by those that are gone, want 8", got)
		}
		c.must(c.c.RemoveDestination(h.t.Context(), news))
		if got := h.broker.Topic(news).Sent; got != 0 {
			t.Errorf("%d were sent to a topic that is gone", got)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A durable subscription that an operator makes gathers for its client, which takes it over by
// subscribing with the same selector, over a restart too.
func TestSubscriptionMadeAheadOfItsClient(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		news := topicNamed("NEWS")
		c := h.client()
		create := func(name string, to message.Destination, text string) error {
			return h.broker.CreateSubscription("ID:test-2", name, to, text)
		}
		c.must(create("sub", news, "JMSType = 'x'"))
		c.must(create("sub", news, "JMSType = 'x'"))
		for name, want := range map[string]error{
			"another selector": create("sub", news, ""),
			"another topic":    create("sub", topicNamed("MORE"), "JMSType = 'x'"),
		} {
			if !errors.Is(want, message.ErrExists) {
				t.Errorf("%s: %v, want ErrExists", name, want)
			}
		}
		for name, err := range map[string]error{
			"no name":      create("", news, ""),
			"no client":    h.broker.CreateSubscription("", "sub", news, ""),
			"a queue":      create("q", queueNamed("Q"), ""),
			"no topic":     create("none", topicNamed(""), ""),
			"no selector":  create("bad", news, "= ="),
			"an advisory":  create("adv", topicNamed("ActiveMQ.Advisory.Queue"), ""),
			"both of them": create("mix", topicNamed("NEWS,queue://Q"), ""),
		} {
			if err == nil {
				t.Errorf("%s: made", name)
			}
		}
		c.must(c.send(c.msg(news, "m0", func(m *message.Message) { m.Type = "x" }), ""))
		c.must(c.send(c.msg(news, "other"), ""))
		h.restart()
		reader := h.client()
		reader.consume(news, func(s *ConsumerSpec) { s.Subscription, s.Selector = "sub", "JMSType = 'x'" })
		want(t, "the reader", reader.take(), "m0")
		reader.c.Close(message.Closed, "", -1)
	})
}

// A commit that has more copies for subscribers than the store takes at once is rolled back,
// and says what to do; after fewer messages it works.
func TestATransactionHasTooManyCopies(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.stop()
		h.batchBytes = 64 << 10
		h.open()
		news := topicNamed("NEWS")
		c := h.client()
		for i := range 10 {
			c.must(h.broker.CreateSubscription("reader", fmt.Sprint(i), news, ""))
		}
		for n, want := range map[int]error{20: nil, 100: message.ErrOverLimit} {
			c.must(c.c.Begin("TX:1"))
			for range n {
				c.must(c.send(c.msg(news, "m"), "TX:1"))
			}
			err := c.settle(c.c.Commit, "TX:1")
			if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "1000 messages with the copies of each subscriber; commit after fewer") {
				t.Errorf("%d messages: %v", n, err)
			}
		}
		synctest.Wait() // the copies reach each subscription behind the answer
		for _, s := range h.broker.Subscriptions() {
			if s.Messages != 20 {
				t.Errorf("subscription %s has %d messages", s.Subscription, s.Messages)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}
