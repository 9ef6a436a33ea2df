package queue

import (
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

// A Consumer takes messages from a queue. The exported fields are set before it
// is attached and not changed afterwards, except by commands.
type Consumer struct {
	ID         string
	Connection string
	Session    string
	ClientID   string
	Address    string
	Protocol   string
	Prefetch   int // messages that may be out at a time; 0: only what it pulls
	Priority   int8
	Exclusive  bool
	// MostWaiting is how many messages it lets wait for it at the most, where its
	// queue has a Backlog with a limit; 0: as that says.
	MostWaiting int
	Selector    *selector.Selector // nil: everything
	// QuietFirst says that the client does not announce its first local
	// redelivery outside a transaction (R-CLIENT-43, clients up to 5.17).
	QuietFirst bool
	// Handle is the owner's own; the machine only carries it.
	Handle any

	held      list         // what it has, in the order of the hand-out
	extension int          // by how much DELIVERED acks widen the window (R-BRK-02)
	pulls     int          // messages it asked for and did not get yet
	idle      bool         // its time limit (check) has passed, and it has not been heard of since
	lanes     uint8        // it looks at those up to this one
	steps     int          // that its selector took in this turn
	key       selector.Key // a message must have it to be wanted
	handOuts  uint64
	slowness
	evicted  int     // items that were taken from what waits for it
	dropped  bool    // one was since it was last looked whether it is slow
	settled  settled // that its application had
	refused  settled // that it did not have
	seen     [lanes]view
	progress int64  // when it last acknowledged anything
	check    int64  // when its time limit is looked at; 0: not before something happens
	lapsed   uint64 // the hand-outs up to which the limit took what it had
	owns     map[*group]bool
}

// settled is the newest, in the order of the hand-out, of what a consumer had and
// has no more: its application had all that it was handed before.
type settled struct{ position, number uint64 }

// note remembers an item, if it is newer.
func (s *settled) note(it *Item) {
	if it.number > s.number {
		*s = settled{it.Position, it.number}
	}
}

// A view is how far a consumer has looked in a lane's lists: nothing up to these
// ranks is for it.
type view struct{ waiting, returned uint64 }

// of is the rank for the list that items of a place are in.
func (v *view) of(p place) *uint64 {
	if p == returned {
		return &v.returned
	}
	return &v.waiting
}

// keyed is what the message that was looked at last has for the key that was asked last.
type keyed struct {
	of    *message.Message
	name  string
	value selector.Value
}

// lookBack has a consumer look again at what lies at a position and behind it, and at
// all that came back.
func (c *Consumer) lookBack(position uint64) {
	for i := range c.seen {
		c.seen[i].returned = 0
		c.seen[i].waiting = min(c.seen[i].waiting, position-1)
	}
}

// room reports whether another message may be dispatched to it (R-BRK-01).
func (c *Consumer) room() bool {
	if c.idle || c.aborted {
		return false
	}
	if c.Prefetch == 0 {
		return c.pulls > 0
	}
	return c.held.n-c.extension < c.Prefetch
}

// widen adds n to the window's extension (R-BRK-02), which is never above what the
// consumer has: a window that has emptied is the prefetch again.
func (c *Consumer) widen(n int) {
	if c.Prefetch != 0 {
		c.extension = min(c.extension+max(n, 0), c.held.n)
	}
}

// narrow takes n from the window's extension (R-BRK-02).
func (c *Consumer) narrow(n int) {
	if c.Prefetch != 0 {
		c.extension = max(0, c.extension-n)
	}
}

// release takes from the consumer what it has settled.
func (c *Consumer) release(it *Item) {
	c.held.remove(it)
	c.extension = min(c.extension, c.held.n)
	c.settled.note(it)
}

// refuse is release of what the application did not have.
func (c *Consumer) refuse(it *Item) {
	c.held.remove(it)
	c.extension = min(c.extension, c.held.n)
	c.refused.note(it)
}

// Held is how many messages it has.
func (c *Consumer) Held() int { return c.held.n }

// Oldest is when a consumer was handed the oldest message that it still has and
// that its transaction has not acknowledged.
func (m *Machine) Oldest(consumer string) (at int64, ok bool) {
	k := m.byID[consumer]
	if k == nil {
		return 0, false
	}
	for it := k.held.head; it != nil; it = it.next {
		if it.tx == "" && it.attempt != charged {
			return it.handedOut, true
		}
	}
	return 0, false
}

// Holds reports whether a consumer has messages, acknowledged in an open
// transaction or not.
func (m *Machine) Holds(consumer string) bool {
	k := m.byID[consumer]
	return k != nil && k.held.n > 0
}

// consumer finds the consumer a command names.
func (m *Machine) consumer(id string) (*Consumer, error) {
	if k := m.byID[id]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("consumer %s on %s: %w", id, m.o.Destination, message.ErrNotFound)
}

func (m *Machine) attach(c Attach) {
	k := c.Consumer
	if m.byID[k.ID] != nil {
		m.answer(c.Done, fmt.Errorf("consumer %s on %s: %w", k.ID, m.o.Destination, message.ErrExists))
		return
	}
	if err := m.mayAttach(); err != nil {
		m.answer(c.Done, err)
		return
	}
	m.byID[k.ID], m.purges = k, false
	k.lanes = lanes
	k.key = k.Selector.Key()
	at, _ := slices.BinarySearchFunc(m.consumers, k.Priority, func(o *Consumer, p int8) int {
		if o.Priority >= p { // behind those of its own priority
			return -1
		}
		return 1
	})
	m.consumers = slices.Insert(m.consumers, at, k)
	m.gather()
	if m.o.Rebalance {
		m.regroup("", nil)
	}
	if takesOver := k.Exclusive && k.Priority == alwaysExclusive; takesOver {
		m.elect(k)
	} else {
		m.elect(m.exclusive)
	}
	m.answer(c.Done, nil)
}

// alwaysExclusive is the priority with which a new exclusive consumer takes over
// even from one of its own priority (R-EXC-01).
const alwaysExclusive = 127

// drop forgets a consumer that goes, with its wishes.
func (m *Machine) drop(k *Consumer) {
	delete(m.byID, k.ID)
	m.disown(k)
	m.consumers = slices.DeleteFunc(m.consumers, func(o *Consumer) bool { return o == k })
	m.pulls = slices.DeleteFunc(m.pulls, func(p pull) bool { return p.consumer == k })
	if m.exclusive == k {
		m.elect(nil)
	}
}

// elect keeps the exclusive consumer best, if there is one, or finds the next: the
// first of the highest priority. One of higher priority takes over (R-EXC-01).
func (m *Machine) elect(best *Consumer) {
	for _, c := range m.consumers {
		if c.Exclusive && !c.idle && (best == nil || c.Priority > best.Priority) {
			best = c
		}
	}
	if best == m.exclusive {
		return
	}
	m.exclusive = best
	for _, c := range m.consumers { // whom it was kept from may want it now
		c.seen = [lanes]view{}
	}
	if best != nil {
		m.regroup("", best)
	}
}

func (m *Machine) setPrefetch(c SetPrefetch) {
	k, err := m.consumer(c.Consumer)
	if err == nil {
		k.Prefetch = c.Prefetch
		if k.Prefetch == 0 {
			k.extension = 0
		} else { // it need not ask any more
			m.endWishes(k)
			for g := range k.owns {
				m.ownerLooksAgain(g)
			}
		}
	}
	m.answer(c.Done, err)
}
