package schedule

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

var begin = time.Date(2026, 11, 30, 10, 0, 20, 0, time.UTC)

// run fires a plan when it is due, so many times, each so late, and tells when the
// deliveries were due in seconds after begin. Series are run to their end.
func run(p Plan, n int, late time.Duration) []float64 {
	var all []float64
	at := p.First(begin)
	for range n {
		now := time.UnixMilli(at).UTC().Add(late)
		turn := p.Fire(at, now)
		if turn.Deliver {
			all = append(all, float64(at-begin.UnixMilli())/1000)
		}
		if turn.Series {
			for due, q := turn.SeriesDue, turn.Plan; ; {
				all = append(all, float64(due-begin.UnixMilli())/1000)
				t := q.Fire(due, time.UnixMilli(due).UTC().Add(late))
				if !t.Again {
					break
				}
				due, q.Repeat = t.Due, t.Repeat
			}
		}
		if !turn.Again {
			break
		}
		at, p.Repeat = turn.Due, turn.Repeat
	}
	return all
}

func TestPlans(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan Plan
		n    int
		late time.Duration
		want []float64
	}{
		"R-SCH-10 a delay":                              {Plan{Delay: 1234}, 9, 0, []float64{1.234}},
		"R-SCH-10 a period alone is waited once":        {Plan{Period: 5000}, 9, 0, []float64{5}},
		"R-SCH-10 delay, then periods":                  {Plan{Delay: 1000, Period: 2000, Repeat: 3}, 9, 0, []float64{1, 3, 5, 7}},
		"R-EDGE-44 a period does not drift":             {Plan{Delay: 1000, Period: 2000, Repeat: 3}, 9, 30 * time.Millisecond, []float64{1, 3, 5, 7}},
		"what was missed is not made up for at once":    {Plan{Period: 2000, Repeat: 2}, 9, 5 * time.Second, []float64{2, 8, 14}},
		"repeats without a period":                      {Plan{Delay: 1000, Repeat: 2}, 9, 0, []float64{1, 1, 1}},
		"R-SCH-11 cron: every fitting minute":           {Plan{Cron: "* * * * *"}, 3, 0, []float64{40, 100, 160}},
		"R-SCH-10 cron and delay":                       {Plan{Cron: "* * * * *", Delay: 5000}, 3, 0, []float64{45, 105, 165}},
		"a delay longer than the minute":                {Plan{Cron: "* * * * *", Delay: 90_000}, 2, 0, []float64{130, 190}},
		"R-SCH-11 cron and repeats: a series each":      {Plan{Cron: "*/2 * * * *", Delay: 1000, Period: 500, Repeat: 2}, 2, 0, []float64{101, 101.5, 102, 221, 221.5, 222}},
		"cron after the broker was down: the next only": {Plan{Cron: "* * * * *"}, 2, 150 * time.Second, []float64{40, 220}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, run(tt.plan, tt.n, tt.late)); diff != "" {
				t.Errorf("due after seconds (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) { // R-SCH-02, and the bound of 6.7
	t.Parallel()
	for name, tt := range map[string]struct {
		s    message.Schedule
		want error
	}{
		"a delay":           {message.Schedule{Delay: 1}, nil},
		"as many repeats":   {message.Schedule{Repeat: 1000}, nil},
		"too many repeats":  {message.Schedule{Repeat: 1001}, message.ErrOverLimit},
		"a negative delay":  {message.Schedule{Delay: -1}, message.ErrInvalid},
		"a negative period": {message.Schedule{Period: -1}, message.ErrInvalid},
		"a negative repeat": {message.Schedule{Repeat: -1}, message.ErrInvalid},
		"no cron line":      {message.Schedule{Cron: "x"}, message.ErrInvalid},
	} {
		if err := Check(&tt.s, DefaultMaxRepeat); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestNoDelayIsTooLong(t *testing.T) {
	t.Parallel()
	p := Plan{Delay: 1 << 62, Period: 1 << 62, Repeat: 1}
	if due := p.First(time.UnixMilli(1 << 62)); due != 1<<63-1 {
		t.Errorf("due at %d", due)
	}
	if p := (Plan{Delay: 1 << 62, Cron: "* * * * *"}); p.First(begin) <= 0 {
		t.Error("a long delay behind a cron line has come already")
	}
}
