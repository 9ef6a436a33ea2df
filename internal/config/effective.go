package config

import (
	"regexp"
	"slices"
	"sync"

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

// A Resolver tells what holds for a destination. It gives the same answers for
// ever, and may be used by several goroutines.
type Resolver struct {
	entries *redelivery.Map[PolicyEntry]
	plugin  *RedeliveryPlugin // nil: none
	plugged *redelivery.Map[RedeliveryEntry]
	marked  map[message.Destination]bool
	// discarding is nil where there is none.
	discarding *DiscardingPlugin
	dropOnly   []*regexp.Regexp
	addresses  *AddressSettings // instead of all the others; nil: none
	lifetimes  bool             // some policy has a Lifetime
	limited    bool             // some policy has Limits
	ordered    bool             // some policy has StrictTopicOrder
	unrouted   bool             // some rules have DeadLetterUnrouted
	declared   bool             // some policy has OnlyDeclared

	mu    sync.Mutex
	known map[message.Destination]Effective // what addresses gave; emptied when it is full
}

// Resolver makes the resolver of a configuration.
func (c *Config) Resolver() *Resolver {
	r := &Resolver{entries: c.policyMap(), plugin: c.Redelivery, discarding: c.Discarding, marked: map[message.Destination]bool{}, addresses: c.Addresses}
	if r.plugin != nil {
		r.plugged = r.plugin.policyMap()
	}
	if r.discarding != nil {
		for _, text := range r.discarding.DropOnly {
			if re, err := wholeName(text); err == nil { // Load has checked it
				r.dropOnly = append(r.dropOnly, re)
			}
		}
	}
	for _, d := range c.DeadLetterQueues {
		r.marked[d] = true
	}
	r.unrouted = c.Addresses != nil && c.Addresses.gives(setNoRoute) ||
		c.DefaultPolicy != nil && c.DefaultPolicy.Rules.DeadLetterUnrouted ||
		slices.ContainsFunc(c.Policies, func(p PolicyEntry) bool { return p.Rules.DeadLetterUnrouted })
	r.declared = c.Addresses != nil && c.Addresses.gives(setAutoCreateQueues, setAutoCreateAddresses) ||
		c.DefaultPolicy != nil && (c.DefaultPolicy.OnlyDeclared || c.DefaultPolicy.MaxDestinations > 0) ||
		slices.ContainsFunc(c.Policies, func(p PolicyEntry) bool { return p.OnlyDeclared || p.MaxDestinations > 0 })
	r.limited = c.Addresses != nil && c.Addresses.limits() ||
		c.DefaultPolicy != nil && c.DefaultPolicy.Limits != nil ||
		slices.ContainsFunc(c.Policies, func(p PolicyEntry) bool { return p.Limits.For(p.Destination) != nil })
	r.ordered = c.DefaultPolicy != nil && c.DefaultPolicy.StrictTopicOrder ||
		slices.ContainsFunc(c.Policies, func(p PolicyEntry) bool { return p.StrictTopicOrder })
	r.lifetimes = c.Addresses != nil && c.Addresses.gives(setExpiryDelay, setMinExpiryDelay, setMaxExpiryDelay, setNoExpiry) ||
		c.DefaultPolicy != nil && c.DefaultPolicy.Lifetime != nil ||
		slices.ContainsFunc(c.Policies, func(p PolicyEntry) bool { return p.Lifetime != nil })
	return r
}

// Limited reports whether what Policy returns has Limits for any destination.
func (r *Resolver) Limited() bool { return r.limited }

// Ordered reports whether what Policy returns has StrictTopicOrder for any destination.
func (r *Resolver) Ordered() bool { return r.ordered }

// Policy returns what holds for d (R-MAP-07): the policy entry, and with it the
// redeliveryPlugin's policy, unless the entry has a redelivery of its own.
func (r *Resolver) Policy(d message.Destination) Effective {
	if r.addresses != nil {
		return r.remembered(d)
	}
	key, entry, found := r.entries.LookupKey(d)
	e := Effective{PolicyEntry: entry, Found: found}
	named := found && key == d
	e.Rules.DeadLetterQueue = r.marked[d]
	e.Rules.StrategyNamed = named && e.Rules.DeadLetter.Kind != redelivery.UnsetStrategy
	e.Rules.RedeliveryNamed = named && e.Rules.Redelivery != nil
	if r.plugin != nil && e.Rules.Redelivery == nil {
		r.plug(&e, d)
	}
	if r.discarding != nil && r.drops(d) {
		e.Settings = slices.Concat(e.Settings, []Setting{{Name: "discardingDLQBrokerPlugin", Source: r.discarding.Source}}, r.discarding.Settings)
		e.Rules.Drop = redelivery.DropLast
		if r.discarding.First {
			e.Rules.Drop = redelivery.DropFirst
		}
		if !e.Found {
			e.Rules.Name, e.Rules.Source, e.Found = "discardingDLQBrokerPlugin", r.discarding.Source, true
		}
	}
	return e
}

// Lifetimes reports whether what Policy returns has a Lifetime for any destination.
func (r *Resolver) Lifetimes() bool { return r.lifetimes }

// Unrouted reports whether what Policy returns has DeadLetterUnrouted for any
// destination.
func (r *Resolver) Unrouted() bool { return r.unrouted }

// OnlyDeclared reports whether what Policy returns may have OnlyDeclared for some
// destination.
func (r *Resolver) OnlyDeclared() bool { return r.declared }

// maxKnown is how many destinations are remembered.
const maxKnown = 10_000

// remembered is what the address-settings say of d: merging them is not for every
// message.
func (r *Resolver) remembered(d message.Destination) Effective {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.known[d]
	if !ok {
		if len(r.known) >= maxKnown || r.known == nil {
			r.known = map[message.Destination]Effective{}
		}
		e = r.addresses.policy(d)
		r.known[d] = e
	}
	e.Settings = slices.Clip(e.Settings)
	return e
}

// plug adds what the redeliveryPlugin says of d.
func (r *Resolver) plug(e *Effective, d message.Destination) {
	key, policy, found := r.plugged.LookupKey(d)
	e.Settings = slices.Concat(e.Settings, r.plugin.Settings, policy.Settings)
	e.Rules.DropAtLimit = !r.plugin.SendToDLQIfMaxRetriesExceeded
	if !found {
		if e.Rules.DropWithoutPolicy = !r.plugin.FallbackToDeadLetter; e.Rules.DropWithoutPolicy && !e.Found {
			e.Rules.Name, e.Rules.Source, e.Found = "redeliveryPlugin", r.plugin.Source, true
		}
		return
	}
	e.Rules.Redelivery, e.Rules.RedeliveryNamed = &policy.Policy, key == d
	if !e.Found {
		e.Rules.Name, e.Rules.Source, e.Found = policy.Policy.Name, policy.Policy.Source, true
	}
}

// drops reports whether the discarding plugin drops the dead letters of d
// (R-DLQ-40).
func (r *Resolver) drops(d message.Destination) bool {
	p := r.discarding
	return p.DropAll ||
		p.DropTemporaryTopics && d.Kind == message.TempTopic ||
		p.DropTemporaryQueues && d.Kind == message.TempQueue ||
		slices.ContainsFunc(r.dropOnly, func(re *regexp.Regexp) bool { return re.MatchString(d.Name) })
}

// wholeName compiles a pattern that is to match a whole name.
func wholeName(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile("^(?:" + pattern + ")$")
}
