package broker

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// policies gives destinations rules by their name.
func policies(of func(d message.Destination) redelivery.Rules) func(*Options) {
	return func(o *Options) {
		o.Policy = func(d message.Destination) Policy { return Policy{Rules: of(d)} }
	}
}

func queueNamed(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}

// depth is how many messages a queue has, 0 where it does not exist.
func (h *house) depth(name string) int64 {
	time.Sleep(tick) // for what is under way
	synctest.Wait()
	for _, q := range h.broker.Queues() {
		if q.Name.Name == name {
			return q.Messages
		}
	}
	return 0
}

func TestC11EachCopyHasItsOwnDeadLetter(t *testing.T) { // copies of one message, with one id, to one dead letter queue
	inHouse(t, nil, func(h *house) {
		x, y := queueNamed("SHARED.X"), queueNamed("SHARED.Y")
		c := h.client()
		c.must(c.send(c.msg(message.Destination{Kind: message.Queue, Name: "SHARED.X,SHARED.Y"}, "m"), ""))
		for round := range 2 {
			for _, q := range []message.Destination{x, y} {
				k := c.consume(q)
				got := c.take()
				if len(got) != 1 || got[0].Counter != 0 {
					t.Fatalf("round %d at %s: %v", round, q, texts(got))
				}
				c.failAsJava(k, got[0])
				c.closeConsumer(k, got[0])
			}
			if n := h.depth(dlq.Name); n != 2 {
				t.Errorf("round %d: %d dead letters, want 2", round, n)
			}
			o, err := h.broker.Redrive(h.t.Context(), At(dlq), Selection{})
			if n := o.Taken; n != 2 || err != nil || h.depth(x.Name) != 1 || h.depth(y.Name) != 1 {
				t.Errorf("round %d: redrive %d, %v: %d at X, %d at Y", round, o.Taken, err, h.depth(x.Name), h.depth(y.Name))
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC12EachDurableSubscriptionHasItsOwnDeadLetters(t *testing.T) {
	for name, own := range map[string]bool{"a queue for each": true, "one queue for all": false} {
		t.Run(name, func(t *testing.T) {
			s := redelivery.IndividualStrategy()
			s.TopicPrefix, s.DestinationPerDurableSubscriber = "DLQ.T.", own
			inHouse(t, policies(func(message.Destination) redelivery.Rules { return redelivery.Rules{DeadLetter: s} }), func(h *house) {
				feed := message.Destination{Kind: message.Topic, Name: "FEED"}
				var clients []*client
				var consumers []string
				for i := range 3 {
					c := h.client()
					clients = append(clients, c)
					consumers = append(consumers, c.consume(feed, func(s *ConsumerSpec) { s.Subscription = fmt.Sprintf("s%d", i) }))
				}
				p := h.client()
				const n = 200
				for i := range n {
					p.must(p.send(p.msg(feed, fmt.Sprintf("m%d", i)), ""))
				}
				var even []string
				for i, c := range clients {
					got := c.take()
					if len(got) != n {
						t.Fatalf("client %d got %d", i, len(got))
					}
					for j, d := range got {
						if i < 2 && j%2 == 0 {
							c.failAsJava(consumers[i], d)
							if i == 0 {
								even = append(even, fmt.Sprintf("m%d", j))
							}
						} else {
							c.must(c.ack(queue.Standard, consumers[i], d, d, 1, ""))
						}
					}
				}
				p.take()
				for i := range 2 {
					target := queueNamed("DLQ.T.FEED")
					if own {
						target.Name += fmt.Sprintf(".%s:s%d", clients[i].id, i)
					}
					k := p.consume(target)
					got := p.take()
					if own {
						if diff := cmp.Diff(even, texts(got)); diff != "" {
							t.Errorf("dead letters of s%d (-want +got):\n%s", i, diff)
						}
					} else if len(got) != n {
						t.Errorf("%d dead letters, want %d", len(got), n)
					}
					of := map[any]int{} // each tells whose it is
					for _, d := range got {
						of[d.Message.Added[OriginalSubscription]]++
					}
					if own && of[fmt.Sprintf("%s:s%d", clients[i].id, i)] != n/2 || !own && (len(of) != 2 || of[clients[1].id+":s1"] != n/2) {
						t.Errorf("dead letters by subscription: %v", of)
					}
					p.closeConsumer(k, Delivery{})
				}
				for _, q := range h.broker.Queues() {
					if !strings.HasPrefix(q.Name.Name, "DLQ.T.FEED") {
						t.Errorf("a queue %s came to be", q.Name)
					}
				}
				for _, sub := range h.broker.Subscriptions() {
					if sub.Messages != 0 {
						t.Errorf("%d messages are left at %s", sub.Messages, sub.Subscription)
					}
				}
				for _, c := range append(clients, p) {
					c.c.Close(message.Closed, "", -1)
				}
			})
		})
	}
}

func TestC14NonPersistentDeadLetters(t *testing.T) { // R-EDGE-12, R-EDGE-02
	keep := redelivery.SharedStrategy()
	keep.ProcessNonPersistent = true
	inHouse(t, policies(func(d message.Destination) redelivery.Rules {
		if d.Name == "KEEP.Q" {
			return redelivery.Rules{DeadLetter: keep}
		}
		return redelivery.Rules{}
	}), func(h *house) {
		c := h.client()
		for _, q := range []string{"DROP.Q", "KEEP.Q"} {
			for _, s := range []string{"a", "b"} {
				c.must(c.send(c.msg(queueNamed(q), q+" "+s, func(m *message.Message) { m.Persistent = false }), ""))
			}
			k := c.consume(queueNamed(q))
			for _, d := range c.take() {
				c.javaClient(k, d, 1, func(int) {})
			}
		}
		c.take()
		told := map[EventKind]int{}
		h.mu.Lock()
		for _, e := range h.events {
			told[e.Kind]++
		}
		h.mu.Unlock()
		if told[DeadLettered] != 2 || told[Discarded] != 2 || h.broker.CountedBy(Discarded)["non-persistent"] != 2 {
			t.Errorf("told of %d dead letters and %d discarded: %v", told[DeadLettered], told[Discarded], h.broker.CountedBy(Discarded))
		}
		for _, q := range h.broker.Queues() {
			if q.Name.Name == "DROP.Q" && (q.Stats.Discarded != 2 || q.Messages != 0) {
				t.Errorf("DROP.Q: %+v", q)
			}
		}
		h.kill()
		c = h.client()
		c.consume(dlq)
		got := c.take()
		want(t, "dead letters after the power cut", got, "KEEP.Q a", "KEEP.Q b")
		for _, d := range got {
			if !d.Message.Persistent || d.Message.Added[OriginalDeliveryMode] != "NON_PERSISTENT" {
				t.Errorf("%+v", d.Message)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func expiring(in time.Duration) func(*message.Message) {
	return func(m *message.Message) { m.Expiration = time.Now().Add(in).UnixMilli() }
}

func TestC16CountersWhileMessagesExpireUnderRollbacks(t *testing.T) {
	t.Run("part 1: rolled back and expired", func(t *testing.T) {
		inHouse(t, nil, func(h *house) {
			c := h.client()
			for _, s := range bodies(20) {
				c.must(c.send(c.msg(orders, s, expiring(6*time.Second)), ""))
			}
			k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 1 })
			deliveries := 0
			for got, _ := c.within(3 * time.Second); len(got) > 0; got, _ = c.within(3 * time.Second) {
				deliveries++
				time.Sleep(600 * time.Millisecond)
				c.failAsJava(k, got[0])
			}
			if deliveries < 9 || deliveries > 11 {
				t.Errorf("%d deliveries, want about 10", deliveries)
			}
			for _, q := range h.broker.Queues() {
				if q.Name == orders && (q.Messages != 0 || q.Stats.Out != 0 || q.Stats.Enqueued != 20 || q.Stats.Dequeued != 20) {
					t.Errorf("%+v", q)
				}
			}
			c.consume(dlq)
			causes := map[string]int{}
			for _, d := range c.take() {
				cause, _ := d.Message.Added[FailureCause].(string)
				causes[strings.Fields(strings.TrimPrefix(cause, "java.lang.Throwable: "))[0]]++
			}
			if causes["Message"] != 20-deliveries || len(causes) != 2 {
				t.Errorf("causes %v after %d deliveries", causes, deliveries)
			}
			c.c.Close(message.Closed, "", -1)
		})
	})
	t.Run("part 2: a pull after a rollback and an expiry", func(t *testing.T) {
		inHouse(t, nil, func(h *house) {
			c := h.client()
			c.must(c.send(c.msg(orders, "first", expiring(time.Second)), ""))
			c.must(c.send(c.msg(orders, "second"), ""))
			k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 0 })
			c.must(c.c.Pull(h.t.Context(), k, 3*time.Second))
			got := c.take()
			want(t, "first pull", got, "first")
			c.failAsJava(k, got[0])
			time.Sleep(1500 * time.Millisecond)
			c.must(c.c.Pull(h.t.Context(), k, 3*time.Second))
			want(t, "second pull", c.take(), "second")
			c.consume(dlq)
			want(t, "dead letter", c.take(), "first")
			c.c.Close(message.Closed, "", -1)
		})
	})
	t.Run("part 3: half of a window expires at the client", func(t *testing.T) {
		inHouse(t, nil, func(h *house) {
			c := h.client()
			for i := range 100 {
				c.must(c.send(c.msg(orders, fmt.Sprintf("x%d", i), expiring(4*time.Second)), ""))
				c.must(c.send(c.msg(orders, fmt.Sprintf("m%d", i)), ""))
			}
			k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 400 })
			got := c.take()
			time.Sleep(5 * time.Second)
			received := 0
			for _, d := range got { // what has expired a Java client does not hand over, but says so
				if d.Entry.Expiration > 0 {
					c.must(c.ack(queue.ExpiredAck, k, d, d, 1, ""))
					continue
				}
				received++
				c.must(c.ack(queue.Standard, k, d, d, 1, ""))
			}
			for _, s := range bodies(200) {
				c.must(c.send(c.msg(orders, s), ""))
			}
			more := 0
			for got, _ := c.within(time.Second); len(got) > 0; got, _ = c.within(time.Second) {
				for _, d := range got {
					more++
					c.must(c.ack(queue.Standard, k, d, d, 1, ""))
				}
			}
			if received != 100 || more != 200 || h.depth(dlq.Name) != 100 || h.depth(orders.Name) != 0 {
				t.Errorf("received %d and %d more; %d dead letters, %d left", received, more, h.depth(dlq.Name), h.depth(orders.Name))
			}
			c.c.Close(message.Closed, "", -1)
		})
	})
}

func TestC18RetryGoesHomeWithAFreshCount(t *testing.T) { // from dead letter queues of any name, before and after a restart
	suffix, pre, bin := redelivery.IndividualStrategy(), redelivery.IndividualStrategy(), redelivery.SharedStrategy()
	suffix.QueuePrefix, suffix.QueueSuffix = "", ".dead"
	pre.QueuePrefix = "DLQ."
	bin.DeadLetterQueue = queueNamed("ops.graveyard")
	strategies := map[string]redelivery.DeadLetterStrategy{"SUFFIX.Q": suffix, "BIN.Q": bin, "PRE.Q": pre, "PLAIN.Q": redelivery.SharedStrategy()}
	dead := map[string]string{"SUFFIX.Q": "SUFFIX.Q.dead", "BIN.Q": "ops.graveyard", "PRE.Q": "DLQ.PRE.Q", "PLAIN.Q": dlq.Name}
	for name, target := range dead {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policies(func(d message.Destination) redelivery.Rules { return redelivery.Rules{DeadLetter: strategies[d.Name]} }), func(h *house) {
				q, d := queueNamed(name), queueNamed(target)
				c := h.client()
				ids := map[string]string{}
				for _, s := range []string{"x", "y", "z"} {
					m := c.msg(q, s)
					ids[s] = m.ID.String()
					c.must(c.send(m, ""))
				}
				failAll := func(what string, bodies ...string) {
					t.Helper()
					k := c.consume(q)
					got := c.take()
					want(t, what, got, bodies...) // told 0: JMSRedelivered false, count 1
					for _, d := range got {
						if d.Message.ID.String() != ids[string(d.Message.Body)] {
							t.Errorf("%s has id %s", d.Message.Body, d.Message.ID)
						}
						if d.Message.Added[FailureCause] != nil {
							t.Errorf("%s carries an old cause", d.Message.Body)
						}
						c.javaClient(k, d, 1, func(int) {})
					}
					c.take()
					c.closeConsumer(k, Delivery{})
				}
				redrive := func(want int, ids ...string) {
					t.Helper()
					if o, err := h.broker.Redrive(h.t.Context(), At(d), Selection{IDs: ids}); o.Taken != want || err != nil {
						t.Errorf("redrive: %d, %v; want %d", o.Taken, err, want)
					}
				}
				failAll("first round", "x", "y", "z")
				redrive(1, ids["z"])
				h.restart()
				c = h.client()
				redrive(2)
				failAll("second round", "z", "x", "y")
				redrive(3)
				k := c.consume(q)
				got := c.take()
				want(t, "at last", got, "z", "x", "y")
				c.must(c.ack(queue.Standard, k, got[0], got[2], 3, ""))
				c.take()
				for _, left := range h.broker.Queues() {
					if left.Messages != 0 {
						t.Errorf("%d left at %s", left.Messages, left.Name)
					}
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestC25HotRetryLoopLeavesNoTraces(t *testing.T) { // the store's keys, not its files: those are the engine's
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "hot"), ""))
		keys := func() (n int) {
			if err := h.shard.Scan([]byte{0}, nil, func(_, _ []byte) bool { n++; return true }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		k := c.consume(orders)
		d := c.take()[0]
		before := keys()
		const times = 20_000
		for i := range times {
			tx := fmt.Sprintf("TX:%d", i)
			c.must(c.c.Begin(tx))
			c.must(c.ack(queue.Standard, k, d, d, 1, tx))
			c.must(c.settle(c.c.Rollback, tx))
			c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
		}
		c.take()
		if n := keys(); n > before+110 {
			t.Errorf("%d keys after %d attempts, %d before: the story keeps 100 lines", n, times, before)
		}
		c.closeConsumer(k, d)
		k = c.consume(orders)
		got := c.take()
		want(t, "intact, with its count", got, fmt.Sprintf("hot*%d", times))
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		c.take()
		if n := keys(); n > before {
			t.Errorf("%d keys when it is gone, %d while it was there", n, before)
		}
		c.c.Close(message.Closed, "", -1)
	})
}
