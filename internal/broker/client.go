package broker

import (
	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
)

// ClientInfo is what a client says of itself when it connects.
type ClientInfo struct {
	ID       string // of the connection, unique; in OpenWire the ConnectionId
	ClientID string // JMS client id, unique among live connections
	User     string
	// Principal is what the client may do; nil: everything.
	Principal *access.Principal
	Address   string // the peer's network address
	Protocol  string // "openwire"
	Listener  string // the name of the listener that it came by
	// Reconnect says that a client comes back after its connection was lost, and
	// takes over from the one that still stands, if any.
	Reconnect bool
	// MayRepeat says that a client which comes back may send messages once more, also
	// those of producers that it has closed (trackMessages of failover:).
	MayRepeat bool
	// Manageable says that the client takes commands which it has not asked for.
	Manageable bool
	// Steals says that a client takes its client id over from whoever has it.
	Steals bool
	// QuietFirst: see queue.Consumer.
	QuietFirst bool
	// Kick ends the client's network connection. It must not block, nor call the
	// broker before it returns.
	Kick func(reason error)
}

// A Sink takes what is dispatched to a client's consumers.
type Sink interface {
	// Deliver must not block and must not call the broker. It is called in the
	// order in which messages are handed out.
	Deliver(Delivery)
}

// DeliveryKind is what a delivery is.
type DeliveryKind uint8

// The kinds of delivery.
const (
	MessageDelivery DeliveryKind = iota
	EndOfBrowse                  // the browser has seen everything
	NothingToPull                // the pull's time passed
	CloseConsumer                // the consumer is to close itself; soon it is removed in any case
)

// A Delivery is one message on its way to a consumer, or the news that there is none.
type Delivery struct {
	Kind     DeliveryKind
	Consumer string
	// Destination is where the consumer gets it from; for a topic's subscription
	// the message's own, which may be known only after Load.
	Destination message.Destination
	Entry       message.Entry
	// Message is nil where the message is to be read with Load, just before it is written.
	Message *message.Message
	// Counter is the redelivery counter the client is told.
	Counter int
	// Hint says that the property redeliveryDelay with the value Delay
	// (milliseconds) goes with this dispatch, so that a client does not apply its
	// limit to the counter (R-CLIENT-30).
	Hint  bool
	Delay int64
	// GroupFirst says that it is the first message of its group that the consumer
	// gets (R-GRP-03).
	GroupFirst bool
	// Renamed says that a client took the message for a copy of one it knew
	// although no application had it (R-EDGE-09): the protocol must not let it be
	// recognised by the id that clients look for duplicates by.
	Renamed bool

	source *destination
	stored bool
}

// Reloadable reports whether Load gets the message if Message is dropped.
func (d *Delivery) Reloadable() bool { return d.stored && d.source != nil }

// Load gets the message of a delivery. It is ErrNotFound where the message has
// gone meanwhile: then its consumer is gone too, and there is nothing to deliver.
func (d *Delivery) Load() (*message.Message, error) {
	if d.Message == nil {
		if d.source == nil {
			return nil, message.ErrNotFound
		}
		m, err := d.source.b.o.Records.Message(&d.Entry)
		if err != nil {
			return nil, err
		}
		d.Message = m
	}
	if d.Destination.IsZero() {
		d.Destination = d.Message.Destination
	}
	return d.Message, nil
}

// Undispatchable tells the broker that the delivery cannot be written to this
// consumer, now or later: the message is corrupt, or larger than the peer's
// frames may be. It becomes a dead letter.
func (d *Delivery) Undispatchable(reason error) {
	if d.source != nil {
		d.source.undispatchable(d.Consumer, d.Entry.Position, reason)
	}
}

// ConsumerSpec describes a consumer.
type ConsumerSpec struct {
	ID          string
	Session     string
	Destination message.Destination // may be a pattern or a composite
	Prefetch    int                 // 0: only what it pulls
	Selector    string
	NoLocal     bool
	Browser     bool
	Exclusive   bool
	Priority    int8
	// MostWaiting is how many messages may wait for a topic's consumer without a durable
	// name at the most, where its policy has a limit; 0: as that says.
	MostWaiting int
	// Retroactive asks for what a topic has kept of the time before.
	Retroactive bool
	// Subscription is the name of a durable subscription; "": none.
	Subscription string
}
