package redelivery

import (
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// A Map holds values by destination, wildcards included: ActiveMQ's PolicyMap
// and RedeliveryPolicyMap (spec section 2). It is filled first, in the order of
// the configuration, and then only read, by any number of goroutines. The zero
// value is an empty map.
//
// A lookup reads all entries. It is made once for a destination, not once for a
// message; ActiveMQ's tree would save little and cost the order of definition.
type Map[T any] struct {
	entries    []entry[T]
	fallback   T
	hasDefault bool
}

// An entry is one value under one key.
type entry[T any] struct {
	key   message.Destination
	value T
}

// Put adds a value under a key, which may be a pattern. A composite key stores
// it under each part (R-MAP-06). Earlier entries stay, those of the same key
// too: Lookup decides between them.
func (m *Map[T]) Put(key message.Destination, value T) {
	for _, part := range key.Parts() {
		m.entries = append(m.entries, entry[T]{collapsed(part), value})
	}
}

// SetDefault sets the value for destinations that no entry matches: the
// defaultEntry.
func (m *Map[T]) SetDefault(value T) { m.fallback, m.hasDefault = value, true }

// Len returns how many entries there are, parts of composites counted each.
func (m *Map[T]) Len() int { return len(m.entries) }

// Lookup returns the value for d, or else the default; ok is false where there
// is neither (R-MAP-07). d may be a pattern, as a consumer's is: then entries
// equal to it or wider match (R-MAP-15). A composite is to be looked up part by
// part; as a whole only its text is compared (R-MAP-14).
func (m *Map[T]) Lookup(d message.Destination) (value T, ok bool) {
	if _, e := m.find(d); e != nil {
		return e.value, true
	}
	return m.fallback, m.hasDefault
}

// LookupKey is Lookup with the key that won: zero for the default.
func (m *Map[T]) LookupKey(d message.Destination) (key message.Destination, value T, ok bool) {
	if _, e := m.find(d); e != nil {
		return e.key, e.value, true
	}
	return message.Destination{}, m.fallback, m.hasDefault
}

// find returns the best entry for d and its index, or nil. An entry of d's own
// name wins (R-MAP-10), the last of several; otherwise the entries are scanned in
// order and the best so far is kept, as the relation between three is not
// transitive (R-MAP-13).
func (m *Map[T]) find(d message.Destination) (int, *entry[T]) {
	d = collapsed(d)
	best := -1
	for i := range m.entries {
		key := m.entries[i].key
		switch {
		case !key.Matches(d):
		case best < 0, key == d:
			best = i
		case m.entries[best].key != d && beats(key.Name, m.entries[best].key.Name):
			best = i
		}
	}
	if best < 0 {
		return best, nil
	}
	return best, &m.entries[best]
}

// collapsed gives d with the repeats of a trailing ">" taken off (R-MAP-02).
func collapsed(d message.Destination) message.Destination {
	for strings.HasSuffix(d.Name, ".>.>") || d.Name == ">.>" {
		d.Name = d.Name[:len(d.Name)-2]
	}
	return d
}

// relation says how two patterns that match one destination stand.
type relation uint8

const (
	related relation = iota // one matches the text of the other, which is the narrower
	apart                   // neither matches the other: string order
	mutual                  // each matches the other: undefined in ActiveMQ
)

// relate gives the relation of two patterns; narrower is the one that is matched,
// where only one is (R-MAP-11).
func relate(x, y string) (r relation, narrower string) {
	xy, yx := message.MatchName(x, y), message.MatchName(y, x)
	switch {
	case xy && yx:
		return mutual, ""
	case xy:
		return related, y
	case yx:
		return related, x
	}
	return apart, ""
}

// beats reports whether the pattern y, defined after x, is preferred to it
// (R-MAP-13).
func beats(y, x string) bool {
	switch r, narrower := relate(x, y); r {
	case related:
		return narrower == y
	case apart:
		return y < x
	}
	xs, ys := shapeOf(x), shapeOf(y)
	switch {
	case xs.tail != ys.tail:
		return xs.tail
	case xs.literals != ys.literals:
		return ys.literals > xs.literals
	case xs.steps != ys.steps:
		return ys.steps > xs.steps
	}
	return true // the later definition
}

// A shape is what decides between two patterns that match each other.
type shape struct {
	tail     bool // ends in ">"
	literals int  // steps that are no wildcard
	steps    int
}

// shapeOf takes the shape of a pattern.
func shapeOf(pattern string) shape {
	var s shape
	last := ""
	for step := range strings.SplitSeq(pattern, ".") {
		s.steps++
		if step != "*" && step != ">" {
			s.literals++
		}
		last = step
	}
	s.tail = last == ">"
	return s
}

// A Conflict is a pair of entries that can match one destination and of which a
// reader of the configuration cannot easily tell the winner (R-MAP-13): ActiveMQ
// goes by string order, or by chance.
type Conflict struct {
	First, Second int                    // the entries, by their order of definition
	Keys          [2]message.Destination // their keys
	Winner        int                    // which of the two wins, where neither is the destination's own name
	Chance        bool                   // ActiveMQ's choice can differ from start to start
}

// Conflicts lists the pairs that a check of the configuration warns about.
func (m *Map[T]) Conflicts() []Conflict {
	var found []Conflict
	for j := range m.entries {
		for i := range j {
			x, y := m.entries[i].key, m.entries[j].key
			if x.Kind != y.Kind || !message.NamesOverlap(x.Name, y.Name) {
				continue
			}
			r, _ := relate(x.Name, y.Name)
			if r == related {
				continue
			}
			c := Conflict{First: i, Second: j, Keys: [2]message.Destination{x, y}, Winner: i, Chance: r == mutual}
			if beats(y.Name, x.Name) {
				c.Winner = j
			}
			found = append(found, c)
		}
	}
	return found
}
