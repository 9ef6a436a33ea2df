package queue

import (
	"math"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// Options say what kind of queue it is.
type Options struct {
	Destination  message.Destination
	Subscription redelivery.Subscription // zero for a queue
	Rules        redelivery.Rules
	// Prioritized orders by JMSPriority first (policyEntry prioritizedMessages).
	Prioritized bool
	// Marks records in the store what was handed out (R-CNT-30, done better).
	Marks bool
	// Redelivers is false for a topic consumer without a durable name: nothing it
	// leaves behind goes to anyone else (R-CNT-22).
	Redelivers bool
	// Grouped keeps the messages of a JMSXGroupID together and in order; a queue's
	// are, a subscription's are not.
	Grouped bool
	// Rebalance has the groups bound anew when a consumer comes.
	Rebalance bool
	// Gather lets the queue wait for consumers before it begins.
	Gather Gather
	// LastValue is the property of which a queue keeps the newest message of each
	// value alone; empty: it keeps all.
	LastValue string
	// Bounds are how much it may have.
	Bounds Bounds
	// Tells are the events that are told only on request.
	Tells Tells
	// Backlog bounds what waits for a topic consumer without a durable name, and Slow
	// how slow a consumer may be.
	Backlog Backlog
	Slow    SlowLimits
	// OneByOne fills the window of one consumer before the next of its priority is
	// given anything; else they have their turns (policyEntry strictOrderDispatch).
	OneByOne bool
	// Paused hands out nothing: see Pause.
	Paused bool
	// Window is how many waiting items of a lane are kept in memory at the most.
	Window int
	// AckTimeout is how long a message may be at a consumer without acknowledgement,
	// in milliseconds; 0: for ever.
	AckTimeout int64
	// Scheduled is how many items that wait for their due time are kept in memory at
	// the most, where the store has them too; default DefaultScheduled.
	Scheduled int
	// TurnSteps is what selectors may take of a turn, in steps of package selector;
	// default DefaultTurnSteps.
	TurnSteps int
	// Jitter is uniform in [-1, 1).
	Jitter func() float64
	// Read gets the headers and properties of a stored item's message, for
	// selectors. What it returns for an entry never changes.
	Read func(*message.Entry) (*message.Message, error)
	// Properties looks one property of a message up, for selectors.
	Properties func(m *message.Message, name string) (selector.Value, bool)
}

// Tells are events that cost too much to be told where nobody asked for them.
type Tells struct{ Arrived, Consumed, Lonely, Slow bool }

// DefaultWindow is the number of waiting items of a lane in memory.
const DefaultWindow = 1000

// Stats count what happened in a queue since it was opened.
type Stats struct {
	Enqueued, Dequeued, Dispatched, Expired, DeadLettered, Discarded, Suppressed, Failed, Kept, Evicted int64
	Out, Consumers, Scheduled, Waiting                                                                  int64 // now
	// AtClients are those of Out that their clients deliver once more by themselves,
	// as they have told; NextDue is when the first of Scheduled may go, Unix
	// milliseconds, 0 for none (R-EDGE-53).
	AtClients, NextDue int64
	// Bytes is the size of all that is in the queue now, OutBytes that of Out.
	Bytes, OutBytes int64
	// Deep says that there is more than is kept in memory: what comes now goes to the
	// store, also where it is not to outlive the process.
	Deep bool
}

// A Machine is one queue. It is not safe for concurrent use: its owner alone
// calls it.
type Machine struct {
	o            Options
	stats        Stats
	lanes        [lanes]*lane
	out          map[uint64]*Item // handed out and not settled, by position
	consumers    []*Consumer      // of the highest priority first
	byID         map[string]*Consumer
	next         int // where the next look for a consumer begins
	exclusive    *Consumer
	pulls        []pull
	expected     map[uint64]bool
	plucked      map[uint64]bool // taken out of the store alone; a page may still show them
	txs          map[string][]*Item
	rollbacks    uint64 // so far
	producers    producers
	groups       groups
	gathersUntil int64            // 0: it does not wait for consumers
	purges       bool             // nothing that is there is kept (Bounds.Purge)
	newest       map[string]*Item // of a last-value queue, those that wait in memory, by value
	due          itemHeap         // scheduled items, by when they may go
	horizons     [indexes]horizon
	far          []*Item  // scheduled in this turn, where too many are in memory
	holds        itemHeap // waiting items held back from a connection, by when that ends
	expiry       itemHeap // items that expire and that no consumer has, by when
	marks        marking
	touched      []*Item                // to be looked at when the turn ends
	lookup       selector.MessageLookup // kept, so that looking allocates nothing
	keyed        keyed
	lookBacks    int                       // how often consumers were let look again at what they had passed over
	steps        int                       // that selectors took in this turn
	unfinished   bool                      // they have more to look at in the next
	values       map[uint64]selector.Value // of Backlog.Property, by position
	chosen       []*Item                   // kept, so that choosing allocates nothing
	turns        uint64                    // turns ended, and the present one

	now     int64 // Unix milliseconds; goes back by ClockSet alone
	effects []Effect
}

// New makes an empty queue.
func New(o Options) *Machine {
	if o.Scheduled <= 0 {
		o.Scheduled = DefaultScheduled
	}
	if o.TurnSteps <= 0 {
		o.TurnSteps = DefaultTurnSteps
	}
	o.TurnSteps = max(o.TurnSteps, turnShare)
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	m := &Machine{
		o:         o,
		out:       map[uint64]*Item{},
		byID:      map[string]*Consumer{},
		expected:  map[uint64]bool{},
		plucked:   map[uint64]bool{},
		txs:       map[string][]*Item{},
		producers: newProducers(),
		groups:    newGroups(),
		newest:    map[string]*Item{},
		due:       itemHeap{key: dueKey, at: dueIndex},
		holds:     itemHeap{key: holdKey, at: holdIndex},
		expiry:    itemHeap{key: expiryKey, at: expiryIndex},
		turns:     1,
	}
	for x := range m.horizons {
		m.horizons[x].all = true
	}
	m.setAckTimeout(o.AckTimeout)
	m.lookup.Properties = func(name string) (selector.Value, bool) {
		return m.o.Properties(m.lookup.Message, name)
	}
	return m
}

// Restore tells a new machine what the store holds of a lane: so many entries, none
// of them below floor, and how large they are together.
func (m *Machine) Restore(laneNumber uint8, floor uint64, entries, bytes int64) {
	l := m.lane(laneNumber)
	m.stats.Bytes += bytes
	l.cursor, l.beyond, l.ended = max(floor, 1)-1, entries, entries == 0
	for x := range m.horizons { // the store knows their times
		m.horizons[x].all = m.horizons[x].all && entries == 0
	}
}

// Stats returns what happened so far.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Out, s.Consumers, s.Scheduled = int64(len(m.out)), int64(len(m.consumers)), int64(len(m.due.items))
	if it := m.due.first(); it != nil {
		s.NextDue = it.due
	}
	for _, l := range m.lanes {
		if l != nil {
			s.Scheduled += int64(len(l.away))
			s.Deep = s.Deep || l.beyond > 0 || len(l.during) > 0 || l.waiting.n >= m.window()
		}
	}
	s.Waiting = m.waitingNow()
	return s
}

// Consumers are those attached now. The slice is the machine's.
func (m *Machine) Consumers() []*Consumer { return m.consumers }

// LaneOf is the lane of a message of the given priority.
func (o *Options) LaneOf(priority uint8) uint8 {
	if !o.Prioritized {
		priority = message.DefaultPriority
	}
	return 9 - min(priority, 9)
}

// Apply does what c asks at the time now, in Unix milliseconds, and appends what
// follows from it to effects. After the last command of a turn comes EndTurn.
func (m *Machine) Apply(c Command, now int64, effects []Effect) []Effect {
	m.now = max(m.now, now)
	m.effects = effects
	m.apply(c)
	m.dispatch()
	m.evict()
	m.evictBacklog()
	m.watchSlow()
	effects, m.effects = m.effects, nil
	return effects
}

func (m *Machine) apply(c Command) {
	switch c := c.(type) {
	case Enqueue:
		m.enqueue(c)
	case Ack:
		m.ack(c)
	case Arrive:
		m.arrive(c)
	case Expect:
		m.expect(c.Positions)
	case Cancel:
		m.cancel(c.Positions)
	case Attach:
		m.attach(c)
	case Detach:
		m.detach(c)
	case SetPrefetch:
		m.setPrefetch(c)
	case Pull:
		m.pull(c)
	case Prepare:
		c.Reply(m.txs[c.Tx])
	case Foretell:
		m.foretell(c)
	case Settle:
		m.settle(c)
	case Undispatchable:
		m.undispatchable(c)
	case Paged:
		m.paged(c)
	case Searched:
		m.searched(c)
	case Timed:
		m.timed(c)
	case ForgetProducer:
		m.producers.forget(c.Producer)
	case Browse:
		m.browse(c)
	case Extract:
		m.extract(c)
	case Gone:
		for _, p := range c.Positions {
			delete(m.plucked, p)
		}
	case SetPolicy:
		m.o.Rules, m.o.Marks, m.o.Tells, m.o.Bounds, m.o.OneByOne, m.o.Rebalance = c.Rules, c.Marks, c.Tells, c.Bounds, c.OneByOne, c.Rebalance
		m.setAckTimeout(c.AckTimeout)
		m.setBacklog(c.Backlog)
		m.setSlow(c.Slow)
	case Regroup:
		m.regroup(c.Group, nil)
	case Pause:
		m.pause(c.On)
	case ClockSet:
		m.now = min(m.now, c.Now)
	case Tick:
	}
	m.pass()
}

// EndTurn appends what is due once for a whole turn: counts that changed, marks of
// what was handed out, and the last sequence of each producer.
func (m *Machine) EndTurn(effects []Effect) []Effect {
	m.effects = effects
	m.flushMarks()
	m.flushProducers()
	m.sendAway()
	m.renew()
	m.turns++
	effects, m.effects = m.effects, nil
	return effects
}

// Next is when Tick has something to do, in Unix milliseconds; 0: never.
func (m *Machine) Next() int64 {
	if m.unfinished {
		return m.now
	}
	next := min(m.nextCheck(), m.nextAbort())
	if m.gathersUntil != 0 {
		next = min(next, m.gathersUntil)
	}
	if it := m.due.first(); it != nil && it.due < m.horizons[ByDue].at() { // else a page is on its way
		next = min(next, it.due)
	}
	if it := m.holds.first(); it != nil {
		next = min(next, it.heldUntil)
	}
	if it := m.expiry.first(); it != nil && it.Expiration < math.MaxInt64 {
		next = min(next, it.Expiration+1) // expired is later than, not at (R-BRK-20)
	}
	for x := range m.horizons {
		if at := m.timesDue(Index(x), false); at != 0 {
			next = min(next, at)
		}
	}
	for _, p := range m.pulls {
		if p.until > m.now { // else its answer waits for a page
			next = min(next, p.until)
		}
	}
	if next == math.MaxInt64 {
		return 0
	}
	return next
}

// pass does what the time alone brings about. Items come back in the order of their
// due times: not before all that are due earlier are known.
func (m *Machine) pass() {
	m.checkAcks()
	m.checkSlow()
	m.gathered()
	for it := m.due.first(); it != nil && it.due <= m.now && it.due < m.horizons[ByDue].at(); it = m.due.first() {
		m.leaveDue(it)
		switch {
		case !m.goesOn(it):
		case m.keepsPlace(it):
			m.putWaiting(it)
		default:
			m.putBack(it)
		}
	}
	for it := m.holds.first(); it != nil && it.heldUntil <= m.now; it = m.holds.first() {
		m.leaveHold(it)
		it.heldFrom, it.heldUntil, it.thenFrom, it.thenUntil = it.thenFrom, it.thenUntil, "", 0
		if it.heldUntil > m.now {
			m.enterHold(it)
		}
		m.reoffer(it)
	}
	for it := m.expiry.first(); it != nil && it.Expired(m.now); it = m.expiry.first() {
		m.leaveList(it)
		m.expire(it)
	}
}

func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

func (m *Machine) answer(done func(error), err error) {
	if done != nil {
		m.emit(Effect{Kind: Answer, Done: done, Err: err})
	}
}

func (m *Machine) tell(kind EventKind, it *Item, text string) {
	m.emit(Effect{Kind: Tell, Event: kind, Item: it, Text: text})
}
