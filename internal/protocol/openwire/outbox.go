package openwire

import (
	"context"
	"errors"
	"sync"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// An item is one thing to write: a command, a switch of the encoder, the
// connection's generation, or a delivery where none of them is set.
type item struct {
	command    wire.DataStructure
	settings   *wire.Settings
	generation generation
	delivery   broker.Delivery
}

// A tally is how much of what waits something is about.
type tally struct {
	replies    int // items but deliveries
	deliveries int
	held       int // bytes of the bodies that were held in memory
}

func (t *tally) count(i *item) {
	switch {
	case i.command != nil || i.settings != nil || i.generation != 0:
		t.replies++
	default:
		t.deliveries++
		if i.delivery.Message != nil {
			t.held += i.delivery.Message.SizeBytes()
		}
	}
}

// An outbox holds what waits to be written to a client, in the order in which it
// is to be written. The broker and everyone else add to it at once; the writer
// takes. It is safe for concurrent use.
type outbox struct {
	limits   Limits
	stock    *stock
	overflow func(error) // called, without the lock, when too much waits
	start    func()      // begins to write; called with the lock, while nobody writes

	mu      sync.Mutex
	waiting *piece // the first of a list; nil: there is nothing
	last    *piece // where items are added
	tally          // of what is not written yet
	sent    uint64 // commands and deliveries ever added, but for keep-alives
	writing bool   // somebody writes, or has begun to
	ended   bool   // nothing is added any more, and the writer goes when all is written
	room    chan struct{}
	handed  map[string]*handed // of consumers of several queues
}

var errTooSlow = errors.New("the client reads too slowly: too many dispatches wait")

func newOutbox(l Limits, s *stock, overflow func(error)) *outbox {
	return &outbox{limits: l, stock: s, overflow: overflow, start: func() {}}
}

// post adds a command.
func (o *outbox) post(c wire.DataStructure) { o.add(item{command: c}, true) }

// keepAlive adds a sign of life, which does not count as a command (OpenWire 3.4).
func (o *outbox) keepAlive() { o.add(item{command: &wire.KeepAliveInfo{}}, false) }

// negotiated makes the encoder use what was negotiated for all that is added from now on.
func (o *outbox) negotiated(s wire.Settings) { o.add(item{settings: &s}, false) }

// cameBack makes all deliveries from now on those of that generation.
func (o *outbox) cameBack(g generation) { o.add(item{generation: g}, false) }

func (o *outbox) add(i item, counts bool) {
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	*o.nextLocked() = i
	o.replies++
	if counts {
		o.sent++
	}
	o.writeLocked()
	o.mu.Unlock()
}

// Deliver implements broker.Sink. Beyond the limit for bodies in memory the
// delivery leaves its message in the store.
func (o *outbox) Deliver(d broker.Delivery) {
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	if d.Message != nil {
		if size := d.Message.SizeBytes(); o.held+size > o.limits.HeldBytes && d.Reloadable() {
			d.Message = nil
		} else {
			o.held += size
		}
	}
	if h := o.handed[d.Consumer]; h != nil && d.Kind == broker.MessageDelivery {
		h.add(&d)
	}
	o.nextLocked().delivery = d
	o.deliveries++
	o.sent++
	over := o.deliveries > o.limits.Deliveries
	o.writeLocked()
	o.mu.Unlock()
	if over {
		o.overflow(errTooSlow)
	}
}

// nextLocked adds an empty item and returns it, to be filled in.
func (o *outbox) nextLocked() *item {
	switch {
	case o.waiting == nil:
		o.waiting = o.stock.piece()
		o.last = o.waiting
	case o.last.n == pieceItems:
		o.last.next = o.stock.piece()
		o.last = o.last.next
	}
	o.last.n++
	return &o.last.items[o.last.n-1]
}

// writeLocked has what waits written.
func (o *outbox) writeLocked() {
	if !o.writing {
		o.writing = true
		o.start()
	}
}

// take gets all that waits; nil: there is nothing.
func (o *outbox) take() (taken *piece) {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken, o.waiting, o.last = o.waiting, nil, nil
	return taken
}

// rest ends the writing if nothing waits: what comes then starts it anew. over says that
// nothing will come.
func (o *outbox) rest() (rests, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = o.waiting != nil
	return !o.writing, o.ended
}

// written says how much of what was taken has been written.
func (o *outbox) written(t tally) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deliveries -= t.deliveries
	o.held -= t.held
	o.replies -= t.replies
	if o.room != nil && o.replies <= o.limits.Replies/2 {
		close(o.room)
		o.room = nil
	}
}

// wait returns when few enough replies wait for more commands to be read.
func (o *outbox) wait(ctx context.Context) error {
	o.mu.Lock()
	if o.replies < o.limits.Replies {
		o.mu.Unlock()
		return nil
	}
	if o.room == nil {
		o.room = make(chan struct{})
	}
	room := o.room
	o.mu.Unlock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish lets nothing be added any more. The writer learns of it when everything that
// waits is written.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.writeLocked()
}

// activity is how much was ever added, and whether something is being written.
func (o *outbox) activity() (sent uint64, busy bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent, o.writing
}
