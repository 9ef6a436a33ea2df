package queue

import (
	"cmp"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// lanes is how many lanes there are: one for each JMSPriority.
const lanes = 10

// A lane holds the items of one priority; a queue that is not prioritized has
// one. Only a window of the waiting entries is in memory: those behind the cursor
// are in the store alone, and are paged in as the window empties (page.go).
type lane struct {
	number   uint8
	returned list    // given back, handed out before all others (R-CNT-09); in the order of their positions
	waiting  list    // in the order of their positions
	latest   *Item   // the one that came back last; it may have gone again
	fingers  []*Item // some of those that were in returned when it was last gone through, in order
	seen     uint64  // no consumer has looked further in waiting
	cursor   uint64  // every entry up to here is in memory, none above it unless beyond is 0
	beyond   int64   // entries above the cursor, in the store alone
	paging   bool    // a page was asked for, behind asked
	asked    uint64
	stalled  bool // the last page had nothing but what an Arrive will bring
	during   []*Item
	ahead    map[uint64]*Item // above the cursor, in memory for the sake of their times
	deep     int              // of them that nobody is offered yet
	left     map[uint64]bool  // that pages on their way may show as they were, and are not to be taken from them
	away     map[uint64]bool  // not above the cursor, and in the store alone
	fresh    []*Item          // came in by this command, and belong behind the window
	newest   uint64           // where ended: nothing of the lane is above it
	ended    bool
	search   search
}

func (m *Machine) lane(number uint8) *lane {
	if m.lanes[number] == nil {
		m.lanes[number] = &lane{number: number}
	}
	return m.lanes[number]
}

func (m *Machine) enqueue(c Enqueue) {
	it := c.Item
	it.lane = m.o.LaneOf(it.Priority)
	if c.Producer != "" && !m.producers.take(c.Producer, it.ID.Sequence, it.Durable) {
		m.stats.Suppressed++
		m.tell(Suppressed, it, "")
		m.answer(c.Done, nil)
		return
	}
	if !it.Expired(m.now) || !m.endsExpired(it) {
		m.takeNew(it, it.Durable || c.Spill)
	}
	m.answer(c.Done, nil)
}

// entered counts an item that comes in.
func (m *Machine) entered(it *Item) {
	m.stats.Enqueued++
	m.stats.Bytes += int64(it.SizeBytes)
}

// endsExpired decides about an item that had expired when it came: it is never
// stored here, nor counted as enqueued (R-BRK-21). It returns false where the item
// is kept all the same, since this is its own dead letter queue.
func (m *Machine) endsExpired(it *Item) bool {
	f := m.failure(it, message.Expired, "")
	if !m.o.Redelivers || m.verdict(it, f, false).Action != redelivery.Keep {
		m.expire(it)
		return true
	}
	m.stats.Expired++
	m.stats.Kept++
	m.tell(ItemExpired, it, "")
	m.tell(Kept, it, f.Cause.String())
	m.setAside(it)
	return false
}

func (m *Machine) arrive(c Arrive) {
	for _, it := range c.Items {
		it.lane = m.o.LaneOf(it.Priority)
		delete(m.expected, it.Position)
		if it.Durable && !c.Moved {
			m.producers.arrived(it.ID.Producer, it.ID.Sequence, c.Noted)
		}
		m.takeNew(it, false)
	}
	m.unstall()
}

// takeNew takes in an item that came, unless nothing is kept.
func (m *Machine) takeNew(it *Item, store bool) {
	if m.unwanted(it) {
		return
	}
	m.entered(it)
	m.admit(it, store)
	m.arrived(it)
}

func (m *Machine) expect(positions []uint64) {
	for _, p := range positions {
		m.expected[p] = true
	}
}

func (m *Machine) cancel(positions []uint64) {
	for _, p := range positions {
		delete(m.expected, p)
	}
	m.unstall()
}

// admit takes an item in: into the window if it belongs there and there is room,
// else it is left to the store. store says that it is to be stored in any case.
func (m *Machine) admit(it *Item, store bool) {
	l := m.lane(it.lane)
	inside := it.Position <= l.cursor || l.beyond == 0 && len(l.during) == 0 && l.waiting.n < m.window()
	if !it.Stored && (store || !inside) {
		it.Stored, it.Transient, it.turn = true, !it.Durable, m.turns
		m.emit(Effect{Kind: Append, Item: it, Lane: it.lane})
		if it.Counts != (message.Counts{}) {
			m.changed(it)
		}
	}
	switch {
	case inside:
		l.cursor = max(l.cursor, it.Position)
		m.wait(it)
	case l.paging: // whether the page that is being read has it, nobody knows yet
		l.during = append(l.during, it)
	default:
		m.comeBehind(l, it)
	}
}

// wait takes in an item that nobody has been offered yet.
func (m *Machine) wait(it *Item) {
	m.enter(it)
	m.reoffer(it)
}

// enter puts an item that comes in into the window, or among the scheduled ones: one
// that was due in an earlier process too, so that it goes before those never handed
// out.
func (m *Machine) enter(it *Item) {
	if it.Expiration > 0 {
		m.expiry.add(it)
	}
	if m.waitsForTime(it) {
		m.schedule(it)
		return
	}
	m.insert(it)
}

// insert puts an item among the waiting ones, in the order of its position.
func (m *Machine) insert(it *Item) {
	it.place, it.rank = waiting, it.Position
	m.lane(it.lane).waiting.insertByRank(it)
	m.supersede(it)
}

// putWaiting puts an item that may be offered again among the waiting ones.
func (m *Machine) putWaiting(it *Item) {
	if l := m.lane(it.lane); len(l.ahead) > 0 && l.ahead[it.Position] == it {
		m.putDeep(l, it) // its place is behind what is in the store alone
	} else {
		m.insert(it)
	}
	m.reoffer(it)
}

// putReturned puts an item among those that go before all waiting ones, in the order in
// which they came: what one consumer gives back belongs before what another gave back
// earlier and nobody has taken since, or whoever consumes alone after the two would have
// it in another order (R-EXC-03).
func (m *Machine) putReturned(it *Item) {
	l := m.lane(it.lane)
	it.place, it.rank = returned, it.Position
	at, _ := l.inFront(it.rank)
	l.returned.insertAfter(it, at)
	l.latest = it
	for _, c := range m.consumers {
		if v := &c.seen[it.lane]; it.rank <= v.returned && (m.exhausted(c) || m.wants(c, it)) {
			v.returned = it.rank - 1
		}
	}
	m.supersede(it)
}

// fingerGap is how many returned items lie from finger to finger.
const fingerGap = 64

// inFront is the returned item behind which one of a rank belongs; nil: it is the first.
// It is found in a few steps, which it counts, in whatever order very many come back: what each consumer of
// many had, or what was due at times of its own.
func (l *lane) inFront(rank uint64) (at *Item, steps int) {
	r := &l.returned
	switch {
	case r.tail == nil:
		l.fingers = nil
		return nil, 0
	case r.tail.rank < rank:
		return r.tail, 0
	case r.head.rank > rank:
		return nil, 0
	}
	at = r.head
	closer := func(o *Item) bool { return o != nil && o.list == r && o.rank < rank && o.rank >= at.rank }
	i, _ := slices.BinarySearchFunc(l.fingers, rank, func(o *Item, rank uint64) int { return cmp.Compare(o.rank, rank) })
	for ; i > 0; i-- {
		if o := l.fingers[i-1]; closer(o) {
			at = o
			break
		}
	}
	if closer(l.latest) { // a consumer that goes gives back one after the other
		at = l.latest
	}
	for at.next.rank < rank { // the tail is above it
		at = at.next
		steps++
	}
	if steps > 4*fingerGap {
		l.layFingers()
	}
	return at, steps
}

// layFingers goes through what is returned, so that places in it are found fast.
func (l *lane) layFingers() {
	l.fingers = l.fingers[:0]
	n := 0
	for it := l.returned.head; it != nil; it = it.next {
		if n%fingerGap == 0 {
			l.fingers = append(l.fingers, it)
		}
		n++
	}
}

// reoffer has the consumers that have looked past a waiting item look at it. Where they
// are to search for it behind the window, those that do not want it need not.
func (m *Machine) reoffer(it *Item) {
	l := m.lane(it.lane)
	if it.place != waiting && it.place != deep || it.rank > l.seen {
		return
	}
	for _, c := range m.consumers {
		v := &c.seen[it.lane]
		if it.rank <= v.waiting && (it.rank <= l.cursor || m.exhausted(c) || m.wants(c, it)) {
			v.waiting = it.rank - 1
		}
	}
}

// leaveList takes an item out of wherever it waits. Its place is where it was
// until it has a new one.
func (m *Machine) leaveList(it *Item) {
	if it.list != nil {
		it.list.remove(it)
	}
	if it.place == deep {
		m.lanes[it.lane].deep--
		it.place = waiting // on its way out
	}
	m.leaveDue(it)
	m.leaveHold(it)
}

func (m *Machine) enterDue(it *Item) {
	m.due.add(it)
	m.park(it)
}

func (m *Machine) leaveDue(it *Item) {
	if m.due.has(it) {
		m.due.remove(it)
		m.unpark(it)
	}
}

func (m *Machine) enterHold(it *Item) {
	m.holds.add(it)
	m.park(it)
}

func (m *Machine) leaveHold(it *Item) {
	if m.holds.has(it) {
		m.holds.remove(it)
		m.unpark(it)
	}
}
