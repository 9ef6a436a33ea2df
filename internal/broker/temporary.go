package broker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// A temporary is what is known of a temporary destination. It belongs to a connection
// and ends with it. A queue whose client has lost its connection, and may come back, is
// an orphan for a while (Options.KeepTemps): replies that come meanwhile are there when
// the client has made it again, which it does as it comes back (OpenWire 13), and who
// sends them is not told that there is nobody.
type temporary struct {
	owner string // the connection
	loss  uint64 // which loss of a connection made it an orphan; 0: it is none
}

// temporaries are the temporary destinations there are. Broker.mu guards them.
type temporaries struct {
	of    map[message.Destination]*temporary
	owned map[string]map[message.Destination]bool // by connection
	loss  uint64                                  // the last
}

func newTemporaries() temporaries {
	return temporaries{of: map[message.Destination]*temporary{}, owned: map[string]map[message.Destination]bool{}}
}

// add notes a destination, and reports whether it was there.
func (t *temporaries) add(d message.Destination, owner string) (known bool) {
	known = t.of[d] != nil
	t.remove(d)
	t.of[d] = &temporary{owner: owner}
	if t.owned[owner] == nil {
		t.owned[owner] = map[message.Destination]bool{}
	}
	t.owned[owner][d] = true
	return known
}

// reclaim takes note that the owner of an orphan is back.
func (t *temporaries) reclaim(d message.Destination) {
	if k := t.of[d]; k != nil {
		k.loss = 0
	}
}

func (t *temporaries) remove(d message.Destination) {
	k := t.of[d]
	if k == nil {
		return
	}
	delete(t.of, d)
	delete(t.owned[k.owner], d)
	if len(t.owned[k.owner]) == 0 {
		delete(t.owned, k.owner)
	}
}

// ownerOf is the connection of a destination; empty where there is none.
func (t *temporaries) ownerOf(d message.Destination) string {
	if k := t.of[d]; k != nil {
		return k.owner
	}
	return ""
}

// lose makes orphans of a connection's queues.
func (t *temporaries) lose(owner string) (loss uint64) {
	t.loss++
	for d := range t.owned[owner] {
		if d.Kind == message.TempQueue {
			t.of[d].loss = t.loss
		}
	}
	return t.loss
}

// withLoss are a connection's destinations that are orphans by a loss, or with 0 those
// that are none; sorted.
func (t *temporaries) withLoss(owner string, loss uint64) []message.Destination {
	var all []message.Destination
	for d := range t.owned[owner] {
		if t.of[d].loss == loss {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, compareDestinations)
	return all
}

func compareDestinations(x, y message.Destination) int {
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
}

// A TempDestination is a temporary destination and the connection it belongs to.
type TempDestination struct {
	Destination message.Destination
	Connection  string
}

// TempDestinations lists the temporary destinations there are, sorted.
func (b *Broker) TempDestinations() []TempDestination {
	b.mu.Lock()
	all := make([]TempDestination, 0, len(b.temps.of))
	for d, t := range b.temps.of {
		all = append(all, TempDestination{d, t.owner})
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y TempDestination) int { return compareDestinations(x.Destination, y.Destination) })
	return all
}

// leaveTemps deletes the temporary destinations of a connection that ends, but for the
// queues that its client may come back for: those are deleted later, if it does not.
func (c *Connection) leaveTemps(cause message.Cause) {
	b := c.b
	b.mu.Lock()
	loss := uint64(0)
	if cause == message.Closed || !c.info.MayRepeat || b.o.KeepTemps <= 0 {
		for d := range b.temps.owned[c.info.ID] { // also those that it did not come back for
			b.temps.reclaim(d)
		}
	} else {
		loss = b.temps.lose(c.info.ID)
	}
	gone, kept := b.temps.withLoss(c.info.ID, 0), loss > 0 && len(b.temps.withLoss(c.info.ID, loss)) > 0
	b.mu.Unlock()
	for _, d := range gone {
		_ = b.removeDestination(b.ctx, d, "") // the only error is that the broker stops
	}
	if !kept {
		return
	}
	b.dropLater(c.info.ID, loss)
}

// dropLater deletes orphans when they have been kept long enough.
func (b *Broker) dropLater(owner string, loss uint64) {
	until := b.o.Clock.Now().Add(b.o.KeepTemps)
	b.running.Go(func() {
		wake, release := b.o.Clock.At(until)
		defer release()
		select {
		case <-wake:
			b.dropOrphans(owner, loss)
		case <-b.ctx.Done():
		}
	})
}

// cameLocked notes that a client has connected since the start, while that matters.
func (b *Broker) cameLocked(connection string) {
	switch {
	case b.came == nil:
	case b.now() < b.awaiting:
		b.came[connection] = true
	default:
		b.came = nil
	}
}

// queueFor is queue for a message that the connection by sends to it. A temporary queue that is not there
// may be that of a client which has not come back yet since the broker was started: then
// it is made, as an orphan, for the reply that is there earlier than who asked.
func (b *Broker) queueFor(name message.Destination, by string) (*destination, error) {
	d, err := b.queue(name, by)
	if err == nil || name.Kind != message.TempQueue {
		return d, err
	}
	i := strings.LastIndexByte(name.Name, ':') // CONNECTION:NUMBER
	if i <= 0 || !b.awaits(name.Name[:i]) {
		return d, err
	}
	owner := name.Name[:i]
	if d, err = b.makeQueue(name, owner); err != nil {
		return d, err
	}
	b.mu.Lock()
	ours := b.temps.of[name] == nil // else its client was faster, or another who sends
	loss := uint64(0)
	if ours {
		b.temps.loss++
		loss = b.temps.loss
		b.temps.add(name, owner)
		b.temps.of[name].loss = loss
	}
	b.mu.Unlock()
	if ours {
		b.tell(Event{Kind: TempAdded, Destination: name, Connection: owner})
		b.dropLater(owner, loss)
	}
	return d, nil
}

// awaits reports whether a connection may still come and make its temporary queues.
func (b *Broker) awaits(connection string) bool {
	if b.o.MakeTemps {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.came != nil && b.now() < b.awaiting && !b.came[connection]
}

// dropOrphans deletes the queues whose client has not come back for them.
func (b *Broker) dropOrphans(owner string, loss uint64) {
	b.mu.Lock()
	orphans := b.temps.withLoss(owner, loss)
	b.mu.Unlock()
	for _, name := range orphans {
		if d, still := b.takeOrphan(name, loss); still {
			if d != nil {
				_ = b.discard(d) // the only error is that the broker stops
			}
			b.tell(Event{Kind: TempRemoved, Destination: name, Connection: owner})
			b.forgetMirrors(name)
		}
	}
}

// takeOrphan has a queue found by nobody any more, if it still is an orphan by that loss.
func (b *Broker) takeOrphan(name message.Destination, loss uint64) (d *destination, still bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.temps.of[name]; t == nil || t.loss != loss {
		return nil, false
	}
	d = b.queues[name]
	delete(b.queues, name)
	clear(b.virtual)
	b.temps.remove(name)
	return d, true
}
