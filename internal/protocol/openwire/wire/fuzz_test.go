package wire

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

// fuzzSettings turns a byte into settings: encoding in the low bits, then the
// version.
func fuzzSettings(b byte) Settings {
	return Settings{
		Version:    int(b>>4)%MaxVersion + 1,
		Tight:      b&1 != 0,
		Cache:      b&2 != 0,
		StackTrace: b&4 != 0,
		CacheSize:  100 + int(b&8)*100,
	}
}

// seedFrames adds a short frame of each case of the vectors, in version 12 and
// the two encodings that differ most; the fuzzer finds the others.
func seedFrames(f *testing.F) {
	f.Helper()
	encodings := map[string]byte{"loose": 0, "tight+cache": 3}
	for _, name := range vectorNames(f, isTypeVector) {
		var file typeVectors
		loadVector(f, name, &file)
		for _, c := range file.Cases {
			for encoding, bits := range encodings {
				for _, h := range c.Frames["v12"][encoding] {
					if frame := unhex(f, h); len(frame) < 500 {
						f.Add(frame[4:], bits|4|11<<4)
					}
				}
			}
		}
	}
	for _, ds := range []DataStructure{nil, &DataArrayResponse{Data: make([]DataStructure, 600)}} {
		for b := range byte(8) {
			f.Add(body(f, fuzzSettings(b|11<<4), ds), b|11<<4)
		}
	}
}

// allocated measures what do allocates, in bytes. It may run do twice: the quick
// way does not stop the world, but counts what was allocated before when the
// runtime happens to settle its accounts; above 64 KiB it asks again, exactly.
func allocated(do func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	quick := sample[0].Value.Uint64()
	do()
	metrics.Read(sample)
	if quick = sample[0].Value.Uint64() - quick; quick <= 1<<16 {
		return quick
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzDecode checks that no frame makes the decoder panic or allocate out of
// proportion, and that what was decoded survives encoding and decoding.
func FuzzDecode(f *testing.F) {
	seedFrames(f)
	f.Fuzz(func(t *testing.T, frame []byte, b byte) {
		s := fuzzSettings(b)
		var ds DataStructure
		var err error
		n := allocated(func() {
			d, _ := pair(s)
			ds, err = d.Decode(frame)
		})
		if most := uint64(1<<16 + 256*len(frame)); n > most {
			t.Errorf("%d bytes allocated for a frame of %d", n, len(frame))
		}
		if err != nil {
			if !errors.Is(err, message.ErrInvalid) && !errors.Is(err, message.ErrOverLimit) || ds != nil {
				t.Errorf("decoded to %v, %v", ds, err)
			}
			return
		}
		d, e := pair(s)
		again, err := e.Append(nil, ds)
		if errors.Is(err, message.ErrOverLimit) { // a string that is longer in its proper form
			return
		}
		if err != nil {
			t.Fatalf("encode %+v: %v", ds, err)
		}
		back, err := d.Decode(again[4:])
		if err != nil || !reflect.DeepEqual(ds, back) {
			t.Fatalf("%+v\ncomes back as\n%+v, %v", ds, back, err)
		}
	})
}

// FuzzStream decodes a stream of frames with one cache, and sends what it was
// over another connection. A decoder that is only lent the frames, and uses its
// results again, gives the same.
func FuzzStream(f *testing.F) {
	for _, s := range []byte{2 | 11<<4, 3 | 11<<4, 11 | 11<<4} {
		_, e := pair(fuzzSettings(s))
		var stream []byte
		for _, o := range benchObjects {
			stream, _ = e.Append(stream, o.ds)
		}
		f.Add(stream, s)
	}
	f.Fuzz(func(t *testing.T, stream []byte, b byte) {
		d, _ := pair(fuzzSettings(b))
		lent, _ := pair(fuzzSettings(b))
		back, e := pair(fuzzSettings(b ^ 1))
		for r := bytes.NewReader(stream); ; {
			frame, err := ReadFrame(r, 1<<20)
			if err != nil {
				return
			}
			ds, err := d.Decode(frame)
			copied := bytes.Clone(frame)
			same, lentErr := lent.DecodeLent(copied)
			clear(copied)
			if (err == nil) != (lentErr == nil) || !reflect.DeepEqual(ds, same) {
				t.Fatalf("%+v, %v\nof a lent frame is\n%+v, %v", ds, err, same, lentErr)
			}
			if err != nil {
				return
			}
			lent.Reuse(same)
			again, err := e.Append(nil, ds)
			if errors.Is(err, message.ErrOverLimit) {
				continue
			}
			if err != nil {
				t.Fatalf("encode %+v: %v", ds, err)
			}
			got, err := back.Decode(again[4:])
			if err != nil || !reflect.DeepEqual(ds, got) {
				t.Fatalf("%+v\ncomes back as\n%+v, %v", ds, got, err)
			}
		}
	})
}

// FuzzProperties checks maps: no panic, bounded memory, the round trip, and that
// lookup and merge agree with decoding.
func FuzzProperties(f *testing.F) {
	all, err := AppendMap(nil, everyType)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all[:len(all)-9000], "null")
	f.Add(join(int32(2), int16(1), "a", 9, int16(6), "\xed\xa0\xbd\xed\xb8\x80", int16(2), "\xc0\x80", 11, int32(-1)), "a")
	f.Add(join(int32(1), int16(1), "a", 12, int32(2), 0, 12, int32(0)), "\x00")
	for _, name := range vectorNames(f, isTypeVector) {
		var file typeVectors
		loadVector(f, name, &file)
		for _, c := range file.Cases {
			if m, ok := c.Fields["marshalledProperties"].(string); ok {
				f.Add(unhex(f, m), "string")
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		var m Map
		var err error
		n := allocated(func() { m, err = DecodeMap(b) })
		if most := uint64(1<<16 + 256*len(b)); n > most {
			t.Errorf("%d bytes allocated for a map of %d", n, len(b))
		}
		v, found, lookupErr := LookupProperty(b, key)
		merged, mergeErr := MergeProperties(nil, b, Map{{key, int32(1)}})
		if err != nil {
			return
		}
		again, err := AppendMap(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeMap(again); err != nil || !cmp.Equal(m, back, sameValues) {
			t.Fatalf("%+v comes back as %+v, %v", m, back, err)
		}
		want, ok := m.Value(key)
		if lookupErr != nil || found != ok || !cmp.Equal(v, want, sameValues) {
			t.Fatalf("%q is %v, %t, %v; want %v, %t", key, v, found, lookupErr, want, ok)
		}
		checkMerged(t, m, key, merged, mergeErr)
	})
}

// checkMerged wants merged to be m with key set to 1.
func checkMerged(t *testing.T, m Map, key string, merged []byte, err error) {
	t.Helper()
	if len(appendModifiedUTF(nil, key)) > 1<<16-1 {
		wantKind(t, err, message.ErrOverLimit)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	clean, _ := decodeUTF(appendModifiedUTF(nil, key)) // what of key can be written
	want := Map{}
	for _, e := range m {
		if e.Key != key {
			want = append(want, e)
		}
	}
	want = append(want, Entry{clean, int32(1)})
	if got, err := DecodeMap(merged); err != nil || !cmp.Equal(want, got, sameValues) {
		t.Fatalf("merged to %+v, %v; want %+v", got, err, want)
	}
}

// FuzzString checks that every string survives, in both forms.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "abc", "\xc0\x80", "\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98\x80", "\xed\xa0\xbd", "é你"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := decodeUTF(b)
		if !ok {
			return
		}
		for _, form := range [][]byte{appendModifiedUTF(nil, s), []byte(s)} {
			if back, ok := decodeUTF(form); !ok || back != s {
				t.Fatalf("%q comes back as %q", s, back)
			}
		}
		if strings.Contains(s, "\xed\xa0\xbd\xed\xb8\x80") {
			t.Fatalf("%q holds a pair of surrogates", s)
		}
	})
}

// FuzzBody checks that no content makes the decoder panic or exceed its limit.
func FuzzBody(f *testing.F) {
	for _, name := range vectorNames(f, isTypeVector) {
		var file typeVectors
		loadVector(f, name, &file)
		for _, c := range file.Cases {
			if content, ok := c.Fields["content"].(string); ok && len(content) < 5000 {
				f.Add(file.Code, unhex(f, content), c.Fields["compressed"].(bool))
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, content []byte, compressed bool) {
		const limit = 10_000
		var body Body
		var err error
		n := allocated(func() { body, err = DecodeBody(message.BodyKind(kind), content, compressed, limit) })
		if most := uint64(1<<18 + 256*max(len(content), limit)); n > most {
			t.Errorf("%d bytes allocated for %d", n, len(content))
		}
		if err == nil && compressed && len(body.Bytes) > limit {
			t.Errorf("inflated to %d bytes", len(body.Bytes))
		}
	})
}
