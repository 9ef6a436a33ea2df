package pebblestore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/store"
)

// childDir is the variable of the environment that makes the test binary a
// writer in the directory it names, to be killed.
const childDir = "NIXIE_PEBBLESTORE_CHILD"

// childEndsLog, if set, makes it end the log on a full disk instead.
const childEndsLog = "NIXIE_PEBBLESTORE_ENDS_LOG"

// childFills, if set, makes it delete nothing.
const childFills = "NIXIE_PEBBLESTORE_FILLS"

const (
	killWriters = 8
	killKeeps   = 20 // messages of each writer that are there at a time
)

// child commits and prints what was answered until it is killed. Each batch
// holds a message with a checksum, the number of the message, and the deletion
// of an older message.
func child(dir string) {
	s, err := Open(dir, Options{MemTableBytes: 1 << 20, QuietTime: -1, ReserveBytes: -1, FullTime: 300 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range uint16(killWriters) {
		h, err := s.Acquire(context.Background(), w, "child")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		wg.Go(func() {
			for n := killNumber(h) + 1; ; n++ {
				var b store.Batch
				b.PutOnce(key(int(n)), killValue(w, n))
				b.Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n))
				if n > killKeeps && os.Getenv(childFills) == "" {
					b.DeleteOnce(key(int(n - killKeeps)))
				}
				if err := committed(h, &b); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Println(w, n)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// killValue is random bytes of random length behind their checksum.
func killValue(w uint16, n uint64) []byte {
	r := rand.New(rand.NewPCG(uint64(w), n))
	v := make([]byte, 4+r.IntN(3000))
	for i := range v {
		v[i] = byte(r.Uint32())
	}
	binary.BigEndian.PutUint32(v, crc32.ChecksumIEEE(v[4:]))
	return v
}

// killNumber is the last number that a writer's shard holds.
func killNumber(h store.Shard) uint64 {
	v, err := h.Get([]byte("n"))
	if errors.Is(err, store.ErrNotFound) {
		return 0
	}
	if err != nil || len(v) != 8 {
		panic(fmt.Sprintf("number %x: %v", v, err))
	}
	return binary.BigEndian.Uint64(v)
}

func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 3 {
		answered := killChild(t, dir, 100+rand.IntN(800))
		s := opened(t, dir, Options{QuietTime: -1, ReserveBytes: -1})
		total := uint64(0)
		for w := range uint16(killWriters) {
			h, err := s.Acquire(t.Context(), w, "test")
			if err != nil {
				t.Fatal(err)
			}
			checkKilled(t, h, w, answered[w])
			total += killNumber(h)
		}
		t.Logf("round %d: %d commits since the first", round, total)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killChild lets a child write, kills it after so many answers, and returns the
// last number that was answered for each writer.
func killChild(t *testing.T, dir string, answers int) (last [killWriters]uint64) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childDir+"="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var w int
		var number uint64
		if _, err := fmt.Sscan(lines.Text(), &w, &number); err == nil {
			last[w] = number
		}
		if n == answers {
			if err := c.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if c.Wait() == nil {
		t.Fatal("the child ended by itself")
	}
	return last
}

// checkKilled checks that the shard holds at least what was answered, and each
// batch whole.
func checkKilled(t *testing.T, h store.Shard, w uint16, answered uint64) {
	t.Helper()
	n := killNumber(h)
	if n < answered {
		t.Errorf("writer %d: %d was answered, %d is there", w, answered, n)
	}
	next := uint64(1)
	if n > killKeeps {
		next = n - killKeeps + 1
	}
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
