package redelivery

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

func TestDefaultPolicy(t *testing.T) { // spec section 1.1
	t.Parallel()
	want := Policy{
		MaximumRedeliveries:      6,
		InitialRedeliveryDelay:   time.Second,
		RedeliveryDelay:          time.Second,
		MaximumRedeliveryDelay:   -time.Millisecond,
		BackOffMultiplier:        5,
		CollisionAvoidanceFactor: 0.15,
		PreDispatchCheck:         true,
	}
	if diff := cmp.Diff(want, DefaultPolicy()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestExhausted(t *testing.T) { // R-POL-16
	t.Parallel()
	for name, tt := range map[string]struct {
		limit, failures int
		want            bool
	}{
		"a limit of 6 allows the sixth failure":     {6, 6, false},
		"a limit of 6 ends with the seventh":        {6, 7, true},
		"a limit of 0 ends with the first":          {0, 1, true},
		"a limit of 0 allows what did not fail":     {0, 0, false},
		"no limit never ends":                       {Unlimited, math.MaxInt, false},
		"another negative limit is like 0":          {-2, 1, true},
		"another negative limit allows no failures": {-2, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Policy{MaximumRedeliveries: tt.limit}
			if got := p.Exhausted(tt.failures); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPolicyString(t *testing.T) { // R-CLIENT-49
	t.Parallel()
	observed := DefaultPolicy()
	observed.MaximumRedeliveries = 1
	observed.InitialRedeliveryDelay = 10 * time.Millisecond
	observed.RedeliveryDelay = 20 * time.Millisecond
	full := Policy{
		Destination:              message.Destination{Kind: message.Queue, Name: "ORDERS.>"},
		MaximumRedeliveries:      -1,
		InitialRedeliveryDelay:   0,
		RedeliveryDelay:          time.Minute,
		MaximumRedeliveryDelay:   time.Hour,
		UseExponentialBackOff:    true,
		BackOffMultiplier:        1.5,
		UseCollisionAvoidance:    true,
		CollisionAvoidanceFactor: 0.3,
		Name:                     "not shown",
	}
	for name, tt := range map[string]struct {
		policy Policy
		want   string
	}{
		"as observed": {observed, "RedeliveryPolicy {destination = null, collisionAvoidanceFactor = 0.15, maximumRedeliveries = 1, " +
			"maximumRedeliveryDelay = -1, initialRedeliveryDelay = 10, useCollisionAvoidance = false, useExponentialBackOff = false, " +
			"backOffMultiplier = 5.0, redeliveryDelay = 20, preDispatchCheck = true}"},
		"everything set": {full, "RedeliveryPolicy {destination = queue://ORDERS.>, collisionAvoidanceFactor = 0.3, maximumRedeliveries = -1, " +
			"maximumRedeliveryDelay = 3600000, initialRedeliveryDelay = 0, useCollisionAvoidance = true, useExponentialBackOff = true, " +
			"backOffMultiplier = 1.5, redeliveryDelay = 60000, preDispatchCheck = false}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.policy.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestJavaDouble(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0.0", 5: "5.0", 0.15: "0.15", -1.5: "-1.5", 0.001: "0.001", 0.0005: "5.0E-4", 1e7: "1.0E7", 9999999: "9999999.0",
		1.25e10: "1.25E10", -3e-9: "-3.0E-9", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity",
	} {
		if got := javaDouble(x); got != want {
			t.Errorf("javaDouble(%v) = %q, want %q", x, got, want)
		}
	}
	if got := javaDouble(math.NaN()); got != "NaN" {
		t.Errorf("got %q, want NaN", got)
	}
}

func TestCollisionAvoidancePercent(t *testing.T) { // R-POL-01, R-POL-02
	t.Parallel()
	for _, percent := range []int{0, 1, 7, 15, 29, 57, 100, 250, -10} {
		var p Policy
		p.SetCollisionAvoidancePercent(percent)
		if got := p.CollisionAvoidancePercent(); got != percent {
			t.Errorf("%d %% reads back as %d %%", percent, got)
		}
	}
}

func TestFromMillis(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]time.Duration{
		0: 0, -1: NoMaximumDelay, 1500: 1500 * time.Millisecond,
		math.MaxInt64: math.MaxInt64, math.MinInt64: math.MinInt64,
		math.MaxInt64 / 1_000_000:      math.MaxInt64 / 1_000_000 * 1_000_000,
		math.MaxInt64/1_000_000 + 1:    math.MaxInt64,
		-(math.MaxInt64/1_000_000 + 1): math.MinInt64,
	} {
		if got := FromMillis(ms); got != want {
			t.Errorf("FromMillis(%d) = %d, want %d", ms, got, want)
		}
	}
}

type fixed int64

func (f fixed) Delay(*Policy, int, func() float64) int64 { return int64(f) }

func TestAnArithmeticOfItsOwn(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	p.Arithmetic = fixed(77)
	if got := p.Delay(3, nil); got != 77*time.Millisecond {
		t.Errorf("got %v, want 77ms", got)
	}
}
