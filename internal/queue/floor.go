package queue

// Floor is a position below which a lane has nothing, in memory or in the store,
// nor is told to expect anything. It looks at all that is in memory.
func (m *Machine) Floor(laneNumber uint8) uint64 {
	l := m.lanes[laneNumber]
	if l == nil {
		return 0
	}
	floor := ^uint64(0)
	if l.beyond > 0 || l.paging {
		floor = l.cursor + 1
	}
	lower := func(it *Item) {
		if it.lane == laneNumber {
			floor = min(floor, it.Position)
		}
	}
	for it := l.returned.head; it != nil; it = it.next {
		lower(it)
	}
	if l.waiting.head != nil {
		lower(l.waiting.head)
	}
	for _, it := range l.during {
		lower(it)
	}
	for _, it := range m.out {
		lower(it)
	}
	for _, it := range m.due.items {
		lower(it)
	}
	for p := range m.expected {
		floor = min(floor, p)
	}
	return floor
}
