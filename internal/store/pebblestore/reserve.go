package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
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
	fullPause = 50 * time.Millisecond
)

// A reserve is a file that holds nothing but room. When the disk is full it is
// given up, so that what is being written still gets to the disk, and the owner
// hears of it and can stop producers while acknowledgements go on.
type reserve struct {
	fs       vfs.FS // not the one that calls onFull
	dir      string
	size     int64         // none where not positive
	patience time.Duration // Options.FullTime
	clock    clock.Clock
	teller   *teller

	fatal func(error) // ends the store; set before it is opened

	full atomic.Bool // the disk was full when last written to; cleared by wrote

	mu      sync.Mutex
	made    bool
	since   time.Time     // of the first failure since a table could be written
	stalled bool          // commits wait inside Pebble for a table to be written
	choked  time.Time     // since when the disk is full in the present stall
	stuck   chan struct{} // closed when the disk stays full while the store is opened
}

func newReserve(o Options, dir string) *reserve {
	t := &teller{logger: o.Logger, onTrouble: o.OnTrouble, clock: o.Clock}
	return &reserve{fs: o.FS, dir: dir, size: o.ReserveBytes, patience: o.FullTime, clock: o.Clock, teller: t}
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
		r.teller.tell("make the reserve", err)
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

// wrote notes that a table could be written.
func (r *reserve) wrote() {
	r.full.Store(false)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = time.Time{}
}

// isFull reports whether the disk was full when last a table was to be written.
func (r *reserve) isFull() bool { return r.full.Load() }

// onFull is called when the disk is full, by whoever writes; all other writing
// waits until it returns, and the failed write is then tried once more.
func (r *reserve) onFull() {
	r.full.Store(true)
	r.watchOpen()
	r.watchStall()
	err := r.fs.Remove(r.path())
	switch {
	case err == nil:
		r.setMade(false)
		err = fmt.Errorf("%w: the reserve of %d bytes was given up", store.ErrFull, r.size)
	case errors.Is(err, fs.ErrNotExist):
		c, stop := r.clock.At(r.clock.Now().Add(fullPause))
		<-c
		stop()
		err = fmt.Errorf("%w, and no reserve is left", store.ErrFull)
	default:
		err = fmt.Errorf("%w: give up the reserve: %w", store.ErrFull, err)
	}
	r.teller.tell("write in "+r.dir, err)
}

// watchOpen closes stuck when the disk has been full for too long.
func (r *reserve) watchOpen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if r.since.IsZero() {
		r.since = now
	}
	if r.stuck != nil && now.Sub(r.since) >= r.patience {
		close(r.stuck)
		r.stuck = nil
	}
}

// stall notes that commits begin, or cease, to wait inside Pebble.
func (r *reserve) stall(now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled, r.choked = now, time.Time{}
}

// watchStall ends the store when the disk has been full for too long while commits wait
// inside Pebble, where nothing else can end them: those that came before the disk was
// known to be full. A small table that still finds room is no end of it.
func (r *reserve) watchStall() {
	r.mu.Lock()
	now := r.clock.Now()
	if r.stalled && r.choked.IsZero() {
		r.choked = now
	}
	over := !r.choked.IsZero() && now.Sub(r.choked) >= r.patience
	r.mu.Unlock()
	if over {
		r.fatal(fmt.Errorf("%w: nothing could be written in %s for %v", store.ErrFull, r.dir, r.patience))
	}
}

// opening returns a channel that is closed when the disk stays full.
func (r *reserve) opening() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stuck = make(chan struct{})
	return r.stuck
}

// opened ends what opening began.
func (r *reserve) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stuck = nil
}

// isMade reports whether there is a reserve now.
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
