package broker

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/schedule"
)

// The properties of scheduled messages (R-SCH-01). ScheduledJobID is on what the
// scheduler sends; on what a producer sends it means nothing (C08).
const (
	ScheduleDelay  = "AMQ_SCHEDULED_DELAY"
	SchedulePeriod = "AMQ_SCHEDULED_PERIOD"
	ScheduleRepeat = "AMQ_SCHEDULED_REPEAT"
	ScheduleCron   = "AMQ_SCHEDULED_CRON"
	ScheduledJobID = "scheduledJobId"
)

// ErrSchedule marks the error of a message whose schedule cannot be kept.
var ErrSchedule = errors.New("schedule")

// scheduled reports whether a message waits for the scheduler before it is sent on.
// Where there is no scheduler it goes on at once, with its properties (R-SCH-01).
func (b *Broker) scheduled(m *message.Message) bool { return m.Schedule != nil && b.scheduler != nil }

// checkSchedule says why a message cannot be scheduled.
func (b *Broker) checkSchedule(m *message.Message) error {
	if err := schedule.Check(m.Schedule, b.o.MaxRepeat); err != nil {
		return fmt.Errorf("message %s: %w: %w", m.ID, ErrSchedule, err)
	}
	return nil
}

// plan is the plan of a job.
func plan(j *records.Job) schedule.Plan {
	return schedule.Plan{Delay: j.Delay, Period: j.Period, Repeat: j.Repeat, Cron: j.Cron}
}

// unscheduled is a message as it is kept until it is due.
func unscheduled(m *message.Message) *message.Message {
	c := *m
	c.Schedule, c.Properties = nil, m.Schedule.Properties
	return &c
}

// newJob makes the job of a message that was just sent. Sequence is still to be set.
func (b *Broker) newJob(m *message.Message, sizeBytes int32) *records.Job {
	now := b.o.Clock.Now()
	s := m.Schedule
	j := &records.Job{ID: m.ID.String(), Destination: m.Destination, Created: now.UnixMilli(), SizeBytes: sizeBytes,
		Delay: s.Delay, Period: s.Period, Repeat: s.Repeat, Cron: s.Cron}
	if s.At > 0 { // it may have come long ago, in a transaction
		j.Delay = max(s.At-now.UnixMilli(), 0)
	}
	p := plan(j)
	j.Due = p.First(now)
	return j
}

// A newJob is a job that a unit stores, with its message.
type jobFor struct {
	job     *records.Job
	message *message.Message // as it is kept
	staged  string           // the transaction under which the message was staged, as job.Sequence
}

// addJob puts a scheduled message into the unit, unless a job of its id waits already:
// then a client has sent it once more, after a fail-over.
func (u *unit) addJob(m *message.Message, staged uint64, size int32, tx string) error {
	if _, err := u.b.o.Records.JobByID(m.ID.String()); err == nil || errors.Is(err, message.ErrCorrupt) { // which is there as well
		u.after = append(u.after, func() { u.b.tell(Event{Kind: Suppressed, Destination: m.Destination, Message: m.ID}) })
		if staged != 0 {
			u.batch.DropStaged(tx, staged)
		}
		return nil
	} else if !errors.Is(err, message.ErrNotFound) {
		return err
	}
	f := jobFor{message: unscheduled(m)}
	if staged == 0 {
		size = int32(f.message.SizeBytes())
	} else {
		f.staged = tx
	}
	f.job = u.b.newJob(m, size)
	f.job.Sequence = staged
	u.jobs = append(u.jobs, f)
	return nil
}

// writeJobs fills the batch with the unit's jobs.
func (u *unit) writeJobs() {
	for _, f := range u.jobs {
		if f.staged != "" {
			u.batch.Unstage(f.staged, f.job.Sequence)
		} else {
			f.job.Sequence = u.b.o.Records.Next(1)
			u.batch.PutMessage(f.job.Sequence, f.message, 1)
		}
		u.batch.PutJob(f.job)
	}
}

// fired is what the scheduler sends on of a job's message at now. What is sent once
// keeps its id; else each is a message of its own (R-SCH-12). The time that the
// message waited does not count against its time to live (R-SCH-13).
func (b *Broker) fired(j *records.Job, m *message.Message, now time.Time) *message.Message {
	c := *m
	c.Added = map[string]any{}
	maps.Copy(c.Added, m.Added)
	c.Added[ScheduledJobID] = j.ID
	c.Destination, c.TransactionID, c.BrokerInTime = j.Destination, "", now.UnixMilli()
	if j.Repeat != 0 || j.Fired > 0 || j.Cron != "" {
		c.ID = b.freshMessageID()
	}
	if c.Timestamp > 0 && c.Expiration > 0 {
		if e := c.BrokerInTime + c.Expiration - c.Timestamp; e > c.Expiration {
			c.Timestamp, c.Expiration = c.BrokerInTime, e
		}
	}
	return &c
}

// freshMessageID is the id of a message that the broker itself makes.
func (b *Broker) freshMessageID() message.ID {
	return message.ID{Producer: b.producer, Sequence: int64(b.o.Records.Next(1))}
}
