package selector

import (
	"math"
	"strconv"
)

// Kind says what a Value holds.
type Kind uint8

// The kinds of value. The zero kind is NULL.
const (
	Null   Kind = iota
	Bool        // boolean
	Int         // byte, short, int and long
	Float       // float and double
	String      // String, and char
	Opaque      // present, but nothing that compares: a byte array, say
)

// A Value is a header field, a property or a result. The zero Value is NULL.
type Value struct {
	kind Kind
	bits uint64 // Int: the number; Float: its bits; Bool: 1 or 0
	text string // String
}

// NullValue is NULL, the zero Value.
func NullValue() Value { return Value{} }

// BoolValue makes a boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, bits: 1}
	}
	return Value{kind: Bool}
}

// IntValue makes an exact number; byte, short, int and long all become one.
func IntValue(i int64) Value { return Value{kind: Int, bits: uint64(i)} }

// FloatValue makes an approximate number.
func FloatValue(f float64) Value { return Value{kind: Float, bits: math.Float64bits(f)} }

// StringValue makes a string.
func StringValue(s string) Value { return Value{kind: String, text: s} }

// OpaqueValue makes a value that is present and compares with nothing.
func OpaqueValue() Value { return Value{kind: Opaque} }

// Kind says what v holds.
func (v Value) Kind() Kind { return v.kind }

// Text gives a string, or an exact number in digits; "" for all else.
func (v Value) Text() string {
	if v.kind == Int {
		return strconv.FormatInt(v.int(), 10)
	}
	return v.text
}

// Is reports whether v is the given string.
func (v Value) Is(text string) bool { return v.kind == String && v.text == text }

// isTrue and isFalse leave out what is unknown, and what is no boolean.
func (v Value) isTrue() bool  { return v.kind == Bool && v.bits == 1 }
func (v Value) isFalse() bool { return v.kind == Bool && v.bits == 0 }

// isNumber reports whether v can be reckoned with.
func (v Value) isNumber() bool { return v.kind == Int || v.kind == Float }

// int gives an Int's number.
func (v Value) int() int64 { return int64(v.bits) }

// float gives a number as an approximate one.
func (v Value) float() float64 {
	if v.kind == Int {
		return float64(v.int())
	}
	return math.Float64frombits(v.bits)
}
