package memstore

import (
	"bytes"

	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/combiner"
	"github.com/tidwall/btree"
)

// An engine is the Store as the combiner sees it.
type engine Store

// Apply changes the tree; readers have their own view of what was before.
func (e *engine) Apply(items []combiner.Item) (combiner.Commit, error) {
	durable := false
	for _, item := range items {
		durable = durable || !item.Relaxed()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.crashed {
		return nil, errPower
	}
	for _, item := range items {
		if item.Batch == nil {
			e.epochs[item.Shard] = item.Epoch
			continue
		}
		e.applyLocked(item.Shard, item.Batch)
	}
	if !durable {
		return &commit{e: e}, nil
	}
	c := &commit{e: e, durable: true}
	if e.durable != nil {
		c.leaves = e.tree.Copy()
	}
	return c, nil
}

// applyLocked changes the tree as b says. The bytes are copied, all of a batch
// into one piece of memory, since their owner gets them back.
func (e *engine) applyLocked(number uint16, b *store.Batch) {
	size := 0
	for _, op := range b.Ops() {
		if op.Kind == store.OpPut || op.Kind == store.OpPutOnce {
			size += len(op.Key) + len(op.Value)
		}
	}
	arena := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		from := len(arena)
		arena = append(arena, b...)
		return arena[from:len(arena):len(arena)]
	}
	for _, op := range b.Ops() {
		if e.promises != nil {
			_, exists := e.tree.Get(pair{shard: number, key: op.Key})
			e.promises.check(number, op, exists)
		}
		switch op.Kind {
		case store.OpPut, store.OpPutOnce:
			e.tree.Set(pair{shard: number, key: keep(op.Key), value: keep(op.Value)})
		case store.OpDelete, store.OpDeleteOnce:
			e.tree.Delete(pair{shard: number, key: op.Key})
		case store.OpDeleteRange:
			e.deleteRangeLocked(number, op.Key, op.Value)
		}
	}
}

func (e *engine) deleteRangeLocked(number uint16, lo, hi []byte) {
	var doomed []pair
	e.tree.Ascend(pair{shard: number, key: lo}, func(p pair) bool {
		if p.shard != number || hi != nil && bytes.Compare(p.key, hi) >= 0 {
			return false
		}
		doomed = append(doomed, p)
		return true
	})
	for _, p := range doomed {
		e.tree.Delete(p)
	}
}

// A commit is one group on its way to a disk that is not there.
type commit struct {
	e       *engine
	durable bool
	leaves  *btree.BTreeG[pair] // what a crash after this commit leaves; nil unless Crashable
}

// Wait takes the time of a sync, then makes the commit durable, unless the
// power went meanwhile.
func (c *commit) Wait() error {
	if c.durable && c.e.o.SyncTime > 0 {
		due, stop := c.e.o.Clock.At(c.e.o.Clock.Now().Add(c.e.o.SyncTime))
		<-due
		stop()
	}
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.e.crashed {
		return errPower
	}
	if c.leaves != nil {
		c.e.durable = c.leaves
	}
	return nil
}
