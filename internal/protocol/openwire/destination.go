package openwire

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// destinationInfo creates or removes a destination. If it is temporary, all
// clients have the advisory in their queues before the answer (OpenWire 12).
func (s *session) destinationInfo(c *wire.DestinationInfo) error {
	if err := s.connected("destination"); err != nil {
		return err
	}
	d, err := s.meant(c.Destination)
	if err != nil {
		return exception(classInvalidDestination, err)
	}
	if d.IsZero() {
		return exceptionf(classInvalidDestination, "DestinationInfo has no destination")
	}
	switch c.OperationType {
	case wire.DestinationAdd:
		err = s.client.broker.AddDestination(s.ctx, d)
	case wire.DestinationRemove:
		err = s.client.broker.RemoveDestination(s.ctx, d)
	default:
		return exceptionf(classJMS, "DestinationInfo of unknown operation %d", c.OperationType)
	}
	if err != nil {
		return exceptionIf(message.ErrInvalid, classInvalidDestination, err)
	}
	done := s.later(&c.BaseCommand)
	if d.IsTemporary() {
		s.server.o.Advisories.after(func() { done(nil) })
	} else {
		done(nil)
	}
	return nil
}

// meant is the destination that the client means by the one that it names.
func (s *session) meant(d *wire.Destination) (message.Destination, error) {
	named, err := d.Destination()
	if err != nil || named.IsZero() || s.server.o.Names == nil {
		return named, err
	}
	return s.server.o.Names(named)
}
