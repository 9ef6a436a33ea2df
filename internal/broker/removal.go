package broker

import (
	"context"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// Create makes a queue, or a topic, unless it is there. ErrInvalid for what names no single
// permanent destination.
func (b *Broker) Create(d message.Destination) error {
	if d.IsComposite() || d.IsPattern() || d.Name == "" || d.IsTemporary() || d.IsAdvisory() {
		return fmt.Errorf("cannot create %q: it names no single queue or topic: %w", d, message.ErrInvalid)
	}
	if d.IsQueue() {
		_, err := b.queue(d, "")
		return err
	}
	b.mu.Lock()
	added := b.addTopicsLocked(d)
	b.mu.Unlock()
	b.tellTopics(added, "")
	return nil
}

// Remove ends a queue, or a durable subscription, for good; dry only tells how many
// messages it has. What it has goes with it, where with says so: else it must be empty.
// A queue comes to be again when it is next used.
//
// Errors: ErrNotFound where there is none; ErrState where it is in use, has messages that
// are not to go, or some that a prepared transaction needs; ErrInvalid for a temporary
// queue, which belongs to its connection.
func (b *Broker) Remove(ctx context.Context, place Place, with, dry bool) (messages int64, err error) {
	d, err := b.find(place)
	if err != nil {
		return 0, err
	}
	if d.name.IsTemporary() {
		return 0, fmt.Errorf("%s goes with its connection: %w", d.name, message.ErrInvalid)
	}
	if err := b.mayRemove(d); err != nil {
		return 0, err
	}
	messages = d.status().Messages
	switch {
	case dry:
		return messages, nil
	case messages > 0 && !with:
		return 0, fmt.Errorf("%s has messages (%d), which would go with it: move or purge them first, or ask that they go with it (withMessages, --with-messages): %w", place, messages, message.ErrState)
	case d.sub != nil:
		return messages, b.unsubscribe(d.sub, "")
	}
	return messages, b.removeDestination(ctx, d.name, "")
}

// mayRemove fails where a queue or durable subscription is in use.
func (b *Broker) mayRemove(d *destination) error {
	if d.sub == nil {
		if d.snapshot().Consumers > 0 {
			return fmt.Errorf("%s still has consumers: %w", d.name, message.ErrState)
		}
		return b.mayDiscard(d)
	}
	b.mu.Lock()
	taken := d.sub.user != nil
	b.mu.Unlock()
	if taken {
		return d.sub.inUse()
	}
	return b.mayDiscard(d)
}

// RemoveTopic forgets a topic that nobody subscribes to; dry only tells whether it could
// be. Errors: as of [Broker.Remove].
func (b *Broker) RemoveTopic(ctx context.Context, topic message.Destination, dry bool) error {
	b.mu.Lock()
	known := b.topics[topic] != nil
	b.mu.Unlock()
	if !known {
		return fmt.Errorf("%s does not exist: %w", topic, message.ErrNotFound)
	}
	if err := b.subscribedTo(topic); err != nil || dry {
		return err
	}
	return b.removeDestination(ctx, topic, "")
}

// subscribedTo says who subscribes to a topic by its name, so that it cannot go; nil: nobody.
func (b *Broker) subscribedTo(topic message.Destination) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, s := range b.subscriptions {
		switch {
		case s.topic != topic:
		case s.durable && s.user == nil:
			return fmt.Errorf("%s still has the durable subscription %s of client %s, whose messages would be lost: remove that first: %w", topic, s.name, s.clientID, message.ErrState)
		default:
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s still has consumers (%d): %w", topic, n, message.ErrState)
}
