package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/combiner"
)

// maxMemTables is how many tables in memory may wait to be written; with as many,
// commits wait too.
const maxMemTables = 4

// An engine is the Store as the combiner sees it.
type engine Store

// Apply encodes the items into one Pebble batch, hands it to the log and makes
// it visible. It does not wait for the disk.
func (e *engine) Apply(items []combiner.Item) (combiner.Commit, error) {
	if e.reserve.isFull() {
		if err := e.awaitRoom(); err != nil {
			return nil, err
		}
	}
	b := e.db.NewBatch()
	durable, deleted, size := false, 0, 0
	for _, item := range items {
		durable = durable || !item.Relaxed()
		if item.Batch == nil {
			epoch := binary.BigEndian.AppendUint64(nil, item.Epoch)
			if err := b.Set(epochKey(item.Shard), epoch, nil); err != nil {
				return nil, fmt.Errorf("encode claim: %w", err)
			}
			continue
		}
		size += item.Batch.SizeBytes()
		n, err := encode(b, item.Shard, item.Batch.Ops())
		if err != nil {
			return nil, fmt.Errorf("encode batch: %w", err)
		}
		deleted += n
	}
	e.sweeper.note(size, deleted)
	c := &commit{b: b, e: e, durable: durable}
	return c, c.start()
}

// awaitRoom returns when the tables in memory have room for more although the
// disk is full. Pebble would wait inside the commit, where nothing can end it.
func (e *engine) awaitRoom() error {
	limit := uint64(maxMemTables-1)*uint64(e.o.MemTableBytes) - uint64(e.o.MemTableBytes)/2
	deadline := e.o.Clock.Now().Add(e.o.FullTime)
	for e.reserve.isFull() && e.db.Metrics().MemTable.Size > limit {
		if e.o.Clock.Now().After(deadline) {
			err := fmt.Errorf("%w: nothing could be written in %s for %v", store.ErrFull, e.dir, e.o.FullTime)
			e.failure.fatal(err)
			return err
		}
		again, stop := e.o.Clock.At(e.o.Clock.Now().Add(fullPause))
		<-again
		stop()
	}
	return e.failure.cause()
}

// encode appends the operations to b and returns how many of them delete.
func encode(b *pebble.Batch, shard uint16, ops []store.Op) (deletes int, err error) {
	for i := range ops {
		op := &ops[i]
		size := prefixBytes + len(op.Key)
		switch op.Kind {
		case store.OpPut, store.OpPutOnce:
			d := b.SetDeferred(size, len(op.Value))
			putKey(d.Key, shard, op.Key)
			copy(d.Value, op.Value)
			err = d.Finish()
		case store.OpDelete:
			deletes++
			d := b.DeleteDeferred(size)
			putKey(d.Key, shard, op.Key)
			err = d.Finish()
		case store.OpDeleteOnce:
			deletes++
			d := b.SingleDeleteDeferred(size)
			putKey(d.Key, shard, op.Key)
			err = d.Finish()
		case store.OpDeleteRange:
			if op.Value != nil && bytes.Compare(op.Key, op.Value) >= 0 {
				continue // empty; Pebble would take it for a broken one
			}
			deletes++
			err = b.DeleteRange(appendKey(nil, shard, op.Key), appendBound(nil, shard, op.Value), nil)
		}
		if err != nil {
			return deletes, err
		}
	}
	return deletes, nil
}

// A commit is a Pebble batch on its way to the disk.
type commit struct {
	b       *pebble.Batch
	e       *engine
	durable bool
}

func (c *commit) start() error {
	var err error
	switch {
	case !c.durable && c.b.Empty():
	case !c.durable:
		err = c.e.db.Apply(c.b, pebble.NoSync)
	default:
		if c.b.Empty() { // Pebble would not even look at the disk for it
			if err := c.b.LogData(nil, nil); err != nil {
				return err
			}
		}
		err = c.e.db.ApplyNoSyncWait(c.b, pebble.Sync)
	}
	if err == nil {
		err = c.e.failure.cause() // Pebble reports a broken log by its logger only
	}
	if err != nil {
		return fmt.Errorf("write the log in %s: %w", c.e.dir, err)
	}
	return nil
}

// Wait returns when the batch is on disk.
func (c *commit) Wait() error {
	if c.durable {
		if err := c.b.SyncWait(); err != nil {
			err = fmt.Errorf("write the log in %s: %w", c.e.dir, classify(err))
			c.e.failure.fatal(err)
			return err
		}
	}
	if err := c.e.failure.cause(); err != nil {
		return fmt.Errorf("write the log in %s: %w", c.e.dir, err) // Pebble does not know: see logFS
	}
	if err := c.b.Close(); err != nil {
		return fmt.Errorf("release batch: %w", err)
	}
	return nil
}
