package records

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// What cannot be stored is answered with its error, and changes nothing.
func TestWhatCannotBeStoredChangesNothing(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", valueBytes)
	for name, c := range map[string]struct {
		fill func(b *Batch)
		want error
	}{
		"header above the limit": {func(b *Batch) {
			b.PutMessage(1, &message.Message{CorrelationID: big[:HeaderBytes]}, 2)
		}, message.ErrOverLimit},
		"value above the limit": {func(b *Batch) { b.PutAttempt(1, &message.Attempt{Number: 1, Text: big}) }, message.ErrOverLimit},
		"batch above the limit": {func(b *Batch) {
			for seq := range uint64(100) {
				b.PutMessage(seq+1, &message.Message{Body: make([]byte, 1<<10)}, 2)
			}
		}, message.ErrOverLimit},
		"batch above the limit, of which pieces went ahead": {func(b *Batch) {
			for seq := range uint64(100) {
				b.PutMessage(seq+1, &message.Message{Body: make([]byte, 1<<10)}, 2)
			}
			b.PutMessage(200, &message.Message{Body: make([]byte, 1<<20)}, 1)
			b.StageMessage("tx", 201, &message.Message{Body: make([]byte, 1<<20)})
			b.PutTransientMessage(202, &message.Message{Body: make([]byte, 1<<20)})
		}, message.ErrOverLimit},
		"added property of a strange type": {func(b *Batch) {
			b.PutMessage(1, &message.Message{Added: map[string]any{"a": 1.5}}, 1)
		}, message.ErrInvalid},
		"overlay of a strange type": {func(b *Batch) {
			b.Append(1, 5, &message.Entry{Position: 2, Overlay: &message.Overlay{Added: map[string]any{"a": true}}})
		}, message.ErrInvalid},
		"attempt without number": {func(b *Batch) { b.PutAttempt(1, &message.Attempt{}) }, message.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shard := openShard(t)
			r, err := Open(context.Background(), shard, Options{BatchBytes: 64 << 10})
			if err != nil {
				t.Fatal(err)
			}
			err = tryCommit(r, func(b *Batch) {
				b.PutQueue(QueueInfo{ID: 1})
				b.Append(1, 5, &message.Entry{Position: 1, Body: 1, Shared: true})
				c.fill(b)
			})
			if !errors.Is(err, c.want) {
				t.Errorf("answer %v, want %v", err, c.want)
			}
			if a := auditShard(t, shard, false); len(a.queues)+len(a.bodies)+len(a.entries)+len(a.pieces)+len(a.staged) > 0 || r.Count(1) != (Count{}) {
				t.Errorf("something was stored: %+v, %v", a, r.Count(1))
			}
			commit(t, r, func(b *Batch) { b.PutQueue(QueueInfo{ID: 1}) }) // nothing is broken
		})
	}
}

// A body of any size is stored, in batches below the limit.
func TestVeryLargeBodyGoesAhead(t *testing.T) {
	t.Parallel()
	shard := &tape{Shard: openShard(t), t: t}
	r := open(t, shard)
	m := fullMessage()
	m.Properties, m.Body = bytes.Repeat([]byte("property"), 1<<10), bytes.Repeat([]byte("content."), 16<<10)
	before := len(shard.handed)
	commit(t, r, func(b *Batch) {
		b.PutMessage(1, m, 1)
		b.Append(1, 5, entryFor(m, 1, 1))
		b.StageMessage("tx", 2, m)
		b.PutTransientMessage(3, m)
		e := entryFor(m, 3, 3)
		e.Transient = true
		b.Append(1, 5, e)
	})
	for _, b := range shard.handed[before:] {
		if b.SizeBytes() > testBatchBytes {
			t.Errorf("a batch of %d bytes, limit %d", b.SizeBytes(), testBatchBytes)
		}
	}
	everyPrefix(t, shard)
	for e, want := range map[message.Entry]*message.Message{{Body: 1}: m, {Body: 2}: m, {Body: 3, Transient: true}: m} {
		got, err := r.Message(&e)
		if d := cmp.Diff(want, got, cmpBytes); d != "" || err != nil {
			t.Errorf("message %d: %v (-want +got):\n%s", e.Body, err, d)
		}
	}
	if a := auditShard(t, shard.Shard, false); len(a.staged) != 1 || !a.staged[2] {
		t.Errorf("staging records %v, want that of the transaction", a.staged)
	}
}

func TestCheckAgreesWithPutMessage(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, HeaderBytes / 2, HeaderBytes - 1000, HeaderBytes, 2 * HeaderBytes} {
		m := &message.Message{Extra: make([]byte, n), Properties: make([]byte, n), Body: make([]byte, n)}
		var b Batch
		b.PutMessage(1, m, 1)
		if err := Check(m); (err == nil) != (b.err == nil) || (err == nil) != (n < HeaderBytes) {
			t.Errorf("%d bytes: Check says %v, PutMessage %v", n, err, b.err)
		}
	}
}

// The bounds that value and batch sizes are reckoned with hold.
func TestBatchSizeIsNotUnderstated(t *testing.T) {
	t.Parallel()
	shard := &tape{Shard: openShard(t), t: t}
	r := open(t, shard)
	m := fullMessage()
	m.Body = make([]byte, 100<<10)
	for name, fill := range map[string]func(b *Batch){
		"send": func(b *Batch) {
			for q := range QueueID(20) {
				seq := r.Next(1)
				b.PutMessage(seq, m, 2)
				b.Append(q, 5, entryFor(m, seq, seq))
			}
		},
		"release": func(b *Batch) {
			seq := r.Next(3)
			b.PutMessage(seq, m, 2)
			for pos := seq + 1; pos < seq+3; pos++ {
				e := entryFor(m, pos, seq)
				e.Shared = true
				b.Append(1, 5, e)
				b.Remove(1, 5, e, nil, false)
			}
		},
		"drop": func(b *Batch) { b.DropQueue(7) },
	} {
		t.Run(name, func(t *testing.T) {
			var b Batch
			fill(&b)
			reckoned := b.SizeBytes() + reservedBytes
			r.Commit(&b, nil)
			shard.mu.Lock()
			defer shard.mu.Unlock()
			if got := shard.handed[len(shard.handed)-1].SizeBytes(); got > reckoned {
				t.Errorf("batch is %d bytes, reckoned %d", got, reckoned)
			}
		})
	}
}

// After an error of the store nothing more is handed over, since the counters
// may be wrong.
func TestNothingFollowsAFailedBatch(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Options{})
	shard, err := s.Acquire(context.Background(), 1, "first")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r := open(t, shard)
	if _, err := s.Acquire(context.Background(), 1, "second"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := tryCommit(r, func(b *Batch) { b.PutQueue(QueueInfo{ID: 1}) }); !errors.Is(err, store.ErrFenced) {
			t.Errorf("answer %v, want ErrFenced", err)
		}
	}
}

// fullShard takes no batch while held is open.
type fullShard struct {
	store.Shard
	entered chan struct{} // holds one: Commit was called
	held    chan struct{}
}

func (s *fullShard) Commit(b *store.Batch, done func(error)) {
	select {
	case s.entered <- struct{}{}:
	default: // it was told before
	}
	<-s.held
	s.Shard.Commit(b, done)
}

// While a batch waits for room in the store, who reads does not wait with it:
// answers, which make the room, may come from someone who reads.
func TestReadersDoNotWaitForRoom(t *testing.T) {
	t.Parallel()
	shard := &fullShard{Shard: openShard(t), entered: make(chan struct{}, 1), held: make(chan struct{})}
	close(shard.held)
	r := open(t, shard)
	shard.held = make(chan struct{})
	<-shard.entered
	answer := make(chan error, 1) // the one answer
	b := new(Batch)
	b.Append(1, 5, &message.Entry{Position: 1, SizeBytes: 1024})
	go r.Commit(b, func(err error) { answer <- err })
	<-shard.entered
	if c := r.Count(1); c.Messages != 1 || r.LaneCount(1, 5) != c || r.Floor(1, 5) != 0 {
		t.Errorf("count %v, want the entry that waits", c)
	}
	if page, err := r.Page(1, 5, 0, 1); err != nil || len(page) > 0 {
		t.Errorf("page %v, %v, want none yet", page, err)
	}
	close(shard.held)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// Answers come in the order of the Commit calls, refused batches among them.
func TestAnswersComeInOrder(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	const n = 100
	answers := make(chan int, n) // one each
	for i := range n {
		b := new(Batch)
		if i%3 == 0 {
			b.PutAttempt(1, &message.Attempt{Number: -1})
		}
		b.PutQueue(QueueInfo{ID: 1})
		r.Commit(b, func(err error) {
			if (err != nil) != (i%3 == 0) {
				t.Errorf("batch %d: %v", i, err)
			}
			answers <- i
		})
	}
	for want := range n {
		if got := <-answers; got != want {
			t.Fatalf("answer to batch %d, want %d", got, want)
		}
	}
}

// What a batch is reckoned to take has the counters of each queue once, also where it goes from
// one to the other and back, as the copies of several messages for several subscribers do.
func TestCountersAreReckonedOnceAQueue(t *testing.T) {
	t.Parallel()
	size := func(queues QueueID) int {
		b := new(Batch)
		for range 2 { // the second time it is one that was used
			b.Reset()
			for pos := range uint64(1000) {
				q := 1 + QueueID(pos)%queues
				b.Append(q, 5, &message.Entry{Position: pos + 1, Body: pos + 1})
			}
		}
		return b.SizeBytes()
	}
	one := size(1)
	for _, n := range []QueueID{2, 10} {
		if got, want := size(n), one+(int(n)-1)*counterBytes; got != want {
			t.Errorf("%d bytes for %d queues, want %d", got, n, want)
		}
	}
}
