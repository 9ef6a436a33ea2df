package records

import (
	"bytes"
	"maps"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"pgregory.net/rapid"
)

// The random operations of a world.

func (w *world) chance(percent int, what string) bool {
	return rapid.IntRange(1, 100).Draw(w.t, what) <= percent
}

func (w *world) message() *message.Message {
	size := rapid.SampledFrom([]int{0, 10, MinChunkBytes, MinChunkBytes + 1, 3*MinChunkBytes + 5}).Draw(w.t, "body")
	m := &message.Message{ID: message.ID{Producer: "p", Sequence: int64(w.highest)}, Body: bytes.Repeat([]byte{'b'}, size)}
	if w.chance(20, "expires") {
		m.Expiration = int64(rapid.IntRange(1, 5).Draw(w.t, "expiration"))
	}
	if w.chance(10, "properties") {
		m.Properties = bytes.Repeat([]byte{'p'}, 2*MinChunkBytes)
	}
	return m
}

// places chooses some of the queues, and a lane in each.
func (w *world) places() map[QueueID]Lane {
	places := map[QueueID]Lane{}
	for range rapid.IntRange(1, worldQueues).Draw(w.t, "copies") {
		q := QueueID(rapid.IntRange(0, worldQueues-1).Draw(w.t, "queue"))
		places[q] = Lane(rapid.IntRange(0, 1).Draw(w.t, "lane"))
	}
	return places
}

// add appends entries for the body seq, one a place, like as.
func (w *world) add(b *Batch, m *message.Message, seq uint64, places map[QueueID]Lane, as message.Entry) []held {
	var added []held
	for q := range QueueID(worldQueues) {
		lane, ok := places[q]
		if !ok {
			continue
		}
		e := *entryFor(m, w.next(), seq)
		e.Transient, e.Shared, e.Overlay = as.Transient, as.Shared || len(places) > 1, as.Overlay
		b.Append(q, lane, &e)
		added = append(added, held{queue: q, lane: lane, entry: e, message: m})
	}
	return added
}

func (w *world) send() {
	w.commit(func(b *Batch) {
		transient := w.chance(25, "transient")
		for range rapid.IntRange(1, 3).Draw(w.t, "messages") {
			m, seq, places := w.message(), w.next(), w.places()
			if transient {
				b.PutTransientMessage(seq, m)
				b.AddTransientReferences(seq, len(places)-1)
				w.passing = append(w.passing, w.add(b, m, seq, places, message.Entry{Transient: true})...)
			} else {
				b.PutMessage(seq, m, len(places))
				w.now.held = append(w.now.held, w.add(b, m, seq, places, message.Entry{})...)
			}
		}
		if transient {
			b.Relax()
		}
	})
}

// pick chooses an entry; nil where there is none.
func (w *world) pick() *held {
	n := len(w.now.held) + len(w.passing)
	if n == 0 {
		return nil
	}
	i := rapid.IntRange(0, n-1).Draw(w.t, "entry")
	if i < len(w.now.held) {
		return &w.now.held[i]
	}
	return &w.passing[i-len(w.now.held)]
}

// forget takes an entry out of the model.
func (w *world) forget(h held) {
	same := func(o held) bool { return o.queue == h.queue && o.entry.Position == h.entry.Position }
	if h.entry.Transient {
		w.passing = slices.DeleteFunc(w.passing, same)
	} else {
		w.now.held = slices.DeleteFunc(slices.Clone(w.now.held), same)
	}
}

func (w *world) ack() {
	w.commit(func(b *Batch) {
		for range rapid.IntRange(1, 4).Draw(w.t, "acks") {
			p := w.pick()
			if p == nil {
				return
			}
			h := *p
			b.Remove(h.queue, h.lane, &h.entry, h.counts, false)
			w.forget(h)
		}
	})
}

func (w *world) fail() {
	h := w.pick()
	if h == nil {
		return
	}
	c := message.Counts{}
	if h.counts != nil {
		c = *h.counts
	}
	if c.Story == 0 {
		c.Story = w.next()
	}
	c.Failures++
	c.Delay, c.Unasked = rapid.Int64Range(0, 2).Draw(w.t, "delay"), rapid.Bool().Draw(w.t, "unasked")
	transient := h.entry.Transient
	w.commit(func(b *Batch) {
		for range rapid.SampledFrom([]int{1, 1, 20}).Draw(w.t, "attempts") {
			c.Attempts++
			a := &message.Attempt{Number: int(c.Attempts)}
			h.lines = append(slices.Clone(h.lines), a.Number)
			if transient {
				b.PutTransientAttempt(c.Story, a)
			} else {
				b.PutAttempt(c.Story, a)
			}
		}
		if len(h.lines) > 10 {
			drop := h.lines[5]
			h.lines = slices.Delete(slices.Clone(h.lines), 5, 6)
			if transient {
				b.DropTransientAttempt(c.Story, drop)
			} else {
				b.DropAttempt(c.Story, drop)
			}
		}
		h.counts = &c
		if transient {
			b.PutTransientCounts(h.queue, h.lane, h.entry.Position, &c)
			b.Relax()
		} else {
			b.PutCounts(h.queue, h.lane, h.entry.Position, &c)
		}
	})
}

// move takes a durable entry to other queues, with its body and story.
func (w *world) move() {
	p := w.pick()
	if p == nil || p.entry.Transient {
		return
	}
	h := *p
	w.commit(func(b *Batch) {
		b.Remove(h.queue, h.lane, &h.entry, h.counts, true)
		w.forget(h)
		places := w.places()
		added := w.add(b, h.message, h.entry.Body, places, message.Entry{Shared: h.entry.Shared, Overlay: &message.Overlay{Expiration: 9}})
		b.AddReferences(h.entry.Body, len(places)-1)
		if h.counts != nil {
			added[0].counts, added[0].lines = h.counts, h.lines
			b.PutCounts(added[0].queue, added[0].lane, added[0].entry.Position, h.counts)
		}
		w.now.held = append(w.now.held, added...)
	})
}

func (w *world) stage() {
	m, seq := w.message(), w.next()
	w.staged[seq] = m
	w.commit(func(b *Batch) {
		b.StageMessage("tx", seq, m)
		b.Relax()
	})
}

// settle commits or rolls back what was staged.
func (w *world) settle() {
	commit := w.chance(60, "commit")
	w.commit(func(b *Batch) {
		var staged []uint64
		for seq := range w.staged {
			staged = append(staged, seq)
		}
		slices.Sort(staged)
		for _, seq := range staged {
			if !commit {
				b.DropStaged("tx", seq)
				continue
			}
			places := w.places()
			b.Unstage("tx", seq)
			b.AddReferences(seq, len(places)-1)
			w.now.held = append(w.now.held, w.add(b, w.staged[seq], seq, places, message.Entry{})...)
		}
		clear(w.staged)
	})
}

// prepare prepares a transaction of what was staged, and of acks.
func (w *world) prepare() {
	p := prepared{p: Prepared{Sequence: w.next(), XID: message.XID{Format: 7, Global: "g", Branch: "b"}, At: 5}}
	for _, seq := range slices.Sorted(maps.Keys(w.staged)) {
		p.p.Sends = append(p.p.Sends, PreparedSend{Sequence: seq, SizeBytes: int32(w.staged[seq].SizeBytes())})
		p.messages = append(p.messages, w.staged[seq])
	}
	for i := range rapid.SampledFrom([]int{0, 1, 2, partItems, partItems + 1}).Draw(w.t, "acks") {
		p.p.Acks = append(p.p.Acks, PreparedAck{Position: uint64(i), Told: 1, Holder: Holder{Consumer: string(rune('a' + i%3))}})
	}
	w.commit(func(b *Batch) {
		b.PutPrepared(&p.p)
		w.now.prepared = append(slices.Clone(w.now.prepared), p)
		clear(w.staged)
	})
}

// end commits or rolls back a prepared transaction, or does so by hand.
func (w *world) end() {
	if len(w.now.prepared) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.now.prepared)-1).Draw(w.t, "transaction")
	p, outcome := w.now.prepared[i], rapid.SampledFrom([]Outcome{Committed, RolledBack}).Draw(w.t, "outcome")
	w.commit(func(b *Batch) {
		for n, s := range p.p.Sends {
			if outcome == RolledBack {
				b.DropStaged("tx", s.Sequence)
				continue
			}
			b.Unstage("tx", s.Sequence)
			w.now.held = append(w.now.held, w.add(b, p.messages[n], s.Sequence, map[QueueID]Lane{0: 0}, message.Entry{})...)
		}
		if p.p.Outcome == InDoubt && w.chance(30, "by hand") {
			if outcome == Committed && w.chance(50, "ended") {
				outcome = Ended
			}
			b.PutOutcome(&p.p, outcome)
			p = prepared{p: Prepared{Sequence: p.p.Sequence, XID: p.p.XID, At: p.p.At, Outcome: outcome}}
			w.now.prepared = slices.Clone(w.now.prepared)
			w.now.prepared[i] = p
			return
		}
		b.DropPrepared(&p.p)
		w.now.prepared = slices.Delete(slices.Clone(w.now.prepared), i, i+1)
	})
}

func (w *world) floor() {
	w.commit(func(b *Batch) {
		for q := range QueueID(worldQueues) {
			for lane := range Lane(2) {
				floor := w.highest + 1
				for _, h := range slices.Concat(w.now.held, w.passing) {
					if h.queue == q && h.lane == lane {
						floor = min(floor, h.entry.Position)
					}
				}
				b.PutFloor(q, lane, floor)
			}
		}
	})
}

func (w *world) mark() {
	id := MarkID(rapid.IntRange(0, 3).Draw(w.t, "mark"))
	drop := w.chance(40, "drop")
	if drop {
		delete(w.now.marks, id)
	} else {
		w.now.marks[id] = 1
	}
	w.commit(func(b *Batch) {
		if drop {
			b.DropMark(0, id)
		} else {
			b.PutMark(0, id, message.HandedOut, []uint64{w.highest})
		}
	})
}

// drop removes a queue with all it has, and makes it again.
func (w *world) drop() {
	if !w.chance(20, "really") {
		return
	}
	q := QueueID(rapid.IntRange(0, worldQueues-1).Draw(w.t, "queue"))
	w.commit(func(b *Batch) {
		for _, h := range slices.Concat(w.now.held, w.passing) {
			if h.queue == q {
				b.Remove(h.queue, h.lane, &h.entry, h.counts, false)
				w.forget(h)
			}
		}
		b.DropQueue(q)
		w.now.queues = slices.DeleteFunc(slices.Clone(w.now.queues), func(o QueueID) bool { return o == q })
		if q == 0 {
			clear(w.now.marks)
		}
	})
	w.now.queues = append(slices.Clone(w.now.queues), q)
	w.commit(func(b *Batch) { b.PutQueue(QueueInfo{ID: q}) })
}
