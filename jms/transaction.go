package jms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A transaction is a session's open one. Guarded by the connection's mutex.
type transaction struct {
	id    *wire.LocalTransactionID
	sends []*wire.Message // for the replay after a fail-over

	replaying int   // messages that the next broker has not answered
	err       error // what it has refused one with
}

// beginLocked begins a transaction. The broker hears of it before anything that is
// part of it.
func (s *Session) beginLocked() {
	if s.tx != nil {
		return
	}
	s.c.txN++
	s.tx = &transaction{id: &wire.LocalTransactionID{Value: s.c.txN, ConnectionID: s.c.user.ConnectionID}}
	s.c.postLocked(s.beginCommand())
}

func (s *Session) beginCommand() *wire.TransactionInfo {
	return &wire.TransactionInfo{ConnectionID: s.c.user.ConnectionID, TransactionID: s.tx.id, Type: wire.TransactionBegin}
}

// replayTransactionLocked tells the next broker of the open transaction (R-CLIENT-62). What
// it acknowledges is told at the commit, once the messages have come again. It gets a new
// id: a broker that remembers the old one must take it for one that lost its
// acknowledgements, as a Java client's has.
func (s *Session) replayTransactionLocked() {
	if s.tx == nil || s.ending {
		return
	}
	s.c.txN++
	s.tx.id = &wire.LocalTransactionID{Value: s.c.txN, ConnectionID: s.c.user.ConnectionID}
	s.c.postLocked(s.beginCommand())
	for i, m := range s.tx.sends {
		again := cloneCommand(m).(*wire.Message)
		again.TransactionID = s.tx.id
		s.tx.sends[i] = again
		tx := s.tx
		tx.replaying++
		s.c.callLocked(again, func(err error) {
			tx.replaying--
			s.changed.ring()
			if err != nil && !errors.Is(err, ErrUnavailable) && tx.err == nil {
				tx.err = err
			}
		})
	}
}

// An ending says how a transaction ends.
type ending uint8

const (
	commit ending = iota
	rollback
	rollbackAtClose // nothing is delivered again here
)

// Commit ends the transaction: what was sent is delivered, what was received is
// acknowledged, all or nothing. Where it fails the transaction is rolled back, and
// its messages come again. ErrTransactionRolledBack says so; ErrInDoubt that nobody
// knows, because the connection broke, or ctx ended, before the answer. Without a
// transaction it does nothing.
func (s *Session) Commit(ctx context.Context) error {
	if !s.Transacted() {
		return &Error{Op: "commit", Kind: ErrIllegalState, Text: "the session is not transacted"}
	}
	if err := s.awaitReplayed(ctx); err != nil {
		if errors.Is(err, ErrTransactionRolledBack) {
			return errors.Join(err, s.Rollback(ctx))
		}
		return err
	}
	err := s.endTransaction(ctx, commit, nil)
	if err != nil && !errors.Is(err, ErrTransactionRolledBack) {
		var broker *BrokerError
		if errors.As(err, &broker) { // the broker refused: nothing of it took place
			err = &Error{Op: "commit", Kind: ErrTransactionRolledBack, Err: err}
		}
	}
	return err
}

// Rollback undoes the transaction: what was sent is dropped, and what was received is
// delivered again by the policy, each message by itself, or given up. Without a
// transaction it does nothing.
func (s *Session) Rollback(ctx context.Context) error { return s.RollbackBecause(ctx, nil) }

// RollbackBecause is Rollback with what went wrong, which goes to the broker with the
// messages; RetryAfter, DeadLetter and DoNotCount are understood, for all of them.
func (s *Session) RollbackBecause(ctx context.Context, cause error) error {
	return s.rollbackFor(ctx, nil, cause)
}

// RollbackFor is RollbackBecause where only one of the transaction's messages is to
// blame: what cause asks for concerns m; the others are delivered again by the policy.
func (s *Session) RollbackFor(ctx context.Context, m *Message, cause error) error {
	if m == nil || m.delivery == nil {
		return s.rollbackFor(ctx, nil, cause)
	}
	return s.rollbackFor(ctx, m.delivery, cause)
}

func (s *Session) rollbackFor(ctx context.Context, culprit *delivery, cause error) error {
	if !s.Transacted() {
		return &Error{Op: "rollback", Kind: ErrIllegalState, Text: "the session is not transacted: use Recover"}
	}
	blamed := verdictOf(cause)
	return s.endTransaction(ctx, rollback, func(d *delivery) verdict {
		switch {
		case culprit == nil, culprit == d:
			return blamed
		case blamed.uncounted: // it was nobody's fault
			return verdict{uncounted: true}
		}
		return verdict{text: blamed.text, throwable: blamed.throwable}
	})
}

// awaitReplayed waits until there is a broker, and after a fail-over for the messages
// of the transaction to come again, at most consumerFailoverRedeliveryWaitPeriod
// (R-CLIENT-63, R-EDGE-33).
func (s *Session) awaitReplayed(ctx context.Context) error {
	c := s.c
	var until time.Time
	for {
		c.mu.Lock()
		if err := s.aliveLocked("commit"); err != nil {
			c.mu.Unlock()
			return err
		}
		unseen, replaying := 0, false
		if tx := s.tx; tx != nil {
			if tx.err != nil {
				c.mu.Unlock()
				return &Error{Op: "commit", Kind: ErrTransactionRolledBack, Err: tx.err}
			}
			replaying = tx.replaying > 0
		}
		for _, k := range s.consumers {
			unseen += k.in.unseen()
		}
		linked := c.link != nil
		changed, linkChanged := s.changed.wait(), c.changed.wait()
		c.mu.Unlock()
		switch {
		case linked && unseen == 0 && !replaying:
			return nil
		case linked && until.IsZero():
			until = c.clock.Now().Add(c.o.ConsumerFailoverRedeliveryWaitPeriod)
		}
		if linked && unseen > 0 && !c.clock.Now().Before(until) {
			return &Error{Op: "commit", Kind: ErrTransactionRolledBack,
				Text: fmt.Sprintf("the connection failed over, and %d of the transaction's messages did not come again", unseen)}
		}
		if !linked || unseen == 0 {
			until = time.Time{}
		}
		wake, stop := c.clock.At(until)
		select {
		case <-changed:
		case <-linkChanged:
		case <-wake:
		case <-ctx.Done():
			stop()
			return &Error{Op: "commit", Err: context.Cause(ctx)}
		}
		stop()
	}
}

// endTransaction ends the open transaction. What is to happen to the messages happens
// when the broker has answered, whether ctx still waits for that or not.
func (s *Session) endTransaction(ctx context.Context, how ending, causeOf func(*delivery) verdict) error {
	op := "commit"
	if how != commit {
		op = "rollback"
	}
	c := s.c
	c.mu.Lock()
	for s.ending { // an end before this one is under way
		changed := s.changed.wait()
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return &Error{Op: op, Err: context.Cause(ctx)}
		}
		c.mu.Lock()
	}
	if how != rollbackAtClose {
		if err := s.aliveLocked(op); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	if !s.Transacted() || s.tx == nil && !s.holdsLocked() {
		c.mu.Unlock()
		return nil
	}
	if causeOf == nil {
		causeOf = func(*delivery) verdict { return verdict{} }
	}
	k := s.sendEndLocked(how, causeOf)
	c.mu.Unlock()
	_, err := c.await(ctx, op, k)
	if err != nil && k.err == nil && how == commit { // ctx ended first
		err = &Error{Op: op, Kind: ErrInDoubt, Err: err}
	}
	return err
}

// holdsLocked reports whether the application has messages of the session.
func (s *Session) holdsLocked() bool {
	for _, k := range s.consumers {
		if len(k.in.had) > 0 || k.in.unseen() > 0 {
			return true
		}
	}
	return false
}

// sendEndLocked sends the acknowledgements and the end.
func (s *Session) sendEndLocked(how ending, causeOf func(*delivery) verdict) *call {
	c := s.c
	s.beginLocked()
	var counts func(*delivery) bool
	if how != commit { // what does not count is no part of what is rolled back
		counts = func(d *delivery) bool { return !causeOf(d).uncounted }
	}
	for _, k := range s.consumers {
		k.in.endTransaction(counts)
		s.flushLocked(k)
	}
	typ := wire.TransactionCommitOnePhase
	if how != commit {
		typ = wire.TransactionRollback
	}
	cmd := &wire.TransactionInfo{ConnectionID: c.user.ConnectionID, TransactionID: s.tx.id, Type: typ}
	s.ending = true
	then := func(err error) { s.endedLocked(how, causeOf, err) }
	if c.link == nil && how != commit { // whatever the broker had has been rolled back by its end
		k := &call{cmd: cmd, then: then, done: make(chan struct{})}
		k.complete(nil, nil)
		return k
	}
	k := c.callLocked(cmd, then)
	if how == commit && c.failure == nil {
		c.queue.items[len(c.queue.items)-1].skip = s.spoiled(k)
	}
	return k
}

// spoiled keeps a commit from being written where one of the transaction's messages
// could not be: by its turn all of them have been.
func (s *Session) spoiled(k *call) func() bool {
	tx := s.tx
	return func() bool {
		c := s.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if tx.err == nil {
			return false
		}
		c.completeLocked(k.id, nil, &Error{Op: "commit", Kind: ErrTransactionRolledBack, Err: tx.err})
		return true
	}
}

// endedLocked does what follows from the end of a transaction.
func (s *Session) endedLocked(how ending, causeOf func(*delivery) verdict, err error) {
	c := s.c
	id := s.tx.id
	s.tx, s.ending = nil, false
	for _, p := range append([]*Producer(nil), s.producers...) {
		if p.closed {
			p.finishLocked()
		}
	}
	defer s.changed.ring()
	refused := how == commit && err != nil && !errors.Is(err, ErrInDoubt)
	if refused && c.failure == nil && c.link != nil { // the broker may keep it until it is told
		c.callLocked(&wire.TransactionInfo{ConnectionID: c.user.ConnectionID, TransactionID: id, Type: wire.TransactionRollback}, nil)
	}
	for _, k := range s.consumers {
		switch {
		case how == commit && err == nil:
			k.in.committed()
		case how == commit && !refused: // in doubt: they come again unless they were committed
			k.in.forgetUnseen()
		case c.failure != nil:
		default: // rolled back; a commit that was refused is, too
			k.in.forgetUnseen()
			k.in.failAll(c.now(), causeOf)
			s.flushLocked(k)
		}
	}
	for _, k := range append([]*Consumer(nil), s.consumers...) {
		k.finishLocked()
	}
}
