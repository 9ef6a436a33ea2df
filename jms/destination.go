package jms

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A Destination is a queue or a topic, temporary or not. It is comparable; the
// zero value is none. Names are hierarchical with "."; a consumer's may have the
// wildcards "*" (one step) and a final ">" (any number), and either side's may list
// several with commas.
type Destination struct {
	d       message.Destination
	options string // what stood after "?", e.g. "consumer.prefetchSize=1"
}

// Queue is the queue of a name, which may carry options for its consumers:
// "ORDERS?consumer.prefetchSize=1" (R-URI-20). An empty name gives the zero
// Destination, which whatever is called with it refuses.
func Queue(name string) Destination { return parsed(name, message.Queue) }

// Topic is the topic of a name, with options as for Queue.
func Topic(name string) Destination { return parsed(name, message.Topic) }

func parsed(name string, kind message.DestinationKind) Destination {
	d, err := ParseDestination(name)
	if err != nil {
		return Destination{}
	}
	if d.d.Kind == message.Queue && !hasScheme(name) {
		d.d.Kind = kind
	}
	return d
}

// ParseDestination reads "queue://NAME", "topic://NAME", "temp-queue://NAME" or
// "temp-topic://NAME", with options after "?". A name without such a prefix is a
// queue's. An empty name is ErrInvalidDestination.
func ParseDestination(s string) (Destination, error) {
	d, err := message.ParseDestination(s, message.Queue)
	if err != nil {
		return Destination{}, &Error{Op: "parse destination", Kind: ErrInvalidDestination, Text: err.Error()}
	}
	_, options, _ := cutQuery(s)
	return Destination{d: d, options: options}, nil
}

// Name is the physical name, without prefix and options.
func (d Destination) Name() string { return d.d.Name }

// String is the destination as ActiveMQ prints it, "queue://ORDERS"; "" for none.
func (d Destination) String() string { return d.d.String() }

// IsZero reports whether d is no destination.
func (d Destination) IsZero() bool { return d.d.IsZero() }

// IsQueue reports whether d is a queue, temporary or not.
func (d Destination) IsQueue() bool { return d.d.IsQueue() }

// IsTopic reports whether d is a topic, temporary or not.
func (d Destination) IsTopic() bool { return d.d.IsTopic() }

// IsTemporary reports whether d belongs to one connection and goes with it.
func (d Destination) IsTemporary() bool { return d.d.IsTemporary() }

// wire is d as it stands in frames; nil for none.
func (d Destination) wire() *wire.Destination { return wire.NewDestination(d.d) }

// fromWire is a destination of a frame. One without a name is none.
func fromWire(w *wire.Destination) Destination {
	d, err := w.Destination()
	if err != nil {
		return Destination{}
	}
	return Destination{d: d}
}
