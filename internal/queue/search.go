package queue

import "math"

// Behind a lane's window lie entries that only the store has. A consumer that finds
// nothing in the window, since its selector wants none of it or its groups are other
// consumers', has them searched: page by page, from where it stopped looking. What it
// wants is taken out of the middle, and is in memory ahead of the window from then on.
// The rest is not kept: how far each consumer has looked (Consumer.seen) is all that a
// search leaves behind. So each entry is read once for each consumer that comes to it,
// and where nothing changes nothing is read: what comes in later is shown to those who
// have looked through everything before it, without the store.
//
// One page of a lane is read at a time, for all who are to look at what is on it. A sweep
// goes through the lane from the consumer that is furthest behind, takes those it meets
// along, and begins anew behind it. Now and then a page is for the one that is nearest to
// the end, which is not to wait for a sweep through a long queue.

const (
	// searchEntries is how many entries a page of a search has at the most.
	searchEntries = 500
	// leastSearched is what it has where the window is smaller than that.
	leastSearched = 16
	// sweepPages is after how many pages of a sweep one is for who is nearest to the end.
	sweepPages = 4
)

// A search is what is known of the search behind a lane's window.
type search struct {
	reading bool      // a page was asked for, behind from
	from    uint64    // every entry of the page is above it
	page    *Searched // it is here, to be offered in this dispatch
	low     uint64    // the lowest position that came in behind the window meanwhile; 0: none
	sweep   uint64    // how far the sweep has come
	target  uint64    // where it ends
	pages   int       // of the sweep, since the last one that was not
}

// hides reports whether a lane may have something behind its window that a consumer
// has not been shown.
func (l *lane) hides(c *Consumer) bool {
	return l.beyond > 0 && (!l.ended || c.seen[l.number].waiting < l.newest)
}

// noteEnd notes how far a lane goes, where all of it is in memory, before it is not any
// more.
func (l *lane) noteEnd() {
	if l.beyond > 0 {
		return
	}
	l.newest, l.ended = l.cursor, true
	for p := range l.ahead {
		l.newest = max(l.newest, p)
	}
}

// searches reports whether a consumer has looked through the window and is to be shown
// what is behind it.
func (m *Machine) searches(c *Consumer, l *lane) bool {
	return m.looks(c, l) && m.exclusively(c) && l.hides(c) && c.seen[l.number].waiting >= l.cursor
}

// search asks for a page of what is behind the window, if a consumer wants to see it.
func (m *Machine) search(l *lane) {
	s := &l.search
	if l.beyond == 0 || l.paging || s.reading || m.behind() {
		return
	}
	last, next, first := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(0)
	for _, c := range m.consumers {
		if m.searches(c, l) {
			at := c.seen[l.number].waiting
			last, first = min(last, at), max(first, at)
			if at >= s.sweep {
				next = min(next, at)
			}
		}
	}
	if last == math.MaxUint64 {
		s.sweep, s.target, s.pages = 0, 0, 0
		return
	}
	if s.pages++; s.pages > sweepPages && first != next {
		s.from, s.pages = first, 0
	} else {
		if next == math.MaxUint64 || next >= s.target {
			next, s.target = last, l.newest
			if !l.ended {
				s.target = math.MaxUint64
			}
		}
		s.sweep, s.from = next, next
	}
	s.reading, s.low = true, 0
	m.emit(Effect{Kind: Search, Lane: l.number, Number: s.from, Counter: min(searchEntries, max(m.window(), leastSearched))})
}

// searched takes note of a page, which is offered when what is in memory has been.
func (m *Machine) searched(c Searched) {
	l := m.lane(c.Lane)
	if !l.search.reading || l.search.page != nil {
		return
	}
	l.search.page = &c
	if n := len(c.Items); n > 0 && c.Short {
		l.newest = max(l.newest, c.Items[n-1].Position)
	}
	l.ended = l.ended || c.Short
}

// offerFound offers what is on the page of a search to those who have seen everything
// before it.
func (m *Machine) offerFound(l *lane) {
	s := &l.search
	if s.page == nil {
		return
	}
	from := max(s.from, l.cursor) // up to there it is in memory
	upto := from
	if n := len(s.page.Items); n > 0 {
		upto = max(from, s.page.Items[n-1].Position)
	}
	if s.page.Short {
		upto = max(upto, l.newest)
	}
	if s.low > 0 { // perhaps it came too late to be on the page
		upto = min(upto, s.low-1)
	}
	shown := from
	for _, read := range s.page.Items {
		if read.Position > upto {
			break
		}
		if it := m.found(l, read); it != nil {
			c, some, sure := m.pick(it, from)
			if !some || !sure {
				upto = shown
				break
			}
			if c != nil {
				m.takeFor(l, it, c)
			}
		}
		shown = max(shown, read.Position)
	}
	m.seeAll(l, waiting, from, upto)
	m.endSearch(l)
}

// found is the item of an entry that was read behind the window, if it may be handed
// out; nil: it may not, or it is not there any more.
func (m *Machine) found(l *lane, it *Item) *Item {
	p := it.Position
	if a := l.ahead[p]; a != nil && a.place == deep {
		return a
	}
	if p <= l.cursor || l.ahead[p] != nil || m.expected[p] || m.plucked[p] || l.left[p] || it.Expired(m.now) {
		return nil
	}
	it.lane = l.number
	if m.waitsForTime(it) {
		if m.o.Grouped && it.Group != "" { // later ones of its group are to wait for it
			l.beyond--
			m.marks.recall(it)
			m.takeAhead(l, it)
		}
		return nil
	}
	if k := m.marks.found[p]; k != nil {
		it.Suspect = max(it.Suspect, k.how)
	}
	it.place, it.rank = waiting, p
	return it
}

// takeFor takes an item from behind the window, and hands it out.
func (m *Machine) takeFor(l *lane, it *Item, c *Consumer) {
	if l.ahead[it.Position] != it {
		l.beyond--
		m.marks.recall(it)
		m.putAhead(l, it)
	}
	m.handOut(it, c)
	m.see(l, c, waiting, it.rank)
}

// comeBehind takes in what belongs behind the window. Nobody is offered now what waits
// for a time, or has expired.
func (m *Machine) comeBehind(l *lane, it *Item) {
	l.noteEnd()
	waits := m.waitsForTime(it)
	if !waits && !it.Expired(m.now) {
		l.fresh = append(l.fresh, it)
		return
	}
	from := l.newest
	if l.newest = max(l.newest, it.Position); l.ended && l.newest > from {
		for _, c := range m.consumers {
			if c.seen[l.number].waiting >= from {
				m.see(l, c, waiting, l.newest)
			}
		}
	}
	if waits && m.o.Grouped && it.Group != "" { // later ones of its group are to wait for it
		m.takeAhead(l, it)
	} else {
		m.leaveBehind(l, it)
	}
}

// offerFresh shows what came in behind the window to those who have seen everything
// before it, if offer says that they may have it now. Nobody else sees it but by a
// search.
func (m *Machine) offerFresh(l *lane, offer bool) {
	if len(l.fresh) == 0 {
		return
	}
	sortByPosition(l.fresh)
	for _, it := range l.fresh {
		it.place, it.rank = waiting, it.Position
		m.reoffer(it)
		from := l.newest
		l.newest = max(l.newest, it.Position)
		if offer && l.ended && it.Position > from && m.offerNew(l, it, from) {
			continue
		}
		it.place = nowhere
		if s := &l.search; s.reading && (s.low == 0 || it.Position < s.low) {
			s.low = it.Position
		}
		m.leaveBehind(l, it)
	}
	clear(l.fresh)
	l.fresh = l.fresh[:0]
}

// offerNew offers an item that lies behind all others. It returns false where it is not
// handed out.
func (m *Machine) offerNew(l *lane, it *Item, from uint64) bool {
	c, _, sure := m.pick(it, from)
	if !sure {
		return false
	}
	if c != nil {
		l.beyond++ // it is stored, and nowhere else
		m.takeFor(l, it, c)
	}
	m.seeAll(l, waiting, from, it.Position)
	return c != nil
}

// endSearch ends a search whose page is here.
func (m *Machine) endSearch(l *lane) {
	if s := &l.search; s.page != nil {
		s.page, s.reading, s.low = nil, false, 0
		m.forgetLeft()
	}
}
