package queue

import (
	"cmp"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// A Backlog bounds what may wait for a topic consumer without a durable name
// (ActiveMQ's pendingMessageLimitStrategy and messageEvictionStrategy). What a
// consumer has is not counted. The zero value is no bound; a queue or a durable
// subscription has none, whatever it says.
type Backlog struct {
	Limits BacklogLimit
	Most   int     // ConstantLimit: messages; below 0: any number
	Rate   float64 // WindowLimit: this many times the consumer's window
	Evicts Eviction
	// Property is that of EvictSuperseded.
	Property string
}

// BacklogLimit says where the limit of a backlog comes from. Without one of the
// policy's, what a consumer asks for does not count either, as in ActiveMQ.
type BacklogLimit uint8

// The limits there are.
const (
	NoLimit BacklogLimit = iota
	ConstantLimit
	WindowLimit
)

// Eviction says what goes where too much waits.
type Eviction uint8

// The ways to choose.
const (
	EvictOldest         Eviction = iota
	EvictLowestPriority          // the oldest of the lowest priority
	EvictSuperseded              // all but the newest of each value of a property; where each is its value's only one: the oldest
)

// maxCandidates is how many of the oldest waiting items an eviction chooses from, as
// in ActiveMQ's TopicSubscription.
const maxCandidates = 1000

// maxBacklogWindow is the largest limit up to which all of a backlog is in memory.
const maxBacklogWindow = 100_000

// backlogLimit is how many items may wait for the consumer; -1: any number. Before it
// is there, and after it has gone, nothing is evicted.
func (m *Machine) backlogLimit() int {
	b := &m.o.Backlog
	if m.o.Redelivers || b.Limits == NoLimit || len(m.consumers) == 0 {
		return -1
	}
	k := m.consumers[0]
	n := b.Most
	if b.Limits == WindowLimit {
		n = int(b.Rate * float64(k.Prefetch))
	}
	if k.MostWaiting > 0 && (n < 0 || k.MostWaiting < n) {
		n = k.MostWaiting
	}
	return max(n, -1)
}

// window is how many waiting items of a lane are kept in memory: of a backlog that is
// bounded, all, so that there is something to choose from, and of a last-value queue.
func (m *Machine) window() int {
	if m.o.LastValue != "" {
		return max(m.o.Window, lastValueWindow)
	}
	return max(m.o.Window, min(m.backlogLimit()+1, maxBacklogWindow))
}

// evictBacklog takes items that wait from a consumer for which too many do. Where the
// rest is in the store alone, it goes on when a page has come.
func (m *Machine) evictBacklog() {
	limit := m.backlogLimit()
	if limit < 0 {
		return
	}
	for over := int(m.waitingNow()) - limit; over > 0; {
		victims := m.victims()
		if len(victims) == 0 {
			break
		}
		for _, it := range victims {
			m.evictOne(it)
		}
		over -= len(victims)
	}
	clear(m.chosen) // what has gone is not held on to
	for _, l := range m.lanes {
		if l != nil {
			m.want(l)
		}
	}
}

// candidates are the oldest items that wait in memory, in the order of their positions.
func (m *Machine) candidates() []*Item {
	all := m.chosen[:0]
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		for _, from := range []*list{&l.returned, &l.waiting} {
			n := 0
			for it := from.head; it != nil && n < maxCandidates; it = it.next {
				all = append(all, it)
				n++
			}
		}
	}
	m.chosen = all
	sortByPosition(all)
	return all[:min(len(all), maxCandidates)]
}

// victims chooses what goes first: one item at least, where any waits in memory.
func (m *Machine) victims() []*Item {
	if m.o.Backlog.Evicts == EvictOldest {
		return m.oldestWaiting()
	}
	all := m.candidates()
	if len(all) == 0 {
		return nil
	}
	if m.o.Backlog.Evicts == EvictSuperseded {
		if old := m.superseded(all); len(old) > 0 {
			return old
		}
		return all[:1]
	}
	return []*Item{slices.MinFunc(all, func(a, b *Item) int { return cmp.Compare(a.Priority, b.Priority) })}
}

// oldestWaiting is the oldest item that waits in memory.
func (m *Machine) oldestWaiting() []*Item {
	var oldest *Item
	for _, l := range m.lanes {
		if l == nil {
			continue
		}
		for _, it := range []*Item{l.returned.head, l.waiting.head} {
			if it != nil && (oldest == nil || it.Position < oldest.Position) {
				oldest = it
			}
		}
	}
	if oldest == nil {
		return nil
	}
	m.chosen = append(m.chosen[:0], oldest)
	return m.chosen
}

// superseded are the items whose property has a value that a newer one has, too.
func (m *Machine) superseded(all []*Item) []*Item {
	newest := map[selector.Value]*Item{}
	var old []*Item
	for _, it := range all {
		v := m.valueOf(it)
		if v.Kind() == selector.Null || v.Kind() == selector.Opaque {
			continue // ActiveMQ drops it where others have the property
		}
		if before := newest[v]; before != nil {
			old = append(old, before)
		}
		newest[v] = it
	}
	return old
}

// valueOf is an item's property of EvictSuperseded, remembered while it is here.
func (m *Machine) valueOf(it *Item) selector.Value {
	v, known := m.values[it.Position]
	if known {
		return v
	}
	if h, err := m.header(it); err == nil { // else it has no value; who gets it will say so
		v, _ = m.o.Properties(h, m.o.Backlog.Property)
	}
	if m.values == nil {
		m.values = map[uint64]selector.Value{}
	}
	m.values[it.Position] = v
	return v
}

// evictOne drops an item that waits, or makes a dead letter of it, as the dead letter
// strategy says (R-DLS-01).
func (m *Machine) evictOne(it *Item) {
	k := m.consumers[0]
	k.evicted++
	k.dropped = true
	m.stats.Evicted++
	m.leaveList(it)
	m.emit(Effect{Kind: Tell, Event: ItemEvicted, Item: it, Consumer: k, Counter: k.evicted, Text: "its subscriber is too slow"})
	f := m.failure(it, message.Evicted, redelivery.DiscardCause(k.ID))
	d := m.verdict(it, f, false)
	if d.Action == redelivery.DeadLetter {
		m.deadLetter(it, f, d)
		return
	}
	m.gone(it)
	m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Discarded})
}

// setBacklog changes the bound.
func (m *Machine) setBacklog(b Backlog) {
	if b.Property != m.o.Backlog.Property {
		m.values = nil
	}
	m.o.Backlog = b
}
