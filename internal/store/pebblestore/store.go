package pebblestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/combiner"
)

// A Store is a store.Store in a directory.
type Store struct {
	dir      string
	o        Options
	db       *pebble.DB
	lock     *pebble.Lock
	failure  *failure
	combiner *combiner.Combiner
	readers  *readers
	reserve  *reserve
	kept     *keptLogs
	sweeper  *sweeper
}

// Open opens the store in a directory, which it creates. A directory that
// another process or store has open is store.ErrHeld, and the error names the
// holder; one that is newer or not ours is ErrFormat. store.ErrFull means that
// there is no room to start in; the directory then stays locked until there is,
// or the process ends.
func Open(dir string, o Options) (store.Store, error) {
	o = o.withDefaults()
	if o.OnFatal == nil {
		o.OnFatal = exitFatal(dir)
	}
	if err := o.FS.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("open store: %w", classify(err))
	}
	r := newReserve(o, dir)
	o.FS = vfs.OnDiskFull(o.FS, r.onFull)
	lock, err := lockDirectory(o.FS, dir, o.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", classify(err))
	}
	s := &Store{dir: dir, o: o, lock: lock, reserve: r, readers: newReaders(), failure: &failure{}}
	r.fatal = s.failure.fatal
	s.kept = &keptLogs{fs: o.FS, failure: s.failure}
	stuck := r.opening()
	opened := make(chan error, 1) // takes the one result there is
	go func() { opened <- s.open() }()
	select {
	case err = <-opened:
		r.opened()
	case <-stuck:
		go s.abandon(opened)
		return nil, fmt.Errorf("open store: %w: %s cannot be written", store.ErrFull, dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), unlockDirectory(o.FS, dir, lock))
	}
	return s, nil
}

// open does what must be done under the lock.
func (s *Store) open() error {
	if err := checkFormat(s.o.FS, s.dir); err != nil {
		return classify(err)
	}
	var err error
	if s.db, err = s.openPebble(); err != nil {
		return fmt.Errorf("%s: %w", s.dir, classify(err))
	}
	if err := s.failure.cause(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", s.dir, err), s.db.Close())
	}
	epochs, err := readEpochs(s.db)
	if err != nil {
		return errors.Join(err, s.db.Close())
	}
	s.sweeper = newSweeper(s.db, s.o, s.reserve, s.kept)
	s.combiner = combiner.New((*engine)(s), combiner.Options{Limits: s.o.Limits, MergeBytes: s.o.MergeBytes, Epochs: epochs, Clock: s.o.Clock})
	s.failure.notify(func(err error) {
		s.combiner.Break(err)
		s.o.OnFatal(err)
	})
	s.sweeper.start()
	return nil
}

// openPebble opens the engine. One that cannot write its first tables, because the
// disk is full, may panic while it cleans up behind itself; that is an error of the
// opening like any other.
func (s *Store) openPebble() (db *pebble.DB, err error) {
	defer func() {
		p := recover()
		switch {
		case p == nil:
		case s.reserve.isFull():
			db, err = nil, fmt.Errorf("%w: the engine gave up: %v", store.ErrFull, p)
		default:
			db, err = nil, fmt.Errorf("the engine cannot be opened: panic: %v", p)
		}
	}()
	return pebble.Open(s.dir, s.pebbleOptions())
}

// abandon waits for an opening that nobody wants any more: Pebble tries to write
// its tables until it can.
func (s *Store) abandon(opened <-chan error) {
	if err := <-opened; err == nil {
		err = s.Close()
		s.o.Logger.Info("closed a store that could not be opened in time", "dir", s.dir, "err", err)
		return
	}
	if err := unlockDirectory(s.o.FS, s.dir, s.lock); err != nil {
		s.o.Logger.Error("give up directory", "dir", s.dir, "err", err)
	}
}

// pebbleOptions are those that the package comment gives the figures for. Pebble
// takes what its tables in memory use from the cache, so that is added to it.
func (s *Store) pebbleOptions() *pebble.Options {
	p := &pebble.Options{
		FS:                          &logFS{FS: s.o.FS, dir: s.dir, failure: s.failure, kept: s.kept},
		Lock:                        s.lock,
		Logger:                      pebbleLog{logger: s.o.Logger, failure: s.failure},
		EventListener:               listen(s.reserve.teller, s.reserve, s.kept),
		FormatMajorVersion:          pebbleFormat,
		MemTableSize:                uint64(s.o.MemTableBytes),
		MemTableStopWritesThreshold: maxMemTables,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       40,
		LBaseMaxBytes:               16 << 20,
		FlushSplitBytes:             32 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		CacheSize:                   int64(s.o.CacheBytes) + (maxMemTables-1)*int64(s.o.MemTableBytes),
		FlushDelayDeleteRange:       flushDelayDeleteRange,
		MaxOpenFiles:                s.o.MaxOpenTables,
	}
	p.TargetFileSizes[0] = 16 << 20
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	p.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	return p
}

// Acquire makes owner the writer of the shard. There is one process, so it
// waits for no lease: an earlier owner is fenced.
func (s *Store) Acquire(ctx context.Context, number uint16, owner string) (store.Shard, error) {
	o, err := s.combiner.Acquire(ctx, number, owner)
	if err != nil {
		return nil, err
	}
	return &shard{Owner: o, s: s}, nil
}

// Limits are those of the options.
func (s *Store) Limits() store.Limits { return s.combiner.Limits() }

// Space asks the file system, and counts the files of the store, but for logs that
// wait to be used again; the size of the log is known only as the store writes it.
func (s *Store) Space() (store.Space, error) {
	if !s.readers.enter() {
		return store.Space{}, fmt.Errorf("space of %s: %w", s.dir, store.ErrClosed)
	}
	defer s.readers.leave()
	du, err := s.o.FS.GetDiskUsage(s.dir)
	if err != nil {
		return store.Space{}, fmt.Errorf("space of %s: %w", s.dir, err)
	}
	m := s.db.Metrics()
	used := m.DiskSpaceUsage() - m.WAL.ObsoletePhysicalSize - m.WAL.PhysicalSize + max(m.WAL.PhysicalSize, m.WAL.Size) + uint64(s.reserve.bytes())
	return store.Space{FreeBytes: du.AvailBytes, TotalBytes: du.TotalBytes, UsedBytes: used}, nil
}

// Close answers what is in flight, waits for readers, and gives the directory
// up. A second call does nothing.
func (s *Store) Close() error {
	s.combiner.Close()
	s.sweeper.stop()
	if !s.readers.shut() {
		return nil
	}
	if s.failure.cause() == nil {
		s.sweeper.writeOut()
	}
	s.failure.closing()
	err := s.db.Close()
	if s.failure.over() {
		err = nil // it was told, and Pebble cannot close what it could not write
	}
	if err = errors.Join(err, unlockDirectory(s.o.FS, s.dir, s.lock)); err != nil {
		return fmt.Errorf("close store in %s: %w", s.dir, err)
	}
	return nil
}
