package broker

import (
	"errors"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
)

// bounded gives every destination a policy.
func bounded(p Policy) func(*Options) {
	return func(o *Options) {
		o.Policy = func(message.Destination) Policy { return p }
		o.OnlyDeclared = p.OnlyDeclared
	}
}

// TestMaxConsumers refuses one consumer more than there may be, and lets it in when
// another has gone (max-consumers). A browser is none, and a pattern's consumer is
// refused whole.
func TestMaxConsumers(t *testing.T) {
	inHouse(t, bounded(Policy{MaxConsumers: 1}), func(h *house) {
		c := h.client()
		first := c.consume(orders)
		another := func(id string, d message.Destination, set ...func(*ConsumerSpec)) error {
			spec := ConsumerSpec{ID: c.id + ":1:" + id, Session: c.id + ":1", Destination: d, Prefetch: 10}
			for _, f := range set {
				f(&spec)
			}
			return c.c.Subscribe(h.t.Context(), spec)
		}
		if err := another("90", orders); !errors.Is(err, message.ErrOverLimit) || !strings.Contains(err.Error(), "max-consumers") {
			t.Errorf("the second: %v", err)
		}
		c.must(another("91", orders, func(s *ConsumerSpec) { s.Browser = true }))
		c.make("SPARE")
		if err := another("92", queueNamed(">")); !errors.Is(err, message.ErrOverLimit) {
			t.Errorf("a pattern: %v", err)
		}
		c.must(another("93", queueNamed("SPARE"))) // the pattern's consumer has left nothing behind
		c.closeConsumer(first, Delivery{})
		c.must(another("94", orders))
		c.c.Close(message.Closed, "", -1)
	})
}

// TestRing keeps the newest messages, also over a crash (ring-size, R-HQ-98).
func TestRing(t *testing.T) {
	inHouse(t, bounded(Policy{RingSize: 2}), func(h *house) {
		c := h.client()
		for _, id := range []string{"1", "2", "3"} {
			c.must(c.send(c.msg(orders, id), ""))
		}
		h.holds(At(orders), "2", "3")
		h.kill()
		c = h.client()
		h.holds(At(orders), "2", "3")
		c.must(c.send(c.msg(orders, "4"), ""))
		h.holds(At(orders), "3", "4")
		h.kill()
		h.holds(At(orders), "3", "4")
	})
}

// TestPurgeAlone keeps nothing while there is no consumer (purge-on-no-consumers,
// R-HQ-97), but for what a crash leaves to the consumers that come back.
func TestPurgeAlone(t *testing.T) {
	inHouse(t, bounded(Policy{PurgeAlone: true}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "1"), ""))
		h.holds(At(orders))
		id := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 1 })
		for _, body := range []string{"2", "3", "4"} {
			c.must(c.send(c.msg(orders, body), ""))
		}
		want(t, "the consumer", c.take(), "2")
		h.kill()
		h.holds(At(orders), "2", "3", "4")
		c = h.client()
		id = c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 1 })
		c.closeConsumer(id, Delivery{})
		h.holds(At(orders))
		h.kill()
		h.holds(At(orders))
	})
}

// TestQueueFilter lets in what a queue's filter selects; what it does not is dropped
// and told, or becomes a dead letter with send-to-dla-on-no-route. Dead letters and
// what is moved come in all the same.
func TestQueueFilter(t *testing.T) {
	filtered := intercepting(Interceptors{Filters: []Filter{{Destination: orders, Selector: "region = 'eu'"}}})
	inHouse(t, filtered, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "eu", region("eu")), ""))
		c.must(c.send(c.msg(orders, "us", region("us")), ""))
		tx := "t"
		c.must(c.c.Begin(tx))
		c.must(c.send(c.msg(orders, "in a transaction", region("us")), tx))
		c.must(c.settle(c.c.Commit, tx))
		h.holds(At(orders), "eu")
		h.mu.Lock()
		told := 0
		for _, e := range h.events {
			if e.Kind == Discarded && e.Destination == orders && strings.Contains(e.Text, "filter") {
				told++
			}
		}
		h.mu.Unlock()
		if told != 2 {
			t.Errorf("%d told", told)
		}
		c.must(c.send(c.msg(parcels, "moved", region("us")), ""))
		o, err := h.broker.Move(h.t.Context(), At(parcels), orders, Selection{})
		h.came("move", o, err, Outcome{Taken: 1})
		h.holds(At(orders), "eu", "moved")
	})
}

// TestOnlyDeclared refuses what is not there (auto-create-queues,
// auto-create-addresses), but for temporary destinations and advisories.
func TestOnlyDeclared(t *testing.T) {
	inHouse(t, func(o *Options) {
		bounded(Policy{OnlyDeclared: true})(o)
		o.Destinations = []message.Destination{orders, topicNamed("NEWS")}
	}, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "1"), ""))
		c.consume(topicNamed("NEWS"))
		c.consume(topicNamed("ActiveMQ.Advisory.TempQueue"))
		temp := message.Destination{Kind: message.TempQueue, Name: c.id + ":1"}
		c.must(c.c.AddDestination(h.t.Context(), temp))
		c.must(c.send(c.msg(temp, "2"), ""))
		for name, err := range map[string]error{
			"send":       c.send(c.msg(queueNamed("OTHER"), "3"), ""),
			"to a topic": c.send(c.msg(topicNamed("OTHER"), "3"), ""),
			"make":       c.c.AddDestination(h.t.Context(), queueNamed("OTHER")),
			"produce":    c.c.MayProduce(queueNamed("OTHER")),
			"consume":    c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:90", Session: c.id + ":1", Destination: queueNamed("OTHER"), Prefetch: 1}),
		} {
			if !errors.Is(err, message.ErrNotFound) || !strings.Contains(err.Error(), "does not exist") {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.must(h.broker.Reload(h.t.Context(), Reload{}))
		c.must(c.send(c.msg(queueNamed("OTHER"), "3"), ""))
		c.c.Close(message.Closed, "", -1)
	})
}

// permits are rights that list what may be done, by operation.
type permits map[access.Operation]bool

func (p permits) Allows(_ []string, op access.Operation, _ message.Destination) bool { return p[op] }

// TestRightsOnSubscriptions asks for the rights that only files of HornetQ and
// Artemis tell apart (R-HQ-128, R-HQ-137).
func TestRightsOnSubscriptions(t *testing.T) {
	news := topicNamed("NEWS")
	for name, tt := range map[string]struct {
		may   permits
		do    func(c *client) error
		fails bool
	}{
		"consume":                            {permits{access.Read: true}, func(c *client) error { return c.subscribed(orders, "") }, false},
		"a subscription needs another right": {permits{access.Read: true}, func(c *client) error { return c.subscribed(news, "") }, true},
		"a subscription":                     {permits{access.Read: true, access.Subscribe: true}, func(c *client) error { return c.subscribed(news, "") }, false},
		"a durable one needs another again":  {permits{access.Read: true, access.Subscribe: true}, func(c *client) error { return c.subscribed(news, "s") }, true},
		"a durable one":                      {permits{access.Read: true, access.SubscribeDurably: true}, func(c *client) error { return c.subscribed(news, "s") }, false},
		"browse":                             {permits{access.Browse: true}, func(c *client) error { return c.subscribed(orders, "browse") }, false},
		"browsing is not consuming":          {permits{access.Read: true}, func(c *client) error { return c.subscribed(orders, "browse") }, true},
		"remove":                             {permits{access.Remove: true}, func(c *client) error { return c.c.RemoveDestination(c.h.t.Context(), orders) }, false},
		"who may create may not remove":      {permits{access.Create: true}, func(c *client) error { return c.c.RemoveDestination(c.h.t.Context(), orders) }, true},
		"unsubscribe, without the right":     {permits{access.Read: true}, func(c *client) error { return c.c.Unsubscribe(c.h.t.Context(), "old") }, true},
		"unsubscribe":                        {permits{access.Unsubscribe: true}, func(c *client) error { return c.c.Unsubscribe(c.h.t.Context(), "old") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, func(o *Options) { o.Destinations = []message.Destination{orders, news} }, func(h *house) {
				c := h.client()
				c.must(c.subscribed(news, "old"))
				c.closeConsumer(c.id+":1:90", Delivery{})
				p, err := access.New(access.Options{Anonymous: true, Settings: tt.may}).Authenticate("", "", false)
				c.must(err)
				c.c.info.Principal = p
				if err := tt.do(c); (err != nil) != tt.fails || err != nil && !errors.Is(err, message.ErrDenied) {
					t.Errorf("%v", err)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// subscribed opens a consumer: a browser, or one of a durable subscription of that name.
func (c *client) subscribed(d message.Destination, name string) error {
	spec := ConsumerSpec{ID: c.id + ":1:90", Session: c.id + ":1", Destination: d, Prefetch: 10, Browser: name == "browse"}
	if !spec.Browser {
		spec.Subscription = name
	}
	return c.c.Subscribe(c.h.t.Context(), spec)
}

// TestLastValue keeps the newest message of each value, also over a crash (R-HQ-96).
func TestLastValue(t *testing.T) {
	inHouse(t, func(o *Options) {
		intercepting(Interceptors{})(o)
		bounded(Policy{LastValue: "region"})(o)
	}, func(h *house) {
		c := h.client()
		send := func(body, value string) { c.must(c.send(c.msg(orders, body, region(value)), "")) }
		send("1", "eu")
		send("2", "us")
		send("3", "eu")
		h.holds(At(orders), "2", "3")
		h.kill()
		c = h.client()
		send("4", "us")
		h.holds(At(orders), "3", "4")
		c.must(c.c.Begin("t"))
		c.must(c.send(c.msg(orders, "5", region("eu")), "t"))
		h.holds(At(orders), "3", "4")
		c.must(c.settle(c.c.Commit, "t"))
		h.holds(At(orders), "4", "5")
		h.kill()
		h.holds(At(orders), "4", "5")
	})
}
