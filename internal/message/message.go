// Package message holds the words all rooms share: Message, Destination, the
// kinds of error, and what a failed delivery is.
//
// A Message is kept as it arrived: its body and its properties stay the bytes
// the producer sent, and are decoded when someone needs them. A Message that
// has been handed to the broker is immutable; what changes about it later (its
// destination when it becomes a dead letter, say) is an Overlay.
package message

import (
	"fmt"
	"strconv"
	"strings"
)

// An ID names a message: JMSMessageID. Two IDs are the same message if Producer
// and Sequence are equal, or, for foreign ids, if Text is.
type ID struct {
	Producer string // the producer's id: "CONNECTION:SESSION:PRODUCER"
	Sequence int64  // rises by one for each message of the producer
	Text     string // the id a foreign producer chose instead; "" normally
}

// String gives the id as JMSMessageID shows it.
func (id ID) String() string {
	if id.Text != "" {
		if strings.HasPrefix(id.Text, "ID:") {
			return id.Text
		}
		return "ID:" + id.Text
	}
	return id.Producer + ":" + strconv.FormatInt(id.Sequence, 10)
}

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id.Producer == "" && id.Text == "" }

// BodyKind is the JMS message type, with OpenWire's type codes, which every
// protocol room maps to its own.
type BodyKind uint8

// The JMS message types.
const (
	PlainBody  BodyKind = 23 // no body
	BytesBody  BodyKind = 24
	MapBody    BodyKind = 25
	ObjectBody BodyKind = 26
	StreamBody BodyKind = 27
	TextBody   BodyKind = 28
	BlobBody   BodyKind = 29
)

// String names the type as the admin surface shows it.
func (k BodyKind) String() string {
	switch k {
	case PlainBody:
		return "Message"
	case BytesBody:
		return "BytesMessage"
	case MapBody:
		return "MapMessage"
	case ObjectBody:
		return "ObjectMessage"
	case StreamBody:
		return "StreamMessage"
	case TextBody:
		return "TextMessage"
	case BlobBody:
		return "BlobMessage"
	}
	return fmt.Sprintf("Message(%d)", uint8(k))
}

// Format says how Body and Properties are encoded.
type Format uint8

// The formats there are.
const (
	OpenWire Format = 1 // OpenWire sections 6.4 and 7
)

// DefaultPriority is JMSPriority where the producer sets none.
const DefaultPriority = 4

// A Message is what a producer sent. Times are Unix milliseconds, UTC.
// After it was handed to the broker nobody writes to it, nor to the bytes it
// refers to.
type Message struct {
	ID                  ID
	Destination         Destination // where it is now
	OriginalDestination Destination // where it was before it was re-routed; zero if never
	ReplyTo             Destination
	Persistent          bool
	Priority            uint8 // 0 to 9
	Expiration          int64 // when it expires; 0: never
	Timestamp           int64 // when the producer sent it
	BrokerInTime        int64 // when the broker took it
	CorrelationID       string
	Type                string // JMSType
	GroupID             string // JMSXGroupID
	GroupSequence       int32  // JMSXGroupSeq
	UserID              string // JMSXUserID
	TransactionID       string // of the send, "" outside a transaction: JMSXProducerTXID
	Format              Format
	Kind                BodyKind
	Compressed          bool
	Properties          []byte // nil: none
	Body                []byte // nil: none (not the same as empty)
	Extra               []byte // what only the protocol that brought it understands; nil normally
	// Schedule is when the producer wants it delivered; nil: at once. It is not
	// stored with the message: whoever keeps it until then keeps that too.
	Schedule *Schedule
	// Added are properties set by the broker on top of Properties. They win over
	// entries of the same name. Values are string, int64 or int8.
	Added map[string]any
}

// overheadBytes is what a message counts beyond its content and properties
// when memory and windows are reckoned, as in ActiveMQ (OpenWire 10.6).
const overheadBytes = 1024

// SizeBytes is the size that limits and windows count (OpenWire 10.6).
func (m *Message) SizeBytes() int { return overheadBytes + len(m.Body) + len(m.Properties) }

// Expired reports whether the message's time to live has passed (R-BRK-20).
func (m *Message) Expired(nowMillis int64) bool { return m.Expiration > 0 && nowMillis > m.Expiration }

// An Overlay is what the broker changed about a stored message: body and
// properties stay where they are, so that moving a message of any size is a
// small write.
type Overlay struct {
	Destination         Destination
	OriginalDestination Destination
	Persistent          bool
	Expiration          int64
	TransactionID       string
	Added               map[string]any // complete: replaces Message.Added
	BrokerInTime        int64          // when it came to where it is; 0: as the message has it
}

// With returns a copy of m as o changes it. A nil overlay returns m itself.
func (m *Message) With(o *Overlay) *Message {
	if o == nil {
		return m
	}
	c := *m
	c.Destination, c.OriginalDestination = o.Destination, o.OriginalDestination
	c.Persistent, c.Expiration, c.TransactionID, c.Added = o.Persistent, o.Expiration, o.TransactionID, o.Added
	if o.BrokerInTime != 0 {
		c.BrokerInTime = o.BrokerInTime
	}
	return &c
}
