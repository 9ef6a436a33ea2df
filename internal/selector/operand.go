package selector

import "math"

// relation reads values with < <= > >= LIKE BETWEEN or IN between them.
func (p *parser) relation() (operand, error) {
	left, err := p.sum()
	for err == nil {
		switch {
		case p.is("<"), p.is("<="), p.is(">"), p.is(">="):
			left, err = p.order(left)
		case p.is("NOT"), p.is("LIKE"), p.is("BETWEEN"), p.is("IN"):
			left, err = p.test(left)
		default:
			return left, nil
		}
	}
	return left, err
}

// ordered checks that o can be compared by order: it is a number, as far as is
// known.
func (p *parser) ordered(o operand) error {
	if o.class == anything || o.class == number {
		return nil
	}
	return p.wrong(o, "a number (strings and conditions have no order)")
}

// order reads a comparison by order and its right side.
func (p *parser) order(left operand) (operand, error) {
	op := relations[p.token.name]
	if err := p.ordered(left); err != nil {
		return left, err
	}
	if err := p.advance(); err != nil {
		return left, err
	}
	right, err := p.sum()
	if err != nil {
		return right, err
	}
	if err := p.ordered(right); err != nil {
		return right, err
	}
	return p.joined(&comparison{op, left.node, right.node, p.convert}, truth, left, right)
}

// test reads [NOT] LIKE, BETWEEN or IN, and what follows it.
func (p *parser) test(left operand) (operand, error) {
	negated, err := p.accept("NOT")
	if err != nil {
		return left, err
	}
	word := p.token.name
	switch {
	case p.is("LIKE"), p.is("BETWEEN"), p.is("IN"):
		if err := p.advance(); err != nil {
			return left, err
		}
	default:
		return left, p.unexpected("LIKE, BETWEEN or IN")
	}
	switch word {
	case "LIKE":
		return p.like(left, negated)
	case "BETWEEN":
		return p.between(left, negated)
	}
	return p.in(left, negated)
}

// like reads the pattern of LIKE.
func (p *parser) like(left operand, negated bool) (operand, error) {
	if left.class != anything && left.class != text {
		return left, p.wrong(left, "a property or a string")
	}
	s, err := p.literal()
	if err != nil {
		return left, err
	}
	escape, err := p.escape()
	if err != nil {
		return left, err
	}
	n := &like{left.node, newPattern(s, escape), negated}
	p.wild = p.wild || n.pattern.wild()
	return p.joined(n, truth, left)
}

// between reads the limits of BETWEEN.
func (p *parser) between(left operand, negated bool) (operand, error) {
	low, err := p.sum()
	if err != nil {
		return low, err
	}
	if err := p.expect("AND"); err != nil {
		return low, err
	}
	high, err := p.sum()
	if err != nil {
		return high, err
	}
	for _, o := range []operand{left, low, high} {
		if err := p.ordered(o); err != nil {
			return o, err
		}
	}
	return p.joined(&between{left.node, low.node, high.node, negated, p.convert}, truth, left, low, high)
}

// in reads the list of IN.
func (p *parser) in(left operand, negated bool) (operand, error) {
	if !left.name {
		return left, p.wrong(left, "a property")
	}
	if err := p.expect("("); err != nil {
		return left, err
	}
	n := &membership{of: left.node, negated: negated}
	for {
		s, err := p.literal()
		if err != nil {
			return left, err
		}
		n.list = append(n.list, s)
		if more, err := p.accept(","); err != nil {
			return left, err
		} else if more {
			continue
		}
		if !p.is(")") {
			return left, p.unexpected(`"," or ")"`)
		}
		if err := p.advance(); err != nil {
			return left, err
		}
		n.index()
		return p.joined(n, truth, left)
	}
}

// sum reads values with + or - between them.
func (p *parser) sum() (operand, error) {
	left, err := p.product()
	for err == nil && (p.is("+") || p.is("-")) {
		left, err = p.reckon(left, p.product)
	}
	return left, err
}

// product reads values with *, / or % between them.
func (p *parser) product() (operand, error) {
	left, err := p.unary()
	for err == nil && (p.is("*") || p.is("/") || p.is("%")) {
		left, err = p.reckon(left, p.unary)
	}
	return left, err
}

// reckon reads an arithmetic operator and its right side.
func (p *parser) reckon(left operand, level func() (operand, error)) (operand, error) {
	op := p.token.name[0]
	if err := p.advance(); err != nil {
		return left, err
	}
	right, err := level()
	if err != nil {
		return right, err
	}
	c := number
	switch {
	case left.class == truth:
		return left, p.wrong(left, "a number")
	case right.class == truth:
		return right, p.wrong(right, "a number")
	case op == '+' && left.class == text:
		c = text
	case left.class == text:
		return left, p.wrong(left, "a number")
	case right.class == text && (op != '+' || left.class == number):
		return right, p.wrong(right, "a number")
	case op == '+' && left.class == anything:
		c = anything // it may be a string
	}
	return p.joined(&arithmetic{op, left.node, right.node}, c, left, right)
}

// unary reads a value with signs, or NOT, before it.
func (p *parser) unary() (operand, error) {
	switch {
	case p.is("NOT"):
		return p.negation(p.unary)
	case !p.is("+") && !p.is("-"):
		return p.primary()
	}
	at, minus := p.token.at, p.is("-")
	if err := p.enter(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	if minus && p.token.minimum {
		return operand{node: literal{IntValue(math.MinInt64)}, class: number, literal: true, at: at}, p.advance()
	}
	o, err := p.unary()
	if err != nil {
		return o, err
	}
	if o.class == text || o.class == truth {
		return o, p.wrong(o, "a number")
	}
	made, err := p.joined(signed{o.node, minus}, number, o)
	made.at, made.literal = at, o.literal
	return made, err
}

// primary reads a literal, a name, or what stands in brackets.
func (p *parser) primary() (operand, error) {
	t := p.token
	names := p.names
	o := operand{at: t.at, literal: true}
	switch {
	case p.is("("):
		return p.bracket()
	case t.kind == nameToken:
		p.named(t.name)
		o.node, o.name, o.literal = property{t.name}, true, false
	case t.minimum:
		return o, p.unexpected("an integer of 64 bits")
	case t.kind == numberToken:
		o.node, o.class = literal{t.value}, number
	case t.kind == stringToken:
		o.node, o.class = literal{t.value}, text
	case p.is("TRUE"), p.is("FALSE"):
		o.node, o.class = literal{BoolValue(t.name == "TRUE")}, truth
	case p.is("NULL"):
		o.node, o.class = literal{}, nullClass
	case p.is("XPATH"), p.is("XQUERY"):
		return o, p.unexpected("a condition on header fields and properties: " + t.name + " is not supported")
	default:
		return o, p.unexpected("a name, a literal or a bracket")
	}
	if err := p.advance(); err != nil {
		return o, err
	}
	if o.name && p.is("(") {
		p.names = names
		o, err := p.call(t)
		if err == nil && o.class == listClass {
			return o, p.wrong(o, "a value (only INLIST takes a list)")
		}
		return o, err
	}
	return o, nil
}

// bracket reads an expression in brackets.
func (p *parser) bracket() (operand, error) {
	if err := p.enter(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	o, err := p.or()
	if err != nil {
		return o, err
	}
	if !p.is(")") {
		return o, p.unexpected(`an operator or ")"`)
	}
	return o, p.advance()
}
