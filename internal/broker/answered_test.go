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
	"github.com/nixiemq/nixie/internal/store/errstore"
)

var errNoPower = errors.New("no power")

// A failing is one client with a message of each of two queues, which it is about to fail.
type failing struct {
	*client
	got       []Delivery
	consumers []string
	inDoubt   bool // a transaction was prepared
}

// all are the bodies of what it has, if what was asked was answered.
func (f *failing) all(err error) []string {
	if errors.Is(err, errNoPower) {
		return nil
	}
	return []string{"m1", "m2"}
}

// first is the first of them.
func (f *failing) first(err error) []string { return f.all(err)[:min(1, len(f.all(err)))] }

func (f *failing) take2(tx string) {
	for i, d := range f.got {
		f.must(f.ack(queue.Standard, f.consumers[i], d, d, 1, tx))
	}
}

func (f *failing) local(h *house) { f.must(f.c.Begin("TX:1")); f.take2("TX:1") }

func (f *failing) xa() { f.beginXA(xidA); f.take2(xidA.String()) }

func (f *failing) prepared() {
	f.xa()
	if _, err := f.prepare(xidA); err != nil {
		f.h.t.Fatal(err)
	}
	f.inDoubt = true
}

// unstorable puts a message into a transaction that no store takes: its commit fails.
func (f *failing) unstorable(tx string) {
	f.must(f.send(f.msg(orders, "huge", func(m *message.Message) { m.Added = map[string]any{"no such type": 1.5} }), tx))
}

// failings are the ways in which a delivery can fail and someone be told that it has:
// first brings the client to the point, then says which messages have failed for sure.
var failings = map[string]struct {
	first func(f *failing)
	then  func(f *failing) (failed []string)
}{
	"a rollback over several queues": {
		func(f *failing) { f.local(f.h) },
		func(f *failing) []string { return f.all(f.settle(f.c.Rollback, "TX:1")) }},
	"a commit that fails": {
		func(f *failing) { f.local(f.h); f.unstorable("TX:1") },
		func(f *failing) []string { return f.all(f.settle(f.c.Commit, "TX:1")) }},
	"a commit of a transaction that can only be rolled back": {
		func(f *failing) { f.local(f.h); f.c.MarkRollbackOnly("TX:1", message.ErrDenied) },
		func(f *failing) []string { return f.all(f.settle(f.c.Commit, "TX:1")) }},
	"an XA rollback": {
		(*failing).xa,
		func(f *failing) []string { return f.all(f.rollbackXA(xidA)) }},
	"an XA rollback of what is prepared": {
		(*failing).prepared,
		func(f *failing) []string { return f.all(f.rollbackXA(xidA)) }},
	"an XA rollback after a restart": {
		func(f *failing) {
			f.prepared()
			f.h.stop()
			f.h.open()
			f.client = f.h.client()
		},
		func(f *failing) []string { return f.all(f.rollbackXA(xidA)) }},
	"an XA rollback by hand": {
		(*failing).prepared,
		func(f *failing) []string { return f.all(f.h.broker.EndTransaction(f.h.t.Context(), xidA, false)) }},
	"forgetting an XA transaction": {
		(*failing).prepared,
		func(f *failing) []string { return f.all(f.forgetXA(xidA)) }},
	"an XA commit in one phase that fails": {
		func(f *failing) { f.xa(); f.unstorable(xidA.String()) },
		func(f *failing) []string { return f.all(f.commitXA(xidA, true)) }},
	"an XA time-out that a commit is told of": {
		(*failing).xa,
		func(f *failing) []string { time.Sleep(time.Minute); return f.all(f.commitXA(xidA, true)) }},
	"an XA time-out that a rollback is told of": {
		(*failing).xa,
		func(f *failing) []string { time.Sleep(time.Minute); return f.all(f.rollbackXA(xidA)) }},
	"recover": {
		func(*failing) {},
		func(f *failing) []string {
			return f.first(f.ack(queue.Redelivered, f.consumers[0], f.got[0], f.got[0], 1, ""))
		}},
	"poison": {
		func(*failing) {},
		func(f *failing) []string {
			return f.first(f.ack(queue.Poison, f.consumers[0], f.got[0], f.got[0], 1, "", poisonText(1)))
		}},
	"poison after a rollback": {
		func(f *failing) { f.local(f.h); f.must(f.settle(f.c.Rollback, "TX:1")) },
		func(f *failing) []string {
			return f.first(f.ack(queue.Poison, f.consumers[0], f.got[0], f.got[0], 1, "", poisonText(1)))
		}},
	"a consumer that closes": {
		func(*failing) {},
		func(f *failing) []string {
			done := make(chan error, 1)
			f.c.CloseConsumer(f.h.t.Context(), f.consumers[0], int64(f.got[0].Entry.Position), func(err error) { done <- err })
			return f.first(<-done)
		}},
	"a session that closes": {
		func(*failing) {},
		func(f *failing) []string {
			done := make(chan error, 1)
			f.c.CloseSession(f.h.t.Context(), f.id+":1", int64(f.got[1].Entry.Position), func(err error) { done <- err })
			return f.all(<-done)
		}},
	"a consumer that closes after a rollback": {
		func(f *failing) { f.local(f.h); f.must(f.settle(f.c.Rollback, "TX:1")) },
		func(f *failing) []string {
			done := make(chan error, 1)
			f.c.CloseConsumer(f.h.t.Context(), f.consumers[0], int64(f.got[0].Entry.Position), func(err error) { done <- err })
			return f.first(<-done)
		}},
	"a connection that closes": {
		func(*failing) {},
		func(f *failing) []string { f.c.Close(message.Closed, "", int64(f.got[1].Entry.Position)); return nil }},
	"a connection that is lost": {
		func(f *failing) { f.local(f.h) },
		func(f *failing) []string { f.c.Close(message.ConnectionLost, "cut", queue.UnknownLast); return nil }},
	"an acknowledgement that does not come": {
		func(*failing) {},
		func(*failing) []string { time.Sleep(2 * time.Minute); return nil }},
}

// broken are the policies that the failings are tried with: whatever fails has failed
// once too often for those that have a limit.
var failingPolicies = map[string]func(*Options){
	"no policy":        func(*Options) {},
	"a limit":          policed(0, time.Second, time.Second, 0),
	"a delay":          policed(5, time.Hour, time.Hour, 0),
	"address-settings": addressed(1, time.Second, redelivery.NoOrigins),
}

// TestAnsweredFailuresAreOnDisk loses the power at each batch in turn while messages
// fail. What was answered is counted afterwards, whatever was lost; nothing is counted
// twice; nothing is lost or doubled; what a policy gave up, or would have, comes to no
// application again.
func TestAnsweredFailuresAreOnDisk(t *testing.T) {
	t.Parallel()
	for policyName, set := range failingPolicies {
		for name, tt := range failings {
			t.Run(policyName+", "+name, func(t *testing.T) {
				t.Parallel()
				for n, more := 1, true; more; n++ {
					if n > 20 {
						t.Fatal("this never ends")
					}
					for _, applied := range []bool{false, true} {
						more = failOnceAt(t, set, tt.first, tt.then, n, applied)
					}
				}
			})
		}
	}
}

// failOnceAt loses the nth batch, or its answer alone, and everything after it. It
// reports whether there was such a batch.
func failOnceAt(t *testing.T, set func(*Options), first func(*failing), then func(*failing) []string, n int, applied bool) (more bool) {
	t.Helper()
	limited := func(o *Options) {
		set(o)
		o.Limits.TransactionTime = time.Minute
		policy := o.Policy
		o.Policy = func(d message.Destination) Policy {
			var p Policy
			if policy != nil {
				p = policy(d)
			}
			p.AckTimeout = 90 * time.Second
			return p
		}
	}
	inHouse(t, limited, func(h *house) {
		h.stop()
		h.faults = errstore.Wrap(h.store)
		h.open()
		f := &failing{client: h.client()}
		for i, q := range []message.Destination{orders, shelf} {
			f.must(f.send(f.msg(q, fmt.Sprint("m", i+1)), ""))
			f.consumers = append(f.consumers, f.consume(q))
			f.got = append(f.got, f.take()...)
		}
		first(f)
		time.Sleep(tick)
		before := h.faults.Commits()
		h.faults.Fail(n, errstore.Fault{Err: errNoPower, Dead: true, Applied: applied})
		failed := then(f)
		f.take()
		more = h.faults.Commits() >= before+n
		h.kill()
		time.Sleep(tick) // what is decided at the start is on disk
		if f.inDoubt && !slices.ContainsFunc(h.broker.Transactions(), func(t TransactionStatus) bool { return t.State == "prepared" }) {
			failed = f.all(nil) // whoever asks for the transaction is told that it has ended
		}
		f.compare(h, failed, n)
	})
	return more
}

// compare looks where the messages are, and what is known of them.
func (f *failing) compare(h *house, failed []string, n int) {
	h.t.Helper()
	there := map[string][]Peek{}
	places := map[string]message.Destination{}
	for _, q := range h.broker.Queues() {
		page, _, err := h.broker.Look(h.t.Context(), At(q.Name), Cursor{}, 100)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, p := range page {
			m, err := h.broker.Read(&p)
			if err != nil {
				h.t.Fatal(err)
			}
			there[string(m.Body)] = append(there[string(m.Body)], p)
			places[string(m.Body)] = q.Name
		}
	}
	c := h.client()
	for _, q := range []message.Destination{orders, shelf} {
		c.consume(q)
	}
	again := texts(c.take())
	for _, text := range []string{"m1", "m2"} {
		if len(there[text]) != 1 {
			h.t.Fatalf("batch %d lost: %s is there %d times", n, text, len(there[text]))
		}
		p := there[text][0]
		story, err := h.broker.Story(&p)
		if err != nil {
			h.t.Fatal(err)
		}
		counted := 0
		for _, a := range story {
			if a.Counted {
				counted++
			}
		}
		dead := places[text] != orders && places[text] != shelf
		given := slices.ContainsFunc(again, func(s string) bool { return strings.HasPrefix(s, text) })
		switch {
		case counted > 1, !dead && int(p.Counts.Failures) != counted, len(story) > counted+1:
			h.t.Errorf("batch %d lost: %s failed once, and has %d failures and the story %+v", n, text, p.Counts.Failures, story)
		case counted == 0 && slices.Contains(failed, text):
			h.t.Errorf("batch %d lost: someone was told that %s has failed, and nobody knows now", n, text)
		}
		if p := h.broker.policy(orders).Rules.Redelivery; p != nil && counted > 0 {
			switch over := p.Exhausted(1); {
			case over && (!dead || given):
				h.t.Errorf("batch %d lost: %s is in %s (given again: %v), and the policy has given it up", n, text, places[text], given)
			case !over && (dead || given):
				h.t.Errorf("batch %d lost: %s is in %s (given again: %v), and its delay has not passed", n, text, places[text], given)
			}
		}
	}
}
