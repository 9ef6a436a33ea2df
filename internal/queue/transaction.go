package queue

import "github.com/nixiemq/nixie/internal/message"

// enlist notes that an open transaction acknowledges an item. The item stays out
// until the transaction is settled.
func (m *Machine) enlist(k *Consumer, it *Item, c Ack) {
	it.tx = c.Tx
	if c.Type == Individual {
		k.widen(1) // until the end of the transaction (R-BRK-02)
	}
	m.becomes(it, open) // it was delivered, once more if it had been before
	m.atClient(it, false)
	m.txs[c.Tx] = append(m.txs[c.Tx], it)
}

// settle ends a transaction. After a rollback its client redelivers by itself what
// is out (R-CLIENT-40); what its consumer left behind goes back (R-CNT-10).
func (m *Machine) settle(c Settle) {
	items := m.txs[c.Tx]
	delete(m.txs, c.Tx)
	m.rollbacks++
	for _, it := range items {
		if c.Commit {
			m.committed(it)
		} else {
			m.rollBack(it, c)
		}
	}
	m.answer(c.Done, nil)
}

// committed forgets an item that its transaction's batch has removed.
func (m *Machine) committed(it *Item) {
	if it.place == out {
		it.consumer.narrow(1)
		it.consumer.release(it)
	} else {
		m.unpark(it)
	}
	m.consumed(it)
	m.emit(Effect{Kind: Forget, Item: it})
}

func (m *Machine) rollBack(it *Item, c Settle) {
	it.tx = ""
	f := m.failure(it, c.Cause, c.Text)
	ours := c.Cause == message.BrokerStopped // no application has failed
	counted := !ours && m.signal(it, f)
	if it.place == limbo {
		m.unpark(it)
		if ours {
			it.suspect()
		}
		m.decide(it, f, counted)
		return
	}
	it.consumer.narrow(1)
	if ours {
		return // and gone is its consumer next
	}
	if c.TakeBack {
		it.consumer.release(it)
		m.decide(it, f, counted)
		return
	}
	if counted {
		m.foresee(it, f)
	}
	it.attempt, it.batch = rolledBack, m.rollbacks
	if c.Cause == message.ConnectionLost {
		it.attempt = charged
		return
	}
	m.atClient(it, true)
}

// foretell tells what a rollback will write of the items of a transaction.
func (m *Machine) foretell(c Foretell) {
	all := make([]Foretold, 0, len(m.txs[c.Tx]))
	for _, it := range m.txs[c.Tx] {
		f := m.failure(it, c.Cause, c.Text)
		after := *it // in no list, and nobody's but ours
		after.fails()
		drop := after.add(f, true, false)
		m.foresee(&after, f)
		all = append(all, Foretold{Item: it, Counts: after.Counts, Attempt: after.line, Drop: drop})
	}
	c.Reply(all)
}

// Held is what must be known of an item that a prepared transaction acknowledges,
// beside its entry and counts, so that an outcome after a restart finds what it
// would have found before.
type Held struct {
	Tx string
	// Consumer that has it, or had it last; of a restored one only what names it counts.
	Consumer  *Consumer
	HandedOut int64 // Unix milliseconds
	HandOuts  int32
	Told      int // the counter that its client was told
}

// Held tells what is to be kept of an item that a Prepare listed.
func (it *Item) Held() Held {
	return Held{Tx: it.tx, Consumer: it.consumer, HandedOut: it.handedOut, HandOuts: it.HandOuts, Told: it.told}
}

// A HeldItem is an entry that a prepared transaction acknowledges.
type HeldItem struct {
	Lane uint8
	Item *Item
	Held Held
}

// RestoreHeld tells a new machine what prepared transactions acknowledge of what the
// store holds. It is nobody's until its transaction is settled (R-CNT-10). It comes
// once, after Restore and RestoreMarks.
func (m *Machine) RestoreHeld(all []HeldItem) {
	for _, h := range all {
		it, l := h.Item, m.lane(h.Lane)
		it.lane = h.Lane
		l.beyond--
		m.putAhead(l, it)
		m.marks.recall(it)
		it.place, it.consumer, it.tx, it.attempt = limbo, h.Held.Consumer, h.Held.Tx, open
		it.handedOut, it.told, it.excess = h.Held.HandedOut, h.Held.Told, h.Held.Told-int(it.Failures)
		it.HandOuts = max(it.HandOuts, h.Held.HandOuts)
		m.isOut(it)
		m.txs[it.tx] = append(m.txs[it.tx], it)
		m.park(it)
	}
	for _, l := range m.lanes {
		if l != nil {
			m.settleAhead(l)
		}
	}
}
