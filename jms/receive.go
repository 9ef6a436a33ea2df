package jms

import (
	"context"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// Receive waits for a message. In an AutoAcknowledge session it is acknowledged before
// Receive returns it, as in JMS (R-CLIENT-11).
func (k *Consumer) Receive(ctx context.Context) (*Message, error) {
	return k.receive(ctx, time.Time{}, false)
}

// ReceiveTimeout waits for a message at most for d; then it is ErrNoMessage.
func (k *Consumer) ReceiveTimeout(ctx context.Context, d time.Duration) (*Message, error) {
	if d <= 0 {
		return k.ReceiveNoWait(ctx)
	}
	return k.receive(ctx, k.session.c.clock.Now().Add(d), false)
}

// ReceiveNoWait gives a message that is there, or ErrNoMessage. A pull consumer asks the
// broker, and waits for its answer.
func (k *Consumer) ReceiveNoWait(ctx context.Context) (*Message, error) {
	return k.receive(ctx, time.Time{}, true)
}

// A reception is one call of a Receive method.
type reception struct {
	until  time.Time // zero: no end but the context's
	noWait bool
	pulled bool // the broker was asked
}

// over reports whether the reception has waited long enough.
func (r *reception) over(now time.Time) bool {
	return r.noWait || !r.until.IsZero() && !now.Before(r.until)
}

func (k *Consumer) receive(ctx context.Context, until time.Time, noWait bool) (*Message, error) {
	c := k.session.c
	op := "receive from " + k.from.String()
	r := reception{until: until, noWait: noWait}
	for {
		c.mu.Lock()
		if err := k.receivableLocked(op); err != nil {
			c.mu.Unlock()
			return nil, err
		}
		d, at := k.takeLocked(false)
		if d != nil {
			m, calls, err := k.handedOverLocked(d)
			c.mu.Unlock()
			for _, call := range calls {
				if _, err := c.await(ctx, op, call); err != nil {
					return nil, err
				}
			}
			return m, err
		}
		if ctx.Err() != nil {
			c.mu.Unlock()
			return nil, &Error{Op: op, Err: context.Cause(ctx)}
		}
		nothing, wake := k.idleLocked(&r, at, c.clock.Now())
		changed := k.session.changed.wait()
		c.mu.Unlock()
		if nothing {
			return nil, &Error{Op: op, Kind: ErrNoMessage}
		}
		if err := c.sleep(ctx, changed, wake); err != nil {
			return nil, &Error{Op: op, Err: err}
		}
	}
}

// idleLocked decides what a reception does that found nothing: it ends with nothing, or
// waits until something changes or the time is wake. A pull consumer asks the broker
// first (R-CLIENT-50). at is when a failed message is due.
func (k *Consumer) idleLocked(r *reception, at int64, now time.Time) (nothing bool, wake int64) {
	c := k.session.c
	if k.in.s.browser && k.finished {
		return true, 0
	}
	pulls := k.in.s.prefetch == 0 && !k.in.s.browser && c.started && at == 0
	switch {
	case !pulls:
		if r.over(now) {
			return true, 0
		}
	case r.pulled && k.finished: // the broker has nothing
		k.finished = false
		return true, 0
	case k.pull == noPull && c.link != nil:
		k.sendPullLocked(r, now)
	case k.pull != timedPull && r.over(now): // asked before without an end, or no broker to ask
		return true, 0
	}
	if !pulls || k.pull != timedPull { // else the broker ends it
		if at == 0 || !r.until.IsZero() && r.until.UnixMilli() < at {
			at = millisOf(r.until)
		}
	}
	return false, at
}

// millisOf is a time in Unix milliseconds, not before it; 0 for none.
func millisOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}

// receivableLocked is the error of a Receive that cannot be.
func (k *Consumer) receivableLocked(op string) error {
	if err := k.aliveLocked(op); err != nil {
		return err
	}
	if k.handler != nil {
		return &Error{Op: op, Kind: ErrIllegalState, Text: "the consumer has a handler"}
	}
	return nil
}

// sleep waits for a change, a time (Unix milliseconds; 0: none), or the end of ctx.
func (c *Connection) sleep(ctx context.Context, changed <-chan struct{}, at int64) error {
	var t time.Time
	if at != 0 {
		t = time.UnixMilli(at)
	}
	wake, stop := c.clock.At(t)
	defer stop()
	select {
	case <-changed:
	case <-wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// sendPullLocked asks the broker for a message (R-CLIENT-50).
func (k *Consumer) sendPullLocked(r *reception, now time.Time) {
	m := &wire.MessagePull{ConsumerID: k.id, Destination: k.from.wire()}
	k.pull, k.finished, r.pulled = endlessPull, false, true
	switch {
	case r.noWait:
		m.Timeout, k.pull = -1, timedPull
	case !r.until.IsZero():
		m.Timeout, k.pull = max(1, r.until.Sub(now).Milliseconds()), timedPull
	}
	k.session.c.postLocked(m)
}

// takeLocked takes the next delivery where there is one; at is when to look again.
func (k *Consumer) takeLocked(listener bool) (d *delivery, at int64) {
	s := k.session
	if !s.c.started || s.ending || k.closing {
		return nil, 0
	}
	d, at = k.in.next(s.c.now(), listener)
	if d == nil {
		s.flushLocked(k) // of what was passed over
		return nil, at
	}
	if s.Transacted() && !k.in.s.browser {
		s.beginLocked()
	}
	k.in.deliveredTo(d)
	return d, 0
}

// handedOverLocked makes the application's message of a delivery that Receive returns.
// One that cannot be read fails, and the error says why.
func (k *Consumer) handedOverLocked(d *delivery) (*Message, []*call, error) {
	s := k.session
	m, err := d.message()
	if err != nil && !s.Transacted() {
		k.in.failOne(d, s.c.now(), verdictOf(err))
		s.flushLocked(k)
		return nil, nil, err
	}
	if err == nil && (s.mode == AutoAcknowledge || s.mode == DupsOKAcknowledge) {
		k.in.processed(d, s.c.now())
	}
	if err != nil {
		m = nil
	}
	return m, s.flushLocked(k), err
}
