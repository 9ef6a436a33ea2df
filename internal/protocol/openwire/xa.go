package openwire

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// Answers to PREPARE, as javax.transaction.xa.XAResource has them (OpenWire 11).
const (
	xaOK       = 0
	xaReadOnly = 3
)

// Error codes of javax.transaction.xa.XAException. Java clients read them from the
// end of the text, since the wire has no field for them (OpenWire 11).
const (
	xaHeuristicRollback = 6   // XA_HEURRB
	xaHeuristicCommit   = 7   // XA_HEURCOM
	xaRolledBack        = 100 // XA_RBROLLBACK
	xaTimedOut          = 106 // XA_RBTIMEOUT
	xaResourceError     = -3  // XAER_RMERR
	xaUnknown           = -4  // XAER_NOTA
	xaInvalid           = -5  // XAER_INVAL
	xaProtocol          = -6  // XAER_PROTO
	xaUnavailable       = -7  // XAER_RMFAIL
	xaDuplicate         = -8  // XAER_DUPID
)

// xaCodes says which code each kind of failure is.
var xaCodes = []struct {
	kind error
	code int
}{
	{message.ErrNotFound, xaUnknown},
	{message.ErrExists, xaDuplicate},
	{message.ErrInvalid, xaInvalid},
	{message.ErrState, xaProtocol},
	{message.ErrDenied, xaResourceError},
	{message.ErrOverLimit, xaResourceError},
	{message.ErrUnavailable, xaUnavailable},
	{message.ErrCorrupt, xaResourceError},
}

// maxXATextBytes is how much of a text goes before the code, which must not be cut off.
const maxXATextBytes = 900

// xaException is err as a Java client's XAException.
func xaException(err error) error {
	code := xaResourceError
	for _, k := range xaCodes {
		if errors.Is(err, k.kind) {
			code = k.code
			break
		}
	}
	if ended, ok := errors.AsType[*broker.TransactionEndedError](err); ok {
		switch {
		case ended.ByHand && ended.Committed:
			code = xaHeuristicCommit
		case ended.ByHand:
			code = xaHeuristicRollback
		case ended.TimedOut:
			code = xaTimedOut
		default:
			code = xaRolledBack
		}
	}
	text := err.Error()
	if len(text) > maxXATextBytes {
		text = text[:maxXATextBytes] + exceptionTextContinuation // what it cut in half is made good when it is sent
	}
	return exceptionf(classXA, "%s xaErrorCode:%d", text, code)
}

func notStartedXA(id *wire.XATransactionID) error {
	return xaException(fmt.Errorf("Transaction '%s' has not been started.%w", xidOf(id), quiet{message.ErrNotFound}))
}

// A quiet error is of a kind and says nothing.
type quiet struct{ kind error }

func (quiet) Error() string   { return "" }
func (q quiet) Unwrap() error { return q.kind }

func xidOf(id *wire.XATransactionID) message.XID {
	return message.XID{Format: id.FormatID, Global: string(id.GlobalTransactionID), Branch: string(id.BranchQualifier)}
}

// maxRecovered is how many transactions a RECOVER lists, the oldest. The wire's arrays
// end at 32,767; a longer list would end the connection of every transaction manager
// that asks, and nothing could be recovered any more. What is left out is listed when
// those before it have ended, as a manager asks again.
const maxRecovered = 10_000

// maxRecoveredShare is the part of the frame that a client takes which the names in such
// a list may fill.
const maxRecoveredShare = 4

// recover lists what is prepared (OpenWire 11): never null, or clients fail.
func (s *session) recover(c *wire.TransactionInfo) {
	if !c.ResponseRequired {
		return
	}
	all := s.server.o.Broker.Recover()
	data := []wire.DataStructure{}
	room := s.settings.MaxFrame / maxRecoveredShare
	for _, x := range all {
		room -= int64(len(x.Global) + len(x.Branch))
		if len(data) == maxRecovered || room < 0 && len(data) > 0 {
			s.log.LogAttrs(s.ctx, slog.LevelWarn, "more transactions are prepared than are listed at a time; the others are when these have ended",
				slog.Int(keyCount, len(all)), slog.Int("listed", len(data)))
			break
		}
		data = append(data, &wire.XATransactionID{FormatID: x.Format, GlobalTransactionID: []byte(x.Global), BranchQualifier: []byte(x.Branch)})
	}
	s.out.post(&wire.DataArrayResponse{CorrelationID: c.CommandID, Data: data})
}

// xaTransaction carries out what concerns a distributed transaction (OpenWire 11).
// All but its begin and end may come over any connection.
func (s *session) xaTransaction(c *wire.TransactionInfo, id *wire.XATransactionID) error {
	xid := xidOf(id)
	b := s.client.broker
	t := s.client.transactions[xid.String()] // nil: this connection has no share in it
	switch c.Type {
	case wire.TransactionBegin:
		if err := s.beginXA(xid, c.CommandID); err != nil {
			return err
		}
		s.answer(&c.BaseCommand, nil)
	case wire.TransactionEnd: // also where the client only suspends it: it begins again to resume
		if t != nil && !t.over {
			s.complete(t, c.CommandID)
		}
		s.answer(&c.BaseCommand, nil)
	case wire.TransactionPrepare:
		if t != nil && t.over {
			s.prepared(&c.BaseCommand, false, nil)
			return nil
		}
		if t != nil {
			s.complete(t, c.CommandID)
		}
		b.PrepareXA(s.ctx, xid, func(readOnly bool, err error) { s.prepared(&c.BaseCommand, readOnly, err) })
	case wire.TransactionCommitOnePhase, wire.TransactionCommitTwoPhase:
		onePhase := c.Type == wire.TransactionCommitOnePhase
		if t != nil && !t.over && onePhase {
			s.complete(t, c.CommandID)
		}
		delete(s.client.transactions, xid.String())
		b.CommitXA(s.ctx, xid, onePhase, s.out.over(xid.String(), true, s.committed(c, xid, t)))
	case wire.TransactionRollback:
		delete(s.client.transactions, xid.String())
		b.RollbackXA(s.ctx, xid, s.out.over(xid.String(), false, s.ended(c)))
	case wire.TransactionForget:
		delete(s.client.transactions, xid.String())
		b.ForgetXA(s.ctx, xid, s.out.over(xid.String(), false, s.ended(c)))
	default:
		return exceptionf(classIO, "TransactionInfo of unknown type %d", c.Type)
	}
	return nil
}

// prepared answers a PREPARE. Clients cast the answer, so a plain Response will not do.
func (s *session) prepared(c *wire.BaseCommand, readOnly bool, err error) {
	switch {
	case err != nil:
		s.answer(c, xaException(err))
	case c.ResponseRequired:
		r := &wire.IntegerResponse{CorrelationID: c.CommandID, Result: xaOK}
		if readOnly {
			r.Result = xaReadOnly
		}
		s.out.post(r)
	}
}

// ended answers what ends a transaction.
func (s *session) ended(c *wire.TransactionInfo) func(error) {
	done := s.later(&c.BaseCommand)
	return func(err error) {
		if err != nil {
			err = xaException(err)
		}
		done(err)
	}
}

// committed answers a commit. One that the client repeats after its connection was
// lost, and that was done already, is done.
func (s *session) committed(c *wire.TransactionInfo, xid message.XID, t *transaction) func(error) {
	done, b := s.ended(c), s.client.broker
	return func(err error) {
		if t != nil && t.over && errors.Is(err, message.ErrNotFound) && b.CommittedXA(xid) {
			err = nil
		}
		done(err)
	}
}

// manyTransactions is how many distributed transactions a connection may have a share
// in before those that others have ended are looked for.
const manyTransactions = 1000

// beginXA begins a distributed transaction, joins one, or goes on with one that was
// suspended: the wire does not tell these apart.
func (s *session) beginXA(xid message.XID, begun int32) error {
	key := xid.String()
	b := s.client.broker
	t := s.client.transactions[key]
	if t != nil && !t.over && !b.HasXA(xid) {
		t = nil // someone has ended it, and this is another one of that name
	}
	if t == nil {
		s.dropEnded()
		if err := s.room("transactions", len(s.client.transactions)); err != nil {
			return xaException(err)
		}
	}
	over, err := b.BeginXA(xid, s.generation != 0)
	if err != nil {
		return xaException(err)
	}
	if t == nil {
		t = s.newTransaction(key, begun)
		t.distributed = true
		s.client.transactions[key] = t
	}
	t.over = over
	return nil
}

// dropEnded forgets the distributed transactions that were ended over other
// connections, or by hand, where there are many.
func (s *session) dropEnded() {
	all := s.client.transactions
	if len(all) < manyTransactions || len(all) < s.client.looked {
		return
	}
	for key := range all {
		if x, err := message.ParseXID(key); err == nil && !s.client.broker.HasXA(x) {
			delete(all, key)
		}
	}
	s.client.looked = 2 * len(all)
}
