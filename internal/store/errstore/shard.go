package errstore

import (
	"context"
	"sync"

	"github.com/nixiemq/nixie/internal/store"
)

// A shard answers in the order of its commits, whether they reach the store or
// not: each commit has a place in a row, and an answer waits for those before it.
type shard struct {
	store.Shard
	s      *Store
	number uint16

	handOver sync.Mutex // makes the order of the row that of the store's

	mu       sync.Mutex
	row      []*place
	settling bool          // somebody takes from the row
	dead     error         // answers every later commit
	lost     chan struct{} // closed with dead
	lostOnce sync.Once
}

// A place is one commit that waits for its answer. Under its shard's mu.
type place struct {
	fault Fault
	held  bool // hold is under way
	known bool // the answer is, and is err
	err   error
	done  func(error)
}

// Commit hands b over, or not, as the fault of this commit says.
func (h *shard) Commit(b *store.Batch, done func(err error)) {
	h.handOver.Lock()
	defer h.handOver.Unlock()
	p := &place{fault: h.s.next(h.number, b), done: done}
	h.mu.Lock()
	if h.dead != nil {
		p.fault = Fault{Err: h.dead}
	}
	if p.fault.Dead {
		h.dead = p.fault.Err
	}
	h.row = append(h.row, p)
	h.mu.Unlock()
	if p.fault.Err != nil && !p.fault.Applied {
		go h.settle(p, nil) // not here: the caller's goroutine must not be the one that answers
		return
	}
	h.Shard.Commit(b, func(err error) { h.settle(p, err) })
}

// settle notes the store's answer to p, and gives all answers that have become
// due, unless somebody else is at it, who will see this one.
func (h *shard) settle(p *place, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.known, p.err = true, err
	if p.fault.Err != nil {
		p.err = p.fault.Err
	}
	if h.settling {
		return
	}
	h.settling = true
	for len(h.row) > 0 && h.row[0].known {
		first := h.row[0]
		if first.fault.Hold != nil {
			if !first.held {
				first.held = true
				go h.hold(first, first.fault.Hold)
			}
			break
		}
		h.row = h.row[1:]
		h.mu.Unlock()
		if first.fault.Dead {
			h.lose()
		}
		first.done(first.err)
		h.mu.Lock()
	}
	h.settling = false
}

// hold waits until p is let go.
func (h *shard) hold(p *place, until <-chan struct{}) {
	<-until
	h.mu.Lock()
	p.fault.Hold = nil
	err := p.err
	h.mu.Unlock()
	h.settle(p, err)
}

func (h *shard) lose() { h.lostOnce.Do(func() { close(h.lost) }) }

// Lost is closed when a fault was Dead or the store says so.
func (h *shard) Lost() <-chan struct{} { return h.lost }

// watch passes the store's loss on. It ends with the shard.
func (h *shard) watch() {
	select {
	case <-h.Shard.Lost():
		h.lose()
	case <-h.lost:
	}
}

// Release waits for what is in flight, held answers too, and gives the shard up.
func (h *shard) Release(ctx context.Context) error {
	if err := h.Shard.Release(ctx); err != nil {
		return err
	}
	h.lose()
	answered := make(chan struct{})
	p := &place{done: func(error) { close(answered) }}
	h.mu.Lock()
	h.row = append(h.row, p)
	h.mu.Unlock()
	go h.settle(p, nil)
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
