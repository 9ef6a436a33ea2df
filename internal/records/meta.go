package records

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// firstSequence is the first of a new store: 0 is no sequence.
const firstSequence = 1

const metaRoom = 2 * binary.MaxVarintLen64

func appendMeta(v []byte, reserved uint64, chunk int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(v, reserved), uint64(chunk))
}

func decodeMeta(r *reader) (reserved uint64, chunk int, ok bool) {
	reserved, chunk = r.uvarint(), r.count()
	return reserved, chunk, r.done() && reserved >= firstSequence && chunk >= MinChunkBytes && chunk <= MaxChunkBytes
}

// loadMeta reads the format, and where the sequences go on.
func (r *Records) loadMeta() error {
	k := []byte{byte(kindMeta)}
	v, err := r.shard.Get(k)
	if errors.Is(err, store.ErrNotFound) {
		r.next.Store(firstSequence)
		return r.checkEmpty()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", describe(k), err)
	}
	if len(v) > 0 && v[0] > formatVersion {
		return fmt.Errorf("the store has format %d, written by a newer program; this one reads formats up to %d: %w",
			v[0], formatVersion, message.ErrState)
	}
	fields, err := unseal(k, v)
	if err != nil {
		return fmt.Errorf("%w: %s", err, metaRemedy)
	}
	reserved, chunk, ok := decodeMeta(&reader{b: fields})
	if !ok {
		return fmt.Errorf("%w: %s", corrupt(k), metaRemedy)
	}
	r.next.Store(reserved)
	r.chunk = chunk
	return nil
}

// metaRemedy is what can be done where the record of the store itself is not there.
const metaRemedy = "it says which numbers were given and how bodies were cut, and cannot be made anew; " +
	"put back a copy of the whole data directory"

// checkEmpty refuses a store that has records, but not that of the store itself.
func (r *Records) checkEmpty() error {
	any := false
	err := r.shard.Scan([]byte{0}, []byte{0xff}, func(_, _ []byte) bool { any = true; return false })
	if err == nil && any {
		err = fmt.Errorf("%s is missing, and there are others: %w: %s", describe([]byte{byte(kindMeta)}), message.ErrCorrupt, metaRemedy)
	}
	return err
}

// Next gives the first of n fresh sequences. They are the broker's, for entries,
// bodies and stories alike, rise, and are never given again, also not after a
// crash: before a number is given, the reservation that covers it is in the
// store's hands, and far ahead of it as a rule. (A crash may lose a reservation with the
// relaxed batch that it went with, and then all that was stored with numbers of it.) It
// hands a batch over by itself where Commit was not called for long; else it never waits.
func (r *Records) Next(n int) uint64 {
	end := r.next.Add(uint64(n))
	if end > r.low.Load() {
		r.reserve()
	}
	return end - uint64(n)
}

// Upcoming is the sequence that Next gives next, without giving it. It never waits.
func (r *Records) Upcoming() uint64 { return r.next.Load() }

// reserve hands a reservation over, unless someone else did.
func (r *Records) reserve() {
	r.order.Lock()
	defer r.order.Unlock()
	if r.next.Load() <= r.low.Load() {
		return
	}
	b := new(Batch)
	r.putReservationLocked(b)
	r.handLocked(b)
}

// putReservationLocked reserves a stride of sequences from the next one on.
func (r *Records) putReservationLocked(b *Batch) {
	r.reserved = r.next.Load() + r.stride
	k := b.arena.take(append(b.arena.room(keyBytes), byte(kindMeta)))
	b.put(k, appendMeta(b.value(metaRoom), r.reserved, r.chunk), false)
	r.low.Store(r.reserved - r.stride/4)
}

const floorRoom = binary.MaxVarintLen64

func appendFloor(v []byte, floor uint64) []byte { return binary.AppendUvarint(v, floor) }

func decodeFloor(r *reader) (floor uint64, ok bool) {
	floor = r.uvarint()
	return floor, r.done()
}
