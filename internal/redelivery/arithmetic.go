package redelivery

import "math"

// An Arithmetic reckons the delays of a policy. Each dialect of configuration
// has its own, and keeps it where they differ.
type Arithmetic interface {
	// Delay returns the milliseconds before redelivery number k of p (1 is the
	// first; less counts as 1); 0 or less means at once. jitter is uniform in
	// (-1, 1), is called at most once for each redelivery up to k, and may be nil
	// for no spread. The result depends on nothing else.
	Delay(p *Policy, k int, jitter func() float64) int64
}

// ActiveMQ is the arithmetic of ActiveMQ Classic's RedeliveryPolicy, class and
// method getNextRedeliveryDelay (R-POL-10 to R-POL-13): whole milliseconds, each
// product cut toward zero, the ends of int64 for what lies beyond them.
type ActiveMQ struct{}

// maxChain bounds the steps that one delay is reckoned with. Only an endless
// policy comes near it; after that many redeliveries the delay stays what it is.
const maxChain = 100_000

// Delay implements Arithmetic: d(1) is InitialRedeliveryDelay exactly and d(k)
// follows from d(k-1). The chain is walked anew each time, so that with
// exponential growth the spreads of all steps compound (R-POL-13).
func (ActiveMQ) Delay(p *Policy, k int, jitter func() float64) int64 {
	d := millis(p.InitialRedeliveryDelay)
	if k <= 1 {
		return d
	}
	spread := p.UseCollisionAvoidance && jitter != nil
	if !p.grows() { // only the last step matters
		return step(p, 0, spread, jitter)
	}
	for range min(k, maxChain) - 1 {
		n := step(p, d, spread, jitter)
		if n == d && !spread {
			break // it stays so for ever
		}
		d = n
	}
	return d
}

// grows reports whether delays are multiplied at all (R-POL-11, E15).
func (p *Policy) grows() bool { return p.UseExponentialBackOff && p.BackOffMultiplier > 1 }

// step gives the delay after a delay of prev (R-POL-10 to R-POL-12). The cap
// comes before the spread, so that capped messages still part.
func step(p *Policy, prev int64, spread bool, jitter func() float64) int64 {
	base := millis(p.RedeliveryDelay)
	n := base
	if prev > 0 && p.grows() {
		n = truncate(float64(prev) * p.BackOffMultiplier)
		if limit := millis(p.MaximumRedeliveryDelay); limit != millis(NoMaximumDelay) && n > limit {
			n = max(limit, base)
		}
	}
	if spread {
		n = truncate(float64(n) + float64(n)*p.CollisionAvoidanceFactor*jitter())
	}
	return n
}

// truncate cuts x toward zero as Java's cast to long does: what is too large
// becomes the end of the range, and what is no number 0.
func truncate(x float64) int64 {
	const end = 1 << 63 // 2 to the 63rd is a float64; the largest int64 is not
	switch {
	case x != x:
		return 0
	case x >= end:
		return math.MaxInt64
	case x < -end:
		return math.MinInt64
	}
	return int64(x)
}
