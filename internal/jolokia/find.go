package jolokia

import (
	"net/http"
	"sync"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// domain is that of all names.
const domain = "org.apache.activemq"

// A look finds beans for one request.
type look struct {
	*agent
	r     *http.Request
	root  name // of the broker
	found []*bean
	want  name
	// deadLetterQueues is asked for once in a request, when it is needed.
	deadLetterQueues func() map[message.Destination]bool
}

// find makes the beans that a name stands for.
func (a *agent) find(r *http.Request, n name) []*bean {
	l := &look{agent: a, r: r, want: n, deadLetterQueues: sync.OnceValue(a.b.DeadLetterQueues),
		root: name{domain: domain}.with("type", "Broker", "brokerName", a.b.Name())}
	if l.exactly() {
		return l.found
	}
	l.add(l.root, l.broker)
	l.add(l.root.with("service", "Health"), l.health)
	l.add(l.root.with("service", "JobScheduler", "name", "JMS"), l.scheduler)
	for _, c := range a.o.Connectors() {
		l.add(l.connector(c.Name), func(n name) *bean { return l.connectorBean(n, c.Name) })
	}
	for _, c := range a.b.ClientsOpen() {
		for _, view := range [][2]string{{"clientId", c.ClientID}, {"remoteAddress", "tcp://" + c.Address}} {
			if view[1] != "" {
				l.add(l.connector(c.Listener).with("connectionViewType", view[0], "connectionName", view[1]), func(n name) *bean { return l.connection(n, &c) })
			}
		}
	}
	for _, d := range l.destinations() {
		l.add(l.of(d), func(n name) *bean { return l.destination(n, d) })
	}
	l.endpoints()
	return l.found
}

// add makes a bean if its name is wanted.
func (l *look) add(n name, of func(name) *bean) {
	if l.want.matches(n) {
		if b := of(n); b != nil {
			l.found = append(l.found, b)
		}
	}
}

// exactly serves the most frequent wish by itself: for one queue, by its very name.
func (l *look) exactly() bool {
	d := message.Destination{Kind: message.Queue, Name: l.want.get("destinationName")}
	n := l.of(d)
	if l.want.isPattern() || !l.want.matches(n) {
		return false
	}
	if b := l.destination(n, d); b != nil {
		l.found = []*bean{b}
	}
	return len(l.found) > 0
}

// connector is the name of a listener.
func (l *look) connector(of string) name {
	return l.root.with("connector", "clientConnectors", "connectorName", of)
}

// types are the words for kinds of destination.
var types = map[message.DestinationKind]string{message.Queue: "Queue", message.Topic: "Topic", message.TempQueue: "TempQueue", message.TempTopic: "TempTopic"}

// of is the name of a destination.
func (l *look) of(d message.Destination) name {
	return l.root.with("destinationType", types[d.Kind], "destinationName", d.Name)
}

// destinations lists those there are, temporary ones last.
func (l *look) destinations() []message.Destination {
	all := l.b.Names()
	for _, t := range l.b.TempDestinations() {
		all = append(all, t.Destination)
	}
	return all
}

// namesOf are the names of the destinations of a kind.
func (l *look) namesOf(kind message.DestinationKind) []name {
	var all []name
	for _, d := range l.destinations() {
		if d.Kind == kind {
			all = append(all, l.of(d))
		}
	}
	return all
}

// endpoints are the consumers and producers that are open, and the durable subscriptions.
func (l *look) endpoints() {
	for _, p := range l.b.ConsumersOpen() {
		if p.Spec.Subscription == "" {
			l.add(l.consumerName(&p), func(n name) *bean { return consumer(n, &p) })
		}
	}
	subscriptions := l.b.Subscriptions()
	for i := range subscriptions {
		if st := &subscriptions[i]; st.Durable {
			l.add(l.durableName(st), func(n name) *bean { return l.durable(n, st) })
		}
	}
	for _, p := range l.b.ProducersOpen() {
		l.add(l.producerName(&p), func(n name) *bean { return producer(n, &p) })
	}
}

// consumerName is the name of a consumer, of a durable one that of its subscription.
func (l *look) consumerName(p *broker.Party) name {
	if p.Spec.Subscription != "" {
		return l.durableName(&broker.QueueStatus{Name: p.Destination, ClientID: p.ClientID, Subscription: p.Spec.Subscription})
	}
	return l.of(p.Destination).with("endpoint", "Consumer", "clientId", p.ClientID, "consumerId", p.ID)
}

func (l *look) durableName(st *broker.QueueStatus) name {
	return l.of(st.Name).with("endpoint", "Consumer", "clientId", st.ClientID, "consumerId", "Durable("+st.ClientID+"_"+st.Subscription+")")
}

func (l *look) producerName(p *broker.Party) name {
	if p.Destination.IsZero() {
		return l.root.with("endpoint", "dynamicProducer", "clientId", p.ClientID, "producerId", p.ID)
	}
	return l.of(p.Destination).with("endpoint", "Producer", "clientId", p.ClientID, "producerId", p.ID)
}
