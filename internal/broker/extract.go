package broker

import (
	"context"

	"github.com/nixiemq/nixie/internal/queue"
)

// extractEntries is how many entries are looked at, and at the most taken, by one
// turn of a destination when people take messages out. It bounds the memory that
// this needs, and how long others wait.
const extractEntries = 1000

// extract takes entries out, at most so many if limit is above 0, from all that is
// there at the call, however deep: what is in memory as the machine has it, the rest
// page by page from the store. What has come later stays, so that it ends even while
// what was moved comes back. On an error it tells how far it came.
func (d *destination) extract(ctx context.Context, e queue.Extract, limit int) (Outcome, error) {
	var o Outcome
	e.Upto = d.b.numbered() - 1 // what is behind the Expects in the mailbox is read after them: see orderPage
	for e.Lane = range uint8(10) {
		for e.After = 0; e.After < e.Upto && (limit == 0 || o.Taken < limit); { // what is behind Upto has come later
			if limit > 0 {
				e.Max = limit - o.Taken
			}
			s := d.extractStep(ctx, e)
			if s.err != nil {
				return o, s.err
			}
			if s.end {
				break
			}
			o.Taken, o.Out, o.Left = o.Taken+s.Taken, o.Out+s.Out, o.Left+s.Left
			e.After = s.Last
		}
	}
	return o, nil
}

// A step is what came of one turn's part of an extraction.
type step struct {
	queue.Extracted
	end bool // nothing of the lane was left to look at
	err error
}

// extractStep takes out of one lane what one turn may, and waits until that is on
// disk.
func (d *destination) extractStep(ctx context.Context, e queue.Extract) step {
	answered := make(chan step, 1)
	e.Look = extractEntries
	e.Done = func(x queue.Extracted, err error) {
		if len(x.Alone) > 0 {
			d.box.force(work{command: queue.Gone{Positions: x.Alone}})
		}
		answered <- step{Extracted: x, err: err}
	}
	turn := func() {
		if end, err := d.pageFor(&e); end || err != nil {
			answered <- step{end: end, err: err}
			return
		}
		d.apply(e)
	}
	if err := d.box.put(ctx, work{do: turn, stopped: func(err error) { answered <- step{err: err} }}); err != nil {
		return step{err: err}
	}
	select {
	case s := <-answered:
		return s
	case <-d.ended:
		return step{err: errStopped}
	case <-ctx.Done():
		return step{err: context.Cause(ctx)}
	}
}

// pageFor reads what the store alone has behind e.After, once what is in memory has
// been gone through. end says that there is nothing. It runs in the destination's
// goroutine, so that nothing happens between the reading and the taking.
func (d *destination) pageFor(e *queue.Extract) (end bool, err error) {
	cursor, beyond := d.machine.Depth(e.Lane)
	within := e.After < cursor
	switch {
	case within && d.machine.Away(e.Lane) == 0:
		return false, nil
	case !within && beyond == 0:
		return true, nil
	}
	stored, err := d.stored(e.Lane, e.After, extractEntries)
	if err != nil || !within && (len(stored) == 0 || stored[0].Entry.Position > e.Upto) {
		return err == nil, err
	}
	if within && len(stored) == extractEntries { // what is in memory goes together with what is on the page
		e.Upto = min(e.Upto, stored[len(stored)-1].Entry.Position)
	}
	e.Stored = make([]*queue.Item, len(stored))
	for i := range stored {
		e.Stored[i] = queue.StoredItem(stored[i].Entry, stored[i].Counts, stored[i].HasCounts)
	}
	return false, nil
}
