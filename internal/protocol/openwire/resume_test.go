package openwire

import (
	"fmt"
	"testing"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// comesBack opens the client's next connection, with the state that a Java client
// replays: session 1, its producer, and a consumer with that prefetch. The old
// socket is cut before.
func comesBack(h *house, old *peer, prefetch int32) *peer {
	old.conn.Close()
	<-old.ended
	p := h.peer(peerFormat())
	p.id = old.id
	p.tell(&wire.ConnectionControl{FaultTolerant: true})
	p.do(&wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("client of " + p.id), FaultTolerant: true, FailoverReconnect: true})
	p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
	p.produce(1, 0)
	p.consume(1, queueNamed("Q"), prefetch)
	return p
}

// takes a message in an open transaction, which also sends one.
func takes(h *house) (p *peer, d *wire.MessageDispatch, sent *wire.Message) {
	p = h.client()
	p.produce(1, 0)
	p.consume(1, queueNamed("Q"), 10)
	p.do(p.text(1, queueNamed("Q"), "taken"))
	d = p.dispatched()
	p.tell(p.transaction(1, wire.TransactionBegin))
	sent = p.text(2, queueNamed("OUT"), "sent")
	sent.TransactionID = p.txID(1)
	p.do(sent)
	return p, d, sent
}

// holds reports what a queue holds, by reading it from another client.
func holds(t *testing.T, h *house, queue string) string {
	q := h.client()
	q.consume(1, queueNamed(queue), 10)
	defer q.leave()
	got := q.take()
	if d, ok := got.(*wire.MessageDispatch); ok {
		return fmt.Sprintf("%s told %d", body(t, d), d.RedeliveryCounter)
	}
	return fmt.Sprint(got)
}

// TestReplayedAckMeetsTheNextDispatch: the message is on its way once more when the
// client replays the acknowledgement of its first dispatch.
func TestReplayedAckMeetsTheNextDispatch(t *testing.T) { // R-BRK-11, R-CLIENT-62
	t.Parallel()
	for name, known := range map[string]bool{"before the client knows of it": false, "after the client has covered it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				old, first, sent := takes(h)
				p := comesBack(h, old, 10)
				again := p.dispatched()
				if first.Message.MessageID.BrokerSequenceID == again.Message.MessageID.BrokerSequenceID {
					t.Errorf("both dispatches have the sequence %d", again.Message.MessageID.BrokerSequenceID)
				}
				p.tell(p.transaction(1, wire.TransactionBegin))
				p.do(sent)
				if known {
					p.tell(ack(again, wire.AckDelivered))
				}
				replayed := ack(first, wire.AckStandard)
				replayed.TransactionID = p.txID(1)
				p.tell(replayed)
				if known {
					p.do(p.transaction(1, wire.TransactionCommitOnePhase))
				} else {
					p.fails(p.transaction(1, wire.TransactionCommitOnePhase), classRolledBack, "does not have any more")
				}
				p.leave()
				want := map[bool][2]string{true: {"<nil>", "sent told 0"}, false: {"taken told 2", "<nil>"}}[known]
				if q, out := holds(t, h, "Q"), holds(t, h, "OUT"); q != want[0] || out != want[1] {
					t.Errorf("Q holds %s, OUT holds %s, want %q", q, out, want)
				}
			})
		})
	}
}

// TestCommitWithoutTheLostAcks: the client replays what it sent, and the commit.
func TestCommitWithoutTheLostAcks(t *testing.T) { // R-CLIENT-62
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		old, _, sent := takes(h)
		p := comesBack(h, old, 0)
		p.tell(p.transaction(1, wire.TransactionBegin))
		p.do(sent)
		p.fails(p.transaction(1, wire.TransactionCommitOnePhase), classRolledBack, "is not acknowledged on the new one")

		next := p.text(3, queueNamed("OUT"), "next") // a transaction of this connection needs none
		next.TransactionID = p.txID(2)
		p.tell(p.transaction(2, wire.TransactionBegin))
		p.do(next)
		p.do(p.transaction(2, wire.TransactionCommitOnePhase))
		p.leave()
		if q, out := holds(t, h, "Q"), holds(t, h, "OUT"); q != "taken told 1" || out != "next told 0" {
			t.Errorf("Q holds %s, OUT holds %s", q, out)
		}
	})
}

// A holder is a connection all of whose consumers have messages.
type holder struct{ Connection }

func (holder) Holds(string) bool { return true }

func TestInterruptedIsBounded(t *testing.T) {
	t.Parallel()
	var i interrupted
	session := wire.SessionID{ConnectionID: "c", Value: 1}
	consumer := wire.ConsumerID{ConnectionID: "c", SessionID: 1, Value: 1}
	for n := range maxInterrupted + 10 {
		i.lose(&client{id: fmt.Sprint(n), consumers: map[wire.ConsumerID]string{consumer: "k"}, broker: holder{},
			transactions: map[string]*transaction{"tx": {sessions: map[wire.SessionID]bool{session: true}}}})
	}
	if len(i.of) > maxInterrupted || len(i.oldest) > maxInterrupted {
		t.Errorf("%d connections are remembered, %d in order", len(i.of), len(i.oldest))
	}
	if !i.was(fmt.Sprint(maxInterrupted), "tx") || i.was("0", "tx") {
		t.Error("the newest is forgotten, or the oldest is not")
	}
}

// TestAPullOfARepeatedTransaction: what a Java client had received in its transaction it
// keeps from the application when it gets it once more, and goes on waiting. It says so by
// a DELIVERED that names no transaction.
func TestAPullOfARepeatedTransaction(t *testing.T) { // R-CLIENT-50, R-CLIENT-60
	t.Parallel()
	for name, c := range map[string]struct {
		open  bool // a transaction is, of which the client has repeated the begin
		names bool // the DELIVERED names it: the application has the message
		want  string
	}{
		"kept from the application":  {open: true, want: "next"},
		"the application has it":     {open: true, names: true},
		"and no transaction is open": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				old, _, _ := takes(h)
				old.do(old.text(3, queueNamed("Q"), "next"))
				p := comesBack(h, old, 0)
				if c.open {
					p.tell(p.transaction(1, wire.TransactionBegin))
				}
				p.tell(&wire.MessagePull{ConsumerID: p.consumerID(1), Destination: queueNamed("Q"), Timeout: 3000})
				delivered := ack(p.dispatched(), wire.AckDelivered)
				if c.names {
					delivered.TransactionID = p.txID(1)
				}
				p.tell(delivered)
				got := ""
				for _, command := range p.all() {
					if d, ok := command.(*wire.MessageDispatch); ok {
						got = body(t, d)
					}
				}
				if got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				p.hangUp()
			})
		})
	}
}
