package selector

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A like is LIKE, or NOT LIKE where negated: false for what is no string.
type like struct {
	of      node
	pattern pattern
	negated bool
}

func (n *like) eval(l Lookup) Value {
	v := n.of.eval(l)
	if v.kind == Null {
		return v
	}
	if v.kind == String {
		l.Charge(n.pattern.steps(v.text))
	}
	return BoolValue((v.kind == String && n.pattern.matches(v.text)) != n.negated)
}

const (
	anyRune  rune = -1 // "_": one character
	anyRunes rune = -2 // "%": any number of them
)

// A pattern is the right side of LIKE, cut at its "%": a string fits if it begins with
// head, ends with tail, and has the inner pieces between them, in order and not upon
// each other. The first place at which a piece fits is as good as any later one, so that
// nothing is ever tried twice.
type pattern struct {
	head, tail []rune // with anyRune for each "_"
	whole      bool   // there is no "%": head is all
	inner      []piece
	perByte    int // how many steps a byte that is looked at costs, in eighths
}

// newPattern reads a pattern. escape makes the character after it stand for
// itself where that is "_", "%" or escape, and else stands for itself, as in
// ActiveMQ; 0 is none.
func newPattern(s string, escape rune) pattern {
	var parts [][]rune // between the "%"
	runes := []rune(s)
	part := make([]rune, 0, len(runes))
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case escape != 0 && r == escape && i+1 < len(runes) && (runes[i+1] == '_' || runes[i+1] == '%' || runes[i+1] == escape):
			i++
			part = append(part, runes[i])
		case r == '_':
			part = append(part, anyRune)
		case r == '%':
			parts = append(parts, part)
			part = part[len(part):]
		default:
			part = append(part, r)
		}
	}
	p := pattern{head: part, whole: len(parts) == 0, perByte: 1}
	if p.whole {
		return p
	}
	p.head, p.tail = parts[0], part
	for _, part := range parts[1:] {
		if len(part) > 0 {
			p.inner = append(p.inner, newPiece(part))
		}
	}
	for i := range p.inner {
		p.perByte = max(p.perByte, p.inner[i].perByte())
	}
	return p
}

// wild reports whether more than one string fits.
func (p *pattern) wild() bool { return !p.whole || slices.Contains(p.head, anyRune) }

// steps is what matching a string costs at the most.
func (p *pattern) steps(s string) int {
	return 1 + (len(s)*p.perByte)/8 + len(p.inner) + min(len(s), len(p.head)+len(p.tail))
}

// matches reports whether the whole of s fits. It looks at each character once for the
// ends, and once for the inner pieces.
func (p *pattern) matches(s string) bool {
	s, ok := cutHead(s, p.head)
	if !ok || p.whole {
		return ok && s == ""
	}
	if s, ok = cutTail(s, p.tail); !ok {
		return false
	}
	for i := range p.inner {
		if s, ok = p.inner[i].cut(s); !ok {
			return false
		}
	}
	return true
}

// cutHead takes what runes stand for off the front of s.
func cutHead(s string, runes []rune) (rest string, ok bool) {
	for _, want := range runes {
		r, n := utf8.DecodeRuneInString(s)
		if n == 0 || want != anyRune && want != r {
			return s, false
		}
		s = s[n:]
	}
	return s, true
}

// cutTail takes what runes stand for off the end of s.
func cutTail(s string, runes []rune) (rest string, ok bool) {
	for i := len(runes) - 1; i >= 0; i-- {
		r, n := utf8.DecodeLastRuneInString(s)
		if n == 0 || runes[i] != anyRune && runes[i] != r {
			return s, false
		}
		s = s[:len(s)-n]
	}
	return s, true
}

// A piece is what stands between two "%": so many characters of any kind before and
// after a core, which begins and ends with a character of its own.
type piece struct {
	before, after int
	text          string   // the core, where it has no "_"
	core          *scatter // the core, where it has
}

func newPiece(runes []rune) piece {
	from, to := 0, len(runes)
	for from < to && runes[from] == anyRune {
		from++
	}
	for to > from && runes[to-1] == anyRune {
		to--
	}
	p := piece{before: from, after: len(runes) - to}
	core := runes[from:to]
	if slices.Contains(core, anyRune) {
		p.core = newScatter(core)
	} else {
		p.text = string(core)
	}
	return p
}

// perByte is how many steps a byte costs, in eighths.
func (p *piece) perByte() int {
	if p.core == nil {
		return 1
	}
	return 8 * (8 + 2*len(p.core.any))
}

// cut takes everything up to the end of the piece's first fit off the front of s.
func (p *piece) cut(s string) (rest string, ok bool) {
	if s, ok = skip(s, p.before); !ok {
		return s, false
	}
	if p.core != nil {
		s, ok = p.core.cut(s)
	} else {
		i := strings.Index(s, p.text)
		if ok = i >= 0; ok {
			s = s[i+len(p.text):]
		}
	}
	if !ok {
		return s, false
	}
	return skip(s, p.after)
}

// skip takes n characters off the front of s.
func skip(s string, n int) (rest string, ok bool) {
	for range n {
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 {
			return s, false
		}
		s = s[size:]
	}
	return s, true
}
