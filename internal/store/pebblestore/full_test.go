package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/nixiemq/nixie/internal/store"
)

// smallDisk mounts a file system of so many bytes.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("a small file system cannot be mounted here (root on %s can): %v", runtime.GOOS, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// A heard keeps what a store tells its owner.
type heard struct {
	mu      sync.Mutex
	fatal   []error
	trouble []error
}

func (h *heard) options(o Options) Options {
	keep := func(to *[]error) func(error) {
		return func(err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			*to = append(*to, err)
		}
	}
	o.OnFatal, o.OnTrouble = keep(&h.fatal), keep(&h.trouble)
	return o
}

// checkFull checks that the owner was told once that the disk is full.
func (h *heard) checkFull(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.fatal) != 1 || !errors.Is(h.fatal[0], store.ErrFull) {
		t.Errorf("OnFatal heard %v, want ErrFull once", h.fatal)
	}
}

// fillUp commits from several goroutines until each is refused, and returns the
// keys whose commits were answered.
func fillUp(t *testing.T, h store.Shard) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	answered := map[string]bool{}
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			value := randomBytes(10 << 10)
			for i := range 100_000 {
				k := fmt.Sprintf("%d %06d", c, i)
				var b store.Batch
				b.PutOnce([]byte(k), value)
				if err := committed(h, &b); err != nil {
					if !errors.Is(err, store.ErrFull) {
						t.Errorf("%v, want ErrFull", err)
					}
					return
				}
				mu.Lock()
				answered[k] = true
				mu.Unlock()
			}
			t.Error("the disk was not full")
		})
	}
	wg.Wait()
	return answered
}

func checkThere(t *testing.T, h store.Shard, answered map[string]bool) {
	t.Helper()
	found := map[string]bool{}
	err := h.Scan(nil, nil, func(k, v []byte) bool {
		if len(v) != 10<<10 {
			t.Errorf("%s has %d bytes", k, len(v))
		}
		found[string(k)] = true
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for k := range answered {
		if !found[k] {
			t.Errorf("%s was answered and is not there", k)
		}
	}
}

// fullOptions let a small disk be full soon.
func fullOptions(reserve int64) Options {
	return Options{MemTableBytes: 1 << 20, QuietTime: -1, ReserveBytes: reserve, FullTime: 300 * time.Millisecond}
}

// TestFullDisk fills a disk by a process that ends there, starts another one on the
// full disk, and then one with room: all that was answered is there. Processes of
// their own, as users have them: the engine can neither be stopped nor be opened
// again where its last tables could not be written.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 24<<20)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o750); err != nil {
		t.Fatal(err)
	}
	answered, status := fillingChild(t, data)
	total := uint64(0)
	for _, n := range answered {
		total += n
	}
	if status != ExitFatal || total < 1000 {
		t.Errorf("the process ended with %d after %d commits, want %d and more than 1000", status, total, ExitFatal)
	}

	// A start needs room too. What it could still write counts.
	more, status := fillingChild(t, data)
	if status == 0 {
		t.Error("a start on the full disk ended well")
	}
	for w, n := range more {
		answered[w] = max(answered[w], n)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s := opened(t, data, fullOptions(-1))
	for w := range uint16(killWriters) {
		h, err := s.Acquire(t.Context(), w, "test")
		if err != nil {
			t.Fatal(err)
		}
		checkFilled(t, h, w, answered[w])
	}
}

// fillingChild lets a child write until it ends, and returns the last number that was
// answered for each writer, and the exit status.
func fillingChild(t *testing.T, dir string) (last [killWriters]uint64, status int) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childDir+"="+dir, childFills+"=yes")
	out, err := c.Output()
	for line := range strings.Lines(string(out)) {
		var w int
		var number uint64
		if _, err := fmt.Sscan(line, &w, &number); err == nil && strings.HasSuffix(line, "\n") {
			last[w] = number
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if strings.Contains(string(exit.Stderr), "panic:") {
			t.Errorf("the process panicked:\n%s", exit.Stderr)
		}
		return last, exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return last, 0
}

// checkFilled checks that the shard holds all that was answered, and each batch whole.
func checkFilled(t *testing.T, h store.Shard, w uint16, answered uint64) {
	t.Helper()
	n := killNumber(h)
	if n < answered {
		t.Errorf("writer %d: %d was answered, %d is there", w, answered, n)
	}
	next := uint64(1)
	err := h.Scan([]byte("m/"), []byte("m0"), func(k, v []byte) bool {
		if string(k) != string(key(int(next))) || string(v) != string(killValue(w, next)) {
			t.Errorf("writer %d: %s with %d bytes where message %d was due", w, k, len(v), next)
			return false
		}
		next++
		return true
	})
	if err != nil || next != n+1 {
		t.Errorf("writer %d: messages up to %d, number %d; %v", w, next-1, n, err)
	}
}

func TestReserveIsGivenUpAndMadeAgain(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 32<<20)
	data := filepath.Join(dir, "data")
	var h heard
	o := fullOptions(4 << 20)
	o.FullTime = 30 * time.Second // there is room again at once, however slow the machine
	s := opened(t, data, h.options(o))
	s.reserve.make()
	if s.reserve.bytes() != 4<<20 {
		t.Fatal("no reserve on an empty disk")
	}
	// Somebody else takes what is left.
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	owner := acquire(t, s)
	fill(t, owner, 0, 1200, 1<<10) // more than one table in memory and its log, and less than the reserve takes
	h.mu.Lock()
	told, fatal := h.trouble, h.fatal
	h.mu.Unlock()
	if len(told) == 0 || !errors.Is(told[0], store.ErrFull) || !strings.Contains(told[0].Error(), "given up") || len(fatal) > 0 {
		t.Errorf("told %v, fatal %v; want that the reserve was given up", told, fatal)
	}
	if s.reserve.bytes() != 0 {
		t.Error("the reserve is still there")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.reserve.make()
	if s.reserve.bytes() != 4<<20 {
		t.Error("the reserve was not made again")
	}
}

// A disk that is full for the log only, at any operation.
func TestLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSyncData} {
		for _, at := range []int32{1, 2, 5, 17} {
			t.Run(fmt.Sprintf("%v number %d", kind, at), func(t *testing.T) {
				t.Parallel()
				mem := vfs.NewCrashableMem()
				var armed atomic.Bool
				var n atomic.Int32
				failing := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if armed.Load() && op.Kind == kind && strings.HasSuffix(op.Path, ".log") && n.Add(1) >= at {
						return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
					}
					return nil
				}))
				var h heard
				o := h.options(fullOptions(-1))
				o.FS = failing
				s, err := Open("data", o)
				if err != nil {
					t.Fatal(err)
				}
				owner := acquire(t, s)
				armed.Store(true)
				answered := fillUp(t, owner)
				h.checkFull(t)
				left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rand.New(rand.NewPCG(1, 2))})
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				again := fullOptions(-1)
				again.FS = left
				checkThere(t, acquire(t, opened(t, "data", again)), answered)
			})
		}
	}
}

// A log that cannot be ended, or the next begun, is fatal in the same way, whoever does
// it. Pebble alone panics there, beyond recovery.
func TestLogThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSyncData, errorfs.OpCreate} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			var armed atomic.Bool
			var h heard
			o := h.options(fullOptions(-1))
			o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if armed.Load() && op.Kind == kind && strings.HasSuffix(op.Path, ".log") {
					return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
				}
				return nil
			}))
			s, err := Open("data", o)
			if err != nil {
				t.Fatal(err)
			}
			owner := acquire(t, s)
			fill(t, owner, 0, 100, 1<<10)
			armed.Store(true)
			if _, err := s.(*Store).db.AsyncFlush(); err != nil { // as the sweeper does
				t.Fatal(err)
			}
			h.checkFull(t)
			var b store.Batch
			b.Put(key(100), nil)
			if err := committed(owner, &b); !errors.Is(err, store.ErrFull) {
				t.Errorf("a commit after the end: %v, want ErrFull", err)
			}
			left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rand.New(rand.NewPCG(1, 2))})
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			again := fullOptions(-1)
			again.FS = left
			keys := 0
			if err := acquire(t, opened(t, "data", again)).Scan(nil, nil, func(_, _ []byte) bool { keys++; return true }); err != nil || keys != 100 {
				t.Errorf("%d keys are there, want 100; %v", keys, err)
			}
		})
	}
}

// Left to itself, a store ends the process then as for every other write that fails, and
// says what to do.
func TestLogThatCannotBeEndedEndsTheProcess(t *testing.T) {
	t.Parallel()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childDir+"="+t.TempDir(), childEndsLog+"=yes")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != ExitFatal || !strings.Contains(stderr.String(), "Free space") {
		t.Errorf("%v, want exit status %d; it says %q", err, ExitFatal, stderr.String())
	}
}

// endLog is the child of that test.
func endLog(dir string) {
	var armed atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	o := fullOptions(-1)
	o.FS = fs
	s, err := Open(dir, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	armed.Store(true)
	_, err = s.(*Store).db.AsyncFlush()
	fmt.Fprintln(os.Stderr, "flushed:", err)
}

// Tables that cannot be written do no harm to what is in the log, and the owner
// hears of them.
func TestTableThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	mem := vfs.NewMem()
	failing := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			return &os.PathError{Op: "create", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	var h heard
	told := make(chan error, 1)
	o := h.options(fullOptions(-1))
	o.FullTime = 30 * time.Second // there is room again at once, however slow the machine
	o.FS = failing
	o.OnTrouble = func(err error) {
		select {
		case told <- err:
		default:
		}
	}
	s := opened(t, "data", o)
	owner := acquire(t, s)
	armed.Store(true)
	fill(t, owner, 0, 1500, 1<<10)
	if err := <-told; !errors.Is(err, store.ErrFull) {
		t.Errorf("told %v, want ErrFull", err)
	}
	armed.Store(false)
	fill(t, owner, 1500, 5000, 1<<10)
	n := 0
	if err := owner.Scan(nil, nil, func(_, _ []byte) bool { n++; return true }); err != nil || n != 6500 {
		t.Errorf("%d keys, want 6500; %v", n, err)
	}
}

// Left to itself, a store ends the process in a way that says what to do.
func TestFullDiskEndsTheProcess(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 16<<20)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childDir+"="+dir, childFills+"=yes")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != ExitFatal {
		t.Errorf("%v, want exit status %d", err, ExitFatal)
	}
	for _, part := range []string{dir, "no space left", "Free space"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("%q does not say %q", stderr.String(), part)
		}
	}
}
