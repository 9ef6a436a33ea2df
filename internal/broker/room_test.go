package broker

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/store"
)

// withFlows gives destinations a Flow, by name.
func withFlows(flows map[string]Flow, more ...func(*Options)) func(*Options) {
	return func(o *Options) {
		o.Limited = true
		o.Policy = func(d message.Destination) Policy { return Policy{Flow: flows[d.Name]} }
		for _, f := range more {
			f(o)
		}
	}
}

// two is a limit that two messages of a few bytes reach.
const two = 2 * 1024

// A sending is a send whose answer is not waited for.
type sending struct {
	mu   sync.Mutex
	done bool
	err  error
	at   time.Time
}

func (c *client) begin(m *message.Message, tx ...string) *sending {
	s := new(sending)
	c.c.Send(c.h.t.Context(), m, strings.Join(tx, ""), s.answer)
	return s
}

func (s *sending) answer(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.err, s.at = true, err, time.Now()
}

// settled tells whether it was answered, and how.
func (s *sending) settled() (bool, error) {
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done, s.err
}

func (s *sending) waits(t *testing.T, what string) {
	t.Helper()
	if done, err := s.settled(); done {
		t.Errorf("%s was answered (%v), want it to wait", what, err)
	}
}

func (s *sending) went(t *testing.T, what string) {
	t.Helper()
	if done, err := s.settled(); !done || err != nil {
		t.Errorf("%s: answered %v, %v; want it to have gone in", what, done, err)
	}
}

// atRest checks that nothing is counted but what is there.
func (h *house) atRest() {
	h.t.Helper()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	for _, r := range h.broker.rooms.all() {
		r.mu.Lock()
		b, m := r.bytes, r.messages
		r.mu.Unlock()
		if b != 0 || m != 0 {
			h.t.Errorf("%d bytes of %d messages are on their way to %s for ever", b, m, r.name)
		}
		if n := r.waits.now.Load(); n != 0 {
			h.t.Errorf("%d wait in front of %s for ever", n, r.name)
		}
	}
	if n := h.broker.waiting.now.Load(); n != 0 {
		h.t.Errorf("%d wait for ever", n)
	}
	if g := &h.broker.parking; g.count != 0 || g.bytes != 0 {
		h.t.Errorf("%d of %d bytes are parked for ever", g.count, g.bytes)
	}
}

func TestProducersWaitWhileTheirQueueIsFull(t *testing.T) {
	for name, persistent := range map[string]bool{"persistent": true, "not persistent": false} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxBytes: two}}), func(h *house) {
				c := h.client()
				m := func(body string) *message.Message {
					return c.msg(orders, body, func(m *message.Message) { m.Persistent = persistent })
				}
				c.begin(m("m1")).went(t, "m1")
				c.begin(m("m2")).went(t, "m2")
				third, fourth := c.begin(m("m3")), c.begin(m("m4"))
				third.waits(t, "m3")
				fourth.waits(t, "m4")
				other := c.begin(c.msg(queueNamed("OTHER"), "o1", func(m *message.Message) { m.ID.Producer = c.id + ":2:1" }))
				other.went(t, "another session's message to another queue")
				k := c.consume(orders) // on the same connection
				got := c.take()
				want(t, "first", got, "m1", "m2")
				third.waits(t, "m3, while all is at the consumer")
				c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
				third.went(t, "m3")
				fourth.waits(t, "m4")
				got = append(got[1:], c.take()...)
				c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
				fourth.went(t, "m4")
				want(t, "then", c.take(), "m4")
				if n, ns := h.broker.waiting.sends.Load(), h.broker.waiting.nanos.Load(); n != 2 || ns <= 0 {
					t.Errorf("%d have waited, for %v", n, time.Duration(ns))
				}
				h.atRest()
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

func TestFullQueueRefuses(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 2, OnFull: Refuse}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		c.must(c.c.Begin("TX"))
		c.must(c.send(c.msg(orders, "m2"), "TX")) // not counted before the commit
		c.must(c.settle(c.c.Commit, "TX"))
		if err := c.send(c.msg(orders, "m3"), ""); !errors.Is(err, message.ErrOverLimit) || !strings.Contains(err.Error(), "queue://ORDERS has 2 messages") {
			t.Errorf("third: %v, want over limit", err)
		}
		c.must(c.c.Begin("TX"))
		if err := c.send(c.msg(orders, "m4"), "TX"); !errors.Is(err, message.ErrOverLimit) {
			t.Errorf("in a transaction: %v, want over limit", err)
		}
		c.must(c.settle(c.c.Commit, "TX"))
		c.consume(orders)
		want(t, "there", c.take(), "m1", "m2")
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

// TestTransactionIsRefusedForWhatItSendsItself is as in ActiveMQ: what is not committed
// counts for the transaction that sent it.
func TestTransactionIsRefusedForWhatItSendsItself(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxBytes: two, OnFull: Refuse}}), func(h *house) {
		c := h.client()
		c.must(c.c.Begin("TX"))
		c.must(c.send(c.msg(orders, "m1"), "TX"))
		c.must(c.send(c.msg(orders, "m2"), "TX"))
		if err := c.send(c.msg(orders, "m3"), "TX"); !errors.Is(err, message.ErrOverLimit) {
			t.Errorf("third: %v, want over limit", err)
		}
		c.must(c.send(c.msg(orders, "m1 of another"), "")) // has what is committed before it
		c.must(c.settle(c.c.Commit, "TX"))                 // has been let in
		c.consume(orders)
		want(t, "there", c.take(), "m1 of another", "m1", "m2")
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

func TestFullQueueRefusesAfterATime(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 1, FailAfter: 3 * time.Second}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		start := time.Now()
		if err := c.send(c.msg(orders, "m2"), ""); !errors.Is(err, message.ErrOverLimit) || time.Since(start) != 3*time.Second {
			t.Errorf("refused after %v: %v, want over limit after 3s", time.Since(start), err)
		}
		c.must(c.c.Begin("TX"))
		c.must(c.send(c.msg(orders, "m3"), "TX"))
		start = time.Now()
		if err := c.settle(c.c.Commit, "TX"); !errors.Is(err, message.ErrOverLimit) || time.Since(start) != 3*time.Second {
			t.Errorf("commit after %v: %v, want over limit after 3s", time.Since(start), err)
		}
		if n := h.depth(orders.Name); n != 1 {
			t.Errorf("%d messages are there, want 1: the transaction was rolled back", n)
		}
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

func TestFullQueueDrops(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 1, OnFull: Drop}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		c.must(c.send(c.msg(orders, "m2"), ""))
		c.must(c.c.Begin("TX"))
		c.must(c.send(c.msg(orders, "m3"), "TX"))
		c.must(c.settle(c.c.Commit, "TX"))
		c.must(c.send(c.msg(message.Destination{Kind: message.Queue, Name: "ORDERS,queue://FREE"}, "both"), "")) // one of them is to have it
		c.consume(orders)
		want(t, "kept", c.take(), "m1", "both")
		if n := h.broker.CountedBy(Discarded)["destination full"]; n != 2 {
			t.Errorf("%d are counted as dropped, want 2", n)
		}
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

func TestCommitWaitsForRoom(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxBytes: two}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		c.must(c.send(c.msg(orders, "m2"), ""))
		c.must(c.c.Begin("TX"))
		for _, s := range []string{"t1", "t2", "t3"} { // more than the limit: it goes in whole
			c.must(c.send(c.msg(orders, s), "TX"))
		}
		commit := new(sending)
		c.c.Commit(h.t.Context(), "TX", commit.answer)
		commit.waits(t, "commit")
		after := c.begin(c.msg(orders, "after")) // by the same session
		after.waits(t, "the message after it")
		k := c.consume(orders)
		got := c.take()
		want(t, "before", got, "m1", "m2")
		c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
		commit.went(t, "commit")
		after.waits(t, "the message after it")
		got = c.take()
		want(t, "committed", got, "t1", "t2", "t3")
		c.must(c.ack(queue.Standard, k, got[0], got[2], 3, ""))
		after.went(t, "the message after it")
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

func TestCommitThatWaitsIsRolledBackWithItsConnection(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 1}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		c.must(c.send(c.msg(queueNamed("IN"), "request"), ""))
		in := c.consume(queueNamed("IN"))
		got := c.take()
		c.must(c.c.Begin("TX"))
		c.must(c.ack(queue.Standard, in, got[0], got[0], 1, "TX"))
		c.must(c.send(c.msg(orders, "t1"), "TX"))
		commit := new(sending)
		c.c.Commit(h.t.Context(), "TX", commit.answer)
		commit.waits(t, "commit")
		c.c.Close(message.ConnectionLost, "cut", queue.UnknownLast)
		if done, err := commit.settled(); !done || err == nil {
			t.Errorf("commit on a lost connection: %v, %v", done, err)
		}
		c = h.client()
		c.consume(queueNamed("IN"))
		want(t, "rolled back", c.take(), "request*1")
		if n := h.depth(orders.Name); n != 1 {
			t.Errorf("%d messages are in the full queue, want 1", n)
		}
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

func TestDistributedTransactionsWaitForRoom(t *testing.T) {
	for name, onePhase := range map[string]bool{"one phase": true, "two phases": false} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 1}}), func(h *house) {
				c := h.client()
				c.must(c.send(c.msg(orders, "m1"), ""))
				xid := xidA
				c.beginXA(xid)
				c.must(c.send(c.msg(orders, "x1"), xid.String()))
				end := new(sending)
				if onePhase {
					c.c.CommitXA(h.t.Context(), xid, true, end.answer)
				} else {
					c.c.PrepareXA(h.t.Context(), xid, func(_ bool, err error) { end.answer(err) })
				}
				end.waits(t, name)
				k := c.consume(orders)
				got := c.take()
				c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
				end.went(t, name)
				if !onePhase {
					c.must(c.send(c.msg(orders, "meanwhile"), ""))
					commit := new(sending)
					c.c.CommitXA(h.t.Context(), xid, false, commit.answer) // what is prepared is never stopped
					commit.went(t, "commit")
					want(t, "committed", c.take(), "meanwhile", "x1")
				} else {
					want(t, "committed", c.take(), "x1")
				}
				h.atRest()
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// TestWhatTheBrokerMovesIsNeverStopped: dead letters, redrives and moves go on (R-DLQ-07).
func TestWhatTheBrokerMovesIsNeverStopped(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 1}, dlq.Name: {MaxMessages: 1}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		k := c.consume(orders)
		for n := range 3 {
			got := c.take()
			if n < 2 {
				c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
				c.take()
				c.must(c.send(c.msg(orders, "more"), "")) // its queue has room again
			}
		}
		if n := h.depth(dlq.Name); n != 2 {
			t.Errorf("%d dead letters, want 2: no limit stops them", n)
		}
		stopped := c.begin(c.msg(dlq, "by hand"))
		stopped.waits(t, "a producer of the dead letter queue")
		done, err := h.broker.Redrive(h.t.Context(), At(dlq), Selection{})
		c.must(err)
		if done.Taken != 2 {
			t.Errorf("%d redriven, want 2, into a full queue", done.Taken)
		}
		stopped.went(t, "a producer of the dead letter queue")
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

func TestLimitsHoldAfterARestart(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxBytes: two}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		c.must(c.send(c.msg(orders, "m2"), ""))
		c.begin(c.msg(orders, "m3")).waits(t, "m3")
		h.kill()
		c = h.client()
		third := c.begin(c.msg(orders, "m3"))
		third.waits(t, "m3")
		k := c.consume(orders)
		got := c.take()
		c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
		third.went(t, "m3")
		c.begin(c.msg(orders, "m4")).went(t, "m4")
		stuck := c.begin(c.msg(orders, "m5"))
		stuck.waits(t, "m5")
		h.restart() // a stop ends the wait
		if done, err := stuck.settled(); !done || !errors.Is(err, message.ErrUnavailable) {
			t.Errorf("wait at a stop: %v, %v; want unavailable", done, err)
		}
	})
}

func TestCompositesWaitForEveryTarget(t *testing.T) {
	fan := queueNamed("FAN")
	set := withFlows(map[string]Flow{orders.Name: {MaxMessages: 1}}, func(o *Options) {
		o.Interceptors = Interceptors{
			VirtualTopics: []VirtualTopic{{Name: "VirtualTopic.>", Prefix: "Consumer.*."}},
			Composites:    []Composite{{Destination: fan, ForwardTo: []Forward{{Destination: orders, Selector: "JMSType = 'order'"}, {Destination: queueNamed("FREE")}}, ForwardOnly: true}},
		}
	})
	inHouse(t, set, func(h *house) {
		c := h.client()
		typed := func(to message.Destination, kind string) *message.Message {
			return c.msg(to, kind, func(m *message.Message) { m.Type = kind })
		}
		c.must(c.send(typed(fan, "order"), ""))
		c.must(c.send(typed(fan, "other"), "")) // is not for the full one
		stopped := []*sending{c.begin(typed(fan, "order"))}
		c.c.Send(h.t.Context(), c.msg(message.Destination{Kind: message.Queue, Name: "ORDERS,queue://FREE"}, "both"), "", func(error) {})
		stopped[0].waits(t, "composite destination")
		if n := h.depth("FREE"); n != 2 {
			t.Errorf("%d in the other queue, want 2: a message goes to all targets or waits", n)
		}
		k := c.consume(orders)
		got := c.take()
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		stopped[0].went(t, "composite destination")
		h.atRestBut(1)
		c.c.Close(message.Closed, "", -1)
	})
}

// atRestBut waits until so many producers wait.
func (h *house) atRestBut(n int64) {
	h.t.Helper()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	if got := h.broker.waiting.now.Load(); got != n {
		h.t.Errorf("%d wait, want %d", got, n)
	}
}

// TestSlowTopicConsumersStopTheirProducers: what was handed out does not count, and of
// several consumers the slowest one counts, as tried with ActiveMQ 5.17.
func TestSlowTopicConsumersStopTheirProducers(t *testing.T) {
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	for name, durable := range map[string]bool{"durable ones do not count": false, "durable ones count": true} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, withFlows(map[string]Flow{news.Name: {MaxBytes: two, DurableToo: durable}}), func(h *house) {
				c, p := h.client(), h.client()
				off := c.consume(news, func(s *ConsumerSpec) { s.Subscription = "s" })
				c.c.CloseConsumer(h.t.Context(), off, -1, func(error) {})
				slow := c.consume(news, func(s *ConsumerSpec) { s.Prefetch = 3 })
				fast := c.consume(news)
				for n := range 3 {
					p.begin(p.msg(news, fmt.Sprint("n", n))).settled()
				}
				if durable {
					h.atRestBut(1) // two are in the subscription
					p.c.Close(message.ConnectionLost, "", -1)
					c.c.Close(message.Closed, "", -1)
					h.atRest()
					return
				}
				for n := range 2 {
					p.begin(p.msg(news, fmt.Sprint("n", 3+n))).went(t, "beyond the window, within the limit")
				}
				stopped := p.begin(p.msg(news, "n5"))
				stopped.waits(t, "beyond the limit")
				var first Delivery
				for _, d := range c.take() {
					if d.Consumer == slow && first.Message == nil {
						first = d
					}
				}
				c.must(c.ack(queue.Standard, slow, first, first, 1, ""))
				stopped.went(t, "after the slow one has acknowledged")
				next := p.begin(p.msg(news, "n6"))
				next.waits(t, "beyond the limit again")
				c.c.CloseConsumer(h.t.Context(), slow, -1, func(error) {})
				next.went(t, "after the slow one has gone")
				_ = fast
				h.atRest()
				c.c.Close(message.Closed, "", -1)
				p.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// TestWhatIsParkedWhenAConnectionEnds: a client that closes takes what it has sent
// without waiting for sent; of a lost one nobody does.
func TestWhatIsParkedWhenAConnectionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		cause message.Cause
		depth int64
	}{"closed": {message.Closed, 4}, "lost": {message.ConnectionLost, 1}} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 1}}), func(h *house) {
				k := h.client()
				var all []*sending
				for _, s := range bodies(4) {
					all = append(all, k.begin(k.msg(orders, s)))
				}
				all[0].went(t, "the first")
				all[1].waits(t, "the second")
				k.c.Close(c.cause, "", -1)
				for _, s := range all {
					if done, _ := s.settled(); !done {
						t.Error("a send was never answered")
					}
				}
				if n := h.depth(orders.Name); n != c.depth {
					t.Errorf("%d are in the queue, want %d", n, c.depth)
				}
				if n := h.broker.waiting.sends.Load(); c.cause == message.ConnectionLost && n != 1 {
					t.Errorf("%d are counted to have waited, want 1: the others were never first", n)
				}
				h.atRest()
			})
		})
	}
}

// TestTooMuchParked: a connection that only produces is not read on, one that consumes
// too is, since the acknowledgement that makes room may be next.
func TestTooMuchParked(t *testing.T) {
	set := withFlows(map[string]Flow{orders.Name: {MaxMessages: 1}}, func(o *Options) { o.Limits.UnansweredSends = 3 })
	inHouse(t, set, func(h *house) {
		p := h.client()
		read := make(chan struct{})
		go func() {
			defer close(read)
			for _, s := range bodies(6) {
				p.begin(p.msg(orders, s))
			}
		}()
		time.Sleep(time.Second)
		select {
		case <-read:
			t.Error("a producer was not stopped")
		default:
		}
		c := h.client()
		k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 1 })
		for range 6 {
			got := c.take()
			if len(got) != 1 {
				t.Fatalf("%d came, want one after the other", len(got))
			}
			c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		}
		<-read
		for _, s := range bodies(10) { // c has a consumer
			c.begin(c.msg(orders, s))
		}
		if n := h.broker.Counted(LetIn); n == 0 {
			t.Error("nobody was told that messages went in above the limit")
		}
		var got []string
		for len(got) < 10 {
			ds := c.take()
			if len(ds) == 0 {
				break
			}
			got = append(got, texts(ds)...)
			c.must(c.ack(queue.Standard, k, ds[0], ds[len(ds)-1], len(ds), ""))
		}
		if diff := gocmp.Diff(bodies(10), got); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		h.atRest()
		c.begin(c.msg(orders, "one")).went(t, "below the limit")
		c.begin(c.msg(orders, "two")).waits(t, "when all is in, the limit holds again:")
		c.c.Close(message.Closed, "", -1)
		p.c.Close(message.Closed, "", -1)
	})
}

func TestReloadChangesLimits(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 1}}), func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		second, third := c.begin(c.msg(orders, "m2")), c.begin(c.msg(orders, "m3"))
		second.waits(t, "m2")
		reload := func(f Flow) {
			c.must(h.broker.Reload(h.t.Context(), Reload{Limited: f != (Flow{}), Policy: func(message.Destination) Policy { return Policy{Flow: f} }}))
		}
		reload(Flow{MaxMessages: 2})
		second.went(t, "m2, with a higher limit")
		third.waits(t, "m3")
		reload(Flow{MaxMessages: 2, OnFull: Refuse})
		if done, err := third.settled(); !done || !errors.Is(err, message.ErrOverLimit) {
			t.Errorf("m3, now to be refused: %v, %v", done, err)
		}
		reload(Flow{})
		c.begin(c.msg(orders, "m4")).went(t, "m4, without a limit")
		reload(Flow{MaxMessages: 3})
		c.begin(c.msg(orders, "m5")).waits(t, "m5, with one again")
		c.c.Close(message.ConnectionLost, "", -1)
		h.atRest()
	})
}

func TestLongWaitsAreToldAgainAndAgain(t *testing.T) {
	set := withFlows(map[string]Flow{orders.Name: {MaxMessages: 1, WarnEvery: 30 * time.Second}, "QUIET": {MaxMessages: 1}})
	inHouse(t, set, func(h *house) {
		c := h.client()
		for _, q := range []message.Destination{orders, queueNamed("QUIET")} {
			c.must(c.send(c.msg(q, "m1", func(m *message.Message) { m.ID.Producer = c.id + ":" + q.Name + ":1" }), ""))
			c.begin(c.msg(q, "m2", func(m *message.Message) { m.ID.Producer = c.id + ":" + q.Name + ":1" }))
		}
		time.Sleep(95 * time.Second)
		if n := h.broker.Counted(ProducerWaits); n != 3 {
			t.Errorf("told %d times in 95 s, want 3", n)
		}
		c.c.Close(message.ConnectionLost, "", -1)
	})
}

// TestFlowAdvisories: a full destination and its fast producer are told of once, until
// there is room again.
func TestFlowAdvisories(t *testing.T) {
	set := withFlows(nil, func(o *Options) {
		o.Policy = func(d message.Destination) Policy {
			return Policy{Flow: Flow{MaxBytes: two, OnFull: Refuse}, Advisories: Advisories{WhenFull: true, FastProducer: true}}
		}
	})
	inHouse(t, set, func(h *house) {
		c := h.client()
		k := ""
		for range 2 {
			for n := range 4 {
				if err := c.send(c.msg(orders, "m"), ""); (err != nil) != (n > 1) {
					t.Errorf("message %d: %v", n, err)
				}
			}
			var told []string
			h.mu.Lock()
			for _, e := range h.events {
				switch e.Kind {
				case Full:
					told = append(told, fmt.Sprint("full ", e.Destination, " ", e.OwnLimit, " ", e.Bytes))
				case FastProducer:
					told = append(told, fmt.Sprint("fast ", e.Destination, " ", e.Producer))
				}
			}
			h.events = nil
			h.mu.Unlock()
			if diff := gocmp.Diff([]string{"full queue://ORDERS true 2050", "fast queue://ORDERS " + c.id + ":1:1"}, told); diff != "" {
				t.Error(diff)
			}
			if k == "" {
				k = c.consume(orders)
			}
			got := c.take()
			c.must(c.ack(queue.Standard, k, got[0], got[1], 2, ""))
			c.take()
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// TestShareOfTheStore is storeUsageHighWaterMark: it stops persistent messages alone,
// and the entry's own word goes before the broker's.
func TestShareOfTheStore(t *testing.T) {
	d := &disk{}
	d.free.Store(limit + 1)
	var used atomic.Uint64
	used.Store(71)
	set := withFlows(map[string]Flow{orders.Name: {StorePercent: 70}, "WAITS": {StorePercent: 70, OnFull: Wait}}, func(o *Options) {
		o.Limits.MaxStoreBytes = 100
		o.Space = func() (s store.Space, err error) { s, err = d.space(); s.UsedBytes = used.Load(); return s, err }
	})
	inHouse(t, set, func(h *house) {
		c := h.client()
		if err := c.send(c.msg(orders, "m1"), ""); !errors.Is(err, message.ErrOverLimit) || !strings.Contains(err.Error(), "71 %") {
			t.Errorf("at 71 %%: %v, want over limit", err)
		}
		c.must(c.send(c.msg(queueNamed("OTHER"), "o1"), ""))
		c.must(c.send(c.msg(orders, "np", func(m *message.Message) { m.Persistent = false }), ""))
		waits := c.begin(c.msg(queueNamed("WAITS"), "w1"))
		waits.waits(t, "where the entry says so")
		used.Store(60)
		time.Sleep(2 * spaceInterval)
		waits.went(t, "when there is room")
		c.must(c.send(c.msg(orders, "m2"), ""))
		h.atRest()
		c.c.Close(message.Closed, "", -1)
	})
}

// TestMaxDestinations is maxDestinations of a policyEntry: clients make no more than so
// many, and what the broker makes for dead letters is not stopped.
func TestMaxDestinations(t *testing.T) {
	inHouse(t, func(o *Options) {
		o.OnlyDeclared = true
		o.Policy = func(d message.Destination) Policy {
			p := Policy{Pattern: message.Destination{Kind: d.Kind, Name: ">"}, MaxDestinations: 2}
			if d.Name == "FREE" {
				p.MaxDestinations = 0
			}
			return p
		}
	}, func(h *house) {
		c := h.client()
		for n, name := range []string{"A", "B", "C"} {
			err := c.send(c.msg(queueNamed(name), name), "")
			if (n == 2) != errors.Is(err, ErrTooMany) {
				t.Errorf("queue %d: %v", n, err)
			}
		}
		c.must(c.send(c.msg(queueNamed("A"), "more"), ""))
		c.must(c.send(c.msg(topicNamed("T"), "topics have a policy of their own"), ""))
		if err := c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:9", Session: c.id + ":1", Destination: queueNamed("C"), Prefetch: 1}); !errors.Is(err, ErrTooMany) {
			t.Errorf("consumer: %v", err)
		}
		temp := func(n string) message.Destination {
			return message.Destination{Kind: message.TempQueue, Name: c.id + n}
		}
		c.must(c.c.AddDestination(h.t.Context(), temp("1")))
		c.must(c.c.AddDestination(h.t.Context(), temp("2")))
		if err := c.c.AddDestination(h.t.Context(), temp("3")); !errors.Is(err, ErrTooMany) {
			t.Errorf("third temporary queue: %v", err)
		}
		k := c.consume(queueNamed("A"))
		got := c.take()
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		if n := h.depth(dlq.Name); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
		c.must(c.c.RemoveDestination(h.t.Context(), queueNamed("B")))
		c.c.Close(message.Closed, "", -1)
	})
}

// TestManyWhoWaitGoInOneByOne: room for one lets one in, whoever of them it is.
func TestManyWhoWaitGoInOneByOne(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{orders.Name: {MaxMessages: 2}}), func(h *house) {
		const many = 20
		var all []*sending
		var producers []*client
		for range many {
			p := h.client()
			producers = append(producers, p)
			all = append(all, p.begin(p.msg(orders, "m")))
		}
		in := func() (n int) {
			for _, s := range all {
				if done, err := s.settled(); done && err == nil {
					n++
				}
			}
			return n
		}
		c := h.client()
		k := c.consume(orders)
		for n := range many {
			if got := in(); got != min(n+2, many) {
				t.Fatalf("%d are in, want %d", got, min(n+2, many))
			}
			got := c.take()
			c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
			c.mu.Lock()
			c.got = append(got[1:], c.got...)
			c.mu.Unlock()
		}
		h.atRest()
		for _, p := range append(producers, c) {
			p.c.Close(message.Closed, "", -1)
		}
	})
}

// TestLimitsLoseAndHoldNothing has producers of all kinds send to full queues while
// consumers take what comes: everything arrives once, in the order of each producer, and
// nobody waits for ever.
func TestLimitsLoseAndHoldNothing(t *testing.T) {
	const producers, sends = 6, 60
	fan := queueNamed("FAN")
	set := withFlows(map[string]Flow{orders.Name: {MaxMessages: 3}, "OTHER": {MaxBytes: two}}, func(o *Options) {
		o.Interceptors = Interceptors{Composites: []Composite{{Destination: fan, ForwardTo: []Forward{{Destination: orders}, {Destination: queueNamed("OTHER")}}, ForwardOnly: true}}}
	})
	inHouse(t, set, func(h *house) {
		var all []*client
		got := map[string][]string{} // by queue and producer
		var mu sync.Mutex
		taken := 0
		var consuming sync.WaitGroup
		stop := make(chan struct{})
		for _, d := range []message.Destination{orders, queueNamed("OTHER")} {
			c := h.client()
			all = append(all, c)
			k := c.consume(d, func(s *ConsumerSpec) { s.Prefetch = 2 })
			consuming.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					c.mu.Lock()
					ds := c.got
					c.got = nil
					c.mu.Unlock()
					for i := range ds {
						m, err := ds[i].Load()
						if err != nil {
							t.Error(err)
							continue
						}
						mu.Lock()
						key := d.Name + " " + m.ID.Producer
						got[key] = append(got[key], string(m.Body))
						taken++
						mu.Unlock()
						if err := c.ack(queue.Standard, k, ds[i], ds[i], 1, ""); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		want := map[string][]string{}
		total := 0
		var producing sync.WaitGroup
		for n := range producers {
			p := h.client()
			all = append(all, p)
			producing.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(n)))
				for i := range sends {
					body := fmt.Sprint("m", i)
					to := []message.Destination{orders, queueNamed("OTHER"), fan}[random.IntN(3)]
					m := p.msg(to, body, func(m *message.Message) { m.Persistent = random.IntN(2) == 0 })
					switch kind := random.IntN(3); {
					case kind == 0 && to != fan:
						p.begin(m) // and go on
					case kind < 2:
						if err := p.send(m, ""); err != nil {
							t.Error(err)
						}
					default:
						if err := cmp.Or(p.c.Begin("TX"), p.send(m, "TX"), p.settle(p.c.Commit, "TX")); err != nil {
							t.Error(err)
						}
					}
					mu.Lock()
					for _, name := range []string{orders.Name, "OTHER"} {
						if to.Name == name || to == fan {
							key := name + " " + m.ID.Producer
							want[key] = append(want[key], body)
							total++
						}
					}
					mu.Unlock()
				}
			})
		}
		producing.Wait()
		time.Sleep(10 * time.Second)
		close(stop)
		consuming.Wait()
		if taken != total {
			t.Errorf("%d came of %d", taken, total)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("what came (-want +got):\n%s", diff)
		}
		h.atRest()
		for _, c := range all {
			c.c.Close(message.Closed, "", -1)
		}
	})
}

// R-VT-06: dropOnResourceLimit leaves out a queue of a virtual topic that is full and
// refuses; the other queues and the topic's subscribers have the message.
func TestVirtualTopicLeavesOutAFullQueue(t *testing.T) {
	news := topicNamed("VirtualTopic.NEWS")
	slow, quick := queueNamed("Consumer.slow.VirtualTopic.NEWS"), queueNamed("Consumer.quick.VirtualTopic.NEWS")
	virtual := builtIn
	virtual.DropFull = true
	for name, tt := range map[string]struct {
		flow Flow
		drop bool
		// refused and waits are what becomes of the third message, which slow has no room for.
		refused, waits bool
	}{
		"refuses":                     {Flow{MaxMessages: 2, OnFull: Refuse}, true, false, false},
		"drops":                       {Flow{MaxMessages: 2, OnFull: Drop}, true, false, false},
		"refuses, without the switch": {Flow{MaxMessages: 2, OnFull: Refuse}, false, true, false},
		"lets wait":                   {Flow{MaxMessages: 2, OnFull: Wait}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := virtual
			v.DropFull = tt.drop
			inHouse(t, withFlows(map[string]Flow{slow.Name: tt.flow, quick.Name: tt.flow}, intercepting(Interceptors{VirtualTopics: []VirtualTopic{v}})), func(h *house) {
				c, p := h.client(), h.client()
				c.make(slow.Name)
				k := c.consume(quick)
				c.consume(news)
				for _, body := range []string{"m1", "m2", "m3"} {
					s := p.begin(p.msg(news, body))
					switch {
					case body == "m3" && tt.waits:
						s.waits(t, body)
						p.c.Close(message.ConnectionLost, "", -1)
					case body == "m3" && tt.refused:
						if done, err := s.settled(); !done || !errors.Is(err, message.ErrOverLimit) {
							t.Errorf("%s: answered %v, %v", body, done, err)
						}
					default:
						s.went(t, body)
					}
					for _, d := range c.take() {
						if d.Consumer == k {
							c.must(c.ack(queue.Standard, k, d, d, 1, ""))
						}
					}
				}
				wanted := 0
				if !tt.refused && !tt.waits {
					wanted = 1
				}
				if n := h.broker.CountedBy(Discarded)["destination full"]; int(n) != wanted {
					t.Errorf("%d are told as discarded, want %d", n, wanted)
				}
				h.holds(At(slow), "m1", "m2")
				h.holds(At(quick))
				h.atRest()

				// A transaction goes to all: what it holds has been let in.
				if wanted == 1 {
					c.must(c.c.Begin("TX"))
					c.must(c.send(c.msg(news, "t1"), "TX"))
					c.must(c.settle(c.c.Commit, "TX"))
					h.holds(At(slow), "m1", "m2", "t1")
					h.atRest()
				}
			})
		})
	}
}

// Producers that wait for room get it in the order in which they came: of many the first
// alone is woken where there is some, and the next by it.
func TestWhoWaitsFirstForRoomHasItFirst(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{"ORDERS": {MaxMessages: 1}}), func(h *house) {
		k := h.client()
		id := k.consume(orders, func(s *ConsumerSpec) { s.Prefetch = 1 })
		first := h.client()
		first.must(first.send(first.msg(orders, "0"), ""))
		const n = 50
		var wait [n]*sending
		for i := range wait {
			c := h.client()
			wait[i] = c.begin(c.msg(orders, fmt.Sprint(i+1)))
			synctest.Wait()
		}
		for i := range n + 1 {
			got := k.take()
			want(t, "next", got, fmt.Sprint(i))
			if len(got) == 0 {
				break
			}
			k.must(k.ack(queue.Standard, id, got[0], got[0], 1, ""))
			if i+1 < n {
				wait[i].went(t, fmt.Sprintf("message %d", i+1))
				wait[i+1].waits(t, fmt.Sprintf("message %d", i+2))
			}
		}
		h.atRest()
		k.c.Close(message.Closed, "", -1)
	})
}

// Room for many is taken by many, although one alone is woken.
func TestMuchRoomLetsManyIn(t *testing.T) {
	inHouse(t, withFlows(map[string]Flow{"ORDERS": {MaxMessages: 30}}), func(h *house) {
		p := h.client()
		for range 30 {
			p.must(p.send(p.msg(orders, "old"), ""))
		}
		var wait [20]*sending
		for i := range wait {
			c := h.client()
			wait[i] = c.begin(c.msg(orders, "new"))
			synctest.Wait()
		}
		if _, err := h.broker.Purge(h.t.Context(), At(orders), Selection{}); err != nil {
			t.Fatal(err)
		}
		for i := range wait {
			wait[i].went(t, fmt.Sprintf("message %d", i))
		}
		h.atRest()
	})
}
