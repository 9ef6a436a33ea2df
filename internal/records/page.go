package records

import (
	"fmt"
	"math"

	"github.com/nixiemq/nixie/internal/message"
)

// Stored is an entry as it is in the store, with what is known of its deliveries.
type Stored struct {
	Entry     message.Entry
	Counts    message.Counts
	HasCounts bool // else no counts are stored, and Counts is zero
}

// Page reads up to n entries of a lane with a position above after, in order,
// durable and transient ones. What was handed over and not answered yet may be
// missing, or still there: the lane's owner knows.
func (r *Records) Page(q QueueID, lane Lane, after uint64, n int) ([]Stored, error) {
	l := r.lane(q, lane)
	if n < 1 || after == math.MaxUint64 {
		return nil, nil
	}
	span := pageSpan{queue: q, lane: lane, from: max(after+1, l.floor), n: n}
	var page, transient []Stored
	var err error
	if l.durable.Messages > 0 {
		page, err = r.entries(span, false, l.durable.Messages)
	}
	if err == nil && l.transient.Messages > 0 {
		transient, err = r.entries(span, true, l.transient.Messages)
	}
	if err != nil {
		return nil, fmt.Errorf("read page of queue %d: %w", q, err)
	}
	if len(transient) > 0 {
		page = merge(page, transient, n)
	}
	return page, nil
}

// A pageSpan is the n first entries of a lane from a position on.
type pageSpan struct {
	queue QueueID
	lane  Lane
	from  uint64
	n     int
}

// entries reads the durable or the transient entries of a span; there are about
// so many in all. Counts are in the order of entries, so that a scan of each
// joins them.
func (r *Records) entries(s pageSpan, transient bool, about int64) ([]Stored, error) {
	page := make([]Stored, 0, min(int64(s.n), about))
	lo := appendEntryKey(make([]byte, 0, keyBytes), transient, kindEntry, s.queue, s.lane, s.from)
	at := len(lo) - 8 // of the position
	err := r.scan(lo, successor(lo[:at]), len(lo), s.n, func(k []byte, f *reader) bool {
		page = append(page, Stored{})
		e := &page[len(page)-1].Entry
		e.Position, e.Transient = uint64At(k, at), transient
		return decodeEntry(f, e)
	})
	if err != nil || len(page) == 0 {
		return nil, err
	}
	last := page[len(page)-1].Entry.Position
	lo = appendEntryKey(lo[:0], transient, kindCounts, s.queue, s.lane, page[0].Entry.Position)
	hi := appendEntryKey(make([]byte, 0, keyBytes), transient, kindCounts, s.queue, s.lane, last)
	rest := page
	err = r.scan(lo, append(hi, 0), len(lo), 0, func(k []byte, f *reader) bool {
		pos := uint64At(k, at)
		for len(rest) > 0 && rest[0].Entry.Position < pos {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0].Entry.Position != pos { // its entry is gone, or about to be
			return true
		}
		rest[0].HasCounts = true
		return decodeCounts(f, &rest[0].Counts)
	})
	return page, err
}

// merge joins two ordered pages to one of at most n.
func merge(a, b []Stored, n int) []Stored {
	m := make([]Stored, 0, min(n, len(a)+len(b)))
	for len(m) < n && len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].Entry.Position < b[0].Entry.Position {
			m, a = append(m, a[0]), a[1:]
		} else {
			m, b = append(m, b[0]), b[1:]
		}
	}
	return m
}
