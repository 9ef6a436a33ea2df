package jms

import (
	"context"
	"errors"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// CreateTemporaryQueue makes a queue that only this connection may consume, and that
// goes with it. Others may send to it: put it into a message's ReplyTo.
func (s *Session) CreateTemporaryQueue(ctx context.Context) (Destination, error) {
	return s.createTemporary(ctx, message.TempQueue)
}

// CreateTemporaryTopic makes a topic as CreateTemporaryQueue makes a queue.
func (s *Session) CreateTemporaryTopic(ctx context.Context) (Destination, error) {
	return s.createTemporary(ctx, message.TempTopic)
}

func (s *Session) createTemporary(ctx context.Context, kind message.DestinationKind) (Destination, error) {
	c := s.c
	c.mu.Lock()
	if err := s.aliveLocked("create temporary destination"); err != nil {
		c.mu.Unlock()
		return Destination{}, err
	}
	d := message.Destination{Kind: kind, Name: fmt.Sprintf("%s:%d", c.id, len(c.temps)+1)}
	for n := len(c.temps) + 2; c.temps[d] != nil; n++ {
		d.Name = fmt.Sprintf("%s:%d", c.id, n)
	}
	info := &wire.DestinationInfo{ConnectionID: c.user.ConnectionID, Destination: wire.NewDestination(d), OperationType: wire.DestinationAdd}
	c.temps[d], c.known[d] = info, true
	k := c.callLocked(info, nil)
	c.mu.Unlock()
	if _, err := c.await(ctx, "create "+d.String(), k); err != nil {
		c.mu.Lock()
		delete(c.temps, d)
		delete(c.known, d)
		c.mu.Unlock()
		return Destination{}, err
	}
	return Destination{d: d}, nil
}

// DeleteTemporary deletes a temporary destination that this connection made.
func (c *Connection) DeleteTemporary(ctx context.Context, d Destination) error {
	op := "delete " + d.String()
	c.mu.Lock()
	if err := c.aliveLocked(op); err != nil {
		c.mu.Unlock()
		return err
	}
	if c.temps[d.d] == nil {
		c.mu.Unlock()
		return &Error{Op: op, Kind: ErrInvalidDestination, Text: "this connection has made no such temporary destination"}
	}
	delete(c.temps, d.d)
	delete(c.known, d.d)
	k := c.callLocked(&wire.DestinationInfo{ConnectionID: c.user.ConnectionID, Destination: d.wire(), OperationType: wire.DestinationRemove}, nil)
	c.mu.Unlock()
	_, err := c.await(ctx, op, k)
	return err
}

// Advisories of temporary destinations (OpenWire 12).
const (
	advisoryTopics   = "ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"
	advisoryPrefetch = 1000
	advisoryBatch    = 751
	ownSession       = -1
)

// watchLocked begins to watch the advisories of temporary destinations.
func (c *Connection) watchLocked() {
	if !c.o.WatchTopicAdvisories || c.watching != nil {
		return
	}
	k := &Consumer{id: &wire.ConsumerID{ConnectionID: c.id, SessionID: ownSession, Value: 1}}
	k.info = &wire.ConsumerInfo{ConsumerID: k.id, Destination: &wire.Destination{Kind: wire.CodeActiveMQTopic, PhysicalName: advisoryTopics},
		PrefetchSize: advisoryPrefetch, NoLocal: true, DispatchAsync: true}
	c.watching = k
	c.byID[*k.id] = k
	c.callLocked(k.info, func(err error) {
		if err == nil || c.watching != k {
			return
		}
		// A consumer that the broker refused is none: there is nothing to remove at the end.
		c.watching = nil
		delete(c.byID, *k.id)
		if errors.Is(err, ErrSecurity) {
			err = fmt.Errorf("%w; give the user read, write and admin on topic ActiveMQ.Advisory.>, or connect with jms.watchTopicAdvisories=false", err)
		}
		if c.failure == nil && !c.closing {
			c.events.post(event{err: &Error{Op: "watch temporary destinations", Err: err}})
		}
	})
}

// advisoryLocked learns of a temporary destination that came or went.
func (c *Connection) advisoryLocked(m *wire.MessageDispatch) {
	if m.Message == nil {
		return
	}
	if info, ok := m.Message.DataStructure.(*wire.DestinationInfo); ok {
		if d := fromWire(info.Destination); !d.IsZero() {
			if info.OperationType == wire.DestinationAdd {
				c.known[d.d] = true
			} else if c.temps[d.d] == nil {
				delete(c.known, d.d)
			}
		}
	}
	in := &c.watching.in
	if in.order++; in.order >= advisoryBatch { // rarely, as Java does
		c.postLocked(&wire.MessageAck{Destination: m.Destination, ConsumerID: c.watching.id, AckType: wire.AckStandard,
			LastMessageID: m.Message.MessageID, MessageCount: int32(in.order)})
		in.order = 0
	}
}
