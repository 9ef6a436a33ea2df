package openwire

import (
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// Properties of advisories beside those of their origin, with ActiveMQ's spelling.
const (
	propertyConsumerCount = "consumerCount"
	propertyProducerCount = "producerCount"
	propertyConsumerID    = "consumerId"
	propertyProducerID    = "producerId"
	propertyMessageID     = "orignalMessageId"
	propertyDestination   = "orignalDestination"
	propertyUsageName     = "usageName"
	propertyUsageCount    = "usageCount"
	propertyDiscarded     = "discardedCount"
)

// advisoryType is the JMSType of every advisory.
const advisoryType = "Advisory"

// storeUsage is what is full where a broker tells that it is: the disk.
const storeUsage = "Store"

// memoryUsage stands behind a destination's name where that is full, as in ActiveMQ.
const memoryUsage = ":memory"

// message is the advisory of an event; nil where there is none.
func (a *Advisories) message(e broker.Event) (*message.Message, error) {
	topic := a.Topic(e.Kind, e.Destination)
	if topic.IsZero() {
		return nil, nil
	}
	id := message.ID{Producer: a.producer.String(), Sequence: a.sequence.Add(1)}
	if e.Kind == broker.NoConsumer { // the message itself
		m := *e.Copy
		m.OriginalDestination, m.Destination = e.Destination, topic
		return &m, nil
	}
	subject, err := subjectOf(e)
	if err != nil {
		return nil, err
	}
	extra, err := encodeExtra(&wire.Message{Kind: message.PlainBody, DataStructure: subject})
	if err != nil {
		return nil, err
	}
	properties := a.properties
	if own := ownProperties(e); len(own) > 0 {
		if properties, err = wire.AppendMap(nil, append(own, a.origin...)); err != nil {
			return nil, err
		}
	}
	return &message.Message{
		ID:          id,
		Destination: topic,
		Type:        advisoryType,
		Format:      message.OpenWire,
		Kind:        message.PlainBody,
		Properties:  properties,
		Extra:       extra,
	}, nil
}

// subjectOf is the data structure that tells what an event is about; nil for none.
func subjectOf(e broker.Event) (wire.DataStructure, error) {
	switch e.Kind {
	case broker.ClientJoined:
		return connectionInfoOf(e), nil
	case broker.ClientLeft:
		return &wire.RemoveInfo{ObjectID: &wire.ConnectionID{Value: e.Connection}, LastDeliveredSequenceID: wire.LastDeliveredUnknown}, nil
	case broker.QueueAdded, broker.TempAdded:
		return destinationInfo(e, wire.DestinationAdd), nil
	case broker.QueueRemoved, broker.TempRemoved:
		return destinationInfo(e, wire.DestinationRemove), nil
	case broker.ConsumerJoined, broker.SlowConsumer:
		return consumerInfoOf(e)
	case broker.ConsumerLeft:
		id, err := wire.ParseConsumerID(e.Consumer)
		return &wire.RemoveInfo{ObjectID: &id, LastDeliveredSequenceID: wire.LastDeliveredUnknown}, err
	case broker.SubscriptionRemoved:
		info := &wire.RemoveSubscriptionInfo{SubscriptionName: wire.NewText(e.Spec.Subscription), ClientID: wire.NewText(e.ClientID)}
		if e.Connection != "" {
			info.ConnectionID = &wire.ConnectionID{Value: e.Connection}
		}
		return info, nil
	case broker.ProducerJoined, broker.FastProducer:
		id, err := wire.ParseProducerID(e.Producer)
		return &wire.ProducerInfo{ProducerID: &id, Destination: wire.NewDestination(e.Destination)}, err
	case broker.ProducerLeft:
		id, err := wire.ParseProducerID(e.Producer)
		return &wire.RemoveInfo{ObjectID: &id, LastDeliveredSequenceID: wire.LastDeliveredUnknown}, err
	}
	if e.Copy == nil {
		return nil, nil
	}
	var o outgoing
	if err := o.fill(e.Copy); err != nil {
		return nil, err
	}
	var err error
	o.message.MarshalledProperties, err = o.merged(e.Copy, false, 0)
	return &o.message, err
}

func destinationInfo(e broker.Event, operation wire.DestinationOperation) *wire.DestinationInfo {
	info := &wire.DestinationInfo{Destination: wire.NewDestination(e.Destination), OperationType: operation}
	if e.Connection != "" { // else it was the broker itself
		info.ConnectionID = &wire.ConnectionID{Value: e.Connection}
	}
	return info
}

// connectionInfoOf is the connection of an event as its client described it, without the
// password, and where it is, as ActiveMQ writes that.
func connectionInfoOf(e broker.Event) *wire.ConnectionInfo {
	c := e.Client
	return &wire.ConnectionInfo{ConnectionID: &wire.ConnectionID{Value: c.ID}, ClientID: wire.TextOrNull(c.ClientID),
		UserName: wire.TextOrNull(c.User), Password: wire.NewText(""), ClientIP: wire.TextOrNull("tcp://" + c.Address),
		Manageable: c.Manageable, FaultTolerant: c.MayRepeat, FailoverReconnect: c.Reconnect}
}

// consumerInfoOf is the consumer of an event as its client described it.
func consumerInfoOf(e broker.Event) (*wire.ConsumerInfo, error) {
	id, err := wire.ParseConsumerID(e.Consumer)
	if err != nil {
		return nil, err
	}
	s := e.Spec
	to := s.Destination
	if to.IsZero() {
		to = e.Destination
	}
	return &wire.ConsumerInfo{
		ConsumerID:       &id,
		Destination:      wire.NewDestination(to),
		PrefetchSize:     int32(s.Prefetch),
		Browser:          s.Browser,
		Selector:         wire.TextOrNull(s.Selector),
		ClientID:         wire.TextOrNull(e.ClientID),
		SubscriptionName: wire.TextOrNull(s.Subscription),
		NoLocal:          s.NoLocal,
		Exclusive:        s.Exclusive,
		Retroactive:      s.Retroactive,
		Priority:         s.Priority,

		MaximumPendingMessageLimit: int32(s.MostWaiting),
	}, nil
}

// ownProperties are the properties that an event's advisory has of its own.
func ownProperties(e broker.Event) wire.Map {
	switch e.Kind {
	case broker.ConsumerJoined, broker.ConsumerLeft, broker.SubscriptionRemoved:
		return wire.Map{{Key: propertyConsumerCount, Value: int32(e.Count)}}
	case broker.ProducerJoined, broker.ProducerLeft:
		return wire.Map{{Key: propertyProducerCount, Value: int32(e.Count)}}
	case broker.SlowConsumer:
		return wire.Map{{Key: propertyConsumerID, Value: e.Consumer}}
	case broker.FastProducer:
		return wire.Map{{Key: propertyProducerID, Value: e.Producer}}
	case broker.Full:
		if e.OwnLimit {
			return wire.Map{{Key: propertyUsageName, Value: e.Destination.String() + memoryUsage}, {Key: propertyUsageCount, Value: e.Bytes}}
		}
		return wire.Map{{Key: propertyUsageName, Value: storeUsage}}
	case broker.Expired, broker.Discarded, broker.MessageSent, broker.MessageConsumed:
		return wire.Map{{Key: propertyMessageID, Value: e.Message.String()}, {Key: propertyDestination, Value: e.Destination.String()}}
	case broker.Evicted:
		return wire.Map{{Key: propertyMessageID, Value: e.Message.String()}, {Key: propertyDestination, Value: e.Destination.String()},
			{Key: propertyConsumerID, Value: e.Consumer}, {Key: propertyDiscarded, Value: int32(e.Count)}}
	case broker.MessageDispatched:
		return wire.Map{{Key: propertyMessageID, Value: e.Message.String()}, {Key: propertyDestination, Value: e.Destination.String()},
			{Key: propertyConsumerID, Value: e.Consumer}}
	}
	return nil
}
