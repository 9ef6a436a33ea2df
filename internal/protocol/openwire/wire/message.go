package wire

import "github.com/nixiemq/nixie/internal/message"

// Code is the kind of the message.
func (m *Message) Code() byte { return byte(m.Kind) }

func newMessage(code byte) *Message { return &Message{Kind: message.BodyKind(code)} }

func isMessage(code byte) bool {
	return code >= CodeActiveMQMessage && code <= CodeActiveMQBlobMessage
}
