package jolokia

import (
	"context"
	"fmt"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
)

// scheduler is the bean of scheduled messages (JobSchedulerView). Whoever may only look is
// told how many there are.
func (l *look) scheduler(n name) *bean {
	return &bean{name: n, class: "org.apache.activemq.broker.jmx.JobSchedulerView", attributes: []attribute{
		{"AllJobs", typTable, func() (any, error) {
			jobs, err := l.jobs()
			if err != nil {
				return nil, err
			}
			table := map[string]any{}
			for i := range jobs {
				table[jobs[i].ID] = job(&jobs[i])
			}
			return table, nil
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
		{"removeAllJobs", nil, typNothing, func(ctx context.Context, _ []any) (any, error) {
			jobs, err := l.jobs()
			for i := 0; i < len(jobs) && err == nil; i++ {
				err = l.b.RemoveScheduled(ctx, jobs[i].ID)
			}
			return nil, err
		}},
	}}
}

// jobs are all scheduled messages; an error where there are more than a reply has.
func (l *look) jobs() ([]broker.ScheduledMessage, error) {
	if err := l.o.MayAct(l.r); err != nil {
		return nil, err
	}
	page, total, err := l.b.Scheduled(broker.ScheduledCursor{}, MaxBrowse)
	if err == nil && total > int64(len(page)) && len(page) == MaxBrowse {
		err = badRequest("%d messages are scheduled, more than %d: page by GET /api/v1/scheduled", total, MaxBrowse)
	}
	return page, err
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
