package broker

import (
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// Somebody who subscribes to an advisory topic watches the broker. Nearly nobody
// does, but for the two topics of temporary destinations, which every Java client
// subscribes to; so what is told of messages is prepared only where it is watched.

// watches reports whether a subscription may get other advisories than those of
// temporary destinations.
func (s *subscription) watches() bool {
	for _, p := range s.parts {
		first, _, _ := strings.Cut(p.Name, ".")
		switch {
		case p.Name == "ActiveMQ.Advisory.TempQueue", p.Name == "ActiveMQ.Advisory.TempTopic":
		case first == "ActiveMQ", first == "*", first == ">":
			return true
		}
	}
	return false
}

// Watched reports whether anyone subscribes to an advisory topic.
func (b *Broker) Watched(topic message.Destination) bool {
	if b.watchers.Load() == 0 && topic.Name != "ActiveMQ.Advisory.TempQueue" && topic.Name != "ActiveMQ.Advisory.TempTopic" {
		return false
	}
	return len(b.route(topic, "")) > 0
}

// watched reports whether anyone is to be told of events of a kind and destination.
// Of advisory topics themselves nobody is.
func (b *Broker) watched(kind EventKind, d message.Destination) bool {
	if b.o.AdvisoryTopic == nil || b.watchers.Load() == 0 || d.IsAdvisory() {
		return false
	}
	topic := b.o.AdvisoryTopic(kind, d)
	return !topic.IsZero() && b.Watched(topic)
}

// tells are the events that a destination's machine has to tell of.
func (a Advisories) tells(sub *subscription) queue.Tells {
	return queue.Tells{Arrived: a.Sent && sub == nil, Consumed: a.Consumed, Lonely: a.NoConsumer && sub == nil, Slow: a.SlowConsumer}
}

// copyOf is the message of an event about an item, if the event is watched; else
// nil. Where the message is in the store no more, it is what its entry says of it.
func (d *destination) copyOf(kind EventKind, it *queue.Item) *message.Message {
	if it == nil || !d.b.watched(kind, d.name) || kind == Discarded && !d.advisories.Discarded {
		return nil
	}
	return d.copyFor(it, d.advisories.Bodies || kind == NoConsumer)
}

// copyFor is an item's message as an advisory has it, with its body if whole.
func (d *destination) copyFor(it *queue.Item, whole bool) *message.Message {
	m, err := d.headerOf(it)
	if err == nil && whole && it.Message == nil {
		m, err = d.b.o.Records.Message(&it.Entry)
	}
	if err != nil {
		return d.standIn(it)
	}
	c := *m
	if !whole {
		c.Body = nil
	}
	return &c
}

// standIn is what an entry says of its message, where that cannot be read.
func (d *destination) standIn(it *queue.Item) *message.Message {
	m := &message.Message{ID: it.ID, Destination: d.name, Priority: it.Priority, Persistent: it.Persistent,
		Expiration: it.Expiration, Format: message.OpenWire, Kind: message.PlainBody}
	return m.With(it.Overlay)
}

// evicted completes the event of a message that was taken from what waits for a
// consumer: a subscription to several topics tells of the one that it was sent to.
func (d *destination) evicted(ev *Event, it *queue.Item) {
	if d.b.watchers.Load() == 0 {
		return
	}
	advisories := d.advisories
	if d.name.IsPattern() || d.name.IsComposite() {
		h, err := d.headerOf(it)
		if err != nil {
			return // its subscriber's topic is told of, without it
		}
		ev.Destination = h.Destination
		advisories = d.b.policy(h.Destination).Advisories
	}
	if advisories.Discarded && d.b.watched(Evicted, ev.Destination) {
		ev.Copy = d.copyFor(it, advisories.Bodies)
	}
}

// toldSent tells of a message that was sent to a topic, once, whoever subscribes.
func (b *Broker) toldSent(m *message.Message) {
	if b.watchers.Load() == 0 || m.Destination.IsAdvisory() {
		return
	}
	for _, topic := range m.Destination.Parts() {
		if !topic.IsTopic() {
			continue
		}
		a := b.policy(topic).Advisories
		c := *m
		c.Destination = topic
		if a.NoConsumer && !m.Persistent && len(b.route(topic, "")) == 0 && b.watched(NoConsumer, topic) {
			whole := c
			b.tell(Event{Kind: NoConsumer, Destination: topic, Message: m.ID, Copy: &whole})
		}
		if a.Sent && b.watched(MessageSent, topic) {
			if !a.Bodies {
				c.Body = nil
			}
			b.tell(Event{Kind: MessageSent, Destination: topic, Message: m.ID, Copy: &c})
		}
	}
}

// heldBack tells that a producer has to wait, or is refused: once for each destination
// and producer until there is room again.
func (b *Broker) heldBack(n *demand, o *obstacle) {
	if o.room != nil {
		b.tellHeldBack(o.room.name, n.producer, o, o.room.firstTime)
		return
	}
	for _, d := range n.to.Parts() {
		b.tellHeldBack(d, n.producer, o, b.disk.firstTime)
	}
}

func (b *Broker) tellHeldBack(d message.Destination, producer string, o *obstacle, firstTime func(string) bool) {
	a := b.policy(d).Advisories
	if a.WhenFull && firstTime(d.String()) {
		e := Event{Kind: Full, Destination: d, Text: o.why.Error()}
		if o.room != nil {
			e.Bytes, _, _ = o.room.used()
			e.OwnLimit = true
		}
		b.tell(e)
	}
	if a.FastProducer && firstTime(d.String()+" "+producer) {
		b.tell(Event{Kind: FastProducer, Destination: d, Producer: producer})
	}
}
