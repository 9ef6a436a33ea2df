package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// A binding is a queue that the file binds to an address.
type binding struct {
	place   *element
	address string
	queue   string // empty: the address alone is declared
	filter  string
	// copies says that every queue of the address gets a copy of each message
	// (multicast, and all queues of HornetQ's core); else they share them (anycast).
	copies bool
	// jms is the kind of a JMS destination, or of an address of Artemis that clients
	// name as such; NoDestination: a queue of HornetQ's core.
	jms message.DestinationKind
}

// jmsDestination reads a queue or topic of hornetq-jms.xml (R-HQ-133).
func (w *coreFile) jmsDestination(e *element, kind message.DestinationKind) {
	name := w.nameOf(e)
	if name == "" {
		return
	}
	filter := ""
	if s := e.find("selector"); s != nil {
		filter = s.attr("string")
	}
	w.bindings = append(w.bindings, binding{place: e, address: name, queue: name, filter: filter, jms: kind})
}

// nameOf is the name of a destination; one that cannot be used is reported.
func (w *coreFile) nameOf(e *element) string {
	a, ok := e.given("name")
	switch name := strings.TrimSpace(a.value); {
	case !ok && hasAttr(e, "name"): // reported
	case name == "":
		w.fail(e.at("has no name; give it one"))
	case strings.ContainsAny(name, ",*>"):
		w.fail(e.at(fmt.Sprintf("the name %q has one of the signs , * > which stand for several destinations in OpenWire; choose another", name)))
	default:
		return name
	}
	return ""
}

// coreQueue reads a queue of the block queues (R-HQ-129); Artemis gives every
// queue of the block a copy (R-HQ-135).
func (w *coreFile) coreQueue(e *element) {
	name := w.nameOf(e)
	if name == "" {
		return
	}
	b := binding{place: e, address: name, queue: name, filter: filterOf(e), copies: true}
	if a := e.find("address"); a != nil && a.text != "" {
		b.address = a.text
	}
	if w.product == artemis {
		b.jms = message.Topic
	}
	w.bindings = append(w.bindings, b)
}

// filterOf is the filter of a queue; empty: it takes everything.
func filterOf(e *element) string {
	if f := e.find("filter"); f != nil {
		return f.attr("string")
	}
	return ""
}

// takesNothing is the filter of a queue that is switched off.
const takesNothing = "1 = 0"

// takenBy is what a queue of an address takes of the messages: what its filter
// selects, and nothing if it is not enabled.
func takenBy(q *element) string {
	if a, ok := q.given("enabled"); ok {
		if on, err := parseBool(a.value); err == nil && !on {
			return takesNothing
		}
	}
	return filterOf(q)
}

// addressElement reads an address of Artemis with its queues (R-HQ-135).
func (w *coreFile) addressElement(e *element) {
	name := w.nameOf(e)
	if name == "" {
		return
	}
	for _, routing := range e.children {
		kind := message.Queue
		if routing.name == "multicast" {
			kind = message.Topic
		}
		queues := 0
		for _, q := range routing.children {
			if q.name != "queue" {
				continue
			}
			queues++
			if queue := w.nameOf(q); queue != "" {
				w.bindings = append(w.bindings, binding{place: q, address: name, queue: queue, filter: takenBy(q), copies: kind == message.Topic, jms: kind})
			}
		}
		if queues == 0 {
			w.bindings = append(w.bindings, binding{place: routing, address: name, copies: kind == message.Topic, jms: kind})
		}
	}
}

// bind turns the queues of the file into destinations, and what is sent from one
// to another into composite destinations.
func (w *coreFile) bind(s *AddressSettings) {
	shared := map[string]*binding{} // the anycast queue of an address
	for i := range w.bindings {
		b := &w.bindings[i]
		if b.filter != "" && coreFilter.MatchString(b.filter) {
			w.fail(b.place.at(coreFilterText(b.filter)))
			continue
		}
		switch {
		case b.jms == message.Topic && !b.copies: // a topic of hornetq-jms.xml
			w.declare(message.Destination{Kind: message.Topic, Name: b.address})
		case b.copies:
			w.copied(s, b)
		default:
			first := shared[b.address]
			if shared[b.address] = b; first != nil && first.queue != b.queue && b.queue != "" {
				w.fail(b.place.at(fmt.Sprintf("is the second queue that shares the messages of the address %s (the first is %s), and messages are not shared between queues; use one queue with several consumers", b.address, first.queue)))
				continue
			}
			w.anycast(s, b)
		}
	}
}

// anycast binds the one queue that gets the messages of its address.
func (w *coreFile) anycast(s *AddressSettings, b *binding) {
	from := message.Destination{Kind: message.Queue, Name: b.address}
	if b.queue == "" || b.queue == b.address {
		w.declare(from)
		w.filter(b, from)
		return
	}
	to := message.Destination{Kind: message.Queue, Name: b.queue}
	s.bound[b.address], s.addressOf[to] = to, b.address
	w.declare(to)
	w.forward(b, from, true, to)
}

// copied binds a queue that gets a copy of each message of its address.
func (w *coreFile) copied(s *AddressSettings, b *binding) {
	from := s.destination(b.address)
	if b.jms == message.Topic {
		from = message.Destination{Kind: message.Topic, Name: b.address}
		if _, anycast := s.bound[b.address]; !anycast && !w.hasAnycast(b.address) {
			s.bound[b.address] = from
		}
	}
	to := message.Destination{Kind: message.Queue, Name: strings.TrimPrefix(b.queue, jmsQueuePrefix)}
	if w.product == artemis {
		to.Name = b.queue
	}
	switch {
	case b.queue == "":
		w.declare(from)
	case to == from:
		w.declare(from)
		w.filter(b, to)
		if w.product == hornetQ && !strings.HasPrefix(b.address, jmsQueuePrefix) {
			s.addressOf[to] = b.address
		}
	default:
		s.addressOf[to] = b.address
		w.declare(to)
		w.forward(b, from, from.Kind == message.Queue, to)
	}
}

// filter lets into a queue what its filter selects.
func (w *coreFile) filter(b *binding, d message.Destination) {
	if b.filter != "" {
		w.cfg.Interceptors.Filters = append(w.cfg.Interceptors.Filters, QueueFilter{Queue: d, Selector: b.filter, Source: b.place.source()})
	}
}

// hasAnycast reports whether the file gives an address a queue that shares.
func (w *coreFile) hasAnycast(address string) bool {
	return slices.ContainsFunc(w.bindings, func(b binding) bool { return b.address == address && !b.copies && b.jms == message.Queue })
}

// queueSettings are the attributes of a queue that are settings of its own, and the
// elements of an address-setting that say the same of all queues of an address.
var queueSettings = map[string]string{
	"exclusive": setExclusive, "max-consumers": setMaxConsumers, "purge-on-no-consumers": setPurge, "ring-size": setRing,
	"group-rebalance": setGroupRebalance, "last-value": setLastValue, "last-value-key": setLastValueKey,
	"consumers-before-dispatch": setConsumersBefore, "delay-before-dispatch": setDelayBefore,
}

// ownSettings makes settings of what the queues of the file have of their own.
func (w *coreFile) ownSettings(s *AddressSettings) {
	for i := range w.bindings {
		b := &w.bindings[i]
		for _, name := range sortedKeys(queueSettings) {
			a, given := b.place.given(name)
			if !given || b.queue == "" {
				continue
			}
			v := Setting{Name: queueSettings[name], Value: strings.TrimSpace(a.value), Source: b.place.source()}
			if n, err := parseInt(v.Value, math.MinInt64, math.MaxInt64); (v.Name == setMaxConsumers || v.Name == setRing) && (err != nil || n == 0) {
				w.fail(b.place.atAttr(a, nothingText(v.Value, err)))
				continue
			}
			w.ownSetting(s, b, v)
		}
	}
}

// ownSetting adds a setting to those of a queue: to those of its address, where it
// has the name of it.
func (w *coreFile) ownSetting(s *AddressSettings, b *binding, v Setting) {
	name := b.address
	if _, other := s.addressOf[message.Destination{Kind: message.Queue, Name: b.queue}]; other {
		name += fqqnSeparator + b.queue
	}
	if at := s.exactly(name); at >= 0 {
		s.settings[at].values[v.Name] = v
		return
	}
	p, err := parseAddressPattern(name, s.product, s.syntax)
	if err != nil || !p.exact() {
		w.fail(b.place.at(fmt.Sprintf("has settings of its own, and the name %q reads as a pattern; choose another", name)))
		return
	}
	s.settings = append(s.settings, addressSetting{pattern: p, values: map[string]Setting{v.Name: v}, source: v.Source, place: b.place})
}

// declare makes a destination at start.
func (w *coreFile) declare(d message.Destination) {
	if !slices.Contains(w.cfg.Destinations, d) {
		w.cfg.Destinations = append(w.cfg.Destinations, d)
	}
}

// forward sends what comes to one destination on to another.
func (w *coreFile) forward(b *binding, from message.Destination, only bool, to message.Destination) {
	target := ForwardTarget{Destination: to, Selector: b.filter}
	if c := w.composite(from); c != nil {
		c.ForwardTo = append(c.ForwardTo, target)
		return
	}
	w.cfg.Interceptors.Composites = append(w.cfg.Interceptors.Composites, CompositeDestination{Kind: from.Kind, Name: from.Name,
		ForwardOnly: only, ForwardTo: []ForwardTarget{target}, Source: b.place.source()})
}

// composite is what hands on what is sent to a destination; nil: nothing does, so far.
func (w *coreFile) composite(from message.Destination) *CompositeDestination {
	list := w.cfg.Interceptors.Composites
	i := slices.IndexFunc(list, func(c CompositeDestination) bool { return c.Kind == from.Kind && c.Name == from.Name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// coreFilter finds the names that only filters of the core have.
var coreFilter = regexp.MustCompile(`\b(HQ|AMQ)(Priority|Expiration|Durable|Timestamp|Size|UserID|GroupID|Address)\b`)

// coreFilterText says why a filter cannot be used.
func coreFilterText(filter string) string {
	return fmt.Sprintf("the filter %q uses names of the core's own (%s); write it with the names of JMS, such as JMSPriority", filter, coreFilter.FindString(filter))
}
