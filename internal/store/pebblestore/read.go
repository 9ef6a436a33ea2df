package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/combiner"
)

// A shard is a store.Shard: combiner.Owner writes, it reads.
type shard struct {
	*combiner.Owner
	s *Store
}

// appendBound appends the place of a bound of a scan or range; nil is the end of
// the shard.
func appendBound(b []byte, shard uint16, hi []byte) []byte {
	if hi == nil {
		return appendEnd(b, shard)
	}
	return appendKey(b, shard, hi)
}

// Scan reads one state of the store. Pebble keeps the files of that state until
// f has seen the last key, so f should not take long.
func (h *shard) Scan(lo, hi []byte, f func(k, v []byte) bool) (err error) {
	if !h.s.readers.enter() {
		return fmt.Errorf("scan shard %d: %w", h.Shard(), store.ErrClosed)
	}
	defer h.s.readers.leave()
	bounds := make([]byte, 0, 2*prefixBytes+len(lo)+len(hi))
	lower := appendKey(bounds, h.Shard(), lo)
	upper := appendBound(lower[len(lower):], h.Shard(), hi)
	it, err := h.s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("scan shard %d: %w", h.Shard(), err)
	}
	defer func() {
		if closeErr := it.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("scan shard %d: %w", h.Shard(), damage(closeErr))
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan shard %d: %w", h.Shard(), damage(err))
		}
		if !f(it.Key()[prefixBytes:], v) {
			return nil
		}
	}
	return nil // an error that ended the iteration is told by Close
}

// Get returns a copy of the value.
func (h *shard) Get(k []byte) ([]byte, error) {
	if !h.s.readers.enter() {
		return nil, fmt.Errorf("get from shard %d: %w", h.Shard(), store.ErrClosed)
	}
	defer h.s.readers.leave()
	var room [64]byte
	v, closer, err := h.s.db.Get(appendKey(room[:0], h.Shard(), k))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get from shard %d: %w", h.Shard(), damage(err))
	}
	value := append([]byte{}, v...)
	if err := closer.Close(); err != nil {
		return nil, fmt.Errorf("get from shard %d: %w", h.Shard(), err)
	}
	return value, nil
}

// damage adds store.ErrDamaged to an error that says that a file is not as it was written,
// or is gone.
func damage(err error) error {
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return err
}
