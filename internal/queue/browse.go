package queue

import "math"

// browse lists what is in memory of a lane, in the order of positions, but for what is
// ahead of the window: the store has that too, and Ahead tells more.
func (m *Machine) browse(c Browse) {
	l := m.lanes[c.Lane]
	if l == nil {
		c.Reply(nil, math.MaxUint64)
		return
	}
	bound := uint64(math.MaxUint64)
	if l.beyond > 0 {
		bound = l.cursor
	}
	var items []*Item
	m.each(l, func(it *Item) {
		if it.Position > c.After && it.Position <= bound {
			items = append(items, it)
		}
	})
	sortByPosition(items)
	if c.Max > 0 && len(items) > c.Max {
		items = items[:c.Max]
	}
	c.Reply(items, bound)
}

// Each calls f for every item that is in memory, in no order.
func (m *Machine) Each(f func(*Item)) {
	for _, l := range m.lanes {
		if l != nil {
			m.each(l, f)
		}
	}
}

// each calls f for every item of a lane that is in memory, in no order.
func (m *Machine) each(l *lane, f func(*Item)) {
	for it := l.returned.head; it != nil; it = it.next {
		f(it)
	}
	for it := l.waiting.head; it != nil; it = it.next {
		f(it)
	}
	for _, it := range m.due.items {
		if it.lane == l.number {
			f(it)
		}
	}
	for _, it := range l.ahead {
		if it.place == deep {
			f(it)
		}
	}
	for _, it := range m.out {
		if it.lane == l.number {
			f(it)
		}
	}
}

// Floor is a position below which a lane has nothing, in memory or in the store,
// nor is told to expect anything. It looks at all that is in memory.
func (m *Machine) Floor(laneNumber uint8) uint64 {
	l := m.lanes[laneNumber]
	if l == nil {
		return 0
	}
	floor := uint64(math.MaxUint64)
	if l.beyond > 0 {
		floor = l.cursor + 1
	}
	lower := func(it *Item) { floor = min(floor, it.Position) }
	m.each(l, lower)
	for p := range l.away {
		floor = min(floor, p)
	}
	for _, it := range l.during {
		lower(it)
	}
	for p := range m.expected {
		floor = min(floor, p)
	}
	return floor
}
