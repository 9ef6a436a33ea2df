package openwire

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A client is what a connection has opened. Its owner is the session's reader.
type client struct {
	id           string
	broker       Connection
	sessions     map[wire.SessionID]bool
	producers    map[wire.ProducerID]*producer
	consumers    map[wire.ConsumerID]string // with their texts
	transactions map[string]*transaction    // that are open, by what the broker calls them
	looked       int                        // how many there may be before ended ones are looked for
}

// A producer is what is kept about one.
type producer struct {
	text   string // of its id
	window int32  // bytes; above 0: wants a ProducerAck for what it does not wait for
}

// connectionSession is the value of the session id that a connection's own
// consumers have; nobody opens it (OpenWire 9.2).
const connectionSession = -1

// connectionInfo registers the client (OpenWire 9.3, 13, 14).
func (s *session) connectionInfo(c *wire.ConnectionInfo) error {
	switch {
	case c.ConnectionID == nil || c.ConnectionID.Value == "":
		s.refuse(&c.BaseCommand, exceptionf(classJMS, "ConnectionInfo has no connection id"))
		return nil
	case s.client != nil && s.client.id == c.ConnectionID.Value:
		s.answer(&c.BaseCommand, nil) // a replay after failover
		return nil
	case s.client != nil:
		s.answer(&c.BaseCommand, exceptionf(classIllegalState, "this network connection is that of %s", s.client.id))
		return nil
	case c.ClientID.Value == "":
		s.refuse(&c.BaseCommand, exceptionf(classInvalidClientID, "ConnectionInfo has no client id"))
		return nil
	}
	// A client without credentials sends neither; an empty text is one (section 7.8).
	principal, err := s.server.o.Access.Authenticate(c.UserName.Value, c.Password.Value, c.UserName.Valid || c.Password.Valid)
	if err != nil {
		s.refuse(&c.BaseCommand, err)
		return nil
	}
	connection, err := s.server.o.Broker.Connect(s.ctx, broker.ClientInfo{
		ID:         c.ConnectionID.Value,
		ClientID:   c.ClientID.Value,
		User:       cmp.Or(principal.User(), c.UserName.Value),
		Principal:  principal,
		Address:    s.conn.RemoteAddr().String(),
		Protocol:   "openwire",
		Listener:   s.server.o.Listener,
		Reconnect:  c.FailoverReconnect,
		MayRepeat:  c.FaultTolerant,
		Manageable: c.Manageable,
		Steals:     s.server.o.LinkStealing,
		QuietFirst: quietFirst(s.peer),
		Kick:       s.fail,
	}, s.out)
	if err != nil {
		s.refuse(&c.BaseCommand, exceptionIf(message.ErrExists, classInvalidClientID, err))
		return nil
	}
	if c.FailoverReconnect {
		s.generation = s.server.generations.next(s.server.o.Clock.Now().UnixMilli())
		s.out.cameBack(s.generation)
		s.gaps = &gaps{until: s.server.o.Clock.Now().Add(replayTime)}
	}
	s.client = &client{
		id:           c.ConnectionID.Value,
		broker:       connection,
		sessions:     map[wire.SessionID]bool{{ConnectionID: c.ConnectionID.Value, Value: connectionSession}: true},
		producers:    map[wire.ProducerID]*producer{},
		consumers:    map[wire.ConsumerID]string{},
		transactions: map[string]*transaction{},
	}
	s.pulse.known.Store(true)
	s.welcome(c)
	return nil
}

// refuse answers a command that ends the connection, and ends it a little later,
// so that the peer can read the answer.
func (s *session) refuse(c *wire.BaseCommand, err error) {
	s.answer(c, err)
	if s.refused {
		return
	}
	s.refused = true
	s.log.LogAttrs(s.ctx, slog.LevelWarn, "openwire connection refused", slog.Any(keyError, err))
	s.after(refusalDelay, func() { s.fail(errRefused) })
}

// after does something a while later, if the connection lasts. It is for the reader.
func (s *session) after(d time.Duration, do func()) {
	s.helped.Go(func() {
		wake, stop := s.server.o.Clock.At(s.server.o.Clock.Now().Add(d))
		defer stop()
		select {
		case <-wake:
			do()
		case <-s.ctx.Done():
		}
	})
}

// closeClient takes what the client has opened back.
func (s *session) closeClient(cause message.Cause, text string, last int64) {
	if s.client != nil {
		s.server.directory.leave(s.out)
		if cause != message.Closed {
			s.server.interrupted.lose(s.client)
		}
		closed := make(chan struct{})
		done := s.closeSeveral(last, func(wire.ConsumerID) bool { return true }, func(error) { close(closed) })
		s.client.broker.Close(cause, text, last)
		done(nil)
		select {
		case <-closed:
		case <-s.ctx.Done():
		}
		s.client = nil
		s.pulse.known.Store(false)
	}
}

// sessionInfo registers a session. Before ConnectionInfo it is answered and
// forgotten (OpenWire 14).
func (s *session) sessionInfo(c *wire.SessionInfo) error {
	if c.SessionID == nil {
		return exceptionf(classJMS, "SessionInfo has no session id")
	}
	if s.client == nil || c.SessionID.ConnectionID != s.client.id || s.client.sessions[*c.SessionID] {
		return nil
	}
	if err := s.room("sessions", len(s.client.sessions)); err != nil {
		return err
	}
	s.client.sessions[*c.SessionID] = true
	return nil
}

// producerInfo registers a producer.
func (s *session) producerInfo(c *wire.ProducerInfo) error {
	if c.ProducerID == nil {
		return exceptionf(classJMS, "ProducerInfo has no producer id")
	}
	if err := s.knownSession(c.ProducerID.Session(), "producer", c.ProducerID.String()); err != nil {
		return err
	}
	p := s.client.producers[*c.ProducerID]
	if p == nil {
		if err := s.room("producers", len(s.client.producers)); err != nil {
			return err
		}
		if err := s.mayAdd("producer", c.ProducerID.String(), len(s.client.producers), s.server.o.Limits.Producers); err != nil {
			return err
		}
		to, err := s.meant(c.Destination)
		if err == nil && !to.IsZero() { // else each message says where it goes
			err = s.client.broker.MayProduce(to)
		}
		if err != nil {
			return exceptionIf(message.ErrNotFound, classInvalidDestination, exceptionIf(message.ErrInvalid, classInvalidDestination, err))
		}
		p = &producer{text: c.ProducerID.String()}
		s.client.producers[*c.ProducerID] = p
		s.client.broker.AddProducer(p.text, to)
	}
	p.window = c.WindowSize
	return nil
}

// knownSession fails where there is no such session.
func (s *session) knownSession(id wire.SessionID, what, of string) error {
	if s.client == nil || !s.client.sessions[id] {
		return exceptionf(classIllegalState, "%s %s: session %s is not open on this connection", what, of, id.String())
	}
	return nil
}

// room fails where the connection has as many objects of a kind as it may have.
func (s *session) room(of string, has int) error {
	if limit := s.server.o.Limits.Objects; has >= limit {
		return fmt.Errorf("the connection has %d %s, the limit is %d: %w", has, of, limit, message.ErrOverLimit)
	}
	return nil
}

// mayAdd fails where a client has as many of its consumers or producers as the listener
// allows.
func (s *session) mayAdd(what, id string, has, limit int) error {
	if limit > 0 && has >= limit {
		return exceptionf(classIllegalState, "cannot add %s %s: the connection has %d, which is all that %s allows; close one, or use another connection",
			what, id, has, map[string]string{"consumer": "maximumConsumersAllowedPerConnection", "producer": "maximumProducersAllowedPerConnection"}[what])
	}
	return nil
}

// ownConsumers is how many consumers the client's application has opened.
func (c *client) ownConsumers() int {
	n := 0
	for id := range c.consumers {
		if id.Session().Value != connectionSession {
			n++
		}
	}
	return n
}

// connected fails before ConnectionInfo and after its end.
func (s *session) connected(what string) error {
	if s.client == nil {
		return exceptionf(classIllegalState, "%s: the connection is not open", what)
	}
	return nil
}

// removeInfo takes back a connection, session, consumer or producer (OpenWire
// 10.7, 14).
func (s *session) removeInfo(c *wire.RemoveInfo) error {
	last, ours := s.generation.position(c.LastDeliveredSequenceID)
	if !ours {
		last = -1 // it was delivered on an earlier connection, and nothing on this one
	}
	if id, ok := c.ObjectID.(*wire.ConnectionID); ok {
		if s.client != nil && s.client.id == id.Value {
			s.closeClient(message.Closed, "connection closed", last) // 0 from Java clients up to 5.11, whatever was delivered: queue.UnsaidLast
		}
		s.answer(&c.BaseCommand, nil)
		return nil
	}
	if last == 0 {
		last = -1 // with the same clients a consumer that delivered nothing
	}
	switch id := c.ObjectID.(type) {
	case *wire.SessionID:
		if err := s.knownSession(*id, "remove", "session"); err != nil {
			return err
		}
		done := s.closeSeveral(last, func(k wire.ConsumerID) bool { return k.Session() == *id }, s.later(&c.BaseCommand))
		s.removeSession(*id)
		s.client.broker.CloseSession(s.ctx, id.String(), last, done)
	case *wire.ConsumerID:
		if s.client == nil || s.client.consumers[*id] == "" {
			return exceptionf(classIllegalState, "remove consumer %s: it is not open on this connection", id)
		}
		delete(s.client.consumers, *id)
		s.client.broker.CloseConsumer(s.ctx, id.String(), s.closing(id.String(), last), unlessGone(s.later(&c.BaseCommand)))
	case *wire.ProducerID:
		if s.client == nil || s.client.producers[*id] == nil {
			return exceptionf(classIllegalState, "remove producer %s: it is not open on this connection", id)
		}
		delete(s.client.producers, *id)
		s.client.broker.CloseProducer(s.ctx, id.String())
		s.answer(&c.BaseCommand, nil)
	default:
		return exceptionf(classJMS, "RemoveInfo of a %T", c.ObjectID)
	}
	return nil
}

// unlessGone answers the removal of a consumer that the broker has removed before,
// since it was too slow, as that of any. (ActiveMQ answers with an error, which tells
// the application's exception listener of nothing it could do.)
func unlessGone(done func(error)) func(error) {
	return func(err error) {
		if errors.Is(err, message.ErrNotFound) {
			err = nil
		}
		done(err)
	}
}

// removeSession forgets what belongs to a session. Its consumers are closed by
// whoever calls it.
func (s *session) removeSession(id wire.SessionID) {
	c := s.client
	delete(c.sessions, id)
	for consumer := range c.consumers {
		if consumer.Session() == id {
			delete(c.consumers, consumer)
		}
	}
	var gone []string
	for p, kept := range c.producers {
		if p.Session() == id {
			delete(c.producers, p)
			gone = append(gone, kept.text)
		}
	}
	slices.Sort(gone) // so that what happens does not depend on the map
	for _, p := range gone {
		c.broker.CloseProducer(s.ctx, p)
	}
}
