package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/store"
)

func testOperations(t *testing.T, o Opener) {
	k := func(s string) []byte { return []byte(s) }
	tests := map[string]struct {
		batches []func(b *store.Batch)
		want    []string
	}{
		"put overwrites": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.Put(k("a"), k("1")) },
				func(b *store.Batch) { b.Put(k("a"), k("2")) },
			}, []string{"a=2"},
		},
		"operations of a batch take effect in order": {
			[]func(b *store.Batch){
				func(b *store.Batch) {
					b.Put(k("a"), k("1"))
					b.Delete(k("a"))
					b.Put(k("b"), k("1"))
					b.Put(k("b"), k("2"))
				},
			}, []string{"b=2"},
		},
		"delete of what is not there": {
			[]func(b *store.Batch){func(b *store.Batch) { b.Delete(k("a")) }}, nil,
		},
		"delete and put again": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.Put(k("a"), k("1")) },
				func(b *store.Batch) { b.Delete(k("a")) },
				func(b *store.Batch) { b.Put(k("a"), k("2")) },
			}, []string{"a=2"},
		},
		"delete after many puts leaves none of them": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.Put(k("a"), k("1")) },
				func(b *store.Batch) { b.Put(k("a"), k("2")) },
				func(b *store.Batch) { b.Put(k("a"), k("3")) },
				func(b *store.Batch) { b.Delete(k("a")) },
			}, nil,
		},
		"once": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.PutOnce(k("a"), k("1")); b.PutOnce(k("b"), k("2")) },
				func(b *store.Batch) { b.DeleteOnce(k("a")) },
			}, []string{"b=2"},
		},
		"once within a batch": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.PutOnce(k("a"), k("1")); b.DeleteOnce(k("a")) },
			}, nil,
		},
		"deleted and put once again": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.PutOnce(k("a"), k("1")); b.PutOnce(k("b"), k("1")) },
				func(b *store.Batch) { b.Delete(k("a")); b.PutOnce(k("a"), k("2")) },
				func(b *store.Batch) { b.Delete(k("b")); b.PutOnce(k("b"), k("2")) },
				func(b *store.Batch) { b.DeleteOnce(k("a")) },
			}, []string{"b=2"},
		},
		"a range ends before its end": {
			[]func(b *store.Batch){
				func(b *store.Batch) {
					for _, key := range []string{"a", "b", "bb", "c", "d"} {
						b.Put(k(key), k("1"))
					}
				},
				func(b *store.Batch) { b.DeleteRange(k("b"), k("c")) },
			}, []string{"a=1", "c=1", "d=1"},
		},
		"a range takes what stands before it in the batch, not after": {
			[]func(b *store.Batch){
				func(b *store.Batch) {
					b.Put(k("a"), k("1"))
					b.DeleteRange(k("a"), k("z"))
					b.Put(k("b"), k("1"))
				},
			}, []string{"b=1"},
		},
		"a range without an end takes all from its start": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.Put(k("a"), k("1")); b.Put(k("b"), k("1")); b.Put(k("\xff\xff"), k("1")) },
				func(b *store.Batch) { b.DeleteRange(k("b"), nil) },
			}, []string{"a=1"},
		},
		"a range that ends before it starts takes nothing": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.Put(k("a"), k("1")); b.Put(k("b"), k("1")) },
				func(b *store.Batch) { b.DeleteRange(k("b"), k("a")); b.DeleteRange(k("a"), k("a")) },
			}, []string{"a=1", "b=1"},
		},
		"empty keys and values": {
			[]func(b *store.Batch){
				func(b *store.Batch) { b.Put(nil, k("1")); b.Put(k("a"), nil) },
			}, []string{"=1", "a="},
		},
	}
	s := open(t, o)
	shard := uint16(0)
	for name, tt := range tests {
		shard++
		h := acquire(t, s, shard)
		for _, fill := range tt.batches {
			must(t, h, fill)
		}
		if diff := cmp.Diff(tt.want, pairs(t, h, nil, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func testLimits(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, 1)
	l := s.Limits()
	if l.BatchBytes <= 0 || l.KeyBytes <= 0 || l.ValueBytes <= 0 || l.InFlightBytes <= 0 {
		t.Fatalf("limits must be positive: %+v", l)
	}
	tests := map[string]struct {
		fill func(b *store.Batch)
		want error
	}{
		"longest key":      {func(b *store.Batch) { b.Put(make([]byte, l.KeyBytes), nil) }, nil},
		"key too long":     {func(b *store.Batch) { b.Put(make([]byte, l.KeyBytes+1), nil) }, store.ErrLimit},
		"range too long":   {func(b *store.Batch) { b.DeleteRange(nil, make([]byte, l.KeyBytes+1)) }, store.ErrLimit},
		"largest value":    {func(b *store.Batch) { b.Put([]byte("largest"), make([]byte, l.ValueBytes)) }, nil},
		"value too large":  {func(b *store.Batch) { b.Put([]byte("v"), make([]byte, l.ValueBytes+1)) }, store.ErrLimit},
		"batch too large":  {func(b *store.Batch) { fillTo(b, l.BatchBytes+1, l.ValueBytes) }, store.ErrLimit},
		"one bad of three": {func(b *store.Batch) { b.Put([]byte("x"), nil); b.Put(make([]byte, l.KeyBytes+1), nil) }, store.ErrLimit},
	}
	for name, tt := range tests {
		var b store.Batch
		tt.fill(&b)
		if err := commit(t, h, &b); tt.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if tt.want != nil {
			wantError(t, name, err, tt.want)
		}
	}
	n := 0
	if err := h.Scan(nil, nil, func(_, _ []byte) bool { n++; return true }); err != nil || n != 2 {
		t.Errorf("%d keys, want the 2 that were allowed; %v", n, err)
	}
}

// fillTo puts values into b until it has exactly size bytes.
func fillTo(b *store.Batch, size, valueBytes int) {
	for i := 0; b.SizeBytes() < size; i++ {
		before := b.SizeBytes()
		key := fmt.Appendf(nil, "part %06d", i)
		overhead := sizeOf(key, nil)
		b.Put(key, bytes.Repeat([]byte{byte(i)}, max(0, min(valueBytes, size-before-overhead))))
	}
}

func sizeOf(k, v []byte) int {
	var b store.Batch
	b.Put(k, v)
	return b.SizeBytes()
}

func testLarge(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, 1)
	var b store.Batch
	fillTo(&b, s.Limits().BatchBytes, min(s.Limits().ValueBytes, 1<<20))
	want := b.Len()
	if err := commit(t, h, &b); err != nil {
		t.Fatalf("the largest batch: %v", err)
	}
	must(t, h, func(b *store.Batch) { b.Put([]byte("small"), []byte("after")) })
	i := 0
	err := h.Scan([]byte("part"), []byte("q"), func(k, v []byte) bool {
		if string(k) != fmt.Sprintf("part %06d", i) || len(bytes.Trim(v, string([]byte{byte(i)}))) != 0 {
			t.Errorf("part %d is %s, %d bytes", i, k, len(v))
		}
		i++
		return true
	})
	if err != nil || i != want {
		t.Errorf("%d of %d parts; %v", i, want, err)
	}
	must(t, h, func(b *store.Batch) { b.DeleteRange([]byte("part"), []byte("q")) })
	if got := pairs(t, h, nil, nil); len(got) != 1 {
		t.Errorf("%d keys after the range was deleted", len(got))
	}
}
