package openwire

import (
	"slices"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// redeliveryDelay is the property that keeps clients from applying their own
// limit to the redelivery counter (R-CLIENT-30).
const redeliveryDelay = "redeliveryDelay"

// memoIDs is how many ids of each kind an outgoing remembers.
const memoIDs = 256

// An outgoing turns deliveries into dispatches. What it returns is good until its
// next call. Its owner is the writer.
type outgoing struct {
	consumers    memo[string, wire.ConsumerID]
	producers    memo[string, wire.ProducerID]
	destinations memo[message.Destination, wire.Destination]
	transactions memo[string, wire.TransactionID]

	frame      wire.MessageDispatch
	message    wire.Message
	id         wire.MessageID
	properties []byte
	added      wire.Map
	renamed    int64 // dispatches under another id so far
	generation generation
}

// renamedConnection is the connection in the ids of renamed dispatches. Each connection
// of a client has a producer of its own there: the client remembers what it was told on
// the one before.
const renamedConnection = "nixie-renamed"

// rename gives the dispatch an id that the client has not seen on this
// connection, and keeps the message's own as its text: JMSMessageID is the same,
// but the client's search for duplicates, which goes by producer and sequence,
// does not find it (R-CLIENT-35, R-EDGE-09). Java clients up to 6.2 take messages
// that they had only prefetched before a fail-over for duplicates.
func (o *outgoing) rename(id message.ID) {
	o.renamed++
	o.id.TextView = wire.NewText(id.String())
	o.id.ProducerID = &wire.ProducerID{ConnectionID: renamedConnection, SessionID: int64(o.generation) + 1, Value: 1}
	o.id.ProducerSequenceID = o.renamed
}

// dispatch is d as a command. now is brokerOutTime.
func (o *outgoing) dispatch(d *broker.Delivery, now int64) (*wire.MessageDispatch, error) {
	consumer, err := o.consumers.of(d.Consumer, wire.ParseConsumerID)
	if err != nil {
		return nil, err
	}
	o.frame = wire.MessageDispatch{ConsumerID: consumer}
	if d.Kind != broker.MessageDelivery { // a null message: OpenWire 10.2
		return &o.frame, nil
	}
	m := d.Message
	if err := o.fill(m); err != nil {
		return nil, err
	}
	o.message.MarshalledProperties, err = o.merged(m, d.Hint, d.Delay)
	if err != nil {
		return nil, err
	}
	to := d.Destination
	if to.IsZero() {
		to = m.Destination
	}
	o.frame.Destination = o.destination(to)
	if m.Destination.IsZero() || m.Destination.IsComposite() {
		o.message.Destination = o.frame.Destination
	}
	o.id.BrokerSequenceID = o.generation.sequence(d.Entry.Position)
	if d.Renamed {
		o.rename(m.ID)
	}
	o.message.RedeliveryCounter = int32(d.Counter)
	o.message.BrokerOutTime = now
	o.message.JMSXGroupFirstForConsumer = d.GroupFirst // R-GRP-03
	o.frame.Message = &o.message
	o.frame.RedeliveryCounter = int32(d.Counter)
	return &o.frame, nil
}

// fill makes o.message from m, but for what changes from dispatch to dispatch.
func (o *outgoing) fill(m *message.Message) error {
	extra, err := decodeExtra(m.Extra)
	if err != nil {
		return err
	}
	w := &o.message
	*w = extra
	w.Kind = m.Kind
	o.id, w.ProducerID = o.messageID(m.ID)
	w.MessageID = &o.id
	w.Destination = o.destination(m.Destination)
	if !m.OriginalDestination.IsZero() {
		w.OriginalDestination = o.destination(m.OriginalDestination)
		w.OriginalTransactionID = o.transaction(m.TransactionID)
	} else { // clients have either as JMSXProducerTXID
		w.TransactionID = o.transaction(m.TransactionID)
	}
	w.GroupID, w.GroupSequence = wire.TextOrNull(m.GroupID), m.GroupSequence
	if m.CorrelationID != "" { // else it is null, or what its sender left empty
		w.CorrelationID = wire.NewText(m.CorrelationID)
	}
	if m.Type != "" {
		w.Type = wire.NewText(m.Type)
	}
	w.Persistent, w.Priority = m.Persistent, int8(m.Priority)
	w.Expiration, w.Timestamp, w.BrokerInTime = m.Expiration, m.Timestamp, m.BrokerInTime
	w.ReplyTo = o.destination(m.ReplyTo)
	w.UserID = wire.TextOrNull(m.UserID)
	w.Content, w.Compressed = m.Body, m.Compressed
	return nil
}

// messageID is id on the wire, and its producer. Java needs a producer: one that
// no OpenWire client could have is made up for ids of other protocols.
func (o *outgoing) messageID(id message.ID) (wire.MessageID, *wire.ProducerID) {
	producer, err := o.producers.of(id.Producer, wire.ParseProducerID)
	if producer == nil {
		producer = &wire.ProducerID{ConnectionID: id.Producer}
	}
	w := wire.MessageID{TextView: wire.TextOrNull(id.Text), ProducerID: producer, ProducerSequenceID: id.Sequence}
	if err != nil && id.Text == "" {
		w.TextView = wire.NewText(id.String())
	}
	return w, producer
}

// merged is m's properties with what the broker has added to them, and with what
// goes with this dispatch alone.
func (o *outgoing) merged(m *message.Message, hint bool, delay int64) ([]byte, error) {
	if len(m.Added) == 0 && !hint {
		return m.Properties, nil
	}
	o.added = o.added[:0]
	for key, value := range m.Added {
		if n, ok := value.(int64); ok && key == scheduleRepeat { // the one that JMS has as an int
			value = int32(n)
		}
		o.added = append(o.added, wire.Entry{Key: key, Value: value})
	}
	slices.SortFunc(o.added, func(a, b wire.Entry) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	if hint {
		o.added = slices.DeleteFunc(o.added, func(e wire.Entry) bool { return e.Key == redeliveryDelay })
		o.added = append(o.added, wire.Entry{Key: redeliveryDelay, Value: delay})
	}
	var err error
	o.properties, err = wire.MergeProperties(o.properties[:0], m.Properties, o.added)
	return o.properties, err
}

func (o *outgoing) destination(d message.Destination) *wire.Destination {
	w, _ := o.destinations.of(d, func(d message.Destination) (wire.Destination, error) { return *wire.NewDestination(d), nil })
	return w
}

// A memo remembers what was made of keys, and first of all the last one.
type memo[K comparable, V any] struct {
	known map[K]*V // emptied when it is full
	key   K        // the last
	value *V
}

// of makes a value from a key, or finds what was made of it before. The zero key gives
// nil.
func (m *memo[K, V]) of(key K, parse func(K) (V, error)) (*V, error) {
	var zero K
	switch key {
	case zero:
		return nil, nil
	case m.key:
		return m.value, nil
	}
	v, ok := m.known[key]
	if !ok {
		made, err := parse(key)
		if err != nil {
			return nil, err
		}
		if m.known == nil || len(m.known) >= memoIDs {
			m.known = map[K]*V{}
		}
		v = &made
		m.known[key] = v
	}
	m.key, m.value = key, v
	return v, nil
}

// transaction is the id of a transaction from its text; nil where the text is none.
func (o *outgoing) transaction(text string) wire.TransactionID {
	id, err := o.transactions.of(text, parseTransactionID)
	if id == nil || err != nil {
		return nil
	}
	return *id
}

func parseTransactionID(text string) (wire.TransactionID, error) {
	if id, err := wire.ParseLocalTransactionID(text); err == nil {
		return id, nil
	}
	x, err := message.ParseXID(text)
	if err != nil {
		return nil, err
	}
	return &wire.XATransactionID{FormatID: x.Format, GlobalTransactionID: []byte(x.Global), BranchQualifier: []byte(x.Branch)}, nil
}
