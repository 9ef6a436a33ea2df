package records

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
	"pgregory.net/rapid"
)

// A held is an entry as the model has it.
type held struct {
	queue   QueueID
	lane    Lane
	entry   message.Entry
	counts  *message.Counts // replaced, never changed
	message *message.Message
	lines   []int // of its story
}

// A picture is what the durable part of the store must show after a batch.
type picture struct {
	held   []held
	queues []QueueID
	marks  map[MarkID]int

	prepared []prepared
}

// A prepared is a prepared transaction as the model has it, with its messages.
type prepared struct {
	p        Prepared
	messages []*message.Message
}

// A world is a broker's worth of random operations, and what must come of them.
// Batches are handed over without waiting, and take effect as late as the store
// may; a crash keeps any number of the batches that are not answered.
type world struct {
	t        *rapid.T
	tape     *tape
	records  *Records
	answered int // batches on the tape that took effect
	now      picture
	passing  []held // transient entries
	staged   map[uint64]*message.Message
	history  []picture // after each batch on the tape
	used     []uint64  // highest sequence given out, after each batch
	highest  uint64
	stop     []func()
}

const worldQueues = 3

// Laws of the package comment, for every order of operations, and a crash at
// every batch boundary.
func TestEveryPrefixOfTheBatchesIsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t}
		defer func() {
			for _, f := range w.stop {
				f()
			}
		}()
		w.start(nil, picture{marks: map[MarkID]int{}})
		t.Repeat(map[string]func(*rapid.T){
			"send":    func(*rapid.T) { w.send() },
			"ack":     func(*rapid.T) { w.ack() },
			"ack2":    func(*rapid.T) { w.ack() },
			"fail":    func(*rapid.T) { w.fail() },
			"move":    func(*rapid.T) { w.move() },
			"stage":   func(*rapid.T) { w.stage() },
			"settle":  func(*rapid.T) { w.settle() },
			"prepare": func(*rapid.T) { w.prepare() },
			"end":     func(*rapid.T) { w.end() },
			"floor":   func(*rapid.T) { w.floor() },
			"mark":    func(*rapid.T) { w.mark() },
			"drop":    func(*rapid.T) { w.drop() },
			"refused": func(*rapid.T) { w.refused() },
			"answer":  func(*rapid.T) { w.answer(rapid.IntRange(0, w.inFlight()).Draw(t, "answers")) },
			"crash":   func(*rapid.T) { w.crash() },
		})
		w.everyPrefix()
	})
}

func (w *world) inFlight() int { return len(w.tape.handed) - w.answered }

// start opens records on a store to which the batches were applied.
func (w *world) start(batches []*store.Batch, p picture) {
	shard, stop := newShard(w.t)
	w.stop = append(w.stop, stop)
	replay(w.t, shard, batches)
	auditShard(w.t, shard, false)
	w.tape = &tape{Shard: shard, t: w.t, handed: slices.Clone(batches)}
	w.records = open(w.t, w.tape)
	auditShard(w.t, shard, true)
	w.tape.hold = true
	w.answered = len(w.tape.handed)
	w.now, w.passing, w.staged = p, nil, map[uint64]*message.Message{}
	w.history, w.used = w.history[:len(batches)], w.used[:len(batches)]
	w.note()
	w.compare()
	for q := range QueueID(worldQueues) {
		if !slices.Contains(w.now.queues, q) {
			w.now.queues = append(slices.Clone(w.now.queues), q)
			w.commit(func(b *Batch) { b.PutQueue(QueueInfo{ID: q}) })
		}
	}
}

// note keeps what the batches handed over since the last note must show: those
// before the last went ahead of it, and change nothing.
func (w *world) note() {
	for n := len(w.history); n > 0 && n < len(w.tape.handed)-1; n++ {
		w.history, w.used = append(w.history, w.history[n-1]), append(w.used, w.used[n-1])
	}
	for len(w.history) < len(w.tape.handed) {
		p := picture{held: slices.Clone(w.now.held), queues: slices.Clone(w.now.queues), marks: maps.Clone(w.now.marks),
			prepared: slices.Clone(w.now.prepared)}
		w.history, w.used = append(w.history, p), append(w.used, w.highest)
	}
}

// commit hands a batch over; the model was changed already.
func (w *world) commit(fill func(b *Batch)) {
	b := new(Batch)
	fill(b)
	if b.Empty() {
		return
	}
	w.records.Commit(b, func(err error) {
		if err != nil {
			w.t.Errorf("commit: %v", err)
		}
		b.Reset()
	})
	w.note()
}

func (w *world) answer(n int) {
	w.tape.answer(n)
	w.answered += n
}

func (w *world) next() uint64 {
	handed := len(w.tape.handed)
	n := w.records.Next(rapid.SampledFrom([]int{1, 1, 1, 3, 40}).Draw(w.t, "sequences"))
	if n <= w.highest {
		w.t.Fatalf("sequence %d was given before, up to %d", n, w.highest)
	}
	w.highest = n
	if len(w.tape.handed) > handed { // it reserved by itself: what was handed over before did not change
		p := w.history[len(w.history)-1]
		w.history, w.used = append(w.history, p), append(w.used, w.highest-1)
	}
	return n
}

// crash loses some of what was not answered, and opens what is left.
func (w *world) crash() {
	w.tape.mu.Lock()
	keep := rapid.IntRange(w.answered, len(w.tape.handed)).Draw(w.t, "batches kept")
	batches := w.tape.handed[:keep]
	w.tape.mu.Unlock()
	w.highest = w.used[keep-1] // of later ones nothing is known
	w.start(batches, w.history[keep-1])
}

// everyPrefix looks at the store after each batch there was.
func (w *world) everyPrefix() {
	shard, stop := newShard(w.t)
	defer stop()
	for _, b := range w.tape.handed {
		replay(w.t, shard, []*store.Batch{b})
		auditShard(w.t, shard, false)
	}
	if a := auditShard(w.t, shard, false); a.stray > 0 {
		w.t.Errorf("pieces of %d bodies are left over", a.stray)
	}
}

// compare checks that a store just opened shows the picture.
func (w *world) compare() {
	lanes := map[QueueID]map[Lane][]held{}
	for _, h := range w.now.held {
		if lanes[h.queue] == nil {
			lanes[h.queue] = map[Lane][]held{}
		}
		lanes[h.queue][h.lane] = append(lanes[h.queue][h.lane], h)
	}
	for q := range QueueID(worldQueues) {
		for lane := range Lane(2) {
			w.compareLane(q, lane, lanes[q][lane])
		}
		marks, ids, err := w.records.Marks(q)
		if err != nil || q != 0 && len(ids) > 0 || q == 0 && (len(ids) != len(w.now.marks) || len(marks) > 0 && len(ids) == 0) {
			w.t.Errorf("marks %v of queue %d, want %v: %v", ids, q, w.now.marks, err)
		}
	}
	w.comparePrepared()
	var found []QueueID
	for _, i := range w.records.Queues() {
		found = append(found, i.ID)
	}
	if d := cmp.Diff(w.now.queues, found, cmpopts.SortSlices(func(a, b QueueID) bool { return a < b }), cmpopts.EquateEmpty()); d != "" {
		w.t.Errorf("queues (-want +got):\n%s", d)
	}
}

func (w *world) comparePrepared() {
	var want []Prepared
	for _, p := range w.now.prepared {
		want = append(want, p.p)
		for i, m := range p.messages {
			got, err := w.records.Message(&message.Entry{Body: p.p.Sends[i].Sequence, SizeBytes: p.p.Sends[i].SizeBytes})
			if d := cmp.Diff(m, got, cmpBytes); d != "" || err != nil {
				w.t.Errorf("message %d of %s: %v (-want +got):\n%s", i, p.p.XID, err, d)
			}
		}
	}
	if d := cmp.Diff(want, w.records.Prepared(), cmpopts.EquateEmpty(), cmp.AllowUnexported(Prepared{})); d != "" {
		w.t.Errorf("prepared (-want +got):\n%s", d)
	}
}

func (w *world) compareLane(q QueueID, lane Lane, want []held) {
	slices.SortFunc(want, func(a, b held) int { return int(a.entry.Position) - int(b.entry.Position) })
	page, err := w.records.Page(q, lane, 0, 1000)
	if err != nil {
		w.t.Fatalf("page: %v", err)
	}
	var stored []Stored
	var size int64
	for _, h := range want {
		s := Stored{Entry: h.entry}
		if h.counts != nil {
			s.Counts, s.HasCounts = *h.counts, true
		}
		stored = append(stored, s)
		size += int64(h.entry.SizeBytes)
	}
	if d := cmp.Diff(stored, page, cmpopts.EquateEmpty()); d != "" {
		w.t.Errorf("queue %d lane %d (-want +got):\n%s", q, lane, d)
	}
	if c := w.records.LaneCount(q, lane); c != (Count{Messages: int64(len(want)), Bytes: size}) {
		w.t.Errorf("queue %d lane %d counts %v, want %d messages of %d bytes", q, lane, c, len(want), size)
	}
	for _, h := range want {
		m, err := w.records.Message(&h.entry)
		if err != nil {
			w.t.Fatalf("message: %v", err)
		}
		if d := cmp.Diff(h.message.With(h.entry.Overlay), m, cmpBytes); d != "" {
			w.t.Errorf("message %d (-want +got):\n%s", h.entry.Position, d)
		}
		w.compareStory(h)
	}
}

func (w *world) compareStory(h held) {
	if h.counts == nil || h.counts.Story == 0 {
		return
	}
	story, err := w.records.Story(h.counts.Story)
	var lines []int
	for _, a := range story {
		lines = append(lines, a.Number)
	}
	if d := cmp.Diff(h.lines, lines, cmpopts.EquateEmpty()); d != "" || err != nil {
		w.t.Errorf("story of %d: %v (-want +got):\n%s", h.entry.Position, err, d)
	}
}

// The answers of a batch that cannot be stored, in its turn.
func (w *world) refused() {
	b := new(Batch)
	m := &message.Message{CorrelationID: string(bytes.Repeat([]byte{'x'}, HeaderBytes))}
	seq := w.next()
	b.PutMessage(seq, m, 2)
	b.Append(0, 0, entryFor(m, seq, seq))
	w.records.Commit(b, func(err error) {
		if err == nil {
			w.t.Errorf("a header above the limit was stored")
		}
	})
	w.note()
}

// Sequences are never given twice, whatever is asked for between two starts; a
// world checks it for what crashes leave.
func TestNextNeverRepeats(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	last := uint64(0)
	for range 50 {
		r, err := Open(context.Background(), shard, Options{stride: 8})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 3, 100, 1, 8, 7} {
			first := r.Next(n)
			if first <= last {
				t.Fatalf("Next(%d) gave %d, and %d was given before", n, first, last)
			}
			last = first + uint64(n) - 1
		}
		commit(t, r, func(*Batch) {}) // so that the reservations are on disk
	}
}

// The reservation goes with what is committed, whatever it is: whoever asks for a number
// must not have to hand a batch over for it, and wait for room in the store. It may be the
// store that asks, and make the room.
func TestNextDoesNotCommitWhileOthersDo(t *testing.T) {
	t.Parallel()
	shard := &countingShard{Shard: openShard(t)}
	r, err := Open(context.Background(), shard, Options{stride: 64})
	if err != nil {
		t.Fatal(err)
	}
	opened := shard.commits.Load()
	const n = 1000
	for range n {
		m := &message.Message{Body: []byte("x")}
		seq := r.Next(1)
		commit(t, r, func(b *Batch) {
			b.PutTransientMessage(seq, m)
			b.Relax()
		})
	}
	if got := shard.commits.Load() - opened; got != n {
		t.Errorf("%d batches were handed over, want the %d that were committed", got, n)
	}
}

// A countingShard counts commits.
type countingShard struct {
	store.Shard
	commits atomic.Int64
}

func (s *countingShard) Commit(b *store.Batch, done func(error)) {
	s.commits.Add(1)
	s.Shard.Commit(b, done)
}
