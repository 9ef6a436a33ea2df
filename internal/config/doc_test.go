package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docPath is the page that shows the tables of this package.
const docPath = "../../docs/configuration.md"

// TestDocShowsTheTables checks that the page shows every row of the tables;
// -rewrite brings it up to date.
func TestDocShowsTheTables(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for name, want := range map[string]string{"elements": elementTable(), "options": optionTable()} {
		begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
		head, rest, ok1 := strings.Cut(page, begin)
		got, tail, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("no marks for %s", name)
		}
		if *rewrite {
			page = head + begin + want + end + tail
		} else if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-page +tables):\n%s", name, diff)
		}
	}
	if *rewrite {
		if err := os.WriteFile(docPath, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A line of a table: names that share an outcome.
type tableLine struct {
	names   []string
	outcome string
}

// add puts a name to the others with its outcome.
func add(lines []tableLine, name, outcome string) []tableLine {
	for i := range lines {
		if lines[i].outcome == outcome {
			lines[i].names = append(lines[i].names, name)
			return lines
		}
	}
	return append(lines, tableLine{[]string{name}, outcome})
}

// write writes lines under a heading, if there are any.
func write(b *strings.Builder, heading string, lines []tableLine) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n\n| name | what becomes of it |\n|---|---|\n", heading)
	for _, l := range lines {
		fmt.Fprintf(b, "| %s | %s |\n", strings.Join(l.names, ", "), l.outcome)
	}
}

// outcome says a fate in words, for the page.
func (f fate) outcome(why string) string {
	switch f {
	case refused:
		return "**error**: " + why
	case leftOut:
		return "warning: " + why
	case honoured:
		return "honoured"
	}
	return "accepted; there is nothing to do"
}

// elementTable writes every element and attribute that is known: a table for each
// element that is read, with what it holds.
func elementTable() string {
	var b strings.Builder
	for _, p := range allParts(brokerPart, nil) {
		if p.fate != honoured || inDefault(p) || strings.Count(p.String(), "redeliveryPolicyMap") > 1 {
			continue // a default entry is an entry without a pattern; what stands doubled is shown once
		}
		write(&b, "**`<"+p.name+">`**", partLines(nil, p.part, ""))
	}
	return b.String()
}

// inDefault reports whether p is a default entry, or in one.
func inDefault(p placed) bool {
	return slices.ContainsFunc(append(slices.Clone(p.path), p.part), func(s *part) bool {
		return s.role == roleDefaultEntry || s.role == roleDefaultRedelivery || s.role == roleDefaultAuthorization || s.role == roleTempAuthorization
	})
}

// partLines adds the lines for what p holds; prefix is the way from the element
// whose table it is.
func partLines(lines []tableLine, p *part, prefix string) []tableLine {
	for _, a := range p.attrs {
		name := "`" + prefix + a.name + "`"
		if a.def != "" && a.fate != honoured {
			name += " (" + a.def + ")"
		}
		lines = add(lines, name, a.fate.outcome(a.why))
	}
	for _, c := range p.children {
		switch c.fate {
		case refused, leftOut:
			lines = add(lines, "`"+prefix+"<"+c.name+">`", c.fate.outcome(c.why))
		case accepted:
			if len(c.attrs)+len(c.children) == 0 {
				lines = add(lines, "`"+prefix+"<"+c.name+">`", c.fate.outcome(c.why))
			}
			lines = partLines(lines, c, prefix+"<"+c.name+">")
		}
	}
	return lines
}

// optionTable writes every option of a connector's URI that is known.
func optionTable() string {
	var b strings.Builder
	var lines []tableLine
	for _, name := range slices.Sorted(maps.Keys(uriOptions)) {
		o := uriOptions[name]
		if o.set != nil {
			lines = add(lines, "`"+name+"`", "honoured")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(uriOptions)) {
		o := uriOptions[name]
		if o.set == nil {
			text := "`" + name + "`"
			if o.def != "" {
				text += " (" + o.def + ")"
			}
			lines = add(lines, text, "warning: "+o.why)
		}
	}
	write(&b, "**options of a connector's URI**", lines)
	return b.String()
}
