package config

import (
	"fmt"
	"math"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// redeliveryPluginPart is section 6.1 of the specification. The map stands
// doubled in files, once as the property and once as what it holds; ActiveMQ takes
// nothing else, we take it single, too.
var redeliveryPluginPart = &part{
	name: "redeliveryPlugin", fate: honoured, role: roleRedeliveryPlugin, attrs: redeliveryPluginAttrs,
	children: []*part{{name: "redeliveryPolicyMap", fate: accepted, children: append(redeliveryMapChildren(),
		&part{name: "redeliveryPolicyMap", fate: accepted, children: redeliveryMapChildren()})}},
}

var redeliveryPluginAttrs = []attr{
	{"fallbackToDeadLetter", boolean, "", honoured, ""},
	{"sendToDlqIfMaxRetriesExceeded", boolean, "", honoured, ""},
}

func redeliveryMapChildren() []*part {
	return []*part{
		{name: "redeliveryPolicyEntries", fate: accepted, children: []*part{redeliveryPolicyPart(roleRedeliveryPolicy, honoured, "")}},
		{name: "entries", fate: accepted, children: []*part{redeliveryPolicyPart(roleRedeliveryPolicy, honoured, "")}},
		{name: "defaultEntry", fate: accepted, children: []*part{redeliveryPolicyPart(roleDefaultRedelivery, leftOut, whyDefault)}},
	}
}

// redeliveryPolicyPart is one policy, of the list or by default; pattern as in
// policyEntryPart.
func redeliveryPolicyPart(r role, pattern fate, why string) *part {
	attrs := make([]attr, 0, len(policyAttr)+len(redeliveryAttrs))
	for _, k := range policyAttr {
		attrs = append(attrs, attr{k.name, text, "", pattern, why})
	}
	return &part{name: "redeliveryPolicy", fate: honoured, role: r, attrs: append(attrs, redeliveryAttrs...), children: []*part{keyPart(pattern, why)}}
}

// redeliveryAttrs are the properties of a RedeliveryPolicy (section 1.1).
var redeliveryAttrs = []attr{
	{"maximumRedeliveries", integer, "", honoured, ""},
	{"initialRedeliveryDelay", integer, "", honoured, ""},
	{"redeliveryDelay", integer, "", honoured, ""},
	{"maximumRedeliveryDelay", integer, "", honoured, ""},
	{"useExponentialBackOff", boolean, "", honoured, ""},
	{"backOffMultiplier", decimal, "", honoured, ""},
	{"useCollisionAvoidance", boolean, "", honoured, ""},
	{"collisionAvoidancePercent", integer, "", honoured, ""},
	{"collisionAvoidanceFactor", decimal, "", honoured, ""}, // not in ActiveMQ (R-POL-01)
	{"preDispatchCheck", boolean, "true", leftOut, "it is a check of the client's; the broker's policy has none"},
}

// redeliveryPlugin ends the plugin: its policies were read before. Two wholes
// would have to be nested as ActiveMQ nests plugins; nobody can mean that.
func (w *walker) redeliveryPlugin(e *element) {
	if w.cfg.Redelivery != nil {
		w.fail(e.at("is the second redeliveryPlugin; write all policies into one"))
		return
	}
	p := &w.redelivery
	p.FallbackToDeadLetter, p.SendToDLQIfMaxRetriesExceeded = true, true
	w.bool(e, "fallbackToDeadLetter", &p.FallbackToDeadLetter)
	w.bool(e, "sendToDlqIfMaxRetriesExceeded", &p.SendToDLQIfMaxRetriesExceeded)
	p.Settings, p.Source = settingsOf(e, redeliveryPluginAttrs), e.source()
	w.cfg.Redelivery = p
}

// needScheduler refuses a redeliveryPlugin without a scheduler, as ActiveMQ does
// (R-PLG-01): whoever turned the scheduler off expects that nothing is delayed.
func (w *walker) needScheduler(broker *element) {
	if w.cfg.Redelivery == nil || w.cfg.SchedulerSupport {
		return
	}
	file, line := splitSource(w.cfg.Redelivery.Source)
	w.fail(Notice{File: file, Line: line, Part: "redeliveryPlugin", Text: fmt.Sprintf(
		"needs a scheduler, as in ActiveMQ; write schedulerSupport=\"true\" at the broker element (line %d), or remove the plugin", broker.line)})
}

// redeliveryPolicy reads one policy of the map.
func (w *walker) redeliveryPolicy(e *element) {
	entry := w.redeliveryEntry(e)
	for _, d := range w.patternOf(e) {
		if len(w.redelivery.Policies) == maxPolicies {
			w.fail(e.at(fmt.Sprintf("more than %d redelivery policies", maxPolicies)))
			return
		}
		entry.Policy.Destination, entry.Policy.Name = d, "redeliveryPolicy "+d.String()
		w.redelivery.Policies = append(w.redelivery.Policies, entry)
	}
}

// defaultRedelivery reads the policy for destinations that no other matches.
func (w *walker) defaultRedelivery(e *element) {
	if w.redelivery.Default != nil {
		w.fail(e.at("is the second default entry; remove one"))
		return
	}
	entry := w.redeliveryEntry(e)
	entry.Policy.Name = "redeliveryPolicy by default"
	w.redelivery.Default = &entry
}

// redeliveryEntry reads what a redeliveryPolicy says, save its pattern. Delays may
// be as short as one likes: the floor of one second that ActiveMQ's plugin has
// (R-PLG-02) is there for a race that we do not have.
func (w *walker) redeliveryEntry(e *element) RedeliveryEntry {
	p := redelivery.DefaultPolicy()
	p.Source = e.source()
	w.intBetween(e, "maximumRedeliveries", math.MinInt32, math.MaxInt32, func(n int64) { p.MaximumRedeliveries = int(n) })
	millis := func(name string, set func(int64)) { w.intBetween(e, name, math.MinInt64, math.MaxInt64, set) }
	millis("initialRedeliveryDelay", func(n int64) { p.InitialRedeliveryDelay = redelivery.FromMillis(n) })
	millis("redeliveryDelay", func(n int64) { p.RedeliveryDelay = redelivery.FromMillis(n) })
	millis("maximumRedeliveryDelay", func(n int64) { p.MaximumRedeliveryDelay = redelivery.FromMillis(n) })
	w.bool(e, "useExponentialBackOff", &p.UseExponentialBackOff)
	w.float(e, "backOffMultiplier", &p.BackOffMultiplier)
	w.bool(e, "useCollisionAvoidance", &p.UseCollisionAvoidance)
	w.float(e, "collisionAvoidanceFactor", &p.CollisionAvoidanceFactor)
	w.intBetween(e, "collisionAvoidancePercent", math.MinInt16, math.MaxInt16, func(n int64) { p.SetCollisionAvoidancePercent(int(n)) })
	if hasAttr(e, "collisionAvoidancePercent") && hasAttr(e, "collisionAvoidanceFactor") {
		w.fail(e.at("gives collisionAvoidancePercent and collisionAvoidanceFactor, which say the same; remove one"))
	}
	return RedeliveryEntry{Policy: p, Settings: settingsOf(e, redeliveryAttrs)}
}

// patternOf reads for which destinations an entry is: one of the four attributes,
// a composite counted by its parts (R-MAP-06). What is wrong is reported.
func (w *walker) patternOf(e *element) []message.Destination {
	found := 0
	var parts []message.Destination
	for _, k := range policyAttr {
		a, ok := e.given(k.name)
		if ok || hasAttr(e, k.name) {
			found++
		}
		if !ok {
			continue
		}
		// tempQueue="true" stands for all temporary queues (section 7.3); in a
		// redeliveryPolicy "false" does so, too (section 1.1).
		value := a.value
		if _, err := parseBool(value); err == nil && k.kind != message.Queue && k.kind != message.Topic {
			value = ">"
		}
		d, err := message.ParseDestination(value, k.kind)
		if err != nil {
			w.fail(e.atAttr(a, "names no destination; give a name or a pattern such as \">\""))
			continue
		}
		parts = d.Parts()
	}
	if key, given := w.keyOf(e); given {
		found++
		parts = key
	}
	switch {
	case found == 0:
		w.fail(e.at("says for which destinations it is with one of queue, topic, tempQueue or tempTopic; this one does not"))
	case found > 1:
		w.fail(e.at("is for one of queue, topic, tempQueue or tempTopic; write one entry for each"))
	default:
		return parts
	}
	return nil
}

// settingsOf lists the honoured attributes that e gives, in its order.
func settingsOf(e *element, rows []attr) []Setting {
	var list []Setting
	for _, a := range e.attrs {
		if !a.bad && a.space == "" && slices.ContainsFunc(rows, func(r attr) bool { return r.name == a.name && r.fate == honoured }) {
			list = append(list, Setting{Name: a.name, Value: a.value, Source: fmt.Sprintf("%s:%d", e.file, a.line)})
		}
	}
	return list
}

// source is "FILE:LINE" of e.
func (e *element) source() string { return fmt.Sprintf("%s:%d", e.file, e.line) }
