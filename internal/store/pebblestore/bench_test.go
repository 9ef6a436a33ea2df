package pebblestore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/nixiemq/nixie/internal/store"
)

// benchSync is a variable of the environment with a duration that each sync takes
// in addition, for machines whose disk is busy: with the temporary directory in
// memory it stands for the whole sync.
const benchSync = "NIXIE_BENCH_SYNC"

// slowly are options with that duration, which is also returned.
func slowly(b *testing.B) (Options, time.Duration) {
	b.Helper()
	text := os.Getenv(benchSync)
	if text == "" {
		return Options{}, 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		b.Fatal(err)
	}
	return Options{FS: errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, ".log") {
			time.Sleep(d)
		}
		return nil
	}))}, d
}

// The goals are ratios to a bare log in the same run: 0.75, 0.75 and 0.65 of
// its rate with 1, 8 and 64 committers of 1 KiB.
func BenchmarkCommit(b *testing.B) {
	for _, committers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("committers=%d", committers), func(b *testing.B) {
			o, syncTime := slowly(b)
			s := opened(b, b.TempDir(), o)
			h := acquire(b, s)
			log := newRawLog(b, syncTime)
			value := randomBytes(1 << 10)
			// Turns of each, since the disk's mood changes by the second.
			const turn = 500
			var ours, raw stopwatch
			b.ResetTimer()
			for at := 0; at < b.N; at += turn {
				n := max(min(turn, b.N-at)/committers, 1)
				raw.time(func() {
					together(committers, n, func(_, _ int, _ *store.Batch, answer chan error) error {
						log.append(value, func(err error) { answer <- err })
						return <-answer
					})
				})
				ours.time(func() {
					together(committers, n, func(c, i int, batch *store.Batch, answer chan error) error {
						batch.PutOnce(fmt.Appendf(nil, "%03d/%010d", c, at+i), value)
						h.Commit(batch, func(err error) { answer <- err })
						return <-answer
					})
				})
			}
			b.ReportMetric(0, "ns/op")
			per := func(w stopwatch) float64 { return float64(b.N) / w.total.Seconds() }
			b.ReportMetric(per(ours), "commits/s")
			b.ReportMetric(per(raw), "raw/s")
			b.ReportMetric(per(ours)/per(raw), "ratio")
		})
	}
}

// together has committers call f n times each.
func together(committers, n int, f func(c, i int, b *store.Batch, answer chan error) error) {
	var wg sync.WaitGroup
	for c := range committers {
		wg.Go(func() {
			answer := make(chan error, 1)
			var batch store.Batch
			for i := range n {
				batch.Reset()
				if err := f(c, i, &batch, answer); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
}

// A rawLog is what every store is measured against: a file that records are
// appended to and that one goroutine syncs for all who wait.
type rawLog struct {
	f        *os.File
	syncTime time.Duration

	mu      sync.Mutex
	ready   sync.Cond
	buf     []byte
	waiting []func(error)
	closed  bool
}

func newRawLog(b *testing.B, syncTime time.Duration) *rawLog {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	l := &rawLog{f: f, syncTime: syncTime}
	l.ready.L = &l.mu
	var wg sync.WaitGroup
	wg.Go(l.run)
	b.Cleanup(func() {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.ready.Signal()
		wg.Wait()
		f.Close()
	})
	return l
}

func (l *rawLog) append(record []byte, done func(error)) {
	l.mu.Lock()
	l.buf = append(l.buf, record...)
	l.waiting = append(l.waiting, done)
	l.mu.Unlock()
	l.ready.Signal()
}

func (l *rawLog) run() {
	var buf []byte
	var waiting []func(error)
	for {
		l.mu.Lock()
		for len(l.waiting) == 0 && !l.closed {
			l.ready.Wait()
		}
		if len(l.waiting) == 0 {
			l.mu.Unlock()
			return
		}
		buf, l.buf = l.buf, buf[:0]
		waiting, l.waiting = l.waiting, waiting[:0]
		l.mu.Unlock()
		_, err := l.f.Write(buf)
		if err == nil {
			if l.syncTime > 0 {
				time.Sleep(l.syncTime)
			}
			err = syscall.Fdatasync(int(l.f.Fd()))
		}
		for _, done := range waiting {
			done(err)
		}
	}
}

// A queue's life: each commit puts a message and deletes the one a hundred
// before it.
func BenchmarkChurn(b *testing.B) {
	s := opened(b, b.TempDir(), Options{})
	h := acquire(b, s)
	value := randomBytes(1 << 10)
	const flying = 64
	room := make(chan *store.Batch, flying)
	for range flying {
		room <- &store.Batch{}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		batch := <-room
		batch.Reset()
		batch.PutOnce(key(i), value)
		if i >= 100 {
			batch.DeleteOnce(key(i - 100))
		}
		h.Commit(batch, func(err error) {
			if err != nil {
				panic(err)
			}
			room <- batch
		})
	}
	for range flying {
		<-room
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// The head of a queue after very many of its messages were deleted one by one:
// with a lower bound behind them, without one, and without one but after a range
// deletion.
func BenchmarkHead(b *testing.B) {
	const deleted = 100_000
	s := opened(b, b.TempDir(), Options{QuietTime: -1})
	h := acquire(b, s)
	fill(b, h, 0, deleted+100, 100)
	for i := 0; i < deleted; {
		var batch store.Batch
		for ; i < deleted && batch.Len() < 500; i++ {
			batch.DeleteOnce(key(i))
		}
		if err := committed(h, &batch); err != nil {
			b.Fatal(err)
		}
	}
	head := func(lo []byte) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				n := 0
				if err := h.Scan(lo, nil, func(_, _ []byte) bool { n++; return n < 100 }); err != nil || n != 100 {
					b.Fatal(n, err)
				}
			}
		}
	}
	b.Run("bounded", head(key(deleted)))
	b.Run("unbounded", head(nil))
	var batch store.Batch
	batch.DeleteRange(nil, key(deleted))
	if err := committed(h, &batch); err != nil {
		b.Fatal(err)
	}
	b.Run("range deleted", head(nil))
}
