package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// A Connection is one client. Its methods are called by the goroutine that reads
// the client, in the order of the client's commands, except Close, which may come
// from anywhere.
type Connection struct {
	b      *Broker
	info   ClientInfo
	sink   Sink
	gate   gate
	units  gate            // sends to several destinations, or a topic, that are stored and have not yet arrived
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	closed chan struct{} // closed when Close has done everything

	txs     map[string]*transaction
	parking gate           // what waits for room
	lined   atomic.Int32   // how many lines there are
	inLine  sync.WaitGroup // their goroutines

	mu        sync.Mutex
	lines     map[string]line                  // what sessions have parked
	over      chan struct{}                    // all that is parked goes in above the limits; nil: not so
	overed    chan struct{}                    // closed when that begins; nil while nobody waits
	undone    []*transaction                   // that waited to be committed when the connection ended
	producers map[string]map[*destination]bool // the queues a producer has sent to
	ended     []string                         // of those, the last that have closed; not more than maxEnded
	fanned    map[string]int64                 // the last message of a producer that went to several destinations, a topic, or the scheduler
	consumers map[string]*consumer
	opened    map[string]bool // producers that were told of
	closing   bool
	busy      sync.WaitGroup // Close waits for a call that is under way
}

// takeOverLimit is how long a client that comes back waits for its old
// connection to be gone.
const takeOverLimit = 30 * time.Second

// Connect registers a client. A client id that is in use is ErrExists, except for
// a client that comes back, or one that steals it: then the old connection is ended
// first.
func (b *Broker) Connect(ctx context.Context, info ClientInfo, sink Sink) (*Connection, error) {
	for {
		b.mu.Lock()
		old := b.connections[info.ID]
		if old == nil && info.ClientID != "" {
			if other := b.clientIDs[info.ClientID]; other != nil && info.Steals {
				old = other
			} else if other != nil {
				b.mu.Unlock()
				return nil, fmt.Errorf("client id %q is already in use by a client at %s: %w", info.ClientID, other.info.Address, message.ErrExists)
			}
		}
		if old == nil {
			break
		}
		b.mu.Unlock()
		if err := b.takeOver(ctx, old); err != nil {
			return nil, err
		}
	}
	if b.stop.Load() {
		b.mu.Unlock()
		return nil, errStopped
	}
	c := &Connection{
		b: b, info: info, sink: sink,
		gate:      gate{maxCount: b.o.Limits.UnansweredSends, maxBytes: b.o.Limits.UnansweredBytes},
		units:     gate{maxCount: math.MaxInt, maxBytes: math.MaxInt64},
		parking:   gate{maxCount: b.o.Limits.UnansweredSends, maxBytes: b.o.Limits.UnansweredBytes},
		closed:    make(chan struct{}),
		txs:       map[string]*transaction{},
		producers: map[string]map[*destination]bool{},
		fanned:    map[string]int64{},
		consumers: map[string]*consumer{},
		opened:    map[string]bool{},
	}
	c.ctx, c.cancel = context.WithCancelCause(b.ctx)
	b.connections[info.ID] = c
	b.cameLocked(info.ID)
	if info.ClientID != "" {
		b.clientIDs[info.ClientID] = c
	}
	b.mu.Unlock()
	b.tell(Event{Kind: ClientJoined, Connection: info.ID, ClientID: info.ClientID, Client: &info})
	return c, nil
}

// takeOver ends the connection that a client left behind.
func (b *Broker) takeOver(ctx context.Context, old *Connection) error {
	ctx, cancel := context.WithTimeout(ctx, takeOverLimit)
	defer cancel()
	old.info.Kick(fmt.Errorf("connection %s was taken over by a new one: %w", old.info.ID, message.ErrState))
	select {
	case <-old.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("connection %s is still open: %w", old.info.ID, message.ErrExists)
	}
}

// uses reports whether a consumer of the connection is attached to d.
func (c *Connection) uses(d *destination) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.consumers {
		if k.at(d) {
			return true
		}
	}
	return false
}

func (c *Connection) consumer(id string) *consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consumers[id]
}

func (c *Connection) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// enter notes that a call is under way; Close waits for it. It fails once the
// connection closes.
func (c *Connection) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return fmt.Errorf("connection %s is closed: %w", c.info.ID, message.ErrState)
	}
	c.busy.Add(1)
	return nil
}

// Close ends the connection: open transactions are rolled back, consumers
// detached, temporary destinations left. cause is Closed or ConnectionLost;
// last is what RemoveInfo said of the whole connection, or queue.UnknownLast. It
// returns when everything is done; a second call only waits for that.
func (c *Connection) Close(cause message.Cause, text string, last int64) {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		<-c.closed
		return
	}
	c.closing = true
	consumers := make([]*consumer, 0, len(c.consumers))
	for _, k := range c.consumers {
		consumers = append(consumers, k)
	}
	c.mu.Unlock()
	if cause == message.Closed { // the client takes what it has sent for sent
		c.letAllIn()
		c.inLine.Wait()
	}
	c.cancel(fmt.Errorf("connection %s is closing: %w", c.info.ID, message.ErrState))
	c.busy.Wait()
	defer close(c.closed)
	// What is on its way to several destinations arrives first: a client that comes back
	// and sends it once more is to find it there. The only error is that the broker stops.
	_ = c.units.drain(c.b.ctx)
	if !c.b.stop.Load() { // else what clients have is left as the store has it (R-CNT-07)
		c.rollBackAll(cause, text)
		c.detachAll(consumers, last, cause, text)
		if cause == message.Closed {
			for _, p := range slices.Collect(maps.Keys(c.producers)) { // nobody else is left
				c.forget(p)
			}
		}
		c.leaveTemps(cause)
	}
	c.producersGone()
	c.b.mu.Lock()
	if c.b.connections[c.info.ID] == c {
		delete(c.b.connections, c.info.ID)
	}
	if c.b.clientIDs[c.info.ClientID] == c {
		delete(c.b.clientIDs, c.info.ClientID)
	}
	c.b.mu.Unlock()
	c.b.tell(Event{Kind: ClientLeft, Connection: c.info.ID, ClientID: c.info.ClientID, Text: text})
}

// rollBackAll rolls back every open transaction and waits until that is done.
func (c *Connection) rollBackAll(cause message.Cause, text string) {
	var all sync.WaitGroup
	settle := message.Rollback
	if cause != message.Closed {
		settle = cause
	}
	c.rollBackBranches(settle, text)
	for _, t := range append(slices.Collect(maps.Values(c.txs)), c.undone...) { // nobody else is left
		all.Add(1)
		t.rollBack(settle, text, func(error) { all.Done() })
	}
	clear(c.txs)
	all.Wait()
}

// maxEnded is how many closed producers of a client that may repeat their messages are
// remembered. What it keeps to send once more is 128 KiB, unless it is told otherwise.
const maxEnded = 1000

// CloseProducer forgets what is kept to tell the duplicates of a producer that
// has closed, unless the client may come back and send its last messages again.
func (c *Connection) CloseProducer(_ context.Context, producer string) {
	if !c.info.MayRepeat {
		c.forget(producer)
	} else if over := c.endedToo(producer); over != "" {
		c.forget(over)
	}
	c.producerGone(producer)
}

// endedToo notes that a producer has closed; over is the one that is one too many.
func (c *Connection) endedToo(producer string) (over string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.producers[producer] == nil && c.fanned[producer] == 0 {
		return "" // it has sent nothing that is kept
	}
	c.ended = append(c.ended, producer)
	if len(c.ended) <= maxEnded {
		return ""
	}
	over, c.ended = c.ended[0], c.ended[1:]
	return over
}

func (c *Connection) forget(producer string) {
	c.mu.Lock()
	to := c.producers[producer]
	delete(c.producers, producer)
	delete(c.fanned, producer)
	c.mu.Unlock()
	for d := range to {
		d.box.force(work{command: queue.ForgetProducer{Producer: producer}})
	}
}

// AddDestination makes a destination. A temporary one belongs to the connection.
func (c *Connection) AddDestination(_ context.Context, d message.Destination) error {
	if d.IsComposite() || d.IsPattern() {
		return fmt.Errorf("%s names more than one destination: %w", d, message.ErrInvalid)
	}
	b := c.b
	if err := c.info.Principal.Check(access.Create, d); err != nil && !b.there(d) {
		return err
	}
	if err := b.makesOnUse(d); err != nil && (!d.IsTemporary() || errors.Is(err, ErrTooMany)) && !b.there(d) {
		return err
	}
	if d.IsQueue() {
		b.mu.Lock()
		b.temps.reclaim(d) // it is not to go while it is looked for
		b.mu.Unlock()
		if _, err := b.makeQueue(d, c.info.ID); err != nil {
			return err
		}
	}
	b.mu.Lock()
	known := false
	added := b.addTopicsLocked(d)
	if d.Kind == message.TempTopic {
		b.topics[d] = new(atomic.Int64)
	}
	if d.IsTemporary() {
		known = b.temps.add(d, c.info.ID)
	}
	b.mu.Unlock()
	b.tellTopics(added, c.info.ID)
	if d.IsTemporary() && !known {
		b.tell(Event{Kind: TempAdded, Destination: d, Connection: c.info.ID})
	}
	return nil
}

// RemoveDestination removes a destination: ErrState if it is permanent and has
// consumers; ErrDenied where the client may not; nothing happens if there is none.
func (c *Connection) RemoveDestination(ctx context.Context, d message.Destination) error {
	if err := c.info.Principal.Check(access.Remove, d); err != nil {
		return err
	}
	return c.b.removeDestination(ctx, d, c.info.ID)
}

// removeDestination removes a destination for the connection by; "": for the broker
// itself, which takes a temporary one from its owner.
func (b *Broker) removeDestination(ctx context.Context, name message.Destination, by string) error {
	b.mu.Lock()
	d, owner := b.queues[name], b.temps.ownerOf(name)
	known := b.topics[name] != nil
	b.mu.Unlock()
	if name.IsQueue() && d == nil || name.IsTopic() && !known && owner == "" {
		return nil
	}
	if name.Kind == message.Topic {
		if err := b.subscribedTo(name); err != nil {
			return err
		}
	}
	var err error
	if d != nil {
		if err := b.mayDiscard(d); err != nil {
			return err
		}
		if err = b.dropQueue(ctx, d, !name.IsTemporary()); err != nil && b.known(name) == d {
			return err
		}
	} else {
		b.mu.Lock()
		delete(b.topics, name)
		delete(b.ended.topics, name)
		b.temps.remove(name)
		delete(b.routes, name) // whoever uses it again makes it anew
		delete(b.pasts, name)
		b.mu.Unlock()
	}
	kind := QueueRemoved
	if name.IsTemporary() {
		kind = TempRemoved
	}
	b.tell(Event{Kind: kind, Destination: name, Connection: cmp.Or(owner, by)})
	b.forgetMirrors(name)
	return err
}
