package broker

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

const (
	// spaceInterval is how often the disk's free space is looked at.
	spaceInterval = time.Second
	// spaceShare of what is free above the reserve may come in before it is looked at
	// again: what is stored takes its room in the log and in a table, and more while
	// tables are merged.
	spaceShare = 4
	// spaceStep is what may come in between two looks at the least.
	spaceStep = 1 << 20
)

// A diskWatch knows whether producers may store more.
type diskWatch struct {
	left atomic.Int64  // bytes that may come in before the free space is looked at
	soon chan struct{} // holds one: more has come in; nil: nobody looks

	mu      sync.Mutex
	low     error           // why not; nil: they may
	percent float64         // what is used of what the store may use; 0: there is no limit
	changed chan struct{}   // closed when it was looked at again; nil while nobody waits
	told    map[string]bool // what was told since it is low
}

// comes notes that n bytes come in that are to be stored. A fast disk is filled before
// spaceInterval has passed.
func (w *diskWatch) comes(n int64) {
	if w.left.Add(-n) >= 0 {
		return
	}
	select {
	case w.soon <- struct{}{}:
	default: // somebody is about to look, or nobody does
	}
}

// state tells what was found last.
func (w *diskWatch) state() (low error, percent float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.low, w.percent
}

// watch is closed when the disk was looked at again.
func (w *diskWatch) watch() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// signal has those who wait for the disk look once more.
func (w *diskWatch) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// maxTold bounds what is remembered of what was told; the rest is not told.
const maxTold = 1000

// firstTime reports whether something was not told since the disk is nearly full.
func (w *diskWatch) firstTime(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.low == nil || w.told[what] || len(w.told) >= maxTold {
		return false
	}
	if w.told == nil {
		w.told = map[string]bool{}
	}
	w.told[what] = true
	return true
}

// Full tells why producers of persistent messages are refused; nil if they are not.
func (b *Broker) Full() error {
	low, _ := b.disk.state()
	return low
}

// set notes what was found. It reports whether that is news.
func (w *diskWatch) set(low error, percent float64) bool {
	w.mu.Lock()
	news := (w.low == nil) != (low == nil)
	w.low, w.percent = low, percent
	if low == nil {
		w.told = nil
	}
	w.mu.Unlock()
	w.signal()
	return news
}

// watchDisk looks at the free space now and then on.
func (b *Broker) watchDisk() {
	if b.o.Space == nil {
		return
	}
	b.disk.soon = make(chan struct{}, 1)
	b.checkDisk()
	b.running.Go(func() {
		for {
			wake, release := b.o.Clock.At(b.o.Clock.Now().Add(spaceInterval))
			select {
			case <-wake:
			case <-b.disk.soon:
				release()
			case <-b.ctx.Done():
				release()
				return
			}
			b.checkDisk()
		}
	})
}

// checkDisk compares the free space with the limit.
func (b *Broker) checkDisk() {
	s, err := b.o.Space()
	if err != nil {
		return // it cannot be asked: its engine will say when it is full
	}
	low := b.o.Limits.exceeded(s)
	b.disk.left.Store(b.o.Limits.untilNextLook(s, low != nil))
	if !b.disk.set(low, b.o.Limits.usedPercent(s)) {
		return
	}
	if low != nil {
		b.tell(Event{Kind: DiskLow, Err: low, Text: low.Error()})
	} else {
		b.tell(Event{Kind: DiskEnough})
	}
}

// untilNextLook is how many bytes may come in before the free space is looked at again.
// While it is low nothing more does.
func (l Limits) untilNextLook(s store.Space, low bool) int64 {
	if low {
		return math.MaxInt64
	}
	above := uint64(math.MaxInt64)
	if s.TotalBytes > 0 {
		above = s.FreeBytes - l.reserve(s)
	}
	if used := l.storeLimit(s); used > 0 {
		above = min(above, used-s.UsedBytes)
	}
	return max(int64(above/spaceShare), spaceStep)
}

// reserve is what producers leave free of the disk.
func (l Limits) reserve(s store.Space) uint64 {
	return max(l.MinFreeBytes, uint64(float64(s.TotalBytes)*l.MinFreePercent/100))
}

// exceeded says which limit of the disk has been passed; nil: none.
func (l Limits) exceeded(s store.Space) error {
	free := l.reserve(s)
	if s.TotalBytes > 0 && s.FreeBytes < free {
		return fmt.Errorf("the disk under the store has %d MiB free, and producers are refused below %d MiB: free space, or consume messages: %w",
			s.FreeBytes>>20, free>>20, message.ErrOverLimit)
	}
	if used := l.storeLimit(s); used > 0 && s.UsedBytes > used {
		return fmt.Errorf("the store uses %d MiB, and producers are refused above %d MiB (storeUsage): consume messages, or raise the limit: %w",
			s.UsedBytes>>20, used>>20, message.ErrOverLimit)
	}
	return nil
}

// storeLimit is what the store may use; 0: there is no limit.
func (l Limits) storeLimit(s store.Space) uint64 {
	used := l.MaxStoreBytes
	if share := uint64(float64(s.TotalBytes) * l.MaxStorePercent / 100); share > 0 && (used == 0 || share < used) {
		used = share
	}
	return used
}

// usedPercent is what the store uses of that; 0: there is no limit.
func (l Limits) usedPercent(s store.Space) float64 {
	limit := l.storeLimit(s)
	if limit == 0 {
		return 0
	}
	return float64(s.UsedBytes) * 100 / float64(limit)
}
