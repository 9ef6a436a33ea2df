package queue

import (
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// A mark is a stored note that a batch of items was handed out together. It is
// written again when the fate of one of them becomes known and the item stays in
// the queue, and dropped with the last of them.
type mark struct {
	id    uint64
	how   message.HandOut
	items map[uint64]bool
	stale bool // the stored note names items that are no longer suspect
}

// marking is what a queue has marked, and what it will at the end of the turn.
type marking struct {
	last    uint64 // highest id used
	turn    [message.Pulled + 1][]*Item
	changed []*mark
	found   map[uint64]*mark // by position: what an earlier process left, until it is paged in
}

// RestoreMarks tells a new machine what an earlier process had handed out: the
// positions that are still there, and the ids of the notes that say so.
func (m *Machine) RestoreMarks(positions map[uint64]message.HandOut, ids []uint64) {
	for _, id := range ids {
		m.marks.last = max(m.marks.last, id)
		m.marks.changed = append(m.marks.changed, &mark{id: id})
	}
	m.marks.found = map[uint64]*mark{}
	for _, how := range []message.HandOut{message.HandedOut, message.Pulled} {
		m.marks.last++
		k := &mark{id: m.marks.last, how: how, items: map[uint64]bool{}, stale: true}
		for p, h := range positions {
			if h == how {
				k.items[p], m.marks.found[p] = true, k
			}
		}
		if len(k.items) > 0 {
			m.marks.changed = append(m.marks.changed, k)
		}
	}
}

// recall gives an item that is paged in the mark an earlier process left for it.
func (g *marking) recall(it *Item) {
	if k := g.found[it.Position]; k != nil {
		delete(g.found, it.Position)
		it.mark, it.Suspect = k, k.how
	}
}

// markOut notes that a stored item was handed out. An item that is stored in
// this very turn says so itself; the others of a turn share a mark.
func (m *Machine) markOut(it *Item, how message.HandOut) {
	if !m.o.Marks || !it.Durable || it.mark != nil || it.inline {
		return
	}
	if it.turn == m.turns {
		it.Out, it.inline = how, true
		return
	}
	m.marks.turn[how] = append(m.marks.turn[how], it)
}

// unmark takes back that an item is out. stays says that the item remains in the
// queue and is not suspect, so that the stored note must no longer name it.
func (m *Machine) unmark(it *Item, stays bool) {
	k := it.mark
	if k == nil {
		return
	}
	it.mark = nil
	delete(k.items, it.Position)
	k.stale = k.stale || stays
	if (len(k.items) == 0 || stays) && !slices.Contains(m.marks.changed, k) {
		m.marks.changed = append(m.marks.changed, k)
	}
}

// flushMarks writes the marks of a turn.
func (m *Machine) flushMarks() {
	for how := range m.marks.turn {
		items := m.marks.turn[how]
		if len(items) == 0 {
			continue
		}
		k := &mark{how: message.HandOut(how), items: map[uint64]bool{}, stale: true}
		for _, it := range items {
			if it.place == out && it.mark == nil { // it may be back or gone already
				k.items[it.Position], it.mark = true, k
			}
		}
		clear(items)
		m.marks.turn[how] = items[:0]
		if len(k.items) > 0 {
			m.marks.last++
			k.id = m.marks.last
			m.marks.changed = append(m.marks.changed, k)
		}
	}
	for _, k := range m.marks.changed {
		switch {
		case len(k.items) == 0:
			m.emit(Effect{Kind: DropMark, Number: k.id})
		case k.stale:
			k.stale = false
			m.emit(Effect{Kind: PutMark, Number: k.id, How: k.how, Positions: positions(k.items)})
		}
	}
	m.marks.changed = m.marks.changed[:0]
}

func positions(set map[uint64]bool) []uint64 {
	list := make([]uint64, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}
