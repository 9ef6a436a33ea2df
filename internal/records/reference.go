package records

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nixiemq/nixie/internal/store"
)

// A refKey names a body.
type refKey struct {
	seq       uint64
	transient bool
}

// A reference is what is known of how many entries refer to a body.
type reference struct {
	count  int64
	before int64  // count before the batch that last changed it
	batch  uint64 // that batch
	size   int32  // Message.SizeBytes, once released
	known  bool   // count is; else it is being read
	pins   int    // hand-overs that wait for it to be read
}

// references keeps the counts of bodies that the store may not show yet, and
// some more. It is guarded by Records.order.
//
// A count must be kept while a batch that changed it is unanswered. One that is
// not kept is read without the mutex, and pinned meanwhile: nobody can change a
// body's count but through its place here, so that what was read holds unless
// another hand-over came first, and then its count is known.
type references struct {
	of      map[refKey]reference
	changes []change // in order of batch; the first done ones are gone already
	done    int
	keep    int // the number of changes after which answered ones are forgotten
}

// A change says that a batch changed a count.
type change struct {
	key   refKey
	batch uint64
}

// keptReferences is references.keep but in tests: about a MiB.
const keptReferences = 8192

// pin reports whether the count of k must be read, and then keeps a place for it
// until unpin.
func (rs *references) pin(k refKey) bool {
	f, ok := rs.of[k]
	if ok && f.known {
		return false
	}
	f.pins++
	rs.of[k] = f
	return true
}

// unpin ends pin with what was read: nothing if count is 0.
func (rs *references) unpin(k refKey, count int64, answered uint64) {
	f := rs.of[k]
	f.pins--
	if !f.known && count > 0 {
		f.count, f.known = count, true
	}
	rs.of[k] = f
	if count == 0 && f.pins == 0 && (!f.known || f.batch <= answered) {
		delete(rs.of, k)
	}
}

// change adds n to the count of k, which is known, or 1 for a fresh body. It
// reports whether this is the batch's first change of it. There is no count below
// 0: such a release is of an entry that was removed before.
func (rs *references) change(k refKey, n int64, batch uint64, fresh bool) (first bool) {
	f := rs.of[k]
	if fresh {
		f.count, f.known = 1, true
	}
	if f.batch != batch {
		f.before, f.batch, first = f.count, batch, true
		rs.changes = append(rs.changes, change{key: k, batch: batch})
	}
	f.count = max(f.count+n, 0)
	rs.of[k] = f
	return first
}

// release takes one from the count of k, whose body has this Message.SizeBytes.
func (rs *references) release(k refKey, size int32, batch uint64) (first bool) {
	first = rs.change(k, -1, batch, false)
	f := rs.of[k]
	f.size = size
	rs.of[k] = f
	return first
}

// forget drops the counts that the store shows, from the oldest, where there are
// many.
func (rs *references) forget(answered uint64) {
	for len(rs.changes)-rs.done > rs.keep && rs.changes[rs.done].batch <= answered {
		c := rs.changes[rs.done]
		rs.done++
		if f, ok := rs.of[c.key]; ok && f.batch == c.batch && f.pins == 0 {
			delete(rs.of, c.key)
		}
	}
	if rs.done > rs.keep {
		rs.changes = append(rs.changes[:0], rs.changes[rs.done:]...)
		rs.done = 0
	}
}

// readReferences reads how many references a body has; one where no number is
// stored.
func (r *Records) readReferences(key refKey) (int64, error) {
	k := appendSeqKey(make([]byte, 0, keyBytes), key.transient, kindReference, key.seq)
	v, err := r.shard.Get(k)
	if errors.Is(err, store.ErrNotFound) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read references of body %d: %w", key.seq, err)
	}
	fields, err := unseal(k, v)
	if err != nil {
		return 0, err
	}
	f := reader{b: fields}
	count := f.varint()
	if !f.done() || count < 1 {
		return 0, corrupt(k)
	}
	return count, nil
}

// writeReference adds to b what the change of a count by b is in the store.
func (b *Batch) writeReference(key refKey, f reference, chunk int) {
	switch {
	case f.count == f.before:
	case f.count > 1:
		k := b.seqKey(key.transient, kindReference, key.seq)
		b.put(k, binary.AppendVarint(b.value(binary.MaxVarintLen64), f.count), false)
	case f.before > 1:
		b.physical.Delete(b.seqKey(key.transient, kindReference, key.seq))
	}
	if f.count == 0 && f.before > 0 {
		b.deleteBody(key.transient, key.seq, f.size, chunk)
	}
}
