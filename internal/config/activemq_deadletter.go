package config

import (
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// whyNoAudit: the audit is where ActiveMQ loses dead letters (R-DLS-23, R-DLS-25).
const whyNoAudit = "no dead letter is dropped for having the id of another"

const whyNowhere = "a discarding strategy sends nothing anywhere"

// deadLetterStrategyPart is section 5 of the specification.
var deadLetterStrategyPart = &part{name: "deadLetterStrategy", fate: accepted, children: []*part{
	{name: "sharedDeadLetterStrategy", fate: honoured, role: roleNone,
		attrs: strategyAttrs(attr{"deadLetterQueue", text, "", honoured, ""}),
		children: []*part{{name: "deadLetterQueue", fate: accepted, children: []*part{
			strategyTarget("queue"), strategyTarget("topic")}}}},
	{name: "individualDeadLetterStrategy", fate: honoured, role: roleNone,
		attrs: strategyAttrs(
			attr{"queuePrefix", text, "", honoured, ""},
			attr{"queueSuffix", text, "", honoured, ""},
			attr{"topicPrefix", text, "", honoured, ""},
			attr{"topicSuffix", text, "", honoured, ""},
			attr{"useQueueForQueueMessages", boolean, "", honoured, ""},
			attr{"useQueueForTopicMessages", boolean, "", honoured, ""},
			attr{"destinationPerDurableSubscriber", boolean, "", honoured, ""})},
	{name: "discarding", fate: honoured, role: roleNone, attrs: strategyAttrs(attr{"deadLetterQueue", text, "", leftOut, whyNowhere}),
		children: []*part{{name: "deadLetterQueue", fate: leftOut, why: whyNowhere, opaque: true}}},
	{name: "bean", fate: refused, why: "a strategy of a class of one's own is Java code and is not run; dead letters would not go where it sends them; use a sharedDeadLetterStrategy or an individualDeadLetterStrategy", opaque: true},
}}

// strategyAttrs are the attributes that every strategy has, behind its own.
func strategyAttrs(own ...attr) []attr {
	return append(own,
		attr{"processExpired", boolean, "", honoured, ""},
		attr{"processNonPersistent", boolean, "", honoured, ""},
		attr{"enableAudit", boolean, "true", leftOut, whyNoAudit},
		attr{"maxAuditDepth", integer, "2048", leftOut, whyNoAudit},
		attr{"maxProducersToAudit", integer, "64", leftOut, whyNoAudit},
		attr{"expiration", integer, "", honoured, ""})
}

// strategyTarget is a destination inside deadLetterQueue.
func strategyTarget(name string) *part {
	return &part{name: name, fate: accepted, attrs: nameAttrs}
}

// strategy reads the deadLetterStrategy of a policyEntry, where it has one.
func (w *walker) strategy(entry *element, p *PolicyEntry) {
	holder := entry.find("deadLetterStrategy")
	if holder == nil || len(holder.children) == 0 {
		return
	}
	if len(holder.children) > 1 {
		w.fail(holder.children[1].at("a policyEntry has one dead letter strategy; remove all but one"))
	}
	e := holder.children[0]
	s := redelivery.DiscardingStrategy()
	switch e.name {
	case "sharedDeadLetterStrategy":
		s = redelivery.SharedStrategy()
		w.target(e, &s.DeadLetterQueue)
	case "individualDeadLetterStrategy":
		s = redelivery.IndividualStrategy()
		w.string(e, "queuePrefix", &s.QueuePrefix)
		w.string(e, "queueSuffix", &s.QueueSuffix)
		w.string(e, "topicPrefix", &s.TopicPrefix)
		w.string(e, "topicSuffix", &s.TopicSuffix)
		w.bool(e, "useQueueForQueueMessages", &s.UseQueueForQueueMessages)
		w.bool(e, "useQueueForTopicMessages", &s.UseQueueForTopicMessages)
		w.bool(e, "destinationPerDurableSubscriber", &s.DestinationPerDurableSubscriber)
	}
	w.bool(e, "processExpired", &s.ProcessExpired)
	w.bool(e, "processNonPersistent", &s.ProcessNonPersistent)
	millis := 0
	w.int(e, "expiration", 0, &millis)
	s.Expiration = time.Duration(millis) * time.Millisecond
	p.Rules.DeadLetter = s
	p.Settings = append(p.Settings, Setting{Name: "deadLetterStrategy", Value: e.name, Source: e.source()})
	if known := deadLetterStrategyPart.childNamed(e.name); known != nil {
		p.Settings = append(p.Settings, settingsOf(e, known.attrs)...)
	}
	if c := e.find("deadLetterQueue"); c != nil {
		p.Settings = append(p.Settings, Setting{Name: "deadLetterQueue", Value: s.DeadLetterQueue.String(), Source: c.source()})
	}
}

// target reads deadLetterQueue, as a child with a queue or topic in it or as an
// attribute with a name (R-XML-21).
func (w *walker) target(e *element, into *message.Destination) {
	for _, a := range e.attrs {
		if a.name == "deadLetterQueue" && !a.bad {
			d, err := message.ParseDestination(a.value, message.Queue)
			if problem := badTarget(d, err); problem != "" {
				w.fail(e.atAttr(a, problem))
				return
			}
			*into = d
		}
	}
	holder := e.find("deadLetterQueue")
	if holder == nil {
		return
	}
	if len(holder.children) != 1 {
		w.fail(holder.at("holds one queue or topic element, with its physicalName"))
		return
	}
	c := holder.children[0]
	kind := message.Queue
	switch c.name {
	case "queue":
	case "topic":
		kind = message.Topic
	default:
		return // the walk has named it
	}
	a, _ := nameOf(c)
	d, err := message.ParseDestination(a.value, kind)
	if problem := badTarget(d, err); problem != "" {
		w.fail(c.at(problem))
		return
	}
	*into = d
}

// badTarget says why dead letters cannot go to d; empty: they can.
func badTarget(d message.Destination, err error) string {
	switch {
	case err != nil:
		return "names no destination; give a name such as ActiveMQ.DLQ"
	case d.IsComposite(), d.IsPattern(), d.IsTemporary():
		return d.String() + " cannot take dead letters; name one queue or topic"
	}
	return ""
}
