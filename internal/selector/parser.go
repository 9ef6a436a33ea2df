package selector

import (
	"slices"
	"unicode/utf8"
)

// class is what is known of an expression before there is a message.
type class uint8

const (
	anything  class = iota // a property, or what is reckoned from one
	number                 // a number, or unknown
	text                   // a string, or unknown
	truth                  // a condition
	nullClass              // the literal NULL
	listClass              // a list, which only INLIST takes
)

// classes are the words for them in errors.
var classes = [...]string{anything: "a property", number: "a number", text: "a string", truth: "a condition", nullClass: "NULL", listClass: "a list"}

// An operand is a parsed part of a selector, with what its neighbours must know.
type operand struct {
	node    node
	class   class
	literal bool
	name    bool // it is a property, bare
	at      int  // where it begins
	depth   int  // how many levels of nodes it has
}

// A parser reads a selector by recursive descent, one method for each level of
// binding. token is the one that is looked at and not yet taken.
type parser struct {
	lexer
	convert bool // convert_string_expressions
	token   token
	depth   int // of brackets, NOT and signs around token
	names   []string
	wild    bool // there is a LIKE with a wildcard
}

// selector reads the whole text.
func (p *parser) selector() (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	o, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.token.kind != endToken {
		return nil, p.unexpected("an operator or the end")
	}
	return p.truth(o)
}

// advance takes the token and looks at the next.
func (p *parser) advance() (err error) {
	p.token, err = p.next()
	return err
}

// is reports whether the token is the given word or sign.
func (p *parser) is(name string) bool {
	return (p.token.kind == wordToken || p.token.kind == signToken) && p.token.name == name
}

// accept takes the token if it is the given word or sign.
func (p *parser) accept(name string) (bool, error) {
	if !p.is(name) {
		return false, nil
	}
	return true, p.advance()
}

// expect takes the token, which must be the given word or sign.
func (p *parser) expect(name string) error {
	if !p.is(name) {
		return p.unexpected(`"` + name + `"`)
	}
	return p.advance()
}

// unexpected makes the error for the token.
func (p *parser) unexpected(expected string) error {
	found := "the end"
	if p.token.kind != endToken {
		found = quoted(p.text[p.token.at:p.token.end])
	}
	return unexpected(p.text, p.token.at, found, expected)
}

// wrong makes the error for an operand of the wrong class.
func (p *parser) wrong(o operand, expected string) error {
	found := classes[o.class]
	if o.class == anything && !o.name {
		found = "a value"
	}
	return unexpected(p.text, o.at, found, expected)
}

// enter goes down one level of nesting; leave with p.depth--.
func (p *parser) enter() error {
	if p.depth++; p.depth > MaxDepth {
		return overLimit("depth:", p.depth, MaxDepth)
	}
	return nil
}

// joined gives an operand made of others.
func (p *parser) joined(n node, c class, parts ...operand) (operand, error) {
	o := operand{node: n, class: c, at: parts[0].at}
	for _, part := range parts {
		o.depth = max(o.depth, part.depth+1)
	}
	if o.depth > MaxDepth {
		return o, overLimit("depth:", o.depth, MaxDepth)
	}
	return o, nil
}

// truth gives o as a condition.
func (p *parser) truth(o operand) (node, error) {
	switch {
	case o.class == truth || o.class == nullClass:
		return o.node, nil
	case o.name:
		return condition{o.node}, nil
	}
	return nil, p.wrong(o, "a condition")
}

// or reads conditions with OR between them.
func (p *parser) or() (operand, error) {
	return p.chain("OR", p.and, func(terms []node) node { return &some{terms} })
}

// and reads conditions with AND between them.
func (p *parser) and() (operand, error) {
	return p.chain("AND", p.not, func(terms []node) node { return &all{terms} })
}

// chain reads operands of a level with the given word between them. One alone
// stays what it is.
func (p *parser) chain(word string, level func() (operand, error), build func([]node) node) (operand, error) {
	first, err := level()
	if err != nil || !p.is(word) {
		return first, err
	}
	parts, terms := []operand{first}, []node(nil)
	for {
		term, err := p.truth(parts[len(parts)-1])
		if err != nil {
			return first, err
		}
		terms = append(terms, term)
		if ok, err := p.accept(word); err != nil {
			return first, err
		} else if !ok {
			return p.joined(build(terms), truth, parts...)
		}
		next, err := level()
		if err != nil {
			return next, err
		}
		parts = append(parts, next)
	}
}

// not reads a condition with NOT before it, which binds looser than a
// comparison (JMS 3.8.1.1).
func (p *parser) not() (operand, error) {
	if !p.is("NOT") {
		return p.equality()
	}
	return p.negation(p.not)
}

// negation reads NOT and what it negates.
func (p *parser) negation(level func() (operand, error)) (operand, error) {
	at := p.token.at
	if err := p.enter(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	o, err := level()
	if err != nil {
		return o, err
	}
	n, err := p.truth(o)
	if err != nil {
		return o, err
	}
	o, err = p.joined(not{n}, truth, o)
	o.at = at
	return o, err
}

// equality reads values with = or <> between them, or IS NULL after them.
func (p *parser) equality() (operand, error) {
	left, err := p.relation()
	for err == nil {
		switch {
		case p.is("="), p.is("<>"):
			left, err = p.equal(left)
		case p.is("IS"):
			left, err = p.isNull(left)
		default:
			return left, nil
		}
	}
	return left, err
}

// equal reads = or <> and its right side.
func (p *parser) equal(left operand) (operand, error) {
	op := relations[p.token.name]
	if err := p.advance(); err != nil {
		return left, err
	}
	right, err := p.relation()
	if err != nil {
		return right, err
	}
	for _, o := range []operand{left, right} {
		if o.class == nullClass {
			return o, p.wrong(o, "a value (NULL is told by IS NULL)")
		}
	}
	if left.literal && right.literal && (left.class == truth) != (right.class == truth) {
		return right, p.wrong(right, classes[left.class])
	}
	return p.joined(&comparison{op, left.node, right.node, p.convert}, truth, left, right)
}

// isNull reads IS [NOT] NULL.
func (p *parser) isNull(left operand) (operand, error) {
	if err := p.advance(); err != nil {
		return left, err
	}
	negated, err := p.accept("NOT")
	if err != nil {
		return left, err
	}
	if err := p.expect("NULL"); err != nil {
		return left, err
	}
	return p.joined(isNull{left.node, negated}, truth, left)
}

// literal reads a string, and gives it.
func (p *parser) literal() (string, error) {
	if p.token.kind != stringToken {
		return "", p.unexpected("a string")
	}
	s := p.token.value.text
	return s, p.advance()
}

// escape reads [ESCAPE character]; 0 is none.
func (p *parser) escape() (rune, error) {
	if ok, err := p.accept("ESCAPE"); err != nil || !ok {
		return 0, err
	}
	t := p.token
	s, err := p.literal()
	if err != nil {
		return 0, err
	}
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || n != len(s) || r == utf8.RuneError {
		return 0, unexpected(p.text, t.at, quoted(p.text[t.at:t.end]), "a string of one character")
	}
	return r, nil
}

// named notes that the selector looks a name up.
func (p *parser) named(name string) {
	if !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
}
