package config

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A RedeliveryPlugin is ActiveMQ's redeliveryPlugin: redelivery by the broker,
// with policies by destination (spec section 6). It says nothing of a
// destination whose policy entry has a redelivery of its own.
type RedeliveryPlugin struct {
	// FallbackToDeadLetter decides about a message that its client gave up where
	// no policy matches: true, the default: a dead letter; false: it is dropped.
	FallbackToDeadLetter bool
	// SendToDLQIfMaxRetriesExceeded decides about a message that a policy gave
	// up: true, the default: a dead letter; false: it is dropped.
	SendToDLQIfMaxRetriesExceeded bool
	// Policies are in the order of the file, as Config.Policies.
	Policies []RedeliveryEntry
	// Default applies where none of Policies matches; nil: there is none.
	Default *RedeliveryEntry
	// Settings are the two switches, where the file gives them.
	Settings []Setting
	// Source is "FILE:LINE".
	Source string
}

// A RedeliveryEntry is one redeliveryPolicy of the plugin. Policy.Destination is
// its pattern, zero in the default entry; it is never a composite (R-MAP-06).
type RedeliveryEntry struct {
	Policy   redelivery.Policy
	Settings []Setting
}

// policyMap makes the map that finds the policy for a destination.
func (p *RedeliveryPlugin) policyMap() *redelivery.Map[RedeliveryEntry] {
	m := new(redelivery.Map[RedeliveryEntry])
	for _, e := range p.Policies {
		m.Put(e.Policy.Destination, e)
	}
	if p.Default != nil {
		m.SetDefault(*p.Default)
	}
	return m
}

// patterns lists the patterns of the entries with their places.
func (p *RedeliveryPlugin) patterns() []pattern {
	var list []pattern
	for _, e := range p.Policies {
		list = append(list, pattern{e.Policy.Destination, e.Policy.Source})
	}
	return list
}

// A pattern is the key of an entry, with its place.
type pattern struct {
	destination message.Destination
	source      string
}
