package jolokia

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
)

// scheduler is the bean of scheduled messages (JobSchedulerView). Whoever may only look is
// told how many there are.
func (l *look) scheduler(n name) *bean {
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.JobSchedulerView", attributes: []attribute{
		{"AllJobs", typTable, func() (any, error) { return l.jobs(0, math.MaxInt64) }},
		{"NextScheduleJobs", typTable, func() (any, error) {
			next, _, err := l.b.Scheduled(broker.ScheduledCursor{}, 1)
			if err != nil || len(next) == 0 {
				return map[string]any{}, err
			}
			return l.jobs(0, next[0].Due)
		}},
		{"NextScheduleTime", typString, func() (any, error) {
			page, _, err := l.b.Scheduled(broker.ScheduledCursor{}, 1)
			if err != nil || len(page) == 0 {
				return "", err
			}
			return clockTime(page[0].Due), nil
		}},
		value("ScheduledMessageCount", typLong, l.b.ScheduledMessages()),
		value("DelayedMessageCount", typLong, l.b.ScheduledMessages()),
	}, operations: []operation{
		{"removeJob", []string{typString}, typNothing, func(ctx context.Context, a []any) (any, error) { return nil, l.b.RemoveScheduled(ctx, a[0].(string)) }},
		{"getAllJobs", []string{typString, typString}, typTable, func(_ context.Context, a []any) (any, error) {
			from, until, err := jobTimes(a)
			if err != nil {
				return nil, err
			}
			return l.jobs(from, until)
		}},
		{"removeAllJobs", nil, typNothing, func(ctx context.Context, _ []any) (any, error) {
			_, err := l.b.RemoveAllScheduled(ctx, 0, math.MaxInt64)
			return nil, err
		}},
		{"removeAllJobs", []string{typString, typString}, typNothing, func(ctx context.Context, a []any) (any, error) {
			from, until, err := jobTimes(a)
			if err == nil {
				_, err = l.b.RemoveAllScheduled(ctx, from, until)
			}
			return nil, err
		}},
	}}
}

// jobTimes reads the two times of an operation, to the second and in UTC as this bean
// writes them; the second one is meant whole.
func jobTimes(a []any) (from, until int64, err error) {
	var times [2]time.Time
	for i := range times {
		if times[i], err = time.Parse(time.DateTime, a[i].(string)); err != nil {
			return 0, 0, badRequest("%q is no time like %s, in UTC", a[i], time.DateTime)
		}
	}
	return times[0].UnixMilli(), times[1].UnixMilli() + 999, nil
}

// jobs is the table of the scheduled messages that are next due in a time; an error where
// there are more than a reply has.
func (l *look) jobs(from, until int64) (any, error) {
	if err := l.o.MayAct(l.r); err != nil {
		return nil, err
	}
	after := broker.ScheduledCursor{}
	if from > 0 {
		after = broker.ScheduledCursor{Due: from - 1, Sequence: math.MaxUint64}
	}
	page, total, err := l.b.Scheduled(after, MaxBrowse)
	if err != nil {
		return nil, err
	}
	if len(page) == MaxBrowse && page[MaxBrowse-1].Due <= until && total > MaxBrowse {
		return nil, badRequest("%d messages are scheduled, and more than %d of them are meant: page by GET /api/v1/scheduled", total, MaxBrowse)
	}
	table := map[string]any{}
	for i := range page {
		if page[i].Due <= until {
			table[page[i].ID] = job(&page[i])
		}
	}
	return table, nil
}

func job(j *broker.ScheduledMessage) map[string]any {
	return map[string]any{"jobId": j.ID, "cronEntry": j.Cron, "delay": j.Delay, "period": j.Period, "repeat": j.Repeat,
		"start": clockTime(j.Created), "next": clockTime(j.Due), "destination": j.Destination.String(), "executionCount": j.Fired}
}

// clockTime writes a time, Unix milliseconds, as ActiveMQ's scheduler does.
func clockTime(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.DateTime) }

// dateTime writes a time as Jolokia writes dates.
func dateTime(millis int64) any {
	if millis == 0 {
		return nil
	}
	if t := time.UnixMilli(millis).UTC(); t.Year() > 0 && t.Year() <= 9999 {
		return t.Format(time.RFC3339)
	}
	return fmt.Sprint(millis)
}
