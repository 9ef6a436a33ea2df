package redelivery

import (
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// DefaultDeadLetterQueue is where dead letters go unless configured otherwise,
// in ActiveMQ's exact spelling.
const DefaultDeadLetterQueue = "ActiveMQ.DLQ"

// StrategyKind says how a DeadLetterStrategy chooses its target.
type StrategyKind uint8

// The kinds of strategy, by their elements in activemq.xml.
const (
	UnsetStrategy StrategyKind = iota
	Shared                     // sharedDeadLetterStrategy: one target for all
	Individual                 // individualDeadLetterStrategy: a target for each destination
	Discarding                 // discarding: none
)

// String names the kind.
func (k StrategyKind) String() string {
	switch k {
	case Shared:
		return "shared"
	case Individual:
		return "individual"
	case Discarding:
		return "discarding"
	}
	return "unset"
}

// A DeadLetterStrategy says where the dead letters of a destination go and which
// messages become none (spec sections 5.2 and 5.3). Make one with
// SharedStrategy, IndividualStrategy or DiscardingStrategy and change what
// differs. A strategy whose Kind is unset, such as the zero value, stands for
// SharedStrategy() whatever its other fields say.
type DeadLetterStrategy struct {
	Kind StrategyKind

	DeadLetterQueue message.Destination // Shared: the target, queue or topic; zero: queue ActiveMQ.DLQ

	// Individual (R-DLS-10 to R-DLS-12).
	QueuePrefix                     string // default "ActiveMQ.DLQ.Queue."
	QueueSuffix                     string // default none; no separator is added
	TopicPrefix                     string // default "ActiveMQ.DLQ.Topic."
	TopicSuffix                     string // default none
	UseQueueForQueueMessages        bool   // default true; false: the target is a topic
	UseQueueForTopicMessages        bool   // default true
	DestinationPerDurableSubscriber bool   // append ".CLIENTID:NAME" of a durable subscription; default false

	// All kinds (R-DLS-20).
	ProcessExpired       bool          // default true; false: what is past its expiration is dropped
	ProcessNonPersistent bool          // default false: non-persistent messages are dropped (R-EDGE-12)
	Expiration           time.Duration // time to live of a dead letter; 0: it never expires
	EnableAudit          bool          // default true; see DuplicateKey in R-DLS-25
	MaxAuditDepth        int           // default 2048
	MaxProducersToAudit  int           // default 64

	// DiscardOwn brings ActiveMQ's behaviour back for a message that fails or
	// expires in its own dead letter queue: it is dropped (R-DLQ-05). Default
	// false: it stays (R-EDGE-04).
	DiscardOwn bool
}

// commonStrategy holds what all kinds have by default.
func commonStrategy(k StrategyKind) DeadLetterStrategy {
	return DeadLetterStrategy{Kind: k, ProcessExpired: true, EnableAudit: true, MaxAuditDepth: 2048, MaxProducersToAudit: 64}
}

// SharedStrategy returns ActiveMQ's default: all dead letters go to ActiveMQ.DLQ.
func SharedStrategy() DeadLetterStrategy {
	s := commonStrategy(Shared)
	s.DeadLetterQueue = message.Destination{Kind: message.Queue, Name: DefaultDeadLetterQueue}
	return s
}

// IndividualStrategy returns an individualDeadLetterStrategy with its defaults.
func IndividualStrategy() DeadLetterStrategy {
	s := commonStrategy(Individual)
	s.QueuePrefix, s.TopicPrefix = "ActiveMQ.DLQ.Queue.", "ActiveMQ.DLQ.Topic."
	s.UseQueueForQueueMessages, s.UseQueueForTopicMessages = true, true
	return s
}

// DiscardingStrategy returns the strategy that keeps no dead letter.
func DiscardingStrategy() DeadLetterStrategy { return commonStrategy(Discarding) }

// effective gives the strategy that s stands for.
func (s DeadLetterStrategy) effective() DeadLetterStrategy {
	if s.Kind == UnsetStrategy {
		return SharedStrategy()
	}
	return s
}

// A Subscription names a durable subscription. The zero value is none.
type Subscription struct {
	ClientID string
	Name     string
}

// IsZero reports whether s is no subscription.
func (s Subscription) IsZero() bool { return s == Subscription{} }

// Target returns where a dead letter of the destination source goes; sub is the
// durable subscription that gave the message up, zero for none. It is zero for a
// discarding strategy. Names are used as they are (R-DLS-12), but for what no client
// could ask a queue by: see queueName.
func (s DeadLetterStrategy) Target(source message.Destination, sub Subscription) message.Destination {
	s = s.effective()
	switch s.Kind {
	case Shared:
		if s.DeadLetterQueue.IsZero() {
			return message.Destination{Kind: message.Queue, Name: DefaultDeadLetterQueue}
		}
		return s.DeadLetterQueue
	case Individual:
		return s.individual(source, sub)
	}
	return message.Destination{}
}

// individual is Target of an individual strategy.
func (s DeadLetterStrategy) individual(source message.Destination, sub Subscription) message.Destination {
	prefix, suffix, asQueue := s.QueuePrefix, s.QueueSuffix, s.UseQueueForQueueMessages
	if source.IsTopic() {
		prefix, suffix, asQueue = s.TopicPrefix, s.TopicSuffix, s.UseQueueForTopicMessages
	}
	name := prefix + source.Name
	if s.DestinationPerDurableSubscriber && !sub.IsZero() {
		name += "." + queueName.Replace(sub.ClientID+":"+sub.Name)
	}
	kind := message.Topic
	if asQueue {
		kind = message.Queue
	}
	return message.Destination{Kind: kind, Name: strings.TrimSpace(name + suffix)}
}

// queueName makes a part of a destination's name of what may be anything: a comma would
// list several destinations, and a question mark begin options (R-MAP-04, R-MAP-05).
var queueName = strings.NewReplacer(",", "_", "?", "_")

// refuses gives the reason why s keeps no dead letter of such a message, or ""
// (R-DLS-20). expired is by our clock.
func (s DeadLetterStrategy) refuses(persistent, expired bool) Reason {
	s = s.effective()
	switch {
	case s.Kind == Discarding:
		return ReasonDiscarding
	case !persistent && !s.ProcessNonPersistent:
		return ReasonNonPersistent
	case expired && !s.ProcessExpired:
		return ReasonExpired
	}
	return ""
}
