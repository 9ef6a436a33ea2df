package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/nixiemq/nixie/internal/clock"
)

// When a store is worth tidying. All were found with the drain test and the
// figures of the package comment.
const (
	// flushDelayDeleteRange is how soon a range deletion is written out, so that
	// Pebble can drop whole files that it covers.
	flushDelayDeleteRange = time.Second
	// quietBytes is what may be written in Options.QuietTime for it to be quiet.
	quietBytes = 256 << 10
	// sweepBytes and sweepDeletes are how much must have been written or deleted
	// since the last time; one of them is enough.
	sweepBytes   = 1 << 20
	sweepDeletes = 1000
	// garbageBytes and garbageShare are how much of the files in a range of keys
	// must be deleted keys, and what deletes them, to write them anew.
	garbageBytes = 1 << 20
	garbageShare = 0.1
	// stepBytes bounds the work that Close may have to wait for.
	stepBytes = 64 << 20
	// writeOutTime bounds what Close spends on a short next start.
	writeOutTime = 5 * time.Second
	// sweepPasses bounds how often one sweep looks for more.
	sweepPasses = 3
	// statsWait and statsTries bound the wait for Pebble's own counting.
	statsWait  = 20 * time.Millisecond
	statsTries = 250
)

// A sweeper gives the space of deleted keys back when the store is quiet.
//
// Pebble alone does not: it cleans up while it is written to, and a drained
// queue is followed by nothing. A sweep writes out the table in memory (which
// also makes the next start short), looks where deletions and what they delete
// make up a good part of the files, and has those key ranges compacted in steps.
//
// The commit path only adds to its counters; the rest belongs to run.
type sweeper struct {
	db      *pebble.DB
	clock   clock.Clock
	quiet   time.Duration
	logger  *slog.Logger
	reserve *reserve
	kept    *keptLogs

	bytes   atomic.Int64  // written since Open
	deletes atomic.Int64  // deletions since Open
	dirty   chan struct{} // holds one: something was written since run last looked
	written int64         // bytes when the table in memory was last written out; run's, then stop's caller's

	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newSweeper(db *pebble.DB, o Options, r *reserve, kept *keptLogs) *sweeper {
	return &sweeper{
		db: db, clock: o.Clock, quiet: o.QuietTime, logger: o.Logger, reserve: r, kept: kept,
		dirty: make(chan struct{}, 1), cancel: func() {},
	}
}

// note counts what a commit writes.
func (s *sweeper) note(bytes, deletes int) {
	s.bytes.Add(int64(bytes))
	s.deletes.Add(int64(deletes))
	select {
	case s.dirty <- struct{}{}:
	default: // run has not looked since the last
	}
}

func (s *sweeper) start() {
	if s.quiet < 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.note(0, 0) // an earlier process may have left something to do
	s.done.Go(func() { s.run(ctx) })
}

// stop ends a sweep after the step it is at.
func (s *sweeper) stop() {
	s.cancel()
	s.done.Wait()
}

// run makes the reserve, and sweeps each time the store has become quiet after enough
// was written.
func (s *sweeper) run(ctx context.Context) {
	s.reserve.make() // at once, so that a directory is soon as large as it stays
	first := true
	var deletes int64 // at the last sweep
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		if !s.awaitQuiet(ctx) {
			return
		}
		s.dropLogs(1)
		nowBytes, nowDeletes := s.bytes.Load(), s.deletes.Load()
		if !first && nowBytes-s.written < sweepBytes && nowDeletes-deletes < sweepDeletes {
			continue
		}
		first, deletes = false, nowDeletes
		if err := s.sweep(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.logger.Error("sweep of the store", "err", err)
		}
		s.dropLogs(1)
		s.reserve.make()
	}
}

// awaitQuiet returns when next to nothing was written for the quiet time; false
// when ctx ended.
func (s *sweeper) awaitQuiet(ctx context.Context) bool {
	for {
		before := s.bytes.Load()
		if !s.sleep(ctx, s.quiet) {
			return false
		}
		if s.bytes.Load()-before <= quietBytes {
			return true
		}
		s.dropLogs(keptLooks)
	}
}

// dropLogs drops logs that are kept for reuse, at so many looks.
func (s *sweeper) dropLogs(looks int) {
	if err := s.kept.drop(looks, func() int { return int(s.db.Metrics().WAL.Files) }); err != nil {
		s.logger.Error("drop logs of the store", "err", err)
	}
}

// sleep waits; false when ctx ended.
func (s *sweeper) sleep(ctx context.Context, d time.Duration) bool {
	c, stop := s.clock.At(s.clock.Now().Add(d))
	defer stop()
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// sweep does what there is to do now.
func (s *sweeper) sweep(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	for pass, last := 0, int64(-1); pass < sweepPasses; pass++ {
		g, err := s.look(ctx)
		if err != nil {
			return err
		}
		if len(g.steps) == 0 || last >= 0 && g.bytes > last/2 {
			return nil // clean, or what is left does not go away
		}
		last = g.bytes
		s.logger.Debug("sweep", "bytes", g.bytes, "steps", len(g.steps))
		for _, step := range g.steps {
			if err := s.db.Compact(ctx, step.lo, step.hi, false); err != nil {
				return fmt.Errorf("compact: %w", err)
			}
		}
	}
	return nil
}

// flush writes out the table in memory, if it may hold something.
func (s *sweeper) flush(ctx context.Context) error {
	now := s.bytes.Load()
	if now == s.written {
		return nil
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("write out: %w", err)
	}
	select {
	case <-flushed:
		s.written = now
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeOut writes out the table in memory before the store is closed, so that
// the next start need not read the log. Where that does not work, it will.
func (s *sweeper) writeOut() {
	if s.bytes.Load()-s.written < sweepBytes || s.reserve.isFull() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over, stop := s.clock.At(s.clock.Now().Add(writeOutTime))
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.flush(ctx) }()
	select {
	case <-done:
	case <-over:
		cancel()
		<-done
	}
}

// look waits until Pebble has counted what its files hold, which it does in the
// background, and says where the garbage is.
func (s *sweeper) look(ctx context.Context) (garbage, error) {
	for try := 0; ; try++ {
		levels, err := s.db.SSTables()
		if err != nil {
			return garbage{}, fmt.Errorf("list tables: %w", err)
		}
		if counted(levels) || try == statsTries {
			return findGarbage(levels), nil
		}
		if !s.sleep(ctx, statsWait) {
			return garbage{}, context.Cause(ctx)
		}
	}
}
