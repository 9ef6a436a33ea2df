package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// A transaction is what a session does between begin and commit: sends, kept here
// or staged in the store, and acknowledgements, kept by the queues. A distributed
// one may be worked on by several connections (branch).
type transaction struct {
	b            *Broker
	c            *Connection // that began it; nil: it was prepared before this process
	id           string
	rollbackOnly atomic.Pointer[error]
	promised     bool // it is prepared, and being committed

	mu     sync.Mutex
	sends  []heldSend
	bytes  int64 // of sends in memory
	queues map[*destination]bool
	owns   map[*room]int64 // bytes of sends to destinations with limits
	over   bool            // it takes nothing any more
	busy   int             // commands that are under way
	idle   chan struct{}   // closed when busy comes down to 0; nil while nobody waits for that
}

// A heldSend is a message that waits for the commit.
type heldSend struct {
	message  *message.Message
	from     string            // the connection that sent it
	staged   uint64            // the sequence under which its body was staged; 0: it was not
	size     int32             // Message.SizeBytes of a staged one, of which only the headers are here
	schedule *message.Schedule // of one that was staged before this process, and whose message is nil
}

// Begin opens a transaction. One that is open already stays as it is (a client
// that comes back begins again, OpenWire 13).
func (c *Connection) Begin(tx string) error {
	if c.txs[tx] == nil {
		c.txs[tx] = &transaction{b: c.b, c: c, id: tx, queues: map[*destination]bool{}}
	}
	return nil
}

// ErrNotStarted is what a transaction is that there is not.
var ErrNotStarted = fmt.Errorf("has not been started: %w", message.ErrNotFound)

// transaction finds an open transaction: of the connection, or a distributed one.
func (c *Connection) transaction(tx string) (*transaction, error) {
	if t := c.txs[tx]; t != nil {
		return t, nil
	}
	if br := c.b.branches.find(tx); br != nil {
		return &br.transaction, nil
	}
	return nil, notStarted(tx)
}

func notStarted(tx string) error {
	return fmt.Errorf("transaction %q %w", tx, ErrNotStarted)
}

// enter notes that a command of the transaction is under way. It fails once the
// transaction is about to end.
func (t *transaction) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return fmt.Errorf("transaction %s is ending and takes nothing any more: %w", t.id, message.ErrState)
	}
	t.busy++
	return nil
}

func (t *transaction) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy--
	if t.busy == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// close lets nothing more into the transaction, and waits for what is under way.
// Where ctx ends first the transaction is open again.
func (t *transaction) close(ctx context.Context) error {
	t.mu.Lock()
	t.over = true
	if t.busy == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		t.over = false
		return context.Cause(ctx)
	}
}

// uses notes that the transaction acknowledges something of a destination.
func (t *transaction) uses(d *destination) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queues[d] = true
}

// places are the destinations of which the transaction acknowledges something.
func (t *transaction) places() []*destination {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.queues))
}

// MarkRollbackOnly makes a later commit fail with why (R-BRK-13).
func (c *Connection) MarkRollbackOnly(tx string, why error) {
	if t, err := c.transaction(tx); err == nil {
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
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	drop, low, err := c.mayHold(t, m)
	if drop || err != nil {
		return err
	}
	c.b.disk.comes(int64(m.SizeBytes()))
	s := heldSend{message: m, from: c.info.ID}
	if !t.keeps(int64(m.SizeBytes()), m.Persistent || c.b.scheduled(m)) {
		if low != nil {
			return fmt.Errorf("transaction %s is too large to be kept in memory while there is no room to store it: %w", tx, low)
		}
		batch := new(records.Batch)
		s = t.stage(batch, s)
		batch.Relax() // the commit makes it durable
		answered := make(chan error, 1)
		c.b.o.Records.Commit(batch, func(err error) { answered <- err })
		if err := <-answered; err != nil {
			return fmt.Errorf("stage message %s of transaction %s: %w", m.ID, tx, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sends = append(t.sends, s)
	return nil
}

// mayHold decides whether a transaction may take a message, which will wait for room at
// the commit: drop says that it may, and that the message is discarded; low, why nothing
// may be stored now.
func (c *Connection) mayHold(t *transaction, m *message.Message) (drop bool, low, err error) {
	if c.b.free(m, c.info.ID) {
		return false, nil, nil
	}
	n := c.b.demandOf(m, c.info.ID)
	t.mu.Lock()
	for i := range n.parts {
		n.parts[i].own = t.owns[n.parts[i].room]
	}
	t.mu.Unlock()
	switch o := c.b.ask(&n, judge{}, false); o.verdict {
	case refuseIt:
		return false, nil, c.refused(&n, &o)
	case dropIt:
		c.b.dropped(m.Destination, m)
		return true, nil, nil
	case holdIt:
		if o.room == nil {
			low = o.why
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owns == nil {
		t.owns = map[*room]int64{}
	}
	for i := range n.parts {
		t.owns[n.parts[i].room] += n.parts[i].bytes
	}
	return false, low, nil
}

// needs is the room that the transaction needs to be committed: where messages are
// refused or dropped, those that it has were let in before.
func (t *transaction) needs() demand {
	t.mu.Lock()
	sends := slices.Clone(t.sends)
	t.mu.Unlock()
	var n demand
	if len(sends) == 0 {
		return n
	}
	for i := range sends {
		m, err := t.header(&sends[i])
		if err != nil {
			continue // the commit will say so
		}
		if i == 0 {
			n.to, n.producer = m.Destination, m.ID.Producer
		}
		n.stored = n.stored || m.Persistent || t.b.scheduled(m)
		if before, from := n.spills, sends[i].from; !n.stored {
			n.spills = func() bool { return before != nil && before() || t.b.spills(m, from) }
		}
		if t.b.limited.Load() && !t.b.scheduled(m) && !t.b.manages(m) {
			t.b.addDemand(&n, m, sends[i].from, max(int64(sends[i].size), int64(m.SizeBytes())))
		}
	}
	return n
}

// session is that of the first send; empty where there is none.
func (t *transaction) session() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sends) == 0 || t.sends[0].message == nil {
		return ""
	}
	return sessionOf(t.sends[0].message.ID.Producer)
}

// whenTxRoom runs run when there is room for what a transaction sends: with the demand
// taken, or the reason why not.
func (c *Connection) whenTxRoom(ctx context.Context, t *transaction, run func(n *demand, err error)) {
	if !c.b.limited.Load() && c.b.Full() == nil && c.lined.Load() == 0 {
		run(&demand{}, nil)
		return
	}
	c.whenRoom(t.session(), &parked{ctx: ctx, held: true, need: t.needs, run: func(n *demand, _ bool, err error) { run(n, err) }})
}

// keeps reports whether a message stays in memory, and counts it then.
func (t *transaction) keeps(size int64, stageable bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if stageable && t.bytes+size > t.b.o.Limits.TransactionBytes {
		return false
	}
	t.bytes += size
	return true
}

// stage writes that a message of the transaction is staged, and returns what stays
// of it in memory.
func (t *transaction) stage(batch *records.Batch, s heldSend) heldSend {
	kept := s.message
	if t.b.scheduled(kept) {
		kept = unscheduled(kept)
	}
	header := *s.message
	header.Body = nil
	s.message, s.staged, s.size = &header, t.b.o.Records.Next(1), int32(kept.SizeBytes())
	batch.StageMessage(t.id, s.staged, kept)
	return s
}

// Commit makes everything of a transaction true in one batch.
func (c *Connection) Commit(ctx context.Context, tx string, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	t := c.txs[tx]
	if t == nil {
		done(notStarted(tx))
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
		t.rollBack(message.Rollback, why.Error(), func(failed error) {
			done(fmt.Errorf("transaction %s was rolled back: %w", tx, errors.Join(why, failed)))
		})
		return
	}
	c.whenTxRoom(ctx, t, func(n *demand, err error) {
		if err != nil && c.leaveUndone(t) {
			done(err)
			return
		}
		var u *unit
		if err == nil {
			if u, err = t.unit(ctx, c); err != nil {
				n.give()
			}
		}
		if err != nil {
			t.rollBack(message.Rollback, err.Error(), func(failed error) { done(errors.Join(err, failed)) })
			return
		}
		u.room = n
		u.commit(func(err error) {
			if err != nil { // nothing of it is true
				t.rollBackLater(err.Error(), func(failed error) { done(errors.Join(err, failed)) })
				return
			}
			done(nil)
		})
	})
}

// leaveUndone leaves a transaction that waited to be committed to the end of its
// connection, which rolls it back. It reports whether the connection ends.
func (c *Connection) leaveUndone(t *transaction) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		c.undone = append(c.undone, t)
	}
	return c.closing
}

// unit collects what a transaction has to write. by is the connection that commits
// it; nil: no client does.
func (t *transaction) unit(ctx context.Context, by *Connection) (*unit, error) {
	b := t.b
	u := b.newUnit()
	alone := by != nil // nobody else has sent anything
	for i := range t.sends {
		s := &t.sends[i]
		m, err := t.header(s)
		if err != nil {
			return nil, err
		}
		switch {
		case b.scheduled(m): // counted from the commit on (R-SCH-03)
			if err := u.addJob(m, s.staged, s.size, t.id); err != nil {
				return nil, err
			}
			continue
		case b.manages(m):
			u.after = append(u.after, func() { b.scheduler.manage(m, func(error) {}) })
			if s.staged != 0 {
				u.batch.DropStaged(t.id, s.staged)
			}
			continue
		}
		copies, err := t.expand(u, m, s.from)
		if err != nil {
			return nil, err
		}
		if s.staged != 0 {
			u.staged(m, s.staged, s.size, t.id)
			if err := t.whole(s, copies); err != nil {
				return nil, err
			}
		}
		u.sent(m)
		own := by != nil && s.from == by.info.ID
		alone = alone && own
		for _, c := range copies {
			u.add(c, m)
			if c.message.Persistent && c.to.durable && own {
				by.sentTo(c.message.ID.Producer, c.to)
			}
		}
	}
	if err := u.inOrder(ctx, by, alone); err != nil {
		return nil, err
	}
	if err := t.removals(ctx, u); err != nil {
		return nil, err
	}
	for _, d := range t.places() {
		u.after = append(u.after, func() { d.box.force(work{command: queue.Settle{Tx: t.id, Commit: true}}) })
	}
	return u, nil
}

// expand lists the copies of a send. A transaction that is prepared has promised that it
// can be committed: what is for a temporary destination that has gone since then, as it
// does with the process, is dropped, as all is that such a destination holds.
func (t *transaction) expand(u *unit, m *message.Message, from string) ([]copyFor, error) {
	if !t.promised {
		return t.b.expand(m, from)
	}
	copies, gone, err := t.b.expandPromised(m, from)
	for _, d := range gone {
		u.after = append(u.after, func() {
			t.b.tell(Event{Kind: Discarded, Destination: d, Message: m.ID, Text: "sent in a distributed transaction to a destination that is gone"})
		})
	}
	return copies, err
}

// header is the message of a send, without its body where that was staged.
func (t *transaction) header(s *heldSend) (*message.Message, error) {
	if s.message != nil {
		return s.message, nil
	}
	m, err := t.b.o.Records.Header(&message.Entry{Body: s.staged, SizeBytes: s.size})
	if unreadable(err) { // it is among the dead letters as it lies: where it was to go, nobody knows
		t.b.tell(Event{Kind: RecordDamaged, Destination: asideQueue, Text: fmt.Sprintf("a message that transaction %s sends cannot be read, and goes to %s: %v", t.id, asideQueue, err)})
		return &message.Message{ID: message.ID{Text: fmt.Sprintf("ID:damaged-%d", s.staged)}, Destination: asideQueue, Persistent: true, Priority: message.DefaultPriority}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("transaction %s: %w", t.id, err)
	}
	if s.schedule != nil {
		c := *m
		c.Schedule = new(*s.schedule)
		c.Schedule.Properties = m.Properties
		m = &c
	}
	return m, nil
}

// whole reads the body of a staged message for copies that will not be read from the
// store.
func (t *transaction) whole(s *heldSend, copies []copyFor) error {
	var full *message.Message
	for i := range copies {
		c := &copies[i]
		if c.message.Persistent && c.to.durable {
			continue
		}
		if full == nil {
			var err error
			if full, err = t.b.o.Records.Message(&message.Entry{Body: s.staged, SizeBytes: s.size}); err != nil {
				return fmt.Errorf("transaction %s: %w", t.id, err)
			}
		}
		m := *c.message
		m.Body, m.Properties = full.Body, full.Properties
		c.message = &m
	}
	return nil
}

// inOrder is Connection.inOrder where the connection alone has sent what the unit
// stores; else nobody knows what its senders sent before, and all queues are asked.
func (u *unit) inOrder(ctx context.Context, by *Connection, alone bool) error {
	if alone {
		return by.inOrder(ctx, u, 0)
	}
	return u.catchUp(ctx)
}

// removals asks every queue for what the transaction acknowledged there, and
// writes that it is gone. Until the transaction is settled nobody else touches it.
func (t *transaction) removals(ctx context.Context, u *unit) error {
	for _, d := range t.places() {
		err := d.do(ctx, func() {
			d.commit() // what earlier commands of this turn write must not follow the removals
			d.apply(queue.Prepare{Tx: t.id, Reply: func(items []*queue.Item) {
				for _, it := range items {
					if it.Stored {
						d.remove(u.batch, it, records.Lane(it.LaneNumber()), false)
						d.removed++
					}
				}
			}})
		})
		if err != nil && (d.durable || !d.box.isClosed()) { // else what was acknowledged there is gone
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
	t := c.txs[tx]
	if t == nil {
		done(notStarted(tx))
		return
	}
	delete(c.txs, tx)
	t.rollBack(message.Rollback, "", done)
}

// rollBack settles the transaction at every queue, and drops what it staged.
func (t *transaction) rollBack(cause message.Cause, text string, done func(error)) {
	batch := new(records.Batch)
	t.dropStaged(batch)
	if !batch.Empty() {
		batch.Relax()
		t.b.o.Records.Commit(batch, func(error) {})
	}
	t.settle(queue.Settle{Cause: cause, Text: text, Done: done})
}

func (t *transaction) dropStaged(batch *records.Batch) {
	for _, s := range t.sends {
		if s.staged != 0 {
			batch.DropStaged(t.id, s.staged)
		}
	}
}

// settle tells every queue how the transaction ended. It may be called by the store.
func (t *transaction) settle(end queue.Settle) {
	end.Tx = t.id
	places := t.places()
	answer := countdown(len(places), end.Done)
	end.Done = answer
	for _, d := range places {
		if !d.box.force(work{command: end}) {
			answer(d.box.left())
		}
	}
}

// rollBackLater rolls back after a commit that failed. It is called by the store,
// and commits nothing itself: what was staged is dropped at the next start. done is
// told when the failures are on disk.
func (t *transaction) rollBackLater(text string, done func(error)) {
	t.settle(queue.Settle{Cause: message.Rollback, Text: text, Done: done})
}
