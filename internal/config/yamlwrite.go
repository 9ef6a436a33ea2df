package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// WriteYAML writes a configuration as our own YAML, so that Load reads the same
// from it: what holds by default is left out. Comments name the place of each
// entry in the file that c was read from, and, at the head, what of that file did
// not carry over: the notices of its Load.
func WriteYAML(c *Config, notices []Notice) []byte {
	var w yamlWriter
	if c.File != "" {
		w.comment(0, "From "+c.File+".")
	}
	for i, n := range notices {
		if i == 0 {
			w.comment(0, "What did not carry over, or has a word to it:")
		}
		w.comment(0, "  "+n.String())
	}
	if w.Len() > 0 {
		w.WriteByte('\n')
	}
	y, fresh := showing(c), newLoader(Options{})
	fresh.flags()
	m := differing(y.top(), showing(fresh.cfg).top())
	if len(m.pairs) == 0 {
		w.comment(0, "Nothing differs from the defaults.")
	}
	for i, p := range m.pairs {
		if _, plain := p.value.(yamlMap); i > 0 && (plain || isList(p.value) || isList(m.pairs[i-1].value)) {
			w.WriteByte('\n')
		}
		w.pair(0, p)
	}
	return []byte(w.String())
}

// showing makes a reader whose keys show c.
func showing(c *Config) yamlReader {
	return yamlReader{loader: &loader{cfg: c, fileAllowsAnonymous: c.AllowAnonymous}}
}

func isList(v yamlValue) bool {
	_, ok := v.(yamlList)
	return ok
}

// A yamlWriter writes values at an indentation.
type yamlWriter struct{ strings.Builder }

// comment writes a comment; what came from outside cannot end it.
func (w *yamlWriter) comment(indent int, text string) {
	for len(text) > maxYAMLLine/2 { // the reader's lines are bounded
		cut := strings.LastIndexByte(text[:maxYAMLLine/2], ' ')
		if cut <= 0 {
			break
		}
		w.comment(indent, text[:cut])
		text = "    " + text[cut+1:]
	}
	if len(text) > maxYAMLLine/2 {
		text = text[:maxYAMLLine/2]
	}
	fmt.Fprintf(w, "%s# %s\n", spaces(indent), strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == '�' {
			return ' '
		}
		return r
	}, text))
}

func spaces(n int) string { return strings.Repeat(" ", n) }

// pair writes a key with its value.
func (w *yamlWriter) pair(indent int, p yamlPair) {
	switch v := p.value.(type) {
	case yamlMap:
		if len(v.pairs) == 0 {
			fmt.Fprintf(w, "%s%s: {}\n", spaces(indent), p.name)
			return
		}
		fmt.Fprintf(w, "%s%s:\n", spaces(indent), p.name)
		for _, pair := range v.pairs {
			w.pair(indent+2, pair)
		}
	case yamlList:
		if len(v) == 0 {
			fmt.Fprintf(w, "%s%s: []\n", spaces(indent), p.name)
			return
		}
		if line := inLine(v); line != "" {
			fmt.Fprintf(w, "%s%s: %s\n", spaces(indent), p.name, line)
			return
		}
		fmt.Fprintf(w, "%s%s:\n", spaces(indent), p.name)
		for _, element := range v {
			w.element(indent+2, element)
		}
	default:
		fmt.Fprintf(w, "%s%s: %s\n", spaces(indent), p.name, scalarText(v))
	}
}

// maxInLine is how long a list in one line may be.
const maxInLine = 80

// inLine writes a list of names in one line; empty where it is not such a list, or
// is too long.
func inLine(list yamlList) string {
	var names []string
	for _, v := range list {
		s, ok := v.(yamlText)
		if !ok || strings.Contains(string(s), "://") {
			return ""
		}
		names = append(names, scalarText(s))
	}
	if line := "[" + strings.Join(names, ", ") + "]"; len(line) <= maxInLine {
		return line
	}
	return ""
}

// element writes one element of a list.
func (w *yamlWriter) element(indent int, v yamlValue) {
	m, ok := v.(yamlMap)
	if !ok {
		fmt.Fprintf(w, "%s- %s\n", spaces(indent), scalarText(v))
		return
	}
	if m.comment != "" {
		w.comment(indent, m.comment)
	}
	if len(m.pairs) == 0 {
		fmt.Fprintf(w, "%s- {}\n", spaces(indent))
		return
	}
	var inner yamlWriter
	for _, p := range m.pairs {
		inner.pair(indent+2, p)
	}
	text := inner.String()
	w.WriteString(spaces(indent) + "- " + text[indent+2:])
}

// plainText is what needs no quotes: no other value could be meant, whatever
// version of YAML reads it.
var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$|^[a-z]+://[A-Za-z0-9][A-Za-z0-9_.:/?&=%+,-]*$`)

// reservedWords are values of another kind in some version of YAML.
var reservedWords = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|null|y|n|none|nan|inf|infinity)$`)

func scalarText(v yamlValue) string {
	switch v := v.(type) {
	case yamlPlain:
		return string(v)
	case yamlText:
		if s := string(v); plainText.MatchString(s) && !reservedWords.MatchString(s) {
			return s
		}
		return quoted(string(v))
	}
	panic(fmt.Sprintf("%T is no value", v))
}

// quoted writes a text in quotes: single ones, where it has nothing but letters
// that are seen, double ones else.
func quoted(s string) string {
	for _, r := range s {
		if r < ' ' || r > '~' {
			return strconv.QuoteToASCII(s)
		}
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
