package selector

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

func TestRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"3+5":                      "position 1: found a number, expected a condition",
		"'a'":                      "position 1: found a string, expected a condition",
		"TRUE AND 3+5":             "position 10: found a number, expected a condition",
		"3 OR TRUE":                "position 1: found a number, expected a condition",
		"NOT 3":                    "position 5: found a number, expected a condition",
		"a + b":                    "position 1: found a value, expected a condition",
		"=TEST 'test'":             `position 1: found "=", expected a name, a literal or a bracket`,
		"a = ":                     "position 5: found the end, expected a name, a literal or a bracket",
		"a = 'x":                   "position 5: found a string without an end",
		"a = 'x''":                 "position 5: found a string without an end",
		`a = "x"`:                  "position 5: found a double quote, expected a string in single quotes",
		"a == 1":                   `position 4: found "=", expected a name`,
		"a != 1":                   `position 3: found "!=", expected "<>"`,
		"a = 1 b = 2":              `position 7: found "b", expected an operator or the end`,
		"a = 1;":                   `position 6: found ";"`,
		"a = 1)":                   `position 6: found ")", expected an operator or the end`,
		"(a = 1":                   `position 7: found the end, expected an operator or ")"`,
		"()":                       `position 2: found ")", expected a name`,
		"a AND":                    "position 6: found the end",
		"AND a":                    `position 1: found "AND"`,
		"a = NULL":                 "position 5: found NULL, expected a value (NULL is told by IS NULL)",
		"NULL <> a":                "position 1: found NULL",
		"a > NULL":                 "position 5: found NULL, expected a number",
		"TRUE = 5":                 "position 8: found a number, expected a condition",
		"'x' = FALSE":              "position 7: found a condition, expected a string",
		"a > 'x'":                  "position 5: found a string, expected a number",
		"'x' <= a":                 "position 1: found a string, expected a number",
		"TRUE > a":                 "position 1: found a condition, expected a number",
		"1 < 2 < 3":                "position 1: found a condition, expected a number",
		"1 + 1 > 1 = TRUE < 2":     "position 13: found a condition, expected a number",
		"a BETWEEN 'a' AND 'b'":    "position 11: found a string, expected a number",
		"a BETWEEN 1 OR 2":         `position 13: found "OR", expected "AND"`,
		"a BETWEEN 1":              `position 12: found the end, expected "AND"`,
		"a NOT 5":                  `position 7: found "5", expected LIKE, BETWEEN or IN`,
		"a LIKE 5":                 `position 8: found "5", expected a string`,
		"a LIKE b":                 `position 8: found "b", expected a string`,
		"5 LIKE '5'":               "position 1: found a number, expected a property or a string",
		"a LIKE 'x' ESCAPE":        "position 18: found the end, expected a string",
		"a LIKE 'x' ESCAPE ''":     `position 19: found "''", expected a string of one character`,
		"a LIKE 'x' ESCAPE 'ab'":   "position 19",
		"a IN ()":                  `position 7: found ")", expected a string`,
		"a IN ('x',)":              `position 11: found ")", expected a string`,
		"a IN ('x' 'y')":           `position 11: found "'y'", expected "," or ")"`,
		"a IN 'x'":                 "position 6",
		"a IN (1, 2)":              `position 7: found "1", expected a string`,
		"'a' IN ('a')":             "position 1: found a string, expected a property",
		"a + 1 IN ('a')":           "position 1: found a value, expected a property",
		"a IS 5":                   `position 6: found "5", expected "NULL"`,
		"a IS NOT":                 "position 9: found the end",
		"a ESCAPE '!'":             `position 3: found "ESCAPE"`,
		"1 + 'a' = 1":              "position 5: found a string, expected a number",
		"'a' - 1 = 1":              "position 1: found a string, expected a number",
		"2 * 'a' = 1":              "position 5: found a string, expected a number",
		"TRUE + 1 = 1":             "position 1: found a condition, expected a number",
		"1 + (a = 1) = 1":          "position 6: found a condition, expected a number",
		"-'a' = 1":                 "position 2: found a string, expected a number",
		"-TRUE":                    "position 2: found a condition, expected a number",
		"12ab = 1":                 `position 3: found "ab", expected an operator or the end`,
		"0x = 1":                   `position 1: found "0x", expected an integer`,
		"0xg1 = 1":                 `position 1: found "0x", expected an integer`,
		"08 = 1":                   `position 1: found "08", expected an integer`,
		"1.5x = 1":                 `position 4: found "x", expected an operator or the end`,
		"1E = 1":                   `position 2: found "E", expected an operator or the end`,
		"a = 9223372036854775808":  `position 5: found "9223372036854775808", expected an integer of 64 bits`,
		"a = 99999999999999999999": "expected an integer of 64 bits",
		"a = 0xffffffffffffffff":   "expected an integer of 64 bits",
		"a = -0x8000000000000000":  "expected an integer of 64 bits",
		"a = 1E999":                "expected a number that a double can hold",
		"a /* b":                   "position 3: found a comment without an end",
		"a.b = 1":                  `position 2: found "."`,
		"UPPER(b) = 'B'":           `position 6: found "(", expected an operator: there are no functions such as "UPPER"`,
		"regex('a', b)":            `position 6: found "(", expected an operator: there are no functions such as "regex"`,
		"REGEX('a')":               `position 1: found REGEX with 1 arguments, expected 2`,
		"REGEX('a', b, c)":         `position 1: found REGEX with 3 arguments, expected 2`,
		"REGEX('[', b)":            `position 7: found "[", expected a pattern as RE2 has them`,
		"REGEX('x(?=y)', b)":       "expected a pattern as RE2 has them",
		"REGEX(1, b)":              "position 7: found a number, expected a string with a pattern",
		"REGEX('a', b":             `position 13: found the end, expected "," or ")"`,
		"REGEX('a', b + 1)":        `position 14: found "+", expected "," or ")"`,
		"REGEX('" + strings.Repeat("a", 1025) + "', b)": "it has 1025 bytes, the limit is 1024",
		"REPLACE(a, 'b', 'c')":                          "position 1: found a string, expected a condition",
		"INLIST(a, 'b')":                                `position 8: found "a", expected a list, by SPLIT or MAKELIST`,
		"INLIST(MAKELIST, 'b')":                         `position 16: found ",", expected "("`,
		"INLIST(MAKELIST(), 'b')":                       `found ")", expected a name, a literal or a bracket`,
		"MAKELIST('a') = 'a'":                           "position 1: found a list, expected a value (only INLIST takes a list)",
		"SPLIT(a, ',') IS NULL":                         "found a list",
		"XPATH '//a'":                                   `position 1: found "XPATH", expected a condition on header fields and properties: XPATH is not supported`,
		"xquery 'x'":                                    "XQUERY is not supported",
		"größe = ?":                                     `position 9: found "?"`,
		"a = \xff":                                      `position 5: found "\xff"`,
		"a = 1 @":                                       `position 7: found "@"`,
		"hyphenated_props:a-b @":                        `position 22: found "@"`,
		"a NOT IN":                                      "position 9: found the end",
		"a = (1":                                        "position 7: found the end",
		"a = -":                                         "position 6: found the end",
		"NOT":                                           "position 4: found the end",
		"a\x00 = 1":                                     `position 2: found "\x00"`,
		"a = '" + strings.Repeat("x", 100) + "' 'y'": `position 108: found "'y'"`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s, err := Parse(text)
			if err == nil {
				t.Fatalf("taken as %v", s)
			}
			if !errors.Is(err, message.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestIdentifiers(t *testing.T) {
	t.Parallel()
	s, err := Parse("b = 1 AND (a LIKE 'x' OR b > c) AND NOT JMSType IN ('d') AND 'e' = f + 1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a", "c", "JMSType", "f"}, s.Identifiers()); diff != "" {
		t.Errorf("identifiers (-want +got):\n%s", diff)
	}
	if got := s.String(); !strings.HasPrefix(got, "b = 1 AND (a") {
		t.Errorf("the text is %q", got)
	}
}

func TestNoSelectorSelectsEverything(t *testing.T) {
	t.Parallel()
	var s *Selector
	if !s.Matches(sample) || s.String() != "" || s.Identifiers() != nil {
		t.Error("a nil selector does not match")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	repeat := strings.Repeat
	for name, tt := range map[string]struct {
		text string
		ok   bool
	}{
		"a megabyte of brackets":           {repeat("(", 1<<20), false},
		"a megabyte of closed brackets":    {repeat("(", 1<<19) + "a" + repeat(")", 1<<19), false},
		"brackets within the length":       {repeat("(", MaxTextBytes), false},
		"NOT within the length":            {repeat("NOT ", MaxTextBytes/4-1) + "a", false},
		"signs within the length":          {repeat("-", MaxTextBytes-10) + "1 = 1", false},
		"sums within the length":           {repeat("1+", MaxTextBytes/2-10) + "1 = 1", false},
		"equalities within the length":     {repeat("a=", MaxTextBytes/2-10) + "a", false},
		"IS NULL within the length":        {"a" + repeat(" IS NULL", MaxTextBytes/8-1), false},
		"the deepest brackets":             {repeat("(", MaxDepth) + "a" + repeat(")", MaxDepth), true},
		"one deeper":                       {repeat("(", MaxDepth+1) + "a" + repeat(")", MaxDepth+1), false},
		"the deepest NOT":                  {repeat("NOT ", MaxDepth) + "a", true},
		"many alternatives":                {repeat("a = 1 OR ", 7000) + "b", true},
		"many alternatives and their NOT":  {"NOT (" + repeat("a = 1 AND ", 6000) + "b)", true},
		"a long list":                      {"a IN (" + repeat("'x',", 10000) + "'y')", true},
		"the longest text":                 {"a = '" + repeat("x", MaxTextBytes-6) + "'", true},
		"one byte longer":                  {"a = '" + repeat("x", MaxTextBytes-5) + "'", false},
		"a megabyte of text":               {"a = '" + repeat("x", 1<<20) + "'", false},
		"an error deep in is still short":  {repeat("(", 200) + "?", false},
		"an error shows little of a token": {"a b" + repeat("c", 60000), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse(tt.text)
			switch {
			case tt.ok != (err == nil):
				t.Fatalf("parse: %v", err)
			case err == nil:
				s.Matches(sample)
			case !errors.Is(err, message.ErrInvalid) || len(err.Error()) > 300:
				t.Errorf("error of %d bytes: %.400v", len(err.Error()), err)
			}
		})
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	for _, text := range []string{
		"name = 'James' AND rank > 100", "name LIKE '%am%s' OR name NOT LIKE '_x%' ESCAPE '!'",
		"name IN ('a', 'b', 'James') AND rank BETWEEN 1 AND 200", "rank * 2 + 1 <> weight / 3 AND NOT absent IS NULL",
		"convert_string_expressions:five = 5", "on",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { s.Matches(sample) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", text, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a = 1 AND b <> 'x''y' OR NOT (c IS NOT NULL)", "a BETWEEN -1 AND 0x7fL", "a NOT LIKE 'x!%' ESCAPE '!'", "a IN ('x', 'y')",
		"convert_string_expressions:hyphenated_props:a-b > .5E-3 /* x */", "((((", "a = 9223372036854775808", "a -- x\n = 1", "größe % 2 = 1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !errors.Is(err, message.ErrInvalid) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if s.String() != text {
			t.Fatalf("%q became %q", text, s)
		}
		s.Matches(sample)
		s.Matches(properties{})
		for _, name := range s.Identifiers() {
			if !strings.Contains(text, name) {
				t.Fatalf("%q is not in %q", name, text)
			}
		}
	})
}
