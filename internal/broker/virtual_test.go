package broker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

func topicNamed(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: name}
}

// builtIn is the virtual topic that ActiveMQ has without configuration.
var builtIn = VirtualTopic{Name: "VirtualTopic.>", Prefix: "Consumer.*."}

func intercepting(i Interceptors) func(*Options) {
	return func(o *Options) {
		o.Interceptors = i
		o.Properties = func(m *message.Message, name string) (selector.Value, bool) {
			v, ok := m.Added[name].(string)
			return selector.StringValue(v), ok
		}
	}
}

// region sets a property that selectors of the tests look at.
func region(name string) func(*message.Message) {
	return func(m *message.Message) { m.Added = map[string]any{"region": name} }
}

// make makes queues without consumers.
func (c *client) make(names ...string) {
	c.h.t.Helper()
	for _, n := range names {
		c.must(c.c.AddDestination(c.h.t.Context(), queueNamed(n)))
	}
}

func TestVirtualTopicHandsOnToItsQueues(t *testing.T) { // R-VT-01, R-VT-02
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		x := topicNamed("VirtualTopic.X")
		c := h.client()
		c.make("Consumer.A.VirtualTopic.X", "Consumer.B.VirtualTopic.X", "Consumer.B.VirtualTopic.Y", "VirtualTopic.X", "Consumer.A.B.VirtualTopic.X")
		durable := c.consume(x, func(s *ConsumerSpec) { s.Subscription = "d" })
		c.closeConsumer(durable, Delivery{})
		plain := c.consume(x)
		m := c.msg(x, "one")
		c.must(c.send(m, ""))
		c.must(c.c.Begin("tx"))
		c.must(c.send(c.msg(x, "two"), "tx"))
		c.must(c.settle(c.c.Commit, "tx"))
		c.must(c.send(c.msg(x, "passing", func(m *message.Message) { m.Persistent = false }), ""))
		c.must(c.send(c.msg(topicNamed("Other.X"), "other"), ""))
		want(t, "the topic itself", c.take(), "one", "two", "passing")
		c.closeConsumer(plain, Delivery{})
		h.holds(At(queueNamed("Consumer.A.VirtualTopic.X")), "one", "two", "passing")
		h.kill()
		for _, a := range []string{"A", "B"} {
			h.holds(At(queueNamed("Consumer."+a+".VirtualTopic.X")), "one", "two")
		}
		h.holds(Place{ClientID: c.id, Subscription: "d"}, "one", "two")
		for _, n := range []string{"Consumer.B.VirtualTopic.Y", "VirtualTopic.X", "Consumer.A.B.VirtualTopic.X"} {
			h.holds(At(queueNamed(n)))
		}
		c = h.client()
		k := c.consume(queueNamed("Consumer.A.VirtualTopic.X"))
		got := c.take()
		if got[0].Message.Destination.Name != "Consumer.A.VirtualTopic.X" || got[0].Message.OriginalDestination != x || got[0].Message.ID != m.ID {
			t.Errorf("copy: %+v", got[0].Message)
		}
		c.closeConsumer(k, Delivery{})
	})
}

func TestQueuesOfAVirtualTopicComeAndGo(t *testing.T) { // R-VT-01: existing queues only
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		x := topicNamed("VirtualTopic.X")
		c := h.client()
		c.must(c.send(c.msg(x, "nobody"), ""))
		a := queueNamed("Consumer.A.VirtualTopic.X")
		k := c.consume(a)
		c.must(c.send(c.msg(x, "seen"), ""))
		want(t, "after it came", c.take(), "seen")
		c.closeConsumer(k, Delivery{})
		c.must(c.c.RemoveDestination(h.t.Context(), a))
		c.must(c.send(c.msg(x, "gone"), ""))
		c.consume(a)
		want(t, "after it went", c.take())
	})
}

// A consumer of a pattern of such queues makes one queue for all its topics, as in
// ActiveMQ.
func TestWildcardConsumerOfVirtualTopics(t *testing.T) { // UT: VirtualTopicWildcardTest
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		c := h.client()
		k := c.consume(queueNamed("Consumer.A.VirtualTopic.>"))
		c.must(c.send(c.msg(topicNamed("VirtualTopic.X"), "x"), ""))
		c.must(c.send(c.msg(topicNamed("VirtualTopic.Y.Z"), "y"), ""))
		want(t, "all topics", c.take(), "x", "y")
		c.closeConsumer(k, Delivery{})
		h.restart()
		c = h.client()
		c.must(c.send(c.msg(topicNamed("VirtualTopic.X"), "later"), ""))
		c.consume(queueNamed("Consumer.A.VirtualTopic.>"))
		want(t, "after a start", c.take(), "x", "y", "later")
	})
}

func TestSelectorAwareVirtualTopic(t *testing.T) { // UT: VirtualTopicSelectorTest
	t.Parallel()
	v := builtIn
	v.SelectorAware = true
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{v}}), func(h *house) {
		x := topicNamed("VirtualTopic.X")
		c := h.client()
		c.make("Consumer.Idle.VirtualTopic.X")
		c.consume(queueNamed("Consumer.A.VirtualTopic.X"), func(s *ConsumerSpec) { s.Selector = "region = 'eu'" })
		us := c.consume(queueNamed("Consumer.A.VirtualTopic.X"), func(s *ConsumerSpec) { s.Selector = "region = 'us'" })
		c.consume(queueNamed("Consumer.B.VirtualTopic.X"))
		c.must(c.send(c.msg(x, "eu", region("eu")), ""))
		c.must(c.send(c.msg(x, "us", region("us")), ""))
		c.must(c.send(c.msg(x, "cn", region("cn")), ""))
		got := texts(c.take())
		slices.Sort(got)
		if fmt.Sprint(got) != "[cn eu eu us us]" {
			t.Errorf("delivered: %v", got)
		}
		c.closeConsumer(us, Delivery{})
		c.must(c.send(c.msg(x, "us", region("us")), ""))
		want(t, "B alone", c.take(), "us")
		h.holds(At(queueNamed("Consumer.Idle.VirtualTopic.X")))
		if n := h.depth("Consumer.A.VirtualTopic.X"); n != 2 { // both out
			t.Errorf("A has %d", n)
		}
	})
}

func TestVirtualTopicKeepsTheDestination(t *testing.T) { // setOriginalDestination=false (R-VT-02), a postfix
	t.Parallel()
	v := VirtualTopic{Name: "News.>", Postfix: ".queue", KeepDestination: true}
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{v}}), func(h *house) {
		c := h.client()
		q := queueNamed("News.EU.queue")
		k := c.consume(q)
		c.must(c.send(c.msg(topicNamed("News.EU"), "n"), ""))
		got := c.take()
		want(t, "copy", got, "n")
		if m := got[0].Message; m.Destination != topicNamed("News.EU") || !m.OriginalDestination.IsZero() || got[0].Destination != q {
			t.Errorf("copy: %+v by %s", m, got[0].Destination)
		}
		// Its dead letter goes home to the queue that failed, and to no other (R-VT-04, done better).
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		c.take()
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("redrive", o, err, Outcome{Taken: 1})
		want(t, "back", c.take(), "n")
	})
}

func TestCompositeDestinations(t *testing.T) { // R-VT-05
	to := func(names ...string) []Forward {
		var all []Forward
		for _, n := range names {
			n, otherwise := strings.CutSuffix(n, " otherwise")
			n, sel, _ := strings.Cut(n, " if ")
			d, _ := message.ParseDestination(n, message.Queue)
			all = append(all, Forward{Destination: d, Selector: sel, Otherwise: otherwise})
		}
		return all
	}
	for name, tt := range map[string]struct {
		composite Composite
		region    string
		want      map[string]string // queue: destination and original destination of the copy
	}{
		"queue, forward only": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, ForwardTo: to("F.A", "F.B")},
			want:      map[string]string{"F.A": "queue://F.A queue://FAN", "F.B": "queue://F.B queue://FAN"},
		},
		"queue that keeps a copy": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardTo: to("F.A")},
			want:      map[string]string{"F.A": "queue://F.A queue://FAN", "FAN": "queue://FAN "},
		},
		"a pattern": {
			composite: Composite{Destination: queueNamed("F*N"), ForwardOnly: true, ForwardTo: to("F.A")},
			want:      map[string]string{"FAN": "queue://FAN "}, // * is a whole step
		},
		"filters": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, ForwardTo: to("F.A if region = 'eu'", "F.B if region = 'us'")},
			region:    "us",
			want:      map[string]string{"F.B": "queue://F.B queue://FAN"},
		},
		"no filter fits": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, ForwardTo: to("F.A if region = 'eu'")},
			region:    "us",
		},
		"no filter fits, sendWhenNotMatched": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, SendWhenNotMatched: true, ForwardTo: to("F.A if region = 'eu'")},
			region:    "us",
			want:      map[string]string{"FAN": "queue://FAN "},
		},
		"a filter fits, sendWhenNotMatched": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, SendWhenNotMatched: true, ForwardTo: to("F.A if region = 'eu'")},
			region:    "eu",
			want:      map[string]string{"F.A": "queue://F.A queue://FAN"},
		},
		"exclusive diverts take it": { // R-HQ-111
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, SendWhenNotMatched: true,
				ForwardTo: to("F.A otherwise", "F.B if region = 'us'", "F.C if region <> 'eu'", "F.D if region = 'eu'")},
			region: "us",
			want:   map[string]string{"F.B": "queue://F.B queue://FAN", "F.C": "queue://F.C queue://FAN"},
		},
		"no exclusive divert takes it": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, SendWhenNotMatched: true,
				ForwardTo: to("F.A otherwise", "F.B if region = 'eu'", "F.C if region = 'eu' otherwise")},
			region: "us",
			want:   map[string]string{"F.A": "queue://F.A queue://FAN", "FAN": "queue://FAN "},
		},
		"by a topic and its virtual queues": {
			composite: Composite{Destination: queueNamed("FAN"), ForwardOnly: true, ForwardTo: to("topic://VirtualTopic.X", "F.A")},
			want:      map[string]string{"Consumer.A.VirtualTopic.X": "queue://Consumer.A.VirtualTopic.X topic://VirtualTopic.X", "F.A": "queue://F.A queue://FAN"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}, Composites: []Composite{tt.composite}}), func(h *house) {
				c := h.client()
				c.make("Consumer.A.VirtualTopic.X")
				c.must(c.send(c.msg(queueNamed("FAN"), "m", region(tt.region)), ""))
				for range 2 {
					got := map[string]string{}
					for _, q := range h.broker.Queues() {
						page, _, err := h.broker.Look(h.t.Context(), At(q.Name), Cursor{}, 10)
						c.must(err)
						for i := range page {
							m, err := h.broker.Read(&page[i])
							c.must(err)
							got[q.Name.Name] += m.Destination.String() + " " + m.OriginalDestination.String()
						}
					}
					if fmt.Sprint(got) != fmt.Sprint(tt.want) {
						t.Errorf("got %v, want %v", got, tt.want)
					}
					h.kill()
				}
			})
		})
	}
}

// Composites may lead to composites, and several ways to one queue are one copy.
func TestCompositesInARow(t *testing.T) {
	t.Parallel()
	all := Interceptors{Composites: []Composite{
		{Destination: topicNamed("T"), ForwardOnly: true, ForwardTo: []Forward{{Destination: queueNamed("A")}, {Destination: queueNamed("B")}}},
		{Destination: queueNamed("A"), ForwardTo: []Forward{{Destination: queueNamed("B")}}},
	}}
	inHouse(t, intercepting(all), func(h *house) {
		c := h.client()
		c.consume(topicNamed("T"))
		c.must(c.send(c.msg(topicNamed("T"), "t"), ""))
		c.must(c.send(c.msg(queueNamed("A,B"), "both"), ""))
		want(t, "the topic keeps nothing", c.take())
		h.holds(At(queueNamed("A")), "t", "both")
		h.holds(At(queueNamed("B")), "t", "both")
	})
}

// What the connection has sent to a queue directly stays in front of what it sends
// by way of a topic.
func TestFannedOutStaysInOrder(t *testing.T) {
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		c := h.client()
		a := queueNamed("Consumer.A.VirtualTopic.X")
		c.make(a.Name)
		answered := make(chan error, 100)
		var want []string
		for i := range 50 {
			to := a
			if i%3 == 0 {
				to = topicNamed("VirtualTopic.X")
			}
			want = append(want, fmt.Sprint(i))
			c.c.Send(h.t.Context(), c.msg(to, fmt.Sprint(i)), "", func(err error) { answered <- err })
		}
		for range 50 {
			c.must(<-answered)
		}
		h.holds(At(a), want...)
	})
}

func TestCirclesAreRefused(t *testing.T) {
	t.Parallel()
	forward := func(from message.Destination, to ...message.Destination) Composite {
		c := Composite{Destination: from}
		for _, d := range to {
			c.ForwardTo = append(c.ForwardTo, Forward{Destination: d})
		}
		return c
	}
	a, b := queueNamed("A"), queueNamed("B")
	for name, tt := range map[string]struct {
		i    Interceptors
		says string
	}{
		"to itself":                {Interceptors{Composites: []Composite{forward(a, a)}}, "queue://A to queue://A"},
		"a pattern covers its own": {Interceptors{Composites: []Composite{forward(queueNamed(">"), b)}}, "queue://> to queue://B"},
		"two":                      {Interceptors{Composites: []Composite{forward(a, b), forward(b, queueNamed("C"), a)}}, "in a circle"},
		"a bad selector":           {Interceptors{Composites: []Composite{{Destination: a, ForwardTo: []Forward{{Destination: b, Selector: "x ="}}}}}, "composite queue://A, target queue://B"},
		"a pattern as the target":  {Interceptors{Composites: []Composite{forward(a, queueNamed("B.>"))}}, "no single destination"},
		"no prefix":                {Interceptors{VirtualTopics: []VirtualTopic{{Name: ">"}}}, "neither prefix nor postfix"},
	} {
		if _, err := tt.i.compile(); !errors.Is(err, message.ErrInvalid) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, tt.says)
		}
	}
	round := Interceptors{VirtualTopics: []VirtualTopic{builtIn}, Composites: []Composite{forward(queueNamed("Consumer.A.VirtualTopic.X"), topicNamed("VirtualTopic.X"))}}
	inHouse(t, intercepting(round), func(h *house) { // it shows when a message comes
		c := h.client()
		c.make("Consumer.A.VirtualTopic.X")
		if err := c.send(c.msg(topicNamed("VirtualTopic.X"), "m"), ""); !errors.Is(err, message.ErrInvalid) {
			t.Errorf("sent in a circle: %v", err)
		}
	})
}

func TestC11FanOutOfTheConfiguration(t *testing.T) { // R-VT-03, R-EDGE-03: every copy, by virtual topic and compositeQueue
	t.Parallel()
	own := redelivery.IndividualStrategy()
	own.QueuePrefix = "DLQ."
	fan := func(name string, to ...string) Composite {
		c := Composite{Destination: queueNamed(name), ForwardOnly: true}
		for _, n := range to {
			c.ForwardTo = append(c.ForwardTo, Forward{Destination: queueNamed(n)})
		}
		return c
	}
	set := intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn},
		Composites: []Composite{fan("FAN", "F.A", "F.B"), fan("FAN.TO.SHARED", "SHARED.X", "SHARED.Y")}})
	inHouse(t, func(o *Options) {
		set(o)
		o.Policy = func(d message.Destination) Policy {
			s := own
			if strings.HasPrefix(d.Name, "SHARED.") {
				s = redelivery.SharedStrategy()
			}
			return Policy{Rules: redelivery.Rules{DeadLetter: s}}
		}
	}, func(h *house) {
		c := h.client()
		failing := []string{"Consumer.A.VirtualTopic.T", "Consumer.B.VirtualTopic.T", "F.A", "F.B", "SHARED.X", "SHARED.Y"}
		c.make(failing...)
		c.must(c.send(c.msg(topicNamed("VirtualTopic.T"), "t"), ""))
		c.must(c.send(c.msg(queueNamed("FAN"), "f"), ""))
		c.must(c.send(c.msg(queueNamed("FAN.TO.SHARED"), "s"), ""))
		dead := map[string]int64{"DLQ.Consumer.A.VirtualTopic.T": 1, "DLQ.Consumer.B.VirtualTopic.T": 1, "DLQ.F.A": 1, "DLQ.F.B": 1, "ActiveMQ.DLQ": 2}
		for round := range 2 {
			for _, name := range failing {
				k := c.consume(queueNamed(name))
				got := c.take()
				if len(got) != 1 {
					t.Fatalf("round %d at %s: %v", round, name, texts(got))
				}
				c.failAsJava(k, got[0])
				c.closeConsumer(k, got[0])
			}
			for name, n := range dead {
				if d := h.depth(name); d != n {
					t.Errorf("round %d: %s has %d, want %d", round, name, d, n)
				}
				o, err := h.broker.Redrive(h.t.Context(), At(queueNamed(name)), Selection{})
				h.came("redrive of "+name, o, err, Outcome{Taken: int(n)})
			}
			for _, name := range failing {
				if d := h.depth(name); d != 1 {
					t.Errorf("round %d: %d back at %s", round, d, name)
				}
			}
			for _, name := range []string{"FAN", "FAN.TO.SHARED"} {
				if d := h.depth(name); d != 0 {
					t.Errorf("round %d: %d at %s", round, d, name)
				}
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A dead letter is handed on where its queue is a composite, and where it failed is
// still what it says (R-DLQ-09). The last move meets a queue that is about to read a
// page: what it is told to expect, and has not heard yet, must not come twice.
func TestDeadLettersAreHandedOn(t *testing.T) {
	t.Parallel()
	all := Interceptors{Composites: []Composite{{Destination: dlqAt.Queue, ForwardTo: []Forward{
		{Destination: queueNamed("ALARMS")}, {Destination: queueNamed("NEVER"), Selector: "region = 'mars'"}}}}}
	inHouse(t, intercepting(all), func(h *house) {
		h.deadLetters(parcels, 2)
		h.holds(dlqAt, "m1", "m2")
		h.holds(At(queueNamed("ALARMS")), "m1", "m2")
		h.kill()
		o, err := h.broker.Redrive(h.t.Context(), At(queueNamed("ALARMS")), Selection{Max: 1})
		h.came("from the composite's target", o, err, Outcome{Taken: 1})
		h.holds(At(parcels), "m1")
		o, err = h.broker.Move(h.t.Context(), At(parcels), dlqAt.Queue, Selection{})
		h.came("move to a composite", o, err, Outcome{Taken: 1})
		h.holds(At(queueNamed("ALARMS")), "m2", "m1")
	})
}

func TestDestinationsAtStart(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *Options) {
		o.Destinations = []message.Destination{queueNamed("A"), topicNamed("T"), queueNamed("ActiveMQ.DLQ")}
		o.Policy = func(d message.Destination) Policy {
			return Policy{Rules: redelivery.Rules{DeadLetterQueue: d.Name == "ActiveMQ.DLQ"}}
		}
	}, func(h *house) {
		for range 2 {
			if q := h.broker.Queues(); len(q) != 2 || q[0].Name != queueNamed("A") {
				t.Errorf("queues: %+v", q)
			}
			if got := h.broker.Topics(); len(got) != 1 || got[0] != topicNamed("T") {
				t.Errorf("topics: %v", got)
			}
			h.restart()
		}
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("declared with isDLQ (R-DLQ-21)", o, err, Outcome{})
	})
}

// What a client sends once more, on the same connection or after a fail-over, is not
// fanned out twice, nor forgotten half way (C21).
func TestC21ResentToATopicIsNotFannedOutTwice(t *testing.T) {
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		x := topicNamed("VirtualTopic.X")
		c := h.client()
		c.make("Consumer.A.VirtualTopic.X", "Consumer.B.VirtualTopic.X")
		k := c.consume(x, func(s *ConsumerSpec) { s.Subscription = "s" })
		c.closeConsumer(k, Delivery{})
		places := []Place{At(queueNamed("Consumer.A.VirtualTopic.X")), At(queueNamed("Consumer.B.VirtualTopic.X")), {ClientID: c.id, Subscription: "s"}}
		check := func(what string, want ...string) {
			h.t.Helper()
			for _, p := range places {
				if got := h.all(p); !slices.Equal(got, want) {
					h.t.Errorf("%s: %s has %q, want %q", what, p, got, want)
				}
			}
		}
		one, two := c.msg(x, "1"), c.msg(x, "2")
		c.must(c.send(one, ""))
		c.must(c.send(one, ""))
		check("on the same connection", "1")
		c.must(c.send(two, ""))
		for _, tt := range []struct {
			name string
			lose func()
		}{
			{"the connection is lost", func() { c.c.Close(message.ConnectionLost, "", queue.UnknownLast) }},
			{"the power fails", h.kill},
			{"the broker restarts", h.restart},
		} {
			tt.lose()
			conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Reconnect: true, Kick: func(error) {}}, c)
			if err != nil {
				h.t.Fatal(err)
			}
			c.c = conn
			c.must(c.send(two, ""))
			check(tt.name, "1", "2")
		}
		if n := h.broker.Counted(Suppressed); n != 1 { // since the last start
			t.Errorf("%d counted as suppressed", n)
		}
		c.make("Consumer.C.VirtualTopic.X") // it came between: the one that resends is none the wiser
		c.must(c.send(c.msg(x, "3"), ""))
		check("the next", "1", "2", "3")
		c.c.Close(message.Closed, "", -1)
		h.holds(At(queueNamed("Consumer.C.VirtualTopic.X")), "3")
	})
}

// Of several messages that a client sends once more each was sent before, also where a
// queue came to be in between: that gets none of them, as it was not there (C21).
func TestC21ResentAfterAQueueCame(t *testing.T) {
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		x := topicNamed("VirtualTopic.X")
		c := h.client()
		c.make("Consumer.B.VirtualTopic.X")
		all := []*message.Message{c.msg(x, "1"), c.msg(x, "2"), c.msg(x, "3")}
		for _, m := range all[:2] {
			c.must(c.send(m, ""))
		}
		c.make("Consumer.A.VirtualTopic.X", "Consumer.C.VirtualTopic.X")
		c.c.Close(message.ConnectionLost, "", queue.UnknownLast)
		conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Reconnect: true, Kick: func(error) {}}, c)
		if err != nil {
			h.t.Fatal(err)
		}
		c.c = conn
		for _, m := range all {
			c.must(c.send(m, ""))
		}
		h.holds(At(queueNamed("Consumer.A.VirtualTopic.X")), "3")
		h.holds(At(queueNamed("Consumer.B.VirtualTopic.X")), "1", "2", "3")
		h.holds(At(queueNamed("Consumer.C.VirtualTopic.X")), "3")
	})
}

// A connection can be lost while what it has sent is on its way to the disk: its client
// comes back before that is there, and sends it once more (C21).
func TestC21ResentWhileTheFirstIsOnItsWay(t *testing.T) {
	t.Parallel()
	inHouse(t, intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}}), func(h *house) {
		x := topicNamed("VirtualTopic.X")
		c := h.client()
		c.make("Consumer.A.VirtualTopic.X")
		k := c.consume(x, func(s *ConsumerSpec) { s.Subscription = "s" })
		c.closeConsumer(k, Delivery{})
		places := []Place{At(queueNamed("Consumer.A.VirtualTopic.X")), {ClientID: c.id, Subscription: "s"}}
		for round := range 3 {
			one := c.msg(x, strconv.Itoa(round))
			first := c.begin(one)
			c.c.Close(message.ConnectionLost, "", queue.UnknownLast)
			conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Reconnect: true, Kick: func(error) {}}, c)
			if err != nil {
				h.t.Fatal(err)
			}
			c.c = conn
			c.must(c.send(one, ""))
			first.went(t, "the first")
		}
		for _, p := range places {
			if got, want := h.all(p), []string{"0", "1", "2"}; !slices.Equal(got, want) {
				t.Errorf("%s has %q, want %q", p, got, want)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// A client consumes from several queues, or topics, at once: by their names, or by a
// pattern, which covers those that come later, too (R-MAP-03, R-MAP-05).
func TestConsumersOfSeveralDestinations(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		for name, tt := range map[string]struct {
			consumed message.Destination
			sent     []message.Destination
		}{
			"queues by name":            {queueNamed("A,B"), []message.Destination{queueNamed("A"), queueNamed("B")}},
			"queues by pattern":         {queueNamed("P.*"), []message.Destination{queueNamed("P.1"), queueNamed("P.2")}},
			"by names and a pattern":    {queueNamed("C,R.>"), []message.Destination{queueNamed("C"), queueNamed("R.1.2")}},
			"topics by name":            {topicNamed("T,U"), []message.Destination{topicNamed("T"), topicNamed("U")}},
			"topics by pattern":         {topicNamed("V.>"), []message.Destination{topicNamed("V.1"), topicNamed("V.2.3")}},
			"queues sent to as a list":  {queueNamed("X,Y"), []message.Destination{queueNamed("X,Y"), queueNamed("Y")}},
			"a list of queue and topic": {topicNamed("W"), []message.Destination{queueNamed("Z,topic://W"), topicNamed("W")}},
		} {
			c := h.client()
			k := c.consume(tt.consumed)
			for i, to := range tt.sent {
				p.must(p.send(p.msg(to, fmt.Sprint(i)), ""))
			}
			got := c.take()
			var bodies []string
			for _, d := range got {
				bodies = append(bodies, string(d.Message.Body))
				c.must(c.ack(queue.Individual, k, d, d, 1, ""))
			}
			slices.Sort(bodies)
			want := []string{"0", "1"}
			if name == "queues sent to as a list" {
				want = []string{"0", "0", "1"}
			}
			if !slices.Equal(bodies, want) {
				t.Errorf("%s: %v, want %v", name, bodies, want)
			}
			c.c.Close(message.Closed, "", -1)
		}
		h.holds(At(queueNamed("Z")), "0")
		for _, q := range h.broker.Queues() {
			if q.Name.Name != "Z" && q.Messages != 0 {
				t.Errorf("%s still has %+v", q.Name, q.Stats)
			}
		}
		c := h.client()
		err := c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: "mixed", Destination: queueNamed("A,topic://T"), Prefetch: 1})
		if !errors.Is(err, message.ErrInvalid) {
			t.Errorf("a mixture: %v", err)
		}
	})
}

// Who names a queue of a virtual topic wrongly, mostly with a dot in the application's name, waits
// for messages in vain: the log says so.
func TestQueueNamedNearlyLikeOneOfAVirtualTopic(t *testing.T) {
	t.Parallel()
	i := interceptors{virtual: []VirtualTopic{builtIn, {Name: "NEWS.>", Prefix: "VQ.", Postfix: ".all"}, {Name: ">", Prefix: "Any.*."}, {Name: "STAR.>", Prefix: "*."}}}
	for queue, want := range map[string][2]string{
		"Consumer.A.VirtualTopic.X":      {},
		"Consumer.A.VirtualTopic.X.Y":    {},
		"Consumer.A.VirtualTopic.>":      {},
		"Consumer.*.VirtualTopic.X":      {},
		"Consumer.my.app.VirtualTopic.X": {"VirtualTopic.X", "Consumer.*.VirtualTopic.X"},
		"Consumer.VirtualTopic.X":        {"VirtualTopic.X", "Consumer.*.VirtualTopic.X"},
		"Consumer.A":                     {},
		"Consumers.A.B.VirtualTopic.X":   {},
		"VQ.NEWS.x.all":                  {},
		"VQ.a.NEWS.x.all":                {"NEWS.x", "VQ.NEWS.x.all"},
		"VQ.a.NEWS.x":                    {},
		"Any.thing":                      {},
		"A.B.STAR.x":                     {},
		"ORDERS":                         {},
	} {
		if topic, pattern := i.nearly(queue); topic != want[0] || pattern != want[1] {
			t.Errorf("%s: %q, %q, want %q", queue, topic, pattern, want)
		}
	}
}
