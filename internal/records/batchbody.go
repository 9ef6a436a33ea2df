package records

import (
	"encoding/binary"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// PutMessage stores m under seq, which Next gave, with the number of entries that
// refer to it: refs, or 1 where it is less. With more than one, all of them must be
// appended with Entry.Shared.
func (b *Batch) PutMessage(seq uint64, m *message.Message, refs int) {
	b.putBody(false, seq, m)
	if refs > 1 {
		b.share(false, seq, refs-1)
	}
}

// PutTransientMessage stores m, with one reference, until the process ends.
func (b *Batch) PutTransientMessage(seq uint64, m *message.Message) { b.putBody(true, seq, m) }

// AddReferences counts n more entries that refer to a durable body. A stored entry
// is never rewritten, so this is for a body none of whose entries stays without
// Entry.Shared: one that moves from one queue to several, say.
func (b *Batch) AddReferences(seq uint64, n int) { b.share(false, seq, n) }

// AddTransientReferences is AddReferences for a transient body.
func (b *Batch) AddTransientReferences(seq uint64, n int) { b.share(true, seq, n) }

func (b *Batch) share(transient bool, seq uint64, n int) {
	if n < 1 {
		return
	}
	e := event{kind: eventShare, transient: transient, seq: seq, n: int32(n)}
	if b.fresh == (refKey{seq: seq, transient: transient}) {
		e.kind, b.fresh = eventShareFresh, refKey{}
	}
	b.event(e)
}

// StageMessage stores m for a transaction that is not committed yet: a later
// batch makes it permanent with Unstage, or deletes it with DropStaged, and Open
// deletes what neither was done with. tx is kept to tell whose it is.
func (b *Batch) StageMessage(tx string, seq uint64, m *message.Message) {
	b.putStaged(tx, seq, m)
	b.putBody(false, seq, m)
	if n := len(b.large); n > 0 && b.large[n-1].seq == seq {
		b.large[n-1].staged = true
	}
	b.event(event{kind: eventStage, seq: seq, size: int32(m.SizeBytes())})
}

func (b *Batch) putStaged(tx string, seq uint64, m *message.Message) {
	k := b.seqKey(false, kindStaged, seq)
	b.put(k, appendStaged(b.value(2*binary.MaxVarintLen64+len(tx)), int32(m.SizeBytes()), tx), false)
}

// Unstage makes a staged message permanent, with one reference.
func (b *Batch) Unstage(tx string, seq uint64) {
	b.physical.Delete(b.seqKey(false, kindStaged, seq))
	b.event(event{kind: eventUnstage, seq: seq})
	b.fresh = refKey{seq: seq}
}

// DropStaged deletes a staged message.
func (b *Batch) DropStaged(tx string, seq uint64) {
	b.physical.Delete(b.seqKey(false, kindStaged, seq))
	b.event(event{kind: eventDropStaged, seq: seq})
}

func appendStaged(v []byte, size int32, tx string) []byte {
	return appendString(binary.AppendVarint(v, int64(size)), tx)
}

func decodeStaged(r *reader) (size int32, tx string, ok bool) {
	size, tx = r.int32(), r.string()
	return size, tx, r.done()
}

// putBody stores a body at once where it is small, and leaves a larger one to
// Commit, which knows the chunk size.
func (b *Batch) putBody(transient bool, seq uint64, m *message.Message) {
	b.fresh = refKey{seq: seq, transient: transient}
	if err := Check(m); err != nil {
		b.fail(fmt.Errorf("store message %d: %w", seq, err))
		return
	}
	if pieces(int32(m.SizeBytes()), MinChunkBytes) > 0 {
		b.large = append(b.large, largeBody{seq: seq, transient: transient, message: m})
		b.waiting += m.SizeBytes()
		return
	}
	b.encodeBody(transient, seq, m, 0, 0)
}

// encodeBody stores a body, but for its content if that is in n pieces.
func (b *Batch) encodeBody(transient bool, seq uint64, m *message.Message, n, chunk int) {
	k := b.seqKey(transient, kindBody, seq)
	room := headerBytes(m)
	if n == 0 {
		room += len(m.Properties) + len(m.Body)
	} else if len(m.Properties) <= chunk {
		room += len(m.Properties)
	}
	v, err := appendBody(b.value(room), m, n, chunk)
	if err != nil {
		b.fail(fmt.Errorf("store message %d: %w", seq, err))
	}
	b.put(k, v, true)
}

// cut stores the content of l in n pieces, as equal as can be (see pieces), each
// in the batch that to gives.
func (l *largeBody) cut(n, chunk int, to func() *Batch) {
	properties, body := l.message.Properties, l.message.Body
	if len(properties) <= chunk {
		properties = nil // they are with the header
	}
	size := (len(properties) + len(body) + n - 1) / n
	for i := range n {
		b := to()
		k := b.partKey(l.transient, kindPiece, l.seq, uint32(i))
		v := b.value(size)
		take := min(size, len(properties))
		v = append(v, properties[:take]...)
		properties = properties[take:]
		take = min(size-take, len(body))
		v = append(v, body[:take]...)
		body = body[take:]
		b.put(k, v, true)
	}
}

// cutLarge stores the large bodies for chunks of so many bytes. Their pieces go
// into this batch if ahead is nil, and else, n of them, into those that ahead gives.
func (b *Batch) cutLarge(chunk int, ahead func(l *largeBody, n int) func() *Batch) {
	for i := range b.large {
		l := &b.large[i]
		b.waiting -= l.message.SizeBytes()
		n := pieces(int32(l.message.SizeBytes()), chunk)
		b.encodeBody(l.transient, l.seq, l.message, n, chunk)
		switch {
		case n == 0:
		case ahead == nil:
			l.cut(n, chunk, func() *Batch { return b })
		default:
			l.cut(n, chunk, ahead(l, n))
		}
	}
	clear(b.large)
	b.large = b.large[:0]
}

// deleteBody deletes a body of this Message.SizeBytes, with its pieces.
func (b *Batch) deleteBody(transient bool, seq uint64, size int32, chunk int) {
	b.physical.DeleteOnce(b.seqKey(transient, kindBody, seq))
	for i := range pieces(size, chunk) {
		b.physical.DeleteOnce(b.partKey(transient, kindPiece, seq, uint32(i)))
	}
}
