package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// strategy is rules with a strategy that f has changed.
func strategy(s redelivery.DeadLetterStrategy, f func(*redelivery.DeadLetterStrategy)) redelivery.Rules {
	f(&s)
	return redelivery.Rules{DeadLetter: s}
}

// TestStrategies fails a message in each way, and looks where it is then (spec
// sections 5.2, 5.3 and 5.7).
func TestStrategies(t *testing.T) {
	shared, individual := redelivery.SharedStrategy, redelivery.IndividualStrategy
	same := func(*redelivery.DeadLetterStrategy) {}
	const given, late, passing = "given up", "expired", "not persistent"
	for name, tt := range map[string]struct {
		rules  redelivery.Rules
		how    string
		want   string // the queue where it is; empty: nowhere
		reason string // of a drop
	}{
		"R-DLS-02 the default":                       {redelivery.Rules{}, given, "ActiveMQ.DLQ", ""},
		"the default, expired":                       {redelivery.Rules{}, late, "ActiveMQ.DLQ", ""},
		"R-EDGE-12 the default, not persistent":      {redelivery.Rules{}, passing, "", "non-persistent"},
		"shared, of another name":                    {strategy(shared(), func(s *redelivery.DeadLetterStrategy) { s.DeadLetterQueue = queueNamed("ops.graveyard") }), given, "ops.graveyard", ""},
		"individual":                                 {strategy(individual(), same), given, "ActiveMQ.DLQ.Queue.ORDERS", ""},
		"R-DLS-13 individual with the seed's prefix": {strategy(individual(), func(s *redelivery.DeadLetterStrategy) { s.QueuePrefix = "DLQ." }), given, "DLQ.ORDERS", ""},
		"individual, prefix and suffix":              {strategy(individual(), func(s *redelivery.DeadLetterStrategy) { s.QueuePrefix, s.QueueSuffix = "", ".dead" }), given, "ORDERS.dead", ""},
		"individual, expired":                        {strategy(individual(), same), late, "ActiveMQ.DLQ.Queue.ORDERS", ""},
		"R-DLS-20 processExpired=false, expired":     {strategy(shared(), func(s *redelivery.DeadLetterStrategy) { s.ProcessExpired = false }), late, "", "expired"},
		"processExpired=false, given up in time":     {strategy(shared(), func(s *redelivery.DeadLetterStrategy) { s.ProcessExpired = false }), given, "ActiveMQ.DLQ", ""},
		"processNonPersistent, not persistent":       {strategy(shared(), func(s *redelivery.DeadLetterStrategy) { s.ProcessNonPersistent = true }), passing, "ActiveMQ.DLQ", ""},
		"discarding":                                 {redelivery.Rules{DeadLetter: redelivery.DiscardingStrategy()}, given, "", "discarding"},
		"discarding, expired":                        {redelivery.Rules{DeadLetter: redelivery.DiscardingStrategy()}, late, "", "discarding"},
		"R-DLQ-40 the plugin drops":                  {redelivery.Rules{Drop: redelivery.DropLast}, given, "", "discarding-plugin"},
		"R-DLQ-40 the plugin drops, expired":         {redelivery.Rules{Drop: redelivery.DropLast}, late, "", "discarding-plugin"},
		"fallbackToDeadLetter=false":                 {redelivery.Rules{DropWithoutPolicy: true}, given, "", "no-policy"},
		"fallbackToDeadLetter=false, expired":        {redelivery.Rules{DropWithoutPolicy: true}, late, "ActiveMQ.DLQ", ""}, // R-PLG-10: expiry passes the plugin by
		"R-DLQ-21 in a declared dead letter queue":   {redelivery.Rules{DeadLetterQueue: true}, given, "ORDERS", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policies(func(d message.Destination) redelivery.Rules {
				if d == orders {
					return tt.rules
				}
				return redelivery.Rules{}
			}), func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m", func(m *message.Message) {
					m.Persistent = tt.how != passing
					if tt.how == late {
						m.Expiration = time.Now().Add(time.Second).UnixMilli()
					}
				}), ""))
				if tt.how == late {
					time.Sleep(2 * time.Second)
				} else {
					k := c.consume(orders)
					got := c.take()
					c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
					c.closeConsumer(k, got[0])
				}
				found, total := h.depth(tt.want), int64(0)
				for _, q := range h.broker.Queues() {
					total += q.Messages
				}
				want := int64(0)
				if tt.want != "" {
					want = 1
				}
				if found != want || total != want {
					t.Errorf("%d in %q and %d in all, want %d: %+v", found, tt.want, total, want, h.broker.Queues())
				}
				dropped := ""
				h.mu.Lock()
				for _, e := range h.events {
					if e.Kind == Discarded {
						dropped = e.Text
					}
				}
				h.mu.Unlock()
				if dropped != tt.reason {
					t.Errorf("dropped for %q, want %q", dropped, tt.reason)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// TestDeadLettersExpire is the strategy's expiration: a dead letter goes when its time
// is over, counted (R-DLQ-05, R-EDGE-39), or goes on where an entry of the queue's own
// name has another strategy (UT DeadLetterExpiryTest).
func TestDeadLettersExpire(t *testing.T) {
	archive := queueNamed("ARCHIVE")
	for name, tt := range map[string]struct {
		dlq  redelivery.Rules
		want message.Destination // zero: it is gone
	}{
		"no entry for the dead letter queue": {redelivery.Rules{}, message.Destination{}},
		"R-EDGE-28 an entry by a pattern":    {strategy(redelivery.SharedStrategy(), func(s *redelivery.DeadLetterStrategy) { s.DeadLetterQueue = archive }), message.Destination{}},
		"an entry of its own name": {func() redelivery.Rules {
			r := strategy(redelivery.SharedStrategy(), func(s *redelivery.DeadLetterStrategy) { s.DeadLetterQueue = archive })
			r.StrategyNamed = true
			return r
		}(), archive},
		"an entry of its own name, without another": {redelivery.Rules{DeadLetter: redelivery.SharedStrategy(), StrategyNamed: true}, message.Destination{}},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policies(func(d message.Destination) redelivery.Rules {
				switch d {
				case orders:
					return strategy(redelivery.SharedStrategy(), func(s *redelivery.DeadLetterStrategy) { s.Expiration = 3 * time.Second })
				case dlq:
					return tt.dlq
				}
				return redelivery.Rules{}
			}), func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m"), ""))
				k := c.consume(orders)
				got := c.take()
				died := time.Now().UnixMilli()
				c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
				page, _, err := h.broker.Look(h.t.Context(), At(dlq), Cursor{}, 10)
				if err != nil || len(page) != 1 || page[0].Entry.Expiration != died+3000 {
					t.Fatalf("%+v %v", page, err)
				}
				if m, err := h.broker.Header(&page[0]); err != nil || m.Added[OriginalExpiration] != nil { // R-EDGE-36
					t.Errorf("%+v %v", m, err)
				}
				h.restart()
				c = h.client()
				time.Sleep(4 * time.Second)
				if tt.want.IsZero() {
					h.holds(At(dlq))
					if gone := h.told(Discarded); !slices.Equal(gone, []string{" of ActiveMQ.DLQ: retention 0"}) {
						t.Errorf("told %q", gone)
					}
					c.c.Close(message.Closed, "", -1)
					return
				}
				reader := c.consume(tt.want)
				got = c.take()
				want(t, "when it has expired", got, "m")
				if got[0].Entry.Expiration != 0 {
					t.Errorf("expires at %d, want never", got[0].Entry.Expiration)
				}
				c.closeConsumer(reader, Delivery{})
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// TestDeadLetterTopic sends dead letters to a topic: its durable subscriptions keep
// them (section 5.2, useQueueForQueueMessages="false").
func TestDeadLetterTopic(t *testing.T) {
	s := redelivery.IndividualStrategy()
	s.QueuePrefix, s.UseQueueForQueueMessages = "DEAD.", false
	inHouse(t, policies(func(message.Destination) redelivery.Rules { return redelivery.Rules{DeadLetter: s} }), func(h *house) {
		c := h.client()
		watch := c.consume(message.Destination{Kind: message.Topic, Name: "DEAD.ORDERS"}, func(s *ConsumerSpec) { s.Subscription = "watch" })
		c.must(c.send(c.msg(orders, "m"), ""))
		k := c.consume(orders)
		got := c.take()
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		got = c.take()
		want(t, "the topic's subscription", got, "m")
		if got[0].Consumer != watch {
			t.Errorf("%+v", got)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// TestDeadLetterTopicIsATopic: whoever subscribes to it gets what his selector wants,
// with or without a durable subscription. What nobody gets is dropped, counted as that,
// and no dead letter (section 5.2, R-DLQ-09, C14).
func TestDeadLetterTopicIsATopic(t *testing.T) {
	s := redelivery.SharedStrategy()
	s.DeadLetterQueue = topicNamed("DEAD")
	inHouse(t, func(o *Options) {
		withProperties(o)
		policies(func(message.Destination) redelivery.Rules { return redelivery.Rules{DeadLetter: s} })(o)
	}, func(h *house) {
		c, reader := h.client(), h.client()
		k := c.consume(orders)
		fail := func(body string, priority uint8) {
			c.must(c.send(c.msg(orders, body, func(m *message.Message) { m.Priority = priority }), ""))
			d := c.take()[0]
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		}
		fail("m0", 4)
		if got := h.told(Discarded, DeadLettered); !slices.Equal(got, []string{" of ORDERS: no-subscriber 0"}) {
			t.Errorf("told %q", got)
		}
		if q := h.broker.Queues()[0]; q.Stats.DeadLettered != 0 || q.Stats.Discarded != 1 || q.Messages != 0 {
			t.Errorf("%+v", q)
		}
		live := reader.consume(topicNamed("DEAD"), func(s *ConsumerSpec) { s.Selector = "JMSPriority > 4" })
		durable := reader.consume(topicNamed("DEAD"), func(s *ConsumerSpec) { s.Subscription, s.Selector = "s", "JMSPriority > 5" })
		fail("m1", 4)
		fail("m2", 5)
		fail("m3", 6)
		of := map[string][]string{}
		for _, d := range reader.take() {
			if m := d.Message; m.OriginalDestination != orders || m.Added[FailureCause] != poisonText(1) || m.Destination != topicNamed("DEAD") {
				t.Errorf("%+v", m)
			}
			of[d.Consumer] = append(of[d.Consumer], string(d.Message.Body))
		}
		if !slices.Equal(of[live], []string{"m2", "m3"}) || !slices.Equal(of[durable], []string{"m3"}) {
			t.Errorf("live %q, durable %q", of[live], of[durable])
		}
		if q := h.broker.Queues()[0]; q.Stats.DeadLettered != 2 || q.Stats.Discarded != 2 || q.Messages != 0 {
			t.Errorf("%+v", q)
		}
		c.c.Close(message.Closed, "", -1)
		reader.c.Close(message.Closed, "", -1)
	})
}

// TestDeadLetterQueueOfAnOddSubscription: client ids and subscriptions may be called
// anything; that no queue can be called so stops nobody (R-DLS-12).
func TestDeadLetterQueueOfAnOddSubscription(t *testing.T) {
	s := redelivery.IndividualStrategy()
	s.DestinationPerDurableSubscriber = true
	for name, dead := range map[string]string{"a,b": "a_b", "a?b=c": "a_b=c", "topic://a": "topic://a", "*": "*", "a.>": "a.>", " a ": " a"} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policies(func(message.Destination) redelivery.Rules { return redelivery.Rules{DeadLetter: s} }), func(h *house) {
				c := h.client()
				k := c.consume(news, func(s *ConsumerSpec) { s.Subscription = name })
				for _, body := range bodies(2) {
					c.must(c.send(c.msg(news, body), ""))
					d := c.take()[0]
					c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
				}
				h.restart()
				h.holds(At(queueNamed("ActiveMQ.DLQ.Topic."+news.Name+"."+c.id+":"+dead)), bodies(2)...)
			})
		})
	}
}
