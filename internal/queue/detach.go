package queue

import "github.com/nixiemq/nixie/internal/message"

// detach removes a consumer and gives back what it has, in the order in which it
// got it. Only what the application had, or may have had, has failed (R-EDGE-05).
func (m *Machine) detach(c Detach) {
	k, err := m.consumer(c.Consumer)
	if err == nil {
		m.drop(k)
		had := m.had(k, c)
		for it := k.held.head; it != nil; it = k.held.head {
			k.held.remove(it)
			m.comesBack(it, c, had(it))
		}
		m.deserted(c.Cause)
	}
	m.answer(c.Done, err)
}

// had tells which of the items of a consumer that goes its application had.
func (m *Machine) had(k *Consumer, c Detach) func(*Item) bool {
	switch {
	case c.Last != UnknownLast:
		return m.upTo(k, c.Last)
	case c.Cause == message.BrokerStopped:
		return func(*Item) bool { return false }
	}
	// Nobody knows. Charged are what DELIVERED acks cover, and the next one in
	// hand-out order, which the session was at. What the open transaction had
	// acknowledged is charged by its rollback.
	next := c.Charge && !k.announced() && !k.closing()
	return func(it *Item) bool {
		switch {
		case it.attempt == charged || it.tx != "":
			return false
		case delivered(it):
			return true
		}
		was := next
		next = false
		return was
	}
}

// upTo tells which items were handed out up to the one at position last, which the
// application had last. Where the consumer never had that one, positions are
// compared, so that the one value of a session or a connection serves all its
// consumers (R-CNT-03, R-CNT-05, R-EDGE-16). Whatever it says, what DELIVERED acks
// cover was delivered.
func (m *Machine) upTo(k *Consumer, last int64) func(*Item) bool {
	at := uint64(max(last, 0))
	end := m.out[at]
	switch {
	case at == 0:
		return delivered
	case end != nil && k.settled.position == at && k.settled.number < end.number:
		// It gave that one up, and has it again by a broker-side policy. The client
		// means the first time: had its application the second one, it would have said
		// so by another POISON before it went, as it is past its limit (C01).
		return func(it *Item) bool { return it.number < k.settled.number || delivered(it) }
	case end != nil && end.place == out && end.consumer == k:
		return func(it *Item) bool { return it.number <= end.number || delivered(it) }
	case k.settled.position == at:
		return func(it *Item) bool { return it.number < k.settled.number || delivered(it) }
	case k.refused.position == at: // R-CLIENT-34
		return func(it *Item) bool { return it.number < k.refused.number || delivered(it) }
	}
	return func(it *Item) bool { return it.Position <= at || delivered(it) }
}

// announced reports whether a consumer has told of the very message that its
// application is at. Half of a window of one or two is one message, and then a
// DELIVERED ack comes with each that the application gets (spec 4.5): behind the one
// that is covered lies only what waits in the client (C02).
func (c *Consumer) announced() bool {
	if c.Prefetch < 1 || c.Prefetch > 2 {
		return false
	}
	for it := c.held.head; it != nil; it = it.next {
		if delivered(it) {
			return true
		}
	}
	return false
}

// delivered reports whether the client has said that its application has the item.
func delivered(it *Item) bool { return it.covered && it.attempt == open }

// comesBack returns one item of a consumer that goes.
func (m *Machine) comesBack(it *Item, c Detach, had bool) {
	if it.tx != "" { // its transaction decides (R-CNT-10)
		it.place = limbo
		m.park(it)
		m.atClient(it, false)
		m.touch(it)
		return
	}
	if !m.o.Redelivers { // R-CNT-22
		m.gone(it)
		m.emit(Effect{Kind: Remove, Item: it, Lane: it.lane, Reason: Discarded})
		return
	}
	f := m.failure(it, c.Cause, c.Text)
	failed := it.attempt != open || it.Unasked // and the broker-side policy has not been asked yet
	switch {
	case had:
		failed = m.signal(it, f) || failed
	case !failed && (c.Last == UnknownLast || c.Last == UnsaidLast):
		it.suspect()
	}
	if failed {
		m.decide(it, f, true)
	} else {
		m.giveBack(it)
	}
}

// suspect notes that nobody knows what became of a hand-out.
func (it *Item) suspect() {
	if it.Suspect == message.NotHandedOut && it.Failures == 0 { // else it is flagged redelivered as it is
		it.Suspect = message.HandedOut
	}
}
