// Package combiner stands between the callers of a store and its engine and
// keeps the laws of package store in one place: batches take effect and are
// answered in the order they were handed over, a deposed owner is fenced,
// limits are checked before anything is written, and the bytes in flight are
// bounded. An engine only makes a group of batches visible, and later durable.
//
//	Commit → queue → apply (merges what waits) → engine → answer → done
//
// Two goroutines do the work: apply takes what waits, up to a bound, and starts
// one physical commit with it; answer waits for the oldest commit to be durable
// and calls the answers. The next group is taken when the one before is answered,
// and those who were answered have had their turn to commit again: so everybody
// who is about to commit shares the next sync. Only where much waits is it applied
// while the disk is still busy. A lone committer, whose groups hold one batch,
// applies it himself and has one goroutine less to wait for.
//
// A batch that is put off does not begin a group: it goes with the next that does, or
// after two milliseconds at the most. So an acknowledgement that nobody waits for
// shares the sync of the next message. And where the disk is slow, those who were
// answered just now are awaited a moment, as a rule in vain only where they have
// stopped committing (gathering). There is no other timer.
//
// Designs that lost: every caller applies its own batch, as Pebble alone does it;
// with 64 committers half the time goes into handing the processor around. And to
// apply at once whatever waits: then two crowds of committers take turns, and each
// waits for the other's sync, so that 64 committers share a sync by half.
package combiner

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
)

// An Engine is what a kind of store adds to a Combiner.
type Engine interface {
	// Apply starts one physical commit of all items, in order, whole or not at
	// all. It returns when readers can see them. It is called by one goroutine at
	// a time. After an error the engine is not used again.
	Apply(items []Item) (Commit, error)
}

// A Commit is a physical commit on its way to the disk.
type Commit interface {
	// Wait returns when the commit and each before it are durable, or at once
	// where all of it is relaxed. It is called once, in the order of the Apply
	// calls, by another goroutine than theirs.
	Wait() error
}

// An Item is one batch of a group, or a claim: the note that a shard has a new
// owner, which the engine keeps so that epochs rise over restarts too.
type Item struct {
	Shard uint16
	Batch *store.Batch // nil for a claim
	Epoch uint64       // of a claim; it is durable
}

// Relaxed reports whether the item need not be durable.
func (i Item) Relaxed() bool { return i.Batch != nil && i.Batch.Relaxed() }

// Options say how a Combiner treats an engine.
type Options struct {
	Limits store.Limits
	// MergeBytes bounds a physical commit; a single larger batch goes alone.
	// Zero means 1 MiB.
	MergeBytes int
	// Epochs are the epochs found in the store, by shard.
	Epochs map[uint16]uint64
	// Clock is for what waits; nil: nothing does.
	Clock clock.Clock
}

// PutOffTime is how long batches that are put off wait for another one. One that
// comes while others wait may have to wait twice.
const PutOffTime = time.Millisecond

const (
	defaultMergeBytes = 1 << 20
	// maxMergeBatches bounds a physical commit in batches, so that the first of
	// a flood of tiny ones does not wait for all of them.
	maxMergeBatches = 1024
	// eagerShare of MergeBytes is so much that it is worth applying while the
	// disk is busy.
	eagerShare = 4
	// pipelineDepth is how many physical commits may be on their way.
	pipelineDepth = 4
)

// A Combiner takes batches for an engine. It is safe for concurrent use.
type Combiner struct {
	engine     Engine
	limits     store.Limits
	mergeBytes int
	clock      clock.Clock // nil: nothing waits

	work     chan struct{} // holds one: something was handed over since apply last looked
	applied  chan *group   // pipelineDepth, so that it is never full
	finished chan struct{} // closed when all that was handed over before Close is answered

	mu          sync.Mutex
	room        sync.Cond // unanswered fell below the limit, or closed
	queue       []entry   // handed over, not applied
	queuedBytes int       // of queue
	urgent      int       // those of queue that are not put off
	overdue     bool      // what is put off has waited enough
	timed       bool      // later was called
	takes       uint64    // groups taken so far
	unanswered  int       // bytes of batches not answered
	flying      int       // groups taken and not answered; one of a lone batch: not durable
	applying    bool      // a caller or apply's goroutine is in the engine
	lone        bool      // the last group held one batch, but for what was put off
	gather      gathering
	owners      map[uint16]*Owner
	epochs      map[uint16]uint64
	broken      error // why nothing can be committed any more
	closed      bool  // Close was called
	drained     bool  // apply has ended; nobody takes from queue
	spare       []*group
	late        []entry // refused after drained
	answersLate bool    // answerLate runs
}

// An entry is one thing to answer in its turn.
type entry struct {
	item    Item
	barrier bool // only answers; nothing to apply
	waits   bool // it is put off
	bytes   int
	refused error // answered with it, nothing applied
	done    func(error)
}

// clients is how many wait for the answer.
func (e *entry) clients() int {
	if e.item.Batch == nil {
		return 0
	}
	return e.item.Batch.Awaiting()
}

// New starts a Combiner; Close ends it.
func New(e Engine, o Options) *Combiner {
	c := &Combiner{
		engine:     e,
		limits:     o.Limits,
		mergeBytes: cmp.Or(o.MergeBytes, defaultMergeBytes),
		clock:      o.Clock,
		work:       make(chan struct{}, 1),
		applied:    make(chan *group, pipelineDepth),
		finished:   make(chan struct{}),
		owners:     map[uint16]*Owner{},
		epochs:     map[uint16]uint64{},
	}
	for shard, epoch := range o.Epochs {
		c.epochs[shard] = epoch
	}
	c.room.L = &c.mu
	go c.apply()
	go c.answer()
	return c
}

// Limits are those the Combiner was started with.
func (c *Combiner) Limits() store.Limits { return c.limits }

// Close refuses what comes from now on with store.ErrClosed, waits until all
// that was handed over before is answered, and ends the goroutines. Owners lose
// their shards. A second call waits as the first does.
func (c *Combiner) Close() {
	c.mu.Lock()
	c.closed = true
	for _, o := range c.owners {
		o.loseLocked()
	}
	clear(c.owners)
	c.room.Broadcast()
	c.mu.Unlock()
	c.wake()
	<-c.finished
}

// Break ends all committing for the reason given: what is on its way is
// answered as the engine says, what comes after is refused. Engines call it when
// they learn of their death in another way than by an answer.
func (c *Combiner) Break(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakLocked(cause)
}

func (c *Combiner) breakLocked(cause error) {
	if c.broken == nil {
		c.broken = fmt.Errorf("%w: %w", store.ErrClosed, cause)
	}
}

// Broken is the reason given to Break, or the error of the engine, or nil.
func (c *Combiner) Broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// wake tells apply that there is something to do.
func (c *Combiner) wake() {
	select {
	case c.work <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

// pushLocked queues e behind all that was handed over before.
func (c *Combiner) pushLocked(e entry) {
	if c.drained {
		c.addLateLocked(e)
		return
	}
	c.unanswered += e.bytes
	c.queuedBytes += e.bytes
	if e.waits = c.mayWait(&e); e.waits {
		c.timeLocked()
	} else {
		c.urgent++
		c.comesLocked(&e)
	}
	c.queue = append(c.queue, e)
}

// comesLocked notes that something was handed over that is to be applied.
func (c *Combiner) comesLocked(e *entry) {
	switch {
	case c.clock == nil || !c.gather.active():
	case e.item.Batch == nil: // who releases, or claims, awaits nobody
		c.gather.holding = false
	default:
		c.gather.handedOver(c.clock.Now(), e.item.Batch.Awaiting())
	}
}

// mayWait reports whether e is put off.
func (c *Combiner) mayWait(e *entry) bool {
	return c.clock != nil && e.refused == nil && e.item.Batch != nil && e.item.Batch.IsPutOff()
}

// timeLocked sees to it that what is put off does not wait for ever.
func (c *Combiner) timeLocked() {
	if c.timed {
		return
	}
	c.timed = true
	takes := c.takes
	c.clock.Call(c.clock.Now().Add(PutOffTime), func() {
		c.mu.Lock()
		c.timed = false
		switch {
		case len(c.queue) == 0:
		case takes != c.takes: // what waits has come since
			c.timeLocked()
		default:
			c.overdue = true
		}
		c.mu.Unlock()
		c.wake()
	})
}

// readyLocked reports whether what is queued is to be applied.
func (c *Combiner) readyLocked() bool {
	return len(c.queue) > 0 && ((c.urgent > 0 || c.overdue) && !c.gather.holding || c.closed || c.queuedBytes >= c.mergeBytes/eagerShare)
}

// check returns why b can not be taken, or nil.
func (c *Combiner) check(b *store.Batch) error {
	if b.SizeBytes() > c.limits.BatchBytes {
		return fmt.Errorf("batch of %d bytes, at most %d: %w", b.SizeBytes(), c.limits.BatchBytes, store.ErrLimit)
	}
	for _, op := range b.Ops() {
		key, value := len(op.Key), len(op.Value)
		if op.Kind == store.OpDeleteRange {
			key, value = max(key, value), 0
		}
		if key > c.limits.KeyBytes {
			return fmt.Errorf("key of %d bytes, at most %d: %w", key, c.limits.KeyBytes, store.ErrLimit)
		}
		if value > c.limits.ValueBytes {
			return fmt.Errorf("value of %d bytes, at most %d: %w", value, c.limits.ValueBytes, store.ErrLimit)
		}
	}
	return nil
}

// apply hands groups to the engine until the Combiner is closed and its queue
// is empty.
func (c *Combiner) apply() {
	defer close(c.applied)
	for range c.work {
		runtime.Gosched() // let those commit who have just been answered
		for {
			g, last := c.take()
			if last {
				return
			}
			if g == nil {
				break
			}
			c.start(g)
		}
	}
}

// start applies g and passes it on. It reports whether apply's goroutine has
// something to do.
func (c *Combiner) start(g *group) (more bool) {
	var now time.Time
	if c.clock != nil {
		now = c.clock.Now()
	}
	if g.start(c.engine) {
		g.began = now
	}
	if g.err != nil {
		c.Break(g.err)
	}
	c.applied <- g
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applying = false
	return c.readyLocked() || c.closed
}

// takeAloneLocked makes e a group for its caller to apply, with what was put off, if
// nothing else is before it or on its way; else it returns nil.
func (c *Combiner) takeAloneLocked(e entry) *group {
	if !c.lone || c.gather.holding || c.applying || c.flying > 0 || c.drained || e.refused != nil || c.mayWait(&e) ||
		len(c.queue) > 0 && c.readyLocked() || c.queuedBytes+e.bytes > c.mergeBytes {
		return nil
	}
	c.comesLocked(&e)
	c.unanswered += e.bytes
	g := c.groupLocked()
	g.entries, c.queue = append(c.queue, e), g.entries[:0]
	g.clients, g.lone = e.clients(), true
	c.queuedBytes, c.overdue = 0, false
	return g
}

// groupLocked is an empty group that is going to be applied.
func (c *Combiner) groupLocked() *group {
	c.applying = true
	c.flying++
	c.takes++
	n := len(c.spare)
	if n == 0 {
		return &group{}
	}
	g := c.spare[n-1]
	c.spare = c.spare[:n-1]
	return g
}

// take removes the next group from the queue; nil if there is none. last says
// that there never will be one.
func (c *Combiner) take() (g *group, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applying { // by a caller, who wakes us when it is done
		return nil, false
	}
	if len(c.queue) == 0 {
		c.drained = c.closed
		return nil, c.drained
	}
	if !c.readyLocked() || c.flying > 0 && (c.queuedBytes < c.mergeBytes/eagerShare || c.flying == pipelineDepth) {
		return nil, false // answer wakes us
	}
	g = c.groupLocked()
	n, bytes, urgent := 0, 0, 0
	g.clients = 0
	for n < len(c.queue) && n < maxMergeBatches && (n == 0 || bytes+c.queue[n].bytes <= c.mergeBytes) {
		if c.broken != nil && c.queue[n].refused == nil {
			c.queue[n].refused = c.broken
		}
		bytes += c.queue[n].bytes
		if !c.queue[n].waits {
			urgent++
			g.clients += c.queue[n].clients()
		}
		n++
	}
	c.queuedBytes -= bytes
	c.urgent, c.overdue = c.urgent-urgent, false
	g.lone = urgent <= 1
	c.lone = g.lone
	if n == len(c.queue) {
		g.entries, c.queue = c.queue, g.entries[:0]
		return g, false
	}
	g.entries = append(g.entries[:0], c.queue[:n]...)
	rest := copy(c.queue, c.queue[n:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	return g, false
}

// answer calls the answers of each group when the group is durable.
func (c *Combiner) answer() {
	defer close(c.finished)
	for g := range c.applied {
		if err := g.wait(); err != nil {
			c.Break(err)
		}
		lone, took, clients := g.lone, c.syncTime(g), g.clients
		if lone {
			c.landed(took, clients)
		}
		for i := range g.entries {
			g.entries[i].done(g.outcome(&g.entries[i]))
		}
		c.recycle(g)
		if !lone {
			c.landed(took, clients)
		}
	}
}

// landed notes that a group is not on its way any more: before the answer to a
// lone batch, whose owner may go on at once; after the answers to many, who are
// all to share the next group. took is how long it took to become durable, while
// that many clients waited for it; 0: it need not.
func (c *Combiner) landed(took time.Duration, clients int) {
	c.mu.Lock()
	c.flying--
	if took > 0 {
		c.gatherLocked(took, clients)
	}
	waiting := c.readyLocked()
	c.mu.Unlock()
	if waiting {
		c.wake()
	}
}

// syncTime is how long g took to become durable; 0 where it need not, or nothing waits.
func (c *Combiner) syncTime(g *group) time.Duration {
	if g.began.IsZero() {
		return 0
	}
	return c.clock.Now().Sub(g.began)
}

// gatherLocked has what waits wait on for those who have just been answered, where they
// come back as a rule.
func (c *Combiner) gatherLocked(took time.Duration, clients int) {
	c.gather.synced(took)
	hold, d := c.gather.answered(c.clock.Now(), clients, c.urgent)
	if !hold {
		return
	}
	number := c.gather.number
	c.clock.Call(c.clock.Now().Add(d), func() {
		c.mu.Lock()
		ends := c.gather.holding && c.gather.number == number
		c.gather.holding = c.gather.holding && !ends
		c.mu.Unlock()
		if ends {
			c.wake()
		}
	})
}

// recycle gives back the room that the answered group took.
func (c *Combiner) recycle(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range g.entries {
		c.unanswered -= g.entries[i].bytes
	}
	if c.unanswered <= c.limits.InFlightBytes {
		c.room.Broadcast()
	}
	g.reset()
	if len(c.spare) < pipelineDepth {
		c.spare = append(c.spare, g)
	}
}

// A group is what one physical commit carries. Apply's goroutine fills it, and
// after it is sent answer's goroutine alone has it.
type group struct {
	entries []entry
	items   []Item
	clients int       // that wait for it
	lone    bool      // it holds one batch, but for what was put off
	began   time.Time // when it was applied; zero: it need not be durable, or nothing waits
	commit  Commit    // nil where nothing had to be applied, or err is set
	err     error
}

// start applies what is not refused. It reports whether any of it is to be durable.
func (g *group) start(e Engine) (durable bool) {
	for i := range g.entries {
		if g.entries[i].refused == nil && !g.entries[i].barrier {
			g.items = append(g.items, g.entries[i].item)
			durable = durable || !g.entries[i].item.Relaxed()
		}
	}
	if len(g.items) > 0 {
		g.commit, g.err = e.Apply(g.items)
	}
	return durable
}

func (g *group) wait() error {
	if g.err == nil && g.commit != nil {
		g.err = g.commit.Wait()
	}
	return g.err
}

// outcome is the answer to e once the group's wait is over.
func (g *group) outcome(e *entry) error {
	switch {
	case e.refused != nil:
		return e.refused
	case g.err == nil || e.barrier:
		return nil
	case errors.Is(g.err, store.ErrUnknown):
		return g.err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknown, g.err)
}

func (g *group) reset() {
	clear(g.entries)
	clear(g.items)
	*g = group{entries: g.entries[:0], items: g.items[:0]}
}

// addLateLocked takes what is handed over after apply has ended. It is still
// answered in order, after all else, and not from the caller's goroutine.
func (c *Combiner) addLateLocked(e entry) {
	c.late = append(c.late, e)
	if !c.answersLate {
		c.answersLate = true
		go c.answerLate()
	}
}

func (c *Combiner) answerLate() {
	<-c.finished
	for {
		c.mu.Lock()
		late := c.late
		c.late, c.answersLate = nil, len(late) > 0
		c.mu.Unlock()
		if len(late) == 0 {
			return
		}
		for i := range late {
			late[i].done(late[i].refused)
		}
	}
}
