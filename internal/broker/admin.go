package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// A QueueStatus is what people want to know of a queue or subscription at a glance.
type QueueStatus struct {
	Name         message.Destination
	ClientID     string // of a subscription
	Subscription string
	Selector     string
	NoLocal      bool
	Messages     int64 // in it, also those out at consumers
	Bytes        int64 // of those that outlive the process
	Durable      bool
	Paused       bool     // it hands out nothing
	Selectors    []string // that are remembered of consumers of a queue
	Stats        queue.Stats
	Limit        *LimitStatus // of a queue; nil: it has none
}

// A LimitStatus is how far a destination is from the limit that stops its producers.
type LimitStatus struct {
	Flow            Flow
	Bytes, Messages int64         // that count
	Waiting         int64         // producers that wait for room there now
	Waits           int64         // sends that have waited since the start
	Waited          time.Duration // how long together, but for those that still wait
}

// Limit tells how far a destination is from its limit; nil: it has none.
func (b *Broker) Limit(name message.Destination) *LimitStatus {
	if !b.limited.Load() {
		return nil
	}
	r := b.room(name)
	if r == nil || *r.flow.Load() == (Flow{}) {
		return nil
	}
	st := &LimitStatus{Flow: *r.flow.Load(), Waiting: r.waits.now.Load(), Waits: r.waits.sends.Load(), Waited: time.Duration(r.waits.nanos.Load())}
	if st.Flow.MaxBytes == 0 && st.Flow.MaxMessages == 0 && st.Waits == 0 {
		return nil // it only says what becomes of a producer where the disk is full
	}
	st.Bytes, st.Messages, _ = r.used()
	return st
}

// Waiting tells of all producers that had to wait for room, at their destinations or on
// the disk: how many wait now, how many sends have since the start, and how long together.
func (b *Broker) Waiting() (now, sends int64, waited time.Duration) {
	return b.waiting.now.Load(), b.waiting.sends.Load(), time.Duration(b.waiting.nanos.Load())
}

// Queues tells the status of every queue, sorted by name.
func (b *Broker) Queues() []QueueStatus {
	var all []QueueStatus
	for _, name := range b.names(false) {
		if d := b.known(name); d != nil {
			all = append(all, d.status())
		}
	}
	return all
}

// Status tells the status of one queue; false where there is none.
func (b *Broker) Status(queue message.Destination) (QueueStatus, bool) {
	d := b.known(queue)
	if d == nil {
		return QueueStatus{}, false
	}
	return d.status(), true
}

// Topics lists the topics that are known, sorted by name.
func (b *Broker) Topics() []message.Destination { return b.names(true) }

// Subscriptions tells the status of every subscription to a topic.
func (b *Broker) Subscriptions() []QueueStatus {
	b.mu.Lock()
	subs := append([]*subscription(nil), b.subscriptions...)
	b.mu.Unlock()
	all := make([]QueueStatus, 0, len(subs))
	for _, s := range subs {
		st := s.d.status()
		st.ClientID, st.Subscription, st.Selector, st.NoLocal = s.clientID, s.name, s.text, s.noLocal
		all = append(all, st)
	}
	return all
}

// Connections is how many clients there are.
func (b *Broker) Connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.connections)
}

// MemoryBytes is what messages take in memory, MemoryLimit what they may.
func (b *Broker) MemoryBytes() int64 { return b.memory.used.Load() }

// MemoryLimit: see MemoryBytes.
func (b *Broker) MemoryLimit() int64 { return b.memory.limit }

func (d *destination) status() QueueStatus {
	st := QueueStatus{Name: d.name, Durable: d.durable, Stats: d.snapshot()}
	st.Messages = st.Stats.Waiting + st.Stats.Out + st.Stats.Scheduled
	st.Bytes = d.b.o.Records.Count(d.id).Bytes
	if d.sub == nil {
		st.Limit, st.Paused = d.b.Limit(d.name), d.b.isPaused(d.name)
		st.Selectors = textsOf(d.b.rememberedAt(d.name))
	}
	return st
}

// A Place is where messages lie: a queue, or a durable subscription to a topic.
type Place struct {
	Queue message.Destination // zero for a subscription
	// ClientID and Subscription name a durable subscription.
	ClientID, Subscription string
}

// At is the place that is a queue.
func At(queue message.Destination) Place { return Place{Queue: queue} }

// String names the place for people.
func (p Place) String() string {
	if p.Subscription != "" {
		return fmt.Sprintf("subscription %s of client %s", p.Subscription, p.ClientID)
	}
	return p.Queue.String()
}

func (b *Broker) find(at Place) (*destination, error) {
	if at.Subscription == "" {
		if d := b.known(at.Queue); d != nil {
			return d, nil
		}
		return nil, fmt.Errorf("%s does not exist: %w", at, message.ErrNotFound)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.durableLocked(at.ClientID, at.Subscription); s != nil {
		return s.d, nil
	}
	return nil, fmt.Errorf("durable %s does not exist: %w", at, message.ErrNotFound)
}

// CountAt is how many messages a place has, whatever their state.
func (b *Broker) CountAt(place Place) (int64, error) {
	d, err := b.find(place)
	if err != nil {
		return 0, err
	}
	return d.status().Messages, nil
}

// Look lists up to n entries of a place behind a cursor, and the cursor for the next.
func (b *Broker) Look(ctx context.Context, place Place, at Cursor, n int) ([]Peek, Cursor, error) {
	d, err := b.find(place)
	if err != nil {
		return nil, at, err
	}
	return d.look(ctx, at, n)
}

// Search is Look for the entries that a selector fits, however deep they lie; empty: all.
// One whose message cannot be read is listed, too: nobody can tell.
func (b *Broker) Search(ctx context.Context, place Place, at Cursor, n int, selector string) ([]Peek, Cursor, error) {
	if selector == "" {
		return b.Look(ctx, place, at, n)
	}
	d, err := b.find(place)
	if err != nil {
		return nil, at, err
	}
	w, err := d.wanted(Selection{Selector: selector})
	if err != nil {
		return nil, at, err
	}
	var found []Peek
	for !at.End {
		page, next, err := d.look(ctx, at, b.o.Limits.BrowseEntries)
		if err != nil {
			return nil, at, err
		}
		at = next
		for i := range page {
			p := &page[i]
			if ctx.Err() != nil { // a selector may take its time
				return nil, at, context.Cause(ctx)
			}
			w.err = nil
			meant, _ := w.fits(p.Entry.ID, p.Counter, func() (*message.Message, error) { return b.Header(p) })
			if !meant && w.err == nil {
				continue
			}
			if found = append(found, *p); len(found) == n {
				return found, Cursor{Lane: p.Lane, After: p.Entry.Position}, nil
			}
		}
	}
	return found, at, nil
}

// Read gets the message of an entry that Look listed.
func (b *Broker) Read(p *Peek) (*message.Message, error) {
	if p.Message != nil {
		return p.Message, nil
	}
	return b.o.Records.Message(&p.Entry)
}

// Header is Read, perhaps without the body: a large one is left in the store.
func (b *Broker) Header(p *Peek) (*message.Message, error) {
	if p.Message != nil {
		return p.Message, nil
	}
	return b.o.Records.Header(&p.Entry)
}

// Story gets the lines of an entry's story, oldest first; of a long one the first
// and the last.
func (b *Broker) Story(p *Peek) ([]message.Attempt, error) {
	if len(p.Lines) > 0 || p.Counts.Story == 0 {
		return p.Lines, nil
	}
	return b.o.Records.Story(p.Counts.Story)
}

// FindMessage looks a message up by its id in a place; ErrNotFound if it is not there.
func (b *Broker) FindMessage(ctx context.Context, place Place, id string) (*Peek, error) {
	d, err := b.find(place)
	if err != nil {
		return nil, err
	}
	var at Cursor
	for !at.End {
		page, next, err := d.look(ctx, at, b.o.Limits.BrowseEntries)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if page[i].Entry.ID.String() == id {
				return &page[i], nil
			}
		}
		at = next
	}
	return nil, fmt.Errorf("%s has no message %s: %w", place, id, message.ErrNotFound)
}

// raiseAfter is how many entries are removed before the floor of a queue is raised.
const raiseAfter = 10_000

// raiseFloors tells the store below which positions a queue has nothing, so that
// their space comes back and a start does not walk over them. It takes two steps:
// numbers that others have taken for this queue before the first are known to it
// at the second.
func (d *destination) raiseFloors() {
	if d.removed < raiseAfter || !d.durable {
		return
	}
	d.removed = 0
	limit := d.b.numbered()
	d.box.force(work{do: func() {
		batch := new(records.Batch)
		for lane := range uint8(10) {
			if floor := min(d.machine.Floor(lane), limit); floor > d.b.o.Records.Floor(d.id, records.Lane(lane)) {
				batch.PutFloor(d.id, records.Lane(lane), floor)
			}
		}
		if batch.Empty() {
			return
		}
		batch.Relax()
		d.b.o.Records.Commit(batch, func(error) {})
	}})
}
