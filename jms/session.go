package jms

import (
	"context"
	"fmt"
	"sync"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// An AckMode says when messages are acknowledged.
type AckMode uint8

// The modes (section 3.2 of the specification).
const (
	// AutoAcknowledge acknowledges each message when Receive returns it, or when its
	// handler has returned nil.
	AutoAcknowledge AckMode = iota + 1
	// ClientAcknowledge: Message.Acknowledge acknowledges all that the session delivered.
	ClientAcknowledge
	// DupsOKAcknowledge is AutoAcknowledge, for topics in batches.
	DupsOKAcknowledge
	// SessionTransacted: Commit acknowledges.
	SessionTransacted
	// IndividualAcknowledge: Message.Acknowledge acknowledges that message.
	IndividualAcknowledge
)

// String is JMS's name of the mode, in lower case.
func (m AckMode) String() string {
	switch m {
	case AutoAcknowledge:
		return "auto"
	case ClientAcknowledge:
		return "client"
	case DupsOKAcknowledge:
		return "dups-ok"
	case SessionTransacted:
		return "transacted"
	case IndividualAcknowledge:
		return "individual"
	}
	return fmt.Sprintf("AckMode(%d)", uint8(m))
}

// A Session makes producers and consumers, and is the scope of acknowledgements and
// transactions. Its methods may be called by several goroutines, one after another or
// at the same time; but as in JMS, what is acknowledged or committed is the
// session's, so that one goroutine should own it. Handlers of a session's consumers
// run one at a time, on one goroutine.
type Session struct {
	c    *Connection
	id   *wire.SessionID
	info *wire.SessionInfo
	mode AckMode

	handlers sync.WaitGroup // the goroutine that runs handlers

	// Guarded by the connection's mutex.
	changed   bell
	consumers []*Consumer
	producers []*Producer
	consumerN int64
	producerN int64
	tx        *transaction // nil: none is open
	ending    bool         // the transaction's end is under way
	running   bool         // the handlers' goroutine
	runner    int64        // its number
	closed    bool
	root      context.Context // of handlers
	cancel    context.CancelFunc
}

// CreateSession opens a session. It does not wait for the broker.
func (c *Connection) CreateSession(mode AckMode) (*Session, error) {
	if mode < AutoAcknowledge || mode > IndividualAcknowledge {
		return nil, &Error{Op: "create session", Kind: ErrIllegalState, Text: fmt.Sprintf("there is no acknowledge mode %d", mode)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.aliveLocked("create session"); err != nil {
		return nil, err
	}
	c.sessionN++
	s := &Session{c: c, mode: mode, id: &wire.SessionID{ConnectionID: c.id, Value: c.sessionN}}
	s.info = &wire.SessionInfo{SessionID: s.id}
	s.root, s.cancel = context.WithCancel(c.root)
	c.sessions = append(c.sessions, s)
	c.postLocked(s.info)
	return s, nil
}

// Mode is how the session acknowledges.
func (s *Session) Mode() AckMode { return s.mode }

// Transacted reports whether the session has transactions.
func (s *Session) Transacted() bool { return s.mode == SessionTransacted }

// Connection is the session's connection.
func (s *Session) Connection() *Connection { return s.c }

func (s *Session) aliveLocked(op string) error {
	if err := s.c.aliveLocked(op); err != nil {
		return err
	}
	if s.closed {
		return &Error{Op: op, Kind: ErrClosed, Text: "the session is closed"}
	}
	return nil
}

// Close closes the session with its producers and consumers; an open transaction is
// rolled back. It waits for a handler that runs, so it must not be called from one: that
// is ErrIllegalState.
func (s *Session) Close() error {
	c := s.c
	c.mu.Lock()
	if s.closed {
		c.mu.Unlock()
		return nil
	}
	if s.running && s.runner == goroutine() {
		c.mu.Unlock()
		return selfClose("close session")
	}
	s.stopLocked()
	c.mu.Unlock()
	s.handlers.Wait()
	ctx, done := context.WithTimeout(context.Background(), closeBound(c.o.Timeouts.Close))
	defer done()
	last := s.dispose(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeSessionLocked(s)
	if c.failure == nil && !c.closing {
		c.postLocked(&wire.RemoveInfo{ObjectID: s.id, LastDeliveredSequenceID: last})
	}
	return nil
}

// stopLocked lets nothing more begin.
func (s *Session) stopLocked() {
	s.closed = true
	s.cancel()
	s.changed.ring()
}

// dispose rolls back what is open and lets the session's objects go (R-CLIENT-56). It
// gives the last message that the application had. Each consumer tells its own: one value
// for all, as Java clients send it, says that whatever is older was delivered (R-EDGE-16),
// also what lay in another consumer's window.
func (s *Session) dispose(ctx context.Context) int64 {
	_ = s.endTransaction(ctx, rollbackAtClose, nil) // the broker rolls back what it does not hear of
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	last := int64(wire.LastDeliveredUnknown)
	for _, k := range append([]*Consumer(nil), s.consumers...) {
		k.in.flush(c.now())
		had := k.in.leave()
		s.flushLocked(k)
		last = max(last, had)
		if c.link != nil && c.failure == nil {
			c.postLocked(&wire.RemoveInfo{ObjectID: k.id, LastDeliveredSequenceID: had})
		}
		delete(c.byID, *k.id)
		k.closed = true
	}
	s.consumers, s.producers = nil, nil
	return last
}

// Recover lets every message that the session delivered and that was not acknowledged
// be delivered again, by the policy. It is an error in a transacted session.
func (s *Session) Recover() error { return s.RecoverBecause(nil) }

// RecoverBecause is Recover with what went wrong, which goes to the broker.
func (s *Session) RecoverBecause(cause error) error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.aliveLocked("recover"); err != nil {
		return err
	}
	if s.Transacted() {
		return &Error{Op: "recover", Kind: ErrIllegalState, Text: "the session is transacted: use Rollback"}
	}
	v := verdictOf(cause)
	for _, k := range s.consumers {
		k.in.failAll(c.now(), func(*delivery) verdict { return v })
		s.flushLocked(k)
	}
	s.changed.ring()
	return nil
}

// acknowledge is Message.Acknowledge.
func (s *Session) acknowledge(ctx context.Context, d *delivery) error {
	c := s.c
	c.mu.Lock()
	if err := s.aliveLocked("acknowledge"); err != nil {
		c.mu.Unlock()
		return err
	}
	if err := d.returnedLocked("acknowledge"); err != nil && (s.mode == ClientAcknowledge || s.mode == IndividualAcknowledge) {
		c.mu.Unlock()
		return err
	}
	switch s.mode {
	case ClientAcknowledge:
		for _, k := range s.consumers {
			k.in.acknowledgeAll()
		}
	case IndividualAcknowledge:
		if !d.consumer.in.acknowledgeOne(d) {
			c.mu.Unlock()
			return nil // acknowledged, or failed, before
		}
	}
	var calls []*call
	for _, k := range s.consumers {
		calls = append(calls, s.flushLocked(k)...)
		k.finishLocked()
	}
	c.mu.Unlock()
	for _, k := range calls {
		if _, err := c.await(ctx, "acknowledge", k); err != nil {
			return err
		}
	}
	return nil
}

// failOne is Message.Fail.
func (s *Session) failOne(d *delivery, cause error) error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.aliveLocked("fail message"); err != nil {
		return err
	}
	if s.mode != ClientAcknowledge && s.mode != IndividualAcknowledge {
		return &Error{Op: "fail message", Kind: ErrIllegalState, Text: "in a session of mode " + s.mode.String() + ": use Rollback, or a handler"}
	}
	if err := d.returnedLocked("fail message"); err != nil {
		return err
	}
	d.consumer.in.failOne(d, c.now(), verdictOf(cause))
	s.flushLocked(d.consumer)
	s.changed.ring()
	return nil
}

// returnedLocked is the error of whoever would still settle a message that has gone back
// to the broker.
func (d *delivery) returnedLocked(op string) error {
	if d.consumer.closed && d.stage != gone {
		return &Error{Op: op, Kind: ErrClosed, Text: "the message's consumer is closed, and the message has gone back to the broker"}
	}
	return nil
}

// flushLocked sends what a consumer's inbox wants to tell the broker. The calls are those
// to be waited for (sendAcksAsync=false).
func (s *Session) flushLocked(k *Consumer) (calls []*call) {
	acks := k.in.acks
	if len(acks) == 0 {
		return nil
	}
	k.in.acks = nil
	for _, a := range acks {
		if a.TransactionID == pendingTx || a.AckType == wire.AckDelivered && s.tx != nil {
			if s.tx == nil {
				s.beginLocked()
			}
			a.TransactionID = s.tx.id
		}
		final := a.AckType == wire.AckStandard || a.AckType == wire.AckIndividual
		if final && !s.c.o.SendAcksAsync && !s.Transacted() {
			calls = append(calls, s.c.callLocked(a, nil))
			continue
		}
		s.c.postLocked(a)
	}
	return calls
}

// now is the time in Unix milliseconds.
func (c *Connection) now() int64 { return c.clock.Now().UnixMilli() }
