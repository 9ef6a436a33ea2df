package queue

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// verdict asks the rules what becomes of an item. counted says that the attempt
// that ends is one of its failures.
func (m *Machine) verdict(it *Item, f message.Failure, counted bool) redelivery.Decision {
	rules := m.o.Rules
	if !m.o.Redelivers {
		rules.Redelivery = nil // there is nothing to wait in
	}
	return rules.Decide(redelivery.Facts{
		Cause:           f.Cause,
		Counted:         counted,
		Failures:        int(it.Failures),
		Text:            f.Text,
		Destination:     m.o.Destination,
		Subscription:    m.o.Subscription,
		Persistent:      it.Persistent,
		Expired:         it.Expired(m.now),
		Expiration:      it.Expiration,
		DeadLetterQueue: m.ownDeadLetter(it),
		Retained:        rests(it) && it.Overlay.Expiration > 0,
		Holds:           int(it.Holds),
	}, m.now, m.o.Jitter)
}

// decide decides what becomes of an item that its consumer does not have any more,
// and does it. The item is in no list.
func (m *Machine) decide(it *Item, f message.Failure, counted bool) {
	if f.Cause == message.Expired || it.Expired(m.now) && f.Cause != message.Poison && f.Cause != message.Undispatchable {
		f.Cause = message.Expired // whatever ended the attempt: this is what becomes of it
		m.stats.Expired++
		m.tell(ItemExpired, it, "")
	}
	if !m.o.Redelivers && !m.mayDie(f.Cause) { // a topic consumer's copy: nobody else is to have it (R-BRK-15)
		m.discard(it, f, "topic consumer: "+f.Cause.String())
		return
	}
	if it.Unasked { // the policy has its say, also where this attempt is no failure
		counted = true
		if f.Cause == message.Duplicate {
			f.Cause = message.Released
		}
		it.Unasked, it.Due, it.Delay = false, 0, 0
		m.changed(it)
	}
	d := m.verdict(it, f, counted)
	if counted || d.Action != redelivery.Again {
		m.decided(it, d)
	}
	switch d.Action {
	case redelivery.Again:
		m.giveBack(it)
	case redelivery.Later:
		it.Delay, it.Due = d.Delay, d.Due
		if it.Due > m.now {
			m.postpone(it)
			break
		}
		it.Due = 0 // without a delay it goes back as it came, before those that were handed out after it (R-HQ-89)
		m.changed(it)
		m.giveBack(it)
	case redelivery.Hold:
		it.Holds++
		m.hold(it, connectionOf(it), d.Due)
	case redelivery.Keep:
		m.keep(it, f, d)
	case redelivery.DeadLetter:
		m.deadLetter(it, f, d)
	case redelivery.Discard:
		m.discard(it, f, string(d.Reason))
	}
}

// foresee notes what the broker-side policy would decide about a failure that leaves an
// item with its client, who is to deliver it once more. It is asked when the client
// gives the item back; what is noted holds where the process ends before that.
func (m *Machine) foresee(it *Item, f message.Failure) {
	if m.o.Rules.Redelivery == nil || !it.Durable || !m.o.Redelivers {
		return
	}
	switch d := m.verdict(it, f, true); d.Action {
	case redelivery.Again: // the policy has no say here
	case redelivery.Later:
		it.Unasked, it.Due, it.Delay = true, d.Due, d.Delay
	default:
		it.Unasked, it.Due, it.Delay = true, m.now, 0
	}
}

// unasked is why an item ends in a process that never handed it out.
const unasked = "the broker stopped while the client was to deliver it once more"

// goesOn asks the broker-side policy about an item whose client went with an earlier
// process, once the delay that was foreseen has passed. It reports whether the item is
// to be delivered again; else it has left, or is kept. The item is in no list.
func (m *Machine) goesOn(it *Item) bool {
	if !it.Unasked {
		return true
	}
	f := m.failure(it, message.BrokerStopped, unasked)
	if d := m.verdict(it, f, true); d.Action == redelivery.Again || d.Action == redelivery.Later {
		it.Unasked = false
		m.changed(it)
		return true
	}
	m.write(it, f, false, true)
	m.decide(it, f, true)
	return false
}

// deadLetter lets an item leave as a dead letter.
func (m *Machine) deadLetter(it *Item, f message.Failure, d redelivery.Decision) {
	m.stats.DeadLettered++
	m.tell(DeadLettered, it, d.Target.String())
	m.transfer(it, &Move{Target: d.Target, Cause: f.Cause, Text: d.CauseText, Expiration: m.deadLetterExpiration()})
}

// Unkept takes back that the newest dead letter was one: it was to go to a topic, and
// nobody got it.
func (m *Machine) Unkept() {
	m.stats.DeadLettered--
	m.stats.Discarded++
}

// mayDie reports whether the copy of a topic consumer without durable subscription
// becomes a dead letter of that cause (R-EDGE-13).
func (m *Machine) mayDie(c message.Cause) bool {
	return m.o.Rules.DeadLetterNonDurable && (c == message.Poison || c == message.Undispatchable)
}

// connectionOf is the connection of the consumer that has an item, or had it last.
func connectionOf(it *Item) string {
	if it.consumer == nil {
		return ""
	}
	return it.consumer.Connection
}

// keep keeps an item that failed in its own dead letter queue: the story goes on,
// the count begins again (R-EDGE-04).
func (m *Machine) keep(it *Item, f message.Failure, d redelivery.Decision) {
	it.Holds++
	it.Failures, it.Suspect, it.Due, it.Delay = 0, message.NotHandedOut, 0, 0
	if d.Due == 0 { // it has expired, and stays all the same
		m.setAside(it)
	}
	m.stats.Kept++
	m.tell(Kept, it, f.Cause.String())
	m.hold(it, connectionOf(it), d.Due)
	if d.Rest > m.now { // nobody has it so soon
		m.leaveHold(it)
		it.heldFrom, it.heldUntil, it.thenFrom, it.thenUntil = everyone, d.Rest, it.heldFrom, it.heldUntil
		m.enterHold(it)
	}
}

// everyone stands for all connections where an item is held back.
const everyone = "*"

// setAside makes an item that has expired one that does not expire, for clients
// too. It is not stored: the next process comes to the same.
func (m *Machine) setAside(it *Item) {
	m.expiry.remove(it)
	if it.Stored && it.turn != m.turns {
		it.aside = it.Expiration
	}
	it.Expiration = 0
	h, err := m.header(it)
	if err != nil {
		return // whoever gets it will fail to read it, and say so
	}
	it.Overlay = &message.Overlay{
		Destination:         h.Destination,
		OriginalDestination: h.OriginalDestination,
		Persistent:          h.Persistent,
		TransactionID:       h.TransactionID,
		Added:               h.Added,
		BrokerInTime:        h.BrokerInTime,
	}
	it.header = nil
}

// discard removes an item for good, and says so.
func (m *Machine) discard(it *Item, f message.Failure, why string) {
	m.stats.Discarded++
	m.tell(ItemDiscarded, it, why)
	m.gone(it)
	reason := Discarded
	if f.Cause == message.Expired {
		reason = ExpiredReason
	}
	m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: reason})
}

// ownDeadLetter reports whether the item lies where its own dead letters go, or
// is a dead letter already: one must not make another (R-EDGE-04, R-EDGE-28).
func (m *Machine) ownDeadLetter(it *Item) bool {
	if rests(it) {
		return true
	}
	return m.o.Rules.DeadLetter.Target(m.o.Destination, m.o.Subscription) == m.o.Destination
}

// rests reports whether an item is a dead letter that nobody has brought to where it
// is to be worked on.
func rests(it *Item) bool { return IsDeadLetter(&it.Entry) && it.Overlay.Added[MovedFrom] == nil }

// IsDeadLetter reports whether an entry came where it is because it failed or expired
// elsewhere. One that was brought back is none any more.
func IsDeadLetter(e *message.Entry) bool {
	if e.Overlay == nil || e.Overlay.OriginalDestination.IsZero() {
		return false
	}
	_, ok := e.Overlay.Added[DeliveryAttempts]
	return ok
}

// Properties of a dead letter that decide how it is dealt with.
const (
	DeliveryAttempts = "deliveryAttempts" // how many attempts failed; what was a dead letter keeps it
	MovedFrom        = "movedFrom"        // the queue that someone brought it from, by hand, to one that is no dead letter queue
)

func (m *Machine) deadLetterExpiration() int64 {
	if e := m.o.Rules.DeadLetter.Expiration; e > 0 {
		return m.now + e.Milliseconds()
	}
	return 0
}

// giveBack makes an item available at once.
func (m *Machine) giveBack(it *Item) {
	m.back(it)
	m.putBack(it)
}

// putBack puts an item ahead of those never handed out (R-CNT-09). A connection that
// is to wait for it still waits: then it is in its old place.
func (m *Machine) putBack(it *Item) {
	if it.heldUntil <= m.now {
		m.putReturned(it)
		return
	}
	m.enterHold(it)
	m.putWaiting(it)
}

// back is what all ways back into the queue have in common.
func (m *Machine) back(it *Item) {
	m.notOut(it)
	m.done(it)
	m.atClient(it, false)
	it.consumer, it.tx, it.line = nil, "", nil
	m.touch(it)
	if it.Expiration > 0 && !m.expiry.has(it) {
		m.expiry.add(it)
	}
}

// postpone keeps an item from everyone until its due time, which is new.
func (m *Machine) postpone(it *Item) {
	m.back(it)
	m.changed(it)
	m.schedule(it)
}

// schedule puts an item among those that wait for their due time.
func (m *Machine) schedule(it *Item) {
	it.place, it.due = scheduled, it.Due
	m.enterDue(it)
	if len(m.due.items) > m.o.Scheduled {
		m.far = append(m.far, it)
	}
	m.supersede(it)
}

// hold puts an item in its old place and keeps it from one connection until a time.
func (m *Machine) hold(it *Item, connection string, until int64) {
	m.back(it)
	m.changed(it)
	it.heldFrom, it.heldUntil, it.thenFrom, it.thenUntil = connection, until, "", 0
	if until > m.now {
		m.enterHold(it)
	}
	m.putWaiting(it)
}

// transfer lets an item leave for another destination.
func (m *Machine) transfer(it *Item, move *Move) {
	m.gone(it)
	m.emit(Effect{Kind: Transfer, Item: it, Lane: it.lane, Move: move})
}

// isOut notes that an item is handed out, or was and waits for its transaction.
func (m *Machine) isOut(it *Item) {
	m.out[it.Position] = it
	m.stats.OutBytes += int64(it.SizeBytes)
}

// notOut takes that back.
func (m *Machine) notOut(it *Item) {
	if m.out[it.Position] != nil {
		delete(m.out, it.Position)
		m.stats.OutBytes -= int64(it.SizeBytes)
	}
}

// gone forgets an item. It is in no list.
func (m *Machine) gone(it *Item) {
	if g := m.group(it); g != nil {
		m.ownerLooksAgain(g) // it may have room for another member now
	}
	if it.place != nowhere { // else it had expired when it came
		m.stats.Dequeued++
		m.stats.Bytes -= int64(it.SizeBytes)
	}
	m.notOut(it)
	m.done(it)
	delete(m.values, it.Position)
	m.atClient(it, false)
	m.outOfSight(it)
	m.noteLeft(it)
	m.expiry.remove(it)
	m.unmark(it, false)
	it.place, it.dirty = nowhere, false
}

// expire decides about an item whose time to live has passed while no consumer had
// it. It is in no list.
func (m *Machine) expire(it *Item) {
	m.decide(it, m.failure(it, message.Expired, ""), false)
}
