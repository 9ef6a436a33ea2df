package queue

import (
	lru "container/list"

	"github.com/nixiemq/nixie/internal/message"
)

// A group is the messages of one JMSXGroupID: they go to one consumer, its owner,
// for as long as that is attached (R-GRP-01), and in their order, through delays
// too (C24): while a member that was here before waits for a time or for the end
// of a transaction, no later one is handed out. Members that a consumer has
// prefetched are not called back.
//
// The first member binds its group to the consumer of the highest priority that
// has room and owns the fewest groups, so that new consumers get their share of
// new groups; groups that have an owner stay with it, unless the queue rebalances:
// then a new consumer has all groups bound anew, each as soon as its owner is done
// with what it has of it. What an owner leaves is bound anew when a member is next
// handed out.
type group struct {
	id    string
	owner *Consumer // nil: none at present
	// leaving says that the owner gets no more members, and loses the group when it
	// is done with those that it has.
	leaving bool
	// parked is how many members wait for a time or a transaction.
	parked int
	// passed is the lowest position of a member that consumers with room have passed
	// over, withheld that of one that its owner has, to have not too many; 0: none.
	passed, withheld uint64
	recent           *lru.Element // in groups.recent; nil: it has no owner
}

// groups are those of which a queue knows something: an owner, or what is parked.
// So that a queue in which each message has a group of its own needs no end of
// memory, those not heard of for longest are forgotten, but for what is parked and
// what their owners have in hand (R-GRP-06, done better).
type groups struct {
	byID   map[string]*group
	recent *lru.List // those that have owners, the last one heard of first
}

const (
	// maxGroups is how many groups with an owner a queue remembers, if no more have
	// messages in hand.
	maxGroups = 10_000
	// maxForgets is how many groups are looked at to find one that can be forgotten.
	maxForgets = 8
)

func newGroups() groups { return groups{byID: map[string]*group{}, recent: lru.New()} }

// group is what is known of an item's group; nil if that is nothing.
func (m *Machine) group(it *Item) *group {
	if it.Group == "" || !m.o.Grouped {
		return nil
	}
	return m.groups.byID[it.Group]
}

func (m *Machine) makeGroup(id string) *group {
	g := m.groups.byID[id]
	if g == nil {
		g = &group{id: id}
		m.groups.byID[id] = g
	}
	return g
}

// bind makes the consumer that an item goes to the owner of its group, if it has
// none, or the producer says that it begins anew. It reports whether the consumer
// is its owner only since now.
func (m *Machine) bind(it *Item, c *Consumer) (first bool) {
	if it.Group == "" || !m.o.Grouped {
		return false
	}
	g := m.makeGroup(it.Group)
	switch {
	case g.owner == nil, g.owner != c && startsAnew(it):
		m.unbind(g)
		g.owner, g.recent = c, m.groups.recent.PushFront(g)
		if c.owns == nil {
			c.owns = map[*group]bool{}
		}
		c.owns[g] = true
		first = true
	case g.owner == c:
		m.groups.recent.MoveToFront(g.recent)
	}
	if it.Mark == message.GroupEnd {
		m.unbind(g)
		m.lookAgain(g)
		m.forgetIdle(g)
	}
	m.forgetSome()
	return first
}

// startsAnew reports whether an item gives its group to whoever gets it. One that
// comes back has done so before.
func startsAnew(it *Item) bool {
	return it.Mark == message.GroupStart && it.HandOuts == 0 && it.Failures == 0
}

func (m *Machine) unbind(g *group) {
	if g.owner == nil {
		return
	}
	delete(g.owner.owns, g)
	m.groups.recent.Remove(g.recent)
	g.owner, g.recent, g.leaving = nil, nil, false
}

// Regroup takes a group from its owner, or with "" all groups from theirs: each goes to
// whoever is next as soon as its owner is done with the members that it has, and until
// then waits.
type Regroup struct{ Group string }

func (Regroup) command() {}

// regroup takes a group from its owner, or with "" all groups from theirs, unless that is
// the one that keeps its groups.
func (m *Machine) regroup(id string, keeps *Consumer) {
	for _, c := range m.consumers {
		if c == keeps || len(c.owns) == 0 {
			continue
		}
		has := c.holdsByGroup()
		for g := range c.owns {
			if id != "" && g.id != id {
				continue
			}
			if g.leaving = has[g.id] > 0; !g.leaving {
				m.release(g)
			}
		}
	}
}

// holdsByGroup is how many members of each group a consumer has.
func (c *Consumer) holdsByGroup() map[string]int {
	has := map[string]int{}
	for it := c.held.head; it != nil; it = it.next {
		has[it.Group]++
	}
	return has
}

// A GroupOwner says whose a group is.
type GroupOwner struct {
	Group    string
	Consumer *Consumer
	Out      int  // members that it has
	Leaving  bool // it gets no more members, and loses the group when it is done with those
}

// GroupOwners are the groups that have owners now, in no order.
func (m *Machine) GroupOwners() []GroupOwner {
	var all []GroupOwner
	for _, c := range m.consumers {
		out := c.holdsByGroup()
		for g := range c.owns {
			all = append(all, GroupOwner{g.id, c, out[g.id], g.leaving})
		}
	}
	return all
}

// release takes a group from its owner, for whoever is next.
func (m *Machine) release(g *group) {
	m.unbind(g)
	m.lookAgain(g)
	m.forgetIdle(g)
}

// done notes that a consumer does not have an item any more: the last one of a group
// that leaves it lets the group go.
func (m *Machine) done(it *Item) {
	if g := m.group(it); g != nil && g.leaving && !g.inHand() {
		m.release(g)
	}
}

// forgetIdle forgets a group of which there is nothing left to know.
func (m *Machine) forgetIdle(g *group) {
	if g.owner == nil && g.parked == 0 {
		delete(m.groups.byID, g.id)
	}
}

// forgetSome keeps the number of groups within its bound.
func (m *Machine) forgetSome() {
	for range maxForgets {
		if m.groups.recent.Len() <= maxGroups {
			return
		}
		g := m.groups.recent.Back().Value.(*group)
		if g.parked > 0 || g.inHand() {
			m.groups.recent.MoveToFront(g.recent)
			continue
		}
		m.unbind(g)
		m.forgetIdle(g)
	}
}

// inHand reports whether the owner has a member.
func (g *group) inHand() bool {
	for it := g.owner.held.head; it != nil; it = it.next {
		if it.Group == g.id {
			return true
		}
	}
	return false
}

// withholds reports whether the owner has as many members as its prefetch says, and
// only DELIVERED acks let it have more. Clients send those before they work on a
// message in a transaction, so even with a prefetch of 1 the next member would be
// with them when one fails, and be done while the failed one waits. Where nothing
// waits by the broker's policy, there is nothing to keep the order of.
func (m *Machine) withholds(g *group) bool {
	o := g.owner
	if m.o.Rules.Redelivery == nil || o.Prefetch == 0 || o.held.n < o.Prefetch {
		return false
	}
	has := 0
	for it := o.held.head; it != nil; it = it.next {
		if it.Group == g.id {
			has++
		}
	}
	return has >= o.Prefetch
}

// disown takes its groups from a consumer that goes.
func (m *Machine) disown(c *Consumer) {
	if len(c.owns) == 0 {
		return
	}
	for g := range c.owns {
		m.release(g)
	}
}

// park notes that an item waits for a time or a transaction, and its group with it.
func (m *Machine) park(it *Item) {
	if it.Group != "" && m.o.Grouped {
		m.makeGroup(it.Group).parked++
	}
}

// unpark notes that it does so no longer.
func (m *Machine) unpark(it *Item) {
	g := m.group(it)
	if g == nil {
		return
	}
	if g.parked--; g.parked == 0 {
		m.lookAgain(g)
		m.forgetIdle(g)
	}
}

// lookAgain lets all consumers look at what they have passed over, where members of
// the group may be among that.
func (m *Machine) lookAgain(g *group) {
	if g.passed == 0 {
		return
	}
	for _, c := range m.consumers {
		c.lookBack(g.passed)
	}
	m.lookBacks++
	g.passed, g.withheld = 0, 0
}

// ownerLooksAgain lets a group's owner look at members that were withheld from it.
func (m *Machine) ownerLooksAgain(g *group) {
	if g.withheld != 0 && g.owner != nil {
		g.owner.lookBack(g.withheld)
		g.withheld = 0
	}
}
