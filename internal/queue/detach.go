package queue

import (
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// detach removes a consumer and gives back what it has, in the order in which it
// got it. Only what the application had, or may have had, has failed (R-EDGE-05).
func (m *Machine) detach(c Detach) {
	k := m.byID[c.Consumer]
	if k == nil {
		m.answer(c.Done, fmt.Errorf("consumer %s on %s: %w", c.Consumer, m.o.Destination, message.ErrNotFound))
		return
	}
	delete(m.byID, k.ID)
	m.consumers = slices.DeleteFunc(m.consumers, func(o *Consumer) bool { return o == k })
	m.pulls = slices.DeleteFunc(m.pulls, func(p pull) bool { return p.consumer == k.ID })
	if m.exclusive == k {
		m.exclusive = nil
		m.chooseExclusive()
	}
	m.lookAgain()
	had := m.had(k, c)
	for it := k.held.head; it != nil; it = k.held.head {
		k.held.remove(it)
		m.comesBack(it, c, had(it))
	}
	m.answer(c.Done, nil)
}

// had tells which of the items of a consumer that goes its application had.
// Positions are compared with <=, so that the one value of a session or a
// connection serves all its consumers (R-CNT-03, R-CNT-05, R-EDGE-16).
func (m *Machine) had(k *Consumer, c Detach) func(*Item) bool {
	if c.Last != UnknownLast {
		if last := m.out[uint64(max(c.Last, 0))]; last != nil && last.consumer == k {
			passed := false
			return func(it *Item) bool {
				was := !passed
				passed = passed || it == last
				return was
			}
		}
		return func(it *Item) bool { return c.Last > 0 && it.Position <= uint64(c.Last) }
	}
	if c.Cause == message.BrokerStopped {
		return func(*Item) bool { return false }
	}
	// Nobody knows. Charged are: what DELIVERED acks cover, and the next one in
	// hand-out order, which the session was at. What the open transaction had
	// acknowledged was charged by its rollback.
	next := c.Charge
	return func(it *Item) bool {
		if it.attempt == charged || it.tx != "" {
			return false
		}
		if it.covered && it.attempt == open {
			return true
		}
		if next {
			next = false
			return true
		}
		return false
	}
}

// comesBack returns one item of a consumer that goes.
func (m *Machine) comesBack(it *Item, c Detach, had bool) {
	if it.tx != "" { // its transaction decides (R-CNT-10)
		it.place = limbo
		it.consumer = nil
		return
	}
	f := m.failure(it, c.Cause, c.Text)
	if !m.o.Redelivers {
		m.gone(it)
		m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Discarded})
		return
	}
	counted := false
	if had {
		counted = m.signal(it, f)
	} else if it.attempt == open && c.Last == UnknownLast {
		it.suspect()
	}
	switch {
	case counted, it.attempt == charged, it.attempt == rolledBack, it.attempt == announced:
		m.decide(it, f, counted || it.attempt != open)
	default:
		m.giveBack(it)
	}
}

// suspect notes that nobody knows what became of a hand-out.
func (it *Item) suspect() {
	if it.Suspect == message.NotHandedOut && it.Failures == 0 { // else it is flagged redelivered as it is
		it.Suspect = message.HandedOut
	}
}
