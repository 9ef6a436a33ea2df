package queue

import "github.com/nixiemq/nixie/internal/message"

// enlist notes that an open transaction acknowledges an item. The item stays out
// until the transaction is settled.
func (m *Machine) enlist(k *Consumer, it *Item, c Ack) {
	it.tx = c.Tx
	if c.Type == Individual {
		k.widen(1) // until the end of the transaction (R-BRK-02)
	}
	it.attempt = open // it was delivered, once more if it had been before
	m.atClient(it, false)
	m.txs[c.Tx] = append(m.txs[c.Tx], it)
}

// settle ends a transaction. After a rollback its client redelivers by itself what
// is out (R-CLIENT-40); what its consumer left behind goes back (R-CNT-10).
func (m *Machine) settle(c Settle) {
	items := m.txs[c.Tx]
	delete(m.txs, c.Tx)
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
	}
	m.consumed(it)
	m.emit(Effect{Kind: Forget, Item: it})
}

func (m *Machine) rollBack(it *Item, c Settle) {
	it.tx = ""
	f := m.failure(it, c.Cause, c.Text)
	counted := m.signal(it, f)
	if it.place == limbo {
		m.decide(it, f, counted)
		return
	}
	it.consumer.narrow(1)
	it.attempt = rolledBack
	if c.Cause == message.ConnectionLost {
		it.attempt = charged
		return
	}
	m.atClient(it, true)
}
