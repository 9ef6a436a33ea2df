package queue

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

func (m *Machine) ack(c Ack) {
	k := m.byID[c.Consumer]
	if k == nil || !k.handed { // R-BRK-11, R-BRK-12
		m.tell(StrayAck, nil, fmt.Sprintf("ack of %s for consumer %s: it has nothing", c.Last.ID, c.Consumer))
		m.answer(c.Done, nil)
		return
	}
	if c.Type == Unmatched {
		m.answer(c.Done, nil)
		return
	}
	if c.Type == Individual {
		c.First = c.Last
	}
	first, last, n, err := m.span(k, c.First, c.Last)
	switch {
	case err != nil && c.Type == Individual: // R-BRK table: silently ignored there; told here
		m.tell(StrayAck, nil, err.Error())
		err = nil
	case err == nil && c.Type == Standard && c.Tx == "" && m.o.Redelivers && c.Count != n: // R-BRK-10
		err = fmt.Errorf("unmatched acknowledge: it says %d messages, and the range up to %s has %d: %w", c.Count, c.Last.ID, n, message.ErrInvalid)
	case err == nil && c.Type == Poison && c.Tx != "":
		err = fmt.Errorf("poison acknowledge of %s inside transaction %s: %w", c.Last.ID, c.Tx, message.ErrInvalid)
	case err == nil:
		m.acknowledge(k, c, first, last)
	}
	m.answer(c.Done, err)
}

// span finds the range from first to last in what a consumer has.
func (m *Machine) span(k *Consumer, first, last Ref) (from, to *Item, n int, err error) {
	to = m.find(k, last)
	if to == nil {
		return nil, nil, 0, fmt.Errorf("unmatched acknowledge: consumer %s does not have message %s: %w", k.ID, last.ID, message.ErrInvalid)
	}
	from = k.held.head
	if !first.IsZero() {
		if from = m.find(k, first); from == nil {
			return nil, nil, 0, fmt.Errorf("unmatched acknowledge: consumer %s does not have message %s: %w", k.ID, first.ID, message.ErrInvalid)
		}
	}
	for it := from; it != nil; it = it.next {
		n++
		if it == to {
			return from, to, n, nil
		}
	}
	return nil, nil, 0, fmt.Errorf("unmatched acknowledge: message %s does not follow %s: %w", last.ID, first.ID, message.ErrInvalid)
}

// find gets what a consumer has by position, or by id for clients that do not
// repeat the position.
func (m *Machine) find(k *Consumer, r Ref) *Item {
	if it := m.out[r.Position]; it != nil && it.consumer == k && (r.ID.IsZero() || sameID(it.ID, r.ID)) {
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

func (m *Machine) acknowledge(k *Consumer, c Ack, first, last *Item) {
	if c.Type == Delivered {
		k.extension += max(0, min(c.Count, k.held.n))
		if k.Prefetch == 0 {
			k.extension = 0
		}
	}
	if c.Type == Poison || c.Type == ExpiredAck {
		k.shrink(1)
	}
	for it := first; it != nil; {
		next, end := it.next, it == last
		m.settleOne(k, c, it, end)
		if end {
			return
		}
		it = next
	}
}

// settleOne applies an acknowledgement to one item (R-BRK-02 and the table of 4.5).
// newest says that it is the last of the range.
func (m *Machine) settleOne(k *Consumer, c Ack, it *Item, newest bool) {
	switch c.Type {
	case Delivered:
		it.covered = true
		if it.attempt == rolledBack || it.attempt == announced {
			it.attempt = open // it was delivered once more
		}
	case Standard, Individual:
		if c.Tx != "" {
			m.enlist(k, it, c)
			return
		}
		k.held.remove(it)
		k.shrink(1)
		m.gone(it)
		m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Acknowledged})
	case Redelivered:
		f := m.failure(it, message.Recover, c.Text)
		if k.QuietFirst && it.attempt == open && it.tx == "" && it.told == 0 && it.last == nil {
			// the client told nothing of the first failure (R-CLIENT-43)
			m.count(it, f, true)
		}
		m.signal(it, f)
		it.attempt = announced
		m.saveCounts(it)
	case Poison:
		m.poison(k, c, it, newest)
	case ExpiredAck:
		k.held.remove(it)
		if it.Expired(m.now) {
			m.expire(it)
			return
		}
		// The client's clock is ahead of ours: the message is not expired, but this
		// client will not deliver it.
		f := m.failure(it, message.Released, "the client's clock took it for expired")
		m.line(it, f, false, false)
		m.hold(it, k.Connection, it.Expiration)
	}
}

// poison takes in that the client has given up on an item. What the cause tells
// of the number of attempts is about the newest of the range.
func (m *Machine) poison(k *Consumer, c Ack, it *Item, newest bool) {
	k.held.remove(it)
	kind, n := redelivery.ParsePoison(c.Text)
	switch kind {
	case redelivery.SuppressedDuplicate: // R-EDGE-09: no application saw it this time
		f := m.failure(it, message.Duplicate, c.Text)
		m.line(it, f, false, false)
		m.decide(it, f, false)
	case redelivery.DispatchLimit: // the client refused it unread (R-CLIENT-31)
		f := m.failure(it, message.Poison, c.Text)
		m.line(it, f, false, false)
		m.decide(it, f, false)
	default:
		f := m.failure(it, message.Poison, c.Text)
		if kind == redelivery.DeliveryLimit && newest {
			m.reconstruct(it, n-it.excess)
		}
		counted := m.signal(it, f)
		m.decide(it, f, counted || it.attempt == rolledBack)
	}
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

func (m *Machine) undispatchable(c Undispatchable) {
	k := m.byID[c.Consumer]
	it := m.out[c.Position]
	if k == nil || it == nil || it.consumer != k {
		return
	}
	k.held.remove(it)
	f := m.failure(it, message.Undispatchable, c.Text)
	m.line(it, f, false, false)
	m.decide(it, f, false)
}
