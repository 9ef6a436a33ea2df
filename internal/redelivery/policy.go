package redelivery

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// Unlimited as MaximumRedeliveries means that redelivery never ends (R-POL-16).
const Unlimited = -1

// NoMaximumDelay as MaximumRedeliveryDelay means that the delay has no cap. It
// is exactly minus one millisecond, ActiveMQ's -1; every other value, 0 and
// negative ones included, is a real cap (R-POL-11, E19).
const NoMaximumDelay = -time.Millisecond

// A Policy says how often, and after which delay, a failed message is delivered
// again: ActiveMQ's RedeliveryPolicy. Nothing is validated, as in ActiveMQ
// (R-POL-04): a delay of 0 or less means at once. Delays are whole milliseconds;
// what is finer is cut off. A Policy is not changed once it is in use.
//
// The zero value redelivers never; DefaultPolicy is where to start from.
type Policy struct {
	Destination              message.Destination // the key it is kept under, shown by String; zero: none
	MaximumRedeliveries      int                 // after the first delivery; Unlimited: no end; default 6
	InitialRedeliveryDelay   time.Duration       // before redelivery 1, never capped nor spread; default 1 s
	RedeliveryDelay          time.Duration       // before the later ones, and the base of growth after a delay of 0; default 1 s
	MaximumRedeliveryDelay   time.Duration       // cap on exponential growth; default NoMaximumDelay
	UseExponentialBackOff    bool                // multiply the delay before; default false
	BackOffMultiplier        float64             // used only above 1; default 5
	UseCollisionAvoidance    bool                // spread the delay by chance; default false
	CollisionAvoidanceFactor float64             // the spread, as a part of the delay; default 0.15
	PreDispatchCheck         bool                // the client's check before delivery (R-CLIENT-30); default true; not used by the broker
	Arithmetic               Arithmetic          // how delays are reckoned; nil: ActiveMQ
	Name                     string              // what people call the policy; may be empty
	Source                   string              // where it was written, "file:line"; may be empty
}

// DefaultPolicy returns ActiveMQ's defaults (E1).
func DefaultPolicy() Policy {
	return Policy{
		MaximumRedeliveries:      6,
		InitialRedeliveryDelay:   time.Second,
		RedeliveryDelay:          time.Second,
		MaximumRedeliveryDelay:   NoMaximumDelay,
		BackOffMultiplier:        5,
		CollisionAvoidanceFactor: 0.15,
		PreDispatchCheck:         true,
	}
}

// Delay returns how long a message waits before redelivery number k (1 is the
// first; less counts as 1). It may be negative, which means at once, and ends at
// the longest Duration. jitter is uniform in (-1, 1); nil leaves the delay
// unspread.
func (p *Policy) Delay(k int, jitter func() float64) time.Duration {
	return FromMillis(p.DelayMillis(k, jitter))
}

// DelayMillis is Delay in milliseconds, which end at the largest int64 as in
// ActiveMQ (R-POL-11).
func (p *Policy) DelayMillis(k int, jitter func() float64) int64 {
	if p.Arithmetic == nil {
		return ActiveMQ{}.Delay(p, k, jitter)
	}
	return p.Arithmetic.Delay(p, k, jitter)
}

// Exhausted reports whether a message that failed so many times is not to be
// delivered again (R-POL-16): a limit of N allows N+1 deliveries, and a negative
// limit other than Unlimited is like 0.
func (p *Policy) Exhausted(failures int) bool {
	return p.MaximumRedeliveries != Unlimited && failures > max(p.MaximumRedeliveries, 0)
}

// CollisionAvoidancePercent gives CollisionAvoidanceFactor as the whole percent
// that ActiveMQ's property of this name shows (R-POL-02).
func (p *Policy) CollisionAvoidancePercent() int {
	return int(math.Round(p.CollisionAvoidanceFactor * 100))
}

// SetCollisionAvoidancePercent sets CollisionAvoidanceFactor as ActiveMQ's
// property collisionAvoidancePercent does (R-POL-01).
func (p *Policy) SetCollisionAvoidancePercent(percent int) {
	p.CollisionAvoidanceFactor = float64(percent) * 0.01
}

// String renders the policy exactly as a Java client does in a poison cause
// (R-CLIENT-49); people search for it.
func (p *Policy) String() string {
	var b strings.Builder
	b.WriteString("RedeliveryPolicy {destination = ")
	if p.Destination.IsZero() {
		b.WriteString("null")
	} else {
		b.WriteString(p.Destination.String())
	}
	for _, f := range []struct{ name, value string }{
		{"collisionAvoidanceFactor", javaDouble(p.CollisionAvoidanceFactor)},
		{"maximumRedeliveries", strconv.Itoa(p.MaximumRedeliveries)},
		{"maximumRedeliveryDelay", strconv.FormatInt(millis(p.MaximumRedeliveryDelay), 10)},
		{"initialRedeliveryDelay", strconv.FormatInt(millis(p.InitialRedeliveryDelay), 10)},
		{"useCollisionAvoidance", strconv.FormatBool(p.UseCollisionAvoidance)},
		{"useExponentialBackOff", strconv.FormatBool(p.UseExponentialBackOff)},
		{"backOffMultiplier", javaDouble(p.BackOffMultiplier)},
		{"redeliveryDelay", strconv.FormatInt(millis(p.RedeliveryDelay), 10)},
		{"preDispatchCheck", strconv.FormatBool(p.PreDispatchCheck)},
	} {
		b.WriteString(", " + f.name + " = " + f.value)
	}
	b.WriteByte('}')
	return b.String()
}

// javaDouble writes x as Java's Double.toString does: plain from 0.001 to below
// ten million and with an exponent elsewhere, always with a fraction.
func javaDouble(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	if a := math.Abs(x); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(x, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent) // FormatFloat wrote it: cannot fail
	return mantissa + "E" + strconv.Itoa(n)
}

// millis gives d in whole milliseconds, cut toward zero.
func millis(d time.Duration) int64 { return int64(d / time.Millisecond) }

// FromMillis gives milliseconds as a Duration, which ends at about 292 years
// either way. A configuration's longer delays become that.
func FromMillis(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	switch {
	case ms > most:
		return math.MaxInt64
	case ms < -most:
		return math.MinInt64
	}
	return time.Duration(ms) * time.Millisecond
}
