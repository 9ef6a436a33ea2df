package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// A requester is a client that comes back over failover:, and its queue for replies.
type requester struct {
	*client
	replies message.Destination
}

// requester connects, for the first time or again, without making its queue.
func (h *house) requester(id string, mayRepeat bool) requester {
	h.t.Helper()
	c := &client{h: h, id: id}
	info := ClientInfo{ID: id, ClientID: id, Address: "pipe", Protocol: "test", MayRepeat: mayRepeat, Kick: func(error) {}}
	conn, err := h.broker.Connect(h.t.Context(), info, c)
	if err != nil {
		h.t.Fatal(err)
	}
	c.c = conn
	return requester{c, message.Destination{Kind: message.TempQueue, Name: id + ":1"}}
}

// ask makes the queue, and listens on it.
func (r requester) ask() {
	r.h.t.Helper()
	r.must(r.c.AddDestination(r.h.t.Context(), r.replies))
	r.consume(r.replies)
}

// TestRepliesWaitForTheirRequester: a client of failover: loses its connection and comes
// back. What is sent to its temporary queue meanwhile is there then, nobody is told that
// the queue is gone, and the time counts from the last loss.
func TestRepliesWaitForTheirRequester(t *testing.T) {
	inHouse(t, func(o *Options) { o.KeepTemps = 5 * time.Second }, func(h *house) {
		server := h.client()
		r := h.requester("ID:asks", true)
		r.ask()
		for _, reply := range []string{"first", "second"} {
			r.c.Close(message.ConnectionLost, "cut", -1)
			time.Sleep(3 * time.Second)
			server.must(server.send(server.msg(r.replies, reply, func(m *message.Message) { m.Persistent = false }), ""))
			time.Sleep(time.Second)
			r = h.requester(r.id, true)
			r.ask()
			got := r.take()
			want(t, "requester", got, reply)
			r.must(r.ack(queue.Standard, got[0].Consumer, got[0], got[0], 1, ""))
		}
		time.Sleep(time.Minute)
		server.must(server.send(server.msg(r.replies, "third"), ""))
		want(t, "long after", r.take(), "third")
		if n := h.broker.Counted(TempAdded); n != 1 {
			t.Errorf("the queue came to be %d times", n)
		}
		if n := h.broker.Counted(TempRemoved); n != 0 {
			t.Errorf("the queue went %d times", n)
		}
		r.c.Close(message.Closed, "", -1)
		if n := h.broker.Counted(TempRemoved); n != 1 {
			t.Errorf("the queue went %d times", n)
		}
	})
}

// TestReplyBeforeItsRequesterIsBack: who answers is back after a restart before who
// asked. The reply waits a while; who was here and is gone gets none, and after a while
// nobody is waited for.
func TestReplyBeforeItsRequesterIsBack(t *testing.T) {
	inHouse(t, func(o *Options) { o.KeepTemps = 5 * time.Second }, func(h *house) {
		h.restart()
		server := h.client()
		gone := h.requester("ID:gone", true)
		gone.ask()
		gone.c.Close(message.Closed, "", -1)
		back := h.requester("ID:back", true)
		answer := func(to message.Destination, text string) error { return server.send(server.msg(to, text), "") }
		if err := answer(gone.replies, "to nobody"); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("one that was here: %v", err)
		}
		if err := answer(back.replies, "too soon"); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("one that is here, and has made no queue: %v", err)
		}
		late := message.Destination{Kind: message.TempQueue, Name: "ID:late:1"}
		never := message.Destination{Kind: message.TempQueue, Name: "ID:never:1"}
		time.Sleep(3 * time.Second)
		server.must(answer(late, "first"))
		server.must(answer(late, "second"))
		server.must(answer(never, "in vain"))
		time.Sleep(4 * time.Second)
		r := h.requester("ID:late", true)
		r.ask()
		want(t, "requester", r.take(), "first", "second")
		time.Sleep(2 * time.Second)
		if all := h.broker.TempDestinations(); len(all) != 1 || all[0].Destination != late {
			t.Errorf("there are %v", all)
		}
		if err := answer(never, "again"); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("long after the start: %v", err)
		}
		r.c.Close(message.Closed, "", -1)
		back.c.Close(message.Closed, "", -1)
	})
}

// TestTemporaryQueueIsMadeBySending is allowTempAutoCreationOnSend: at any time, and for
// anybody.
func TestTemporaryQueueIsMadeBySending(t *testing.T) {
	inHouse(t, func(o *Options) { o.KeepTemps, o.MakeTemps = 5*time.Second, true }, func(h *house) {
		server := h.client()
		time.Sleep(time.Hour)
		r := h.requester("ID:asks", false)
		server.must(server.send(server.msg(r.replies, "early"), ""))
		r.ask()
		want(t, "requester", r.take(), "early")
		time.Sleep(time.Hour)
		server.must(server.send(server.msg(r.replies, "late"), ""))
		want(t, "requester", r.take(), "late")
		bad := message.Destination{Kind: message.TempQueue, Name: "no connection"}
		if err := server.send(server.msg(bad, "m"), ""); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("a queue of no connection: %v", err)
		}
		r.c.Close(message.Closed, "", -1)
	})
}

// TestTemporaryQueuesEnd: at once with a client that closes, or that does not come back;
// in the end with one that could have, or that came back without the queue.
func TestTemporaryQueuesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		keep      time.Duration
		mayRepeat bool
		cause     message.Cause
		comesBack bool
		after     time.Duration // the queue is there until then
	}{
		"a client that closes":                {5 * time.Second, true, message.Closed, false, 0},
		"a client that will not come back":    {5 * time.Second, false, message.ConnectionLost, false, 0},
		"one that could":                      {5 * time.Second, true, message.ConnectionLost, false, 5 * time.Second},
		"one that comes back without it":      {5 * time.Second, true, message.ConnectionLost, true, 5 * time.Second},
		"one that could, but nothing is kept": {0, true, message.ConnectionLost, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(o *Options) { o.KeepTemps = c.keep }, func(h *house) {
				other := h.client()
				r := h.requester("ID:asks", c.mayRepeat)
				r.ask()
				topic := message.Destination{Kind: message.TempTopic, Name: r.id + ":2"}
				r.must(r.c.AddDestination(t.Context(), topic))
				r.c.Close(c.cause, "", -1)
				if c.comesBack {
					r = h.requester(r.id, c.mayRepeat)
				}
				if err := other.send(other.msg(topic, "m"), ""); !errors.Is(err, message.ErrNotFound) {
					t.Errorf("the topic, which keeps nothing: %v", err)
				}
				if c.after > 0 {
					time.Sleep(c.after - time.Second)
					other.must(other.send(other.msg(r.replies, "early"), ""))
					time.Sleep(1100 * time.Millisecond)
				}
				if err := other.send(other.msg(r.replies, "late"), ""); !errors.Is(err, message.ErrNotFound) {
					t.Errorf("the queue: %v", err)
				}
				if n := h.broker.Counted(TempRemoved); n != 2 {
					t.Errorf("%d were removed", n)
				}
				if all := h.broker.TempDestinations(); len(all) != 0 {
					t.Errorf("left: %v", all)
				}
				if c.comesBack {
					r.ask() // it is made anew, and empty
					want(t, "anew", r.take())
					r.c.Close(message.Closed, "", -1)
				}
			})
		})
	}
}
