package config

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fitting parses a match and tries it on an address.
func fitting(t *testing.T, p product, match, address string) bool {
	t.Helper()
	a, err := parseAddressPattern(match, p, defaultWildcards)
	if err != nil {
		t.Fatal(err)
	}
	return a.matches(address, strings.Split(address, "."))
}

func TestAddressPatternMatches(t *testing.T) { // the table of R-HQ-12
	t.Parallel()
	for _, tt := range []struct {
		match, address   string
		hornetQ, artemis bool
	}{
		{"news.#", "news", false, true},
		{"news.#", "news.a", true, true},
		{"news.#", "news.a.b", true, true},
		{"news.#", "newsx", false, false},
		{"news#", "newsx", true, false},
		{"news#", "news.a", true, true},
		{"news#", "news", false, true},
		{"news.*", "news.a", true, true},
		{"news.*", "news.a.b", false, false},
		{"news.*", "news", false, false},
		{"news.*.#", "news.a", false, true},
		{"news.*.#", "news.a.b", true, true},
		{"news.*.#", "news", false, false},
		{"*", "a.b", false, false},
		{"*", "a", true, true},
		{"#", "anything", true, true},
		{"#", "any.thing.at.all", true, true},
		{"*.b.*", "a.b.c", true, true},
		{"*.b.*", "a.x.c", false, false},
		{"a.b.c", "a.b.c", true, true},
		{"a.b.c", "a.b.d", false, false},
		{"q$x", "q$x", true, true}, // R-HQ-163: HornetQ takes $ for a regular expression and does not match
		{"a+b", "aab", false, false},
		{"jms.queue.#", "jms.queue.orders.eu", true, true},
	} {
		if got := fitting(t, hornetQ, tt.match, tt.address); got != tt.hornetQ {
			t.Errorf("HornetQ: %s fits %s: %t", tt.match, tt.address, got)
		}
		if got := fitting(t, artemis, tt.match, tt.address); got != tt.artemis {
			t.Errorf("Artemis: %s fits %s: %t", tt.match, tt.address, got)
		}
	}
}

func TestAddressPatternRefuses(t *testing.T) { // R-HQ-12: # only at the end
	t.Parallel()
	for _, match := range []string{"", "a.#.b", "#.a", "##", "a.#.#"} {
		for _, p := range []product{hornetQ, artemis} {
			if _, err := parseAddressPattern(match, p, defaultWildcards); err == nil {
				t.Errorf("%s: %q was taken", p, match)
			}
		}
	}
}

func TestAddressPatternSyntaxOfItsOwn(t *testing.T) { // R-HQ-14, R-HQ-15
	t.Parallel()
	w := wildcardSyntax{delimiter: "/", singleWord: "+", anyWords: "%", markers: "()"}
	for _, tt := range []struct {
		match, address string
		want           bool
	}{
		{"a/+/c", "a/b/c", true},
		{"a/%", "a/b/c", true},
		{"a/%", "a", true},
		{"a/#", "a/b", false},
		{"(a/%)", "a/%", true},
		{"(a/%)", "a/b", false},
	} {
		a, err := parseAddressPattern(tt.match, artemis, w)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.matches(tt.address, strings.Split(tt.address, w.delimiter)); got != tt.want {
			t.Errorf("%s fits %s: %t", tt.match, tt.address, got)
		}
	}
}

// sortedPatterns sorts matches from the most specific on.
func sortedPatterns(t *testing.T, p product, w wildcardSyntax, matches []string) []string {
	t.Helper()
	list := make([]addressPattern, len(matches))
	for i, m := range matches {
		var err error
		if list[i], err = parseAddressPattern(m, p, w); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(list, func(a, b addressPattern) int { return a.compare(&b) })
	got := make([]string, len(list))
	for i := range list {
		got[i] = list[i].text
	}
	return got
}

func TestAddressPatternPrecedence(t *testing.T) { // R-HQ-16, R-HQ-17, and for HornetQ R-HQ-18, R-HQ-150
	t.Parallel()
	want := []string{"a.b.c", "a.b.*", "a.*.c", "a.*.*", "*.b.c", "*.*.c", "*.*.*", "a.b.#", "a.*.#", "a.#", "*.#", "#"}
	for _, p := range []product{hornetQ, artemis} {
		for range 50 { // whatever the order in the file
			matches := slices.Clone(want)
			rand.Shuffle(len(matches), func(i, j int) { matches[i], matches[j] = matches[j], matches[i] })
			if diff := cmp.Diff(want, sortedPatterns(t, p, defaultWildcards, matches)); diff != "" {
				t.Fatalf("%s, given %v (-want +got):\n%s", p, matches, diff)
			}
		}
	}
	w := defaultWildcards
	w.markers = "()"
	if diff := cmp.Diff([]string{"x.y", "a.#", "x.*", "x.#"}, sortedPatterns(t, artemis, w, []string{"x.#", "x.*", "(a.#)", "x.y"})); diff != "" {
		t.Errorf("R-HQ-15: literal-match-markers rank below the exact match (-want +got):\n%s", diff)
	}
}
