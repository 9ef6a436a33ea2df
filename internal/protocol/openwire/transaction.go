package openwire

import (
	"context"
	"errors"
	"sync"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A transaction is one that is open on this connection: a local one, or its share of
// a distributed one.
type transaction struct {
	id string // what the broker calls it
	// over says that a client, which has come back, repeats on this connection what it
	// did before of a distributed transaction that was prepared then, or committed: it
	// is answered, and nothing is done.
	over bool

	// sessions are those of its sends and acknowledgements; acked says that it has
	// acknowledgements, resumed that it was open on the client's connection before,
	// and may have had some there. The reader owns them.
	sessions       map[wire.SessionID]bool
	acked, resumed bool
	// begun is the number of its begin. repeated says that this may be the repetition
	// of one that was lost with the connection before; distributed, that it is XA's.
	begun                 int32
	repeated, distributed bool

	mu      sync.Mutex
	pending int           // commands that nobody waits for, and that the broker has not answered
	idle    chan struct{} // closed when pending comes down to 0; nil while nobody waits for that
	failed  error         // of such commands
}

// part is done for a command of the transaction: if it fails, and nobody waits
// for its answer, the transaction can only be rolled back (R-BRK-13).
func (t *transaction) part(c *wire.BaseCommand, done func(error)) func(error) {
	if c.ResponseRequired {
		return done
	}
	t.mu.Lock()
	t.pending++
	t.mu.Unlock()
	return func(err error) {
		done(err)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.pending--
		if err != nil {
			t.failed = errors.Join(t.failed, err)
		}
		if t.pending == 0 && t.idle != nil {
			close(t.idle)
			t.idle = nil
		}
	}
}

// spoil lets a transaction only be rolled back if a command of it fails before it
// gets to the broker, and nobody waits for its answer (R-BRK-13). It returns err.
func (s *session) spoil(id wire.TransactionID, c *wire.BaseCommand, err error) error {
	if err == nil || id == nil || c.ResponseRequired || s.client == nil {
		return err
	}
	if t, unknown := s.transaction(id); unknown == nil {
		t.part(c, func(error) {})(err)
	}
	return err
}

// outcome waits until all of the transaction is answered, and tells what failed.
func (t *transaction) outcome(ctx context.Context) error {
	t.mu.Lock()
	if t.pending == 0 {
		defer t.mu.Unlock()
		return t.failed
	}
	idle := make(chan struct{})
	t.idle = idle
	t.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// transaction finds an open transaction.
func (s *session) transaction(id wire.TransactionID) (*transaction, error) {
	if t := s.client.transactions[transactionKey(id)]; t != nil {
		return t, nil
	}
	if xa, ok := id.(*wire.XATransactionID); ok {
		return nil, notStartedXA(xa)
	}
	return nil, notStarted(id)
}

// transactionKey is what the broker calls a transaction.
func transactionKey(id wire.TransactionID) string {
	if xa, ok := id.(*wire.XATransactionID); ok {
		return xidOf(xa).String()
	}
	return id.String()
}

func notStarted(id wire.TransactionID) error {
	return exceptionf(classJMS, "Transaction '%s' has not been started.", id)
}

// transactionInfo begins and ends transactions (OpenWire 11).
func (s *session) transactionInfo(c *wire.TransactionInfo) error {
	if err := s.connected("transaction"); err != nil {
		return err
	}
	if c.Type == wire.TransactionRecover {
		s.recover(c)
		return nil
	}
	switch id := c.TransactionID.(type) {
	case *wire.LocalTransactionID:
		return s.localTransaction(c, id)
	case *wire.XATransactionID:
		return s.xaTransaction(c, id)
	}
	return exceptionf(classJMS, "TransactionInfo %v has no transaction id", c.Type)
}

func (s *session) localTransaction(c *wire.TransactionInfo, id *wire.LocalTransactionID) error {
	tx := id.String()
	switch c.Type {
	case wire.TransactionBegin:
		if err := s.begin(tx, c.CommandID); err != nil {
			return err
		}
		s.answer(&c.BaseCommand, nil)
	case wire.TransactionEnd:
		s.answer(&c.BaseCommand, nil)
	case wire.TransactionCommitOnePhase:
		t, err := s.transaction(id)
		if err != nil {
			return err
		}
		s.complete(t, c.CommandID)
		delete(s.client.transactions, tx)
		done := s.out.over(tx, true, s.later(&c.BaseCommand))
		s.client.broker.Commit(s.ctx, tx, func(err error) { done(commitError(id, err)) })
	case wire.TransactionRollback, wire.TransactionForget:
		if _, err := s.transaction(id); err != nil {
			return err
		}
		delete(s.client.transactions, tx)
		s.client.broker.Rollback(s.ctx, tx, s.out.over(tx, false, s.later(&c.BaseCommand)))
	case wire.TransactionPrepare, wire.TransactionCommitTwoPhase:
		return exceptionf(classJMS, "transaction %s is a local one, it has no %v", tx, c.Type)
	default:
		return exceptionf(classIO, "TransactionInfo of unknown type %d", c.Type)
	}
	return nil
}

// complete waits until all of a transaction is answered. If anything of it failed, or
// is missing, it can only be rolled back. end is the number of the command that ends it.
func (s *session) complete(t *transaction, end int32) {
	if err := t.outcome(s.ctx); err != nil {
		s.client.broker.MarkRollbackOnly(t.id, err)
	}
	if t.resumed && !t.acked || s.misses(t, end) {
		s.client.broker.MarkRollbackOnly(t.id, errNotReplayed)
	}
}

// begin opens a transaction. One that is open already stays as it is (OpenWire 13).
func (s *session) begin(tx string, begun int32) error {
	if s.client.transactions[tx] != nil {
		return nil
	}
	if err := s.room("transactions", len(s.client.transactions)); err != nil {
		return err
	}
	if err := s.client.broker.Begin(tx); err != nil {
		return err
	}
	s.client.transactions[tx] = s.newTransaction(tx, begun)
	return nil
}

func (s *session) newTransaction(tx string, begun int32) *transaction {
	return &transaction{id: tx, sessions: map[wire.SessionID]bool{}, resumed: s.generation != 0 && s.server.interrupted.was(s.client.id, tx),
		begun: begun, repeated: s.mayRepeat()}
}

// commitError is what a failed commit is for the client: the transaction has been
// rolled back, unless nobody can know.
func commitError(id wire.TransactionID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, broker.ErrNotStarted):
		return notStarted(id)
	case errors.Is(err, message.ErrUnavailable):
		return err
	}
	return exception(classRolledBack, err)
}
