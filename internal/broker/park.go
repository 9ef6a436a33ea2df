package broker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// What a client sends while there is no room for it is parked, so that its connection
// can be read on: acknowledgements make room, and a consumer may be on the very
// connection whose producer waits. What a session has parked goes in in its order, and
// what it sends meanwhile comes behind; sessions do not wait for each other.
//
//	reader ── whenRoom ──► room ─────────────────────► run
//	             └─ none ─► line of the session ─ await ─► run, by the line's goroutine

// A line is what a session has parked, guarded by Connection.mu. Its goroutine ends when
// it is empty.
type line []*parked

// A parked send, or end of a transaction, waits for room.
type parked struct {
	ctx   context.Context
	need  func() demand
	bytes int64
	held  bool // it was let in before, and now only waits
	// run goes on: with the demand, taken, or with the reason why there is no room. Then
	// nothing is taken. drop says that the message is to be dropped.
	run func(n *demand, drop bool, err error)
}

// sessionOf is the session of a producer: an id is that of its session and a number.
func sessionOf(producer string) string {
	return producer[:max(strings.LastIndexByte(producer, ':'), 0)]
}

// whenRoom runs p when there is room for what it needs, at once where there is. The
// caller has entered. It waits where too much of the connection is parked already.
func (c *Connection) whenRoom(session string, p *parked) {
	for wait := c.hasLine(session); !wait; {
		n := p.need()
		switch o := c.b.ask(&n, judge{held: p.held}, false); o.verdict {
		case letIn:
			if n.take(false) {
				p.run(&n, false, nil)
				return
			}
		case holdIt:
			wait = true
		default:
			p.run(&n, o.verdict == dropIt, c.refused(&n, &o))
			return
		}
	}
	if err := c.enterParking(p); err != nil {
		n := p.need()
		p.run(&n, false, err)
		return
	}
	c.park(session, p)
}

// refused is the reason for a refusal, which is told; nil for what is dropped.
func (c *Connection) refused(n *demand, o *obstacle) error {
	if o.verdict == dropIt {
		return nil
	}
	c.b.heldBack(n, o)
	return o.why
}

func (c *Connection) hasLine(session string) bool {
	if c.lined.Load() == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lines[session]) > 0
}

// park puts p at the end of its line.
func (c *Connection) park(session string, p *parked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines == nil {
		c.lines = map[string]line{}
	}
	c.lines[session] = append(c.lines[session], p)
	if len(c.lines[session]) == 1 {
		c.lined.Add(1)
		c.inLine.Add(1)
		c.busy.Go(func() { defer c.inLine.Done(); c.runLine(session) })
	}
}

// runLine lets a line in.
func (c *Connection) runLine(session string) {
	for {
		c.mu.Lock()
		p := c.lines[session][0]
		c.mu.Unlock()
		n := p.need()
		drop, err := c.await(p, &n)
		c.parking.leave(p.bytes)
		c.b.parking.leave(p.bytes)
		p.run(&n, drop, err)
		if c.next(session) {
			return
		}
	}
}

// next takes the head out of a line. It reports whether that was the last.
func (c *Connection) next(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[session]
	l[0] = nil
	if c.lines[session] = l[1:]; len(l) > 1 {
		return false
	}
	delete(c.lines, session)
	if c.lined.Add(-1) == 0 && c.over != nil && !c.closing {
		c.over = nil // all that was parked is in: from now on there are limits again
	}
	return true
}

// enterParking waits until p may be parked. A connection with consumers is not stopped:
// what it has parked goes in above the limits instead, since the acknowledgements that
// would make room may be behind.
func (c *Connection) enterParking(p *parked) error {
	ctx, stop := c.until(p.ctx)
	defer stop()
	for _, g := range []*gate{&c.parking, &c.b.parking} {
		if g.tryEnter(p.bytes) {
			continue
		}
		consumes := c.consumes()
		if consumes {
			c.letAllIn()
			c.b.tell(Event{Kind: LetIn, Connection: c.info.ID, ClientID: c.info.ClientID,
				Text: "too much waits for room on a connection that also consumes: its messages go in above the limit; use a connection of their own for producers, or producerWindowSize"})
		}
		if g == &c.b.parking && consumes { // others have it: what comes goes in at once
			g.force(p.bytes)
			continue
		}
		if err := g.enter(ctx, p.bytes); err != nil {
			if g == &c.b.parking {
				c.parking.leave(p.bytes)
			}
			return err
		}
	}
	return nil
}

// until is ctx that also ends with the connection.
func (c *Connection) until(ctx context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	return both, func() { stop(); cancel(nil) }
}

// consumes reports whether the connection has a consumer of anything but advisories, or
// a transaction with acknowledgements.
func (c *Connection) consumes() bool {
	for _, t := range c.txs {
		if len(t.places()) > 0 {
			return true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.consumers {
		for _, d := range k.spec.Destination.Parts() {
			if !d.IsAdvisory() {
				return true
			}
		}
	}
	return false
}

// letAllIn lets everything that is parked in, whatever the limits of destinations are.
func (c *Connection) letAllIn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = make(chan struct{})
		close(c.over)
		if c.overed != nil {
			close(c.overed)
			c.overed = nil
		}
	}
}

// isOver reports whether everything is let in, and else what is closed when it is.
func (c *Connection) isOver() (over bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return true, nil
	}
	if c.overed == nil {
		c.overed = make(chan struct{})
	}
	return false, c.overed
}

// await waits for the room that n needs, and takes it. drop says that the message is to
// be dropped instead.
func (c *Connection) await(p *parked, n *demand) (drop bool, err error) {
	b := c.b
	for _, ctx := range []context.Context{p.ctx, c.ctx} {
		if ctx.Err() != nil { // the rest of its line does not wait any more
			return false, context.Cause(ctx)
		}
	}
	b.waiting.begin()
	start := b.o.Clock.Now()
	defer func() { b.waiting.end(b.o.Clock.Now().Sub(start)) }()
	w := &wait{c: c, n: n, start: start, again: make(chan struct{}, 1)}
	defer w.leave()
	for {
		over, overed := c.isOver()
		now := b.o.Clock.Now()
		o := b.ask(n, judge{waited: now.Sub(start), over: over, held: p.held}, true)
		switch o.verdict {
		case letIn:
			if n.take(over) {
				return false, nil
			}
			continue
		case dropIt, refuseIt:
			return o.verdict == dropIt, c.refused(n, &o)
		}
		until, joined := w.meet(&o, now)
		if joined {
			continue
		}
		wake, release := b.o.Clock.At(until)
		select {
		case <-o.changed:
		case <-w.again:
		case <-overed:
		case <-wake:
		case <-p.ctx.Done():
			err = context.Cause(p.ctx)
		case <-c.ctx.Done():
			err = context.Cause(c.ctx)
		}
		release()
		if err != nil {
			return false, err
		}
	}
}

// A wait is one wait of a demand, with what it is in front of.
type wait struct {
	c     *Connection
	n     *demand
	start time.Time
	again chan struct{} // holds one: there may be room
	met   bool
	at    *room // in whose line it is; nil: it waits for the disk, or for nothing yet
	since time.Time
	warn  time.Time // when it is told next that it lasts; zero: never
}

// look has the wait look once more whether there is room.
func (w *wait) look() {
	select {
	case w.again <- struct{}{}:
	default: // it has been told, and has not looked yet
	}
}

// meet notes what a wait is in front of at now, and returns when to look again though
// nothing has changed; zero: never. joined says that it has come into a line just now, and
// must look at once: what has changed before was told to others.
func (w *wait) meet(o *obstacle, now time.Time) (until time.Time, joined bool) {
	every := DefaultWarnEvery
	if o.room != nil {
		every = o.room.flow.Load().WarnEvery
	}
	if !w.met || w.at != o.room {
		w.leave()
		w.met, w.at, w.since, w.warn = true, o.room, now, time.Time{}
		if o.room != nil {
			o.room.waits.begin()
			o.room.enlist(w)
			joined = true
		}
		if every > 0 {
			w.warn = now.Add(every)
		}
		w.c.b.heldBack(w.n, o)
	}
	if !w.warn.IsZero() && !now.Before(w.warn) {
		w.warn = now.Add(max(every, time.Second))
		w.c.b.tell(Event{Kind: ProducerWaits, Destination: w.n.to, Producer: w.n.producer, Connection: w.c.info.ID, ClientID: w.c.info.ClientID,
			Text: fmt.Sprintf("%s has waited %v: %v", w.n.producer, now.Sub(w.start).Round(time.Second), o.why)})
	}
	next := w.warn
	if o.refuseAt > 0 {
		if at := w.start.Add(o.refuseAt); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, joined
}

// leave ends the wait in front of what it was.
func (w *wait) leave() {
	if w.at != nil {
		w.at.waits.end(w.c.b.o.Clock.Now().Sub(w.since))
		w.at.delist(w)
	}
	w.at = nil
}

func (w *waits) begin() {
	w.now.Add(1)
	w.sends.Add(1)
}

func (w *waits) end(after time.Duration) {
	w.now.Add(-1)
	w.nanos.Add(int64(after))
}

// dropped tells of a message, or a copy of it, that is discarded since its destination
// is full.
func (b *Broker) dropped(at message.Destination, m *message.Message) {
	e := Event{Kind: Discarded, Destination: at, Message: m.ID, Text: "destination full"}
	if b.watched(Discarded, at) && b.policy(at).Advisories.Discarded {
		copied := *m
		e.Copy = &copied
	}
	b.tell(e)
}
