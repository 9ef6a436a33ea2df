package openwire

import (
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// producerAckVersion is the first version with ProducerAck (OpenWire 16).
const producerAckVersion = 3

// message sends a client's message.
func (s *session) message(c *wire.Message) error {
	p := s.producerOf(c)
	if p == nil {
		return exceptionf(classJMS, "message %v: its producer is not one of this connection", c.MessageID)
	}
	m, err := incoming(c, p.text, s.server.o.Clock.Now().UnixMilli(), s.meant, s.server.o.DeliverAt)
	if err != nil {
		return s.unaccepted(c, p, err)
	}
	done := s.later(&c.BaseCommand)
	tx := ""
	if c.TransactionID != nil {
		t, err := s.transaction(c.TransactionID)
		if err != nil {
			return s.unaccepted(c, p, err)
		}
		if t.over {
			s.sent(c, p, m.SizeBytes(), done)(nil)
			return nil
		}
		t.sessions[c.ProducerID.Session()] = true
		tx, done = t.id, t.part(&c.BaseCommand, done)
	}
	s.client.broker.Send(s.ctx, m, tx, s.sent(c, p, m.SizeBytes(), done))
	return nil
}

// producerOf is the producer of a message; nil: it is not one of this client. It need
// not be open: a client that comes back sends what it has kept once more (trackMessages
// of failover:), also of producers and sessions that it has closed since.
func (s *session) producerOf(c *wire.Message) *producer {
	if s.client == nil || c.ProducerID == nil {
		return nil
	}
	if p := s.client.producers[*c.ProducerID]; p != nil {
		return p
	}
	if c.ProducerID.ConnectionID != s.client.id {
		return nil
	}
	return &producer{text: c.ProducerID.String()}
}

// sent is done, with the class that a send's errors have, and with the bytes
// given back to the producer's window (OpenWire 10.6).
func (s *session) sent(c *wire.Message, p *producer, size int, done func(error)) func(error) {
	windowed := !c.ResponseRequired && p.window > 0 && s.settings.Version >= producerAckVersion
	if !windowed && !c.ResponseRequired && c.TransactionID == nil {
		return s.unsent
	}
	id := c.ProducerID
	return func(err error) {
		done(sendError(err))
		if windowed {
			s.out.post(&wire.ProducerAck{ProducerID: id, Size: int32(size)})
		}
	}
}

// sendError gives the error of a send its class: what was not found is a
// temporary destination, what is invalid cannot be sent to or, as a schedule, kept.
func sendError(err error) error {
	err = exceptionIf(broker.ErrSchedule, classMessageFormat, err)
	return exceptionIf(message.ErrInvalid, classInvalidDestination, exceptionIf(message.ErrNotFound, classNoDestination, err))
}

// unaccepted gives the window back for a message that did not get to the broker.
func (s *session) unaccepted(c *wire.Message, p *producer, err error) error {
	m := message.Message{Body: c.Content, Properties: c.MarshalledProperties}
	s.sent(c, p, m.SizeBytes(), func(error) {})(nil)
	return err
}
