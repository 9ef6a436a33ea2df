package broker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// Send takes a message from a producer. done gets nil when it is accepted: on
// disk, if it is persistent and anyone is to keep it; in a transaction, when the
// transaction has it. Send waits while too much is unanswered. It does not wait for
// room: then the message is kept until there is, and done called later (see park.go);
// what a transaction sends waits for room at its commit.
//
// Errors: ErrInvalid for a destination that cannot be sent to, ErrNotFound for a
// temporary destination that is gone, ErrDenied where the client may not send or
// create, ErrOverLimit while the disk is nearly full or the destination is, where that
// refuses what is sent, or for headers that are too large; ErrSchedule and ErrInvalid or ErrOverLimit for a schedule that cannot be
// kept.
func (c *Connection) Send(ctx context.Context, m *message.Message, tx string, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	if err := c.enter(); err != nil {
		done(err)
		return
	}
	defer c.busy.Done()
	c.shape(m)
	if err := c.admit(m); err != nil {
		done(err)
		return
	}
	if tx != "" {
		done(c.sendLater(m, tx))
		return
	}
	if c.b.free(m, c.info.ID) && c.lined.Load() == 0 { // mostly
		c.route(ctx, m, nil, done)
		return
	}
	c.sendWhenRoom(ctx, m, done)
}

// sendWhenRoom is Send for what something may stop.
func (c *Connection) sendWhenRoom(ctx context.Context, m *message.Message, done func(error)) {
	c.whenRoom(sessionOf(m.ID.Producer), &parked{ctx: ctx, bytes: int64(m.SizeBytes()),
		need: func() demand { return c.b.demandOf(m, c.info.ID) },
		run: func(n *demand, drop bool, err error) {
			switch {
			case err != nil:
				done(err)
			case drop:
				c.b.dropped(m.Destination, m)
				done(nil)
			default:
				c.route(ctx, m, n, done)
			}
		}})
}

// free reports whether nothing can stop a message that a connection sends.
func (b *Broker) free(m *message.Message, from string) bool {
	return !b.limited.Load() && (b.Full() == nil || !m.Persistent && !b.scheduled(m) && !b.spills(m, from))
}

// route hands a message that is let in, with the room it takes (nil: none), to whoever is
// to have it.
func (c *Connection) route(ctx context.Context, m *message.Message, room *demand, done func(error)) {
	size := int64(m.SizeBytes())
	if err := c.pass(ctx, size); err != nil {
		room.give()
		done(err)
		return
	}
	c.b.disk.comes(size)
	answered := func(err error) {
		c.gate.leave(size)
		c.b.inbound.leave(size)
		done(err)
	}
	switch {
	case c.b.scheduled(m):
		if known, err := c.scheduledAlready(ctx, m); err != nil {
			answered(err)
			return
		} else if known {
			c.suppress(m, answered)
			return
		}
		u := c.b.newUnit()
		if err := u.addJob(m, 0, 0, ""); err != nil {
			answered(err)
			return
		}
		c.hasFanned(m)
		u.commit(answered)
		return
	case c.b.manages(m):
		c.b.scheduler.manage(m, answered)
		return
	case m.Destination.IsQueue() && !m.Destination.IsComposite() && c.b.alone(m.Destination):
		c.sendToQueue(ctx, m, room.then(answered))
		return
	}
	c.fanOut(ctx, m, room, answered)
}

// sendable says why nothing can be sent to a destination; nil: it can. ActiveMQ makes
// queues and topics that are called as a pattern is, and what they get depends on who
// came first.
func sendable(to message.Destination) error {
	if !to.IsZero() && !to.IsComposite() && !to.IsPattern() { // mostly
		return nil
	}
	parts := to.Parts()
	if to.IsZero() || len(parts) == 0 {
		return fmt.Errorf("cannot send to %q: it names no destination: %w", to, message.ErrInvalid)
	}
	for _, part := range parts {
		if part.IsPattern() {
			return fmt.Errorf("cannot send to %q: %s is a pattern, which is for consumers; send to each destination by its name: %w", to, part, message.ErrInvalid)
		}
	}
	return nil
}

// admit checks what can be known of a message at once.
func (c *Connection) admit(m *message.Message) error {
	if err := sendable(m.Destination); err != nil {
		return err
	}
	if err := c.may(access.Write, m.Destination); err != nil {
		return err
	}
	if c.b.manages(m) && !m.ReplyTo.IsZero() { // copies of others' messages go there
		if err := c.may(access.Write, m.ReplyTo); err != nil {
			return err
		}
	}
	if err := records.Check(m); err != nil {
		return err
	}
	if c.b.scheduled(m) {
		return c.b.checkSchedule(m)
	}
	return nil
}

// pass waits until the connection and the broker may have n more bytes unanswered.
func (c *Connection) pass(ctx context.Context, n int64) error {
	if err := c.gate.enter(ctx, n); err != nil {
		return err
	}
	if err := c.b.inbound.enter(ctx, n); err != nil {
		c.gate.leave(n)
		return err
	}
	return nil
}

func (c *Connection) sendToQueue(ctx context.Context, m *message.Message, done func(error)) {
	for {
		d, err := c.b.queueFor(m.Destination, c.info.ID)
		if err == nil {
			err = c.enqueue(ctx, d, m, done)
		}
		switch {
		case err == nil:
			return
		case d != nil && !m.Destination.IsTemporary() && d.wasRemoved(err):
			continue // just now: it is made anew
		}
		done(err)
		return
	}
}

// enqueue gives a queue a message. done is called unless there is an error.
func (c *Connection) enqueue(ctx context.Context, d *destination, m *message.Message, done func(error)) error {
	it := queue.NewItem(0, m)
	e := queue.Enqueue{Item: it, Done: done}
	if m.Persistent && d.durable {
		if err := c.units.drain(ctx); err != nil { // what was sent to several before it arrives first
			return err
		}
		it.Durable = true
		e.Producer = m.ID.Producer
		c.sentTo(m.ID.Producer, d)
	} else {
		c.b.chargeOrSpill(&e)
	}
	err := d.box.put(ctx, work{command: e})
	if err != nil {
		c.b.memory.discharge(it.Charged)
	}
	return err
}

// sentTo notes that a queue keeps something to tell a producer's duplicates.
func (c *Connection) sentTo(producer string, d *destination) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.producers[producer]
	if to == nil {
		to = map[*destination]bool{}
		c.producers[producer] = to
	}
	to[d] = true
}

// chargeOrSpill counts a message that stays in memory, or sends it to the store
// if there is no room for it.
func (b *Broker) chargeOrSpill(e *queue.Enqueue) {
	if b.memory.charge(e.Item.SizeBytes) {
		e.Item.Charged = e.Item.SizeBytes
	} else {
		e.Spill = true
	}
}

// Publish sends a message by the broker itself, to whoever has subscribed. done
// is called when it is in the hands of every subscription's consumer, or waits for
// one to have room. It is left out where the disk is nearly full, and it would have to be
// written there.
func (b *Broker) Publish(_ context.Context, m *message.Message, done func(error)) error {
	if done == nil {
		done = func(error) {}
	}
	if b.Full() != nil && b.spills(m, "") {
		done(nil) // nobody who does not read what the broker tells fills its disk
		return nil
	}
	u, err := b.fanOut(m, "")
	if err != nil {
		done(err)
		return nil
	}
	u.commit(done)
	return nil
}

// Offer sends a message to one topic consumer of the connection alone.
func (c *Connection) Offer(ctx context.Context, consumer string, m *message.Message, done func(error)) error {
	k := c.consumer(consumer)
	if k == nil || k.sub == nil {
		return fmt.Errorf("topic consumer %s: %w", consumer, message.ErrNotFound)
	}
	e := queue.Enqueue{Item: queue.NewItem(0, m), Done: done}
	c.b.chargeOrSpill(&e)
	return k.sub.d.box.put(ctx, work{command: e})
}

// fanOut makes the unit that sends a message to all who are to have it: what is to
// outlive the process in one batch, the rest after it.
func (b *Broker) fanOut(m *message.Message, from string, without ...message.Destination) (*unit, error) {
	copies, err := b.expand(m, from, without...)
	if err != nil {
		return nil, err
	}
	u := &unit{b: b}
	u.sent(m)
	for _, c := range copies {
		if u.passing == nil && c.passes() {
			u.passing = make([]copyFor, 0, len(copies))
		}
		u.add(c, m)
	}
	return u, nil
}

func (c *Connection) fanOut(ctx context.Context, m *message.Message, room *demand, done func(error)) {
	if last, sent := c.lastFanned(m.ID.Producer); sent && m.ID.Sequence <= last {
		room.give()
		c.suppress(m, done)
		return
	}
	u, err := c.b.fanOut(m, c.info.ID, room.without()...)
	if err == nil {
		err = c.inOrder(ctx, u, 1)
	}
	known := false
	if err == nil {
		known, err = c.knownAlready(ctx, u, m)
	}
	switch {
	case err != nil:
		room.give()
		done(err)
		return
	case known:
		room.give()
		c.suppress(m, done)
		return
	}
	u.room = room
	c.hasFanned(m)
	if p := m.ID.Producer; p != "" {
		for _, g := range u.stored {
			c.sentTo(p, g.to)
		}
	}
	if len(u.stored) == 0 {
		u.commit(done)
		return
	}
	if err := c.units.enter(ctx, 0); err != nil {
		room.give()
		done(err)
		return
	}
	u.commit(func(err error) {
		c.units.leave(0)
		done(err)
	})
}

// hasFanned notes the last message of a producer that no queue is asked about.
func (c *Connection) hasFanned(m *message.Message) {
	if m.ID.Producer == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fanned[m.ID.Producer] = m.ID.Sequence
}

// lastFanned is the last message that a producer has sent on this connection to several
// destinations, a topic, or the scheduler.
func (c *Connection) lastFanned(producer string) (sequence int64, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sequence, sent = c.fanned[producer]
	return sequence, sent
}

// suppress answers a message that a client has sent once more, since it did not get
// the answer to the first (C21).
func (c *Connection) suppress(m *message.Message, done func(error)) {
	c.b.tell(Event{Kind: Suppressed, Destination: m.Destination, Message: m.ID})
	done(nil)
}

// knownAlready reports whether a client has sent a message of a unit on an earlier
// connection. All its copies were one batch: where one of its destinations was given it,
// the others were, or came to be later. What was not to be kept was handed out then, too,
// or its consumers are gone.
func (c *Connection) knownAlready(ctx context.Context, u *unit, m *message.Message) (known bool, err error) {
	if _, sent := c.lastFanned(m.ID.Producer); sent || !c.info.Reconnect {
		return false, nil // what comes after a new one is new
	}
	for _, g := range u.stored {
		err := g.to.do(ctx, func() { known = g.to.machine.Sent(m.ID.Producer, m.ID.Sequence) })
		if known || err != nil {
			return known, err
		}
	}
	return false, nil
}

// scheduledAlready reports whether a message that is to be scheduled was before: its
// client comes back, and has had no answer (C21). The scheduler is asked, so that its job
// is there still, or what was sent on is where it belongs.
func (c *Connection) scheduledAlready(ctx context.Context, m *message.Message) (known bool, err error) {
	if last, sent := c.lastFanned(m.ID.Producer); sent && m.ID.Sequence <= last {
		return true, nil // on this very connection
	}
	if !c.info.Reconnect {
		return false, nil
	}
	var failed error
	err = c.b.scheduler.do(ctx, func() {
		if _, failed = c.b.scheduler.jobByID(m.ID.String()); errors.Is(failed, message.ErrNotFound) {
			known, failed = c.firedAlready(ctx, m)
		} else {
			known = failed == nil
		}
	})
	if err != nil {
		return false, err // and the scheduler may be at it still
	}
	return known, failed
}

// firedAlready reports whether a message that was scheduled has been sent on: to all its
// destinations in one batch, so that one of them is enough (see knownAlready).
func (c *Connection) firedAlready(ctx context.Context, m *message.Message) (fired bool, err error) {
	var all []*destination
	for _, t := range c.b.targets(m, c.info.ID) {
		if t.name.IsQueue() {
			if d := c.b.known(t.name); d != nil {
				all = append(all, d)
			}
			continue
		}
		for _, s := range c.b.route(t.name, "") {
			if s.durable {
				all = append(all, s.d)
			}
		}
	}
	for _, d := range all {
		err := d.do(ctx, func() { fired = d.machine.Sent(m.ID.Producer, m.ID.Sequence) })
		if fired || err != nil {
			return fired, err
		}
	}
	return false, nil
}

// countdown calls done once, when it was called n times itself, with the first error.
func countdown(n int, done func(error)) func(error) {
	if n == 0 {
		done(nil)
		return nil
	}
	var left atomic.Int64
	var first atomic.Pointer[error]
	left.Store(int64(n))
	return func(err error) {
		if err != nil {
			first.CompareAndSwap(nil, &err)
		}
		if left.Add(-1) > 0 {
			return
		}
		if e := first.Load(); e != nil {
			done(*e)
			return
		}
		done(nil)
	}
}
