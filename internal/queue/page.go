package queue

// want asks for a page where a lane's window has run low and the store has more.
func (m *Machine) want(l *lane) {
	if l.beyond == 0 || l.paging || l.stalled || l.search.reading || m.behind() {
		return
	}
	room := m.window() - l.waiting.n
	if room < (m.window()+1)/2 {
		return
	}
	l.paging, l.asked = true, l.cursor
	expected := min(len(m.expected), m.window()) // they may be in front of what can be taken in
	m.emit(Effect{Kind: PageIn, Lane: l.number, Number: l.cursor, Counter: room + expected})
}

// paged takes a page in. It was read at some moment between the PageIn and now, so
// it may or may not have what came meanwhile, and may have what an Arrive is still
// to bring.
func (m *Machine) paged(c Paged) {
	l := m.lane(c.Lane)
	if !l.paging {
		return
	}
	during := l.during
	l.paging, l.during = false, nil
	was := l.cursor
	m.takeIn(l, c.Items, during)
	for _, it := range during {
		if it.Position <= l.cursor {
			m.wait(it)
		} else {
			m.comeBehind(l, it)
		}
	}
	m.forgetLeft()
	same := l.cursor == was && l.asked == was // what was read is what is missing
	if l.beyond < 0 || c.Short && same && l.beyond > 0 && len(during) == 0 && len(m.expected) == 0 {
		m.tell(Inconsistent, nil, "")
		l.beyond = 0
	}
	l.stalled = same && len(during) == 0 && l.beyond > 0
}

// takeIn moves the cursor over a page and takes in what is on it, except what came
// meanwhile, or is to come, by a command of its own.
func (m *Machine) takeIn(l *lane, page, during []*Item) {
	var here map[uint64]bool
	if len(during) > 0 {
		here = make(map[uint64]bool, len(during))
		for _, it := range during {
			here[it.Position] = true
		}
	}
	for _, it := range page {
		if m.expected[it.Position] || it.Position <= l.cursor {
			continue
		}
		l.cursor = it.Position
		if a := l.ahead[it.Position]; a != nil {
			m.reach(l, a)
			continue
		}
		if here[it.Position] || m.plucked[it.Position] || l.left[it.Position] {
			continue
		}
		it.lane = l.number
		l.beyond--
		m.marks.recall(it)
		m.enter(it) // who has looked past it has seen it by a search
	}
}

// unstall lets lanes be paged again that waited for what was expected.
func (m *Machine) unstall() {
	for _, l := range m.lanes {
		if l != nil {
			l.stalled = false
		}
	}
}
