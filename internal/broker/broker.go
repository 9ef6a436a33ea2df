package broker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/schedule"
	"github.com/nixiemq/nixie/internal/selector"
)

// A Broker holds destinations and connections. It is safe for concurrent use.
type Broker struct {
	o       Options
	memory  budget
	inbound gate // of all connections together
	running sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    atomic.Bool
	disk    diskWatch
	rooms   rooms
	waiting waits // of all producers
	parking gate  // what waits for room, of all connections together
	// scheduler is nil where there is none; producer is who sends what the broker makes.
	scheduler *scheduler
	producer  string
	counts    eventCounts
	branches  branches // distributed transactions
	// groups are those of ended turns, for use again by any destination: one that is
	// idle keeps none, and what was long is not long for ever.
	groups  sync.Pool
	batches sync.Pool // of units, the same

	interceptors atomic.Pointer[interceptors]
	policies     atomic.Pointer[func(message.Destination) Policy] // changed with creating held
	lifetimes    atomic.Bool                                      // Options.Lifetimes, and unrouted Options.Unrouted; the same
	unrouted     atomic.Bool
	declared     atomic.Bool // Options.OnlyDeclared; the same
	limited      atomic.Bool // Options.Limited; the same
	order        topicOrder

	pasts      map[message.Destination]*past // guarded by mu; nil: the topic keeps nothing
	remembered uint64                        // guarded by mu: messages that were kept so far
	// retainedFull, guarded by mu, says that it was logged that too much is retained.
	retainedFull bool

	consuming, producing *census
	watchers             atomic.Int64 // subscriptions to advisories other than those of temporary destinations

	// numbering is held for reading from taking a position until the destination
	// that gets it was told to expect it, so that its floor does not pass it.
	numbering sync.RWMutex

	mu            sync.Mutex
	queues        map[message.Destination]*destination
	topics        map[message.Destination]*atomic.Int64 // how many messages were sent to each
	subscriptions []*subscription
	routes        map[message.Destination]route                // of topics, until a subscription comes or goes
	ended         endings                                      // what destinations had counted that are no more
	virtual       map[virtualKey][]message.Destination         // queues of virtual topics, until a queue comes or goes
	lost          map[message.Destination]bool                 // queues that are to be opened anew
	paused        map[message.Destination]bool                 // queues that hand out nothing
	selectors     map[message.Destination][]*selector.Selector // of consumers that queues have had, the oldest first; a list is not changed
	connections   map[string]*Connection
	clientIDs     map[string]*Connection
	patterns      map[*consumer]bool // queue consumers that attach to queues yet to come
	temps         temporaries
	awaiting      int64           // until then clients may still come back to this process; Unix milliseconds
	came          map[string]bool // connections that did, or are new; nil once that is over

	// creating is held while a destination is made. It guards what follows, and is
	// never asked for by what the store calls.
	creating    sync.Mutex
	lastID      records.QueueID
	lastPassing records.QueueID                         // ids of what does not outlive the process
	ids         map[message.Destination]records.QueueID // of queues that were lost and are to be opened anew
}

// errStopped is what work is answered with that came too late.
var errStopped = fmt.Errorf("the broker is stopping: %w", message.ErrUnavailable)

// New opens a broker on what the records hold. Its destinations begin to work at
// once; Run waits for the end.
func New(o Options) (*Broker, error) {
	o.Name = cmp.Or(o.Name, "localhost")
	o.MaxRepeat = cmp.Or(o.MaxRepeat, schedule.DefaultMaxRepeat)
	o.Limits = o.Limits.withDefaults()
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 0 }
	}
	b := &Broker{
		o:           o,
		memory:      budget{limit: o.Limits.MessageBytes},
		inbound:     gate{maxCount: 1 << 20, maxBytes: 4 * o.Limits.UnansweredBytes},
		parking:     gate{maxCount: 1 << 20, maxBytes: 4 * o.Limits.UnansweredBytes},
		rooms:       rooms{of: map[message.Destination]*room{}},
		queues:      map[message.Destination]*destination{},
		topics:      map[message.Destination]*atomic.Int64{},
		routes:      map[message.Destination]route{},
		virtual:     map[virtualKey][]message.Destination{},
		lost:        map[message.Destination]bool{},
		paused:      map[message.Destination]bool{},
		selectors:   map[message.Destination][]*selector.Selector{},
		connections: map[string]*Connection{},
		clientIDs:   map[string]*Connection{},
		patterns:    map[*consumer]bool{},
		temps:       newTemporaries(),
		came:        map[string]bool{},
		lastPassing: records.FirstPassing,
		ids:         map[message.Destination]records.QueueID{},
	}
	b.producer = fmt.Sprintf("ID:%s-scheduler-%d:1:1:1", o.Name, b.now())
	i, err := o.Interceptors.compile()
	if err != nil {
		return nil, err
	}
	b.interceptors.Store(i)
	b.policies.Store(&o.Policy)
	b.lifetimes.Store(o.Lifetimes)
	b.unrouted.Store(o.Unrouted)
	b.declared.Store(o.OnlyDeclared)
	b.limited.Store(o.Limited)
	b.order.on.Store(o.OneOrder)
	b.pasts = map[message.Destination]*past{}
	b.consuming, b.producing = newCensus(), newCensus()
	b.branches = newBranches()
	b.awaiting = b.now() + o.KeepTemps.Milliseconds()
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	b.lastID = o.Records.LastQueue(records.FirstPassing)
	err = b.openAll()
	o.Records.OnMended(func(m records.Mended) { b.tell(Event{Kind: RecordDamaged, Destination: m.Destination, Text: m.Text}) })
	if err == nil {
		err = b.purgeBranches()
	}
	if err != nil {
		b.cancel(err)
		b.running.Wait()
		return nil, err
	}
	b.watchDisk()
	b.watchClock()
	b.watchOffline()
	b.watchTransactions()
	if !o.NoScheduler {
		b.scheduler = newScheduler(b)
		b.running.Go(func() { b.scheduler.run(b.ctx) })
	}
	return b, nil
}

// openAll opens what the records know, and makes what is to be there at start. None
// begins to work before all are known: what one dead letters at once goes to a queue
// that is there, and not to a new one of the same name.
func (b *Broker) openAll() error {
	b.restoreBranches()
	var known []*destination
	for _, i := range b.o.Records.Queues() {
		d, err := b.reopen(i)
		if err != nil {
			return err
		}
		known = append(known, d)
	}
	b.joinBranches()
	if err := checkDestinations(b.o.Destinations); err != nil {
		return err
	}
	for _, d := range known {
		d.begin(b.ctx)
	}
	return b.makeAll(b.o.Destinations)
}

func checkDestinations(all []message.Destination) error {
	for _, d := range all {
		if d.IsComposite() || d.IsPattern() || d.IsTemporary() || d.IsZero() {
			return fmt.Errorf("make %q at start: it names no single permanent destination: %w", d, message.ErrInvalid)
		}
	}
	return nil
}

func (b *Broker) makeAll(all []message.Destination) error {
	for _, d := range all {
		if d.Kind == message.Topic {
			b.mu.Lock()
			b.addTopicsLocked(d)
			b.mu.Unlock()
		} else if _, err := b.makeQueue(d, ""); err != nil {
			return err
		}
	}
	return nil
}

// reopen opens a destination that the records know. It does not work yet.
func (b *Broker) reopen(i records.QueueInfo) (*destination, error) {
	if i.Subscription != "" {
		return b.openSubscription(i)
	}
	d := b.newDestination(i.Destination, nil, i.ID, true)
	if err := d.restore(); err != nil {
		return nil, err
	}
	if err := b.recallSelectors(i); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.queues[i.Destination] = d
	clear(b.virtual)
	b.mu.Unlock()
	return d, nil
}

// Run waits until ctx ends, then stops what the broker runs.
func (b *Broker) Run(ctx context.Context) error {
	<-ctx.Done()
	b.stop.Store(true)
	b.cancel(errStopped)
	b.running.Wait()
	return nil
}

// Name is the broker's name.
func (b *Broker) Name() string { return b.o.Name }

// now is the time in Unix milliseconds.
func (b *Broker) now() int64 { return b.o.Clock.Now().UnixMilli() }

func (b *Broker) policy(d message.Destination) Policy {
	if f := *b.policies.Load(); f != nil {
		return f(d)
	}
	return Policy{}
}

func (b *Broker) tell(e Event) {
	b.counts.count(e)
	if b.o.Listen != nil {
		b.o.Listen(e)
	}
}

// queue gets a queue, and makes it for the connection by if there is none; "": for the
// broker itself. A temporary one that is not there is ErrNotFound.
func (b *Broker) queue(name message.Destination, by string) (*destination, error) {
	if d := b.known(name); d != nil {
		return d, nil
	}
	if name.IsTemporary() {
		by = "" // it is made by who asks for it, and not by its use
	}
	return b.makeQueue(name, by)
}

func (b *Broker) known(name message.Destination) *destination {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queues[name]
}

// makeQueue makes a queue, unless someone else was faster; by is the connection that
// makes it, and that a temporary one belongs to; "": the broker itself.
func (b *Broker) makeQueue(name message.Destination, by string) (*destination, error) {
	b.creating.Lock()
	defer b.creating.Unlock()
	if d := b.known(name); d != nil {
		return d, nil
	}
	if b.stop.Load() {
		return nil, errStopped
	}
	if name.Kind == message.TempQueue && by == "" {
		return nil, fmt.Errorf("%s does not exist: %w", name, message.ErrNotFound)
	}
	if name.IsComposite() || name.Name == "" {
		return nil, fmt.Errorf("%q names no single queue: %w", name, message.ErrInvalid)
	}
	durable := name.Kind == message.Queue
	d := b.newDestination(name, nil, b.freshID(name, durable), durable)
	if durable {
		d.record(records.QueueInfo{ID: d.id, Destination: name, Created: b.now()})
	}
	if err := d.start(b.ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.queues[name] = d
	clear(b.virtual)
	delete(b.lost, name)
	b.joinPatternsLocked(d)
	b.mu.Unlock()
	if !name.IsTemporary() {
		b.tell(Event{Kind: QueueAdded, Destination: name, Connection: by})
		if topic, pattern := b.interceptors.Load().nearly(name.Name); topic != "" {
			b.o.Log.Warn("a queue is named like one of a virtual topic, and gets nothing of it: its name does not fit, where a star stands for one step, without dots",
				"dest", name.String(), "topic", topic, "pattern", pattern)
		}
	}
	return d, nil
}

// freshID is the id of a destination that is opened: its own, if the store knew
// it before; b.creating is held.
func (b *Broker) freshID(name message.Destination, durable bool) records.QueueID {
	if id, ok := b.ids[name]; ok && durable {
		return id
	}
	if durable {
		b.lastID++
		return b.lastID
	}
	b.lastPassing++
	return b.lastPassing
}

// record stores that a destination exists. Its own batches follow this one, so
// nobody needs to wait for the answer; if it fails, so do they.
func (d *destination) record(i records.QueueInfo) {
	batch := new(records.Batch)
	batch.PutQueue(i)
	d.b.o.Records.Commit(batch, func(error) {})
}

// lose drops a destination whose machine can no longer be trusted, and ends the
// connections of those who use it. It is opened from the store when asked for next.
func (b *Broker) lose(d *destination, err error) {
	if d.sub == nil && d.durable {
		b.creating.Lock()
		b.ids[d.name] = d.id
		b.creating.Unlock()
	}
	b.mu.Lock()
	if b.queues[d.name] == d {
		delete(b.queues, d.name)
		b.ended.add(d)
		b.lost[d.name] = d.durable
	}
	hit := map[*Connection]bool{}
	for _, c := range b.connections {
		if c.uses(d) {
			hit[c] = true
		}
	}
	b.mu.Unlock()
	if b.stop.Load() {
		return
	}
	d.abandon(err)
	d.retire()
	b.tell(Event{Kind: DestinationLost, Destination: d.name, Err: err, Text: err.Error()})
	for c := range hit {
		c.info.Kick(err)
	}
}

// dropQueue removes a queue and everything in it. Where it does not, since it has consumers
// and must not (ErrState), or since ctx ended, it is still known.
func (b *Broker) dropQueue(ctx context.Context, d *destination, unused bool) error {
	if err := d.close(ctx, unused); err != nil && !d.box.isClosed() {
		return err
	}
	b.unlist(d) // where it was lost, too
	b.mu.Lock()
	b.temps.remove(d.name)
	delete(b.paused, d.name)
	b.mu.Unlock()
	return b.discard(d)
}

// unlist lets nobody find a destination any more.
func (b *Broker) unlist(d *destination) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.queues[d.name] {
	case d:
		delete(b.queues, d.name)
		clear(b.virtual)
		b.ended.add(d)
		fallthrough
	case nil: // it was lost
		delete(b.selectors, d.name)
	}
}

// discard ends a destination that nobody can find any more, with what it holds.
func (b *Broker) discard(d *destination) error {
	_ = d.close(b.ctx, false) // else it has ended
	d.abandon(d.gone())
	d.retire()
	<-d.ended // its last batch comes before what follows
	err := d.erase()
	b.roomChanged(d)
	if b.stop.Load() {
		return nil // the next start goes on with it
	}
	return err
}

// erase deletes what the store has of a destination that has ended.
func (d *destination) erase() error {
	r := d.b.o.Records
	if !d.durable && !r.Knows(d.id) {
		return nil
	}
	for lane := range uint8(10) {
		for r.LaneCount(d.id, records.Lane(lane)).Messages > 0 {
			if err := d.write(new(records.Batch)); err != nil { // what was handed over can be read then
				return err
			}
			left, err := d.stored(lane, 0, extractEntries)
			if err != nil || len(left) == 0 {
				break // what cannot be read goes with the queue, but for its body
			}
			batch := new(records.Batch)
			for i := range left {
				d.remove(batch, queue.StoredItem(left[i].Entry, left[i].Counts, left[i].HasCounts), records.Lane(lane), false)
			}
			if err := d.write(batch); err != nil {
				return err
			}
		}
	}
	batch := new(records.Batch)
	batch.DropQueue(d.id)
	if !d.durable {
		batch.Relax()
	}
	return d.write(batch)
}

// write hands a batch over and waits until it is true.
func (d *destination) write(batch *records.Batch) error {
	answered := make(chan error, 1)
	d.b.o.Records.Commit(batch, func(err error) { answered <- err })
	return <-answered
}

// names lists the queues, or topics, that are known, sorted.
func (b *Broker) names(topics bool) []message.Destination {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []message.Destination
	if topics {
		for n := range b.topics {
			all = append(all, n)
		}
	} else {
		for n := range b.queues {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, compareDestinations)
	return all
}
