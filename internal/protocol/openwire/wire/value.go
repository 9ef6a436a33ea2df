package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/nixiemq/nixie/internal/message"
)

// A value of a property, or in a map or stream body, is one of these Go types
// (OpenWire 6.1):
//
//	nil, bool, int8, Char, int16, int32, int64, float32, float64, string, []byte, Map, List
//
// Strings are short or big by their length; the wire's two codes are one type
// here.

// A Char is a UTF-16 unit.
type Char uint16

// A Map is a primitive map in its order on the wire, which means nothing. Of
// entries with the same key the last one counts.
type Map []Entry

// An Entry is a key of a Map and its value.
type Entry struct {
	Key   string
	Value any
}

// A List is a list of values.
type List []any

// Value is the value of key, and false where m has no such key.
func (m Map) Value(key string) (any, bool) {
	for i := len(m) - 1; i >= 0; i-- {
		if m[i].Key == key {
			return m[i].Value, true
		}
	}
	return nil, false
}

// The type codes of primitive values.
const (
	primNull byte = iota
	primBoolean
	primByte
	primChar
	primShort
	primInteger
	primLong
	primDouble
	primFloat
	primString
	primByteArray
	primMap
	primList
	primBigString
)

// bigStringUnits is the length in UTF-16 units from which a string is big.
const bigStringUnits = 8191

// value reads one value. Byte arrays alias the input.
func (r *reader) value() any {
	switch code := r.uint8(); code {
	case primNull:
		return nil
	case primBoolean:
		return r.uint8() != 0
	case primByte:
		return r.int8()
	case primChar:
		return Char(r.uint16())
	case primShort:
		return r.int16()
	case primInteger:
		return r.int32()
	case primLong:
		return int64(r.uint64())
	case primDouble:
		return math.Float64frombits(r.uint64())
	case primFloat:
		return math.Float32frombits(r.uint32())
	case primString:
		return r.utf(int(r.uint16()))
	case primBigString:
		return r.utf(int(r.int32()))
	case primByteArray:
		return r.take(int(r.int32()))
	case primMap:
		return r.innerMap()
	case primList:
		return r.list()
	default:
		r.fail("unknown primitive type %d", code)
		return nil
	}
}

func (r *reader) utf(n int) string { return r.decoded(r.take(n), false) }

// innerMap reads a map within a map or list.
func (r *reader) innerMap() any {
	if !r.deeper() {
		return nil
	}
	m := r.primitiveMap()
	r.depth--
	return m
}

// primitiveMap reads a map, nil for the null map.
func (r *reader) primitiveMap() Map {
	n := r.entries()
	if n < 0 {
		return nil
	}
	m := make(Map, 0, min(n, 64))
	for range n {
		e := Entry{r.utf(int(r.uint16())), r.value()}
		if r.err != nil {
			return nil
		}
		m = append(m, e)
	}
	return m
}

// entries reads the length of a map, -1 for the null map and after an error.
func (r *reader) entries() int {
	n := int(r.int32())
	if n > (len(r.b)-r.p)/3 { // an entry has 3 bytes at least
		r.fail("map of %d entries", n)
	}
	if r.err != nil {
		return -1
	}
	return n
}

func (r *reader) list() any {
	n := int(r.int32())
	if n < 0 || n > len(r.b)-r.p {
		r.fail("list of %d elements", n)
		return nil
	}
	if !r.deeper() {
		return nil
	}
	list := make(List, 0, min(n, 64))
	for range n {
		v := r.value()
		if r.err != nil {
			return nil
		}
		list = append(list, v)
	}
	r.depth--
	return list
}

// skipValue passes over one value.
func (r *reader) skipValue() {
	switch code := r.uint8(); code {
	case primNull:
	case primBoolean, primByte:
		r.take(1)
	case primChar, primShort:
		r.take(2)
	case primInteger, primFloat:
		r.take(4)
	case primLong, primDouble:
		r.take(8)
	case primString:
		r.take(int(r.uint16()))
	case primBigString, primByteArray:
		r.take(int(r.int32()))
	case primMap, primList:
		r.skipNested(code)
	default:
		r.fail("unknown primitive type %d", code)
	}
}

func (r *reader) skipNested(code byte) {
	if !r.deeper() {
		return
	}
	n := int(r.int32())
	if code == primList && n < 0 {
		r.fail("list of %d elements", n)
	}
	for i := 0; i < n && r.err == nil; i++ {
		if code == primMap {
			r.take(int(r.uint16()))
		}
		r.skipValue()
	}
	r.depth--
}

// appendValue appends a value. Strings at the top level of a map are standard
// UTF-8, all others modified UTF-8: that is how Java reads them (OpenWire 6.3).
func appendValue(dst []byte, v any, top bool, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, primNull), nil
	case bool:
		if v {
			return append(dst, primBoolean, 1), nil
		}
		return append(dst, primBoolean, 0), nil
	case int8:
		return append(dst, primByte, byte(v)), nil
	case Char:
		return binary.BigEndian.AppendUint16(append(dst, primChar), uint16(v)), nil
	case int16:
		return binary.BigEndian.AppendUint16(append(dst, primShort), uint16(v)), nil
	case int32:
		return binary.BigEndian.AppendUint32(append(dst, primInteger), uint32(v)), nil
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, primLong), uint64(v)), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, primDouble), math.Float64bits(v)), nil
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, primFloat), math.Float32bits(v)), nil
	case string:
		return appendString(dst, v, top), nil
	case []byte:
		dst = binary.BigEndian.AppendUint32(append(dst, primByteArray), uint32(len(v)))
		return append(dst, v...), nil
	case Map:
		return appendMap(append(dst, primMap), v, false, depth+1)
	case List:
		return appendList(dst, v, depth+1)
	}
	return nil, fmt.Errorf("value of type %T: %w", v, message.ErrInvalid)
}

func appendString(dst []byte, s string, top bool) []byte {
	code, size := primString, 2
	if len(s) >= bigStringUnits && utf16Len(s) >= bigStringUnits {
		code, size = primBigString, 4
	}
	dst = append(dst, code)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)[:at+size]
	if top {
		dst = append(dst, s...)
	} else {
		dst = appendModifiedUTF(dst, s)
	}
	n := len(dst) - at - size
	if size == 2 {
		binary.BigEndian.PutUint16(dst[at:], uint16(n))
	} else {
		binary.BigEndian.PutUint32(dst[at:], uint32(n))
	}
	return dst
}

func appendMap(dst []byte, m Map, top bool, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values nested deeper than %d: %w", maxDepth, message.ErrOverLimit)
	}
	if m == nil {
		return binary.BigEndian.AppendUint32(dst, math.MaxUint32), nil
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(m)))
	for _, e := range m {
		var err error
		if dst, err = appendEntry(dst, e, top, depth); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func appendEntry(dst []byte, e Entry, top bool, depth int) ([]byte, error) {
	dst, err := appendKey(dst, e.Key)
	if err != nil {
		return nil, err
	}
	if dst, err = appendValue(dst, e.Value, top, depth); err != nil {
		return nil, fmt.Errorf("entry %q: %w", e.Key, err)
	}
	return dst, nil
}

// appendKey appends a key, which has no big form.
func appendKey(dst []byte, key string) ([]byte, error) {
	at := len(dst)
	dst = appendModifiedUTF(append(dst, 0, 0), key)
	n := len(dst) - at - 2
	if n > math.MaxUint16 {
		return nil, fmt.Errorf("key of %d bytes: %w", n, message.ErrOverLimit)
	}
	binary.BigEndian.PutUint16(dst[at:], uint16(n))
	return dst, nil
}

func appendList(dst []byte, list List, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values nested deeper than %d: %w", maxDepth, message.ErrOverLimit)
	}
	dst = binary.BigEndian.AppendUint32(append(dst, primList), uint32(len(list)))
	for _, v := range list {
		var err error
		if dst, err = appendValue(dst, v, false, depth); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
