package jms

import (
	"context"
)

// A Handler processes a message. nil is success: in AutoAcknowledge and DupsOK sessions
// the message is acknowledged, in the others it is the handler's to call Acknowledge
// or Commit. An error, or a panic, is a failure with that cause (R-EDGE-42, R-EDGE-43):
// in a transacted session the transaction is rolled back, in all others the message
// alone is delivered again by the policy, or given up; RetryAfter, DeadLetter and
// DoNotCount say more. ctx ends when the session is closed.
type Handler func(ctx context.Context, m *Message) error

// Handle gives the consumer a handler, which gets every message from then on. Handlers
// of one session run one at a time, on a goroutine of the session's. nil ends it: the
// consumer is for Receive again. A pull consumer can have none (R-CLIENT-51).
func (k *Consumer) Handle(h Handler) error {
	s, c := k.session, k.session.c
	op := "handle messages of " + k.from.String()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := k.aliveLocked(op); err != nil {
		return err
	}
	if h != nil && k.info.PrefetchSize == 0 {
		return &Error{Op: op, Kind: ErrIllegalState, Text: "the consumer's prefetch is 0: use Receive, or a prefetch of 1"}
	}
	k.handler = h
	if h != nil && !s.running {
		s.running = true
		s.handlers.Go(s.runHandlers)
	}
	s.changed.ring()
	return nil
}

// runHandlers is the goroutine of a session's handlers.
func (s *Session) runHandlers() {
	c := s.c
	c.mu.Lock()
	s.runner = goroutine()
	c.mu.Unlock()
	for turn := 0; ; turn++ {
		c.mu.Lock()
		if s.closed || c.failure != nil || c.closing {
			s.running, s.runner = false, 0
			c.mu.Unlock()
			return
		}
		k, d, at := s.takeForHandler(turn)
		if d == nil {
			changed := s.changed.wait()
			c.mu.Unlock()
			_ = c.sleep(s.root, changed, at) // its end shows in the state
			continue
		}
		d.handled = true
		h := k.handler
		m, err := d.message()
		c.mu.Unlock()
		if err == nil {
			err = h.Call(s.root, m)
		}
		s.handled(k, d, err)
	}
}

// takeForHandler takes the next delivery of a consumer with a handler, each consumer in
// its turn. The mutex is held.
func (s *Session) takeForHandler(turn int) (*Consumer, *delivery, int64) {
	var at int64
	n := len(s.consumers)
	for i := range n {
		k := s.consumers[(turn+i)%n]
		if k.handler == nil {
			continue
		}
		d, due := k.takeLocked(true)
		if d != nil {
			return k, d, 0
		}
		if due != 0 && (at == 0 || due < at) {
			at = due
		}
	}
	return nil, nil, at
}

// Call runs the handler. Its panic is its error, a *PanicError.
func (h Handler) Call(ctx context.Context, m *Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	return h(ctx, m)
}

// handled does what follows from a handler's answer.
func (s *Session) handled(k *Consumer, d *delivery, err error) {
	c := s.c
	if err != nil && s.Transacted() {
		c.mu.Lock()
		has := d.stage == delivered || d.stage == orphan
		d.handled = false
		c.mu.Unlock()
		if !has { // the handler has rolled back itself
			return
		}
		blamed := verdictOf(err)
		if rerr := s.endTransaction(c.root, rollback, func(o *delivery) verdict {
			switch {
			case o == d:
				return blamed
			case blamed.uncounted:
				return verdict{uncounted: true}
			}
			return verdict{text: blamed.text, throwable: blamed.throwable}
		}); rerr != nil {
			c.events.post(event{err: rerr})
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d.handled = false
	switch {
	case err != nil:
		k.in.failOne(d, c.now(), verdictOf(err))
	case s.mode == AutoAcknowledge, s.mode == DupsOKAcknowledge:
		k.in.processed(d, c.now())
	}
	s.flushLocked(k)
	k.finishLocked()
	s.changed.ring()
}

// flushLazily sends, from time to time, the acknowledgements that were put off
// (optimizedAckScheduledAckInterval).
func (c *Connection) flushLazily() {
	for {
		wake, stop := c.clock.At(c.clock.Now().Add(c.o.OptimizedAckScheduledAckInterval))
		select {
		case <-wake:
		case <-c.root.Done():
			stop()
			return
		}
		c.mu.Lock()
		for _, s := range c.sessions {
			for _, k := range s.consumers {
				k.in.flush(c.now())
				s.flushLocked(k)
			}
		}
		c.mu.Unlock()
	}
}
