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

// attempt fails what was delivered as a transacted Java client does: ack in the
// transaction, roll back.
func (c *client) rollBack(consumer string, d Delivery, tx string) {
	c.h.t.Helper()
	c.must(c.c.Begin(tx))
	c.must(c.ack(queue.Standard, consumer, d, d, 1, tx))
	c.must(c.settle(c.c.Rollback, tx))
}

func poisonText(n int) string {
	return fmt.Sprintf("java.lang.Throwable: Delivery[%d] exceeds redelivery policy limit:RedeliveryPolicy {}, cause:null", n)
}

// closeConsumer closes a consumer that had seen up to last.
func (c *client) closeConsumer(consumer string, last Delivery) {
	c.h.t.Helper()
	done := make(chan error, 1)
	at := int64(last.Entry.Position)
	if at == 0 {
		at = -1 // it had nothing
	}
	c.c.CloseConsumer(c.h.t.Context(), consumer, at, func(err error) { done <- err })
	c.must(<-done)
}

func bodies(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("m%d", i)
	}
	return all
}

func TestC09DeadLettersKeepTheirOrder(t *testing.T) { // C09 part 3: limit 1, every delivery rolled back
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, s := range bodies(100) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders)
		for i, d := range c.take() {
			c.rollBack(k, d, fmt.Sprintf("TX:%d", 2*i))
			c.rollBack(k, d, fmt.Sprintf("TX:%d", 2*i+1))
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(2)))
		}
		c.consume(dlq)
		want(t, "dead letters", c.take(), bodies(100)...)
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC09ABatchIsPoisonedInOrder(t *testing.T) { // C09 part 4: one POISON for 100
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, s := range bodies(100) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders)
		got := c.take()
		c.must(c.c.Begin("TX:1"))
		c.must(c.ack(queue.Standard, k, got[0], got[99], 100, "TX:1"))
		c.must(c.settle(c.c.Rollback, "TX:1"))
		c.must(c.ack(queue.Poison, k, got[0], got[99], 100, "", poisonText(1)))
		c.take()
		h.kill()
		c = h.client()
		c.consume(dlq)
		want(t, "dead letters", c.take(), bodies(100)...)
		c.consume(orders)
		want(t, "source", c.take())
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC09LostConnectionKeepsTheOrder(t *testing.T) { // C09 part 5, R-EDGE-05
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, s := range bodies(8) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 5 })
		want(t, "window", c.take(), bodies(5)...)
		c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
		c = h.client()
		c.consume(orders)
		want(t, "again", c.take(), "m0*1", "m1*1?", "m2*1?", "m3*1?", "m4*1?", "m5", "m6", "m7")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC10FailedForwardLeavesNothingAtTheOutput(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		out := message.Destination{Kind: message.Queue, Name: "OUT"}
		p := h.client()
		p.must(p.send(p.msg(orders, "in"), ""))
		for round := 1; round <= 5; round++ {
			c := h.client()
			k := c.consume(orders)
			got := c.take()
			if round > 3 {
				want(t, fmt.Sprintf("round %d", round), got)
				c.c.Close(message.Closed, "", -1)
				continue
			}
			if len(got) != 1 || got[0].Counter != round-1 {
				t.Fatalf("round %d: %v", round, texts(got))
			}
			tx := fmt.Sprintf("TX:%d", round)
			c.must(c.c.Begin(tx))
			c.must(c.send(c.msg(out, "forwarded"), tx))
			c.must(c.ack(queue.Standard, k, got[0], got[0], 1, tx))
			c.must(c.settle(c.c.Rollback, tx))
			if round == 3 { // the client's limit of 2 is passed
				c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(3)))
			} else {
				c.must(c.ack(queue.Redelivered, k, got[0], got[0], 1, ""))
			}
			c.c.Close(message.Closed, "", int64(got[0].Entry.Position))
		}
		c := h.client()
		c.consume(out)
		c.consume(dlq)
		got := c.take()
		want(t, "dead letter, and nothing at the output", got, "in")
		if got[0].Message.OriginalDestination != orders {
			t.Errorf("original destination %s", got[0].Message.OriginalDestination)
		}
		c.c.Close(message.Closed, "", -1)
		p.c.Close(message.Closed, "", -1)
	})
}

func TestC13FailingReaderOfTheDeadLetterQueueLosesNothing(t *testing.T) { // R-EDGE-04, R-EDGE-28
	own := redelivery.IndividualStrategy()
	own.QueuePrefix = "DLQ."
	t.Run("shared", func(t *testing.T) { failingReader(t, nil, dlq) })
	t.Run("individual, for all queues", func(t *testing.T) {
		failingReader(t, policies(func(message.Destination) redelivery.Rules { return redelivery.Rules{DeadLetter: own} }), queueNamed("DLQ.ORDERS"))
	})
}

func failingReader(t *testing.T, set func(*Options), dlq message.Destination) {
	inHouse(t, set, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "bad"), ""))
		k := c.consume(orders)
		got := c.take()
		c.rollBack(k, got[0], "TX:1")
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		c.take()
		for range 2 {
			reader := h.client()
			k := reader.consume(dlq)
			deliveries := 0
			end := time.Now().Add(10 * time.Second)
			for tx := 0; time.Now().Before(end); tx++ {
				for _, d := range reader.take() {
					deliveries += 2 // the client delivers it twice before it gives up: limit 1
					if d.Counter != 0 {
						t.Errorf("told %d, want 0: what failed here is not counted against the next reader", d.Counter)
					}
					reader.rollBack(k, d, fmt.Sprintf("TX:a%d", tx))
					reader.rollBack(k, d, fmt.Sprintf("TX:b%d", tx))
					reader.must(reader.ack(queue.Poison, k, d, d, 1, "", poisonText(2)))
				}
				time.Sleep(100 * time.Millisecond)
			}
			if deliveries < 2 || deliveries > 30 {
				t.Errorf("%d deliveries in 10 s, want some and at most 30", deliveries)
			}
			reader.c.Close(message.Closed, "", -1)
			h.holds(At(dlq), "bad")
			for _, q := range h.broker.Queues() {
				if q.Name != dlq && q.Name != orders {
					t.Errorf("a queue %s came to be", q.Name)
				}
			}
		}
		h.kill()
		c = h.client()
		c.consume(dlq)
		got = c.take()
		want(t, "after all", got, "bad")
		if got[0].Message.Added[FailureCause] == nil {
			t.Error("its cause is gone")
		}
		p, err := h.broker.FindMessage(h.t.Context(), At(dlq), got[0].Entry.ID.String())
		c.must(err)
		story, err := h.broker.Story(p)
		c.must(err)
		if len(story) < 5 || story[len(story)-1].Decision != "keep" {
			t.Errorf("story of %d lines, the last %+v", len(story), story[len(story)-1])
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC13OthersMayHaveWhatIsHeldBack(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		a, b := h.client(), h.client()
		a.must(a.send(a.msg(dlq, "bad"), ""))
		k := a.consume(dlq)
		d := a.take()[0]
		a.rollBack(k, d, "TX:1")
		a.must(a.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		want(t, "the one that poisoned it", a.take())
		b.consume(dlq)
		want(t, "another", b.take(), "bad")
		a.c.Close(message.Closed, "", -1)
		b.c.Close(message.Closed, "", -1)
	})
}

func TestC13SeveralFailingReadersAreNoHotLoop(t *testing.T) { // point 2, of readers that stay and of readers that connect anew for each message
	for name, anew := range map[string]bool{"they stay": false, "they connect anew": true} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				a := h.client()
				a.must(a.send(a.msg(dlq, "bad"), ""))
				deliveries := 0
				readers, consumers := make([]*client, 3), make([]string, 3)
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
					for i := range readers {
						if readers[i] == nil {
							readers[i] = h.client()
							consumers[i] = readers[i].consume(dlq, func(s *ConsumerSpec) { s.Prefetch = 1 })
						}
						for _, d := range readers[i].take() {
							deliveries++
							readers[i].failAsJava(consumers[i], d)
						}
						if anew {
							readers[i].c.Close(message.Closed, "", -1)
							readers[i] = nil
						}
					}
				}
				if deliveries < 3 || deliveries > 30 {
					t.Errorf("%d deliveries in 10 s, want some and at most 30", deliveries)
				}
				time.Sleep(time.Second)
				b := h.client()
				b.consume(dlq)
				for _, r := range readers {
					if r != nil {
						r.c.Close(message.Closed, "", -1)
					}
				}
				want(t, "a good reader", b.take(), "bad")
				b.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestC20BrowsingChangesNothing(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		p := h.client()
		for _, s := range []string{"a", "b"} {
			p.must(p.send(p.msg(dlq, s), ""))
		}
		for range 4 { // receive both and close without commit
			c := h.client()
			k := c.consume(dlq)
			got := c.take()
			c.must(c.c.Begin("TX:1"))
			c.must(c.ack(queue.Standard, k, got[0], got[1], 2, "TX:1"))
			c.must(c.settle(c.c.Rollback, "TX:1"))
			c.must(c.ack(queue.Redelivered, k, got[0], got[1], 2, ""))
			c.c.Close(message.Closed, "", int64(got[1].Entry.Position))
		}
		before := h.broker.Queues()
		for range 10 {
			k := p.consume(dlq, func(s *ConsumerSpec) { s.Browser = true })
			want(t, "browse", p.take(), "a*4?", "b*4?", "end")
			p.closeConsumer(k, Delivery{})
		}
		if diff := cmp.Diff(before, h.broker.Queues()); diff != "" {
			t.Errorf("browsing changed (-before +after):\n%s", diff)
		}
		p.consume(dlq)
		want(t, "the count that the four closed consumers left", p.take(), "a*4", "b*4")
		p.c.Close(message.Closed, "", -1)
	})
}

func TestC21DuplicateAcrossAPowerCut(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		m := c.msg(orders, "once")
		c.must(c.send(m, ""))
		k := c.consume(orders)
		got := c.take()
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		c.must(c.send(m, "")) // consumed already
		want(t, "resent", c.take())
		h.kill()
		c = h.client()
		c.must(c.send(m, ""))
		c.consume(orders)
		c.consume(dlq)
		want(t, "resent after the power cut", c.take())
		if n := h.broker.Counted(Suppressed); n != 1 {
			t.Errorf("%d suppressed since the start, want 1", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC22PowerCutInATransactedBatch(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, s := range bodies(10) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders)
		got := c.take()
		c.must(c.c.Begin("TX:1"))
		c.must(c.ack(queue.Standard, k, got[0], got[4], 5, "TX:1"))
		c.must(c.settle(c.c.Commit, "TX:1"))
		c.must(c.c.Begin("TX:2"))
		c.must(c.ack(queue.Standard, k, got[5], got[6], 2, "TX:2"))
		h.kill()
		c = h.client()
		c.consume(orders)
		want(t, "what was not committed", c.take(), "m5*1?", "m6*1?", "m7*1?", "m8*1?", "m9*1?")
		c.consume(dlq)
		want(t, "dead letters", c.take())
		c.c.Close(message.Closed, "", -1)
	})
}

func TestClientLimitsAlone(t *testing.T) { // C03, the client's limit alone: 7, 3 and 1 deliveries
	for name, limit := range map[string]int{"6": 6, "2": 2, "0": 0} {
		t.Run("limit "+name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m"), ""))
				k := c.consume(orders)
				d := c.take()[0]
				for n := 1; n <= limit+1; n++ {
					c.rollBack(k, d, fmt.Sprintf("TX:%d", n))
					if n <= limit {
						c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
					}
				}
				c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(limit+1)))
				c.consume(dlq)
				got := c.take()
				want(t, "dead letter", got, "m")
				if n := got[0].Message.Added[DeliveryAttempts]; n != int64(limit+1) {
					t.Errorf("deliveryAttempts %v, want %d", n, limit+1)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestLimitlessClientIsToldEveryFailure(t *testing.T) { // three rollbacks, close: JMSXDeliveryCount 4, R-EDGE-14
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m"), ""))
		k := c.consume(orders)
		d := c.take()[0]
		for n := range 3 {
			c.rollBack(k, d, fmt.Sprintf("TX:%d", n))
			c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
		}
		c.closeConsumer(k, d)
		c.consume(orders)
		want(t, "next consumer", c.take(), "m*3")
		c.c.Close(message.Closed, "", -1)
		h.kill()
		c = h.client()
		c.consume(orders)
		want(t, "after the power cut", c.take(), "m*3")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestCommitOfAStrayAckRollsBack(t *testing.T) { // better than R-BRK-11, R-BRK-12: consume and send stay one
	inHouse(t, nil, func(h *house) {
		out := message.Destination{Kind: message.Queue, Name: "OUT"}
		c := h.client()
		c.must(c.send(c.msg(orders, "in"), ""))
		k := c.consume(orders)
		got := c.take()
		c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
		c = h.client()
		c.must(c.c.Begin("TX:1"))
		c.must(c.send(c.msg(out, "out"), "TX:1"))
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, "TX:1")) // of the consumer that is gone
		if err := c.settle(c.c.Commit, "TX:1"); err == nil {
			t.Error("commit of an ack that fits nothing went through")
		}
		pull := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 0 })
		c.must(c.c.Begin("TX:2"))
		c.must(c.send(c.msg(out, "out"), "TX:2"))
		c.must(c.ack(queue.Standard, pull, got[0], got[0], 1, "TX:2")) // of a consumer that was handed nothing yet
		if err := c.settle(c.c.Commit, "TX:2"); err == nil {
			t.Error("commit of an ack before the first dispatch went through")
		}
		c.consume(out)
		c.consume(orders)
		want(t, "the message is there, and nothing was sent", c.take(), "in*1")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestC10ForwardedAndCommitted(t *testing.T) { // C10 part 2
	inHouse(t, nil, func(h *house) {
		out := message.Destination{Kind: message.Queue, Name: "OUT"}
		c := h.client()
		c.must(c.send(c.msg(orders, "in"), ""))
		k := c.consume(orders)
		d := c.take()[0]
		c.must(c.c.Begin("TX:1"))
		forwarded := *d.Message // the object that was received, under an id that the client gives it
		forwarded.ID, forwarded.Destination = c.msg(out, "").ID, out
		c.must(c.send(&forwarded, "TX:1"))
		c.must(c.ack(queue.Standard, k, d, d, 1, "TX:1"))
		c.must(c.settle(c.c.Commit, "TX:1"))
		c.take()
		if n := h.depth(orders.Name); n != 0 {
			t.Errorf("%d are left at the input", n)
		}
		c.consume(out)
		want(t, "output, told 0", c.take(), "in")
		c.c.Close(message.Closed, "", -1)
	})
}
