package openwire

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

func (p *peer) transaction(n int64, what wire.TransactionType) *wire.TransactionInfo {
	return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: p.txID(n), Type: what}
}

func TestTransactionCalls(t *testing.T) { // OpenWire 11
	t.Parallel()
	inScript(t, nil, func(h *house, s *script) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("Q"), 1)
		s.took()
		p.tell(p.transaction(1, wire.TransactionBegin))
		p.tell(p.transaction(1, wire.TransactionBegin)) // a replay (OpenWire 13)
		m := p.text(1, queueNamed("Q"), "x")
		m.TransactionID = p.txID(1)
		p.tell(m)
		a := &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(1), AckType: wire.AckIndividual, TransactionID: p.txID(1)}
		p.tell(a)
		p.do(p.transaction(1, wire.TransactionEnd))
		p.do(p.transaction(1, wire.TransactionCommitOnePhase))
		p.tell(p.transaction(2, wire.TransactionBegin))
		p.do(p.transaction(2, wire.TransactionRollback))
		want := []string{
			"Begin(TX:ID:peer-1:1)",
			"Send(ID:peer-1:1:1:1, queue://Q, TX:ID:peer-1:1)",
			"Ack(ID:peer-1:1:1, queue://Q, 4, first 0 :0, last 0 :0, 0, tx TX:ID:peer-1:1, )",
			"Commit(TX:ID:peer-1:1)", "Begin(TX:ID:peer-1:2)", "Rollback(TX:ID:peer-1:2)",
		}
		if diff := cmp.Diff(want, s.took()); diff != "" {
			t.Error(diff)
		}
		p.fails(p.transaction(1, wire.TransactionCommitOnePhase), classJMS, "Transaction 'TX:ID:peer-1:1' has not been started.")
		p.hangUp()
	})
}

// TestCommitFails wants the class that says what became of the transaction.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		class string
	}{
		"rolled back":   {fmt.Errorf("rolled back: %w", message.ErrInvalid), classRolledBack},
		"store failed":  {errDisk, classRolledBack},
		"unknown":       {broker.ErrNotStarted, classJMS},
		"nobody there":  {fmt.Errorf("temp-queue://c:1 does not exist: %w", message.ErrNotFound), classRolledBack},
		"nobody knows":  {fmt.Errorf("stopping: %w", message.ErrUnavailable), classJMS},
		"disk is full":  {fmt.Errorf("disk: %w", message.ErrOverLimit), classRolledBack},
		"not permitted": {fmt.Errorf("no: %w", message.ErrDenied), classRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				p := h.client()
				p.tell(p.transaction(1, wire.TransactionBegin))
				s.failing("Commit", c.err)
				p.fails(p.transaction(1, wire.TransactionCommitOnePhase), c.class, "")
				p.hangUp()
			})
		})
	}
}

// TestFailedAckMarksItsTransaction wants an acknowledgement that fails with nobody
// waiting to roll its transaction back, however late it fails (R-BRK-13).
func TestFailedAckMarksItsTransaction(t *testing.T) {
	t.Parallel()
	for name, answerRequired := range map[string]bool{"nobody waits": false, "the client knows": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				p := h.client()
				p.consume(1, queueNamed("Q"), 1)
				p.tell(p.transaction(1, wire.TransactionBegin))
				s.took()
				s.failing("Ack", fmt.Errorf("unmatched acknowledge: %w", message.ErrInvalid))
				s.holding()
				a := &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(1), AckType: wire.AckStandard, TransactionID: p.txID(1)}
				if answerRequired {
					p.ask(a)
				} else {
					p.tell(a)
				}
				p.ask(p.transaction(1, wire.TransactionCommitOnePhase)) // not answered before the ack
				s.release()
				p.all()
				marked := "MarkRollbackOnly(TX:ID:peer-1:1, unmatched acknowledge: invalid)"
				calls := s.took()
				if got := len(calls) > 1 && calls[1] == marked; got == answerRequired {
					t.Errorf("calls %q", calls)
				}
				if calls[len(calls)-1] != "Commit(TX:ID:peer-1:1)" {
					t.Errorf("calls %q", calls)
				}
				p.hangUp()
			})
		})
	}
}

// TestFailedAckRollsBack is the same on the real broker: nothing of the
// transaction becomes true.
func TestFailedAckRollsBack(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("Q"), 10)
		p.do(p.text(1, queueNamed("Q"), "taken"))
		d := p.dispatched()
		p.tell(p.transaction(1, wire.TransactionBegin))
		m := p.text(2, queueNamed("OUT"), "sent")
		m.TransactionID = p.txID(1)
		p.tell(m)
		good := ack(d, wire.AckStandard)
		good.TransactionID = p.txID(1)
		p.tell(good)
		bad := ack(d, wire.AckStandard)
		bad.TransactionID = p.txID(1)
		bad.LastMessageID = &wire.MessageID{ProducerID: p.producerID(1), ProducerSequenceID: 77}
		p.tell(bad)
		p.fails(p.transaction(1, wire.TransactionCommitOnePhase), classRolledBack, "does not have ID:peer-1:1:1:77")
		if e, ok := p.take().(*wire.ConnectionError); !ok || e.Exception.Class != classJMS {
			t.Errorf("the failed acknowledgement was told as %+v", e)
		}
		p.leave()
		q := h.client()
		q.consume(1, queueNamed("OUT"), 10)
		if got := q.take(); got != nil {
			t.Errorf("OUT has %+v", got)
		}
		q.consume(2, queueNamed("Q"), 10)
		if again := q.dispatched(); body(t, again) != "taken" {
			t.Errorf("Q has %q", body(t, again))
		}
		q.leave()
	})
}

// TestStrangersProducerRollsBack: what else the transaction sent is not committed.
func TestStrangersProducerRollsBack(t *testing.T) { // R-BRK-13
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.tell(p.transaction(1, wire.TransactionBegin))
		good := p.text(1, queueNamed("OUT"), "sent")
		good.TransactionID = p.txID(1)
		p.tell(good)
		bad := p.text(2, queueNamed("OUT"), "of another client's producer")
		bad.TransactionID, bad.ProducerID = p.txID(1), &wire.ProducerID{ConnectionID: "ID:stranger", SessionID: 1, Value: 1}
		p.tell(bad)
		p.fails(p.transaction(1, wire.TransactionCommitOnePhase), classRolledBack, "its producer is not one of this connection")
		p.all()
		p.leave()
		if got := holds(t, h, "OUT"); got != "<nil>" {
			t.Errorf("OUT has %s", got)
		}
	})
}

// TestTransactedPoison is the trace R-WIRE-02 with a client of 5.18 and limit 1,
// through to the dead letter.
func TestTransactedPoison(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		m := p.text(1, queueNamed("Q"), "poison")
		m.MarshalledProperties, _ = wire.AppendMap(nil, wire.Map{{Key: "colour", Value: "red"}})
		p.do(m)
		p.consume(1, queueNamed("Q"), 10)
		d := p.dispatched()
		for n := range int64(2) {
			p.tell(p.transaction(n, wire.TransactionBegin))
			a := ack(d, wire.AckStandard)
			a.TransactionID = p.txID(n)
			p.tell(a)
			p.do(p.transaction(n, wire.TransactionRollback))
			if n == 0 {
				p.tell(ack(d, wire.AckRedelivered))
			}
		}
		poison := ack(d, wire.AckPoison)
		poison.PoisonCause = wire.NewThrowable("java.lang.Throwable", "Delivery[2] exceeds redelivery policy limit:RedeliveryPolicy {}, cause:null")
		p.do(poison)
		p.consume(2, queueNamed("ActiveMQ.DLQ"), 10)
		dead := p.dispatched()
		if body(t, dead) != "poison" || dead.RedeliveryCounter != 0 || dead.Destination.String() != "queue://ActiveMQ.DLQ" {
			t.Errorf("dead letter %+v", dead)
		}
		w := dead.Message
		if w.OriginalDestination.String() != "queue://Q" || w.MessageID.String() != m.MessageID.String() || w.Destination.String() != "queue://ActiveMQ.DLQ" {
			t.Errorf("dead letter %+v", w)
		}
		for key, want := range map[string]any{
			"colour":                  "red",
			"dlqDeliveryFailureCause": "java.lang.Throwable: Delivery[2] exceeds redelivery policy limit:RedeliveryPolicy {}, cause:null",
			"originalExpiration":      int64(0),
		} {
			if got, _, err := wire.LookupProperty(w.MarshalledProperties, key); got != want || err != nil {
				t.Errorf("%s is %v, %v, want %v", key, got, err, want)
			}
		}
		p.leave()
	})
}

func TestTransactedSendIsSeenAtCommit(t *testing.T) { // OpenWire 11
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 1000)
		p.consume(1, queueNamed("Q"), 10)
		p.tell(p.transaction(1, wire.TransactionBegin))
		m := p.text(1, queueNamed("Q"), "hello")
		m.TransactionID = p.txID(1)
		p.tell(m)
		// the window is given back in transactions too (OpenWire 10.6)
		if got, ok := p.take().(*wire.ProducerAck); !ok || int(got.Size) != 1024+len(m.Content) {
			t.Errorf("got %+v", got)
		}
		if got := p.take(); got != nil {
			t.Errorf("before the commit came %+v", got)
		}
		p.do(p.transaction(1, wire.TransactionCommitOnePhase))
		if d := p.dispatched(); body(t, d) != "hello" {
			t.Errorf("dispatched %+v", d)
		}
		p.leave()
	})
}
