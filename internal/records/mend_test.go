package records

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// orders is the queue of the mending tests.
var orders = message.Destination{Kind: message.Queue, Name: "ORDERS"}

// A ward is a store with a record of each kind, of which a test damages one.
type ward struct {
	t     *testing.T
	shard store.Shard
	r     *Records
	told  []string
}

// newWard has three messages in queue 7, the second of which failed and waits for its
// time, a scheduled message, and a prepared transaction that sends one message and
// received the third of the queue. Queue 8 has a copy of the first message.
func newWard(t *testing.T) *ward {
	shard := openShard(t)
	w := &ward{t: t, shard: shard, r: open(t, shard)}
	w.r.Next(100)
	commit(t, w.r, func(b *Batch) {
		b.PutQueue(QueueInfo{ID: 7, Destination: orders})
		b.PutQueue(QueueInfo{ID: 8, Destination: message.Destination{Kind: message.Topic, Name: "PRICES"}, ClientID: "c", Subscription: "s"})
		for seq := range uint64(3) {
			m := &message.Message{ID: message.ID{Producer: "ID:p:1:1", Sequence: int64(seq + 1)}, Destination: orders, Persistent: true, Priority: 4,
				Body: make([]byte, 10*(seq+1)), Expiration: 1790000000000, GroupID: "g", GroupSequence: -1}
			e := message.NewEntry(seq+1, m)
			if seq == 0 {
				e.Shared = true
				b.PutMessage(1, m, 2)
				b.Append(8, 5, &e)
			} else {
				b.PutMessage(seq+1, m, 1)
			}
			b.Append(7, 5, &e)
		}
		b.PutCounts(7, 5, 2, &message.Counts{Failures: 2, Story: 50, Attempts: 1, Due: 1780000001200})
		b.PutDue(7, 5, 2, 1780000001200)
		attempt := fullAttempt(1)
		b.PutAttempt(50, &attempt)
		b.PutMark(7, 1, message.HandedOut, []uint64{1})
		b.PutProducer(7, "ID:p:1:1", 3, 1)
		b.PutSelectors(7, fullQueue(7).Selectors)
		b.PutFloor(7, 5, 1)
		j := Job{Sequence: 30, ID: "ID:p:1:2:1", Destination: orders, Due: 1780000009000, Created: 1, Repeat: 3, SizeBytes: int32(job30.SizeBytes())}
		b.PutMessage(30, job30, 1)
		b.PutJob(&j)
		b.StageMessage(xid.String(), 41, large41)
		b.PutPrepared(&Prepared{Sequence: 42, XID: xid, At: 5, Sends: []PreparedSend{{Sequence: 41, SizeBytes: int32(large41.SizeBytes())}},
			Acks: []PreparedAck{{Queue: 7, Lane: 5, Position: 3}}})
		b.StageMessage("TX:1", 43, job30) // left by a crash
	})
	return w
}

var (
	xid     = message.XID{Format: 1, Global: "g", Branch: "b"}
	job30   = &message.Message{ID: message.ID{Producer: "ID:p:1:2", Sequence: 1}, Destination: orders, Persistent: true, Timestamp: 1, Body: []byte("later")}
	large41 = &message.Message{ID: message.ID{Producer: "ID:p:1:3", Sequence: 1}, Destination: orders, Persistent: true, Body: make([]byte, 3*MinChunkBytes)}
)

// reopen opens the store again.
func (w *ward) reopen() {
	w.t.Helper()
	r, err := Open(context.Background(), w.shard, Options{ChunkBytes: MinChunkBytes, BatchBytes: testBatchBytes, stride: 16, keep: 4})
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.r, w.told = r, nil
	r.OnMended(func(m Mended) { w.told = append(w.told, m.Text) })
}

// readAll reads what a broker reads, and mends.
func (w *ward) readAll() (page []Stored) {
	w.t.Helper()
	err := w.r.Reading(orders, settled, func() (err error) {
		if page, err = w.r.Page(7, 5, 0, 10); err == nil {
			_, err = w.r.Producers(7)
		}
		if err == nil {
			_, _, err = w.r.Marks(7)
		}
		if err == nil {
			_, err = w.r.Job(30)
		}
		if errors.Is(err, message.ErrNotFound) {
			err = nil // it was taken out
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return page
}

func entryKey(pos uint64) []byte { return appendEntryKey(nil, false, kindEntry, 7, 5, pos) }

// A damaged record is mended: its bytes are set aside, what can be known of it takes its
// place, all is consistent again, and one line tells of it. What is missing altogether is
// made up for in the same way where something tells that it was there.
func TestDamagedRecordIsMended(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key     []byte
		also    func(b *store.Batch)      // what else is done to the store
		missing bool                      // it is noticed if it is not there at all
		tells   []byte                    // the record that tells so; nil: the key is named
		check   func(w *ward, p []Stored) // what is there afterwards; nil: what was
		left    bool                      // something is left of which the audit would say that it belongs to nobody
	}{
		"queue": {key: appendQueueKey(nil, false, kindQueue, 7), missing: true, check: func(w *ward, p []Stored) {
			w.same(p)
			if d := cmp.Diff(QueueInfo{ID: 7, Destination: orders, Selectors: fullQueue(7).Selectors}, w.r.Queues()[0]); d != "" {
				w.t.Errorf("the queue (-want +got):\n%s", d)
			}
		}},
		"subscription": {key: appendQueueKey(nil, false, kindQueue, 8), missing: true, check: func(w *ward, p []Stored) {
			w.same(p)
			if q := w.r.Queues()[1]; q.Destination.Name != StandIn+"8" || q.Subscription != "" || w.r.LaneCount(8, 5).Messages != 1 {
				w.t.Errorf("it is %+v with %v", q, w.r.LaneCount(8, 5))
			}
		}},
		"counter":     {key: appendQueueKey(nil, false, kindCounter, 7), missing: true},
		"job counter": {key: appendQueueKey(nil, false, kindCounter, jobsQueue), missing: true},
		"floor":       {key: appendLaneKey(nil, kindFloor, 7, 5)},
		"entry": {key: entryKey(2), check: func(w *ward, p []Stored) {
			p[1].Entry.Shared, p[1].Entry.Out = false, message.NotHandedOut
			w.same(p)
		}},
		"entry of a shared message": {key: entryKey(1), check: func(w *ward, p []Stored) {
			p[0].Entry.Out = message.NotHandedOut
			w.same(p)
		}},
		"entry without message": {key: entryKey(2), left: true, also: func(b *store.Batch) { b.Delete(appendSeqKey(nil, false, kindBody, 2)) },
			check: func(w *ward, p []Stored) {
				if e := p[1].Entry; e.Position != 2 || e.SizeBytes != 0 || e.ID.String() != "ID:damaged-7-5-2" || e.Expiration == 0 {
					w.t.Errorf("what stands for it is %+v", e)
				}
			}},
		"counts": {key: appendEntryKey(nil, false, kindCounts, 7, 5, 2), left: true, check: func(w *ward, p []Stored) {
			if d := cmp.Diff(message.Counts{Suspect: message.HandedOut, Due: 1780000001200}, p[1].Counts); d != "" {
				w.t.Errorf("counts (-want +got):\n%s", d)
			}
		}},
		"selectors": {key: appendQueueKey(nil, false, kindSelectors, 7), check: func(w *ward, p []Stored) {
			w.same(p)
			if all := w.r.Queues()[0].Selectors; all != nil {
				w.t.Errorf("selectors %q", all)
			}
		}},
		"mark":     {key: appendMarkKey(nil, 7, 1)},
		"producer": {key: appendProducerKey(nil, 7, "ID:p:1:1")},
		"job": {key: appendSeqKey(nil, false, kindJob, 30), check: func(w *ward, p []Stored) {
			w.same(p)
			j, err := w.r.JobByID("ID:p:1:2:1")
			want := Job{Sequence: 30, ID: "ID:p:1:2:1", Destination: orders, Due: 1780000009000, Created: 1, SizeBytes: int32(job30.SizeBytes())}
			if d := cmp.Diff(want, j); d != "" || err != nil {
				w.t.Errorf("job: %v (-want +got):\n%s", err, d)
			}
		}},
		"job without message": {key: appendSeqKey(nil, false, kindJob, 30), also: func(b *store.Batch) { b.Delete(appendSeqKey(nil, false, kindBody, 30)) },
			check: func(w *ward, p []Stored) {
				w.same(p)
				if n := w.r.Jobs().Messages; n != 0 {
					w.t.Errorf("%d jobs", n)
				}
			}},
		"staged, prepared": {key: appendSeqKey(nil, false, kindStaged, 41)},
		"staged, left":     {key: appendSeqKey(nil, false, kindStaged, 43), left: true},
		"prepared transaction": {key: appendSeqKey(nil, false, kindPrepared, 42), missing: true, check: func(w *ward, p []Stored) {
			w.same(p)
			if got := w.r.Prepared(); len(got) != 1 || got[0].XID != xid || len(got[0].Acks) != 1 || len(got[0].Sends) != 1 {
				w.t.Errorf("prepared: %+v", got)
			}
		}},
		"prepared part": {key: appendPartKey(nil, false, kindPart, 42, 0), missing: true, tells: appendSeqKey(nil, false, kindPrepared, 42), left: true, check: func(w *ward, p []Stored) {
			w.same(p)
			if got := w.r.Prepared(); len(got) != 1 || got[0].XID != xid || len(got[0].Sends) != 1 || got[0].Sends[0].Sequence != 41 {
				w.t.Errorf("prepared: %+v", got)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := damaged(c.key, newWard(t).value(c.key))
			if c.missing {
				bad["missing"] = nil
			}
			for damage, v := range bad {
				w := newWard(t)
				raw := bytes.Clone(v)
				put(t, w.shard, func(b *store.Batch) {
					b.Delete(c.key)
					if damage != "missing" {
						b.Put(c.key, v)
					}
					if c.also != nil {
						c.also(b)
					}
				})
				w.reopen()
				page := w.readAll()
				if len(page) != 3 {
					t.Fatalf("%s: %d entries", damage, len(page))
				}
				check := c.check
				if check == nil || damage == "a bit" { // which is put right
					check = (*ward).same
				}
				check(w, page)
				named := c.key
				if damage == "missing" && c.tells != nil {
					named = c.tells
				}
				if len(w.told) < 1 || len(w.told) > 1 && c.key[0] != byte(kindQueue) || !strings.Contains(w.told[0], hex.EncodeToString(named)) {
					t.Errorf("%s: told %q, want one line that names %x", damage, w.told, named)
				}
				if damage != "missing" && damage != "a bit" {
					fields, err := unseal(aside(c.key), w.value(aside(c.key)))
					if kept, _, ok := decodeAside(&reader{b: fields}); err != nil || !ok || !bytes.Equal(kept, raw) || w.r.SetAside() != 1 {
						t.Errorf("%s: kept aside is %x, %v", damage, kept, err)
					}
				}
				w.reopen()
				w.readAll()
				if len(w.told) != 0 {
					t.Errorf("%s: the next start tells %q", damage, w.told)
				}
				if put := damage == "a bit"; put && c.also == nil || !put && !c.left {
					auditShard(t, w.shard, false)
				} else {
					w.counted()
				}
			}
		})
	}
}

func aside(k []byte) []byte { return append([]byte{byte(kindAside)}, k...) }

func (w *ward) value(k []byte) []byte {
	w.t.Helper()
	v, err := w.shard.Get(k)
	if err != nil {
		w.t.Fatalf("%s: %v", describe(k), err)
	}
	return v
}

// same checks that the queue has what it was given.
func (w *ward) same(p []Stored) {
	w.t.Helper()
	fresh := newWard(w.t)
	fresh.reopen()
	if d := cmp.Diff(fresh.readAll(), p); d != "" {
		w.t.Errorf("the queue's entries (-want +got):\n%s", d)
	}
}

// counted checks that the counters say what there is.
func (w *ward) counted() {
	w.t.Helper()
	for _, q := range []QueueID{7, 8} {
		page, err := w.r.Page(q, 5, 0, 10)
		var n Count
		for _, s := range page {
			n.add(1, int64(s.Entry.SizeBytes))
		}
		if got := w.r.LaneCount(q, 5); err != nil || got != n {
			w.t.Errorf("queue %d counts %+v, and has %+v: %v", q, got, n, err)
		}
	}
}

// What a process has left of what was to end with it is no queue that lost its record.
func TestNobodyAdoptsWhatHasPassed(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	commit(t, w.r, func(b *Batch) {
		b.PutMessage(60, job30, 1)
		e := message.NewEntry(60, job30)
		b.Append(FirstPassing+1, 5, &e)
	})
	w.reopen()
	if n := len(w.r.Queues()); n != 2 || len(w.told) != 0 {
		t.Errorf("%d queues, told %q", n, w.told)
	}
}

// What is kept aside may be damaged in its turn.
func TestDamagedAgain(t *testing.T) {
	t.Parallel()
	for damage, v := range damaged(aside(entryKey(2)), aside(entryKey(2))) {
		w := newWard(t)
		put(t, w.shard, func(b *store.Batch) { b.Put(aside(entryKey(2)), v) })
		w.reopen()
		if w.same(w.readAll()); w.r.SetAside() != 1 || len(w.told) != 0 {
			t.Errorf("%s: %d aside, told %q", damage, w.r.SetAside(), w.told)
		}
	}
}

// What says how many refer to a message and is damaged never lets it be deleted too early.
func TestDamagedReferenceKeepsTheMessage(t *testing.T) {
	t.Parallel()
	key := appendSeqKey(nil, false, kindReference, 1)
	for damage, v := range damaged(key, newWard(t).value(key)) {
		w := newWard(t)
		put(t, w.shard, func(b *store.Batch) { b.Put(key, v) })
		w.reopen()
		e := w.readAll()[0].Entry
		commit(t, w.r, func(b *Batch) { b.Remove(7, 5, &e, nil, false) })
		if _, err := w.r.Message(&e); err != nil || len(w.told) != 1 {
			t.Errorf("%s: %v, told %q", damage, err, w.told)
		}
		commit(t, w.r, func(b *Batch) { b.Remove(8, 5, &e, nil, false) })
		if damage == "a bit" { // which is put right
			auditShard(t, w.shard, false)
		} else if !bytes.Contains(w.value(aside(key)), v) {
			t.Errorf("%s: its bytes are not set aside", damage)
		}
	}
}

// A line of a story that is damaged says so, and the others are told.
func TestDamagedLineOfAStory(t *testing.T) {
	t.Parallel()
	key := appendPartKey(nil, false, kindAttempt, 50, 1)
	for damage, v := range damaged(key, newWard(t).value(key)) {
		w := newWard(t)
		second := fullAttempt(2)
		commit(t, w.r, func(b *Batch) { b.PutAttempt(50, &second) })
		put(t, w.shard, func(b *store.Batch) { b.Put(key, v) })
		story, err := w.r.Story(50)
		if err != nil || len(story) != 2 || story[0].Number != 1 || !strings.Contains(story[0].Text, hex.EncodeToString(key)) || story[1] != second {
			t.Errorf("%s: %+v, %v", damage, story, err)
		}
	}
}

// The indexes say all by their keys.
func TestDamagedIndexRecordSaysAll(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{
		"due":     appendTimeKey(nil, false, kindDue, 7, TimeKey{1780000001200, 5, 2}),
		"expiry":  appendTimeKey(nil, false, kindExpiry, 7, TimeKey{1790000000000, 5, 2}),
		"due job": appendJobDueKey(nil, 1780000009000, 30),
		"job id":  appendJobIDKey(nil, "ID:p:1:2:1"),
	} {
		for damage, v := range damaged(key, newWard(t).value(key)) {
			w := newWard(t)
			put(t, w.shard, func(b *store.Batch) { b.Put(key, v) })
			w.reopen()
			due, _, _, err := w.r.Times(7, ByDue, TimeKey{}, 10, func(TimeKey) bool { return true })
			if err != nil || len(due) != 1 {
				t.Errorf("%s, %s: %d are due, %v", name, damage, len(due), err)
			}
			expire, _, _, err := w.r.Times(7, ByExpiration, TimeKey{}, 10, func(TimeKey) bool { return true })
			if err != nil || len(expire) != 3 {
				t.Errorf("%s, %s: %d expire, %v", name, damage, len(expire), err)
			}
			times, err := w.r.JobTimes(JobTime{}, 1<<62, 10)
			if err != nil || len(times) != 1 {
				t.Errorf("%s, %s: %d jobs, %v", name, damage, len(times), err)
			}
			if j, err := w.r.JobByID("ID:p:1:2:1"); err != nil || j.Sequence != 30 {
				t.Errorf("%s, %s: the job is %+v, %v", name, damage, j, err)
			}
		}
	}
}

// Without the record of the store itself nothing can be stored safely: it is not opened,
// and the error says what to do.
func TestStoreWithoutItsRecordIsRefused(t *testing.T) {
	t.Parallel()
	key := []byte{byte(kindMeta)}
	bad := damaged(key, newWard(t).value(key))
	bad["missing"] = nil
	for damage, v := range bad {
		w := newWard(t)
		put(t, w.shard, func(b *store.Batch) {
			b.Delete(key)
			if damage != "missing" {
				b.Put(key, v)
			}
		})
		_, err := Open(context.Background(), w.shard, Options{})
		if !errors.Is(err, message.ErrCorrupt) || !strings.Contains(err.Error(), "meta record 76") || !strings.Contains(err.Error(), "put back a copy") {
			t.Errorf("%s: %v", damage, err)
		}
	}
}
