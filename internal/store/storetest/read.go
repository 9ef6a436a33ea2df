package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/store"
)

func testScanBounds(t *testing.T, o Opener) {
	s := open(t, o)
	h, other := acquire(t, s, 7), acquire(t, s, 8)
	below := acquire(t, s, 6)
	for _, neighbour := range []store.Shard{below, other} {
		must(t, neighbour, func(b *store.Batch) { b.Put(nil, nil); b.Put([]byte("m"), nil); b.Put([]byte("\xff\xff\xff"), nil) })
	}
	must(t, h, func(b *store.Batch) {
		for _, k := range []string{"b", "\xff", "a", "a\x00", "c", "\x00", "aa"} {
			b.Put([]byte(k), nil)
		}
	})
	tests := map[string]struct {
		lo, hi string // "-" is nil
		want   []string
	}{
		"everything":               {"-", "-", []string{"\x00", "a", "a\x00", "aa", "b", "c", "\xff"}},
		"an empty end is the end":  {"c", "-", []string{"c", "\xff"}},
		"an empty start":           {"", "a", []string{"\x00"}},
		"the end is left out":      {"a", "b", []string{"a", "a\x00", "aa"}},
		"the start is not":         {"aa", "ab", []string{"aa"}},
		"between keys":             {"aaa", "az", nil},
		"nothing between equals":   {"a", "a", nil},
		"nothing when turned over": {"c", "a", nil},
		"no upper bound above 0xff": {"\xfe", "\xff\xff", []string{
			"\xff"}},
	}
	bound := func(s string) []byte {
		if s == "-" {
			return nil
		}
		return []byte(s)
	}
	for name, tt := range tests {
		var got []string
		err := h.Scan(bound(tt.lo), bound(tt.hi), func(k, _ []byte) bool { got = append(got, string(k)); return true })
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func testScanStop(t *testing.T, o Opener) {
	h := acquire(t, open(t, o), 1)
	must(t, h, func(b *store.Batch) {
		for _, k := range []string{"a", "b", "c", "d"} {
			b.Put([]byte(k), nil)
		}
	})
	calls := 0
	err := h.Scan(nil, nil, func(k, _ []byte) bool {
		calls++
		// A callback may use the shard: no lock is held while it runs.
		if _, err := h.Get(k); err != nil {
			t.Errorf("get within a scan: %v", err)
		}
		must(t, h, func(b *store.Batch) { b.Put([]byte("e"), nil) })
		return string(k) != "b"
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, want 2; %v", calls, err)
	}
}

func testGet(t *testing.T, o Opener) {
	h := acquire(t, open(t, o), 1)
	_, err := h.Get([]byte("k"))
	wantError(t, "a key that is not there", err, store.ErrNotFound)
	answer := make(chan error, 1)
	for _, v := range []string{"one", "two", ""} {
		var b store.Batch
		b.Put([]byte("k"), []byte(v))
		h.Commit(&b, func(error) {
			got, err := h.Get([]byte("k"))
			if string(got) != v {
				t.Errorf("get within the answer: %q, want %q", got, v)
			}
			answer <- err
		})
		if err := await(t, answer, "answer"); err != nil {
			t.Error(err)
		}
	}
	must(t, h, func(b *store.Batch) { b.Put([]byte("k"), []byte("mine")) })
	v, err := h.Get([]byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	copy(v, "XXXX")
	if again, err := h.Get([]byte("k")); string(again) != "mine" || err != nil {
		t.Errorf("after a change of the copy: %q, %v", again, err)
	}
	must(t, h, func(b *store.Batch) { b.Delete([]byte("k")) })
	_, err = h.Get([]byte("k"))
	wantError(t, "a deleted key", err, store.ErrNotFound)
}

func testShardsApart(t *testing.T, o Opener) {
	s := open(t, o)
	numbers := []uint16{0, 1, 255, 256, 65535}
	for _, n := range numbers {
		h := acquire(t, s, n)
		must(t, h, func(b *store.Batch) { b.Put([]byte("k"), []byte{byte('a' + n%10)}) })
		must(t, h, func(b *store.Batch) { b.Put([]byte("l"), nil) })
	}
	middle := acquire(t, s, 255)
	must(t, middle, func(b *store.Batch) { b.DeleteRange(nil, nil) })
	for _, n := range numbers {
		h := acquire(t, s, n)
		want := []string{"k=" + string(byte('a'+n%10)), "l="}
		if n == 255 {
			want = nil
		}
		if diff := cmp.Diff(want, pairs(t, h, nil, nil)); diff != "" {
			t.Errorf("shard %d (-want +got):\n%s", n, diff)
		}
	}
}
