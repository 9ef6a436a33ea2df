package jms

import (
	"context"
	"maps"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// DeliveryMode says whether a message outlives the broker's process.
type DeliveryMode int8

// The delivery modes; the zero value is Persistent, as in JMS.
const (
	Persistent DeliveryMode = iota
	NonPersistent
)

// DefaultPriority is JMSPriority where the sender sets none.
const DefaultPriority = 4

// A Message is what is sent and received. The zero value, with a Body, is ready to
// be sent. A message may be sent more than once; each Send fills in the fields of
// the second group anew. It is not safe for use by several goroutines at a time.
type Message struct {
	CorrelationID string
	Type          string // JMSType
	ReplyTo       Destination
	GroupID       string // JMSXGroupID
	GroupSequence int32  // JMSXGroupSeq
	Properties    Properties
	Body          Body

	ID           string // JMSMessageID
	Destination  Destination
	DeliveryMode DeliveryMode
	Priority     int
	Timestamp    time.Time // zero: none
	Expiration   time.Time // zero: never

	// RedeliveryCounter is how many deliveries failed before this one. Set by
	// Receive.
	RedeliveryCounter int
	UserID            string // JMSXUserID, where the broker fills it in
	// OriginalDestination is where the message was before it was re-routed, to a
	// dead letter queue for one; zero: nowhere else.
	OriginalDestination Destination

	again    bool // it failed before, perhaps without being counted (DoNotCount)
	delivery *delivery
}

// NewText is a text message.
func NewText(text string) *Message { return &Message{Body: Text(text)} }

// Redelivered is JMSRedelivered: a delivery before this one failed, or may have.
func (m *Message) Redelivered() bool { return m.RedeliveryCounter > 0 || m.again }

// DeliveryCount is JMSXDeliveryCount: 1 for the first delivery.
func (m *Message) DeliveryCount() int { return m.RedeliveryCounter + 1 }

// Text is the text of a text message, "" for every other.
func (m *Message) Text() string {
	t, _ := m.Body.(Text)
	return string(t)
}

// SetProperty sets a property, of a type that Properties lists, and returns m.
func (m *Message) SetProperty(name string, value any) *Message {
	if m.Properties == nil {
		m.Properties = Properties{}
	}
	m.Properties[name] = value
	return m
}

// Acknowledge acknowledges the message in an IndividualAcknowledge session; in a
// ClientAcknowledge session it acknowledges every message that the session has
// delivered. In other sessions it does nothing, as in JMS.
func (m *Message) Acknowledge(ctx context.Context) error {
	if m.delivery == nil {
		return &Error{Op: "acknowledge", Kind: ErrIllegalState, Text: "the message was not received"}
	}
	return m.delivery.consumer.session.acknowledge(ctx, m.delivery)
}

// Fail says that the message could not be processed, in a ClientAcknowledge or
// IndividualAcknowledge session: it alone is delivered again by the policy, or
// given up. cause, which may be nil, goes to the broker; RetryAfter, DeadLetter
// and DoNotCount are understood. In a transacted session use Rollback.
func (m *Message) Fail(cause error) error {
	if m.delivery == nil {
		return &Error{Op: "fail", Kind: ErrIllegalState, Text: "the message was not received"}
	}
	return m.delivery.consumer.session.failOne(m.delivery, cause)
}

// toWire makes the message of the wire, but for what the producer adds.
func (m *Message) toWire(compress bool) (*wire.Message, error) {
	w := &wire.Message{
		CorrelationID: wire.TextOrNull(m.CorrelationID),
		Type:          wire.TextOrNull(m.Type),
		ReplyTo:       m.ReplyTo.wire(),
		GroupID:       wire.TextOrNull(m.GroupID),
		GroupSequence: m.GroupSequence,
	}
	if err := encodeBody(w, m.Body, compress); err != nil {
		return nil, err
	}
	own, err := m.ownProperties(w)
	if err != nil {
		return nil, err
	}
	if len(own) > 0 {
		props, err := toMap(own)
		if err == nil {
			w.MarshalledProperties, err = wire.AppendMap(nil, props)
		}
		if err != nil {
			return nil, &Error{Op: "encode properties", Kind: ErrMessageFormat, Err: err}
		}
	}
	return w, nil
}

// ownProperties are the properties without those that have a field of their own on the
// wire (OpenWire 6.4), which go there.
func (m *Message) ownProperties(w *wire.Message) (Properties, error) {
	group, seq := m.Properties["JMSXGroupID"], m.Properties["JMSXGroupSeq"]
	if group == nil && seq == nil {
		return m.Properties, nil
	}
	own := maps.Clone(m.Properties)
	delete(own, "JMSXGroupID")
	delete(own, "JMSXGroupSeq")
	if group != nil {
		text, err := m.Properties.String("JMSXGroupID")
		if err != nil {
			return nil, err
		}
		w.GroupID = wire.TextOrNull(text)
	}
	if seq != nil {
		n, err := m.Properties.Int64("JMSXGroupSeq")
		if err != nil {
			return nil, err
		}
		w.GroupSequence = int32(n)
	}
	return own, nil
}

// fromDispatch is the application's copy of a message (R-CLIENT-03).
func fromDispatch(w *wire.Message, counter int) (*Message, error) {
	m := &Message{
		CorrelationID:       w.CorrelationID.Value,
		Type:                w.Type.Value,
		ReplyTo:             fromWire(w.ReplyTo),
		GroupID:             w.GroupID.Value,
		GroupSequence:       w.GroupSequence,
		ID:                  w.MessageID.String(),
		Destination:         fromWire(w.Destination),
		Priority:            int(w.Priority),
		Timestamp:           fromMillis(w.Timestamp),
		Expiration:          fromMillis(w.Expiration),
		RedeliveryCounter:   counter,
		UserID:              w.UserID.Value,
		OriginalDestination: fromWire(w.OriginalDestination),
	}
	if !w.Persistent {
		m.DeliveryMode = NonPersistent
	}
	var err error
	if m.Body, err = decodeBody(w); err != nil {
		return m, err
	}
	props, err := wire.DecodeMap(w.MarshalledProperties)
	if err != nil {
		return m, &Error{Op: "read properties of " + m.ID, Kind: ErrMessageFormat, Err: err}
	}
	if len(props) > 0 {
		m.Properties = fromMap(props)
	}
	return m, nil
}

// fromMillis is a time of the wire; 0 is none.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
