package selector

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// ActiveMQ's functions (org.apache.activemq.filter.function), whose names have only
// capitals:
//
//	REGEX(pattern, value)            whether the value, as text, has a match anywhere
//	REPLACE(value, pattern, new)     all matches replaced; new may name groups: $1
//	SPLIT(value, pattern[, limit])   a list, as Java's String.split makes it
//	MAKELIST(value, ...)             a list
//	INLIST(list, value)              whether the list has the value
//
// Only INLIST takes a list. Conditions are false for a value that is NULL, as there;
// what is reckoned from NULL, or from what is no string, is NULL.
//
// Patterns are those of RE2: linear in time, and so without what Java's have beyond
// it (look-around, back references).

const (
	// maxPatternBytes is the longest pattern of a function.
	maxPatternBytes = 1 << 10
	// maxPatternSize is how many instructions a pattern may need: what it costs to match
	// it is in proportion, and "a{1000}" has a thousand.
	maxPatternSize = 2 * maxPatternBytes
	// compileSteps is what it costs to compile a pattern for each byte of it.
	compileSteps = 500
)

// A function makes an operand of its arguments.
type function struct {
	least, most int  // arguments; most 0: any number
	pattern     int  // which of them is a pattern; -1: none
	list        bool // the first is a list
	class       class
	build       func(a arguments) node
}

// arguments are those of one call.
type arguments struct {
	nodes   []node
	pattern expression
}

var functions = map[string]function{
	"REGEX":    {2, 2, 0, false, truth, func(a arguments) node { return &regex{a.pattern, a.nodes[1]} }},
	"REPLACE":  {3, 3, 1, false, text, func(a arguments) node { return &replace{a.nodes[0], a.pattern, a.nodes[2]} }},
	"SPLIT":    {2, 3, 1, false, listClass, func(a arguments) node { return &split{a.nodes[0], a.pattern, a.nodes[2:]} }},
	"MAKELIST": {1, 0, -1, false, listClass, func(a arguments) node { return &list{a.nodes} }},
	"INLIST":   {2, 2, -1, true, truth, func(a arguments) node { return &inList{a.nodes[0].(lister), a.nodes[1]} }},
}

// call reads the arguments of a function, whose name was read, and the bracket behind
// it.
func (p *parser) call(name token) (operand, error) {
	f, known := functions[name.name]
	if !known {
		return operand{}, p.unexpected("an operator: there are no functions such as " + quoted(name.name))
	}
	if err := p.enter(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	var parts []operand
	for more := true; more; {
		argument := p.unary
		if f.list && len(parts) == 0 {
			argument = p.list
		}
		o, err := argument()
		if err != nil {
			return o, err
		}
		parts = append(parts, o)
		if more, err = p.accept(","); err != nil {
			return o, err
		}
	}
	if !p.is(")") {
		return operand{}, p.unexpected(`"," or ")"`)
	}
	if n := len(parts); n < f.least || f.most > 0 && n > f.most {
		return operand{}, unexpected(p.text, name.at, fmt.Sprintf("%s with %d arguments", name.name, n), fmt.Sprintf("%d", f.least))
	}
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	var a arguments
	for i, o := range parts {
		a.nodes = append(a.nodes, o.node)
		if i == f.pattern {
			var err error
			if a.pattern, err = p.pattern(o); err != nil {
				return o, err
			}
		}
	}
	o, err := p.joined(f.build(a), f.class, parts...)
	o.at = name.at
	return o, err
}

// list reads a call that makes a list.
func (p *parser) list() (operand, error) {
	t := p.token
	if t.kind != nameToken || functions[t.name].class != listClass {
		return operand{}, p.unexpected("a list, by SPLIT or MAKELIST")
	}
	if err := p.advance(); err != nil {
		return operand{}, err
	}
	if !p.is("(") {
		return operand{}, p.unexpected(`"("`)
	}
	return p.call(t)
}

// An expression is a regular expression: one that is written down is compiled once.
type expression struct {
	fixed *program
	of    node
}

// A program is a compiled pattern.
type program struct {
	*regexp.Regexp
	size int // instructions
}

// charge adds what matching a string costs, at the most.
func (x *program) charge(l Lookup, s string) { l.Charge(len(s) * (1 + 4*x.size)) }

func (p *parser) pattern(o operand) (expression, error) {
	s, ok := o.node.(literal)
	if !ok {
		return expression{of: o.node}, nil
	}
	if s.value.kind != String {
		return expression{}, p.wrong(o, "a string with a pattern")
	}
	re, err := compile(s.value.text)
	if err != nil {
		return expression{}, unexpected(p.text, o.at, quoted(s.value.text), "a pattern as RE2 has them: "+err.Error())
	}
	return expression{fixed: re}, nil
}

func compile(s string) (*program, error) {
	if len(s) > maxPatternBytes {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(s), maxPatternBytes)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	code, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(code.Inst); n > maxPatternSize {
		return nil, fmt.Errorf("with its repetitions written out it has %d parts, the limit is %d", n, maxPatternSize)
	}
	re, err := regexp.Compile(s)
	return &program{re, len(code.Inst)}, err
}

// get gives the pattern for a message; nil if there is none.
func (n expression) get(l Lookup) *program {
	if n.fixed != nil {
		return n.fixed
	}
	v := n.of.eval(l)
	if v.kind != String {
		return nil
	}
	l.Charge(compileSteps * min(len(v.text), maxPatternBytes))
	re, err := compile(v.text)
	if err != nil {
		return nil
	}
	return re
}

// written gives a value as text; NULL and what does not compare have none.
func written(v Value) (string, bool) {
	switch v.kind {
	case String, Int:
		return v.Text(), true
	case Bool:
		return strconv.FormatBool(v.isTrue()), true
	}
	return "", false
}

// regex is REGEX.
type regex struct {
	pattern expression
	of      node
}

func (n *regex) eval(l Lookup) Value {
	s, ok := written(n.of.eval(l))
	if !ok {
		return BoolValue(false)
	}
	re := n.pattern.get(l)
	if re == nil {
		return BoolValue(false)
	}
	re.charge(l, s)
	return BoolValue(re.MatchString(s))
}

// replace is REPLACE.
type replace struct {
	of      node
	pattern expression
	by      node
}

func (n *replace) eval(l Lookup) Value {
	v, by := n.of.eval(l), n.by.eval(l)
	re := n.pattern.get(l)
	if v.kind != String || by.kind != String || re == nil {
		return Value{}
	}
	re.charge(l, v.text)
	var out []byte
	last := 0
	for _, m := range re.FindAllStringSubmatchIndex(v.text, -1) {
		out = append(out, v.text[last:m[0]]...)
		var ok bool
		if out, ok = expand(out, re.Regexp, by.text, v.text, m); !ok || len(out) > maxMadeBytes {
			return Value{}
		}
		last = m[1]
	}
	l.Charge(len(out) + len(by.text))
	return StringValue(string(append(out, v.text[last:]...)))
}

// expand appends a replacement in Java's form: $1 or ${name} is a group, a backslash
// makes what follows stand for itself. ok is false for one that Java refuses.
func expand(out []byte, re *regexp.Regexp, by, s string, m []int) (_ []byte, ok bool) {
	group := func(n int) {
		if m[2*n] >= 0 {
			out = append(out, s[m[2*n]:m[2*n+1]]...)
		}
	}
	for i := 0; i < len(by); i++ {
		switch c := by[i]; {
		case c == '\\':
			if i++; i == len(by) {
				return out, false
			}
			out = append(out, by[i])
		case c == '$' && strings.HasPrefix(by[i+1:], "{"):
			name, _, closed := strings.Cut(by[i+2:], "}")
			n := re.SubexpIndex(name)
			if !closed || n < 0 {
				return out, false
			}
			group(n)
			i += len("{}") + len(name)
		case c == '$':
			n, digits := 0, 0
			for j := i + 1; j < len(by) && by[j] >= '0' && by[j] <= '9'; j++ {
				longer := 10*n + int(by[j]-'0')
				if digits > 0 && longer > re.NumSubexp() {
					break
				}
				n, digits = longer, digits+1
			}
			if digits == 0 || n > re.NumSubexp() {
				return out, false
			}
			group(n)
			i += digits
		default:
			out = append(out, c)
		}
	}
	return out, true
}

// A lister is a node that is a list. ok is false where it is NULL.
type lister interface {
	node
	list(l Lookup) (all []Value, ok bool)
}

// list is MAKELIST.
type list struct{ of []node }

// eval is never asked: only INLIST takes a list.
func (n *list) eval(Lookup) Value { return Value{} }

func (n *list) list(l Lookup) (all []Value, ok bool) {
	for _, o := range n.of {
		all = append(all, o.eval(l))
	}
	return all, true
}

// split is SPLIT. limit has one node, or none.
type split struct {
	of      node
	pattern expression
	limit   []node
}

// eval is never asked: only INLIST takes a list.
func (n *split) eval(Lookup) Value { return Value{} }

func (n *split) list(l Lookup) (all []Value, ok bool) {
	v, re := n.of.eval(l), n.pattern.get(l)
	if v.kind != String || re == nil {
		return nil, false
	}
	re.charge(l, v.text)
	limit := 0
	if len(n.limit) > 0 {
		of := n.limit[0].eval(l)
		if of.kind != Int {
			return nil, false
		}
		limit = int(min(max(of.int(), -1), int64(len(v.text)+1)))
	}
	last := 0
	for _, m := range re.FindAllStringIndex(v.text, -1) {
		if limit > 0 && len(all) == limit-1 {
			break
		}
		if m[1] == 0 || m[0] == m[1] && m[0] == len(v.text) {
			continue // nothing, before the first or behind the last character
		}
		all = append(all, StringValue(v.text[last:m[0]]))
		last = m[1]
	}
	all = append(all, StringValue(v.text[last:]))
	for limit == 0 && len(all) > 1 && all[len(all)-1].text == "" {
		all = all[:len(all)-1]
	}
	return all, true
}

// inList is INLIST.
type inList struct {
	list lister
	of   node
}

func (n *inList) eval(l Lookup) Value {
	v := n.of.eval(l)
	if v.kind == Null {
		return BoolValue(false)
	}
	all, ok := n.list.list(l)
	if !ok {
		return Value{}
	}
	l.Charge(8*len(all) + len(v.text)/16)
	for _, e := range all {
		if compare(equal, e, v, false).isTrue() {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}
