package config

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// Limits of an XML file. Real files have some hundred elements.
const (
	maxFileBytes = 4 << 20
	maxDepth     = 64
	maxElements  = 20_000
	maxAttrs     = 256
)

// An element is one element of an XML file, with its place in it.
type element struct {
	space, name string
	file        string
	line        int
	attrs       []attribute
	children    []*element
	text        string // character data directly inside, trimmed
	raw         []byte // what text is made of, while the element is read
	bad         bool   // its text could not be made out, or not used, and that was reported
}

// An attribute is one attribute of an element, with its place in the file.
// Declarations of namespaces are not attributes here.
type attribute struct {
	space, name, value string
	line               int
	bad                bool // its value could not be made out, and that was reported
}

// attr returns the value of the attribute of that name; empty where it has none.
func (e *element) attr(name string) string {
	for _, a := range e.attrs {
		if a.space == "" && a.name == name {
			return a.value
		}
	}
	return ""
}

// find returns the first child of that name, or nil.
func (e *element) find(name string) *element {
	for _, c := range e.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// at makes a notice that speaks of e.
func (e *element) at(text string) Notice {
	return Notice{File: e.file, Line: e.line, Part: e.name, Text: text}
}

// atAttr makes a notice that speaks of an attribute of e.
func (e *element) atAttr(a attribute, text string) Notice {
	return Notice{File: e.file, Line: a.line, Part: e.name + " " + a.name, Text: text}
}

// parseXML reads a whole document. Its root, and every element and attribute,
// knows its line. The error is a Notice's text with the line where the reader
// stopped; the document is then nil.
func parseXML(file string, raw []byte) (*element, *Notice) {
	src, err := toUTF8(raw)
	if err != nil {
		return nil, &Notice{File: file, Line: 1, Text: err.Error()}
	}
	p := xmlParser{file: file, src: src, dec: xml.NewDecoder(bytes.NewReader(src)), line: 1}
	// The bytes are UTF-8 by now, whatever the declaration says.
	p.dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	root, err := p.document()
	if err != nil {
		n := &Notice{File: file, Line: p.lineOf(p.dec.InputOffset()), Text: err.Error()}
		if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
			n.Line, n.Text = syntax.Line, "not well-formed XML: "+syntax.Msg
			if strings.HasPrefix(syntax.Msg, "invalid character entity") {
				n.Text += "; only texts that the DOCTYPE of this file gives a name to are known: write what it stands for"
			}
		}
		return nil, n
	}
	return root, nil
}

// An xmlParser reads tokens and counts lines as it goes.
type xmlParser struct {
	file     string
	src      []byte
	dec      *xml.Decoder
	offset   int64 // of the byte up to which line counts
	line     int   // line of offset, from 1
	elements int
}

// lineOf returns the line of the byte at offset. Offsets must not decrease.
func (p *xmlParser) lineOf(offset int64) int {
	offset = min(offset, int64(len(p.src)))
	if offset > p.offset {
		p.line += bytes.Count(p.src[p.offset:offset], []byte{'\n'})
		p.offset = offset
	}
	return p.line
}

// document reads to the end and returns the root.
func (p *xmlParser) document() (*element, error) {
	var root *element
	var open []*element
	for {
		start := p.dec.InputOffset()
		tok, err := p.dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			e, err := p.start(t, start, len(open))
			if err != nil {
				return nil, err
			}
			if len(open) > 0 {
				parent := open[len(open)-1]
				parent.children = append(parent.children, e)
			} else if root != nil {
				return nil, errors.New("more than one root element")
			} else {
				root = e
			}
			open = append(open, e)
		case xml.EndElement:
			e := open[len(open)-1]
			e.text, e.raw = strings.TrimSpace(string(e.raw)), nil
			open = open[:len(open)-1]
		case xml.Directive:
			p.entities(string(t))
		case xml.CharData:
			if len(open) > 0 {
				e := open[len(open)-1]
				e.raw = append(e.raw, t...)
			}
		}
	}
	if root == nil {
		return nil, errors.New("no element in the document")
	}
	return root, nil
}

// entity is a declaration of an internal entity without markup in a DOCTYPE.
var entity = regexp.MustCompile(`<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(?:"([^"<&%]*)"|'([^'<&%]*)')\s*>`)

// entities takes the texts that a DOCTYPE gives names to. Others, such as those in files of
// their own, are errors where they are used.
func (p *xmlParser) entities(directive string) {
	for _, found := range entity.FindAllStringSubmatch(directive, maxAttrs) {
		if p.dec.Entity == nil {
			p.dec.Entity = map[string]string{}
		}
		if _, twice := p.dec.Entity[found[1]]; !twice { // the first one counts, as XML has it
			p.dec.Entity[found[1]] = found[2] + found[3]
		}
	}
}

// start makes an element of a start tag that lies at offset in the source.
func (p *xmlParser) start(t xml.StartElement, offset int64, depth int) (*element, error) {
	if p.elements++; p.elements > maxElements {
		return nil, fmt.Errorf("more than %d elements", maxElements)
	}
	if depth >= maxDepth {
		return nil, fmt.Errorf("elements are nested more than %d deep", maxDepth)
	}
	if len(t.Attr) > maxAttrs {
		return nil, fmt.Errorf("element %s has more than %d attributes", t.Name.Local, maxAttrs)
	}
	e := &element{space: t.Name.Space, name: t.Name.Local, file: p.file, line: p.lineOf(offset)}
	tag := p.src[offset:min(p.dec.InputOffset(), int64(len(p.src)))]
	places := attrOffsets(tag)
	for i, a := range t.Attr {
		line := e.line
		if i < len(places) {
			line = p.lineOf(offset + int64(places[i]))
		}
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		if slices.ContainsFunc(e.attrs, func(b attribute) bool { return b.space == a.Name.Space && b.name == a.Name.Local }) {
			return nil, fmt.Errorf("attribute %s stands twice in element %s", a.Name.Local, e.name)
		}
		e.attrs = append(e.attrs, attribute{space: a.Name.Space, name: a.Name.Local, value: a.Value, line: line})
	}
	return e, nil
}

// attrOffsets returns where each attribute of a well-formed start tag begins.
func attrOffsets(tag []byte) []int {
	const space = " \t\r\n"
	var offsets []int
	i := bytes.IndexAny(tag, space)
	for i >= 0 && i < len(tag) {
		for i < len(tag) && strings.IndexByte(space, tag[i]) >= 0 {
			i++
		}
		eq := bytes.IndexByte(tag[min(i, len(tag)):], '=')
		if eq < 0 {
			return offsets
		}
		offsets = append(offsets, i)
		open := bytes.IndexAny(tag[i+eq:], `"'`)
		if open < 0 {
			return offsets
		}
		open += i + eq
		end := bytes.IndexByte(tag[open+1:], tag[open])
		if end < 0 {
			return offsets
		}
		i = open + 1 + end + 1
	}
	return offsets
}

// toUTF8 returns the document in UTF-8 without a byte order mark. It knows
// UTF-8, UTF-16 with a mark, US-ASCII and ISO-8859-1.
func toUTF8(raw []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		return raw[3:], nil
	case bytes.HasPrefix(raw, []byte("\xff\xfe")), bytes.HasPrefix(raw, []byte("\xfe\xff")):
		units := make([]uint16, 0, len(raw)/2)
		hi, lo := 1, 0
		if raw[0] == 0xfe {
			hi, lo = 0, 1
		}
		for i := 2; i+1 < len(raw); i += 2 {
			units = append(units, uint16(raw[i+hi])<<8|uint16(raw[i+lo]))
		}
		return []byte(string(utf16.Decode(units))), nil
	}
	switch enc := strings.ToLower(declaredEncoding(raw)); enc {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return raw, nil
	case "iso-8859-1", "latin1", "iso8859-1", "iso_8859-1":
		out := make([]rune, len(raw))
		for i, b := range raw {
			out[i] = rune(b)
		}
		return []byte(string(out)), nil
	default:
		return nil, fmt.Errorf("encoding %q is not offered; save the file as UTF-8", enc)
	}
}

// declaredEncoding returns the encoding that the XML declaration names, if any.
func declaredEncoding(raw []byte) string {
	head, _, ok := bytes.Cut(raw[:min(len(raw), 200)], []byte("?>"))
	if !ok || !bytes.HasPrefix(bytes.TrimSpace(head), []byte("<?xml")) {
		return ""
	}
	_, rest, ok := bytes.Cut(head, []byte("encoding"))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t\r\n=")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	name, _, _ := bytes.Cut(rest[1:], rest[:1])
	return string(name)
}
