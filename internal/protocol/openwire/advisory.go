package openwire

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// The topics on which clients learn of each other's temporary destinations.
const (
	tempQueueAdvisory = "ActiveMQ.Advisory.TempQueue"
	tempTopicAdvisory = "ActiveMQ.Advisory.TempTopic"
)

// advisoryType is the JMSType of every advisory.
const advisoryType = "Advisory"

// Advisories tell clients of temporary destinations: a Java client refuses to
// send to one that it was not told of (OpenWire 12).
//
// The broker's events are the only source, so that it does not matter which
// protocol a destination is made with and why it goes: plug Listen into
// broker.Options. Events must come before the call that causes them returns;
// then a session that waits with after answers behind its advisory. Run publishes,
// one advisory after the other.
//
// It is safe for concurrent use. A nil Advisories tells nobody.
type Advisories struct {
	log        *slog.Logger
	properties []byte
	producer   wire.ProducerID
	sequence   atomic.Int64
	wake       chan struct{} // holds one token while there is something to do

	mu      sync.Mutex
	todo    []notice // bounded by how many temporary destinations there are and how many sessions wait
	stopped bool
}

// A notice is an event to publish, or a function to call when all before it is
// published.
type notice struct {
	event broker.Event
	call  func()
}

// NewAdvisories makes advisories that come from the broker so named. Run begins to
// send them.
func NewAdvisories(brokerID, brokerName, brokerURL string, log *slog.Logger) (*Advisories, error) {
	properties, err := wire.AppendMap(nil, wire.Map{
		{Key: "originBrokerId", Value: brokerID},
		{Key: "originBrokerName", Value: brokerName},
		{Key: "originBrokerURL", Value: brokerURL},
	})
	if err != nil {
		return nil, fmt.Errorf("advisories: %w", err)
	}
	return &Advisories{
		log:        cmp.Or(log, slog.New(slog.DiscardHandler)),
		properties: properties,
		producer:   wire.ProducerID{ConnectionID: brokerID, SessionID: connectionSession, Value: 1},
		wake:       make(chan struct{}, 1),
	}, nil
}

// Listen takes an event of the broker. It does not block, and passes over what no
// advisory is made of.
func (a *Advisories) Listen(e broker.Event) {
	if e.Kind == broker.TempAdded || e.Kind == broker.TempRemoved {
		a.add(notice{event: e})
	}
}

// after calls f when all that Listen has taken so far is with the consumers.
func (a *Advisories) after(f func()) {
	if a == nil || !a.add(notice{call: f}) {
		f()
	}
}

// add reports whether the notice will be seen to.
func (a *Advisories) add(n notice) bool {
	a.mu.Lock()
	ok := !a.stopped
	if ok {
		a.todo = append(a.todo, n)
	}
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default: // the token that is there serves for this one too
	}
	return ok
}

// Run publishes until ctx ends. Who waits then is told that all is done.
func (a *Advisories) Run(ctx context.Context, b Broker) error {
	for ctx.Err() == nil {
		for _, n := range a.take(false) {
			a.carryOut(ctx, b, n)
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
		}
	}
	for _, n := range a.take(true) {
		if n.call != nil {
			n.call()
		}
	}
	return nil
}

func (a *Advisories) take(last bool) []notice {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.todo
	a.todo, a.stopped = nil, a.stopped || last
	return taken
}

func (a *Advisories) carryOut(ctx context.Context, b Broker, n notice) {
	if n.call != nil {
		n.call()
		return
	}
	operation := wire.DestinationAdd
	if n.event.Kind == broker.TempRemoved {
		operation = wire.DestinationRemove
	}
	m, err := a.message(n.event.Destination, n.event.Connection, operation)
	published := make(chan error, 1) // takes the one answer
	if err == nil {
		err = b.Publish(ctx, m, func(err error) { published <- err })
	}
	if err == nil {
		select {
		case err = <-published:
		case <-ctx.Done():
			return
		}
	}
	if err != nil && ctx.Err() == nil {
		a.log.LogAttrs(ctx, slog.LevelWarn, "advisory of a temporary destination was not sent",
			slog.String(keyDestination, n.event.Destination.String()), slog.Any(keyError, err))
	}
}

// message is the advisory of what happened to a temporary destination.
func (a *Advisories) message(d message.Destination, connection string, operation wire.DestinationOperation) (*message.Message, error) {
	extra, err := encodeExtra(&wire.Message{Kind: message.PlainBody, DataStructure: &wire.DestinationInfo{
		ConnectionID: &wire.ConnectionID{Value: connection}, Destination: wire.NewDestination(d), OperationType: operation,
	}})
	if err != nil {
		return nil, err
	}
	topic := tempQueueAdvisory
	if d.Kind == message.TempTopic {
		topic = tempTopicAdvisory
	}
	return &message.Message{
		ID:          message.ID{Producer: a.producer.String(), Sequence: a.sequence.Add(1)},
		Destination: message.Destination{Kind: message.Topic, Name: topic},
		Type:        advisoryType,
		Format:      message.OpenWire,
		Kind:        message.PlainBody,
		Properties:  a.properties,
		Extra:       extra,
	}, nil
}

// welcome tells a new consumer of the temporary destinations there are, if it is
// one that wants to know. An offer fails only where the consumer has gone again.
//
// A destination that goes meanwhile could be told of after its removal was
// published; so those that are gone afterwards are taken back.
func (a *Advisories) welcome(ctx context.Context, b Broker, c Connection, spec broker.ConsumerSpec) {
	wanted := advisoriesOf(spec.Destination)
	if a == nil || wanted == nil {
		return
	}
	var told []broker.TempDestination
	for _, t := range b.TempDestinations() {
		if wanted[t.Destination.Kind] {
			a.offer(ctx, c, spec.ID, t, wire.DestinationAdd)
			told = append(told, t)
		}
	}
	if len(told) == 0 {
		return
	}
	left := map[message.Destination]bool{}
	for _, t := range b.TempDestinations() {
		left[t.Destination] = true
	}
	for _, t := range told {
		if !left[t.Destination] {
			a.offer(ctx, c, spec.ID, t, wire.DestinationRemove)
		}
	}
}

func (a *Advisories) offer(ctx context.Context, c Connection, consumer string, t broker.TempDestination, operation wire.DestinationOperation) {
	m, err := a.message(t.Destination, t.Connection, operation)
	if err == nil {
		err = c.Offer(ctx, consumer, m, nil)
	}
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelDebug, "advisory was not offered", slog.String(keyConsumer, consumer), slog.Any(keyError, err))
	}
}

// advisoriesOf is which kinds of temporary destination a consumer of d is told
// of; nil for none.
func advisoriesOf(d message.Destination) map[message.DestinationKind]bool {
	var wanted map[message.DestinationKind]bool
	for _, part := range d.Parts() {
		for kind, topic := range map[message.DestinationKind]string{message.TempQueue: tempQueueAdvisory, message.TempTopic: tempTopicAdvisory} {
			if part.Matches(message.Destination{Kind: message.Topic, Name: topic}) {
				if wanted == nil {
					wanted = map[message.DestinationKind]bool{}
				}
				wanted[kind] = true
			}
		}
	}
	return wanted
}
