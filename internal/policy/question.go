package policy

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Question is about one destination. NewQuestion is where to start from.
type Question struct {
	Destination message.Destination
	Client      Client
	Trial       Trial
	Changes     Changes
}

// A Client is the application's side of redelivery.
type Client struct {
	// Policy is the client's own RedeliveryPolicy: it redelivers by itself until
	// that is used up, then it gives the message up.
	Policy redelivery.Policy
	// None is a client without a policy of its own, such as one that sends NACK:
	// every failure goes to the broker at once.
	None bool
}

// NewQuestion asks about d with ActiveMQ's defaults for the client, and a message
// that fails always.
func NewQuestion(d message.Destination) Question {
	return Question{
		Destination: d,
		Client:      Client{Policy: redelivery.DefaultPolicy()},
		Trial:       Trial{Failures: Always, Persistent: true, Runs: DefaultRuns, Seed: 1},
	}
}

// A Param is one word of a question: a flag of the command line, and a parameter
// of the admin listener.
type Param struct {
	Name  string
	Usage string // with the name of its value in backquotes
	// Flag: true is meant where the value is left out.
	Flag bool
	set  func(q *Question, value string) error
}

// policyParams are the words for the fields of a redelivery policy. prefix stands
// before each; of finds the policy that is meant.
func policyParams(prefix, whose string, of func(*Question) *policyChange) []Param {
	millis := func(into func(*policyChange) *change[time.Duration]) func(*Question, string) error {
		return func(q *Question, s string) error {
			d, err := config.ParseDuration(s)
			into(of(q)).put(d)
			return err
		}
	}
	return []Param{
		{Name: prefix + "max", Usage: "maximumRedeliveries of " + whose + ": a `number`, -1 for no end",
			set: func(q *Question, s string) error {
				n, err := strconv.ParseInt(s, 10, 32)
				if err != nil {
					return fmt.Errorf("%q is no whole number", s)
				}
				of(q).maximum.put(int(n))
				return nil
			}},
		{Name: prefix + "initial", Usage: "initialRedeliveryDelay of " + whose + ": a `time` such as 500ms, 10s or 1m",
			set: millis(func(c *policyChange) *change[time.Duration] { return &c.initial })},
		{Name: prefix + "delay", Usage: "redeliveryDelay of " + whose + ": a `time`",
			set: millis(func(c *policyChange) *change[time.Duration] { return &c.delay })},
		{Name: prefix + "multiplier", Usage: "backOffMultiplier of " + whose + ": a `number`; it makes delays grow unless exponential is false",
			set: func(q *Question, s string) error {
				f, err := strconv.ParseFloat(s, 64)
				if err != nil || math.IsNaN(f) {
					return fmt.Errorf("%q is no number", s)
				}
				of(q).multiplier.put(f)
				return nil
			}},
		{Name: prefix + "cap", Usage: "maximumRedeliveryDelay of " + whose + ": a `time`, or none",
			set: func(q *Question, s string) error {
				if s == "none" {
					of(q).most.put(redelivery.NoMaximumDelay)
					return nil
				}
				d, err := config.ParseDuration(s)
				of(q).most.put(d)
				return err
			}},
		{Name: prefix + "exponential", Usage: "useExponentialBackOff of " + whose, Flag: true,
			set: func(q *Question, s string) error {
				b, err := parseFlag(s)
				of(q).exponential.put(b)
				return err
			}},
		{Name: prefix + "jitter", Usage: "collision avoidance of " + whose + ": a `share` of the delay such as 15% or 0.15; 0 for none",
			set: func(q *Question, s string) error {
				f, err := parseShare(s, math.MaxInt32)
				of(q).jitter.put(f)
				return err
			}},
	}
}

// clientParams are the words about the client, which every question takes.
func clientParams() []Param {
	all := policyParams("client-", "the client", func(q *Question) *policyChange { return &q.Changes.client })
	most := all[0].set
	all[0].Usage = "maximumRedeliveries of the client: a `number`, -1 for no end, or none for a client that has no policy (default 6, as in ActiveMQ)"
	all[0].set = func(q *Question, s string) error {
		if q.Client.None = s == "none"; q.Client.None {
			return nil
		}
		return most(q, s)
	}
	return append(all, Param{Name: "client-url",
		Usage: "take the client's policy from the `URL` that it connects with: its jms.redeliveryPolicy options; what --client-... says goes before",
		set:   func(q *Question, s string) error { return takeURL(&q.Client.Policy, s) }})
}

// ExplainParams are the words of [Explain], beside the destination.
func ExplainParams() []Param { return clientParams() }

// SimulateParams are the words of [Simulate], beside the destination.
func SimulateParams() []Param {
	all := trialParams()
	all = append(all, policyParams("", "the broker, instead of what is configured", func(q *Question) *policyChange { return &q.Changes.broker })...)
	return append(all, clientParams()...)
}

// DestinationParam is the parameter of the admin listener that names the
// destination: a queue where no prefix says otherwise; one and no pattern, as
// messages are never in a pattern.
const DestinationParam = "destination"

// Ask reads a question from parameters. What is not known, given twice or out of
// range is a *ParamError.
func Ask(values url.Values, params []Param) (Question, error) {
	given := values[DestinationParam]
	if len(given) != 1 {
		return Question{}, &ParamError{DestinationParam, "give one, such as queue://ORDERS"}
	}
	d, err := message.ParseDestination(given[0], message.Queue)
	switch {
	case err != nil:
		return Question{}, &ParamError{DestinationParam, "is empty; give one such as queue://ORDERS"}
	case d.IsComposite(), d.IsPattern():
		return Question{}, &ParamError{DestinationParam, d.String() + " stands for several; ask about one, such as queue://ORDERS"}
	}
	q := NewQuestion(d)
	return q, q.read(values, params)
}

// read takes the words of a question, save its destination.
func (q *Question) read(values url.Values, params []Param) error {
	for _, name := range slices.Sorted(maps.Keys(values)) { // the same error whatever the order of a map
		if name == DestinationParam && q.Destination.Name != "" {
			continue
		}
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		switch {
		case i < 0:
			return &ParamError{name, "is not known here"}
		case len(values[name]) > 1:
			return &ParamError{name, "is given twice"}
		}
		if err := params[i].set(q, values.Get(name)); err != nil {
			return &ParamError{name, err.Error()}
		}
	}
	q.Client.Policy = q.Changes.client.applied(q.Client.Policy)
	return nil
}

// A ParamError says what is wrong with one word of a question. It is a
// message.ErrInvalid.
type ParamError struct {
	Param, Text string
}

// Error names the parameter.
func (e *ParamError) Error() string { return e.Param + ": " + e.Text }

// Unwrap says what kind of error it is.
func (e *ParamError) Unwrap() error { return message.ErrInvalid }

// parseFlag reads true or false; nothing is true.
func parseFlag(s string) (bool, error) {
	if s == "" {
		return true, nil
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return b, nil
}

// parseShare reads "15%" or "0.15", from 0 to most.
func parseShare(s string, most float64) (float64, error) {
	digits, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= most) {
		return 0, fmt.Errorf("%q is no share such as 15%% or 0.15", s)
	}
	return f, nil
}

// A change is a value that may be given.
type change[T any] struct {
	given bool
	value T
}

func (c *change[T]) put(v T) { c.given, c.value = true, v }

// over lays the value over another, if it is given.
func (c *change[T]) over(v *T) {
	if c.given {
		*v = c.value
	}
}

// A policyChange is what a question changes in a redelivery policy.
type policyChange struct {
	maximum              change[int]
	initial, delay, most change[time.Duration]
	multiplier, jitter   change[float64]
	exponential          change[bool]
}

// any reports whether something is changed.
func (c *policyChange) any() bool {
	return c.maximum.given || c.initial.given || c.delay.given || c.most.given || c.multiplier.given || c.jitter.given || c.exponential.given
}

// applied returns p with the changes. A multiplier asks for growth, unless
// exponential is given too.
func (c *policyChange) applied(p redelivery.Policy) redelivery.Policy {
	c.maximum.over(&p.MaximumRedeliveries)
	c.initial.over(&p.InitialRedeliveryDelay)
	c.delay.over(&p.RedeliveryDelay)
	c.most.over(&p.MaximumRedeliveryDelay)
	if c.multiplier.given {
		p.BackOffMultiplier, p.UseExponentialBackOff = c.multiplier.value, true
	}
	c.exponential.over(&p.UseExponentialBackOff)
	if c.jitter.given {
		p.UseCollisionAvoidance = c.jitter.value > 0
		if p.UseCollisionAvoidance {
			p.CollisionAvoidanceFactor = c.jitter.value
		}
	}
	return p
}

// Changes are what a question tries in place of what is configured.
type Changes struct{ client, broker policyChange }
