// Package store is the only door to persistence: ordered keys, atomic batches,
// a fence. No engine's type passes it. It knows nothing of messages; what the
// keys and values mean is the business of package records.
//
// The laws, checked for every engine by store/storetest:
//
//   - a batch takes effect whole or not at all;
//   - batches of one shard take effect in the order of their Commit calls, and
//     are answered in that order;
//   - an answer without error means that the batch, and each before it, is on
//     disk (unless all it holds is relaxed);
//   - a batch of an earlier owner can not take effect after Acquire returned to
//     a later one.
package store

import (
	"context"
	"errors"
)

// What a caller can do about an error. Errors of an engine wrap one of these.
var (
	// ErrNotFound: no such key.
	ErrNotFound = errors.New("key not found")
	// ErrFenced: someone else owns the shard now. Nothing was applied, and
	// nothing ever will be; stop using it.
	ErrFenced = errors.New("shard is owned by another")
	// ErrUnknown: whether the batch was applied can not be told. Drop the shard,
	// acquire it again, and read.
	ErrUnknown = errors.New("outcome of commit unknown")
	// ErrHeld: the shard or the directory has a live owner; the text names it.
	ErrHeld = errors.New("held by another owner")
	// ErrLimit: the batch is above a limit of the engine. Nothing was written.
	ErrLimit = errors.New("over a limit of the store")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrDamaged: what was stored is there no more as it was, and cannot be read.
	ErrDamaged = errors.New("damaged")
	// ErrFull: the disk is full. Where it answers a commit it stands beside
	// ErrUnknown or ErrClosed, which say what became of the batch. Engines on a
	// local disk may end the process instead.
	ErrFull = errors.New("no space left in the store")
)

// A Store is an ordered map of byte keys, by bytes.Compare. It is safe for
// concurrent use. All reading and writing goes through a Shard.
type Store interface {
	// Acquire makes the caller, named by owner in errors of others, the only
	// writer of a shard and fences every earlier one. It waits for the lease of
	// a live owner to end, and fails with ErrHeld if ctx ends first.
	Acquire(ctx context.Context, shard uint16, owner string) (Shard, error)
	Limits() Limits
	// Space tells how much room there is. Engines without a disk return zeros.
	Space() (Space, error)
	Close() error
}

// Limits are the hard limits of an engine.
type Limits struct {
	BatchBytes    int // a batch above it is refused with ErrLimit
	KeyBytes      int
	ValueBytes    int // larger values must be cut into chunks by the caller
	InFlightBytes int // Commit blocks while more than this is unanswered
}

// Space is the room on the disk under a store, in bytes.
type Space struct{ FreeBytes, TotalBytes, UsedBytes uint64 } // UsedBytes: by the store itself

// A Shard is an owned part of the key space. It is safe for concurrent use.
type Shard interface {
	// Commit hands b over. done is called exactly once, in the order of the
	// Commit calls of this shard, from a goroutine of the engine: it must not
	// block, and must not call Commit. A nil error means durable; an empty batch
	// that is not relaxed makes the ones before it so. Commit itself blocks to
	// keep the bytes in flight below Limits.InFlightBytes, and for the disk where
	// the engine cannot take more. The shard owns b until done is called; then b
	// may be reset and used again.
	Commit(b *Batch, done func(err error))
	// Scan calls f for the keys in [lo, hi) in ascending order until f returns
	// false; a nil hi is the end of the shard. It sees at least every batch whose
	// done was called before, and each batch whole or not at all. k and v are valid
	// only within f. Pass a lo behind what was deleted: an engine may have to walk over deleted keys. f may
	// use the shard, but must not Close the store; keep it short, since an engine
	// may have to keep files for it.
	Scan(lo, hi []byte, f func(k, v []byte) bool) error
	// Get returns a copy of the value, or ErrNotFound. It sees what Scan sees.
	Get(k []byte) ([]byte, error)
	// Lost is closed when the ownership is lost; the owner must stop at once.
	Lost() <-chan struct{}
	// Release waits for what is in flight and gives the shard up.
	Release(ctx context.Context) error
}
