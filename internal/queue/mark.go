package queue

import (
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// A mark is a stored note that a batch of items was handed out together. It is
// written again when the fate of one of them becomes known and the item stays in
// the queue, and dropped with the last of them.
type mark struct {
	id        uint64
	how       message.HandOut
	positions []uint64 // that the note names or is to name, sorted; some may be gone
	live      int      // how many of them it is still true of
	stale     bool     // the stored note names too many
	listed    bool     // it is in marking.changed
}

// marking is what a queue has marked, and what of it changes at the end of the turn.
type marking struct {
	last    uint64 // highest id used
	changed []*mark
	fresh   [message.Pulled + 1]*mark // the marks of the turn that ends, by kind
	found   map[uint64]*mark          // by position: what an earlier process left, until it is paged in
}

// RestoreMarks tells a new machine what an earlier process had handed out: the
// positions, and the ids of the notes that name them. Positions of which the store
// has no entry any more do no harm.
func (m *Machine) RestoreMarks(positions map[uint64]message.HandOut, ids []uint64) {
	for _, id := range ids {
		m.marks.last = max(m.marks.last, id)
		m.marks.change(&mark{id: id})
	}
	m.marks.found = map[uint64]*mark{}
	var kinds [message.Pulled + 1]*mark
	for position, how := range positions {
		k := kinds[how]
		if k == nil {
			k = &mark{how: how, stale: true}
			kinds[how] = k
		}
		k.positions = append(k.positions, position)
		k.live++
		m.marks.found[position] = k
	}
	for _, k := range kinds {
		if k != nil {
			slices.Sort(k.positions)
			m.marks.last++
			k.id = m.marks.last
			m.marks.change(k)
		}
	}
}

func (g *marking) change(k *mark) {
	if !k.listed {
		k.listed = true
		g.changed = append(g.changed, k)
	}
}

// strike takes back that a position is out. stays says that it remains in the
// queue, so that the stored note must no longer name it.
func (g *marking) strike(k *mark, position uint64, stays bool) {
	k.live--
	if stays {
		if i, ok := slices.BinarySearch(k.positions, position); ok {
			k.positions = slices.Delete(k.positions, i, i+1)
		}
		k.stale = true
	}
	if stays || k.live == 0 {
		g.change(k)
	}
}

// join adds an item to the mark of its kind that this turn writes.
func (g *marking) join(it *Item, how message.HandOut) {
	k := g.fresh[how]
	if k == nil {
		g.last++
		k = &mark{id: g.last, how: how, stale: true}
		g.fresh[how] = k
		g.change(k)
	}
	k.positions = append(k.positions, it.Position)
	k.live++
	it.mark = k
}

// unmark strikes an item from its mark.
func (m *Machine) unmark(it *Item, stays bool) {
	if k := it.mark; k != nil {
		it.mark = nil
		m.marks.strike(k, it.Position, stays)
	}
}

// forgetFound drops what earlier marks name once all that was in the store has
// been seen: the rest is gone.
func (m *Machine) forgetFound() {
	if len(m.marks.found) == 0 {
		return
	}
	for _, l := range m.lanes {
		if l != nil && (l.beyond > 0 || l.paging) {
			return
		}
	}
	for position, k := range m.marks.found {
		m.marks.strike(k, position, false)
	}
	m.marks.found = nil
}

// recall gives an item that is paged in the mark an earlier process left for it.
func (g *marking) recall(it *Item) {
	if k := g.found[it.Position]; k != nil {
		delete(g.found, it.Position)
		it.mark, it.Suspect = k, max(it.Suspect, k.how)
	}
}

// Shown is an entry that is in the store alone, as a delivery now would find it: with
// what the marks of an earlier process say of it.
func (m *Machine) Shown(e message.Entry, c message.Counts, hasCounts bool) *Item {
	it := StoredItem(e, c, hasCounts)
	if k := m.marks.found[it.Position]; k != nil {
		it.Suspect = max(it.Suspect, k.how)
	}
	return it
}

// touch has an item looked at when the turn ends: what the store knows of it may
// have to change.
func (m *Machine) touch(it *Item) {
	if it.Durable && !it.touched {
		it.touched = true
		m.touched = append(m.touched, it)
	}
}

// changed has the counts of an item saved when the turn ends.
func (m *Machine) changed(it *Item) {
	it.dirty = true
	m.touch(it)
}

// suspicion is what would have to be said of an item's hand-outs after a crash
// now. Where failures are counted, a mere hand-out adds nothing to what is told. After a
// rollback nobody waits for what was pulled: its client may be about to give it up, and
// must not find its limit turned off.
func (it *Item) suspicion() message.HandOut {
	s := it.Suspect
	switch {
	case it.place != out && it.place != limbo:
	case it.attempt == rolledBack:
		s = max(s, min(it.how, message.HandedOut))
	default:
		s = max(s, it.how)
	}
	return it.telling(s)
}

// becomes notes how far the present delivery of an item has come.
func (m *Machine) becomes(it *Item, a attempt) {
	if it.attempt != a {
		it.attempt = a
		m.touch(it)
	}
}

// telling is s, or nothing where s makes no difference to what a client is told.
func (it *Item) telling(s message.HandOut) message.HandOut {
	if s == message.HandedOut && it.Failures > 0 {
		return message.NotHandedOut
	}
	return s
}

// note makes what the store says of an item after this turn what it has to say.
func (m *Machine) note(it *Item) {
	want := it.suspicion()
	if it.turn == m.turns && !it.dirty { // its entry is yet to be written, and says it
		if m.o.Marks {
			it.Out, it.saved = want, want
		}
		return
	}
	if it.mark != nil && it.telling(it.mark.how) > want || it.mark != nil && it.mark.how < want {
		m.unmark(it, true)
	}
	if it.dirty || it.telling(it.saved) > want {
		m.saveCounts(it)
	}
	if m.o.Marks && it.mark == nil && it.saved < want {
		m.marks.join(it, want)
	}
}

// saveCounts has the counts of an item written.
func (m *Machine) saveCounts(it *Item) {
	it.dirty, it.HasCounts, it.saved = false, true, it.Suspect
	m.emit(Effect{Kind: SaveCounts, Item: it, Lane: it.lane})
}

// flushMarks writes what the turn changed about counts and marks.
func (m *Machine) flushMarks() {
	m.forgetFound()
	for _, it := range m.touched {
		it.touched = false
		if it.place != nowhere || it.Stored && it.turn == m.turns {
			m.note(it)
		}
	}
	clear(m.touched)
	m.touched = m.touched[:0]
	for _, k := range m.marks.changed {
		k.listed = false
		switch {
		case k.live == 0:
			m.emit(Effect{Kind: DropMark, Number: k.id})
		case k.stale:
			k.stale = false
			slices.Sort(k.positions) // those of a fresh mark are in the order of the hand-out
			m.emit(Effect{Kind: PutMark, Number: k.id, How: k.how, Positions: k.positions})
		}
	}
	clear(m.marks.changed)
	m.marks.changed = m.marks.changed[:0]
	clear(m.marks.fresh[:])
}
