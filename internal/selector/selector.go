package selector

import "strings"

// Limits on a selector. A text within them costs memory and time in proportion
// to its length.
const (
	// MaxTextBytes is the longest selector. OpenWire's tight encoding carries half
	// of it.
	MaxTextBytes = 64 << 10
	// MaxDepth is how deep a selector may nest: brackets, NOT, signs, and operators
	// in a row other than AND and OR, of which there may be any number.
	MaxDepth = 250
	// maxMadeBytes is how long a string may become that a selector makes, by "+" or
	// REPLACE; a longer one is NULL.
	maxMadeBytes = 1 << 20
)

// A Selector is a parsed selector. It is immutable; a nil Selector selects every
// message.
type Selector struct {
	text  string
	root  node // nil: everything matches
	names []string
	wild  bool
}

// Parse parses a selector. An error wraps message.ErrInvalid and names the
// position (the first character is 1), what was found there and what was
// expected, or the limit that the text is beyond. An empty text, or one of white
// space only, is the selector that every message matches.
func Parse(text string) (*Selector, error) {
	if len(text) > MaxTextBytes {
		return nil, overLimit("length in bytes:", len(text), MaxTextBytes)
	}
	p := parser{lexer: lexer{text: text}}
	p.prefixes()
	s := &Selector{text: text}
	if strings.TrimSpace(text[p.pos:]) == "" {
		return s, nil
	}
	root, err := p.selector()
	if err != nil {
		return nil, err
	}
	s.root, s.names, s.wild = root, p.names, p.wild
	return s, nil
}

// prefixes reads the switches before a selector; the last of a kind holds.
func (p *parser) prefixes() {
	for {
		switch {
		case p.prefix("convert_string_expressions:"):
			p.convert = true
		case p.prefix("no_convert_string_expressions:"):
			p.convert = false
		case p.prefix("hyphenated_props:"):
			p.hyphens = true
		case p.prefix("no_hyphenated_props:"):
			p.hyphens = false
		default:
			return
		}
	}
}

// prefix reads one switch, if it is there.
func (p *parser) prefix(s string) bool {
	if !strings.HasPrefix(p.text[p.pos:], s) {
		return false
	}
	p.pos += len(s)
	return true
}

// Matches reports whether a message whose fields l gives is selected: whether
// the selector is true for it, not false and not unknown.
//
// It charges l the steps that the evaluation took. A step is about a nanosecond's
// work; their number depends on nothing but the selector and the message, and is in
// proportion to the length of the selector, times that of the values it looks at.
func (s *Selector) Matches(l Lookup) bool {
	if s == nil || s.root == nil {
		return true
	}
	l.Charge(1 + len(s.text)/4)
	return s.root.eval(l).isTrue()
}

// A Key is a string property or header field that a message must have, with this value,
// to be selected.
type Key struct {
	Name, Value string
	Whole       bool // the selector asks for nothing else
}

// Key returns what most messages can be passed over by, without an evaluation. Its name
// is empty where the selector says nothing so simple.
func (s *Selector) Key() Key {
	if s == nil {
		return Key{}
	}
	terms := []node{s.root}
	if n, is := s.root.(*all); is {
		terms = n.terms
	}
	for _, t := range terms {
		if n, is := t.(*comparison); is && n.op == equal && !n.convert {
			k := keyOf(n.left, n.right)
			if k.Name == "" {
				k = keyOf(n.right, n.left)
			}
			if k.Name != "" {
				k.Whole = len(terms) == 1
				return k
			}
		}
	}
	return Key{}
}

// keyOf is what an equation of two nodes asks of a message, if it is a property and a
// string.
func keyOf(of, to node) Key {
	p, isProperty := of.(property)
	v, isLiteral := to.(literal)
	if !isProperty || !isLiteral || v.value.kind != String {
		return Key{}
	}
	return Key{Name: p.name, Value: v.value.text}
}

// String returns the text that was parsed.
func (s *Selector) String() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Wild reports whether there is a LIKE in the selector with "%" or "_" for any characters.
func (s *Selector) Wild() bool { return s != nil && s.wild }

// Identifiers returns the names that the selector looks up, each once, in the
// order they first appear. The slice is the selector's own.
func (s *Selector) Identifiers() []string {
	if s == nil {
		return nil
	}
	return s.names
}
