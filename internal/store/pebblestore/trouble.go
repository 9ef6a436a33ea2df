package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
)

// classify adds store.ErrFull to an error that says the disk is full.
func classify(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}

// A failure is the end of a store that cannot write its log any more.
type failure struct {
	mu   sync.Mutex
	err  error
	tell func(error) // nil while the store is being opened or closed: then Open or Close tells
	told bool        // tell was called
}

// cause is the error that ended the store, or nil.
func (f *failure) cause() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// over reports whether the owner was told: nothing that is written counts any more.
func (f *failure) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told
}

// closing says that the owner wants to hear nothing more.
func (f *failure) closing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell = nil
}

// notify has tell called with the failure, even if it was before.
func (f *failure) notify(tell func(error)) {
	f.mu.Lock()
	f.tell = tell
	err := f.err
	f.told = err != nil
	f.mu.Unlock()
	if err != nil {
		tell(err)
	}
}

// fatal ends the store for the reason given; the first call counts.
func (f *failure) fatal(err error) {
	f.mu.Lock()
	first := f.err == nil
	if first {
		f.err = err
	}
	tell := f.tell
	f.told = f.told || first && tell != nil
	f.mu.Unlock()
	if first && tell != nil {
		tell(err)
	}
}

// exitFatal is what a process does that has no better way.
func exitFatal(dir string) func(error) {
	return func(err error) {
		advice := "Find out what is wrong with the disk, then start again"
		if errors.Is(err, store.ErrFull) {
			advice = "Free space on the file system of " + dir + ", then start again"
		}
		fmt.Fprintf(os.Stderr, "nixie: the store in %s cannot be written: %v\n%s: nothing that was acknowledged is lost.\n", dir, err, advice)
		os.Exit(ExitFatal)
	}
}

// pebbleLog turns Pebble's log lines into ours.
type pebbleLog struct {
	logger  *slog.Logger
	failure *failure
}

// Infof is called often, so it costs nothing when debugging is off.
func (l pebbleLog) Infof(format string, args ...any) {
	if l.logger.Enabled(context.Background(), slog.LevelDebug) {
		l.logger.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

// Errorf is for what went wrong without harm.
func (l pebbleLog) Errorf(format string, args ...any) {
	l.logger.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is how Pebble tells that it cannot go on. It expects not to return, but
// every caller copes with a return: each hands the error on.
func (l pebbleLog) Fatalf(format string, args ...any) {
	err := fmt.Errorf("pebble: %s", fmt.Sprintf(format, args...))
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = fmt.Errorf("pebble: %w", classify(cause))
		}
	}
	l.logger.Error(err.Error())
	l.failure.fatal(err)
}

// A teller tells the owner and the log of trouble in the background.
type teller struct {
	logger    *slog.Logger
	onTrouble func(error) // may be nil
	clock     clock.Clock

	mu   sync.Mutex
	last time.Time // that the disk was full was told
}

// tellAgain is how often it is told that the disk is still full.
const tellAgain = 5 * time.Second

// tell tells of err. Pebble holds a lock meanwhile, so it must not block.
func (t *teller) tell(what string, err error) {
	err = fmt.Errorf("%s: %w", what, classify(err))
	if errors.Is(err, store.ErrFull) && !t.again() {
		return
	}
	t.logger.Error("store in trouble", "err", err)
	if t.onTrouble != nil {
		t.onTrouble(err)
	}
}

// again reports whether it is time to tell of a full disk again.
func (t *teller) again() bool {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.last) < tellAgain {
		return false
	}
	t.last = now
	return true
}

// listen returns the events of Pebble that an owner should hear of.
func listen(t *teller, r *reserve, kept *keptLogs) *pebble.EventListener {
	logger := t.logger
	return &pebble.EventListener{
		BackgroundError: func(err error) { t.tell("background work", err) },
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			t.tell("damaged file "+info.Path, info.Details)
		},
		PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
			// A range deletion that overtakes the deletion of its keys looks the
			// same, so this is only for who searches a bug.
			logger.Debug("a key was deleted once that was not written exactly once", "key", fmt.Sprintf("%x", info.UserKey))
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			r.stall(true)
			logger.Warn("commits wait for the disk", "reason", info.Reason)
		},
		WriteStallEnd: func() {
			r.stall(false)
			logger.Info("commits go on")
		},
		WALCreated: func(info pebble.WALCreateInfo) {
			if info.Err == nil {
				kept.begun(info.Path)
			}
		},
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err == nil {
				r.wrote()
				logger.Debug("table written", "took", info.TotalDuration)
			}
		},
	}
}
