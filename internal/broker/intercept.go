package broker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

// Interceptors are destinations that hand messages on to others (R-VT-01, R-VT-05).
// The zero value is none.
type Interceptors struct {
	VirtualTopics []VirtualTopic
	Composites    []Composite
	// Filters are queues that take only some of what is sent to them.
	Filters []Filter
	// Mirrors are wire taps on all queues.
	Mirrors []Mirror
	// Memory is of what selector aware virtual topics ask for.
	Memory SelectorMemory
}

// A Filter lets into a queue what its selector selects (the filter of a queue of
// HornetQ and Artemis). What it does not let in is dropped, or becomes a dead letter
// where the queue's rules say so of what nobody gets. Dead letters, and what is
// moved by hand, come in all the same.
type Filter struct {
	Destination message.Destination // one queue
	Selector    string
}

// A VirtualTopic gives a copy of what is sent to a topic to every queue there is
// whose name fits Prefix + the topic's name + Postfix, so that each application can
// share its queue among its consumers (R-VT-01).
type VirtualTopic struct {
	// Name is the pattern of the topics.
	Name            string
	Prefix, Postfix string // of the queues, such as "Consumer.*."
	// SelectorAware leaves out queues of which no consumer selects the message, also
	// none that is remembered (SelectorMemory); a queue without consumers gets nothing.
	SelectorAware bool
	// KeepDestination leaves the topic as the copies' destination, instead of the
	// queue with the topic as the original one (R-VT-02).
	KeepDestination bool
	// DropFull leaves out a queue that is full, where its Flow refuses, instead of
	// refusing the message for all; it is told as Discarded (R-VT-06). In a
	// transaction none is left out.
	DropFull bool
}

// A Composite hands what is sent to it on to others (R-VT-05).
type Composite struct {
	// Destination is a queue or topic; its name may be a pattern.
	Destination message.Destination
	ForwardTo   []Forward
	// ForwardOnly keeps nothing in the destination itself; unless
	// SendWhenNotMatched, and no filter of ForwardTo selects the message (those of
	// targets with Otherwise do not count).
	ForwardOnly        bool
	SendWhenNotMatched bool
}

// A Forward is one target of a Composite.
type Forward struct {
	Destination message.Destination // one queue or topic; may be a composite's name again
	Selector    string              // empty: everything
	// Otherwise gives the target only what no target without Otherwise gets: what is
	// left by the exclusive diverts of HornetQ and Artemis.
	Otherwise bool
}

// interceptors are the Interceptors as they are used. They do not change.
type interceptors struct {
	virtual    []VirtualTopic
	composites []composite
	filters    map[message.Destination]*selector.Selector
	mirrors    []Mirror
	memory     SelectorMemory
}

type composite struct {
	Composite
	selectors []*selector.Selector // of ForwardTo; nil: everything
}

// compile checks what can be checked before a message comes.
func (i Interceptors) compile() (*interceptors, error) {
	c := &interceptors{virtual: i.VirtualTopics, mirrors: i.Mirrors, memory: i.Memory}
	for _, v := range i.VirtualTopics {
		if v.Name == "" || v.Prefix+v.Postfix == "" {
			return nil, fmt.Errorf("virtual topic %q has no name, or neither prefix nor postfix: %w", v.Name, message.ErrInvalid)
		}
	}
	for _, k := range i.Composites {
		all := composite{Composite: k}
		for _, f := range k.ForwardTo {
			if d := f.Destination; d.IsZero() || d.Name == "" || d.IsComposite() || d.IsPattern() || d.IsTemporary() {
				return nil, fmt.Errorf("composite %s: target %q names no single destination: %w", k.Destination, d, message.ErrInvalid)
			}
			sel, err := parseSelector(f.Selector)
			if err != nil {
				return nil, fmt.Errorf("composite %s, target %s: %w", k.Destination, f.Destination, err)
			}
			all.selectors = append(all.selectors, sel)
		}
		c.composites = append(c.composites, all)
	}
	for _, f := range i.Filters {
		sel, err := parseSelector(f.Selector)
		if err != nil {
			return nil, fmt.Errorf("filter of %s: %w", f.Destination, err)
		}
		if c.filters == nil {
			c.filters = map[message.Destination]*selector.Selector{}
		}
		c.filters[f.Destination] = sel
	}
	for _, r := range i.Mirrors {
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	if circle := c.circle(); circle != "" {
		return nil, fmt.Errorf("composite destinations lead in a circle, %s: %w", circle, message.ErrInvalid)
	}
	return c, nil
}

// circle finds a way from a composite destination back to itself; "" if there is
// none. Selectors are not looked at: a circle that only some messages go round is
// one, too. Virtual topics lead from topics to queues, and so by the queues'
// composites perhaps back.
func (i *interceptors) circle() string {
	var path []message.Destination
	var visit func(d message.Destination) bool
	visit = func(d message.Destination) bool {
		back := slices.Contains(path, d)
		path = append(path, d)
		if back {
			return true
		}
		for _, k := range i.of(d) {
			for _, f := range k.ForwardTo {
				if visit(f.Destination) {
					return true
				}
			}
		}
		path = path[:len(path)-1]
		return false
	}
	for _, k := range i.composites {
		for _, f := range k.ForwardTo {
			path = path[:0]
			if k.Destination.Matches(f.Destination) || visit(f.Destination) {
				names := []string{k.Destination.String()}
				for _, d := range path {
					names = append(names, d.String())
				}
				if len(path) == 0 {
					names = append(names, f.Destination.String())
				}
				return strings.Join(names, " to ")
			}
		}
	}
	return ""
}

// of lists the composites that a destination is.
func (i *interceptors) of(d message.Destination) []*composite {
	var all []*composite
	for k := range i.composites {
		if c := &i.composites[k]; c.Destination.Matches(d) {
			all = append(all, c)
		}
	}
	return all
}

// apply reports whether anything is to be done about messages sent to d.
func (i *interceptors) apply(d message.Destination) bool {
	return i.handsOn(d) || i.mirrored(d)
}

// handsOn reports whether messages sent to d may go to others instead of it.
func (i *interceptors) handsOn(d message.Destination) bool {
	if d.Kind == message.Topic && !d.IsAdvisory() {
		for k := range i.virtual {
			if message.MatchName(i.virtual[k].Name, d.Name) {
				return true
			}
		}
	}
	for k := range i.composites {
		if i.composites[k].Destination.Matches(d) {
			return true
		}
	}
	return i.filters[d] != nil
}

// ofPattern reports whether a consumer of a queue pattern makes a queue of that very
// name: one that gets what is sent to all the virtual topics that it covers, as in
// ActiveMQ (VirtualTopic.create).
func (i *interceptors) ofPattern(d message.Destination) bool {
	for k := range i.virtual {
		if v := &i.virtual[k]; v.Prefix != "" && d.Kind == message.Queue && message.MatchName(v.Prefix+">", d.Name) {
			return true
		}
	}
	return false
}

// nearly is the topic whose messages a queue gets nothing of, although its name looks as if it
// should, and the pattern that its name would have to fit; "" where it does, or looks like nothing.
func (i *interceptors) nearly(queue string) (topic, pattern string) {
	step := func(name string) string { first, _, _ := strings.Cut(name, "."); return first }
	for n := range i.virtual {
		v := &i.virtual[n]
		begins := step(v.Prefix)
		if begins == "*" || step(v.Name) == "*" || step(v.Name) == ">" || !strings.HasPrefix(queue, begins+".") {
			continue // anything would look like it
		}
		for _, rest, more := strings.Cut(queue, "."); more; _, rest, more = strings.Cut(rest, ".") {
			of, ends := strings.CutSuffix(rest, v.Postfix)
			switch {
			case !ends || !message.MatchName(v.Name, of):
			case message.NamesOverlap(v.Prefix+of+v.Postfix, queue):
				return "", ""
			default:
				topic, pattern = of, v.Prefix+of+v.Postfix
			}
		}
	}
	return topic, pattern
}

// virtualQueues lists the queues that a virtual topic hands a topic's messages to,
// sorted. The slice is not changed later.
func (b *Broker) virtualQueues(v *VirtualTopic, topic message.Destination) []message.Destination {
	key := virtualKey{v, topic}
	b.mu.Lock()
	defer b.mu.Unlock()
	if found, ok := b.virtual[key]; ok {
		return found
	}
	var found []message.Destination
	add := func(name message.Destination) {
		if name.Kind == message.Queue && message.NamesOverlap(v.Prefix+topic.Name+v.Postfix, name.Name) {
			found = append(found, name)
		}
	}
	for name := range b.queues {
		add(name)
	}
	for name, durable := range b.lost {
		if durable {
			add(name)
		}
	}
	slices.SortFunc(found, func(x, y message.Destination) int { return strings.Compare(x.Name, y.Name) })
	if len(b.virtual) >= maxRoutes {
		clear(b.virtual)
	}
	b.virtual[key] = found
	return found
}

// A virtualKey is a virtual topic and one of the topics that it covers.
type virtualKey struct {
	v     *VirtualTopic
	topic message.Destination
}

// selects reports whether a selector, nil for none, selects a message that nobody
// has been handed yet.
func (b *Broker) selects(sel *selector.Selector, m *message.Message) bool {
	return sel == nil || sel.Matches(b.lookup(m, 0))
}

// lookup gives selectors the fields of a message of which a client is told a redelivery
// counter.
func (b *Broker) lookup(m *message.Message, counter int) *selector.MessageLookup {
	l := &selector.MessageLookup{Message: m, RedeliveryCounter: counter}
	if b.o.Properties != nil {
		l.Properties = func(name string) (selector.Value, bool) { return b.o.Properties(m, name) }
	}
	return l
}
