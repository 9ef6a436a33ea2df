package queue

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// Bounds are how much a queue may have, in the words of an Artemis queue
// (max-consumers, ring-size, purge-on-no-consumers). The zero value bounds nothing.
type Bounds struct {
	// Consumers is how many there may be at a time; 0: any number.
	Consumers int
	// Ring is how many messages may wait; for one more the first one goes; 0: any
	// number (R-HQ-98). What consumers have, and what waits for its time, does not count.
	Ring int64
	// Purge says that nothing is kept while there is no consumer: what comes is
	// dropped, and what is there goes with the last consumer (R-HQ-97).
	Purge bool
}

// mayAttach is ErrOverLimit where there are as many consumers as there may be.
func (m *Machine) mayAttach() error {
	if n := m.o.Bounds.Consumers; n > 0 && len(m.consumers) >= n {
		return fmt.Errorf("%s has %d consumers, which is the most that it may have (max-consumers): %w", m.o.Destination, n, message.ErrOverLimit)
	}
	return nil
}

// Reasons that an item is dropped for, as events tell them.
const (
	ringText  = "the queue is full, and a newer message takes its place (ring-size)"
	purgeText = "nobody consumes from the queue (purge-on-no-consumers)"
)

// unwanted drops an item that came while nothing is kept. It returns false where it
// is kept.
func (m *Machine) unwanted(it *Item) bool {
	if !m.o.Bounds.Purge || len(m.consumers) > 0 {
		return false
	}
	m.dropFor(it, purgeText)
	return true
}

// deserted notes that a consumer has gone. What is there when a broker starts is
// not meant: its consumers were there before, and come back.
func (m *Machine) deserted(cause message.Cause) {
	m.purges = m.o.Bounds.Purge && len(m.consumers) == 0 && cause != message.BrokerStopped
}

// evict drops what is more than there may be. What is in the store alone is paged
// in, and then goes, too.
func (m *Machine) evict() {
	keep, why := m.o.Bounds.Ring, ringText
	switch {
	case m.purges:
		keep, why = 0, purgeText
		for it := m.due.first(); it != nil; it = m.due.first() {
			m.dropFor(it, why)
		}
	case keep == 0:
		return
	}
	dropped := false
	for n := m.waitingNow() - keep; n > 0; n-- {
		it := m.firstWaiting()
		if it == nil {
			break
		}
		m.dropFor(it, why)
		dropped = true
	}
	for _, l := range m.lanes {
		if l != nil && dropped {
			m.want(l)
		}
	}
}

// dropFor discards an item that no consumer has.
func (m *Machine) dropFor(it *Item, why string) {
	m.leaveList(it)
	m.discard(it, message.Failure{}, why)
}

// waitingNow is how many items wait for a consumer.
func (m *Machine) waitingNow() int64 {
	n := int64(0)
	for _, l := range m.lanes {
		if l != nil {
			n += int64(l.waiting.n+l.returned.n+len(l.during)+l.deep) + l.beyond
		}
	}
	return n
}

// firstWaiting is the item in memory that is next to be handed out; nil: there is
// none before a page has been read.
func (m *Machine) firstWaiting() *Item {
	for _, l := range m.lanes {
		switch {
		case l == nil:
		case l.returned.n > 0:
			return l.returned.head
		case l.waiting.n > 0:
			return l.waiting.head
		case l.beyond > 0 || len(l.during) > 0:
			return nil
		}
	}
	return nil
}
