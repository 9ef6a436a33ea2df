package broker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nixiemq/nixie/internal/message"
)

// A Party is a consumer or producer that is open.
type Party struct {
	Connection  string
	ClientID    string
	ID          string
	Destination message.Destination // zero: a producer that names one with each message
	Spec        ConsumerSpec        // of a consumer
}

// A census knows who is open, and how many there are of a destination.
type census struct {
	mu      sync.Mutex
	parties map[string]*Party
	exact   map[message.Destination]int
	wide    map[message.Destination]int // patterns and composites
}

func newCensus() *census {
	return &census{parties: map[string]*Party{}, exact: map[message.Destination]int{}, wide: map[message.Destination]int{}}
}

// counter is the map in which d is counted.
func (c *census) counter(d message.Destination) map[message.Destination]int {
	if d.IsPattern() || d.IsComposite() {
		return c.wide
	}
	return c.exact
}

// join adds a party and returns how many share its destination now. One that is
// in already is not added again.
func (c *census) join(p Party) (count int, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parties[p.ID] != nil {
		return 0, false
	}
	c.parties[p.ID] = &p
	c.counter(p.Destination)[p.Destination]++
	return c.countLocked(p.Destination), true
}

// leave takes a party out and returns how many are left with its destination.
func (c *census) leave(id string) (p Party, count int, was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.parties[id]
	if found == nil {
		return Party{}, 0, false
	}
	delete(c.parties, id)
	of := c.counter(found.Destination)
	if of[found.Destination]--; of[found.Destination] == 0 {
		delete(of, found.Destination)
	}
	return *found, c.countLocked(found.Destination), true
}

// countLocked counts those whose destination meets d. Two patterns meet only if
// they are equal.
func (c *census) countLocked(d message.Destination) int {
	n := 0
	for _, part := range d.Parts() {
		if part.IsPattern() {
			for e, k := range c.exact {
				if part.Matches(e) {
					n += k
				}
			}
		} else {
			n += c.exact[part]
		}
	}
	for w, k := range c.wide {
		if w == d || slices.ContainsFunc(w.Parts(), func(p message.Destination) bool { return !d.IsPattern() && p.Matches(d) }) {
			n += k
		}
	}
	return n
}

// count is how many there are of a destination.
func (c *census) count(d message.Destination) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.countLocked(d)
}

// all lists the parties, sorted by their ids.
func (c *census) all() []Party {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Party, 0, len(c.parties))
	for _, p := range c.parties {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Party) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// ConsumersOpen lists the consumers that are open, but for those of advisories.
func (b *Broker) ConsumersOpen() []Party { return b.consuming.all() }

// ProducersOpen lists the producers that are open, but for those of advisories.
func (b *Broker) ProducersOpen() []Party { return b.producing.all() }

// joined tells of a consumer that is attached now. Of those that watch the
// broker nobody is told.
func (k *consumer) joined() {
	d := k.spec.Destination
	if d.IsAdvisory() {
		return
	}
	b := k.c.b
	if n, isNew := b.consuming.join(Party{Connection: k.c.info.ID, ClientID: k.c.info.ClientID, ID: k.spec.ID, Destination: d, Spec: k.spec}); isNew {
		b.tell(Event{Kind: ConsumerJoined, Destination: d, Connection: k.c.info.ID, ClientID: k.c.info.ClientID, Consumer: k.spec.ID, Spec: &k.spec, Count: n})
	}
}

// gone tells of its end.
func (k *consumer) gone() {
	b := k.c.b
	if p, n, was := b.consuming.leave(k.spec.ID); was {
		b.tell(Event{Kind: ConsumerLeft, Destination: p.Destination, Connection: k.c.info.ID, ClientID: k.c.info.ClientID, Consumer: k.spec.ID, Spec: &k.spec, Count: n})
	}
}

// AddProducer makes the destinations of a producer that a client has opened, and tells of
// it. to is zero where it names a destination with each message.
func (c *Connection) AddProducer(producer string, to message.Destination) {
	if to.IsAdvisory() {
		return
	}
	c.mu.Lock()
	c.opened[producer] = true
	c.mu.Unlock()
	c.makeFor(to)
	if n, isNew := c.b.producing.join(Party{Connection: c.info.ID, ClientID: c.info.ClientID, ID: producer, Destination: to}); isNew {
		c.tellProducer(ProducerJoined, producer, to, n)
	}
}

// makeFor makes the destinations that a producer is going to send to, so that they are
// seen before the first message, as in ActiveMQ. What cannot be made the send will say; a
// queue that hands on what it gets may never have to be there.
func (c *Connection) makeFor(to message.Destination) {
	for _, part := range to.Parts() {
		switch {
		case part.IsZero(), part.IsTemporary(), part.IsPattern(), part.IsAdvisory(), c.mayCreate(part) != nil:
		case part.Kind == message.Topic:
			c.b.mu.Lock()
			added := c.b.addTopicsLocked(part)
			c.b.mu.Unlock()
			c.b.tellTopics(added, c.info.ID)
		case part.IsQueue() && !c.b.interceptors.Load().apply(part):
			_, _ = c.b.makeQueue(part, c.info.ID)
		}
	}
}

// tellProducer tells of a producer's beginning or end, for each of its destinations; n
// produce to them now.
func (c *Connection) tellProducer(kind EventKind, producer string, to message.Destination, n int) {
	for _, part := range to.Parts() {
		if part != to {
			n = c.b.Producers(part)
		}
		c.b.tell(Event{Kind: kind, Destination: part, Connection: c.info.ID, ClientID: c.info.ClientID, Producer: producer, Count: n})
	}
}

func (c *Connection) producerGone(producer string) {
	c.mu.Lock()
	delete(c.opened, producer)
	c.mu.Unlock()
	if p, n, was := c.b.producing.leave(producer); was {
		c.tellProducer(ProducerLeft, producer, p.Destination, n)
	}
}

// producersGone tells of the end of all producers of the connection.
func (c *Connection) producersGone() {
	c.mu.Lock()
	opened := slices.Sorted(maps.Keys(c.opened))
	c.mu.Unlock()
	for _, p := range opened {
		c.producerGone(p)
	}
}

// ClientsOpen lists the clients that are connected, sorted by their ids.
func (b *Broker) ClientsOpen() []ClientInfo {
	b.mu.Lock()
	all := make([]ClientInfo, 0, len(b.connections))
	for _, c := range b.connections {
		all = append(all, c.info)
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y ClientInfo) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// EndConnection ends a client's connection by its id; ErrNotFound where there is none.
// It is as if it had been lost: what the client had comes back to its queues.
func (b *Broker) EndConnection(id string, reason error) error {
	b.mu.Lock()
	c := b.connections[id]
	b.mu.Unlock()
	if c == nil {
		return fmt.Errorf("connection %s: %w", id, message.ErrNotFound)
	}
	c.info.Kick(reason)
	return nil
}

// Names lists the queues and topics there are, but for temporary ones, sorted.
func (b *Broker) Names() []message.Destination {
	return slices.DeleteFunc(append(b.names(false), b.names(true)...), message.Destination.IsTemporary)
}

// Consumers is how many consume a destination, and Producers how many produce to
// it; the zero destination is that of those who name one with each message.
func (b *Broker) Consumers(d message.Destination) int { return b.consuming.count(d) }

// Producers: see Consumers.
func (b *Broker) Producers(d message.Destination) int { return b.producing.count(d) }
