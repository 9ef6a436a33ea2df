package config

import (
	"math"
	"slices"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Limits bound what producers may put into the destinations of a policy (memoryLimit,
// max-size-bytes, storeUsageHighWaterMark).
type Limits struct {
	// MaxBytes and MaxMessages are what may lie in a destination before its producers
	// are stopped; 0: no limit. Of a topic what its slowest consumer has not been handed
	// counts, and with DurableSubscriptions what durable subscriptions have.
	MaxBytes             int64
	MaxMessages          int
	DurableSubscriptions bool
	// Queues says that they hold for queues that are not temporary. ActiveMQ's do only
	// where a queue keeps what waits in memory (vmQueueCursor).
	Queues bool
	// OnFull is what becomes of a send then, and where the disk is full; empty: it
	// waits, and for the disk what StoreLimits.OnFull says.
	OnFull OnFull
	// FailAfter is how long it waits before it fails all the same; 0: without end.
	FailAfter time.Duration
	// StoreHighWaterMark is the percentage of StoreLimits' limit at which producers of
	// persistent messages are stopped; 100 is that limit itself.
	StoreHighWaterMark float64
	// WarnInterval is how often the log tells of a producer that waits; 0: never.
	WarnInterval time.Duration
}

// DefaultLimits are Limits that stop nobody, with ActiveMQ's defaults.
func DefaultLimits() *Limits {
	return &Limits{Queues: true, StoreHighWaterMark: 100, WarnInterval: 30 * time.Second}
}

// For are the limits that hold for a destination; nil: none does.
func (l *Limits) For(d message.Destination) *Limits {
	if l == nil {
		return nil
	}
	own := *l
	if d.Kind == message.Queue && !l.Queues {
		own.MaxBytes, own.MaxMessages = 0, 0
	}
	own.Queues = true
	if own.idle() {
		return nil
	}
	return &own
}

// of is a copy of the limits for destinations of one kind, without what means nothing
// there.
func (l *Limits) of(kind message.DestinationKind) *Limits {
	if l == nil {
		return nil
	}
	own := *l
	own.Queues = l.Queues || kind != message.Queue
	own.DurableSubscriptions = l.DurableSubscriptions && kind == message.Topic
	return &own
}

// idle reports whether the limits say nothing that would not hold without them.
func (l *Limits) idle() bool {
	o := *l
	o.DurableSubscriptions, o.Queues = false, true // which bound nothing by themselves
	return o == *DefaultLimits()
}

// limits reads what a policyEntry says of producer flow control.
func (w *walker) limits(e *element, p *PolicyEntry) {
	l := DefaultLimits()
	flowControl := true
	w.bool(e, "producerFlowControl", &flowControl)
	if flowControl {
		w.size(e, "memoryLimit", &l.MaxBytes)
	}
	l.Queues = e.holds("pendingQueuePolicy", "vmQueueCursor")
	l.DurableSubscriptions = e.holds("pendingDurableSubscriberPolicy", "vmDurableCursor")
	if a, ok := e.given("sendFailIfNoSpace"); ok {
		if fail, err := parseBool(a.value); err == nil {
			l.OnFull = Block
			if fail {
				l.OnFull = Fail
			}
		}
	}
	w.intBetween(e, "sendFailIfNoSpaceAfterTimeout", 0, math.MaxInt64, func(n int64) { l.FailAfter = redelivery.FromMillis(n) })
	w.intBetween(e, "storeUsageHighWaterMark", 0, 100, func(n int64) { l.StoreHighWaterMark = float64(n) })
	w.intBetween(e, "blockedProducerWarningInterval", 0, math.MaxInt64, func(n int64) { l.WarnInterval = redelivery.FromMillis(n) })
	if !l.idle() {
		p.Limits = l
	}
	for _, cursor := range [][2]string{{"pendingQueuePolicy", "vmQueueCursor"}, {"pendingDurableSubscriberPolicy", "vmDurableCursor"}} {
		if c := e.find(cursor[0]); c != nil && e.holds(cursor[0], cursor[1]) {
			p.Settings = append(p.Settings, Setting{Name: cursor[0], Value: cursor[1], Source: c.source()})
		}
	}
}

// holds reports whether a child element has a child of that name.
func (e *element) holds(child, inner string) bool {
	c := e.find(child)
	return c != nil && c.find(inner) != nil
}

// joinLimits gives the entries what systemUsage says, where they do not say it
// themselves, with the line that says it.
func (w *walker) joinLimits() {
	join := func(p *PolicyEntry) {
		if p.Limits == nil {
			return
		}
		fails := p.Limits.OnFull == "" && w.usageFails
		if fails {
			p.Limits.OnFull = Fail
		}
		waits := p.Limits.FailAfter == 0 && p.Limits.OnFull != Fail && w.cfg.Store.FailAfter != 0
		if waits {
			p.Limits.FailAfter = w.cfg.Store.FailAfter
		}
		for _, s := range w.usage {
			if s.Name == "sendFailIfNoSpace" && fails || s.Name == "sendFailIfNoSpaceAfterTimeout" && waits {
				p.Settings = append(slices.Clip(p.Settings), s) // entries for several destinations share theirs
			}
		}
	}
	for i := range w.cfg.Policies {
		join(&w.cfg.Policies[i])
	}
	if w.cfg.DefaultPolicy != nil {
		join(w.cfg.DefaultPolicy)
	}
}

// limitWords say what becomes of a producer whose message does not fit.
var limitWords = append(onFullWords[:len(onFullWords):len(onFullWords)], yamlWord[OnFull]{string(Drop), Drop})

// limits are the keys of the limits of a policy.
func (y yamlReader) limits(l *Limits) []yamlKey {
	return []yamlKey{
		y.bytes("maxBytes", &l.MaxBytes).says("What may lie in a destination before its producers are stopped, as ActiveMQ's memoryLimit; each message counts 1 kb and its content; default 0: no limit. Of a topic what its slowest consumer has not been handed counts."),
		y.count("maxMessages", 0, math.MaxInt32, &l.MaxMessages).says("The same as a number of messages; whichever is reached first; default 0: no limit."),
		y.flag("queues", &l.Queues).says("Whether maxBytes and maxMessages hold for queues that are not temporary; default true. ActiveMQ's memoryLimit does with vmQueueCursor alone."),
		y.flag("durableSubscriptions", &l.DurableSubscriptions).says("Count what a topic's durable subscriptions have, too; default false: they wait in the store and stop nobody."),
		word(y, "onFull", limitWords, &l.OnFull).says("What becomes of a send then: block, it waits; fail, it is refused; drop, it is discarded and counted. It holds for the disk, too (not drop). Absent: it waits, and for the disk store.onFull says."),
		y.duration("failAfter", 0, &l.FailAfter).says("How long a send waits before it is refused all the same; default 0s: without end."),
		y.percent("storeHighWaterMark", &l.StoreHighWaterMark).says("The percentage of store.max and store.maxPercent at which producers of persistent messages are stopped; default 100."),
		y.duration("warnInterval", 0, &l.WarnInterval).says("How often the log tells of a producer that waits; default 30s; 0s: never."),
	}
}
