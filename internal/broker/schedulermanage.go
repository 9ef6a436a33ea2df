package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/records"
)

// What a client sends to the scheduler itself (R-SCH-20): a message to a destination
// whose name begins with SchedulerManagement, in any case of letters.
const (
	SchedulerManagement = "ActiveMQ.Scheduler.Management"

	schedulerAction    = "AMQ_SCHEDULER_ACTION"
	schedulerBrowse    = "BROWSE"
	schedulerRemove    = "REMOVE"
	schedulerRemoveAll = "REMOVEALL"
	schedulerStart     = "ACTION_START_TIME"
	schedulerEnd       = "ACTION_END_TIME"
	advisoryType       = "Advisory" // JMSType of what is browsed
)

// manages reports whether a message is for the scheduler itself.
func (b *Broker) manages(m *message.Message) bool {
	const n = len(SchedulerManagement)
	name := m.Destination.Name
	return b.scheduler != nil && len(name) >= n && strings.EqualFold(name[:n], SchedulerManagement)
}

// A jobRange is when the jobs meant are next due, Unix milliseconds, both ends included.
type jobRange struct{ from, until int64 }

// manage does what a message asks of the scheduler. done is called when it is done;
// a request that asks for nothing, or for what cannot be, is ErrInvalid.
func (s *scheduler) manage(m *message.Message, done func(error)) {
	action := s.b.text(m, schedulerAction)
	span, err := s.span(m)
	if err != nil {
		done(err)
		return
	}
	var do func() error
	switch action {
	case schedulerBrowse:
		if m.ReplyTo.IsZero() {
			err = fmt.Errorf("%s of %s has no JMSReplyTo: %w", action, m.Destination, message.ErrInvalid)
		}
		do = func() error { return s.browse(m.ReplyTo, span) }
	case schedulerRemove:
		id := s.b.text(m, ScheduledJobID)
		if id == "" {
			err = fmt.Errorf("%s of %s names no job: property %s is missing: %w", action, m.Destination, ScheduledJobID, message.ErrInvalid)
		}
		do = func() error {
			_, err := s.remove(id)
			if errors.Is(err, message.ErrNotFound) {
				return nil // fired meanwhile, perhaps: what was asked for holds
			}
			return err
		}
	case schedulerRemoveAll:
		do = func() error { _, err := s.removeAll(span); return err }
	default:
		err = fmt.Errorf("message to %s: property %s is %q, want %s, %s or %s: %w", m.Destination, schedulerAction, action,
			schedulerBrowse, schedulerRemove, schedulerRemoveAll, message.ErrInvalid)
	}
	if err != nil {
		done(err)
		return
	}
	if !s.box.force(work{do: func() { done(do()) }, stopped: done}) {
		done(errStopped)
	}
}

// text is a property of a message as text, "" where it is not there.
func (b *Broker) text(m *message.Message, name string) string {
	if b.o.Properties == nil {
		return ""
	}
	v, ok := b.o.Properties(m, name)
	if !ok {
		return ""
	}
	return v.Text()
}

// span reads the times that bound a request.
func (s *scheduler) span(m *message.Message) (jobRange, error) {
	r := jobRange{0, math.MaxInt64}
	for _, p := range []struct {
		name string
		to   *int64
	}{{schedulerStart, &r.from}, {schedulerEnd, &r.until}} {
		text := s.b.text(m, p.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return r, fmt.Errorf("message to %s: property %s is %q, want a time in milliseconds: %w", m.Destination, p.name, text, message.ErrInvalid)
		}
		*p.to = n
	}
	return r, nil
}

// managedJobs is how many jobs a request goes through at a time.
const managedJobs = 200

// each calls f for the jobs in a range, page by page: those that are there when it
// comes to them.
func (s *scheduler) each(r jobRange, f func([]records.Job) error) error {
	rec := s.b.o.Records
	after := records.JobTime{Due: r.from - 1, Sequence: math.MaxUint64}
	if r.from <= 0 {
		after = records.JobTime{}
	}
	for {
		times, err := rec.JobTimes(after, r.until, managedJobs)
		if err != nil {
			return err
		}
		var page []records.Job
		for _, t := range times {
			j, err := s.job(t)
			switch {
			case err == nil && j.Due == t.Due:
				page = append(page, j)
			case err != nil && !errors.Is(err, message.ErrNotFound):
				return err
			}
			after = t
		}
		if err := f(page); err != nil || len(times) < managedJobs {
			return err
		}
	}
}

// browse sends a copy of each job's message to replyTo, with the job's id and what
// it was scheduled with.
func (s *scheduler) browse(replyTo message.Destination, r jobRange) error {
	b := s.b
	return s.each(r, func(page []records.Job) error {
		u := b.newUnit()
		u.relay = true
		for i := range page {
			j := &page[i]
			m, err := b.o.Records.JobMessage(j)
			switch {
			case unreadable(err):
				continue // it becomes a dead letter when its time has come
			case err != nil:
				return err
			}
			c := b.browsed(j, m, replyTo)
			copies, err := b.expand(c, "")
			if err != nil {
				return err
			}
			for _, to := range copies {
				u.add(to, c)
			}
		}
		return s.wait(u.commit)
	})
}

// browsed is what someone is sent who browses a job.
func (b *Broker) browsed(j *records.Job, m *message.Message, replyTo message.Destination) *message.Message {
	c := *m
	c.ID = b.freshMessageID()
	c.OriginalDestination, c.Destination, c.ReplyTo = j.Destination, replyTo, message.Destination{}
	c.Persistent, c.Expiration, c.Type, c.TransactionID = false, 0, advisoryType, ""
	c.BrokerInTime = b.now()
	c.Added = map[string]any{ScheduledJobID: j.ID}
	for name, n := range map[string]int64{ScheduleDelay: j.Delay, SchedulePeriod: j.Period, ScheduleRepeat: int64(j.Repeat)} {
		if n != 0 {
			c.Added[name] = n
		}
	}
	if j.Cron != "" {
		c.Added[ScheduleCron] = j.Cron
	}
	return &c
}

// remove deletes a job by its id; ErrNotFound where there is none.
func (s *scheduler) remove(id string) (records.Job, error) {
	j, err := s.jobByID(id)
	if err != nil {
		return j, err
	}
	return j, s.drop([]records.Job{j})
}

// removeAll deletes the jobs in a range and tells how many there were.
func (s *scheduler) removeAll(r jobRange) (n int, err error) {
	err = s.each(r, func(page []records.Job) error {
		n += len(page)
		return s.drop(page)
	})
	return n, err
}

func (s *scheduler) drop(jobs []records.Job) error {
	batch := new(records.Batch)
	for i := range jobs {
		batch.DropJob(&jobs[i])
	}
	if batch.Empty() {
		return nil
	}
	return s.wait(func(done func(error)) { s.b.o.Records.Commit(batch, done) })
}

// wait starts something and waits for its answer.
func (s *scheduler) wait(start func(done func(error))) error {
	answered := make(chan error, 1)
	start(func(err error) { answered <- err })
	select {
	case err := <-answered:
		return err
	case <-s.b.ctx.Done():
		return errStopped
	}
}

// A ScheduledMessage is a job as people see it.
type ScheduledMessage struct {
	records.Job
	Message *message.Message // as it is kept
}

// A ScheduledCursor is where looking at scheduled messages goes on. The zero value is
// the beginning.
type ScheduledCursor = records.JobTime

// Scheduled lists up to n scheduled messages behind a cursor, those that are due next
// first, and how many there are in all.
func (b *Broker) Scheduled(after ScheduledCursor, n int) (page []ScheduledMessage, total int64, err error) {
	rec := b.o.Records
	times, err := rec.JobTimes(after, math.MaxInt64, n)
	if err != nil {
		return nil, 0, err
	}
	for _, t := range times {
		j, err := rec.JobAt(t)
		if errors.Is(err, message.ErrCorrupt) && b.scheduler != nil { // its goroutine mends it
			failed := b.scheduler.do(b.ctx, func() { j, err = b.scheduler.job(t) })
			err = cmp.Or(failed, err)
		}
		if err == nil {
			var m *message.Message
			if m, err = rec.JobMessage(&j); unreadable(err) {
				m, err = &message.Message{ID: message.ID{Text: j.ID}, Destination: j.Destination}, nil // a dead letter, when its time has come
			}
			if err == nil {
				page = append(page, ScheduledMessage{Job: j, Message: m})
			}
		}
		if err != nil && !errors.Is(err, message.ErrNotFound) {
			return nil, 0, err
		}
	}
	return page, b.ScheduledMessages(), nil
}

// ScheduledMessages is how many scheduled messages there are.
func (b *Broker) ScheduledMessages() int64 { return b.o.Records.Jobs().Messages }

// RecordsAside is how many damaged records of the store are kept aside.
func (b *Broker) RecordsAside() int64 { return b.o.Records.SetAside() }

// RemoveScheduled deletes a scheduled message by the id of its job; ErrNotFound where
// there is none.
func (b *Broker) RemoveScheduled(ctx context.Context, id string) error {
	if b.scheduler == nil {
		return fmt.Errorf("scheduled job %s: there is no scheduler: %w", id, message.ErrNotFound)
	}
	removed := make(chan error, 1)
	if err := b.scheduler.do(ctx, func() { _, err := b.scheduler.remove(id); removed <- err }); err != nil {
		return err
	}
	return <-removed
}

// RemoveAllScheduled deletes the scheduled messages that are next due in a time, Unix
// milliseconds, both ends included, and tells how many there were.
func (b *Broker) RemoveAllScheduled(ctx context.Context, from, until int64) (n int, err error) {
	if b.scheduler == nil {
		return 0, nil
	}
	removed := make(chan error, 1)
	if err := b.scheduler.do(ctx, func() {
		var err error
		n, err = b.scheduler.removeAll(jobRange{from, until})
		removed <- err
	}); err != nil {
		return 0, err
	}
	err = <-removed
	return n, err
}
