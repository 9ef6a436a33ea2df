package openwire

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// carryOut does what a command asks for (OpenWire 9.3) and answers it. An error
// is the end of the connection.
//
// Commands that are answered when the broker is done, or with more than a plain
// Response, answer themselves unless they return an error.
func (s *session) carryOut(ds wire.DataStructure) error {
	var err error
	if c, ok := ds.(wire.Command); ok {
		s.gaps.note(c.Base().CommandID)
	}
	switch c := ds.(type) {
	case nil: // the null frame, a sign of life
		return nil
	case *wire.Message:
		err = s.spoil(c.TransactionID, &c.BaseCommand, s.message(c))
	case *wire.MessageAck:
		err = s.spoil(c.TransactionID, &c.BaseCommand, s.messageAck(c))
	case *wire.MessagePull:
		return s.answered(c, s.messagePull(c))
	case *wire.TransactionInfo:
		err = s.transactionInfo(c)
	case *wire.ConnectionInfo:
		return s.connectionInfo(c)
	case *wire.SessionInfo:
		return s.answered(c, s.sessionInfo(c))
	case *wire.ProducerInfo:
		return s.answered(c, s.producerInfo(c))
	case *wire.ConsumerInfo:
		return s.answered(c, s.consumerInfo(c))
	case *wire.ConsumerControl:
		err = s.consumerControl(c)
	case *wire.DestinationInfo:
		err = s.destinationInfo(c)
	case *wire.RemoveInfo:
		err = s.removeInfo(c)
	case *wire.RemoveSubscriptionInfo:
		return s.answered(c, s.removeSubscription(c))
	case *wire.KeepAliveInfo:
		if c.ResponseRequired { // the echo is the only answer (OpenWire 3.4)
			s.out.post(&wire.KeepAliveInfo{})
		}
		return nil
	case *wire.ShutdownInfo:
		return errShutdown
	case *wire.BrokerInfo:
		s.refuse(&c.BaseCommand, exceptionf(classJMS, "broker %s wants a network of brokers, which is not offered", c.BrokerName.Value))
		return nil
	case *wire.Response, *wire.ExceptionResponse, *wire.DataResponse, *wire.DataArrayResponse, *wire.IntegerResponse, *wire.WireFormatInfo:
		return nil // nothing that we have asked for
	case wire.Command: // ConnectionControl, FlushCommand, ControlCommand and other odd ones: nothing to do
		return s.answered(c, nil)
	default:
		return fmt.Errorf("a %T is no command: %w", ds, message.ErrInvalid)
	}
	if err != nil {
		s.answer(ds.(wire.Command).Base(), err)
	}
	return nil
}

// answered answers a command at once.
func (s *session) answered(c wire.Command, err error) error {
	s.answer(c.Base(), err)
	return nil
}
