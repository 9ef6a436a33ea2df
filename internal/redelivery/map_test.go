package redelivery

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
)

// mapOf fills a map with the given queue patterns, each its own value.
func mapOf(patterns ...string) *Map[string] {
	var m Map[string]
	for _, p := range patterns {
		m.Put(queue(p), p)
	}
	return &m
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		destination string
		entries     []string
		want        string // in both orders of definition
	}{
		"R-MAP-10 the exact name":                       {"A.B", []string{"A.B", "A.*"}, "A.B"},
		"R-MAP-10 the exact name against all":           {"A.B", []string{">", "A.B"}, "A.B"},
		"R-MAP-11 the narrower":                         {"A.B", []string{"A.>", "*.>"}, "A.>"},
		"R-MAP-12 A.* before A.> (no tail first)":       {"A.B", []string{"A.*", "A.>"}, "A.*"},
		"R-MAP-12 *.> before > (more steps)":            {"A.B", []string{">", "*.>"}, "*.>"},
		"R-MAP-12 *.B before A.* (string order)":        {"A.B", []string{"*.B", "A.*"}, "*.B"},
		"R-MAP-12 A.* before A.B.> (string order)":      {"A.B", []string{"A.*", "A.B.>"}, "A.*"},
		"R-MAP-12 *.* before > (narrower)":              {"A.B", []string{"*.*", ">"}, "*.*"},
		"R-MAP-12 A.*.C before A.B.* (string order)":    {"A.B.C", []string{"A.*.C", "A.B.*"}, "A.*.C"},
		"R-MAP-12 *.B.C before A.> (string order)":      {"A.B.C", []string{"*.B.C", "A.>"}, "*.B.C"},
		"R-MAP-12 *.B.> before A.> (string order)":      {"A.B.C", []string{"A.>", "*.B.>"}, "*.B.>"},
		"R-MAP-12 A.> before >":                         {"A", []string{"A.>", ">"}, "A.>"},
		"R-MAP-13 more literal steps between two tails": {"A.B", []string{"*.>", "A.>"}, "A.>"},
		"R-MAP-02 a repeated tail is one":               {"A.B", []string{">", "A.>.>"}, "A.>.>"},
		"R-MAP-15 a wildcard's own entry":               {"A.*", []string{"A.*", "A.>"}, "A.*"},
		"R-MAP-15 an entry below a wildcard is not its": {"A.*", []string{"A.B", ">"}, ">"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][]string{tt.entries, {tt.entries[1], tt.entries[0]}} {
				got, ok := mapOf(order...).Lookup(queue(tt.destination))
				if !ok || got != tt.want {
					t.Errorf("defined %v: got %q, %v; want %q", order, got, ok, tt.want)
				}
			}
		})
	}
}

func TestLaterDefinitionOfOneKeyWins(t *testing.T) { // R-MAP-12 last row, R-MAP-13, C17
	t.Parallel()
	for _, key := range []string{"A.B", "A.*", ">"} {
		var m Map[int]
		m.Put(queue(key), 1)
		m.Put(queue(key), 2)
		if got, _ := m.Lookup(queue("A.B")); got != 2 {
			t.Errorf("%s twice: got the definition %d, want 2", key, got)
		}
	}
}

func TestThreeCandidatesAreScannedInOrder(t *testing.T) { // R-MAP-13
	t.Parallel()
	// By string order *.B goes before A.*; A.> loses to both.
	for _, order := range [][]string{{"A.>", "A.*", "*.B"}, {"*.B", "A.>", "A.*"}, {"A.*", "*.B", "A.>"}} {
		if got, _ := mapOf(order...).Lookup(queue("A.B")); got != "*.B" {
			t.Errorf("defined %v: got %q, want *.B", order, got)
		}
	}
}

func TestNamespacesAreApart(t *testing.T) { // R-MAP-01
	t.Parallel()
	var m Map[string]
	kinds := []message.DestinationKind{message.Queue, message.Topic, message.TempQueue, message.TempTopic}
	for _, k := range kinds[:3] {
		d := message.Destination{Kind: k, Name: ">"}
		m.Put(d, d.String())
	}
	for i, k := range kinds {
		d := message.Destination{Kind: k, Name: "X"}
		got, ok := m.Lookup(d)
		if ok != (i < 3) {
			t.Errorf("%v: found %v", d, ok)
		}
		if want := (message.Destination{Kind: k, Name: ">"}).String(); ok && got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestCompositeKeyIsStoredUnderEachPart(t *testing.T) { // R-MAP-06
	t.Parallel()
	var m Map[int]
	m.Put(queue("A, B.* ,topic://C"), 7)
	for d, want := range map[message.Destination]bool{
		queue("A"): true, queue("B.X"): true, topic("C"): true,
		queue("C"): false, topic("A"): false, queue("A, B.* ,topic://C"): false,
	} {
		if got, ok := m.Lookup(d); ok != want || ok && got != 7 {
			t.Errorf("%v: got %d, %v; want found %v", d, got, ok, want)
		}
	}
	if m.Len() != 3 {
		t.Errorf("%d entries, want 3", m.Len())
	}
}

func TestDefaultEntry(t *testing.T) { // R-MAP-07
	t.Parallel()
	var m Map[string]
	if got, ok := m.Lookup(queue("A")); ok {
		t.Errorf("an empty map has %q", got)
	}
	m.SetDefault("default")
	m.Put(queue("B"), "b")
	for d, want := range map[message.Destination]string{queue("A"): "default", queue("B"): "b", topic("B"): "default"} {
		if got, ok := m.Lookup(d); !ok || got != want {
			t.Errorf("%v: got %q, %v; want %q", d, got, ok, want)
		}
	}
	if key, _, ok := m.LookupKey(queue("A")); !ok || !key.IsZero() {
		t.Errorf("the default's key is %v, want none", key)
	}
	if key, _, _ := m.LookupKey(queue("B")); key != queue("B") {
		t.Errorf("the key is %v, want queue://B", key)
	}
}

func TestConflicts(t *testing.T) { // R-MAP-13
	t.Parallel()
	for name, tt := range map[string]struct {
		entries []string
		want    []Conflict
	}{
		"a narrower one is none":            {[]string{"A.>", "A.B.>"}, nil},
		"a plain name is none":              {[]string{"A.>", "A.B"}, nil},
		"patterns that never meet are none": {[]string{"A.*", "B.*"}, nil},
		"lengths that never meet are none":  {[]string{"A.*", "A.*.*"}, nil},
		"string order decides": {[]string{"A.*", "*.B"},
			[]Conflict{{First: 0, Second: 1, Keys: [2]message.Destination{queue("A.*"), queue("*.B")}, Winner: 1}}},
		"chance decides in ActiveMQ": {[]string{"A.*", "A.>"},
			[]Conflict{{First: 0, Second: 1, Keys: [2]message.Destination{queue("A.*"), queue("A.>")}, Winner: 0, Chance: true}}},
		"the same key twice (C17)": {[]string{"A", "A"},
			[]Conflict{{First: 0, Second: 1, Keys: [2]message.Destination{queue("A"), queue("A")}, Winner: 1, Chance: true}}},
		"a tail that meets at its stem": {[]string{"A.B.>", "*.B"},
			[]Conflict{{First: 0, Second: 1, Keys: [2]message.Destination{queue("A.B.>"), queue("*.B")}, Winner: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, mapOf(tt.entries...).Conflicts()); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

// drawStep draws one step of a name; wildcards too if pattern.
func drawStep(t *rapid.T, pattern bool) string {
	steps := []string{"A", "B", "C"}
	if pattern {
		steps = append(steps, "*")
	}
	return rapid.SampledFrom(steps).Draw(t, "step")
}

// drawName draws a name, or a pattern, of one to three steps.
func drawName(t *rapid.T, pattern bool) string {
	n := rapid.IntRange(1, 3).Draw(t, "steps")
	steps := make([]string, n)
	for i := range steps {
		steps[i] = drawStep(t, pattern)
	}
	if pattern && rapid.Bool().Draw(t, "tail") {
		steps[n-1] = ">"
	}
	return strings.Join(steps, ".")
}

func TestOrderOfTwoDefinitionsDoesNotMatter(t *testing.T) { // R-MAP-13
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, y, d := drawName(t, true), drawName(t, true), queue(drawName(t, false))
		if x == y || shapeOf(x) == shapeOf(y) && message.MatchName(x, y) && message.MatchName(y, x) {
			return // a tie: the later definition wins
		}
		a, aok := mapOf(x, y).Lookup(d)
		b, bok := mapOf(y, x).Lookup(d)
		if a != b || aok != bok {
			t.Fatalf("%v with %q, %q: %q; with them the other way round: %q", d, x, y, a, b)
		}
	})
}

func TestLookupFindsWhatMatchesAndNothingElse(t *testing.T) { // R-MAP-07
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		patterns := make([]string, rapid.IntRange(0, 8).Draw(t, "entries"))
		any := false
		d := queue(drawName(t, false))
		for i := range patterns {
			patterns[i] = drawName(t, true)
			any = any || message.MatchName(patterns[i], d.Name)
		}
		m := mapOf(patterns...)
		got, ok := m.Lookup(d)
		if ok != any || ok && !message.MatchName(got, d.Name) {
			t.Fatalf("%v in %q: %q, %v", d, patterns, got, ok)
		}
		if again, _ := m.Lookup(d); again != got {
			t.Fatalf("%v in %q: %q, then %q", d, patterns, got, again)
		}
		for _, p := range patterns {
			if p == d.Name && got != p {
				t.Fatalf("%v in %q: %q, not its own entry (R-MAP-10)", d, patterns, got)
			}
		}
	})
}

func TestOverlapIsWhatBothMatch(t *testing.T) {
	t.Parallel()
	var names []string // all of up to four steps over the letters and one that no pattern names
	for n, level := 0, []string{""}; n < 4; n++ {
		var next []string
		for _, l := range level {
			for _, s := range []string{"A", "B", "C", "x"} {
				next = append(next, strings.TrimPrefix(l+"."+s, "."))
			}
		}
		names, level = append(names, next...), next
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawName(t, true), drawName(t, true)
		want := false
		for _, n := range names {
			want = want || message.MatchName(x, n) && message.MatchName(y, n)
		}
		if got := message.NamesOverlap(x, y); got != want {
			t.Fatalf("overlap(%q, %q) = %v, want %v", x, y, got, want)
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	var m Map[int]
	for i := range 200 {
		m.Put(queue(fmt.Sprintf("app%d.%c.>", i, 'a'+rune(rand.N(26)))), i)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Lookup(queue("app100.a.orders"))
	}
}
