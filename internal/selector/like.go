package selector

import "unicode/utf8"

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
	return BoolValue((v.kind == String && n.pattern.matches(v.text)) != n.negated)
}

// A pattern is the right side of LIKE, cut into runes; the wildcards are the
// negative ones.
type pattern []rune

const (
	anyRune  rune = -1 // "_": one character
	anyRunes rune = -2 // "%": any number of them
)

// newPattern reads a pattern. escape makes the character after it stand for
// itself where that is "_", "%" or escape, and else stands for itself, as in
// ActiveMQ; 0 is none.
func newPattern(s string, escape rune) pattern {
	runes := []rune(s)
	p := make(pattern, 0, len(runes))
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case escape != 0 && r == escape && i+1 < len(runes) && (runes[i+1] == '_' || runes[i+1] == '%' || runes[i+1] == escape):
			i++
			p = append(p, runes[i])
		case r == '_':
			p = append(p, anyRune)
		case r != '%':
			p = append(p, r)
		case len(p) == 0 || p[len(p)-1] != anyRunes:
			p = append(p, anyRunes)
		}
	}
	return p
}

// matches reports whether the whole of s fits. It walks both once; where it gets
// stuck, the last "%" takes one character more.
func (p pattern) matches(s string) bool {
	i, at := 0, 0           // in the pattern, in s
	retry, retryAt := -1, 0 // after the last "%", and where in s it may go on
	for at < len(s) || i < len(p) {
		if i < len(p) && p[i] == anyRunes {
			i++
			retry, retryAt = i, at
			continue
		}
		if i < len(p) && at < len(s) {
			r, n := utf8.DecodeRuneInString(s[at:])
			if p[i] == anyRune || p[i] == r {
				i, at = i+1, at+n
				continue
			}
		}
		if retry < 0 || retryAt >= len(s) {
			return false
		}
		_, n := utf8.DecodeRuneInString(s[retryAt:])
		retryAt += n
		i, at = retry, retryAt
	}
	return true
}
