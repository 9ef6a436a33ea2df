package pebblestore

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// garbage is what a look at the files has found.
type garbage struct {
	bytes int64  // deleted keys, and what deletes them
	total int64  // of all files
	steps []span // key ranges to compact, in order, each bounded by stepBytes
}

// A span is the keys from lo to hi, both included.
type span struct{ lo, hi []byte }

// worthwhile reports whether there is enough of it.
func (g garbage) worthwhile() bool {
	return g.bytes >= garbageBytes && float64(g.bytes) >= garbageShare*float64(g.total)
}

// findGarbage looks through the files of all levels, the newest level first.
func findGarbage(levels [][]pebble.SSTableInfo) garbage {
	var g garbage
	var dirty []span // of files that delete something
	for _, tables := range levels {
		for i := range tables {
			t := &tables[i]
			g.total += int64(t.Size)
			if t.TableStats.NumDeletions == 0 {
				continue
			}
			g.bytes += deletedBytes(t)
			dirty = append(dirty, span{lo: t.Smallest.UserKey, hi: t.Largest.UserKey})
		}
	}
	for _, d := range merge(dirty) {
		g.steps = append(g.steps, cut(d, levels)...)
	}
	return g
}

// deletedBytes is what compacting a file would save: what its deletions delete,
// and they themselves.
func deletedBytes(t *pebble.SSTableInfo) int64 {
	s := &t.TableStats
	own := uint64(0)
	if s.NumEntries > 0 {
		own = s.RawKeySize / s.NumEntries * s.NumDeletions
	}
	return int64(s.PointDeletionsBytesEstimate + s.RangeDeletionsBytesEstimate + own)
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
		for _, t := range tables {
			if bytes.Compare(t.Largest.UserKey, s.lo) >= 0 && bytes.Compare(t.Smallest.UserKey, s.hi) <= 0 {
				inside, size = append(inside, t), size+t.Size
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
