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
	if m.anyRoom() && m.gathersUntil == 0 {
		m.offerAll()
	}
	m.wantTimes(m.behind() && m.anyRoom())
	for _, l := range m.lanes {
		if l != nil {
			m.want(l, false)
		}
	}
	m.endPulls()
}

// offerAll offers what there is, lane by lane.
func (m *Machine) offerAll() {
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		if !m.offer(l, &l.returned, returned) || m.behind() || !m.offer(l, &l.waiting, waiting) {
			return
		}
		m.want(l, true)
		if l.paging {
			return // what is paged in comes before lower priorities
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

// offer offers the items of one of a lane's lists to the consumers with room, in
// order, each consumer from where it stopped looking. It returns false when no
// consumer has room any more.
func (m *Machine) offer(l *lane, from *list, kind place) bool {
	if from.n == 0 {
		return true
	}
	begin := uint64(math.MaxUint64)
	for _, c := range m.consumers {
		if c.room() {
			begin = min(begin, *c.seen[l.number].of(kind))
		}
	}
	last := uint64(0)
	for it := from.after(begin); it != nil; {
		next, rank := it.next, it.rank
		c, room := m.pick(it)
		if !room {
			return false
		}
		if c != nil {
			m.handOut(it, c)
			m.see(l, c, kind, rank) // it may have no room now, and has looked so far
		}
		last = rank
		it = next
	}
	room := false
	for _, c := range m.consumers {
		if c.room() {
			m.see(l, c, kind, last)
			room = true
		}
	}
	return room
}

// see notes how far a consumer has looked.
func (m *Machine) see(l *lane, c *Consumer, kind place, rank uint64) {
	v := c.seen[l.number].of(kind)
	*v = max(*v, rank)
	if kind == waiting {
		l.seen = max(l.seen, rank)
	}
}

// pick chooses the consumer for an item: of the highest priority, in turn. room
// says whether any consumer could have taken something.
func (m *Machine) pick(it *Item) (chosen *Consumer, room bool) {
	grouped := it.Group != "" && m.o.Grouped && m.exclusive == nil
	if g := m.group(it); g != nil && (g.parked > 0 && it.heldUntil <= m.now || grouped && g.owner != nil && !startsAnew(it) && m.wants(g.owner, it)) {
		chosen = m.ofOwner(it, g)
		g.passed = g.passed || chosen == nil
		return chosen, m.anyRoom()
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
			if !c.room() {
				continue
			}
			room = true
			if it.rank <= *c.seen[it.lane].of(it.place) || !m.mayHave(c, it) || !m.wants(c, it) {
				continue
			}
			if !grouped {
				m.next = at + 1
				return c, true
			}
			if best == nil || len(c.owns) < len(best.owns) {
				best = c
			}
		}
		if best != nil {
			m.next++
			return best, true
		}
		first += equal
	}
	return nil, room
}

// ofOwner is the owner of an item's group, if the item can go now and to it.
func (m *Machine) ofOwner(it *Item, g *group) *Consumer {
	owner := g.owner
	if owner != nil && !g.leaving && (g.parked == 0 || it.heldUntil > m.now) && owner.room() && !m.withholds(g) && it.rank > *owner.seen[it.lane].of(it.place) && m.mayHave(owner, it) {
		return owner
	}
	return nil
}

// mayHave reports whether neither an exclusive consumer nor a hold keeps the item
// from the consumer.
func (m *Machine) mayHave(c *Consumer, it *Item) bool {
	return (m.exclusive == nil || m.exclusive == c) && (it.heldUntil <= m.now || it.heldFrom != c.Connection)
}

// wants reports whether the consumer's selector chooses the item.
func (m *Machine) wants(c *Consumer, it *Item) bool {
	if c.Selector == nil {
		return true
	}
	if it.header == nil {
		h, err := m.header(it)
		if err != nil {
			return true // it goes to a consumer, where writing it fails with the same error, and is dead lettered
		}
		it.header = h
	}
	m.lookup.Message = it.header
	m.lookup.RedeliveryCounter, _ = it.counter()
	return c.Selector.Matches(&m.lookup)
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
	it.attempt, it.covered, it.tx, it.line = open, false, "", nil
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
