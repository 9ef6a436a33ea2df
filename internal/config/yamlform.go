package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A yamlKey is one key of a mapping. Reading, writing and the JSON schema all come
// from it, so that none of them can say what the others do not.
type yamlKey struct {
	name string
	form yamlForm
	// take takes the value that stands under the key. part is the path of keys that
	// leads to it.
	take func(part string, value ast.Node)
	// show gives what is to be written for the value that holds now; nil: nothing.
	show func() yamlValue
}

// says gives the key its description, for the schema and the page.
func (k yamlKey) says(doc string) yamlKey {
	k.form.doc = doc
	return k
}

// A yamlForm says what may stand under a key.
type yamlForm struct {
	kind formKind
	doc  string
	// words are what a value may be; of formWord.
	words []string
	// low and high bound a number; of formWhole and formNumber. nil: no bound.
	low, high *float64
	// keys are those of a mapping. Of oneOf there must be exactly one; needs must
	// be there.
	keys         []yamlKey
	oneOf, needs []string
	// of is what a list holds; either are what may stand there instead of each other.
	of     *yamlForm
	either []yamlForm
}

// A formKind is a kind of value.
type formKind uint8

// The kinds of value.
const (
	formText     formKind = iota
	formBoolean           // true or false
	formWhole             // a whole number
	formNumber            // a number
	formDuration          // a time; see ParseDuration
	formSize              // bytes; see parseSize
	formWord              // one of a few words
	formMapping           // keys and values
	formList
	formEither
)

// A yamlValue is what is written: a yamlPlain, a yamlText, a yamlMap, a yamlList.
type yamlValue any

// yamlPlain is written as it is, yamlText with quotes where it needs them.
type (
	yamlPlain string
	yamlText  string
)

// A yamlMap is a mapping; comment stands before it.
type yamlMap struct {
	pairs   []yamlPair
	comment string
}

// A yamlPair is one key with its value.
type yamlPair struct {
	name  string
	value yamlValue
}

// A yamlList is a list.
type yamlList []yamlValue

// differing shows the keys whose value is not that of a fresh one, and those that
// must be there. The two tables are made in the same way.
func differing(keys, fresh []yamlKey, needs ...string) yamlMap {
	m := yamlMap{}
	for i, k := range keys {
		v := k.show()
		if v != nil && (slices.Contains(needs, k.name) || !reflect.DeepEqual(uncommented(v), uncommented(fresh[i].show()))) {
			m.pairs = append(m.pairs, yamlPair{k.name, v})
		}
	}
	return m
}

// uncommented is a value without its comments.
func uncommented(v yamlValue) yamlValue {
	switch v := v.(type) {
	case yamlMap:
		bare := yamlMap{}
		for _, p := range v.pairs {
			bare.pairs = append(bare.pairs, yamlPair{p.name, uncommented(p.value)})
		}
		return bare
	case yamlList:
		bare := yamlList{}
		for _, e := range v {
			bare = append(bare, uncommented(e))
		}
		return bare
	}
	return v
}

// value makes a key of one value: parse stores it, or says what is wrong.
func (y yamlReader) value(name string, form yamlForm, parse func(string) error, show func() yamlValue) yamlKey {
	return yamlKey{name, form, func(part string, node ast.Node) {
		text, ok := y.scalar(node)
		if !ok {
			text := "must be one value, not a list or keys"
			switch node.(type) {
			case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
				text = "must be one value, without anchor, alias or tag; a text that begins with &, * or ! stands in quotes"
			}
			y.fail(y.at(node, part, text))
			return
		}
		if err := parse(text); err != nil {
			y.fail(y.at(node, part, err.Error()))
			return
		}
		if y.settings != nil {
			*y.settings = append(*y.settings, Setting{Name: strings.TrimPrefix(part, y.base+"."), Value: text, Source: y.source(node)})
		}
	}, show}
}

// text is any text.
func (y yamlReader) text(name string, into *string) yamlKey {
	return y.value(name, yamlForm{kind: formText}, func(s string) error { *into = s; return nil }, func() yamlValue { return yamlText(*into) })
}

// name is a text that must not be empty.
func (y yamlReader) name(name string, into *string) yamlKey {
	return y.value(name, yamlForm{kind: formText}, func(s string) error {
		if *into = s; s == "" {
			return errors.New("is empty; give a name or remove the key")
		}
		return nil
	}, func() yamlValue { return yamlText(*into) })
}

// flag is true or false.
func (y yamlReader) flag(name string, into *bool) yamlKey {
	return y.value(name, yamlForm{kind: formBoolean}, func(s string) (err error) { *into, err = parseBool(s); return err },
		func() yamlValue { return yamlPlain(strconv.FormatBool(*into)) })
}

// choice is a flag that may be left open.
func (y yamlReader) choice(name string, into **bool) yamlKey {
	return y.value(name, yamlForm{kind: formBoolean}, func(s string) error {
		b, err := parseBool(s)
		*into = &b
		return err
	}, func() yamlValue {
		if *into == nil {
			return nil
		}
		return yamlPlain(strconv.FormatBool(**into))
	})
}

// count is a whole number from low to high.
func (y yamlReader) count(name string, low, high int64, into *int) yamlKey {
	least, most := float64(low), float64(high)
	return y.value(name, yamlForm{kind: formWhole, low: &least, high: &most}, func(s string) error {
		n, err := parseInt(s, low, high)
		*into = int(n)
		return err
	}, func() yamlValue { return yamlPlain(strconv.Itoa(*into)) })
}

// messages is a number of messages.
func (y yamlReader) messages(name string, into *int64) yamlKey {
	least := 0.0
	return y.value(name, yamlForm{kind: formWhole, low: &least}, func(s string) (err error) { *into, err = parseInt(s, 0, math.MaxInt64); return err },
		func() yamlValue { return yamlPlain(strconv.FormatInt(*into, 10)) })
}

// bytes is a size.
func (y yamlReader) bytes(name string, into *int64) yamlKey {
	return y.value(name, yamlForm{kind: formSize}, func(s string) (err error) { *into, err = parseSize(s); return err },
		func() yamlValue { return yamlPlain(showSize(*into)) })
}

// percent is a percentage from 0 to 100.
func (y yamlReader) percent(name string, into *float64) yamlKey {
	least, most := 0.0, 100.0
	return y.value(name, yamlForm{kind: formNumber, low: &least, high: &most}, func(text string) error {
		p, err := strconv.ParseFloat(text, 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return fmt.Errorf("%q is not a percentage from 0 to 100", text)
		}
		*into = p
		return nil
	}, func() yamlValue { return showNumber(*into) })
}

// number is a number with a fraction.
func (y yamlReader) number(name string, into *float64) yamlKey {
	return y.value(name, yamlForm{kind: formNumber}, func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%q is no number", s)
		}
		*into = f
		return nil
	}, func() yamlValue { return showNumber(*into) })
}

// duration is a time from low on; see ParseDuration.
func (y yamlReader) duration(name string, low time.Duration, into *time.Duration) yamlKey {
	return y.value(name, yamlForm{kind: formDuration}, func(s string) error {
		d, err := ParseDuration(s)
		if err == nil && d < low {
			err = fmt.Errorf("%q is less than %s", s, showDuration(low))
		}
		*into = d
		return err
	}, func() yamlValue { return yamlPlain(showDuration(*into)) })
}

// A yamlWord is a word and what it stands for.
type yamlWord[T comparable] struct {
	name  string
	value T
}

// word is one of a few words, each of which stands for a value.
func word[T comparable](y yamlReader, name string, words []yamlWord[T], into *T) yamlKey {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.name
	}
	return y.value(name, yamlForm{kind: formWord, words: names}, func(s string) error {
		for _, w := range words {
			if w.name == s {
				*into = w.value
				return nil
			}
		}
		return fmt.Errorf("%q is not %s%s", s, enumerate(names), didYouMean(s, names))
	}, func() yamlValue {
		for _, w := range words {
			if w.value == *into {
				return yamlPlain(w.name)
			}
		}
		return nil
	})
}

// destination is one queue or topic, a queue where no prefix says otherwise.
func (y yamlReader) destination(name string, into *message.Destination) yamlKey {
	return y.value(name, yamlForm{kind: formText}, func(s string) (err error) { *into, err = oneDestination(s, message.Queue); return err },
		func() yamlValue {
			if into.IsZero() {
				return nil
			}
			return yamlText(showDestination(*into))
		})
}

// texts is a list of texts.
func (y yamlReader) texts(name string, into *[]string) yamlKey {
	return yamlKey{name, yamlForm{kind: formList, of: &yamlForm{kind: formText}}, func(part string, node ast.Node) {
		list := []string{}
		y.sequence(part, node, func(part string, node ast.Node) {
			y.text("", new(string)).take(part, node) // says what is wrong
			if s, ok := y.scalar(node); ok {
				list = append(list, s)
			}
		})
		*into = list
	}, func() yamlValue {
		if *into == nil {
			return nil
		}
		list := yamlList{}
		for _, s := range *into {
			list = append(list, yamlText(s))
		}
		return list
	}}
}

// group is a mapping of keys that always holds; fresh are the same keys for the
// values that hold where nothing is given.
func (y yamlReader) group(name string, keys, fresh []yamlKey) yamlKey {
	return yamlKey{name, yamlForm{kind: formMapping, keys: keys}, func(part string, node ast.Node) { y.mapping(part, node, keys) },
		func() yamlValue {
			if m := differing(keys, fresh); len(m.pairs) > 0 {
				return m
			}
			return nil
		}}
}

// section is a mapping that need not be there. fresh makes the value that its keys
// change; done, which may be nil, looks at what came of it.
func section[T any](y yamlReader, name string, into **T, fresh func() *T, keys func(y yamlReader, v *T) []yamlKey, done func(part string, node ast.Node, v *T)) yamlKey {
	return yamlKey{name, yamlForm{kind: formMapping, keys: keys(y, fresh())}, func(part string, node ast.Node) {
		v := fresh()
		y.mapping(part, node, keys(y, v))
		if done != nil {
			done(part, node, v)
		}
		*into = v
	}, func() yamlValue {
		if *into == nil {
			return nil
		}
		return differing(keys(y, *into), keys(y, fresh()))
	}}
}

// A listOf is a list of mappings, each of which makes a T.
type listOf[T any] struct {
	fresh func() T
	keys  func(y yamlReader, part string, v *T) []yamlKey
	// source is where an element was written, as a comment.
	source       func(*T) string
	oneOf, needs []string
}

// key makes the key of a list. done takes each element that was read without a
// problem; all are the elements that there are now.
func (l listOf[T]) key(y yamlReader, name string, all func() []T, done func(part string, node ast.Node, v T)) yamlKey {
	proto := l.fresh()
	element := yamlForm{kind: formMapping, keys: l.keys(y, "", &proto), oneOf: l.oneOf, needs: l.needs}
	return yamlKey{name, yamlForm{kind: formList, of: &element}, func(part string, node ast.Node) {
		y.sequence(part, node, func(part string, node ast.Node) {
			before := len(y.problems) + y.droppedProblems
			v := l.fresh()
			y.mapping(part, node, l.keys(y, part, &v))
			if len(y.problems)+y.droppedProblems == before && y.complete(part, node, l.oneOf, l.needs) {
				done(part, node, v)
			}
		})
	}, func() yamlValue {
		elements := all()
		if elements == nil {
			return nil
		}
		list := yamlList{}
		for i := range elements {
			fresh := l.fresh()
			m := differing(l.keys(y, "", &elements[i]), l.keys(y, "", &fresh), l.needs...)
			if l.source != nil {
				m.comment = l.source(&elements[i])
			}
			list = append(list, m)
		}
		return list
	}}
}

// complete says what is missing in a mapping: of oneOf there must be one, and all
// of needs.
func (y yamlReader) complete(part string, node ast.Node, oneOf, needs []string) bool {
	given := map[string]bool{}
	for _, pair := range pairsOf(node) {
		if name, ok := y.scalar(pair.Key); ok {
			given[name] = true
		}
	}
	found := 0
	for _, name := range oneOf {
		if given[name] {
			found++
		}
	}
	if len(oneOf) > 0 && found != 1 {
		y.fail(y.at(first(node), part, "is for one of "+enumerate(oneOf)+"; write one entry for each"))
		return false
	}
	for _, name := range needs {
		if !given[name] {
			y.fail(y.at(first(node), part, "needs "+name))
			return false
		}
	}
	return true
}

// enumerate writes a list with "or" before its last.
func enumerate(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// oneDestination reads one queue or topic.
func oneDestination(s string, kind message.DestinationKind) (message.Destination, error) {
	d, err := message.ParseDestination(s, kind)
	switch {
	case err != nil:
		return d, errors.New("names no destination; give a name such as ORDERS or topic://PRICES")
	case d.IsComposite(), d.IsPattern(), d.IsTemporary():
		return d, fmt.Errorf("%s is not one queue or topic", d)
	}
	return d, nil
}

// showDestination writes a destination as our own YAML has it: a queue without its
// prefix.
func showDestination(d message.Destination) string {
	if d.Kind == message.Queue {
		return d.Name
	}
	return d.String()
}

// showDuration writes a time so that ParseDuration reads it again.
func showDuration(d time.Duration) string {
	ms := d.Milliseconds()
	switch {
	case d == math.MaxInt64 || d == math.MinInt64: // beyond the ends
		return strconv.FormatInt(ms+int64(ms/max(1, absolute(ms))), 10)
	case d%time.Second != 0:
		return strconv.FormatInt(ms, 10) + "ms"
	}
	text := d.String()
	for _, tail := range []string{"m0s", "h0m"} {
		if cut, ok := strings.CutSuffix(text, tail); ok {
			text = cut + tail[:1]
		}
	}
	return text
}

func absolute(n int64) int64 { return max(n, -n) }

// showSize writes bytes so that parseSize reads them again.
func showSize(n int64) string {
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{" gb", 1 << 30}, {" mb", 1 << 20}, {" kb", 1 << 10}} {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

func showNumber(f float64) yamlValue { return yamlPlain(strconv.FormatFloat(f, 'f', -1, 64)) }

// showCap writes a cap on delays.
func showCap(d time.Duration) string {
	if d == redelivery.NoMaximumDelay {
		return "none"
	}
	return showDuration(d)
}
