package selector

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The oracle is a second implementation, written from the rules alone: random
// trees that write themselves as text, with brackets only where binding asks for
// them, and that reckon for themselves with Go's any for values and nil for
// NULL. Neither parser nor nodes are used.

// A tree is an expression. binds is how tightly its outermost operator does.
type tree interface {
	write() (text string, binds int)
	reckon(m map[string]any) any
}

// Levels of binding, loosest first.
const (
	orLevel = iota
	andLevel
	notLevel
	equalLevel
	orderLevel
	sumLevel
	productLevel
	unaryLevel
	primaryLevel
)

// in writes a tree as an operand of an operator that takes the given level.
func in(t tree, level int) string {
	text, binds := t.write()
	if binds < level {
		return "(" + text + ")"
	}
	return text
}

type leaf struct {
	text  string
	value any
}

func (l leaf) write() (string, int) {
	if strings.HasPrefix(l.text, "-") {
		return l.text, unaryLevel
	}
	return l.text, primaryLevel
}
func (l leaf) reckon(map[string]any) any { return l.value }

type field string

func (f field) write() (string, int)        { return string(f), primaryLevel }
func (f field) reckon(m map[string]any) any { return m[string(f)] }

type logic struct {
	and  bool
	a, b tree
}

func (l logic) write() (string, int) {
	word, level := " or ", orLevel
	if l.and {
		word, level = " AND ", andLevel
	}
	return in(l.a, level) + word + in(l.b, level), level
}

func (l logic) reckon(m map[string]any) any {
	table := map[[2]string]string{ // JMS tables 3-4 and 3-5, of OR; AND is their mirror
		{"T", "T"}: "T", {"T", "F"}: "T", {"T", "U"}: "T", {"F", "F"}: "F", {"F", "U"}: "U", {"U", "U"}: "U",
		{"F", "T"}: "T", {"U", "T"}: "T", {"U", "F"}: "U",
	}
	sides := [2]string{letter(l.a.reckon(m)), letter(l.b.reckon(m))}
	mirror := func(s string) string { return map[string]string{"T": "F", "F": "T", "U": "U"}[s] }
	if l.and {
		return fromLetter(mirror(table[[2]string{mirror(sides[0]), mirror(sides[1])}]))
	}
	return fromLetter(table[sides])
}

// letter gives a condition's truth; what is no boolean is false.
func letter(v any) string {
	switch v {
	case nil:
		return "U"
	case true:
		return "T"
	}
	return "F"
}

func fromLetter(s string) any {
	return map[string]any{"T": true, "F": false, "U": nil}[s]
}

type negated struct{ of tree }

func (n negated) write() (string, int) { return "NOT " + in(n.of, notLevel), notLevel }
func (n negated) reckon(m map[string]any) any {
	return map[string]any{"T": false, "F": true, "U": nil}[letter(n.of.reckon(m))]
}

type compared struct {
	op   string
	a, b tree
}

func (c compared) write() (string, int) {
	level := orderLevel
	if c.op == "=" || c.op == "<>" {
		level = equalLevel
	}
	return in(c.a, level+1) + c.op + in(c.b, level+1), level
}
func (c compared) reckon(m map[string]any) any { return relate(c.op, c.a.reckon(m), c.b.reckon(m)) }

// relate compares by the rules of JMS 3.8.1.2, with the sign of a difference.
func relate(op string, a, b any) any {
	if a == nil || b == nil {
		return nil
	}
	allowed := map[string][]int{"=": {0}, "<>": {-1, 1, 2}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}[op]
	x, xok := real(a)
	y, yok := real(b)
	if xok && yok {
		i, iok := a.(int64)
		j, jok := b.(int64)
		sign := 2 // not ordered
		switch {
		case iok && jok && i == j, !(iok && jok) && x == y:
			sign = 0
		case iok && jok && i < j, !(iok && jok) && x < y:
			sign = -1
		case iok && jok, x > y:
			sign = 1
		}
		return slices.Contains(allowed, sign)
	}
	_, opaque := a.([]byte)
	if fmt.Sprintf("%T", a) != fmt.Sprintf("%T", b) || opaque || op != "=" && op != "<>" {
		return false
	}
	return (a == b) == (op == "=")
}

// real gives a number.
func real(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

type sum struct {
	op   string
	a, b tree
}

func (s sum) write() (string, int) {
	level := productLevel
	if s.op == "+" || s.op == "-" {
		level = sumLevel
	}
	return in(s.a, level) + " " + s.op + " " + in(s.b, level+1), level
}

func (s sum) reckon(m map[string]any) any {
	a, b := s.a.reckon(m), s.b.reckon(m)
	if str, ok := a.(string); ok && s.op == "+" {
		switch b.(type) {
		case string, int64, bool:
			return str + fmt.Sprint(b)
		}
		return nil
	}
	x, xok := real(a)
	y, yok := real(b)
	if !xok || !yok {
		return nil
	}
	i, iok := a.(int64)
	j, jok := b.(int64)
	exact := iok && jok
	switch {
	case s.op == "/":
		return x / y
	case s.op == "%":
		return math.Mod(x, y)
	case s.op == "+" && exact:
		return i + j
	case s.op == "-" && exact:
		return i - j
	case s.op == "*" && exact:
		return i * j
	}
	return map[string]float64{"+": x + y, "-": x - y, "*": x * y}[s.op]
}

type signedTree struct{ of tree }

func (s signedTree) write() (string, int) { return "- " + in(s.of, unaryLevel), unaryLevel }
func (s signedTree) reckon(m map[string]any) any {
	switch v := s.of.reckon(m).(type) {
	case int64:
		return -v
	case float64:
		return -v
	}
	return nil
}

type within struct {
	of, low, high tree
	not           bool
}

func (w within) write() (string, int) {
	return in(w.of, sumLevel) + word(w.not) + " BETWEEN " + in(w.low, sumLevel) + " AND " + in(w.high, sumLevel), orderLevel
}

func (w within) reckon(m map[string]any) any { // JMS: the longer way to say it
	a, b := ">=", "<="
	if w.not {
		a, b = "<", ">"
	}
	return logic{!w.not, compared{a, w.of, w.low}, compared{b, w.of, w.high}}.reckon(m)
}

// word writes the NOT of a test.
func word(not bool) string {
	if not {
		return " not"
	}
	return ""
}

type oneOf struct {
	of   field
	list []string
	not  bool
}

func (o oneOf) write() (string, int) {
	quotedList := make([]string, len(o.list))
	for i, s := range o.list {
		quotedList[i] = quote(s)
	}
	return string(o.of) + word(o.not) + " IN (" + strings.Join(quotedList, ",") + ")", orderLevel
}

func (o oneOf) reckon(m map[string]any) any {
	s, ok := o.of.reckon(m).(string)
	if !ok {
		return nil
	}
	return slices.Contains(o.list, s) != o.not
}

// quote writes a string literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

type alike struct {
	of      tree
	pattern string
	escape  bool
	not     bool
}

func (a alike) write() (string, int) {
	text := in(a.of, sumLevel) + word(a.not) + " LIKE " + quote(a.pattern)
	if a.escape {
		text += " ESCAPE '!'"
	}
	return text, orderLevel
}

func (a alike) reckon(m map[string]any) any { // by way of a regular expression
	v := a.of.reckon(m)
	if v == nil {
		return nil
	}
	s, ok := v.(string)
	var re strings.Builder
	re.WriteString(`(?s)\A`)
	for p := a.pattern; p != ""; {
		switch {
		case a.escape && (strings.HasPrefix(p, "!%") || strings.HasPrefix(p, "!_") || strings.HasPrefix(p, "!!")):
			re.WriteString(regexp.QuoteMeta(p[1:2]))
			p = p[2:]
			continue
		case p[0] == '%':
			re.WriteString(".*")
		case p[0] == '_':
			re.WriteString(".")
		default:
			re.WriteString(regexp.QuoteMeta(p[:1]))
		}
		p = p[1:]
	}
	return (ok && regexp.MustCompile(re.String()+`\z`).MatchString(s)) != a.not
}

type missing struct {
	of  tree
	not bool
}

func (n missing) write() (string, int) {
	text := in(n.of, equalLevel) + " IS"
	if n.not {
		text += " NOT"
	}
	return text + " NULL", equalLevel
}
func (n missing) reckon(m map[string]any) any { return (n.of.reckon(m) == nil) != n.not }

// words are short strings over an alphabet that makes patterns interesting.
var someText = rapid.StringMatching(`[ab!'%_]{0,4}`)

// drawValue draws a value in terms of arithmetic: any class of it.
func drawValue(t *rapid.T, depth int) tree {
	kinds := 5
	if depth <= 0 {
		kinds = 3
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "value") {
	case 0:
		return drawNumber(t)
	case 1, 2:
		return drawField(t)
	case 3:
		return signedTree{drawValue(t, depth-1)}
	}
	op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%"}).Draw(t, "op")
	return sum{op, drawValue(t, depth-1), drawValue(t, depth-1)}
}

func drawField(t *rapid.T) tree {
	return field(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "field"))
}

func drawNumber(t *rapid.T) tree {
	if rapid.Bool().Draw(t, "exact") {
		i := rapid.OneOf(rapid.Int64Range(-3, 20), rapid.Int64()).Draw(t, "int")
		return leaf{strconv.FormatInt(i, 10), i}
	}
	f := rapid.SampledFrom([]float64{0, 0.5, 1, 2.5, -1.5, 1e20}).Draw(t, "float")
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += "."
	}
	return leaf{text, f}
}

// drawEqual draws a side of = or <>.
func drawEqual(t *rapid.T, depth int) tree {
	switch rapid.IntRange(0, 3).Draw(t, "side") {
	case 0:
		s := someText.Draw(t, "text")
		return leaf{quote(s), s}
	case 1:
		if depth > 0 {
			return drawCondition(t, depth-1)
		}
	}
	return drawValue(t, depth)
}

// drawCondition draws a condition.
func drawCondition(t *rapid.T, depth int) tree {
	kinds := 10
	if depth <= 0 {
		kinds = 7
	}
	not := rapid.Bool().Draw(t, "not")
	switch rapid.IntRange(0, kinds-1).Draw(t, "condition") {
	case 0:
		return drawField(t)
	case 1:
		return oneOf{drawField(t).(field), rapid.SliceOfN(someText, 1, 10).Draw(t, "list"), not}
	case 2:
		return alike{drawField(t), someText.Draw(t, "pattern"), rapid.Bool().Draw(t, "escape"), not}
	case 3:
		return missing{drawValue(t, depth-1), not}
	case 4:
		return within{drawValue(t, depth-1), drawValue(t, depth-1), drawValue(t, depth-1), not}
	case 5:
		op := rapid.SampledFrom([]string{"<", "<=", ">", ">="}).Draw(t, "order")
		return compared{op, drawValue(t, depth-1), drawValue(t, depth-1)}
	case 6:
		op := rapid.SampledFrom([]string{"=", "<>"}).Draw(t, "equality")
		return compared{op, drawEqual(t, depth-1), drawEqual(t, depth-1)}
	case 7:
		return negated{drawCondition(t, depth-1)}
	}
	return logic{not, drawCondition(t, depth-1), drawCondition(t, depth-1)}
}

// drawMessage draws the properties of a message, for both implementations.
func drawMessage(t *rapid.T) (map[string]any, properties) {
	m, p := map[string]any{}, properties{}
	for _, name := range []string{"a", "b", "c", "d"} {
		switch rapid.IntRange(0, 6).Draw(t, "kind of "+name) {
		case 0:
			b := rapid.Bool().Draw(t, name)
			m[name], p[name] = b, BoolValue(b)
		case 1, 2:
			i := rapid.OneOf(rapid.Int64Range(-3, 20), rapid.Int64()).Draw(t, name)
			m[name], p[name] = i, IntValue(i)
		case 3:
			f := rapid.SampledFrom([]float64{0, 0.5, 2, 2.5, -1, math.NaN(), math.Inf(1)}).Draw(t, name)
			m[name], p[name] = f, FloatValue(f)
		case 4:
			s := someText.Draw(t, name)
			m[name], p[name] = s, StringValue(s)
		case 5:
			m[name], p[name] = []byte("x"), OpaqueValue()
		}
	}
	return m, p
}

// TestAgainstTheOracle holds parser and nodes against the trees.
func TestAgainstTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := drawCondition(t, 4)
		text, _ := tree.write()
		m, p := drawMessage(t)
		s, err := Parse(text)
		if err != nil {
			t.Fatalf("parse %s: %v", text, err)
		}
		want := letter(tree.reckon(m))
		v := s.root.eval(p)
		got := map[bool]string{true: "T", false: "F"}[v.isTrue()]
		if v.Kind() == Null {
			got = "U"
		}
		if got != want || s.Matches(p) != (want == "T") {
			t.Fatalf("%s\nwith %v\nis %s, want %s", text, m, got, want)
		}
	})
}
