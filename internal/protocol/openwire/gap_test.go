package openwire

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// stranger is a client that comes back to a broker that does not know it: another
// process. Its state is replayed, and its next command has the number 41.
func stranger(h *house, consumes bool) *peer {
	p := h.peer(peerFormat())
	p.id = "ID:stranger"
	p.tell(&wire.ConnectionControl{FaultTolerant: true})
	p.do(&wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("stranger"), FaultTolerant: true, FailoverReconnect: true})
	p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
	p.produce(1, 0)
	if consumes {
		p.consume(1, queueNamed("Q"), 0)
	}
	p.next = 40
	return p
}

// patient lets a client be silent for as long as it likes.
func patient(o *Options) { o.MaxInactivity = -1 }

// TestLostAcksAreGaps: what a client that comes back to another process repeats of a
// transaction, and what it does not, tells whether acknowledgements are missing.
func TestLostAcksAreGaps(t *testing.T) { // R-CLIENT-62
	t.Parallel()
	for name, c := range map[string]struct {
		consumes bool
		late     time.Duration // how long after the connection the transaction begins
		skip     int32         // numbers between the last send and the end, that do not come
		acks     bool          // the client acknowledges something on this connection
		local    bool          // the outcome of a local transaction
		xa       bool          // of a distributed one
	}{
		"all of it came":                   {consumes: true, local: true, xa: true},
		"one did not":                      {consumes: true, skip: 1},
		"several did not":                  {consumes: true, skip: 7},
		"nobody consumes":                  {skip: 1, local: true, xa: true},
		"it is new":                        {consumes: true, skip: 1, late: replayTime, local: true, xa: true},
		"a little before it is surely new": {consumes: true, skip: 1, late: replayTime - 1},
		// What a client had before a cut it does not commit (R-CLIENT-60), unless it had suspended the transaction.
		"it acknowledges here": {consumes: true, skip: 1, acks: true, local: true},
	} {
		for _, distributed := range []bool{false, true} {
			want := c.local
			if distributed {
				name, want = name+", XA", c.xa
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inHouse(t, patient, func(h *house) {
					p := stranger(h, c.consumes)
					time.Sleep(c.late)
					info := func(k wire.TransactionType) *wire.TransactionInfo { return p.transaction(1, k) }
					if distributed {
						info = p.xa
					}
					p.tell(info(wire.TransactionBegin))
					m := p.text(1, queueNamed("OUT"), "sent")
					m.TransactionID = info(0).TransactionID
					p.do(m)
					if c.acks {
						q := h.client()
						q.produce(1, 0)
						q.do(q.text(1, queueNamed("Q"), "taken"))
						q.leave()
						p.do(&wire.ConsumerControl{ConsumerID: p.consumerID(1), Destination: queueNamed("Q"), Prefetch: 1})
						a := ack(p.dispatched(), wire.AckStandard)
						a.TransactionID = m.TransactionID
						p.do(a)
					}
					p.next += c.skip
					switch {
					case distributed && want:
						p.do(info(wire.TransactionEnd))
						p.prepares()
						p.do(info(wire.TransactionCommitTwoPhase))
					case distributed:
						p.do(info(wire.TransactionEnd))
						p.fails(info(wire.TransactionPrepare), classXA, "xaErrorCode:100")
					case want:
						p.do(info(wire.TransactionCommitOnePhase))
					default:
						p.fails(info(wire.TransactionCommitOnePhase), classRolledBack, "is not acknowledged on the new one")
					}
					p.leave()
					got := holds(t, h, "OUT")
					if want != (got == "sent told 0") || !want != (got == "<nil>") {
						t.Errorf("OUT holds %s", got)
					}
				})
			})
		}
	}
}

// TestNumbersAreForgotten: what can no longer be a repetition costs nothing.
func TestNumbersAreForgotten(t *testing.T) {
	t.Parallel()
	inHouse(t, patient, func(h *house) {
		p := stranger(h, true)
		p.tell(p.transaction(1, wire.TransactionBegin))
		time.Sleep(replayTime)
		p.tell(p.transaction(2, wire.TransactionBegin)) // the first may still be one
		p.next++
		p.fails(p.transaction(1, wire.TransactionCommitOnePhase), classRolledBack, "")
		p.do(p.transaction(2, wire.TransactionCommitOnePhase))
		p.do(p.transaction(3, wire.TransactionBegin))
		p.next++
		p.do(p.transaction(3, wire.TransactionCommitOnePhase))
		p.leave()
		synctest.Wait()
	})
}

// TestGaps compares the runs with a set.
func TestGaps(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		var g gaps
		seen := map[int32]bool{}
		for range r.IntN(40) {
			id := r.Int32N(60) - 30
			g.note(id)
			seen[id] = id != 0
		}
		for range 20 {
			first := r.Int32N(60) - 30
			last := first + r.Int32N(10)
			want := false
			for id := first; id <= last; id++ {
				want = want || !seen[id]
			}
			if got := g.between(first, last); got != want {
				t.Fatalf("seed %d: between %d and %d: %t, runs %v, seen %v", seed, first, last, got, g.runs, seen)
			}
		}
	}
	var many gaps
	for n := range int32(3 * maxRuns) {
		many.note(2*n + 1)
	}
	if len(many.runs) > maxRuns || many.between(6*maxRuns-1, 6*maxRuns-1) || !many.between(1, 1) {
		t.Errorf("%d runs are kept, from %v to %v", len(many.runs), many.runs[0], many.runs[len(many.runs)-1])
	}
}
