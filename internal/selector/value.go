package selector

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
	i    int64 // Int; Bool: 1 or 0
	f    float64
	s    string
}

// NullValue is NULL, the zero Value.
func NullValue() Value { return Value{} }

// BoolValue makes a boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, i: 1}
	}
	return Value{kind: Bool}
}

// IntValue makes an exact number; byte, short, int and long all become one.
func IntValue(i int64) Value { return Value{kind: Int, i: i} }

// FloatValue makes an approximate number.
func FloatValue(f float64) Value { return Value{kind: Float, f: f} }

// StringValue makes a string.
func StringValue(s string) Value { return Value{kind: String, s: s} }

// OpaqueValue makes a value that is present and compares with nothing.
func OpaqueValue() Value { return Value{kind: Opaque} }

// Kind says what v holds.
func (v Value) Kind() Kind { return v.kind }
