package queue

import "math"

// A lane holds the items of one priority; a queue that is not prioritized has
// one. Only a window of the waiting entries is in memory: those behind the cursor
// are in the store alone, and are paged in as the window empties.
type lane struct {
	number   uint8
	returned list    // given back, handed out before all others (R-CNT-09)
	waiting  list    // in the order of their positions
	cursor   uint64  // no entry above it is in memory, unless beyond is 0
	beyond   int64   // entries above the cursor, in the store alone
	paging   bool    // a page was asked for
	during   []*Item // came while the page was being read, with positions above the cursor
	grown    int     // by how much the window was widened for selectors that found nothing
	// checked is the position up to which no consumer that had room wanted any
	// waiting item.
	checked uint64
}

// maxGrown is how far a window is widened when no consumer wants what is in it.
const maxGrown = 20_000

func (m *Machine) lane(number uint8) *lane {
	if m.lanes[number] == nil {
		m.lanes[number] = &lane{number: number}
	}
	return m.lanes[number]
}

func (m *Machine) enqueue(c Enqueue) {
	it := c.Item
	if c.Producer != "" {
		if last, ok := m.producers[c.Producer]; ok && it.ID.Sequence <= last {
			m.stats.Suppressed++
			m.tell(Suppressed, it, "")
			m.answer(c.Done, nil)
			return
		}
		m.remember(c.Producer, it.ID.Sequence)
		m.sent[c.Producer] = it.ID.Sequence
	}
	m.stats.Enqueued++
	if it.Expired(m.now) { // on arrival: never stored here (R-BRK-21)
		it.lane = m.o.LaneOf(it.Priority)
		m.expire(it)
		m.answer(c.Done, nil)
		return
	}
	m.admit(it, it.Durable || c.Spill)
	m.answer(c.Done, nil)
}

func (m *Machine) arrive(c Arrive) {
	for _, it := range c.Items {
		delete(m.expected, it.Position)
		if p := it.ID.Producer; p != "" && it.ID.Sequence > m.producers[p] && it.Durable {
			m.remember(p, it.ID.Sequence)
		}
		m.stats.Enqueued++
		m.admit(it, false)
	}
}

// admit takes an item in: into the window if it belongs there and there is room,
// else it is left to the store.
func (m *Machine) admit(it *Item, keep bool) {
	it.lane = m.o.LaneOf(it.Priority)
	l := m.lane(it.lane)
	inside := it.Position <= l.cursor || l.beyond == 0 && l.waiting.n < m.o.Window
	if !it.Stored && (keep || !inside) {
		it.Stored, it.Transient, it.turn = true, !it.Durable, m.turns
		m.emit(Effect{Kind: Append, Item: it, Lane: it.lane})
	}
	if !inside && l.paging {
		l.during = append(l.during, it) // whether the page that is being read has it, nobody knows yet
		return
	}
	if !inside {
		l.beyond++
		return
	}
	l.cursor = max(l.cursor, it.Position)
	m.wait(it)
}

// wait puts an item into the window, or among the scheduled ones.
func (m *Machine) wait(it *Item) {
	if it.Expiration > 0 {
		m.expiry.add(it)
	}
	if it.Due > m.now {
		it.due = it.Due
		it.place = scheduled
		m.due.add(it)
		return
	}
	it.place = waiting
	l := m.lane(it.lane)
	l.waiting.insertByPosition(it)
	l.checked = min(l.checked, it.Position-1)
}

// want asks for a page where a lane's window has run low and the store has more.
// hungry says that consumers have room and found nothing for them.
func (m *Machine) want(l *lane, hungry bool) {
	if l.beyond == 0 || l.paging {
		return
	}
	room := m.o.Window - l.waiting.n
	if room < (m.o.Window+1)/2 {
		if !hungry || l.grown >= maxGrown {
			return
		}
		room = m.o.Window
		l.grown += room
	}
	l.paging = true
	m.emit(Effect{Kind: PageIn, Lane: l.number, Number: l.cursor, Counter: room})
}

func (m *Machine) paged(c Paged) {
	l := m.lane(c.Lane)
	l.paging = false
	late := map[uint64]bool{}
	for _, it := range l.during {
		late[it.Position] = true
	}
	taken := 0
	for _, it := range c.Items {
		if m.expected[it.Position] || it.Position <= l.cursor {
			continue // its Arrive will bring it, or did
		}
		l.cursor = it.Position
		if late[it.Position] {
			continue
		}
		it.lane = c.Lane
		l.beyond--
		taken++
		m.marks.recall(it)
		m.wait(it)
	}
	for _, it := range l.during {
		if it.Position <= l.cursor {
			m.wait(it)
		} else {
			l.beyond++
		}
	}
	c.Short = c.Short && len(l.during) == 0
	l.during = nil
	if taken == 0 && c.Short && l.beyond > 0 && len(m.expected) == 0 {
		m.tell(Inconsistent, nil, "")
		l.beyond = 0
	}
	if l.waiting.n < m.o.Window {
		l.grown = 0
	}
}

// maxProducers is how many producers' last sequences a queue remembers.
const maxProducers = 10_000

func (m *Machine) remember(producer string, sequence int64) {
	if _, ok := m.producers[producer]; !ok && len(m.producers) >= maxProducers {
		for p := range m.producers { // any: they are forgotten one by one as they close
			m.forgetProducer(p)
			break
		}
	}
	m.producers[producer] = sequence
}

func (m *Machine) forgetProducer(p string) {
	if _, ok := m.producers[p]; ok {
		delete(m.producers, p)
		delete(m.sent, p)
		m.emit(Effect{Kind: DropProducer, Name: p})
	}
}

// leaveList takes an item out of wherever it waits.
func (m *Machine) leaveList(it *Item) {
	if it.list != nil {
		it.list.remove(it)
	}
	m.due.remove(it)
	it.place = nowhere
}

// browse lists what is in memory, in order of position.
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
	add := func(it *Item) {
		if it.lane == c.Lane && it.Position > c.After {
			items = append(items, it)
		}
	}
	for it := l.returned.head; it != nil; it = it.next {
		add(it)
	}
	for it := l.waiting.head; it != nil; it = it.next {
		add(it)
	}
	for _, it := range m.out {
		add(it)
	}
	for _, it := range m.due.items {
		if it.place == scheduled {
			add(it)
		}
	}
	sortByPosition(items)
	if c.Max > 0 && len(items) > c.Max {
		items = items[:c.Max]
	}
	c.Reply(items, bound)
}

// State says where an item is, for people.
func (it *Item) State() string {
	switch it.place {
	case out:
		return "out"
	case scheduled:
		return "scheduled"
	case limbo:
		return "in-transaction"
	case returned:
		return "returned"
	}
	return "waiting"
}

func (m *Machine) extract(c Extract) {
	taken, left := 0, 0
	take := func(it *Item) {
		if c.IDs != nil && !c.IDs[it.ID.String()] {
			return
		}
		if c.Max > 0 && taken >= c.Max {
			left++
			return
		}
		if c.Purge {
			m.leaveList(it)
			m.gone(it)
			m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Purged})
		} else {
			move, ok := c.Target(it)
			if !ok {
				return
			}
			m.leaveList(it)
			m.transfer(it, &move)
		}
		taken++
	}
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		for it := l.returned.head; it != nil; {
			next := it.next
			take(it)
			it = next
		}
		for it := l.waiting.head; it != nil; {
			next := it.next
			take(it)
			it = next
		}
		left += int(l.beyond)
	}
	var timed []*Item
	for _, it := range m.due.items {
		if it.place == scheduled {
			timed = append(timed, it)
		}
	}
	sortByPosition(timed)
	for _, it := range timed {
		take(it)
	}
	if c.Done != nil {
		m.emit(Effect{Kind: Answer, Done: func(error) { c.Done(taken, left) }})
	}
}
