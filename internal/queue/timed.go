package queue

import (
	"cmp"
	"math"
	"slices"
)

// An Index is an order that the store keeps of a queue's entries, by a time of theirs.
type Index uint8

// The indexes there are.
const (
	ByDue        Index = iota // entries that a broker-side policy made wait, by when they are due
	ByExpiration              // entries that expire, by when
	indexes      = iota
)

// A TimeKey is a place in an index. The zero value is before all.
type TimeKey struct {
	At       int64 // Unix milliseconds
	Lane     uint8
	Position uint64
}

const (
	// timesAhead is how long before its time an entry is read from the store, in
	// milliseconds: longer than the reading takes.
	timesAhead = 1000
	// timesPage is how many places of an index are read at a time.
	timesPage = 1000
	// maxReturned is how many items that nobody wants may be back before what is due, and
	// in the store alone, no longer goes before what waits.
	maxReturned = 20_000
	// maxAhead is how many entries above a lane's cursor are kept in memory for the
	// sake of their times where they need not be; the rest is found when its time comes.
	maxAhead = 2 * timesPage
)

// A horizon is how far an index is known: every entry up to known is in memory, or
// every one there is.
type horizon struct {
	known   TimeKey
	all     bool
	paging  bool  // a page was asked for
	lowered int64 // the earliest time of what was left to the store meanwhile
}

// at is the time before which everything is known.
func (h *horizon) at() int64 {
	if h.all {
		return math.MaxInt64
	}
	return h.known.At
}

// leave notes that an entry of a time is left to the store alone; 0 is no time.
func (h *horizon) leave(at int64) {
	switch {
	case at == 0:
	case h.paging:
		h.lowered = min(h.lowered, at)
	case h.all || at <= h.known.At:
		h.all, h.known = false, TimeKey{At: at}
	}
}

// TimedItem is an entry that an index led to.
type TimedItem struct {
	Lane uint8
	Item *Item
}

// Known reports whether an entry is in memory, or has gone: it need not be read.
func (m *Machine) Known(lane uint8, position uint64) bool {
	l := m.lane(lane)
	if l.away[position] {
		return l.left[position] || m.plucked[position]
	}
	return position <= l.cursor || l.beyond == 0 || l.ahead[position] != nil || l.left[position] || m.plucked[position] || m.expected[position]
}

// Ahead is the item of an entry that is above its lane's cursor and in memory for
// the sake of its time; nil: it is not.
func (m *Machine) Ahead(lane uint8, position uint64) *Item {
	if l := m.lanes[lane]; l != nil {
		return l.ahead[position]
	}
	return nil
}

// timed takes in what an index led to.
func (m *Machine) timed(c Timed) {
	h := &m.horizons[c.Index]
	if !h.paging {
		return
	}
	h.paging = false
	for _, t := range c.Items {
		if l := m.lane(t.Lane); !m.Known(t.Lane, t.Item.Position) && !l.isDuring(t.Item.Position) {
			t.Item.lane = t.Lane
			if l.away[t.Item.Position] {
				delete(l.away, t.Item.Position)
				m.wait(t.Item)
				continue
			}
			l.beyond--
			m.marks.recall(t.Item)
			m.takeAhead(l, t.Item)
		}
	}
	h.known, h.all = c.Last, c.End
	if h.lowered != math.MaxInt64 {
		h.leave(h.lowered)
	}
	m.forgetLeft()
}

// isDuring reports whether an item came while a page is being read, and waits for it.
func (l *lane) isDuring(position uint64) bool {
	return slices.ContainsFunc(l.during, func(it *Item) bool { return it.Position == position })
}

// takeAhead takes an item in that is above its lane's cursor, for the sake of its
// times: until the cursor has passed it, it is deep, and nobody is offered it but
// when it is due.
func (m *Machine) takeAhead(l *lane, it *Item) {
	m.putAhead(l, it)
	if it.Expiration > 0 {
		m.expiry.add(it)
	}
	if m.waitsForTime(it) {
		m.schedule(it)
		return
	}
	m.putDeep(l, it)
}

// putAhead notes that an item above its lane's cursor is in memory.
func (m *Machine) putAhead(l *lane, it *Item) {
	if l.ahead == nil {
		l.ahead = map[uint64]*Item{}
	}
	l.ahead[it.Position] = it
}

// waitsForTime reports whether an item that is taken in goes by its due time: also if
// that has passed, so that what was due in an earlier process goes before what was
// never handed out. A member of a group then has its place among the others again, unless
// a policy is to be asked about it first.
func (m *Machine) waitsForTime(it *Item) bool {
	return it.Due > m.now || it.Due != 0 && (it.Unasked || !m.keepsPlace(it))
}

// keepsPlace reports whether an item keeps its place although its time has come: as a
// member of a group that this process has not handed out, since earlier members may
// wait as well (C24).
func (m *Machine) keepsPlace(it *Item) bool { return m.o.Grouped && it.Group != "" && it.number == 0 }

func (m *Machine) putDeep(l *lane, it *Item) {
	it.place, it.rank = deep, it.Position
	l.deep++
}

// leaveBehind leaves an item to the store alone, or keeps it ahead where its time is
// among the next ones.
func (m *Machine) leaveBehind(l *lane, it *Item) {
	for x, at := range it.times() {
		if h := &m.horizons[x]; at != 0 && at < h.at() && !h.paging && len(l.ahead) < maxAhead {
			m.takeAhead(l, it)
			return
		}
	}
	l.beyond++
	for x, at := range it.times() {
		m.horizons[x].leave(at)
	}
}

// times are an item's times, by index; 0: it has none.
func (it *Item) times() [indexes]int64 { return [...]int64{ByDue: it.Due, ByExpiration: it.Expiration} }

// reach takes an item that the cursor has come to into the window.
func (m *Machine) reach(l *lane, it *Item) {
	delete(l.ahead, it.Position)
	if it.place == deep {
		l.deep--
		m.insert(it) // who has looked past it has seen it by a search
	}
}

// settleAhead takes what is ahead into the window where nothing is in the store alone.
// It reports whether there was anything.
func (m *Machine) settleAhead(l *lane) bool {
	if l.beyond > 0 || len(l.fresh) > 0 || len(l.during) > 0 || len(l.ahead) == 0 {
		return false
	}
	items := make([]*Item, 0, len(l.ahead))
	for _, it := range l.ahead {
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b *Item) int { return cmp.Compare(a.Position, b.Position) })
	for _, it := range items {
		l.cursor = max(l.cursor, it.Position)
		m.reach(l, it)
	}
	return true
}

// noteLeft remembers that an item which was ahead is gone, while a page that is
// being read may still show it.
func (m *Machine) noteLeft(it *Item) {
	l := m.lanes[it.lane]
	if l == nil || l.ahead[it.Position] != it {
		return
	}
	delete(l.ahead, it.Position)
	if m.reading(l) {
		m.noteOld(l, it.Position)
	}
}

// reading reports whether a page that may show entries of a lane is on its way.
func (m *Machine) reading(l *lane) bool {
	return l.paging || l.search.reading || slices.ContainsFunc(m.horizons[:], func(h horizon) bool { return h.paging })
}

// forgetLeft drops what noteLeft noted where no page is on its way any more.
func (m *Machine) forgetLeft() {
	for _, l := range m.lanes {
		if l != nil && len(l.left) > 0 && !m.reading(l) {
			clear(l.left)
		}
	}
}

// behind reports whether there may be items that are due, and are in the store
// alone: nothing that waits goes before them, unless too many are here that nobody
// wants.
func (m *Machine) behind() bool {
	return m.horizons[ByDue].at() <= m.now && m.returnedItems() < maxReturned
}

// wantTimes asks for the next page of an index when its time is near. Of what is
// overdue not much more is read than can be handed out: what is given back meanwhile
// goes before what was not read yet. hungry says that consumers have room and found
// nothing.
func (m *Machine) wantTimes(hungry bool) {
	for x := range m.horizons {
		if at := m.timesDue(Index(x), hungry); at != 0 && at <= m.now {
			h := &m.horizons[x]
			h.paging, h.lowered = true, math.MaxInt64
			m.emit(Effect{Kind: PageTimes, Index: Index(x), From: h.known, Counter: timesPage})
		}
	}
}

// timesDue is when a page of an index is to be asked for; 0: not yet known, or never.
func (m *Machine) timesDue(x Index, hungry bool) int64 {
	h := &m.horizons[x]
	if h.all || h.paging || x == ByDue && h.known.At <= m.now && !hungry && m.returnedItems() >= max(m.o.Window, timesPage) {
		return 0
	}
	return max(h.known.At-timesAhead, 1)
}

func (m *Machine) returnedItems() int {
	n := 0
	for _, l := range m.lanes {
		if l != nil {
			n += l.returned.n
		}
	}
	return n
}
