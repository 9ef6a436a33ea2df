package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
)

const (
	// plenty times the reserve must be free for the reserve to be made.
	plenty = 4
	// fullPause is how long writing stops where the disk is full and no reserve
	// is left. Pebble tries again at once otherwise, for ever.
	fullPause = 200 * time.Millisecond
)

// A reserve is a file that holds nothing but room. When the disk is full it is
// given up, so that what is being written still gets to the disk, and the owner
// hears of it and can stop producers while acknowledgements go on.
type reserve struct {
	fs        vfs.FS // not the one that calls full
	dir       string
	size      int64 // none where not positive
	clock     clock.Clock
	logger    *slog.Logger
	onTrouble func(error)

	mu   sync.Mutex
	made bool
}

func newReserve(o Options, dir string) *reserve {
	return &reserve{fs: o.FS, dir: dir, size: o.ReserveBytes, clock: o.Clock, logger: o.Logger, onTrouble: o.OnTrouble}
}

func (r *reserve) path() string { return r.fs.PathJoin(r.dir, reserveFile) }

// make makes the reserve if there is none and plenty of room.
func (r *reserve) make() {
	if r.size <= 0 || r.isMade() {
		return
	}
	if info, err := r.fs.Stat(r.path()); err == nil && info.Size() == r.size {
		r.setMade(true)
		return
	}
	du, err := r.fs.GetDiskUsage(r.dir)
	if err != nil || du.AvailBytes < uint64(plenty*r.size) {
		return
	}
	if err := r.allocate(); err != nil {
		r.logger.Warn("no reserve for a full disk", "dir", r.dir, "err", err)
		return
	}
	r.setMade(true)
}

func (r *reserve) allocate() error {
	f, err := r.fs.Create(r.path(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = writeZeros(f, r.size)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, r.fs.Remove(r.path()))
	}
	return nil
}

// writeZeros gives f real blocks. Zeros are written, since not every file system can
// promise room without.
func writeZeros(f vfs.File, size int64) error {
	zeros := make([]byte, 256<<10)
	for size > 0 {
		n, err := f.Write(zeros[:min(size, int64(len(zeros)))])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

// full is called when the disk is full, by whoever writes; all other writing
// waits until it returns, and the failed write is then tried once more.
func (r *reserve) full() {
	err := r.fs.Remove(r.path())
	switch {
	case err == nil:
		r.setMade(false)
		err = fmt.Errorf("%w: the reserve of %d bytes in %s was given up", store.ErrFull, r.size, r.dir)
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %s, and no reserve is left", store.ErrFull, r.dir)
		c, stop := r.clock.At(r.clock.Now().Add(fullPause))
		<-c
		stop()
	default:
		err = fmt.Errorf("%w: give up the reserve in %s: %w", store.ErrFull, r.dir, err)
	}
	r.logger.Error("disk full", "err", err)
	if r.onTrouble != nil {
		r.onTrouble(err)
	}
}

func (r *reserve) isMade() bool { return r.bytes() > 0 }

// bytes is what the reserve takes now.
func (r *reserve) bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.made {
		return 0
	}
	return r.size
}

func (r *reserve) setMade(made bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = made
}
