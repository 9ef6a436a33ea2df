package redelivery

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBand(t *testing.T) { // R-POL-12, R-POL-13, R-HQ-31
	t.Parallel()
	spread := func(p Policy, factor float64) Policy {
		p.UseCollisionAvoidance, p.CollisionAvoidanceFactor = true, factor
		return p
	}
	hornetQ := HornetQPolicy()
	hornetQ.RedeliveryDelay, hornetQ.MaximumRedeliveryDelay, hornetQ.UseExponentialBackOff, hornetQ.BackOffMultiplier = time.Second, 3*time.Second, true, 2
	for name, tt := range map[string]struct {
		policy Policy
		want   [][2]int64
	}{
		"nothing is spread":                           {policyOf(1000, 1000, true, 2, -1), [][2]int64{{1000, 1000}, {2000, 2000}, {4000, 4000}}},
		"the first delay is never spread":             {spread(DefaultPolicy(), 0.15), [][2]int64{{1000, 1000}, {850, 1150}, {850, 1150}}},
		"spreads compound while delays grow":          {spread(policyOf(1000, 1000, true, 2, -1), 0.5), [][2]int64{{1000, 1000}, {1000, 3000}, {1000, 9000}, {1000, 27000}}},
		"the cap comes before the spread":             {spread(policyOf(1000, 1000, true, 2, 1500), 0.5), [][2]int64{{1000, 1000}, {750, 2250}, {750, 2250}}},
		"beyond 100% some are nothing":                {spread(policyOf(1000, 1000, true, 2, -1), 1.5), [][2]int64{{1000, 1000}, {-1000, 5000}, {-5000, 25000}}},
		"after nothing the base":                      {spread(policyOf(0, 70, true, 1.5, -1), 0.9), [][2]int64{{0, 0}, {7, 133}, {1, 378}, {0, 1077}, {0, 3068}}},
		"HornetQ spreads the first, and caps last":    {spread(hornetQ, 0.5), [][2]int64{{500, 1500}, {1000, 3000}, {2000, 3000}}},
		"a negative base is spread on the other side": {spread(policyOf(100, -50, false, 2, -1), 0.2), [][2]int64{{100, 100}, {-60, -40}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k, want := range tt.want {
				if low, high := tt.policy.Band(k + 1); low != want[0] || high != want[1] {
					t.Errorf("delay %d is from %d to %d, want %v", k+1, low, high, want)
				}
			}
		})
	}
}

func TestNoDelayIsOutsideItsBand(t *testing.T) { // R-POL-12, R-POL-13
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policyOf(rapid.Int64Range(-5, 3000).Draw(t, "initial"), rapid.Int64Range(-5, 3000).Draw(t, "delay"), rapid.Bool().Draw(t, "exponential"),
			rapid.SampledFrom([]float64{0.5, 1, 1.5, 2, 5}).Draw(t, "multiplier"), rapid.SampledFrom([]int64{-1, 0, 100, 2500}).Draw(t, "cap"))
		p.UseCollisionAvoidance = true
		p.CollisionAvoidanceFactor = rapid.SampledFrom([]float64{0, 0.15, 0.9, 1, 2.5}).Draw(t, "factor")
		if rapid.Bool().Draw(t, "HornetQ") {
			p.Arithmetic = HornetQ{}
		}
		for k := 1; k <= 7; k++ {
			low, high := p.Band(k)
			for range 10 {
				d := p.DelayMillis(k, func() float64 { return rapid.Float64Range(-0.999, 0.999).Draw(t, "jitter") })
				if d < low || d > high {
					t.Fatalf("delay %d of %v is %d, outside %d to %d", k, &p, d, low, high)
				}
			}
		}
	})
}
