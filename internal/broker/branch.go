package broker

import (
	"fmt"
	"sync"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/records"
)

// A branchState is how far a distributed transaction has come.
//
//	active ──► preparing ──► prepared ──► ending ──► gone
//	   │           └► gone      ▲            │
//	   │ time-out               └────────────┤ it could not be ended now
//	   ▼                                     └► by hand ──► gone (forgotten)
//	timed out ──► gone
type branchState uint8

const (
	branchActive    branchState = iota
	branchPreparing             // its batch is on the way
	branchPrepared              // it is in the store, and waits for its outcome
	branchEnding                // it is being committed or rolled back
	branchByHand                // someone ended it, and its transaction manager is to be told
	branchTimedOut              // it was rolled back, and its client does not know yet
)

var branchStates = [...]string{"active", "preparing", "prepared", "ending", "by-hand", "timed-out"}

func (s branchState) String() string { return branchStates[s] }

// A branch is a distributed (XA) transaction: of the broker, not of a connection, so
// that it can be prepared, committed and rolled back by any (OpenWire 11). What it
// has prepared is in the store, and outlives the process.
type branch struct {
	transaction
	xid message.XID
	// settled is closed when what a time-out counts is on disk, or failed to get there.
	settled chan struct{}
	failed  error // why
	begun   int64 // Unix milliseconds; of one that was prepared before this process, when that was

	// Guarded by branches.mu.
	state  branchState
	stored *records.Prepared // from its prepare on
}

// branches are the distributed transactions there are. Its lock is taken for moments.
type branches struct {
	mu sync.Mutex
	of map[string]*branch // by id
	// committed remembers prepared ones that were committed, for clients whose connection
	// was lost while they waited for the answer; the store has a record of each.
	committed map[string]int // how many of that id
	oldest    []ended        // of committed
}

// An ended transaction is a prepared one that was committed.
type ended struct {
	id     string
	record uint64 // the sequence of its record
}

// maxCommitted is how many committed transactions are remembered.
const maxCommitted = 1000

func newBranches() branches {
	return branches{of: map[string]*branch{}, committed: map[string]int{}}
}

func (g *branches) find(id string) *branch {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of[id]
}

// A TransactionEndedError says that a transaction has ended otherwise than it was
// asked to.
type TransactionEndedError struct {
	Committed bool  // else it was rolled back
	ByHand    bool  // someone decided so, over the head of the transaction manager
	TimedOut  bool  // it had taken too long
	Why       error // it was rolled back; nil: someone wanted it so
}

// Error tells what became of the transaction.
func (e *TransactionEndedError) Error() string {
	what := "the transaction was rolled back"
	switch {
	case e.Committed:
		what = "the transaction was committed"
	case e.TimedOut:
		what += " because it took too long"
	}
	if e.ByHand {
		what += " by hand"
	}
	if e.Why != nil {
		what += ": " + e.Why.Error()
	}
	return what
}

// Is makes it message.ErrState for whoever does not look closer.
func (e *TransactionEndedError) Is(target error) bool { return target == message.ErrState }

// Unwrap gives the reason.
func (e *TransactionEndedError) Unwrap() error { return e.Why }

// take changes the state of a transaction that is in one of the states from.
func (g *branches) take(xid message.XID, to branchState, from ...branchState) (br *branch, was branchState, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	br = g.of[xid.String()]
	if br == nil {
		return nil, 0, notStarted(xid.String())
	}
	for _, s := range from {
		if br.state == s {
			br.state = to
			return br, s, nil
		}
	}
	switch br.state {
	case branchByHand:
		return nil, 0, &TransactionEndedError{Committed: br.stored.Outcome == records.Committed, ByHand: true}
	case branchTimedOut:
		return br, br.state, &TransactionEndedError{TimedOut: true}
	}
	return nil, 0, fmt.Errorf("transaction %s is %s: %w", br.id, br.state, message.ErrState)
}

// takeXA is branches.take for a client. One that has timed out is gone once its
// client was told, which is when its failures are on disk.
func (c *Connection) takeXA(xid message.XID, to branchState, from ...branchState) (br *branch, was branchState, err error) {
	br, was, err = c.b.branches.take(xid, to, from...)
	if err != nil && br != nil {
		c.b.branches.drop(br)
		if failed := br.awaitTimeOut(c.ctx); failed != nil {
			err = failed
		}
	}
	return br, was, err
}

// set changes the state of a transaction that its caller has taken.
func (g *branches) set(br *branch, to branchState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	br.state = to
}

// is reports whether a transaction is in a state.
func (g *branches) is(br *branch, s branchState) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return br.state == s
}

// drop forgets a transaction that has ended.
func (g *branches) drop(br *branch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[br.id] == br {
		delete(g.of, br.id)
	}
}

// makeRoom forgets committed transactions, so that one more can be remembered, and
// returns their records, which are to be deleted.
func (g *branches) makeRoom() (records []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.oldest) >= maxCommitted {
		first := g.oldest[0]
		g.oldest = g.oldest[1:]
		if g.committed[first.id]--; g.committed[first.id] == 0 {
			delete(g.committed, first.id)
		}
		records = append(records, first.record)
	}
	return records
}

// remember notes that a transaction was committed.
func (g *branches) remember(e ended) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.committed[e.id]++
	g.oldest = append(g.oldest, e)
}

// begunBy are the transactions of a connection that are not prepared.
func (g *branches) begunBy(c *Connection) (active, timedOut []*branch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, br := range g.of {
		switch {
		case br.c != c:
		case br.state == branchActive:
			active = append(active, br)
		case br.state == branchTimedOut:
			timedOut = append(timedOut, br)
		}
	}
	return active, timedOut
}

// BeginXA begins a distributed transaction, or joins one that is active. again says
// that the client may be repeating, on a new connection, what it did on the one
// before: then over tells that the transaction is prepared, or was committed, already.
//
// Errors: ErrExists for a transaction that takes nothing any more.
func (c *Connection) BeginXA(xid message.XID, again bool) (over bool, err error) {
	g := &c.b.branches
	id := xid.String()
	g.mu.Lock()
	defer g.mu.Unlock()
	br := g.of[id]
	if br == nil {
		if again && g.committed[id] > 0 {
			return true, nil
		}
		g.of[id] = &branch{transaction: transaction{b: c.b, c: c, id: id, queues: map[*destination]bool{}}, xid: xid, begun: c.b.now(), settled: make(chan struct{})}
		return false, nil
	}
	switch {
	case br.state == branchActive, br.state == branchTimedOut:
		return false, nil
	case again:
		return true, nil
	}
	return false, fmt.Errorf("transaction %s is %s: %w", id, br.state, message.ErrExists)
}

// CommittedXA reports whether a transaction that had been prepared was committed, as
// far as that is remembered.
func (c *Connection) CommittedXA(xid message.XID) bool {
	g := &c.b.branches
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.committed[xid.String()] > 0
}

// Recover lists the transactions that are prepared, and those that were ended by hand
// and not forgotten by their transaction manager.
func (b *Broker) Recover() []message.XID {
	var all []message.XID
	for _, t := range b.Transactions() {
		if t.Prepared != 0 {
			all = append(all, t.XID)
		}
	}
	return all
}

// HasXA reports whether there is such a transaction.
func (c *Connection) HasXA(xid message.XID) bool { return c.b.branches.find(xid.String()) != nil }
