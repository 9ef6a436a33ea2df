package broker

import (
	"context"
	"sync"
	"sync/atomic"
)

// A budget counts the bytes of messages in memory against a limit.
type budget struct {
	used  atomic.Int64
	limit int64
}

// charge counts n bytes, unless that would pass the limit.
func (b *budget) charge(n int32) bool {
	if b.used.Add(int64(n)) > b.limit {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *budget) discharge(n int32) { b.used.Add(-int64(n)) }

// A gate lets through only so much unanswered work at a time. One piece of work
// passes whatever its size.
type gate struct {
	maxCount int
	maxBytes int64

	mu    sync.Mutex
	count int
	bytes int64
	wait  chan struct{} // closed when work was answered; nil while nobody waits
}

// enter waits until there is room for n bytes more, or ctx ends.
func (g *gate) enter(ctx context.Context, n int64) error {
	for {
		g.mu.Lock()
		if g.count == 0 || g.count < g.maxCount && g.bytes+n <= g.maxBytes {
			g.count++
			g.bytes += n
			g.mu.Unlock()
			return nil
		}
		if g.wait == nil {
			g.wait = make(chan struct{})
		}
		wait := g.wait
		g.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// idle reports whether no more than n pieces of work are unanswered.
func (g *gate) idle(n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count <= n
}

// leave takes answered work out.
func (g *gate) leave(n int64) {
	g.mu.Lock()
	g.count--
	g.bytes -= n
	if g.wait != nil {
		close(g.wait)
		g.wait = nil
	}
	g.mu.Unlock()
}
