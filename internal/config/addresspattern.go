package config

import (
	"cmp"
	"fmt"
	"strings"
)

// A product is one of the two whose files have address-settings.
type product uint8

// The products.
const (
	hornetQ product = iota + 1
	artemis
)

// String names the product.
func (p product) String() string {
	if p == hornetQ {
		return "HornetQ"
	}
	return "Artemis"
}

// A wildcardSyntax says how patterns of addresses are written (R-HQ-12, R-HQ-14).
type wildcardSyntax struct {
	delimiter  string // between words; default "."
	singleWord string // stands for one word; default "*"
	anyWords   string // stands for any words, at the end of a pattern; default "#"
	// markers are two characters between which a name is no pattern (R-HQ-15);
	// empty: there are none.
	markers string
}

// defaultWildcards is the syntax of HornetQ, and of Artemis where the file does
// not say otherwise.
var defaultWildcards = wildcardSyntax{delimiter: ".", singleWord: "*", anyWords: "#"}

// An addressPattern is the match of an address-setting.
type addressPattern struct {
	text    string
	words   []string // without the one for any words
	single  string
	tail    bool // any words may follow
	glued   bool // HornetQ's "news#": they follow without a delimiter
	literal bool // no pattern: written between markers
	bare    bool // HornetQ, where "#" stands for one word at least (R-HQ-12)
}

// parseAddressPattern reads a match. The error says what is wrong with it.
func parseAddressPattern(match string, p product, w wildcardSyntax) (addressPattern, error) {
	if match == "" {
		return addressPattern{}, fmt.Errorf("is empty; name an address or a pattern such as %s", w.anyWords)
	}
	if m := []rune(w.markers); len(m) == 2 && strings.HasPrefix(match, string(m[0])) && strings.HasSuffix(match, string(m[1])) {
		return addressPattern{text: strings.TrimSuffix(strings.TrimPrefix(match, string(m[0])), string(m[1])), literal: true}, nil
	}
	a := addressPattern{text: match, single: w.singleWord, bare: p == hornetQ}
	rest, tail := strings.CutSuffix(match, w.anyWords)
	if strings.Contains(rest, w.anyWords) {
		return a, fmt.Errorf("%q has %s before its end; it may only stand last", match, w.anyWords)
	}
	if a.tail = tail; tail {
		if before, ok := strings.CutSuffix(rest, w.delimiter); ok {
			rest = before
		} else if rest != "" && p == hornetQ { // Artemis takes news# for news.# (R-HQ-12)
			a.glued = true
		}
	}
	if rest != "" {
		a.words = strings.Split(rest, w.delimiter)
	}
	return a, nil
}

// matches reports whether the pattern fits an address whose words are given
// (R-HQ-12; nothing but the wildcards has a meaning of its own, R-HQ-163).
func (a *addressPattern) matches(address string, words []string) bool {
	if a.literal {
		return a.text == address
	}
	n := len(a.words)
	switch {
	case a.glued:
		if len(words) < n {
			return false
		}
		last := n - 1
		rest, ok := strings.CutPrefix(words[last], a.words[last])
		return ok && a.fits(words[:last]) && (rest != "" || len(words) > n)
	case !a.tail:
		return len(words) == n && a.fits(words)
	case a.bare:
		return len(words) > n && a.fits(words[:n])
	}
	return len(words) >= n && a.fits(words[:n])
}

// fits compares words with as many of the pattern's.
func (a *addressPattern) fits(words []string) bool {
	for i, w := range words {
		if a.words[i] != w && a.words[i] != a.single {
			return false
		}
	}
	return true
}

// exact reports whether the pattern fits one address alone.
func (a *addressPattern) exact() bool {
	if a.literal {
		return true
	}
	if a.tail {
		return false
	}
	for _, w := range a.words {
		if w == a.single {
			return false
		}
	}
	return true
}

// rank is the class of a pattern in the order of precedence (R-HQ-16).
func (a *addressPattern) rank() int {
	switch {
	case a.literal:
		return 1
	case a.exact():
		return 0
	case !a.tail:
		return 2
	}
	return 3
}

// compare orders two patterns that fit one address: below 0 where a is the more
// specific (R-HQ-16). HornetQ's own order is not well defined; this one is used
// for both (R-HQ-18, R-HQ-150).
func (a *addressPattern) compare(b *addressPattern) int {
	if c := cmp.Compare(a.rank(), b.rank()); c != 0 {
		return c
	}
	if a.tail {
		if c := cmp.Compare(len(b.text), len(a.text)); c != 0 {
			return c
		}
	}
	for i := range min(len(a.words), len(b.words)) {
		switch wildA, wildB := a.words[i] == a.single, b.words[i] == b.single; {
		case wildA && !wildB:
			return 1
		case wildB && !wildA:
			return -1
		}
	}
	return cmp.Compare(a.text, b.text)
}
