package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Simulation is how one message fares: under what is configured, and under what
// the question tries instead.
type Simulation struct {
	Destination string  `json:"destination"`
	File        string  `json:"file,omitempty"`
	Present     Outcome `json:"present"`
	// Tried is nil where the question changes nothing.
	Tried *Outcome `json:"tried,omitempty"`
}

// An Outcome is how one message fares under one policy.
type Outcome struct {
	Client string `json:"client,omitempty"`
	// Broker is the broker's policy as Java clients print theirs; empty: none.
	Broker string `json:"broker,omitempty"`
	// Policy is the broker's policy, value by value, by the keys of our own YAML.
	Policy map[string]string `json:"policy,omitempty"`
	// Turns are the deliveries of one run, ShownSteps at the most: with the
	// delays as configured, without the spread of chance. Empty where the odds
	// decide which deliveries fail.
	Turns []Turn `json:"turns,omitempty"`
	// End is how that run ended; nil with odds.
	End *End `json:"end,omitempty"`
	// Chance is nil where nothing is left to it.
	Chance *Chance `json:"chance,omitempty"`
	// Waiting is nil unless a rate was asked about.
	Waiting *Waiting `json:"waiting,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// Chance is what many runs give.
type Chance struct {
	Runs int    `json:"runs"`
	Seed uint64 `json:"seed"`
	// Deliveries are how many there were, with their shares of all runs; exact
	// where the time to live has no say, else counted.
	Deliveries []Share `json:"deliveries"`
	Exact      bool    `json:"exact"`
	// Ends are the shares of the ways to end.
	Ends []EndShare `json:"ends"`
	// EndMillis says when it was over.
	EndMillis Percentiles `json:"endMillis"`
}

// A Share is how likely a number of deliveries is.
type Share struct {
	Deliveries int     `json:"deliveries"`
	Share      float64 `json:"share"`
}

// An EndShare is how likely a way to end is.
type EndShare struct {
	How     string  `json:"how"`
	Target  string  `json:"target,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Setting string  `json:"setting,omitempty"`
	Share   float64 `json:"share"`
}

// Percentiles of times, in milliseconds. P50 is such that half of all runs took no
// longer.
type Percentiles struct {
	Least int64 `json:"least"`
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P99   int64 `json:"p99"`
	Most  int64 `json:"most"`
}

// Waiting is how many messages wait for their next delivery at a time, on
// average, by Little's law: the rate times the mean of the wait.
type Waiting struct {
	PerSecond float64 `json:"perSecond"`
	Client    float64 `json:"client"`
	Broker    float64 `json:"broker"`
	// Deliveries are those each second, first ones included.
	Deliveries float64 `json:"deliveriesPerSecond"`
}

// Simulate follows one message through its deliveries.
func Simulate(c *config.Config, q Question) Simulation {
	e := c.Resolver().Policy(q.Destination)
	s := Simulation{Destination: q.Destination.String(), File: c.File, Present: outcome(&q, e.Rules)}
	if q.Changes.broker.any() {
		p := redelivery.DefaultPolicy()
		if e.Rules.Redelivery != nil {
			p = *e.Rules.Redelivery
		}
		p = q.Changes.broker.applied(p)
		rules := e.Rules
		rules.Redelivery = &p
		tried := outcome(&q, rules)
		if e.Rules.Redelivery == nil {
			tried.Notes = append(tried.Notes, "the broker has no policy of its own here: what is not given is ActiveMQ's default")
		}
		s.Tried = &tried
	}
	return s
}

// outcome plays one message under some rules.
func outcome(q *Question, rules redelivery.Rules) Outcome {
	w := &world{rules: rules, client: q.Client, destination: q.Destination, trial: q.Trial}
	var o Outcome
	if !q.Client.None {
		o.Client = q.Client.Policy.String()
	}
	if rules.Redelivery != nil {
		o.Broker, o.Policy = rules.Redelivery.String(), policyValues(rules)
	}
	if q.Trial.Odds == 0 {
		end := w.play(MaxSteps, w.failures, nil, func(t Turn) {
			if len(o.Turns) < ShownSteps {
				o.Turns = append(o.Turns, t)
			}
		})
		o.End = &end
		if end.How == EndNone {
			o.Notes = append(o.Notes, fmt.Sprintf("only %d deliveries are reckoned; there is no end in sight", MaxSteps))
		}
	}
	tally := w.tally()
	if w.random() {
		o.Chance = tally.chance(w)
	}
	if r := q.Trial.Rate; r > 0 {
		o.Waiting = tally.waiting(r)
		if o.Chance == nil && o.End != nil && o.End.How == EndNone {
			o.Notes = append(o.Notes, "what waits grows without end, as no message ever goes")
			o.Waiting = nil
		}
	}
	return o
}

// failures is Trial.Failures as play asks for it.
func (w *world) failures(delivery int) bool { return delivery <= w.trial.Failures }

// random reports whether anything is left to chance.
func (w *world) random() bool {
	p := w.rules.Redelivery
	return w.trial.Odds > 0 || p != nil && p.UseCollisionAvoidance || !w.client.None && w.client.Policy.UseCollisionAvoidance
}

// A tally is what many runs came to.
type tally struct {
	ends       []int64 // times
	deliveries map[int]int
	ways       map[EndShare]int // Share is 0
	client     float64          // sums of milliseconds
	broker     float64
	total      int // deliveries
}

// tally plays the message many times, or once where nothing is left to chance.
func (w *world) tally() *tally {
	t := &tally{deliveries: map[int]int{}, ways: map[EndShare]int{}}
	chance := rand.New(rand.NewPCG(w.trial.Seed, 0))
	jitter := func() float64 { return 2*chance.Float64() - 1 }
	fails := w.failures
	if w.trial.Odds > 0 {
		fails = func(int) bool { return chance.Float64() < w.trial.Odds }
	}
	for range w.runs() {
		end := w.play(MaxSteps, fails, jitter, nil)
		t.ends = append(t.ends, end.AtMillis)
		t.deliveries[end.Deliveries]++
		t.ways[EndShare{How: end.How, Target: end.Target, Reason: end.Reason, Setting: end.Setting}]++
		t.client += float64(end.clientMillis)
		t.broker += float64(end.brokerMillis)
		t.total += end.Deliveries
	}
	slices.Sort(t.ends)
	return t
}

// runs is how often the message is played.
func (w *world) runs() int {
	if !w.random() {
		return 1
	}
	n := deliveries(w.client, w.rules.Redelivery)
	if n < 0 || n > MaxSteps {
		n = MaxSteps
	}
	if w.trial.Odds > 0 && w.trial.Odds < 1 { // few runs go on beyond this
		n = min(n, int(math.Ceil(20/(1-w.trial.Odds))))
	}
	n = min(n, w.trial.Failures)
	return max(1, min(w.trial.Runs, maxWork/(n*n+1)))
}

func (t *tally) chance(w *world) *Chance {
	n := len(t.ends)
	c := &Chance{Runs: n, Seed: w.trial.Seed, EndMillis: Percentiles{
		Least: t.ends[0], P50: t.at(0.5), P90: t.at(0.9), P99: t.at(0.99), Most: t.ends[n-1]}}
	c.Deliveries, c.Exact = w.exactly()
	if !c.Exact {
		for _, k := range slices.Sorted(maps.Keys(t.deliveries)) {
			c.Deliveries = append(c.Deliveries, Share{k, float64(t.deliveries[k]) / float64(n)})
		}
	}
	for way, count := range t.ways {
		way.Share = float64(count) / float64(n)
		if c.Exact && w.trial.Odds > 0 {
			way.Share = w.certain(way)
		}
		c.Ends = append(c.Ends, way)
	}
	slices.SortFunc(c.Ends, func(a, b EndShare) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.How, b.How), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Reason, b.Reason))
	})
	if c.Exact && w.trial.Odds > 0 {
		c.Ends = w.unseen(c.Ends)
	}
	return c
}

// exactly gives the shares of each number of deliveries, where they follow from
// the odds alone.
func (w *world) exactly() ([]Share, bool) {
	most := deliveries(w.client, w.rules.Redelivery)
	if w.trial.TimeToLive > 0 || most < 0 || most > ShownSteps {
		return nil, false
	}
	if w.trial.Odds == 0 {
		return []Share{{min(most, plusOne(w.trial.Failures)), 1}}, true
	}
	var all []Share
	reached := 1.0 // the probability that there is a delivery number k
	for k := 1; k <= most; k++ {
		share := reached * (1 - w.trial.Odds)
		if k == most {
			share = reached
		}
		all = append(all, Share{k, share})
		reached *= w.trial.Odds
	}
	return all, true
}

// certain is the exact share of an end, where it follows from the odds alone:
// either a delivery succeeds, or all of them fail.
func (w *world) certain(way EndShare) float64 {
	lost := math.Pow(w.trial.Odds, float64(deliveries(w.client, w.rules.Redelivery)))
	if way.How == EndProcessed {
		return 1 - lost
	}
	return lost
}

// unseen adds the end of a message that always fails where no run came to it, as
// it is too rare.
func (w *world) unseen(ends []EndShare) []EndShare {
	end := w.play(MaxSteps, func(int) bool { return true }, nil, nil)
	way := EndShare{How: end.How, Target: end.Target, Reason: end.Reason, Setting: end.Setting}
	for _, e := range ends {
		if e.How == way.How {
			return ends
		}
	}
	way.Share = w.certain(way)
	return append(ends, way)
}

func plusOne(n int) int {
	if n == math.MaxInt {
		return n
	}
	return n + 1
}

// at is the time within which a share of all runs was over.
func (t *tally) at(share float64) int64 {
	i := int(math.Ceil(share*float64(len(t.ends)))) - 1
	return t.ends[max(0, min(i, len(t.ends)-1))]
}

func (t *tally) waiting(rate float64) *Waiting {
	n := float64(len(t.ends))
	return &Waiting{PerSecond: rate, Client: rate * t.client / n / 1000, Broker: rate * t.broker / n / 1000,
		Deliveries: rate * float64(t.total) / n}
}
