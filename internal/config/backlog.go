package config

import (
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"
)

// A Backlog bounds what may wait for a topic's consumer without a durable
// subscription (ActiveMQ's pendingMessageLimitStrategy and messageEvictionStrategy).
type Backlog struct {
	// Limit is how many messages; below 0: as many as there are, unless the consumer
	// has a limit of its own (maximumPendingMessageLimit).
	Limit int
	// Windows is the limit in windows of the consumer instead; below 0: Limit counts.
	Windows float64
	Evict   Eviction
	// Property is that of EvictSuperseded.
	Property string
}

// Eviction says what goes where too much waits.
type Eviction string

// The ways there are.
const (
	EvictOldest         Eviction = "oldest"
	EvictLowestPriority Eviction = "lowest-priority"
	EvictSuperseded     Eviction = "superseded"
)

func freshBacklog() *Backlog { return &Backlog{Limit: -1, Windows: -1, Evict: EvictOldest} }

// backlogParts are the elements of a policyEntry that say it.
var backlogParts = []*part{
	{name: "pendingMessageLimitStrategy", fate: accepted, children: []*part{
		{name: "constantPendingMessageLimitStrategy", fate: honoured, attrs: []attr{{"limit", integer, "-1", honoured, ""}}},
		{name: "prefetchRatePendingMessageLimitStrategy", fate: honoured, attrs: []attr{{"multiplier", decimal, "0.5", honoured, ""}}}}},
	{name: "messageEvictionStrategy", fate: accepted, children: []*part{
		evictionPart("oldestMessageEvictionStrategy"),
		evictionPart("oldestMessageWithLowestPriorityEvictionStrategy"),
		evictionPart("uniquePropertyMessageEvictionStrategy", attr{"propertyName", text, "", honoured, ""})}},
}

func evictionPart(name string, attrs ...attr) *part {
	return &part{name: name, fate: honoured, attrs: append(attrs, attr{"evictExpiredMessagesHighWatermark", integer, "1000", leftOut, whyExpiry})}
}

// evictions are the ways, by their elements.
var evictions = map[string]Eviction{
	"oldestMessageEvictionStrategy":                   EvictOldest,
	"oldestMessageWithLowestPriorityEvictionStrategy": EvictLowestPriority,
	"uniquePropertyMessageEvictionStrategy":           EvictSuperseded,
}

// prefetchRate is ActiveMQ's default of prefetchRatePendingMessageLimitStrategy.
const prefetchRate = 0.5

// backlog reads the limit of a policyEntry and what it evicts. Without a limit a
// consumer's own counts where it is said what goes; in ActiveMQ it does not.
func (w *walker) backlog(entry *element, p *PolicyEntry) {
	limit := w.onlyStrategy(entry, "pendingMessageLimitStrategy", p)
	evicts := w.onlyStrategy(entry, "messageEvictionStrategy", p)
	if limit == nil && evicts == nil {
		return
	}
	b := freshBacklog()
	if limit != nil {
		w.pendingLimit(limit, b)
		if row := backlogParts[0].childNamed(limit.name); row != nil {
			p.Settings = append(p.Settings, settingsOf(limit, row.attrs)...)
		}
	}
	if evicts != nil {
		b.Evict = evictions[evicts.name]
		w.string(evicts, "propertyName", &b.Property)
		if b.Evict == EvictSuperseded && b.Property == "" {
			w.warn(evicts.at("has no propertyName, so the oldest message goes, as in ActiveMQ"))
			b.Evict = EvictOldest
		}
		if row := backlogParts[1].childNamed(evicts.name); row != nil {
			p.Settings = append(p.Settings, settingsOf(evicts, row.attrs)...)
		}
	}
	p.Backlog = b
}

// pendingLimit reads a limit. One that is not known was named by the walk.
func (w *walker) pendingLimit(e *element, b *Backlog) {
	switch e.name {
	case "constantPendingMessageLimitStrategy":
		w.intBetween(e, "limit", math.MinInt32, math.MaxInt32, func(n int64) { b.Limit = max(int(n), -1) })
	case "prefetchRatePendingMessageLimitStrategy":
		b.Windows = prefetchRate
		if w.float(e, "multiplier", &b.Windows); b.Windows < 0 || b.Windows > maxWindows {
			w.fail(e.at(fmt.Sprintf("the multiplier is not between 0 and %d", maxWindows)))
		}
	}
}

// maxWindows is how many windows of a consumer may wait for it at the most.
const maxWindows = 1_000_000

// onlyStrategy is the one strategy in an element of a policyEntry, noted as a setting;
// nil: there is none.
func (w *walker) onlyStrategy(entry *element, name string, p *PolicyEntry) *element {
	holder := entry.find(name)
	if holder == nil || len(holder.children) == 0 {
		return nil
	}
	if len(holder.children) > 1 {
		w.fail(holder.children[1].at("a policyEntry has one " + name + "; remove all but one"))
	}
	e := holder.children[0]
	p.Settings = append(p.Settings, Setting{Name: name, Value: e.name, Source: e.source()})
	return e
}

// evictionWords are the ways in our own YAML.
var evictionWords = []yamlWord[Eviction]{{string(EvictOldest), EvictOldest}, {string(EvictLowestPriority), EvictLowestPriority}, {string(EvictSuperseded), EvictSuperseded}}

// backlog are the keys of a bound.
func (y yamlReader) backlog(b *Backlog) []yamlKey {
	return []yamlKey{
		y.count("limit", -1, math.MaxInt32, &b.Limit).says("How many messages; -1, the default: as many as there are, unless the consumer asks for a limit (maximumPendingMessageLimit); the smaller one holds."),
		y.number("windows", &b.Windows).says("The same in windows (prefetch) of the consumer, in place of limit; -1, the default: limit holds."),
		word(y, "evict", evictionWords, &b.Evict).says("What goes first: oldest (the default); lowest-priority, the oldest of that; or superseded, all but the newest of each value of property, and the oldest where each has one of its own."),
		y.text("property", &b.Property).says("The property of superseded."),
	}
}

// checkBacklog says what is wrong with a bound.
func (y yamlReader) checkBacklog(part string, node ast.Node, b *Backlog) {
	switch {
	case b.Windows > maxWindows:
		y.fail(y.at(first(node), part, fmt.Sprintf("windows is more than %d", maxWindows)))
	case b.Windows >= 0 && b.Limit >= 0:
		y.fail(y.at(first(node), part, "gives limit and windows, which say the same; remove one"))
	case b.Evict == EvictSuperseded && b.Property == "":
		y.fail(y.at(first(node), part, "superseded needs a property; give one"))
	}
}
