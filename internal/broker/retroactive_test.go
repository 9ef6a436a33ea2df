package broker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

func TestRetroactiveConsumersGetWhatATopicHasKept(t *testing.T) {
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	retroactive := func(s *ConsumerSpec) { s.Retroactive = true }
	send := func(c *client, n int) {
		for i := range n {
			c.must(c.send(c.msg(news, fmt.Sprintf("n%d", i)), ""))
		}
	}
	for name, tt := range map[string]struct {
		recovery Recovery
		before   func(c *client)
		how      func(*ConsumerSpec)
		want     []string
	}{
		"nothing is kept by default":    {Recovery{}, func(c *client) { send(c, 3) }, retroactive, nil},
		"the last two":                  {Recovery{Count: 2}, func(c *client) { send(c, 4) }, retroactive, []string{"n2", "n3"}},
		"within so many bytes":          {Recovery{Bytes: 2500}, func(c *client) { send(c, 4) }, retroactive, []string{"n2", "n3"}},
		"within an age":                 {Recovery{Age: time.Minute}, func(c *client) { send(c, 2); time.Sleep(time.Hour); send(c, 1) }, retroactive, []string{"n0"}},
		"an age that passes meanwhile":  {Recovery{Age: time.Minute}, func(c *client) { send(c, 2); time.Sleep(time.Hour) }, retroactive, nil},
		"who does not ask gets nothing": {Recovery{Count: 2}, func(c *client) { send(c, 3) }, func(*ConsumerSpec) {}, nil},
		"but where everyone gets it":    {Recovery{Count: 2, Always: true}, func(c *client) { send(c, 3) }, func(*ConsumerSpec) {}, []string{"n1", "n2"}},
		"by a pattern":                  {Recovery{Count: 2}, func(c *client) { send(c, 3) }, func(s *ConsumerSpec) { retroactive(s); s.Destination.Name = "*" }, []string{"n1", "n2"}},
		"a durable one that asks":       {Recovery{Count: 2}, func(c *client) { send(c, 3) }, func(s *ConsumerSpec) { retroactive(s); s.Subscription = "sub" }, []string{"n1", "n2"}},
		"a durable one that does not":   {Recovery{Count: 2, Always: true}, func(c *client) { send(c, 3) }, func(s *ConsumerSpec) { s.Subscription = "sub" }, nil},
		"what its selector wants":       {Recovery{Count: 2}, func(c *client) { send(c, 3) }, func(s *ConsumerSpec) { retroactive(s); s.Selector = "JMSPriority = 9" }, nil},
		"not what it sent itself":       {Recovery{Count: 2}, func(c *client) { send(c, 3) }, func(s *ConsumerSpec) { retroactive(s); s.NoLocal = true }, nil},
		"not what has expired": {Recovery{Count: 2}, func(c *client) {
			c.must(c.send(c.msg(news, "old", func(m *message.Message) { m.Expiration = time.Now().Add(time.Second).UnixMilli() }), ""))
			time.Sleep(time.Minute)
		}, retroactive, nil},
		"what is retained, and the newest": {Recovery{Retained: true, Count: 1}, func(c *client) { send(c, 2); c.must(c.send(c.msg(news, "kept", retain), "")); send(c, 3) }, retroactive, []string{"kept", "n2"}},
		"what is retained alone": {Recovery{Retained: true}, func(c *client) {
			c.must(c.send(c.msg(news, "older", retain), ""))
			c.must(c.send(c.msg(news, "kept", retain), ""))
			send(c, 3)
		}, retroactive, []string{"kept"}},
		"once, if it is among the newest": {Recovery{Retained: true, Count: 2}, func(c *client) { send(c, 2); c.must(c.send(c.msg(news, "kept", retain), "")) }, retroactive, []string{"n1", "kept"}},
		"what is retained does not expire": {Recovery{Retained: true}, func(c *client) {
			c.must(c.send(c.msg(news, "kept", retain, func(m *message.Message) { m.Expiration = time.Now().Add(time.Second).UnixMilli() }), ""))
			time.Sleep(time.Minute)
		}, retroactive, []string{"kept"}},
		"a message without a body ends that": {Recovery{Retained: true}, func(c *client) {
			c.must(c.send(c.msg(news, "kept", retain), ""))
			c.must(c.send(c.msg(news, "", retain), ""))
		}, retroactive, nil},
		"nothing is retained unasked": {Recovery{Count: 1}, func(c *client) { c.must(c.send(c.msg(news, "kept", retain), "")); send(c, 1) }, retroactive, []string{"n0"}},
		"what a transaction committed": {Recovery{Count: 5}, func(c *client) {
			for _, tx := range []string{"TX:1", "TX:2"} {
				c.must(c.c.Begin(tx))
				c.must(c.send(c.msg(news, "of "+tx), tx))
			}
			c.must(c.settle(c.c.Commit, "TX:1"))
			c.must(c.settle(c.c.Rollback, "TX:2"))
		}, retroactive, []string{"of TX:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(o *Options) {
				withProperties(o)
				o.Policy = func(message.Destination) Policy { return Policy{Recovery: tt.recovery} }
			}, func(h *house) {
				c := h.client()
				tt.before(c)
				c.consume(news, tt.how)
				want(t, "at once", c.take(), tt.want...)
				other := h.client()
				other.must(other.send(other.msg(news, "later", func(m *message.Message) { m.Priority = 9 }), ""))
				want(t, "then", c.take(), "later")
				c.c.Close(message.Closed, "", queue.UnknownLast)
				other.c.Close(message.Closed, "", queue.UnknownLast)
			})
		})
	}
}

// What a new durable subscription is given of the time before is its own from then on,
// once, over a crash as well.
func TestRetroactiveDurableSubscriptionKeepsWhatItWasGiven(t *testing.T) {
	news := topicNamed("NEWS")
	inHouse(t, func(o *Options) {
		withProperties(o)
		o.Policy = func(message.Destination) Policy { return Policy{Recovery: Recovery{Count: 2}} }
	}, func(h *house) {
		c := h.client()
		for _, body := range []string{"gone", "persistent", "passing"} {
			c.must(c.send(c.msg(news, body, func(m *message.Message) { m.Persistent = body != "passing" }), ""))
		}
		sub := func(s *ConsumerSpec) { s.Subscription, s.Retroactive = "sub", true }
		k := c.consume(news, sub)
		got := c.take()
		want(t, "at first", got, "persistent", "passing")
		c.closeConsumer(k, Delivery{})
		c.must(c.send(c.msg(news, "later"), ""))
		c.consume(news, sub)
		want(t, "again", c.take(), "persistent", "passing", "later")
		h.kill()
		h.holds(Place{ClientID: c.id, Subscription: "sub"}, "persistent", "later")
	})
}

// retain asks to have a message retained.
func retain(m *message.Message) { m.Added = map[string]any{retainProperty: "true"} }

// TestWhatIsRetainedSaysSo, and stays over a reload that retains, too.
func TestWhatIsRetainedSaysSo(t *testing.T) {
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	keeps := func(r Recovery) func(message.Destination) Policy {
		return func(message.Destination) Policy { return Policy{Recovery: r} }
	}
	inHouse(t, func(o *Options) { withProperties(o); o.Policy = keeps(Recovery{Retained: true}) }, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(news, "kept", retain), ""))
		for name, next := range map[string]struct {
			r    Recovery
			want []string
		}{"as before": {Recovery{Retained: true}, []string{"kept"}}, "and more": {Recovery{Retained: true, Count: 7}, []string{"kept"}}} {
			c.must(h.broker.Reload(h.t.Context(), Reload{Policy: keeps(next.r)}))
			k := c.consume(news, func(s *ConsumerSpec) { s.Retroactive = true })
			got := c.take()
			want(t, name, got, next.want...)
			if a := got[0].Message.Added; a[retainedProperty] != true || a[retainProperty] != false {
				t.Errorf("its properties are %v", a)
			}
			c.must(c.settle(func(ctx context.Context, id string, done func(error)) { c.c.CloseConsumer(ctx, id, -1, done) }, k))
		}
		c.must(h.broker.Reload(h.t.Context(), Reload{Policy: keeps(Recovery{Count: 1})}))
		c.must(h.broker.Reload(h.t.Context(), Reload{Policy: keeps(Recovery{Retained: true})}))
		c.consume(news, func(s *ConsumerSpec) { s.Retroactive = true })
		want(t, "a policy that retains nothing forgets it", c.take())
		c.c.Close(message.Closed, "", -1)
	})
}

func TestCensusCountsThoseWhoMeetADestination(t *testing.T) {
	t.Parallel()
	c := newCensus()
	d := func(name string) message.Destination { return message.Destination{Kind: message.Queue, Name: name} }
	for i, name := range []string{"A.B", "A.B", "A.C", "A.*", "A.C,X", ">"} {
		c.join(Party{ID: fmt.Sprint(i), Destination: d(name)})
	}
	if _, isNew := c.join(Party{ID: "0", Destination: d("A.B")}); isNew {
		t.Error("one was counted twice")
	}
	for name, want := range map[string]int{"A.B": 4, "A.C": 4, "A.*": 4, "X": 2, "Y": 1, "A.C,X": 4} {
		if got := c.count(d(name)); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if _, n, was := c.leave("3"); !was || n != 3 {
		t.Errorf("the pattern left: %v, %d", was, n)
	}
	if _, _, was := c.leave("3"); was {
		t.Error("it left twice")
	}
	if n := c.count(d("A.B")); n != 3 {
		t.Errorf("A.B: %d, want 3", n)
	}
}
