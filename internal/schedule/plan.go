package schedule

import (
	"fmt"
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// DefaultMaxRepeat is how often a message may be repeated where nothing else is
// configured (maxSchedulerRepeatAllowed).
const DefaultMaxRepeat = 1000

// Check reports ErrInvalid, or ErrOverLimit for too many repeats, where a schedule
// is none that can be kept.
func Check(s *message.Schedule, maxRepeat int) error {
	switch {
	case s.Delay < 0 || s.Period < 0 || s.Repeat < 0:
		return fmt.Errorf("scheduled with delay %d, period %d, repeat %d: none may be below 0: %w", s.Delay, s.Period, s.Repeat, message.ErrInvalid)
	case int(s.Repeat) > maxRepeat:
		return fmt.Errorf("scheduled to repeat %d times, and maxSchedulerRepeatAllowed is %d: %w", s.Repeat, maxRepeat, message.ErrOverLimit)
	case s.Cron != "":
		_, err := ParseCron(s.Cron)
		return err
	}
	return nil
}

// A Plan is when a job is due, and what is left of it then.
type Plan struct {
	Delay, Period int64 // milliseconds
	Repeat        int32 // deliveries after the next one
	Cron          string
}

// First is when a job that is scheduled at now is first due, Unix milliseconds: at
// once after its delay, or after its period where it has no delay (R-SCH-10); with
// a cron line at the first minute that fits, and its delay later.
func (p Plan) First(now time.Time) int64 {
	if p.Cron != "" {
		return p.match(now, now)
	}
	return later(now.UnixMilli(), p.lead())
}

// lead is what goes before the first delivery of a series.
func (p Plan) lead() int64 {
	if p.Delay > 0 {
		return p.Delay
	}
	return p.Period
}

// delay is Delay, which ends at 292 years.
func (p Plan) delay() time.Duration {
	return time.Duration(min(p.Delay, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// match is when the first fitting minute after from brings a delivery, or a series,
// after now.
func (p Plan) match(from, now time.Time) int64 {
	c, err := ParseCron(p.Cron)
	if err != nil {
		return math.MaxInt64 // it was checked before it was stored
	}
	delay := time.Duration(0)
	if p.Repeat == 0 {
		delay = p.delay()
	}
	if earliest := now.Add(-delay); earliest.After(from) {
		from = earliest
	}
	at := c.Next(from)
	if at.IsZero() {
		return math.MaxInt64
	}
	return later(at.UnixMilli(), delay.Milliseconds())
}

// A Turn is what a job does when it is due.
type Turn struct {
	// Deliver: the message is sent on.
	Deliver bool
	// Series: a job of its own begins, with Plan, due at SeriesDue.
	Series    bool
	Plan      Plan
	SeriesDue int64
	// Again: the job goes on, with Repeat deliveries after the one that is due at Due.
	Again  bool
	Due    int64
	Repeat int32
}

// Fire tells what a job that was due at due does at now, which is not before.
//
// A period counts from when the job was due and not from when it was fired, so that
// it does not drift (R-EDGE-44); deliveries that were missed while the broker was
// down are not made up for one after the other, but none of the repeats is lost.
// With a cron line alone each fitting minute delivers; with repeats too, each begins
// a series of its own (R-SCH-11).
func (p Plan) Fire(due int64, now time.Time) Turn {
	if p.Cron != "" {
		minute := time.UnixMilli(due).In(now.Location()) // that brought this
		if p.Repeat == 0 {
			minute = minute.Add(-p.delay())
		}
		t := Turn{Deliver: p.Repeat == 0, Again: true, Due: p.match(minute, now), Repeat: p.Repeat}
		if p.Repeat > 0 {
			t.Series, t.Plan = true, Plan{Delay: p.Delay, Period: p.Period, Repeat: p.Repeat}
			t.SeriesDue = later(max(due, 0), p.lead())
		}
		return t
	}
	t := Turn{Deliver: true}
	if p.Repeat > 0 {
		t.Again, t.Repeat = true, p.Repeat-1
		t.Due = later(due, p.Period)
		if behind := now.UnixMilli() - t.Due; behind > 0 && p.Period > 0 {
			t.Due += (behind + p.Period - 1) / p.Period * p.Period
		}
	}
	return t
}

// later adds a delay of at least 0 to a time and ends at the largest.
func later(t, delay int64) int64 {
	if delay > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + delay
}
