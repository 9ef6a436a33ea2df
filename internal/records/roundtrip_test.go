package records

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

func TestMessageComesBackAsItWas(t *testing.T) {
	t.Parallel()
	with := func(change func(m *message.Message)) *message.Message {
		m := fullMessage()
		change(m)
		return m
	}
	content := bytes.Repeat([]byte("0123456789"), 5000)
	for name, m := range map[string]*message.Message{
		"every field":                  fullMessage(),
		"no field":                     {},
		"empty is not none":            {Body: []byte{}, Properties: []byte{}, Extra: []byte{}, Added: map[string]any{}},
		"an added byte":                {Added: map[string]any{"_AMQ_ORIG_ROUTING_TYPE": int8(1), "low": int8(-128), "z": "last"}},
		"body of a chunk":              with(func(m *message.Message) { m.Body, m.Properties = content[:MinChunkBytes], nil }),
		"body above a chunk":           with(func(m *message.Message) { m.Body, m.Properties = content[:MinChunkBytes+1], nil }),
		"body of many chunks":          with(func(m *message.Message) { m.Body = content }),
		"properties above a chunk":     with(func(m *message.Message) { m.Properties = content }),
		"both above a chunk":           with(func(m *message.Message) { m.Properties, m.Body = content, content }),
		"properties alone":             with(func(m *message.Message) { m.Properties, m.Body = content, nil }),
		"properties and an empty body": with(func(m *message.Message) { m.Properties, m.Body = content, []byte{} }),
		"more pieces than body":        with(func(m *message.Message) { m.Properties, m.Body = content[:MinChunkBytes], []byte{9} }),
	} {
		for _, transient := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				shard := openShard(t)
				r := open(t, shard)
				seq := r.Next(1)
				e := entryFor(m, seq, seq)
				e.Transient = transient
				commit(t, r, func(b *Batch) {
					if transient {
						b.PutTransientMessage(seq, m)
					} else {
						b.PutMessage(seq, m, 1)
					}
					b.Append(1, DefaultLane, e)
				})
				auditShard(t, shard, false)
				got, err := r.Message(e)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(m, got, cmpBytes); d != "" {
					t.Errorf("message (-put +read):\n%s", d)
				}
				head, err := r.Header(e)
				if err != nil {
					t.Fatal(err)
				}
				if len(m.Body)+len(m.Properties) > MinChunkBytes && head.Body != nil {
					t.Error("Header read a large body")
				}
				head.Body = m.Body
				if d := cmp.Diff(m, head, cmpBytes); d != "" {
					t.Errorf("header (-put +read):\n%s", d)
				}
				commit(t, r, func(b *Batch) { b.Remove(1, DefaultLane, e, nil, false) })
				if a := auditShard(t, shard, false); len(a.bodies)+len(a.pieces) > 0 {
					t.Error("the body stayed")
				}
				if _, err := r.Message(e); !errors.Is(err, message.ErrNotFound) {
					t.Errorf("removed message: %v, want ErrNotFound", err)
				}
			})
		}
	}
}

func TestOverlayChangesTheMessageRead(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	m, o := fullMessage(), fullOverlay()
	commit(t, r, func(b *Batch) {
		b.PutMessage(1, m, 1)
		e := entryFor(m, 2, 1)
		e.Overlay = o
		b.Append(4, DefaultLane, e)
	})
	page, err := r.Page(4, DefaultLane, 0, 10)
	if err != nil || len(page) != 1 {
		t.Fatalf("page of %d: %v", len(page), err)
	}
	got, err := r.Message(&page[0].Entry)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m.With(o), got, cmpBytes); d != "" {
		t.Errorf("message (-want +got):\n%s", d)
	}
}

// TestOverlayTellsWhenItCame: the time came later than the other fields, and is written
// only where there is one.
func TestOverlayTellsWhenItCame(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	m, o := fullMessage(), fullOverlay()
	o.BrokerInTime = 1780000009999
	commit(t, r, func(b *Batch) {
		b.PutMessage(1, m, 1)
		e := entryFor(m, 2, 1)
		e.Overlay = o
		b.Append(4, DefaultLane, e)
	})
	page, err := r.Page(4, DefaultLane, 0, 10)
	if err != nil || len(page) != 1 {
		t.Fatalf("page of %d: %v", len(page), err)
	}
	if d := cmp.Diff(o, page[0].Entry.Overlay); d != "" {
		t.Errorf("overlay (-want +got):\n%s", d)
	}
	if got, err := r.Message(&page[0].Entry); err != nil || got.BrokerInTime != o.BrokerInTime {
		t.Errorf("it came at %d, %v", got.BrokerInTime, err)
	}
	bare := entryFor(m, 2, 1)
	bare.Overlay = fullOverlay()
	v, err := appendEntry(nil, bare)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]byte{{0}, {}, {2, 0}} { // never written so: no time, none at all, and something behind it
		bad := append(append([]byte{v[0] | entryArrived}, v[1:]...), more...)
		e := message.Entry{Position: 2}
		if decodeEntry(&reader{b: bad}, &e) {
			t.Errorf("read with % x behind it", more)
		}
	}
	if e := (message.Entry{Position: 2}); decodeEntry(&reader{b: []byte{entryArrived}}, &e) {
		t.Error("read without an overlay")
	}
}

func TestEntriesAndCountsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	m, counts := fullMessage(), fullCounts()
	full := message.Entry{
		Position: 10, Body: 3, ID: m.ID, SizeBytes: 2000, Priority: 9, Persistent: true, Expiration: 1790000000123,
		Shared: true, Out: message.Pulled, Overlay: fullOverlay(),
	}
	plain := message.Entry{Position: 11, Body: 4, SizeBytes: 1024}
	passing := message.Entry{Position: 12, Body: 5, SizeBytes: 1024, Transient: true, Out: message.HandedOut, Overlay: &message.Overlay{}}
	last := message.Entry{Position: 1 << 63, Body: 1, SizeBytes: 1024, Group: "g", Mark: 1}
	commit(t, r, func(b *Batch) {
		for _, e := range []*message.Entry{&full, &plain, &passing, &last} {
			b.Append(7, 255, e)
		}
		b.PutCounts(7, 255, 10, &counts)
		b.PutCounts(7, 255, 1<<63, &message.Counts{})
		b.PutTransientCounts(7, 255, 12, &counts)
		b.PutCounts(7, 255, 9, &counts) // below the page
		b.PutCounts(7, 254, 11, &counts)
	})
	want := []Stored{
		{Entry: full, Counts: counts, HasCounts: true}, {Entry: plain}, {Entry: passing, Counts: counts, HasCounts: true},
		{Entry: last, HasCounts: true},
	}
	got, err := r.Page(7, 255, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("page (-want +got):\n%s", d)
	}
	for after, n := range map[uint64]int{0: 4, 9: 4, 10: 3, 11: 2, 12: 1, 1 << 63: 0, 1<<64 - 1: 0} {
		got, err := r.Page(7, 255, after, 10)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want[len(want)-n:], got, cmpEmpty); d != "" {
			t.Errorf("page after %d (-want +got):\n%s", after, d)
		}
	}
	for n := range 4 {
		got, err := r.Page(7, 255, 0, n)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want[:n], got, cmpEmpty); d != "" {
			t.Errorf("page of %d (-want +got):\n%s", n, d)
		}
	}
	if got := r.LaneCount(7, 255); got != (Count{Messages: 4, Bytes: 2000 + 3*1024}) {
		t.Errorf("count %v", got)
	}
	commit(t, r, func(b *Batch) { b.DropCounts(7, 255, 10); b.DropTransientCounts(7, 255, 12) })
	got, err = r.Page(7, 255, 0, 3)
	if err != nil || len(got) != 3 || got[0].HasCounts || got[2].HasCounts {
		t.Errorf("counts stayed: %v, %v", got, err)
	}
}

// cmpEmpty makes an empty slice equal to none.
var cmpEmpty = cmp.Transformer("empty", func(s []Stored) []Stored {
	if len(s) == 0 {
		return nil
	}
	return s
})

func TestQueuesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	r := open(t, shard)
	plain := QueueInfo{ID: 1, Destination: message.Destination{Kind: message.Queue, Name: "ORDERS"}}
	commit(t, r, func(b *Batch) {
		b.PutQueue(fullQueue(1 << 31))
		b.PutQueue(fullQueue(1)) // changed below
		b.PutQueue(fullQueue(5)) // dropped below
		b.PutQueue(plain)
		for _, q := range []QueueID{1 << 31, 5} {
			b.PutSelectors(q, []string{"early"})
			b.PutSelectors(q, fullQueue(q).Selectors)
		}
	})
	commit(t, r, func(b *Batch) { b.DropQueue(5) })
	commit(t, r, func(b *Batch) { b.PutSelectors(5, []string{"late"}) }) // nobody finds it
	again := plain
	again.ID = 5
	commit(t, r, func(b *Batch) { b.PutQueue(again) })
	if d := cmp.Diff([]QueueInfo{plain, again, fullQueue(1 << 31)}, open(t, shard).Queues()); d != "" {
		t.Errorf("queues (-want +got):\n%s", d)
	}
}

// An older program removes a queue without its selectors: they are those of no other one.
func TestQueueGetsNoNumberThatSelectorsHave(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	commit(t, open(t, shard), func(b *Batch) {
		b.PutQueue(QueueInfo{ID: 1, Destination: orders})
		b.PutSelectors(9, []string{"left"})
	})
	r := open(t, shard)
	if last := r.LastQueue(FirstPassing); last != 9 || len(r.Queues()) != 1 {
		t.Errorf("the last of %d queues is %d, want 9", len(r.Queues()), last)
	}
}

func TestMarksComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	commit(t, r, func(b *Batch) {
		b.PutMark(3, 1, message.HandedOut, []uint64{5, 9, 7, 1 << 63})
		b.PutMark(3, 2, message.Pulled, []uint64{9})
		b.PutMark(3, 4, message.HandedOut, nil)
		b.PutMark(3, 5, message.HandedOut, []uint64{6})
		b.PutMark(2, 5, message.HandedOut, []uint64{8})
		b.DropMark(3, 5)
	})
	marks, ids, err := r.Marks(3)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]message.HandOut{5: message.HandedOut, 7: message.HandedOut, 9: message.Pulled, 1 << 63: message.HandedOut}
	if d := cmp.Diff(want, marks); d != "" {
		t.Errorf("marks (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]MarkID{1, 2, 4}, ids); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
}

func TestProducersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	r := open(t, openShard(t))
	long := strings.Repeat("x", maxProducerKey)
	commit(t, r, func(b *Batch) {
		b.PutProducer(3, "ID:p:1", -1, 5)
		b.PutProducer(3, "", 1, 0)
		b.PutProducer(3, long, 2, 0)
		b.PutProducer(3, long+"y", 3, 0)
		b.PutProducer(3, long+"z", 4, 0)
		b.PutProducer(3, "gone", 4, 0)
		b.PutProducer(3, long+"gone", 4, 0)
		b.PutProducer(4, "other", 4, 0)
		b.DropProducer(3, "gone")
		b.DropProducer(3, long+"gone")
	})
	got, err := r.Producers(3)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"ID:p:1": -1, "": 1, long: 2, long + "y": 3, long + "z": 4}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("producers (-want +got):\n%s", d)
	}
}

func TestStoryComesBackAsItWas(t *testing.T) {
	t.Parallel()
	r, err := Open(context.Background(), openShard(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, r, func(b *Batch) {
		for n := 1; n <= 300; n++ {
			a := fullAttempt(n)
			b.PutAttempt(8, &a)
			b.PutTransientAttempt(9, &message.Attempt{Number: n})
		}
		for n := 11; n <= 210; n++ {
			b.DropAttempt(8, n)
			b.DropTransientAttempt(9, n)
		}
	})
	for story, full := range map[uint64]bool{8: true, 9: false} {
		var want []message.Attempt
		for n := 1; n <= 300; n++ {
			if n <= 10 || n > 210 {
				a := message.Attempt{Number: n}
				if full {
					a = fullAttempt(n)
				}
				want = append(want, a)
			}
		}
		got, err := r.Story(story)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("story %d (-want +got):\n%s", story, d)
		}
	}
	if none, err := r.Story(7); err != nil || len(none) > 0 {
		t.Errorf("story of nothing: %v, %v", none, err)
	}
}
