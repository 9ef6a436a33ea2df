package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// A Cron is a line of five fields: minute, hour, day of month, month and day of
// week (0 to 6, 0 is Sunday), as ActiveMQ reads it (R-SCH-14): each is * or ?, a
// number, a range a-b, a list of those, or one of them with a step x/n. There are
// no names and no seconds.
//
// A step on * keeps the multiples of n, in every field: days */5 are 5, 10, 15 and
// so on. A step on a range begins where the range begins: minutes 5-59/10 are 5,
// 15, 25. ActiveMQ keeps the multiples of ten there, which are not what the line
// says (R-EDGE-45). Where both day fields are restricted, a day that fits either
// one fits.
//
// The parser is our own because of that: robfig/cron has days */5 begin at 1, and
// takes names, descriptors and time zones that no ActiveMQ client lets pass.
type Cron struct {
	minute, hour, day, month, weekday uint64 // bit n: the value n fits
	anyDay, anyWeekday                bool
}

// A field is the range of one of the five.
type field struct {
	name     string
	min, max int
}

var fields = [...]field{{"minute", 0, 59}, {"hour", 0, 23}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 6}}

// ParseCron reads a line. One that is not of this form, or that no day ever fits,
// is ErrInvalid.
func ParseCron(line string) (Cron, error) {
	parts := strings.Fields(line)
	if len(parts) != len(fields) {
		return Cron{}, fmt.Errorf("cron line %q has %d fields, want 5: minute, hour, day of month, month, day of week: %w", line, len(parts), message.ErrInvalid)
	}
	var set [len(fields)]uint64
	for i, f := range fields {
		for part := range strings.SplitSeq(parts[i], ",") {
			bits, err := f.parse(part)
			if err != nil {
				return Cron{}, fmt.Errorf("cron line %q: %w", line, err)
			}
			set[i] |= bits
		}
	}
	c := Cron{minute: set[0], hour: set[1], day: set[2], month: set[3], weekday: set[4], anyDay: isAny(parts[2]), anyWeekday: isAny(parts[4])}
	if c.Next(time.Unix(0, 0).UTC()).IsZero() {
		return Cron{}, fmt.Errorf("cron line %q: there is no such day: %w", line, message.ErrInvalid)
	}
	return c, nil
}

func isAny(part string) bool { return part == "*" || part == "?" }

// parse reads one part of a field's list.
func (f field) parse(part string) (uint64, error) {
	bad := func(what string) error {
		return fmt.Errorf("%s %q %s; it goes from %d to %d: %w", f.name, part, what, f.min, f.max, message.ErrInvalid)
	}
	span, stepText, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		n, err := strconv.Atoi(stepText)
		if err != nil || n < 1 {
			return 0, bad("has no step above 0")
		}
		step = n
	}
	from, to, multiples := f.min, f.max, isAny(span)
	if !multiples {
		low, high, ranged := strings.Cut(span, "-")
		n, err := strconv.Atoi(low)
		if err != nil {
			return 0, bad("is not a number")
		}
		from, to = n, n
		if ranged {
			if to, err = strconv.Atoi(high); err != nil {
				return 0, bad("is not a range")
			}
		} else if stepped {
			to = f.max
		}
	}
	if from < f.min || to > f.max || from > to {
		return 0, bad("is outside")
	}
	var set uint64
	for n := from; n <= to; n++ {
		if multiples && n%step == 0 || !multiples && (n-from)%step == 0 {
			set |= 1 << n
		}
	}
	if set == 0 {
		return 0, bad("fits nothing")
	}
	return set, nil
}

// horizonYears is how far Next looks: the 29th of February may be eight years off.
const horizonYears = 9

// Next is the first minute after t that fits, in t's time zone; zero if there is
// none. A minute that a change of clocks leaves out does not come, and one that it
// brings twice comes once.
func (c Cron) Next(t time.Time) time.Time {
	zone := t.Location()
	year, month, day := t.Date()
	for d := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); d.Year() <= year+horizonYears; d = d.AddDate(0, 0, 1) {
		if !c.fits(d) {
			if c.month&(1<<int(d.Month())) == 0 { // on to the last day of a month that does not fit
				d = time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC)
			}
			continue
		}
		for h := c.hour; h != 0; h &= h - 1 {
			for m := c.minute; m != 0; m &= m - 1 {
				hour, minute := bits.TrailingZeros64(h), bits.TrailingZeros64(m)
				at := time.Date(d.Year(), d.Month(), d.Day(), hour, minute, 0, 0, zone)
				if at.After(t) && at.Hour() == hour && at.Minute() == minute {
					return at
				}
			}
		}
	}
	return time.Time{}
}

// fits reports whether the day fits.
func (c Cron) fits(d time.Time) bool {
	day, weekday := c.day&(1<<d.Day()) != 0, c.weekday&(1<<int(d.Weekday())) != 0
	switch {
	case c.month&(1<<int(d.Month())) == 0:
		return false
	case !c.anyDay && !c.anyWeekday:
		return day || weekday
	}
	return day && weekday
}
