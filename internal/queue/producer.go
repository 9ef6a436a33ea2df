package queue

import (
	"slices"
	"strings"
)

// maxProducers is about how many producers' last sequences a queue remembers.
const maxProducers = 10_000

// A producer is what a queue knows of one.
type producer struct {
	name    string
	last    int64 // the sequence of its last message
	durable int64 // of its last message that is to outlive the process
	unsaved bool  // durable is to be stored when the turn ends
}

// producers remembers the last sequence of each producer, so that a message which
// is sent once more can be told (C21). Those not heard of for longest are forgotten
// first: of two generations, the older one goes when the younger is full.
type producers struct {
	young, old map[string]*producer
	unsaved    []*producer
	forgotten  []string
}

func newProducers() producers {
	return producers{young: map[string]*producer{}, old: map[string]*producer{}}
}

// RestoreProducers tells a new machine the last sequence of each producer.
func (m *Machine) RestoreProducers(last map[string]int64) {
	for name, n := range last {
		m.producers.old[name] = &producer{name: name, last: n}
	}
}

// take takes note of a message and reports whether it is a new one. durable says
// that the next process is to know of it too.
func (g *producers) take(name string, sequence int64, durable bool) bool {
	p := g.find(name)
	if p == nil {
		p = g.add(name)
	} else if sequence <= p.last {
		return false
	}
	p.last = sequence
	if durable {
		p.durable = sequence
	}
	if durable && !p.unsaved {
		p.unsaved = true
		g.unsaved = append(g.unsaved, p)
	}
	return true
}

// arrived takes note of a message that is in the store already, with its sequence unless
// that is to be saved: then only if the producer has sent nothing since.
func (g *producers) arrived(name string, sequence int64, save bool) {
	if name == "" {
		return
	}
	if save {
		g.take(name, sequence, true)
		return
	}
	p := g.find(name)
	if p == nil {
		p = g.add(name)
		p.last = sequence
	}
	p.last = max(p.last, sequence)
}

// Sent reports whether the queue was given a message of a producer before, or a
// later one.
func (m *Machine) Sent(producer string, sequence int64) bool {
	p := m.producers.find(producer)
	return p != nil && sequence <= p.last
}

// find gets what is known of a producer, and notes that it was heard of.
func (g *producers) find(name string) *producer {
	if p := g.young[name]; p != nil {
		return p
	}
	p := g.old[name]
	if p != nil {
		delete(g.old, name)
		g.grow(p)
	}
	return p
}

func (g *producers) add(name string) *producer {
	p := &producer{name: name}
	g.grow(p)
	return p
}

func (g *producers) grow(p *producer) {
	if len(g.young) >= maxProducers/2 {
		for _, o := range g.old {
			g.drop(o)
		}
		g.young, g.old = map[string]*producer{}, g.young
	}
	g.young[p.name] = p
}

func (g *producers) forget(name string) {
	if p := g.find(name); p != nil {
		delete(g.young, name)
		g.drop(p)
	}
}

func (g *producers) drop(p *producer) {
	p.unsaved = false
	g.forgotten = append(g.forgotten, p.name)
}

// flushProducers writes what the turn changed. A producer that was forgotten and
// heard of again is written last.
func (m *Machine) flushProducers() {
	g := &m.producers
	slices.SortFunc(g.forgotten, strings.Compare)
	for _, name := range g.forgotten {
		m.emit(Effect{Kind: DropProducer, Name: name})
	}
	g.forgotten = g.forgotten[:0]
	for _, p := range g.unsaved {
		if p.unsaved {
			p.unsaved = false
			m.emit(Effect{Kind: PutProducer, Name: p.name, Number: uint64(p.durable)})
		}
	}
	clear(g.unsaved)
	g.unsaved = g.unsaved[:0]
}
