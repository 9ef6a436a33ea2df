package wire

import "unicode/utf8"

// Strings of the wire are UTF-16 in Java's modified UTF-8 (OpenWire 6.3). In Go
// they are UTF-8: pairs of surrogates become the character they stand for, and
// c0 80 a zero byte. A lone surrogate, which UTF-8 cannot hold, stays its three
// bytes ("WTF-8"), so that it survives the way back.

// plainASCII reports whether every character is U+0001 to U+007F.
func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i]-1 >= 0x7f {
			return false
		}
	}
	return true
}

// latin1 is a string of one character for each byte.
func latin1(b []byte) string {
	for _, c := range b {
		if c >= 0x80 {
			r := make([]rune, len(b))
			for i, c := range b {
				r[i] = rune(c)
			}
			return string(r)
		}
	}
	return string(b)
}

// decodeUTF decodes modified UTF-8 and standard UTF-8 alike. ok is false for bytes
// that are neither.
func decodeUTF(b []byte) (s string, ok bool) {
	i := 0
	for i < len(b) && b[i] < 0x80 {
		i++
	}
	if i == len(b) {
		return string(b), true
	}
	out := append(make([]byte, 0, len(b)), b[:i]...)
	var high rune // a surrogate that waits for its other half
	for i < len(b) {
		c, n := decodeUnit(b[i:])
		if n == 0 {
			return "", false
		}
		i += n
		if high != 0 {
			if c >= 0xdc00 && c <= 0xdfff {
				out = utf8.AppendRune(out[:len(out)-3], 0x10000+(high-0xd800)<<10+(c-0xdc00))
				high = 0
				continue
			}
			high = 0
		}
		switch {
		case c >= 0xd800 && c <= 0xdfff:
			out = append(out, 0xed, 0x80|byte(c>>6)&0x3f, 0x80|byte(c)&0x3f)
			if c <= 0xdbff {
				high = c
			}
		default:
			out = utf8.AppendRune(out, c)
		}
	}
	return string(out), true
}

// decodeUnit reads one character from the front of b: a UTF-16 unit, or a
// character above U+FFFF in the four bytes of standard UTF-8. Longer forms than
// needed are read as Java reads them. n is 0 where b does not begin with one.
func decodeUnit(b []byte) (c rune, n int) {
	lead := b[0]
	switch {
	case lead < 0x80:
		return rune(lead), 1
	case lead&0xe0 == 0xc0:
		if len(b) < 2 || b[1]&0xc0 != 0x80 {
			return 0, 0
		}
		return rune(lead&0x1f)<<6 | rune(b[1]&0x3f), 2
	case lead&0xf0 == 0xe0:
		if len(b) < 3 || b[1]&0xc0 != 0x80 || b[2]&0xc0 != 0x80 {
			return 0, 0
		}
		return rune(lead&0x0f)<<12 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), 3
	}
	c, n = utf8.DecodeRune(b)
	if n != 4 {
		return 0, 0
	}
	return c, n
}

// appendModifiedUTF appends s in modified UTF-8. Bytes that are no UTF-8 become
// U+FFFD.
func appendModifiedUTF(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		if c := s[i]; c-1 < 0x7f {
			dst = append(dst, c)
			i++
			continue
		}
		c, n := decodeRune(s[i:])
		i += n
		switch {
		case c == 0:
			dst = append(dst, 0xc0, 0x80)
		case c > 0xffff:
			c -= 0x10000
			dst = appendUnit(appendUnit(dst, 0xd800+c>>10), 0xdc00+c&0x3ff)
		default:
			dst = appendUnit(dst, c)
		}
	}
	return dst
}

// decodeRune is utf8.DecodeRuneInString that knows lone surrogates.
func decodeRune(s string) (rune, int) {
	c, n := utf8.DecodeRuneInString(s)
	if c == utf8.RuneError && n == 1 && len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2]&0xc0 == 0x80 {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return c, n
}

// appendUnit appends a UTF-16 unit that is not zero.
func appendUnit(dst []byte, c rune) []byte {
	switch {
	case c < 0x80:
		return append(dst, byte(c))
	case c < 0x800:
		return append(dst, 0xc0|byte(c>>6), 0x80|byte(c&0x3f))
	}
	return append(dst, 0xe0|byte(c>>12), 0x80|byte(c>>6&0x3f), 0x80|byte(c&0x3f))
}

// utf16Len counts the UTF-16 units of s.
func utf16Len(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c, size := decodeRune(s[i:])
		i += size
		if n++; c > 0xffff {
			n++
		}
	}
	return n
}
