package records

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

func TestEntriesAreFoundByTheirTimes(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	r := open(t, shard)
	r.Next(30)
	m := &message.Message{}
	expires := map[uint64]int64{10: 500, 11: 0, 12: 300, 13: 400, 14: 300}
	entries := map[uint64]*message.Entry{}
	commit(t, r, func(b *Batch) {
		for pos, at := range expires {
			e := entryFor(m, pos, pos)
			e.Expiration, e.Transient = at, pos == 13
			entries[pos] = e
			if e.Transient {
				b.PutTransientMessage(pos, m)
			} else {
				b.PutMessage(pos, m, 1)
			}
			b.Append(7, Lane(pos%2), e)
		}
		for pos, due := range map[uint64]int64{10: 90, 11: 70} {
			b.PutCounts(7, Lane(pos%2), pos, &message.Counts{Failures: 1, Due: due})
			b.PutDue(7, Lane(pos%2), pos, due)
		}
		b.PutMessage(20, m, 1)
		other := entryFor(m, 20, 20)
		other.Expiration = 1
		b.Append(8, 0, other)
	})
	type found struct {
		positions []uint64
		last      TimeKey
		end       bool
	}
	times := func(by Index, after TimeKey, n int, skip ...uint64) found {
		t.Helper()
		page, last, end, err := r.Times(7, by, after, n, func(k TimeKey) bool {
			for _, pos := range skip {
				if k.Position == pos {
					return false
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		f := found{last: last, end: end}
		for i := range page {
			f.positions = append(f.positions, page[i].Entry.Position)
			if page[i].Key.Position != page[i].Entry.Position || page[i].Entry.Transient != (page[i].Entry.Position == 13) {
				t.Errorf("%+v", page[i])
			}
			if by == ByDue && (!page[i].HasCounts || page[i].Counts.Due != page[i].Key.At) {
				t.Errorf("%+v", page[i])
			}
		}
		return f
	}
	for name, tt := range map[string]struct{ got, want found }{
		"by expiration":      {times(ByExpiration, TimeKey{}, 9), found{[]uint64{12, 14, 13, 10}, TimeKey{500, 0, 10}, true}},
		"so many":            {times(ByExpiration, TimeKey{}, 3), found{[]uint64{12, 14, 13}, TimeKey{400, 1, 13}, false}},
		"behind one":         {times(ByExpiration, TimeKey{300, 0, 12}, 9), found{[]uint64{14, 13, 10}, TimeKey{500, 0, 10}, true}},
		"none is left":       {times(ByExpiration, TimeKey{500, 0, 10}, 9), found{nil, TimeKey{}, true}},
		"not those known":    {times(ByExpiration, TimeKey{}, 9, 14, 10), found{[]uint64{12, 13}, TimeKey{500, 0, 10}, true}},
		"by when one is due": {times(ByDue, TimeKey{}, 9), found{[]uint64{11, 10}, TimeKey{90, 0, 10}, true}},
	} {
		if diff := cmp.Diff(tt.want, tt.got, cmp.AllowUnexported(found{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	commit(t, r, func(b *Batch) {
		b.Remove(7, 0, entries[12], nil, false)
		b.Remove(7, 1, entries[13], nil, false)
		b.PutCounts(7, 0, 10, &message.Counts{Failures: 2, Due: 60}) // and the index is not told: it is not believed
	})
	if got := times(ByExpiration, TimeKey{}, 9); len(got.positions) != 2 {
		t.Errorf("after two were removed: %v", got)
	}
	if got := times(ByDue, TimeKey{}, 9); len(got.positions) != 1 || got.positions[0] != 11 {
		t.Errorf("where the counts say otherwise: %v", got)
	}
	auditShard(t, shard, false)
	commit(t, r, func(b *Batch) { b.DropQueue(7) })
	if got := times(ByExpiration, TimeKey{}, 9); len(got.positions) != 0 {
		t.Errorf("of a queue that was dropped: %v", got)
	}
}
