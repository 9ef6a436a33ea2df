package policy

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// brokerPolicy is ActiveMQ's default with another limit and delays.
func brokerPolicy(limit int, initial, delay time.Duration) *redelivery.Policy {
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, initial, delay
	return &p
}

// clientOf is a client whose own retries come at once.
func clientOf(limit int) Client { return Client{Policy: *brokerPolicy(limit, 0, 0)} }

func TestTwoLimitsComeToTheLargerOne(t *testing.T) { // C03
	t.Parallel()
	for name, tt := range map[string]struct {
		client Client
		broker *redelivery.Policy
		want   int
	}{
		"C03.1 six and six":                             {clientOf(6), brokerPolicy(6, time.Second, time.Second), 7},
		"C03.2 two and five":                            {clientOf(2), brokerPolicy(5, time.Second, time.Second), 6},
		"C03.3 six and two":                             {clientOf(6), brokerPolicy(2, time.Second, time.Second), 7},
		"C03.4 none and five":                           {clientOf(0), brokerPolicy(5, time.Second, time.Second), 6},
		"the client alone":                              {clientOf(6), nil, 7},
		"R-POL-16 the client without end":               {clientOf(-1), brokerPolicy(5, time.Second, time.Second), -1},
		"R-POL-16 the broker without end":               {clientOf(2), brokerPolicy(-1, time.Second, time.Second), -1},
		"R-POL-16 below -1 is none":                     {clientOf(-2), brokerPolicy(-7, time.Second, time.Second), 1},
		"a client without a policy":                     {Client{None: true}, brokerPolicy(2, time.Second, time.Second), 3},
		"a client without a policy, and nobody's limit": {Client{None: true}, nil, -1},
		"the largest limit":                             {clientOf(math.MaxInt32), nil, math.MaxInt32},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := scheduleOf(tt.client, tt.broker).Deliveries; got != tt.want {
				t.Errorf("%d deliveries, want %d", got, tt.want)
			}
		})
	}
}

func TestScheduleTakesTheDelaysOfWhomHoldsTheMessage(t *testing.T) { // C03, C04
	t.Parallel()
	exponential := brokerPolicy(4, time.Second, time.Second)
	exponential.UseExponentialBackOff, exponential.BackOffMultiplier = true, 2
	for name, tt := range map[string]struct {
		client Client
		broker *redelivery.Policy
		want   []Step
	}{
		"C04 the broker alone": {clientOf(0), exponential, []Step{
			{1, ByFirst, 0, 0, 0, 0, 0, 0},
			{2, ByBroker, 1000, 1000, 1000, 1000, 1000, 1000},
			{3, ByBroker, 2000, 2000, 2000, 3000, 3000, 3000},
			{4, ByBroker, 4000, 4000, 4000, 7000, 7000, 7000},
			{5, ByBroker, 8000, 8000, 8000, 15000, 15000, 15000}}},
		"the client first, and the broker goes on where the count is": {clientOf(2), exponential, []Step{
			{1, ByFirst, 0, 0, 0, 0, 0, 0},
			{2, ByClient, 0, 0, 0, 0, 0, 0},
			{3, ByClient, 0, 0, 0, 0, 0, 0},
			{4, ByBroker, 4000, 4000, 4000, 4000, 4000, 4000},
			{5, ByBroker, 8000, 8000, 8000, 12000, 12000, 12000}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := scheduleOf(tt.client, tt.broker)
			if diff := cmp.Diff(tt.want, got.Steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if last := tt.want[len(tt.want)-1]; got.EndMillis != last.AtMillis || got.LatestMillis != last.LatestMillis {
				t.Errorf("ends at %d, %d at the latest, want %d", got.EndMillis, got.LatestMillis, last.AtMillis)
			}
		})
	}
}

func TestBandsOfChance(t *testing.T) { // R-POL-12, R-POL-13, R-HQ-31
	t.Parallel()
	with := func(change func(*redelivery.Policy)) *redelivery.Policy {
		p := brokerPolicy(4, time.Second, time.Second)
		p.UseCollisionAvoidance = true
		change(p)
		return p
	}
	for name, tt := range map[string]struct {
		policy *redelivery.Policy
		want   [][2]int64
	}{
		"the first delay is never spread": {with(func(*redelivery.Policy) {}), [][2]int64{{1000, 1000}, {850, 1150}, {850, 1150}}},
		"spreads compound while delays grow": {with(func(p *redelivery.Policy) {
			p.UseExponentialBackOff, p.BackOffMultiplier, p.CollisionAvoidanceFactor = true, 2, 0.5
		}), [][2]int64{{1000, 1000}, {1000, 3000}, {1000, 9000}, {1000, 27000}}},
		"the cap comes before the spread": {with(func(p *redelivery.Policy) {
			p.UseExponentialBackOff, p.BackOffMultiplier, p.CollisionAvoidanceFactor, p.MaximumRedeliveryDelay = true, 2, 0.5, 1500*time.Millisecond
		}), [][2]int64{{1000, 1000}, {750, 2250}, {750, 2250}}},
		"beyond 100% a delay can be nothing, and begin again at the base": {with(func(p *redelivery.Policy) {
			p.UseExponentialBackOff, p.BackOffMultiplier, p.CollisionAvoidanceFactor = true, 2, 1.5
		}), [][2]int64{{1000, 1000}, {0, 5000}, {0, 25000}}},
		"HornetQ caps last": {with(func(p *redelivery.Policy) {
			p.Arithmetic, p.UseExponentialBackOff, p.BackOffMultiplier, p.CollisionAvoidanceFactor = redelivery.HornetQ{}, true, 2, 0.5
			p.MaximumRedeliveryDelay = 3 * time.Second
		}), [][2]int64{{500, 1500}, {1000, 3000}, {2000, 3000}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k, want := range tt.want {
				if low, high := band(tt.policy, k+1); low != want[0] || high != want[1] {
					t.Errorf("delay %d is between %d and %d, want %v", k+1, low, high, want)
				}
			}
		})
	}
}

// anyPolicy draws a policy of either arithmetic.
func anyPolicy(t *rapid.T, name string) *redelivery.Policy {
	p := brokerPolicy(rapid.IntRange(-2, 12).Draw(t, name+" limit"),
		time.Duration(rapid.IntRange(-5, 3000).Draw(t, name+" initial"))*time.Millisecond,
		time.Duration(rapid.IntRange(-5, 3000).Draw(t, name+" delay"))*time.Millisecond)
	p.UseExponentialBackOff = rapid.Bool().Draw(t, name+" exponential")
	p.BackOffMultiplier = rapid.SampledFrom([]float64{0.5, 1, 1.5, 2, 5}).Draw(t, name+" multiplier")
	p.UseCollisionAvoidance = rapid.Bool().Draw(t, name+" jitter")
	p.CollisionAvoidanceFactor = rapid.SampledFrom([]float64{0, 0.15, 0.9, 1, 2.5}).Draw(t, name+" factor")
	if rapid.Bool().Draw(t, name+" capped") {
		p.MaximumRedeliveryDelay = time.Duration(rapid.IntRange(-2, 9000).Draw(t, name+" cap")) * time.Millisecond
	}
	if rapid.Bool().Draw(t, name+" hornetq") {
		p.Arithmetic = redelivery.HornetQ{}
	}
	return p
}

// TestScheduleIsWhatThePlayComesTo holds the schedule against the rules themselves.
func TestScheduleIsWhatThePlayComesTo(t *testing.T) { // C03
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := Client{Policy: *anyPolicy(t, "client"), None: rapid.Bool().Draw(t, "no client")}
		var p *redelivery.Policy
		if rapid.Bool().Draw(t, "broker") {
			p = anyPolicy(t, "broker")
		}
		s := scheduleOf(c, p)
		w := &world{rules: redelivery.Rules{Redelivery: p}, client: c, destination: message.Destination{Kind: message.Queue, Name: "Q"},
			trial: Trial{Failures: Always, Persistent: true}}
		var turns []Turn
		end := w.play(30, w.failures, nil, func(t Turn) { turns = append(turns, t) })
		if s.Deliveries < 0 != (end.How == EndNone) || s.Deliveries >= 0 && (end.Deliveries != s.Deliveries || end.AtMillis != s.EndMillis) {
			t.Fatalf("schedule %+v\nplay %+v", s, end)
		}
		for i, turn := range turns {
			if turn.AtMillis != s.Steps[i].AtMillis {
				t.Fatalf("delivery %d: schedule %+v, play %+v", i+1, s.Steps[i], turn)
			}
			if i+1 < len(turns) && turn.By != s.Steps[i+1].By {
				t.Fatalf("delivery %d is brought by %s, in the play by %s", i+2, s.Steps[i+1].By, turn.By)
			}
		}
	})
}

func TestSchedulesOfManyDeliveries(t *testing.T) {
	t.Parallel()
	s := scheduleOf(clientOf(0), brokerPolicy(1_000_000, time.Second, 10*time.Second))
	if want := int64(1000 + 999_999*10_000); s.EndMillis != want || s.LatestMillis != want || len(s.Steps) != ShownSteps {
		t.Errorf("ends at %d, want %d; %d steps", s.EndMillis, want, len(s.Steps))
	}
	endless := brokerPolicy(-1, time.Second, 10*time.Second)
	if s := scheduleOf(clientOf(0), endless); s.LoopMillis != 10_000 || s.EndMillis != 0 {
		t.Errorf("%+v", s)
	}
	endless.UseExponentialBackOff = true
	if s := scheduleOf(clientOf(0), endless); s.LoopMillis != math.MaxInt64 {
		t.Errorf("loops after %d, want the longest time", s.LoopMillis)
	}
}
