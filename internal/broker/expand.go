package broker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

// A copyFor is a message on its way to one destination.
type copyFor struct {
	to      *destination
	message *message.Message
}

// passes reports whether the copy is not to outlive the process.
func (c copyFor) passes() bool { return !c.message.Persistent || !c.to.durable }

// An expansion finds out who gets a copy of a message. All copies are one unit.
type expansion struct {
	b      *Broker
	i      *interceptors
	from   string // the connection that sends it
	path   []message.Destination
	copies []copyFor
	queues map[*destination]bool        // that have a copy: whatever the ways to it, one is enough
	kept   map[message.Destination]bool // queues whose filter did not let the message in
	// mirrors are what is sent besides, by the mirrors of its queues.
	mirrors reflections
	// names, if it is not nil, gets where the copies go instead: nothing is made, and
	// nobody gets anything.
	names *[]target
	// spared says that a virtual topic leaves out the queue it is at if that is full.
	spared bool
	// without are queues that were full, and are left out.
	without []message.Destination
	// promised says that the message is to go where it still can; gone are the temporary
	// destinations where it cannot.
	promised bool
	gone     []message.Destination
}

// A target is a queue or topic that a message is routed to.
type target struct {
	name message.Destination
	// spared: if it is full and refuses, the message goes to the others without it
	// (dropOnResourceLimit, R-VT-06).
	spared bool
}

// expand lists the copies of a message: one for each queue of a composite, one for
// each subscription to its topics, one for whatever the virtual and composite
// destinations of the configuration hand it on to (R-VT-01, R-VT-05, OpenWire 8.2).
// Those in without, which are full, are left out.
func (b *Broker) expand(m *message.Message, from string, without ...message.Destination) ([]copyFor, error) {
	x := expansion{b: b, i: b.interceptors.Load(), from: from, without: without}
	err := x.all(m)
	return x.copies, err
}

// expandPromised is expand for a message of a transaction that is prepared, and must
// not fail any more: temporary destinations that are gone get no copy.
func (b *Broker) expandPromised(m *message.Message, from string) (copies []copyFor, gone []message.Destination, err error) {
	x := expansion{b: b, i: b.interceptors.Load(), from: from, promised: true}
	err = x.all(m)
	return x.copies, x.gone, err
}

// all adds the copies that all parts of a message's destination get.
func (x *expansion) all(m *message.Message) error {
	b := x.b
	parts := m.Destination.Parts()
	for _, part := range parts {
		one := m
		if len(parts) > 1 {
			one = readdressed(m, part)
			one.Expiration = b.expirationAt(part, m.Expiration)
		}
		before := len(x.copies)
		if err := x.send(part, one); err != nil {
			return err
		}
		if len(x.copies) > before {
			continue
		}
		if err := x.unrouted(part, one); err != nil {
			return err
		}
	}
	return x.mirror()
}

// targets are the queues and topics that a message is routed to.
func (b *Broker) targets(m *message.Message, from string) []target {
	i := b.interceptors.Load()
	if !m.Destination.IsComposite() && !i.apply(m.Destination) {
		return []target{{name: m.Destination}}
	}
	var names []target
	x := expansion{b: b, i: i, from: from, names: &names}
	for _, part := range m.Destination.Parts() {
		if x.send(part, m) != nil {
			return nil // the send itself will say why
		}
	}
	if x.mirror() != nil {
		return nil
	}
	return names
}

// readdressed is a copy of a message with another destination.
func readdressed(m *message.Message, to message.Destination) *message.Message {
	c := *m
	c.OriginalDestination, c.Destination = m.Destination, to
	return &c
}

// send adds the copies of a message that is sent to one destination.
func (x *expansion) send(to message.Destination, m *message.Message) error {
	if !x.i.apply(to) {
		return x.deliver(to, m)
	}
	if slices.Contains(x.path, to) { // by a virtual topic, since compile looks at composites
		return fmt.Errorf("%s leads back to itself by virtual and composite destinations: %w", to, message.ErrInvalid)
	}
	x.path = append(x.path, to)
	here, err := x.forward(to, m)
	if err == nil && to.Kind == message.Topic {
		err = x.virtual(to, m)
	}
	if f := x.i.filters[to]; here && f != nil && !x.b.selects(f, m) {
		here = false
		x.keepOut(to)
	}
	if err == nil && here {
		err = x.deliver(to, m)
	}
	x.reflect(to, m, here)
	x.path = x.path[:len(x.path)-1]
	return err
}

// keepOut notes that a queue's filter did not let the message in.
func (x *expansion) keepOut(queue message.Destination) {
	if x.kept == nil {
		x.kept = map[message.Destination]bool{}
	}
	x.kept[queue] = true
}

// forward hands a message on as composites say. here is whether the destination
// itself keeps it, too.
func (x *expansion) forward(to message.Destination, m *message.Message) (here bool, err error) {
	all := x.i.of(to)
	here = len(all) == 0
	for _, k := range all {
		matched, err := x.handOn(k, m, false)
		if err == nil && !matched {
			_, err = x.handOn(k, m, true)
		}
		if err != nil {
			return false, err
		}
		here = here || !k.ForwardOnly || k.SendWhenNotMatched && !matched
	}
	return here, nil
}

// handOn hands a message on to the targets of a composite that select it, either those
// with Otherwise or those without.
func (x *expansion) handOn(k *composite, m *message.Message, otherwise bool) (matched bool, err error) {
	for n, f := range k.ForwardTo {
		if f.Otherwise != otherwise || !x.b.selects(k.selectors[n], m) {
			continue
		}
		matched = true
		one := readdressed(m, f.Destination)
		one.Expiration = x.b.expirationAt(f.Destination, m.Expiration)
		if err := x.send(f.Destination, one); err != nil {
			return matched, err
		}
	}
	return matched, nil
}

// virtual hands a message on to the queues of virtual topics.
func (x *expansion) virtual(topic message.Destination, m *message.Message) error {
	if topic.IsAdvisory() {
		return nil
	}
	for k := range x.i.virtual {
		v := &x.i.virtual[k]
		if !message.MatchName(v.Name, topic.Name) {
			continue
		}
		for _, name := range x.b.virtualQueues(v, topic) {
			one := m
			if !v.KeepDestination {
				one = readdressed(m, name)
			}
			if v.SelectorAware && !x.b.wantedAt(name, one) {
				continue
			}
			x.spared = v.DropFull && !x.i.handsOn(name)
			err := x.send(name, one)
			x.spared = false
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// wantedAt reports whether a consumer of the queue selects the message, or one that is
// remembered.
func (b *Broker) wantedAt(name message.Destination, m *message.Message) bool {
	selects := func(s *selector.Selector) bool { return b.selects(s, m) }
	d := b.known(name)
	return d != nil && slices.ContainsFunc(d.selectors(), selects) || slices.ContainsFunc(b.rememberedAt(name), selects)
}

// deliver adds the copies that a queue, or a topic's subscriptions, get.
func (x *expansion) deliver(to message.Destination, m *message.Message) error {
	b := x.b
	if x.names != nil {
		*x.names = append(*x.names, target{to, x.spared})
		return nil
	}
	if slices.Contains(x.without, to) {
		x.b.dropped(to, m)
		return nil
	}
	if to.IsQueue() {
		d, err := b.queueFor(to, x.from)
		if x.promised && to.IsTemporary() && errors.Is(err, message.ErrNotFound) {
			x.gone = append(x.gone, to)
			return nil
		}
		if err != nil {
			return err
		}
		if x.queues[d] {
			return nil
		}
		if x.queues == nil {
			x.queues = map[*destination]bool{}
		}
		x.queues[d] = true
		x.copies = append(x.copies, copyFor{to: d, message: m})
		return nil
	}
	if to.Kind == message.TempTopic && !b.exists(to) {
		if x.promised {
			x.gone = append(x.gone, to)
			return nil
		}
		return fmt.Errorf("%s does not exist: %w", to, message.ErrNotFound)
	}
	b.remember(to, m, x.from)
	way := b.routeOf(to, x.from)
	way.sent.Add(1)
	x.copies = slices.Grow(x.copies, len(way.to))
	for _, s := range way.to {
		if s.wants(b, to, m, x.from) {
			x.copies = append(x.copies, copyFor{to: s.d, message: m})
		}
	}
	return nil
}

func (b *Broker) exists(temp message.Destination) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.temps.of[temp] != nil
}

// keeps lists the destinations that store a copy of a message that is moved to
// where m says, with the copy of each. A queue that does not hand it on to anyone
// keeps it itself: a message that is moved must not be lost.
func (b *Broker) keeps(m *message.Message) ([]copyFor, error) {
	copies, _, err := b.gets(m)
	return copies, err
}

// gets is keeps, and besides who gets a copy that is not stored: live consumers of topics.
func (b *Broker) gets(m *message.Message) (stored, live []copyFor, err error) {
	x := expansion{b: b, i: b.interceptors.Load()}
	err = x.send(m.Destination, m)
	if stored, _ = parted(x.copies); err != nil || len(stored) == 0 && m.Destination.IsQueue() {
		x.copies, x.queues = nil, nil
		err = x.deliver(m.Destination, m)
	}
	if failed := x.mirror(); failed != nil { // it moves all the same
		b.o.Log.Warn("a message that moves is not mirrored", "dest", m.Destination.String(), "msg", m.ID.String(), "err", failed)
	}
	stored, live = parted(x.copies)
	return stored, live, err
}

// parted are the copies that are stored, and those for a topic's live consumers.
func parted(copies []copyFor) (stored, live []copyFor) {
	for _, c := range copies {
		if c.to.sub != nil && !c.to.durable {
			live = append(live, c)
		} else {
			stored = append(stored, c)
		}
	}
	return stored, live
}
