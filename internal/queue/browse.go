package queue

import "math"

// browse lists what is in memory of a lane, in the order of positions.
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
		if it.Position > c.After {
			items = append(items, it)
		}
	})
	sortByPosition(items)
	if c.Max > 0 && len(items) > c.Max {
		items = items[:c.Max]
	}
	c.Reply(items, bound)
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
	for _, it := range l.during {
		lower(it)
	}
	for p := range m.expected {
		floor = min(floor, p)
	}
	return floor
}

// extract takes items that no consumer has out of the queue.
func (m *Machine) extract(c Extract) {
	x := extraction{m: m, c: c}
	beyond := 0
	for _, l := range m.lanes {
		if l != nil {
			x.from(l)
			beyond += int(l.beyond) + len(l.during)
		}
	}
	if c.IDs != nil { // at most so many of those beyond are meant
		beyond = min(beyond, max(len(c.IDs)-x.met, 0))
	}
	if c.Done != nil {
		taken, left := x.taken, x.left+beyond
		m.emit(Effect{Kind: Answer, Done: func(error) { c.Done(taken, left) }})
	}
}

// An extraction is an Extract on its way through the queue.
type extraction struct {
	m                *Machine
	c                Extract
	met, taken, left int
}

// from takes what is asked for out of one lane: first what was returned, then what
// waits, then what is scheduled. What a consumer has stays, and is counted
// (R-EDGE-51).
func (x *extraction) from(l *lane) {
	for _, q := range []*list{&l.returned, &l.waiting} {
		for it := q.head; it != nil; {
			next := it.next
			x.take(it)
			it = next
		}
	}
	var timed []*Item
	for _, it := range x.m.due.items {
		if it.lane == l.number {
			timed = append(timed, it)
		}
	}
	sortByPosition(timed)
	for _, it := range timed {
		x.take(it)
	}
	for _, it := range x.m.out {
		if it.lane == l.number && x.asked(it) {
			x.left++
		}
	}
}

// asked reports whether the item is one of those meant.
func (x *extraction) asked(it *Item) bool {
	if x.c.IDs != nil && !x.c.IDs[it.ID.String()] {
		return false
	}
	x.met++
	return true
}

func (x *extraction) take(it *Item) {
	if !x.asked(it) {
		return
	}
	if x.c.Max > 0 && x.taken >= x.c.Max {
		x.left++
		return
	}
	var move Move
	if !x.c.Purge {
		var ok bool
		if move, ok = x.c.Target(it); !ok {
			return
		}
	}
	x.taken++
	x.m.leaveList(it)
	if x.c.Purge {
		x.m.gone(it)
		x.m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Purged})
		return
	}
	x.m.transfer(it, &move)
}
