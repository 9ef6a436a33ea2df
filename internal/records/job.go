package records

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/nixiemq/nixie/internal/message"
)

// A Job is a message that waits to be sent on to its destination, once or again
// and again. The message itself is stored under Sequence, which names the job.
type Job struct {
	Sequence uint64
	// ID is the job's name for people and programs (scheduledJobId).
	ID          string
	Destination message.Destination
	Due         int64 // when it is next sent on, Unix milliseconds, above 0
	Created     int64 // when it was scheduled, Unix milliseconds
	Delay       int64 // milliseconds, as in message.Schedule
	Period      int64
	Repeat      int32 // deliveries after the next one
	Cron        string
	Fired       int64 // how often it was sent on
	SizeBytes   int32 // Message.SizeBytes
}

// jobsQueue counts the jobs as if they were in a queue, of an id that none has.
const jobsQueue QueueID = math.MaxUint32

func jobRoom(j *Job) int {
	return 1 + 10*binary.MaxVarintLen64 + len(j.ID) + len(j.Destination.Name) + len(j.Cron)
}

// appendJob writes what the key does not say of j.
func appendJob(v []byte, j *Job) []byte {
	v = appendString(v, j.ID)
	v = appendDestination(v, j.Destination)
	for _, n := range []int64{j.Due, j.Created, j.Delay, j.Period, int64(j.Repeat), j.Fired, int64(j.SizeBytes)} {
		v = binary.AppendVarint(v, n)
	}
	return appendString(v, j.Cron)
}

// decodeJob reads into j what appendJob wrote; Sequence comes from the key.
func decodeJob(r *reader, j *Job) bool {
	j.ID, j.Destination = r.string(), r.destination()
	j.Due, j.Created, j.Delay, j.Period = r.varint(), r.varint(), r.varint(), r.varint()
	j.Repeat, j.Fired, j.SizeBytes, j.Cron = r.int32(), r.varint(), r.int32(), r.string()
	return r.done()
}

// appendJobDueKey makes a key of the index by time.
func appendJobDueKey(k []byte, due int64, seq uint64) []byte {
	k = binary.BigEndian.AppendUint64(append(k, byte(kindJobDue)), uint64(max(due, 0)))
	return binary.BigEndian.AppendUint64(k, seq)
}

func (b *Batch) jobDueKey(due int64, seq uint64) []byte {
	return b.arena.take(appendJobDueKey(b.arena.room(1+16), due, seq))
}

func appendJobIDKey(k []byte, id string) []byte {
	return append(append(k, byte(kindJobID)), producerName(id)...)
}

func (b *Batch) jobIDKey(id string) []byte {
	return b.arena.take(appendJobIDKey(b.arena.room(1+len(producerName(id))), id))
}

// PutJob stores a new job. Its message is stored under its sequence by this batch
// or, staged, by an earlier one.
func (b *Batch) PutJob(j *Job) {
	b.putJob(j)
	k := b.jobIDKey(j.ID)
	b.put(k, binary.AppendUvarint(b.value(binary.MaxVarintLen64), j.Sequence), false)
	b.event(event{kind: eventCount, queue: jobsQueue, n: 1, size: j.SizeBytes})
}

func (b *Batch) putJob(j *Job) {
	k := b.seqKey(false, kindJob, j.Sequence)
	b.put(k, appendJob(b.value(jobRoom(j)), j), false)
	b.put(b.jobDueKey(j.Due, j.Sequence), b.value(0), false)
}

// MoveJob stores what became of a job that goes on; was is when it was due before.
func (b *Batch) MoveJob(j *Job, was int64) {
	b.physical.Delete(b.jobDueKey(was, j.Sequence))
	b.putJob(j)
}

// DropJobAlone deletes a job, as it is stored. Its message stays.
func (b *Batch) DropJobAlone(j *Job) {
	b.physical.Delete(b.seqKey(false, kindJob, j.Sequence))
	b.physical.Delete(b.jobDueKey(j.Due, j.Sequence))
	b.physical.Delete(b.jobIDKey(j.ID))
	b.event(event{kind: eventCount, queue: jobsQueue, n: -1, size: j.SizeBytes})
}

// DropJob deletes a job, as it is stored, and its message.
func (b *Batch) DropJob(j *Job) {
	b.DropJobAlone(j)
	if pieces(j.SizeBytes, MinChunkBytes) > 0 { // it may be in pieces
		b.event(event{kind: eventFree, seq: j.Sequence, size: j.SizeBytes})
		return
	}
	b.physical.DeleteOnce(b.seqKey(false, kindBody, j.Sequence))
}

// Jobs is how many jobs there are, after all batches handed over.
func (r *Records) Jobs() Count { return r.Count(jobsQueue) }

// A JobTime is a place in the order in which jobs are due.
type JobTime struct {
	Due      int64 // Unix milliseconds
	Sequence uint64
}

// Before reports whether t comes before o.
func (t JobTime) Before(o JobTime) bool {
	return t.Due < o.Due || t.Due == o.Due && t.Sequence < o.Sequence
}

// JobTimes lists up to n jobs behind after that are due by until, in order.
func (r *Records) JobTimes(after JobTime, until int64, n int) ([]JobTime, error) {
	lo := append(appendJobDueKey(nil, after.Due, after.Sequence), 0)
	hi := appendJobDueKey(nil, math.MaxInt64, math.MaxUint64)
	if until < math.MaxInt64 {
		hi = appendJobDueKey(nil, until+1, 0)
	}
	var all []JobTime
	if n < 1 || until < after.Due {
		return nil, nil
	}
	err := r.scanKeys(lo, hi, 17, n, func(k []byte) bool {
		all = append(all, JobTime{Due: int64(uint64At(k, 1)), Sequence: uint64At(k, 9)})
		return true // hi leaves out what is no time
	})
	if err != nil {
		return nil, fmt.Errorf("read the times of jobs: %w", err)
	}
	return all, nil
}

// Job reads a job; message.ErrNotFound where there is none.
func (r *Records) Job(seq uint64) (Job, error) {
	k := appendSeqKey(nil, false, kindJob, seq)
	fields, err := r.get(k)
	if err != nil {
		return Job{}, err
	}
	j := Job{Sequence: seq}
	if !decodeJob(&reader{b: fields}, &j) {
		return Job{}, corrupt(k)
	}
	return j, nil
}

// JobAt is Job by a place in the order in which jobs are due. A job that has one, and is
// not there, is message.ErrCorrupt.
func (r *Records) JobAt(t JobTime) (Job, error) {
	j, err := r.Job(t.Sequence)
	if !errors.Is(err, message.ErrNotFound) {
		return j, err
	}
	if _, gone := r.shard.Get(appendJobDueKey(nil, t.Due, t.Sequence)); gone == nil {
		err = &Damaged{key: appendSeqKey(nil, false, kindJob, t.Sequence), text: "is missing"}
	}
	return j, err
}

// JobByID finds a job by its id; message.ErrNotFound where there is none.
func (r *Records) JobByID(id string) (Job, error) {
	k := appendJobIDKey(nil, id)
	fields, err := r.get(k)
	f := reader{b: fields}
	seq := f.uvarint()
	switch {
	case errors.Is(err, message.ErrCorrupt), err == nil && !f.done():
		return r.jobNamed(id)
	case errors.Is(err, message.ErrNotFound):
		return Job{}, fmt.Errorf("scheduled job %s: %w", id, message.ErrNotFound)
	case err != nil:
		return Job{}, err
	}
	return r.Job(seq)
}

// jobNamed finds a job by its id among all: the record that leads to it is damaged.
func (r *Records) jobNamed(id string) (found Job, err error) {
	prefix := []byte{byte(kindJob)}
	err = r.shard.Scan(prefix, successor(prefix), func(k, v []byte) bool {
		fields, bad := unseal(k, v)
		j := Job{}
		if bad == nil && len(k) == 9 && decodeJob(&reader{b: fields}, &j) && j.ID == id {
			found, found.Sequence = j, uint64At(k, 1)
		}
		return found.Sequence == 0
	})
	if err == nil && found.Sequence == 0 {
		err = fmt.Errorf("scheduled job %s: %w", id, message.ErrNotFound)
	}
	return found, err
}

// JobMessage reads the message of a job.
func (r *Records) JobMessage(j *Job) (*message.Message, error) {
	return r.Message(&message.Entry{Position: j.Sequence, Body: j.Sequence, SizeBytes: j.SizeBytes, Persistent: true})
}
