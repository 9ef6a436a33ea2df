package records

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// commitState is what a batch needs between Commit and its answer.
type commitState struct {
	records *Records
	number  uint64
	done    func(error)
	refused error       // the answer, where nothing of the batch was handed over
	instead store.Batch // handed over in place of a refused batch
	sent    []sentBody  // what went ahead of the batch
	answer  func(error) // the method value, made once
	queues  []QueueID   // whose durable counts change
	shared  []refKey    // bodies whose references change
	strays  []QueueID   // that are no more, and are added to all the same
	missing []refKey    // those of them whose count must be read first
	read    []int64     // what was read of missing; 0: nothing
}

// Commit hands b over and returns. done is called once, in the order of the
// Commit calls, from a goroutine of the store: it must not block, nor call Commit
// or Next, which may wait for it. An answer without error means that the batch is on disk, as
// store.Shard.Commit has it; done may be nil. b may be reset and used again once
// done is called.
//
// A batch that cannot be stored is answered with the reason, in its turn, and
// changes nothing: message.ErrOverLimit, message.ErrInvalid, or an error of
// reading. After an error of the store every further batch is refused, since
// what Records knows in memory may be wrong: open it again.
func (r *Records) Commit(b *Batch, done func(error)) {
	b.commit.records, b.commit.done, b.commit.refused = r, done, nil
	if b.commit.answer == nil {
		b.commit.answer = b.answered
	}
	r.cutLarge(b)
	r.order.Lock()
	defer r.order.Unlock()
	err := r.checkLocked(b)
	if err == nil && r.pinLocked(b) {
		err = r.readMissingLocked(b)
	}
	r.handed++
	b.commit.number = r.handed
	if err != nil {
		b.commit.refused = err
		b.takeBack()
		r.shard.Commit(&b.commit.instead, b.commit.answer)
		return
	}
	r.decideLocked(b)
	r.shard.Commit(&b.physical, b.commit.answer)
}

// answered is the done of the store. The batch may be in use again as soon as
// its own done is called.
func (b *Batch) answered(err error) {
	done, refused := b.commit.done, b.commit.refused
	b.commit.records.settle(b.commit.number, err)
	if err == nil {
		err = refused
	}
	if done != nil {
		done(err)
	}
}

// settle notes the answer to a batch. It takes no lock: a hand-over may wait, with
// Records.order, for room that only answers make.
func (r *Records) settle(number uint64, err error) {
	if err != nil {
		r.broken.CompareAndSwap(nil, &err)
		return
	}
	r.answered.Store(number)
}

// reservedBytes is room for what no batch reckons with, such as a reservation.
const reservedBytes = 1 << 10

// checkLocked says why b cannot be handed over.
func (r *Records) checkLocked(b *Batch) error {
	if err := r.broken.Load(); err != nil {
		return fmt.Errorf("an earlier batch failed: %w", *err)
	}
	if b.err != nil {
		return b.err
	}
	if n := b.SizeBytes() + reservedBytes; r.batchBytes > 0 && n > r.batchBytes {
		return fmt.Errorf("batch is about %d bytes, limit %d: %w", n, r.batchBytes, message.ErrOverLimit)
	}
	return nil
}

// pinLocked finds the bodies whose references b changes and whose count must be
// read.
func (r *Records) pinLocked(b *Batch) bool {
	c := &b.commit
	c.missing = c.missing[:0]
	for i := range b.events {
		e := &b.events[i]
		if e.kind != eventShare && e.kind != eventRelease {
			continue
		}
		if k := (refKey{seq: e.seq, transient: e.transient}); r.refs.pin(k) {
			c.missing = append(c.missing, k)
		}
	}
	return len(c.missing) > 0
}

// readMissingLocked reads the counts that pinLocked found missing, and lets others
// hand over meanwhile.
func (r *Records) readMissingLocked(b *Batch) error {
	c := &b.commit
	r.order.Unlock()
	var failed error
	c.read = c.read[:0]
	for i, k := range c.missing {
		n, err := int64(0), failed
		switch {
		case failed != nil:
		case i > 0 && k == c.missing[i-1]:
			n = c.read[i-1]
		default:
			var d *Damaged
			if n, err = r.readReferences(k); errors.As(err, &d) {
				n, err = r.mendReferences(b, d)
			}
		}
		failed = err
		c.read = append(c.read, n)
	}
	r.order.Lock()
	for i, k := range c.missing {
		n := c.read[i]
		if failed != nil {
			n = 0
		}
		r.refs.unpin(k, n, r.answered.Load())
	}
	if failed == nil {
		failed = r.checkLocked(b)
	}
	return failed
}

// decideLocked applies the events of b to what Records knows, in order, and adds
// to the batch what follows from them.
func (r *Records) decideLocked(b *Batch) {
	c := &b.commit
	c.queues, c.shared, c.strays = c.queues[:0], c.shared[:0], c.strays[:0]
	r.mu.Lock()
	for i := range b.events {
		r.applyLocked(b, &b.events[i])
	}
	for _, q := range c.strays {
		b.deleteQueue(q)
	}
	for _, q := range c.queues {
		if s := r.queues[q]; s != nil { // else it was dropped in this batch
			k := b.queueKey(false, kindCounter, q)
			b.put(k, appendCounter(b.value(counterRoom(s)), s), false)
		}
	}
	r.mu.Unlock()
	for _, k := range c.shared {
		b.writeReference(k, r.refs.of[k], r.chunk)
	}
	r.refs.forget(r.answered.Load())
	// Also by a batch that may be lost in a crash: then all is lost that was numbered after it.
	if r.reserved-r.next.Load() < r.stride/2 {
		r.putReservationLocked(b)
	}
}

func (r *Records) applyLocked(b *Batch, e *event) {
	k := refKey{seq: e.seq, transient: e.transient}
	first := false
	switch e.kind {
	case eventPutQueue:
		r.queueLocked(e.queue).durable = true
		r.dropped.remove(e.queue)
	case eventPutSelectors:
		if r.dropped.has(e.queue) {
			b.strayTo(e.queue)
		}
	case eventDropQueue:
		r.dropQueueLocked(b, e.queue)
	case eventCount:
		if !e.transient && r.dropped.has(e.queue) {
			first = r.strayLocked(b, e)
		} else {
			r.countLocked(b, e)
		}
	case eventFloor:
		r.raiseFloorLocked(b, e)
	case eventShare, eventShareFresh:
		first = r.refs.change(k, int64(e.n), r.handed, e.kind == eventShareFresh)
	case eventRelease:
		first = r.refs.release(k, e.size, r.handed)
	case eventFree:
		b.deleteBody(e.transient, e.seq, e.size, r.chunk)
	case eventStage:
		if pieces(e.size, r.chunk) > 0 {
			r.staged[e.seq] = e.size
		}
	case eventUnstage:
		delete(r.staged, e.seq)
	case eventDropStaged:
		b.deleteBody(false, e.seq, r.staged[e.seq], r.chunk)
		delete(r.staged, e.seq)
	}
	if first {
		b.commit.shared = append(b.commit.shared, k)
	}
}

func (r *Records) queueLocked(q QueueID) *queueState {
	s := r.queues[q]
	if s == nil {
		s = &queueState{}
		r.queues[q] = s
	}
	return s
}

func (r *Records) countLocked(b *Batch, e *event) {
	s := r.queueLocked(e.queue)
	l := s.lane(e.lane)
	n, bytes := int64(e.n), int64(e.n)*int64(e.size)
	if e.transient {
		s.transient = true
		l.transient.add(n, bytes)
		return
	}
	s.durable = true
	l.durable.add(n, bytes)
	if s.batch != r.handed {
		s.batch = r.handed
		b.commit.queues = append(b.commit.queues, e.queue)
	}
}

// raiseFloorLocked deletes the range that the floor leaves behind. All in it was
// deleted already, one by one; the range lets an engine skip the traces.
func (r *Records) raiseFloorLocked(b *Batch, e *event) {
	s := r.queues[e.queue]
	if s == nil {
		return
	}
	l := s.lane(e.lane)
	if e.seq <= l.floor {
		return
	}
	between := func(transient bool, of kind) {
		b.physical.DeleteRange(b.entryKey(transient, of, e.queue, e.lane, l.floor), b.entryKey(transient, of, e.queue, e.lane, e.seq))
	}
	if s.durable {
		between(false, kindEntry)
		between(false, kindCounts)
		k := b.arena.take(appendLaneKey(b.arena.room(keyBytes), kindFloor, e.queue, e.lane))
		b.put(k, appendFloor(b.value(floorRoom), e.seq), false)
	}
	if s.transient {
		between(true, kindEntry)
		between(true, kindCounts)
	}
	l.floor = e.seq
}

// dropQueueLocked deletes what may be there of a queue: nothing for one that
// never stored anything, as most temporary queues.
func (r *Records) dropQueueLocked(b *Batch, q QueueID) {
	s := r.queues[q]
	if s == nil {
		return
	}
	if s.durable {
		b.deleteQueue(q)
		r.dropped.add(q)
	}
	if s.transient {
		for _, of := range []kind{kindEntry, kindCounts, kindExpiry} {
			b.deleteOf(true, of, q)
		}
	}
	delete(r.queues, q)
}

// deleteQueue deletes all that there may be of a queue that outlives the process.
func (b *Batch) deleteQueue(q QueueID) {
	b.physical.Delete(b.queueKey(false, kindQueue, q))
	b.physical.Delete(b.queueKey(false, kindCounter, q))
	b.physical.Delete(b.queueKey(false, kindSelectors, q))
	for _, of := range []kind{kindEntry, kindCounts, kindDue, kindExpiry, kindMark, kindProducer, kindFloor} {
		b.deleteOf(false, of, q)
	}
}

func (b *Batch) deleteOf(transient bool, of kind, q QueueID) {
	lo := b.queueKey(transient, of, q)
	b.physical.DeleteRange(lo, successor(lo))
}

// strayTo has all deleted that the batch adds to a queue which is no more.
func (b *Batch) strayTo(q QueueID) {
	if c := &b.commit; !slices.Contains(c.strays, q) {
		c.strays = append(c.strays, q)
	}
}

// strayLocked drops an entry that is added to a queue which is no more: that of a
// transaction, perhaps, which was about to be committed when the queue was removed. It
// reports whether this is the batch's first change of a body's references.
func (r *Records) strayLocked(b *Batch, e *event) (first bool) {
	if e.n < 0 {
		return false // it went with the queue
	}
	b.strayTo(e.queue)
	if !e.shared {
		b.deleteBody(false, e.seq, e.size, r.chunk)
		return false
	}
	k := refKey{seq: e.seq}
	return r.refs.of[k].known && r.refs.release(k, e.size, r.handed)
}

// Queues are the queues and durable subscriptions found at Open, by ID.
func (r *Records) Queues() []QueueInfo { return slices.Clone(r.found) }

// LastQueue is the highest ID below a bound under which the store has anything, a queue
// or what may be left of one; 0: there is none.
func (r *Records) LastQueue(bound QueueID) QueueID {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := QueueID(0)
	for q := range r.queues {
		if q < bound {
			last = max(last, q)
		}
	}
	return last
}

// Knows reports whether the store has, or had, anything of a queue.
func (r *Records) Knows(q QueueID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queues[q] != nil
}
