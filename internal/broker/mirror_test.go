package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// mirror is the mirror that ActiveMQ has where nothing more is said than that there is one.
var mirror = Mirror{Prefix: "VirtualTopic.Mirror.", Temporary: true}

// tapped has all queues mirrored, beside the built-in virtual topic.
func tapped(more ...Composite) func(*Options) {
	return intercepting(Interceptors{VirtualTopics: []VirtualTopic{builtIn}, Composites: more, Mirrors: []Mirror{mirror}})
}

// mirrorOf is a queue's topic.
func mirrorOf(queue string) message.Destination { return mirror.of(queue) }

// watch subscribes to all mirror topics. What it gets is told by deliveries.
func (c *client) watch() string { return c.consume(topicNamed("VirtualTopic.Mirror.>")) }

// mirrored lists what a consumer of mirror topics got: "Q m1", sorted.
func (c *client) mirrored(consumer string) []string {
	c.h.t.Helper()
	var all []string
	for _, d := range c.take() {
		if d.Consumer == consumer {
			all = append(all, strings.TrimPrefix(d.Message.Destination.Name, mirror.Prefix)+" "+string(d.Message.Body))
		}
	}
	slices.Sort(all)
	return all
}

// durably subscribes durably to a topic, and leaves again.
func (c *client) durably(topic message.Destination, name string) Place {
	c.h.t.Helper()
	k := c.consume(topic, func(s *ConsumerSpec) { s.Subscription = name })
	c.closeConsumer(k, Delivery{})
	return Place{ClientID: c.id, Subscription: name}
}

func wantMirrored(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: mirrored %q, want %q", what, got, want)
	}
}

// What is sent to a queue, with and without a transaction, is also sent to its topic:
// to consumers, durable subscriptions, and queues of the virtual topic that the topic is.
// All is one batch, with the body once, and the queue has what it has without mirrors.
func TestQueuesAreMirrored(t *testing.T) {
	t.Parallel()
	inHouse(t, tapped(), func(h *house) {
		q, app := queueNamed("Q"), queueNamed("Consumer.A.VirtualTopic.Mirror.Q")
		c := h.client()
		durable := c.durably(mirrorOf("Q"), "d")
		c.make(app.Name)
		k := c.consume(mirrorOf("Q"))
		m := c.msg(q, "one")
		c.must(c.send(m, ""))
		if n := h.stored('m'); n != 1 {
			t.Errorf("%d bodies are stored", n)
		}
		c.must(c.c.Begin("tx"))
		c.must(c.send(c.msg(q, "two"), "tx"))
		want(t, "before the commit", c.take(), "one")
		c.must(c.settle(c.c.Commit, "tx"))
		c.must(c.c.Begin("undone"))
		c.must(c.send(c.msg(q, "none"), "undone"))
		c.must(c.settle(c.c.Rollback, "undone"))
		c.beginXA(xidA)
		c.must(c.send(c.msg(q, "xa"), xidA.String()))
		_, err := c.prepare(xidA)
		c.must(err)
		c.must(c.commitXA(xidA, false))
		c.must(c.send(c.msg(q, "passing", func(m *message.Message) { m.Persistent = false }), ""))
		c.must(c.send(c.msg(topicNamed("Q"), "a topic's"), ""))
		want(t, "the mirror", c.take(), "two", "xa", "passing")
		c.closeConsumer(k, Delivery{})
		h.holds(At(q), "one", "two", "xa", "passing")
		h.kill()
		for _, place := range []Place{At(q), At(app), durable} {
			h.holds(place, "one", "two", "xa")
		}
		c = h.client()
		c.consume(app)
		if got := c.take()[0].Message; got.Destination != app || got.OriginalDestination != mirrorOf("Q") || got.ID != m.ID {
			t.Errorf("copy: %+v", got)
		}
	})
}

// A copy says of where it was what the message said, as in ActiveMQ; a queue that gets
// something by way of a mirror has a mirror itself.
func TestMirroredCopyAndMirrorsOfMirrors(t *testing.T) {
	t.Parallel()
	inHouse(t, tapped(), func(h *house) {
		c := h.client()
		c.make("Consumer.A.VirtualTopic.Mirror.Q")
		c.consume(mirrorOf("Q"))
		watch := c.watch()
		c.must(c.send(c.msg(queueNamed("Q"), "m"), ""))
		got := c.take()
		if m := got[0].Message; m.Destination != mirrorOf("Q") || !m.OriginalDestination.IsZero() {
			t.Errorf("copy: %+v", m)
		}
		c.must(c.send(c.msg(queueNamed("Q,B"), "n"), ""))
		wantMirrored(t, "a list", c.mirrored(watch), "B n", "Consumer.A.VirtualTopic.Mirror.Q n", "Q n")
	})
}

// No way by mirrors, virtual topics and composites goes on for ever, where it does in
// ActiveMQ, and a queue that it leads back to has one copy.
func TestMirrorsGoInNoCircle(t *testing.T) {
	t.Parallel()
	back := Composite{Destination: mirrorOf("Q"), ForwardTo: []Forward{{Destination: queueNamed("Q")}, {Destination: queueNamed("R")}}}
	again := Composite{Destination: mirrorOf("R"), ForwardTo: []Forward{{Destination: queueNamed("Q")}}}
	inHouse(t, tapped(back, again), func(h *house) {
		c := h.client()
		watch := c.watch()
		k := c.consume(queueNamed("Consumer.W.VirtualTopic.>"))
		c.must(c.send(c.msg(queueNamed("Q"), "m"), ""))
		wantMirrored(t, "Q", c.mirrored(watch), "Q m", "R m")
		c.closeConsumer(k, Delivery{})
		for _, name := range []string{"Q", "R", "Consumer.W.VirtualTopic.>"} {
			h.holds(At(queueNamed(name)), "m")
		}
	})
}

func TestMirrorsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, r := range []Mirror{{Prefix: ">."}, {Postfix: ",B"}, {Prefix: "ActiveMQ.Advisory."}} {
		if _, err := (Interceptors{Mirrors: []Mirror{r}}).compile(); !errors.Is(err, message.ErrInvalid) || !strings.Contains(err.Error(), "prefix") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// Dead letters, and what is moved or copied by hand, are sent to a queue, and mirrored. A
// delivery once more and a redrive are not: it was when it came there first.
func TestMirrorsOfWhatMoves(t *testing.T) {
	t.Parallel()
	inHouse(t, tapped(), func(h *house) {
		q := queueNamed("Q")
		c := h.client()
		kept := c.durably(topicNamed("VirtualTopic.Mirror.>"), "d")
		watch := c.watch()
		c.must(c.send(c.msg(q, "m"), ""))
		wantMirrored(t, "sent", c.mirrored(watch), "Q m")
		k := c.consume(q)
		got := c.take()
		c.must(c.c.Begin("tx"))
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, "tx"))
		c.must(c.settle(c.c.Rollback, "tx"))
		c.closeConsumer(k, got[0])
		k = c.consume(q)
		got = c.take()
		if len(got) != 1 || got[0].Consumer != k {
			t.Fatalf("once more: %v", texts(got))
		}
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		c.closeConsumer(k, got[0])
		wantMirrored(t, "a dead letter", c.mirrored(watch), "ActiveMQ.DLQ m")
		o, err := h.broker.Redrive(h.t.Context(), dlqAt, Selection{})
		h.came("redrive", o, err, Outcome{Taken: 1})
		wantMirrored(t, "a redrive", c.mirrored(watch))
		o, err = h.broker.Move(h.t.Context(), At(q), queueNamed("B"), Selection{})
		h.came("move", o, err, Outcome{Taken: 1})
		wantMirrored(t, "a move", c.mirrored(watch), "B m")
		o, err = h.broker.Copy(h.t.Context(), At(queueNamed("B")), queueNamed("C"), Selection{})
		h.came("copy", o, err, Outcome{Taken: 1})
		h.holds(kept, "m", "m", "m", "m")
		h.kill()
		h.holds(kept, "m", "m", "m", "m")
		h.holds(At(queueNamed("B")), "m")
		h.holds(At(queueNamed("C")), "m")
	})
}

// That a mirror keeps a dead letter is no reason for its queue not to.
func TestMirrorDoesNotReplaceTheQueue(t *testing.T) {
	t.Parallel()
	nowhere := Composite{Destination: dlqAt.Queue, ForwardOnly: true, ForwardTo: []Forward{{Destination: topicNamed("NOBODY")}}}
	inHouse(t, tapped(nowhere), func(h *house) {
		c := h.client()
		mirror := c.durably(mirrorOf(dlqAt.Queue.Name), "d")
		h.deadLetters(parcels, 1)
		h.holds(dlqAt, "m1")
		h.holds(mirror, "m1")
	})
}

func TestScheduledIsMirroredWhenItIsDue(t *testing.T) {
	t.Parallel()
	inHouse(t, tapped(), func(h *house) {
		c := h.client()
		watch := c.watch()
		c.must(c.send(c.msg(queueNamed("Q"), "m", in(time.Minute)), ""))
		wantMirrored(t, "at once", c.mirrored(watch))
		time.Sleep(time.Minute)
		wantMirrored(t, "when due", c.mirrored(watch), "Q m")
		h.holds(At(queueNamed("Q")), "m")
	})
}

// A temporary queue is mirrored, too, unless the mirror leaves them out. Its topic, and
// that of a queue that is removed, go with it.
func TestMirrorsOfTemporaryQueues(t *testing.T) {
	t.Parallel()
	for _, also := range []bool{true, false} {
		one := mirror
		one.Temporary = also
		inHouse(t, intercepting(Interceptors{Mirrors: []Mirror{one}}), func(h *house) {
			c, gone := h.client(), h.client()
			watch := c.watch()
			temp := func(c *client, n int) message.Destination {
				d := message.Destination{Kind: message.TempQueue, Name: fmt.Sprintf("%s:%d", c.id, n)}
				c.must(c.c.AddDestination(h.t.Context(), d))
				c.must(c.send(c.msg(d, "m"), ""))
				return d
			}
			first, second := temp(gone, 1), temp(c, 2)
			var wanted []string
			if also {
				wanted = []string{second.Name + " m", first.Name + " m"} // sorted
			}
			wantMirrored(t, fmt.Sprint("temporary ", also), c.mirrored(watch), wanted...)
			c.must(c.send(c.msg(queueNamed("Q"), "m"), ""))
			if got := h.broker.Topics(); len(got) != len(wanted)+1 {
				t.Errorf("topics: %v", got)
			}
			gone.c.Close(message.Closed, "", -1)
			c.must(c.c.RemoveDestination(h.t.Context(), second))
			c.must(c.c.RemoveDestination(h.t.Context(), queueNamed("Q")))
			if got := h.broker.Topics(); len(got) != 0 {
				t.Errorf("topics that are left: %v", got)
			}
		})
	}
}

// What a composite only hands on is mirrored, or not, by where the mirror stands in the file.
func TestMirrorOfWhatIsKept(t *testing.T) {
	t.Parallel()
	fan := Composite{Destination: queueNamed("FAN"), ForwardOnly: true, ForwardTo: []Forward{{Destination: queueNamed("A")}}}
	for _, kept := range []bool{true, false} {
		one := mirror
		one.KeptOnly = kept
		inHouse(t, intercepting(Interceptors{Composites: []Composite{fan}, Mirrors: []Mirror{one, {Postfix: ".qmirror"}}}), func(h *house) {
			c := h.client()
			watch := c.watch()
			c.consume(topicNamed("A.qmirror"))
			c.must(c.send(c.msg(queueNamed("FAN"), "m"), ""))
			wanted := []string{"A m", "FAN m"}
			if kept {
				wanted = wanted[:1]
			}
			wantMirrored(t, fmt.Sprint("kept only ", kept), c.mirrored(watch), wanted...)
			c.must(c.send(c.msg(queueNamed("A"), "n"), ""))
			got := texts(c.take())
			slices.Sort(got)
			if fmt.Sprint(got) != "[n n]" {
				t.Errorf("two mirrors: %v", got)
			}
		})
	}
}

// Whoever gets a message by a mirror counts for flow control as everybody does, and a
// queue of a virtual topic that may be left out is.
func TestMirrorsThatAreFull(t *testing.T) {
	t.Parallel()
	full := Flow{MaxMessages: 2, OnFull: Refuse}
	for name, tt := range map[string]struct {
		full  string
		spare bool
		sent  []string
	}{
		"the queue":                              {"Q", false, []string{"m1", "m2"}},
		"a queue of the mirror":                  {"Consumer.A.VirtualTopic.Mirror.Q", false, []string{"m1", "m2"}},
		"one that is left out":                   {"Consumer.A.VirtualTopic.Mirror.Q", true, []string{"m1", "m2", "m3"}},
		"the queue, and others may be left out":  {"Q", true, []string{"m1", "m2"}},
		"a topic that nobody subscribes to":      {"VirtualTopic.Mirror.Q", false, []string{"m1", "m2", "m3"}},
		"a mirror of a mirror, without anything": {"VirtualTopic.Mirror.Consumer.A.VirtualTopic.Mirror.Q", false, []string{"m1", "m2", "m3"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := builtIn
			v.DropFull = tt.spare
			inHouse(t, withFlows(map[string]Flow{tt.full: full}, intercepting(Interceptors{VirtualTopics: []VirtualTopic{v}, Mirrors: []Mirror{mirror}})), func(h *house) {
				c := h.client()
				c.make("Consumer.A.VirtualTopic.Mirror.Q")
				for _, body := range []string{"m1", "m2", "m3"} {
					if err := c.send(c.msg(queueNamed("Q"), body), ""); (err == nil) != slices.Contains(tt.sent, body) {
						t.Errorf("%s: %v", body, err)
					}
				}
				h.holds(At(queueNamed("Q")), tt.sent...)
				app := tt.sent
				if tt.spare {
					app = app[:2]
				}
				h.holds(At(queueNamed("Consumer.A.VirtualTopic.Mirror.Q")), app...)
				h.atRest()
			})
		})
	}
}

// What a client sends once more is not mirrored twice, nor lost to a mirror half way (C21).
func TestC21ResentIsNotMirroredTwice(t *testing.T) {
	t.Parallel()
	inHouse(t, tapped(), func(h *house) {
		q := queueNamed("Q")
		c := h.client()
		places := []Place{At(q), c.durably(mirrorOf("Q"), "d"), At(queueNamed("Consumer.A.VirtualTopic.Mirror.Q"))}
		c.make(places[2].Queue.Name)
		for round, lose := range []func(){func() { c.c.Close(message.ConnectionLost, "", queue.UnknownLast) }, h.kill} {
			m := c.msg(q, fmt.Sprint(round))
			c.must(c.send(m, ""))
			c.must(c.send(m, ""))
			lose()
			conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Reconnect: true, Kick: func(error) {}}, c)
			if err != nil {
				t.Fatal(err)
			}
			c.c = conn
			c.must(c.send(m, ""))
		}
		for _, p := range places {
			h.holds(p, "0", "1")
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// What a mirror's topic keeps for consumers that come later is kept though nobody listens.
func TestMirrorWithAPast(t *testing.T) {
	t.Parallel()
	set := tapped()
	inHouse(t, func(o *Options) {
		set(o)
		o.Policy = func(d message.Destination) Policy {
			if d == mirrorOf("Q") {
				return Policy{Recovery: Recovery{Count: 1}}
			}
			return Policy{}
		}
	}, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(queueNamed("Q"), "m1"), ""))
		c.must(c.send(c.msg(queueNamed("Q"), "m2"), ""))
		c.consume(mirrorOf("Q"), func(s *ConsumerSpec) { s.Retroactive = true })
		want(t, "later", c.take(), "m2")
		h.holds(At(queueNamed("Q")), "m1", "m2")
	})
}

// A copy by a mirror has retries and dead letters of its own (C11).
func TestMirroredCopyFailsAlone(t *testing.T) {
	t.Parallel()
	own := redelivery.IndividualStrategy()
	own.QueuePrefix = "DLQ."
	set := tapped()
	inHouse(t, func(o *Options) {
		set(o)
		o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{DeadLetter: own}} }
	}, func(h *house) {
		app := queueNamed("Consumer.A.VirtualTopic.Mirror.Q")
		c := h.client()
		k := c.consume(app)
		watch := c.watch()
		c.must(c.send(c.msg(queueNamed("Q"), "m"), ""))
		var got Delivery
		for _, d := range c.take() {
			if d.Consumer == k {
				got = d
			}
		}
		c.failAsJava(k, got)
		wantMirrored(t, "its dead letter", c.mirrored(watch), "DLQ."+app.Name+" m")
		h.holds(At(queueNamed("Q")), "m")
		o, err := h.broker.Redrive(h.t.Context(), At(queueNamed("DLQ."+app.Name)), Selection{})
		h.came("redrive", o, err, Outcome{Taken: 1})
		want(t, "back", c.take(), "m")
		c.c.Close(message.Closed, "", -1)
	})
}
