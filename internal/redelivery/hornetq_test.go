package redelivery

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
)

// hornetQ makes a policy from the elements of an address-setting, in
// milliseconds.
func hornetQ(delay int64, multiplier float64, most int64) Policy {
	p := HornetQPolicy()
	p.InitialRedeliveryDelay, p.RedeliveryDelay = FromMillis(delay), FromMillis(delay)
	p.UseExponentialBackOff, p.BackOffMultiplier = multiplier != 1, multiplier
	p.MaximumRedeliveryDelay = FromMillis(most)
	return p
}

func TestHornetQWorkedExamples(t *testing.T) {
	t.Parallel()
	const longest = math.MaxInt64 / 1_000_000 // milliseconds a Duration holds
	for name, tt := range map[string]struct {
		policy Policy
		want   []int64
	}{
		"R-HQ-28 no delay is at once":                         {HornetQPolicy(), []int64{0, 0, 0}},
		"R-HQ-29 without a multiplier they are all the same":  {hornetQ(4000, 1, 40000), []int64{4000, 4000, 4000, 4000}},
		"R-HQ-30 1000, doubled, with the derived cap":         {hornetQ(1000, 2, 10000), []int64{1000, 2000, 4000, 8000, 10000, 10000, 10000, 10000, 10000}},
		"R-HQ-29 each is cut by itself":                       {hornetQ(1000, 1.5, 100000), []int64{1000, 1500, 2250, 3375, 5062, 7593, 11390, 17085}},
		"R-HQ-29 fractions below a millisecond are cut":       {hornetQ(1, 1.4, 100), []int64{1, 1, 1, 2, 3, 5}},
		"R-HQ-32 2.3: a cap at the delay stops all growth":    {hornetQ(1000, 2, 1000), []int64{1000, 1000, 1000}},
		"R-HQ-32 a cap below the delay shortens the first":    {hornetQ(5000, 1, 1000), []int64{1000, 1000, 1000}},
		"R-HQ-35 a negative delay is none":                    {hornetQ(-5, 2, 1000), []int64{0, 0, 0}},
		"R-HQ-35 a cap of 0 is at once":                       {hornetQ(1000, 2, 0), []int64{0, 0, 0}},
		"R-HQ-35 a negative cap is at once, too":              {hornetQ(1000, 2, -7), []int64{-7, -7, -7}},
		"R-HQ-152 no cap, where that is asked for":            {hornetQ(1000, 2, -1), []int64{1000, 2000, 4000, 8000, 16000}},
		"R-HQ-35 a multiplier below 1 shrinks":                {hornetQ(1000, 0.5, 10000), []int64{1000, 500, 250, 125, 62, 31}},
		"R-HQ-35 a multiplier of 0 delays once":               {hornetQ(1000, 0, 10000), []int64{1000, 0, 0}},
		"R-HQ-35 a multiplier that is no number: once":        {hornetQ(1000, math.NaN(), 10000), []int64{1000, 0, 0}},
		"R-HQ-153 growth without end stops at the longest":    {hornetQ(1000, math.MaxFloat64, longest), []int64{1000, longest, longest}},
		"R-HQ-39 a long wait needs the cap and the attempts":  {hornetQ(60000, 2, 86400000), []int64{60000, 120000, 240000, 480000, 960000, 1920000, 3840000, 7680000, 15360000, 30720000, 61440000, 86400000}},
		"R-HQ-29 a multiplier counts only where growth is on": {Policy{RedeliveryDelay: time.Second, MaximumRedeliveryDelay: time.Hour, BackOffMultiplier: 5, Arithmetic: HornetQ{}}, []int64{1000, 1000, 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, first(tt.policy, len(tt.want), nil)); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHornetQSpread(t *testing.T) { // R-HQ-29, R-HQ-31: two-sided, before the cap
	t.Parallel()
	p := hornetQ(1000, 2, 10000)
	p.UseCollisionAvoidance, p.CollisionAvoidanceFactor = true, 0.5
	for jitter, want := range map[float64][]int64{
		-0.999: {500, 1001, 2002, 4004, 8008},
		0:      {1000, 2000, 4000, 8000, 10000},
		0.999:  {1499, 2999, 5998, 10000, 10000},
	} {
		if diff := cmp.Diff(want, first(p, len(want), func() float64 { return jitter })); diff != "" {
			t.Errorf("jitter %g (-want +got):\n%s", jitter, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 100).Draw(t, "k")
		drawn := 0
		d := p.DelayMillis(k, func() float64 { drawn++; return rapid.Float64Range(-0.999999, 0.999999).Draw(t, "jitter") })
		if d < 500 || d > 10000 {
			t.Fatalf("d(%d) = %d, want it within [500, 10000]", k, d)
		}
		if drawn != 1 {
			t.Fatalf("%d draws, want one: spreads do not add up", drawn)
		}
	})
}

func TestMaxDeliveryAttempts(t *testing.T) { // R-HQ-40, R-HQ-41, C01
	t.Parallel()
	for attempts, want := range map[int]int{-7: Unlimited, -1: Unlimited, 0: Unlimited, 1: 0, 3: 2, 10: 9} {
		p := HornetQPolicy()
		p.MaximumRedeliveries = MaximumRedeliveriesOf(attempts)
		if p.MaximumRedeliveries != want {
			t.Errorf("max-delivery-attempts %d: MaximumRedeliveries %d, want %d", attempts, p.MaximumRedeliveries, want)
		}
		for failures := 1; failures <= 12; failures++ {
			if got, want := p.Exhausted(failures), attempts > 0 && failures >= attempts; got != want {
				t.Errorf("max-delivery-attempts %d: exhausted after %d failures: %t", attempts, failures, got)
			}
		}
	}
}

func TestDerivedMaximumDelay(t *testing.T) { // R-HQ-21, R-HQ-32
	t.Parallel()
	for _, tt := range []struct {
		delay, want time.Duration
		as23        bool
	}{
		{time.Second, 10 * time.Second, false},
		{time.Second, time.Second, true},
		{0, 0, false},
		{math.MaxInt64 / 2, math.MaxInt64, false},
	} {
		if got := DerivedMaximumDelay(tt.delay, tt.as23); got != tt.want {
			t.Errorf("delay %v, as in 2.3 %t: %v, want %v", tt.delay, tt.as23, got, tt.want)
		}
	}
}

func TestHornetQLimitGoesBeforeTheDelay(t *testing.T) { // R-HQ-36: the last failure goes to the dead letters at once
	t.Parallel()
	p := hornetQ(1000, 2, 10000)
	p.MaximumRedeliveries = MaximumRedeliveriesOf(3)
	r := Rules{Redelivery: &p}
	f := Facts{Cause: message.Rollback, Counted: true, Persistent: true, Destination: message.Destination{Kind: message.Queue, Name: "Q"}}
	for failures, want := range map[int]Decision{
		1: {Action: Later, Delay: 1000, Due: 101_000},
		2: {Action: Later, Delay: 2000, Due: 102_000},
		3: {Action: DeadLetter},
		9: {Action: DeadLetter}, // over the limit already: caught at the next failure (R-HQ-42)
	} {
		f.Failures = failures
		got := r.Decide(f, 100_000, nil)
		if got.Action != want.Action || got.Delay != want.Delay || got.Due != want.Due {
			t.Errorf("failure %d: %+v, want %+v", failures, got, want)
		}
	}
}

func TestHornetQDueNeverWrapsRound(t *testing.T) { // R-HQ-35, R-HQ-153
	t.Parallel()
	p := hornetQ(math.MaxInt64/1_000_000, 10, math.MaxInt64/1_000_000)
	r := Rules{Redelivery: &p}
	d := r.Decide(Facts{Cause: message.Rollback, Counted: true, Failures: 5, Destination: message.Destination{Kind: message.Queue, Name: "Q"}}, math.MaxInt64-5, nil)
	if d.Action != Later || d.Due != math.MaxInt64 {
		t.Errorf("%+v, want a due time at the end of all time", d)
	}
}
