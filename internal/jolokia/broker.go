package jolokia

import (
	"context"
	"fmt"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// broker is the bean of the whole broker (section 8.2).
func (l *look) broker(n name) *bean {
	a, b := l.agent, l.b
	up := a.o.Clock.Now().Sub(a.o.Started)
	used, limit := a.o.Space()
	v := &bean{name: n, class: "org.apache.activemq.broker.jmx.BrokerView", attributes: []attribute{
		value("BrokerId", typString, b.Name()), value("BrokerName", typString, b.Name()), value("BrokerVersion", typString, a.o.Version),
		value("Uptime", typString, spoken(up)), value("UptimeMillis", typLong, up.Milliseconds()),
		value("Persistent", typBool, limit > 0), value("Slave", typBool, false), value("StatisticsEnabled", typBool, true),
		value("MemoryPercentUsage", typInt, percent(uint64(b.MemoryBytes()), uint64(b.MemoryLimit()))), value("MemoryLimit", typLong, b.MemoryLimit()),
		value("VMURL", typString, "vm://"+b.Name()),
	}}
	// What does not fit in memory, and scheduled messages, are in the one store.
	for _, what := range []string{"Store", "Temp", "JobSchedulerStore"} {
		v.attributes = append(v.attributes, value(what+"PercentUsage", typInt, percent(used, limit)), value(what+"Limit", typLong, limit))
	}
	v.attributes = append(append(v.attributes, l.totals()...), l.lists()...)
	v.operations = l.brokerOperations()
	return v
}

// totals are what is counted over all destinations.
func (l *look) totals() []attribute {
	ended := l.b.Ended()
	return append(counts("CurrentConnectionsCount", l.b.Connections(), "TotalConnectionsCount", l.b.Counted(broker.ClientJoined),
		"TotalConsumerCount", len(l.b.ConsumersOpen()), "TotalProducerCount", len(l.b.ProducersOpen())),
		l.total("TotalEnqueueCount", ended.Enqueued, func(st *broker.QueueStatus) int64 { return st.Stats.Enqueued }),
		l.total("TotalDequeueCount", ended.Dequeued, func(st *broker.QueueStatus) int64 { return st.Stats.Dequeued }),
		l.total("TotalMessageCount", 0, func(st *broker.QueueStatus) int64 { return st.Messages }),
		attribute{"AverageMessageSize", typLong, func() (any, error) {
			return average(l.sum(func(st *broker.QueueStatus) int64 { return st.Stats.Bytes }), l.sum(func(st *broker.QueueStatus) int64 { return st.Messages })), nil
		}})
}

// total adds something up over all queues and subscriptions, and those that are no more.
func (l *look) total(name string, ended int64, of func(*broker.QueueStatus) int64) attribute {
	return attribute{name, typLong, func() (any, error) { return ended + l.sum(of), nil }}
}

// sum adds something up over all queues and subscriptions.
func (l *look) sum(of func(*broker.QueueStatus) int64) (n int64) {
	for _, all := range [][]broker.QueueStatus{l.b.Queues(), l.b.Subscriptions()} {
		for i := range all {
			n += of(&all[i])
		}
	}
	return n
}

// lists are the names of what there is.
func (l *look) lists() []attribute {
	names := func(attributeName string, list func() []name) attribute {
		return attribute{attributeName, typNames, func() (any, error) { return references(list()), nil }}
	}
	var all []attribute
	for _, k := range []struct {
		list, total string
		kind        message.DestinationKind
	}{{"Queues", "TotalQueuesCount", message.Queue}, {"Topics", "TotalTopicsCount", message.Topic},
		{"TemporaryQueues", "TotalTemporaryQueuesCount", message.TempQueue}, {"TemporaryTopics", "TotalTemporaryTopicsCount", message.TempTopic}} {
		all = append(all, names(k.list, func() []name { return l.namesOf(k.kind) }),
			attribute{k.total, typInt, func() (any, error) { return len(l.namesOf(k.kind)), nil }})
	}
	for attributeName, kind := range map[string]message.DestinationKind{"QueueSubscribers": message.Queue, "TopicSubscribers": message.Topic,
		"TemporaryQueueSubscribers": message.TempQueue, "TemporaryTopicSubscribers": message.TempTopic} {
		all = append(all, names(attributeName, func() []name { return l.consumersOf(kind) }))
	}
	for attributeName, kind := range map[string]message.DestinationKind{"QueueProducers": message.Queue, "TopicProducers": message.Topic,
		"TemporaryQueueProducers": message.TempQueue, "TemporaryTopicProducers": message.TempTopic, "DynamicDestinationProducers": message.NoDestination} {
		all = append(all, names(attributeName, func() []name { return l.producersOf(kind) }))
	}
	return append(all, names("DurableTopicSubscribers", func() []name { return l.durables(true) }),
		names("InactiveDurableTopicSubscribers", func() []name { return l.durables(false) }),
		value("JMSJobScheduler", typName, reference(l.root.with("service", "JobScheduler", "name", "JMS"))),
		attribute{"TransportConnectors", "java.util.Map", func() (any, error) {
			all := map[string]any{}
			for _, c := range l.o.Connectors() {
				all[c.Name] = c.URI
			}
			return all, nil
		}})
}

func (l *look) consumersOf(kind message.DestinationKind) (all []name) {
	for _, p := range l.b.ConsumersOpen() {
		if p.Destination.Kind == kind && p.Spec.Subscription == "" {
			all = append(all, l.consumerName(&p))
		}
	}
	return all
}

func (l *look) producersOf(kind message.DestinationKind) (all []name) {
	for _, p := range l.b.ProducersOpen() {
		if p.Destination.Kind == kind {
			all = append(all, l.producerName(&p))
		}
	}
	return all
}

// durables are the durable subscriptions that are in use, or those that are not.
func (l *look) durables(active bool) (all []name) {
	subscriptions := l.b.Subscriptions()
	for i := range subscriptions {
		if st := &subscriptions[i]; st.Durable && st.Stats.Consumers > 0 == active {
			all = append(all, l.durableName(st))
		}
	}
	return all
}

func (l *look) brokerOperations() []operation {
	on := func(name string, args []string, f func(ctx context.Context, a []any) error) operation {
		return operation{name, args, typNothing, func(ctx context.Context, a []any) (any, error) { return nil, f(ctx, a) }}
	}
	one, none := []string{typString}, []string(nil)
	named := func(kind message.DestinationKind, a any) message.Destination {
		return message.Destination{Kind: kind, Name: a.(string)}
	}
	return []operation{
		on("addQueue", one, func(_ context.Context, a []any) error { return l.b.Create(named(message.Queue, a[0])) }),
		on("addTopic", one, func(_ context.Context, a []any) error { return l.b.Create(named(message.Topic, a[0])) }),
		on("removeQueue", one, func(ctx context.Context, a []any) error {
			_, err := l.b.Remove(ctx, broker.At(named(message.Queue, a[0])), true, false)
			return err
		}),
		on("removeTopic", one, func(ctx context.Context, a []any) error {
			return l.b.RemoveTopic(ctx, named(message.Topic, a[0]), false)
		}),
		operation{"createDurableSubscriber", []string{typString, typString, typString, typString}, typName, func(_ context.Context, a []any) (any, error) {
			text := func(n int) string { s, _ := a[n].(string); return s } // of null: ""
			topic := named(message.Topic, text(2))
			if err := l.b.CreateSubscription(text(0), text(1), topic, text(3)); err != nil {
				return nil, err
			}
			return reference(l.durableName(&broker.QueueStatus{Name: topic, ClientID: text(0), Subscription: text(1)})), nil
		}},
		on("destroyDurableSubscriber", []string{typString, typString}, func(ctx context.Context, a []any) error {
			_, err := l.b.Remove(ctx, broker.Place{ClientID: a[0].(string), Subscription: a[1].(string)}, true, false)
			return err
		}),
		on("gc", none, func(context.Context, []any) error { return nil }), // nothing is left to be collected
	}
}

// health is what probes ask (HealthView).
func (l *look) health(n name) *bean {
	status := "Good"
	if err := l.b.Full(); err != nil {
		status = "Getting Worried {" + err.Error() + "}"
	}
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.HealthView", attributes: []attribute{value("CurrentStatus", typString, status)},
		operations: []operation{{"healthStatus", nil, typString, func(context.Context, []any) (any, error) { return status, nil }}}}
}

// connectorBean is a listener.
func (l *look) connectorBean(n name, listener string) *bean {
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.ConnectorView", attributes: []attribute{
		value("Started", typBool, true), value("StatisticsEnabled", typBool, true),
		{"ConnectionCount", typInt, func() (any, error) {
			count := 0
			for _, c := range l.b.ClientsOpen() {
				if c.Listener == listener {
					count++
				}
			}
			return count, nil
		}}}}
}

// connection is a client, who can be sent away.
func (l *look) connection(n name, c *broker.ClientInfo) *bean {
	parties := func(attributeName string, all func() []broker.Party, of func(*broker.Party) name) attribute {
		return attribute{attributeName, typNames, func() (any, error) {
			var names []name
			for _, p := range all() {
				if p.Connection == c.ID {
					names = append(names, of(&p))
				}
			}
			return references(names), nil
		}}
	}
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.ConnectionView", attributes: []attribute{
		value("ClientId", typString, c.ClientID), value("UserName", typString, c.User), value("RemoteAddress", typString, "tcp://"+c.Address),
		value("Connected", typBool, true), value("Active", typBool, true),
		parties("Consumers", l.b.ConsumersOpen, l.consumerName), parties("Producers", l.b.ProducersOpen, l.producerName),
	}, operations: []operation{{"stop", nil, typNothing, func(context.Context, []any) (any, error) {
		return nil, l.b.EndConnection(c.ID, fmt.Errorf("an operator has ended the connection: %w", message.ErrUnavailable))
	}}}}
}

func percent(n, of uint64) int {
	if of == 0 {
		return 0
	}
	return int(n * 100 / of)
}

func average(sum, n int64) int64 {
	if n == 0 {
		return 0
	}
	return sum / n
}

// spoken is a time as ActiveMQ prints it.
func spoken(d time.Duration) string {
	count := func(n int64, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	switch minutes := int64(d.Minutes()); {
	case d < time.Minute:
		return fmt.Sprintf("%.3f seconds", d.Seconds())
	case minutes < 60:
		return count(minutes, "minute")
	case minutes < 24*60:
		return count(minutes/60, "hour") + " " + count(minutes%60, "minute")
	default:
		return count(minutes/60/24, "day") + " " + count(minutes/60%24, "hour")
	}
}
