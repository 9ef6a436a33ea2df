package config

import (
	"math"

	"github.com/nixiemq/nixie/internal/redelivery"
)

const (
	whyNotClosed = "the consumer is not closed: what it hangs on is taken from it, and it gets nothing more until it acknowledges"
	whyOneClock  = "the time of each message runs by itself"
)

// slowConsumerPart is what becomes of slow consumers (R-BRK-40, R-BRK-41). Who does
// not acknowledge has a time limit of ours, which does the same for the messages;
// who is merely slower than its producers has nothing wrong with it.
var slowConsumerPart = &part{name: "slowConsumerStrategy", fate: accepted, children: []*part{
	{name: "abortSlowAckConsumerStrategy", fate: honoured, attrs: []attr{
		{"maxTimeSinceLastAck", integer, "", honoured, ""},
		{"ignoreIdleConsumers", boolean, "true", leftOut, "a consumer that has no message is never slow"},
		{"ignoreNetworkConsumers", boolean, "true", leftOut, whyNoNetworks},
		{"abortConnection", boolean, "false", leftOut, whyNotClosed},
		{"checkPeriod", integer, "30000", leftOut, "the limit is kept to the millisecond"},
		{"maxSlowCount", integer, "-1", leftOut, whyOneClock},
		{"maxSlowDuration", integer, "30000", leftOut, whyOneClock},
		{"name", text, "", accepted, ""},
	}},
	{name: "abortSlowConsumerStrategy", fate: refused, why: "consumers that are slower than their producers would keep their messages instead of being closed; remove it, and set a prefetch that such a consumer can handle, or use abortSlowAckConsumerStrategy for those that hang", opaque: true},
	{name: "bean", fate: refused, why: "a strategy of a class of one's own is Java code and is not run; slow consumers would keep their messages", opaque: true},
}}

// slowConsumers reads the time limit for acknowledgements of a policyEntry.
func (w *walker) slowConsumers(entry *element, p *PolicyEntry) {
	holder := entry.find("slowConsumerStrategy")
	if holder == nil {
		return
	}
	for i, e := range holder.children {
		if i > 0 {
			w.fail(e.at("a policyEntry has one strategy for slow consumers; remove all but one"))
		}
		if e.name != "abortSlowAckConsumerStrategy" {
			continue // the walk has named it
		}
		millis := int64(30_000)
		w.intBetween(e, "maxTimeSinceLastAck", 1, math.MaxInt64, func(n int64) { millis = n })
		p.AckTimeout = redelivery.FromMillis(millis)
		p.Settings = append(p.Settings, Setting{Name: "slowConsumerStrategy", Value: e.name, Source: e.source()})
		p.Settings = append(p.Settings, settingsOf(e, slowConsumerPart.childNamed(e.name).attrs)...)
	}
}
