package queue

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

func (m *Machine) ack(c Ack) {
	k := m.byID[c.Consumer]
	if k == nil || !k.handed { // R-BRK-11, R-BRK-12
		m.tell(StrayAck, nil, fmt.Sprintf("ack of %s for consumer %s: it was handed nothing", c.Last, c.Consumer))
		m.answer(c.Done, nil)
		return
	}
	if c.Type == Individual {
		c.First = c.Last
	}
	var err error
	if c.Type != Unmatched {
		err = m.ackRange(k, c)
	}
	if err != nil && c.Type == Individual { // silently ignored by ActiveMQ (spec 4.5); told here
		m.tell(StrayAck, nil, err.Error())
		err = nil
	}
	m.answer(c.Done, err)
}

// ackRange checks an acknowledgement and applies it, whole or not at all (R-BRK-10).
func (m *Machine) ackRange(k *Consumer, c Ack) error {
	first, last, n, err := m.span(k, c.First, c.Last)
	switch {
	case err != nil:
		return err
	case c.Type == Standard && c.Tx == "" && m.o.Redelivers && c.Count != n:
		return fmt.Errorf("unmatched acknowledge: it says %d messages, and the range up to %s has %d: %w", c.Count, c.Last, n, message.ErrInvalid)
	case c.Type == Poison && c.Tx != "":
		return fmt.Errorf("poison acknowledge of %s inside transaction %s: %w", c.Last, c.Tx, message.ErrInvalid)
	}
	switch c.Type {
	case Delivered:
		k.widen(c.Count)
	case Poison, ExpiredAck:
		k.narrow(1)
	}
	for it := first; ; {
		next, end := it.next, it == last
		m.ackOne(k, c, it, end)
		if end {
			return nil
		}
		it = next
	}
}

// span finds the range from first to last in what a consumer has.
func (m *Machine) span(k *Consumer, first, last Ref) (from, to *Item, n int, err error) {
	unmatched := func(r Ref, what string) error {
		return fmt.Errorf("unmatched acknowledge: consumer %s %s %s: %w", k.ID, what, r, message.ErrInvalid)
	}
	to = m.find(k, last)
	if to == nil {
		return nil, nil, 0, unmatched(last, "does not have")
	}
	from = k.held.head
	if !first.IsZero() {
		from = m.find(k, first)
	}
	if from == nil {
		return nil, nil, 0, unmatched(first, "does not have")
	}
	for it := from; it != nil; it = it.next {
		n++
		if it == to {
			return from, to, n, nil
		}
	}
	return nil, nil, 0, unmatched(first, "was handed the last of the range before")
}

// find gets what a consumer has by position, or by id for clients that do not
// repeat the position.
func (m *Machine) find(k *Consumer, r Ref) *Item {
	if it := m.out[r.Position]; it != nil && it.place == out && it.consumer == k && (r.ID.IsZero() || sameID(it.ID, r.ID)) {
		return it
	}
	for it := k.held.head; it != nil && !r.ID.IsZero(); it = it.next {
		if sameID(it.ID, r.ID) {
			return it
		}
	}
	return nil
}

func sameID(a, b message.ID) bool {
	return a.Producer == b.Producer && a.Sequence == b.Sequence && (a.Text == b.Text || a.Text == "" || b.Text == "")
}

// ackOne applies an acknowledgement to one item (R-BRK-02 and the table of 4.5).
// newest says that it is the last of the range. What an open transaction has
// acknowledged is that transaction's alone until it ends.
func (m *Machine) ackOne(k *Consumer, c Ack, it *Item, newest bool) {
	switch {
	case c.Type == Delivered:
		it.covered = true
		if it.attempt == rolledBack || it.attempt == announced {
			it.attempt = open // it was delivered once more
		}
	case it.tx != "":
	case c.Type == Redelivered:
		m.redelivered(k, c, it)
	case c.Type == Poison:
		k.release(it)
		m.poison(c, it, newest)
	case c.Type == ExpiredAck:
		k.release(it)
		m.expiredAtClient(it)
	case c.Tx != "": // Standard, Individual
		m.enlist(k, it, c)
	default:
		k.narrow(1)
		k.release(it)
		m.gone(it)
		m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Acknowledged})
	}
}

// redelivered takes in that the client delivers an item once more by itself. A
// client that said nothing of the first time speaks of the second now (R-CLIENT-43).
func (m *Machine) redelivered(k *Consumer, c Ack, it *Item) {
	f := m.failure(it, message.Recover, c.Text)
	if k.QuietFirst && it.attempt == open && it.told == 0 && it.line == nil {
		m.count(it, f, true)
	}
	m.signal(it, f)
	it.attempt = announced
}

// poison takes in that the client has given up on an item. What the cause tells
// of the number of attempts is about the newest of the range.
func (m *Machine) poison(c Ack, it *Item, newest bool) {
	kind, n := redelivery.ParsePoison(c.Text)
	switch kind {
	case redelivery.SuppressedDuplicate: // R-EDGE-09: no application saw it this time
		m.refused(it, message.Duplicate, c.Text)
	case redelivery.DispatchLimit: // the client refused it unread (R-CLIENT-31)
		m.refused(it, message.Poison, c.Text)
	default:
		f := m.failure(it, message.Poison, c.Text)
		if kind == redelivery.DeliveryLimit && newest {
			m.reconstruct(it, n-it.excess)
		}
		counted := m.signal(it, f)
		m.decide(it, f, counted || it.attempt == rolledBack)
	}
}

// refused decides about an item that no application saw this time: the attempt has
// a line in the story, and does not count.
func (m *Machine) refused(it *Item, cause message.Cause, text string) {
	f := m.failure(it, cause, text)
	m.write(it, f, false, false)
	m.decide(it, f, false)
}

// maxReconstructed bounds how many attempts a poison cause can make us believe in.
const maxReconstructed = 1000

// reconstruct counts the attempts that a client made by itself and did not
// announce, so that the present one makes them n.
func (m *Machine) reconstruct(it *Item, n int) {
	if it.attempt == open || it.attempt == announced {
		n-- // the present attempt is still to be counted
	}
	for range min(n-int(it.Failures), maxReconstructed) {
		m.count(it, m.failure(it, message.Recover, "not announced by the client; its poison acknowledgement tells of it"), true)
	}
}

// expiredAtClient decides about an item that its client took for expired. Where
// only the client's clock says so the item is not expired: it is kept from that
// connection until it is (R-EDGE-38).
func (m *Machine) expiredAtClient(it *Item) {
	if !m.o.Redelivers || it.Expired(m.now) {
		m.refused(it, message.Expired, "")
		return
	}
	until := max(it.Expiration+1, m.now+redelivery.FirstHoldMillis)
	m.write(it, m.failure(it, message.Released, "the client's clock took it for expired"), false, false)
	m.decided(it, redelivery.Decision{Action: redelivery.Hold, Due: until})
	m.hold(it, it.consumer.Connection, until)
}

func (m *Machine) undispatchable(c Undispatchable) {
	k := m.byID[c.Consumer]
	it := m.out[c.Position]
	if k == nil || it == nil || it.place != out || it.consumer != k || it.tx != "" {
		return
	}
	k.release(it)
	m.refused(it, message.Undispatchable, c.Text)
}
