package broker

import (
	"errors"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// TestWindow is R-XML-20: the policy's window takes the place of a client's
// default, and of nothing else.
func TestWindow(t *testing.T) {
	windows := [4]int{1, 2, 3, 4}
	set := func(o *Options) {
		o.Policy = func(d message.Destination) Policy {
			if d.Name == "PLAIN" {
				return Policy{}
			}
			return Policy{Prefetch: Prefetch{Queue: &windows[0], Browser: &windows[1], Topic: &windows[2], Durable: &windows[3]}}
		}
	}
	topic := message.Destination{Kind: message.Topic, Name: "T"}
	inHouse(t, set, func(h *house) {
		c := h.client()
		for name, tt := range map[string]struct {
			spec ConsumerSpec
			want int
		}{
			"queue":                       {ConsumerSpec{Destination: orders, Prefetch: 1000}, 1},
			"queue, its own wish":         {ConsumerSpec{Destination: orders, Prefetch: 999}, 999},
			"queue, pulling":              {ConsumerSpec{Destination: orders}, 0},
			"browser":                     {ConsumerSpec{Destination: orders, Browser: true, Prefetch: 500}, 2},
			"browser, a queue's default":  {ConsumerSpec{Destination: orders, Browser: true, Prefetch: 1000}, 1000},
			"topic":                       {ConsumerSpec{Destination: topic, Prefetch: 32767}, 3},
			"topic, its own wish":         {ConsumerSpec{Destination: topic, Prefetch: 100}, 100},
			"durable":                     {ConsumerSpec{Destination: topic, Subscription: "s", Prefetch: 100}, 4},
			"durable, optimized":          {ConsumerSpec{Destination: topic, Subscription: "s", Prefetch: 1000}, 4},
			"durable, its own wish":       {ConsumerSpec{Destination: topic, Subscription: "s", Prefetch: 32767}, 32767},
			"a queue that no policy says": {ConsumerSpec{Destination: message.Destination{Kind: message.Queue, Name: "PLAIN"}, Prefetch: 1000}, 1000},
		} {
			if got := c.c.Window(tt.spec); got != tt.want {
				t.Errorf("%s: %d, want %d", name, got, tt.want)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// TestAllConsumersExclusive gives one consumer everything, as
// allConsumersExclusiveByDefault asks (R-EXC-02).
func TestAllConsumersExclusive(t *testing.T) {
	inHouse(t, func(o *Options) { o.Policy = func(message.Destination) Policy { return Policy{Exclusive: true} } }, func(h *house) {
		one, two := h.client(), h.client()
		first := one.consume(orders)
		two.consume(orders)
		for _, id := range []string{"m1", "m2", "m3", "m4"} {
			one.must(one.send(one.msg(orders, id), ""))
		}
		want(t, "the first", one.take(), "m1", "m2", "m3", "m4")
		want(t, "the second", two.take())
		one.closeConsumer(first, Delivery{})
		want(t, "the second, alone", two.take(), "m1", "m2", "m3", "m4")
		one.c.Close(message.Closed, "", -1)
		two.c.Close(message.Closed, "", -1)
	})
}

// TestUserID writes who sends, whatever the sender says (populateJMSXUserID).
func TestUserID(t *testing.T) {
	inHouse(t, func(o *Options) { o.UserID = true }, func(h *house) {
		c := h.client()
		c.c.info.User = "sam"
		c.consume(orders)
		c.must(c.send(c.msg(orders, "m1", func(m *message.Message) { m.UserID = "root" }), ""))
		m, err := c.take()[0].Load()
		if err != nil || m.UserID != "sam" {
			t.Errorf("%q %v", m.UserID, err)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// TestRejectDurable refuses durable subscriptions alone (rejectDurableConsumers).
func TestRejectDurable(t *testing.T) {
	inHouse(t, func(o *Options) { o.RejectDurable = true }, func(h *house) {
		c := h.client()
		news := message.Destination{Kind: message.Topic, Name: "NEWS"}
		c.consume(news)
		err := c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:99", Session: c.id + ":1", Destination: news, Subscription: "s", Prefetch: 1})
		if !errors.Is(err, message.ErrDenied) {
			t.Errorf("%v", err)
		}
		c.c.Close(message.Closed, "", -1)
	})
}
