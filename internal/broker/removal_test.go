package broker

import (
	"errors"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// What an operator removes is gone, with what it had, also after a restart; what is in use
// is not, nor what has messages unless that is said. The others keep theirs.
func TestRemoveByHand(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		news := topicNamed("NEWS")
		c := h.client()
		durable := func(name string) (Place, string) {
			return Place{ClientID: c.id, Subscription: name}, c.consume(news, func(s *ConsumerSpec) { s.Subscription = name })
		}
		gone, goneID := durable("gone")
		stays, staysID := durable("stays")
		c.must(c.send(c.msg(news, "m1"), ""))
		c.must(c.send(c.msg(parcels, "p1"), ""))
		c.take()
		queueID := c.consume(parcels)
		refused := func(what string, place Place, with bool, kind error) {
			t.Helper()
			if n, err := h.broker.Remove(h.t.Context(), place, with, false); n != 0 || !errors.Is(err, kind) {
				t.Errorf("%s: %d, %v", what, n, err)
			}
		}
		refused("a subscription in use", gone, true, message.ErrState)
		refused("a queue in use", At(parcels), true, message.ErrState)
		refused("no queue", At(queueNamed("NOPE")), true, message.ErrNotFound)
		refused("no subscription", Place{ClientID: c.id, Subscription: "nope"}, true, message.ErrNotFound)
		for _, id := range []string{goneID, staysID, queueID} {
			c.closeConsumer(id, Delivery{})
		}
		refused("a subscription with messages", gone, false, message.ErrState)
		refused("a queue with messages", At(parcels), false, message.ErrState)
		if err := h.broker.RemoveTopic(h.t.Context(), news, false); !errors.Is(err, message.ErrState) {
			t.Errorf("a topic with subscriptions: %v", err)
		}
		for _, place := range []Place{gone, At(parcels)} {
			for _, dry := range []bool{true, false} {
				if n, err := h.broker.Remove(h.t.Context(), place, true, dry); n != 1 || err != nil {
					t.Errorf("%s, dry %v: %d, %v", place, dry, n, err)
				}
			}
			refused(place.String()+" once more", place, true, message.ErrNotFound)
		}
		h.restart()
		refused("after a restart", gone, true, message.ErrNotFound)
		refused("after a restart", At(parcels), true, message.ErrNotFound)
		h.holds(stays, "m1")
		c = h.client()
		c.must(c.send(c.msg(parcels, "p2"), "")) // it comes to be again
		h.holds(At(parcels), "p2")
		if n, err := h.broker.Remove(h.t.Context(), stays, true, false); n != 1 || err != nil {
			t.Errorf("the other one: %d, %v", n, err)
		}
		for _, want := range []error{nil, message.ErrNotFound} {
			if err := h.broker.RemoveTopic(h.t.Context(), news, false); !errors.Is(err, want) {
				t.Errorf("the topic: %v, want %v", err, want)
			}
		}
	})
}

// What is removed while it is paused is not paused when it comes to be again.
func TestRemovedQueueIsNotPaused(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(parcels, "a"), ""))
		h.pause(parcels, true)
		if _, err := h.broker.Remove(h.t.Context(), At(parcels), true, false); err != nil {
			t.Fatal(err)
		}
		c.must(c.send(c.msg(parcels, "b"), ""))
		c.consume(parcels)
		want(t, "the new one", c.take(), "b")
	})
}

// A dead letter whose queue was removed meanwhile goes home all the same: the queue comes to
// be again. Where it is paused, it waits there.
func TestDeadLettersComeHomeToARemovedQueue(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.deadLetters(parcels, 2)
		if _, err := h.broker.Remove(h.t.Context(), At(parcels), false, false); err != nil {
			t.Fatal(err)
		}
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, Selection{Max: 1})
		h.came("to a queue that is gone", o, err, Outcome{Taken: 1})
		h.pause(parcels, true)
		c := h.client()
		c.consume(parcels)
		o, err = h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("to a queue that is paused", o, err, Outcome{Taken: 1})
		want(t, "while it is paused", c.take())
		h.pause(parcels, false)
		want(t, "afterwards", c.take(), "m1", "m2")
	})
}
