package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// spaceInterval is how often the disk's free space is looked at.
const spaceInterval = time.Second

// A diskWatch knows whether producers may store more.
type diskWatch struct {
	mu     sync.Mutex
	low    error           // why not; nil: they may
	enough chan struct{}   // closed when there is enough again; nil while there is
	told   map[string]bool // what was told since it is low
}

// admit fails, or waits, while the disk is nearly full.
func (w *diskWatch) admit(ctx context.Context, wait bool) error {
	for {
		w.mu.Lock()
		low, enough := w.low, w.enough
		w.mu.Unlock()
		if low == nil || !wait {
			return low
		}
		select {
		case <-enough:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
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
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	return b.disk.low
}

// set notes what was found. It reports whether that is news.
func (w *diskWatch) set(low error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := (w.low == nil) != (low == nil)
	w.low = low
	switch {
	case low != nil && w.enough == nil:
		w.enough = make(chan struct{})
	case low == nil && w.enough != nil:
		close(w.enough)
		w.enough, w.told = nil, nil
	}
	return news
}

// watchDisk looks at the free space now and then on.
func (b *Broker) watchDisk() {
	if b.o.Space == nil {
		return
	}
	b.checkDisk()
	b.running.Go(func() {
		for {
			wake, release := b.o.Clock.At(b.o.Clock.Now().Add(spaceInterval))
			select {
			case <-wake:
				b.checkDisk()
			case <-b.ctx.Done():
				release()
				return
			}
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
	if !b.disk.set(low) {
		return
	}
	if low != nil {
		b.tell(Event{Kind: DiskLow, Err: low, Text: low.Error()})
	} else {
		b.tell(Event{Kind: DiskEnough})
	}
}

// exceeded says which limit of the disk has been passed; nil: none.
func (l Limits) exceeded(s store.Space) error {
	free := max(l.MinFreeBytes, uint64(float64(s.TotalBytes)*l.MinFreePercent/100))
	if s.TotalBytes > 0 && s.FreeBytes < free {
		return fmt.Errorf("the disk under the store has %d MiB free, and producers are refused below %d MiB: free space, or consume messages: %w",
			s.FreeBytes>>20, free>>20, message.ErrOverLimit)
	}
	used := l.MaxStoreBytes
	if share := uint64(float64(s.TotalBytes) * l.MaxStorePercent / 100); share > 0 && (used == 0 || share < used) {
		used = share
	}
	if used > 0 && s.UsedBytes > used {
		return fmt.Errorf("the store uses %d MiB, and producers are refused above %d MiB (storeUsage): consume messages, or raise the limit: %w",
			s.UsedBytes>>20, used>>20, message.ErrOverLimit)
	}
	return nil
}
