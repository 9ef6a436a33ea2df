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
	for name, want := range map[string]string{"elements": elementTable(), "options": optionTable(), "yaml": yamlTable()} {
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
		if p.fate != honoured || inDefault(p) || strings.Count(p.String(), "redeliveryPolicyMap") > 1 || strings.Contains(p.String(), "/entries/") {
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
		case honoured: // one that holds something has a table of its own
			if len(c.attrs)+len(c.children) == 0 {
				lines = add(lines, "`"+prefix+"<"+c.name+">`", c.fate.outcome(c.why))
			}
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

// yamlTable writes every key of our own YAML. Keys that were shown under another
// path are not shown again.
func yamlTable() string {
	var b strings.Builder
	b.WriteString("\n| key | value | meaning |\n|---|---|---|\n")
	shown := map[string]string{} // the path, by the names of keys and their kinds
	var walk func(path string, f yamlForm)
	keys := func(path string, keys []yamlKey) {
		for _, k := range keys {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", path+k.name, formInWords(k.form), strings.ReplaceAll(k.form.doc, "|", "\\|"))
			walk(path+k.name, k.form)
		}
	}
	walk = func(path string, f yamlForm) {
		switch f.kind {
		case formList:
			walk(path+"[]", *f.of)
		case formEither:
			seen := map[string]bool{} // what several kinds have is shown once, with the words of all
			words := map[string][]string{}
			for _, e := range f.either {
				for _, k := range e.keys {
					words[k.name] = append(words[k.name], k.form.words...)
				}
			}
			for _, e := range f.either {
				fresh := slices.DeleteFunc(slices.Clone(e.keys), func(k yamlKey) bool { return seen[k.name] })
				for i := range fresh {
					fresh[i].form.words = words[fresh[i].name]
				}
				keys(path+".", fresh)
				for _, k := range fresh {
					seen[k.name] = true
				}
			}
		case formMapping:
			own, common := f.keys, ""
			if len(f.oneOf) > 0 { // the pattern's keys
				own = f.keys[:len(f.oneOf)]
			} else {
				own = nil
			}
			rest := f.keys[len(own):]
			for _, k := range rest {
				common += " " + k.name
			}
			keys(path+".", own)
			if at := shown[common]; at != "" {
				fmt.Fprintf(&b, "| `%s.…` | | The same keys as `%s.…` |\n", path, at)
				return
			}
			shown[common] = path
			keys(path+".", rest)
		}
	}
	keys("", yamlReader{loader: newLoader(Options{})}.top())
	return b.String()
}

// formInWords says in words what may stand under a key.
func formInWords(f yamlForm) string {
	switch f.kind {
	case formText:
		return "text"
	case formBoolean:
		return "true, false"
	case formWhole:
		return "whole number"
	case formNumber:
		return "number"
	case formDuration:
		return "time"
	case formSize:
		return "size"
	case formWord:
		return strings.Join(f.words, ", ")
	case formList:
		return "list"
	case formEither:
		if f.either[0].kind == formDuration {
			return "time, none"
		}
	}
	return "keys"
}

// TestTheExampleOnThePageIsRead loads the YAML that the page shows.
func TestTheExampleOnThePageIsRead(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	c, err := fromText([]byte(text))
	if !ok || err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(c.Policies) != 2 || c.DefaultPolicy == nil || c.Access == nil {
		t.Errorf("%+v", c)
	}
}
