package redelivery

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

func queue(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}
func topic(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: name}
}

func TestStrategyDefaults(t *testing.T) { // spec sections 5.2 and 5.3
	t.Parallel()
	for name, tt := range map[string]struct{ got, want DeadLetterStrategy }{
		"shared": {SharedStrategy(), DeadLetterStrategy{Kind: Shared, DeadLetterQueue: queue("ActiveMQ.DLQ"),
			ProcessExpired: true, EnableAudit: true, MaxAuditDepth: 2048, MaxProducersToAudit: 64}},
		"individual": {IndividualStrategy(), DeadLetterStrategy{Kind: Individual,
			QueuePrefix: "ActiveMQ.DLQ.Queue.", TopicPrefix: "ActiveMQ.DLQ.Topic.",
			UseQueueForQueueMessages: true, UseQueueForTopicMessages: true,
			ProcessExpired: true, EnableAudit: true, MaxAuditDepth: 2048, MaxProducersToAudit: 64}},
		"discarding": {DiscardingStrategy(), DeadLetterStrategy{Kind: Discarding,
			ProcessExpired: true, EnableAudit: true, MaxAuditDepth: 2048, MaxProducersToAudit: 64}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	individual := func(change func(*DeadLetterStrategy)) DeadLetterStrategy {
		s := IndividualStrategy()
		change(&s)
		return s
	}
	shared := SharedStrategy()
	shared.DeadLetterQueue = topic("DEAD")
	sub := Subscription{ClientID: "c0", Name: "s0"}
	for name, tt := range map[string]struct {
		strategy DeadLetterStrategy
		source   message.Destination
		sub      Subscription
		want     message.Destination
	}{
		"unset is the shared default (R-DLS-02)":      {DeadLetterStrategy{}, queue("A"), Subscription{}, queue("ActiveMQ.DLQ")},
		"shared":                                      {SharedStrategy(), topic("A"), sub, queue("ActiveMQ.DLQ")},
		"shared may be a topic":                       {shared, queue("A"), Subscription{}, topic("DEAD")},
		"shared without a target has the default one": {DeadLetterStrategy{Kind: Shared}, queue("A"), Subscription{}, queue("ActiveMQ.DLQ")},
		"R-DLS-10 individual, of a queue":             {IndividualStrategy(), queue("A.B"), Subscription{}, queue("ActiveMQ.DLQ.Queue.A.B")},
		"R-DLS-10 individual, of a topic":             {IndividualStrategy(), topic("A.B"), Subscription{}, queue("ActiveMQ.DLQ.Topic.A.B")},
		"R-DLS-10 a temporary queue is a queue": {IndividualStrategy(), message.Destination{Kind: message.TempQueue, Name: "T"},
			Subscription{}, queue("ActiveMQ.DLQ.Queue.T")},
		"R-DLS-10 prefix and suffix of queues": {individual(func(s *DeadLetterStrategy) { s.QueuePrefix, s.QueueSuffix = "DLQ.", ".dead" }),
			queue("A"), Subscription{}, queue("DLQ.A.dead")},
		"R-DLS-10 prefix and suffix of topics": {individual(func(s *DeadLetterStrategy) { s.TopicPrefix, s.TopicSuffix = "", "-dead" }),
			topic("A"), Subscription{}, queue("A-dead")},
		"R-DLS-10 queue messages to a topic": {individual(func(s *DeadLetterStrategy) { s.UseQueueForQueueMessages = false }),
			queue("A"), Subscription{}, topic("ActiveMQ.DLQ.Queue.A")},
		"R-DLS-10 topic messages to a topic": {individual(func(s *DeadLetterStrategy) { s.UseQueueForTopicMessages = false }),
			topic("A"), Subscription{}, topic("ActiveMQ.DLQ.Topic.A")},
		"R-DLS-12 a queue for each durable subscriber (C12)": {
			individual(func(s *DeadLetterStrategy) { s.TopicPrefix, s.DestinationPerDurableSubscriber = "DLQ.T.", true }),
			topic("FEED.OWN"), sub, queue("DLQ.T.FEED.OWN.c0:s0")},
		"R-DLS-12 the suffix comes last": {
			individual(func(s *DeadLetterStrategy) { s.TopicSuffix, s.DestinationPerDurableSubscriber = ".x", true }),
			topic("A"), sub, queue("ActiveMQ.DLQ.Topic.A.c0:s0.x")},
		"R-DLS-12 without a subscription nothing is added": {
			individual(func(s *DeadLetterStrategy) { s.DestinationPerDurableSubscriber = true }),
			topic("A"), Subscription{}, queue("ActiveMQ.DLQ.Topic.A")},
		"R-DLS-12 off by default (C12)": {IndividualStrategy(), topic("A"), sub, queue("ActiveMQ.DLQ.Topic.A")},
		"R-DLS-12 names are used as they are": {
			individual(func(s *DeadLetterStrategy) { s.DestinationPerDurableSubscriber = true }),
			topic("A"), Subscription{ClientID: "c", Name: "topic://x"}, queue("ActiveMQ.DLQ.Topic.A.c:topic://x")},
		"R-DLS-12 but for what would list several queues, or begin options": {
			individual(func(s *DeadLetterStrategy) { s.DestinationPerDurableSubscriber = true }),
			topic("A"), Subscription{ClientID: "c,1", Name: "new?orders "}, queue("ActiveMQ.DLQ.Topic.A.c_1:new_orders")},
		"discarding has none": {DiscardingStrategy(), queue("A"), Subscription{}, message.Destination{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.strategy.Target(tt.source, tt.sub); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
