package broker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// What is copied stays, whatever its state and however deep it lies; the copies can be
// had at once, with a fresh count (R-JMX-01).
func TestCopyLeavesWhatItCopies(t *testing.T) {
	t.Parallel()
	rules := func(o *Options) {
		smallWindow(o)
		policed(3, time.Hour, time.Hour, 0)(o)
	}
	inHouse(t, rules, func(h *house) {
		c := h.client()
		for i := range 12 {
			c.must(c.send(c.msg(parcels, fmt.Sprintf("m%d", i+1), func(m *message.Message) {
				m.Persistent = i != 11
				if m.Type = "b"; i%2 == 0 {
					m.Type = "a"
				}
			}), ""))
		}
		k := c.consume(parcels)
		got := c.take()
		c.failAsJava(k, got[0]) // m1 waits for its retry; the others are out
		dry, err := h.broker.Copy(h.t.Context(), At(parcels), shelf, Selection{Selector: "JMSType = 'a'", Dry: true})
		h.came("dry run", dry, err, Outcome{Taken: 6})
		o, err := h.broker.Copy(h.t.Context(), At(parcels), shelf, Selection{Selector: "JMSType = 'a'"})
		h.came("copy", o, err, Outcome{Taken: 6})
		o, err = h.broker.Copy(h.t.Context(), At(parcels), shelf, Selection{IDs: []string{got[1].Entry.ID.String()}})
		h.came("copy by id", o, err, Outcome{Taken: 1})
		o, err = h.broker.Copy(h.t.Context(), At(parcels), shelf, Selection{Selector: "JMSType = 'b'", Max: 2})
		h.came("copy two", o, err, Outcome{Taken: 2})
		if n := len(h.all(At(parcels))); n != 12 {
			t.Errorf("%d stay, want 12", n)
		}
		c.consume(shelf)
		copies := c.take()
		want(t, "copies", copies, "m1", "m3", "m5", "m7", "m9", "m11", "m2", "m2", "m4")
		for _, d := range copies {
			if m := d.Message; d.Counter != 0 || m.OriginalDestination != parcels || m.Destination != shelf {
				t.Errorf("copy: counter %d, %+v", d.Counter, m)
			}
		}
		// Whose messages were copied still sends there: nothing of it is a duplicate.
		c.must(c.send(c.msg(shelf, "new"), ""))
		want(t, "sent after", c.take(), "new")
	})
}

// Ten copies of one dead letter at the same time change nothing about the others
// (C19); a copied dead letter is one, and can be redriven, also after a restart.
func TestCopiesOfDeadLettersComeHome(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		id := h.deadLetters(parcels, 3)[0]
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				o, err := h.broker.Copy(h.t.Context(), dlqAt, shelf, Selection{IDs: []string{id}})
				h.came("copy", o, err, Outcome{Taken: 1})
			})
		}
		group.Wait()
		h.holds(dlqAt, "m1", "m2", "m3")
		h.restart()
		o, err := h.broker.Redrive(h.t.Context(), At(shelf), Selection{Max: 1})
		h.came("redrive", o, err, Outcome{Taken: 1})
		h.holds(At(parcels), "m1")
		if n := len(h.all(At(shelf))); n != 9 {
			t.Errorf("%d copies are left, want 9", n)
		}
	})
}
