package queue

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

func (m *Machine) ack(c Ack) {
	k := m.byID[c.Consumer]
	if k == nil || k.handOuts == 0 { // R-BRK-11, R-BRK-12
		m.tell(StrayAck, nil, fmt.Sprintf("ack of %s for consumer %s: it was handed nothing", c.Last, c.Consumer))
		m.answer(c.Done, c.stray())
		return
	}
	if m.stale(k, c.First) || m.stale(k, c.Last) {
		m.tell(StrayAck, nil, fmt.Sprintf("ack of %s for consumer %s: it was handed that on the connection before", c.Last, c.Consumer))
		m.answer(c.Done, c.stray())
		return
	}
	if c.Type == Individual {
		c.First = c.Last
	}
	m.watchAcks(k)
	lost := m.lost(k, &c)
	if c.Type != Delivered || !lost {
		m.wake(k)
	}
	if lost {
		m.tell(StrayAck, nil, fmt.Sprintf("ack of %s for consumer %s: its time limit had passed", c.Last, c.Consumer))
		m.answer(c.Done, c.stray())
		return
	}
	var err error
	if c.Type != Unmatched {
		err = m.ackRange(k, c)
	}
	if err != nil && c.Type == Individual { // silently ignored by ActiveMQ (spec 4.5); told here
		m.tell(StrayAck, nil, err.Error())
		err = c.stray()
	}
	if err != nil || !c.Quiet {
		m.answer(c.Done, err)
	}
}

// ErrStray answers an acknowledgement within a transaction of what its consumer
// does not have: without it, the rest of the transaction must not be committed.
// ActiveMQ commits the rest, and delivers the message again (R-BRK-11, R-BRK-12).
var ErrStray = fmt.Errorf("the transaction acknowledges what its consumer does not have any more: %w", message.ErrState)

// stray is the answer to an acknowledgement that fits nothing: none outside a
// transaction, where it does no harm.
func (a Ack) stray() error {
	if a.Tx != "" && (a.Type == Standard || a.Type == Individual) {
		return ErrStray
	}
	return nil
}

// A span is a range of what a consumer has, in the order of the hand-out.
type span struct {
	first, last *Item
	n           int
	// missed is how many attempts of the last the client did not announce. It made
	// the same of all before it: what it redelivers, it redelivers together.
	missed int
}

// ackRange checks an acknowledgement and applies it, whole or not at all (R-BRK-10).
func (m *Machine) ackRange(k *Consumer, c Ack) error {
	s, err := m.span(k, c.First, c.Last, c.Type == Delivered)
	batch := m.batch(k, c)
	if batch != nil {
		s, err = span{first: batch[0], last: m.find(k, c.Last), n: len(batch)}, nil
	}
	switch {
	case err != nil:
		return err
	case c.Type == Standard && c.Tx == "" && m.o.Redelivers && c.Count != s.n && k.lapsed == 0:
		return fmt.Errorf("unmatched acknowledge: it says %d messages, and the range up to %s has %d: %w", c.Count, c.Last, s.n, message.ErrInvalid)
	case c.Type == Poison && c.Tx != "":
		return fmt.Errorf("poison acknowledge of %s inside transaction %s: %w", c.Last, c.Tx, message.ErrInvalid)
	}
	k.progress = m.now
	switch c.Type {
	case Standard, Individual:
		k.acked += s.n
	case Delivered:
		k.widen(c.Count)
	case Redelivered:
		s.missed = k.quietAbout(s.last)
	case Poison:
		k.narrow(1)
		s.missed = poisonMissed(s.last, c.Text)
	case ExpiredAck:
		k.narrow(1)
	}
	for _, it := range batch {
		m.ackOne(k, c, it, s)
	}
	for it := s.first; batch == nil; {
		next := it.next
		m.ackOne(k, c, it, s)
		if it == s.last {
			return nil
		}
		it = next
	}
	return nil
}

// batch is what a consumer's client had in the transaction that it has rolled back, and of
// which it says now that it delivers it once more, or has given it up; nil where that
// cannot be told, and the range counts. With nonBlockingRedelivery a client has messages
// in another order than they were handed out, and others lie between the first and the
// last of them, or the last lies before the first: a range would fail those, or none
// (R-CLIENT-46).
func (m *Machine) batch(k *Consumer, c Ack) []*Item {
	if c.Type != Redelivered && c.Type != Poison || c.First.IsZero() || c.Count < 2 {
		return nil
	}
	first, last := m.find(k, c.First), m.find(k, c.Last)
	if first == nil || last == nil || first.batch == 0 || first.batch != last.batch || first.tx != "" || last.tx != "" {
		return nil
	}
	all := make([]*Item, 0, c.Count)
	for it := k.held.head; it != nil; it = it.next {
		if it.batch == first.batch && it.tx == "" {
			all = append(all, it)
		}
	}
	if len(all) != c.Count {
		return nil
	}
	return all
}

// span finds the range from first to last in what a consumer has. Where it is open, it
// begins with the oldest if the first has gone.
func (m *Machine) span(k *Consumer, first, last Ref, open bool) (span, error) {
	unmatched := func(r Ref, what string) error {
		return fmt.Errorf("unmatched acknowledge: consumer %s %s %s: %w", k.ID, what, r, message.ErrInvalid)
	}
	s := span{first: k.held.head, last: m.find(k, last)}
	if s.last == nil {
		return s, unmatched(last, "does not have")
	}
	if f := m.find(k, first); f != nil || !first.IsZero() && !open {
		s.first = f
	}
	if s.first == nil {
		return s, unmatched(first, "does not have")
	}
	for it := s.first; it != nil; it = it.next {
		s.n++
		if it == s.last {
			return s, nil
		}
	}
	return s, unmatched(first, "was handed the last of the range before")
}

// quietAbout is how many failures of an item a client kept to itself, which now
// announces one: the first outside a transaction, of a client up to 5.17 that was
// told a counter of 0 (R-CLIENT-43).
func (k *Consumer) quietAbout(it *Item) int {
	if k.QuietFirst && it.attempt == open && it.told == 0 && it.line == nil && it.tx == "" {
		return 1
	}
	return 0
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

// stale reports whether a ref is for a dispatch on an earlier connection only. A
// client that replays an acknowledgement there does not know of the message's next
// dispatch, which may be on its way, and must not have settled it; one that has
// covered it has (R-CLIENT-60).
func (m *Machine) stale(k *Consumer, r Ref) bool {
	if !r.Stale {
		return false
	}
	it := m.find(k, r)
	return it == nil || !it.covered
}

func sameID(a, b message.ID) bool {
	return a.Producer == b.Producer && a.Sequence == b.Sequence && (a.Text == b.Text || a.Text == "" || b.Text == "")
}

// ackOne applies an acknowledgement to one item of its range (R-BRK-02 and the
// table of 4.5). What an open transaction has acknowledged is that transaction's
// alone until it ends.
func (m *Machine) ackOne(k *Consumer, c Ack, it *Item, s span) {
	switch {
	case c.Type == Delivered:
		it.covered, it.coveredAt = true, m.now
		if (it.attempt == rolledBack || it.attempt == announced) && !c.Closing {
			m.becomes(it, open) // it was delivered once more
			m.atClient(it, false)
		}
	case it.tx != "":
	case c.Type == Redelivered:
		m.redelivered(c, it, s)
	case c.Type == Poison:
		m.poison(k, c, it, s)
	case c.Type == ExpiredAck:
		k.refuse(it)
		m.expiredAtClient(it)
	case c.Tx != "": // Standard, Individual
		m.enlist(k, it, c)
	default:
		k.narrow(1)
		k.release(it)
		m.consumed(it)
		m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Acknowledged})
	}
}

// redelivered takes in that the client delivers an item once more by itself.
func (m *Machine) redelivered(c Ack, it *Item, s span) {
	f := m.failure(it, message.Recover, c.Text)
	m.reconstruct(it, s.missed)
	if m.signal(it, f) {
		m.foresee(it, f)
	}
	m.becomes(it, announced)
	m.atClient(it, true)
}

// atClient notes whether an item waits in its client for a local redelivery
// (R-EDGE-53).
func (m *Machine) atClient(it *Item, waits bool) {
	switch {
	case it.local == waits:
		return
	case waits:
		m.stats.AtClients++
	default:
		m.stats.AtClients--
	}
	it.local = waits
}

// poison takes in that the client has given up on an item.
func (m *Machine) poison(k *Consumer, c Ack, it *Item, s span) {
	switch kind, _ := redelivery.ParsePoison(c.Text); kind {
	case redelivery.SuppressedDuplicate: // R-EDGE-09: no application saw it this time
		k.refuse(it)
		it.Suppressed++
		it.suspect() // it may have been seen before
		m.refused(it, message.Duplicate, c.Text)
	case redelivery.DispatchLimit: // the client refused it unread (R-CLIENT-31)
		k.refuse(it)
		m.refused(it, message.Poison, c.Text)
	default:
		k.release(it)
		switch {
		case c.Before: // the text tells of another message
			s.missed = min(s.missed, k.quietAbout(it))
		case it != s.last:
			s.missed = min(s.missed, 1) // a client that keeps more than one to itself is not known
		}
		m.reconstruct(it, s.missed)
		f := m.failure(it, message.Poison, c.Text)
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

// maxMissed bounds how many attempts a poison cause can make us believe in.
const maxMissed = 1000

// poisonMissed is how many attempts of an item its client made by itself and did
// not announce, by what the poison cause tells of their number (R-CLIENT-48).
func poisonMissed(it *Item, text string) int {
	kind, n := redelivery.ParsePoison(text)
	if kind != redelivery.DeliveryLimit {
		return 0
	}
	n -= it.excess + int(it.Failures)
	if it.attempt == open || it.attempt == announced {
		n-- // the present one is still to be counted
	}
	return min(max(n, 0), maxMissed)
}

// reconstruct counts attempts that a client made by itself and did not announce.
func (m *Machine) reconstruct(it *Item, n int) {
	for range n {
		m.count(it, m.failure(it, message.Recover, "not announced by the client; a later signal tells of it"), true)
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
	f := m.failure(it, message.Released, "the client's clock took it for expired")
	m.write(it, f, false, false)
	if it.Unasked {
		m.decide(it, f, true)
		return
	}
	m.decided(it, redelivery.Decision{Action: redelivery.Hold, Due: until})
	m.hold(it, it.consumer.Connection, until)
}

func (m *Machine) undispatchable(c Undispatchable) {
	k := m.byID[c.Consumer]
	it := m.out[c.Position]
	if k == nil || it == nil || it.place != out || it.consumer != k || it.tx != "" {
		return
	}
	k.refuse(it)
	m.refused(it, message.Undispatchable, c.Text)
}
