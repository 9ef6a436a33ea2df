package config

import (
	"slices"
	"strings"
)

// didYouMean names the known name that is nearest to an unknown one, as a
// sentence to put behind an error; empty where none is near.
func didYouMean(name string, known []string) string {
	if n := nearest(name, known); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// nearest returns the known name with the fewest edits from name, and of several
// the first in alphabetical order; empty where more than a third of it (at least
// two letters) would have to change.
func nearest(name string, known []string) string {
	const longest = 64 // the names that are known are shorter; bounds the work
	if len(name) > longest {
		return ""
	}
	known = slices.Sorted(slices.Values(known))
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the single-byte insertions, deletions, changes and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
