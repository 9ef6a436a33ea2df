package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of our own YAML. They bound, before it is parsed, how deep a document
// can be nested and how many keys it can have: the parser compares all keys of a
// mapping with each other.
const (
	maxYAMLBytes    = 256 << 10
	maxYAMLLine     = 1024
	maxYAMLBrackets = 4096
	maxYAMLColons   = 8192
)

// A yamlReader reads our own YAML. Every key is known or an error, with line and
// column.
type yamlReader struct {
	*loader
	// settings, where it is not nil, gets the values that are read, by the path of
	// their keys below base.
	settings *[]Setting
	base     string
}

// loadYAML reads the file as our own YAML.
func (l *loader) loadYAML(raw []byte) {
	y := yamlReader{loader: l}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if err := boundYAML(raw); err != nil {
		l.fail(Notice{File: l.opts.File, Text: err.Error()})
		return
	}
	if line := unreadableLine(raw); line > 0 {
		l.fail(Notice{File: l.opts.File, Line: line, Text: "is no text: it is not UTF-8, or holds control characters"})
		return
	}
	file, err := parseYAML(raw)
	if err != nil {
		l.fail(y.syntax(err))
		return
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			l.fail(y.at(doc.Body, "", "is a second document; a file holds one"))
			return
		default:
			body = doc.Body
		}
	}
	if body != nil {
		y.mapping("", body, y.top())
		y.eitherPoliciesOrSettings(body)
		y.securityPatterns(body)
	}
}

// parseYAML parses a document. A panic of the parser, which is not ours, is an
// error like any other: it comes from what the file says.
func parseYAML(raw []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("the parser cannot read it: %v", p)
		}
	}()
	return parser.ParseBytes(raw, 0)
}

// unreadableLine is the first line that is not what YAML takes for text (YAML 1.2, 5.1):
// it would end up in names. 0: none.
func unreadableLine(raw []byte) int {
	n := 0
	for line := range bytes.SplitSeq(raw, []byte{'\n'}) {
		n++
		control := bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == 0x7f })
		if control || !utf8.Valid(line) {
			return n
		}
	}
	return 0
}

// boundYAML refuses what no configuration needs.
func boundYAML(raw []byte) error {
	if len(raw) > maxYAMLBytes {
		return fmt.Errorf("larger than %d bytes", maxYAMLBytes)
	}
	for line := range bytes.SplitSeq(raw, []byte{'\n'}) {
		if len(line) > maxYAMLLine {
			return fmt.Errorf("a line is longer than %d bytes", maxYAMLLine)
		}
	}
	if n := bytes.Count(raw, []byte{'['}) + bytes.Count(raw, []byte{'{'}); n > maxYAMLBrackets {
		return fmt.Errorf("more than %d opening brackets", maxYAMLBrackets)
	}
	if bytes.Count(raw, []byte{':'}) > maxYAMLColons {
		return fmt.Errorf("more than %d colons", maxYAMLColons)
	}
	return nil
}

// syntax makes a notice of an error of the parser.
func (y yamlReader) syntax(err error) Notice {
	n := Notice{File: y.opts.File, Text: "is neither XML nor well-formed YAML"}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			n.Line, n.Column = t.Position.Line, t.Position.Column
		}
		n.Text += ": " + syntax.GetMessage()
	} else {
		n.Text += ": " + err.Error()
	}
	return n
}

// at makes a notice that speaks of a node.
func (y yamlReader) at(node ast.Node, part, text string) Notice {
	n := Notice{File: y.opts.File, Part: part, Text: text}
	if t := node.GetToken(); t != nil && t.Position != nil {
		n.Line, n.Column = t.Position.Line, t.Position.Column
	}
	return n
}

// source is "FILE:LINE" of a node.
func (y yamlReader) source(node ast.Node) string {
	return fmt.Sprintf("%s:%d", y.opts.File, y.at(node, "", "").Line)
}

// mapping hands each value of a mapping to the key that it stands under.
func (y yamlReader) mapping(part string, node ast.Node, keys []yamlKey) {
	pairs := pairsOf(node)
	if _, isMapping := node.(*ast.MappingNode); !isMapping && pairs == nil {
		text := "must hold keys and values"
		if part == "" {
			text = "is no configuration that is known: neither XML, as an activemq.xml, a hornetq-configuration.xml and a broker.xml are, nor YAML with keys and values"
		}
		y.fail(y.at(node, part, text))
		return
	}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	for _, pair := range pairs {
		name, ok := y.scalar(pair.Key)
		if !ok {
			y.fail(y.at(pair.Key, part, "is not a key"))
			continue
		}
		path := strings.TrimPrefix(part+"."+name, ".")
		known := false
		for _, k := range keys {
			if known = k.name == name; known {
				k.take(path, pair.Value)
				break
			}
		}
		switch {
		case known:
		case y.full():
			y.fail(y.at(pair.Key, path, "unknown key")) // counted, not shown
		default:
			y.fail(y.at(pair.Key, path, "unknown key"+didYouMean(name, names)))
		}
	}
}

// sequence hands each element of a list to take.
func (y yamlReader) sequence(part string, node ast.Node, take func(part string, value ast.Node)) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		y.fail(y.at(node, part, "must be a list"))
		return
	}
	for i, v := range list.Values {
		if v != nil {
			take(fmt.Sprintf("%s[%d]", part, i), v)
		}
	}
}

// scalar returns the text of a node that is one value. Anchors, aliases and tags
// are not offered.
func (y yamlReader) scalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return strings.TrimSpace(n.GetToken().Value), true
	case *ast.NullNode:
		return "", true
	}
	return "", false
}

// recording returns a reader that keeps the values below base.
func (y yamlReader) recording(base string, into *[]Setting) yamlReader {
	y.settings, y.base = into, base
	return y
}
