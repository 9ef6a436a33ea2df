package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

var (
	parcels = message.Destination{Kind: message.Queue, Name: "PARCELS"}
	shelf   = message.Destination{Kind: message.Queue, Name: "SHELF"}
	dlqAt   = At(message.Destination{Kind: message.Queue, Name: "ActiveMQ.DLQ"})
)

// smallWindow makes everything deeper than 3 deep.
func smallWindow(o *Options) { o.Limits.WindowEntries = 3 }

// kill makes dead letters of n messages to a queue: by their time to live.
func (h *house) deadLetters(to message.Destination, n int) []string {
	h.t.Helper()
	c := h.client()
	defer c.c.Close(message.Closed, "", -1)
	var ids []string
	for i := range n {
		m := c.msg(to, fmt.Sprintf("m%d", i+1), func(m *message.Message) { m.Expiration = time.Now().Add(time.Minute).UnixMilli() })
		c.must(c.send(m, ""))
		ids = append(ids, m.ID.String())
	}
	for range n/3 + 1 { // what is deep expires when it is paged in
		time.Sleep(2 * time.Minute)
	}
	c.take()
	return ids
}

// all lists the bodies in a place.
func (h *house) all(at Place) []string {
	h.t.Helper()
	var texts []string
	for c := (Cursor{}); !c.End; {
		page, next, err := h.broker.Look(h.t.Context(), at, c, 100)
		if err != nil {
			h.t.Fatal(err)
		}
		for i := range page {
			m, err := h.broker.Read(&page[i])
			if err != nil {
				h.t.Fatal(err)
			}
			texts = append(texts, string(m.Body))
		}
		c = next
	}
	return texts
}

func (h *house) holds(at Place, want ...string) {
	h.t.Helper()
	if got := h.all(at); !slices.Equal(got, want) {
		h.t.Errorf("%s has %q, want %q", at, got, want)
	}
}

// came checks an outcome.
func (h *house) came(what string, got Outcome, err error, want Outcome) {
	h.t.Helper()
	if got != want || err != nil {
		h.t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
	}
}

// What lies deep in a dead letter queue is reached by its id, and those in front of
// it, which stay, do not end a redrive of all (R-JMX-05, R-EDGE-48).
func TestRedriveReachesAnyDepth(t *testing.T) {
	t.Parallel()
	inHouse(t, smallWindow, func(h *house) {
		ids := h.deadLetters(parcels, 20)
		c := h.client()
		for i := range 8 { // no dead letters
			c.must(c.send(c.msg(dlqAt.Queue, fmt.Sprintf("plain%d", i)), ""))
		}
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, Selection{IDs: []string{ids[18], "ID:nobody:1:1:1"}})
		h.came("by id", o, err, Outcome{Taken: 1})
		h.holds(At(parcels), "m19")
		h.restart()
		o, err = h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("all", o, err, Outcome{Taken: 19})
		if got := h.all(dlqAt); len(got) != 8 || got[0] != "plain0" {
			t.Errorf("left: %q", got)
		}
		for range 2 {
			if got := h.all(At(parcels)); len(got) != 20 || got[19] != "m20" {
				t.Errorf("back: %q", got)
			}
			h.kill()
		}
	})
}

// A head full of what stays is in nobody's way.
func TestMoveBehindWhatStays(t *testing.T) {
	t.Parallel()
	inHouse(t, smallWindow, func(h *house) {
		c := h.client()
		for i := range 12 {
			c.must(c.send(c.msg(parcels, fmt.Sprintf("m%d", i+1), func(m *message.Message) {
				if m.Type = "keep"; i >= 10 {
					m.Type = "go"
				}
			}), ""))
		}
		dry, err := h.broker.Move(h.t.Context(), At(parcels), shelf, Selection{Selector: "JMSType = 'go'", Dry: true})
		h.came("dry run", dry, err, Outcome{Taken: 2})
		o, err := h.broker.Move(h.t.Context(), At(parcels), shelf, Selection{Selector: "JMSType = 'go'", Max: 1})
		h.came("one", o, err, Outcome{Taken: 1})
		h.holds(At(shelf), "m11")
		o, err = h.broker.Move(h.t.Context(), At(parcels), shelf, Selection{Selector: "JMSType = 'go'"})
		h.came("the rest", o, err, Outcome{Taken: 1})
		h.holds(At(shelf), "m11", "m12")
		if n := len(h.all(At(parcels))); n != 10 {
			t.Errorf("%d stay, want 10", n)
		}
	})
}

// While a consumer empties a queue, someone purges it: each message goes once.
func TestPurgeBesideAConsumer(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *Options) { o.Limits.WindowEntries = 20 }, func(h *house) {
		c := h.client()
		const n = 4000
		for i := range n {
			c.must(c.send(c.msg(parcels, fmt.Sprint(i), func(m *message.Message) { m.Persistent = i%2 == 0 }), ""))
		}
		k := c.consume(parcels, func(s *ConsumerSpec) { s.Prefetch = 10 })
		var purged [2]Outcome
		var all sync.WaitGroup
		for i := range purged {
			all.Go(func() {
				var err error
				if purged[i], err = h.broker.Purge(context.Background(), At(parcels), Selection{}); err != nil {
					t.Error(err)
				}
			})
		}
		got := 0
		for range 3 {
			for _, d := range c.take() {
				got++
				c.must(c.ack(queue.Individual, k, d, d, 1, ""))
			}
		}
		all.Wait()
		got += len(c.take())
		if sum := got + purged[0].Taken + purged[1].Taken; sum != n {
			t.Errorf("%d delivered, %+v purged, %d in all; want %d", got, purged, sum, n)
		}
		st := h.broker.Queues()
		if st[0].Stats.Waiting != 0 {
			t.Errorf("still waiting: %+v", st[0].Stats)
		}
	})
}

// What did not reach the store is told as an error, and not as done.
func TestPurgeTellsOfACommitThatFails(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(parcels, "m1"), ""))
		after := h.store.Crash()
		o, err := h.broker.Purge(h.t.Context(), At(parcels), Selection{})
		if err == nil || o.Taken != 0 {
			t.Errorf("purge on a dead store: %+v, %v", o, err)
		}
		h.stop()
		_ = h.store.Close()
		h.store = after
		h.open()
		h.holds(At(parcels), "m1")
	})
}

func TestActionsByHandAreRefused(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(parcels, "m1"), ""))
		for name, tc := range map[string]struct {
			do   func() (Outcome, error)
			kind error
		}{
			"redrive from what is no dead letter queue (C18)": {func() (Outcome, error) {
				return h.broker.Redrive(h.t.Context(), At(parcels), Selection{})
			}, message.ErrState},
			"move to itself (R-JMX-04)": {func() (Outcome, error) {
				return h.broker.Move(h.t.Context(), At(parcels), parcels, Selection{})
			}, message.ErrInvalid},
			"move to a pattern": {func() (Outcome, error) {
				return h.broker.Move(h.t.Context(), At(parcels), message.Destination{Kind: message.Queue, Name: "A.>"}, Selection{})
			}, message.ErrInvalid},
			"move to a topic that keeps nothing": {func() (Outcome, error) {
				return h.broker.Move(h.t.Context(), At(parcels), message.Destination{Kind: message.Topic, Name: "NEWS"}, Selection{})
			}, message.ErrState},
			"a bad selector": {func() (Outcome, error) {
				return h.broker.Purge(h.t.Context(), At(parcels), Selection{Selector: "a ="})
			}, message.ErrInvalid},
			"no such queue": {func() (Outcome, error) {
				return h.broker.Purge(h.t.Context(), At(shelf), Selection{})
			}, message.ErrNotFound},
			"no such subscription": {func() (Outcome, error) {
				return h.broker.Purge(h.t.Context(), Place{ClientID: "x", Subscription: "y"}, Selection{})
			}, message.ErrNotFound},
		} {
			if o, err := tc.do(); !errors.Is(err, tc.kind) || o.Taken != 0 {
				t.Errorf("%s: %+v, %v; want %v", name, o, err, tc.kind)
			}
		}
		h.holds(At(parcels), "m1")
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		if !errors.Is(err, message.ErrNotFound) {
			t.Errorf("a dead letter queue that is not there: %+v, %v", o, err)
		}
		c.must(c.c.AddDestination(h.t.Context(), dlqAt.Queue))
		o, err = h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("an empty dead letter queue", o, err, Outcome{})
	})
}

// What comes while messages are taken out stays, and does not keep whoever takes them.
func TestWhatComesWhileMessagesAreTakenOutStays(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int{"from memory": 2, "from the store": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, smallWindow, func(h *house) {
				c := h.client()
				for i := range before {
					c.must(c.send(c.msg(parcels, fmt.Sprintf("m%d", i)), ""))
				}
				sent := make(chan error, 1)
				late := c.msg(parcels, "late")
				var once sync.Once
				sends := func(*queue.Item) bool { // in the destination's goroutine, which takes the message up after this step
					once.Do(func() {
						go c.c.Send(h.t.Context(), late, "", func(err error) { sent <- err })
						time.Sleep(time.Millisecond)
					})
					return true
				}
				o, err := h.broker.takeOut(h.t.Context(), At(parcels), Selection{}, sends, queue.Extract{Purge: true})
				h.came("purge", o, err, Outcome{Taken: before})
				c.must(<-sent)
				h.holds(At(parcels), "late")
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}
