package jms

import (
	"context"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A Producer sends messages. It is safe for concurrent use; messages sent by one
// goroutine keep their order.
type Producer struct {
	session *Session
	id      *wire.ProducerID
	info    *wire.ProducerInfo
	to      Destination // zero: each Send says where
	o       sendOptions

	// Guarded by the connection's mutex.
	sequence int64
	unacked  int // bytes of the window that are in use
	closed   bool
}

// sendOptions are what a message is sent with.
type sendOptions struct {
	to         Destination
	mode       DeliveryMode
	priority   int
	timeToLive time.Duration
	compress   bool
	async      bool
	timestamp  bool
}

// A SendOption says how messages are sent: given to CreateProducer for all, to Send for
// one.
type SendOption func(*sendOptions)

// To sends to d: for producers without a destination of their own.
func To(d Destination) SendOption { return func(o *sendOptions) { o.to = d } }

// WithDeliveryMode sets the delivery mode; default Persistent.
func WithDeliveryMode(m DeliveryMode) SendOption { return func(o *sendOptions) { o.mode = m } }

// WithPriority sets JMSPriority, 0 to 9; default DefaultPriority.
func WithPriority(p int) SendOption { return func(o *sendOptions) { o.priority = p } }

// WithTimeToLive lets messages expire after d; default 0: never.
func WithTimeToLive(d time.Duration) SendOption { return func(o *sendOptions) { o.timeToLive = d } }

// WithCompression compresses bodies.
func WithCompression() SendOption { return func(o *sendOptions) { o.compress = true } }

// WithoutTimestamp leaves JMSTimestamp out.
func WithoutTimestamp() SendOption { return func(o *sendOptions) { o.timestamp = false } }

// Async does not wait for the broker's answer, also for persistent messages; what goes
// wrong is told to Connection.OnException.
func Async() SendOption { return func(o *sendOptions) { o.async = true } }

// CreateProducer opens a producer for d, or for whatever each Send names where d is
// zero.
func (s *Session) CreateProducer(ctx context.Context, d Destination, options ...SendOption) (*Producer, error) {
	c := s.c
	op := "create producer for " + d.String()
	p := &Producer{session: s, to: d}
	p.o = sendOptions{to: d, priority: DefaultPriority, compress: c.o.Send.UseCompression, async: c.o.Send.UseAsyncSend, timestamp: !c.o.Send.DisableTimeStamps}
	for _, set := range options {
		set(&p.o)
	}
	c.mu.Lock()
	if err := s.aliveLocked(op); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	s.producerN++
	p.id = &wire.ProducerID{ConnectionID: c.id, SessionID: s.id.Value, Value: s.producerN}
	p.info = &wire.ProducerInfo{ProducerID: p.id, Destination: d.wire(), WindowSize: int32(c.o.Send.ProducerWindowBytes)}
	s.producers = append(s.producers, p)
	k := c.callLocked(p.info, nil)
	c.mu.Unlock()
	ctx, done := bounded(ctx, c.o.Timeouts.Request)
	defer done()
	if _, err := c.await(ctx, op, k); err != nil {
		c.mu.Lock()
		p.removeLocked()
		c.mu.Unlock()
		return nil, err
	}
	return p, nil
}

// Send sends a message, and fills in its second group of fields. In a transacted
// session it is part of the transaction. A persistent message outside one is waited
// for until the broker has it on disk; others until there is room among what waits to
// be written.
func (p *Producer) Send(ctx context.Context, m *Message, options ...SendOption) error {
	o := p.o
	for _, set := range options {
		set(&o)
	}
	w, err := p.prepare(m, &o)
	if err != nil {
		return err
	}
	c := p.session.c
	timeout := c.o.Timeouts.Send
	ctx, done := bounded(ctx, timeout)
	defer done()
	tx := p.session.Transacted()
	sync := c.o.Send.AlwaysSyncSend || timeout > 0 || !tx && w.Persistent && !o.async
	op := "send to " + o.to.String()
	if err := c.awaitRoom(ctx, op, p, o.to, sync); err != nil { // holds the mutex where there is room
		return err
	}
	p.sequence++
	w.MessageID = &wire.MessageID{ProducerID: p.id, ProducerSequenceID: p.sequence}
	m.ID = w.MessageID.String()
	if tx {
		p.session.beginLocked()
		w.TransactionID = p.session.tx.id
		if c.url.failover != nil {
			p.session.tx.sends = append(p.session.tx.sends, w)
		}
	}
	if !sync {
		p.postLocked(w)
		if c.o.Send.ProducerWindowBytes > 0 {
			p.unacked += sizeOf(w)
		}
		c.trackLocked(w)
		c.mu.Unlock()
		return nil
	}
	k := c.callLocked(w, nil)
	c.mu.Unlock()
	_, err = c.await(ctx, op, k)
	return err
}

// postLocked sends a message that nobody waits for. One that cannot be written spoils its
// transaction, or goes to the exception listener.
func (p *Producer) postLocked(w *wire.Message) {
	c, s, tx := p.session.c, p.session, p.session.tx
	if w.TransactionID == nil {
		c.postLocked(w)
		return
	}
	c.numberLocked(w, false)
	c.enqueueLocked(item{cmd: w, failed: func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if tx.err == nil {
			tx.err = &Error{Op: "send " + w.MessageID.String(), Kind: ErrMessageFormat, Err: err}
		}
		s.changed.ring()
	}})
}

// prepare makes the message of the wire and fills in what the sender learns.
func (p *Producer) prepare(m *Message, o *sendOptions) (*wire.Message, error) {
	op := "send to " + o.to.String()
	switch {
	case o.to.IsZero():
		return nil, &Error{Op: "send", Kind: ErrInvalidDestination, Text: "neither the producer nor the call names a destination"}
	case !p.to.IsZero() && o.to != p.to:
		return nil, &Error{Op: op, Kind: ErrInvalidDestination, Text: "the producer is for " + p.to.String()}
	case o.priority < 0 || o.priority > 9:
		return nil, &Error{Op: op, Kind: ErrMessageFormat, Text: "a priority is from 0 to 9"}
	}
	w, err := m.toWire(o.compress)
	if err != nil {
		return nil, &Error{Op: op, Err: err}
	}
	now := p.session.c.clock.Now()
	w.ProducerID, w.Destination = p.id, o.to.wire()
	w.Persistent, w.Priority = o.mode == Persistent, int8(o.priority)
	if o.timestamp {
		w.Timestamp = now.UnixMilli()
	}
	if o.timeToLive > 0 {
		w.Expiration = now.Add(o.timeToLive).UnixMilli()
	}
	m.Destination, m.DeliveryMode, m.Priority = o.to, o.mode, o.priority
	m.Timestamp, m.Expiration = fromMillis(w.Timestamp), fromMillis(w.Expiration)
	return w, nil
}

// awaitRoom waits until a message may be put among what waits to be written, and returns
// with the mutex held. While there is no broker that is at most failover's timeout.
func (c *Connection) awaitRoom(ctx context.Context, op string, p *Producer, to Destination, sync bool) error {
	var patience <-chan time.Time
	stop := func() {}
	defer func() { stop() }()
	for {
		c.mu.Lock()
		if err := p.aliveLocked(op); err != nil {
			c.mu.Unlock()
			return err
		}
		if to.IsTemporary() && c.watching != nil && c.link != nil && !c.known[to.d] {
			c.mu.Unlock()
			return &Error{Op: op, Kind: ErrInvalidDestination, Text: "the temporary destination has gone"}
		}
		window := c.o.Send.ProducerWindowBytes
		blocked := c.queue.bytes >= maxQueuedBytes || !sync && window > 0 && p.unacked >= window || p.session.ending
		limit := c.failoverTimeout()
		if !blocked && (c.link != nil || limit <= 0) {
			return nil
		}
		if c.link == nil && limit > 0 && patience == nil {
			patience, stop = c.clock.At(c.clock.Now().Add(limit))
		}
		changed, sessionChanged := c.changed.wait(), p.session.changed.wait()
		c.mu.Unlock()
		select {
		case <-changed:
		case <-sessionChanged:
		case <-patience:
			return &Error{Op: op, Kind: ErrUnavailable, Text: "no broker within failover's timeout"}
		case <-ctx.Done():
			return &Error{Op: op, Err: context.Cause(ctx)}
		}
	}
}

func (c *Connection) failoverTimeout() time.Duration {
	if c.url.failover == nil {
		return 0
	}
	return c.url.failover.timeout
}

// trackLocked keeps a message that nobody waits for, to be sent again after a fail-over
// (trackMessages).
func (c *Connection) trackLocked(w *wire.Message) {
	f := c.url.failover
	if f == nil || !f.trackMessages || w.TransactionID != nil {
		return
	}
	c.tracked = append(c.tracked, w)
	c.trackedN += sizeOf(w)
	for len(c.tracked) > 0 && c.trackedN > f.maxCacheBytes {
		c.trackedN -= sizeOf(c.tracked[0])
		c.tracked = c.tracked[1:]
	}
}

func (p *Producer) aliveLocked(op string) error {
	if err := p.session.aliveLocked(op); err != nil {
		return err
	}
	if p.closed {
		return &Error{Op: op, Kind: ErrClosed, Text: "the producer is closed"}
	}
	return nil
}

// Destination is where the producer sends to; zero: where each Send says.
func (p *Producer) Destination() Destination { return p.to }

// Close closes the producer.
func (p *Producer) Close() error {
	c := p.session.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.closed || p.session.closed {
		return nil
	}
	p.closed = true
	if tx := p.session.tx; tx == nil || len(tx.sends) == 0 { // else a fail-over needs it for the replay
		p.finishLocked()
	}
	return nil
}

// finishLocked takes a producer that was closed off the broker.
func (p *Producer) finishLocked() {
	c := p.session.c
	p.removeLocked()
	if c.failure == nil && !c.closing {
		c.postLocked(&wire.RemoveInfo{ObjectID: p.id, LastDeliveredSequenceID: wire.LastDeliveredUnknown})
	}
}

func (p *Producer) removeLocked() {
	p.closed = true
	s := p.session
	for i, o := range s.producers {
		if o == p {
			s.producers = append(s.producers[:i:i], s.producers[i+1:]...)
			return
		}
	}
}

// producersLocked lists all producers of the connection.
func (c *Connection) producersLocked() []*Producer {
	var all []*Producer
	for _, s := range c.sessions {
		all = append(all, s.producers...)
	}
	return all
}
