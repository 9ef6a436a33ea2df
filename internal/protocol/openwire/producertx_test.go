package openwire

import (
	"testing"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// JMSXProducerTXID is the transaction of the send: clients read it from transactionId,
// or from originalTransactionId of what was readdressed (a copy, a dead letter).
func TestProducerTransaction(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		send := func(sequence int64, to string, tx wire.TransactionID) {
			m := p.text(sequence, queueNamed(to), to)
			m.TransactionID = tx
			p.do(m)
		}
		global := xid()
		p.do(p.transaction(1, wire.TransactionBegin))
		send(1, "A", p.txID(1))
		send(2, "B,C", p.txID(1))
		p.do(p.transaction(1, wire.TransactionCommitOnePhase))
		p.do(p.xa(wire.TransactionBegin))
		send(3, "D", global)
		p.do(p.xa(wire.TransactionCommitOnePhase))
		send(4, "E", nil)
		p.consume(1, queueNamed("A,B,C,D,E"), 10)
		got, _ := have(p, 5)
		for _, d := range got {
			local, original := p.txID(1).Key(), ""
			switch d.Destination.PhysicalName {
			case "B", "C":
				local, original = "", local
			case "D":
				local = global.Key()
			case "E":
				local = ""
			}
			if a, b := key(d.Message.TransactionID), key(d.Message.OriginalTransactionID); a != local || b != original {
				t.Errorf("%s: transaction %q, original %q, want %q and %q", d.Destination.PhysicalName, a, b, local, original)
			}
		}
		p.hangUp()
	})
}

func key(id wire.TransactionID) string {
	if id == nil {
		return ""
	}
	return id.Key()
}
