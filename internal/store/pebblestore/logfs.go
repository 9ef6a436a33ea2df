package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A logFS is the file system as Pebble's log sees it; other files pass through.
//
// Pebble panics where a log that cannot be written is ended or the next one begun, with
// a lock in a state that nobody can recover from: the process would end without a word
// that helps. So Pebble never hears that its log failed. The first failure ends the
// store (failure): from then on nothing more of a log is written, so that what is there
// stays a beginning of it, and no commit is answered but with that error. While the
// store is being opened or closed Pebble copes, and is told.
type logFS struct {
	vfs.FS
	dir     string
	failure *failure
	kept    *keptLogs
}

// logSuffix is how the names of Pebble's logs end.
const logSuffix = ".log"

// Create creates a file.
func (l *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return l.begin(name, func() (vfs.File, error) { return l.FS.Create(name, category) })
}

// ReuseForWrite makes a new file of an old one, or a new one where the old one was
// dropped.
func (l *logFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	l.kept.gone(from)
	return l.begin(to, func() (vfs.File, error) {
		f, err := l.FS.ReuseForWrite(from, to, category)
		if errors.Is(err, fs.ErrNotExist) {
			return l.FS.Create(to, category)
		}
		return f, err
	})
}

// Remove removes a file.
func (l *logFS) Remove(name string) error {
	if strings.HasSuffix(name, logSuffix) {
		l.kept.gone(name)
	}
	return l.FS.Remove(name)
}

func (l *logFS) begin(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if !strings.HasSuffix(name, logSuffix) {
		return open()
	}
	var f vfs.File
	var err error
	if !l.over() {
		if f, err = open(); err != nil {
			if err = l.failed(err); err != nil {
				return nil, err
			}
		}
	}
	if l.over() { // a log that goes nowhere
		if f != nil {
			f.Close()
		}
		if f, err = vfs.NewMem().Create(logSuffix, vfs.WriteCategoryUnspecified); err != nil {
			return nil, err
		}
	}
	return &logFile{File: f, fs: l}, nil
}

// over reports whether the log has failed and is not written any more.
func (l *logFS) over() bool { return l.failure.over() }

// failed ends the store because of err. It returns what Pebble is told.
func (l *logFS) failed(err error) error {
	l.failure.fatal(fmt.Errorf("write the log in %s: %w", l.dir, classify(err)))
	if l.over() {
		return nil
	}
	return err
}

// A logFile is a log that is being written. See logFS for what it says when it fails.
type logFile struct {
	vfs.File
	fs *logFS
}

// Write writes p.
func (f *logFile) Write(p []byte) (int, error) {
	if f.fs.over() {
		return len(p), nil
	}
	n, err := f.File.Write(p)
	if err == nil {
		return n, nil
	}
	if err = f.fs.failed(err); err != nil {
		return n, err
	}
	return len(p), nil
}

// Preallocate asks for room, for less than Pebble would. Pebble does without where there
// is none.
func (f *logFile) Preallocate(offset, length int64) error {
	return f.File.Preallocate(offset, min(length, logRoomBytes))
}

// Sync writes what was written to the disk.
func (f *logFile) Sync() error { return f.told(f.File.Sync) }

// SyncData is like Sync.
func (f *logFile) SyncData() error { return f.told(f.File.SyncData) }

// SyncTo is like Sync.
func (f *logFile) SyncTo(length int64) (full bool, err error) {
	err = f.told(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// told does something, and returns what Pebble is told of it.
func (f *logFile) told(do func() error) error {
	if f.fs.over() {
		return nil
	}
	if err := do(); err != nil {
		return f.fs.failed(err)
	}
	return nil
}
