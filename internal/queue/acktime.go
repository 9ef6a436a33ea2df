package queue

import (
	"fmt"
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// An acknowledgement can have a time limit (Options.AckTimeout). The clock of a
// message starts when its application can be at it:
//
//   - one that a DELIVERED ack covers: when that came;
//   - of the others only the oldest one counts, since its consumer was handed it or
//     since it last acknowledged anything: those behind it are in the client's buffer.
//
// What an open transaction has acknowledged is that transaction's, and what a client
// redelivers by itself is the client's until it gives it back: neither has a clock.
//
// When the limit passes, what the application had failed, and counts; what it had not
// goes back as it was. The consumer is idle: it gets nothing more, until it shows that
// it lives. What it then says of messages that it no longer has is stray.

// checkAcks looks at the consumers whose time has come.
func (m *Machine) checkAcks() {
	if m.o.AckTimeout == 0 {
		return
	}
	for _, k := range m.consumers {
		if k.check == 0 || k.check > m.now {
			continue
		}
		if k.check = m.ackDeadline(k); k.check != 0 && k.check <= m.now {
			m.lapse(k)
		}
	}
}

// setAckTimeout changes the limit.
func (m *Machine) setAckTimeout(limit int64) {
	if !m.o.Redelivers { // nobody else is to have what a topic's consumer has
		limit = 0
	}
	m.o.AckTimeout = limit
	for _, k := range m.consumers {
		if k.check = 0; limit > 0 {
			k.check = m.ackDeadline(k)
		}
	}
}

// nextCheck is when checkAcks has something to do; math.MaxInt64: never.
func (m *Machine) nextCheck() int64 {
	next := int64(math.MaxInt64)
	if m.o.AckTimeout == 0 {
		return next
	}
	for _, k := range m.consumers {
		if k.check != 0 {
			next = min(next, k.check)
		}
	}
	return next
}

// watchAcks has a consumer looked at when a limit that begins now would pass, if it
// is not to be looked at before.
func (m *Machine) watchAcks(k *Consumer) {
	if k.check == 0 && m.o.AckTimeout > 0 {
		k.check = m.now + m.o.AckTimeout
	}
	if k.unacked == 0 && m.o.Slow.Unacked > 0 {
		k.unacked = m.now + m.o.Slow.Unacked
	}
}

// clocked reports whether an item in its consumer's hands has a clock.
func (it *Item) clocked() bool { return it.tx == "" && it.attempt == open }

// since is when the clock of an item in a consumer's hands started.
func (it *Item) since() int64 {
	if it.covered {
		return it.coveredAt
	}
	return max(it.handedOut, it.consumer.progress)
}

// ackDeadline is when the first limit of a consumer passes; 0: it has none.
func (m *Machine) ackDeadline(k *Consumer) int64 {
	if since := m.waitsSince(k); since != 0 {
		return since + m.o.AckTimeout
	}
	return 0
}

// waitsSince is when the clock started that has run for longest among those of what a
// consumer has; 0: none runs.
func (m *Machine) waitsSince(k *Consumer) int64 {
	first := int64(math.MaxInt64)
	oldest := true
	for it := k.held.head; it != nil; it = it.next {
		if it.clocked() && (it.covered || oldest) {
			first = min(first, it.since())
			oldest = oldest && it.covered
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return first
}

// lapse takes from a consumer what it should have acknowledged by now, and what is
// behind that.
func (m *Machine) lapse(k *Consumer) {
	limit := time.Duration(m.o.AckTimeout) * time.Millisecond
	d := Detach{Consumer: k.ID, Last: UnknownLast, Cause: message.AckTimeout, Text: fmt.Sprintf("no acknowledgement within %v", limit)}
	oldest := true
	k.idle, k.lapsed, k.check = true, k.handOuts, 0
	for it := k.held.head; it != nil; {
		next := it.next
		if it.clocked() {
			had := (it.covered || oldest) && it.since()+m.o.AckTimeout <= m.now
			oldest = oldest && it.covered
			k.held.remove(it)
			if had {
				k.settled.note(it)
			}
			it.Suppressed++ // its client knows it, and is not to take it for a copy
			m.comesBack(it, d, had)
		}
		it = next
	}
	k.extension = min(k.extension, k.held.n)
	m.disown(k)
	if m.exclusive == k {
		m.elect(nil)
	}
}

// wake lets an idle consumer have messages again.
func (m *Machine) wake(k *Consumer) {
	if !k.idle {
		return
	}
	k.idle = false
	m.elect(m.exclusive)
}

// lost reports whether an acknowledgement speaks of what a consumer's limit took from
// it: then it is stray. It mends one that begins with such a message and ends with one
// that the consumer has.
func (m *Machine) lost(k *Consumer, c *Ack) bool {
	if k.lapsed == 0 || c.Type == Unmatched {
		return false
	}
	if m.find(k, c.Last) == nil {
		return true
	}
	if c.First.IsZero() || m.find(k, c.First) != nil {
		return false
	}
	if c.Tx != "" {
		return true // the rest of it must not be committed
	}
	c.First = Ref{}
	return false
}
