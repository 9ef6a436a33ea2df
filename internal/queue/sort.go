package queue

import (
	"cmp"
	"slices"
)

// sortByPosition puts items in the order in which they came.
func sortByPosition(items []*Item) {
	slices.SortFunc(items, func(a, b *Item) int { return cmp.Compare(a.Position, b.Position) })
}
