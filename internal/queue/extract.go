package queue

import (
	"math"
	"slices"
)

// Depth tells how far a lane is in memory: every entry up to cursor is, and beyond
// entries above it are in the store alone.
func (m *Machine) Depth(laneNumber uint8) (cursor uint64, beyond int64) {
	l := m.lanes[laneNumber]
	if l == nil {
		return 0, 0
	}
	return l.cursor, l.beyond + int64(len(l.during))
}

// extract takes items that no consumer has out of a lane.
func (m *Machine) extract(c Extract) {
	if c.Upto == 0 {
		c.Upto = math.MaxUint64
	}
	x := extraction{m: m, c: c, done: Extracted{Last: c.After}}
	if l := m.lanes[c.Lane]; l != nil {
		x.memory(l)
		x.store(l)
	}
	if c.Done != nil {
		done := x.done
		m.emit(Effect{Kind: Answer, Done: func(err error) { c.Done(done, err) }})
	}
}

// An extraction is an Extract on its way through a lane.
type extraction struct {
	m      *Machine
	c      Extract
	looked int
	steps  int   // that it took to find out what is meant
	copied int64 // bytes of messages that cannot be moved where they lie
	done   Extracted
}

// maxCopiedBytes is how large the messages may be together that one Extract moves
// and that have to be written for that; the one that passes it is the last.
const maxCopiedBytes = 2 << 20

// memory looks at what is in memory, in the order of positions: also at what was
// returned and what is scheduled (C07).
func (x *extraction) memory(l *lane) {
	if x.c.After >= l.cursor {
		return // a big lane is gone through in many steps, and memory is looked at once
	}
	var items []*Item
	x.m.each(l, func(it *Item) {
		if it.Position > x.c.After && it.Position <= min(x.c.Upto, l.cursor) {
			items = append(items, it)
		}
	})
	for _, it := range x.c.Stored {
		if l.away[it.Position] && it.Position <= x.c.Upto && !x.m.plucked[it.Position] {
			it.lane = l.number
			items = append(items, it)
		}
	}
	sortByPosition(items)
	for _, it := range items {
		if !x.look(it) {
			return
		}
	}
	x.done.Last = max(x.done.Last, min(l.cursor, x.c.Upto))
}

// store looks at entries that are in the store alone.
func (x *extraction) store(l *lane) {
	for _, it := range x.c.Stored {
		if x.done.Full {
			return
		}
		switch {
		case it.Position > x.c.Upto:
			return
		case it.Position <= l.cursor, x.m.expected[it.Position], x.m.plucked[it.Position], l.left[it.Position]:
			x.done.Last = max(x.done.Last, it.Position)
			continue
		}
		it.lane = l.number
		if !x.look(x.pick(l, it)) {
			return
		}
	}
}

// pick is the item of an entry: that which is in memory ahead of the window, or came
// while a page was being read, if there is one.
func (x *extraction) pick(l *lane, it *Item) *Item {
	if a := l.ahead[it.Position]; a != nil {
		return a
	}
	for _, d := range l.during {
		if d.Position == it.Position {
			return d
		}
	}
	return it
}

// look looks at one item and takes it if it is meant. It returns false where a
// bound says that it is not to be looked at any more.
func (x *extraction) look(it *Item) bool {
	c := &x.c
	if c.Look > 0 && x.looked >= c.Look || c.Max > 0 && x.done.Taken >= c.Max || x.copied > maxCopiedBytes || x.steps >= x.m.o.TurnSteps {
		x.done.Full = true
		return false
	}
	x.looked++
	x.done.Last = max(x.done.Last, it.Position)
	if c.Wants != nil {
		meant, steps := c.Wants(it)
		if x.steps += steps; !meant {
			return true
		}
	}
	if it.place == out || it.place == limbo {
		x.done.Out++
		return true
	}
	var move Move
	if !c.Purge {
		var ok bool
		if move, ok = c.Target(it); !ok {
			x.done.Left++
			return true
		}
	}
	x.done.Taken++
	if !c.Dry {
		x.take(it, &move)
	}
	return true
}

// take takes an item out.
func (x *extraction) take(it *Item, move *Move) {
	m := x.m
	if it.place == nowhere {
		x.pluck(it)
	}
	m.leaveList(it)
	if x.c.Purge {
		m.gone(it)
		m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Purged})
		return
	}
	if !it.Stored || it.Transient {
		x.copied += int64(it.SizeBytes)
	}
	m.transfer(it, move)
}

// pluck takes an item out of what is in the store alone. A page that is being read
// may still bring it.
func (x *extraction) pluck(it *Item) {
	m, l := x.m, x.m.lanes[it.lane]
	if i := slices.Index(l.during, it); i >= 0 {
		l.during = slices.Delete(l.during, i, i+1)
	} else {
		if l.away[it.Position] {
			delete(l.away, it.Position)
		} else {
			l.beyond--
			m.marks.recall(it)
		}
	}
	it.place = waiting // it counts as one that went
	m.plucked[it.Position] = true
	x.done.Alone = append(x.done.Alone, it.Position)
}
