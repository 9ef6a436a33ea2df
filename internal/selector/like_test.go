package selector

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
)

// TestLikeIsARegularExpression compares patterns with what a regular expression
// says: any number of pieces, and pieces that are longer than a machine word.
func TestLikeIsARegularExpression(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.StringMatching(`[ab_%]{0,8}|[aé_]{0,4}%[aé_]{60,200}%?`)
		p := few.Draw(t, "pattern")
		s := rapid.StringMatching(`[ab]{0,12}|[aé]{0,250}`).Draw(t, "text")
		if rapid.Bool().Draw(t, "made to fit") {
			s = strings.NewReplacer("_", "é", "%", "ab").Replace(p) + rapid.SampledFrom([]string{"", "a"}).Draw(t, "rest")
		}
		want := regexp.MustCompile(`(?s)\A` + strings.NewReplacer("_", ".", "%", ".*").Replace(p) + `\z`).MatchString(s)
		like := newPattern(p, 0)
		if got := like.matches(s); got != want {
			t.Fatalf("%q LIKE %q is %v, want %v", s, p, got, want)
		}
	})
}

// TestLikeIsLinear gives LIKE what makes a matcher that goes back take hours.
func TestLikeIsLinear(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 1<<20)
	for name, p := range map[string]string{
		"many pieces":             strings.Repeat("%a", 10_000) + "%b",
		"a long piece":            "%" + strings.Repeat("a", 30_000) + "b%",
		"a long piece with gaps":  "%" + strings.Repeat("a_", 1_000) + "b%",
		"pieces of one gap":       strings.Repeat("%a_a", 10_000) + "b%",
		"nothing but underscores": strings.Repeat("%_", 10_000) + "b%",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			like := newPattern(p, 0)
			begin := time.Now()
			if like.matches(text) {
				t.Error("it fits")
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestStepsTellTheCost: more work is more steps, and what is remembered costs nothing.
func TestStepsTellTheCost(t *testing.T) {
	t.Parallel()
	asked := 0
	steps := func(text string, value string) int {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		l := &MessageLookup{Message: &message.Message{Properties: []byte(value)}, Properties: func(string) (Value, bool) {
			asked++
			return StringValue(value), true
		}}
		s.Matches(l)
		return l.Steps
	}
	long := strings.Repeat("x", 30_000)
	likes := strings.Repeat("p LIKE '%a%' OR ", 499) + "p LIKE '%b%'"
	one, many, brief := steps("p LIKE '%a%'", long), steps(likes, long), steps(likes, "x")
	if many < 300*(one-len(long)/16) || one < 100*steps("p = 'a'", "x") || many < 100*brief {
		t.Errorf("one LIKE costs %d steps, 500 of a long string %d, of a short one %d", one, many, brief)
	}
	if asked != 4 {
		t.Errorf("a property was decoded %d times for 4 evaluations", asked)
	}
	if a, b := steps("p + p + p = 'x'", long), steps("p + p = 'x'", long); a < b+len(long)/2 {
		t.Errorf("joining three strings costs %d, two %d", a, b)
	}
	if steps("p IN ('a', 'b')", long) < len(long)/8 || steps("p = 'a' OR "+strings.Repeat("p = 'b' OR ", 1000)+"p = 'c'", "x") < 1000 {
		t.Error("a long list costs nothing")
	}
}

// TestARememberedPropertyIsOfItsMessage: and of no other.
func TestARememberedPropertyIsOfItsMessage(t *testing.T) {
	t.Parallel()
	l := &MessageLookup{}
	l.Properties = func(name string) (Value, bool) { return StringValue(name + string(l.Message.Properties)), true }
	for _, of := range []string{"1", "2"} {
		l.Message = &message.Message{Properties: []byte(of)}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "a", "b", "a"} {
			if v, _ := l.Lookup(name); v != StringValue(name+of) {
				t.Errorf("%s of %s is %v", name, of, v)
			}
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Key{
		"JMSCorrelationID = 'x'":             {"JMSCorrelationID", "x", true},
		"'x' = a":                            {"a", "x", true},
		"b > 1 AND (a = 'x' AND c = 'y')":    {}, // in brackets
		"b > 1 AND a = 'x' AND c = 'y'":      {"a", "x", false},
		"a = 'x' OR b = 'y'":                 {},
		"NOT a = 'x'":                        {},
		"a <> 'x'":                           {},
		"a = 1":                              {},
		"a = b":                              {},
		"a + 'x' = 'y'":                      {},
		"'a' = 'a'":                          {},
		"convert_string_expressions:a = '1'": {},
		"":                                   {},
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if k := s.Key(); k != want {
			t.Errorf("%s asks for %+v, want %+v", text, k, want)
		}
	}
	if k := (*Selector)(nil).Key(); k != (Key{}) {
		t.Errorf("no selector has the key %+v", k)
	}
}

// TestWhatASelectorMakesIsBounded: neither patterns that are short to write, nor strings
// that grow and grow, take what memory or time there is.
func TestWhatASelectorMakesIsBounded(t *testing.T) {
	t.Parallel()
	if _, err := Parse("REGEX('(a{30}){30}b{999}c{999}', name)"); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a pattern of thousands of parts: %v", err)
	}
	l := properties{"name": StringValue(strings.Repeat("x", 100_000)), "pattern": StringValue("a{1000}b{1000}c{1000}")}
	for _, text := range []string{
		"REPLACE(name, 'x', '" + strings.Repeat("y", 1000) + "') IS NULL",
		strings.Repeat("name + ", 20) + "name IS NULL",
		"NOT REGEX(pattern, name)",
		strings.Repeat("name + ", 9) + "name IS NOT NULL",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Matches(l) {
			t.Errorf("%.40s... is not so", text)
		}
	}
}
