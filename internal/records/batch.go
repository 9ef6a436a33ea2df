package records

import (
	"fmt"
	"math"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// A Batch collects changes that take effect together, when it is handed to
// Records.Commit. The zero value is empty and ready. It is not safe for
// concurrent use, and belongs to Records from Commit until done is called.
// It may refer to messages it was given until Reset.
//
// What cannot be stored, such as a value above the limits, makes Commit answer
// with that error and change nothing.
type Batch struct {
	physical store.Batch
	arena    arena
	large    []largeBody // bodies whose encoding depends on the chunk size
	events   []event     // what is decided at the hand-over, in order
	waiting  int         // about the bytes that large and events will add
	counted  counted     // the queues whose counters it changes
	fresh    refKey      // the body that was put last: it has one reference
	err      error       // the first thing that cannot be stored

	commit commitState
}

// A largeBody waits for Commit to be cut into pieces.
type largeBody struct {
	seq       uint64
	transient bool
	staged    bool // there is a staging record for it, which stays
	message   *message.Message
}

// eventKind says what an event asks the hand-over to do.
type eventKind uint8

const (
	eventPutQueue     eventKind = iota
	eventPutSelectors           // of a queue that may be no more
	eventDropQueue              // delete what the queue may have
	eventCount                  // add n entries of size bytes in all; of the body seq, where n is above 0
	eventFloor                  // raise the floor of a lane to seq
	eventShare                  // add n references to a body
	eventShareFresh             // the same for a body that this batch puts, or unstages
	eventRelease                // take one reference from a body of size
	eventFree                   // delete a large body of size
	eventStage                  // a body of size is staged
	eventUnstage                // it is permanent now
	eventDropStaged             // delete it
)

// An event is one thing decided at the hand-over.
type event struct {
	kind      eventKind
	transient bool
	shared    bool // of eventCount: others refer to the body seq as well
	lane      Lane
	queue     QueueID
	size      int32
	n         int32
	seq       uint64
}

// About what an event adds to the physical batch: the counters of another queue,
// the ranges of a dropped one, or a few keys.
const (
	counterBytes   = 256
	dropQueueBytes = 512
	eventBytes     = 64
)

// Empty reports whether the batch holds nothing.
func (b *Batch) Empty() bool {
	return b.physical.Len() == 0 && len(b.events) == 0 && len(b.large) == 0 && b.err == nil
}

// SizeBytes is about what the batch takes in a log.
func (b *Batch) SizeBytes() int { return b.physical.SizeBytes() + b.waiting }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.physical.Reset()
	b.arena.reset()
	clear(b.large)
	b.large, b.events = b.large[:0], b.events[:0]
	b.waiting, b.fresh, b.err = 0, refKey{}, nil
	b.counted.reset()
}

// Counted is a set of queues; mostly it has one.
type counted struct {
	last QueueID
	all  map[QueueID]bool // where there are more
}

// add reports whether the queue is new to the set.
func (c *counted) add(q QueueID) bool {
	switch {
	case q == c.last:
		return false
	case c.last == 0:
		c.last = q
		return true
	case c.all == nil:
		c.all = map[QueueID]bool{}
	}
	c.all[c.last] = true
	isNew := !c.all[q]
	c.last, c.all[q] = q, true
	return isNew
}

func (c *counted) reset() {
	c.last = 0
	clear(c.all)
}

// Relax says that the batch may be lost in a crash, and is answered without
// waiting for the disk. It is for batches of transient things and of staged
// messages.
func (b *Batch) Relax() { b.physical.Relax() }

// PutOff says that nobody waits for the batch: see store.Batch.
func (b *Batch) PutOff() { b.physical.PutOff() }

// Await says how many clients wait for the batch: see store.Batch.
func (b *Batch) Await(clients int) { b.physical.Await(clients) }

// fail keeps the first error.
func (b *Batch) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// event leaves e to the hand-over, and reckons what it will add.
func (b *Batch) event(e event) {
	switch e.kind {
	case eventCount:
		if b.counted.add(e.queue) {
			b.waiting += counterBytes
		}
	case eventDropQueue:
		b.waiting += dropQueueBytes
	case eventFloor:
		b.waiting += counterBytes
	case eventRelease, eventFree, eventStage:
		b.waiting += eventBytes + int(e.size)/(MinChunkBytes/eventBytes)
	default:
		b.waiting += eventBytes
	}
	b.events = append(b.events, e)
}

// value starts a value with room for n bytes of fields.
func (b *Batch) value(n int) []byte {
	return append(b.arena.room(1+n+sumBytes), formatVersion)
}

// put stores the value v, which value started, under k.
func (b *Batch) put(k, v []byte, once bool) {
	v = b.arena.take(seal(k, v))
	if len(v) > valueBytes {
		b.fail(fmt.Errorf("%s has %d bytes, limit %d: %w", describe(k), len(v), valueBytes, message.ErrOverLimit))
	}
	if once {
		b.physical.PutOnce(k, v)
	} else {
		b.physical.Put(k, v)
	}
}

// The keys, in the arena.

func (b *Batch) seqKey(transient bool, of kind, seq uint64) []byte {
	return b.arena.take(appendSeqKey(b.arena.room(keyBytes), transient, of, seq))
}

func (b *Batch) partKey(transient bool, of kind, seq uint64, part uint32) []byte {
	return b.arena.take(appendPartKey(b.arena.room(keyBytes), transient, of, seq, part))
}

func (b *Batch) queueKey(transient bool, of kind, q QueueID) []byte {
	return b.arena.take(appendQueueKey(b.arena.room(keyBytes), transient, of, q))
}

func (b *Batch) entryKey(transient bool, of kind, q QueueID, lane Lane, pos uint64) []byte {
	return b.arena.take(appendEntryKey(b.arena.room(keyBytes), transient, of, q, lane, pos))
}

// PutQueue stores what is known of a queue, new or changed. It comes before
// anything else of a queue that is to outlive the process.
func (b *Batch) PutQueue(i QueueInfo) {
	k := b.queueKey(false, kindQueue, i.ID)
	b.put(k, appendQueue(b.value(queueRoom(&i)), &i), false)
	b.event(event{kind: eventPutQueue, queue: i.ID})
}

// PutSelectors stores the selectors of consumers that a queue has had, in place of those
// before. They are found in its QueueInfo at the next start.
func (b *Batch) PutSelectors(q QueueID, all []string) {
	b.put(b.queueKey(false, kindSelectors, q), appendSelectors(b.value(selectorsRoom(all)), all), false)
	b.event(event{kind: eventPutSelectors, queue: q})
}

// DropQueue deletes everything of a queue but bodies and stories: those of its
// entries are released by Remove, in earlier batches or in this one. The same
// batch must not use the queue after it. What later batches add to it, since they were
// begun before, is dropped: nobody would find it, but perhaps who has the ID next.
func (b *Batch) DropQueue(q QueueID) { b.event(event{kind: eventDropQueue, queue: q}) }

// Append adds e to a queue, as its last entry of the lane. The body it refers to
// is stored in this batch or an earlier one. Where e.Transient, entry and body
// end with the process.
func (b *Batch) Append(q QueueID, lane Lane, e *message.Entry) {
	k := b.entryKey(e.Transient, kindEntry, q, lane, e.Position)
	v, err := appendEntry(b.value(entryRoom(e)), e)
	if err != nil {
		b.fail(fmt.Errorf("%s: %w", describe(k), err))
	}
	b.put(k, v, true)
	b.putExpiry(q, lane, e)
	b.event(event{kind: eventCount, queue: q, lane: lane, transient: e.Transient, shared: e.Shared, n: 1, size: e.SizeBytes, seq: e.Body})
}

// Remove takes an entry out of a queue, with its counts where c is not nil: c is
// what was stored last. Body and story go too (the body when this was the last
// reference to it), unless keepBody: then an entry that refers to both takes
// this one's place.
func (b *Batch) Remove(q QueueID, lane Lane, e *message.Entry, c *message.Counts, keepBody bool) {
	b.physical.DeleteOnce(b.entryKey(e.Transient, kindEntry, q, lane, e.Position))
	b.dropExpiry(q, lane, e)
	b.event(event{kind: eventCount, queue: q, lane: lane, transient: e.Transient, n: -1, size: e.SizeBytes})
	if c != nil {
		b.physical.Delete(b.entryKey(e.Transient, kindCounts, q, lane, e.Position))
	}
	if keepBody {
		return
	}
	if c != nil && c.Story != 0 {
		b.dropStory(e.Transient, c)
	}
	switch {
	case e.Shared:
		b.event(event{kind: eventRelease, transient: e.Transient, seq: e.Body, size: e.SizeBytes})
	case pieces(e.SizeBytes, MinChunkBytes) > 0: // it may be in pieces
		b.event(event{kind: eventFree, transient: e.Transient, seq: e.Body, size: e.SizeBytes})
	default:
		b.physical.DeleteOnce(b.seqKey(e.Transient, kindBody, e.Body))
	}
}

// shortStory is the number of attempts up to which a story is deleted line by
// line: range deletions slow down reading where there are many of them.
const shortStory = 16

func (b *Batch) dropStory(transient bool, c *message.Counts) {
	if c.Attempts < 1 || c.Attempts > shortStory {
		b.physical.DeleteRange(b.seqKey(transient, kindAttempt, c.Story), b.seqKey(transient, kindAttempt, c.Story+1))
		return
	}
	for n := range uint32(c.Attempts) {
		b.physical.Delete(b.partKey(transient, kindAttempt, c.Story, n+1))
	}
}

// PutCounts stores the counts of a durable entry, new or changed.
func (b *Batch) PutCounts(q QueueID, lane Lane, pos uint64, c *message.Counts) {
	b.putCounts(b.entryKey(false, kindCounts, q, lane, pos), c)
}

// PutTransientCounts is PutCounts for a transient entry.
func (b *Batch) PutTransientCounts(q QueueID, lane Lane, pos uint64, c *message.Counts) {
	b.putCounts(b.entryKey(true, kindCounts, q, lane, pos), c)
}

func (b *Batch) putCounts(k []byte, c *message.Counts) {
	b.put(k, appendCounts(b.value(countsRoom), c), false)
}

// DropCounts deletes the counts of a durable entry that stays.
func (b *Batch) DropCounts(q QueueID, lane Lane, pos uint64) {
	b.physical.Delete(b.entryKey(false, kindCounts, q, lane, pos))
}

// DropTransientCounts is DropCounts for a transient entry.
func (b *Batch) DropTransientCounts(q QueueID, lane Lane, pos uint64) {
	b.physical.Delete(b.entryKey(true, kindCounts, q, lane, pos))
}

// PutAttempt stores a line of the story of a durable entry, by its number, which
// is at most the Counts.Attempts stored with it. A story is kept short by its
// writer, with DropAttempt.
func (b *Batch) PutAttempt(story uint64, a *message.Attempt) { b.putAttempt(false, story, a) }

// PutTransientAttempt is PutAttempt for a transient entry.
func (b *Batch) PutTransientAttempt(story uint64, a *message.Attempt) { b.putAttempt(true, story, a) }

func (b *Batch) putAttempt(transient bool, story uint64, a *message.Attempt) {
	if a.Number < 1 || a.Number > math.MaxInt32 {
		b.fail(fmt.Errorf("attempt number %d of story %d: %w", a.Number, story, message.ErrInvalid))
		return
	}
	k := b.partKey(transient, kindAttempt, story, uint32(a.Number))
	b.put(k, appendAttempt(b.value(attemptRoom(a)), a), false)
}

// DropAttempt deletes a line of the story of a durable entry.
func (b *Batch) DropAttempt(story uint64, number int) {
	b.physical.Delete(b.partKey(false, kindAttempt, story, uint32(number)))
}

// DropTransientAttempt is DropAttempt for a transient entry.
func (b *Batch) DropTransientAttempt(story uint64, number int) {
	b.physical.Delete(b.partKey(true, kindAttempt, story, uint32(number)))
}

// PutMark says that the durable entries at these positions were handed out.
func (b *Batch) PutMark(q QueueID, id MarkID, how message.HandOut, positions []uint64) {
	k := b.arena.take(appendMarkKey(b.arena.room(keyBytes), q, id))
	b.put(k, appendMark(b.value(markRoom(positions)), how, positions), false)
}

// DropMark deletes a mark.
func (b *Batch) DropMark(q QueueID, id MarkID) {
	b.physical.Delete(b.arena.take(appendMarkKey(b.arena.room(keyBytes), q, id)))
}

// PutProducer stores the last sequence of a producer, and when it was used (Unix
// milliseconds).
func (b *Batch) PutProducer(q QueueID, producer string, seq int64, at int64) {
	k := b.producerKey(q, producer)
	b.put(k, appendProducer(b.value(producerRoom(producer)), producer, seq, at), false)
}

// DropProducer forgets a producer.
func (b *Batch) DropProducer(q QueueID, producer string) {
	b.physical.Delete(b.producerKey(q, producer))
}

func (b *Batch) producerKey(q QueueID, producer string) []byte {
	name := producerName(producer)
	return b.arena.take(appendProducerKey(b.arena.room(keyBytes+len(name)), q, name))
}

// PutFloor says that no live entry of the lane is below floor, so that pages
// start there, and the space below comes back. A lower floor than the one there
// is changes nothing.
func (b *Batch) PutFloor(q QueueID, lane Lane, floor uint64) {
	b.event(event{kind: eventFloor, queue: q, lane: lane, seq: floor})
}
