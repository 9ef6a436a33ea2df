package openwire

import (
	"testing"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// TestPolicyWindow wants a client told of the window that a policy gives it
// (R-XML-20): it acknowledges by the share of the window that is used.
func TestPolicyWindow(t *testing.T) {
	t.Parallel()
	one := 1
	inBrokerHouse(t, func(o *broker.Options) {
		o.Policy = func(message.Destination) broker.Policy {
			return broker.Policy{Prefetch: broker.Prefetch{Queue: &one}}
		}
	}, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		for n := range int64(3) {
			p.do(p.text(n+1, queueNamed("Q"), "x"))
		}
		p.send(&wire.ConsumerInfo{BaseCommand: wire.BaseCommand{CommandID: 99, ResponseRequired: true}, ConsumerID: p.consumerID(1),
			Destination: queueNamed("Q"), PrefetchSize: 1000, DispatchAsync: true})
		var windows, dispatches int
		for _, ds := range p.all() {
			switch c := ds.(type) {
			case *wire.ConsumerControl:
				if windows++; c.Prefetch != 1 || *c.ConsumerID != *p.consumerID(1) {
					t.Errorf("%+v", c)
				}
			case *wire.MessageDispatch:
				dispatches++
			}
		}
		if windows != 1 || dispatches != 1 {
			t.Errorf("%d windows and %d dispatches, want one of each", windows, dispatches)
		}
		p.hangUp()
	})
}
