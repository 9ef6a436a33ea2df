package queue

import (
	"fmt"
	"slices"
)

// broken says which of its own laws a machine breaks; nil: none.
func (m *Machine) broken() error {
	defer m.uncharged()()
	for _, check := range []func() error{m.brokenLists, m.brokenOut, m.brokenHeaps, m.brokenMarks, m.brokenViews, m.brokenTimes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// uncharged makes a function that takes back what selectors were charged since.
func (m *Machine) uncharged() func() {
	all, each := m.steps, map[*Consumer]int{}
	for _, c := range m.consumers {
		each[c] = c.steps
	}
	return func() {
		m.steps = all
		for c, n := range each {
			c.steps = n
		}
	}
}

// brokenLists checks that each list is one, in order, of items that say they are there.
func (m *Machine) brokenLists() error {
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		for kind, q := range map[place]*list{waiting: &l.waiting, returned: &l.returned} {
			n, rank := 0, uint64(0)
			var prev *Item
			for it := q.head; it != nil; it = it.next {
				if it.prev != prev || it.list != q || it.place != kind || it.lane != l.number || it.rank <= rank {
					return fmt.Errorf("item %d in list %d of lane %d: place %d, rank %d after %d", it.Position, kind, l.number, it.place, it.rank, rank)
				}
				if kind == waiting && it.rank != it.Position || it.Position > l.cursor && (kind == waiting || l.ahead[it.Position] != it) {
					return fmt.Errorf("item %d has rank %d, and the cursor is at %d", it.Position, it.rank, l.cursor)
				}
				n, rank, prev = n+1, it.rank, it
			}
			if n != q.n || q.tail != prev {
				return fmt.Errorf("list %d of lane %d counts %d and has %d", kind, l.number, q.n, n)
			}
		}
		if len(l.fresh) > 0 || l.search.page != nil {
			return fmt.Errorf("lane %d: %d came in and have no place, a page is kept: %v", l.number, len(l.fresh), l.search.page != nil)
		}
		n := 0
		for position, it := range l.ahead {
			if it.Position != position || position <= l.cursor || it.place == nowhere || it.place == waiting {
				return fmt.Errorf("item %d is ahead as %d, place %d, and the cursor is at %d", it.Position, position, it.place, l.cursor)
			}
			if it.place == deep {
				n++
			}
		}
		if n != l.deep || l.beyond == 0 && len(l.during) == 0 && len(l.ahead) > 0 || len(l.left) > 0 && !m.reading(l) {
			return fmt.Errorf("lane %d: %d deep, %d found; %d ahead of %d; %d left", l.number, l.deep, n, len(l.ahead), l.beyond, len(l.left))
		}
		if l.beyond < 0 || len(l.during) > 0 && !l.paging {
			return fmt.Errorf("lane %d: beyond %d, during %d, paging %v", l.number, l.beyond, len(l.during), l.paging)
		}
	}
	return nil
}

// brokenOut checks that what is out is with a consumer or in limbo, and that no
// consumer has more than was let out to it.
func (m *Machine) brokenOut() error {
	local := int64(0)
	for _, it := range m.out {
		if it.local {
			local++
		}
		if it.local && (it.place != out || it.tx != "" || it.attempt != rolledBack && it.attempt != announced) {
			return fmt.Errorf("item %d is at its client: place %d, transaction %q, attempt %d", it.Position, it.place, it.tx, it.attempt)
		}
	}
	if local != m.stats.AtClients {
		return fmt.Errorf("%d items are at clients, %d are counted", local, m.stats.AtClients)
	}
	n := 0
	for _, c := range m.consumers {
		if m.byID[c.ID] != c || c.extension < 0 || c.extension > c.held.n {
			return fmt.Errorf("consumer %s: extension %d, held %d", c.ID, c.extension, c.held.n)
		}
		pulls := 0
		for _, p := range m.pulls {
			if p.consumer == c {
				pulls++
			}
		}
		if pulls != c.pulls {
			return fmt.Errorf("consumer %s has %d wishes, and %d are listed", c.ID, c.pulls, pulls)
		}
		for it := c.held.head; it != nil; it = it.next {
			if m.out[it.Position] != it || it.place != out || it.consumer != c {
				return fmt.Errorf("consumer %s holds %d, whose place is %d", c.ID, it.Position, it.place)
			}
			n++
		}
	}
	for _, it := range m.out {
		switch {
		case it.place == limbo && it.list == nil && slices.Contains(m.txs[it.tx], it):
			n++
		case it.place != out || it.tx != "" && !slices.Contains(m.txs[it.tx], it):
			return fmt.Errorf("item %d is out: place %d, transaction %q", it.Position, it.place, it.tx)
		}
	}
	bytes := int64(0)
	for _, it := range m.out {
		bytes += int64(it.SizeBytes)
	}
	if bytes != m.stats.OutBytes || m.stats.OutBytes > m.stats.Bytes {
		return fmt.Errorf("%d bytes are out, and %d of %d are counted", bytes, m.stats.OutBytes, m.stats.Bytes)
	}
	if n != len(m.out) {
		return fmt.Errorf("%d items are out, and consumers and transactions have %d", len(m.out), n)
	}
	return nil
}

// brokenHeaps checks that each item is in the heaps it belongs into, and no other.
func (m *Machine) brokenHeaps() error {
	for name, h := range map[string]*itemHeap{"due": &m.due, "holds": &m.holds, "expiry": &m.expiry} {
		for i, it := range h.items {
			if *h.at(it) != int32(i+1) {
				return fmt.Errorf("item %d is %d of %s and says %d", it.Position, i+1, name, *h.at(it))
			}
		}
	}
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		var err error
		m.each(l, func(it *Item) {
			here := it.place != out && it.place != limbo
			switch {
			case m.due.has(it) != (it.place == scheduled), m.holds.has(it) != ((it.place == waiting || it.place == deep) && it.heldUntil > m.now),
				it.place == returned && it.heldUntil > m.now,
				m.expiry.has(it) != (here && it.Expiration > 0):
				err = fmt.Errorf("item %d in place %d: due %v, holds %v, expiry %v", it.Position, it.place, m.due.has(it), m.holds.has(it), m.expiry.has(it))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// brokenMarks checks that marks count the items that refer to them.
func (m *Machine) brokenMarks() error {
	live := map[*mark]int{}
	for _, k := range m.marks.found {
		live[k]++
	}
	for _, l := range m.lanes {
		if l != nil {
			m.each(l, func(it *Item) {
				if it.mark != nil {
					live[it.mark]++
				}
			})
		}
	}
	for k, n := range live {
		if k.live != n || n > 0 && len(k.positions) < n {
			return fmt.Errorf("mark %d counts %d of %d positions, and %d items refer to it", k.id, k.live, len(k.positions), n)
		}
	}
	return nil
}

// brokenViews checks that nothing is left undone: no consumer has looked past
// something it wants, and none has room for something it has not looked at.
func (m *Machine) brokenViews() error {
	for _, c := range m.consumers {
		for _, l := range m.lanes {
			if l == nil {
				continue
			}
			if m.searches(c, l) && !m.waitsForPage(l, c) && !l.paging && !l.search.reading && !m.behind() && !m.unfinished {
				return fmt.Errorf("consumer %s has looked up to %d of lane %d, and nothing is read for it", c.ID, c.seen[l.number].waiting, l.number)
			}
			for kind, q := range map[place]*list{waiting: &l.waiting, returned: &l.returned} {
				for it := q.head; it != nil; it = it.next {
					passed := it.rank <= *c.seen[l.number].of(kind)
					if m.mayHave(c, it) && m.wants(c, it) && (passed || c.room() && !m.waitsForPage(l, c) && !m.behind() && !m.unfinished) {
						return fmt.Errorf("consumer %s wants %d and does not get it; passed: %v", c.ID, it.Position, passed)
					}
				}
			}
			for _, it := range l.ahead {
				if it.place == deep && it.rank <= c.seen[l.number].waiting && m.mayHave(c, it) && m.wants(c, it) {
					return fmt.Errorf("consumer %s wants %d, which is behind the window, and has looked past it", c.ID, it.Position)
				}
			}
		}
	}
	return nil
}

// waitsForPage reports whether there may be something for a consumer in a lane that goes
// before l.
func (m *Machine) waitsForPage(l *lane, c *Consumer) bool {
	for _, before := range m.lanes[:l.number] {
		if before != nil && (before.paging || before.hides(c)) {
			return true
		}
	}
	return false
}

// brokenTimes checks that nobody waits for a page that is not on its way.
func (m *Machine) brokenTimes() error {
	if m.behind() && m.anyRoom() && !m.horizons[ByDue].paging {
		return fmt.Errorf("consumers wait for what is due, and it is not read")
	}
	return nil
}
