package selector

import (
	"testing"
)

// properties is a Lookup over a map.
type properties map[string]Value

func (p properties) Lookup(name string) (Value, bool) {
	v, ok := p[name]
	return v, ok
}

func (properties) Charge(int) {}

// sample is the message that the tables below select from.
var sample = properties{
	"name": StringValue("James"), "quote": StringValue("'In God We Trust'"), "foo": StringValue("_foo"),
	"empty": StringValue(""), "five": StringValue("5"), "half": StringValue(" 0.5 "), "yes": StringValue("True"),
	"yen": StringValue("价格100"), "lines": StringValue("a\nb"),
	"rank": IntValue(123), "version": IntValue(2), "zero": IntValue(0), "minus": IntValue(-7),
	"big": IntValue(9007199254740993), "max": IntValue(9223372036854775807), "min": IntValue(-9223372036854775808),
	"weight": FloatValue(2.5), "third": FloatValue(1.0 / 3),
	"on": BoolValue(true), "off": BoolValue(false),
	"bytes": OpaqueValue(), "$price": IntValue(9), "_x1": IntValue(1), "größe": IntValue(3), "my-prop": StringValue("h"), "my": IntValue(10), "prop": IntValue(4),
}

// outcome says what a selector is for the sample: true, false or unknown.
func outcome(t *testing.T, text string) string {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	if s.root == nil {
		return "everything"
	}
	v := s.root.eval(sample)
	if s.Matches(sample) != v.isTrue() {
		t.Errorf("%q: Matches and its outcome differ", text)
	}
	switch {
	case v.isTrue():
		return "true"
	case v.isFalse():
		return "false"
	case v.kind == Null:
		return "unknown"
	}
	return "no truth"
}

// wantAll checks the selectors of a table, by the outcome they are to have.
func wantAll(t *testing.T, table map[string][]string) {
	t.Helper()
	for want, texts := range table {
		for _, text := range texts {
			t.Run(text, func(t *testing.T) {
				t.Parallel()
				if got := outcome(t, text); got != want {
					t.Errorf("%s is %s, want %s", text, got, want)
				}
			})
		}
	}
}

func TestLiterals(t *testing.T) { // JMS 3.8.1.1, literals
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {
			"name = 'James'", "quote = '''In God We Trust'''", "empty = ''", "yen = '价格100'", "lines = 'a\nb'",
			"rank = 123", "rank = 123L", "rank = 123l", "rank = 0x7b", "rank = 0X7B", "rank = 0173", "rank = 0x7BL", "zero = 0", "zero = 0L", "zero = 00",
			"rank = 123.", "rank = 123.0", "rank = 1.23E2", "rank = 1.23e+2", "rank = 12300E-2", "rank = 1.23E2d", "weight = 2.5f",
			"third > .3", "third > .3E0", "weight = 25E-1", "weight = +2.5", "minus = -7", "minus = - 7", "minus = -+7", "minus = -7.0",
			"max = 9223372036854775807", "min = -9223372036854775808", "min = - 9223372036854775808L", "max = 0x7fffffffffffffff",
			"TRUE", "true", "tRuE", "NOT FALSE", "1 < 2", "1.0 < 1.1", "-1.1E1 < 1.E1", "4E-10 < 5E-10",
		},
		"false":   {"FALSE", "name = 'james'", "name = 'James '", "TRUE = FALSE"},
		"unknown": {"NULL"},
	})
}

func TestIdentifiersAreJavaNames(t *testing.T) { // JMS 3.8.1.1, identifiers
	t.Parallel()
	wantAll(t, map[string][]string{
		"true":    {"$price = 9", "_x1 = 1", "größe = 3", "größe=3AND _x1=1", "on", "ON IS NULL", "Name IS NULL"},
		"unknown": {"NAME = 'James'", "nulls = 1", "nota = 1", "ın = 1", "android"},
	})
}

func TestReservedWordsInAnyCase(t *testing.T) { // JMS 3.8.1.1
	t.Parallel()
	wantAll(t, map[string][]string{"true": {
		"name LIKE 'J%' AND rank BETWEEN 1 AND 200 OR name IN ('x') AND absent IS NULL",
		"name like 'J%' and rank between 1 and 200 or name in ('x') and absent is null",
		"Name Is Null And Not False Or Name Like 'a!%' Escape '!'",
	}})
	for word := range words {
		if _, err := Parse(word + " = 1"); word != "TRUE" && word != "FALSE" && word != "NOT" && err == nil {
			t.Errorf("%s is taken for a property", word)
		}
	}
}

func TestThreeValuedLogic(t *testing.T) { // JMS 3.8.1.2, tables 3-4 to 3-6
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {
			"on AND on", "on OR off", "off OR on", "on OR absent", "absent OR on", "on OR on", "NOT off",
			"absent IS NULL", "name IS NOT NULL", "bytes IS NOT NULL", "(absent = 1) IS NULL",
		},
		"false": {
			"on AND off", "off AND on", "off AND off", "off AND absent", "absent AND off", "off OR off", "NOT on",
			"name IS NULL", "absent IS NOT NULL", "on AND on AND off AND absent",
		},
		"unknown": {
			"absent", "NOT absent", "on AND absent", "absent AND on", "absent AND absent", "off OR absent", "absent OR off", "absent OR absent",
			"absent = 1", "absent <> 1", "1 = absent", "1 <> absent", "absent = absent", "absent < 1", "1 >= absent", "NOT (absent = 1)",
			"absent BETWEEN 1 AND 2", "absent NOT BETWEEN 1 AND 2", "absent IN ('a')", "absent NOT IN ('a')",
			"absent LIKE '%'", "absent NOT LIKE '%'", "absent + 1 = 1", "1 + absent = 1", "-absent = 1", "1 - absent * 2 > 0",
			"rank BETWEEN 1 AND absent", "rank BETWEEN absent AND 200", "rank NOT BETWEEN 1 AND absent", "rank NOT BETWEEN absent AND 200",
		},
	})
	wantAll(t, map[string][]string{ // one side decides
		"false": {"rank BETWEEN absent AND 1", "rank BETWEEN 200 AND absent"},
		"true":  {"rank NOT BETWEEN absent AND 1", "rank NOT BETWEEN 200 AND absent"},
	})
}

func TestPrecedence(t *testing.T) { // JMS 3.8.1.1: NOT, AND, OR; comparison; arithmetic
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {
			"on OR on AND off", "(on OR on) AND on", "NOT off AND on", "NOT on OR on", "NOT name = 'x'", "NOT rank > 200 AND on", "NOT NOT on",
			"1 + 2 * 3 = 7", "(1 + 2) * 3 = 9", "10 - 2 - 3 = 5", "100 / 10 / 5 = 2", "2 * -3 = -6", "-2 * -3 = 6", "7 % 4 + 1 = 4", "1 - -1 = 2", "1--1 = 2",
			"(1 + 1 > 1) = TRUE", "rank > 100 = on", "on = NOT off", "1 < 2 = 2 > 1", "((((rank)))) = ((123))", "((name)) IN ('James')",
			"rank BETWEEN 100 AND 150 AND on", "rank NOT BETWEEN 1 AND 2 AND NOT off", "rank BETWEEN 120 + 3 AND 2 * 100",
		},
		"false": {"(on OR on) AND off", "NOT (on OR off)", "off AND (on OR off)", "NOT on AND off"},
	})
}

func TestComparison(t *testing.T) { // JMS 3.8.1.1 comparison, 3.8.1.2
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {
			"rank = 123", "rank <> 124", "rank < 124", "rank <= 123", "rank > 122", "rank >= 123", "123 = rank", "rank=123.0", "weight > 2", "2 < weight",
			"name <> 'Jim'", "on = TRUE", "on <> FALSE", "on <> off", "off = FALSE", "(rank = 123) = TRUE", "name = name", "on = on",
			"max > 9223372036854775806", "big <> 9007199254740992", "big = 9007199254740992.0", // exact against exact, else doubles
		},
		"false": {
			"rank <> 123", "rank > 123", "rank < 123", "name <> 'James'", "on = FALSE", "on <> TRUE",
			// What is not alike is neither equal nor unequal.
			"name = 5", "name <> 5", "rank = '123'", "rank <> '123'", "on = 1", "on <> 1", "on = 'true'", "name = TRUE", "name <> TRUE",
			"name > 5", "name < 5", "5 >= name", "on > 0", "off < 1", "name BETWEEN 1 AND 9", "name NOT BETWEEN 1 AND 9",
			// Strings and booleans have no order.
			"name > foo", "name <= name", "on > off", "on >= on", "name BETWEEN name AND name",
			// What does not compare does not equal itself.
			"bytes = bytes", "bytes <> bytes", "bytes = 'x'", "bytes = 1", "bytes > 1", "bytes",
			"0.0 / 0 = 0.0 / 0", "0.0 / 0 < 1", "0.0 / 0 >= 1",
		},
	})
}

func TestArithmetic(t *testing.T) { // JMS 3.8.1.1; ActiveMQ's ArithmeticExpression
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {
			"rank + 2 = 125", "rank - version = 121", "rank * version = 246", "rank / version = 61.5", "version / 2 = 1", "7 / 2 = 3.5", "minus / 2 = -3.5",
			"7 % 4 = 3", "-7 % 4 = -3", "7.5 % 2 = 1.5", "weight * 2 = 5", "weight + 1 = 3.5", "+rank = 123", "-rank = -123", "- - rank = 123", "-weight = -2.5",
			"1 / 0 > max", "-1 / 0 < min", "rank / zero = 1.0 / 0", "0 / 0 <> 0", // as doubles of Java: infinite, or no number
			"max + 1 = min", "-min = min", "min - 1 = max", "max * 2 = -2", // as longs of Java: they wrap
			"max + 1.0 > 1000.0", "3 * (rank - 23) / 100 = 3",
			"name + '!' = 'James!'", "name + rank = 'James123'", "name + on = 'Jamestrue'", "'a' + 'b' = 'ab'", "name + ' ' + foo LIKE 'James %'",
		},
		"unknown": {
			"rank + name = 1", "name - 1 = 1", "name * 2 = 2", "on + 1 = 2", "-name = 1", "+name = 'James'", "bytes + 1 = 1", "name + weight = 'James2.5'", "name + bytes = 'x'",
			"1 + NULL = 1",
		},
	})
}

func TestBetween(t *testing.T) { // JMS 3.8.1.1
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {"rank BETWEEN 100 AND 150", "rank BETWEEN 123 AND 123", "rank NOT BETWEEN 1 AND 122", "rank NOT BETWEEN 124 AND 200",
			"weight BETWEEN 2 AND 3", "5 BETWEEN version AND rank"},
		"false": {"rank BETWEEN 10 AND 120", "rank BETWEEN 150 AND 100", "rank NOT BETWEEN 123 AND 123"},
	})
}

func TestIn(t *testing.T) { // JMS 3.8.1.1
	t.Parallel()
	long := "('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'James')"
	wantAll(t, map[string][]string{
		"true": {"name IN ('James')", "name IN ('Bob', 'James', 'Gromit')", "name NOT IN ('Bob')", "empty IN ('')",
			"quote IN ('x', '''In God We Trust''')", "name IN " + long},
		"false":   {"name IN ('Bob', 'james')", "name NOT IN ('Bob', 'James')", "foo IN " + long, "name NOT IN " + long},
		"unknown": {"rank IN ('123')", "rank NOT IN ('123')", "on IN ('true')", "bytes NOT IN ('x')"},
	})
}

func TestLike(t *testing.T) { // JMS 3.8.1.1
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {
			"name LIKE 'James'", "name LIKE 'J%'", "name LIKE '%s'", "name LIKE '%ame%'", "name LIKE '_a_e_'", "name LIKE '%'", "name LIKE 'J%m%s'",
			"name LIKE '%%%'", "name LIKE 'James%'", "name LIKE '_____'", "empty LIKE ''", "empty LIKE '%'", "quote LIKE '''In G_d We Trust'''",
			`foo LIKE '!_%' ESCAPE '!'`, `foo LIKE '\_foo' ESCAPE '\'`, "foo NOT LIKE '!%%' ESCAPE '!'",
			"yen LIKE '__100'", "yen LIKE '%格%'", "lines LIKE 'a_b'", "lines LIKE '%b'",
			"'12993' LIKE '12%3'", "'123' LIKE '12%3'", "'f!oo' LIKE 'f!oo' ESCAPE '!'", "'a!' LIKE 'a!!' ESCAPE '!'", "'a!' LIKE 'a!' ESCAPE '!'",
			"'a%' LIKE 'a!%' ESCAPE '!'", "rank NOT LIKE '123'", "name NOT LIKE 'X%'", "'a.b' LIKE 'a.b'", "'aab' LIKE '%ab'", "'ababac' LIKE '%abac'",
		},
		"false": {
			"name LIKE 'j%'", "name LIKE 'Jame'", "name LIKE 'ames'", "name LIKE ''", "name LIKE '____'", "name LIKE '______'", "empty LIKE '_'",
			"'12' LIKE '12_3'", "'1234' LIKE '12%3'", "rank LIKE '123'", "on LIKE 'true'", "bytes LIKE '%'", "'ab' LIKE 'a!%' ESCAPE '!'",
			"'axb' LIKE 'a.b'", "name NOT LIKE 'J%'", "'abab' LIKE '%abac'",
		},
	})
}

func TestNullTests(t *testing.T) { // JMS 3.8.1.1
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {"absent IS NULL", "name IS NOT NULL", "absent IS NULL AND on", "empty IS NOT NULL", "zero IS NOT NULL", "absent + 1 IS NULL",
			"NOT absent IS NOT NULL"},
		"false": {"name IS NULL", "absent IS NOT NULL", "off IS NULL"},
	})
}

func TestWhiteSpaceAndComments(t *testing.T) { // JMS 3.8.1.1; ActiveMQ's grammar
	t.Parallel()
	wantAll(t, map[string][]string{
		"true": {" \t\n\r\f rank\t=\n123\f ", "rank=123", "rank/**/=/* the * rank **/123", "rank -- the rank\n = 123", "rank = 123 -- end\r\n",
			"rank = 123 /* end */", "rank=121--\n+2", "rank = 121 + /***/ 2"},
		"everything": {"", "   ", "\n\t", "convert_string_expressions:", "hyphenated_props: "},
	})
}

func TestPrefixes(t *testing.T) { // ActiveMQ and Artemis
	t.Parallel()
	const convert, hyphens = "convert_string_expressions:", "hyphenated_props:"
	wantAll(t, map[string][]string{
		"true": {
			convert + "five = 5", convert + "5 = five", convert + "five > 4.5", convert + "five <> 6", convert + "half = 0.5", convert + "yes = TRUE",
			convert + "TRUE = yes", convert + "name = FALSE", convert + "five BETWEEN 4 AND 6", convert + "five NOT BETWEEN 6 AND 7",
			convert + "rank = '123'", convert + "name = 'James'", "no_" + convert + "rank = 123",
			hyphens + "my-prop = 'h'", hyphens + "my - prop = 6", "my-prop = 6", hyphens + "no_" + hyphens + "my-prop = 6",
			hyphens + convert + "my-prop = 'h' AND five = 5", convert + hyphens + "my-prop = 'h' AND five = 5",
		},
		"false": {
			convert + "five = 6", convert + "name = 5", convert + "name <> 5", convert + "name > 5", convert + "half = 0", convert + "yes = 1",
			convert + "bytes = 5", convert + "bytes = '5'", convert + "on = 1", "no_" + convert + "five = 5", convert + "no_" + convert + "five = 5",
		},
		"unknown": {hyphens + "my-other = 1"},
	})
}
