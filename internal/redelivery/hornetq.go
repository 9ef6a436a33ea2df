package redelivery

import (
	"math"
	"time"
)

// HornetQ is the arithmetic of HornetQ 2 and ActiveMQ Artemis (R-HQ-29): every
// delay is reckoned from RedeliveryDelay and the number of failures alone, so
// that no spread adds up. Numbers are cut toward zero; the ends of int64 stand
// for what lies beyond them, where the products wrap round to "at once" (R-HQ-35,
// R-HQ-153).
//
// It reads RedeliveryDelay (redelivery-delay; 0 or less: no delay),
// MaximumRedeliveryDelay (max-redelivery-delay; a cap whatever its value but
// NoMaximumDelay, which no element of a file stands for: with 0 or less every
// redelivery is at once), BackOffMultiplier where
// UseExponentialBackOff is set (redelivery-delay-multiplier; below 1 it shrinks),
// and CollisionAvoidanceFactor where UseCollisionAvoidance is set
// (redelivery-collision-avoidance-factor, Artemis alone).
// InitialRedeliveryDelay has no part: there is no first delay of its own.
type HornetQ struct{}

// Delay implements Arithmetic. The cap comes after the spread, so that no delay
// is above it (R-HQ-31).
func (HornetQ) Delay(p *Policy, k int, jitter func() float64) int64 {
	d := millis(p.RedeliveryDelay)
	if d <= 0 {
		return 0 // R-HQ-28
	}
	if p.UseExponentialBackOff {
		d = truncate(float64(d) * math.Pow(p.BackOffMultiplier, float64(max(k-1, 0))))
	}
	if p.UseCollisionAvoidance && p.CollisionAvoidanceFactor > 0 && jitter != nil {
		d = truncate(float64(d) + float64(d)*p.CollisionAvoidanceFactor*jitter())
	}
	if p.MaximumRedeliveryDelay == NoMaximumDelay {
		return d
	}
	return min(d, millis(p.MaximumRedeliveryDelay))
}

// DefaultMaxDeliveryAttempts is max-delivery-attempts where nothing is set (spec
// section 2.1).
const DefaultMaxDeliveryAttempts = 10

// DerivedMaximumDelay is max-redelivery-delay where it is not set: ten times
// redelivery-delay (R-HQ-21), or as HornetQ 2.3 had it the delay itself, which
// leaves the multiplier without effect (R-HQ-32).
func DerivedMaximumDelay(delay time.Duration, as23 bool) time.Duration {
	if as23 {
		return delay
	}
	if delay > math.MaxInt64/10 {
		return math.MaxInt64
	}
	return 10 * delay
}

// HornetQPolicy returns the policy of an address-setting where nothing is set:
// ten deliveries without a delay.
func HornetQPolicy() Policy {
	return Policy{
		MaximumRedeliveries: MaximumRedeliveriesOf(DefaultMaxDeliveryAttempts),
		BackOffMultiplier:   1,
		PreDispatchCheck:    true,
		Arithmetic:          HornetQ{},
	}
}

// MaximumRedeliveriesOf turns max-delivery-attempts, which counts deliveries,
// into MaximumRedeliveries, which counts what comes after the first (R-HQ-40). 0
// and every negative value mean that redelivery never ends (R-HQ-41).
func MaximumRedeliveriesOf(attempts int) int {
	if attempts <= 0 {
		return Unlimited
	}
	return attempts - 1
}
