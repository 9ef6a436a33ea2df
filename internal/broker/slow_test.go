package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// told lists events of some kinds as texts, and forgets them.
func (h *house) told(kinds ...EventKind) (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		for _, k := range kinds {
			if e.Kind == k {
				all = append(all, fmt.Sprintf("%s of %s: %s %d", e.Consumer, e.Destination.Name, e.Text, e.Count))
			}
		}
	}
	h.events = nil
	return all
}

// TestSlowSubscribersLoseMessages: persistent ones become dead letters, as the
// strategy says, the rest is dropped, and each is told of and counted (R-DLS-01). A
// durable subscription beside it loses nothing.
func TestSlowSubscribersLoseMessages(t *testing.T) {
	news := topicNamed("NEWS.A")
	inHouse(t, func(o *Options) {
		o.Policy = func(d message.Destination) Policy {
			return Policy{Backlog: Backlog{Limits: ConstantLimit, Most: 3}, Advisories: Advisories{Discarded: d.Name == "NEWS.A"}}
		}
		o.AdvisoryTopic = func(k EventKind, d message.Destination) message.Destination {
			return topicNamed(fmt.Sprintf("ActiveMQ.Advisory.%d.%s", k, d.Name))
		}
	}, func(h *house) {
		watcher := h.client()
		watcher.consume(topicNamed("ActiveMQ.Advisory.>"))
		c, other, durable := h.client(), h.client(), h.client()
		k := c.consume(topicNamed("NEWS.*"), func(s *ConsumerSpec) { s.Prefetch = 2 })
		other.consume(news, func(s *ConsumerSpec) { s.Prefetch = 2; s.MostWaiting = 1 })
		durable.consume(news, func(s *ConsumerSpec) { s.Prefetch, s.Subscription = 2, "s" })
		for i := range 9 {
			c.must(c.send(c.msg(news, fmt.Sprint("m", i), func(m *message.Message) { m.Persistent = i%2 == 1 }), ""))
		}
		h.mu.Lock()
		copies := 0
		for _, e := range h.events {
			if e.Kind == Evicted && e.Copy != nil && e.Copy.Body == nil {
				copies++
			}
		}
		h.mu.Unlock()
		told := h.told(Evicted)
		if n := len(told); n != 4+6 || copies != n || told[0] == told[1] || h.broker.Counted(Evicted) != int64(n) {
			t.Errorf("%d told of, %d with their messages: %v", n, copies, told)
		}
		for i := range told {
			if !strings.Contains(told[i], "of NEWS.A: its subscriber is too slow") {
				t.Error(told[i])
			}
		}
		var all []string
		for got := c.take(); len(got) > 0; got = c.take() {
			all = append(all, texts(got)...)
			c.must(c.ack(queue.Standard, k, got[0], got[len(got)-1], len(got), ""))
		}
		if diff := cmp.Diff([]string{"m0", "m1", "m6", "m7", "m8"}, all); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := h.depth(dlq.Name); n != 2+3 { // m3 and m5 of the one, m3, m5 and m7 of the other
			t.Errorf("%d dead letters", n)
		}
		dead := h.client()
		dead.consume(dlq)
		if d := dead.take()[0]; d.Message.Added[FailureCause] != redelivery.DiscardCause(k) && !strings.Contains(fmt.Sprint(d.Message.Added[FailureCause]), other.id) {
			t.Errorf("%v", d.Message.Added)
		}
		for _, st := range h.broker.Subscriptions() {
			if st.Durable && (st.Stats.Evicted != 0 || st.Stats.Waiting != 9-2) {
				t.Errorf("the durable one: %+v", st.Stats)
			}
		}
		for _, x := range []*client{watcher, c, other, durable, dead} {
			x.c.Close(message.Closed, "", -1)
		}
	})
}

// slowPolicy closes consumers that are too slow.
func slowPolicy(s Slow) func(*Options) {
	return func(o *Options) { o.Policy = func(message.Destination) Policy { return Policy{Slow: s} } }
}

// TestSlowConsumersAreClosed: asked to close, a consumer does, or it is removed after a
// second (R-BRK-40). What it had goes to others; what its application was at has failed,
// for the cause ack-timeout where it acknowledged nothing, else closed.
func TestSlowConsumersAreClosed(t *testing.T) {
	for name, tt := range map[string]struct {
		slow    Slow
		obeys   bool
		cause   message.Cause
		after   time.Duration
		failed  []string // what others get, in order
		message string
	}{
		"by its window, removed":              {Slow{For: 30 * time.Second}, false, message.Closed, 31 * time.Second, []string{"m0*1", "m1*1?", "m2"}, "the consumer was slow for 30s"},
		"by its window, and it closes":        {Slow{For: 30 * time.Second}, true, message.Closed, 30 * time.Second, []string{"m0*1", "m1", "m2"}, "the consumer was slow for 30s"},
		"by its acknowledgements, removed":    {Slow{Unacked: 20 * time.Second}, false, message.AckTimeout, 21 * time.Second, []string{"m0*1", "m1*1?", "m2"}, "the consumer acknowledged nothing for 20s"},
		"by its acknowledgements, and closes": {Slow{Unacked: 20 * time.Second}, true, message.AckTimeout, 20 * time.Second, []string{"m0*1", "m1", "m2"}, "the consumer acknowledged nothing for 20s"},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, slowPolicy(tt.slow), func(h *house) {
				c, other := h.client(), h.client()
				k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 2 })
				for i := range 3 {
					c.must(c.send(c.msg(orders, fmt.Sprint("m", i)), ""))
				}
				got := c.take()
				want(t, "at first", got, "m0", "m1")
				start := time.Now()
				asked, _ := c.within(time.Minute)
				want(t, "then", asked, "close")
				if diff := cmp.Diff([]string{k + " of ORDERS: " + tt.message + " 0"}, h.told(ConsumerAborted)); diff != "" {
					t.Error(diff)
				}
				if tt.obeys {
					c.must(c.settle(func(ctx context.Context, id string, done func(error)) {
						c.c.CloseConsumer(ctx, id, int64(got[0].Entry.Position), done)
					}, k))
				}
				other.consume(orders)
				var back []Delivery
				for len(back) < 3 {
					more, _ := other.within(time.Minute)
					back = append(back, more...)
				}
				if took := time.Since(start); took < tt.after-time.Second || took > tt.after+time.Second {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				slices.SortFunc(back, func(a, b Delivery) int { return strings.Compare(string(a.Message.Body), string(b.Message.Body)) })
				want(t, "the other", back, tt.failed...)
				p, err := h.broker.FindMessage(h.t.Context(), At(orders), got[0].Entry.ID.String())
				c.must(err)
				story, err := h.broker.Story(p)
				c.must(err)
				if len(story) != 1 || story[0].Cause != tt.cause || story[0].Text != tt.message || !story[0].Counted {
					t.Errorf("story %+v", story)
				}
				time.Sleep(time.Minute)
				err = c.settle(func(ctx context.Context, id string, done func(error)) { c.c.CloseConsumer(ctx, id, -1, done) }, k)
				if !errors.Is(err, message.ErrNotFound) {
					t.Errorf("it is still there: %v", err)
				}
				c.consume(orders) // its connection goes on
				c.c.Close(message.Closed, "", -1)
				other.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// TestSlowConsumersConnectionIsEnded where the policy says so.
func TestSlowConsumersConnectionIsEnded(t *testing.T) {
	inHouse(t, slowPolicy(Slow{Unacked: 20 * time.Second, EndConnection: true}), func(h *house) {
		kicked := make(chan error, 1)
		c := &client{h: h, id: "ID:kicked"}
		conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Kick: func(err error) { kicked <- err }}, c)
		if err != nil {
			t.Fatal(err)
		}
		c.c = conn
		c.consume(orders)
		c.must(c.send(c.msg(orders, "m"), ""))
		start := time.Now()
		if err := <-kicked; !errors.Is(err, errAborted) || !strings.Contains(err.Error(), "acknowledged nothing for 20s") {
			t.Error(err)
		}
		if took := time.Since(start); took < 20*time.Second-2*tick || took > 21*time.Second {
			t.Errorf("after %v", took)
		}
		want(t, "what it got", c.take(), "m")
		c.c.Close(message.ConnectionLost, "it was ended", queue.UnknownLast)
		other := h.client()
		other.consume(orders)
		want(t, "the other", other.take(), "m*1")
		other.c.Close(message.Closed, "", -1)
	})
}

// TestReloadChangesWhatSlowConsumersAreAllowed, and their backlog.
func TestReloadChangesWhatSlowConsumersAreAllowed(t *testing.T) {
	news := topicNamed("NEWS")
	inHouse(t, func(*Options) {}, func(h *house) {
		c := h.client()
		c.consume(news, func(s *ConsumerSpec) { s.Prefetch = 2 })
		for i := range 9 {
			c.must(c.send(c.msg(news, fmt.Sprint("m", i)), ""))
		}
		want(t, "at first", c.take(), "m0", "m1")
		c.must(h.broker.Reload(h.t.Context(), Reload{Policy: func(message.Destination) Policy {
			return Policy{Backlog: Backlog{Limits: WindowLimit, Rate: 2}, Slow: Slow{For: time.Minute}}
		}}))
		time.Sleep(tick)
		if n := len(h.told(Evicted)); n != 3 {
			t.Errorf("%d were evicted, want 3", n)
		}
		got, after := c.within(time.Hour)
		want(t, "then", got, "close")
		late(t, "it", after, time.Minute-2*tick)
		c.c.Close(message.Closed, "", -1)
	})
}

// TestSlowDurableSubscriberIsClosed: its subscription stays, with what it has, and its
// client can take it up again.
func TestSlowDurableSubscriberIsClosed(t *testing.T) {
	news := topicNamed("NEWS")
	inHouse(t, slowPolicy(Slow{For: 30 * time.Second}), func(h *house) {
		c := h.client()
		durable := func(s *ConsumerSpec) { s.Prefetch, s.Subscription = 1, "s" }
		c.consume(news, durable)
		for i := range 3 {
			c.must(c.send(c.msg(news, fmt.Sprint("m", i)), ""))
		}
		want(t, "at first", c.take(), "m0")
		asked, _ := c.within(time.Minute)
		want(t, "then", asked, "close")
		time.Sleep(2 * time.Second)
		c.consume(news, func(s *ConsumerSpec) { durable(s); s.Prefetch = 10 })
		want(t, "again", c.take(), "m0*1", "m1", "m2")
		c.c.Close(message.Closed, "", -1)
	})
}
