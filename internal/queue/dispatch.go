package queue

import (
	"math"

	"github.com/nixiemq/nixie/internal/message"
)

// dispatch hands out what can be handed out, and has the windows filled again.
func (m *Machine) dispatch() {
	for _, l := range m.lanes {
		if l != nil {
			m.settleAhead(l)
		}
	}
	for again := m.handsOut() && m.anyRoom(); again; {
		before := m.lookBacks
		m.offerAll()
		again = m.lookBacks != before // a group ended, and is for those who had passed it over
	}
	m.wantTimes(m.behind() && !m.o.Paused && m.anyRoom())
	for _, l := range m.lanes {
		if l != nil {
			if len(l.fresh) > 0 || l.search.page != nil { // nobody was to be shown it
				m.offerFresh(l, false)
				m.endSearch(l)
				m.settleAhead(l)
			}
			m.want(l)
		}
	}
	m.endPulls()
	m.stopHere()
}

// offerAll offers what there is, lane by lane. What a consumer has not been shown yet of
// one lane goes before all of the next.
func (m *Machine) offerAll() {
	if m.o.Prioritized {
		for _, c := range m.consumers {
			c.lanes = lanes
		}
	}
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		if !m.offer(l, &l.returned, returned) || m.behind() || !m.offerWaiting(l) {
			return
		}
		m.want(l)
		m.search(l)
		if m.o.Prioritized {
			for _, c := range m.consumers {
				if l.paging || l.hides(c) {
					c.lanes = min(c.lanes, l.number)
				}
			}
		}
	}
}

// offerWaiting offers what waits in a lane: the window, and then what came to be known
// of what is behind it. It returns false when no consumer looks any more.
func (m *Machine) offerWaiting(l *lane) bool {
	for {
		if !m.offer(l, &l.waiting, waiting) {
			return false
		}
		m.offerFound(l)
		m.offerFresh(l, true)
		if !m.settleAhead(l) { // else what was ahead is in the window now
			return true
		}
	}
}

// anyRoom reports whether a consumer has room.
func (m *Machine) anyRoom() bool {
	for _, c := range m.consumers {
		if c.room() {
			return true
		}
	}
	return false
}

// looks reports whether a consumer is to be shown items of a lane now.
func (m *Machine) looks(c *Consumer, l *lane) bool {
	return c.room() && l.number <= c.lanes && (c.Selector == nil || !m.exhausted(c))
}

// anyLooks reports whether a consumer looks at a lane.
func (m *Machine) anyLooks(l *lane) bool {
	for _, c := range m.consumers {
		if m.looks(c, l) {
			return true
		}
	}
	return false
}

// offer offers the items of one of a lane's lists to the consumers that look, in
// order, each consumer from where it stopped looking. It returns false when no
// consumer looks any more.
func (m *Machine) offer(l *lane, from *list, kind place) bool {
	deeper := kind == waiting && (l.beyond > 0 || len(l.fresh) > 0) // how far they looked will be asked
	if from.n == 0 && !deeper {
		return true
	}
	begin := uint64(math.MaxUint64)
	for _, c := range m.consumers {
		if m.looks(c, l) {
			begin = min(begin, *c.seen[l.number].of(kind))
		}
	}
	last := uint64(0)
	for it := from.after(begin); it != nil; {
		next, rank := it.next, it.rank
		c, some, sure := m.pick(it, 0)
		if !sure {
			m.seeAll(l, kind, 0, last)
		}
		if !sure || !some {
			return false
		}
		if c != nil {
			m.handOut(it, c)
			m.see(l, c, kind, rank) // it may have no room now, and has looked so far
		}
		last = rank
		it = next
	}
	if deeper {
		last = max(last, l.cursor)
	}
	return m.seeAll(l, kind, 0, last)
}

// seeAll notes how far the consumers have looked that look at a lane and had looked as
// far as from. It reports whether any consumer looks.
func (m *Machine) seeAll(l *lane, kind place, from, upto uint64) bool {
	some := false
	for _, c := range m.consumers {
		if m.looks(c, l) {
			some = true
			if *c.seen[l.number].of(kind) >= from {
				m.see(l, c, kind, upto)
			}
		}
	}
	return some
}

// see notes how far a consumer has looked.
func (m *Machine) see(l *lane, c *Consumer, kind place, rank uint64) {
	v := c.seen[l.number].of(kind)
	*v = max(*v, rank)
	if kind != returned {
		l.seen = max(l.seen, rank)
	}
}

// pick chooses the consumer for an item: of the highest priority, in turn, of those that
// have looked at everything up to from. some says whether any consumer looks at all.
// Where sure is false nobody can tell yet who is to have the item: the owner of its
// group has to be asked, and has used up what its selector may take of a turn.
func (m *Machine) pick(it *Item, from uint64) (chosen *Consumer, some, sure bool) {
	l := m.lanes[it.lane]
	grouped := it.Group != "" && m.o.Grouped
	if g := m.group(it); g != nil {
		taken := g.parked > 0 && it.heldUntil <= m.now
		if !taken && g.owner != nil && !startsAnew(it) {
			if g.owner.Selector != nil && m.exhausted(g.owner) {
				return nil, true, false
			}
			taken = m.wants(g.owner, it)
		}
		if taken {
			chosen = m.ofOwner(it, g, from)
			if chosen == nil && (g.passed == 0 || it.Position < g.passed) {
				g.passed = it.Position
			}
			return chosen, m.anyLooks(l), true
		}
	}
	n := len(m.consumers)
	for first := 0; first < n; {
		equal := 1 // how many have this priority
		if m.consumers[n-1].Priority == m.consumers[first].Priority {
			equal = n - first
		} else {
			for m.consumers[first+equal].Priority == m.consumers[first].Priority {
				equal++
			}
		}
		var best *Consumer // of those that want a message whose group has no owner
		for i := range equal {
			at := (m.next + i) % equal
			if m.o.OneByOne {
				at = i
			}
			c := m.consumers[first+at]
			if !m.looks(c, l) {
				continue
			}
			some = true
			seen := *c.seen[it.lane].of(it.place)
			if seen < from || it.rank <= seen || !m.mayHave(c, it) {
				continue
			}
			if !m.wants(c, it) {
				m.see(l, c, it.place, it.rank) // what it has judged it need not judge again
				continue
			}
			if !grouped {
				m.next = at + 1
				return c, true, true
			}
			if best == nil || len(c.owns) < len(best.owns) {
				best = c
			}
		}
		if best != nil {
			m.next++
			return best, true, true
		}
		first += equal
	}
	return nil, some, true
}

// ofOwner is the owner of an item's group, if the item can go now and to it.
func (m *Machine) ofOwner(it *Item, g *group, from uint64) *Consumer {
	owner := g.owner
	if owner == nil || g.leaving || g.parked > 0 && it.heldUntil <= m.now || !m.looks(owner, m.lanes[it.lane]) || !m.mayHave(owner, it) {
		return nil
	}
	if seen := *owner.seen[it.lane].of(it.place); seen < from || it.rank <= seen {
		return nil
	}
	if m.withholds(g) {
		if g.withheld == 0 || it.Position < g.withheld {
			g.withheld = it.Position
		}
		return nil
	}
	return owner
}

// mayHave reports whether neither an exclusive consumer nor a hold keeps the item
// from the consumer.
func (m *Machine) mayHave(c *Consumer, it *Item) bool {
	return m.exclusively(c) && (it.heldUntil <= m.now || it.heldFrom != c.Connection && it.heldFrom != everyone)
}

// exclusively reports whether no other consumer has everything.
func (m *Machine) exclusively(c *Consumer) bool { return m.exclusive == nil || m.exclusive == c }

// wants reports whether the consumer's selector chooses the item, and charges it.
func (m *Machine) wants(c *Consumer, it *Item) bool {
	if c.Selector == nil {
		return true
	}
	if it.header == nil {
		if it.Message == nil {
			m.charge(c, ReadSteps)
		}
		h, err := m.header(it)
		if err != nil {
			return true // it goes to a consumer, where writing it fails with the same error, and is dead lettered
		}
		it.header = h
	}
	m.lookup.Message = it.header
	m.lookup.RedeliveryCounter, _ = it.counter()
	before := m.lookup.Steps
	wanted := m.fits(c) && (c.key.Whole || c.Selector.Matches(&m.lookup))
	m.charge(c, m.lookup.Steps-before)
	return wanted
}

// fits reports whether the message that is looked at has what its selector's key asks
// for, if it has one. Of a thousand consumers that wait for a correlation id each, one
// has its selector evaluated.
func (m *Machine) fits(c *Consumer) bool {
	if c.key.Name == "" {
		return true
	}
	m.lookup.Charge(1)
	if k := &m.keyed; k.of != m.lookup.Message || k.name != c.key.Name {
		k.of, k.name = m.lookup.Message, c.key.Name
		k.value, _ = m.lookup.Lookup(k.name)
	}
	return m.keyed.value.Is(c.key.Value)
}

// header gets an item's message as it is here, perhaps without its body.
func (m *Machine) header(it *Item) (*message.Message, error) {
	if it.Message != nil {
		return it.Message.With(it.Overlay), nil
	}
	return m.o.Read(&it.Entry)
}

func (m *Machine) handOut(it *Item, c *Consumer) {
	m.leaveList(it)
	m.outOfSight(it)
	m.expiry.remove(it) // what a consumer has is left to it (R-BRK-22)
	it.place, it.consumer, it.header = out, c, nil
	c.held.pushBack(it)
	m.isOut(it)
	it.attempt, it.covered, it.tx, it.line, it.batch = open, false, "", nil, 0
	it.handedOut = m.now
	m.watchAcks(c)
	if m.o.Slow.Rate > 0 && c.rateEnds == 0 {
		m.beginRate(c)
	}
	first := m.bind(it, c)
	n, hint := it.counter()
	it.told, it.excess = n, n-int(it.Failures)
	it.HandOuts++
	it.how = message.HandedOut
	if c.Prefetch == 0 {
		m.granted(c)
		it.how = message.Pulled
	}
	c.handOuts++
	it.number = c.handOuts
	if m.o.Marks {
		m.touch(it)
	}
	m.stats.Dispatched++
	m.emit(Effect{Kind: Deliver, Item: it, Consumer: c, First: first, Counter: n, Hint: hint || it.Due != 0 || n > 0 && m.o.Rules.Redelivery != nil})
}
