package openwire

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// highestPriority is the largest JMSPriority; the smallest is 0.
const highestPriority = 9

// incoming makes the broker's message from one that a client has sent. producer
// is the text of m.ProducerID. Content and properties are m's own bytes. now is
// brokerInTime, Unix milliseconds; meant tells what destination a name means; at is the
// property that says when to deliver, "" for none.
func incoming(m *wire.Message, producer string, now int64, meant func(*wire.Destination) (message.Destination, error), at string) (*message.Message, error) {
	to, err := meant(m.Destination)
	if err != nil {
		return nil, exception(classInvalidDestination, err)
	}
	if to.IsZero() {
		return nil, exceptionf(classInvalidDestination, "message %s has no destination", m.MessageID)
	}
	if m.MessageID == nil {
		return nil, exceptionf(classJMS, "message to %s has no id", to)
	}
	replyTo, err := m.ReplyTo.Destination()
	if err != nil {
		return nil, exception(classInvalidDestination, err)
	}
	original, err := m.OriginalDestination.Destination()
	if err != nil {
		return nil, exception(classInvalidDestination, err)
	}
	extra, err := encodeExtra(m)
	if err != nil {
		return nil, err
	}
	later, err := schedule(m.MessageID, m.MarshalledProperties, now, at)
	if err != nil {
		return nil, err
	}
	return &message.Message{
		Schedule:            later,
		ID:                  messageID(m, producer),
		Destination:         to,
		OriginalDestination: original,
		ReplyTo:             replyTo,
		Persistent:          m.Persistent,
		Priority:            uint8(min(max(m.Priority, 0), highestPriority)),
		Expiration:          max(m.Expiration, 0),
		Timestamp:           m.Timestamp,
		BrokerInTime:        now,
		CorrelationID:       m.CorrelationID.Value,
		Type:                m.Type.Value,
		GroupID:             m.GroupID.Value,
		GroupSequence:       m.GroupSequence,
		UserID:              m.UserID.Value,
		TransactionID:       transactionText(m),
		Format:              message.OpenWire,
		Kind:                m.Kind,
		Compressed:          m.Compressed,
		Properties:          m.MarshalledProperties,
		Body:                m.Content,
		Extra:               extra,
	}, nil
}

// messageID is the id of a message, which shares the text of its producer.
func messageID(m *wire.Message, producer string) message.ID {
	id := m.MessageID
	if id.ProducerID == nil || *id.ProducerID == *m.ProducerID {
		return message.ID{Producer: producer, Sequence: id.ProducerSequenceID, Text: id.TextView.Value}
	}
	return id.ID()
}

// transactionText is what of its transactions a message is kept with: the one it
// is sent in, else that of its first life.
func transactionText(m *wire.Message) string {
	switch {
	case m.TransactionID != nil:
		return transactionKey(m.TransactionID)
	case m.OriginalTransactionID != nil:
		return transactionKey(m.OriginalTransactionID)
	}
	return ""
}
