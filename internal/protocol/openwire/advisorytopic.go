package openwire

import (
	"strings"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// advisoryPrefix begins the name of every advisory topic.
const advisoryPrefix = "ActiveMQ.Advisory."

// The advisory topics that are not apart by destination.
const (
	connectionAdvisory = advisoryPrefix + "Connection"
	queueAdvisory      = advisoryPrefix + "Queue"
	topicAdvisory      = advisoryPrefix + "Topic"
	tempQueueAdvisory  = advisoryPrefix + "TempQueue"
	tempTopicAdvisory  = advisoryPrefix + "TempTopic"
)

// advisoryKinds are the middle parts of the names of those that are; Queue.NAME or
// Topic.NAME follows (ActiveMQ's AdvisorySupport).
var advisoryKinds = map[broker.EventKind]string{
	broker.ConsumerJoined:      "Consumer.",
	broker.ConsumerLeft:        "Consumer.",
	broker.SubscriptionRemoved: "Consumer.",
	broker.ProducerJoined:      "Producer.",
	broker.ProducerLeft:        "Producer.",
	broker.Expired:             "Expired.",
	broker.Discarded:           "MessageDiscarded.",
	broker.Evicted:             "MessageDiscarded.",
	broker.DeadLettered:        "MessageDLQd.",
	broker.MessageSent:         "MessageDelivered.",
	broker.MessageConsumed:     "MessageConsumed.",
	broker.MessageDispatched:   "MessageDispatched.",
	broker.NoConsumer:          "NoConsumer.",
	broker.SlowConsumer:        "SlowConsumer.",
	broker.FastProducer:        "FastProducer.",
	broker.Full:                "FULL.",
}

// AdvisoryTopic is the topic on which clients are told of events of a kind and a
// destination (OpenWire 12). The zero destination: they are not told of those.
func AdvisoryTopic(kind broker.EventKind, d message.Destination) message.Destination {
	name := ""
	switch kind {
	case broker.ClientJoined, broker.ClientLeft:
		name = connectionAdvisory
	case broker.QueueAdded, broker.QueueRemoved, broker.TempAdded, broker.TempRemoved:
		name = destinationAdvisory(d.Kind)
	default:
		middle, ok := advisoryKinds[kind]
		if !ok || d.IsZero() || d.IsAdvisory() { // ActiveMQ does not tell of anonymous producers by default
			return message.Destination{}
		}
		family := "Queue."
		if d.IsTopic() {
			family = "Topic."
		}
		// the name must not make a composite of the topic
		name = advisoryPrefix + middle + family + strings.ReplaceAll(d.Name, ",", "&sbquo;")
	}
	if name == "" {
		return message.Destination{}
	}
	return message.Destination{Kind: message.Topic, Name: name}
}

// destinationAdvisory is the topic on which destinations of a kind come and go.
func destinationAdvisory(kind message.DestinationKind) string {
	switch kind {
	case message.Queue:
		return queueAdvisory
	case message.Topic:
		return topicAdvisory
	case message.TempQueue:
		return tempQueueAdvisory
	case message.TempTopic:
		return tempTopicAdvisory
	}
	return ""
}
