package wire

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// The text forms of ids, and the way back (OpenWire 8.1). Texts are parsed from
// the right, as a connection's name may hold colons itself. Ids but those of
// messages and transactions are comparable and can be keys of maps.

// String is the connection's name.
func (x *ConnectionID) String() string { return x.Value }

// String is the broker's name.
func (x *BrokerID) String() string { return x.Value }

// String is "CONNECTION:VALUE".
func (x *SessionID) String() string { return joinID(x.ConnectionID, x.Value) }

// String is "CONNECTION:SESSION:VALUE".
func (x *ConsumerID) String() string { return joinID(x.ConnectionID, x.SessionID, x.Value) }

// Session is the session that the consumer belongs to.
func (x *ConsumerID) Session() SessionID { return SessionID{x.ConnectionID, x.SessionID} }

// String is "CONNECTION:SESSION:VALUE".
func (x *ProducerID) String() string { return joinID(x.ConnectionID, x.SessionID, x.Value) }

// Session is the session that the producer belongs to.
func (x *ProducerID) Session() SessionID { return SessionID{x.ConnectionID, x.SessionID} }

// String is JMSMessageID: "PRODUCER:SEQUENCE", or the text of a foreign
// producer's id.
func (x *MessageID) String() string { return x.ID().String() }

// ID is x in the broker's form. It is the zero ID for nil.
func (x *MessageID) ID() message.ID {
	if x == nil {
		return message.ID{}
	}
	id := message.ID{Sequence: x.ProducerSequenceID, Text: x.TextView.Value}
	if x.ProducerID != nil {
		id.Producer = x.ProducerID.String()
	}
	return id
}

// NewMessageID is id in OpenWire's form, without a broker sequence id. A
// producer that is no producer id is message.ErrInvalid.
func NewMessageID(id message.ID) (*MessageID, error) {
	x := &MessageID{TextView: TextOrNull(id.Text), ProducerSequenceID: id.Sequence}
	if id.Producer == "" {
		return x, nil
	}
	producer, err := ParseProducerID(id.Producer)
	if err != nil {
		return nil, err
	}
	x.ProducerID = &producer
	return x, nil
}

// String is "TX:CONNECTION:VALUE".
func (x *LocalTransactionID) String() string {
	connection := ""
	if x.ConnectionID != nil {
		connection = x.ConnectionID.Value
	}
	return "TX:" + joinID(connection, x.Value)
}

// String is "XID:[FORMAT,globalId=HEX,branchId=HEX]", in which each byte is
// written as Java writes a signed int in hex. It is ambiguous: compare Key.
func (x *XATransactionID) String() string {
	b := append([]byte("XID:["), strconv.Itoa(int(x.FormatID))...)
	b = appendJavaHex(append(b, ",globalId="...), x.GlobalTransactionID)
	b = appendJavaHex(append(b, ",branchId="...), x.BranchQualifier)
	return string(append(b, ']'))
}

func appendJavaHex(dst, data []byte) []byte {
	for _, c := range data {
		dst = strconv.AppendUint(dst, uint64(uint32(int32(int8(c)))), 16)
	}
	return dst
}

// Key is a text that two ids share exactly if they are the same transaction.
func (x *LocalTransactionID) Key() string { return x.String() }

// Key is a text that two ids share exactly if they are the same transaction.
func (x *XATransactionID) Key() string {
	return fmt.Sprintf("XA:%d:%x:%x", x.FormatID, x.GlobalTransactionID, x.BranchQualifier)
}

// ParseSessionID reads the text form "CONNECTION:VALUE". Errors are
// message.ErrInvalid.
func ParseSessionID(s string) (SessionID, error) {
	connection, n, err := splitID("session", s, 1)
	return SessionID{connection, n[0]}, err
}

// ParseConsumerID reads the text form "CONNECTION:SESSION:VALUE". Errors are
// message.ErrInvalid.
func ParseConsumerID(s string) (ConsumerID, error) {
	connection, n, err := splitID("consumer", s, 2)
	return ConsumerID{ConnectionID: connection, SessionID: n[1], Value: n[0]}, err
}

// ParseProducerID reads the text form "CONNECTION:SESSION:VALUE". Errors are
// message.ErrInvalid.
func ParseProducerID(s string) (ProducerID, error) {
	connection, n, err := splitID("producer", s, 2)
	return ProducerID{ConnectionID: connection, SessionID: n[1], Value: n[0]}, err
}

// ParseMessageID reads a JMSMessageID. A text that has not the form
// "CONNECTION:SESSION:PRODUCER:SEQUENCE" is a foreign producer's and becomes the
// TextView.
func ParseMessageID(s string) *MessageID {
	connection, n, err := splitID("message", s, 3)
	if err != nil {
		return &MessageID{TextView: NewText(s)}
	}
	return &MessageID{ProducerID: &ProducerID{ConnectionID: connection, SessionID: n[2], Value: n[1]}, ProducerSequenceID: n[0]}
}

// ParseLocalTransactionID reads the text form "TX:CONNECTION:VALUE". Errors are
// message.ErrInvalid.
func ParseLocalTransactionID(s string) (*LocalTransactionID, error) {
	rest, ok := strings.CutPrefix(s, "TX:")
	if !ok {
		return nil, fmt.Errorf("transaction id %q: %w", s, message.ErrInvalid)
	}
	connection, n, err := splitID("transaction", rest, 1)
	if err != nil {
		return nil, err
	}
	return &LocalTransactionID{Value: n[0], ConnectionID: &ConnectionID{Value: connection}}, nil
}

// joinID puts a connection's name and numbers together.
func joinID(connection string, numbers ...int64) string {
	b := append(make([]byte, 0, len(connection)+24), connection...)
	for _, n := range numbers {
		b = strconv.AppendInt(append(b, ':'), n, 10)
	}
	return string(b)
}

// splitID takes count numbers off the right end of s, the rightmost first.
func splitID(what, s string, count int) (rest string, n [3]int64, err error) {
	rest = s
	for i := range count {
		colon := strings.LastIndexByte(rest, ':')
		if colon < 0 {
			return "", [3]int64{}, fmt.Errorf("%s id %q: too few parts: %w", what, s, message.ErrInvalid)
		}
		if n[i], err = strconv.ParseInt(rest[colon+1:], 10, 64); err != nil {
			return "", [3]int64{}, fmt.Errorf("%s id %q: %q is no number: %w", what, s, rest[colon+1:], message.ErrInvalid)
		}
		rest = rest[:colon]
	}
	return rest, n, nil
}
