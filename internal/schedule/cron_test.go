package schedule

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

const layout = "2006-01-02 15:04"

// after lists the next n times of a line after a moment.
func after(t *testing.T, line, from string, n int, zone *time.Location) []string {
	t.Helper()
	c, err := ParseCron(line)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation(layout, from, zone)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for range n {
		at = c.Next(at)
		all = append(all, at.Format(layout))
	}
	return all
}

func TestCronNext(t *testing.T) { // R-SCH-14
	t.Parallel()
	for name, tt := range map[string]struct {
		line, from string
		want       []string
	}{
		"every minute":                           {"* * * * *", "2026-11-30 23:59", []string{"2026-12-01 00:00", "2026-12-01 00:01"}},
		"strictly later":                         {"30 10 * * *", "2026-11-30 10:30", []string{"2026-12-01 10:30"}},
		"a question mark is any":                 {"0 12 ? ? ?", "2026-01-01 00:00", []string{"2026-01-01 12:00", "2026-01-02 12:00"}},
		"a list and a range":                     {"1,5-6 0 * * *", "2026-01-01 00:00", []string{"2026-01-01 00:01", "2026-01-01 00:05", "2026-01-01 00:06", "2026-01-02 00:01"}},
		"a step keeps multiples":                 {"*/20 0 * * *", "2026-01-01 00:00", []string{"2026-01-01 00:20", "2026-01-01 00:40", "2026-01-02 00:00"}},
		"a step keeps multiples of days too":     {"0 0 */10 * *", "2026-01-01 00:00", []string{"2026-01-10 00:00", "2026-01-20 00:00", "2026-01-30 00:00", "2026-02-10 00:00"}},
		"R-EDGE-45 a step on a range begins it":  {"5-59/20 0 * * *", "2026-01-01 00:00", []string{"2026-01-01 00:05", "2026-01-01 00:25", "2026-01-01 00:45"}},
		"a step on a number goes to the end":     {"50/5 0 * * *", "2026-01-01 00:00", []string{"2026-01-01 00:50", "2026-01-01 00:55"}},
		"weekdays: 0 is Sunday":                  {"0 9 * * 0", "2026-11-30 00:00", []string{"2026-12-06 09:00", "2026-12-13 09:00"}},
		"both day fields: either one":            {"0 0 13 * 5", "2026-11-01 00:00", []string{"2026-11-06 00:00", "2026-11-13 00:00", "2026-11-20 00:00"}},
		"a month":                                {"0 0 1 2 *", "2026-03-01 00:00", []string{"2027-02-01 00:00", "2028-02-01 00:00"}},
		"the 31st skips short months":            {"0 0 31 * *", "2026-01-31 00:00", []string{"2026-03-31 00:00", "2026-05-31 00:00"}},
		"the 29th of February":                   {"0 0 29 2 *", "2096-03-01 00:00", []string{"2104-02-29 00:00"}},
		"white space of any kind, and any width": {"0\t0  1   1 *", "2026-03-01 00:00", []string{"2027-01-01 00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, after(t, tt.line, tt.from, len(tt.want), time.UTC)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCronWhereTheClocksChange(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Skip("no time zones here: ", err)
	}
	for name, tt := range map[string]struct {
		line, from string
		want       []string
	}{
		"half past two does not come in spring": {"30 2 * * *", "2026-03-28 12:00", []string{"2026-03-30 02:30"}},
		"and comes once in autumn":              {"30 2 * * *", "2026-10-24 12:00", []string{"2026-10-25 02:30", "2026-10-26 02:30"}},
	} {
		if diff := cmp.Diff(tt.want, after(t, tt.line, tt.from, len(tt.want), zone)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCronRefuses(t *testing.T) { // R-EDGE-44: minute 60 and hour 24 too
	t.Parallel()
	for _, line := range []string{"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 7",
		"5-1 * * * *", "*/0 * * * *", "*/x * * * *", "a * * * *", "* * * JAN *", "* * * * MON", "1- * * * *", "-1 * * * *", "1,,2 * * * *",
		"0 0 31 2 *", "0 0 */32 * *", "@hourly"} {
		if _, err := ParseCron(line); !errors.Is(err, message.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", line, err)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, line := range []string{"* * * * *", "0 0 29 2 *", "5-59/10 */3 1,15 * 1-5"} {
		f.Add(line, int64(1780000000))
	}
	f.Fuzz(func(t *testing.T, line string, from int64) {
		c, err := ParseCron(line)
		if err != nil {
			return
		}
		at := time.Unix(from%(1<<33), 0).UTC()
		next := c.Next(at)
		if !next.After(at) || next.Second() != 0 {
			t.Errorf("%q after %v is %v", line, at, next)
		}
	})
}
