package pebblestore

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// garbage is what a look at the files has found worth the work.
type garbage struct {
	bytes int64  // estimate of what compacting the steps saves
	steps []span // key ranges to compact, in order, each bounded by stepBytes
}

// A span is the keys from lo to hi, both included.
type span struct{ lo, hi []byte }

// meets reports whether a file has keys in s.
func (s span) meets(t *pebble.SSTableInfo) bool {
	return bytes.Compare(t.Largest.UserKey, s.lo) >= 0 && bytes.Compare(t.Smallest.UserKey, s.hi) <= 0
}

// counted reports whether it is known of every file how much it holds.
func counted(levels [][]pebble.SSTableInfo) bool {
	for _, tables := range levels {
		for i := range tables {
			if tables[i].TableStats.NumEntries == 0 {
				return false
			}
		}
	}
	return true
}

// findGarbage looks through the files of all levels, the newest level first.
// The spans of files that delete something are weighed each by itself, so that a
// drained queue does not have a deep one beside it written anew.
func findGarbage(levels [][]pebble.SSTableInfo) garbage {
	var dirty []span
	for _, tables := range levels {
		for i := range tables {
			if t := &tables[i]; t.TableStats.NumDeletions > 0 {
				dirty = append(dirty, span{lo: t.Smallest.UserKey, hi: t.Largest.UserKey})
			}
		}
	}
	var g garbage
	for _, s := range merge(dirty) {
		if saves, total := weigh(s, levels); saves >= garbageBytes && float64(saves) >= garbageShare*float64(total) {
			g.bytes += saves
			g.steps = append(g.steps, cut(s, levels)...)
		}
	}
	return g
}

// weigh estimates how much of the files in s is deleted, and what deletes it.
// Each deletion is taken to delete one key of average size; Pebble's own estimate
// knows nothing of the newest level, where a queue's drain begins.
func weigh(s span, levels [][]pebble.SSTableInfo) (saves, total int64) {
	var puts, deletes, tombstones, ranges uint64
	for _, tables := range levels {
		for i := range tables {
			t := &tables[i]
			if !s.meets(t) {
				continue
			}
			st := &t.TableStats
			total += int64(t.Size)
			puts += st.NumEntries - st.NumDeletions
			deletes += st.NumDeletions
			ranges += st.RangeDeletionsBytesEstimate
			if st.NumEntries > 0 {
				tombstones += st.RawKeySize / st.NumEntries * st.NumDeletions
			}
		}
	}
	share := 1.0
	if puts > 0 {
		share = min(1, float64(deletes)/float64(puts))
	}
	points := share*float64(max(0, total-int64(tombstones))) + float64(tombstones)
	return min(total, int64(points)+int64(ranges)), total
}

// merge joins spans that overlap and sorts them.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return bytes.Compare(a.lo, b.lo) })
	var joined []span
	for _, s := range spans {
		if n := len(joined); n > 0 && bytes.Compare(s.lo, joined[n-1].hi) <= 0 {
			if bytes.Compare(s.hi, joined[n-1].hi) > 0 {
				joined[n-1].hi = s.hi
			}
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// cut divides s into steps at the ends of the files of the level that has most
// bytes in it, so that each step has about stepBytes of them.
func cut(s span, levels [][]pebble.SSTableInfo) []span {
	var widest []pebble.SSTableInfo
	most := uint64(0)
	for _, tables := range levels[1:] { // the files of level 0 overlap each other
		var inside []pebble.SSTableInfo
		size := uint64(0)
		for i := range tables {
			if t := &tables[i]; s.meets(t) {
				inside, size = append(inside, *t), size+t.Size
			}
		}
		if size > most {
			widest, most = inside, size
		}
	}
	var steps []span
	lo, size := s.lo, uint64(0)
	for _, t := range widest {
		size += t.Size
		if end := t.Largest.UserKey; size >= stepBytes && bytes.Compare(end, lo) > 0 && bytes.Compare(end, s.hi) < 0 {
			steps = append(steps, span{lo: lo, hi: end})
			lo, size = end, 0
		}
	}
	if bytes.Equal(lo, s.hi) { // Pebble wants two different ends
		s.hi = append(slices.Clone(s.hi), 0)
	}
	return append(steps, span{lo: lo, hi: s.hi})
}
