package queue

import (
	"cmp"
	"slices"
)

// list is a doubly linked list through the items themselves. An item is in one
// list at the most. The lists of a lane are in the order of rank.
type list struct {
	head, tail *Item
	n          int
}

func (l *list) pushBack(it *Item) { l.insertAfter(it, l.tail) }

// insertAfter puts it behind at; at the front if at is nil.
func (l *list) insertAfter(it, at *Item) {
	it.list, it.prev = l, at
	if at == nil {
		it.next, l.head = l.head, it
	} else {
		it.next, at.next = at.next, it
	}
	if it.next == nil {
		l.tail = it
	} else {
		it.next.prev = it
	}
	l.n++
}

// insertByRank puts it where its rank belongs. It looks from the end: what comes
// in is mostly the newest.
func (l *list) insertByRank(it *Item) {
	at := l.tail
	for at != nil && at.rank > it.rank {
		at = at.prev
	}
	l.insertAfter(it, at)
}

// after is the first item of a rank above the given one.
func (l *list) after(rank uint64) *Item {
	switch {
	case l.head == nil || l.tail.rank <= rank:
		return nil
	case l.head.rank > rank:
		return l.head
	}
	it := l.tail
	for it.prev.rank > rank {
		it = it.prev
	}
	return it
}

func (l *list) remove(it *Item) {
	if it.prev == nil {
		l.head = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		l.tail = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.list, it.next, it.prev = nil, nil, nil
	l.n--
}

// sortByPosition puts items in the order in which they came.
func sortByPosition(items []*Item) {
	slices.SortFunc(items, func(a, b *Item) int { return cmp.Compare(a.Position, b.Position) })
}
