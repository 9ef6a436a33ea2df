package policy

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nixiemq/nixie/internal/config"
)

// Always as Trial.Failures: every delivery fails.
const Always = math.MaxInt

// Limits of a trial.
const (
	// DefaultRuns is how often chance is tried where a question does not say.
	DefaultRuns = 10_000
	// MaxRuns bounds what a question may ask for.
	MaxRuns = 100_000
	// maxWork bounds the steps of all runs together: it makes runs fewer where
	// each of them is long.
	maxWork = 5_000_000
)

// A Trial says how deliveries of one message come out.
type Trial struct {
	// Failures is how many deliveries fail before one succeeds.
	Failures int
	// Odds, where above 0, is the probability that a delivery fails; it takes the
	// place of Failures.
	Odds float64
	// Work is how long a delivery takes.
	Work time.Duration
	// TimeToLive of the message from its first delivery on; 0: it never expires.
	TimeToLive time.Duration
	Persistent bool
	// Rate is how many such messages come each second; 0: not asked.
	Rate float64
	Runs int
	Seed uint64
}

// trialParams are the words of a trial.
func trialParams() []Param {
	positive := func(s string) (time.Duration, error) {
		d, err := config.ParseDuration(s)
		if err == nil && d < 0 {
			err = fmt.Errorf("%q is less than nothing", s)
		}
		return d, err
	}
	return []Param{
		{Name: "fail", Usage: "how many deliveries fail before one succeeds: a `number`, or always (default always)",
			set: func(q *Question, s string) error {
				if s == "always" {
					q.Trial.Failures = Always
					return nil
				}
				n, err := strconv.ParseUint(s, 10, 31)
				if err != nil {
					return fmt.Errorf("%q is neither a number of deliveries nor always", s)
				}
				q.Trial.Failures = int(n)
				return nil
			}},
		{Name: "odds", Usage: "the `probability` that a delivery fails, such as 30% or 0.3, instead of --fail",
			set: func(q *Question, s string) (err error) { q.Trial.Odds, err = parseShare(s, 1); return err }},
		{Name: "work", Usage: "how long a delivery takes: a `time` (default 0)",
			set: func(q *Question, s string) (err error) { q.Trial.Work, err = positive(s); return err }},
		{Name: "ttl", Usage: "time to live of the message: a `time` (default none)",
			set: func(q *Question, s string) (err error) { q.Trial.TimeToLive, err = positive(s); return err }},
		{Name: "non-persistent", Usage: "the message is not persistent", Flag: true,
			set: func(q *Question, s string) error {
				b, err := parseFlag(s)
				q.Trial.Persistent = !b
				return err
			}},
		{Name: "rate", Usage: "tell how many messages wait at a time where so many come: a `rate` such as 100/s or 20/m",
			set: func(q *Question, s string) (err error) { q.Trial.Rate, err = parseRate(s); return err }},
		{Name: "runs", Usage: fmt.Sprintf("how often chance is tried: a `number` up to %d (default %d)", MaxRuns, DefaultRuns),
			set: func(q *Question, s string) error {
				n, err := strconv.ParseUint(s, 10, 31)
				if err != nil || n < 1 || n > MaxRuns {
					return fmt.Errorf("%q is no number from 1 to %d", s, MaxRuns)
				}
				q.Trial.Runs = int(n)
				return nil
			}},
		{Name: "seed", Usage: "which chance it is: a `number`; the same number gives the same outcome (default 1)",
			set: func(q *Question, s string) (err error) {
				if q.Trial.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
					err = fmt.Errorf("%q is no number", s)
				}
				return err
			}},
	}
}

// parseRate reads "100/s", "20/m", "5/h" or a number for each second.
func parseRate(s string) (float64, error) {
	digits, second := s, 1.0
	for unit, seconds := range map[string]float64{"/s": 1, "/m": 60, "/h": 3600} {
		if n := len(s) - len(unit); n > 0 && s[n:] == unit {
			digits, second = s[:n], seconds
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f >= 0 && f <= 1e9) {
		return 0, fmt.Errorf("%q is no rate such as 100/s or 20/m", s)
	}
	return f / second, nil
}
