package queue

import "container/heap"

// An itemHeap keeps items by a time of theirs, the earliest first. Each item
// knows its index, so that it can be taken out from the middle.
type itemHeap struct {
	items []*Item
	key   func(*Item) int64
	at    func(*Item) *int32 // the index plus one, so that an item's zero value is in no heap
}

// The heaps of a machine: scheduled items by their due time, items held back from
// a connection by the end of that, and items that expire.
func dueKey(it *Item) int64       { return it.due }
func dueIndex(it *Item) *int32    { return &it.dueAt }
func holdKey(it *Item) int64      { return it.heldUntil }
func holdIndex(it *Item) *int32   { return &it.holdAt }
func expiryKey(it *Item) int64    { return it.Expiration }
func expiryIndex(it *Item) *int32 { return &it.expiryAt }

// Len, Less, Swap, Push and Pop serve package heap.
func (h *itemHeap) Len() int { return len(h.items) }

// Less puts the earlier first, and of one time what came first.
func (h *itemHeap) Less(i, j int) bool {
	a, b := h.key(h.items[i]), h.key(h.items[j])
	return a < b || a == b && h.items[i].Position < h.items[j].Position
}

// Swap exchanges two items.
func (h *itemHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.at(h.items[i]), *h.at(h.items[j]) = int32(i+1), int32(j+1)
}

// Push appends an item.
func (h *itemHeap) Push(x any) {
	it := x.(*Item)
	h.items = append(h.items, it)
	*h.at(it) = int32(len(h.items))
}

// Pop takes the last item off.
func (h *itemHeap) Pop() any {
	n := len(h.items) - 1
	it := h.items[n]
	h.items[n] = nil
	h.items = h.items[:n]
	*h.at(it) = 0
	return it
}

// first is the earliest; nil if there is none.
func (h *itemHeap) first() *Item {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

// has reports whether it is in.
func (h *itemHeap) has(it *Item) bool { return *h.at(it) > 0 }

// add puts it in; it is not in yet.
func (h *itemHeap) add(it *Item) { heap.Push(h, it) }

// remove takes it out, if it is in. Its time must be what it was when it was added.
func (h *itemHeap) remove(it *Item) {
	if i := *h.at(it); i > 0 {
		heap.Remove(h, int(i-1))
	}
}
