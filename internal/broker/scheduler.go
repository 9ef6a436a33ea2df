package broker

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/schedule"
)

// Bounds of the scheduler. They bound memory and batches, not what can be scheduled.
const (
	nearJobs   = 1000    // jobs that are read ahead at a time
	maxNear    = 8000    // in memory, before the later ones are left to the store again
	firedJobs  = 256     // in one batch
	firedBytes = 2 << 20 // of their messages; the one that passes it is the last
	jobRetry   = 5 * time.Second
)

// A scheduler sends messages on when they are due. Jobs are in the store, in the
// order of their times; those that are due next are known here too, as times and
// numbers alone, so that a million jobs cost no memory and one timer.
//
// Its goroutine owns near, after and all; others send it work through box.
type scheduler struct {
	b   *Broker
	box *mailbox
	// near are jobs that are due next; every job up to after is among them, and where
	// all is set every job there is. It may also name jobs that have gone, or that are
	// due at another time: what the store says counts.
	near  jobHeap
	after records.JobTime
	all   bool
}

// A jobHeap keeps jobs by their times, the earliest first.
type jobHeap []records.JobTime

// Len, Less, Swap, Push and Pop serve package heap.
func (h jobHeap) Len() int           { return len(h) }
func (h jobHeap) Less(i, j int) bool { return h[i].Before(h[j]) }
func (h jobHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push appends a job.
func (h *jobHeap) Push(x any) { *h = append(*h, x.(records.JobTime)) }

// Pop takes the last job off.
func (h *jobHeap) Pop() any {
	n := len(*h) - 1
	t := (*h)[n]
	*h = (*h)[:n]
	return t
}

func newScheduler(b *Broker) *scheduler {
	return &scheduler{b: b, box: newMailbox(b.o.Limits.MailboxCommands)}
}

func (s *scheduler) run(ctx context.Context) {
	var spare, todo []work
	for {
		var wake <-chan time.Time
		disarm := func() {}
		s.refill()
		if len(s.near) > 0 {
			wake, disarm = s.b.o.Clock.At(time.UnixMilli(max(s.near[0].Due, 1)))
		}
		todo = todo[:0]
		select {
		case <-ctx.Done():
			disarm()
			s.abandon(context.Cause(ctx))
			return
		case <-wake:
		case <-s.box.wake:
			todo = s.box.take(spare)
		}
		disarm()
		for _, w := range todo {
			w.do()
		}
		clear(todo)
		spare = todo
		s.fire(ctx)
	}
}

// abandon answers what still waits.
func (s *scheduler) abandon(err error) {
	for _, w := range s.box.close(err) {
		if w.stopped != nil {
			w.stopped(err)
		}
	}
}

// do runs f in the scheduler's goroutine, between two firings, and waits for it.
func (s *scheduler) do(ctx context.Context, f func()) error {
	answered := make(chan error, 1)
	w := work{do: func() { f(); answered <- nil }, stopped: func(err error) { answered <- err }}
	if err := s.box.put(ctx, w); err != nil {
		return err
	}
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// later has the job looked at again in a while: it cannot be fired now.
func (s *scheduler) later(t records.JobTime, err error) {
	s.b.o.Log.Error("a scheduled message cannot be sent on; it stays", "err", err, "again_in", jobRetry)
	s.b.running.Go(func() {
		wake, disarm := s.b.o.Clock.At(s.b.o.Clock.Now().Add(jobRetry))
		defer disarm()
		select {
		case <-wake:
			s.box.force(work{do: func() { s.add(t) }, stopped: func(error) {}})
		case <-s.b.ctx.Done():
		}
	})
}

// job reads a job, in the scheduler's goroutine, and mends it where it is damaged.
func (s *scheduler) job(t records.JobTime) (j records.Job, err error) {
	err = s.reading(func() (err error) { j, err = s.b.o.Records.JobAt(t); return err })
	return j, err
}

// jobByID is job by the job's id.
func (s *scheduler) jobByID(id string) (j records.Job, err error) {
	err = s.reading(func() (err error) { j, err = s.b.o.Records.JobByID(id); return err })
	return j, err
}

func (s *scheduler) reading(read func() error) error {
	return s.b.o.Records.Reading(message.Destination{}, s.settle, read)
}

// settle waits until all that was changed so far is on disk.
func (s *scheduler) settle() error {
	return s.wait(func(done func(error)) { s.b.o.Records.Commit(new(records.Batch), done) })
}

// refill reads the next jobs from the store where none is known.
func (s *scheduler) refill() {
	if len(s.near) > 0 || s.all {
		return
	}
	times, err := s.b.o.Records.JobTimes(s.after, math.MaxInt64, nearJobs)
	if err != nil {
		s.later(records.JobTime{}, err) // wakes the scheduler, which reads again
		s.all = true
		return
	}
	s.near = append(s.near, times...) // in order, so it is a heap
	if s.all = len(times) < nearJobs; len(times) > 0 {
		s.after = times[len(times)-1]
	}
}

// announce tells the scheduler of a job that is in the store now.
func (s *scheduler) announce(t records.JobTime) {
	s.box.force(work{do: func() { s.add(t) }, stopped: func(error) {}})
}

// add takes note of a job, unless it is behind what is known here.
func (s *scheduler) add(t records.JobTime) {
	if t == (records.JobTime{}) { // reading failed, and is to be tried again
		s.all = false
		return
	}
	if !s.all && s.after.Before(t) {
		return
	}
	heap.Push(&s.near, t)
	if len(s.near) > maxNear {
		s.forgetLater()
	}
}

// forgetLater leaves all but the next jobs to the store.
func (s *scheduler) forgetLater() {
	var kept jobHeap
	for range nearJobs {
		kept = append(kept, heap.Pop(&s.near).(records.JobTime))
	}
	s.near, s.after, s.all = kept, kept[len(kept)-1], false
}

// fire sends on what is due, one batch of it.
func (s *scheduler) fire(ctx context.Context) {
	now := s.b.o.Clock.Now()
	f := firing{s: s, u: s.b.newUnit(), now: now}
	f.u.relay = true
	var last records.JobTime
	for s.refill(); len(s.near) > 0 && s.near[0].Due <= now.UnixMilli() && len(f.taken) < firedJobs && f.bytes < firedBytes; s.refill() {
		t := heap.Pop(&s.near).(records.JobTime)
		if t == last { // it was read, and announced as well
			continue
		}
		last = t
		if err := f.take(t); err != nil {
			s.later(t, err)
		}
	}
	if len(f.taken) > 0 {
		f.commit(ctx)
	}
}

// A firing is a batch of jobs on their way out.
type firing struct {
	s     *scheduler
	u     *unit
	now   time.Time
	bytes int
	taken []records.JobTime // jobs of the batch, as they were
	next  []records.JobTime // jobs that the batch leaves or makes
	told  []Event
}

// take puts a job into the batch. One that has gone, or is due at another time by
// now, is passed over.
func (f *firing) take(t records.JobTime) error {
	b := f.s.b
	j, err := f.s.job(t)
	if errors.Is(err, message.ErrNotFound) || err == nil && j.Due != t.Due {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := b.o.Records.JobMessage(&j)
	switch {
	case unreadable(err):
		return f.deadLetter(t, &j, err)
	case err != nil:
		return err
	}
	p := plan(&j)
	turn := p.Fire(j.Due, f.now)
	if turn.Deliver {
		if err := f.deliver(&j, m); err != nil {
			return err
		}
	}
	if turn.Series {
		f.series(&j, m, turn)
	}
	if !turn.Again || turn.Due == math.MaxInt64 {
		f.u.batch.DropJob(&j)
	} else {
		j.Due, j.Repeat, j.Fired = turn.Due, turn.Repeat, j.Fired+1
		f.u.batch.MoveJob(&j, t.Due)
		f.next = append(f.next, records.JobTime{Due: j.Due, Sequence: j.Sequence})
	}
	f.taken = append(f.taken, t)
	f.bytes += m.SizeBytes()
	return nil
}

// deliver routes a job's message as if it were sent now. A temporary destination
// that has gone takes the message with it, as it takes its others.
func (f *firing) deliver(j *records.Job, m *message.Message) error {
	b := f.s.b
	out := b.fired(j, m, f.now)
	copies, err := b.expand(out, "")
	switch {
	case errors.Is(err, message.ErrNotFound):
		f.told = append(f.told, Event{Kind: Discarded, Destination: j.Destination, Message: out.ID, Text: "scheduled for a destination that is gone"})
		return nil
	case err != nil:
		return fmt.Errorf("scheduled job %s for %s: %w", j.ID, j.Destination, err)
	}
	f.u.sends = append(f.u.sends, out)
	for _, c := range copies {
		f.u.add(c, out)
	}
	return nil
}

// deadLetter makes a dead letter of a job whose message cannot be read, as it lies.
func (f *firing) deadLetter(t records.JobTime, j *records.Job, reason error) error {
	b := f.s.b
	was := &message.Message{ID: message.ID{Text: j.ID}, Persistent: true, Priority: message.DefaultPriority}
	dead := *was
	dead.OriginalDestination, dead.Destination = j.Destination, b.policy(j.Destination).Rules.DeadLetter.Target(j.Destination, redelivery.Subscription{})
	dead.Added = map[string]any{FailureCause: redelivery.UndispatchableCause(reason.Error()), DeliveryAttempts: int64(0)}
	copies, err := b.expand(&dead, "")
	if err != nil {
		return err
	}
	for _, c := range copies {
		f.u.add(c, was)
	}
	f.u.staged(was, j.Sequence, j.SizeBytes, j.ID)
	f.u.batch.DropJobAlone(j)
	f.taken = append(f.taken, t)
	f.told = append(f.told, Event{Kind: DeadLettered, Destination: j.Destination, Message: was.ID, Text: dead.Destination.String(),
		Cause: dead.Added[FailureCause].(string)})
	return nil
}

// series begins a job of its own: what a cron line with repeats brings (R-SCH-11).
func (f *firing) series(j *records.Job, m *message.Message, turn schedule.Turn) {
	id := f.s.b.freshMessageID()
	f.u.jobs = append(f.u.jobs, jobFor{message: m, job: &records.Job{
		ID: id.String(), Destination: j.Destination, Due: turn.SeriesDue, Created: f.now.UnixMilli(),
		Delay: turn.Plan.Delay, Period: turn.Plan.Period, Repeat: turn.Plan.Repeat, SizeBytes: j.SizeBytes,
	}})
}

// commit makes the batch true and waits for it. Where it fails the jobs are as they
// were: the store is broken, and the next process finds them.
func (f *firing) commit(ctx context.Context) {
	answered := make(chan error, 1)
	f.u.commit(func(err error) { answered <- err })
	select {
	case err := <-answered:
		if err != nil {
			for _, t := range f.taken {
				f.s.later(t, err)
			}
			return
		}
	case <-ctx.Done():
		return
	}
	for _, t := range f.next {
		f.s.add(t)
	}
	for _, e := range f.told {
		f.s.b.tell(e)
	}
}
