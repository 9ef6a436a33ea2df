package policy

import (
	"math"

	"github.com/nixiemq/nixie/internal/redelivery"
)

// MaxSteps bounds the deliveries that are reckoned one by one. Beyond it the last
// delay stands for all that follow, which every policy reaches long before, save
// one whose delays grow by less than a hundredth.
const MaxSteps = 1000

// ShownSteps bounds the steps that an answer lists.
const ShownSteps = 100

// Who brings a message to its application.
const (
	ByFirst  = "first"  // the first delivery
	ByClient = "client" // its client, which holds it meanwhile
	ByBroker = "broker" // the broker, to whichever consumer is next
)

// A Step is one delivery of a message that always fails, at once.
type Step struct {
	// Delivery counts from 1.
	Delivery int    `json:"delivery"`
	By       string `json:"by"`
	// DelayMillis is the wait before it, which chance moves between LowMillis and
	// HighMillis; where nothing is left to chance the three are equal.
	DelayMillis int64 `json:"delayMillis"`
	LowMillis   int64 `json:"lowMillis"`
	HighMillis  int64 `json:"highMillis"`
	// AtMillis is when it takes place, after the first delivery; chance moves it
	// between EarliestMillis and LatestMillis.
	AtMillis       int64 `json:"atMillis"`
	EarliestMillis int64 `json:"earliestMillis"`
	LatestMillis   int64 `json:"latestMillis"`
}

// A Schedule is all deliveries of a message that always fails.
type Schedule struct {
	// Deliveries is how many there are; -1: there is no end.
	Deliveries int `json:"deliveries"`
	// EndMillis is when the last one takes place, and chance moves it; 0 where
	// there is no end.
	EndMillis      int64 `json:"endMillis"`
	EarliestMillis int64 `json:"earliestMillis"`
	LatestMillis   int64 `json:"latestMillis"`
	// Steps are the first ShownSteps deliveries.
	Steps []Step `json:"steps"`
	// LoopMillis is, where there is no end, the delay that it comes to in the end.
	LoopMillis int64 `json:"loopMillis,omitempty"`
}

// scheduleOf makes the schedule of a message that always fails, for a client and
// the broker's policy (nil: none) together.
//
// After failure n the client redelivers by itself while its own policy allows n;
// then it gives the message up, and the broker's policy decides by the same n.
// That is why the total is the larger of the two limits plus 1, and not their
// product (C03).
func scheduleOf(c Client, p *redelivery.Policy) Schedule {
	s := Schedule{Deliveries: deliveries(c, p)}
	count := s.Deliveries
	if count < 0 || count > MaxSteps {
		count = MaxSteps
	}
	step := Step{Delivery: 1, By: ByFirst}
	for n := 1; ; n++ {
		if n <= ShownSteps {
			s.Steps = append(s.Steps, step)
		}
		if n == count {
			break
		}
		step = next(step, n, c, p)
	}
	if s.Deliveries < 0 {
		s.LoopMillis = step.DelayMillis
		return s
	}
	rest := int64(s.Deliveries - count)
	s.EndMillis = plus(step.AtMillis, times(step.DelayMillis, rest))
	s.EarliestMillis = plus(step.EarliestMillis, times(step.LowMillis, rest))
	s.LatestMillis = plus(step.LatestMillis, times(step.HighMillis, rest))
	return s
}

// deliveries is how often a message that always fails is delivered; -1: there is
// no end.
func deliveries(c Client, p *redelivery.Policy) int {
	client, broker := 0, 0
	if !c.None {
		client = limit(&c.Policy)
	} else if p == nil {
		return redelivery.Unlimited // whoever has no limit is given the message again at once
	}
	if p != nil {
		broker = limit(p)
	}
	if client == redelivery.Unlimited || broker == redelivery.Unlimited {
		return redelivery.Unlimited
	}
	return min(max(client, broker), math.MaxInt32-1) + 1
}

// limit is the number of redeliveries that p allows.
func limit(p *redelivery.Policy) int {
	if p.MaximumRedeliveries == redelivery.Unlimited {
		return redelivery.Unlimited
	}
	return max(p.MaximumRedeliveries, 0)
}

// next is the step after failure number n.
func next(before Step, n int, c Client, p *redelivery.Policy) Step {
	by, policy := ByBroker, p
	if !c.None && !c.Policy.Exhausted(n) {
		by, policy = ByClient, &c.Policy
	}
	s := Step{Delivery: n + 1, By: by}
	if policy != nil {
		s.DelayMillis = max(0, policy.DelayMillis(n, nil))
		s.LowMillis, s.HighMillis = band(policy, n)
	}
	s.AtMillis = plus(before.AtMillis, s.DelayMillis)
	s.EarliestMillis = plus(before.EarliestMillis, s.LowMillis)
	s.LatestMillis = plus(before.LatestMillis, s.HighMillis)
	return s
}

// band is the policy's, with nothing below 0: that is at once.
func band(p *redelivery.Policy, k int) (low, high int64) {
	low, high = p.Band(k)
	return max(0, low), max(0, high)
}

// plus adds and ends at the largest int64. Neither is negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// times multiplies and ends at the largest int64. Neither is negative.
func times(a, n int64) int64 {
	if n != 0 && a > math.MaxInt64/n {
		return math.MaxInt64
	}
	return a * n
}
