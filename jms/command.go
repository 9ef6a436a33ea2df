package jms

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A call is a command that waits for its answer.
type call struct {
	id     int32
	cmd    wire.Command
	then   func(error) // runs under the connection's mutex when the answer is there; may be nil
	answer wire.DataStructure
	err    error
	done   chan struct{}
	replay bool // tells a broker after a fail-over what there is
}

// complete ends a call. The connection's mutex is held.
func (k *call) complete(answer wire.DataStructure, err error) {
	k.answer, k.err = answer, err
	if k.then != nil {
		k.then(err)
	}
	close(k.done)
}

// An outqueue is what waits to be written, and what is being written. Guarded by the
// connection's mutex. Producers wait while it is over maxQueuedBytes; everything else
// is bounded by what consumers may have.
type outqueue struct {
	items []item
	taken []item // by the link's writer, and not yet written
	bytes int    // of messages in both
}

// maxQueuedBytes is how much of messages may wait to be written.
const maxQueuedBytes = 1 << 20

// A linkSource is what one link writes: first its own opening, then the queue, once it is
// the connection's link.
type linkSource struct {
	c *Connection
	l *link
}

func (s *linkSource) take() []item {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.l.first) > 0 {
		all := s.l.first
		s.l.first = nil
		return all
	}
	if c.link != s.l {
		return nil
	}
	c.queue.taken, c.queue.items = c.queue.items, nil
	return c.queue.taken
}

func (s *linkSource) written() {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != s.l {
		return
	}
	for _, it := range c.queue.taken {
		c.queue.bytes -= sizeOf(it.cmd)
	}
	c.queue.taken = nil
	c.changed.ring()
}

// unwritten does nothing: whoever deals with the broken link looks at what was taken.
func (s *linkSource) unwritten() {}

// quiet sends a sign of life (OpenWire 3.4).
func (s *linkSource) quiet() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.l.first = append(s.l.first, item{cmd: &wire.KeepAliveInfo{}})
	s.l.poke()
}

func sizeOf(ds wire.DataStructure) int {
	m, ok := ds.(*wire.Message)
	if !ok {
		return 0
	}
	return (&message.Message{Body: m.Content, Properties: m.MarshalledProperties}).SizeBytes()
}

func (c *Connection) enqueueLocked(it item) {
	c.queue.items = append(c.queue.items, it)
	c.queue.bytes += sizeOf(it.cmd)
	if c.link != nil {
		c.link.poke()
	}
}

// numberLocked gives a command its id.
func (c *Connection) numberLocked(cmd wire.Command, answered bool) int32 {
	c.command++
	cmd.Base().CommandID, cmd.Base().ResponseRequired = c.command, answered
	return c.command
}

// postLocked sends a command that nobody waits for. What cannot be written goes to the
// exception listener.
func (c *Connection) postLocked(cmd wire.Command) {
	c.numberLocked(cmd, false)
	c.enqueueLocked(item{cmd: cmd, failed: func(err error) {
		c.events.post(event{err: &Error{Op: fmt.Sprintf("send a %T", cmd), Kind: ErrMessageFormat, Err: err}})
	}})
}

// callLocked sends a command that is answered. then runs under the mutex when it is.
func (c *Connection) callLocked(cmd wire.Command, then func(error)) *call {
	k := &call{id: c.numberLocked(cmd, true), cmd: cmd, then: then, done: make(chan struct{})}
	if c.failure != nil {
		k.complete(nil, c.failure)
		return k
	}
	c.pending[k.id] = k
	c.enqueueLocked(c.itemOf(k))
	return k
}

// itemOf is a call as it is written.
func (c *Connection) itemOf(k *call) item {
	return item{cmd: k.cmd, failed: func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.completeLocked(k.id, nil, &Error{Op: fmt.Sprintf("send a %T", k.cmd), Kind: ErrMessageFormat, Err: err})
	}}
}

func (c *Connection) completeLocked(id int32, answer wire.DataStructure, err error) {
	k := c.pending[id]
	if k == nil {
		return // nobody waits for it any more
	}
	delete(c.pending, id)
	k.complete(answer, err)
}

// await waits for the end of a call. Where ctx ends before, nobody knows what became
// of the command; its then still runs when the answer comes.
func (c *Connection) await(ctx context.Context, op string, k *call) (wire.DataStructure, error) {
	select {
	case <-k.done:
	default:
		select {
		case <-k.done:
		case <-ctx.Done():
			return nil, &Error{Op: op, Err: context.Cause(ctx)}
		}
	}
	if k.err != nil {
		return nil, &Error{Op: op, Err: k.err}
	}
	return k.answer, nil
}

// request sends a command and waits for its answer, at most requestTimeout.
func (c *Connection) request(ctx context.Context, op string, cmd wire.Command) (wire.DataStructure, error) {
	c.mu.Lock()
	if err := c.aliveLocked(op); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	k := c.callLocked(cmd, nil)
	c.mu.Unlock()
	ctx, done := bounded(ctx, c.o.Timeouts.Request)
	defer done()
	return c.await(ctx, op, k)
}

// bounded is ctx with a further bound; 0: none.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// received deals with what the broker sends. It runs on the link's reader, and waits
// for nothing.
func (c *Connection) received(l *link, ds wire.DataStructure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l && c.brokers.opening != l { // a spare link, or one that is given up
		if info, ok := ds.(*wire.BrokerInfo); ok {
			l.hello = info
		}
		return
	}
	switch m := ds.(type) {
	case *wire.MessageDispatch:
		c.dispatchLocked(m)
	case *wire.Response:
		c.completeLocked(m.CorrelationID, m, nil)
	case *wire.ExceptionResponse:
		c.completeLocked(m.CorrelationID, nil, brokerError(m.Exception))
	case *wire.DataResponse:
		c.completeLocked(m.CorrelationID, m, nil)
	case *wire.IntegerResponse:
		c.completeLocked(m.CorrelationID, m, nil)
	case *wire.DataArrayResponse:
		c.completeLocked(m.CorrelationID, m, nil)
	case *wire.ConnectionError:
		c.events.post(event{err: &Error{Op: "asynchronous command", Err: brokerError(m.Exception)}})
	case *wire.BrokerInfo:
		c.brokerInfoLocked(m)
	case *wire.ProducerAck:
		c.producerAckLocked(m)
	case *wire.ConsumerControl:
		c.consumerControlLocked(m)
	case *wire.ConnectionControl:
		c.connectionControlLocked(m)
	case *wire.KeepAliveInfo:
		if m.ResponseRequired {
			c.enqueueLocked(item{cmd: &wire.KeepAliveInfo{}})
		}
	}
}

// dispatchLocked gives a dispatch to its consumer. One for a consumer that is not
// there is ignored (OpenWire 9.2): it was closed meanwhile.
func (c *Connection) dispatchLocked(m *wire.MessageDispatch) {
	if m.ConsumerID == nil {
		return
	}
	k := c.byID[*m.ConsumerID]
	if k == nil {
		return
	}
	if k == c.watching {
		c.advisoryLocked(m)
		return
	}
	k.arriveLocked(m)
}

// brokerInfoLocked learns who the broker is, and what it wishes.
func (c *Connection) brokerInfoLocked(m *wire.BrokerInfo) {
	c.broker = m
	c.tolerant = m.FaultTolerantConfiguration
	wishes, err := parseWishes(m.NetworkProperties.Value)
	if err != nil {
		c.events.post(event{err: &Error{Op: "read the broker's redelivery policies", Kind: ErrInvalidOption, Err: err}})
		return
	}
	c.wishes = wishes
	c.set = newPolicySet(c.policies, wishes)
}

// producerAckLocked gives bytes back to a producer's window (OpenWire 10.6).
func (c *Connection) producerAckLocked(m *wire.ProducerAck) {
	if m.ProducerID == nil {
		return
	}
	for _, s := range c.sessions {
		for _, p := range s.producers {
			if *p.id == *m.ProducerID {
				p.unacked = max(0, p.unacked-int(m.Size))
				c.changed.ring()
			}
		}
	}
}

// consumerControlLocked obeys the broker (R-CLIENT-51, R-CLIENT-59).
func (c *Connection) consumerControlLocked(m *wire.ConsumerControl) {
	if m.ConsumerID == nil {
		return
	}
	k := c.byID[*m.ConsumerID]
	switch {
	case k == nil:
	case m.Close:
		k.leaveLocked() // else the broker would guess what its application had (R-BRK-40)
		k.failure = &Error{Op: "consumer on " + k.from.String(), Kind: ErrClosed, Text: "the broker has closed it"}
		c.events.post(event{err: k.failure})
		k.session.changed.ring()
	default:
		k.in.s.prefetch = int(m.Prefetch)
	}
}

// removeSession takes a session off the list.
func (c *Connection) removeSessionLocked(s *Session) {
	c.sessions = slices.DeleteFunc(c.sessions, func(o *Session) bool { return o == s })
}
