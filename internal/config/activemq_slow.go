package config

import (
	"fmt"
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/redelivery"
)

// SlowConsumers says how slow the consumers of a destination may be; then they are
// closed (ActiveMQ's slowConsumerStrategy, R-BRK-40 and R-BRK-41).
type SlowConsumers struct {
	// MaxDuration is how long a consumer may be slow; 0: for ever.
	MaxDuration time.Duration
	// MaxCount is how often it may come to be slow; 0: any number. It is counted anew
	// when it was well for CheckPeriod.
	MaxCount    int
	CheckPeriod time.Duration
	// MaxTimeSinceLastAck makes slow what has a message and has acknowledged nothing for
	// so long, and nothing else; 0: as its window says. See Unacked.
	MaxTimeSinceLastAck time.Duration
	// AbortConnection ends its whole connection.
	AbortConnection bool
	// MinRate is how many messages a second it has to acknowledge in each CheckPeriod
	// at whose beginning there were enough for it; 0: any number (slow-consumer-threshold
	// of HornetQ and Artemis). Notify only tells of one that does not.
	MinRate float64
	Notify  bool
}

// Defaults of ActiveMQ's strategies.
const (
	slowDuration   = 30 * time.Second
	slowCheck      = 30 * time.Second
	slowUnackedFor = 30 * time.Second
)

func freshSlowConsumers() *SlowConsumers { return &SlowConsumers{CheckPeriod: slowCheck} }

// slowConsumerPart is what becomes of slow consumers.
var slowConsumerPart = &part{name: "slowConsumerStrategy", fate: accepted, children: []*part{
	{name: "abortSlowAckConsumerStrategy", fate: honoured, attrs: append([]attr{
		{"maxTimeSinceLastAck", integer, "", honoured, ""},
		{"ignoreIdleConsumers", boolean, "true", leftOut, "a consumer that has no message is never slow"}}, slowAttrs...)},
	{name: "abortSlowConsumerStrategy", fate: honoured, attrs: slowAttrs},
	{name: "bean", fate: refused, why: "a strategy of a class of one's own is Java code and is not run; slow consumers would keep their messages; use an abortSlowConsumerStrategy or an abortSlowAckConsumerStrategy", opaque: true},
}}

// slowAttrs are what both strategies have.
var slowAttrs = []attr{
	{"maxSlowCount", integer, "", honoured, ""},
	{"maxSlowDuration", integer, "", honoured, ""},
	{"checkPeriod", integer, "", honoured, ""},
	{"abortConnection", boolean, "", honoured, ""},
	{"ignoreNetworkConsumers", boolean, "true", leftOut, whyNoNetworks},
	{"name", text, "", accepted, ""},
}

// slowConsumers reads the strategy of a policyEntry.
func (w *walker) slowConsumers(entry *element, p *PolicyEntry) {
	e := w.onlyStrategy(entry, "slowConsumerStrategy", p)
	if e == nil || e.name == "bean" || slowConsumerPart.childNamed(e.name) == nil {
		return // the walk has named it
	}
	p.Settings = append(p.Settings, settingsOf(e, slowConsumerPart.childNamed(e.name).attrs)...)
	s := freshSlowConsumers()
	duration, count := slowDuration, int64(-1)
	w.intBetween(e, "maxSlowDuration", math.MinInt32, math.MaxInt64, func(n int64) { duration = redelivery.FromMillis(max(n, 0)) })
	w.intBetween(e, "maxSlowCount", math.MinInt32, math.MaxInt32, func(n int64) { count = n })
	w.intBetween(e, "checkPeriod", 1, math.MaxInt64, func(n int64) { s.CheckPeriod = redelivery.FromMillis(n) })
	w.bool(e, "abortConnection", &s.AbortConnection)
	if e.name == "abortSlowConsumerStrategy" {
		s.MaxDuration, s.MaxCount = duration, int(max(count, 0))
		if s.MaxDuration == 0 && s.MaxCount == 0 {
			w.warn(e.at("has neither a maxSlowDuration nor a maxSlowCount, so no consumer is ever closed"))
			return
		}
		p.SlowConsumers = s
		return
	}
	unacked := slowUnackedFor
	w.intBetween(e, "maxTimeSinceLastAck", math.MinInt32, math.MaxInt64, func(n int64) {
		if unacked = redelivery.FromMillis(n); n == 0 {
			w.fail(e.at("maxTimeSinceLastAck=\"0\" would close every consumer that has a message; give a time, or -1 for no limit"))
		}
	})
	s.MaxDuration, s.MaxCount, s.MaxTimeSinceLastAck = duration, int(max(count, 0)), unacked
	if unacked < 0 || s.MaxDuration == 0 && s.MaxCount == 0 {
		w.warn(e.at(fmt.Sprintf("has no limit (maxTimeSinceLastAck %v, maxSlowDuration %v, maxSlowCount %d), so no consumer is ever closed", unacked, duration, count)))
		return
	}
	p.SlowConsumers = s
}

// Unacked is how long a consumer may have a message and acknowledge nothing: 0 is for
// ever. MaxDuration and MaxCount lengthen it as in ActiveMQ's
// abortSlowAckConsumerStrategy, where the first check that finds a consumer slow counts
// as one period and one time, and each further one as another.
func (s *SlowConsumers) Unacked() time.Duration {
	if s.MaxTimeSinceLastAck == 0 {
		return 0
	}
	checks := int64(math.MaxInt64)
	if s.MaxDuration > 0 {
		checks = int64((s.MaxDuration - 1) / s.CheckPeriod)
	}
	if s.MaxCount > 0 {
		checks = min(checks, int64(s.MaxCount)-1)
	}
	if checks == math.MaxInt64 { // no limit is given, and none lengthens it
		checks = 0
	}
	most := (math.MaxInt64 - int64(s.MaxTimeSinceLastAck)) / int64(s.CheckPeriod)
	return s.MaxTimeSinceLastAck + time.Duration(min(checks, most))*s.CheckPeriod
}

// slowConsumers are the keys of the limits.
func (y yamlReader) slowConsumers(s *SlowConsumers) []yamlKey {
	return []yamlKey{
		y.duration("maxSlowDuration", 0, &s.MaxDuration).says("How long a consumer may be slow; 0s, the default: for ever. An acknowledgement of a queue's or durable subscription's consumer begins the time anew."),
		y.count("maxSlowCount", 0, math.MaxInt32, &s.MaxCount).says("How often a consumer may come to be slow; 0, the default: any number."),
		y.duration("checkPeriod", time.Millisecond, &s.CheckPeriod).says("How long it must be well for maxSlowCount to begin anew, and the time over which minRate is measured; default 30s."),
		y.duration("maxTimeSinceLastAck", 0, &s.MaxTimeSinceLastAck).says("Take a consumer for slow when it has a message and has acknowledged nothing for so long, and not for its window; 0s, the default: for its window. Longer than the longest work on a message, and than the clients' longest redelivery delay. maxSlowDuration and maxSlowCount lengthen it, by whole checkPeriods less one."),
		y.flag("abortConnection", &s.AbortConnection).says("End the consumer's whole connection instead of closing the consumer; default false."),
		y.number("minRate", &s.MinRate).says("How many messages a second a consumer has to acknowledge while there are enough for it, as slow-consumer-threshold of HornetQ and Artemis; 0, the default: any number."),
		y.flag("notify", &s.Notify).says("Only tell of consumers below minRate, by the slow consumer advisory; default false: they are closed, too."),
	}
}
