package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// policed gives every destination a broker-side policy: limit redeliveries, the
// first after initial and the later ones after later, or factor times the one before.
func policed(limit int, initial, later time.Duration, factor float64) func(*Options) {
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, initial, later
	p.UseExponentialBackOff, p.BackOffMultiplier = factor > 1, factor
	return func(o *Options) {
		o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{Redelivery: &p}} }
	}
}

// tick is what take lets pass: how exact within tells the time.
const tick = 10 * time.Millisecond

// failAsJava fails what was delivered as a transacted Java client does whose own
// limit is reached: rollback, then POISON.
func (c *client) failAsJava(consumer string, d Delivery) {
	c.h.t.Helper()
	c.h.n++
	c.rollBack(consumer, d, fmt.Sprintf("TX:%d", c.h.n))
	c.must(c.ack(queue.Poison, consumer, d, d, 1, "", poisonText(d.Counter+1)))
}

// within waits at most so long for deliveries, and tells how long it was.
func (c *client) within(limit time.Duration) ([]Delivery, time.Duration) {
	c.h.t.Helper()
	start := time.Now()
	for time.Since(start) < limit {
		if got := c.take(); len(got) > 0 {
			return got, time.Since(start)
		}
	}
	return nil, time.Since(start)
}

// late checks that a delay was kept: never early, and handed out within ms.
func late(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+3*tick {
		t.Errorf("%s after %v, want %v", what, got, want)
	}
}

func TestC01LimitOfTheBrokersPolicy(t *testing.T) {
	for name, tt := range map[string]struct{ limit, deliveries int }{
		"3 redeliveries are 4 deliveries": {3, 4},
		"0 redeliveries are 1 delivery":   {0, 1},
		"-1 never ends":                   {redelivery.Unlimited, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policed(tt.limit, time.Second, time.Second, 0), func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m"), ""))
				k := c.consume(orders)
				n := 0
				for got, _ := c.within(5 * time.Second); len(got) > 0; got, _ = c.within(5 * time.Second) {
					n++
					if len(got) != 1 || got[0].Counter != n-1 {
						t.Fatalf("delivery %d: %v", n, texts(got))
					}
					if tt.deliveries == 0 && n == 12 {
						c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
						continue
					}
					c.failAsJava(k, got[0])
				}
				if tt.deliveries != 0 && n != tt.deliveries || tt.deliveries == 0 && n != 12 {
					t.Errorf("%d deliveries", n)
				}
				h.holds(At(orders)) // nothing is left at the source
				c.consume(dlq)
				dead, _ := c.within(2 * time.Second)
				if want := min(tt.deliveries, 1); len(dead) != want {
					t.Errorf("%d dead letters, want %d", len(dead), want)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestC02PoisonThatKillsItsConsumerIsParked(t *testing.T) { // every lost connection counts what its application had
	inHouse(t, policed(4, time.Second, time.Second, 0), func(h *house) {
		p := h.client()
		for _, s := range []string{"P", "G1", "G2", "G3"} {
			p.must(p.send(p.msg(orders, s), ""))
		}
		deliveries, connections := map[string]int{}, 0
		for done := false; !done && connections < 12; {
			c := h.client()
			k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 1 })
			connections++
			done = true
			for got, _ := c.within(3 * time.Second); len(got) > 0; got, _ = c.within(3 * time.Second) {
				done = false
				body := string(got[0].Message.Body)
				deliveries[body]++
				if flagged := got[0].Counter > 0; flagged != (body == "P" && deliveries["P"] > 1) {
					t.Errorf("delivery %d of %s is told %d", deliveries[body], body, got[0].Counter)
				}
				if body == "P" {
					break
				}
				c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
			}
			c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
		}
		if diff := cmp.Diff(map[string]int{"P": 5, "G1": 1, "G2": 1, "G3": 1}, deliveries); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
		if connections > 7 {
			t.Errorf("%d connections", connections)
		}
		p.consume(dlq)
		dead := p.take()
		want(t, "dead letters", dead, "P")
		if cause, _ := dead[0].Message.Added[FailureCause].(string); !strings.HasPrefix(cause, "java.lang.Throwable: Delivery[5] exceeds") {
			t.Errorf("cause %q", cause)
		}
		p.c.Close(message.Closed, "", -1)
	})
}

// javaClient is a transacted Java client with a limit of its own: it redelivers at
// once, until its limit or, where the property redeliveryDelay is there, until it
// has failed what it was told is past its limit.
func (c *client) javaClient(consumer string, d Delivery, limit int, seen func(count int)) {
	c.h.t.Helper()
	for counter := d.Counter; ; counter++ {
		seen(counter + 1)
		c.h.n++
		c.rollBack(consumer, d, fmt.Sprintf("TX:%d", c.h.n))
		if limit != redelivery.Unlimited && counter+1 > limit {
			c.must(c.ack(queue.Poison, consumer, d, d, 1, "", poisonText(counter+1)))
			return
		}
		c.must(c.ack(queue.Redelivered, consumer, d, d, 1, ""))
	}
}

func TestC03LimitsOfClientAndBrokerTogether(t *testing.T) { // R-PLG-40 done better
	for name, tt := range map[string]struct{ client, broker, deliveries int }{
		"6 and 6": {6, 6, 7}, "2 and 5": {2, 5, 6}, "6 and 2": {6, 2, 7}, "0 and 5": {0, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policed(tt.broker, time.Second, time.Second, 0), func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m"), ""))
				k := c.consume(orders)
				var counts []int
				for first := true; ; first = false {
					got, after := c.within(5 * time.Second)
					if len(got) == 0 {
						break
					}
					if !first {
						late(t, "handed back", after, time.Second)
					}
					if got[0].Counter > 0 && !got[0].Hint {
						t.Errorf("told %d without redeliveryDelay: the client would poison it unread", got[0].Counter)
					}
					c.javaClient(k, got[0], tt.client, func(n int) { counts = append(counts, n) })
				}
				if len(counts) != tt.deliveries || !slices.IsSorted(counts) {
					t.Errorf("deliveries %v, want %d", counts, tt.deliveries)
				}
				c.consume(dlq)
				want(t, "dead letters", c.take(), "m")
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestC04BackOffIsPerMessage(t *testing.T) {
	inHouse(t, policed(4, time.Second, time.Second, 2), func(h *house) {
		c := h.client()
		k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 100 })
		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprintf("P%d", i))
			c.must(c.send(c.msg(orders, want[i]), ""))
		}
		failed := map[string]time.Time{}
		n := map[string]int{}
		begin := time.Now()
		for {
			got, _ := c.within(12 * time.Second)
			if len(got) == 0 {
				break
			}
			for _, d := range got {
				s := string(d.Message.Body)
				if n[s] > 0 {
					gap := time.Second << (n[s] - 1)
					late(t, fmt.Sprintf("delivery %d of %s", n[s]+1, s), time.Since(failed[s]), gap)
					if !d.Hint || d.Delay != gap.Milliseconds() {
						t.Errorf("redeliveryDelay of delivery %d of %s: %v %d, want %d", n[s]+1, s, d.Hint, d.Delay, gap.Milliseconds())
					}
				}
				n[s]++
				failed[s] = time.Now()
				c.failAsJava(k, d)
			}
			if end := time.Since(begin); end > 20*time.Second {
				t.Errorf("still going after %v", end)
			}
		}
		for s, times := range n {
			if times != 5 {
				t.Errorf("%s was delivered %d times, want 5", s, times)
			}
		}
		c.consume(dlq)
		got := c.take()
		if diff := cmp.Diff(want, texts(got)); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
		if _, ok := got[0].Message.Added["redeliveryDelay"]; ok || got[0].Hint {
			t.Error("the dead letter carries redeliveryDelay")
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC05DelayHoldsWhenConsumersComeAndGo(t *testing.T) { // closed in order, or cut off, or the power fails
	for name, end := range map[string]func(h *house, c *client, d Delivery){
		"closed":    func(_ *house, c *client, d Delivery) { c.c.Close(message.Closed, "", int64(d.Entry.Position)) },
		"cut off":   func(_ *house, c *client, _ Delivery) { c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast) },
		"power cut": func(h *house, c *client, d Delivery) { c.failAsJava(c.last, d); h.kill() },
		"stopped":   func(h *house, c *client, d Delivery) { c.failAsJava(c.last, d); h.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policed(8, 4*time.Second, 4*time.Second, 0), func(h *house) {
				p := h.client()
				p.must(p.send(p.msg(orders, "m"), ""))
				p.c.Close(message.Closed, "", -1)
				start := time.Now()
				var failed time.Time
				counts := []int{}
				for time.Since(start) < 14*time.Second {
					c := h.client()
					c.last = c.consume(orders)
					got, _ := c.within(time.Second)
					if len(got) == 0 {
						c.c.Close(message.Closed, "", -1)
						continue
					}
					if gap := time.Since(failed); len(counts) > 0 && gap < 4*time.Second {
						t.Errorf("delivery %d after %v", len(counts)+1, gap)
					}
					if len(counts) > 0 && got[0].Delay != 4000 {
						t.Errorf("redeliveryDelay %d, want 4000", got[0].Delay)
					}
					failed = time.Now()
					counts = append(counts, got[0].Counter+1)
					end(h, c, got[0])
				}
				if diff := cmp.Diff([]int{1, 2, 3, 4}, counts); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
				c := h.client()
				c.consume(dlq)
				want(t, "dead letters", c.take())
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestC06ShortDelayIsNotBehindALongOne(t *testing.T) { // part 2
	inHouse(t, policed(6, time.Second, time.Second, 4), func(h *house) {
		c := h.client()
		k := c.consume(orders)
		c.must(c.send(c.msg(orders, "X"), ""))
		c.failAsJava(k, c.take()[0])
		got, after := c.within(5 * time.Second)
		want(t, "X once more", got, "X*1?")
		late(t, "X", after, time.Second-tick)
		c.failAsJava(k, got[0])
		xFailed := time.Now()
		c.must(c.send(c.msg(orders, "Y"), ""))
		c.failAsJava(k, c.take()[0])
		got, after = c.within(5 * time.Second)
		want(t, "Y first", got, "Y*1?")
		late(t, "Y", after, time.Second-tick)
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		got, _ = c.within(5 * time.Second)
		want(t, "then X", got, "X*2?")
		late(t, "X", time.Since(xFailed), 4*time.Second)
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC15ExpirationIsNotMovedByADelay(t *testing.T) {
	inHouse(t, policed(3, 5*time.Second, 5*time.Second, 0), func(h *house) {
		c := h.client()
		k := c.consume(orders)
		sent := time.Now()
		c.must(c.send(c.msg(orders, "short", func(m *message.Message) { m.Expiration = sent.Add(2 * time.Second).UnixMilli() }), ""))
		c.failAsJava(k, c.take()[0])
		c.consume(dlq)
		got, _ := c.within(10 * time.Second)
		want(t, "expired in the delay", got, "short")
		late(t, "expired", time.Since(sent), 2*time.Second)
		if cause := got[0].Message.Added[FailureCause]; cause != redelivery.ExpiredCause(sent.Add(2*time.Second).UnixMilli()) {
			t.Errorf("cause %v", cause)
		}
		expires := time.Now().Add(20 * time.Second).UnixMilli()
		c.must(c.send(c.msg(orders, "long", func(m *message.Message) { m.Expiration = expires }), ""))
		c.failAsJava(k, c.take()[0])
		got, after := c.within(10 * time.Second)
		want(t, "again", got, "long*1?")
		late(t, "again", after, 5*time.Second-tick)
		if got[0].Message.Expiration != expires || got[0].Entry.Expiration != expires {
			t.Errorf("expires at %d, want %d", got[0].Message.Expiration, expires)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestEveryCountedCauseIsRedeliveredByThePolicy(t *testing.T) { // issue 3.3: not only POISON (R-PLG-10), which is what uses up the limit (R-PLG-42)
	for name, fail := range map[string]func(h *house, c *client, k string, d Delivery){
		"poison": func(_ *house, c *client, k string, d Delivery) {
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		},
		"rollback, then close": func(_ *house, c *client, k string, d Delivery) {
			c.rollBack(k, d, "TX:1")
			c.closeConsumer(k, d)
		},
		"recover, then close": func(_ *house, c *client, k string, d Delivery) {
			c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
			c.closeConsumer(k, d)
		},
		"consumer closed": func(_ *house, c *client, k string, d Delivery) { c.closeConsumer(k, d) },
		"connection lost": func(_ *house, c *client, _ string, _ Delivery) {
			c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
		},
		"connection lost in a transaction": func(_ *house, c *client, k string, d Delivery) {
			c.must(c.c.Begin("TX:1"))
			c.must(c.ack(queue.Standard, k, d, d, 1, "TX:1"))
			c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policed(1, time.Minute, time.Minute, 0), func(h *house) {
				c, other := h.client(), h.client()
				m := c.msg(orders, "m")
				c.must(c.send(m, ""))
				k := c.consume(orders)
				fail(h, c, k, c.take()[0])
				other.consume(orders) // R-EDGE-30: any consumer may have it next, and needs no right but to read
				got, after := other.within(2 * time.Minute)
				want(t, "again", got, "m*1?")
				late(t, "again", after, time.Minute-2*tick)
				if got[0].Delay != 60_000 || got[0].Message.ID != m.ID || got[0].Message.Timestamp != m.Timestamp {
					t.Errorf("delay %d, %s of %d", got[0].Delay, got[0].Message.ID, got[0].Message.Timestamp)
				}
				other.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
				other = h.client()
				other.consume(dlq)
				want(t, "past the limit", other.take(), "m")
				other.c.Close(message.Closed, "", -1)
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestWhatAClientRedeliversByItselfIsItsOwn(t *testing.T) { // the policy is asked when it gives it back
	inHouse(t, policed(5, time.Second, time.Second, 0), func(h *house) {
		c, other := h.client(), h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		k := c.consume(orders)
		d := c.take()[0]
		other.consume(orders)
		c.rollBack(k, d, "TX:1")
		c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
		time.Sleep(time.Hour)
		want(t, "to another while its client holds it", other.take())
		c.rollBack(k, d, "TX:2")
		c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(2)))
		got, after := other.within(5 * time.Second)
		want(t, "to another, once given back", got, "m*2?")
		late(t, "again", after, time.Second)
		other.c.Close(message.Closed, "", int64(got[0].Entry.Position))
		c.c.Close(message.Closed, "", -1)
	})
}

func TestDurableSubscriptionIsRedeliveredForItself(t *testing.T) { // R-EDGE-06, R-PLG-44
	inHouse(t, policed(2, time.Second, time.Second, 0), func(h *house) {
		feed := message.Destination{Kind: message.Topic, Name: "FEED"}
		open := func(name string) (*client, string) {
			c := h.client()
			return c, c.consume(feed, func(s *ConsumerSpec) { s.Subscription = name })
		}
		a, ka := open("a")
		b, kb := open("b")
		b.must(b.send(b.msg(feed, "m"), ""))
		got := b.take()
		want(t, "b", got, "m")
		b.must(b.ack(queue.Standard, kb, got[0], got[0], 1, ""))
		for n := range 3 {
			got, after := a.within(3 * time.Second)
			if len(got) != 1 || got[0].Counter != n {
				t.Fatalf("delivery %d: %v", n+1, texts(got))
			}
			if n > 0 {
				late(t, "again", after, time.Second)
			}
			a.failAsJava(ka, got[0])
		}
		got, _ = b.within(3 * time.Second)
		want(t, "nothing more for b", got)
		b.consume(dlq)
		want(t, "one dead letter", b.take(), "m")
		for _, s := range h.broker.Subscriptions() {
			if s.Messages != int64(s.Stats.Out) || s.Stats.Scheduled != 0 {
				t.Errorf("left at %s: %+v", s.Subscription, s)
			}
		}
		a.c.Close(message.Closed, "", -1)
		b.c.Close(message.Closed, "", -1)
	})
}

func TestDroppedAtTheLimit(t *testing.T) { // sendToDlqIfMaxRetriesExceeded="false" (R-PLG-20), counted
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries = 1
	inHouse(t, func(o *Options) {
		o.Policy = func(message.Destination) Policy {
			return Policy{Rules: redelivery.Rules{Redelivery: &p, DropAtLimit: true}}
		}
	}, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		k := c.consume(orders)
		for range 2 {
			got, _ := c.within(5 * time.Second)
			c.failAsJava(k, got[0])
		}
		c.consume(dlq)
		got, _ := c.within(5 * time.Second)
		want(t, "neither again nor dead", got)
		if n := h.broker.CountedBy(Discarded)["limit"]; n != 1 {
			t.Errorf("%d counted as discarded at the limit", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestSeedPolicyMapSchedules(t *testing.T) { // E5, E6: what the plugin of the seed document comes to
	special := redelivery.DefaultPolicy()
	special.MaximumRedeliveries, special.RedeliveryDelay = 4, 10*time.Second
	others := special
	others.InitialRedeliveryDelay = 5 * time.Second
	for name, tt := range map[string]struct {
		policy redelivery.Policy
		delays []time.Duration
	}{
		"E6 SpecialQueue": {special, []time.Duration{time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}},
		"E5 all others":   {others, []time.Duration{5 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(o *Options) {
				o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{Redelivery: &tt.policy}} }
			}, func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m"), ""))
				k := c.consume(orders)
				c.failAsJava(k, c.take()[0])
				for _, delay := range tt.delays {
					got, after := c.within(time.Minute)
					late(t, "again", after, delay)
					c.failAsJava(k, got[0])
				}
				c.consume(dlq)
				want(t, "dead letter", c.take(), "m")
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}
