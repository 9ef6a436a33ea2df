package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

var (
	graves   = message.Destination{Kind: message.Queue, Name: "DLQ"}
	expiries = message.Destination{Kind: message.Queue, Name: "ExpiryQueue"}
)

// addressed gives every destination what an address-setting for # says: dead
// letters after so many deliveries, and where they and expired messages go.
func addressed(attempts int, delay time.Duration, origins redelivery.Origins, change ...func(message.Destination, *Policy)) func(*Options) {
	return func(o *Options) {
		o.Lifetimes = true
		o.Policy = func(d message.Destination) Policy {
			p := redelivery.HornetQPolicy()
			p.MaximumRedeliveries = redelivery.MaximumRedeliveriesOf(attempts)
			p.RedeliveryDelay, p.MaximumRedeliveryDelay = delay, redelivery.DerivedMaximumDelay(delay, false)
			dead, expired := redelivery.SharedStrategy(), redelivery.SharedStrategy()
			dead.DeadLetterQueue, dead.ProcessNonPersistent = graves, true
			expired.DeadLetterQueue, expired.ProcessNonPersistent = expiries, true
			all := Policy{Prioritized: true, Rules: redelivery.Rules{Redelivery: &p, DeadLetter: dead, Expiry: expired, Origins: origins, KeepUnroutedDead: true}}
			for _, f := range change {
				f(d, &all)
			}
			return all
		}
	}
}

// failOnce fails a delivery by a rollback and gives it back.
func (c *client) failOnce(consumer string, d Delivery) {
	c.h.t.Helper()
	c.h.n++
	c.rollBack(consumer, d, fmt.Sprintf("TX:%d", c.h.n))
	c.must(c.ack(queue.Redelivered, consumer, d, d, 1, ""))
	c.closeConsumer(consumer, d)
}

// added picks the properties that stamp adds.
func added(m *message.Message) map[string]any {
	all := map[string]any{}
	for name, value := range m.Added {
		if strings.HasPrefix(name, "_") {
			all[name] = value
		}
	}
	return all
}

func TestDeadLettersTellTheirOrigin(t *testing.T) { // section 7, R-HQ-46, R-HQ-49, R-HQ-64, R-HQ-66, R-HQ-68, R-HQ-90, R-HQ-147, R-HQ-164
	for name, tt := range map[string]struct {
		origins      redelivery.Origins
		queue, topic map[string]any
	}{
		"HornetQ": {redelivery.HornetQOrigins,
			map[string]any{"_HQ_ORIG_ADDRESS": "jms.queue.ORDERS", "_HQ_ORIG_QUEUE": "jms.queue.ORDERS"},
			map[string]any{"_HQ_ORIG_ADDRESS": "jms.topic.NEWS", "_HQ_ORIG_QUEUE": "ID:test-1.sub"}},
		"Artemis": {redelivery.ArtemisOrigins,
			map[string]any{"_AMQ_ORIG_ADDRESS": "ORDERS", "_AMQ_ORIG_QUEUE": "ORDERS", "_AMQ_ORIG_ROUTING_TYPE": int8(1)},
			map[string]any{"_AMQ_ORIG_ADDRESS": "NEWS", "_AMQ_ORIG_QUEUE": "ID:test-1.sub", "_AMQ_ORIG_ROUTING_TYPE": int8(0)}},
		"neither": {redelivery.NoOrigins, map[string]any{}, map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, addressed(1, 0, tt.origins), func(h *house) {
				news := message.Destination{Kind: message.Topic, Name: "NEWS"}
				c := h.client()
				k := c.consume(orders)
				s := c.consume(news, func(s *ConsumerSpec) { s.Subscription = "sub" })
				c.must(c.send(c.msg(orders, "q", func(m *message.Message) { m.Priority = 7 }), ""))
				c.must(c.send(c.msg(news, "t"), ""))
				for _, d := range c.take() {
					consumer := k
					if d.Destination == news {
						consumer = s
					}
					c.failOnce(consumer, d)
				}
				h.kill()
				c = h.client()
				c.consume(graves)
				got := c.take()
				want(t, "dead letters, by priority", got, "q", "t")
				for i, wanted := range []map[string]any{tt.queue, tt.topic} {
					m := got[i].Message
					if tt.origins != redelivery.NoOrigins {
						for name := range wanted {
							if prefix, ok := strings.CutSuffix(name, "ORIG_ADDRESS"); ok {
								if n, _ := m.Added[prefix+"ORIG_MESSAGE_ID"].(int64); n <= 0 {
									t.Errorf("%sORIG_MESSAGE_ID is %v", prefix, m.Added[prefix+"ORIG_MESSAGE_ID"])
								}
								delete(m.Added, prefix+"ORIG_MESSAGE_ID")
							}
						}
					}
					if diff := cmp.Diff(wanted, added(m)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", m.Body, diff)
					}
					if m.Expiration != 0 || got[i].Counter != 0 || m.Added[FailureCause] == nil || m.Added[DeliveryAttempts] != int64(1) {
						t.Errorf("%s: %+v", m.Body, m)
					}
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestExpiredMessagesTellTheirOrigin(t *testing.T) { // R-HQ-56, R-HQ-57, R-HQ-63; R-HQ-65 on the way on
	for name, tt := range map[string]struct {
		origins redelivery.Origins
		prefix  string
		second  string // ORIG_ADDRESS after a second move
	}{
		"HornetQ keeps the first":      {redelivery.HornetQOrigins, "_HQ_", "jms.queue.ORDERS"},
		"Artemis replaces by the last": {redelivery.ArtemisOrigins, "_AMQ_", "ExpiryQueue"},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, addressed(3, 0, tt.origins), func(h *house) {
				c := h.client()
				start := time.Now().UnixMilli()
				for _, persistent := range []bool{true, false} {
					c.must(c.send(c.msg(orders, fmt.Sprint(persistent), func(m *message.Message) { m.Expiration, m.Persistent = start+60_000, persistent }), ""))
				}
				time.Sleep(2 * time.Minute)
				k := c.consume(expiries)
				got := c.take()
				want(t, "expired", got, "true", "false")
				for _, d := range got {
					at, _ := d.Message.Added[tt.prefix+"ACTUAL_EXPIRY"].(int64)
					if at < start+60_000 || at > start+61_000 || d.Message.Expiration != 0 || d.Message.Added[OriginalExpiration] != start+60_000 {
						t.Errorf("expired at %d, %+v", at-start, d.Message)
					}
				}
				c.closeConsumer(k, Delivery{})
				o, err := h.broker.Move(h.t.Context(), Place{Queue: expiries}, graves, Selection{})
				if err != nil || o.Taken != 2 {
					t.Fatal(o, err)
				}
				c.consume(graves)
				for _, d := range c.take() {
					if got := d.Message.Added[tt.prefix+"ORIG_ADDRESS"]; got != tt.second {
						t.Errorf("after a second move it came from %v, want %s", got, tt.second)
					}
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestWithoutAnExpiryAddressTheyAreDropped(t *testing.T) { // R-HQ-57
	inHouse(t, addressed(3, 0, redelivery.ArtemisOrigins, func(_ message.Destination, p *Policy) { p.Rules.Expiry = redelivery.DiscardingStrategy() }), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m", func(m *message.Message) { m.Expiration = time.Now().UnixMilli() + 1000 }), ""))
		time.Sleep(time.Minute)
		c.consume(graves)
		c.consume(orders)
		want(t, "anywhere", c.take())
		if h.broker.Counted(Discarded) != 1 {
			t.Error("a message went without a word")
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestRedrivenMessagesForgetTheirOrigin(t *testing.T) { // R-HQ-118, better
	inHouse(t, addressed(1, 0, redelivery.ArtemisOrigins), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		c.failOnce(c.consume(orders), c.take()[0])
		if o, err := h.broker.Redrive(h.t.Context(), Place{Queue: graves}, Selection{}); err != nil || o.Taken != 1 {
			t.Fatal(o, err)
		}
		c.consume(orders)
		got := c.take()
		want(t, "back home", got, "m")
		if left := added(got[0].Message); len(left) != 0 {
			t.Errorf("it still carries %v", left)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestLifetimesOfAddresses(t *testing.T) { // R-HQ-48, R-HQ-61, R-HQ-162
	set := addressed(1, 0, redelivery.ArtemisOrigins, func(d message.Destination, p *Policy) {
		switch d.Name {
		case "ORDERS":
			p.Lifetime = &redelivery.Lifetime{Delay: 60_000, Least: -1, Most: -1}
		case "DLQ":
			p.Lifetime = &redelivery.Lifetime{Delay: 3600_000, Least: -1, Most: -1}
			p.Rules.Expiry = redelivery.DiscardingStrategy()
		case "FOREVER":
			p.Lifetime = &redelivery.Lifetime{Never: true}
		}
	})
	inHouse(t, set, func(h *house) {
		c := h.client()
		forever := message.Destination{Kind: message.Queue, Name: "FOREVER"}
		c.must(c.send(c.msg(orders, "ages"), ""))
		c.must(c.send(c.msg(orders, "its own", func(m *message.Message) { m.Expiration = time.Now().UnixMilli() + 7200_000 }), ""))
		c.must(c.send(c.msg(forever, "kept", func(m *message.Message) { m.Expiration = time.Now().UnixMilli() + 1000 }), ""))
		time.Sleep(2 * time.Minute)
		k := c.consume(orders)
		got := c.take()
		want(t, "what the setting gave no life to", got, "its own")
		c.failOnce(k, got[0])
		e := c.consume(expiries)
		want(t, "expired", c.take(), "ages")
		c.consume(forever)
		want(t, "without an end", c.take(), "kept")
		g := c.consume(graves)
		got = c.take()
		want(t, "the dead letter", got, "its own")
		if left := got[0].Message.Expiration - time.Now().UnixMilli(); left < 3500_000 || left > 3600_000 {
			t.Errorf("the dead letter lives %d ms", left)
		}
		c.closeConsumer(g, Delivery{})
		c.closeConsumer(e, Delivery{})
		time.Sleep(2 * time.Hour)
		c.consume(graves)
		want(t, "the dead letters are kept for an hour", c.take())
		c.c.Close(message.Closed, "", -1)
	})
}

func TestSentInATransactionWithALifetime(t *testing.T) { // R-HQ-61
	inHouse(t, addressed(1, 0, redelivery.HornetQOrigins, func(_ message.Destination, p *Policy) {
		p.Lifetime = &redelivery.Lifetime{Delay: -1, Least: -1, Most: 60_000}
	}), func(h *house) {
		c := h.client()
		c.must(c.c.Begin("TX:1"))
		c.must(c.send(c.msg(orders, "m"), "TX:1"))
		c.must(c.settle(c.c.Commit, "TX:1"))
		time.Sleep(2 * time.Minute)
		c.consume(orders)
		c.consume(expiries)
		got := c.take()
		want(t, "all that came", got, "m")
		if got[0].Destination != expiries {
			t.Errorf("it came from %s", got[0].Destination)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestUnroutedMessagesBecomeDeadLetters(t *testing.T) { // R-HQ-109, R-HQ-110
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	set := addressed(1, 0, redelivery.ArtemisOrigins, func(d message.Destination, p *Policy) { p.Rules.DeadLetterUnrouted = d == news })
	inHouse(t, func(o *Options) { set(o); o.Unrouted = true }, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(news, "nobody"), ""))
		c.must(c.send(c.msg(news, "passing", func(m *message.Message) { m.Persistent = false }), ""))
		c.must(c.send(c.msg(message.Destination{Kind: message.Topic, Name: "OTHER"}, "gone"), ""))
		c.must(c.c.Begin("TX:1"))
		c.must(c.send(c.msg(news, "committed"), "TX:1"))
		c.must(c.settle(c.c.Commit, "TX:1"))
		k := c.consume(news)
		c.must(c.send(c.msg(news, "taken"), ""))
		want(t, "with a consumer", c.take(), "taken")
		c.closeConsumer(k, Delivery{})
		h.kill()
		c = h.client()
		c.consume(graves)
		got := c.take()
		want(t, "dead letters", got, "nobody", "passing", "committed")
		for _, d := range got {
			m := d.Message
			if m.OriginalDestination != news || m.Destination != graves || m.Added["_AMQ_ORIG_ADDRESS"] != "NEWS" || m.Added["_AMQ_ORIG_ROUTING_TYPE"] != int8(0) {
				t.Errorf("%s: %+v", m.Body, m)
			}
			if _, ok := m.Added["_AMQ_ORIG_QUEUE"]; ok {
				t.Errorf("%s waited in no queue", m.Body)
			}
			if !IsDeadLetter(&d.Entry) {
				t.Errorf("%s is no dead letter", m.Body)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestDeadLettersForATopicNobodyKeepsAreKept(t *testing.T) { // R-HQ-45, R-HQ-47, R-HQ-140
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			set := addressed(1, 0, redelivery.ArtemisOrigins, func(_ message.Destination, p *Policy) {
				p.Rules.DeadLetter.DeadLetterQueue, p.Rules.KeepUnroutedDead = message.Destination{Kind: message.Topic, Name: "GRAVES"}, keep
			})
			inHouse(t, set, func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m"), ""))
				c.failOnce(c.consume(orders), c.take()[0])
				h.kill()
				c = h.client()
				c.consume(orders)
				c.consume(dlq)
				if got := c.take(); keep {
					want(t, "set aside", got, "m")
				} else {
					want(t, "dropped, as asked for", got)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestDeadLettersMoveOnWhereTheirQueueIsNamed(t *testing.T) { // R-HQ-48, R-HQ-112, R-HQ-146
	second := message.Destination{Kind: message.Queue, Name: "DLQ2"}
	set := addressed(2, 0, redelivery.HornetQOrigins, func(d message.Destination, p *Policy) {
		if d == graves {
			p.Rules.DeadLetter.DeadLetterQueue, p.Rules.StrategyNamed, p.Rules.RedeliveryNamed = second, true, true
		}
	})
	inHouse(t, set, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		for n := range 20 { // more often than a circle would need
			d := []message.Destination{orders, orders, graves, graves}
			at := second
			if n < len(d) {
				at = d[n]
			}
			k := c.consume(at)
			got := c.take()
			if len(got) != 1 {
				t.Fatalf("attempt %d: %v in %s", n, texts(got), at)
			}
			c.failOnce(k, got[0])
		}
		h.kill()
		c = h.client()
		c.consume(second)
		got := c.take()
		if len(got) != 1 || got[0].Message.Added["_HQ_ORIG_ADDRESS"] != "jms.queue.ORDERS" {
			t.Errorf("in the end %v", texts(got))
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestHornetQDelayHoldsWhateverEndsTheDelivery(t *testing.T) { // C05; better than R-HQ-33, R-HQ-34; R-HQ-72, R-HQ-142
	inHouse(t, addressed(9, 4*time.Second, redelivery.ArtemisOrigins), func(h *house) {
		p := h.client()
		p.must(p.send(p.msg(orders, "m"), ""))
		var last time.Time
		for n := range 4 {
			c := h.client()
			k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 10 })
			got, _ := c.within(5 * time.Second)
			if len(got) != 1 || got[0].Counter != n {
				t.Fatalf("delivery %d: %v", n+1, texts(got))
			}
			if since := time.Since(last); n > 0 && (since < 3950*time.Millisecond || since > 5*time.Second) {
				t.Errorf("delivery %d after %v", n+1, since)
			}
			last = time.Now()
			c.must(p.send(p.msg(orders, fmt.Sprintf("innocent %d", n)), ""))
			want(t, "prefetched", c.take(), fmt.Sprintf("innocent %d", n))
			switch n % 2 {
			case 0: // an orderly close of a consumer that was at the first message
				c.c.Close(message.Closed, "", int64(got[0].Entry.Position))
			default:
				c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
			}
			c = h.client()
			k = c.consume(orders)
			others := c.take()
			if len(others) != 1 || string(others[0].Message.Body) != fmt.Sprintf("innocent %d", n) {
				t.Errorf("R-HQ-143: what was only prefetched waits: %v", texts(others))
			} else {
				c.must(c.ack(queue.Standard, k, others[0], others[0], 1, ""))
			}
			c.c.Close(message.Closed, "", -1)
		}
		p.c.Close(message.Closed, "", -1)
	})
}

func TestHornetQOrderOfWhatComesBack(t *testing.T) { // R-HQ-37, R-HQ-89 to R-HQ-92, R-HQ-100
	for name, delay := range map[string]time.Duration{"at once": 0, "later": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, addressed(9, delay, redelivery.HornetQOrigins), func(h *house) {
				c := h.client()
				for _, s := range []string{"a", "b", "c", "low"} {
					c.must(c.send(c.msg(orders, s, func(m *message.Message) {
						if s == "low" {
							m.Priority = 1
						}
					}), ""))
				}
				k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 4 })
				got := c.take()
				want(t, "by priority", got, "a", "b", "c", "low")
				c.must(c.c.Begin("TX:1"))
				c.must(c.ack(queue.Standard, k, got[0], got[3], 4, "TX:1"))
				c.must(c.settle(c.c.Rollback, "TX:1"))
				c.must(c.ack(queue.Redelivered, k, got[0], got[3], 4, ""))
				c.closeConsumer(k, got[3])
				rolledBack := time.Now()
				c.must(c.send(c.msg(orders, "new"), ""))
				c.must(c.send(c.msg(orders, "urgent", func(m *message.Message) { m.Priority = 9 }), ""))
				if delay > 0 {
					k := c.consume(orders)
					got := c.take()
					want(t, "what overtakes", got, "urgent", "new") // R-HQ-91
					if s := queueInfo(t, h, orders).Stats; s.Scheduled != 4 {
						t.Errorf("%d scheduled, want 4", s.Scheduled)
					}
					c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
					c.closeConsumer(k, Delivery{})
					c.must(c.send(c.msg(orders, "new"), ""))
					c.must(c.send(c.msg(orders, "urgent", func(m *message.Message) { m.Priority = 9 }), ""))
					time.Sleep(delay - time.Since(rolledBack) + 100*time.Millisecond) // all are due at one time
				}
				c.consume(orders)
				got = c.take()
				var bodies []string
				for _, d := range got {
					bodies = append(bodies, fmt.Sprintf("%s*%d", d.Message.Body, d.Counter))
				}
				if diff := cmp.Diff([]string{"urgent*0", "a*1", "b*1", "c*1", "new*0", "low*1"}, bodies); diff != "" {
					t.Errorf("in the end (-want +got):\n%s", diff)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func queueInfo(t *testing.T, h *house, name message.Destination) QueueStatus {
	t.Helper()
	for _, q := range h.broker.Queues() {
		if q.Name == name {
			return q
		}
	}
	t.Fatalf("there is no queue %s", name)
	return QueueStatus{}
}

func TestHornetQCountsAndDelaysSurviveACrash(t *testing.T) { // R-HQ-38, R-HQ-80, R-HQ-83, R-HQ-84, R-HQ-145
	inHouse(t, addressed(10, 10*time.Second, redelivery.ArtemisOrigins), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		for n := range 9 {
			k := c.consume(orders)
			got, _ := c.within(11 * time.Second)
			if len(got) != 1 || got[0].Counter != n {
				t.Fatalf("delivery %d: %v", n+1, texts(got))
			}
			c.failOnce(k, got[0])
			time.Sleep(4 * time.Second)
			h.kill()
			c = h.client()
		}
		k := c.consume(orders)
		start := time.Now()
		got, _ := c.within(11 * time.Second)
		if since := time.Since(start); len(got) != 1 || got[0].Counter != 9 || since < 5*time.Second || since > 7*time.Second {
			t.Fatalf("the last delivery: %v after %v, want what was left of the delay", texts(got), since)
		}
		c.failOnce(k, got[0])
		h.kill()
		c = h.client()
		c.consume(graves)
		want(t, "after ten deliveries and ten crashes", c.take(), "m")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestSelectDeadLettersByTheirOrigin(t *testing.T) { // R-HQ-107
	for name, tt := range map[string]struct {
		origins  redelivery.Origins
		selector string
	}{
		"HornetQ": {redelivery.HornetQOrigins, "_HQ_ORIG_ADDRESS = 'jms.queue.BILLS'"},
		"Artemis": {redelivery.ArtemisOrigins, "_AMQ_ORIG_ADDRESS = 'BILLS' AND _AMQ_ORIG_ROUTING_TYPE = 1 AND _AMQ_ORIG_MESSAGE_ID > 0"},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, addressed(1, 0, tt.origins), func(h *house) {
				c := h.client()
				other := message.Destination{Kind: message.Queue, Name: "BILLS"}
				for _, d := range []message.Destination{orders, other} {
					c.must(c.send(c.msg(d, d.Name), ""))
					k := c.consume(d)
					c.failOnce(k, c.take()[0])
				}
				c.consume(graves, func(s *ConsumerSpec) { s.Selector = tt.selector })
				want(t, "selected", c.take(), "BILLS")
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestChangedSettingsHoldForWhatWaits(t *testing.T) { // R-HQ-05, R-HQ-42, R-HQ-139
	inHouse(t, addressed(9, 10*time.Second, redelivery.ArtemisOrigins), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		for range 2 {
			k := c.consume(orders)
			got, _ := c.within(11 * time.Second)
			c.failOnce(k, got[0])
		}
		var o Options
		addressed(1, 0, redelivery.ArtemisOrigins)(&o)
		if err := h.broker.Reload(h.t.Context(), Reload{Policy: o.Policy}); err != nil {
			t.Fatal(err)
		}
		k := c.consume(orders)
		start := time.Now()
		got, _ := c.within(11 * time.Second)
		if since := time.Since(start); len(got) != 1 || since < 9*time.Second {
			t.Fatalf("%v after %v: a delay that was reckoned stays", texts(got), since)
		}
		c.failOnce(k, got[0]) // over the new limit, and caught after one more delivery
		c.consume(graves)
		want(t, "dead letters", c.take(), "m")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestSubscriptionsWithoutANameMakeDeadLetters(t *testing.T) { // R-HQ-02: every subscription is a queue
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	inHouse(t, addressed(1, 0, redelivery.ArtemisOrigins, func(_ message.Destination, p *Policy) { p.Rules.DeadLetterNonDurable = true }), func(h *house) {
		c := h.client()
		k := c.consume(news)
		c.must(c.send(c.msg(news, "m"), ""))
		c.failAsJava(k, c.take()[0])
		c.consume(graves)
		got := c.take()
		want(t, "dead letters", got, "m")
		if _, named := got[0].Message.Added["_AMQ_ORIG_QUEUE"]; named || got[0].Message.Added["_AMQ_ORIG_ADDRESS"] != "NEWS" {
			t.Errorf("%v", got[0].Message.Added)
		}
		c.c.Close(message.Closed, "", -1)
	})
}
