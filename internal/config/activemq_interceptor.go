package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

const whyConcurrent = "copies are made in one step, without threads of their own"

// destinationsPart is the list of destinations that are made at start (section 7.9).
var destinationsPart = &part{name: "destinations", fate: accepted, children: []*part{
	destinationPart("queue"), destinationPart("topic"),
	{name: "tempQueue", fate: leftOut, why: whyTemporary, attrs: inside("physicalName", "name", "DLQ")},
	{name: "tempTopic", fate: leftOut, why: whyTemporary, attrs: inside("physicalName", "name", "DLQ")}}}

const whyTemporary = "a temporary destination belongs to the connection that makes it"

func destinationPart(name string) *part {
	return &part{name: name, fate: honoured, role: roleDestination,
		attrs: append([]attr{{"DLQ", boolean, "", honoured, ""}}, nameAttrs...)}
}

// destinationInterceptorsPart is virtual and composite destinations (section 7.9).
var destinationInterceptorsPart = &part{name: "destinationInterceptors", fate: accepted, children: []*part{
	{name: "virtualDestinationInterceptor", fate: honoured, role: roleInterceptors, children: []*part{
		{name: "virtualDestinations", fate: accepted, children: []*part{
			{name: "virtualTopic", fate: honoured, role: roleVirtualTopic, attrs: []attr{
				{"name", text, "", honoured, ""},
				{"prefix", text, "", honoured, ""},
				{"postfix", text, "", honoured, ""},
				{"selectorAware", boolean, "", honoured, ""},
				{"local", boolean, "", honoured, ""},
				{"transactedSend", boolean, "", honoured, ""},
				{"dropOnResourceLimit", boolean, "", honoured, ""},
				{"setOriginalDestination", boolean, "", honoured, ""},
				{"concurrentSend", boolean, "false", leftOut, whyConcurrent},
			}},
			compositePart("compositeQueue"), compositePart("compositeTopic"),
			refusedPlugin("mirroredQueue", "messages would not be copied to the mirror topics; write it behind the virtualDestinationInterceptor, not in it, where ActiveMQ does not start with it"),
			refusedPlugin("bean", "an interceptor of a class of one's own is Java code and is not run; what it does to messages would not happen; remove it if that is not needed"),
		}}}},
	{name: "mirroredQueue", fate: honoured, role: roleMirroredQueue, attrs: []attr{
		{"prefix", text, "", honoured, ""},
		{"postfix", text, "", honoured, ""},
		{"copyMessage", boolean, "true", leftOut, "queue and topic get a copy each in any case"},
	}},
	refusedPlugin("bean", "an interceptor of a class of one's own is Java code and is not run; what it does to messages would not happen; remove it if that is not needed"),
}}

func compositePart(name string) *part {
	return &part{name: name, fate: honoured, role: roleComposite,
		attrs: []attr{
			{"name", text, "", honoured, ""},
			{"forwardOnly", boolean, "", honoured, ""},
			{"copyMessage", boolean, "true", leftOut, "each target gets a copy in any case, as in ActiveMQ"},
			{"sendWhenNotMatched", boolean, "", honoured, ""},
			{"concurrentSend", boolean, "false", leftOut, whyConcurrent},
		},
		children: []*part{{name: "forwardTo", fate: accepted, children: []*part{
			forwardPart("queue", "physicalName", "name"), forwardPart("topic", "physicalName", "name"),
			forwardPart("filteredDestination", "queue", "topic", "selector")}}},
	}
}

// forwardPart is one target of a composite destination, read by the composite.
func forwardPart(name string, attrs ...string) *part {
	p := &part{name: name, fate: accepted}
	for _, a := range attrs {
		p.attrs = append(p.attrs, attr{a, text, "", honoured, ""})
	}
	return p
}

// destination reads a destination that the file wants made at start.
func (w *walker) destination(e *element) {
	a, ok := nameOf(e)
	if !ok {
		if !hasAttr(e, "physicalName") && !hasAttr(e, "name") {
			w.fail(e.at("has no physicalName"))
		}
		return
	}
	kind := message.Queue
	if e.name == "topic" {
		kind = message.Topic
	}
	all, err := message.ParseDestination(a.value, kind)
	if err != nil {
		w.fail(e.atAttr(a, "names no destination"))
		return
	}
	mark := w.isDeadLetterQueue(e, a)
	w.bool(e, "DLQ", &mark)
	for _, d := range all.Parts() {
		if d.IsPattern() || d.IsTemporary() {
			w.fail(e.atAttr(a, d.String()+" cannot be made at start; name one queue or topic"))
			return
		}
		w.cfg.Destinations = append(w.cfg.Destinations, d)
		if mark {
			w.cfg.DeadLetterQueues = append(w.cfg.DeadLetterQueues, d)
		}
	}
}

// isDeadLetterQueue reads the options of a name: isDLQ marks the destination as a
// dead letter queue (R-DLQ-21). In ActiveMQ every value does; here false does not
// (R-EDGE-26).
func (w *walker) isDeadLetterQueue(e *element, a attribute) bool {
	_, query, _ := strings.Cut(a.value, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		w.fail(e.atAttr(a, "has options that cannot be read: "+err.Error()))
		return false
	}
	mark := false
	for _, name := range slices.Sorted(maps.Keys(options)) {
		values := options[name]
		if name != "isDLQ" {
			w.warn(e.atAttr(a, "option "+name+" is left out: only isDLQ has a meaning for a destination that is made at start"))
			continue
		}
		mark, err = parseBool(values[0])
		if values[0] == "" {
			mark, err = true, nil
		}
		if err != nil {
			w.fail(e.atAttr(a, "isDLQ: "+err.Error()))
		}
	}
	return mark
}

// interceptors ends a virtualDestinationInterceptor. Any interceptor takes the place of
// what is built in (section 7.9). They enclose each other, the last one outermost: a
// mirroredQueue that stands in front of it does not see what a composite only hands on.
func (w *walker) interceptors(*element) {
	w.cfg.Interceptors = &w.intercept
	for i := range w.intercept.Mirrors {
		w.intercept.Mirrors[i].KeptOnly = true
	}
}

// mirroredQueue reads one mirroredQueue.
func (w *walker) mirroredQueue(e *element) {
	w.cfg.Interceptors = &w.intercept
	m := DefaultMirroredQueues()
	m.Source = e.source()
	w.string(e, "prefix", &m.Prefix)
	w.string(e, "postfix", &m.Postfix)
	if text := m.wrong(); text != "" {
		w.fail(e.at(text))
		return
	}
	w.intercept.Mirrors = append(w.intercept.Mirrors, m)
}

// builtInInterceptors reads what the broker says of the interceptors that are built in.
// Where the file configures any it has those alone, as in ActiveMQ.
func (w *walker) builtInInterceptors(broker *element) {
	virtual, mirrored, temporary := true, false, true
	w.bool(broker, "useVirtualTopics", &virtual)
	w.bool(broker, "useMirroredQueues", &mirrored)
	w.bool(broker, "useTempMirroredQueues", &temporary)
	a, _ := broker.given("useMirroredQueues")
	switch {
	case w.cfg.Interceptors != nil && mirrored:
		w.warn(broker.atAttr(a, "has no effect, as in ActiveMQ, where destinationInterceptors says which there are; add <mirroredQueue/> there to have queues mirrored"))
	case w.cfg.Interceptors == nil && (mirrored || !virtual):
		w.cfg.Interceptors = &Interceptors{}
		if virtual {
			w.cfg.Interceptors = DefaultInterceptors()
		}
		if mirrored {
			m := DefaultMirroredQueues()
			m.Source = broker.source()
			w.cfg.Interceptors.Mirrors = []MirroredQueues{m}
		}
	}
	if w.cfg.Interceptors != nil {
		for i := range w.cfg.Interceptors.Mirrors {
			w.cfg.Interceptors.Mirrors[i].Temporary = temporary
		}
	}
}

// virtualTopic reads one virtualTopic.
func (w *walker) virtualTopic(e *element) {
	v := DefaultVirtualTopic()
	v.Source = e.source()
	w.string(e, "name", &v.Name)
	w.string(e, "prefix", &v.Prefix)
	w.string(e, "postfix", &v.Postfix)
	w.bool(e, "selectorAware", &v.SelectorAware)
	w.bool(e, "local", &v.Local)
	w.bool(e, "transactedSend", &v.TransactedSend)
	w.bool(e, "dropOnResourceLimit", &v.DropOnResourceLimit)
	w.bool(e, "setOriginalDestination", &v.SetOriginalDestination)
	switch {
	case strings.TrimSpace(v.Name) == "":
		w.fail(e.at(`names no topics; give a name or a pattern such as "VirtualTopic.>"`))
	case v.Prefix == "" && v.Postfix == "":
		w.fail(e.at(`has neither prefix nor postfix, so that its queues cannot be told apart; give one such as prefix="Consumer.*."`))
	default:
		w.intercept.VirtualTopics = append(w.intercept.VirtualTopics, v)
	}
}

// composite reads one compositeQueue or compositeTopic.
func (w *walker) composite(e *element) {
	c := CompositeDestination{Kind: message.Queue, ForwardOnly: true, Source: e.source()}
	if e.name == "compositeTopic" {
		c.Kind = message.Topic
	}
	w.string(e, "name", &c.Name)
	w.bool(e, "forwardOnly", &c.ForwardOnly)
	w.bool(e, "sendWhenNotMatched", &c.SendWhenNotMatched)
	if c.Name = strings.TrimSpace(c.Name); c.Name == "" {
		w.fail(e.at("has no name"))
		return
	}
	holder := e.find("forwardTo")
	if holder == nil || len(holder.children) == 0 {
		w.fail(e.at("has no targets in forwardTo"))
		return
	}
	for _, target := range holder.children {
		w.forwardTo(target, &c)
	}
	w.intercept.Composites = append(w.intercept.Composites, c)
}

// forwardTo reads one target of a composite destination.
func (w *walker) forwardTo(e *element, c *CompositeDestination) {
	var t ForwardTarget
	w.string(e, "selector", &t.Selector)
	for _, place := range []struct {
		element, attr string
		kind          message.DestinationKind
	}{{"queue", "physicalName", message.Queue}, {"topic", "physicalName", message.Topic}, {"queue", "name", message.Queue}, {"topic", "name", message.Topic},
		{"filteredDestination", "queue", message.Queue}, {"filteredDestination", "topic", message.Topic}} {
		a, ok := e.given(place.attr)
		if !ok || e.name != place.element {
			continue
		}
		d, err := message.ParseDestination(a.value, place.kind)
		switch {
		case err != nil:
			w.fail(e.atAttr(a, "names no destination"))
		case d.IsComposite(), d.IsPattern(), d.IsTemporary():
			w.fail(e.atAttr(a, d.String()+" cannot be a target; name one queue or topic"))
		case !t.Destination.IsZero():
			w.fail(e.at("is for one of queue and topic; write two"))
			return
		default:
			t.Destination = d
		}
	}
	if t.Destination.IsZero() && len(w.problems) == 0 {
		w.fail(e.at("names no target"))
		return
	}
	c.ForwardTo = append(c.ForwardTo, t)
}
