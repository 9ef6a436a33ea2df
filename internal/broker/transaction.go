package broker

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// A transaction is what a session does between begin and commit: sends, kept here
// or staged in the store, and acknowledgements, kept by the queues.
type transaction struct {
	c            *Connection
	id           string
	sends        []heldSend
	bytes        int64 // of sends in memory
	queues       map[*destination]bool
	rollbackOnly atomic.Pointer[error]
}

// A heldSend is a message that waits for the commit.
type heldSend struct {
	message *message.Message
	staged  uint64 // the sequence under which its body was staged; 0: it was not
	size    int32  // Message.SizeBytes of a staged one, of which only the headers are here
}

// Begin opens a transaction. One that is open already stays as it is (a client
// that comes back begins again, OpenWire 13).
func (c *Connection) Begin(tx string) error {
	if c.txs[tx] == nil {
		c.txs[tx] = &transaction{c: c, id: tx, queues: map[*destination]bool{}}
	}
	return nil
}

func (c *Connection) transaction(tx string) (*transaction, error) {
	t := c.txs[tx]
	if t == nil {
		return nil, fmt.Errorf("transaction %q has not been started: %w", tx, message.ErrNotFound)
	}
	return t, nil
}

// MarkRollbackOnly makes a later commit fail with why (R-BRK-13).
func (c *Connection) MarkRollbackOnly(tx string, why error) {
	if t := c.txs[tx]; t != nil {
		t.rollbackOnly.CompareAndSwap(nil, &why)
	}
}

// sendLater keeps a message until the commit. What is above the transaction's
// limit of memory is staged in the store.
func (c *Connection) sendLater(m *message.Message, tx string) error {
	t, err := c.transaction(tx)
	if err != nil {
		return err
	}
	size := int64(m.SizeBytes())
	if t.bytes+size <= c.b.o.Limits.TransactionBytes || !m.Persistent && !c.b.scheduled(m) {
		t.bytes += size
		t.sends = append(t.sends, heldSend{message: m})
		return nil
	}
	sequence := c.b.o.Records.Next(1)
	batch := new(records.Batch)
	kept := m
	if c.b.scheduled(m) {
		kept = unscheduled(m)
		size = int64(kept.SizeBytes())
	}
	batch.StageMessage(tx, sequence, kept)
	batch.Relax() // the commit makes it durable
	answered := make(chan error, 1)
	c.b.o.Records.Commit(batch, func(err error) { answered <- err })
	if err := <-answered; err != nil {
		return fmt.Errorf("stage message %s of transaction %s: %w", m.ID, tx, err)
	}
	header := *m
	header.Body = nil
	t.sends = append(t.sends, heldSend{message: &header, staged: sequence, size: int32(size)})
	return nil
}

// Commit makes everything of a transaction true in one batch.
func (c *Connection) Commit(ctx context.Context, tx string, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	t, err := c.transaction(tx)
	if err != nil {
		done(err)
		return
	}
	if err := c.enter(); err != nil {
		done(err)
		return
	}
	defer c.busy.Done()
	delete(c.txs, tx)
	if p := t.rollbackOnly.Load(); p != nil {
		why := *p
		t.rollBack(message.Rollback, why.Error(), func(error) {
			done(fmt.Errorf("transaction %s was rolled back: %w", tx, why))
		})
		return
	}
	u, err := t.unit(ctx)
	if err != nil {
		t.rollBack(message.Rollback, err.Error(), func(error) { done(err) })
		return
	}
	u.commit(func(err error) {
		if err != nil { // nothing of it is true
			t.rollBackLater(err.Error())
		}
		done(err)
	})
}

// unit collects what a transaction has to write.
func (t *transaction) unit(ctx context.Context) (*unit, error) {
	u := t.c.b.newUnit()
	for _, s := range t.sends {
		switch b := t.c.b; {
		case b.scheduled(s.message): // counted from the commit on (R-SCH-03)
			if err := u.addJob(s.message, s.staged, s.size, t.id); err != nil {
				return nil, err
			}
			continue
		case b.manages(s.message):
			u.after = append(u.after, func() { b.scheduler.manage(s.message, func(error) {}) })
			if s.staged != 0 {
				u.batch.DropStaged(t.id, s.staged)
			}
			continue
		}
		copies, err := t.c.b.expand(s.message, t.c.info.ID)
		if err != nil {
			return nil, err
		}
		if s.staged != 0 {
			u.staged(s.message, s.staged, s.size, t.id)
		}
		u.sends = append(u.sends, s.message)
		for _, c := range copies {
			u.add(c, s.message)
			if c.message.Persistent && c.to.durable {
				t.c.sentTo(c.message.ID.Producer, c.to)
			}
		}
	}
	if err := t.c.inOrder(ctx, u, 0); err != nil {
		return nil, err
	}
	if err := t.removals(ctx, u); err != nil {
		return nil, err
	}
	for d := range t.queues {
		u.after = append(u.after, func() { d.box.force(work{command: queue.Settle{Tx: t.id, Commit: true}}) })
	}
	return u, nil
}

// removals asks every queue for what the transaction acknowledged there, and
// writes that it is gone. Until the transaction is settled nobody else touches it.
func (t *transaction) removals(ctx context.Context, u *unit) error {
	for d := range t.queues {
		err := d.do(ctx, func() {
			d.commit() // what earlier commands of this turn write must not follow the removals
			d.apply(queue.Prepare{Tx: t.id, Reply: func(items []*queue.Item) {
				for _, it := range items {
					if it.Stored {
						u.batch.Remove(d.id, records.Lane(it.LaneNumber()), &it.Entry, countsOf(it), false)
						d.removed++
					}
				}
			}})
		})
		if err != nil {
			return fmt.Errorf("commit transaction %s: %w", t.id, err)
		}
	}
	return nil
}

// Rollback forgets a transaction. Its messages stay with their consumers, who
// deliver them again by themselves (R-CLIENT-40).
func (c *Connection) Rollback(ctx context.Context, tx string, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	t, err := c.transaction(tx)
	if err != nil {
		done(err)
		return
	}
	delete(c.txs, tx)
	t.rollBack(message.Rollback, "", done)
}

// rollBack settles the transaction at every queue, and drops what it staged.
func (t *transaction) rollBack(cause message.Cause, text string, done func(error)) {
	batch := new(records.Batch)
	for _, s := range t.sends {
		if s.staged != 0 {
			batch.DropStaged(t.id, s.staged)
		}
	}
	if !batch.Empty() {
		batch.Relax()
		t.c.b.o.Records.Commit(batch, func(error) {})
	}
	t.settle(cause, text, done)
}

func (t *transaction) settle(cause message.Cause, text string, done func(error)) {
	answer := countdown(len(t.queues), done)
	for d := range t.queues {
		if !d.box.force(work{command: queue.Settle{Tx: t.id, Cause: cause, Text: text, Done: answer}}) {
			answer(nil) // the queue is gone, and the messages with it
		}
	}
}

// rollBackLater rolls back after a commit that failed. It is called by the store,
// and commits nothing itself: what was staged is dropped at the next start.
func (t *transaction) rollBackLater(text string) {
	t.settle(message.Rollback, text, func(error) {})
}
