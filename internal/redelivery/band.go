package redelivery

import "math"

// Band returns the least and the largest delay before redelivery number k, in
// milliseconds, that chance can make: the bounds of DelayMillis over all jitters.
// Where p spreads nothing, both are DelayMillis itself.
//
// While delays grow the spreads of all steps compound (R-POL-13), and a delay that
// chance brings to nothing begins again at the base (R-POL-10), which may be more
// than it was. So the range of each step follows from the range of the step before,
// not from the ends alone.
func (p *Policy) Band(k int) (low, high int64) {
	end := func(jitter float64) int64 { return p.DelayMillis(k, func() float64 { return jitter }) }
	activeMQ := p.Arithmetic == nil || p.Arithmetic == ActiveMQ{}
	if k <= 2 || !activeMQ || !p.grows() || !p.UseCollisionAvoidance {
		a, b := end(-1), end(1)
		return min(a, b), max(a, b)
	}
	r := emptyReach()
	first := millis(p.InitialRedeliveryDelay)
	r.add(first, first)
	for range min(k, maxChain) - 1 {
		next := p.reachAfter(r)
		if next == r {
			break // it stays so for ever
		}
		r = next
	}
	return r.low, r.high
}

// A reach is what a delay can be: from low to high, of which those above 0 lie from
// grows to high.
type reach struct {
	low, high int64
	grows     int64 // the least above 0
	starts    bool  // some are 0 or less, after which the base follows
}

func emptyReach() reach {
	return reach{low: math.MaxInt64, high: math.MinInt64, grows: math.MaxInt64}
}

// add puts the delays from a to b to the others.
func (r *reach) add(a, b int64) {
	a, b = min(a, b), max(a, b)
	r.low, r.high = min(r.low, a), max(r.high, b)
	r.starts = r.starts || a <= 0
	if b > 0 {
		r.grows = min(r.grows, max(a, 1))
	}
}

// reachAfter is what can follow on what was.
func (p *Policy) reachAfter(was reach) reach {
	r := emptyReach()
	spread := func(n int64) {
		r.add(truncate(float64(n)-float64(n)*p.CollisionAvoidanceFactor), truncate(float64(n)+float64(n)*p.CollisionAvoidanceFactor))
	}
	if was.starts {
		spread(step(p, 0, false, nil))
	}
	if was.high > 0 {
		spread(step(p, was.grows, false, nil))
		spread(step(p, was.high, false, nil))
	}
	return r
}
