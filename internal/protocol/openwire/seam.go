package openwire

import (
	"context"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// A Broker is what the room uses of a broker.Broker; On makes one.
type Broker interface {
	Connect(ctx context.Context, info broker.ClientInfo, sink broker.Sink) (Connection, error)
	TempDestinations() []broker.TempDestination
	Names() []message.Destination
	ClientsOpen() []broker.ClientInfo
	ConsumersOpen() []broker.Party
	ProducersOpen() []broker.Party
	Consumers(d message.Destination) int
	Producers(d message.Destination) int
	Watched(topic message.Destination) bool
	Publish(ctx context.Context, m *message.Message, done func(error)) error
	Recover() []message.XID
}

// A Connection is what the room uses of a broker.Connection, where the methods
// are described. Tests script one.
type Connection interface {
	Send(ctx context.Context, m *message.Message, tx string, done func(error))
	MayProduce(d message.Destination) error
	Window(spec broker.ConsumerSpec) int
	Begin(tx string) error
	Commit(ctx context.Context, tx string, done func(error))
	Rollback(ctx context.Context, tx string, done func(error))
	MarkRollbackOnly(tx string, why error)
	BeginXA(xid message.XID, again bool) (over bool, err error)
	HasXA(xid message.XID) bool
	CommittedXA(xid message.XID) bool
	PrepareXA(ctx context.Context, xid message.XID, done func(readOnly bool, err error))
	CommitXA(ctx context.Context, xid message.XID, onePhase bool, done func(error))
	RollbackXA(ctx context.Context, xid message.XID, done func(error))
	ForgetXA(ctx context.Context, xid message.XID, done func(error))
	Subscribe(ctx context.Context, spec broker.ConsumerSpec) error
	Offer(ctx context.Context, consumer string, m *message.Message, done func(error)) error
	Ack(ctx context.Context, a broker.Ack, done func(error))
	Pull(ctx context.Context, consumer string, timeout time.Duration) error
	SetPrefetch(ctx context.Context, consumer string, n int, done func(error))
	Holds(consumer string) bool
	CloseConsumer(ctx context.Context, consumer string, last int64, done func(error))
	CloseSession(ctx context.Context, session string, last int64, done func(error))
	AddProducer(producer string, to message.Destination)
	CloseProducer(ctx context.Context, producer string)
	Unsubscribe(ctx context.Context, name string) error
	AddDestination(ctx context.Context, d message.Destination) error
	RemoveDestination(ctx context.Context, d message.Destination) error
	Close(cause message.Cause, text string, last int64)
}
