package listener

import (
	"context"
	"errors"

	"github.com/nixiemq/nixie/jms"
)

// A worker receives and handles, one message at a time. Its fields belong to its
// goroutine.
type worker struct {
	c         *Container
	receiving context.Context // ends when nothing more is to be received
	handling  context.Context // of handlers

	conn     *jms.Connection
	session  *jms.Session
	consumer *jms.Consumer
}

// run works until there is no more to do.
func (w *worker) run() {
	left := false
	defer func() {
		w.release(CacheConsumer, true)
		if !left {
			w.c.leave()
		}
	}()
	idle := 0
	for w.receiving.Err() == nil {
		m, err := w.receive()
		switch {
		case err == nil:
			idle = 0
			w.process(m)
			w.release(w.c.o.Cache, false)
		case errors.Is(err, jms.ErrNoMessage):
			w.release(w.c.o.Cache, false)
			if idle++; idle >= w.c.o.IdleReceives && !w.holds() && w.c.mayLeave() {
				left = true
				return
			}
		case w.receiving.Err() != nil:
			return
		default:
			w.recover(err)
		}
	}
}

// receive waits for a message, on whatever has to be made for that.
func (w *worker) receive() (*jms.Message, error) {
	if err := w.prepare(); err != nil {
		return nil, err
	}
	return w.consumer.ReceiveTimeout(w.receiving, w.c.o.ReceiveTimeout)
}

// holds reports whether the consumer has a failed message, which is to come again
// from it.
func (w *worker) holds() bool { return w.consumer != nil && w.consumer.Waiting() > 0 }

// prepare makes what the worker does not have.
func (w *worker) prepare() (err error) {
	c := w.c
	if w.conn == nil {
		if w.conn, err = c.connection(w.receiving); err != nil {
			w.conn = nil
			return err
		}
	}
	if w.session == nil {
		mode := jms.IndividualAcknowledge
		if c.o.Transacted {
			mode = jms.SessionTransacted
		}
		if w.session, err = w.conn.CreateSession(mode); err != nil {
			w.session = nil
			return err
		}
	}
	if w.consumer != nil {
		return nil
	}
	var options []jms.ConsumerOption
	if c.o.Selector != "" {
		options = append(options, jms.WithSelector(c.o.Selector))
	}
	if c.o.Policy != nil {
		options = append(options, jms.WithPolicy(*c.o.Policy))
	}
	if c.o.Prefetch > 0 {
		options = append(options, jms.WithPrefetch(c.o.Prefetch))
	}
	if c.o.Subscription != "" {
		w.consumer, err = w.session.CreateDurableSubscriber(w.receiving, c.o.Destination, c.o.Subscription, options...)
	} else {
		w.consumer, err = w.session.CreateConsumer(w.receiving, c.o.Destination, options...)
	}
	if err != nil {
		w.consumer = nil
	}
	return err
}

// release lets go of what the cache level does not keep, or at the end of everything.
func (w *worker) release(level CacheLevel, all bool) {
	if !all && w.holds() {
		return
	}
	if w.consumer != nil && (all || level >= CacheSession) {
		_ = w.consumer.Close() // its only failure is to be closed already
		w.consumer = nil
	}
	if w.session != nil && (all || level >= CacheConnection) {
		_ = w.session.Close()
		w.session, w.consumer = nil, nil
	}
	if w.conn != nil && w.c.o.Cache == CacheNone && (all || level >= CacheNone) {
		if err := w.conn.Close(); err != nil {
			w.c.o.Log.Warn("listener: close connection", "err", err)
		}
		w.conn = nil
	}
	if all {
		w.conn = nil
	}
}

// process runs the handler and tells the broker how it ended.
func (w *worker) process(m *jms.Message) {
	c := w.c
	c.begin(w)
	defer c.end()
	c.received.Add(1)
	if m.Redelivered() {
		c.redelivered.Add(1)
	}
	if c.o.Hooks.Received != nil {
		c.o.Hooks.Received(m)
	}
	start := c.clock.Now()
	ctx := context.WithValue(w.handling, sessionKey{}, w.session)
	ctx, finish := c.span(ctx, m)
	bounded := ctx
	if c.o.MessageTimeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, c.o.MessageTimeout)
		defer cancel()
	}
	err := c.o.Handler.Call(bounded, m)
	failed := err != nil
	if err == nil {
		err = w.succeed(ctx, m)
	} else {
		w.fail(ctx, m, err)
	}
	finish(err)
	if err == nil {
		c.succeeded.Add(1)
	} else {
		c.failed.Add(1)
	}
	if c.o.Hooks.Done != nil {
		c.o.Hooks.Done(m, c.clock.Now().Sub(start), err)
	}
	if failed {
		w.rest(m, err)
	}
}

// succeed commits or acknowledges. A commit that fails has rolled back, and the message
// comes again.
func (w *worker) succeed(ctx context.Context, m *jms.Message) error {
	var err error
	if w.c.o.Transacted {
		err = w.session.Commit(ctx)
	} else {
		err = m.Acknowledge(ctx)
	}
	if err != nil {
		w.c.o.Log.Warn("listener: processed, but the broker could not be told", "dest", w.c.o.Destination, "msg", m.ID, "err", err)
	}
	return err
}

// fail gives the message back with what went wrong.
func (w *worker) fail(ctx context.Context, m *jms.Message, why error) {
	var err error
	if w.c.o.Transacted {
		err = w.session.RollbackFor(context.WithoutCancel(ctx), m, why)
	} else {
		err = m.Fail(why)
	}
	w.c.o.Log.Warn("listener: handler failed", "dest", m.Destination, "msg", m.ID, "delivery", m.DeliveryCount(), "err", errors.Join(why, err))
}

// rest pauses after a failed message whose redelivery has no delay: the smaller of
// ReceiveTimeout and RecoveryInterval, as was observed of Spring's container (seed 000:
// initialRedeliveryDelay=0, the first redelivery). A handler that names a time itself
// has it.
func (w *worker) rest(m *jms.Message, err error) {
	if _, asked := jms.RetryDelay(err); asked || w.c.policy(w.conn, m).Delay(m.DeliveryCount()) > 0 {
		return
	}
	_ = w.c.sleep(w.receiving, min(w.c.o.ReceiveTimeout, w.c.o.RecoveryInterval)) // its end shows in the loop
}

// recover goes on after a receive, or what it needs, failed.
func (w *worker) recover(why error) {
	c := w.c
	conn := w.conn
	w.release(CacheConsumer, true)
	switch {
	case errors.Is(why, jms.ErrMessageFormat):
		c.o.Log.Warn("listener: a message cannot be read", "dest", c.o.Destination, "err", why)
		return
	case conn == nil: // it was waited for already, or everything ends
		return
	case errors.Is(why, jms.ErrUnavailable), errors.Is(why, jms.ErrClosed):
		c.lost(conn)
		return
	}
	_ = c.pause(w.receiving, why) // the broker refuses; its end shows in the loop
}
