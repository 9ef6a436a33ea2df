package pebblestore

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keptLooks is how many looks of the sweeper a log may be kept for reuse while the
// store is written to. A busy store uses it again long before.
const keptLooks = 3

// logRoomBytes is how much room a log is given before it is written. Pebble would ask
// for as much as a table in memory may grow to, and a log is often ended much earlier.
const logRoomBytes = 4 << 20

// keptLogs knows the logs of this process. Pebble keeps up to five that it does not need
// any more, of 16 MiB each, since a log that is overwritten is faster to sync than a new
// one. Those are dropped when the store has no use for them: people measure directories
// (C25). A log that is to be used again and is gone is made anew.
//
// Safe for concurrent use.
type keptLogs struct {
	fs      vfs.FS
	failure *failure // after it, logs stay as they are

	mu    sync.Mutex
	names []string       // as they were begun, and not removed
	looks map[string]int // how often a log was seen to be kept
}

// begun notes a log that Pebble has begun, and counts among those in use.
func (k *keptLogs) begun(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names = append(k.names, name)
}

// gone notes that a log was removed, or has another name now.
func (k *keptLogs) gone(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.looks, name)
	if i := slices.Index(k.names, name); i >= 0 {
		k.names = slices.Delete(k.names, i, i+1)
	}
}

// drop removes the logs that are kept and were at looks-1 looks before; live tells how
// many of the newest are in use. It is asked after the logs are listed: a log that is
// begun meanwhile is not in the list and counted, and one that is kept is never in use
// again under its name.
func (k *keptLogs) drop(looks int, live func() int) error {
	if k.failure.over() {
		return nil
	}
	k.mu.Lock()
	names := slices.Clone(k.names)
	k.mu.Unlock()
	names = names[:max(len(names)-live(), 0)]
	var all error
	for _, name := range names {
		if !k.seen(name, looks) {
			continue
		}
		err := k.fs.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
			continue
		}
		k.gone(name)
	}
	return all
}

// seen counts a look at a kept log, and reports whether there were enough.
func (k *keptLogs) seen(name string, looks int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.looks == nil {
		k.looks = map[string]int{}
	}
	k.looks[name]++
	return k.looks[name] >= looks
}
