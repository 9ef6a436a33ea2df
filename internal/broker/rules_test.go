package broker

import (
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

var news = message.Destination{Kind: message.Topic, Name: "NEWS"}

func TestPoisonOfATopicConsumer(t *testing.T) { // R-BRK-15: dropped; R-EDGE-13: a dead letter, if asked for
	for name, keep := range map[string]bool{"by default": false, "deadLetterNonDurable": true} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(o *Options) {
				o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{DeadLetterNonDurable: keep}} }
			}, func(h *house) {
				c := h.client()
				k := c.consume(news)
				c.must(c.send(c.msg(news, "m"), ""))
				got := c.take()
				c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
				h.kill()
				c = h.client()
				c.consume(dlq)
				got = c.take()
				if !keep {
					want(t, "dead letters", got)
				} else if want(t, "dead letters", got, "m"); got[0].Message.OriginalDestination != news {
					t.Errorf("original destination %s", got[0].Message.OriginalDestination)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestNonPersistentPoisonOfATopicConsumer(t *testing.T) { // R-EDGE-12, R-EDGE-13: as of any other
	for name, keep := range map[string]bool{"the default strategy keeps none": false, "processNonPersistent": true} {
		t.Run(name, func(t *testing.T) {
			strategy := redelivery.SharedStrategy()
			strategy.ProcessNonPersistent = keep
			inHouse(t, func(o *Options) {
				o.Policy = func(message.Destination) Policy {
					return Policy{Rules: redelivery.Rules{DeadLetterNonDurable: true, DeadLetter: strategy}}
				}
			}, func(h *house) {
				c := h.client()
				k := c.consume(news)
				c.must(c.send(c.msg(news, "m", func(m *message.Message) { m.Persistent = false }), ""))
				got := c.take()
				c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
				c.consume(dlq)
				if keep {
					want(t, "dead letters", c.take(), "m")
				} else {
					want(t, "dead letters", c.take())
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestTwoSubscriptionsPoisonOneMessage(t *testing.T) { // R-DUR-02, R-DLS-25, R-EDGE-03: each has its dead letter
	inHouse(t, nil, func(h *house) {
		c := h.client()
		var subs []string
		for _, name := range []string{"a", "b"} {
			subs = append(subs, c.consume(news, func(s *ConsumerSpec) { s.Subscription = name }))
		}
		c.must(c.send(c.msg(news, "m"), ""))
		for _, d := range c.take() {
			for _, k := range subs {
				if d.Consumer == k {
					c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
				}
			}
		}
		c.consume(dlq)
		want(t, "dead letters", c.take(), "m", "m")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestOfflineSubscriptionsExpire(t *testing.T) { // R-DUR-04: each copy is a dead letter, at its time
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, name := range []string{"a", "b"} {
			k := c.consume(news, func(s *ConsumerSpec) { s.Subscription = name })
			c.closeConsumer(k, Delivery{})
		}
		c.must(c.send(c.msg(news, "m", func(m *message.Message) { m.Expiration = time.Now().Add(time.Second).UnixMilli() }), ""))
		time.Sleep(1100 * time.Millisecond)
		c.consume(dlq)
		want(t, "dead letters", c.take(), "m", "m")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestTopicMessageWithoutSubscriptionIsNotStored(t *testing.T) { // R-DUR-05
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(news, "m"), ""))
		c.consume(news)
		c.consume(dlq)
		want(t, "delivered", c.take())
		c.c.Close(message.Closed, "", -1)
	})
}

func TestDeadLetterQueueIsAnOrdinaryQueue(t *testing.T) { // R-DLQ-04: its order, its windows, its selectors
	inHouse(t, nil, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		for _, s := range bodies(6) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		for _, d := range c.take() {
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		}
		first := c.consume(dlq, func(s *ConsumerSpec) { s.Prefetch = 2 })
		got := c.take()
		want(t, "window", got, "m0", "m1")
		c.must(c.ack(queue.Standard, first, got[0], got[0], 1, ""))
		want(t, "next", c.take(), "m2")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestEndlessClosesAreCounted(t *testing.T) { // R-EDGE-19: untransacted sessions never check; a policy of the broker ends it
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay = 2, 0
	inHouse(t, func(o *Options) {
		o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{Redelivery: &p}} }
	}, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		deliveries := 0
		for range 10 {
			k := c.consume(orders)
			got := c.take()
			if len(got) == 0 {
				break
			}
			deliveries++
			c.closeConsumer(k, got[0])
			time.Sleep(2 * time.Second)
		}
		if deliveries != 3 {
			t.Errorf("%d deliveries, want 3", deliveries)
		}
		c.consume(dlq)
		want(t, "dead letters", c.take(), "m")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestRulesAreEachBrokersOwn(t *testing.T) { // R-EDGE-25: nothing is shared in the process
	inHouse(t, nil, func(one *house) {
		c := one.client()
		k := c.consume(orders)
		m := c.msg(orders, "m")
		c.must(c.send(m, ""))
		got := c.take()
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		c.c.Close(message.Closed, "", -1)
	})
	inHouse(t, nil, func(other *house) { // the same id, as a first message of a first client
		c := other.client()
		k := c.consume(orders)
		c.must(c.send(c.msg(orders, "m"), ""))
		got := c.take()
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		c.consume(dlq)
		want(t, "dead letters", c.take(), "m")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestWhatWaitsForARetryIsSeen(t *testing.T) { // R-EDGE-53
	p := redelivery.DefaultPolicy()
	p.InitialRedeliveryDelay = 5 * time.Second
	inHouse(t, func(o *Options) {
		o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{Redelivery: &p}} }
	}, func(h *house) {
		status := func() QueueStatus {
			t.Helper()
			for _, st := range h.broker.Queues() {
				if st.Name == orders {
					return st
				}
			}
			t.Fatal("the queue is not there")
			return QueueStatus{}
		}
		c := h.client()
		k := c.consume(orders)
		c.must(c.send(c.msg(orders, "m"), ""))
		got := c.take()
		c.rollBack(k, got[0], "TX:1") // the client delivers it once more by itself
		c.take()
		if st := status(); st.Stats.AtClients != 1 || st.Stats.Out != 1 || st.Stats.NextDue != 0 {
			t.Errorf("after a rollback: %+v", st.Stats)
		}
		given := time.Now()
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		c.take()
		if st := status(); st.Stats.AtClients != 0 || st.Stats.Scheduled != 1 || st.Stats.NextDue != given.Add(5*time.Second).UnixMilli() {
			t.Errorf("when the client has given it up: %+v, want it due at %d", st.Stats, given.Add(5*time.Second).UnixMilli())
		}
		c.c.Close(message.Closed, "", -1)
	})
}
