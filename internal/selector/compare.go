package selector

import (
	"strconv"
	"strings"
)

// relation is a comparison operator.
type relation uint8

const (
	equal relation = iota
	unequal
	less
	lessOrEqual
	greater
	greaterOrEqual
)

// relations are the operators as written.
var relations = map[string]relation{"=": equal, "<>": unequal, "<": less, "<=": lessOrEqual, ">": greater, ">=": greaterOrEqual}

// A comparison compares two values.
type comparison struct {
	op          relation
	left, right node
	convert     bool // a string compares by what it says
}

func (n *comparison) eval(l Lookup) Value {
	left := n.left.eval(l)
	if left.kind == Null {
		return left
	}
	l.Charge(len(left.text) / 16)
	return compare(n.op, left, n.right.eval(l), n.convert)
}

// A between is BETWEEN, or NOT BETWEEN where negated: a shorthand for two
// comparisons (JMS 3.8.1.1), of which the value is looked up once.
type between struct {
	of, low, high node
	negated       bool
	convert       bool
}

func (n *between) eval(l Lookup) Value {
	v := n.of.eval(l)
	if v.kind == Null {
		return v
	}
	lower, upper := greaterOrEqual, lessOrEqual // both must hold
	if n.negated {
		lower, upper = less, greater // one must
	}
	first := compare(lower, v, n.low.eval(l), n.convert)
	if first.kind == Bool && first.isTrue() == n.negated {
		return first
	}
	second := compare(upper, v, n.high.eval(l), n.convert)
	if first.kind == Null && !(second.kind == Bool && second.isTrue() == n.negated) {
		return first
	}
	return second
}

// compare compares two values (JMS 3.8.1.2): unknown if one is NULL, false if
// they are of kinds that do not compare, whatever the operator.
func compare(op relation, left, right Value, convert bool) Value {
	switch {
	case left.kind == Null || right.kind == Null:
		return Value{}
	case left.isNumber() && right.isNumber():
		return BoolValue(compareNumbers(op, left, right))
	case left.kind == right.kind:
		return BoolValue(compareLike(op, left, right))
	case !convert:
		return BoolValue(false)
	case left.kind == String:
		left = converted(left.text, right.kind)
	case right.kind == String:
		right = converted(right.text, left.kind)
	}
	if left.kind != right.kind { // the string did not say such a value, or there was none
		return BoolValue(false)
	}
	return compare(op, left, right, false)
}

// compareNumbers compares exactly where both numbers are exact, else as doubles:
// Java's numeric promotion.
func compareNumbers(op relation, left, right Value) bool {
	if left.kind == Int && right.kind == Int {
		return holds(op, left.int() == right.int(), left.int() < right.int(), left.int() > right.int())
	}
	l, r := left.float(), right.float()
	return holds(op, l == r, l < r, l > r)
}

// holds reports whether op holds of two values that are equal, or less, or
// greater. Where they are none of these (one is no number) nothing holds but
// "<>".
func holds(op relation, eq, lt, gt bool) bool {
	switch op {
	case equal:
		return eq
	case unequal:
		return !eq
	case less:
		return lt
	case lessOrEqual:
		return lt || eq
	case greater:
		return gt
	}
	return gt || eq
}

// compareLike compares two strings or two booleans, which have no order (JMS
// 3.8.1.1), or two values that do not compare.
func compareLike(op relation, left, right Value) bool {
	if left.kind == Opaque {
		return false
	}
	same := left.bits == right.bits && left.text == right.text
	return op == equal && same || op == unequal && !same
}

// converted reads a string as a value of the given kind; NULL where it says
// none. It is what "convert_string_expressions:" asks for, with the forms that
// Java's valueOf reads.
func converted(s string, to Kind) Value {
	switch to {
	case Bool:
		return BoolValue(strings.EqualFold(s, "true"))
	case Int:
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return IntValue(i)
		}
	case Float:
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return FloatValue(f)
		}
	}
	return Value{}
}
