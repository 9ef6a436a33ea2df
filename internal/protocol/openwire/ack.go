package openwire

import (
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/queue"
)

// messageAck passes an acknowledgement on (OpenWire 10.4). Where nobody waits for
// the answer and the acknowledgement fails, its transaction can only be rolled
// back (R-BRK-13).
func (s *session) messageAck(c *wire.MessageAck) error {
	if err := s.connected("acknowledge"); err != nil {
		return err
	}
	switch {
	case c.ConsumerID == nil:
		return exceptionf(classJMS, "MessageAck has no consumer id")
	case c.AckType < wire.AckDelivered || c.AckType > wire.AckExpired:
		return exceptionf(classJMS, "MessageAck of unknown type %d", c.AckType)
	}
	from, err := c.Destination.Destination()
	if err != nil {
		return exception(classInvalidDestination, err)
	}
	a := broker.Ack{
		Consumer: s.client.consumers[*c.ConsumerID], Destination: from, Type: queue.AckType(c.AckType),
		First: s.ref(c.FirstMessageID), Last: s.ref(c.LastMessageID), Count: int(c.MessageCount),
	}
	if a.Consumer == "" {
		a.Consumer = c.ConsumerID.String()
	}
	if c.PoisonCause != nil {
		a.Text = c.PoisonCause.String()
	}
	a.Unseen = a.Type == queue.Delivered && c.TransactionID == nil && s.cameBackIn()
	done := s.later(&c.BaseCommand)
	if c.TransactionID != nil && transactional(a.Type) {
		t, err := s.transaction(c.TransactionID)
		if err != nil {
			return err
		}
		if t.over {
			done(nil)
			return nil
		}
		t.sessions[c.ConsumerID.Session()], t.acked = true, true
		a.Tx = t.id
		done = t.part(&c.BaseCommand, done)
	}
	parts, err := s.out.apart(a)
	if err != nil {
		done(err)
		return nil
	}
	switch len(parts) {
	case 0: // a transaction has it all
		done(nil)
	case 1:
		parts[0].Quiet = !c.ResponseRequired && a.Tx == ""
	default:
		done = together(len(parts), done)
		for i := range parts[1:] {
			parts[i].Unseen = false // the client has one pull
		}
	}
	for _, one := range parts {
		s.client.broker.Ack(s.ctx, one, done)
	}
	return nil
}

// cameBackIn reports whether a transaction is open that the client may have brought along
// from its last connection. A Java client that is handed what it had received in that
// transaction keeps it from the application, and covers it with a DELIVERED that names no
// transaction, as the DELIVERED of a message that the application gets in one does.
func (s *session) cameBackIn() bool {
	for _, t := range s.client.transactions {
		if t.repeated && !t.over {
			return true
		}
	}
	return false
}

// transactional reports whether an acknowledgement may belong to a transaction.
// DELIVERED never does, even if it carries an id (OpenWire 10.4); POISON must not,
// which is for the broker to say.
func transactional(t queue.AckType) bool {
	return t == queue.Standard || t == queue.Individual || t == queue.Poison
}

// ref names a message as a client does: by what the broker has numbered it, if
// the client repeats that, and by its id.
func (s *session) ref(id *wire.MessageID) queue.Ref {
	if id == nil {
		return queue.Ref{}
	}
	position, ours := s.generation.position(id.BrokerSequenceID)
	r := queue.Ref{Position: uint64(max(position, 0)), Stale: !ours}
	if p := id.ProducerID; p == nil || p.ConnectionID != renamedConnection { // else it is a name of our own: only the position counts
		r.ID = message.ID{Producer: s.producerText(p), Sequence: id.ProducerSequenceID, Text: id.TextView.Value}
	}
	return r
}

// producerText is a producer's text, which most acknowledgements name more than once.
func (s *session) producerText(p *wire.ProducerID) string {
	switch {
	case p == nil:
		return ""
	case *p != s.named.id:
		s.named.id, s.named.text = *p, p.String()
	}
	return s.named.text
}
