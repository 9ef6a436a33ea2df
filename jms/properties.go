package jms

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// Char is Java's char, a UTF-16 unit.
type Char uint16

// Properties are the properties of a message. A value is one of
//
//	nil, bool, int8, int16, int32, int64, float32, float64, string, Char, []byte,
//	map[string]any and []any (nested, an addition of ActiveMQ)
//
// and, when sending, also int, which becomes a Java long, and uint8, a byte. The
// methods convert as JMS 3.5.4 allows; what it does not allow is ErrMessageFormat.
type Properties map[string]any

// Bool is a boolean, or a string that says "true" or "false". A property that is
// missing is false, as Boolean.valueOf(null) is.
func (p Properties) Bool(name string) (bool, error) {
	switch v := p[name].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case string:
		return v == "true", nil
	default:
		return false, unconvertible(name, v, "a bool")
	}
}

// Int32 is an integer of at most 32 bits, or a string of one.
func (p Properties) Int32(name string) (int32, error) {
	n, err := p.integer(name, 32)
	return int32(n), err
}

// Int64 is an integer, or a string of one.
func (p Properties) Int64(name string) (int64, error) { return p.integer(name, 64) }

func (p Properties) integer(name string, bits int) (int64, error) {
	var n int64
	size := 64
	switch v := p[name].(type) {
	case int8:
		n, size = int64(v), 8
	case uint8:
		n, size = int64(v), 8
	case int16:
		n, size = int64(v), 16
	case int32:
		n, size = int64(v), 32
	case int64:
		n = v
	case int:
		n = int64(v)
	case string:
		n, err := strconv.ParseInt(v, 10, bits)
		if err != nil {
			return 0, &Error{Op: "property " + name, Kind: ErrMessageFormat, Err: err}
		}
		return n, nil
	default:
		return 0, unconvertible(name, v, "an integer")
	}
	if size > bits {
		return 0, unconvertible(name, p[name], fmt.Sprintf("an integer of %d bits", bits))
	}
	return n, nil
}

// Float64 is a floating-point number, or a string of one.
func (p Properties) Float64(name string) (float64, error) {
	switch v := p[name].(type) {
	case float32:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return 0, &Error{Op: "property " + name, Kind: ErrMessageFormat, Err: err}
		}
		return f, nil
	default:
		return 0, unconvertible(name, v, "a float")
	}
}

// String is any simple value as text; "" where the property is missing.
func (p Properties) String(name string) (string, error) {
	switch v := p[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case Char:
		return string(rune(v)), nil
	case bool, int, int8, uint8, int16, int32, int64, float32, float64:
		return fmt.Sprint(v), nil
	default:
		return "", unconvertible(name, v, "a string")
	}
}

func unconvertible(name string, v any, to string) error {
	return &Error{Op: "property " + name, Kind: ErrMessageFormat, Text: fmt.Sprintf("a %T cannot be read as %s", v, to)}
}

// toMap gives values their types on the wire, in the order of their names, so that
// the same map gives the same bytes.
func toMap(m map[string]any) (wire.Map, error) {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make(wire.Map, 0, len(m))
	for _, name := range names {
		if name == "" {
			return nil, &Error{Op: "encode", Kind: ErrMessageFormat, Text: "a name is empty"}
		}
		v, err := toValue(m[name])
		if err != nil {
			return nil, &Error{Op: "encode " + name, Kind: ErrMessageFormat, Err: err}
		}
		out = append(out, wire.Entry{Key: name, Value: v})
	}
	return out, nil
}

func toValue(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int8, int16, int32, int64, float32, float64, string, []byte:
		return v, nil
	case int:
		return int64(v), nil
	case uint8:
		return int8(v), nil
	case Char:
		return wire.Char(v), nil
	case Map:
		return toMap(v)
	case map[string]any:
		return toMap(v)
	case []any:
		return toList(v)
	case Stream:
		return toList(v)
	}
	return nil, fmt.Errorf("a %T has no form in JMS", v)
}

func toList(values []any) (wire.List, error) {
	list := make(wire.List, 0, len(values))
	for _, v := range values {
		w, err := toValue(v)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// fromMap is a map of the wire in Go's types.
func fromMap(m wire.Map) map[string]any {
	out := make(map[string]any, len(m))
	for _, e := range m {
		out[e.Key] = fromValue(e.Value)
	}
	return out
}

func fromValue(v any) any {
	switch v := v.(type) {
	case wire.Char:
		return Char(v)
	case wire.Map:
		return fromMap(v)
	case wire.List:
		return fromList(v)
	}
	return v
}

func fromList(list wire.List) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = fromValue(v)
	}
	return out
}
