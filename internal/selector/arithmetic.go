package selector

import (
	"math"
	"strconv"
)

// An arithmetic is + - * / % of two values: NULL if one is NULL, or no number.
// + - and * of two integers are exact and wrap at 64 bits; / and % are always of
// doubles, as in ActiveMQ's ArithmeticExpression, so that division by 0 gives
// what it gives for doubles in Java.
type arithmetic struct {
	op          byte
	left, right node
}

func (n *arithmetic) eval(l Lookup) Value {
	left := n.left.eval(l)
	if left.kind == Null {
		return left
	}
	right := n.right.eval(l)
	switch {
	case left.isNumber() && right.isNumber():
		return n.numbers(left, right)
	case left.kind == String && n.op == '+':
		v := join(left.text, right)
		l.Charge(len(v.text) / 4)
		if len(v.text) > maxMadeBytes {
			return Value{}
		}
		return v
	}
	return Value{}
}

// numbers reckons with two numbers.
func (n *arithmetic) numbers(left, right Value) Value {
	if left.kind == Int && right.kind == Int {
		switch n.op {
		case '+':
			return IntValue(left.int() + right.int())
		case '-':
			return IntValue(left.int() - right.int())
		case '*':
			return IntValue(left.int() * right.int())
		}
	}
	l, r := left.float(), right.float()
	switch n.op {
	case '+':
		return FloatValue(l + r)
	case '-':
		return FloatValue(l - r)
	case '*':
		return FloatValue(l * r)
	case '/':
		return FloatValue(l / r)
	}
	return FloatValue(math.Mod(l, r))
}

// join puts a value after a string. Approximate numbers are left out: how Java
// writes them is no business of a selector.
func join(s string, v Value) Value {
	switch v.kind {
	case String:
		return StringValue(s + v.text)
	case Int:
		return StringValue(s + strconv.FormatInt(v.int(), 10))
	case Bool:
		return StringValue(s + strconv.FormatBool(v.isTrue()))
	}
	return Value{}
}

// A signed is a value with a plus or minus before it: NULL if it is no number.
type signed struct {
	of    node
	minus bool
}

func (n signed) eval(l Lookup) Value {
	v := n.of.eval(l)
	switch {
	case !v.isNumber():
		return Value{}
	case !n.minus:
		return v
	case v.kind == Int:
		return IntValue(-v.int())
	}
	return FloatValue(-v.float())
}
