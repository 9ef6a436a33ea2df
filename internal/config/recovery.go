package config

import "time"

// A Recovery says which of a topic's newest messages retroactive consumers are given
// when they come: those within all the limits that are not zero (ActiveMQ's
// subscriptionRecoveryPolicy).
type Recovery struct {
	Count int
	Bytes int
	Age   time.Duration
	// Retained also keeps the last message with the property ActiveMQ.Retain.
	Retained bool
}

// Defaults of ActiveMQ's policies.
const (
	recoveredCount  = 100
	recoveredBytes  = 64 << 10
	recoveredMillis = 60_000
)

// recoveryParts are the policies that a topic can have.
var recoveryParts = append([]*part{
	{name: "retainedMessageSubscriptionRecoveryPolicy", fate: honoured, role: roleNone, children: []*part{
		{name: "wrapped", fate: accepted, children: plainRecoveryParts}}},
}, plainRecoveryParts...)

// plainRecoveryParts are those that another one can wrap.
var plainRecoveryParts = []*part{
	{name: "noSubscriptionRecoveryPolicy", fate: accepted},
	{name: "fixedCountSubscriptionRecoveryPolicy", fate: honoured, role: roleNone, attrs: []attr{{"maximumSize", integer, "100", honoured, ""}}},
	{name: "fixedSizedSubscriptionRecoveryPolicy", fate: honoured, role: roleNone, attrs: []attr{
		{"maximumSize", integer, "65536", honoured, ""},
		{"useSharedBuffer", boolean, "true", leftOut, "each topic keeps messages of its own"}}},
	{name: "lastImageSubscriptionRecoveryPolicy", fate: honoured, role: roleNone},
	{name: "timedSubscriptionRecoveryPolicy", fate: honoured, role: roleNone, attrs: []attr{{"recoverDuration", integer, "60000", honoured, ""}}},
	recoveryPart("queryBasedSubscriptionRecoveryPolicy"),
}

// recovery reads the subscriptionRecoveryPolicy of a policyEntry, where it has one.
func (w *walker) recovery(entry *element, p *PolicyEntry) {
	holder := entry.find("subscriptionRecoveryPolicy")
	if holder == nil || len(holder.children) == 0 {
		return
	}
	if len(holder.children) > 1 {
		w.fail(holder.children[1].at("a policyEntry has one subscription recovery policy; remove all but one"))
	}
	e := holder.children[0]
	r := Recovery{}
	if e.name == "retainedMessageSubscriptionRecoveryPolicy" {
		r.Retained = true
		if wrapped := e.find("wrapped"); wrapped != nil && len(wrapped.children) > 0 {
			w.newest(wrapped.children[0], &r)
		}
	} else if !w.newest(e, &r) {
		return
	}
	p.Recovery = &r
	p.Settings = append(p.Settings, Setting{Name: "recovery", Value: e.name, Source: e.source()})
}

// newest reads which of the newest messages are kept. It returns false where none are.
func (w *walker) newest(e *element, r *Recovery) bool {
	switch e.name {
	case "fixedCountSubscriptionRecoveryPolicy":
		r.Count = recoveredCount
		w.int(e, "maximumSize", 1, &r.Count)
	case "fixedSizedSubscriptionRecoveryPolicy":
		r.Bytes = recoveredBytes
		w.int(e, "maximumSize", 1, &r.Bytes)
	case "lastImageSubscriptionRecoveryPolicy":
		r.Count = 1
	case "timedSubscriptionRecoveryPolicy":
		millis := recoveredMillis
		w.int(e, "recoverDuration", 1, &millis)
		r.Age = time.Duration(millis) * time.Millisecond
	default:
		return false
	}
	return true
}
