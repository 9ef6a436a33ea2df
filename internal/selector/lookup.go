package selector

import (
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// A Lookup gives the header fields and properties of one message by name.
type Lookup interface {
	// Lookup returns the value of a header field (a name beginning with "JMS") or
	// a property. It is false where the message has none of that name, which a
	// selector takes for NULL.
	Lookup(name string) (Value, bool)
	// Charge adds steps to what the evaluation has cost so far.
	Charge(steps int)
}

// A MessageLookup looks up in a message: header fields by their JMS names, all
// else in what the broker added and then by Properties. Make one and set its
// fields anew for each message. It allocates only for the ids and destinations
// that it has to write out.
type MessageLookup struct {
	Message *message.Message
	// Properties decodes a property; nil: the message has none. It is asked for
	// every name that is no header field.
	Properties func(name string) (Value, bool)
	// RedeliveryCounter is what the consumer is told: JMSRedelivered is whether it
	// is above 0, JMSXDeliveryCount is 1 more.
	RedeliveryCounter int
	// Steps is what evaluations have cost: see Selector.Matches.
	Steps int

	of    *message.Message // that known is of
	known [remembered]remembrance
	next  int // the remembrance that is given up next
}

// remembered is how many properties of a message a MessageLookup remembers.
const remembered = 4

// A remembrance is a property that was looked up.
type remembrance struct {
	name  string // "": none
	value Value
	ok    bool
}

// Charge implements Lookup.
func (l *MessageLookup) Charge(steps int) { l.Steps += steps }

// Lookup implements Lookup.
func (l *MessageLookup) Lookup(name string) (Value, bool) {
	if strings.HasPrefix(name, "JMS") {
		if v, known := l.header(name); known && (v.kind != Null || name != "JMSXUserID") {
			return v, v.kind != Null
		}
	}
	if added, ok := l.Message.Added[name]; ok {
		return valueOf(added), true
	}
	if l.Properties == nil {
		return Value{}, false
	}
	return l.property(name)
}

// property looks a property up that may be remembered.
func (l *MessageLookup) property(name string) (Value, bool) {
	if l.of != l.Message {
		l.of, l.known = l.Message, [remembered]remembrance{}
	}
	for i := range l.known {
		if k := &l.known[i]; k.name == name {
			return k.value, k.ok
		}
	}
	l.Charge(len(l.Message.Properties) / 16)
	k := &l.known[l.next]
	l.next = (l.next + 1) % remembered
	k.name = name
	k.value, k.ok = l.Properties(name)
	return k.value, k.ok
}

// header gives a header field, NULL where it is not set; known is false for a
// name that is none. The names are those of ActiveMQ's PropertyExpression.
func (l *MessageLookup) header(name string) (v Value, known bool) {
	m := l.Message
	switch name {
	case "JMSDeliveryMode":
		if m.Persistent {
			return StringValue("PERSISTENT"), true
		}
		return StringValue("NON_PERSISTENT"), true
	case "JMSPriority":
		return IntValue(int64(m.Priority)), true
	case "JMSTimestamp":
		return IntValue(m.Timestamp), true
	case "JMSExpiration":
		return IntValue(m.Expiration), true
	case "JMSRedelivered":
		return BoolValue(l.RedeliveryCounter > 0), true
	case "JMSXDeliveryCount":
		return IntValue(int64(l.RedeliveryCounter) + 1), true
	case "JMSXGroupSeq":
		return IntValue(int64(m.GroupSequence)), true
	case "JMSActiveMQBrokerInTime":
		return IntValue(m.BrokerInTime), true
	case "JMSActiveMQBrokerOutTime": // it is not handed out yet
		return IntValue(0), true
	case "JMSXGroupFirstForConsumer":
		return BoolValue(false), true
	case "JMSMessageID":
		if m.ID.IsZero() {
			return Value{}, true
		}
		return StringValue(m.ID.String()), true
	case "JMSDestination":
		if m.OriginalDestination.IsZero() {
			return destination(m.Destination), true
		}
		return destination(m.OriginalDestination), true
	case "JMSReplyTo":
		return destination(m.ReplyTo), true
	case "JMSCorrelationID":
		return optional(m.CorrelationID), true
	case "JMSType":
		return optional(m.Type), true
	case "JMSXGroupID":
		return optional(m.GroupID), true
	case "JMSXUserID":
		return optional(m.UserID), true
	case "JMSXProducerTXID":
		return optional(m.TransactionID), true
	}
	return Value{}, false
}

// optional gives a string that is NULL where it is empty.
func optional(s string) Value {
	if s == "" {
		return Value{}
	}
	return StringValue(s)
}

// destination gives a destination as ActiveMQ prints it; none is NULL.
func destination(d message.Destination) Value {
	if d.IsZero() {
		return Value{}
	}
	return StringValue(d.String())
}

// valueOf gives a property that the broker added. What we do not know does not
// compare.
func valueOf(v any) Value {
	switch v := v.(type) {
	case nil:
		return Value{}
	case string:
		return StringValue(v)
	case bool:
		return BoolValue(v)
	case int:
		return IntValue(int64(v))
	case int8:
		return IntValue(int64(v))
	case int32:
		return IntValue(int64(v))
	case int64:
		return IntValue(v)
	case float64:
		return FloatValue(v)
	}
	return OpaqueValue()
}
