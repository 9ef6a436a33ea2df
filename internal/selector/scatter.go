package selector

import (
	"slices"
	"unicode/utf8"
)

// A scatter finds characters with "_" between them: "a_c". It goes through a string
// once, with one bit for each character of its own that says whether the string fits up
// to there (Baeza-Yates and Gonnet's shift-and), so that nothing makes it go back.
type scatter struct {
	any  []uint64 // 64 bits a word: which of its characters are "_"
	keys []rune   // its other characters, sorted
	from []int32  // where in bits those of a key begin; one more for the end
	bits []maskWord
	last uint64 // the bit of the last character, in the last word
}

// A maskWord is the bits of one character that are in one word.
type maskWord struct {
	at   int32
	bits uint64
}

func newScatter(runes []rune) *scatter {
	x := &scatter{any: make([]uint64, (len(runes)+63)/64), last: 1 << ((len(runes) - 1) % 64)}
	order := make([]int, 0, len(runes)) // of those that are no "_", by character and then by place
	for i, r := range runes {
		if r == anyRune {
			x.any[i/64] |= 1 << (i % 64)
		} else {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(runes[a]) - int(runes[b]) })
	for _, i := range order {
		if n := len(x.keys); n == 0 || x.keys[n-1] != runes[i] {
			x.keys, x.from = append(x.keys, runes[i]), append(x.from, int32(len(x.bits)))
		}
		if n := len(x.bits); n == int(x.from[len(x.from)-1]) || x.bits[n-1].at != int32(i/64) {
			x.bits = append(x.bits, maskWord{at: int32(i / 64)})
		}
		x.bits[len(x.bits)-1].bits |= 1 << (i % 64)
	}
	x.from = append(x.from, int32(len(x.bits)))
	return x
}

// of is what is known of a character.
func (x *scatter) of(r rune) []maskWord {
	i, ok := slices.BinarySearch(x.keys, r)
	if !ok {
		return nil
	}
	return x.bits[x.from[i]:x.from[i+1]]
}

// cut takes everything up to the end of the first fit off the front of s.
func (x *scatter) cut(s string) (rest string, ok bool) {
	var few [4]uint64
	fits := few[:]
	if len(x.any) > len(few) {
		fits = make([]uint64, len(x.any))
	}
	fits = fits[:len(x.any)]
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		at += n
		of := x.of(r)
		carry := uint64(1) // a fit may begin anywhere
		for w, f := range fits {
			may := x.any[w]
			if len(of) > 0 && int(of[0].at) == w {
				may |= of[0].bits
				of = of[1:]
			}
			fits[w], carry = (f<<1|carry)&may, f>>63
		}
		if fits[len(fits)-1]&x.last != 0 {
			return s[at:], true
		}
	}
	return s, false
}
