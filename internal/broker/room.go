package broker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// A room is the room that a destination with a Flow has for what producers send. It
// adds to what the destination had at its last turn what was let in and is not yet
// answered; in between a message may count twice, for the moment that its batch takes.
type room struct {
	b    *Broker
	name message.Destination
	flow atomic.Pointer[Flow]

	waits waits

	mu              sync.Mutex
	bytes, messages int64           // let in and not counted in the destination yet
	version         uint64          // of bytes and messages
	line            []*wait         // who waits for room here, in the order in which they came
	told            map[string]bool // what was told since it is full
}

// waits count sends that had to wait.
type waits struct {
	now   atomic.Int64 // that wait
	sends atomic.Int64 // that have waited since the start, also those that still do
	nanos atomic.Int64 // for how long together, of those that do not wait any more
}

// rooms are the rooms of the destinations that have a Flow.
type rooms struct {
	mu sync.Mutex
	of map[message.Destination]*room // nil: it has no Flow
	// reloads tells whether a policy that was asked for holds still.
	reloads int
}

// room gets the room of a destination; nil: nothing stops its producers but the disk.
func (b *Broker) room(name message.Destination) *room {
	if name.IsAdvisory() {
		return nil
	}
	for {
		b.rooms.mu.Lock()
		r, known := b.rooms.of[name]
		at := b.rooms.reloads
		b.rooms.mu.Unlock()
		if known {
			return r
		}
		if f := b.policy(name).Flow; f != (Flow{}) {
			r = &room{b: b, name: name}
			r.flow.Store(&f)
		}
		if b.rooms.add(name, r, at) {
			return r
		}
	}
}

// add keeps a room, unless the policy has changed or someone was faster.
func (g *rooms) add(name message.Destination, r *room, at int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.of[name]; known || g.reloads != at {
		return false
	}
	if len(g.of) >= maxRoutes {
		for n, o := range g.of {
			if o == nil || o.waits.now.Load() == 0 {
				delete(g.of, n)
			}
		}
	}
	g.of[name] = r
	return true
}

// all are the rooms there are.
func (g *rooms) all() []*room {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*room, 0, len(g.of))
	for _, r := range g.of {
		if r != nil {
			list = append(list, r)
		}
	}
	return list
}

// reloadRooms gives all rooms the Flow that holds now, and has those who wait look.
func (b *Broker) reloadRooms() {
	b.rooms.mu.Lock()
	b.rooms.reloads++
	for n, r := range b.rooms.of {
		if r == nil {
			delete(b.rooms.of, n)
		}
	}
	b.rooms.mu.Unlock()
	for _, r := range b.rooms.all() {
		f := b.policy(r.name).Flow
		r.flow.Store(&f)
		r.signal()
	}
	b.disk.signal()
}

// used is what lies in the destination, and is on its way there: see Flow.MaxBytes. Of
// several subscriptions to a topic the fullest counts, as they have the same messages.
// What comes there meanwhile may count twice, and never not at all.
func (r *room) used() (bytes, messages int64, version uint64) {
	b := r.b
	r.mu.Lock()
	onBytes, onMessages, version := r.bytes, r.messages, r.version
	r.mu.Unlock()
	if r.name.IsQueue() {
		if d := b.known(r.name); d != nil {
			bytes, messages = d.holds()
		}
	} else {
		f := r.flow.Load()
		for _, s := range b.route(r.name, "") {
			if s.durable && !f.DurableToo {
				continue
			}
			n, m := s.d.holds()
			bytes, messages = max(bytes, n), max(messages, m)
		}
	}
	return bytes + onBytes, messages + onMessages, version
}

// holds is what counts of a destination against a limit: all of a queue and of a durable
// subscription, and of a topic consumer without one what it was not handed yet.
func (d *destination) holds() (bytes, messages int64) {
	s := d.snapshot()
	bytes, messages = s.Bytes, s.Waiting+s.Out+s.Scheduled
	if d.sub != nil && !d.sub.durable {
		bytes, messages = bytes-s.OutBytes, messages-s.Out
	}
	return bytes, messages
}

// afterTurn calls f, unless it is nil, when what lies in the mailbox counts in the
// destination, or never will.
func (d *destination) afterTurn(f func(error)) {
	if f == nil {
		return
	}
	w := work{do: func() { d.counted = append(d.counted, f) }, stopped: f}
	if !d.box.force(w) {
		f(nil)
	}
}

// Those who wait for room stand in a line, and of them the first alone is woken when there
// is some. When it leaves it has the next one woken, if there is room left. To wake a
// thousand producers for each message that is consumed, so that one of them gets in, takes
// more than all else that is done with a message.

// enlist puts a wait at the end of the line. From then on it is woken: it has to look once
// more whether there is room.
func (r *room) enlist(w *wait) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line = append(r.line, w)
}

// delist takes a wait out of the line, and lets the next one look.
func (r *room) delist(w *wait) {
	r.mu.Lock()
	if i := slices.Index(r.line, w); i == 0 {
		r.line[0] = nil
		r.line = r.line[1:]
	} else if i > 0 {
		r.line = slices.Delete(r.line, i, i+1)
	}
	r.mu.Unlock()
	r.signalRoom()
}

// signal has all who wait look once more.
func (r *room) signal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.line {
		w.look()
	}
}

// signalRoom has the first who waits look once more, where the destination is not full.
func (r *room) signalRoom() {
	r.mu.Lock()
	waits := len(r.line) > 0
	r.mu.Unlock()
	if !waits {
		return
	}
	var is fill
	is.bytes, is.messages, _ = r.used()
	if f := r.flow.Load(); f.overBytes(is) || f.overMessages(is) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.line) > 0 {
		r.line[0].look()
	}
}

// firstTime reports whether something was not told since the destination is full.
func (r *room) firstTime(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[what] || len(r.told) >= maxTold {
		return false
	}
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[what] = true
	return true
}

// roomChanged has the producers look that wait for room in a destination after a turn
// of it, or after its end.
func (b *Broker) roomChanged(d *destination) {
	if b.waiting.now.Load() == 0 {
		return
	}
	if d.sub == nil {
		b.rooms.mu.Lock()
		r := b.rooms.of[d.name]
		b.rooms.mu.Unlock()
		if r != nil {
			r.signalRoom()
		}
		return
	}
	for _, r := range b.rooms.all() {
		if r.name.IsTopic() && d.sub.covers(r.name) {
			r.signalRoom()
		}
	}
}

// A demand is the room that a send, or a transaction, needs.
type demand struct {
	parts    []part
	free     int                 // destinations without a limit that it goes to, too
	stored   bool                // some of it is to be stored
	spills   func() bool         // some of it would be stored now, for want of memory; nil: none
	to       message.Destination // of a single send
	producer string
}

// A part is what a demand needs of one destination.
type part struct {
	room            *room
	bytes, messages int64
	own             int64  // bytes that its transaction has for the destination already
	version         uint64 // of the room, when it was decided
	spared          bool   // only targets that are spared
	out             bool   // it is full, and left out
}

// add adds a message for a destination.
func (n *demand) add(r *room, bytes int64, spared bool) {
	for i := range n.parts {
		if p := &n.parts[i]; p.room == r {
			p.bytes += bytes
			p.messages++
			p.spared = p.spared && spared
			return
		}
	}
	n.parts = append(n.parts, part{room: r, bytes: bytes, messages: 1, spared: spared})
}

// without are the queues that are full, and left out.
func (n *demand) without() []message.Destination {
	if n.empty() {
		return nil
	}
	var all []message.Destination
	for i := range n.parts {
		if p := &n.parts[i]; p.out {
			all = append(all, p.room.name)
		}
	}
	return all
}

// demandOf is the room that a message needs that a connection sends: in every queue
// and topic that it is routed to.
func (b *Broker) demandOf(m *message.Message, from string) demand {
	n := demand{stored: m.Persistent || b.scheduled(m), to: m.Destination, producer: m.ID.Producer}
	if !n.stored {
		n.spills = func() bool { return b.spills(m, from) }
	}
	if b.limited.Load() && !b.scheduled(m) && !b.manages(m) {
		b.addDemand(&n, m, from, int64(m.SizeBytes()))
	}
	return n
}

// addDemand adds a message of that many bytes.
func (b *Broker) addDemand(n *demand, m *message.Message, from string, size int64) {
	for _, t := range b.targets(m, from) {
		if r := b.room(t.name); r != nil {
			n.add(r, size, t.spared)
		} else {
			n.free++
		}
	}
}

// spills reports whether a message that a connection sends, and that is not to outlive the
// process, would be written to the disk all the same: there is no memory for it, or one of
// its destinations has more than it keeps there.
func (b *Broker) spills(m *message.Message, from string) bool {
	if b.memory.used.Load()+int64(m.SizeBytes()) > b.memory.limit {
		return true
	}
	return slices.ContainsFunc(b.targets(m, from), func(t target) bool {
		if t.name.IsQueue() {
			d := b.known(t.name)
			return d != nil && d.snapshot().Deep
		}
		return slices.ContainsFunc(b.route(t.name, ""), func(s *subscription) bool { return s.d.snapshot().Deep })
	})
}

// An obstacle is what a demand meets.
type obstacle struct {
	verdict  verdict
	why      error
	room     *room           // that is full; nil: the disk
	refuseAt time.Duration   // when it is refused, counted from when it came; 0: never
	changed  <-chan struct{} // of the disk: closed when to ask again
}

// ask decides about a demand, without taking anything. With watch the obstacle tells
// when to ask again, where it is the disk.
func (b *Broker) ask(n *demand, j judge, watch bool) (worst obstacle) {
	j.blocks, j.failAfter = b.o.BlockWhenFull, b.o.FailAfter
	var changed <-chan struct{}
	if watch {
		changed = b.disk.watch() // before it is looked at
	}
	var is fill
	is.disk, is.storePercent = b.disk.state()
	if full := is.disk != nil || is.storePercent > 0; full && !n.stored && (n.spills == nil || !n.spills()) {
		is.disk, is.storePercent = nil, 0 // it is nothing to the store
	}
	if len(n.parts) == 0 {
		worst.verdict, worst.refuseAt, worst.why = j.decide(n.to, &Flow{}, is)
		worst.changed = changed
		return worst
	}
	dropped := 0
	for i := range n.parts {
		p := &n.parts[i]
		f := p.room.flow.Load()
		is.bytes, is.messages, p.version = p.room.used()
		is.bytes += p.own
		o := obstacle{room: p.room}
		o.verdict, o.refuseAt, o.why = j.decide(p.room.name, f, is)
		if o.why != nil && (j.over || f.full(p.room.name, is) == nil) {
			o.room, o.changed = nil, changed
		}
		if p.out = p.spared && o.room != nil && (o.verdict == refuseIt || o.verdict == dropIt); p.out {
			continue
		}
		if o.verdict == dropIt {
			dropped++
		}
		if o.verdict > worst.verdict {
			worst = o
		}
	}
	if worst.verdict == dropIt && dropped < len(n.parts)+n.free {
		return obstacle{} // another destination is to have it: it goes to all
	}
	return worst
}

// take takes the room that a demand needs, until it is given back. It returns false, and
// takes nothing, where anything has changed since the demand was decided about: of many
// who wait for the last of the room only one is to have it. over does not look.
func (n *demand) take(over bool) bool {
	for i := range n.parts {
		if !n.parts[i].take(over) {
			for k := range i {
				n.parts[k].give()
			}
			return false
		}
	}
	return true
}

func (p *part) take(over bool) bool {
	if p.out {
		return true
	}
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !over && r.version != p.version {
		return false
	}
	r.add(p.bytes, p.messages)
	if !over {
		r.told = nil // it is not full
	}
	return true
}

func (p *part) give() {
	if p.out {
		return
	}
	r := p.room
	r.mu.Lock()
	r.add(-p.bytes, -p.messages)
	r.mu.Unlock()
	if r.b.waiting.now.Load() > 0 { // whoever waits counts there before looking
		r.signalRoom()
	}
}

// add changes what is on its way; r.mu is held.
func (r *room) add(bytes, messages int64) {
	r.bytes += bytes
	r.messages += messages
	r.version++
}

// give gives the room back, once what took it counts in its destination, or will
// never get there.
func (n *demand) give() {
	if n.empty() {
		return
	}
	for i := range n.parts {
		n.parts[i].give()
	}
}

// empty reports whether there is nothing to give back.
func (n *demand) empty() bool { return n == nil || len(n.parts) == 0 }

// then is done, with the room given back before it is called.
func (n *demand) then(done func(error)) func(error) {
	if n.empty() {
		return done
	}
	return func(err error) {
		n.give()
		done(err)
	}
}
