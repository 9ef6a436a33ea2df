package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// PrepareXA stores what a distributed transaction has done, in one batch, so that it
// can be committed or rolled back whatever happens (OpenWire 11). done is told
// readOnly where it had done nothing: then it is over.
//
// Errors: ErrNotFound; ErrState where it is not active; TransactionEndedError where it
// was rolled back instead.
func (c *Connection) PrepareXA(ctx context.Context, xid message.XID, done func(readOnly bool, err error)) {
	if err := c.enter(); err != nil {
		done(false, err)
		return
	}
	defer c.busy.Done()
	c.whenBranchRoom(ctx, xid, func(n *demand, err error) {
		c.prepareXA(ctx, xid, n, err, done)
	})
}

// whenBranchRoom is whenTxRoom for a distributed transaction that is active.
func (c *Connection) whenBranchRoom(ctx context.Context, xid message.XID, run func(n *demand, err error)) {
	br := c.b.branches.find(xid.String())
	if br == nil || !c.b.branches.is(br, branchActive) {
		run(&demand{}, nil) // which will say what is wrong with it
		return
	}
	c.whenTxRoom(ctx, &br.transaction, run)
}

// prepareXA prepares a transaction for which there is room, or rolls it back since
// there is none.
func (c *Connection) prepareXA(ctx context.Context, xid message.XID, n *demand, noRoom error, done func(bool, error)) {
	if c.isClosing() && noRoom != nil { // the end of the connection rolls it back
		done(false, noRoom)
		return
	}
	br, err := c.activeBranch(ctx, xid, branchPreparing)
	if noRoom != nil {
		if err == nil {
			br.giveUp(noRoom, func(err error) { done(false, err) })
			return
		}
		done(false, err)
		return
	}
	defer n.give() // what is prepared is stored, and counts from its commit on
	switch {
	case err != nil:
		done(false, err)
		return
	case len(br.sends) == 0 && len(br.queues) == 0:
		c.b.branches.drop(br)
		done(true, nil)
		return
	}
	batch := new(records.Batch)
	p, sends, err := br.prepare(ctx, batch, c.info)
	if err != nil {
		br.giveUp(err, func(err error) { done(false, err) })
		return
	}
	c.b.o.Records.Commit(batch, func(err error) {
		if err != nil {
			c.b.running.Go(func() { br.giveUp(err, func(err error) { done(false, err) }) })
			return
		}
		br.mu.Lock()
		br.sends = sends
		br.mu.Unlock()
		c.b.branches.mu.Lock()
		br.state, br.stored = branchPrepared, p
		c.b.branches.mu.Unlock()
		done(false, nil)
	})
}

// activeBranch takes an active transaction and lets nothing more into it. One that
// can only be rolled back is.
func (c *Connection) activeBranch(ctx context.Context, xid message.XID, to branchState) (*branch, error) {
	br, _, err := c.takeXA(xid, to, branchActive)
	if err != nil {
		return nil, err
	}
	return br, br.finish(ctx)
}

// finish lets nothing more into a transaction that was active. If it can only be
// rolled back it is, and the error says so.
func (br *branch) finish(ctx context.Context) error {
	if err := br.close(ctx); err != nil {
		br.b.branches.set(br, branchActive)
		return err
	}
	if why := br.rollbackOnly.Load(); why != nil {
		answered := make(chan error, 1)
		br.giveUp(*why, func(err error) { answered <- err })
		return <-answered
	}
	return nil
}

// giveUp rolls a transaction back that cannot go on, and tells why.
func (br *branch) giveUp(why error, done func(error)) {
	br.b.branches.drop(br)
	br.rollBack(message.Rollback, why.Error(), func(failed error) { done(&TransactionEndedError{Why: errors.Join(why, failed)}) })
}

// prepare fills the batch, and returns what it stores, and the sends as they are
// once it is on disk.
func (br *branch) prepare(ctx context.Context, batch *records.Batch, by ClientInfo) (*records.Prepared, []heldSend, error) {
	p := &records.Prepared{Sequence: br.b.o.Records.Next(1), XID: br.xid, At: br.b.now(),
		Holder: records.Holder{Connection: by.ID, ClientID: by.ClientID, Address: by.Address, Protocol: by.Protocol}}
	sends := make([]heldSend, len(br.sends))
	for i, s := range br.sends {
		if s.staged == 0 && (s.message.Persistent || br.b.scheduled(s.message)) {
			s = br.stage(batch, s)
		}
		sends[i] = s
		if s.staged == 0 {
			continue // it does not outlive the process
		}
		stored := records.PreparedSend{Sequence: s.staged, SizeBytes: s.size}
		if br.b.scheduled(s.message) {
			stored.Schedule = s.message.Schedule
		}
		p.Sends = append(p.Sends, stored)
	}
	for _, d := range br.places() {
		err := d.do(ctx, func() {
			d.commit() // what earlier commands of this turn write comes before what refers to it
			d.apply(queue.Prepare{Tx: br.id, Reply: func(items []*queue.Item) {
				for _, it := range items {
					if it.Stored && !it.Transient {
						p.Acks = append(p.Acks, d.preparedAck(it))
					}
				}
			}})
		})
		if err != nil && (d.durable || !d.box.isClosed()) {
			return nil, nil, fmt.Errorf("prepare transaction %s: %w", br.id, err)
		}
	}
	batch.PutPrepared(p)
	return p, sends, nil
}

// preparedAck is what the store is to have of an item that a transaction acknowledges.
func (d *destination) preparedAck(it *queue.Item) records.PreparedAck {
	h := it.Held()
	a := records.PreparedAck{Queue: d.id, Lane: records.Lane(it.LaneNumber()), Position: it.Position,
		HandedOut: h.HandedOut, HandOuts: h.HandOuts, Told: int32(h.Told)}
	if k := h.Consumer; k != nil {
		a.Holder = records.Holder{Consumer: k.ID, Connection: k.Connection, ClientID: k.ClientID, Address: k.Address, Protocol: k.Protocol}
	}
	return a
}

// CommitXA commits a distributed transaction that is prepared, or with onePhase one
// that is active.
//
// Errors: ErrNotFound; ErrState where it is not in that state; TransactionEndedError
// where it was rolled back, or ended by hand; ErrUnavailable where it is still
// prepared and can be committed later.
func (c *Connection) CommitXA(ctx context.Context, xid message.XID, onePhase bool, done func(error)) {
	if err := c.enter(); err != nil {
		done(err)
		return
	}
	defer c.busy.Done()
	from := []branchState{branchPrepared}
	if onePhase {
		from = append(from, branchActive)
	}
	c.whenBranchRoom(ctx, xid, func(n *demand, noRoom error) {
		if c.isClosing() && noRoom != nil { // the end of the connection rolls it back
			done(noRoom)
			return
		}
		br, was, err := c.takeXA(xid, branchEnding, from...)
		switch {
		case err == nil && was == branchPrepared:
			n.give() // it was let in when it was prepared
			br.commitPrepared(ctx, c, false, done)
			return
		case err == nil:
			err = br.finish(ctx)
		}
		switch {
		case err != nil:
		case noRoom != nil:
			br.giveUp(noRoom, done)
			return
		default:
			br.commitActive(ctx, c, n, done)
			return
		}
		if noRoom == nil {
			n.give()
		}
		done(err)
	})
}

// commitActive commits a transaction that is not prepared and takes nothing any more.
func (br *branch) commitActive(ctx context.Context, by *Connection, room *demand, done func(error)) {
	u, err := br.unit(ctx, by)
	if err != nil {
		room.give()
		br.giveUp(err, done)
		return
	}
	u.room = room
	u.commit(func(err error) {
		br.b.branches.drop(br)
		if err != nil { // nothing of it is true
			br.rollBackLater(err.Error(), func(failed error) { done(&TransactionEndedError{Why: errors.Join(err, failed)}) })
			return
		}
		done(nil)
	})
}

// commitPrepared commits a prepared transaction in one batch. What fails leaves it
// prepared.
func (br *branch) commitPrepared(ctx context.Context, by *Connection, byHand bool, done func(error)) {
	again := func(err error) {
		br.b.branches.set(br, branchPrepared)
		done(br.later("commit", err))
	}
	if err := br.resolve(); err != nil {
		again(err)
		return
	}
	br.promised = true
	u, err := br.unit(ctx, by)
	if err != nil {
		again(err)
		return
	}
	br.end(u.batch, records.Committed, byHand)
	u.commit(func(err error) {
		if err != nil {
			again(err)
			return
		}
		br.ended(records.Committed, byHand)
		done(nil)
	})
}

// end writes that a prepared transaction has ended.
func (br *branch) end(batch *records.Batch, o records.Outcome, byHand bool) {
	switch {
	case byHand:
		batch.PutOutcome(br.stored, o)
	case o == records.Committed:
		batch.PutOutcome(br.stored, records.Ended)
		for _, sequence := range br.b.branches.makeRoom() {
			batch.DropPrepared(&records.Prepared{Sequence: sequence})
		}
	default:
		batch.DropPrepared(br.stored)
	}
}

// ended notes that a prepared transaction has ended, and that this is on disk.
func (br *branch) ended(o records.Outcome, byHand bool) {
	if !byHand {
		if o == records.Committed {
			br.b.branches.remember(ended{id: br.id, record: br.stored.Sequence})
		}
		br.b.branches.drop(br)
		return
	}
	br.b.branches.mu.Lock()
	defer br.b.branches.mu.Unlock()
	p := *br.stored
	p.Outcome, p.Sends, p.Acks = o, nil, nil
	br.stored, br.state = &p, branchByHand
}

// later is the error of a prepared transaction that stays one.
func (br *branch) later(what string, err error) error {
	if errors.Is(err, message.ErrUnavailable) {
		return fmt.Errorf("%s transaction %s, which stays prepared: %w", what, br.id, err)
	}
	return fmt.Errorf("%s transaction %s, which stays prepared: %w: %w", what, br.id, message.ErrUnavailable, err)
}

// RollbackXA rolls a distributed transaction back, whatever its state. Messages that
// consumers still have stay with them: their client delivers them again by itself
// (R-CLIENT-40).
func (c *Connection) RollbackXA(ctx context.Context, xid message.XID, done func(error)) {
	br, was, err := c.takeXA(xid, branchEnding, branchActive, branchPrepared, branchTimedOut)
	if err != nil {
		done(err)
		return
	}
	br.rollBackFrom(ctx, was, done)
}

func (br *branch) rollBackFrom(ctx context.Context, was branchState, done func(error)) {
	switch was {
	case branchPrepared:
		br.rollBackPrepared(ctx, false, done)
	case branchTimedOut:
		br.b.branches.drop(br)
		done(br.awaitTimeOut(ctx))
	default:
		if err := br.close(ctx); err != nil {
			br.b.branches.set(br, branchActive)
			done(err)
			return
		}
		br.b.branches.drop(br)
		br.rollBack(message.Rollback, "", done)
	}
}

// rollBackPrepared drops a prepared transaction in one batch, with what its rollback
// counts, and then gives its messages back.
func (br *branch) rollBackPrepared(ctx context.Context, byHand bool, done func(error)) {
	again := func(err error) {
		br.b.branches.set(br, branchPrepared)
		done(br.later("roll back", err))
	}
	if err := br.resolve(); err != nil {
		again(err)
		return
	}
	batch := new(records.Batch)
	br.dropStaged(batch)
	br.end(batch, records.RolledBack, byHand)
	settle := queue.Settle{Cause: message.Rollback, TakeBack: byHand, Done: done}
	if byHand {
		settle.Text = "rolled back by hand"
	}
	stored, err := br.foretell(ctx, batch, settle)
	if err != nil {
		again(err)
		return
	}
	br.b.o.Records.Commit(batch, func(err error) {
		if err != nil {
			again(err)
			return
		}
		br.ended(records.RolledBack, byHand)
		for d, written := range stored {
			d.box.force(work{do: written})
		}
		br.settle(settle)
	})
}

// foretell adds to the batch what a rollback counts. Until the transaction is settled
// nobody else touches its messages; their destinations are to be told before that, by
// the functions it returns, that the batch was stored.
func (br *branch) foretell(ctx context.Context, batch *records.Batch, end queue.Settle) (map[*destination]func(), error) {
	stored := map[*destination]func(){}
	for _, d := range br.places() {
		err := d.do(ctx, func() {
			d.commit() // what earlier commands of this turn write must not follow this
			d.apply(queue.Foretell{Tx: br.id, Cause: end.Cause, Text: end.Text, Reply: func(all []queue.Foretold) {
				all = slices.DeleteFunc(all, func(f queue.Foretold) bool { return !d.writeForetold(batch, &f) })
				stored[d] = func() {
					for i := range all {
						all[i].Item.HasCounts, all[i].Item.Indexed = true, all[i].Counts.Due
					}
				}
			}})
		})
		if err != nil && (d.durable || !d.box.isClosed()) {
			return nil, fmt.Errorf("roll back transaction %s: %w", br.id, err)
		}
	}
	return stored, nil
}

// writeForetold writes what a rollback counts of one item, if it belongs into the batch,
// which the store must be able to take: of many thousands the rest is counted after it.
func (d *destination) writeForetold(b *records.Batch, f *queue.Foretold) bool {
	it := f.Item
	if !it.Stored || it.Transient || b.SizeBytes() > d.b.splitBytes() {
		return false
	}
	after := *it
	after.Counts = f.Counts
	lane := records.Lane(it.LaneNumber())
	b.PutAttempt(f.Counts.Story, f.Attempt)
	if f.Drop > 0 {
		b.DropAttempt(f.Counts.Story, f.Drop)
	}
	b.PutCounts(d.id, lane, it.Position, &f.Counts)
	d.index(b, &after, lane)
	return true
}

// ForgetXA forgets a distributed transaction that was ended by hand. Any other is
// rolled back, as ActiveMQ does (OpenWire 11).
func (c *Connection) ForgetXA(ctx context.Context, xid message.XID, done func(error)) {
	br, was, err := c.takeXA(xid, branchEnding, branchActive, branchPrepared, branchTimedOut, branchByHand)
	if err != nil {
		done(err)
		return
	}
	if was == branchByHand {
		br.forget(done)
		return
	}
	br.rollBackFrom(ctx, was, done)
}

// forget drops the news of a transaction that was ended by hand.
func (br *branch) forget(done func(error)) {
	batch := new(records.Batch)
	batch.DropPrepared(br.stored)
	br.b.o.Records.Commit(batch, func(err error) {
		if err != nil {
			br.b.branches.set(br, branchByHand)
			done(fmt.Errorf("forget transaction %s: %w", br.id, err))
			return
		}
		br.b.branches.drop(br)
		done(nil)
	})
}

// rollBackBranches rolls back what a connection that ends has begun and not prepared
// (OpenWire 11), and waits until that is done.
func (c *Connection) rollBackBranches(cause message.Cause, text string) {
	active, timedOut := c.b.branches.begunBy(c)
	for _, br := range timedOut {
		c.b.branches.drop(br)
	}
	for _, br := range active {
		if _, _, err := c.b.branches.take(br.xid, branchEnding, branchActive); err != nil {
			continue // someone else was faster
		}
		if err := br.close(c.b.ctx); err != nil {
			return // the broker stops
		}
		c.b.branches.drop(br)
		done := make(chan struct{})
		br.rollBack(cause, text, func(error) { close(done) })
		<-done
	}
}
