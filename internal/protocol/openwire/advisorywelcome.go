package openwire

import (
	"context"
	"log/slog"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// welcome tells a new consumer of what there is already, if it is one that wants
// to know: of destinations, connections, consumers and producers (OpenWire 12). It
// tells how much it offered. An offer fails only where the consumer has gone again.
//
// What goes meanwhile could be told of after its end was published; so what is gone
// afterwards is taken back.
func (a *Advisories) welcome(ctx context.Context, b Broker, c Connection, spec broker.ConsumerSpec) (offered int) {
	if a == nil || !mayWatch(spec.Destination) {
		return 0
	}
	var told []broker.Event
	for _, e := range a.present(b, spec.Destination) {
		a.offer(ctx, c, spec.ID, e)
		told = append(told, e)
	}
	if len(told) == 0 {
		return 0
	}
	left := map[broker.Party]bool{}
	for _, e := range a.present(b, spec.Destination) {
		left[partyOf(e)] = true
	}
	for _, e := range told {
		if !left[partyOf(e)] {
			e.Kind, e.Count = ended[e.Kind], 0
			a.offer(ctx, c, spec.ID, e)
			offered++
		}
	}
	return offered + len(told)
}

// ended is the event that ends what another began.
var ended = map[broker.EventKind]broker.EventKind{
	broker.TempAdded:      broker.TempRemoved,
	broker.QueueAdded:     broker.QueueRemoved,
	broker.ClientJoined:   broker.ClientLeft,
	broker.ConsumerJoined: broker.ConsumerLeft,
	broker.ProducerJoined: broker.ProducerLeft,
}

// partyOf tells the things that events of the present are about apart.
func partyOf(e broker.Event) broker.Party {
	return broker.Party{Connection: e.Connection, ID: e.Consumer + e.Producer, Destination: e.Destination}
}

// mayWatch reports whether a consumer of d may be told anything.
func mayWatch(d message.Destination) bool {
	for _, p := range d.Parts() {
		if p.Kind == message.Topic && (p.IsAdvisory() || p.IsPattern()) {
			return true
		}
	}
	return false
}

// present is what a consumer of the advisory topics d has missed: an event for each
// thing that is there.
func (a *Advisories) present(b Broker, d message.Destination) []broker.Event {
	parts := d.Parts()
	wants := func(kind broker.EventKind, of message.Destination) bool {
		topic := a.Topic(kind, of)
		for _, p := range parts {
			if !topic.IsZero() && p.Matches(topic) {
				return true
			}
		}
		return false
	}
	var all []broker.Event
	if wants(broker.TempAdded, message.Destination{Kind: message.TempQueue}) || wants(broker.TempAdded, message.Destination{Kind: message.TempTopic}) {
		for _, t := range b.TempDestinations() {
			if wants(broker.TempAdded, t.Destination) {
				all = append(all, broker.Event{Kind: broker.TempAdded, Destination: t.Destination, Connection: t.Connection})
			}
		}
	}
	if wants(broker.QueueAdded, message.Destination{Kind: message.Queue}) || wants(broker.QueueAdded, message.Destination{Kind: message.Topic}) {
		for _, n := range b.Names() {
			if wants(broker.QueueAdded, n) {
				all = append(all, broker.Event{Kind: broker.QueueAdded, Destination: n})
			}
		}
	}
	if wants(broker.ClientJoined, message.Destination{}) {
		for _, c := range b.ClientsOpen() {
			all = append(all, broker.Event{Kind: broker.ClientJoined, Connection: c.ID, ClientID: c.ClientID, Client: &c})
		}
	}
	if onlyTemps(parts) {
		return all
	}
	for _, p := range b.ConsumersOpen() {
		if wants(broker.ConsumerJoined, p.Destination) {
			all = append(all, broker.Event{Kind: broker.ConsumerJoined, Destination: p.Destination, Connection: p.Connection,
				ClientID: p.ClientID, Consumer: p.ID, Spec: &p.Spec, Count: b.Consumers(p.Destination)})
		}
	}
	for _, p := range b.ProducersOpen() {
		for _, to := range p.Destination.Parts() {
			if wants(broker.ProducerJoined, to) {
				all = append(all, broker.Event{Kind: broker.ProducerJoined, Destination: to, Connection: p.Connection,
					ClientID: p.ClientID, Producer: p.ID, Count: b.Producers(to)})
			}
		}
	}
	return all
}

// onlyTemps reports whether the topics are those that every Java client subscribes
// to, for which consumers and producers need not be looked through.
func onlyTemps(parts []message.Destination) bool {
	for _, p := range parts {
		if p.Name != tempQueueAdvisory && p.Name != tempTopicAdvisory {
			return false
		}
	}
	return true
}

func (a *Advisories) offer(ctx context.Context, c Connection, consumer string, e broker.Event) {
	m, err := a.message(e)
	if err == nil && m != nil {
		err = c.Offer(ctx, consumer, m, nil)
	}
	if err != nil {
		a.log.LogAttrs(ctx, slog.LevelDebug, "advisory was not offered", slog.String(keyConsumer, consumer), slog.Any(keyError, err))
	}
}
