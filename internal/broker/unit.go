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

// A unit is work over several destinations that takes effect as one batch: the
// sends and acknowledgements of a transaction, or the copies of one message.
type unit struct {
	b       *Broker
	batch   *records.Batch // nil: there is nothing to store
	stored  []gain         // arrive when the batch is on disk
	passing []copyFor      // do not outlive the process, and follow then
	sends   []*message.Message
	bodies  map[*message.Message]*sharedBody
	jobs    []jobFor // scheduled messages
	relay   bool     // the scheduler sends: what producers have sent since says more of them
	after   []func() // when the batch is on disk, before anything else
	room    *demand  // that it was let in with; nil: none
}

// A sharedBody is one stored message with several entries.
type sharedBody struct {
	sequence uint64
	staged   string // the transaction under which it was staged; "": not yet stored
	size     int32  // of the message, where it was staged
	entries  []*message.Entry
}

func (b *Broker) newUnit() *unit {
	return &unit{b: b, batch: b.freeBatch()}
}

// freeBatch is an empty batch, of those that units have used if there is one.
func (b *Broker) freeBatch() *records.Batch {
	if batch, ok := b.batches.Get().(*records.Batch); ok {
		return batch
	}
	return new(records.Batch)
}

// sent notes that a message was sent, for those who watch (see toldSent).
func (u *unit) sent(m *message.Message) {
	if u.b.watchers.Load() > 0 {
		u.sends = append(u.sends, m)
	}
}

// add puts a copy of the message original into the unit. What differs about the
// copy, its destination, goes into an overlay, so that all share one body.
func (u *unit) add(c copyFor, original *message.Message) {
	if c.passes() {
		u.passing = append(u.passing, c)
		return
	}
	if u.batch == nil {
		u.batch = u.b.freeBatch()
	}
	it := queue.NewItem(0, c.message)
	it.Durable, it.Stored = true, true
	if c.message != original {
		it.Overlay = &message.Overlay{Destination: c.message.Destination, OriginalDestination: c.message.OriginalDestination,
			Persistent: true, Expiration: c.message.Expiration, TransactionID: c.message.TransactionID, Added: c.message.Added}
		if c.message.BrokerInTime != original.BrokerInTime {
			it.Overlay.BrokerInTime = c.message.BrokerInTime
		}
	}
	it.Message = original
	u.stored = append(u.stored, gain{to: c.to, item: it})
}

// staged says that a message of the unit was staged already.
func (u *unit) staged(m *message.Message, sequence uint64, size int32, tx string) {
	if u.bodies == nil {
		u.bodies = map[*message.Message]*sharedBody{}
	}
	u.bodies[m] = &sharedBody{sequence: sequence, staged: tx, size: size}
}

// inOrder lets the queues of a unit take what the connection sent them before,
// without a transaction and without waiting for the answer: the unit's messages
// are numbered here, and must not get ahead of it. own is how many of the
// unanswered sends are this one.
func (c *Connection) inOrder(ctx context.Context, u *unit, own int) error {
	if c.gate.idle(own) {
		return nil
	}
	return u.catchUp(ctx)
}

// catchUp lets the queues of a unit take what lies in their mailboxes.
func (u *unit) catchUp(ctx context.Context) error {
	asked := map[*destination]bool{}
	for _, g := range u.stored {
		if g.to.sub == nil && !asked[g.to] { // subscriptions get nothing but by units
			asked[g.to] = true
			if err := g.to.do(ctx, func() {}); err != nil {
				return err
			}
		}
	}
	return nil
}

// write fills the batch with what is to be stored and tells the destinations to
// expect it.
func (u *unit) write() {
	if u.bodies == nil {
		u.bodies = make(map[*message.Message]*sharedBody, 1)
	}
	u.b.numbering.RLock()
	defer u.b.numbering.RUnlock()
	u.stored = slices.DeleteFunc(u.stored, func(g gain) bool { return g.to.box.isClosed() && g.to.box.left() == nil }) // it was removed
	for _, g := range u.stored {
		m := g.item.Message
		g.item.Position = u.b.o.Records.Next(1)
		body := u.bodies[m]
		if body == nil {
			body = &sharedBody{sequence: g.item.Position}
			u.bodies[m] = body
		}
		g.item.Body = body.sequence
		if body.size > 0 {
			g.item.SizeBytes = body.size
		}
		body.entries = append(body.entries, &g.item.Entry)
		g.to.box.force(work{command: queue.Expect{Positions: []uint64{g.item.Position}}})
	}
	for m, body := range u.bodies {
		n := len(body.entries)
		for _, e := range body.entries {
			e.Shared = n > 1
		}
		switch {
		case body.staged != "" && n == 0:
			u.batch.DropStaged(body.staged, body.sequence)
		case body.staged != "":
			u.batch.Unstage(body.staged, body.sequence)
			if n > 1 {
				u.batch.AddReferences(body.sequence, n-1)
			}
		default:
			u.batch.PutMessage(body.sequence, m, n)
		}
	}
	u.writeJobs()
	for _, g := range u.stored {
		u.batch.Append(g.to.id, records.Lane(g.to.options.LaneOf(g.item.Priority)), &g.item.Entry)
		if p := g.item.ID.Producer; p != "" && !u.relay {
			u.batch.PutProducer(g.to.id, p, g.item.ID.Sequence, u.b.now())
		}
	}
}

// commit makes the unit true. done is called once, when every destination has
// what it gets; a destination that has gone meanwhile is not waited for.
func (u *unit) commit(done func(error)) {
	// What was numbered first is handed over first, and answered first.
	handedOver := u.b.order.hold(&u.b.order.writing)
	if u.batch != nil {
		u.write()
	}
	if u.batch == nil || u.batch.Empty() {
		handedOver()
		u.follow(done)
		return
	}
	defer handedOver()
	u.b.o.Records.Commit(u.batch, func(err error) {
		u.batch.Reset()
		u.b.batches.Put(u.batch)
		u.batch = nil
		if err != nil {
			for _, g := range u.stored {
				g.to.box.force(work{command: queue.Cancel{Positions: []uint64{g.item.Position}}})
			}
			u.room.give()
			if errors.Is(err, message.ErrOverLimit) {
				err = fmt.Errorf("too much for one step, %d messages with the copies of each subscriber; commit after fewer: %w", len(u.stored), err)
			}
			done(fmt.Errorf("commit: %w", err))
			return
		}
		u.follow(done)
	})
}

// follow gives the destinations what is theirs now. It does not block.
func (u *unit) follow(done func(error)) {
	for _, f := range u.after {
		f()
	}
	for _, f := range u.jobs {
		u.b.scheduler.announce(records.JobTime{Due: f.job.Due, Sequence: f.job.Sequence})
	}
	for _, m := range u.sends {
		u.b.toldSent(m)
	}
	counted := u.counted()
	var answer func(error)
	if n := len(u.passing); n > 0 {
		answer = both(counted, countdown(n, done))
	}
	gone := 0
	arrived := u.b.order.hold(&u.b.order.arriving)
	for _, g := range u.stored {
		if u.bodies[g.item.Message].staged != "" {
			g.item.Message = nil // only its headers were kept
		} else if u.b.memory.charge(g.item.SizeBytes) {
			g.item.Charged = g.item.SizeBytes
		} else {
			g.item.Message = nil // it is read when someone takes it
		}
		if !g.to.box.force(work{command: queue.Arrive{Items: []*queue.Item{g.item}, Noted: u.relay}}) {
			u.b.memory.giveBack(g.item)
		}
		g.to.afterTurn(counted)
	}
	for rest := u.passing; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].message == rest[0].message {
			n++
		}
		gone += u.b.pass(rest[:n], answer)
		rest = rest[n:]
	}
	arrived()
	if answer == nil {
		done(nil)
	}
	for range gone {
		answer(nil)
	}
}

// pass gives copies of one message, which do not outlive the process, to their
// destinations. answer is called for each whose destination is there; gone says how many
// others there are.
func (b *Broker) pass(copies []copyFor, answer func(error)) (gone int) {
	var shared *queue.Share
	if n := len(copies); n > 1 {
		shared = b.memory.share(int32(copies[0].message.SizeBytes()), n)
	}
	var toConsumer func(error) // answers for a topic's consumer, which may leave meanwhile
	for _, c := range copies {
		done := answer
		if c.to.sub != nil {
			if toConsumer == nil {
				toConsumer = unlessGone(answer)
			}
			done = toConsumer
		}
		e := queue.Enqueue{Item: queue.NewItem(0, c.message), Done: done}
		if shared != nil {
			e.Item.Charged, e.Item.Share = itemBytes, shared
		} else {
			b.chargeOrSpill(&e)
		}
		if !c.to.box.force(work{command: e}) {
			b.memory.giveBack(e.Item)
			gone++ // its consumer
		}
	}
	return gone
}

// unlessGone is done, to which it is no failure that the destination has gone.
func unlessGone(done func(error)) func(error) {
	return func(err error) {
		if errors.Is(err, message.ErrNotFound) {
			err = nil
		}
		done(err)
	}
}

// counted is to be called for everything that the unit adds, when it counts where it
// went: then the room that the unit took for it is given back. nil: it took none.
func (u *unit) counted() func(error) {
	if u.room.empty() {
		return nil
	}
	return countdown(len(u.stored)+len(u.passing), func(error) { u.room.give() })
}

// both calls first, unless it is nil, and then second.
func both(first, second func(error)) func(error) {
	if first == nil {
		return second
	}
	return func(err error) {
		first(err)
		second(err)
	}
}
