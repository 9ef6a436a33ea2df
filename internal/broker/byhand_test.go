package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

func TestC07PurgeIncludesPendingRetries(t *testing.T) { // 5 s until the retry, before and after a restart
	for name, restart := range map[string]bool{"in one process": false, "restart after the purge": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, policed(3, 5*time.Second, 5*time.Second, 0), func(h *house) {
				c := h.client()
				var ids []string
				for _, text := range []string{"a", "b", "c"} {
					m := c.msg(parcels, text)
					ids = append(ids, m.ID.String())
					c.must(c.send(m, ""))
				}
				k := c.consume(parcels)
				for _, d := range c.take() {
					c.failAsJava(k, d)
				}
				c.c.Close(message.Closed, "", -1)
				page, _, err := h.broker.Look(h.t.Context(), At(parcels), Cursor{}, 10)
				if err != nil || len(page) != 3 || h.broker.Queues()[0].Stats.Scheduled != 3 {
					t.Fatalf("%d wait, %v: %+v", len(page), err, h.broker.Queues()[0].Stats)
				}
				for _, p := range page {
					if p.State != "scheduled" || p.Counts.Attempts != 1 || p.Counts.Due < time.Now().UnixMilli() {
						t.Errorf("%s: %s %+v", p.Entry.ID, p.State, p.Counts)
					}
				}
				o, err := h.broker.Purge(h.t.Context(), At(parcels), Selection{IDs: ids[1:2]})
				h.came("one", o, err, Outcome{Taken: 1})
				if s := h.broker.Queues()[0].Stats.Scheduled; s != 2 {
					t.Errorf("%d are scheduled, want 2", s)
				}
				o, err = h.broker.Purge(h.t.Context(), At(parcels), Selection{})
				h.came("the rest", o, err, Outcome{Taken: 2})
				if restart {
					h.restart()
				}
				c = h.client()
				c.consume(parcels)
				time.Sleep(8 * time.Second)
				want(t, "after the purge", c.take())
				for _, q := range h.broker.Queues() {
					if q.Messages != 0 {
						t.Errorf("%s has %+v", q.Name, q)
					}
				}
			})
		})
	}
}

// A message that is moved can be had at once, with a fresh count, and keeps what it
// is: its delivery mode and its expiration (R-JMX-01).
func TestMoveKeepsWhatAMessageIs(t *testing.T) {
	t.Parallel()
	inHouse(t, policed(3, time.Hour, time.Hour, 0), func(h *house) {
		c := h.client()
		expires := time.Now().Add(30 * time.Minute).UnixMilli()
		for _, persistent := range []bool{true, false} {
			c.must(c.send(c.msg(parcels, map[bool]string{true: "kept", false: "passing"}[persistent], func(m *message.Message) {
				m.Persistent, m.Expiration = persistent, expires
			}), ""))
		}
		k := c.consume(parcels)
		for _, d := range c.take() {
			c.failAsJava(k, d)
		}
		c.closeConsumer(k, Delivery{})
		o, err := h.broker.Move(h.t.Context(), At(parcels), shelf, Selection{})
		h.came("move", o, err, Outcome{Taken: 2})
		if n := h.broker.Counted(Moved); n != 2 {
			t.Errorf("%d counted as moved", n)
		}
		c.consume(shelf)
		got := c.take()
		want(t, "moved", got, "kept", "passing")
		for i, d := range got {
			m := d.Message
			if m.Persistent != (i == 0) || m.Expiration != expires || m.OriginalDestination != parcels || m.Destination != shelf {
				t.Errorf("moved: %+v", m)
			}
		}
		c.c.Close(message.Closed, "", -1)
		time.Sleep(time.Hour)
		c = h.client()
		c.take()
		if at := h.all(dlqAt); !slices.Contains(at, "kept") { // it expired where it was moved to
			t.Errorf("dead letters: %q", at)
		}
	})
}

// A dead letter that someone moves out of the way can still be redriven (R-EDGE-37).
func TestMovedDeadLetterComesHome(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.deadLetters(parcels, 3)
		o, err := h.broker.Move(h.t.Context(), dlqAt, shelf, Selection{})
		h.came("move", o, err, Outcome{Taken: 3})
		h.restart()
		o, err = h.broker.Redrive(h.t.Context(), At(shelf), Selection{Max: 2})
		h.came("redrive", o, err, Outcome{Taken: 2})
		h.holds(At(parcels), "m1", "m2")
		// Moved once more it is no dead letter: nothing is to be brought back.
		o, err = h.broker.Move(h.t.Context(), At(parcels), shelf, Selection{})
		h.came("move what was redriven", o, err, Outcome{Taken: 2})
		o, err = h.broker.Redrive(h.t.Context(), At(shelf), Selection{})
		h.came("redrive again", o, err, Outcome{Taken: 1})
		if o, err = h.broker.Redrive(h.t.Context(), At(shelf), Selection{}); !errors.Is(err, message.ErrState) {
			t.Errorf("redrive of no dead letters: %+v, %v", o, err)
		}
	})
}

// JMSActiveMQBrokerInTime of a dead letter is when it became one, as in ActiveMQ, so that
// those of one outage can be told apart; that of a message that goes home is when it did.
func TestDeadLettersTellWhenTheyCame(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.deadLetters(parcels, 1)
		time.Sleep(time.Hour)
		outage := time.Now().UnixMilli()
		c := h.client()
		c.must(c.send(c.msg(parcels, "m2"), ""))
		time.Sleep(10 * time.Minute)
		k := c.consume(parcels)
		for _, d := range c.take() {
			c.failAsJava(k, d)
		}
		c.take()
		c.closeConsumer(k, Delivery{})
		h.restart()
		died := Selection{Selector: fmt.Sprintf("JMSActiveMQBrokerInTime > %d", outage+5*60_000)}
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, died)
		h.came("what died in the outage", o, err, Outcome{Taken: 1})
		h.holds(At(parcels), "m2")
		h.holds(dlqAt, "m1")
		page, _, err := h.broker.Look(h.t.Context(), At(parcels), Cursor{}, 1)
		if err != nil || len(page) != 1 {
			t.Fatal(page, err)
		}
		if m, err := h.broker.Read(&page[0]); err != nil || time.Now().UnixMilli()-m.BrokerInTime > 1000 {
			t.Errorf("it went home at %d, %v", m.BrokerInTime, err)
		}
	})
}

// One stored body serves several subscriptions; moving and purging one's copy
// leaves the others'.
func TestSubscriptionsByHandLeaveTheOthersCopies(t *testing.T) {
	t.Parallel()
	inHouse(t, smallWindow, func(h *house) {
		news := message.Destination{Kind: message.Topic, Name: "NEWS"}
		c := h.client()
		for _, name := range []string{"a", "b", "c"} {
			k := c.consume(news, func(s *ConsumerSpec) { s.Subscription = name })
			c.closeConsumer(k, Delivery{})
		}
		for range 6 {
			c.must(c.send(c.msg(news, "n"), ""))
		}
		place := func(name string) Place { return Place{ClientID: c.id, Subscription: name} }
		o, err := h.broker.Move(h.t.Context(), place("a"), shelf, Selection{})
		h.came("move", o, err, Outcome{Taken: 6})
		o, err = h.broker.Purge(h.t.Context(), place("b"), Selection{Max: 4})
		h.came("purge", o, err, Outcome{Taken: 4})
		h.kill()
		h.holds(At(shelf), "n", "n", "n", "n", "n", "n")
		h.holds(place("a"))
		h.holds(place("b"), "n", "n")
		h.holds(place("c"), "n", "n", "n", "n", "n", "n")
	})
}

func TestRedriveAsSent(t *testing.T) { // R-JMX-02
	t.Parallel()
	keep := redelivery.SharedStrategy()
	keep.ProcessNonPersistent = true
	inHouse(t, func(o *Options) {
		o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{DeadLetter: keep}} }
	}, func(h *house) {
		c := h.client()
		for _, text := range []string{"passing", "kept", "forever"} {
			c.must(c.send(c.msg(parcels, text, func(m *message.Message) {
				m.Persistent = text != "passing"
				if text != "forever" {
					m.Expiration = m.Timestamp + time.Minute.Milliseconds()
				}
			}), ""))
		}
		k := c.consume(parcels)
		for _, d := range c.take() {
			c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		}
		c.closeConsumer(k, Delivery{})
		time.Sleep(time.Hour)
		o, err := h.broker.RedriveAsSent(h.t.Context(), dlqAt, Selection{})
		h.came("redrive", o, err, Outcome{Taken: 3})
		now := time.Now().UnixMilli()
		k = c.consume(parcels)
		got := c.take()
		want(t, "back", got, "passing", "kept", "forever")
		for _, d := range got {
			text, left := string(d.Message.Body), d.Message.Expiration-now
			if d.Message.Persistent != (text != "passing") || text != "forever" && (left < 50_000 || left > 60_000) || text == "forever" && d.Message.Expiration != 0 {
				t.Errorf("%s: %+v", text, d.Message)
			}
			if d.Message.Added[OriginalExpiration] != nil || d.Message.Added[DeliveryAttempts] != int64(1) {
				t.Errorf("%s has %v", text, d.Message.Added)
			}
		}
		c.closeConsumer(k, Delivery{})
		time.Sleep(time.Hour)
		h.holds(dlqAt, "passing", "kept") // they lived as long as they were sent to live
		h.holds(At(parcels), "forever")
	})
}

// A dead letter that someone moves, or copies, to a queue that is for work fails there as
// any other message: by the queue's policy, and at last as a dead letter anew, whose home
// is that queue. In another dead letter queue it stays a dead letter.
func TestDeadLetterBroughtToWorkFailsLikeAnyOther(t *testing.T) {
	t.Parallel()
	own := redelivery.IndividualStrategy()
	own.QueuePrefix = "DLQ."
	policy := redelivery.DefaultPolicy()
	policy.MaximumRedeliveries = 2
	dead, other := queueNamed("DLQ.PARCELS"), queueNamed("DLQ.SHELF")
	for name, tt := range map[string]struct {
		policy *redelivery.Policy
		copies bool
		to     message.Destination
	}{
		"moved back home":        {nil, false, parcels},
		"moved elsewhere":        {nil, false, shelf},
		"copied elsewhere":       {nil, true, shelf},
		"moved, and a policy":    {&policy, false, shelf},
		"copied, and a policy":   {&policy, true, shelf},
		"moved home, and policy": {&policy, false, parcels},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, policies(func(message.Destination) redelivery.Rules {
				return redelivery.Rules{DeadLetter: own, Redelivery: tt.policy}
			}), func(h *house) {
				h.deadLetters(parcels, 1)
				c := h.client()
				c.make(shelf.Name)
				bring := h.broker.Move
				if tt.copies {
					bring = h.broker.Copy
				}
				o, err := bring(h.t.Context(), At(dead), tt.to, Selection{})
				h.came("bring", o, err, Outcome{Taken: 1})
				h.restart()
				c = h.client()
				k := c.consume(tt.to)
				deliveries := 1
				if tt.policy != nil {
					deliveries = 3
				}
				for n := range deliveries {
					got, took := c.within(time.Minute)
					if len(got) != 1 || got[0].Counter != n {
						t.Fatalf("delivery %d: %q", n+1, texts(got))
					}
					if n > 0 {
						late(t, "redelivery", took, time.Second)
					}
					if from := got[0].Message.Added[MovedFrom]; from != dead.String() {
						t.Errorf("it tells %v, want where it was moved from", from)
					}
					c.failAsJava(k, got[0])
				}
				h.holds(At(tt.to))
				target := queueNamed("DLQ." + tt.to.Name)
				page, _, err := h.broker.Look(h.t.Context(), At(target), Cursor{}, 10)
				if n := len(page); err != nil || n == 0 {
					t.Fatalf("no dead letter, %v", err)
				}
				e := page[len(page)-1].Entry
				cause, _ := e.Overlay.Added[FailureCause].(string)
				if e.Overlay.OriginalDestination != tt.to || e.Overlay.Added[MovedFrom] != nil || !strings.Contains(cause, fmt.Sprintf("Delivery[%d]", deliveries)) {
					t.Errorf("%+v", e.Overlay)
				}
				c.closeConsumer(k, Delivery{})
				o, err = h.broker.Redrive(h.t.Context(), At(target), Selection{})
				if o.Taken == 0 || err != nil {
					t.Errorf("redrive: %+v, %v", o, err)
				}
				c.consume(tt.to)
				if got := c.take(); len(got) == 0 || got[0].Message.Added[MovedFrom] != nil || got[0].Message.Added[FailureCause] != nil {
					t.Errorf("after the redrive %+v", got)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
	t.Run("in another dead letter queue it is one", func(t *testing.T) {
		t.Parallel()
		inHouse(t, policies(func(message.Destination) redelivery.Rules {
			return redelivery.Rules{DeadLetter: own, Redelivery: &policy}
		}), func(h *house) {
			h.deadLetters(parcels, 1)
			c := h.client()
			c.make(shelf.Name)
			o, err := h.broker.Move(h.t.Context(), At(dead), other, Selection{})
			h.came("move", o, err, Outcome{Taken: 1})
			k := c.consume(other)
			got := c.take()
			c.failAsJava(k, got[0])
			h.holds(At(other), "m1")
			if got[0].Message.Added[MovedFrom] != nil {
				t.Error("it tells where it was moved from")
			}
			c.c.Close(message.Closed, "", -1)
		})
	})
}
