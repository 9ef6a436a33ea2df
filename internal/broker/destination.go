package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// A destination runs one queue.Machine: a queue, or one subscription to a topic.
// Only its goroutine touches machine, group, now, rearm, broken and shut; others send to box.
type destination struct {
	b          *Broker
	name       message.Destination // the queue, or the topic that sub subscribes to
	sub        *subscription       // nil for a queue
	id         records.QueueID
	durable    bool          // it outlives the process
	options    queue.Options // as the machine was made; of what a reload changes, see rules
	machine    *queue.Machine
	box        *mailbox
	out        release
	ended      chan struct{}      // closed when the goroutine has ended
	retire     context.CancelFunc // ends the goroutine
	removed    int64              // entries removed since the floor was last raised
	rearm      bool               // the clock was set, and the timer may be wrong
	broken     error              // why the machine cannot be trusted any more: nothing is applied or written; nil: it can
	shut       error              // why nothing comes in any more: it is being removed; nil: it is not
	advisories Advisories

	group   *group        // of the present turn; nil: nothing was applied yet
	now     int64         // when the present turn began, Unix milliseconds
	counted []func(error) // to be called when the turn counts

	mu      sync.Mutex
	stats   queue.Stats                      // as of the last turn
	readers map[*consumer]*selector.Selector // that are attached, or about to be
	// What holds of the policy, for those who ask from outside; exclusive gives a
	// queue's messages to one consumer at a time.
	rules     redelivery.Rules
	exclusive bool
}

// idleWork is how long a list for work is kept whatever there is to do.
const idleWork = 256

// What a turn may hand to the store, and how much may follow from it, before it is
// ended early.
const (
	maxTurnBytes   = 2 << 20
	maxTurnEffects = 512
)

func (b *Broker) newDestination(name message.Destination, sub *subscription, id records.QueueID, durable bool) *destination {
	policy := b.policy(name)
	d := &destination{
		b: b, name: name, sub: sub, id: id, durable: durable,
		box:   newMailbox(b.o.Limits.MailboxCommands),
		ended: make(chan struct{}),
	}
	d.options = queue.Options{
		Destination: name,
		Rules:       policy.Rules,
		Prioritized: policy.Prioritized,
		Marks:       b.marks(durable, &policy),
		Redelivers:  sub == nil || sub.durable,
		Window:      b.o.Limits.WindowEntries,
		Scheduled:   b.o.Limits.ScheduledEntries,
		AckTimeout:  policy.AckTimeout.Milliseconds(),
		Jitter:      b.o.Jitter,
		Properties:  b.o.Properties,
		Grouped:     sub == nil,
		Gather:      gatherOf(&policy, sub),
		Bounds:      boundsOf(&policy, sub),
		LastValue:   policy.LastValue,
		Rebalance:   policy.Rebalance,
		Tells:       policy.Advisories.tells(sub),
		Backlog:     policy.Backlog,
		Slow:        policy.Slow.limits(),
		OneByOne:    policy.OneByOne,
		Paused:      sub == nil && b.isPaused(name),
	}
	d.options.Read = d.header
	d.rules, d.exclusive = policy.Rules, policy.Exclusive
	d.advisories = policy.Advisories
	if sub != nil {
		d.options.Subscription.ClientID, d.options.Subscription.Name = sub.clientID, sub.name
	}
	d.machine = queue.New(d.options)
	return d
}

// start restores what the store has of the destination and begins its goroutine.
func (d *destination) start(ctx context.Context) error {
	if d.durable {
		if err := d.restore(); err != nil {
			return err
		}
	}
	d.begin(ctx)
	return nil
}

// begin begins the goroutine of a destination that is restored.
func (d *destination) begin(ctx context.Context) {
	ctx, d.retire = context.WithCancel(ctx)
	d.b.running.Go(func() { d.run(ctx) })
}

// label names the destination in errors and logs.
func (d *destination) label() string {
	if d.sub != nil && d.sub.durable {
		return fmt.Sprintf("subscription %s of %s to %s", d.sub.name, d.sub.clientID, d.name)
	}
	return d.name.String()
}

// restore tells the machine what the store holds.
func (d *destination) restore() error {
	if err := d.load(); err != nil {
		return fmt.Errorf("open %s: %w", d.label(), err)
	}
	d.stats = d.machine.Stats()
	return nil
}

func (d *destination) load() error {
	r := d.b.o.Records
	for lane := range uint8(10) {
		if n := r.LaneCount(d.id, records.Lane(lane)); n.Messages > 0 {
			d.machine.Restore(lane, r.Floor(d.id, records.Lane(lane)), n.Messages, n.Bytes)
		}
	}
	var producers map[string]int64
	var marks map[uint64]message.HandOut
	var ids []records.MarkID
	err := d.reading(func() (err error) {
		if producers, err = r.Producers(d.id); err == nil {
			marks, ids, err = r.Marks(d.id)
		}
		return err
	})
	if err != nil {
		return err
	}
	d.machine.RestoreProducers(producers)
	all := make([]uint64, len(ids))
	for i, id := range ids {
		all[i] = uint64(id)
	}
	d.machine.RestoreMarks(marks, all)
	return d.restoreHeld()
}

func (d *destination) run(ctx context.Context) {
	defer close(d.ended)
	var spare, todo []work
	var armed int64
	var wake <-chan time.Time
	disarm := func() {}
	defer func() { disarm() }()
	defer d.machine.Each(d.drop) // nobody gets it any more
	for {
		if at := d.machine.Next(); at != armed || d.rearm {
			d.rearm = false
			disarm()
			armed, wake, disarm = at, nil, func() {}
			if at != 0 {
				wake, disarm = d.b.o.Clock.At(time.UnixMilli(at))
			}
		}
		todo = todo[:0]
		select {
		case <-ctx.Done():
			d.abandon(context.Cause(ctx))
			return
		case <-wake:
			armed = 0
			todo = append(todo, work{command: queue.Tick{}})
		case <-d.box.wake:
			todo = d.box.take(spare)
		}
		d.turn(todo)
		clear(todo)
		if spare = todo; cap(spare) > idleWork && len(todo) < cap(spare)/4 {
			spare = nil
		}
	}
}

// abandon answers everything that still waits with err.
func (d *destination) abandon(err error) {
	for _, w := range d.box.close(err) {
		d.refuseWork(w, err)
	}
}

// refuseWork answers work that is not done.
func (d *destination) refuseWork(w work, err error) {
	d.answer(w.command, err)
	if w.stopped != nil {
		w.stopped(err)
	}
}

// answer answers a command that is not carried out.
func (d *destination) answer(c queue.Command, err error) {
	switch c := c.(type) {
	case queue.Enqueue:
		d.drop(c.Item)
	case queue.Arrive:
		for _, it := range c.Items {
			d.drop(it)
		}
	}
	if done := doneOf(c); done != nil {
		done(err)
	}
}

// refuse answers what would come into a destination that is being removed: messages and
// consumers. It returns false for all else.
func (d *destination) refuse(c queue.Command) bool {
	switch c.(type) {
	case queue.Enqueue, queue.Attach:
		d.answer(c, d.shut)
		return true
	}
	return false
}

// close lets nothing more into a destination that is to be removed, which nobody finds
// any more then: ErrState where it has consumers, if it must not. What is in it stays.
func (d *destination) close(ctx context.Context, unused bool) error {
	var err error
	failed := d.do(ctx, func() {
		if unused && len(d.machine.Consumers()) > 0 {
			err = d.inUse()
			return
		}
		d.b.unlist(d)
		d.shut = d.gone()
	})
	return cmp.Or(err, failed)
}

// inUse is the error of a removal that consumers stop.
func (d *destination) inUse() error {
	return fmt.Errorf("%s still has consumers: %w", d.name, message.ErrState)
}

// gone is what those are told who come to a destination that was removed.
func (d *destination) gone() error {
	return fmt.Errorf("%s was removed: %w", d.label(), message.ErrNotFound)
}

// wasRemoved reports whether an error says that the destination was removed.
func (d *destination) wasRemoved(err error) bool {
	return errors.Is(err, message.ErrNotFound) && d.b.known(d.name) != d
}

// doneOf is the function a command wants its answer given to.
func doneOf(c queue.Command) func(error) {
	switch c := c.(type) {
	case queue.Enqueue:
		return c.Done
	case queue.Attach:
		return c.Done
	case queue.Detach:
		return c.Done
	case queue.SetPrefetch:
		return c.Done
	case queue.Pull:
		return c.Done
	case queue.Ack:
		return c.Done
	case queue.Settle:
		return c.Done
	}
	return nil
}

// turn applies what was taken from the mailbox and commits what follows from it.
func (d *destination) turn(todo []work) {
	d.now = d.b.now()
	pending := 0
	for _, w := range todo {
		switch {
		case d.broken != nil:
			d.refuseWork(w, d.broken)
		case w.do != nil:
			w.do()
			d.now = d.b.now()
		case d.shut != nil && d.refuse(w.command):
		default:
			pending += d.apply(w.command)
		}
		if pending > maxTurnBytes || d.group != nil && len(d.group.effects) > maxTurnEffects {
			d.commit()
			d.now, pending = d.b.now(), 0
		}
	}
	d.commit()
}

// apply gives the machine one command. It returns about how many bytes that will
// bring to the store.
func (d *destination) apply(c queue.Command) int {
	size := 0
	if e, ok := c.(queue.Enqueue); ok {
		size = int(e.Item.SizeBytes)
		if e.Item.Position == 0 { // numbered here, so that the order of positions is that of arrival
			e.Item.Position = d.b.o.Records.Next(1)
			e.Item.Body = e.Item.Position
		}
	}
	g := d.turnGroup()
	g.effects = d.machine.Apply(c, d.now, g.effects)
	if a, ok := c.(queue.Arrive); ok {
		for _, it := range a.Items {
			if !it.Kept() {
				d.drop(it)
			}
		}
	}
	return size
}

// header reads the headers and properties of a stored message. One that a turn has just
// stored, and for which there is no memory, can be read when its batch is on disk: then
// that is waited for.
func (d *destination) header(e *message.Entry) (*message.Message, error) {
	return d.onDisk(func() (*message.Message, error) { return d.b.o.Records.Header(e) })
}

// onDisk reads a message, waiting for what was handed to the store before.
func (d *destination) onDisk(read func() (*message.Message, error)) (*message.Message, error) {
	m, err := read()
	if !errors.Is(err, message.ErrNotFound) {
		return m, err
	}
	if err := d.write(new(records.Batch)); err != nil { // behind all that was handed over
		return nil, fmt.Errorf("read a message of %s: %w", d.label(), err)
	}
	if m, err = read(); errors.Is(err, message.ErrNotFound) { // its entry is here
		err = fmt.Errorf("%w: %w", message.ErrCorrupt, err)
	}
	return m, err
}

// orderPage has entries read for the machine. What is stored here by others is told
// of by an Expect, which may still lie in the mailbox while the entry can be read:
// such an entry is left to its Arrive. All that is numbered below the limit has its
// Expect in the mailbox already, in front of the reading.
func (d *destination) orderPage(lane uint8, after uint64, n int) {
	limit := d.b.numbered()
	d.box.force(work{do: func() { d.page(lane, after, limit, n) }})
}

// numbered is a number of which holds: whatever has a lower one, and is about to be
// stored by someone else than its destination, has its Expect there; whatever is numbered
// from now on has not a lower one. The caller is behind it with work that it puts into the
// mailbox after this. The store may call it, so it takes no number: that may have to wait
// for the store.
func (b *Broker) numbered() uint64 {
	b.numbering.Lock()
	defer b.numbering.Unlock()
	return b.o.Records.Upcoming()
}

// page reads a page for the window. It runs in the destination's goroutine.
func (d *destination) page(lane uint8, after, limit uint64, n int) {
	if items, read, ok := d.entries(lane, after, limit, n); ok {
		d.apply(queue.Paged{Lane: lane, Items: items, Short: read < n && read == len(items)})
	}
}

// orderSearch has entries read for those who look behind the window: see orderPage.
// What is left out is still to come by a command of its own.
func (d *destination) orderSearch(lane uint8, after uint64, n int) {
	limit := d.b.numbered()
	d.box.force(work{do: func() {
		if items, read, ok := d.entries(lane, after, limit, n); ok {
			d.apply(queue.Searched{Lane: lane, Items: items, Short: read < n})
		}
	}})
}

// entries reads up to n entries behind a position, of which it gives those below the
// limit. It runs in the destination's goroutine.
func (d *destination) entries(lane uint8, after, limit uint64, n int) (items []*queue.Item, read int, ok bool) {
	stored, err := d.stored(lane, after, n)
	if err != nil {
		d.failHere(fmt.Errorf("read %s: %w", d.label(), err))
		return nil, 0, false
	}
	read = len(stored)
	for len(stored) > 0 && stored[len(stored)-1].Entry.Position >= limit {
		stored = stored[:len(stored)-1]
	}
	items = make([]*queue.Item, len(stored))
	for i := range stored {
		items[i] = queue.StoredItem(stored[i].Entry, stored[i].Counts, stored[i].HasCounts)
	}
	return items, read, true
}

// stored reads a page of entries. It runs in the destination's goroutine, or where there
// is none, and mends what is damaged.
func (d *destination) stored(lane uint8, after uint64, n int) (page []records.Stored, err error) {
	err = d.reading(func() (err error) {
		page, err = d.b.o.Records.Page(d.id, records.Lane(lane), after, n)
		return err
	})
	return page, err
}

// reading reads records of the destination, and mends what is damaged: as stored does.
func (d *destination) reading(read func() error) error {
	return d.b.o.Records.Reading(d.name, d.settle, read)
}

// settle waits until all that the destination has changed so far is on disk.
func (d *destination) settle() error {
	if d.group != nil {
		d.commit()
	}
	return cmp.Or(d.broken, d.write(new(records.Batch)))
}

func (d *destination) addReader(k *consumer, sel *selector.Selector) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.readers == nil {
		d.readers = map[*consumer]*selector.Selector{}
	}
	d.readers[k] = sel
}

func (d *destination) removeReader(k *consumer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.readers, k)
}

// selectors are those of the consumers; nil for one that takes everything.
func (d *destination) selectors() []*selector.Selector {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.readers))
}

// orderTimes has entries read by a time of theirs. What is numbered from now on is left
// out: see orderPage. Where it comes before what is read, its Arrive says so.
func (d *destination) orderTimes(x queue.Index, from queue.TimeKey, n int) {
	limit := d.b.numbered()
	d.box.force(work{do: func() { d.pageTimes(x, from, limit, n) }})
}

// pageTimes reads entries below the limit by a time of theirs. It runs in the
// destination's goroutine.
func (d *destination) pageTimes(x queue.Index, from queue.TimeKey, limit uint64, n int) {
	by := map[queue.Index]records.Index{queue.ByDue: records.ByDue, queue.ByExpiration: records.ByExpiration}[x]
	after := records.TimeKey{At: from.At, Lane: records.Lane(from.Lane), Position: from.Position}
	var page []records.Timed
	var last records.TimeKey
	var end bool
	err := d.reading(func() (err error) {
		page, last, end, err = d.b.o.Records.Times(d.id, by, after, n, func(k records.TimeKey) bool {
			return k.Position < limit && !d.machine.Known(uint8(k.Lane), k.Position)
		})
		return err
	})
	if err != nil {
		d.failHere(fmt.Errorf("read %s: %w", d.label(), err))
		return
	}
	c := queue.Timed{Index: x, End: end, Last: queue.TimeKey{At: last.At, Lane: uint8(last.Lane), Position: last.Position},
		Items: make([]queue.TimedItem, len(page))}
	for i := range page {
		c.Items[i] = queue.TimedItem{Lane: uint8(page[i].Key.Lane), Item: queue.StoredItem(page[i].Entry, page[i].Counts, page[i].HasCounts)}
	}
	d.apply(c)
}

// Stats returns what happened in the destination until its last turn.
func (d *destination) snapshot() queue.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

func (d *destination) undispatchable(consumer string, position uint64, reason error) {
	d.box.force(work{command: queue.Undispatchable{Consumer: consumer, Position: position, Text: reason.Error()}})
}

// fail stops the destination after a commit or a read that failed: what its
// machine believes is no longer what the store has. Its clients are ended; when it
// is next asked for, it is opened anew from the store.
func (d *destination) fail(err error) {
	d.b.lose(d, err)
}

// failHere is fail within the destination's goroutine: what is left of its turn is not
// done, by a machine that believes what is not so.
func (d *destination) failHere(err error) {
	d.broken = err
	d.fail(err)
}

// do runs f in the destination's goroutine and waits for it. Where it returns an
// error, f has not run and does not run any more.
func (d *destination) do(ctx context.Context, f func()) error {
	answered := make(chan error, 1)
	var begun atomic.Bool // f, or the end of the wait for it
	w := work{stopped: func(err error) { answered <- err }, do: func() {
		if begun.CompareAndSwap(false, true) {
			f()
			answered <- nil
		}
	}}
	if err := d.box.put(ctx, w); err != nil {
		return err
	}
	select {
	case err := <-answered:
		return err
	case <-d.ended:
		if begun.CompareAndSwap(false, true) {
			return fmt.Errorf("%s: stopped: %w", d.label(), message.ErrUnavailable)
		}
		return <-answered
	case <-ctx.Done():
		if begun.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return <-answered // it runs just now
	}
}

// gatherOf is what a queue waits for; a subscription waits for nothing.
func gatherOf(p *Policy, sub *subscription) queue.Gather {
	if sub != nil {
		return queue.Gather{}
	}
	return queue.Gather{Consumers: p.Gather.Consumers, Wait: p.Gather.Wait.Milliseconds()}
}

// boundsOf are how much a queue may have. A subscription keeps messages for whom it
// was made, whether they are there or not.
func boundsOf(p *Policy, sub *subscription) queue.Bounds {
	if sub != nil {
		return queue.Bounds{Ring: p.RingSize}
	}
	return queue.Bounds{Consumers: p.MaxConsumers, Ring: p.RingSize, Purge: p.PurgeAlone}
}
