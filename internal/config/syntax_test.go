package config

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// places lists every element and attribute with its line.
func places(e *element) []string {
	all := []string{fmt.Sprintf("%s:%d %s", e.name, e.line, e.text)}
	for _, a := range e.attrs {
		all = append(all, fmt.Sprintf("@%s:%d %s", a.name, a.line, a.value))
	}
	for _, c := range e.children {
		all = append(all, places(c)...)
	}
	return all
}

func TestXMLPlaces(t *testing.T) {
	t.Parallel()
	const doc = "<?xml version=\"1.0\"?>\n<!-- a\nb -->\n<root xmlns='urn:x'\n  a='1 \"=2'\n  b = \"3\n4\" c='5'>\n" +
		"one<x:in xmlns:x='urn:y'\r\n\tx:d='&amp;6'/> two\n<![CDATA[<&>]]><last\n/></root>\n"
	root, problem := parseXML("f", []byte(doc))
	if problem != nil {
		t.Fatal(problem)
	}
	want := []string{"root:4 one two\n<&>", "@a:5 1 \"=2", "@b:6 3\n4", "@c:7 5", "in:8 ", "@d:9 &6", "last:10 "}
	if diff := cmp.Diff(want, places(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if root.children[0].space != "urn:y" || root.space != "urn:x" {
		t.Errorf("namespaces %q %q", root.space, root.children[0].space)
	}
}

func TestXMLRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, want string }{
		"nothing":              {"<!-- -->", "f:1: no element in the document"},
		"unclosed":             {"<a>\n<b>\n", "f:3: not well-formed XML"},
		"crossed":              {"<a>\n<b></a>", "f:2: not well-formed XML"},
		"two roots":            {"<a/>\n<b/>", "f:2: more than one root element"},
		"attribute twice":      {"<a\nb='1'\nb='2'/>", "f:3: attribute b stands twice"},
		"unknown entity":       {"<a>\n&x;</a>", "f:2: not well-formed XML"},
		"too deep":             {strings.Repeat("<a>", maxDepth+1), "nested more than"},
		"too many":             {"<a>" + strings.Repeat("<b/>", maxElements), "more than 20000 elements"},
		"too many attributes":  {"<a " + strings.Repeat("b='' ", maxAttrs+1) + "/>", "more than 256 attributes"},
		"encoding not offered": {"<?xml version='1.0' encoding='EBCDIC'?><a/>", "save the file as UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problem := parseXML("f", []byte(c.doc))
			if problem == nil || !strings.Contains(problem.String(), c.want) {
				t.Errorf("%v, want %s", problem, c.want)
			}
		})
	}
}

func TestXMLEncodings(t *testing.T) {
	t.Parallel()
	utf16le := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("<a>é</a>")) {
		utf16le = append(utf16le, byte(u), byte(u>>8))
	}
	utf16be := []byte{0xfe, 0xff}
	for _, u := range utf16.Encode([]rune("<?xml version='1.0' encoding='UTF-16'?><a>é</a>")) {
		utf16be = append(utf16be, byte(u>>8), byte(u))
	}
	for name, doc := range map[string]string{
		"UTF-8":        "<a>é</a>",
		"UTF-8 marked": "\xef\xbb\xbf<a>é</a>",
		"latin 1":      "<?xml version='1.0' encoding=\"ISO-8859-1\"?><a>\xe9</a>",
		"UTF-16 LE":    string(utf16le),
		"UTF-16 BE":    string(utf16be),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, problem := parseXML("f", []byte(doc))
			if problem != nil || root.text != "é" {
				t.Errorf("%v %v", root, problem)
			}
			if !looksLikeXML([]byte(doc)) {
				t.Error("does not look like XML")
			}
		})
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	p := &placeholders{
		fixed:      map[string]string{"a": "A", "x": "fixed", "raw": "${a}"},
		properties: map[string]string{"x": "property", "p": "<${a}>", "a:b": "colon", "loop": "${loop}", "wide": strings.Repeat("${p}", 400), "big": strings.Repeat("y", 40_000)},
		lookupEnv: func(n string) (string, bool) {
			return "env", n == "e" || n == "x"
		},
	}
	for in, want := range map[string]string{
		"":                      "",
		"plain $ {a}":           "plain $ {a}",
		"${a}${e}":              "Aenv",
		"${x}":                  "fixed",
		"${raw}":                "${a}", // the command line is taken as it is
		"${p}":                  "<A>",
		"${a:b}":                "colon", // the whole is a name first, as in Spring
		"${none:}":              "",
		"${none:d:e}":           "d:e",
		"${none:${e}}":          "env",
		"${${q:p}}":             "<A>",
		"${none}":               "error",
		"${none":                "error",
		"${loop}":               "error",
		"${wide}${wide}${wide}": "error",
		"${big}${big}":          "error",
		"${none:${other}}":      "error",
	} {
		got, err := p.expand(in)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	const file = "# no=1\n! no=2\r\n\r\n a = b \n c:d\ne f=g\n h\\=i=j\nk=l\\\n   m\nn\no=\\u00e9\\t\\q\\u12\nlast=x\\"
	want := map[string]string{"a": "b ", "c": "d", "e": "f=g", "h=i": "j", "k": "lm", "n": "", "o": "é\tqu12", "last": "x"}
	if diff := cmp.Diff(want, parseProperties(file)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"queue", "topic", "useCache", "tempQueue"}
	for in, want := range map[string]string{
		"queue": "queue", "qeue": "queue", "Queue": "queue", "euque": "queue", "usecash": "useCache",
		"": "", "completelyOther": "", strings.Repeat("q", 100): "",
	} {
		if got := nearest(in, known); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSizes reads sizes as R-XML-01 says.
func TestSizes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"0": 0, " 7 ": 7, "7b": 7, "2k": 2048, "2 KB": 2048, "3 mb": 3 << 20, "3M": 3 << 20, "100 gb": 100 << 30, "1G": 1 << 30,
		"": -1, "-1": -1, "x": -1, "1tb": -1, "9999999999 gb": -1, "1.5 gb": -1,
	} {
		got, err := parseSize(in)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d %v, want %d", in, got, err, want)
		}
	}
}

// TestYAMLBounds checks the limits that keep the parser from nesting too deep.
func TestYAMLBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, want string }{
		"bytes":     {strings.Repeat("# x\n", 100_000), "larger than"},
		"line":      {strings.Repeat("- ", 1000), "a line is longer"},
		"brackets":  {strings.Repeat("[\n", 5000), "opening brackets"},
		"keys":      {strings.Repeat("a: b\n", 9000), "colons"},
		"documents": {"brokerName: a\n---\nbrokerName: b\n", "second document"},
		"list":      {"- a\n", "is no configuration that is known: neither XML"},
		"merge":     {"data: x\n<<: {brokerName: x}\n", "key"},
		"tag":       {"brokerName: !!str x\n", "must be one value"},
		"alias":     {"brokerName: *x\n", ""},
		"not UTF-8": {"data: x\nbrokerName: \xff\xfe\n", "f:2: is no text"},
		"control":   {"brokerName: a\x00b\n", "is no text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, problems := load(c.doc)
			if len(problems) == 0 || !strings.Contains(problems[0].String(), c.want) {
				t.Errorf("%v, want %s", problems, c.want)
			}
		})
	}
}
