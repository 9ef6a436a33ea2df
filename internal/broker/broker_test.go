package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

var (
	orders = message.Destination{Kind: message.Queue, Name: "ORDERS"}
	dlq    = message.Destination{Kind: message.Queue, Name: "ActiveMQ.DLQ"}
)

func want(t *testing.T, what string, got []Delivery, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestMessageIsDeliveredAndAcknowledged(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		k := c.consume(orders)
		got := c.take()
		want(t, "first", got, "m1")
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		c.c.Close(message.Closed, "", int64(got[0].Entry.Position))
		h.restart()
		c = h.client()
		c.consume(orders)
		want(t, "after restart", c.take())
		c.c.Close(message.Closed, "", -1)
	})
}

func TestPoisonBecomesADeadLetterThatSurvives(t *testing.T) { // R-WIRE-02, R-DLQ-03
	inHouse(t, nil, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		c.must(c.send(c.msg(orders, "bad"), ""))
		got := c.take()
		for _, tx := range []string{"TX:1", "TX:2"} {
			c.must(c.c.Begin(tx))
			c.must(c.ack(queue.Standard, k, got[0], got[0], 1, tx))
			c.must(c.settle(c.c.Rollback, tx))
		}
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", "java.lang.Throwable: Delivery[2] exceeds redelivery policy limit:x, cause:null"))
		c.take()
		h.kill()
		c = h.client()
		c.consume(dlq)
		dead := c.take()
		want(t, "dead letter", dead, "bad")
		m := dead[0].Message
		if m.OriginalDestination != orders || m.Destination != dlq || m.Added["dlqDeliveryFailureCause"] == nil || m.Added["originalExpiration"] != int64(0) {
			t.Errorf("dead letter: %+v", m)
		}
		p, err := h.broker.FindMessage(h.t.Context(), At(dlq), m.ID.String())
		c.must(err)
		story, err := h.broker.Story(p)
		c.must(err)
		if len(story) != 2 || story[1].Decision != "dead-letter" || story[0].Cause != message.Rollback || p.Counts.Failures != 0 {
			t.Errorf("story: %+v, counts %+v", story, p.Counts)
		}
		o, err := h.broker.Redrive(h.t.Context(), At(dlq), Selection{})
		if o != (Outcome{Out: 1}) || err != nil {
			t.Errorf("redrive of what a consumer has: %+v, %v", o, err)
		}
		c.c.Close(message.Closed, "", -1)
		o, err = h.broker.Redrive(h.t.Context(), At(dlq), Selection{})
		if o != (Outcome{Taken: 1}) || err != nil {
			t.Errorf("redrive: %+v, %v", o, err)
		}
		c = h.client()
		c.consume(orders)
		want(t, "redriven", c.take(), "bad")
		c.c.Close(message.ConnectionLost, "", queue.UnknownLast)
		c = h.client()
		c.consume(orders)
		want(t, "lost", c.take(), "bad*1")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestHandOutIsMarkedBeforeThePowerGoes(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for _, s := range []string{"a", "b", "c"} {
			c.must(c.send(c.msg(orders, s), ""))
		}
		k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 2 })
		got := c.take()
		want(t, "window", got, "a", "b")
		c.must(c.send(c.msg(orders, "d"), ""))
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		c.take()
		h.kill()
		c = h.client()
		c.consume(orders)
		want(t, "after the power came back", c.take(), "b*1?", "c*1?", "d")
		c.c.Close(message.Closed, "", -1)
		c = h.client()
		c.consume(orders)
		want(t, "given back unread", c.take(), "b*1?", "c*1?", "d")
		c.c.Close(message.Closed, "", -1)
	})
}

func TestTransactionOverTwoQueuesIsOneBatch(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		out := message.Destination{Kind: message.Queue, Name: "OUT"}
		c := h.client()
		c.must(c.send(c.msg(orders, "in"), ""))
		k := c.consume(orders)
		got := c.take()
		c.must(c.c.Begin("TX:1"))
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, "TX:1"))
		c.must(c.send(c.msg(out, "out"), "TX:1"))
		ko := c.consume(out)
		want(t, "before the commit", c.take())
		c.must(c.settle(c.c.Commit, "TX:1"))
		got = c.take()
		want(t, "after the commit", got, "out")
		c.must(c.ack(queue.Standard, ko, got[0], got[0], 1, ""))
		c.take()
		h.kill()
		c = h.client()
		c.consume(orders)
		c.consume(out)
		want(t, "after the power came back", c.take())
	})
}

func TestDurableSubscriptionsShareOneBody(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		news := message.Destination{Kind: message.Topic, Name: "NEWS"}
		a, b, p := h.client(), h.client(), h.client()
		durable := func(s *ConsumerSpec) { s.Subscription = "sub" }
		ka := a.consume(news, durable)
		kb := b.consume(news, durable)
		p.consume(news)
		p.must(p.send(p.msg(news, "n1"), ""))
		want(t, "online subscriber", p.take(), "n1")
		got := a.take()
		want(t, "a", got, "n1")
		a.must(a.ack(queue.Standard, ka, got[0], got[0], 1, ""))
		want(t, "b", b.take(), "n1")
		done := make(chan error, 1)
		b.c.CloseConsumer(h.t.Context(), kb, -1, func(err error) { done <- err })
		b.must(<-done)
		p.must(p.send(p.msg(news, "n2"), ""))
		b.consume(news, durable)
		want(t, "b, back", b.take(), "n1", "n2")
		for _, c := range []*client{a, b, p} {
			c.c.Close(message.Closed, "", -1)
		}
	})
}

func TestBrowserSeesAllAndChangesNothing(t *testing.T) { // C20
	inHouse(t, func(o *Options) { o.Limits.WindowEntries = 4; o.Limits.BrowseEntries = 3 }, func(h *house) {
		c := h.client()
		var all []string
		for i := range 20 {
			s := string(rune('a' + i))
			all = append(all, s)
			c.must(c.send(c.msg(orders, s), ""))
		}
		c.consume(orders, func(s *ConsumerSpec) { s.Browser = true })
		want(t, "browse", c.take(), append(all, "end")...)
		c.consume(orders)
		want(t, "consume", c.take(), all...)
		c.c.Close(message.Closed, "", -1)
	})
}

func TestResentMessageIsNotAddedTwice(t *testing.T) { // C21
	inHouse(t, nil, func(h *house) {
		c := h.client()
		m := c.msg(orders, "once")
		c.must(c.send(m, ""))
		c.must(c.send(m, ""))
		h.restart()
		id := c.id
		c = h.client()
		c.must(c.send(m, ""))
		c.consume(orders)
		want(t, "after the restart", c.take(), "once")
		if n := h.broker.Counted(Suppressed); n != 1 {
			t.Errorf("%d suppressed, want 1", n)
		}
		_ = id
		c.c.Close(message.Closed, "", -1)
	})
}

// A client that comes back may repeat what producers sent that it has closed since; once
// it has closed its connection it repeats nothing, and nothing is remembered.
func TestClosedProducersAreRememberedForWhoMayRepeat(t *testing.T) { // C21
	for name, tt := range map[string]struct {
		mayRepeat bool
		closed    int // producers, one after another
		cause     message.Cause
		twice     bool // the first producer's message is there
	}{
		"lost, and comes back":                  {true, maxEnded, message.ConnectionLost, false},
		"lost, one producer more than are kept": {true, maxEnded + 1, message.ConnectionLost, true},
		"lost, but never comes back":            {false, 1, message.ConnectionLost, true},
		"closed":                                {true, 1, message.Closed, true},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				come := func(reconnect bool) {
					var err error
					if c.c, err = h.broker.Connect(h.t.Context(), ClientInfo{ID: "ID:back", Reconnect: reconnect, MayRepeat: tt.mayRepeat, Kick: func(error) {}}, c); err != nil {
						t.Fatal(err)
					}
				}
				c.c.Close(message.Closed, "", -1)
				come(false)
				producer := ""
				of := func(m *message.Message) { m.ID.Producer, m.ID.Sequence = producer, 1 }
				for i := range tt.closed {
					producer = fmt.Sprintf("ID:back:1:%d", i)
					c.must(c.send(c.msg(orders, "m", of), ""))
					c.c.CloseProducer(h.t.Context(), producer)
				}
				c.c.Close(tt.cause, "", queue.UnknownLast)
				come(true)
				producer = "ID:back:1:0"
				c.must(c.send(c.msg(orders, "m", of), ""))
				want := tt.closed
				if tt.twice {
					want++
				}
				if got := len(h.all(At(orders))); got != want {
					t.Errorf("%d messages, want %d", got, want)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestNonPersistentSpillsAndKeepsItsOrder(t *testing.T) {
	inHouse(t, func(o *Options) { o.Limits.MessageBytes = 4096; o.Limits.WindowEntries = 4 }, func(h *house) {
		c := h.client()
		var all []string
		for i := range 20 {
			s := string(rune('a' + i))
			all = append(all, s)
			c.must(c.send(c.msg(orders, s, func(m *message.Message) { m.Persistent = false }), ""))
		}
		k := c.consume(orders)
		got := c.take()
		want(t, "all", got, all...)
		c.must(c.ack(queue.Standard, k, got[0], got[19], 20, ""))
		c.take()
		if n := h.broker.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestTemporaryQueueGoesWithItsConnection(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		a, b := h.client(), h.client()
		temp := message.Destination{Kind: message.TempQueue, Name: a.id + ":1"}
		a.must(a.c.AddDestination(h.t.Context(), temp))
		a.consume(temp)
		b.must(b.send(b.msg(temp, "hello"), ""))
		want(t, "reply", a.take(), "hello")
		a.c.Close(message.Closed, "", -1)
		if err := b.send(b.msg(temp, "late"), ""); err == nil {
			t.Error("sent to a temporary queue that is gone")
		}
		b.c.Close(message.Closed, "", -1)
		time.Sleep(time.Second)
	})
}
