package openwire

import (
	"context"

	"github.com/nixiemq/nixie/internal/broker"
)

// On is b as the room uses it.
func On(b *broker.Broker) Broker { return onBroker{b} }

type onBroker struct{ *broker.Broker }

func (b onBroker) Connect(ctx context.Context, info broker.ClientInfo, sink broker.Sink) (Connection, error) {
	c, err := b.Broker.Connect(ctx, info, sink)
	if err != nil {
		return nil, err
	}
	return c, nil
}
