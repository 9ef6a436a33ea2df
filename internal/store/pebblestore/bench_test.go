package pebblestore

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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

// slowly are options with that duration, which is also returned, and with a
// count of the syncs of the log.
func slowly(b *testing.B) (o Options, syncTime time.Duration, syncs *atomic.Int64) {
	b.Helper()
	if text := os.Getenv(benchSync); text != "" {
		var err error
		if syncTime, err = time.ParseDuration(text); err != nil {
			b.Fatal(err)
		}
	}
	syncs = &atomic.Int64{}
	o.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData { // only the log is synced this way
			syncs.Add(1)
			if syncTime > 0 {
				time.Sleep(syncTime)
			}
		}
		return nil
	}))
	return o, syncTime, syncs
}

// The goals are ratios to a bare log in the same run: 0.75, 0.75 and 0.65 of
// its rate with 1, 8 and 64 committers of 1 KiB.
func BenchmarkCommit(b *testing.B) {
	for _, committers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("committers=%d", committers), func(b *testing.B) {
			o, syncTime, syncs := slowly(b)
			s := opened(b, b.TempDir(), o)
			h := acquire(b, s)
			log := newRawLog(b, syncTime)
			value := randomBytes(1 << 10)
			// Turns of each, since the disk's mood changes by the second.
			turn := 200 * committers
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
			b.ReportMetric(float64(b.N)/float64(syncs.Load()), "commits/sync")
			b.ReportMetric(float64(b.N)/float64(log.syncs), "raw/sync")
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
	syncs    int // run's; read when nothing waits

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
		l.syncs++
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

// The same beside a deep queue that nobody reads, such as one of dead letters: what
// comes and goes must not have the deep one written anew time and again. Keys are laid
// out as those of records: something that is always written, entries by queue, bodies.
func BenchmarkChurnBesideDeepQueue(b *testing.B) {
	const deep = 150_000
	s := opened(b, b.TempDir(), Options{QuietTime: -1})
	h := acquire(b, s)
	value := randomBytes(1 << 10)
	add := func(batch *store.Batch, queue, i int) {
		batch.Put([]byte("count"), fmt.Appendf(nil, "%010d", i))
		batch.PutOnce(fmt.Appendf(nil, "entry/%03d/%010d", queue, i), value[:64])
		batch.PutOnce(fmt.Appendf(nil, "message/%010d", i), value)
	}
	const flying = 16
	room := make(chan *store.Batch, flying)
	for range flying {
		room <- &store.Batch{}
	}
	commit := func(batch *store.Batch) {
		h.Commit(batch, func(err error) {
			if err != nil {
				panic(err)
			}
			room <- batch
		})
	}
	for i := 0; i < deep; {
		batch := <-room
		batch.Reset()
		for ; i < deep && batch.Len() < 300; i++ {
			add(batch, 1, i)
		}
		commit(batch)
	}
	const each, behind = 100, 5_000 // messages of a batch, and how many lie there at a time
	before := s.db.Metrics().Total()
	bytes := 0
	b.ResetTimer()
	for i := deep; i < deep+b.N*each; {
		batch := <-room
		batch.Reset()
		for range each {
			add(batch, 2, i)
			if gone := i - behind; gone >= deep {
				batch.DeleteOnce(fmt.Appendf(nil, "entry/%03d/%010d", 2, gone))
				batch.DeleteOnce(fmt.Appendf(nil, "message/%010d", gone))
			}
			i++
		}
		bytes += batch.SizeBytes()
		commit(batch)
	}
	for range flying {
		<-room
	}
	after := s.db.Metrics().Total()
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(after.TableBytesCompacted-before.TableBytesCompacted)/float64(bytes), "rewritten/B")
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

// A start must not read what is stored: after a clean stop, and after a crash
// that leaves the log to be read.
func BenchmarkOpen(b *testing.B) {
	const records = 200_000
	dir := b.TempDir()
	s := opened(b, filepath.Join(dir, "live"), Options{})
	fillAsync(b, acquire(b, s), records, 100)
	if err := os.CopyFS(filepath.Join(dir, "killed"), os.DirFS(filepath.Join(dir, "live"))); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"live", "killed", "empty"} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				b.StopTimer()
				at := filepath.Join(dir, fmt.Sprintf("%s %d", name, i))
				if name != "empty" {
					if err := os.CopyFS(at, os.DirFS(filepath.Join(dir, name))); err != nil {
						b.Fatal(err)
					}
				}
				syscall.Sync() // or the first sync of the start writes the copy too
				b.StartTimer()
				s, err := Open(at, Options{QuietTime: -1})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				s.Close()
				os.RemoveAll(at)
			}
		})
	}
}

// fillAsync puts n values of a size without waiting for each answer.
func fillAsync(b testing.TB, h store.Shard, n, size int) {
	b.Helper()
	value := randomBytes(size)
	free := make(chan *store.Batch, 16)
	for range cap(free) {
		free <- &store.Batch{}
	}
	for at := 0; at < n; {
		batch := <-free
		batch.Reset()
		for ; at < n && batch.Len() < 200; at++ {
			batch.PutOnce(key(at), value)
		}
		h.Commit(batch, func(err error) {
			if err != nil {
				panic(err)
			}
			free <- batch
		})
	}
	for range cap(free) {
		<-free
	}
}
