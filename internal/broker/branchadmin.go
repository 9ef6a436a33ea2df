package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/records"
)

// A TransactionStatus is what people want to know of a distributed transaction.
type TransactionStatus struct {
	XID      message.XID
	State    string // active, preparing, prepared, ending, by-hand, timed-out
	Outcome  string // of one that was ended by hand: committed, rolled-back; else ""
	Begun    int64  // Unix milliseconds; of one that was prepared before this process, when that was
	Prepared int64  // Unix milliseconds; 0: it is not
	// Connection, ClientID and Address are of the client that began it, or prepared it.
	Connection, ClientID, Address string
	Sends                         int
	Bytes                         int64 // of the sends
	Acks                          int   // messages it takes out; of one that is not prepared, nobody has counted them
	Queues                        []message.Destination
}

var outcomes = map[records.Outcome]string{records.Committed: "committed", records.RolledBack: "rolled-back"}

// Transactions lists the distributed transactions there are, the oldest first.
func (b *Broker) Transactions() []TransactionStatus {
	b.branches.mu.Lock()
	all := make([]TransactionStatus, 0, len(b.branches.of))
	found := make([]*branch, 0, len(b.branches.of))
	for _, br := range b.branches.of {
		all = append(all, br.statusLocked())
		found = append(found, br)
	}
	b.branches.mu.Unlock()
	for i, br := range found {
		br.measure(&all[i])
	}
	slices.SortFunc(all, func(x, y TransactionStatus) int {
		if n := cmp.Compare(x.Begun, y.Begun); n != 0 {
			return n // the names are only made where they decide: there may be very many
		}
		return cmp.Compare(x.XID.String(), y.XID.String())
	})
	return all
}

// TransactionStates is how many distributed transactions are in each of the states
// there are.
func (b *Broker) TransactionStates() map[string]int {
	all := map[string]int{}
	for _, state := range branchStates {
		all[state] = 0
	}
	b.branches.mu.Lock()
	defer b.branches.mu.Unlock()
	for _, br := range b.branches.of {
		all[br.state.String()]++
	}
	return all
}

// statusLocked is what is known under branches.mu.
func (br *branch) statusLocked() TransactionStatus {
	t := TransactionStatus{XID: br.xid, State: br.state.String(), Begun: br.begun}
	if br.c != nil {
		t.Connection, t.ClientID, t.Address = br.c.info.ID, br.c.info.ClientID, br.c.info.Address
	}
	if p := br.stored; p != nil {
		t.Prepared, t.Outcome, t.Acks = p.At, outcomes[p.Outcome], len(p.Acks)
		t.Connection, t.ClientID, t.Address = p.Holder.Connection, p.Holder.ClientID, p.Holder.Address
	}
	return t
}

// measure adds what is known under the transaction's own lock.
func (br *branch) measure(t *TransactionStatus) {
	br.mu.Lock()
	defer br.mu.Unlock()
	if t.State == branchByHand.String() {
		return
	}
	t.Sends = len(br.sends)
	for i := range br.sends {
		if s := &br.sends[i]; s.staged != 0 {
			t.Bytes += int64(s.size)
		} else {
			t.Bytes += int64(s.message.SizeBytes())
		}
	}
	for d := range br.queues {
		t.Queues = append(t.Queues, d.name)
	}
	slices.SortFunc(t.Queues, func(x, y message.Destination) int { return cmp.Compare(x.String(), y.String()) })
}

// EndTransaction commits or rolls back a prepared transaction by hand, over the head
// of its transaction manager, who is told when it next asks. The messages of one that
// is rolled back go back to their queues, also where a consumer still has them.
//
// Errors: ErrNotFound; ErrState where it is not prepared; TransactionEndedError where
// it was ended by hand before.
func (b *Broker) EndTransaction(ctx context.Context, xid message.XID, commit bool) error {
	br, _, err := b.branches.take(xid, branchEnding, branchPrepared)
	if err != nil {
		return err
	}
	answered := make(chan error, 1)
	done := func(err error) { answered <- err }
	if commit {
		br.commitPrepared(ctx, nil, true, done)
	} else {
		br.rollBackPrepared(ctx, true, done)
	}
	return b.await(answered)
}

// ForgetTransaction drops the news of a transaction that was ended by hand: its
// transaction manager will not ask any more. ErrState for any other.
func (b *Broker) ForgetTransaction(xid message.XID) error {
	br, _, err := b.branches.take(xid, branchEnding, branchByHand)
	if err != nil {
		return err
	}
	answered := make(chan error, 1)
	br.forget(func(err error) { answered <- err })
	return b.await(answered)
}

// await waits for an answer, or for the broker's end.
func (b *Broker) await(answered <-chan error) error {
	select {
	case err := <-answered:
		return err
	case <-b.ctx.Done():
		return errStopped
	}
}

// watchTransactions rolls back distributed transactions that are neither prepared
// nor ended in time.
func (b *Broker) watchTransactions() {
	limit := b.o.Limits.TransactionTime
	if limit <= 0 {
		return
	}
	b.running.Go(func() {
		for {
			wake, stop := b.o.Clock.At(b.nextTimeOut(limit))
			select {
			case <-wake:
			case <-b.ctx.Done():
				stop()
				return
			}
			for _, br := range b.branches.overdue(b.now() - limit.Milliseconds()) {
				br.timeOut(limit)
			}
		}
	})
}

// nextTimeOut is when the oldest active transaction has lasted for the limit; what
// begins later lasts longer.
func (b *Broker) nextTimeOut(limit time.Duration) time.Time {
	oldest := b.now()
	b.branches.mu.Lock()
	defer b.branches.mu.Unlock()
	for _, br := range b.branches.of {
		if br.state == branchActive {
			oldest = min(oldest, br.begun)
		}
	}
	return time.UnixMilli(oldest).Add(limit)
}

// overdue are the active transactions begun at a time or before.
func (g *branches) overdue(begun int64) []*branch {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*branch
	for _, br := range g.of {
		if br.state == branchActive && br.begun <= begun {
			all = append(all, br)
		}
	}
	return all
}

// awaitTimeOut waits until what a transaction counted as it timed out is on disk.
func (br *branch) awaitTimeOut(ctx context.Context) error {
	select {
	case <-br.settled:
		return br.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// timeOut rolls an active transaction back. It stays known, so that its client is
// told why.
func (br *branch) timeOut(limit time.Duration) {
	b := br.b
	if _, _, err := b.branches.take(br.xid, branchTimedOut, branchActive); err != nil {
		return // it has just ended
	}
	if err := br.close(b.ctx); err != nil {
		return // the broker stops
	}
	text := fmt.Sprintf("transaction %s was rolled back after %v", br.id, limit)
	b.tell(Event{Kind: TransactionTimedOut, Connection: br.c.info.ID, ClientID: br.c.info.ClientID, Text: text})
	br.rollBack(message.Rollback, text, func(err error) {
		br.failed = err
		close(br.settled)
	})
	br.mu.Lock()
	defer br.mu.Unlock()
	br.sends, br.bytes = nil, 0
}
