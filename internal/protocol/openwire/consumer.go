package openwire

import (
	"errors"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/selector"
)

// consumerInfo opens a consumer, durable subscription or browser (OpenWire 10.1).
// Its first dispatches may come before the answer. What a consumer of advisories is told
// of at once does, and before what consumers get that the client opens, or opens again,
// next: it refuses to answer to a temporary destination that it does not know.
func (s *session) consumerInfo(c *wire.ConsumerInfo) error {
	if c.ConsumerID == nil {
		return exceptionf(classJMS, "ConsumerInfo has no consumer id")
	}
	session := c.ConsumerID.Session()
	if err := s.knownSession(session, "consumer", c.ConsumerID.String()); err != nil {
		return err
	}
	from, err := s.meant(c.Destination)
	if errors.Is(err, message.ErrNotFound) {
		return exception(classInvalidDestination, err)
	}
	if err != nil || from.IsZero() {
		return exceptionf(classInvalidDestination, "consumer %s has no destination", c.ConsumerID)
	}
	if s.client.consumers[*c.ConsumerID] != "" {
		return nil // a replay after failover
	}
	if err := s.room("consumers", len(s.client.consumers)); err != nil {
		return err
	}
	if limit := s.server.o.Limits.Consumers; limit > 0 && session.Value != connectionSession {
		if err := s.mayAdd("consumer", c.ConsumerID.String(), s.client.ownConsumers(), limit); err != nil {
			return err
		}
	}
	spec := broker.ConsumerSpec{
		ID:          c.ConsumerID.String(),
		Session:     session.String(),
		Destination: from,
		Prefetch:    int(max(c.PrefetchSize, 0)),
		Selector:    c.Selector.Value,
		NoLocal:     c.NoLocal,
		Browser:     c.Browser,
		Exclusive:   c.Exclusive,
		Retroactive: c.Retroactive,
		Priority:    c.Priority,
		MostWaiting: int(max(c.MaximumPendingMessageLimit, 0)),
	}
	if from.IsTopic() {
		spec.Subscription = c.SubscriptionName.Value
	}
	spec.Prefetch = s.prefetch(c.ConsumerID, c.PrefetchSize, s.client.broker.Window(spec))
	if several(from) && !spec.Browser {
		s.out.several(spec.ID)
	}
	if err := s.client.broker.Subscribe(s.ctx, spec); err != nil {
		s.out.forget(spec.ID, 0)
		if _, bad := selector.Parse(spec.Selector); bad != nil && errors.Is(err, message.ErrInvalid) {
			return exception(classInvalidSelector, err)
		}
		return exceptionIf(message.ErrNotFound, classInvalidDestination, exceptionIf(message.ErrInvalid, classInvalidDestination, err))
	}
	s.client.consumers[*c.ConsumerID] = spec.ID
	if n := s.server.o.Advisories.welcome(s.ctx, s.server.o.Broker, s.client.broker, spec); n > 0 {
		s.handedOut(spec, n)
	}
	return nil
}

// handedOut waits until a consumer has been handed what was offered to it. What a Java
// client needs to know goes to it whatever its window, which is what it is again when the
// answer comes.
func (s *session) handedOut(spec broker.ConsumerSpec, offered int) {
	if spec.Prefetch > 0 && onlyTemps(spec.Destination.Parts()) {
		s.client.broker.SetPrefetch(s.ctx, spec.ID, spec.Prefetch+offered, nil)
	}
	answered := make(chan struct{})
	s.client.broker.SetPrefetch(s.ctx, spec.ID, spec.Prefetch, func(error) { close(answered) })
	select {
	case <-answered:
	case <-s.ctx.Done():
	}
}

// prefetch is the window that a consumer gets: what it is to have, within our
// limit. One that gets something else than it wanted is told: it sends
// acknowledgements by the share of the window that is used.
func (s *session) prefetch(id *wire.ConsumerID, wanted int32, window int) int {
	window = min(window, s.server.o.Limits.Prefetch)
	if window != int(max(wanted, 0)) {
		s.out.post(&wire.ConsumerControl{ConsumerID: id, Prefetch: int32(window)})
	}
	return window
}

// consumerControl sets the window of a consumer (OpenWire 13, R-CLIENT-61).
func (s *session) consumerControl(c *wire.ConsumerControl) error {
	if c.ConsumerID == nil || s.client == nil || s.client.consumers[*c.ConsumerID] == "" || c.Close {
		s.answer(&c.BaseCommand, nil)
		return nil
	}
	s.client.broker.SetPrefetch(s.ctx, c.ConsumerID.String(), s.prefetch(c.ConsumerID, c.Prefetch, int(max(c.Prefetch, 0))), s.later(&c.BaseCommand))
	return nil
}

// messagePull asks for a message (OpenWire 10.5).
func (s *session) messagePull(c *wire.MessagePull) error {
	if c.ConsumerID == nil || s.client == nil || s.client.consumers[*c.ConsumerID] == "" {
		return exceptionf(classIllegalArgument, "pull: consumer %v is not open on this connection", c.ConsumerID)
	}
	timeout := time.Duration(-1)
	if c.Timeout >= 0 {
		timeout = time.Duration(min(c.Timeout, maxPullMillis)) * time.Millisecond
	}
	return exceptionIf(message.ErrNotFound, classIllegalArgument, s.client.broker.Pull(s.ctx, c.ConsumerID.String(), timeout))
}

// maxPullMillis is the longest wait of a pull: a century, in milliseconds.
const maxPullMillis = 100 * 365 * 24 * 3600 * 1000

// removeSubscription deletes a durable subscription of this client (OpenWire 9.3).
func (s *session) removeSubscription(c *wire.RemoveSubscriptionInfo) error {
	if err := s.connected("remove subscription"); err != nil {
		return err
	}
	return exceptionIf(message.ErrNotFound, classInvalidDestination, s.client.broker.Unsubscribe(s.ctx, c.SubscriptionName.Value))
}
