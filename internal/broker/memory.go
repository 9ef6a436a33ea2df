package broker

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/queue"
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

// itemBytes is about what a copy of a message takes beside the message, which it
// shares with others: its item, and its delivery.
const itemBytes = 768

// share counts a message of size bytes once for n items that all have it, unless that
// would pass the limit: then it is nil.
func (b *budget) share(size int32, n int) *queue.Share {
	if !b.charge(size + int32(n)*itemBytes) {
		return nil
	}
	s := &queue.Share{Bytes: size}
	s.Items.Store(int32(n))
	return s
}

// giveBack ends the counting of what is counted for an item.
func (b *budget) giveBack(it *queue.Item) {
	b.discharge(it.Charged)
	it.Charged = 0
	if s := it.Share; s != nil {
		it.Share = nil
		if s.Items.Add(-1) == 0 {
			b.discharge(s.Bytes)
		}
	}
}

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
	return g.await(ctx, func() bool { return g.enterLocked(n) })
}

// await waits until ready, which is asked with mu held, first and whenever work was
// answered; or until ctx ends.
func (g *gate) await(ctx context.Context, ready func() bool) error {
	for {
		g.mu.Lock()
		if ready() {
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

// tryEnter is enter without waiting. It reports whether there was room.
func (g *gate) tryEnter(n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enterLocked(n)
}

// force enters whatever is there already.
func (g *gate) force(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	g.bytes += n
}

func (g *gate) enterLocked(n int64) bool {
	if g.count > 0 && (g.count >= g.maxCount || g.bytes+n > g.maxBytes) {
		return false
	}
	g.count++
	g.bytes += n
	return true
}

// drain waits until no work is unanswered, or ctx ends.
func (g *gate) drain(ctx context.Context) error {
	return g.await(ctx, func() bool { return g.count == 0 })
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
