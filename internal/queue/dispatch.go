package queue

import (
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

func (m *Machine) attach(c Attach) {
	if m.byID[c.Consumer.ID] != nil {
		m.answer(c.Done, fmt.Errorf("consumer %s on %s: %w", c.Consumer.ID, m.o.Destination, message.ErrExists))
		return
	}
	m.byID[c.Consumer.ID] = c.Consumer
	m.consumers = append(m.consumers, c.Consumer)
	slices.SortStableFunc(m.consumers, func(a, b *Consumer) int { return int(b.Priority) - int(a.Priority) })
	m.chooseExclusive()
	m.lookAgain()
	m.answer(c.Done, nil)
}

// chooseExclusive keeps the exclusive consumer, or finds the next: the first of
// the highest priority (R-EXC-01). One of higher priority takes over.
func (m *Machine) chooseExclusive() {
	best := m.exclusive
	if best != nil && m.byID[best.ID] != best {
		best = nil
	}
	for _, c := range m.consumers {
		if c.Exclusive && (best == nil || c.Priority > best.Priority) {
			best = c
		}
	}
	m.exclusive = best
}

// lookAgain forgets which items no consumer wanted.
func (m *Machine) lookAgain() {
	for _, l := range m.lanes {
		if l != nil {
			l.checked = 0
		}
	}
}

func (m *Machine) setPrefetch(c SetPrefetch) {
	k := m.byID[c.Consumer]
	if k == nil {
		m.answer(c.Done, fmt.Errorf("consumer %s on %s: %w", c.Consumer, m.o.Destination, message.ErrNotFound))
		return
	}
	k.Prefetch = c.Prefetch
	m.answer(c.Done, nil)
}

// dispatch hands out what can be handed out.
func (m *Machine) dispatch() {
	if !m.anyRoom() {
		m.endPulls()
		return
	}
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		if !m.offer(l, l.returned.head) || !m.offer(l, l.unchecked()) {
			break
		}
		m.want(l, true)
		if l.beyond > 0 && m.o.Prioritized {
			break // what is paged in comes before lower priorities
		}
	}
	m.endPulls()
	for _, l := range m.lanes {
		if l != nil {
			m.want(l, false)
		}
	}
}

// anyRoom reports whether a consumer has room, and notes who has gained some.
func (m *Machine) anyRoom() bool {
	any := false
	for _, c := range m.consumers {
		full := !c.room()
		if c.full && !full {
			m.lookAgain()
		}
		c.full = full
		any = any || !full
	}
	return any
}

// unchecked is the first waiting item that a consumer with room may want.
func (l *lane) unchecked() *Item {
	if l.checked == 0 {
		return l.waiting.head
	}
	it := l.waiting.tail
	if it == nil || it.Position <= l.checked {
		return nil
	}
	for it.prev != nil && it.prev.Position > l.checked {
		it = it.prev
	}
	return it
}

// offer offers the items from it on to the consumers, in order. It returns false
// when no consumer has room any more.
func (m *Machine) offer(l *lane, it *Item) bool {
	for it != nil {
		next := it.next
		if it.Expired(m.now) {
			m.leaveList(it)
			m.expire(it)
			it = next
			continue
		}
		c, room := m.pick(it)
		if !room {
			return false
		}
		if c != nil {
			m.handOut(it, c)
		} else if it.place == waiting {
			l.checked = max(l.checked, it.Position)
		}
		it = next
	}
	return true
}

// pick chooses the consumer for an item: of the highest priority, in turn. room
// says whether any consumer could have taken something.
func (m *Machine) pick(it *Item) (best *Consumer, room bool) {
	n := len(m.consumers)
	bestAt := 0
	for i := range n {
		at := (m.turn + i) % n
		c := m.consumers[at]
		if !c.room() {
			continue
		}
		room = true
		if m.exclusive != nil && c != m.exclusive || it.heldUntil > m.now && c.Connection == it.heldFrom {
			continue
		}
		if best != nil && c.Priority <= best.Priority || !m.wants(c, it) {
			continue
		}
		best, bestAt = c, at
	}
	if best != nil {
		m.turn = bestAt + 1
	}
	return best, room
}

// wants reports whether the consumer's selector chooses the item.
func (m *Machine) wants(c *Consumer, it *Item) bool {
	if c.Selector == nil {
		return true
	}
	header := it.header
	if header == nil {
		header = it.Message
	}
	if header == nil {
		h, err := m.o.Read(&it.Entry)
		if err != nil {
			return true // it goes to a consumer, where writing it fails with the same error, and is dead lettered
		}
		header, it.header = h, h
	}
	n, _ := it.counter()
	m.lookup = selector.MessageLookup{Message: header, RedeliveryCounter: n, Properties: func(name string) (selector.Value, bool) {
		return m.o.Properties(header, name)
	}}
	return c.Selector.Matches(&m.lookup)
}

func (m *Machine) handOut(it *Item, c *Consumer) {
	m.leaveList(it)
	it.place, it.consumer, it.heldUntil = out, c, 0
	c.held.pushBack(it)
	m.out[it.Position] = it
	m.expiry.remove(it) // what a consumer has is left to it
	it.attempt, it.covered, it.tx, it.last = open, false, "", nil
	it.handedOut = m.now
	n, hint := it.counter()
	it.told, it.excess = n, n-int(it.Failures)
	it.HandOuts++
	how := message.HandedOut
	if c.Prefetch == 0 {
		c.pulls--
		m.dropPull(c.ID)
		how = message.Pulled
	}
	c.handed, c.full = true, !c.room()
	m.stats.Dispatched++
	m.markOut(it, how)
	m.emit(Effect{Kind: Deliver, Item: it, Consumer: c, Counter: n, Hint: hint || it.Delay >= 0 || n > 0 && m.o.Rules.Redelivery != nil})
}

// A pull is a consumer's wish for one message.
type pull struct {
	consumer string
	until    int64 // 0: for ever
}

func (m *Machine) pull(c Pull) {
	k := m.byID[c.Consumer]
	if k == nil {
		m.answer(c.Done, fmt.Errorf("consumer %s on %s: %w", c.Consumer, m.o.Destination, message.ErrNotFound))
		return
	}
	k.pulls++
	until := c.Until
	if until < 0 {
		until = m.now
	}
	m.pulls = append(m.pulls, pull{c.Consumer, until})
	m.answer(c.Done, nil)
}

// dropPull takes the oldest wish of a consumer off the list.
func (m *Machine) dropPull(id string) {
	for i, p := range m.pulls {
		if p.consumer == id {
			m.pulls = slices.Delete(m.pulls, i, i+1)
			return
		}
	}
}

// endPulls answers the wishes whose time has passed with "nothing". One that
// does not wait is answered only when no page is on its way that might serve it.
func (m *Machine) endPulls() {
	if len(m.pulls) == 0 {
		return
	}
	paging := false
	for _, l := range m.lanes {
		paging = paging || l != nil && l.paging
	}
	m.pulls = slices.DeleteFunc(m.pulls, func(p pull) bool {
		if p.until == 0 || p.until > m.now || paging {
			return false
		}
		if c := m.byID[p.consumer]; c != nil && c.pulls > 0 {
			c.pulls--
			m.emit(Effect{Kind: Nothing, Consumer: c})
		}
		return true
	})
}
