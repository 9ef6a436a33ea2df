package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

// everyType has a value of each type (OpenWire 6.1).
var everyType = Map{
	{"null", nil}, {"true", true}, {"false", false}, {"byte", int8(-7)}, {"char", Char(0xd83d)}, {"short", int16(-300)},
	{"int", int32(math.MinInt32)}, {"long", int64(math.MaxInt64)}, {"double", 1.5}, {"float", float32(-0.25)}, {"string", "é你"},
	{"bytes", []byte{1, 2}}, {"no bytes", []byte{}}, {"big", strings.Repeat("y", 8191)}, {"not yet big", strings.Repeat("é", 8190)},
	{"map", Map{{"a", "b"}, {"inner", Map{}}, {"none", Map(nil)}}}, {"list", List{int32(1), "x", List{}, nil}}, {"", ""}, {"ключ", "ключ"},
}

// TestMapRoundTrip checks every type of value, and each lookup.
func TestMapRoundTrip(t *testing.T) {
	t.Parallel()
	b, err := AppendMap(nil, everyType)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeMap(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everyType, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, e := range everyType {
		v, ok, err := LookupProperty(b, e.Key)
		if !ok || err != nil || !cmp.Equal(v, e.Value) {
			t.Errorf("LookupProperty(%q) = %v, %t, %v", e.Key, v, ok, err)
		}
		if v, ok := got.Value(e.Key); !ok || !cmp.Equal(v, e.Value) {
			t.Errorf("Value(%q) = %v, %t", e.Key, v, ok)
		}
	}
	if v, ok, err := LookupProperty(b, "nothing"); v != nil || ok || err != nil {
		t.Errorf("lookup of nothing: %v, %t, %v", v, ok, err)
	}
	if v, ok := got.Value("nothing"); v != nil || ok {
		t.Errorf("value of nothing: %v, %t", v, ok)
	}
}

// TestStringCodes checks where a string becomes a big one (OpenWire 6.2).
func TestStringCodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		s    string
		code byte
	}{
		"8190 units":                {strings.Repeat("x", 8190), primString},
		"8191 units":                {strings.Repeat("x", 8191), primBigString},
		"8190 units of three bytes": {strings.Repeat("你", 8190), primString},
		"4095 pairs of units":       {strings.Repeat("\U0001F600", 4095), primString},
		"4096 pairs of units":       {strings.Repeat("\U0001F600", 4096), primBigString},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, top := range []bool{true, false} {
				b := appendString(nil, test.s, top)
				if b[0] != test.code {
					t.Errorf("code %d, want %d", b[0], test.code)
				}
				r := reader{b: b}
				if got := r.value(); got != test.s || r.p != len(b) {
					t.Errorf("reads as %.40q, %v", got, r.err)
				}
			}
		})
	}
}

// TestStringsAtTheTop checks that top level values are standard UTF-8 and all
// else modified UTF-8, as Java reads them (OpenWire 6.3, trap 6).
func TestStringsAtTheTop(t *testing.T) {
	t.Parallel()
	const emoji, java = "\U0001F600", "\xed\xa0\xbd\xed\xb8\x80"
	b, err := AppendMap(nil, Map{{emoji, emoji}, {"m", Map{{emoji, emoji}}}, {"l", List{emoji}}})
	if err != nil {
		t.Fatal(err)
	}
	want := join(int32(3), int16(6), java, 9, int16(4), emoji,
		int16(1), "m", 11, int32(1), int16(6), java, 9, int16(6), java,
		int16(1), "l", 12, int32(1), 9, int16(6), java)
	if !bytes.Equal(b, want) {
		t.Errorf("encoded to\n%q, want\n%q", b, want)
	}
}

// TestMapsRefused checks what is no map, and what cannot be one.
func TestMapsRefused(t *testing.T) {
	t.Parallel()
	deep := func(code byte) []byte {
		b := join(int32(1), int16(0))
		for range 200 {
			if b = append(b, code, 0, 0, 0, 1); code == primMap {
				b = append(b, 0, 0)
			}
		}
		return append(b, primNull)
	}
	tests := map[string][]byte{
		"empty":                    {},
		"count alone":              join(int32(1)),
		"more entries than bytes":  join(int32(math.MaxInt32), int16(0), 0),
		"surplus byte":             join(int32(0), 0),
		"key beyond the end":       join(int32(1), int16(9), "abc", 0),
		"key that is no UTF-8":     join(int32(1), int16(1), 0xff, 0),
		"unknown code":             join(int32(1), int16(1), "a", 14),
		"value cut":                join(int32(1), int16(1), "a", int(primLong), 0, 0),
		"bytes of negative length": join(int32(1), int16(1), "a", int(primByteArray), int32(-1)),
		"big string too long":      join(int32(1), int16(1), "a", int(primBigString), int32(1<<30), "x"),
		"list longer than frame":   join(int32(1), int16(1), "a", int(primList), int32(1<<30), 0),
		"list of negative length":  join(int32(1), int16(1), "a", int(primList), int32(-1)),
		"maps without end":         deep(primMap),
		"lists without end":        deep(primList),
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := DecodeMap(b)
			wantKind(t, err, message.ErrInvalid)
			if m != nil {
				t.Errorf("decoded to %v", m)
			}
			if name == "key that is no UTF-8" || name == "surplus byte" { // seen by those who look at it
				return
			}
			_, ok, err := LookupProperty(b, "x")
			if ok || err == nil {
				t.Errorf("lookup: %t, %v", ok, err)
			}
			out, err := MergeProperties([]byte("before"), b, nil)
			wantKind(t, err, message.ErrInvalid)
			if string(out) != "before" {
				t.Errorf("merged to %q", out)
			}
		})
	}
}

// TestMapsUnwritable checks values that have no form on the wire.
func TestMapsUnwritable(t *testing.T) {
	t.Parallel()
	circle := List{nil}
	circle[0] = circle
	tests := map[string]struct {
		m    Map
		kind error
	}{
		"int":           {Map{{"a", 1}}, message.ErrInvalid},
		"struct inside": {Map{{"a", List{struct{}{}}}}, message.ErrInvalid},
		"long key":      {Map{{strings.Repeat("k", 65536), nil}}, message.ErrOverLimit},
		"endless list":  {Map{{"a", circle}}, message.ErrOverLimit},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := AppendMap(nil, test.m)
			wantKind(t, err, test.kind)
			_, err = MergeProperties(nil, nil, test.m)
			wantKind(t, err, test.kind)
		})
	}
}

// TestNullMaps checks that no map, the null map and nil are alike (OpenWire 6.1).
func TestNullMaps(t *testing.T) {
	t.Parallel()
	null, err := AppendMap(nil, nil)
	if err != nil || !bytes.Equal(null, join(int32(-1))) {
		t.Errorf("null map is %x, %v", null, err)
	}
	for _, b := range [][]byte{nil, null} {
		if m, err := DecodeMap(b); m != nil || err != nil {
			t.Errorf("%x decodes to %v, %v", b, m, err)
		}
		if _, ok, err := LookupProperty(b, "a"); ok || err != nil {
			t.Errorf("lookup in %x: %t, %v", b, ok, err)
		}
		got, err := MergeProperties(nil, b, Map{{"a", true}})
		if err != nil || !bytes.Equal(got, join(int32(1), int16(1), "a", 1, 1)) {
			t.Errorf("merge into %x: %x, %v", b, got, err)
		}
	}
}

// TestLastOfTheSameKeyWins checks duplicate keys (OpenWire 6.1).
func TestLastOfTheSameKeyWins(t *testing.T) {
	t.Parallel()
	m := Map{{"a", int32(1)}, {"b", nil}, {"a", int32(2)}}
	b, err := AppendMap(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok, err := LookupProperty(b, "a"); v != int32(2) || !ok || err != nil {
		t.Errorf("lookup: %v, %t, %v", v, ok, err)
	}
	if v, _ := m.Value("a"); v != int32(2) {
		t.Errorf("value: %v", v)
	}
}

// TestMergeProperties checks that a dead letter's properties are added and the
// producer's keep their bytes (OpenWire 6.3, 10.9).
func TestMergeProperties(t *testing.T) {
	t.Parallel()
	// Strings as only Java writes them, which must not be repaired.
	producer := join(int32(3), int16(1), "a", 9, int16(6), "\xed\xa0\xbd\xed\xb8\x80", int16(23), "dlqDeliveryFailureCause", 9, int16(3), "old",
		int16(2), "\xc0\x80", 13, int32(1), "b")
	got, err := MergeProperties([]byte("before"), producer, Map{{"dlqDeliveryFailureCause", "new"}, {"originalExpiration", int64(5)}})
	if err != nil {
		t.Fatal(err)
	}
	want := join("before", int32(4), int16(1), "a", 9, int16(6), "\xed\xa0\xbd\xed\xb8\x80", int16(2), "\xc0\x80", 13, int32(1), "b",
		int16(23), "dlqDeliveryFailureCause", 9, int16(3), "new", int16(18), "originalExpiration", 6, int32(0), int32(5))
	if !bytes.Equal(got, want) {
		t.Errorf("merged to\n%q, want\n%q", got, want)
	}
	got, err = MergeProperties(nil, producer, Map{{"\x00", nil}})
	if err != nil || binary.BigEndian.Uint32(got) != 3 {
		t.Errorf("a key that is not ASCII is not replaced: %q, %v", got, err)
	}
	if same, err := MergeProperties(nil, producer, nil); err != nil || !bytes.Equal(same, producer) {
		t.Errorf("merging nothing gives %q, %v", same, err)
	}
}
