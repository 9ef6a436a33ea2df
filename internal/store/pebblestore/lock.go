package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nixiemq/nixie/internal/store"
)

// Names of our files beside Pebble's.
const (
	ownerFile   = "OWNER"   // who has the directory open
	formatFile  = "FORMAT"  // what wrote it
	reserveFile = "RESERVE" // room for when the disk is full
)

// lockDirectory takes the lock of the directory, for which it does not wait, and
// notes who has it. A held lock is store.ErrHeld with the holder named.
func lockDirectory(fs vfs.FS, dir string, now time.Time) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fs)
	var file *os.PathError
	if errors.As(err, &file) { // its file cannot be opened, which tells nothing of a holder
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err != nil {
		// The lock is refused with what the system says, in a form that differs
		// from one to the next.
		return nil, fmt.Errorf("%s is in use by %s: %w (%w)", dir, holder(fs, dir), store.ErrHeld, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text := fmt.Sprintf("pid %d on host %s since %s\n", os.Getpid(), host, now.UTC().Format(time.RFC3339))
	if err := putFile(fs, fs.PathJoin(dir, ownerFile), text, false); err != nil {
		return nil, errors.Join(fmt.Errorf("note the owner of %s: %w", dir, err), lock.Close())
	}
	return lock, nil
}

// unlockDirectory gives the directory up.
func unlockDirectory(fs vfs.FS, dir string, lock *pebble.Lock) error {
	err := fs.Remove(fs.PathJoin(dir, ownerFile))
	return errors.Join(err, lock.Close())
}

// holder says who has the directory open, as far as its note tells.
func holder(fs vfs.FS, dir string) string {
	text, err := readFile(fs, dir, ownerFile)
	if text = strings.TrimSpace(text); err != nil || text == "" {
		return "another process"
	}
	return text
}

// writeFile replaces a small file, so that a crash leaves the old or the new.
func writeFile(fs vfs.FS, dir, name, text string) error {
	temporary := fs.PathJoin(dir, name+".new")
	if err := putFile(fs, temporary, text, true); err != nil {
		return err
	}
	if err := fs.Rename(temporary, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// putFile writes a small file, and waits for the disk if sync says so.
func putFile(fs vfs.FS, path, text string, sync bool) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readFile reads a small file.
func readFile(fs vfs.FS, dir, name string) (string, error) {
	f, err := fs.Open(fs.PathJoin(dir, name))
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<10))
	return string(b), errors.Join(err, f.Close())
}
