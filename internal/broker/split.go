package broker

import (
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/queue"
)

// A turn is one batch, but for one in which so much fails that the store would not take
// it at once: a thousand messages given up together, each with the client's words twice,
// in its story and as the reason of its death. What becomes of one message is one step
// all the same, and nobody is told before all of it is on disk.

// splitBytes is about how much of what can be parted goes into one batch, where the
// store takes at least four times of it.
const splitBytes = 4 << 20

// lineBytes is about what a line of a story, or a dead letter, takes beside its text.
const lineBytes = 512

func (b *Broker) splitBytes() int {
	if limit := b.o.Records.BatchBytes(); limit > 0 {
		return min(splitBytes, limit/4)
	}
	return splitBytes
}

// weight is about what the failures of a turn bring to the store.
func weight(effects []queue.Effect) int {
	n := 0
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case queue.SaveAttempt:
			n += lineBytes + len(e.Attempt.Text)
		case queue.Transfer:
			n += lineBytes + len(e.Move.Text)
			if !e.Item.Stored || e.Item.Transient { // it is copied
				n += int(e.Item.SizeBytes)
			}
		}
	}
	return n
}

// storeApart writes what becomes of items that were stored before this turn, a group for
// each batch, ahead of the group of the turn. It takes the effects that it has dealt with
// from those that are for the store.
func (w *turnWriter) storeApart(effects []queue.Effect) (rest []*queue.Effect) {
	appended := map[*queue.Item]bool{}
	of := map[*queue.Item][]*queue.Effect{}
	var order []*queue.Item
	for i := range effects {
		e := &effects[i]
		switch {
		case !e.ForStore():
		case e.Kind == queue.SaveAttempt || e.Kind == queue.SaveCounts || e.Kind == queue.Remove || e.Kind == queue.Transfer:
			if appended[e.Item] {
				rest = append(rest, e)
				continue
			}
			if of[e.Item] == nil {
				order = append(order, e.Item)
			}
			of[e.Item] = append(of[e.Item], e)
		default:
			appended[e.Item] = appended[e.Item] || e.Kind == queue.Append
			rest = append(rest, e)
		}
	}
	last, limit := w.group, w.d.b.splitBytes()
	last.parts = new(atomic.Pointer[error])
	for len(order) > 0 && w.err == nil {
		w.group, w.relaxed = w.d.freshGroup(), true
		w.group.parts = last.parts
		for len(order) > 0 && w.err == nil && w.group.batch.SizeBytes() <= limit {
			for _, e := range of[order[0]] {
				w.store(e)
			}
			order = order[1:]
		}
		if w.err != nil {
			last.gains = append(last.gains, w.group.gains...) // they are taken back
			w.group.gains = nil
			w.group.free()
			break
		}
		w.direct, w.quiet = false, false
		w.send()
	}
	w.group, w.relaxed, w.quiet = last, true, false
	return rest
}
