package pebblestore

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/store"
)

// Options say how a store is opened. The zero value is right for a broker.
type Options struct {
	// FS is where the directory lies; nil: the machine's file system. Tests
	// give one that loses what was not synced, or fails.
	FS vfs.FS
	// Logger gets what goes wrong in the background, and at debug level what the
	// engine does; nil: nowhere.
	Logger *slog.Logger
	// Clock times the housekeeping; nil: clock.System.
	Clock clock.Clock

	// MemTableBytes is the size that a table in memory grows to before it is
	// written to disk; zero: DefaultMemTableBytes. A message that is consumed
	// while it is in one is never written but to the log. Up to four may wait to
	// be written. It bounds the log that a start after a crash has to read.
	MemTableBytes int
	// CacheBytes is for blocks read from disk; zero: DefaultCacheBytes.
	CacheBytes int
	// MaxOpenTables is about how many files of tables are open at a time; zero: as Pebble
	// has it, 1,000. It goes on with fewer, slower; with 64 at the least.
	MaxOpenTables int
	// Limits; fields that are zero take those of DefaultLimits.
	Limits store.Limits
	// MergeBytes bounds what the combiner puts into one physical commit; zero:
	// its default.
	MergeBytes int

	// QuietTime is how long next to nothing must have been written before the
	// store tidies up: writes out the table in memory, and gives space of deleted
	// keys back to the disk. Zero: DefaultQuietTime; negative: never.
	QuietTime time.Duration
	// ReserveBytes is the size of a file that only holds room: it is given up
	// when the disk is full, so that the log can still be written, and made again
	// when there is plenty. Zero: DefaultReserveBytes; negative: none.
	ReserveBytes int64

	// FullTime is how long commits wait for a disk that is full before that is
	// fatal. Until then nothing is lost and all goes on when there is room. Zero:
	// DefaultFullTime.
	FullTime time.Duration

	// OnFatal is called once when the log cannot be written: nothing can be
	// committed any more, and only a new start can tell what was. It must not
	// use the store. Nil: print what happened, and what to do, to standard error,
	// and exit with status ExitFatal. Where it returns, the store answers
	// everything with an error and waits for Close.
	OnFatal func(error)
	// OnTrouble is called for what goes wrong in the background without harm to
	// what is stored: a table that cannot be written yet because the disk is
	// full, for example, or a reserve that was given up. It must not block or use
	// the store. May be nil; the Logger is told in any case.
	OnTrouble func(error)
}

// Defaults of Options. How they were found is in the package comment.
const (
	DefaultMemTableBytes = 16 << 20
	DefaultCacheBytes    = 16 << 20
	DefaultQuietTime     = 3 * time.Second
	DefaultReserveBytes  = 32 << 20
	DefaultFullTime      = 10 * time.Second
)

// ExitFatal is the exit status when the log cannot be written (EX_TEMPFAIL).
const ExitFatal = 75

// DefaultLimits are the limits of a store that was not told others.
func DefaultLimits() store.Limits {
	return store.Limits{BatchBytes: 64 << 20, KeyBytes: 1 << 10, ValueBytes: 8 << 20, InFlightBytes: 16 << 20}
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	d := DefaultLimits()
	orInt(&o.Limits.BatchBytes, d.BatchBytes)
	orInt(&o.Limits.KeyBytes, d.KeyBytes)
	orInt(&o.Limits.ValueBytes, d.ValueBytes)
	orInt(&o.Limits.InFlightBytes, d.InFlightBytes)
	orInt(&o.MemTableBytes, DefaultMemTableBytes)
	orInt(&o.CacheBytes, DefaultCacheBytes)
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.QuietTime == 0 {
		o.QuietTime = DefaultQuietTime
	}
	if o.FullTime == 0 {
		o.FullTime = DefaultFullTime
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = DefaultReserveBytes
	}
	return o
}

func orInt(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}
