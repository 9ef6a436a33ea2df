package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/store/errstore"
)

var xidA = message.XID{Format: 7, Global: "\x00global\xff", Branch: "1"}

// prepare prepares and waits for the answer.
func (c *client) prepare(xid message.XID) (readOnly bool, err error) {
	type answer struct {
		readOnly bool
		err      error
	}
	answered := make(chan answer, 1)
	c.c.PrepareXA(c.h.t.Context(), xid, func(readOnly bool, err error) { answered <- answer{readOnly, err} })
	a := <-answered
	return a.readOnly, a.err
}

func (c *client) commitXA(xid message.XID, onePhase bool) error {
	answered := make(chan error, 1)
	c.c.CommitXA(c.h.t.Context(), xid, onePhase, func(err error) { answered <- err })
	return <-answered
}

func (c *client) rollbackXA(xid message.XID) error {
	answered := make(chan error, 1)
	c.c.RollbackXA(c.h.t.Context(), xid, func(err error) { answered <- err })
	return <-answered
}

func (c *client) forgetXA(xid message.XID) error {
	answered := make(chan error, 1)
	c.c.ForgetXA(c.h.t.Context(), xid, func(err error) { answered <- err })
	return <-answered
}

func (c *client) beginXA(xid message.XID) {
	c.h.t.Helper()
	over, err := c.c.BeginXA(xid, false)
	if over || err != nil {
		c.h.t.Fatalf("begin: over %v, %v", over, err)
	}
}

// contents is what a queue gives a new consumer, which then gives it back unread.
func (h *house) contents(d message.Destination) []string {
	h.t.Helper()
	c := h.client()
	c.consume(d)
	got := texts(c.take())
	c.c.Close(message.Closed, "", -1)
	return got
}

func (h *house) is(d message.Destination, want ...string) {
	h.t.Helper()
	got := h.contents(d)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
		h.t.Errorf("%s (-want +got):\n%s", d, diff)
	}
}

// An xaStory is a transaction over two queues that it reads, two that it sends to, a
// durable subscription, and a message that is staged.
type xaStory struct {
	in1, in2, out1, out2, news message.Destination
	large                      string
}

func newXAStory() *xaStory {
	return &xaStory{in1: queueNamed("IN1"), in2: queueNamed("IN2"), out1: queueNamed("OUT1"), out2: queueNamed("OUT2"),
		news: topicNamed("NEWS"), large: strings.Repeat("large", 60_000)}
}

// prepared does everything up to the prepare, whose error it returns.
func (s *xaStory) prepared(c *client) error {
	c.h.t.Helper()
	// a durable subscriber that is away
	away := c.h.client()
	away.c.info.ClientID = "away"
	away.consume(s.news, func(k *ConsumerSpec) { k.Subscription = "sub" })
	away.c.Close(message.Closed, "", -1)
	c.must(c.send(c.msg(s.in1, "a"), ""))
	c.must(c.send(c.msg(s.in1, "b"), ""))
	c.must(c.send(c.msg(s.in2, "c"), ""))
	one := c.consume(s.in1)
	two := c.consume(s.in2)
	got := c.take()
	return s.work(c, one, two, got)
}

// work is the transaction up to its prepare. Errors are those of a store that fails.
func (s *xaStory) work(c *client, one, two string, got []Delivery) error {
	c.beginXA(xidA)
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	for _, d := range got {
		switch string(d.Message.Body) {
		case "a":
			note(c.ack(queue.Standard, one, d, d, 1, xidA.String()))
		case "c":
			note(c.ack(queue.Standard, two, d, d, 1, xidA.String()))
		}
	}
	note(c.send(c.msg(s.out1, "x"), xidA.String()))
	note(c.send(c.msg(s.out1, s.large), xidA.String()))
	note(c.send(c.msg(s.out2, "y"), xidA.String()))
	note(c.send(c.msg(s.news, "n"), xidA.String()))
	_, err := c.prepare(xidA)
	return errors.Join(append(errs, err)...)
}

// subscribed is what the durable subscription has.
func (s *xaStory) subscribed(h *house) []string {
	c := h.client()
	c.c.info.ClientID = "away"
	c.consume(s.news, func(k *ConsumerSpec) { k.Subscription = "sub" })
	got := texts(c.take())
	c.c.Close(message.Closed, "", -1)
	return got
}

func (s *xaStory) committed(h *house) {
	h.t.Helper()
	h.is(s.in2)
	h.is(s.out1, "x", s.large)
	h.is(s.out2, "y")
	if got := s.subscribed(h); len(got) != 1 || got[0] != "n" {
		h.t.Errorf("the subscription has %q", got)
	}
}

// untouched is what there is where the transaction is neither true nor over, or was
// rolled back; in1 and in2 is what is to be had there.
func (s *xaStory) untouched(h *house, in1, in2 []string) {
	h.t.Helper()
	h.is(s.in1, in1...)
	h.is(s.in2, in2...)
	h.is(s.out1)
	h.is(s.out2)
	if got := s.subscribed(h); len(got) != 0 {
		h.t.Errorf("the subscription has %q", got)
	}
}

func smallTransactions(o *Options) { o.Limits.TransactionBytes = 100_000 }

func recovered(h *house, want ...message.XID) {
	h.t.Helper()
	if got := h.broker.Recover(); !slices.Equal(got, want) {
		h.t.Errorf("recover gives %v, want %v", got, want)
	}
}

// TestPreparedTransactionSurvives: a prepared transaction is there after the power
// has gone, twice, and what it takes is nobody's until its outcome.
func TestPreparedTransactionSurvives(t *testing.T) { // OpenWire 11, R-CNT-10
	t.Parallel()
	for name, commit := range map[string]bool{"committed": true, "rolled back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, smallTransactions, func(h *house) {
				s := newXAStory()
				c := h.client()
				c.must(s.prepared(c))
				recovered(h, xidA)
				h.kill()
				h.kill()
				recovered(h, xidA)
				s.untouched(h, []string{"b*1?"}, nil) // b was out at the crash
				n := h.client()
				if commit {
					n.must(n.commitXA(xidA, false))
					s.committed(h)
					h.is(s.in1, "b*1?")
				} else {
					n.must(n.rollbackXA(xidA))
					s.untouched(h, []string{"a*1", "b*1?"}, []string{"c*1"})
				}
				recovered(h)
				h.kill()
				recovered(h)
				if commit {
					s.committed(h)
				} else {
					s.untouched(h, []string{"a*1", "b*1?"}, []string{"c*1"})
					p, err := h.broker.FindMessage(h.t.Context(), At(s.in2), c.id+":1:1:3")
					c.must(err)
					lines, err := h.broker.Story(p)
					if err != nil || len(lines) != 1 || lines[0].Cause != message.Rollback || lines[0].ClientID != c.id || lines[0].HandedOut == 0 {
						t.Errorf("the story is %+v, %v", lines, err)
					}
				}
				for _, p := range h.broker.o.Records.Prepared() { // at the most the memory of the commit is left
					if !commit || p.Outcome != records.Ended || len(p.Sends)+len(p.Acks) > 0 {
						t.Errorf("the store still has %+v", p)
					}
				}
			})
		})
	}
}

// TestPreparedTransactionsEndAtTheStart is purgeRecoveredXATransactionStrategy: what was
// prepared before is ended as configured, all of it, before anybody connects.
func TestPreparedTransactionsEndAtTheStart(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]PreparedFate{"committed": CommitPrepared, "rolled back": RollBackPrepared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := KeepPrepared
			inHouse(t, func(o *Options) { smallTransactions(o); o.Prepared = now }, func(h *house) {
				s := newXAStory()
				c := h.client()
				c.must(s.prepared(c))
				now = fate
				h.kill()
				recovered(h)
				check := func() {
					h.t.Helper()
					if fate == CommitPrepared {
						s.committed(h)
						h.is(s.in1, "b*1?")
					} else {
						s.untouched(h, []string{"a*1", "b*1?"}, []string{"c*1"})
					}
				}
				check()
				h.kill()
				recovered(h)
				check()
			})
		})
	}
}

// TestReplyOfAPreparedTransactionToNobody: who asked is gone when the transaction that
// answers is committed, or the broker was restarted, which ends all temporary queues. The
// commit was promised: all of it is done, but for the reply, which is dropped and told.
func TestReplyOfAPreparedTransactionToNobody(t *testing.T) { // OpenWire 11
	t.Parallel()
	for name, kill := range map[string]bool{"the requester has gone": false, "the broker was killed": true} {
		for _, persistent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, persistent %t", name, persistent), func(t *testing.T) {
				t.Parallel()
				inHouse(t, smallTransactions, func(h *house) {
					in, out := queueNamed("IN"), queueNamed("OUT")
					topic := message.Destination{Kind: message.TempTopic, Name: "ID:asks:2"}
					r := h.requester("ID:asks", true)
					r.ask()
					r.must(r.c.AddDestination(t.Context(), topic))
					c := h.client()
					c.must(c.send(c.msg(in, "a"), ""))
					k := c.consume(in)
					d := c.take()[0]
					c.beginXA(xidA)
					c.must(c.ack(queue.Standard, k, d, d, 1, xidA.String()))
					both := message.Destination{Kind: message.Queue, Name: "queue://OUT,temp-queue://" + r.replies.Name}
					for _, to := range []message.Destination{r.replies, topic, both} {
						c.must(c.send(c.msg(to, "re: a", func(m *message.Message) { m.Persistent = persistent || to == both }), xidA.String()))
					}
					c.must(c.send(c.msg(r.replies, strings.Repeat("large", 60_000), func(m *message.Message) { m.Persistent = persistent }), xidA.String()))
					_, err := c.prepare(xidA)
					c.must(err)
					if kill {
						h.kill()
						c = h.client()
					} else {
						r.c.Close(message.Closed, "", -1)
					}
					c.must(c.commitXA(xidA, false))
					recovered(h)
					h.is(in)
					h.is(out, "re: a")
					want := int64(4) // of which those that are not persistent went with the process
					if kill && !persistent {
						want = 1
					}
					if n := h.broker.Counted(Discarded); n != want {
						t.Errorf("%d were dropped, want %d", n, want)
					}
					h.kill()
					h.is(in)
					h.is(out, "re: a")
					recovered(h)
				})
			})
		}
	}
}

// TestPreparedTransactionLosesItsConnection: it stays prepared, its messages are
// nobody's, and any connection may end it.
func TestPreparedTransactionLosesItsConnection(t *testing.T) { // OpenWire 11
	t.Parallel()
	for name, cause := range map[string]message.Cause{"closed": message.Closed, "lost": message.ConnectionLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				s := newXAStory()
				c := h.client()
				c.must(s.prepared(c))
				c.c.Close(cause, "", queue.UnknownLast)
				s.untouched(h, []string{"b*1"}, nil) // the next in hand-out order: the application may have had it
				n := h.client()
				n.must(n.commitXA(xidA, false))
				s.committed(h)
			})
		})
	}
}

// TestUnpreparedTransactionEndsWithItsConnection: its messages go back, counted as
// what they are.
func TestUnpreparedTransactionEndsWithItsConnection(t *testing.T) { // OpenWire 11
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		in, out := queueNamed("IN"), queueNamed("OUT")
		c := h.client()
		c.must(c.send(c.msg(in, "a"), ""))
		k := c.consume(in)
		d := c.take()[0]
		c.beginXA(xidA)
		c.must(c.ack(queue.Standard, k, d, d, 1, xidA.String()))
		other := h.client()
		other.beginXA(xidA) // joins
		other.must(other.send(other.msg(out, "x"), xidA.String()))
		c.c.Close(message.ConnectionLost, "", queue.UnknownLast)
		h.is(in, "a*1")
		if _, err := other.prepare(xidA); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("prepare: %v", err)
		}
		h.is(out)
	})
}

// TestXACalls are the calls that a transaction takes in each of its states.
func TestXACalls(t *testing.T) { // OpenWire 11
	t.Parallel()
	calls := []struct {
		name string
		call func(*client) error
	}{
		{"prepare", func(c *client) error { _, err := c.prepare(xidA); return err }},
		{"one-phase", func(c *client) error { return c.commitXA(xidA, true) }},
		{"commit", func(c *client) error { return c.commitXA(xidA, false) }},
		{"rollback", func(c *client) error { return c.rollbackXA(xidA) }},
		{"forget", func(c *client) error { return c.forgetXA(xidA) }},
		{"begin", func(c *client) error { _, err := c.c.BeginXA(xidA, false); return err }},
	}
	kind := func(err error) string {
		var ended *TransactionEndedError
		switch {
		case err == nil:
			return "ok"
		case errors.As(err, &ended) && ended.ByHand:
			return fmt.Sprintf("by hand %v", ended.Committed)
		case errors.As(err, &ended):
			return fmt.Sprintf("ended, timed out %v", ended.TimedOut)
		}
		for _, k := range message.Kinds() {
			if errors.Is(err, k) {
				return k.Error()
			}
		}
		return err.Error()
	}
	begun := func(c *client) {
		c.beginXA(xidA)
		c.must(c.send(c.msg(queueNamed("Q"), "x"), xidA.String()))
	}
	for name, state := range map[string]struct {
		reach func(*client)
		want  []string
	}{
		"none":     {func(*client) {}, []string{"not found", "not found", "not found", "not found", "not found", "ok"}},
		"begun":    {begun, []string{"ok", "ok", "wrong state", "ok", "ok", "ok"}},
		"prepared": {func(c *client) { begun(c); _, err := c.prepare(xidA); c.must(err) }, []string{"wrong state", "ok", "ok", "ok", "ok", "already exists"}},
		"by hand": {func(c *client) {
			begun(c)
			_, err := c.prepare(xidA)
			c.must(err)
			c.must(c.h.broker.EndTransaction(c.h.t.Context(), xidA, true))
		}, []string{"by hand true", "by hand true", "by hand true", "by hand true", "ok", "already exists"}},
		"timed out": {func(c *client) { begun(c); time.Sleep(time.Minute); c.take() }, []string{"ended, timed out true", "ended, timed out true",
			"ended, timed out true", "ok", "ok", "ok"}},
	} {
		for i, call := range calls {
			t.Run(name+"/"+call.name, func(t *testing.T) {
				t.Parallel()
				inHouse(t, func(o *Options) { o.Limits.TransactionTime = time.Minute }, func(h *house) {
					c := h.client()
					state.reach(c)
					if got := kind(call.call(c)); got != state.want[i] {
						t.Errorf("%s, want %s", got, state.want[i])
					}
				})
			})
		}
	}
}

func TestXAReadOnly(t *testing.T) { // OpenWire 11: nothing was done, the transaction is over
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.beginXA(xidA)
		if readOnly, err := c.prepare(xidA); !readOnly || err != nil {
			t.Errorf("read only %v, %v", readOnly, err)
		}
		if err := c.commitXA(xidA, false); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("commit: %v", err)
		}
	})
}

// TestXATimeOut: what took too long is rolled back, counted, and refuses to be
// prepared; a prepared transaction has all the time there is.
func TestXATimeOut(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *Options) { o.Limits.TransactionTime = time.Minute }, func(h *house) {
		in := queueNamed("IN")
		c := h.client()
		c.must(c.send(c.msg(in, "a"), ""))
		k := c.consume(in)
		d := c.take()[0]
		c.beginXA(xidA)
		c.must(c.ack(queue.Standard, k, d, d, 1, xidA.String()))
		time.Sleep(59 * time.Second)
		if got := h.broker.Transactions(); len(got) != 1 || got[0].State != "active" {
			t.Fatalf("before its time: %+v", got)
		}
		time.Sleep(time.Second)
		c.take()
		if got := h.broker.Transactions(); len(got) != 1 || got[0].State != "timed-out" {
			t.Fatalf("after its time: %+v", got)
		}
		if err := c.send(c.msg(in, "late"), xidA.String()); !errors.Is(err, message.ErrState) {
			t.Errorf("send: %v", err)
		}
		var ended *TransactionEndedError
		if _, err := c.prepare(xidA); !errors.As(err, &ended) || !ended.TimedOut {
			t.Errorf("prepare: %v", err)
		}
		if n := h.broker.Counted(TransactionTimedOut); n != 1 {
			t.Errorf("told %d times", n)
		}
		c.c.Close(message.Closed, "", int64(d.Entry.Position))
		h.is(in, "a*1") // the rollback and the close are one failure

		p := h.client()
		p.beginXA(xidA)
		p.must(p.send(p.msg(in, "b"), xidA.String()))
		_, err := p.prepare(xidA)
		p.must(err)
		time.Sleep(time.Hour)
		recovered(h, xidA)
		p.must(p.commitXA(xidA, false))
	})
}

// TestXAByHand: people end a prepared transaction; its manager is told until it
// forgets it, also after a restart.
func TestXAByHand(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"committed": true, "rolled back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, smallTransactions, func(h *house) {
				s := newXAStory()
				c := h.client()
				c.must(s.prepared(c))
				got := h.broker.Transactions()
				want := TransactionStatus{XID: xidA, State: "prepared", Begun: got[0].Begun, Prepared: got[0].Prepared, Connection: c.id, ClientID: c.id,
					Address: "pipe", Sends: 4, Bytes: 4*1024 + 3 + int64(len(s.large)), Acks: 2, Queues: []message.Destination{s.in1, s.in2}}
				if diff := cmp.Diff([]TransactionStatus{want}, got); diff != "" {
					t.Errorf("listed (-want +got):\n%s", diff)
				}
				c.must(h.broker.EndTransaction(h.t.Context(), xidA, commit))
				if commit {
					s.committed(h)
				} else if back := texts(c.take()); len(back) != 2 { // c still has its consumers: it gets them anew
					t.Errorf("after the rollback came %q", back)
				}
				recovered(h, xidA)
				h.kill()
				recovered(h, xidA)
				var ended *TransactionEndedError
				n := h.client()
				if err := n.commitXA(xidA, false); !errors.As(err, &ended) || !ended.ByHand || ended.Committed != commit {
					t.Errorf("commit: %v", err)
				}
				if err := n.rollbackXA(xidA); !errors.As(err, &ended) || !ended.ByHand || ended.Committed != commit {
					t.Errorf("rollback: %v", err)
				}
				n.must(n.forgetXA(xidA))
				recovered(h)
				h.kill()
				recovered(h)
			})
		})
	}
}

// TestXAByHandTakesOnlyPrepared: what its client is at is the client's.
func TestXAByHandTakesOnlyPrepared(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.beginXA(xidA)
		for _, err := range []error{h.broker.EndTransaction(h.t.Context(), xidA, true), h.broker.ForgetTransaction(xidA)} {
			if !errors.Is(err, message.ErrState) {
				t.Errorf("%v", err)
			}
		}
		if err := h.broker.EndTransaction(h.t.Context(), message.XID{Format: 1}, true); !errors.Is(err, message.ErrNotFound) {
			t.Errorf("%v", err)
		}
		c.must(c.send(c.msg(queueNamed("Q"), "x"), xidA.String()))
		_, err := c.prepare(xidA)
		c.must(err)
		c.must(h.broker.EndTransaction(h.t.Context(), xidA, false))
		c.must(h.broker.ForgetTransaction(xidA))
		recovered(h)
	})
}

// TestXACrashAtEveryBatch: the store stops taking batches at each one there is; what
// is left is whole, and holds what was answered.
func TestXACrashAtEveryBatch(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"commit": true, "rollback": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, more := 1, true; more; n++ {
				inHouse(t, smallTransactions, func(h *house) { more = crashAt(h, n, commit) })
				if n > 60 {
					t.Fatal("this never ends")
				}
			}
		})
	}
}

// crashAt lets the nth batch of the transaction be the first that is lost. It returns
// false where there was none.
func crashAt(h *house, n int, commit bool) bool {
	s := newXAStory()
	h.stop()
	h.faults = errstore.Wrap(h.store)
	h.open()
	c := h.client()
	away := h.client()
	away.c.info.ClientID = "away"
	away.consume(s.news, func(k *ConsumerSpec) { k.Subscription = "sub" })
	away.c.Close(message.Closed, "", -1)
	c.must(c.send(c.msg(s.in1, "a"), ""))
	c.must(c.send(c.msg(s.in2, "c"), ""))
	one, two := c.consume(s.in1), c.consume(s.in2)
	got := c.take()
	before := h.faults.Commits()
	h.faults.Fail(n, errstore.Fault{Err: errors.New("no power"), Dead: true})
	prepared := s.work(c, one, two, got)
	ended := errors.New("not asked for")
	if prepared == nil {
		if commit {
			ended = c.commitXA(xidA, false)
		} else {
			ended = c.rollbackXA(xidA)
		}
	}
	c.take()
	hit := h.faults.Commits() >= before+n
	h.kill()
	what := fmt.Sprintf("batch %d lost (prepare: %v, end: %v)", n, prepared, ended)
	pending := h.broker.Recover()
	if prepared == nil && len(pending) == 0 && ended != nil && hit && h.contents(s.in2) == nil && commit {
		// the commit's batch is on disk, and its answer was not given
		ended = nil
	}
	switch {
	case len(pending) == 1:
		if ended == nil {
			h.t.Errorf("%s: the transaction is prepared again", what)
		}
		s.untouched(h, nil, nil)
		m := h.client()
		if n%2 == 0 {
			m.must(m.commitXA(xidA, false))
			s.committed(h)
			h.is(s.in1)
		} else {
			m.must(m.rollbackXA(xidA))
			s.untouched(h, []string{"a*1"}, []string{"c*1"})
		}
	case prepared == nil && ended == nil && commit:
		s.committed(h)
		h.is(s.in1)
	case prepared == nil && ended == nil:
		s.untouched(h, []string{"a*1"}, []string{"c*1"})
	default: // never prepared, or rolled back without an answer: they were out, or are counted
		in1, in2 := h.contents(s.in1), h.contents(s.in2)
		if len(in1) != 1 || len(in2) != 1 || !strings.HasPrefix(in1[0], "a*1") || !strings.HasPrefix(in2[0], "c*1") {
			h.t.Errorf("%s: %q, %q", what, in1, in2)
		}
		if prepared == nil && commit {
			h.t.Errorf("%s: it was prepared, and is gone", what)
		}
		h.is(s.out1)
	}
	if h.t.Failed() {
		h.t.Fatal(what)
	}
	return hit
}

// TestXACommitThatFailsStaysPrepared: a store that takes nothing any more.
func TestXACommitThatFailsStaysPrepared(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*client) error{
		"commit":   func(c *client) error { return c.commitXA(xidA, false) },
		"rollback": func(c *client) error { return c.rollbackXA(xidA) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				h.stop()
				h.faults = errstore.Wrap(h.store)
				h.open()
				c := h.client()
				c.beginXA(xidA)
				c.must(c.send(c.msg(queueNamed("Q"), "x"), xidA.String()))
				_, err := c.prepare(xidA)
				c.must(err)
				h.faults.Fail(1, errstore.Fault{Err: errors.New("disk"), Dead: true})
				if err := end(c); !errors.Is(err, message.ErrUnavailable) {
					t.Errorf("%v", err)
				}
				recovered(h, xidA)
				h.kill()
				recovered(h, xidA)
			})
		})
	}
}

// TestXALargeBodiesOfTopics: a staged message reaches consumers without a durable
// name whole.
func TestXALargeBodiesOfTopics(t *testing.T) {
	t.Parallel()
	inHouse(t, smallTransactions, func(h *house) {
		s := newXAStory()
		c := h.client()
		k := h.client()
		k.consume(s.news)
		c.beginXA(xidA)
		c.must(c.send(c.msg(s.news, s.large), xidA.String()))
		c.must(c.send(c.msg(s.news, "small"), xidA.String()))
		c.must(c.send(c.msg(s.news, "passing", func(m *message.Message) { m.Persistent = false }), xidA.String()))
		_, err := c.prepare(xidA)
		c.must(err)
		c.must(c.commitXA(xidA, false))
		if got := texts(k.take()); !slices.Equal(got, []string{s.large, "small", "passing"}) {
			t.Errorf("%d messages", len(got))
		}
	})
}

// TestXARedeliveryPolicy: a rollback after a restart is decided by the policy as any.
func TestXARedeliveryPolicy(t *testing.T) {
	t.Parallel()
	policy := func(o *Options) {
		o.Policy = func(message.Destination) Policy {
			return Policy{Rules: redelivery.Rules{Redelivery: &redelivery.Policy{MaximumRedeliveries: 0}}}
		}
	}
	inHouse(t, policy, func(h *house) {
		in := queueNamed("IN")
		c := h.client()
		c.must(c.send(c.msg(in, "a"), ""))
		k := c.consume(in)
		d := c.take()[0]
		c.beginXA(xidA)
		c.must(c.ack(queue.Standard, k, d, d, 1, xidA.String()))
		_, err := c.prepare(xidA)
		c.must(err)
		h.kill()
		n := h.client()
		n.must(n.rollbackXA(xidA))
		h.is(in)
		h.is(queueNamed("ActiveMQ.DLQ"), "a")
	})
}

// TestXAScheduled: a scheduled message of a prepared transaction is counted from the
// commit on, also after a crash.
func TestXAScheduled(t *testing.T) { // R-SCH-03
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		q := queueNamed("Q")
		c := h.client()
		c.beginXA(xidA)
		c.must(c.send(c.msg(q, "later", func(m *message.Message) {
			m.Schedule = &message.Schedule{Delay: 60_000}
			m.Persistent = false
		}), xidA.String()))
		_, err := c.prepare(xidA)
		c.must(err)
		h.kill()
		time.Sleep(time.Hour)
		n := h.client()
		n.must(n.commitXA(xidA, false))
		time.Sleep(59 * time.Second)
		h.is(q)
		time.Sleep(2 * time.Second)
		h.is(q, "later")
	})
}

// TestXAComesBack: a client that comes back repeats what it did; what is prepared or
// has ended is told so.
func TestXAComesBack(t *testing.T) { // R-CLIENT-62
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		begin := func(again bool) (bool, error) { return c.c.BeginXA(xidA, again) }
		c.beginXA(xidA)
		c.must(c.send(c.msg(queueNamed("Q"), "x"), xidA.String()))
		_, err := c.prepare(xidA)
		c.must(err)
		if over, err := begin(true); !over || err != nil {
			t.Errorf("prepared: %v, %v", over, err)
		}
		if _, err := begin(false); !errors.Is(err, message.ErrExists) {
			t.Errorf("prepared, and not again: %v", err)
		}
		c.must(c.commitXA(xidA, false))
		if over, err := begin(true); !over || err != nil {
			t.Errorf("committed: %v, %v", over, err)
		}
		h.kill()
		c = h.client()
		if over, err := begin(true); !over || err != nil || !c.c.CommittedXA(xidA) {
			t.Errorf("committed, and the broker killed: %v, %v", over, err)
		}
		if over, err := begin(false); over || err != nil {
			t.Errorf("a new one of that name: %v, %v", over, err)
		}
	})
}

// TestXARemembersSoManyCommits: and their records in the store are no more.
func TestXARemembersSoManyCommits(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		xid := func(n int) message.XID { return message.XID{Format: int32(n)} }
		for n := range maxCommitted + 5 {
			c.beginXA(xid(n))
			c.must(c.send(c.msg(queueNamed("Q"), "x"), xid(n).String()))
			_, err := c.prepare(xid(n))
			c.must(err)
			c.must(c.commitXA(xid(n), false))
		}
		for range 2 {
			if c.c.CommittedXA(xid(4)) || !c.c.CommittedXA(xid(5)) || !c.c.CommittedXA(xid(maxCommitted+4)) {
				t.Errorf("not the last %d are remembered", maxCommitted)
			}
			h.kill()
			c = h.client()
		}
		if n := len(h.broker.o.Records.Prepared()); n != maxCommitted {
			t.Errorf("%d records", n)
		}
		recovered(h)
	})
}

// TestXAKeepsItsQueues: what has messages of a prepared transaction cannot be removed.
func TestXAKeepsItsQueues(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		in, news := queueNamed("IN"), topicNamed("NEWS")
		c := h.client()
		k := c.consume(in)
		sub := c.consume(news, func(s *ConsumerSpec) { s.Subscription = "sub" })
		c.must(c.send(c.msg(in, "a"), ""))
		c.must(c.send(c.msg(news, "n"), ""))
		c.beginXA(xidA)
		for _, d := range c.take() {
			c.must(c.ack(queue.Standard, d.Consumer, d, d, 1, xidA.String()))
		}
		_, err := c.prepare(xidA)
		c.must(err)
		for _, id := range []string{k, sub} {
			answered := make(chan error, 1)
			c.c.CloseConsumer(h.t.Context(), id, -1, func(err error) { answered <- err })
			c.must(<-answered)
		}
		remove := func() []error {
			return []error{c.c.RemoveDestination(h.t.Context(), in), c.c.Unsubscribe(h.t.Context(), "sub")}
		}
		changed := ConsumerSpec{ID: "other", Session: c.id + ":1", Destination: news, Subscription: "sub", Selector: "x = 1", Prefetch: 1}
		for _, err := range append(remove(), c.c.Subscribe(h.t.Context(), changed)) {
			if !errors.Is(err, message.ErrState) || !strings.Contains(err.Error(), xidA.String()) {
				t.Errorf("%v", err)
			}
		}
		c.must(c.rollbackXA(xidA))
		h.is(in, "a*1")
		for _, err := range remove() {
			c.must(err)
		}
	})
}
