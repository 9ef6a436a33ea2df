package queue

import "github.com/nixiemq/nixie/internal/message"

// enlist notes that an open transaction acknowledges an item. The item stays out
// until the transaction is settled.
func (m *Machine) enlist(k *Consumer, it *Item, c Ack) {
	if it.tx != "" {
		return // of this or, in a broken client, of another transaction: the first one decides
	}
	it.tx, it.single = c.Tx, c.Type == Individual
	if it.single {
		k.extension++ // until the end of the transaction (R-BRK-02)
	}
	it.attempt = open // it was delivered, once more if it had been before
	m.txs[c.Tx] = append(m.txs[c.Tx], it)
}

func (m *Machine) settle(c Settle) {
	items := m.txs[c.Tx]
	delete(m.txs, c.Tx)
	for _, it := range items {
		k := it.consumer
		if k != nil {
			k.shrink(1)
		}
		if c.Commit {
			if k != nil {
				k.held.remove(it)
			}
			m.gone(it)
			m.emit(Effect{Kind: Forget, Item: it})
			continue
		}
		it.tx, it.single = "", false
		f := m.failure(it, c.Cause, c.Text)
		counted := m.signal(it, f)
		it.attempt = rolledBack
		if c.Cause == message.ConnectionLost {
			it.attempt = charged
		}
		if it.place == limbo {
			m.decide(it, f, counted)
		} else {
			m.saveCounts(it) // its client redelivers it by itself, and it is out as before
		}
	}
	m.answer(c.Done, nil)
}
