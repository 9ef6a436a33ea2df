package redelivery

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// policyOf makes a policy from a row of the worked examples, in milliseconds.
func policyOf(initial, delay int64, exponential bool, multiplier float64, most int64) Policy {
	p := DefaultPolicy()
	p.InitialRedeliveryDelay = FromMillis(initial)
	p.RedeliveryDelay = FromMillis(delay)
	p.MaximumRedeliveryDelay = FromMillis(most)
	p.UseExponentialBackOff = exponential
	p.BackOffMultiplier = multiplier
	return p
}

// first gives the first n delays of p in milliseconds.
func first(p Policy, n int, jitter func() float64) []int64 {
	delays := make([]int64, n)
	for i := range delays {
		delays[i] = p.DelayMillis(i+1, jitter)
	}
	return delays
}

func TestWorkedExamples(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy Policy
		want   []int64
	}{
		"E1 all defaults (R-POL-10)":                            {DefaultPolicy(), []int64{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}},
		"E2 the first delay is its own (R-POL-13)":              {policyOf(500, 1000, false, 5, -1), []int64{500, 1000, 1000, 1000, 1000, 1000, 1000, 1000}},
		"E3 at once at first (R-POL-04)":                        {policyOf(0, 1000, false, 5, -1), []int64{0, 1000, 1000, 1000, 1000, 1000, 1000, 1000}},
		"E4 at once, then half a second":                        {policyOf(0, 500, false, 5, -1), []int64{0, 500, 500, 500, 500, 500, 500, 500}},
		"E5 seed plugin default entry":                          {policyOf(5000, 10000, false, 5, -1), []int64{5000, 10000, 10000, 10000, 10000, 10000, 10000, 10000}},
		"E6 seed SpecialQueue (R-POL-05)":                       {policyOf(1000, 10000, false, 5, -1), []int64{1000, 10000, 10000, 10000, 10000, 10000, 10000, 10000}},
		"E7 exponential with the default multiplier (R-POL-11)": {policyOf(1000, 1000, true, 5, -1), []int64{1000, 5000, 25000, 125000, 625000, 3125000, 15625000, 78125000}},
		"E8 doubling":                                               {policyOf(1000, 1000, true, 2, -1), []int64{1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000}},
		"E9 doubling from the first delay":                          {policyOf(500, 1000, true, 2, -1), []int64{500, 1000, 2000, 4000, 8000, 16000, 32000, 64000}},
		"E10 after 0 growth starts at the base (R-POL-10)":          {policyOf(0, 500, true, 2, -1), []int64{0, 500, 1000, 2000, 4000, 8000, 16000, 32000}},
		"E11 capped (R-POL-11)":                                     {policyOf(100, 50, true, 3, 400), []int64{100, 300, 400, 400, 400, 400, 400, 400}},
		"E12 capped late":                                           {policyOf(10, 50, true, 2, 1000), []int64{10, 20, 40, 80, 160, 320, 640, 1000}},
		"E13 a cap below the base gives way to it (R-POL-11)":       {policyOf(500, 2000, true, 2, 1000), []int64{500, 1000, 2000, 2000, 2000, 2000, 2000, 2000}},
		"E14 the first delay is never capped (R-POL-13, R-EDGE-22)": {policyOf(30000, 50, true, 2, 1000), []int64{30000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}},
		"E15 multiplier 1 does not grow (R-POL-11)":                 {policyOf(500, 50, true, 1, 200), []int64{500, 50, 50, 50, 50, 50, 50, 50}},
		"E16 fractions are cut at each step (R-POL-03)":             {policyOf(1000, 1000, true, 1.5, -1), []int64{1000, 1500, 2250, 3375, 5062, 7593, 11389, 17083}},
		"E17 the cap is for growth only (R-POL-11, R-EDGE-22)":      {policyOf(100, 300, false, 5, 200), []int64{100, 300, 300, 300, 300, 300, 300, 300}},
		"E18 nothing grows from 0":                                  {policyOf(0, 0, true, 2, -1), []int64{0, 0, 0, 0, 0, 0, 0, 0}},
		"E19 a cap of 0 is a cap":                                   {policyOf(1000, 700, true, 2, 0), []int64{1000, 700, 700, 700, 700, 700, 700, 700}},
		"E20 a negative base counts only as a base":                 {policyOf(42, -100, true, 2, -1), []int64{42, 84, 168, 336, 672, 1344, 2688, 5376}},
		"R-POL-03 small delays with small multipliers stay":         {policyOf(1, 1, true, 1.4, -1), []int64{1, 1, 1}},
		"R-POL-04 a negative first delay, then the base":            {policyOf(-5, 700, true, 2, -1), []int64{-5, 700, 1400}},
		"R-POL-04 negative all along":                               {policyOf(-5, -7, true, 2, -1), []int64{-5, -7, -7}},
		"R-POL-11 a negative cap other than -1 is a cap":            {policyOf(100, 50, true, 2, -2), []int64{100, 50, 50}},
		"R-POL-11 a multiplier below 1 does not shrink":             {policyOf(1000, 300, true, 0.5, -1), []int64{1000, 300, 300}},
		"R-POL-11 a multiplier that is no number does not grow":     {policyOf(1000, 300, true, math.NaN(), -1), []int64{1000, 300, 300}},
		"R-POL-11 an endless multiplier ends at the largest int":    {policyOf(1000, 300, true, math.Inf(1), -1), []int64{1000, math.MaxInt64, math.MaxInt64}},
		"R-POL-13 exponential off, later delays do not add up":      {policyOf(100, 200, false, 3, -1), []int64{100, 200, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, first(tt.policy, len(tt.want), nil)); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCollisionAvoidanceSpreadsWithinItsFactor(t *testing.T) { // E21, R-POL-12
	t.Parallel()
	p := DefaultPolicy()
	p.UseCollisionAvoidance = true
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 20).Draw(t, "k")
		u := rapid.Float64Range(-0.999999, 0.999999).Draw(t, "jitter")
		got := p.DelayMillis(k, func() float64 { return u })
		switch {
		case k == 1 && got != 1000:
			t.Fatalf("d(1) = %d, want 1000: it is never spread (R-POL-13)", got)
		case k > 1 && (got < 850 || got > 1150):
			t.Fatalf("d(%d) = %d, want it within (850, 1150)", k, got)
		}
	})
}

func TestSpreadComesAfterTheCap(t *testing.T) { // R-POL-12, R-EDGE-22
	t.Parallel()
	p := policyOf(1000, 1000, true, 2, 1500)
	p.UseCollisionAvoidance = true
	got := first(p, 3, func() float64 { return 0.9 })
	if want := []int64{1000, 1702, 1702}; !cmp.Equal(want, got) { // 1500 + 1500 * 0.15 * 0.9 = 1702.5
		t.Errorf("delays %v, want %v", got, want)
	}
}

func TestSpreadAbove100PercentMayGoNegative(t *testing.T) { // R-POL-12
	t.Parallel()
	p := DefaultPolicy()
	p.UseCollisionAvoidance = true
	p.SetCollisionAvoidancePercent(300)
	if got := p.DelayMillis(2, func() float64 { return -0.5 }); got != -500 {
		t.Errorf("d(2) = %d, want -500", got)
	}
}

func TestDrawsOfChance(t *testing.T) { // R-POL-13
	t.Parallel()
	for name, tt := range map[string]struct {
		exponential bool
		k, want     int
	}{
		"the first delay draws nothing":                  {true, 1, 0},
		"exponential: each step draws":                   {true, 5, 4},
		"not exponential: only the last step would tell": {false, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := policyOf(1000, 1000, tt.exponential, 2, -1)
			p.UseCollisionAvoidance = true
			draws := 0
			p.DelayMillis(tt.k, func() float64 { draws++; return 0 })
			if draws != tt.want {
				t.Errorf("%d draws, want %d", draws, tt.want)
			}
		})
	}
}

func TestSpreadsCompoundWhileGrowing(t *testing.T) { // R-POL-13
	t.Parallel()
	p := policyOf(1000, 1000, true, 2, -1)
	p.UseCollisionAvoidance, p.CollisionAvoidanceFactor = true, 0.5
	got := first(p, 4, func() float64 { return 0.5 })
	if want := []int64{1000, 2500, 6250, 15625}; !cmp.Equal(want, got) {
		t.Errorf("delays %v, want %v", got, want)
	}
}

func TestDelaySaturates(t *testing.T) { // R-POL-11
	t.Parallel()
	p := policyOf(1000, 1000, true, 5, -1)
	if got := p.DelayMillis(1000, nil); got != math.MaxInt64 {
		t.Errorf("d(1000) = %d ms, want the largest int64", got)
	}
	if got := p.Delay(1000, nil); got != math.MaxInt64 {
		t.Errorf("d(1000) = %v, want the longest duration", got)
	}
	p.UseCollisionAvoidance = true
	if got := p.DelayMillis(1000, func() float64 { return 0.99 }); got != math.MaxInt64 {
		t.Errorf("d(1000) with spread = %d ms, want the largest int64", got)
	}
}

func TestDelayOfAnEndlessPolicyIsQuick(t *testing.T) {
	t.Parallel()
	p := policyOf(1000, 1000, true, 2, 60_000)
	if got := p.DelayMillis(math.MaxInt, nil); got != 60_000 {
		t.Errorf("d(largest int) = %d, want 60000", got)
	}
	p.UseCollisionAvoidance = true
	draws := 0
	p.DelayMillis(math.MaxInt, func() float64 { draws++; return 0 })
	if draws >= maxChain+1 {
		t.Errorf("%d draws, want fewer than maxChain", draws)
	}
}

func TestDelayOfNoRedeliveryIsThatOfTheFirst(t *testing.T) {
	t.Parallel()
	p := policyOf(300, 1000, false, 5, -1)
	for _, k := range []int{0, -1, math.MinInt} {
		if got := p.Delay(k, nil); got != 300*time.Millisecond {
			t.Errorf("Delay(%d) = %v, want 300ms", k, got)
		}
	}
}

// TestDelayFollowsItsRecurrence holds the walk against the rule said plainly.
func TestDelayFollowsItsRecurrence(t *testing.T) { // R-POL-10, R-POL-11, R-POL-13
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policyOf(
			rapid.Int64Range(-10, 100_000).Draw(t, "initial"),
			rapid.Int64Range(-10, 100_000).Draw(t, "delay"),
			rapid.Bool().Draw(t, "exponential"),
			rapid.Float64Range(0, 10).Draw(t, "multiplier"),
			rapid.Int64Range(-3, 200_000).Draw(t, "most"))
		k := rapid.IntRange(2, 40).Draw(t, "k")
		prev, got := p.DelayMillis(k-1, nil), p.DelayMillis(k, nil)
		want := p.RedeliveryDelay.Milliseconds()
		if most := p.MaximumRedeliveryDelay.Milliseconds(); prev > 0 && p.UseExponentialBackOff && p.BackOffMultiplier > 1 {
			product := float64(prev) * p.BackOffMultiplier
			if want = math.MaxInt64; product < math.MaxInt64 {
				want = int64(product)
			}
			if most != -1 && want > most {
				want = max(most, p.RedeliveryDelay.Milliseconds())
			}
		}
		if got != want {
			t.Fatalf("d(%d) = %d after %d, want %d (%v)", k, got, prev, want, &p)
		}
	})
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]int64{
		1.9: 1, -1.9: -1, 0: 0, math.Inf(1): math.MaxInt64, math.Inf(-1): math.MinInt64,
		1 << 63: math.MaxInt64, -(1 << 63): math.MinInt64, 1e300: math.MaxInt64, -1e300: math.MinInt64,
	} {
		if got := truncate(in); got != want {
			t.Errorf("truncate(%v) = %d, want %d", in, got, want)
		}
	}
	if got := truncate(math.NaN()); got != 0 {
		t.Errorf("truncate(NaN) = %d, want 0", got)
	}
}

func BenchmarkDelay(b *testing.B) {
	p := policyOf(1000, 1000, true, 2, 60_000)
	b.ReportAllocs()
	for b.Loop() {
		p.DelayMillis(6, nil)
	}
}
