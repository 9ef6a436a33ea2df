package openwire

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

func (p *peer) xa(what wire.TransactionType) *wire.TransactionInfo {
	return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: what}
}

// prepares sends PREPARE and gives the number that it is answered with.
func (p *peer) prepares() int32 {
	p.t.Helper()
	r, ok := p.ask(p.xa(wire.TransactionPrepare)).(*wire.IntegerResponse)
	if !ok {
		p.t.Fatalf("PREPARE was not answered with an IntegerResponse; log:\n%s", p.h.log)
	}
	return r.Result
}

// recovers sends RECOVER and gives what it is answered with.
func (p *peer) recovers() []string {
	p.t.Helper()
	r, ok := p.ask(&wire.TransactionInfo{ConnectionID: p.connection(), Type: wire.TransactionRecover}).(*wire.DataArrayResponse)
	if !ok || r.Data == nil {
		p.t.Fatalf("RECOVER was answered with %+v", r)
	}
	var all []string
	for _, ds := range r.Data {
		all = append(all, xidOf(ds.(*wire.XATransactionID)).String())
	}
	return all
}

// inXA makes a message one of the distributed transaction.
func inXA(m *wire.Message) *wire.Message {
	m.TransactionID = xid()
	return m
}

// takesXA takes a message in a distributed transaction, which also sends one, up to
// its END.
func takesXA(h *house) (p *peer, d *wire.MessageDispatch) {
	p = h.client()
	p.produce(1, 0)
	p.consume(1, queueNamed("Q"), 10)
	p.do(p.text(1, queueNamed("Q"), "taken"))
	d = p.dispatched()
	p.tell(p.xa(wire.TransactionBegin))
	p.do(inXA(p.text(2, queueNamed("OUT"), "sent")))
	a := ack(d, wire.AckStandard)
	a.TransactionID = xid()
	p.tell(a)
	p.do(p.xa(wire.TransactionEnd))
	return p, d
}

// TestXATwoPhase: what is prepared over one connection is listed and ended over
// another (OpenWire 11).
func TestXATwoPhase(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]wire.TransactionType{"commit": wire.TransactionCommitTwoPhase, "rollback": wire.TransactionRollback,
		"forget": wire.TransactionForget} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				p, _ := takesXA(h)
				if got := p.recovers(); got != nil {
					t.Errorf("before PREPARE there is %v", got)
				}
				if n := p.prepares(); n != xaOK {
					t.Errorf("PREPARE gives %d", n)
				}
				p.hangUp()
				q := h.client()
				if got := q.recovers(); !slices.Equal(got, []string{xidOf(xid()).String()}) {
					t.Errorf("RECOVER gives %v", got)
				}
				if got := holds(t, h, "Q"); got != "<nil>" {
					t.Errorf("Q gives %s", got)
				}
				q.do(q.xa(how))
				if got := q.recovers(); got != nil {
					t.Errorf("RECOVER gives %v", got)
				}
				in, out := "<nil>", "sent told 0"
				if how != wire.TransactionCommitTwoPhase {
					in, out = "taken told 1", "<nil>"
				}
				if got := holds(t, h, "Q"); got != in {
					t.Errorf("Q gives %s, want %s", got, in)
				}
				if got := holds(t, h, "OUT"); got != out {
					t.Errorf("OUT gives %s, want %s", got, out)
				}
				q.fails(q.xa(wire.TransactionCommitTwoPhase), classXA, "xaErrorCode:-4")
				q.leave()
			})
		})
	}
}

// TestXARollbackLeavesMessagesWithTheirConsumer: its client redelivers them by itself
// (R-CLIENT-40), and the next transaction takes them.
func TestXARollbackLeavesMessagesWithTheirConsumer(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p, d := takesXA(h)
		p.prepares()
		p.do(p.xa(wire.TransactionRollback))
		if got := p.take(); got != nil {
			t.Errorf("after the rollback came %+v", got)
		}
		p.tell(p.xa(wire.TransactionBegin))
		a := ack(d, wire.AckStandard)
		a.TransactionID = xid()
		p.tell(a)
		p.do(p.xa(wire.TransactionEnd))
		p.do(p.xa(wire.TransactionCommitOnePhase))
		p.leave()
		if got := holds(t, h, "Q"); got != "<nil>" {
			t.Errorf("Q gives %s", got)
		}
	})
}

// TestXAInOtherStates are the codes that clients get (OpenWire 11).
func TestXAInOtherStates(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.fails(p.xa(wire.TransactionPrepare), classXA, "xaErrorCode:-4")
		p.tell(p.xa(wire.TransactionBegin))
		p.fails(p.xa(wire.TransactionCommitTwoPhase), classXA, "xaErrorCode:-6")
		p.tell(p.xa(wire.TransactionBegin))
		if n := p.prepares(); n != xaReadOnly {
			t.Errorf("PREPARE of a transaction that did nothing gives %d", n)
		}
		p.fails(p.xa(wire.TransactionRollback), classXA, "xaErrorCode:-4")

		p.tell(p.xa(wire.TransactionBegin))
		p.do(inXA(p.text(1, queueNamed("Q"), "x")))
		p.do(p.xa(wire.TransactionEnd)) // suspended
		p.do(p.xa(wire.TransactionBegin))
		p.do(inXA(p.text(2, queueNamed("Q"), "y")))
		p.do(p.xa(wire.TransactionEnd))
		p.prepares()
		p.fails(p.xa(wire.TransactionBegin), classXA, "xaErrorCode:-8")
		p.fails(p.xa(wire.TransactionPrepare), classXA, "xaErrorCode:-6")
		p.fails(inXA(p.text(3, queueNamed("Q"), "late")), classJMS, "takes nothing any more")
		if err := h.broker.EndTransaction(h.ctx, xidOf(xid()), true); err != nil {
			t.Error(err)
		}
		p.fails(p.xa(wire.TransactionCommitTwoPhase), classXA, "xaErrorCode:7")
		p.fails(p.xa(wire.TransactionRollback), classXA, "xaErrorCode:7")
		p.do(p.xa(wire.TransactionForget))
		p.leave()
	})
}

// TestXAFailedAckRollsBack: PREPARE tells that a part of the transaction failed
// (R-BRK-13).
func TestXAFailedAckRollsBack(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p, d := takesXA(h)
		p.tell(p.xa(wire.TransactionBegin))
		bad := ack(d, wire.AckStandard)
		bad.TransactionID = xid()
		bad.LastMessageID = &wire.MessageID{ProducerID: p.producerID(1), ProducerSequenceID: 77}
		p.tell(bad)
		p.do(p.xa(wire.TransactionEnd))
		p.fails(p.xa(wire.TransactionPrepare), classXA, "xaErrorCode:100")
		p.leave()
		if got := holds(t, h, "OUT"); got != "<nil>" {
			t.Errorf("OUT gives %s", got)
		}
	})
}

// repeats is what a Java client says once more of a transaction on its next
// connection: all but the acknowledgements (R-CLIENT-62).
func repeats(p *peer) {
	p.tell(p.xa(wire.TransactionBegin))
	p.do(inXA(p.text(2, queueNamed("OUT"), "sent")))
	p.do(p.xa(wire.TransactionEnd))
}

// TestXAComesBack: the connection is lost at different stages, and the client repeats
// what it has said of the transaction.
func TestXAComesBack(t *testing.T) { // R-CLIENT-62
	t.Parallel()
	t.Run("before PREPARE", func(t *testing.T) { // its acknowledgement is lost
		t.Parallel()
		inHouse(t, nil, func(h *house) {
			old, _ := takesXA(h)
			p := comesBack(h, old, 10)
			p.dispatched()
			repeats(p)
			p.fails(p.xa(wire.TransactionPrepare), classXA, "xaErrorCode:100")
			p.leave()
			if got := holds(t, h, "OUT"); got != "<nil>" {
				t.Errorf("OUT gives %s", got)
			}
		})
	})
	for name, committed := range map[string]bool{"after PREPARE": false, "after COMMIT": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				old, _ := takesXA(h)
				old.prepares()
				if committed {
					old.do(old.xa(wire.TransactionCommitTwoPhase))
				}
				p := comesBack(h, old, 10)
				repeats(p)
				if n := p.prepares(); n != xaOK {
					t.Errorf("PREPARE gives %d", n)
				}
				p.do(p.xa(wire.TransactionCommitTwoPhase))
				p.leave()
				if got := holds(t, h, "Q"); got != "<nil>" {
					t.Errorf("Q gives %s", got)
				}
				q := h.client()
				q.consume(1, queueNamed("OUT"), 10)
				if d := q.dispatched(); body(t, d) != "sent" {
					t.Errorf("OUT gives %q", body(t, d))
				}
				if got := q.take(); got != nil {
					t.Errorf("OUT gives more: %+v", got)
				}
				q.leave()
			})
		})
	}
}

// TestXAForgetsWhatOthersEnded: a connection on which many transactions begin that are
// ended over others.
func TestXAForgetsWhatOthersEnded(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *Options) { o.Limits.Objects = manyTransactions + 10 }, func(h *house) {
		p, q := h.client(), h.client()
		for n := range manyTransactions + 100 {
			id := &wire.XATransactionID{FormatID: int32(n)}
			p.do(&wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: id, Type: wire.TransactionBegin})
			q.do(&wire.TransactionInfo{ConnectionID: q.connection(), TransactionID: id, Type: wire.TransactionRollback})
		}
		p.leave()
		q.leave()
	})
}

func TestEveryKindHasAnXACode(t *testing.T) { // OpenWire 11
	t.Parallel()
	code := func(err error) int {
		_, digits, _ := strings.Cut(throwable(xaException(err)).Message.Value, "xaErrorCode:")
		n, err := strconv.Atoi(digits)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for _, kind := range message.Kinds() {
		i := slices.IndexFunc(xaCodes, func(c struct {
			kind error
			code int
		}) bool {
			return c.kind == kind
		})
		if i < 0 {
			t.Errorf("%v has no code", kind)
			continue
		}
		if got := code(fmt.Errorf("prepare: %w", kind)); got != xaCodes[i].code {
			t.Errorf("%v is %d, want %d", kind, got, xaCodes[i].code)
		}
	}
	for want, err := range map[int]error{
		xaResourceError:     errors.New(strings.Repeat("ä", 1000)), // the text is cut, the code is not
		xaRolledBack:        &broker.TransactionEndedError{Why: message.ErrOverLimit},
		xaTimedOut:          &broker.TransactionEndedError{TimedOut: true},
		xaHeuristicCommit:   &broker.TransactionEndedError{ByHand: true, Committed: true},
		xaHeuristicRollback: &broker.TransactionEndedError{ByHand: true},
	} {
		if got := code(err); got != want {
			t.Errorf("%v is %d, want %d", err, got, want)
		}
	}
}

// TestXARecoverOfVeryMany: what is prepared can be recovered however much it is, in
// several turns (OpenWire 11; an array on the wire has 32,767 elements at the most).
func TestXARecoverOfVeryMany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		many, nameBytes int
		want            int
	}{
		"as many as are listed": {maxRecovered, 4, maxRecovered},
		"too many for an array": {40_000, 4, maxRecovered},
		"names of great length": {1_000, 30_000, DefaultMaxFrameBytes / maxRecoveredShare / 30_001},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				for i := range c.many {
					s.prepared = append(s.prepared, message.XID{Format: 1, Global: fmt.Sprintf("%0*d", c.nameBytes, i), Branch: "b"})
				}
				p := h.client()
				got := p.recovers()
				if len(got) != c.want || got[0] != s.prepared[0].String() || got[c.want-1] != s.prepared[c.want-1].String() {
					t.Errorf("RECOVER lists %d of %d, want %d", len(got), c.many, c.want)
				}
				p.hangUp()
			})
		})
	}
}
