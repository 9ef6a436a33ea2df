package openwire

import (
	"testing"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// TestRenamedForEachConnection: a client remembers the other id that a message had on
// its connection before. On the next one the message has another one still, so that it
// is refused as a duplicate once for each fail-over, not twice.
func TestRenamedForEachConnection(t *testing.T) { // R-EDGE-09
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.do(p.text(1, queueNamed("Q"), "one"))
		p.consume(1, queueNamed("Q"), 10)
		seen := map[wire.ProducerID]bool{}
		for range 3 {
			d := p.dispatched()
			refuse := ack(d, wire.AckPoison)
			refuse.PoisonCause = &wire.Throwable{Class: "java.lang.Throwable", Message: wire.NewText("Suppressing duplicate delivery on connection, consumer 1")}
			p.do(refuse)
			d = p.dispatched()
			id := d.Message.MessageID
			if seen[*id.ProducerID] || id.ProducerID.ConnectionID == p.id || id.TextView.Value != "ID:peer-1:1:1:1" {
				t.Errorf("renamed to %v, and shown as %q", id.ProducerID, id.TextView.Value)
			}
			seen[*id.ProducerID] = true
			p = comesBack(h, p, 10)
		}
		d := p.dispatched()
		p.do(ack(d, wire.AckStandard))
		p.leave()
		if got := holds(t, h, "Q"); got != "<nil>" {
			t.Errorf("Q holds %s", got)
		}
	})
}
