package queue

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// decide asks the policy what becomes of an item that its consumer does not have
// any more, and does it. The item is in no list.
func (m *Machine) decide(it *Item, f message.Failure, counted bool) {
	if !m.o.Redelivers { // a topic consumer's copy: nobody else is to have it (R-BRK-15)
		m.discard(it, f, "topic consumer: "+f.Cause.String())
		return
	}
	d := m.o.Rules.Decide(redelivery.Facts{
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
		Holds:           int(it.Holds),
	}, m.now, m.o.Jitter)
	if counted || d.Action != redelivery.Again {
		m.decided(it, d)
	}
	conn := ""
	if it.consumer != nil {
		conn = it.consumer.Connection
	}
	switch d.Action {
	case redelivery.Again:
		m.giveBack(it)
	case redelivery.Later:
		it.Delay, it.Due, it.due = d.Delay, d.Due, d.Due
		m.schedule(it)
	case redelivery.Hold:
		it.Holds++
		m.hold(it, conn, d.Due)
	case redelivery.Keep:
		it.Holds++
		it.Failures, it.Suspect = 0, message.NotHandedOut
		if d.Due == 0 { // it has expired, and stays all the same
			m.expiry.remove(it)
			it.Expiration = 0
		}
		m.stats.Kept++
		m.tell(Kept, it, f.Cause.String())
		m.hold(it, conn, d.Due)
	case redelivery.DeadLetter:
		m.stats.DeadLettered++
		m.tell(DeadLettered, it, d.Target.String())
		m.transfer(it, &Move{Target: d.Target, Cause: f.Cause, Text: d.CauseText, Expiration: m.deadLetterExpiration()})
	case redelivery.Discard:
		m.discard(it, f, string(d.Reason))
	}
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
	if o := it.Overlay; o != nil && o.Added[FailureCause] != nil {
		return true
	}
	return m.o.Rules.DeadLetter.Target(m.o.Destination, m.o.Subscription) == m.o.Destination
}

// FailureCause is the property of a dead letter that tells why it is one.
const FailureCause = "dlqDeliveryFailureCause"

func (m *Machine) deadLetterExpiration() int64 {
	if e := m.o.Rules.DeadLetter.Expiration; e > 0 {
		return m.now + e.Milliseconds()
	}
	return 0
}

// giveBack makes an item available at once, ahead of those never handed out (R-CNT-09).
func (m *Machine) giveBack(it *Item) {
	m.back(it)
	it.place = returned
	m.lane(it.lane).returned.pushBack(it)
}

// back is what all ways back into the queue have in common.
func (m *Machine) back(it *Item) {
	delete(m.out, it.Position)
	it.consumer, it.tx, it.single = nil, "", false
	if it.Durable && !it.Stored { // it had expired when it came, and is kept all the same
		it.Stored, it.turn = true, m.turns
		m.emit(Effect{Kind: Append, Item: it, Lane: it.lane})
	}
	if it.Suspect == message.NotHandedOut {
		if it.inline || it.mark != nil || it.Failures > 0 || it.Holds > 0 {
			m.saveCounts(it)
		}
		m.unmark(it, true)
		it.inline = false
	}
	if it.Expiration > 0 && *expiryIndex(it) == 0 {
		m.expiry.add(it)
	}
}

// schedule keeps an item from everyone until its due time.
func (m *Machine) schedule(it *Item) {
	m.back(it)
	m.saveCounts(it)
	it.place = scheduled
	m.due.add(it)
}

// hold puts an item in its old place and keeps it from one connection until a time.
func (m *Machine) hold(it *Item, connection string, until int64) {
	m.back(it)
	m.saveCounts(it)
	it.place = waiting
	it.heldFrom, it.heldUntil = connection, until
	if until > m.now {
		m.due.add(it)
	}
	l := m.lane(it.lane)
	l.waiting.insertByPosition(it)
	l.checked = min(l.checked, it.Position-1)
}

// release lets go what was scheduled or held until now.
func (m *Machine) release(it *Item) {
	l := m.lane(it.lane)
	if it.place == scheduled {
		it.Due = 0
		it.place = returned
		l.returned.pushBack(it)
		m.saveCounts(it)
		return
	}
	it.heldFrom, it.heldUntil = "", 0
	l.checked = min(l.checked, it.Position-1)
}

// transfer lets an item leave for another destination.
func (m *Machine) transfer(it *Item, move *Move) {
	m.gone(it)
	m.emit(Effect{Kind: Transfer, Item: it, Lane: it.lane, Move: move})
}

// gone forgets an item. It is in no list.
func (m *Machine) gone(it *Item) {
	delete(m.out, it.Position)
	m.expiry.remove(it)
	m.due.remove(it)
	m.unmark(it, false)
	it.place = nowhere
	m.stats.Dequeued++
}

// expire decides about an item whose time to live has passed. It is in no list.
func (m *Machine) expire(it *Item) {
	if it.list != nil || it.place == scheduled {
		m.leaveList(it)
	}
	m.stats.Expired++
	f := m.failure(it, message.Expired, "")
	m.tell(ItemExpired, it, "")
	m.decide(it, f, false)
}
