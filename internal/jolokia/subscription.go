package jolokia

import (
	"context"

	"github.com/nixiemq/nixie/internal/broker"
)

const subscriptionClass = "org.apache.activemq.broker.jmx.SubscriptionView"

// consumer is the bean of a consumer without a durable name: what it has said of itself.
// What it has of a queue's messages is counted for the queue alone.
func consumer(n name, p *broker.Party) *bean {
	s := &p.Spec
	return &bean{name: n, class: subscriptionClass, attributes: []attribute{
		value("ClientId", typString, p.ClientID), value("ConnectionId", typString, p.Connection), value("ConsumerId", typString, p.ID),
		value("SessionId", typString, s.Session), value("DestinationName", typString, p.Destination.Name),
		value("DestinationQueue", typBool, p.Destination.IsQueue()), value("DestinationTopic", typBool, p.Destination.IsTopic()),
		value("DestinationTemporary", typBool, p.Destination.IsTemporary()),
		value("Selector", typString, s.Selector), value("PrefetchSize", typInt, s.Prefetch), value("Priority", "byte", s.Priority),
		value("Exclusive", typBool, s.Exclusive), value("NoLocal", typBool, s.NoLocal), value("Retroactive", typBool, s.Retroactive),
		value("Durable", typBool, false), value("Active", typBool, true), value("Browser", typBool, s.Browser),
	}}
}

// durable is the bean of a durable subscription, in use or not.
func (l *look) durable(n name, st *broker.QueueStatus) *bean {
	q := &st.Stats
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.DurableSubscriptionView", attributes: append([]attribute{
		value("ClientId", typString, st.ClientID), value("SubscriptionName", typString, st.Subscription),
		value("DestinationName", typString, st.Name.Name), value("DestinationTopic", typBool, true), value("DestinationQueue", typBool, false),
		value("Durable", typBool, true), value("Active", typBool, q.Consumers > 0),
		value("Selector", typString, st.Selector), value("NoLocal", typBool, st.NoLocal),
	}, counts("PendingQueueSize", q.Waiting+q.Scheduled, "DispatchedQueueSize", q.Out, "MessageCountAwaitingAcknowledge", q.Out,
		"DispatchedCounter", q.Dispatched, "EnqueueCounter", q.Enqueued, "DequeueCounter", q.Dequeued, "ConsumedCount", q.Dequeued)...),
		operations: []operation{{"destroy", nil, typNothing, func(ctx context.Context, _ []any) (any, error) {
			_, err := l.b.Remove(ctx, broker.Place{ClientID: st.ClientID, Subscription: st.Subscription}, true, false)
			return nil, err
		}}}}
}

// producer is the bean of a producer.
func producer(n name, p *broker.Party) *bean {
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.ProducerView", attributes: []attribute{
		value("ClientId", typString, p.ClientID), value("ConnectionId", typString, p.Connection), value("ProducerId", typString, p.ID),
		value("DestinationName", typString, p.Destination.Name),
		value("DestinationQueue", typBool, p.Destination.IsQueue()), value("DestinationTopic", typBool, p.Destination.IsTopic()),
		value("DestinationTemporary", typBool, p.Destination.IsTemporary()),
	}}
}
