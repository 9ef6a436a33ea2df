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
)

// known tells, for every message there is, where it is, its failures, what a client would
// be told, and the causes of its story: "ORDERS m1 1*1 rollback".
func (h *house) known() []string {
	h.t.Helper()
	var all []string
	look := func(name string, at Place) {
		for c := (Cursor{}); !c.End; {
			page, next, err := h.broker.Look(h.t.Context(), at, c, 100)
			if err != nil {
				h.t.Fatal(err)
			}
			for i := range page {
				p := &page[i]
				m, err := h.broker.Read(p)
				if err != nil {
					h.t.Fatal(err)
				}
				story, err := h.broker.Story(p)
				if err != nil {
					h.t.Fatal(err)
				}
				s := fmt.Sprintf("%s %s %d*%d", name, m.Body, p.Counts.Failures, p.Counter)
				if len(story) > 5 {
					s += fmt.Sprintf(" %d of %d", len(story), p.Counts.Attempts)
					story = nil
				}
				for _, a := range story {
					s += " " + a.Cause.String()
					if !a.Counted {
						s += "-"
					}
				}
				all = append(all, s)
			}
			c = next
		}
	}
	for _, q := range h.broker.Queues() {
		look(q.Name.Name, At(q.Name))
	}
	for _, s := range h.broker.Subscriptions() {
		look(s.Subscription, Place{ClientID: s.ClientID, Subscription: s.Subscription})
	}
	slices.Sort(all)
	return all
}

// TestWhatIsKnownSurvivesThePowerCut: the sentences of DESIGN section 3 about attempts,
// failures and the ledger, one by one: what is known before the power goes is known after.
func TestWhatIsKnownSurvivesThePowerCut(t *testing.T) {
	t.Parallel()
	a1, a2 := queueNamed("A.1"), queueNamed("A.2")
	sends := func(c *client, to message.Destination, n int) {
		for i := range n {
			c.must(c.send(c.msg(to, fmt.Sprint("m", i+1)), ""))
		}
	}
	lose := func(c *client) { c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast) }
	for name, tt := range map[string]struct {
		do   func(h *house, c *client)
		want []string
	}{
		"handed out is not failed: told 1 for the flag": {func(_ *house, c *client) {
			sends(c, orders, 2)
			c.consume(orders, prefetching(1))
			c.take()
		}, []string{"ORDERS m1 0*1", "ORDERS m2 0*0"}},
		"INDIVIDUAL acks: only what the transaction had is rolled back": {func(_ *house, c *client) {
			sends(c, orders, 3)
			k := c.consume(orders)
			got := c.take()
			c.must(c.c.Begin("TX:1"))
			c.must(c.ack(queue.Individual, k, got[1], got[1], 1, "TX:1"))
			c.must(c.settle(c.c.Rollback, "TX:1"))
		}, []string{"ORDERS m1 0*1", "ORDERS m2 1*1 rollback", "ORDERS m3 0*1"}},
		"DUPS_OK, half acknowledged: the next one has failed": {func(_ *house, c *client) {
			sends(c, orders, 4)
			k := c.consume(orders)
			got := c.take()
			c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
			lose(c)
		}, []string{"ORDERS m3 1*1 connection-lost", "ORDERS m4 0*1"}},
		"a POISON after a rollback is the same attempt": {func(_ *house, c *client) {
			sends(c, orders, 1)
			k := c.consume(orders)
			d := c.take()[0]
			c.rollBack(k, d, "TX:1")
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		}, []string{"ActiveMQ.DLQ m1 0*0 poison"}},
		"Delivery[n] raises the count to n": {func(_ *house, c *client) {
			sends(c, orders, 1)
			k := c.consume(orders)
			d := c.take()[0]
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(3)))
		}, []string{"ActiveMQ.DLQ m1 0*0 recover recover poison"}},
		"Dispatch[n]: no application saw it": {func(_ *house, c *client) {
			sends(c, orders, 1)
			k := c.consume(orders)
			d := c.take()[0]
			c.must(c.ack(queue.Poison, k, d, d, 1, "", strings.Replace(poisonText(7), "Delivery", "Dispatch", 1)))
		}, []string{"ActiveMQ.DLQ m1 0*0 poison-"}},
		"DELIVERED acks: what they cover has failed, and the next": {func(_ *house, c *client) {
			sends(c, orders, 4)
			k := c.consume(orders, prefetching(10))
			got := c.take()
			c.must(c.ack(queue.Delivered, k, got[0], got[1], 2, ""))
			lose(c)
		}, []string{"ORDERS m1 1*1 connection-lost", "ORDERS m2 1*1 connection-lost", "ORDERS m3 1*1 connection-lost", "ORDERS m4 0*1"}},
		"a browser counts nothing": {func(h *house, c *client) {
			sends(c, orders, 2)
			b := h.client()
			b.consume(orders, func(s *ConsumerSpec) { s.Browser = true })
			b.take()
			lose(b)
		}, []string{"ORDERS m1 0*0", "ORDERS m2 0*0"}},
		"a pull consumer's application was waiting for it": {func(_ *house, c *client) {
			sends(c, orders, 2)
			k := c.consume(orders)
			c.rollBack(k, c.take()[0], "TX:1")
			c.c.Close(message.Closed, "", -1)
			c.h.pullAll(orders, 2)
		}, []string{"ORDERS m1 1*2 rollback", "ORDERS m2 0*1"}},
		"a consumer of a pattern": {func(_ *house, c *client) {
			sends(c, a1, 1)
			sends(c, a2, 1)
			k := c.consume(queueNamed("A.>"))
			for _, d := range c.take() {
				if d.Destination == a2 {
					c.rollBack(k, d, "TX:1")
				}
			}
		}, []string{"A.1 m1 0*1", "A.2 m1 1*1 rollback"}},
		"copies of one message have their own counts (C11)": {func(_ *house, c *client) {
			sends(c, queueNamed("A.1,A.2"), 1)
			k := c.consume(a1)
			c.rollBack(k, c.take()[0], "TX:1")
		}, []string{"A.1 m1 1*1 rollback", "A.2 m1 0*0"}},
		"subscriptions have their own counts (C12)": {func(_ *house, c *client) {
			k := c.consume(news, func(s *ConsumerSpec) { s.Subscription = "a" })
			c.consume(news, func(s *ConsumerSpec) { s.Subscription, s.Prefetch = "b", 1 })
			sends(c, news, 2)
			for _, d := range c.take() {
				if d.Consumer == k && string(d.Message.Body) == "m1" {
					c.rollBack(k, d, "TX:1")
				}
			}
		}, []string{"a m1 1*1 rollback", "a m2 0*1", "b m1 0*1", "b m2 0*0"}},
		"a redriven message has a fresh count and its old story (C18)": {func(h *house, c *client) {
			sends(c, orders, 1)
			k := c.consume(orders)
			d := c.take()[0]
			c.rollBack(k, d, "TX:1")
			c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
			c.rollBack(k, d, "TX:2")
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(2)))
			if _, err := h.broker.Redrive(h.t.Context(), At(dlq), Selection{}); err != nil {
				h.t.Error(err)
			}
			c.rollBack(k, c.take()[0], "TX:3")
		}, []string{"ORDERS m1 1*1 rollback poison rollback"}},
		"an expiry is no failure": {func(_ *house, c *client) {
			c.must(c.send(c.msg(orders, "m", expiring(time.Second)), ""))
			time.Sleep(2 * time.Second)
		}, []string{"ActiveMQ.DLQ m 0*0"}},
		"of a long story the first 10 and the last 90": {func(_ *house, c *client) {
			sends(c, orders, 1)
			k := c.consume(orders)
			d := c.take()[0]
			for n := range 120 {
				c.rollBack(k, d, fmt.Sprint("TX:", n))
				c.must(c.ack(queue.Redelivered, k, d, d, 1, ""))
			}
		}, []string{"ORDERS m1 120*120 100 of 120"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				tt.do(h, h.client())
				time.Sleep(tick)
				for n := range 2 {
					h.kill()
					if diff := cmp.Diff(tt.want, h.known()); diff != "" {
						t.Errorf("after kill %d (-want +got):\n%s", n+1, diff)
					}
				}
			})
		})
	}
}

func prefetching(n int) func(*ConsumerSpec) { return func(s *ConsumerSpec) { s.Prefetch = n } }

// pullAll has a pull consumer take n messages.
func (h *house) pullAll(of message.Destination, n int) {
	h.t.Helper()
	c := h.client()
	k := c.consume(of, prefetching(0))
	for range n {
		c.must(c.c.Pull(h.t.Context(), k, 0))
	}
	if got := c.take(); len(got) != n {
		h.t.Errorf("pulled %d, want %d", len(got), n)
	}
}
