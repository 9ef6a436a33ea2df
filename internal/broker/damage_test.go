package broker

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// damage changes a bit of the stored message that has a text in it.
func (h *house) damage(text string) {
	h.t.Helper()
	var batch store.Batch
	err := h.shard.Scan([]byte{'m'}, []byte{'n'}, func(k, v []byte) bool {
		if bytes.Contains(v, []byte(text)) {
			v = bytes.Clone(v)
			v[len(v)/2] ^= 1
			batch.Put(bytes.Clone(k), v)
		}
		return true
	})
	if err != nil || batch.Len() != 1 {
		h.t.Fatalf("%d messages have %q in them: %v", batch.Len(), text, err)
	}
	h.damaged.Store(true)
	answered := make(chan error, 1)
	h.shard.Commit(&batch, func(err error) { answered <- err })
	if err := <-answered; err != nil {
		h.t.Fatal(err)
	}
}

// A message that cannot be read any more becomes a dead letter, and the queue goes on: it
// is not its neighbours' fault, nor that of their clients.
func TestDamagedMessageIsADeadLetterAndStopsNobody(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, text := range []string{"m1", "broken", "m3"} {
			c.must(c.send(c.msg(orders, text), ""))
		}
		c.c.Close(message.Closed, "", -1)
		h.restart() // they are in the store alone
		h.damage("broken")
		c = h.client()
		c.consume(orders)
		c.each(func(d *Delivery) {
			_, err := d.Load()
			if errors.Is(err, message.ErrCorrupt) {
				d.Undispatchable(err) // as who writes it does
			}
		})
		p, _, err := h.broker.Look(h.t.Context(), At(dlq), Cursor{}, 10)
		c.must(err)
		if len(p) != 1 {
			t.Fatalf("%d dead letters, want the damaged message", len(p))
		}
		if _, err := h.broker.Read(&p[0]); !errors.Is(err, message.ErrCorrupt) {
			t.Errorf("the dead letter can be read: %v", err)
		}
		if n := h.broker.Counted(DestinationLost); n != 0 {
			t.Errorf("%d destinations were lost", n)
		}
		c.must(c.send(c.msg(orders, "m4"), ""))
		want(t, "afterwards", c.take(), "m4")
		c.c.Close(message.Closed, "", -1)
	})
}

// each waits as take does, and gives what was delivered to f.
func (c *client) each(f func(*Delivery)) {
	c.h.t.Helper()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	c.mu.Lock()
	got := c.got
	c.got = nil
	c.mu.Unlock()
	for i := range got {
		f(&got[i])
	}
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
}

// A queue that is stopped, since what its machine believes is not what the store has, does
// nothing more with that machine: who waits in the same turn is told so.
func TestNothingFollowsInTheTurnThatStopsAQueue(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		d := h.broker.known(orders)
		goOn := h.busy(orders)
		d.box.force(work{do: func() { d.failHere(message.ErrCorrupt) }})
		second, third := c.begin(c.msg(orders, "m2")), make(chan error, 1)
		go func() { third <- d.do(h.t.Context(), func() { t.Error("work is done by a queue that was stopped") }) }()
		synctest.Wait()
		goOn()
		if done, err := second.settled(); !done || !errors.Is(err, message.ErrCorrupt) {
			t.Errorf("a message in that turn: answered %v, %v", done, err)
		}
		if err := <-third; !errors.Is(err, message.ErrCorrupt) {
			t.Errorf("work in that turn: %v", err)
		}
		c.must(c.send(c.msg(orders, "m3"), ""))
		c.consume(orders)
		want(t, "of the queue that was opened anew", c.take(), "m1", "m3")
		c.c.Close(message.Closed, "", -1)
	})
}
