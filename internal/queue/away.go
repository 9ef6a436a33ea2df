package queue

import "github.com/nixiemq/nixie/internal/message"

// DefaultScheduled is the number of items in memory that wait for their due time.
const DefaultScheduled = 20_000

// Of very many items that wait for a due time only so many are kept in memory. The
// rest is away: in the store alone, although the cursor has passed them. The index of
// due times brings them back when their time is near, or that of their expiration.

// sendAway leaves items that were scheduled in this turn to the store alone, where too
// many are in memory and nothing but the store is to know of them.
func (m *Machine) sendAway() {
	for _, it := range m.far {
		if it.place != scheduled || !m.mayLeave(it) {
			continue
		}
		l := m.lanes[it.lane]
		if l.ahead[it.Position] == it && m.reading(l) {
			continue // a page is on its way that may bring it
		}
		m.leaveList(it)
		m.outOfSight(it)
		m.expiry.remove(it)
		m.unmark(it, false) // the mark says nothing of an item that has failed
		m.noteAway(l, it)
		it.place = nowhere
		for x, at := range it.times() {
			m.horizons[x].leave(at)
		}
	}
	clear(m.far)
	m.far = m.far[:0]
}

// mayLeave reports whether the store has all that is known of an item, and its time is
// far enough for it to be read again.
func (m *Machine) mayLeave(it *Item) bool {
	return it.Durable && it.Stored && !it.dirty && !it.touched && it.HasCounts &&
		(it.mark == nil || it.telling(it.mark.how) == message.NotHandedOut) && it.Suspect == message.NotHandedOut &&
		it.aside == 0 && it.Suppressed == 0 && it.heldUntil <= m.now && it.Group == "" && it.Due > m.now+2*timesAhead
}

// noteAway remembers that an item is in the store alone. What a page that is on its
// way has of it may be old.
func (m *Machine) noteAway(l *lane, it *Item) {
	if l.ahead[it.Position] == it {
		l.noteEnd()
		delete(l.ahead, it.Position)
		l.beyond++
	} else {
		if l.away == nil {
			l.away = map[uint64]bool{}
		}
		l.away[it.Position] = true
	}
	if m.reading(l) {
		m.noteOld(l, it.Position)
	}
}

// noteOld has pages that are on their way pass over an entry.
func (m *Machine) noteOld(l *lane, position uint64) {
	if l.left == nil {
		l.left = map[uint64]bool{}
	}
	l.left[position] = true
}

// Alone reports whether an entry of a lane is in the store alone.
func (m *Machine) Alone(laneNumber uint8, position uint64) bool {
	l := m.lane(laneNumber)
	return l.away[position] || position > l.cursor && l.ahead[position] == nil
}

// Away is how many entries of a lane that the cursor has passed are in the store alone.
func (m *Machine) Away(laneNumber uint8) int {
	if l := m.lanes[laneNumber]; l != nil {
		return len(l.away)
	}
	return 0
}
