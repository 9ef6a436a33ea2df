package store

// OpKind is what an operation of a batch does.
type OpKind uint8

// The operations. "Once" is a promise that lets engines do less work.
const (
	OpPut         OpKind = iota // insert or overwrite
	OpPutOnce                   // insert; the key was never written before, unless OpDelete has deleted it since
	OpDelete                    // of a key, however it was written
	OpDeleteOnce                // of a key written with exactly one PutOnce, since it was deleted with OpDelete if it ever was
	OpDeleteRange               // every key in [Key, Value)
)

// An Op is one operation of a batch. Engines read it; nobody changes it.
type Op struct {
	Kind       OpKind
	Key, Value []byte
}

// A Batch is an ordered list of blind writes; there is no read-modify-write,
// since the owner of a shard knows its state. The zero value is empty and ready.
// A Batch keeps the slices it is given. It is not safe for concurrent use.
type Batch struct {
	ops      []Op
	bytes    int
	relaxed  bool
	putOff   bool
	awaiting int // clients; 0: one
}

// Put inserts or overwrites k.
func (b *Batch) Put(k, v []byte) { b.add(OpPut, k, v) }

// PutOnce inserts k, which has never been written before, or was deleted with Delete since.
func (b *Batch) PutOnce(k, v []byte) { b.add(OpPutOnce, k, v) }

// Delete removes k; it need not exist.
func (b *Batch) Delete(k []byte) { b.add(OpDelete, k, nil) }

// DeleteOnce removes k, which was written by exactly one PutOnce, since the last Delete if
// there was one, and must exist.
// Used wrongly it can bring old values back.
func (b *Batch) DeleteOnce(k []byte) { b.add(OpDeleteOnce, k, nil) }

// DeleteRange removes every key in [lo, hi); a nil hi is the end of the shard. It
// removes nothing where hi is not above lo.
func (b *Batch) DeleteRange(lo, hi []byte) { b.add(OpDeleteRange, lo, hi) }

// Relax says that the batch may be lost in a crash as long as no later durable
// batch was answered. It is answered without waiting for the disk.
func (b *Batch) Relax() { b.relaxed = true }

// Relaxed reports whether Relax was called.
func (b *Batch) Relaxed() bool { return b.relaxed }

// PutOff says that nobody waits for the batch: it may go to the disk a little later,
// with another one. It is a matter of milliseconds; the order stays.
func (b *Batch) PutOff() { b.putOff = true }

// IsPutOff reports whether PutOff was called.
func (b *Batch) IsPutOff() bool { return b.putOff }

// Await says how many clients wait for the batch; without it, one does. They are taken
// to come back with something else when they are answered.
func (b *Batch) Await(clients int) { b.awaiting = clients }

// Awaiting is how many clients wait for the batch.
func (b *Batch) Awaiting() int { return max(b.awaiting, 1) }

// Ops are the operations in order.
func (b *Batch) Ops() []Op { return b.ops }

// Len is the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// SizeBytes is about what the batch takes in a log.
func (b *Batch) SizeBytes() int { return b.bytes }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.ops)
	b.ops, b.bytes, b.relaxed, b.putOff, b.awaiting = b.ops[:0], 0, false, false, 0
}

// opOverheadBytes is about what a log needs for an operation beside key and value.
const opOverheadBytes = 12

func (b *Batch) add(kind OpKind, k, v []byte) {
	b.ops = append(b.ops, Op{Kind: kind, Key: k, Value: v})
	b.bytes += len(k) + len(v) + opOverheadBytes
}
