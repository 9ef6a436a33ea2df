package broker

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/selector"
)

// A Peek is an entry of a queue as someone sees it who only looks.
type Peek struct {
	Entry   message.Entry
	Lane    uint8 // of the queue, in which it is
	Counts  message.Counts
	Counter int    // what a client would be told at a delivery now
	State   string // waiting, returned, scheduled, out, in-transaction
	// Message is nil where it is to be read from the store.
	Message *message.Message
	Lines   []message.Attempt // the story of an entry that is not in the store

	stored bool
}

// A Cursor is where looking at a queue goes on. The zero value is its beginning.
type Cursor struct {
	Lane  uint8
	After uint64
	End   bool // there is nothing more
}

// look lists up to n entries behind at, in the order of the queue: what is in
// memory as the machine has it, the rest from the store.
func (d *destination) look(ctx context.Context, at Cursor, n int) ([]Peek, Cursor, error) {
	var page []Peek
	for at.Lane < 10 && len(page) < n {
		mixed, err := d.mixed(ctx, at, n-len(page))
		if err != nil {
			return nil, at, err
		}
		if len(mixed) > 0 {
			page = append(page, inLane(mixed, at.Lane)...)
			at.After = mixed[len(mixed)-1].Entry.Position
			continue
		}
		more, bound, err := d.inMemory(ctx, at, n-len(page))
		if err != nil {
			return nil, at, err
		}
		if len(more) == 0 && bound != math.MaxUint64 {
			at.After = max(at.After, bound)
			if more, err = d.inStore(ctx, at, n-len(page)); err != nil {
				return nil, at, err
			}
		}
		if len(more) == 0 {
			at = Cursor{Lane: at.Lane + 1}
			continue
		}
		page = append(page, inLane(more, at.Lane)...)
		at.After = more[len(more)-1].Entry.Position
	}
	at.End = at.Lane >= 10
	return page, at, nil
}

// inLane notes in which lane entries are.
func inLane(page []Peek, lane uint8) []Peek {
	for i := range page {
		page[i].Lane = lane
	}
	return page
}

// mixed lists entries of a lane of which some that the window has passed are in the
// store alone; none where that is not so.
func (d *destination) mixed(ctx context.Context, at Cursor, n int) (page []Peek, err error) {
	failed := d.do(ctx, func() {
		if d.machine.Away(at.Lane) == 0 {
			return
		}
		var stored []records.Stored
		if stored, err = d.stored(at.Lane, at.After, n); err != nil {
			return
		}
		last := uint64(math.MaxUint64)
		if len(stored) == n {
			last = stored[n-1].Entry.Position
		}
		known := map[uint64]bool{}
		d.apply(queue.Browse{Lane: at.Lane, After: at.After, Reply: func(items []*queue.Item, _ uint64) {
			for _, it := range items {
				if known[it.Position] = true; it.Position <= last {
					page = append(page, peek(it))
				}
			}
		}})
		for _, s := range stored {
			if p := s.Entry.Position; !known[p] && d.machine.Alone(at.Lane, p) {
				page = append(page, peek(d.machine.Shown(s.Entry, s.Counts, s.HasCounts)))
			} else if it := d.machine.Ahead(at.Lane, p); it != nil {
				page = append(page, peek(it))
			}
		}
	})
	slices.SortFunc(page, func(a, b Peek) int { return cmp.Compare(a.Entry.Position, b.Entry.Position) })
	return page, cmp.Or(err, failed)
}

func (d *destination) inMemory(ctx context.Context, at Cursor, n int) (page []Peek, bound uint64, err error) {
	err = d.do(ctx, func() {
		d.apply(queue.Browse{Lane: at.Lane, After: at.After, Max: n, Reply: func(items []*queue.Item, b uint64) {
			bound = b
			for _, it := range items {
				page = append(page, peek(it))
			}
		}})
	})
	return page, bound, err
}

func peek(it *queue.Item) Peek {
	p := Peek{Entry: it.Entry, Counts: it.Counts, Counter: it.Counter(), State: it.State(), stored: it.Stored}
	if it.Message != nil {
		p.Message = it.Message.With(it.Overlay)
	}
	p.Lines = append(p.Lines, it.Lines...)
	return p
}

// inStore lists entries behind the window, those that are in memory for the sake of
// their times as the machine has them.
func (d *destination) inStore(ctx context.Context, at Cursor, n int) ([]Peek, error) {
	stored, err := d.b.o.Records.Page(d.id, records.Lane(at.Lane), at.After, n)
	if errors.Is(err, message.ErrCorrupt) { // its goroutine mends it
		failed := d.do(ctx, func() { stored, err = d.stored(at.Lane, at.After, n) })
		err = cmp.Or(failed, err)
	}
	if err != nil {
		return nil, err
	}
	page := make([]Peek, len(stored))
	err = d.do(ctx, func() {
		for i, s := range stored {
			it := d.machine.Ahead(at.Lane, s.Entry.Position)
			if it == nil {
				it = d.machine.Shown(s.Entry, s.Counts, s.HasCounts)
			}
			page[i] = peek(it)
		}
	})
	return page, err
}

// message gets what a peek is about.
func (d *destination) message(p *Peek) (*message.Message, error) {
	if p.Message != nil {
		return p.Message, nil
	}
	return d.b.o.Records.Message(&p.Entry)
}

// A browser shows a client what was in a queue when it came, and changes nothing
// (OpenWire 10.8); of several queues, by a pattern or a list, one after another. Its
// goroutine goes on as its window allows.
type browser struct {
	k      *consumer
	queues []*destination
	sel    *selector.Selector
	cancel context.CancelFunc

	mu     sync.Mutex
	window int
	credit int
	wake   chan struct{} // holds a token while credit may have grown
	ended  bool
}

func (k *consumer) browse(sel *selector.Selector) error {
	queues, err := k.c.b.queuesOf(k.spec.Destination, k.c.info.ID)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(k.c.ctx)
	br := &browser{k: k, queues: queues, sel: sel, cancel: cancel, window: k.spec.Prefetch, credit: k.spec.Prefetch, wake: make(chan struct{}, 1)}
	k.browser = br
	k.c.b.running.Go(func() { br.run(ctx) })
	return nil
}

// queuesOf lists the queues that a destination names: those of a list, which are made
// for the connection by where there are none, and for a pattern those that are there, by
// their names.
func (b *Broker) queuesOf(d message.Destination, by string) ([]*destination, error) {
	var all []*destination
	add := func(q *destination) {
		if !slices.Contains(all, q) {
			all = append(all, q)
		}
	}
	for _, part := range d.Parts() {
		if !part.IsPattern() {
			q, err := b.queue(part, by)
			if err != nil {
				return nil, err
			}
			add(q)
			continue
		}
		var there []*destination
		b.mu.Lock()
		for name, q := range b.queues {
			if part.Matches(name) {
				there = append(there, q)
			}
		}
		b.mu.Unlock()
		slices.SortFunc(there, func(x, y *destination) int { return cmp.Compare(x.name.Name, y.name.Name) })
		for _, q := range there {
			add(q)
		}
	}
	return all, nil
}

func (br *browser) close() { br.cancel() }

// widen lets n more messages go out, up to the prefetch. A pull at the end is
// answered with the end again.
func (br *browser) widen(n int, pull bool) {
	br.mu.Lock()
	br.credit = min(br.credit+n, max(br.window, 1))
	ended := br.ended
	br.mu.Unlock()
	if ended {
		if pull {
			br.k.c.sink.Deliver(Delivery{Kind: EndOfBrowse, Consumer: br.k.spec.ID})
		}
		return
	}
	br.look()
}

// resize changes the window. A client that comes back browses with none at first, until
// it is ready (R-CLIENT-61).
func (br *browser) resize(n int) {
	br.mu.Lock()
	br.credit += n - br.window
	br.window = n
	br.mu.Unlock()
	br.look()
}

// look wakes whoever waits for credit.
func (br *browser) look() {
	select {
	case br.wake <- struct{}{}:
	default: // the token that is there serves for this one too
	}
}

// spend waits for credit.
func (br *browser) spend(ctx context.Context) bool {
	for {
		br.mu.Lock()
		if br.credit > 0 {
			br.credit--
			br.mu.Unlock()
			return true
		}
		br.mu.Unlock()
		select {
		case <-br.wake:
		case <-ctx.Done():
			return false
		}
	}
}

func (br *browser) run(ctx context.Context) {
	for _, d := range br.queues {
		br.through(ctx, d)
	}
	if ctx.Err() != nil {
		return
	}
	br.mu.Lock()
	br.ended = true
	br.mu.Unlock()
	br.k.c.sink.Deliver(Delivery{Kind: EndOfBrowse, Consumer: br.k.spec.ID})
}

// through shows what is in one queue.
func (br *browser) through(ctx context.Context, d *destination) {
	var newest uint64
	// What was sent before is numbered before, since it lies before this in the mailbox.
	if err := d.do(ctx, func() { newest = d.b.o.Records.Next(1) }); err != nil && ctx.Err() == nil {
		newest = 0 // the queue is gone: there is nothing to see
	}
	var at Cursor
	for !at.End {
		page, next, err := d.look(ctx, at, d.b.o.Limits.BrowseEntries)
		if err != nil {
			return // the queue, the client or the broker is gone: what was seen is all there is
		}
		at = next
		for i := range page {
			if ctx.Err() != nil {
				return // its selector may take its time
			}
			if page[i].Entry.Position <= newest {
				br.show(ctx, d, &page[i])
			}
		}
	}
}

// show sends one entry of a queue to the client, if its selector wants it.
func (br *browser) show(ctx context.Context, d *destination, p *Peek) {
	if e := p.Entry.Expiration; e > 0 && d.b.now() > e {
		return
	}
	if br.sel != nil {
		m, err := d.message(p)
		if err != nil || !br.sel.Matches(d.b.lookup(m, p.Counter)) {
			return
		}
	}
	if !br.spend(ctx) {
		return
	}
	// The hint keeps the client from applying its limit to what it only looks at (C20).
	br.k.c.sink.Deliver(Delivery{Consumer: br.k.spec.ID, Destination: d.name, Entry: p.Entry, Message: p.Message,
		Counter: p.Counter, Hint: p.Counter > 0, source: d, stored: p.stored})
}
