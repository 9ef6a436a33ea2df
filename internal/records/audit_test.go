package records

import (
	"bytes"
	"encoding/binary"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// An audit is what a shard holds, read key by key without Records, and checked
// against the laws of the package comment.
type audit struct {
	t        failer
	chunk    int
	reserved uint64
	entries  map[refKey]int64 // entries that refer to a body
	bodies   map[refKey]int   // bodies, with their number of pieces
	pieces   map[refKey]int   // pieces there are
	refs     map[refKey]int64 // numbers of references stored
	staged   map[uint64]bool  // staging records
	kept     map[uint64]bool  // those of prepared transactions
	parts    map[uint64]int   // parts of prepared transactions, less those they have
	counted  map[QueueID]map[Lane]Count
	counters map[QueueID]map[Lane]Count
	places   map[string]bool // entries, by key without kind
	counts   []string        // counts, likewise
	stories  map[refKey]bool // stories that counts name
	lines    map[refKey]bool // stories that have lines
	queues   map[QueueID]bool
	highest  uint64
	waste    int              // transient and staging records
	expires  map[string]int64 // entries that expire, by place
	expiries map[string]int64 // what the index says of them
	jobs     int              // index records of jobs, less two for each job
	stray    int              // bodies of which there are only pieces: transient ones, until their batch follows
}

// auditShard checks the laws. opened says that Open has just been there, and
// nothing after it.
func auditShard(t failer, shard store.Shard, opened bool) *audit {
	t.Helper()
	a := &audit{
		t: t, entries: map[refKey]int64{}, bodies: map[refKey]int{}, pieces: map[refKey]int{}, refs: map[refKey]int64{},
		staged: map[uint64]bool{}, kept: map[uint64]bool{}, parts: map[uint64]int{}, counted: map[QueueID]map[Lane]Count{}, counters: map[QueueID]map[Lane]Count{},
		expires: map[string]int64{}, expiries: map[string]int64{}, places: map[string]bool{}, stories: map[refKey]bool{}, lines: map[refKey]bool{}, queues: map[QueueID]bool{},
	}
	err := shard.Scan([]byte{0}, []byte{0xff}, func(k, v []byte) bool {
		fields, err := unseal(k, v)
		if err != nil {
			t.Fatalf("%v", err)
		}
		k = bytes.Clone(k)
		transient := kind(k[0]) == kindTransient
		if transient {
			a.waste++
			k = k[1:]
		}
		if !a.record(kind(k[0]), transient, k[1:], &reader{b: bytes.Clone(fields)}) {
			t.Fatalf("%s is not as it should be", describe(k))
		}
		return true
	})
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	a.check()
	if opened && a.waste > 0 {
		t.Errorf("%d transient or staging records after Open, want none", a.waste)
	}
	return a
}

func (a *audit) seen(seq uint64) { a.highest = max(a.highest, seq) }

// record takes in one record; k is its key without kind.
func (a *audit) record(of kind, transient bool, k []byte, f *reader) bool {
	switch of {
	case kindMeta:
		var ok bool
		a.reserved, a.chunk, ok = decodeMeta(f)
		return ok
	case kindEntry:
		return a.entry(transient, k, f)
	case kindCounts:
		var c message.Counts
		ok := decodeCounts(f, &c)
		a.counts = append(a.counts, place(transient, k))
		if c.Story != 0 {
			a.stories[refKey{c.Story, transient}] = true
			a.seen(c.Story)
		}
		return ok
	case kindAttempt:
		a.lines[refKey{binary.BigEndian.Uint64(k), transient}] = true
		return decodeAttempt(f, &message.Attempt{})
	case kindCounter:
		q := QueueID(binary.BigEndian.Uint32(k))
		a.counters[q] = map[Lane]Count{}
		return decodeCounter(f, func(l Lane, c Count) { a.counters[q][l] = c })
	case kindQueue:
		a.queues[QueueID(binary.BigEndian.Uint32(k))] = true
		return decodeQueue(f, &QueueInfo{})
	case kindSelectors:
		_, ok := decodeSelectors(f)
		return ok
	case kindMark:
		return decodeMark(f, func(uint64, message.HandOut) {})
	case kindProducer:
		_, _, _, ok := decodeProducer(f)
		return ok
	case kindJob:
		j := Job{Sequence: binary.BigEndian.Uint64(k)}
		ok := decodeJob(f, &j)
		a.entries[refKey{seq: j.Sequence}]++
		a.seen(j.Sequence)
		if a.counted[jobsQueue] == nil {
			a.counted[jobsQueue] = map[Lane]Count{}
		}
		c := a.counted[jobsQueue][0]
		c.add(1, int64(j.SizeBytes))
		a.counted[jobsQueue][0] = c
		a.jobs -= 2
		return ok
	case kindDue:
		a.counts = append(a.counts, string(k[:4])+string(k[12:])) // the place of an entry
		return true
	case kindExpiry:
		a.expiries[place(transient, append(bytes.Clone(k[:4]), k[12:]...))] = int64(binary.BigEndian.Uint64(k[4:]))
		return true
	case kindJobDue, kindJobID:
		a.jobs++
		return true
	case kindPrepared:
		var p Prepared
		seq := binary.BigEndian.Uint64(k)
		ok := decodePrepared(f, &p)
		a.parts[seq] += p.parts
		a.seen(seq)
		return ok
	case kindPart:
		var p Prepared
		ok := decodePart(f, &p)
		a.parts[binary.BigEndian.Uint64(k)]--
		for _, s := range p.Sends {
			a.kept[s.Sequence] = true
		}
		return ok
	case kindAside:
		_, _, ok := decodeAside(f)
		return ok
	case kindFloor:
		_, ok := decodeFloor(f)
		return ok
	}
	return a.body(of, transient, k, f)
}

func (a *audit) entry(transient bool, k []byte, f *reader) bool {
	e := message.Entry{Position: binary.BigEndian.Uint64(k[5:])}
	ok := decodeEntry(f, &e)
	a.entries[refKey{e.Body, transient}]++
	a.places[place(transient, k)] = true
	if e.Expiration > 0 {
		a.expires[place(transient, k)] = e.Expiration
	}
	a.seen(e.Position)
	a.seen(e.Body)
	if transient {
		return ok
	}
	q, lane := QueueID(binary.BigEndian.Uint32(k)), Lane(k[4])
	if a.counted[q] == nil {
		a.counted[q] = map[Lane]Count{}
	}
	c := a.counted[q][lane]
	c.add(1, int64(e.SizeBytes))
	a.counted[q][lane] = c
	return ok
}

// body takes in the records that are kept by the sequence of a body.
func (a *audit) body(of kind, transient bool, k []byte, f *reader) bool {
	key := refKey{binary.BigEndian.Uint64(k), transient}
	a.seen(key.seq)
	switch of {
	case kindBody:
		_, s, ok := decodeBody(f.b)
		a.bodies[key] = s.pieces
		return ok
	case kindPiece:
		a.pieces[key]++
		return true
	case kindReference:
		a.refs[key] = f.varint()
		return f.done()
	case kindStaged:
		a.staged[key.seq] = true
		_, _, ok := decodeStaged(f)
		return ok
	}
	return false
}

func place(transient bool, k []byte) string {
	if transient {
		return "transient " + string(k)
	}
	return string(k)
}

func (a *audit) check() {
	a.t.Helper()
	for seq := range a.staged {
		if !a.kept[seq] {
			a.waste++
		}
	}
	for seq := range a.kept {
		if !a.staged[seq] {
			a.t.Errorf("message %d of a prepared transaction is not staged", seq)
		}
	}
	for seq, n := range a.parts {
		if n != 0 {
			a.t.Errorf("prepared transaction %d lacks %d parts", seq, n)
		}
	}
	for key, n := range a.entries {
		if _, ok := a.bodies[key]; !ok {
			a.t.Errorf("%d entries without body %v", n, key)
		}
		if want := a.refs[key]; n > 1 && want != n || n == 1 && want != 0 {
			a.t.Errorf("body %v has %d entries, and the reference record says %d", key, n, want)
		}
	}
	for key, n := range a.bodies {
		staged := !key.transient && a.staged[key.seq]
		if a.entries[key] == 0 && !staged {
			a.t.Errorf("body %v has no entry", key)
		}
		if a.pieces[key] != n {
			a.t.Errorf("body %v has %d pieces, want %d", key, a.pieces[key], n)
		}
	}
	for key := range a.pieces {
		if _, ok := a.bodies[key]; ok || !key.transient && a.staged[key.seq] {
			continue
		}
		if a.stray++; !key.transient {
			a.t.Errorf("pieces without body %v", key)
		}
	}
	if a.jobs != 0 {
		a.t.Errorf("%d index records of jobs too many", a.jobs)
	}
	if d := cmp.Diff(a.expires, a.expiries); d != "" {
		a.t.Errorf("expirations of entries (-) and in the index (+):\n%s", d)
	}
	for key := range a.refs {
		if a.entries[key] == 0 {
			a.t.Errorf("reference record without body %v", key)
		}
	}
	for _, p := range a.counts {
		if !a.places[p] {
			a.t.Errorf("counts without entry at %x", p)
		}
	}
	for story := range a.lines {
		if !a.stories[story] {
			a.t.Errorf("story %v belongs to no entry", story)
		}
	}
	for q := range a.counters {
		if len(a.counters[q]) == 0 {
			delete(a.counters, q)
		}
	}
	if d := cmp.Diff(a.counted, a.counters); d != "" {
		a.t.Errorf("counters differ from a scan (-scan +counters):\n%s", d)
	}
	if a.highest >= a.reserved && a.highest > 0 {
		a.t.Errorf("sequence %d is used, but only those below %d are reserved", a.highest, a.reserved)
	}
}
