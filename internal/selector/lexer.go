package selector

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind says what a token is.
type tokenKind uint8

const (
	endToken    tokenKind = iota // the end of the text
	nameToken                    // an identifier; name
	wordToken                    // a reserved word; name, in capitals
	signToken                    // an operator, a bracket or a comma; name
	stringToken                  // a string literal; value
	numberToken                  // a number; value
)

// A token is one word of a selector.
type token struct {
	kind  tokenKind
	at    int    // the byte it begins with
	end   int    // the byte after it
	name  string // see tokenKind
	value Value
	// minimum: it is 9223372036854775808, a number only with a minus before it.
	minimum bool
}

// words are the reserved words (JMS 3.8.1.1), which stand for themselves in any
// case of letters, and ActiveMQ's.
var words = map[string]bool{"NOT": true, "AND": true, "OR": true, "BETWEEN": true, "LIKE": true, "ESCAPE": true, "IN": true,
	"IS": true, "TRUE": true, "FALSE": true, "NULL": true, "XPATH": true, "XQUERY": true}

// longestWord is the length of the longest reserved word.
const longestWord = len("BETWEEN")

// signs are the operators and brackets, longer ones before their beginnings.
var signs = [...]string{"<>", "<=", ">=", "<", ">", "=", "(", ")", ",", "+", "-", "*", "/", "%"}

// A lexer cuts a text into tokens.
type lexer struct {
	text    string
	pos     int  // the next byte to read
	hyphens bool // a name may contain "-"
}

// next reads a token.
func (x *lexer) next() (token, error) {
	if err := x.space(); err != nil {
		return token{}, err
	}
	t := token{at: x.pos}
	rest := x.text[x.pos:]
	if rest == "" {
		t.end = x.pos
		return t, nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	var err error
	switch {
	case startsName(r):
		x.name(&t)
	case isDigit(rest[0]), rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]):
		err = x.number(&t)
	case r == '\'':
		err = x.string(&t)
	default:
		err = x.sign(&t)
	}
	t.end = x.pos
	return t, err
}

// space skips white space and comments. A "--" without a line end after it is
// two minus signs, as in ActiveMQ.
func (x *lexer) space() error {
	for x.pos < len(x.text) {
		rest := x.text[x.pos:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			x.pos++
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexAny(rest, "\n\r")
			if n < 0 {
				return nil
			}
			x.pos += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return unexpected(x.text, x.pos, "a comment without an end", `"*/"`)
			}
			x.pos += 2 + n + 2
		default:
			return nil
		}
	}
	return nil
}

// name reads an identifier or a reserved word.
func (x *lexer) name(t *token) {
	n := strings.IndexFunc(x.text[x.pos:], func(r rune) bool { return !continuesName(r) && (r != '-' || !x.hyphens) })
	if n < 0 {
		n = len(x.text) - x.pos
	}
	t.kind, t.name = nameToken, x.text[x.pos:x.pos+n]
	if n <= longestWord {
		if w := capitals(t.name); words[w] {
			t.kind, t.name = wordToken, w
		}
	}
	x.pos += n
}

// capitals gives s with its ASCII letters in capitals. Letters of other scripts
// that have an ASCII capital, such as the dotless i, make no reserved word.
func capitals(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// startsName reports whether an identifier may begin with r: Java's
// Character.isJavaIdentifierStart.
func startsName(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_' || r == '$'
	}
	return r != utf8.RuneError && unicode.In(r, unicode.L, unicode.Nl, unicode.Sc, unicode.Pc)
}

// continuesName reports whether an identifier may go on with r: Java's
// Character.isJavaIdentifierPart, without the control characters it ignores.
func continuesName(r rune) bool {
	if r < utf8.RuneSelf {
		return startsName(r) || '0' <= r && r <= '9'
	}
	return startsName(r) || r != utf8.RuneError && unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Cf)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// string reads a string literal; a quote inside it is doubled.
func (x *lexer) string(t *token) error {
	t.kind = stringToken
	doubled := false
	for i := x.pos + 1; i < len(x.text); i++ {
		if x.text[i] != '\'' {
			continue
		}
		if i+1 < len(x.text) && x.text[i+1] == '\'' {
			doubled = true
			i++
			continue
		}
		s := x.text[x.pos+1 : i]
		if doubled {
			s = strings.ReplaceAll(s, "''", "'")
		}
		t.value = StringValue(s)
		x.pos = i + 1
		return nil
	}
	return unexpected(x.text, x.pos, "a string without an end", `"'"`)
}

// sign reads an operator or a bracket.
func (x *lexer) sign(t *token) error {
	rest := x.text[x.pos:]
	for _, s := range signs {
		if strings.HasPrefix(rest, s) {
			t.kind, t.name = signToken, s
			x.pos += len(s)
			return nil
		}
	}
	switch {
	case rest[0] == '"':
		return unexpected(x.text, x.pos, "a double quote", "a string in single quotes or a name without quotes")
	case strings.HasPrefix(rest, "!="):
		return unexpected(x.text, x.pos, `"!="`, `"<>"`)
	case strings.HasPrefix(rest, "=="):
		return unexpected(x.text, x.pos, `"=="`, `"="`)
	}
	_, n := utf8.DecodeRuneInString(rest)
	return unexpected(x.text, x.pos, quoted(rest[:n]), "a name, a literal, an operator or a bracket")
}

// number reads a literal: decimal, hexadecimal after "0x", octal after "0", each
// with an L at its end or without; or approximate, with a point or an exponent.
func (x *lexer) number(t *token) error {
	t.kind = numberToken
	rest := x.text[x.pos:]
	n, digits, base := 0, "", 10
	if len(rest) > 1 && (rest[1] == 'x' || rest[1] == 'X') && rest[0] == '0' {
		n = 2 + span(rest[2:], func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' })
		digits, base = rest[2:n], 16
	} else {
		n = span(rest, isDigit)
		if f := n + fraction(rest[n:]); f > n {
			return x.approximate(t, f)
		}
		digits = rest[:n]
		if len(digits) > 1 && digits[0] == '0' {
			base = 8
		}
	}
	u, err := strconv.ParseUint(digits, base, 64)
	t.minimum = err == nil && base == 10 && u == 1<<63
	switch {
	case err != nil && !isRange(err):
		return unexpected(x.text, x.pos, quoted(rest[:n]), "an integer")
	case err != nil, u > math.MaxInt64 && !t.minimum:
		return unexpected(x.text, x.pos, quoted(rest[:n]), "an integer of 64 bits")
	}
	t.value = IntValue(int64(u))
	x.pos += n + suffix(rest[n:], "lL")
	return nil
}

// approximate reads a number with a point or an exponent; its digits are n bytes.
func (x *lexer) approximate(t *token, n int) error {
	rest := x.text[x.pos:]
	f, err := strconv.ParseFloat(rest[:n], 64)
	if err != nil { // its form is right: it is too large
		return unexpected(x.text, x.pos, quoted(rest[:n]), "a number that a double can hold")
	}
	t.value = FloatValue(f)
	x.pos += n + suffix(rest[n:], "fFdD")
	return nil
}

// fraction measures a point with its digits, and an exponent.
func fraction(s string) int {
	n := 0
	if s != "" && s[0] == '.' {
		n = 1 + span(s[1:], isDigit)
	}
	if len(s) > n && (s[n] == 'e' || s[n] == 'E') {
		e := n + 1
		if len(s) > e && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := span(s[e:], isDigit); d > 0 {
			n = e + d
		}
	}
	return n
}

// suffix measures one of the suffixes at the front of s, if it ends there: a
// word may follow a number without a space.
func suffix(s, suffixes string) int {
	if s == "" || strings.IndexByte(suffixes, s[0]) < 0 {
		return 0
	}
	if r, _ := utf8.DecodeRuneInString(s[1:]); len(s) > 1 && continuesName(r) {
		return 0
	}
	return 1
}

// span counts the bytes at the front of s that are in.
func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

// isRange reports whether a number was well formed and too large.
func isRange(err error) bool {
	e, ok := err.(*strconv.NumError)
	return ok && e.Err == strconv.ErrRange
}
