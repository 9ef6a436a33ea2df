package broker

import (
	"fmt"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// A group is one turn: what its machine asked for, the batch that makes that true, and
// what it tells the world then. It belongs to the destination's goroutine until it is
// handed to release, which frees it. ready and err are guarded by release.mu.
type group struct {
	d        *destination
	effects  []queue.Effect
	batch    records.Batch
	actions  []action
	gains    []gain
	answered func(error) // the method value of committed, made once
	putOff   bool        // the batch may go to the disk a little later
	// parts is why one of the groups failed that a turn was parted into; nil: it was not.
	parts *atomic.Pointer[error]
	ready bool
	err   error // of the commit: what is told then is that it failed
}

// A gain is an item that another destination gets by a batch.
type gain struct {
	to   *destination
	item *queue.Item
}

// maxKept is how long the lists of a group may be that are kept for another turn.
const maxKept = 4 * maxTurnEffects

// turnGroup is the group of the present turn.
func (d *destination) turnGroup() *group {
	if d.group == nil {
		d.group = d.freshGroup()
	}
	return d.group
}

func (d *destination) freshGroup() *group {
	g, _ := d.b.groups.Get().(*group)
	if g == nil {
		g = &group{}
		g.answered = g.committed
	}
	g.d = d
	return g
}

// free gives a group back that has been let out.
func (g *group) free() {
	b := g.d.b
	g.batch.Reset()
	g.effects = emptied(g.effects)
	g.actions = emptied(g.actions)
	g.gains = emptied(g.gains)
	g.d, g.ready, g.putOff, g.err, g.parts = nil, false, false, nil, nil
	b.groups.Put(g)
}

// emptied is the memory of a list for use again, without what it referred to.
func emptied[T any](list []T) []T {
	if cap(list) > maxKept {
		return nil
	}
	clear(list)
	return list[:0]
}

// committed is told that the batch is on disk, or why not.
func (g *group) committed(err error) {
	d := g.d
	if err != nil {
		err = fmt.Errorf("commit %s: %w", d.label(), err)
		if g.parts != nil {
			g.parts.CompareAndSwap(nil, &err)
		}
		g.undo()
	} else {
		for _, x := range g.gains {
			x.to.box.force(work{command: queue.Arrive{Items: []*queue.Item{x.item}, Moved: true}})
		}
	}
	d.out.done(g, err)
	if err != nil && !d.b.stop.Load() { // else nobody waits for it any more
		d.b.running.Go(func() { d.fail(err) })
	}
}

// failed is why what the group tells the world is not true; nil: it is. All groups before
// it have been let out.
func (g *group) failed() error {
	if g.err == nil && g.parts != nil {
		if err := g.parts.Load(); err != nil {
			return *err
		}
	}
	return g.err
}

// undo takes back what other destinations were told to expect.
func (g *group) undo() {
	for _, x := range g.gains {
		x.to.box.force(work{command: queue.Cancel{Positions: []uint64{x.item.Position}}})
	}
}
