package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// again connects a client once more, with its client id.
func (h *house) again(c *client) *client {
	h.t.Helper()
	h.n++
	next := &client{h: h, id: fmt.Sprintf("ID:test-%d", h.n)}
	conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: next.id, ClientID: c.id, Kick: func(error) {}}, next)
	if err != nil {
		h.t.Fatal(err)
	}
	next.c = conn
	return next
}

func TestDeadLetterOfASubscriptionGoesHomeToIt(t *testing.T) { // better than R-JMX-06; C12: it tells whose it is
	inHouse(t, nil, func(h *house) {
		c := h.client()
		named := func(name string) func(*ConsumerSpec) { return func(s *ConsumerSpec) { s.Subscription = name } }
		a, b := c.consume(news, named("a")), c.consume(news, named("b"))
		c.must(c.send(c.msg(news, "m"), ""))
		for _, d := range c.take() {
			if d.Consumer == b {
				c.must(c.ack(queue.Standard, b, d, d, 1, ""))
				continue
			}
			c.must(c.ack(queue.Poison, a, d, d, 1, "", poisonText(1)))
		}
		c.take()
		h.restart()
		o, err := h.broker.Move(h.t.Context(), dlqAt, shelf, Selection{})
		h.came("put aside", o, err, Outcome{Taken: 1})
		o, err = h.broker.Redrive(h.t.Context(), At(shelf), Selection{})
		h.came("redrive", o, err, Outcome{Taken: 1})
		h.holds(Place{ClientID: c.id, Subscription: "b"})
		next := h.again(c)
		k := next.consume(news, named("a"))
		got := next.take()
		want(t, "at the one that gave it up", got, "m")
		if v := got[0].Message.Added[OriginalSubscription]; v != nil {
			t.Errorf("it still names %v", v)
		}
		next.must(next.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		next.closeConsumer(k, got[0])
		next.must(next.c.Unsubscribe(h.t.Context(), "a"))
		o, err = h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("when the subscription is gone", o, err, Outcome{Left: 1})
		h.holds(dlqAt, "m")
		next.c.Close(message.Closed, "", -1)
	})
}

func TestExpiryIsToldAndCounted(t *testing.T) { // R-BRK-23: while it waits, and at the send
	for name, in := range map[string]time.Duration{"waiting": time.Second, "sent too late": -time.Second} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				m := c.msg(orders, "m", expiring(in))
				c.must(c.send(m, ""))
				time.Sleep(2 * time.Second)
				c.consume(dlq)
				got := c.take()
				want(t, "dead letter", got, "m")
				if cause := got[0].Message.Added[FailureCause]; cause != fmt.Sprintf("java.lang.Throwable: Message Expired. Expiration:%d", m.Expiration) {
					t.Errorf("cause %v", cause)
				}
				came := int64(0) // what was sent too late never came (R-BRK-21)
				if in > 0 {
					came = 1
				}
				for _, q := range h.broker.Queues() {
					if q.Name == orders && (q.Messages != 0 || q.Stats.Expired != 1 || q.Stats.Enqueued != came || q.Stats.Dequeued != came) {
						t.Errorf("%+v", q)
					}
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestC17ExpiredOnesAreGoneWhereTheFileSaysSo(t *testing.T) { // point 1: processExpired="false"
	inHouse(t, policies(func(message.Destination) redelivery.Rules {
		return strategy(redelivery.SharedStrategy(), func(s *redelivery.DeadLetterStrategy) { s.ProcessExpired = false })
	}), func(h *house) {
		c := h.client()
		for _, s := range bodies(5) {
			c.must(c.send(c.msg(orders, s, expiring(time.Second)), ""))
		}
		time.Sleep(4 * time.Second)
		c.must(c.send(c.msg(orders, "poison"), ""))
		k := c.consume(orders)
		c.failAsJava(k, c.take()[0])
		c.take()
		h.holds(dlqAt, "poison")
		h.holds(At(orders))
		for _, q := range h.broker.Queues() {
			if q.Name == orders && q.Stats.Expired != 5 {
				t.Errorf("%d expired, want 5", q.Stats.Expired)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestCountsAreThoseOfTheFailures(t *testing.T) { // better than R-CNT-21, R-CNT-32, R-CNT-33: exact, over closes and crashes
	for name, from := range map[string]message.Destination{"queue": orders, "durable subscription": news} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				open := func(c *client) string {
					return c.consume(from, func(s *ConsumerSpec) {
						if from == news {
							s.Subscription = "s"
						}
					})
				}
				k := open(c)
				for _, s := range bodies(2) {
					c.must(c.send(c.msg(from, s), ""))
				}
				first := c
				for n, told := range [][]string{{"m0", "m1"}, {"m0*1", "m1"}, {"m0*2", "m1"}, {"m0*3", "m1"}} {
					if n > 0 {
						k = open(c)
					}
					got := c.take()
					want(t, fmt.Sprintf("after %d closes", n), got, told...)
					c.closeConsumer(k, got[0]) // m0 was delivered, m1 only prefetched
					c.c.Close(message.Closed, "", -1)
					if h.kill(); n%2 == 0 {
						h.restart()
					}
					c = h.again(first)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestOrderOfOneConsumerAfterAnother(t *testing.T) { // R-EXC-03, without strictOrderDispatch
	inHouse(t, nil, func(h *house) {
		p := h.client()
		for _, s := range bodies(6) {
			p.must(p.send(p.msg(orders, s), ""))
		}
		var done []string
		for n := 0; len(done) < 6 && n < 20; n++ {
			c := h.client()
			k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 3 })
			got := c.take()
			if n%2 == 0 { // rolled back, and closed
				c.rollBack(k, got[0], "TX:1")
				c.c.Close(message.Closed, "", int64(got[0].Entry.Position))
				continue
			}
			c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
			done = append(done, string(got[0].Message.Body))
			c.c.Close(message.Closed, "", int64(got[0].Entry.Position))
		}
		if diff := cmp.Diff(bodies(6), done); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		p.c.Close(message.Closed, "", -1)
	})
}

func TestDeadLettersKeepTheirGroup(t *testing.T) { // R-GRP-05: it binds who reads them
	inHouse(t, nil, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		for i := range 6 {
			c.must(c.send(c.msg(orders, fmt.Sprint("AB"[i%2:i%2+1], i/2), func(m *message.Message) { m.GroupID = "AB"[i%2 : i%2+1] }), ""))
		}
		for _, d := range c.take() {
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		}
		readers := map[string]string{}
		one, two := c.consume(dlq, func(s *ConsumerSpec) { s.Prefetch = 1 }), c.consume(dlq, func(s *ConsumerSpec) { s.Prefetch = 1 })
		read := map[string][]string{}
		for got := c.take(); len(got) > 0; got = c.take() {
			for _, d := range got {
				g := d.Message.GroupID
				if r := readers[g]; r != "" && r != d.Consumer {
					t.Errorf("%s came to another reader", d.Message.Body)
				}
				readers[g] = d.Consumer
				read[g] = append(read[g], string(d.Message.Body))
				c.must(c.ack(queue.Standard, d.Consumer, d, d, 1, ""))
			}
		}
		if diff := cmp.Diff(map[string][]string{"A": {"A0", "A1", "A2"}, "B": {"B0", "B1", "B2"}}, read); diff != "" || readers["A"] == readers["B"] {
			t.Errorf("read by %s and %s as %v (-want +got):\n%s", one, two, readers, diff)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestPoisonOfATemporaryQueueIsKept(t *testing.T) { // R-DLS-01, R-DLS-10: as of any queue; R-BRK-26: nothing else of it
	reply := message.Destination{Kind: message.TempQueue, Name: "reply"}
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.c.AddDestination(h.t.Context(), reply))
		k := c.consume(reply, func(s *ConsumerSpec) { s.Prefetch = 1 })
		for _, m := range []*message.Message{c.msg(reply, "poison"), c.msg(reply, "late", expiring(time.Second)), c.msg(reply, "left")} {
			c.must(c.send(m, ""))
		}
		got := c.take()
		want(t, "first", got, "poison")
		time.Sleep(2 * time.Second)
		c.failAsJava(k, got[0])
		want(t, "next", c.take(), "left")
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, Selection{Dry: true})
		h.came("while its queue is there", o, err, Outcome{Taken: 1})
		c.c.Close(message.Closed, "", -1)
		h.kill()
		h.holds(dlqAt, "poison")
		o, err = h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("when its queue is gone", o, err, Outcome{Left: 1})
	})
}
