package config

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Setting is one value that a configuration gives, with its place. What is
// not among the settings of an entry has its dialect's default.
type Setting struct {
	// Name is the word of the dialect: maximumRedeliveries, dead-letter-address.
	Name string
	// Value is the text as written, placeholders filled in.
	Value string
	// Source is "FILE:LINE".
	Source string
}

// An Effective is all that holds for one destination. The dialects differ in how
// they come to it: entries of an activemq.xml are chosen whole and the
// redeliveryPlugin has a map of its own; address-settings merge.
type Effective struct {
	PolicyEntry
	// Found is false where nothing of the configuration is for the destination,
	// not even a default.
	Found bool
}

// A Resolver tells what holds for a destination. It does not change, and may be
// used by several goroutines.
type Resolver struct {
	entries *redelivery.Map[PolicyEntry]
}

// Resolver makes the resolver of a configuration.
func (c *Config) Resolver() *Resolver { return &Resolver{entries: c.policyMap()} }

// Policy returns what holds for d (R-MAP-07).
func (r *Resolver) Policy(d message.Destination) Effective {
	e, ok := r.entries.Lookup(d)
	return Effective{PolicyEntry: e, Found: ok}
}
