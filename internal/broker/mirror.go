package broker

import (
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// A Mirror is a wire tap on all queues: what is sent to a queue is also sent to the
// topic whose name is Prefix + the queue's + Postfix (ActiveMQ's MirroredQueue). A queue
// that is called as a pattern is has no mirror: its topic would have no name of its own.
type Mirror struct {
	Prefix, Postfix string
	// Temporary has temporary queues mirrored, too.
	Temporary bool
	// KeptOnly mirrors what a queue keeps, and not what a composite of its name only
	// hands on.
	KeptOnly bool
}

// check says why a mirror's topics cannot be sent to; nil: they can.
func (r Mirror) check() error {
	topic := r.of("Q")
	if topic.IsComposite() || topic.IsPattern() || topic.IsAdvisory() || topic.IsTemporary() {
		return fmt.Errorf("mirrored queues: prefix %q and postfix %q do not make the name of a topic, such as %q: %w", r.Prefix, r.Postfix, topic.Name, message.ErrInvalid)
	}
	return nil
}

// of is the topic of a queue of that name.
func (r Mirror) of(queue string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: r.Prefix + queue + r.Postfix}
}

// covers reports whether a destination has a mirror.
func (r Mirror) covers(d message.Destination) bool {
	return d.IsQueue() && !d.IsPattern() && (r.Temporary || !d.IsTemporary())
}

// mirrored reports whether a destination has any mirror.
func (i *interceptors) mirrored(d message.Destination) bool {
	return slices.ContainsFunc(i.mirrors, func(r Mirror) bool { return r.covers(d) })
}

// alone reports whether what is sent to a queue goes there and to nobody else. It may have
// mirrors: mostly nobody listens to them.
func (b *Broker) alone(queue message.Destination) bool {
	i := b.interceptors.Load()
	return !i.handsOn(queue) && !slices.ContainsFunc(i.mirrors, func(r Mirror) bool {
		return r.covers(queue) && b.heard(i, r.of(queue.Name))
	})
}

// heard reports whether anybody gets what is sent to a topic, or it is kept for who comes later.
func (b *Broker) heard(i *interceptors, topic message.Destination) bool {
	if len(i.of(topic)) > 0 || len(b.route(topic, "")) > 0 || b.pastOf(topic) != nil {
		return true
	}
	for k := range i.virtual {
		if v := &i.virtual[k]; message.MatchName(v.Name, topic.Name) && len(b.virtualQueues(v, topic)) > 0 {
			return true
		}
	}
	return false
}

// reflections are what mirrors send of one message. They come when all else is routed:
// whether anybody gets a message, or a queue keeps it, is no matter of its mirrors. A
// topic gets one, whatever the ways to its queue, so that no way by mirrors, virtual
// topics and composites has no end.
type reflections struct {
	waiting []*message.Message // each with the topic as its destination
	noted   map[message.Destination]bool
}

// reflect notes that the mirrors of a queue get a message that is sent to it. Its
// original destination stays, as in ActiveMQ.
func (x *expansion) reflect(queue message.Destination, m *message.Message, kept bool) {
	for _, r := range x.i.mirrors {
		topic := r.of(queue.Name)
		if !r.covers(queue) || r.KeptOnly && !kept || x.mirrors.noted[topic] {
			continue
		}
		if x.mirrors.noted == nil {
			x.mirrors.noted = map[message.Destination]bool{}
		}
		x.mirrors.noted[topic] = true
		one := *m
		one.Destination, one.Expiration = topic, x.b.expirationAt(topic, m.Expiration)
		x.mirrors.waiting = append(x.mirrors.waiting, &one)
	}
}

// mirror adds the copies that mirrors send, and those of the queues that these get to.
func (x *expansion) mirror() error {
	for len(x.mirrors.waiting) > 0 {
		m := x.mirrors.waiting[0]
		x.mirrors.waiting = x.mirrors.waiting[1:]
		if err := x.send(m.Destination, m); err != nil {
			return fmt.Errorf("mirror %s: %w", m.Destination, err)
		}
	}
	return nil
}

// forgetMirrors forgets the mirror topics of a queue that is gone, as ActiveMQ does. One
// that somebody subscribes to stays.
func (b *Broker) forgetMirrors(queue message.Destination) {
	for _, r := range b.interceptors.Load().mirrors {
		if r.covers(queue) {
			_ = b.removeDestination(b.ctx, r.of(queue.Name), "")
		}
	}
}
