package records

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// An Index is an order of a queue's entries by a time of theirs.
type Index uint8

// The indexes there are.
const (
	// ByDue has the durable entries that PutDue named, by the time given there.
	ByDue Index = iota
	// ByExpiration has every entry that expires, by when.
	ByExpiration
)

// kind is the kind of the index's records.
func (x Index) kind() kind {
	if x == ByDue {
		return kindDue
	}
	return kindExpiry
}

// A TimeKey is a place in an index. The zero value is before all.
type TimeKey struct {
	At       int64 // Unix milliseconds
	Lane     Lane
	Position uint64
}

func (t TimeKey) compare(o TimeKey) int {
	return cmp.Or(cmp.Compare(t.At, o.At), cmp.Compare(t.Lane, o.Lane), cmp.Compare(t.Position, o.Position))
}

// Timed is an entry that an index led to.
type Timed struct {
	Stored
	Key TimeKey
}

// appendTimeKey makes the key of an index record.
func appendTimeKey(k []byte, transient bool, of kind, q QueueID, t TimeKey) []byte {
	k = binary.BigEndian.AppendUint64(appendQueueKey(k, transient, of, q), uint64(max(t.At, 0)))
	return binary.BigEndian.AppendUint64(append(k, byte(t.Lane)), t.Position)
}

// timeKeyBytes is the length of what is behind the prefix of a queue in such a key.
const timeKeyBytes = 8 + 1 + 8

func (b *Batch) timeKey(transient bool, of kind, q QueueID, t TimeKey) []byte {
	return b.arena.take(appendTimeKey(b.arena.room(2*keyBytes), transient, of, q, t))
}

// PutDue notes that a durable entry is due at a time, which its counts have too.
func (b *Batch) PutDue(q QueueID, lane Lane, pos uint64, due int64) {
	b.put(b.timeKey(false, kindDue, q, TimeKey{due, lane, pos}), b.value(0), false)
}

// DropDue takes back a PutDue, when the entry goes or is due at another time.
func (b *Batch) DropDue(q QueueID, lane Lane, pos uint64, due int64) {
	b.physical.Delete(b.timeKey(false, kindDue, q, TimeKey{due, lane, pos}))
}

// putExpiry notes when an entry expires, if it does.
func (b *Batch) putExpiry(q QueueID, lane Lane, e *message.Entry) {
	if e.Expiration > 0 {
		b.put(b.timeKey(e.Transient, kindExpiry, q, TimeKey{e.Expiration, lane, e.Position}), b.value(0), false)
	}
}

func (b *Batch) dropExpiry(q QueueID, lane Lane, e *message.Entry) {
	if e.Expiration > 0 {
		b.physical.Delete(b.timeKey(e.Transient, kindExpiry, q, TimeKey{e.Expiration, lane, e.Position}))
	}
}

// Times goes through up to n places of an index of a queue behind after, in order,
// and reads the entries that want asks for. last is the place it came to; end says
// that there are no more. An entry that is gone, or about to go, may be left out.
func (r *Records) Times(q QueueID, by Index, after TimeKey, n int, want func(TimeKey) bool) (page []Timed, last TimeKey, end bool, err error) {
	type place struct {
		TimeKey
		transient bool
	}
	var places []place
	for _, transient := range []bool{false, true} {
		if transient && by == ByDue {
			break
		}
		prefix := appendQueueKey(make([]byte, 0, 2*keyBytes), transient, by.kind(), q)
		at := len(prefix)
		lo := append(appendTimeKey(make([]byte, 0, 2*keyBytes), transient, by.kind(), q, after), 0)
		err := r.scanKeys(lo, successor(prefix), at+timeKeyBytes, n, func(k []byte) bool {
			t := TimeKey{int64(uint64At(k, at)), Lane(k[at+8]), uint64At(k, at+9)}
			if t.At < 0 || t.Lane > lastLane {
				return false
			}
			places = append(places, place{t, transient})
			return true
		})
		if err != nil {
			return nil, last, false, fmt.Errorf("read times of queue %d: %w", q, err)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return a.compare(b.TimeKey) })
	if end = len(places) < n; len(places) > n {
		places = places[:n]
	}
	for _, p := range places {
		last = p.TimeKey
		if !want(p.TimeKey) {
			continue
		}
		s, err := r.stored(q, p.Lane, p.Position, p.transient)
		switch {
		case errors.Is(err, message.ErrNotFound):
		case err != nil:
			return nil, last, false, fmt.Errorf("read times of queue %d: %w", q, err)
		case by == ByDue && s.Counts.Due == p.At, by == ByExpiration && s.Entry.Expiration == p.At:
			page = append(page, Timed{Stored: s, Key: p.TimeKey})
		}
	}
	return page, last, end, nil
}

// stored reads one entry; message.ErrNotFound where there is none.
func (r *Records) stored(q QueueID, lane Lane, pos uint64, transient bool) (Stored, error) {
	s := Stored{Entry: message.Entry{Position: pos, Transient: transient}}
	k := appendEntryKey(make([]byte, 0, keyBytes), transient, kindEntry, q, lane, pos)
	fields, err := r.get(k)
	if err == nil && !decodeEntry(&reader{b: fields}, &s.Entry) {
		err = corrupt(k)
	}
	if err != nil {
		return s, err
	}
	k = appendEntryKey(k[:0], transient, kindCounts, q, lane, pos)
	fields, err = r.get(k)
	switch {
	case errors.Is(err, message.ErrNotFound):
		return s, nil
	case err != nil:
		return s, err
	}
	s.HasCounts = true
	if !decodeCounts(&reader{b: fields}, &s.Counts) {
		return s, corrupt(k)
	}
	return s, nil
}
