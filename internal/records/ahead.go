package records

// A batch with more than aheadBytes of large bodies would be above the limits of
// an engine, or hold everybody up. So the pieces go ahead, in batches of their
// own with others' in between, and a staging record first: what the batch itself
// does to make them a message is small. After a crash in between Open clears
// them away.
const (
	aheadBytes = 4 << 20
	aheadParts = 4 // a batch of pieces is above this part of aheadBytes
)

// A sentBody is a body of which the pieces went ahead of its batch.
type sentBody struct {
	seq       uint64
	transient bool
	pieces    int
}

// cutLarge stores the large bodies of b, ahead of it if they are very large.
func (r *Records) cutLarge(b *Batch) {
	b.commit.sent = b.commit.sent[:0]
	limit := aheadBytes
	if r.batchBytes > 0 {
		limit = min(limit, r.batchBytes/2)
	}
	if len(b.large) == 0 || b.err != nil || b.SizeBytes() <= limit {
		b.cutLarge(r.chunk, nil)
		return
	}
	var ahead *Batch
	send := func() {
		if ahead != nil {
			r.handAhead(ahead)
			ahead = nil
		}
	}
	next := func() *Batch {
		if ahead != nil && ahead.physical.SizeBytes() > limit/aheadParts {
			send()
		}
		if ahead == nil {
			ahead = new(Batch)
			ahead.Relax() // the batch itself makes it durable
		}
		return ahead
	}
	b.cutLarge(r.chunk, func(l *largeBody, n int) func() *Batch {
		if !l.transient {
			next().putStaged("", l.seq, l.message)
		}
		if !l.transient && !l.staged {
			b.physical.Delete(b.seqKey(false, kindStaged, l.seq))
		}
		b.commit.sent = append(b.commit.sent, sentBody{seq: l.seq, transient: l.transient, pieces: n})
		return next
	})
	send()
}

// takeBack fills what is handed over in place of a refused batch: it deletes the
// pieces that went ahead.
func (b *Batch) takeBack() {
	b.commit.instead.Reset()
	b.commit.instead.Relax()
	for _, s := range b.commit.sent {
		for i := range s.pieces {
			b.commit.instead.DeleteOnce(b.partKey(s.transient, kindPiece, s.seq, uint32(i)))
		}
		if !s.transient {
			b.commit.instead.Delete(b.seqKey(false, kindStaged, s.seq))
		}
	}
}

// handAhead hands over a batch of which nothing depends on the others.
func (r *Records) handAhead(b *Batch) {
	r.order.Lock()
	defer r.order.Unlock()
	if r.broken.Load() != nil {
		return
	}
	r.handLocked(b)
}

// handLocked hands over a batch that nobody waits for.
func (r *Records) handLocked(b *Batch) {
	r.handed++
	number := r.handed
	r.shard.Commit(&b.physical, func(err error) { r.settle(number, err) })
}
