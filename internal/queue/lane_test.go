package queue

import "testing"

// Very many come back in any order, without each going along all the others.
func TestReturnedItemsFindTheirPlace(t *testing.T) { // R-EXC-03
	t.Parallel()
	const n, consumers = 20_000, 20
	for name, order := range map[string]func(i int) int{
		"one after the other":            func(i int) int { return i },
		"the last first":                 func(i int) int { return n - 1 - i },
		"by consumers that had turns":    func(i int) int { return i%(n/consumers)*consumers + i/(n/consumers) },
		"at times of their own":          func(i int) int { return i * 7919 % n },
		"two halves, the later in front": func(i int) int { return (i + n/2) % n },
	} {
		l, all := &lane{}, 0
		put := func(it *Item) {
			at, steps := l.inFront(it.rank)
			all += steps
			l.returned.insertAfter(it, at)
			l.latest = it
		}
		for i := range n {
			put(&Item{rank: uint64(order(i) + 1)})
			if i%3 == 0 { // meanwhile the next one is taken, and comes back
				next := l.returned.head
				l.returned.remove(next)
				put(next)
			}
		}
		if all > n*4*fingerGap {
			t.Errorf("%s: %d steps for each", name, all/n)
		}
		last := uint64(0)
		for it := l.returned.head; it != nil; it = it.next {
			if it.rank != last+1 {
				t.Fatalf("%s: %d is behind %d", name, it.rank, last)
			}
			last = it.rank
		}
		if last != n {
			t.Errorf("%s: %d are there", name, last)
		}
	}
}
