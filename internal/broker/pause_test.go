package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// pause pauses or resumes a queue, which must have been otherwise before.
func (h *house) pause(name message.Destination, on bool) {
	h.t.Helper()
	if was, err := h.broker.Pause(h.t.Context(), name, on); err != nil || was == on {
		h.t.Fatalf("pause %v: was %v, %v", on, was, err)
	}
}

// A paused queue hands out nothing, to those who consume it and to those who come, while
// all else goes on; retries that come due meanwhile are the first afterwards. Moving
// messages into it does not wake it (R-EDGE-40, R-JMX-03).
func TestPausedQueue(t *testing.T) {
	t.Parallel()
	inHouse(t, policed(3, time.Second, time.Second, 0), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(shelf, "moved"), ""))
		for _, text := range []string{"a", "b", "c"} {
			c.must(c.send(c.msg(parcels, text), ""))
		}
		k := c.consume(parcels, func(s *ConsumerSpec) { s.Prefetch = 2 })
		got := c.take()
		want(t, "before", got, "a", "b")
		h.pause(parcels, true)
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		c.failAsJava(k, got[1])
		c.must(c.send(c.msg(parcels, "d"), ""))
		other := h.client()
		other.consume(parcels)
		o, err := h.broker.Move(h.t.Context(), At(shelf), parcels, Selection{})
		h.came("move into it", o, err, Outcome{Taken: 1})
		time.Sleep(5 * time.Second)
		want(t, "while it is paused", append(c.take(), other.take()...))
		if st := h.broker.Queues()[0]; !st.Paused || st.Messages != 4 || st.Stats.Waiting != 4 {
			t.Errorf("while it is paused: %+v", st)
		}
		other.c.Close(message.Closed, "", -1)
		h.pause(parcels, false)
		want(t, "afterwards", c.take(), "b*1?", "c")
		if was, err := h.broker.Pause(h.t.Context(), parcels, false); was || err != nil {
			t.Errorf("resumed twice: %v, %v", was, err)
		}
		if _, err := h.broker.Pause(h.t.Context(), queueNamed("NOPE"), true); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("a queue that is not there: %v", err)
		}
		h.pause(parcels, true)
		h.restart()
		c = h.client()
		c.consume(parcels)
		want(t, "a restart ends it", c.take(), "b*1?", "c*1?", "d", "moved")
	})
}

// Who asks for a message with a time-out gets none from a paused queue, in time.
func TestPausedQueueAnswersPulls(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(parcels, "a"), ""))
		k := c.consume(parcels, func(s *ConsumerSpec) { s.Prefetch = 0 })
		h.pause(parcels, true)
		c.must(c.c.Pull(h.t.Context(), k, time.Second))
		time.Sleep(1100 * time.Millisecond)
		if got := c.take(); len(got) != 1 || got[0].Kind != NothingToPull {
			t.Errorf("answered %+v", got)
		}
		c.must(c.c.Pull(h.t.Context(), k, 10*time.Second))
		h.pause(parcels, false)
		want(t, "afterwards", c.take(), "a")
	})
}
