package records

// maxDropped is how many queues that were dropped last are remembered: longer than
// anything that was begun before can take.
const maxDropped = 1 << 16

// dropped remembers queues that are no more, so that what is added to them still is told.
type dropped struct {
	last []QueueID // in the order in which they were dropped
	is   map[QueueID]bool
}

func (d *dropped) has(q QueueID) bool { return d.is[q] }

func (d *dropped) add(q QueueID) {
	if d.is == nil {
		d.is = map[QueueID]bool{}
	}
	d.is[q] = true
	d.last = append(d.last, q)
	if len(d.last) > maxDropped {
		delete(d.is, d.last[0])
		d.last = d.last[1:]
	}
}

// remove takes in that there is a queue of that ID again.
func (d *dropped) remove(q QueueID) { delete(d.is, q) }
