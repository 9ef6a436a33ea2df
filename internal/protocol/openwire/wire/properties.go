package wire

import (
	"encoding/binary"
	"fmt"
)

// DecodeMap decodes a primitive map: Message.MarshalledProperties, or the
// content of a map message. nil and the null map give nil. Byte arrays in the
// result alias b. Anything else than exactly one map is message.ErrInvalid.
func DecodeMap(b []byte) (Map, error) {
	if b == nil {
		return nil, nil
	}
	r := reader{b: b}
	m := r.primitiveMap()
	if r.err == nil && r.p != len(b) {
		r.fail("%d surplus bytes", len(b)-r.p)
	}
	if r.err != nil {
		return nil, fmt.Errorf("decode map: %w", r.err)
	}
	return m, nil
}

// AppendMap appends m as a primitive map, the null map where m is nil. Its
// string values are written in standard UTF-8, those inside nested maps and
// lists in modified UTF-8 (OpenWire 6.3). A value of a type that has no code is
// message.ErrInvalid, too long a key message.ErrOverLimit.
func AppendMap(dst []byte, m Map) ([]byte, error) { return appendMap(dst, m, true, 0) }

// LookupProperty finds one value of a primitive map without decoding the
// others, and allocates nothing but the value. ok is false where there is no
// such key.
func LookupProperty(b []byte, key string) (v any, ok bool, err error) {
	if b == nil {
		return nil, false, nil
	}
	r := reader{b: b}
	at := -1
	for n := r.entries(); n > 0 && r.err == nil; n-- {
		found := sameKey(r.take(int(r.uint16())), key)
		if found {
			at = r.p
		}
		r.skipValue()
	}
	if r.err == nil && at >= 0 {
		r.p = at
		v, ok = r.value(), true
	}
	if r.err != nil {
		return nil, false, fmt.Errorf("look up property: %w", r.err)
	}
	return v, ok, nil
}

// sameKey compares a key on the wire with a Go string.
func sameKey(raw []byte, key string) bool {
	if string(raw) == key {
		return true
	}
	for _, c := range raw {
		if c >= 0x80 {
			s, ok := decodeUTF(raw)
			return ok && s == key
		}
	}
	return false
}

// MergeProperties appends to dst the primitive map b with the entries of add
// put at its end. Entries of b with a key of add are left out, all others keep
// their bytes. dst and b must not overlap. b may be nil or the null map. A b that is no map is
// message.ErrInvalid; dst comes back as it was where there is an error.
func MergeProperties(dst, b []byte, add Map) ([]byte, error) {
	start := len(dst)
	out, kept, err := keepProperties(dst, b, add)
	if err != nil {
		return dst, err
	}
	for _, e := range add {
		if out, err = appendEntry(out, e, true, 0); err != nil {
			return dst, fmt.Errorf("merge properties: %w", err)
		}
	}
	binary.BigEndian.PutUint32(out[start:], uint32(kept+len(add)))
	return out, nil
}

// keepProperties appends to dst room for the number of entries, and those entries of
// b whose key is not among others, kept of them.
func keepProperties(dst, b []byte, others Map) (out []byte, kept int, err error) {
	out = append(dst, 0, 0, 0, 0)
	if b == nil {
		return out, 0, nil
	}
	r := reader{b: b}
	for n := r.entries(); n > 0 && r.err == nil; n-- {
		from := r.p
		raw := r.take(int(r.uint16()))
		r.skipValue()
		if !hasKey(others, raw) {
			out = append(out, b[from:r.p]...)
			kept++
		}
	}
	if r.err == nil && r.p != len(b) {
		r.fail("%d surplus bytes", len(b)-r.p)
	}
	if r.err != nil {
		return dst, 0, fmt.Errorf("merge properties: %w", r.err)
	}
	return out, kept, nil
}

// DropProperties is the primitive map b without some keys, as new bytes; nil where
// nothing is left. A b that is no map is message.ErrInvalid.
func DropProperties(b []byte, keys ...string) ([]byte, error) {
	drop := make(Map, len(keys))
	for i, key := range keys {
		drop[i].Key = key
	}
	out, kept, err := keepProperties(nil, b, drop)
	if err != nil || kept == 0 {
		return nil, err
	}
	binary.BigEndian.PutUint32(out, uint32(kept))
	return out, nil
}

func hasKey(m Map, raw []byte) bool {
	for i := range m {
		if sameKey(raw, m[i].Key) {
			return true
		}
	}
	return false
}
