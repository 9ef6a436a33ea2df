package combiner

import (
	"context"
	"fmt"

	"github.com/nixiemq/nixie/internal/store"
)

// An Owner is the writing half of a store.Shard: all but Scan and Get, which
// the engine adds. It is safe for concurrent use.
type Owner struct {
	c     *Combiner
	shard uint16
	epoch uint64
	name  string
	lost  chan struct{} // closed with gone

	gone   bool  // guarded by c.mu
	reason error // why; guarded by c.mu
}

// Acquire fences the shard's owner, if it has one, and makes name the next. It
// returns when the claim is durable and all that earlier owners handed over is
// answered.
func (c *Combiner) Acquire(ctx context.Context, shard uint16, name string) (*Owner, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire shard %d: %w", shard, err)
	}
	claimed := make(chan error, 1) // takes the one answer there is
	o, err := c.claim(shard, name, claimed)
	if err != nil {
		return nil, fmt.Errorf("acquire shard %d: %w", shard, err)
	}
	c.wake()
	select {
	case err = <-claimed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		o.lose(store.ErrFenced)
		return nil, fmt.Errorf("acquire shard %d: %w", shard, err)
	}
	return o, nil
}

func (c *Combiner) claim(shard uint16, name string, claimed chan<- error) (*Owner, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.broken != nil:
		return nil, c.broken
	case c.closed:
		return nil, store.ErrClosed
	}
	if earlier := c.owners[shard]; earlier != nil {
		earlier.reason = fmt.Errorf("%w: %s took shard %d from %s", store.ErrFenced, name, shard, earlier.name)
		earlier.loseLocked()
		c.room.Broadcast()
	}
	c.epochs[shard]++
	o := &Owner{c: c, shard: shard, epoch: c.epochs[shard], name: name, lost: make(chan struct{})}
	c.owners[shard] = o
	c.pushLocked(entry{item: Item{Shard: shard, Epoch: o.epoch}, done: func(err error) { claimed <- err }})
	return o, nil
}

// Shard is the number of the owned shard.
func (o *Owner) Shard() uint16 { return o.shard }

// Epoch is the number of this ownership; it rises with each Acquire of the shard.
func (o *Owner) Epoch() uint64 { return o.epoch }

// Lost is closed when the ownership has ended.
func (o *Owner) Lost() <-chan struct{} { return o.lost }

// Commit hands b over, as store.Shard says.
func (o *Owner) Commit(b *store.Batch, done func(err error)) {
	e := entry{item: Item{Shard: o.shard, Batch: b}, done: done, refused: o.c.check(b)}
	c := o.c
	c.mu.Lock()
	for c.unanswered > c.limits.InFlightBytes && !c.closed && !o.gone {
		c.overdue = true
		c.wake()
		c.room.Wait()
	}
	switch {
	case o.gone && o.reason != nil:
		e.refused = o.reason
	case c.closed:
		e.refused = store.ErrClosed
	case c.broken != nil:
		e.refused = c.broken
	}
	if e.refused == nil {
		e.bytes = b.SizeBytes()
	}
	if g := c.takeAloneLocked(e); g != nil {
		c.mu.Unlock()
		if c.start(g) {
			c.wake()
		}
		return
	}
	c.pushLocked(e)
	ready := c.readyLocked() || c.drained
	c.mu.Unlock()
	if ready {
		c.wake()
	}
}

// Release waits for what is in flight and gives the shard up. Later batches are
// refused with store.ErrFenced.
func (o *Owner) Release(ctx context.Context) error {
	o.lose(store.ErrFenced)
	answered := make(chan struct{})
	o.c.mu.Lock()
	o.c.pushLocked(entry{barrier: true, done: func(error) { close(answered) }})
	o.c.mu.Unlock()
	o.c.wake()
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("release shard %d: %w", o.shard, context.Cause(ctx))
	}
}

// lose ends the ownership for the reason given; an earlier end stays.
func (o *Owner) lose(reason error) {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	if o.gone {
		return
	}
	o.reason = fmt.Errorf("%w: shard %d was given up by %s", reason, o.shard, o.name)
	o.loseLocked()
	if o.c.owners[o.shard] == o {
		delete(o.c.owners, o.shard)
	}
	o.c.room.Broadcast()
}

func (o *Owner) loseLocked() {
	if !o.gone {
		o.gone = true
		close(o.lost)
	}
}
