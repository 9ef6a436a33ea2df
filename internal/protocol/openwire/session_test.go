package openwire

import (
	"testing"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

func TestSendConsumeAcknowledge(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("ORDERS"), 10)
		p.do(p.text(1, queueNamed("ORDERS"), "first"))
		d := p.dispatched()
		if got := body(t, d); got != "first" {
			t.Errorf("text %q", got)
		}
		if d.Destination.String() != "queue://ORDERS" || d.Message.MessageID.BrokerSequenceID == 0 || d.RedeliveryCounter != 0 {
			t.Errorf("dispatch %+v of %+v", d, d.Message)
		}
		p.do(ack(d, wire.AckStandard))
		p.leave()
		q := h.client()
		q.consume(1, queueNamed("ORDERS"), 10)
		if got := q.all(); len(got) > 0 {
			t.Errorf("an acknowledged message was dispatched again: %+v", got)
		}
		q.leave()
	})
}
