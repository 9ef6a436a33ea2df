package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// TestGroupLaws gives a grouped queue random commands and wants of what it hands
// out what a naive reckoning says: a group's messages go to its owner alone, in
// their order through delays and lost consumers, the first of a group to who owns
// the fewest, and whatever may go does go (R-GRP-01, R-GRP-03, C24).
func TestGroupLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := newGroupTest(t)
		x.rebalances = rapid.Bool().Draw(t, "rebalances")
		x.m.o.Rebalance = x.rebalances
		t.Repeat(map[string]func(*rapid.T){
			"send":    x.send,
			"attach":  x.attach,
			"detach":  x.detach,
			"ack":     x.ack,
			"fail":    x.fail,
			"widen":   x.widen,
			"enlist":  x.enlist,
			"settle":  x.settle,
			"sleep":   x.sleep,
			"regroup": x.regroup,
			"":        x.check,
		})
		x.drain(t)
	})
}

const groupDelay = time.Second

// A member is a message as the naive reckoning knows it.
type member struct {
	position uint64
	group    string
	ends     bool   // its group, when it is handed out
	consumer string // that has it; "": none
	closed   int    // how often its group was closed before it was handed out
	tx       string
	covered  bool  // a DELIVERED ack told of it
	failed   bool  // rolled back, and with its consumer still
	limbo    bool  // acknowledged in a transaction, its consumer gone
	due      int64 // 0: it may go
	gone     bool
}

func (m *member) parked(now int64) bool { return !m.gone && (m.limbo || m.due > now) }
func (m *member) waits(now int64) bool {
	return !m.gone && m.consumer == "" && !m.limbo && m.due <= now
}

type groupTest struct {
	t         *rapid.T
	m         *Machine
	now       int64
	members   []*member // by position, from 1
	consumers []*Consumer
	owner     map[string]string
	closed    map[string]int
	made      int
	shelf     *shelf

	rebalances bool
	leaving    map[string]bool // groups that leave their owner once it has no member
	elected    *Consumer       // the exclusive consumer, when the groups were last looked at for it
}

func newGroupTest(t *rapid.T) *groupTest {
	policy := redelivery.DefaultPolicy()
	policy.MaximumRedeliveries, policy.InitialRedeliveryDelay, policy.RedeliveryDelay = 2, groupDelay, groupDelay
	return &groupTest{t: t, now: begin, owner: map[string]string{}, leaving: map[string]bool{}, closed: map[string]int{}, shelf: newShelf(), m: New(Options{
		Destination: message.Destination{Kind: message.Queue, Name: "Q"},
		Window:      rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "window"),
		Redelivers:  true, Marks: true, Grouped: true, Rules: redelivery.Rules{Redelivery: &policy}, Jitter: func() float64 { return 0 },
	})}
}

// apply gives the machine a command and holds what it hands out against the laws.
func (x *groupTest) apply(c Command) {
	for todo := []Command{c}; len(todo) > 0; todo = todo[1:] {
		todo = append(todo, x.turn(todo[0])...)
	}
	x.leave()
}

// turn gives the machine a command as a turn of its own, and reads the pages that it
// asks for.
func (x *groupTest) turn(c Command) (pages []Command) {
	effects := x.m.EndTurn(x.m.Apply(c, x.now, nil))
	for i := range effects {
		e := &effects[i]
		err := x.shelf.apply(e)
		switch e.Kind {
		case Deliver:
			x.delivered(e)
		case Forget:
			err = x.shelf.remove(e.Item.lane, e.Item)
			x.members[e.Item.Position-1].gone = true
		case Remove, Transfer:
			x.members[e.Item.Position-1].gone = true
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
	for i := range effects {
		if page := x.shelf.read(&effects[i]); page != nil {
			pages = append(pages, page)
		}
	}
	return pages
}

// leave takes groups from owners that have no member of them any more.
func (x *groupTest) leave() {
	for g := range x.leaving {
		if x.owner[g] == "" || !slices.ContainsFunc(x.members, func(o *member) bool { return o.group == g && o.consumer == x.owner[g] && !o.gone }) {
			delete(x.owner, g)
			delete(x.leaving, g)
		}
	}
}

func (x *groupTest) delivered(e *Effect) {
	it, to := x.members[e.Item.Position-1], e.Consumer.ID
	x.leave()
	if k := x.exclusive(); k != nil && k.ID != to {
		x.t.Fatalf("%d went to %s, while %s is exclusive", it.position, to, k.ID)
	}
	if x.leaving[it.group] {
		x.t.Fatalf("%d of %s was handed out while that leaves its owner", it.position, it.group)
	}
	if !it.waits(x.now) {
		x.t.Fatalf("%d was handed out while it is %+v", it.position, it)
	}
	if it.group != "" {
		for _, o := range x.members {
			if o.group == it.group && (o.parked(x.now) || o.position < it.position && o.waits(x.now)) {
				x.t.Fatalf("%d of %s was handed out before %d", it.position, it.group, o.position)
			}
		}
		switch owner := x.owner[it.group]; {
		case owner == "" && !e.First:
			x.t.Fatalf("%d is not called the first of %s for %s", it.position, it.group, to)
		case owner == "":
			for _, k := range x.consumers {
				if x.exclusive() == nil && x.room(k) && x.owned(k.ID) < x.owned(to) && x.m.o.Window == DefaultWindow { // else it may not have come to look at it yet
					x.t.Fatalf("%s went to %s, which owns %d groups, not to %s, which owns %d", it.group, to, x.owned(to), k.ID, x.owned(k.ID))
				}
			}
		case owner != to || e.First:
			x.t.Fatalf("%d of %s, which is %s's, went to %s, first %t", it.position, it.group, owner, to, e.First)
		}
		x.owner[it.group] = to
		it.closed = x.closed[it.group]
		if it.ends {
			delete(x.owner, it.group)
			x.closed[it.group]++
		}
	}
	it.consumer, it.due, it.failed, it.covered = to, 0, false, false
	has := 0
	for _, o := range x.members {
		if o.group == it.group && o.group != "" && o.closed == it.closed && o.consumer == to && !o.gone {
			has++
		}
	}
	if has > e.Consumer.Prefetch {
		x.t.Fatalf("%s has %d members of %s at a time", to, has, it.group)
	}
}

// exclusive is the consumer that has everything; nil: there is none.
func (x *groupTest) exclusive() *Consumer {
	if i := slices.IndexFunc(x.consumers, func(k *Consumer) bool { return k.Exclusive }); i >= 0 {
		return x.consumers[i]
	}
	return nil
}

// elect has the groups leave their owners where another consumer has everything from now on.
func (x *groupTest) elect() {
	k := x.exclusive()
	if k != nil && k != x.elected {
		for g, owner := range x.owner {
			if owner != k.ID {
				x.leaving[g] = true
			}
		}
	}
	x.elected = k
	x.leave()
}

func (x *groupTest) owned(consumer string) (n int) {
	for _, o := range x.owner {
		if o == consumer {
			n++
		}
	}
	return n
}

func (x *groupTest) held(consumer string) (n int) {
	for _, it := range x.members {
		if it.consumer == consumer && !it.gone {
			n++
		}
	}
	return n
}

func (x *groupTest) room(k *Consumer) bool { return x.held(k.ID) < k.Prefetch }

func (x *groupTest) send(t *rapid.T) {
	x.t = t
	it := &member{position: uint64(len(x.members) + 1), group: rapid.SampledFrom([]string{"", "A", "B", "C"}).Draw(t, "group")}
	sequence := int32(rapid.SampledFrom([]int{0, 0, 0, 0, -1}).Draw(t, "sequence"))
	it.ends = sequence < 0 && it.group != ""
	x.members = append(x.members, it)
	i := NewItem(it.position, &message.Message{ID: message.ID{Producer: "P", Sequence: int64(it.position)}, Persistent: true, GroupID: it.group, GroupSequence: sequence})
	i.Durable = true
	x.apply(Enqueue{Item: i})
}

func (x *groupTest) attach(t *rapid.T) {
	x.t = t
	if len(x.consumers) == 4 {
		t.Skip("enough")
	}
	x.made++
	k := &Consumer{ID: fmt.Sprintf("c%d", x.made), Connection: fmt.Sprintf("n%d", x.made), Prefetch: rapid.IntRange(1, 3).Draw(t, "prefetch"),
		Exclusive: rapid.IntRange(0, 5).Draw(t, "exclusive") == 0}
	x.consumers = append(x.consumers, k)
	if x.rebalances {
		x.takeFromOwners("")
	}
	x.elect()
	x.apply(Attach{Consumer: k})
}

// takeFromOwners has a group leave its owner, or with "" all theirs.
func (x *groupTest) takeFromOwners(group string) {
	for g := range x.owner {
		if group == "" || g == group {
			x.leaving[g] = true
		}
	}
	x.leave()
}

func (x *groupTest) regroup(t *rapid.T) {
	x.t = t
	group := rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "group")
	x.takeFromOwners(group)
	x.apply(Regroup{Group: group})
}

func (x *groupTest) detach(t *rapid.T) {
	x.t = t
	if len(x.consumers) == 0 {
		t.Skip("none")
	}
	i := rapid.IntRange(0, len(x.consumers)-1).Draw(t, "consumer")
	k := x.consumers[i]
	x.consumers = slices.Delete(x.consumers, i, i+1)
	for g, o := range x.owner {
		if o == k.ID {
			delete(x.owner, g)
		}
	}
	for _, it := range x.members {
		if it.consumer == k.ID {
			it.consumer, it.limbo = "", it.tx != ""
			if it.failed || it.covered {
				it.due = x.now + groupDelay.Milliseconds()
			}
		}
	}
	x.elect()
	x.apply(Detach{Consumer: k.ID, Last: -1, Cause: message.Closed})
}

// one draws a member that a consumer has and no transaction.
func (x *groupTest) one(t *rapid.T) *member {
	x.t = t
	var out []*member
	for _, it := range x.members {
		if it.consumer != "" && it.tx == "" && !it.gone {
			out = append(out, it)
		}
	}
	if len(out) == 0 {
		t.Skip("nothing is out")
	}
	return rapid.SampledFrom(out).Draw(t, "message")
}

func (x *groupTest) ack(t *rapid.T) {
	it := x.one(t)
	x.apply(Ack{Consumer: it.consumer, Type: Individual, Last: Ref{Position: it.position}, Count: 1})
}

func (x *groupTest) fail(t *rapid.T) {
	it := x.one(t)
	consumer := it.consumer
	it.consumer, it.due = "", x.now+groupDelay.Milliseconds() // unless it is given up, which its effect says
	x.apply(Ack{Consumer: consumer, Type: Poison, First: Ref{Position: it.position}, Last: Ref{Position: it.position}, Count: 1,
		Text: "java.lang.Throwable: Delivery[1] exceeds redelivery policy limit"})
}

// widen tells that the application has a message, before it is done with it.
func (x *groupTest) widen(t *rapid.T) {
	it := x.one(t)
	it.covered = true
	x.apply(Ack{Consumer: it.consumer, Type: Delivered, First: Ref{Position: it.position}, Last: Ref{Position: it.position}, Count: 1})
}

func (x *groupTest) enlist(t *rapid.T) {
	it := x.one(t)
	it.tx = "T"
	x.apply(Ack{Consumer: it.consumer, Type: Individual, Last: Ref{Position: it.position}, Count: 1, Tx: "T"})
}

func (x *groupTest) settle(t *rapid.T) {
	x.t = t
	commit := rapid.Bool().Draw(t, "commit")
	for _, it := range x.members {
		if it.tx == "" || it.gone {
			continue
		}
		it.tx = ""
		if it.limbo && !commit {
			it.due = x.now + groupDelay.Milliseconds()
		}
		it.failed = !it.limbo && !commit
		it.limbo = false
		it.gone = commit
	}
	x.apply(Settle{Tx: "T", Commit: commit, Cause: message.Rollback})
}

func (x *groupTest) sleep(t *rapid.T) {
	x.t = t
	x.now += int64(rapid.IntRange(1, 1500).Draw(t, "ms"))
	x.apply(Tick{})
}

// check wants that nothing waits that a consumer with room may have, and the owners told
// as they are.
func (x *groupTest) check(t *rapid.T) {
	x.t = t
	owner := map[string]string{}
	for _, o := range x.m.GroupOwners() {
		out := 0
		for _, it := range x.members {
			if it.group == o.Group && it.consumer == o.Consumer.ID && !it.gone {
				out++
			}
		}
		if owner[o.Group] = o.Consumer.ID; o.Leaving != x.leaving[o.Group] || o.Out != out {
			t.Fatalf("%s leaves its owner: %t, want %t; %d are out, want %d", o.Group, o.Leaving, x.leaving[o.Group], o.Out, out)
		}
	}
	if diff := cmp.Diff(x.owner, owner); diff != "" {
		t.Fatalf("owners: -want +got\n%s", diff)
	}
	for _, it := range x.members {
		if !it.waits(x.now) {
			continue
		}
		if it.group != "" && slices.ContainsFunc(x.members, func(o *member) bool { return o.group == it.group && o.parked(x.now) }) {
			continue
		}
		for _, k := range x.consumers {
			owner, leaving := x.owner[it.group], x.leaving[it.group]
			if only := x.exclusive(); only != nil && only != k {
				continue
			}
			if x.room(k) && !leaving && (it.group == "" || owner == "" || owner == k.ID) {
				t.Fatalf("%d of %q waits although %s has room", it.position, it.group, k.ID)
			}
		}
	}
	owners := 0
	for _, o := range x.owner {
		if o != "" {
			owners++
		}
	}
	if n := x.m.groups.recent.Len(); n != owners {
		t.Fatalf("%d groups have owners, the queue knows %d", owners, n)
	}
}

// drain ends everything, and wants nothing left.
func (x *groupTest) drain(t *rapid.T) {
	x.t = t
	x.settle(t)
	if len(x.consumers) == 0 {
		x.attach(t)
	}
	for range 4 * len(x.members) {
		x.now += groupDelay.Milliseconds()
		x.apply(Tick{})
		for _, it := range x.members {
			if it.consumer != "" && !it.gone {
				x.apply(Ack{Consumer: it.consumer, Type: Individual, Last: Ref{Position: it.position}, Count: 1})
			}
		}
	}
	for _, it := range x.members {
		if !it.gone {
			t.Fatalf("%d is left: %+v", it.position, it)
		}
	}
	if n := len(x.m.groups.byID) - x.m.groups.recent.Len(); n != 0 {
		t.Fatalf("%d groups without an owner are remembered", n)
	}
}

// TestManyGroupsAreForgotten: each message has a group of its own (R-GRP-06).
func TestManyGroupsAreForgotten(t *testing.T) {
	t.Parallel()
	m, do := newQueue(Options{Grouped: true})
	do(Attach{Consumer: &Consumer{ID: "c", Prefetch: 10}})
	send := func(position uint64, group string) {
		it := durableItem(position)
		it.Group = group
		do(Enqueue{Item: it})
	}
	send(1, "kept")
	for p := uint64(2); p < 3*maxGroups; p++ {
		send(p, fmt.Sprintf("group-%d", p))
		do(Ack{Consumer: "c", Type: Individual, Last: Ref{Position: p}, Count: 1})
	}
	if n := len(m.groups.byID); n > maxGroups+1 {
		t.Errorf("%d groups are remembered", n)
	}
	if g := m.groups.byID["kept"]; g == nil || g.owner == nil {
		t.Error("a group was forgotten while its owner has a message of it")
	}
	do(Detach{Consumer: "c", Last: -1})
	if n := len(m.groups.byID); n != 0 {
		t.Errorf("%d groups have an owner that is gone", n)
	}
}
