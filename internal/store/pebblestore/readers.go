package pebblestore

import "sync"

// readers counts who reads, since Pebble must not be closed under them.
type readers struct {
	mu     sync.Mutex
	gone   sync.Cond // the last reader left
	n      int
	closed bool
}

func newReaders() *readers {
	r := &readers{}
	r.gone.L = &r.mu
	return r
}

// enter lets a reader in; false once the door is shut.
func (r *readers) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

func (r *readers) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 {
		r.gone.Broadcast()
	}
}

// shut lets nobody in any more and waits until all have left. It reports
// whether this call was the one that shut the door.
func (r *readers) shut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.closed
	r.closed = true
	for r.n > 0 {
		r.gone.Wait()
	}
	return first
}
