package broker

import "sync"

// A release lets out what a destination's turns want to tell the world, each turn
// when its batch is on disk, and in the order of the turns.
type release struct {
	mu      sync.Mutex
	groups  []*group // in the order of the turns
	letting bool     // someone is letting groups out
}

// push adds the group of a turn. It reports whether a batch before it was put off and
// is not yet answered.
func (r *release) push(g *group) (putOff bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.groups {
		putOff = putOff || o.putOff && !o.ready
	}
	r.groups = append(r.groups, g)
	return putOff
}

// idle reports whether nothing waits to be let out, nor is being let out.
func (r *release) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.groups) == 0 && !r.letting
}

// done says that the batch of g was answered, and lets out what can go. The
// group is free then. It calls clients' functions, without any lock.
func (r *release) done(g *group, err error) {
	r.mu.Lock()
	g.ready, g.err = true, err
	if r.letting {
		r.mu.Unlock()
		return // who is at it will come to this one
	}
	r.letting = true
	for len(r.groups) > 0 && r.groups[0].ready {
		next := r.groups[0]
		r.groups[0] = nil
		r.groups = r.groups[1:]
		r.mu.Unlock()
		failed := next.failed()
		for i := range next.actions {
			next.actions[i].perform(failed)
		}
		next.free()
		r.mu.Lock()
	}
	r.letting = false
	r.mu.Unlock()
}
