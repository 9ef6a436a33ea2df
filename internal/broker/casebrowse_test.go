package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// numbered gives a message the property n, for the tests of withProperties.
func numbered(n int) func(*message.Message) {
	return func(m *message.Message) { m.Added = map[string]any{"n": int64(n)} }
}

// browse is what a client's browser shows, and how long that took.
func (c *client) browse(of message.Destination, selector string) (bodies []string, took time.Duration) {
	c.h.t.Helper()
	begin := time.Now()
	k := c.consume(of, func(s *ConsumerSpec) { s.Browser, s.Prefetch, s.Selector = true, 10_000, selector })
	var got []string
	for len(got) == 0 || got[len(got)-1] != "end" {
		got = append(got, texts(c.take())...)
		if time.Since(begin) > time.Minute {
			c.h.t.Fatalf("the browser shows %d and no end", len(got))
		}
	}
	took = time.Since(begin)
	c.closeConsumer(k, Delivery{})
	return got[:len(got)-1], took
}

// C19: a dead letter queue larger than what is in memory is seen whole, with its
// total, and what was removed a moment ago is not seen any more.
func TestC19ABigDeadLetterQueueIsSeenWhole(t *testing.T) { // R-EDGE-50, R-JMX-05
	const n = 2000
	inHouse(t, func(o *Options) { withProperties(o); o.Limits.WindowEntries = 200 }, func(h *house) {
		c := h.client()
		k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = n })
		for i, s := range bodies(n) {
			c.must(c.send(c.msg(orders, s, numbered(i)), ""))
		}
		var got []Delivery
		for len(got) < n {
			got = append(got, c.take()...)
		}
		c.must(c.ack(queue.Poison, k, got[0], got[n-1], n, "", poisonText(1)))
		fixed := queueNamed("FIXED.Q")
		sees := func(what string, at message.Destination, want []string) {
			t.Helper()
			listed, total := h.all(At(at)), int64(0)
			total, err := h.broker.CountAt(At(at))
			browsed, _ := c.browse(at, "")
			if err != nil || int(total) != len(want) || fmt.Sprint(listed) != fmt.Sprint(want) || fmt.Sprint(browsed) != fmt.Sprint(want) {
				t.Errorf("%s: %d listed, %d browsed, %d in all, %v; want %d", what, len(listed), len(browsed), total, err, len(want))
			}
		}
		sees("all", dlq, bodies(n))
		if got, took := c.browse(dlq, "n = 1999"); fmt.Sprint(got) != "[m1999]" || took > 2*time.Second {
			t.Errorf("the selector finds %v after %v", got, took)
		}

		first := got[0].Entry.ID.String()
		o, err := h.broker.Purge(h.t.Context(), At(dlq), Selection{IDs: []string{first}})
		h.came("removed by its id", o, err, Outcome{Taken: 1})
		sees("without the first", dlq, bodies(n)[1:])
		if _, err := h.broker.FindMessage(h.t.Context(), At(dlq), first); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("it can still be looked at: %v", err)
		}
		o, err = h.broker.Move(h.t.Context(), At(dlq), fixed, Selection{Selector: "n >= 1990"})
		h.came("moved by a selector", o, err, Outcome{Taken: 10})
		o, err = h.broker.Purge(h.t.Context(), At(dlq), Selection{Selector: "n < 100"})
		h.came("removed by a selector", o, err, Outcome{Taken: 99})
		sees("what is left", dlq, bodies(n)[100:1990])
		sees("what was moved", fixed, bodies(n)[1990:])

		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				o, err := h.broker.Move(h.t.Context(), At(dlq), fixed, Selection{Selector: "n = 1989", Dry: true})
				if o.Taken != 1 || err != nil {
					t.Errorf("one of ten at once finds %+v, %v", o, err)
				}
			})
		}
		all.Wait()
		sees("after ten at once", dlq, bodies(n)[100:1990])
		c.c.Close(message.Closed, "", -1)
	})
}

// Several queues are browsed by a pattern or a list, those of dead letters for instance;
// none is made by a pattern that is looked at (C20).
func TestBrowsingSeveralQueues(t *testing.T) { // R-MAP-02, R-MAP-05
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, name := range []string{"DLQ.B", "DLQ.A", "OTHER", "DLQ.A"} {
			c.must(c.send(c.msg(queueNamed(name), name, numbered(int(c.seq))), ""))
		}
		for name, tt := range map[string]struct {
			of       string
			selector string
			want     []string
		}{
			"a pattern":                     {"DLQ.*", "", []string{"DLQ.A", "DLQ.A", "DLQ.B"}},
			"a pattern with a selector":     {"DLQ.>", "NOT JMSMessageID LIKE '%:4'", []string{"DLQ.A", "DLQ.B"}},
			"a pattern that nothing fits":   {"NOWHERE.*", "", []string{}},
			"a list":                        {"OTHER,DLQ.B", "", []string{"OTHER", "DLQ.B"}},
			"a list with one of them twice": {"DLQ.B,DLQ.>", "", []string{"DLQ.B", "DLQ.A", "DLQ.A"}},
		} {
			if got, _ := c.browse(queueNamed(tt.of), tt.selector); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
		}
		if n := len(h.broker.Queues()); n != 3 {
			t.Errorf("%d queues, want 3", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestAcknowledgementsOfABrowserMoveItsWindow(t *testing.T) { // R-BRK-16
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, s := range bodies(3) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders, func(s *ConsumerSpec) { s.Browser, s.Prefetch = true, 1 })
		for i, told := range [][]string{{"m0"}, {"m1"}, {"m2", "end"}} {
			got := c.take()
			want(t, fmt.Sprintf("look %d", i+1), got, told...)
			c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		}
		h.holds(At(orders), bodies(3)...)
		if s := h.broker.Queues()[0].Stats; s.Dequeued != 0 || s.Dispatched != 0 {
			t.Errorf("browsing changed %+v", s)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A client that comes back in the middle of a browse has no window at first, and then its
// own again.
func TestBrowserGetsItsWindowLater(t *testing.T) { // R-CLIENT-61
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, s := range bodies(4) {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders, func(s *ConsumerSpec) { s.Browser, s.Prefetch = true, 0 })
		want(t, "without a window", c.take())
		c.c.SetPrefetch(h.t.Context(), k, 3, nil)
		got := c.take()
		want(t, "with one", got, "m0", "m1", "m2")
		c.c.SetPrefetch(h.t.Context(), k, 2, nil)
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		want(t, "with a smaller one, still full", c.take())
		c.must(c.ack(queue.Standard, k, got[1], got[2], 2, ""))
		want(t, "at last", c.take(), "m3", "end")
		c.c.Close(message.Closed, "", -1)
	})
}

// R-MAP-03, R-MAP-05: a browser of a list, or of a pattern, shows what all of the queues
// have, whatever its window, and makes no queue of the pattern's name.
func TestBrowserOfSeveralQueues(t *testing.T) {
	inHouse(t, func(o *Options) { withProperties(o); o.Limits.WindowEntries = 2 }, func(h *house) {
		c := h.client()
		for i, name := range []string{"x.a", "x.a", "x.b.c", "x.a", "x.d", "y"} {
			c.must(c.send(c.msg(queueNamed(name), fmt.Sprint(i), numbered(i)), ""))
		}
		for name, want := range map[string]string{
			"x.>": "[0 1 3 2 4]", "x.*": "[0 1 3 4]", "x.d,x.a": "[4 0 1 3]", "x.d,x.>,x.a": "[4 0 1 3 2]", "z.>": "[]", "none": "[]",
		} {
			if got, _ := c.browse(queueNamed(name), ""); fmt.Sprint(got) != want {
				t.Errorf("%s: %v, want %s", name, got, want)
			}
		}
		if got, _ := c.browse(queueNamed("x.>"), "n > 2"); fmt.Sprint(got) != "[3 4]" {
			t.Errorf("with a selector: %v", got)
		}
		for _, q := range h.broker.Queues() {
			if q.Name.IsPattern() {
				t.Errorf("there is a queue %s", q.Name)
			}
		}
	})
}

// A consumer of queues with noLocal leaves to others what its own client sends, alone,
// by a pattern, and with a selector beside it.
func TestNoLocalOfQueues(t *testing.T) {
	inHouse(t, withProperties, func(h *house) {
		for _, tt := range []struct {
			of, selector string
			want         []string // of what another client sends: n = 1, n = 2
		}{
			{"Q.1", "", []string{"other 1", "other 2"}},
			{"Q.*", "", []string{"other 1", "other 2"}},
			{"Q.1", "n = 1 OR n = 2", []string{"other 1", "other 2"}},
			{"Q.1", "n = 2", []string{"other 2"}},
		} {
			c, other := h.client(), h.client()
			k := c.consume(queueNamed(tt.of), func(s *ConsumerSpec) { s.NoLocal, s.Selector = true, tt.selector })
			for n := 1; n <= 2; n++ {
				c.must(c.send(c.msg(queueNamed("Q.1"), fmt.Sprint("own ", n), numbered(n)), ""))
				other.must(other.send(other.msg(queueNamed("Q.1"), fmt.Sprint("other ", n), numbered(n)), ""))
			}
			got := c.take()
			want(t, tt.of+" "+tt.selector, got, tt.want...)
			c.must(c.ack(queue.Standard, k, got[0], got[len(got)-1], len(got), ""))
			c.closeConsumer(k, Delivery{})
			all := other.consume(queueNamed("Q.1"))
			rest := other.take()
			if n := len(rest) + len(got); n != 4 {
				t.Errorf("%s: another has %q", tt.of, texts(rest))
			}
			other.must(other.ack(queue.Standard, all, rest[0], rest[len(rest)-1], len(rest), ""))
			c.c.Close(message.Closed, "", -1)
			other.c.Close(message.Closed, "", -1)
		}
	})
}
