package queue

import "container/heap"

// An itemHeap keeps items by a time of theirs, the earliest first. Each item
// knows its index, so that it can be taken out from the middle.
type itemHeap struct {
	items []*Item
	key   func(*Item) int64
	at    func(*Item) *int
}

// The heap of due times holds scheduled items and items held back from a connection.
func dueKey(it *Item) int64 {
	if it.place == scheduled {
		return it.due
	}
	return it.heldUntil
}

// Indexes are kept plus one, so that an item's zero value is in no heap.
func dueIndex(it *Item) *int     { return &it.index }
func expiryKey(it *Item) int64   { return it.Expiration }
func expiryIndex(it *Item) *int  { return &it.expIndex }
func (h *itemHeap) Len() int     { return len(h.items) }
func (h *itemHeap) Pop() any     { return h.pop() }
func (h *itemHeap) Push(x any)   { h.push(x.(*Item)) }
func (h *itemHeap) first() *Item { return h.peek() }

func (h *itemHeap) Less(i, j int) bool {
	a, b := h.key(h.items[i]), h.key(h.items[j])
	return a < b || a == b && h.items[i].Position < h.items[j].Position
}

func (h *itemHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.at(h.items[i]), *h.at(h.items[j]) = i+1, j+1
}

func (h *itemHeap) push(it *Item) {
	h.items = append(h.items, it)
	*h.at(it) = len(h.items)
}

func (h *itemHeap) pop() *Item {
	n := len(h.items) - 1
	it := h.items[n]
	h.items[n] = nil
	h.items = h.items[:n]
	*h.at(it) = 0
	return it
}

func (h *itemHeap) peek() *Item {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

// add puts it in; it is in no heap of this kind.
func (h *itemHeap) add(it *Item) { heap.Push(h, it) }

// remove takes it out, if it is in.
func (h *itemHeap) remove(it *Item) {
	if i := *h.at(it); i > 0 {
		heap.Remove(h, i-1)
	}
}
