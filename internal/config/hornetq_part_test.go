package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// migratingPath is the page that shows the tables of HornetQ's and Artemis' files.
const migratingPath = "../../docs/migrating-from-hornetq-and-artemis.md"

// A corePlace is a part and a document that holds it.
type corePlace struct {
	path []*part
	*part
	root string
}

func (p corePlace) String() string {
	var b strings.Builder
	for _, step := range p.path {
		b.WriteString(step.name + "/")
	}
	return b.String() + p.name
}

// coreParts lists every part of both tables.
func coreParts() []corePlace {
	var all []corePlace
	var walk func(root string, path []*part, p *part)
	walk = func(root string, path []*part, p *part) {
		all = append(all, corePlace{append([]*part(nil), path...), p, root})
		for _, c := range p.children {
			walk(root, append(path, p), c)
		}
	}
	walk("urn:hornetq", nil, hornetQPart)
	walk("urn:activemq", nil, artemisPart)
	return all
}

// document writes a file with the part on a line of its own; its line is
// returned.
func (p corePlace) document(attribute, content string) (string, int) {
	var b strings.Builder
	end := ""
	steps := append(append([]*part(nil), p.path...), p.part)
	for i, step := range steps {
		fmt.Fprintf(&b, "<%s", step.name)
		if i == 0 {
			fmt.Fprintf(&b, " xmlns=%q", p.root)
		}
		for _, a := range step.attrs {
			if (a.name == "name" || a.name == "match") && !(step == p.part && strings.HasPrefix(attribute, a.name+"=")) {
				fmt.Fprintf(&b, ` %s="x"`, a.name)
			}
		}
		if step == p.part {
			b.WriteString(" " + attribute)
		}
		b.WriteString(">")
		if i < len(steps)-1 {
			b.WriteString("\n")
		}
		end = "</" + step.name + ">" + end
	}
	return b.String() + content + end, len(steps)
}

// loadCore reads a document that is the whole file.
func loadCore(document string) (*Config, []Notice, []Notice) {
	c, notices, err := Load(Options{File: "f", ReadFile: func(path string) ([]byte, error) {
		if path != "f" {
			return nil, os.ErrNotExist
		}
		return []byte(document), nil
	}})
	if problem, ok := err.(*Error); ok {
		return c, notices, problem.Problems
	}
	return c, notices, nil
}

// TestEveryCorePartIsNamed puts every element of the tables (spec sections 2 and
// 15) into a file of its own: its default is silent, another value is honoured,
// a warning or an error with its line, as the table says.
func TestEveryCorePartIsNamed(t *testing.T) {
	t.Parallel()
	for _, p := range coreParts() {
		t.Run(p.root+"/"+p.String(), func(t *testing.T) {
			t.Parallel()
			f, why := p.fate, p.why
			content, def := "", ""
			if p.leaf {
				f, why = p.value.fate, p.value.why
				content, def = otherText(p.value), p.value.def
			}
			if (f == leftOut || f == refused) && why == "" || strings.HasSuffix(why, ".") {
				t.Errorf("reason %q", why)
			}
			count := func(text string) (warned, failed int) {
				doc, line := p.document("", text)
				_, notices, problems := loadCore(doc)
				return len(speaking(notices, p.name, line)), len(speaking(problems, p.name, line))
			}
			w, e := count(content)
			switch {
			case f == leftOut && (w != 1 || e != 0), f == refused && (w != 0 || e != 1):
				t.Errorf("%d warnings, %d errors for %q", w, e, content)
			case p.leaf && f == accepted && w+e != 0:
				t.Errorf("%d warnings, %d errors for %q, which is accepted", w, e, content)
			}
			if def != "" && f != honoured {
				if w, e := count(def); w+e != 0 {
					t.Errorf("the default %s is named", def)
				}
			}
			if p.leaf && p.value.kind != text {
				if _, e := count("so-so"); e != 1 {
					t.Errorf("%d errors for a value of the wrong kind", e)
				}
			}
			for _, a := range p.attrs {
				coreAttribute(t, p, a)
			}
			if len(p.children) > 0 && !p.opaque {
				coreUnknownChild(t, p)
			}
		})
	}
}

// otherText is a value that is well-formed and not the default.
func otherText(a attr) string {
	if a.kind == text {
		return "OTHER"
	}
	return other(a)
}

// coreAttribute checks one attribute of a part.
func coreAttribute(t *testing.T, p corePlace, a attr) {
	t.Helper()
	doc, line := p.document(fmt.Sprintf("%s=%q", a.name, otherText(a)), "")
	_, notices, problems := loadCore(doc)
	name := p.name + " " + a.name
	w, e := len(speaking(notices, name, line)), len(speaking(problems, name, line))
	if a.fate == leftOut && (w != 1 || e != 0) || a.fate == refused && (w != 0 || e != 1) || a.fate == honoured && e != 0 {
		t.Errorf("%s: %d warnings, %d errors", name, w, e)
	}
	doc, line = p.document(a.name+`x="1"`, "")
	_, _, problems = loadCore(doc)
	own := speaking(problems, name+"x", line)
	if len(own) != 1 || !strings.Contains(own[0].Text, "did you mean") {
		t.Errorf("misspelt %s: %v", a.name, own)
	}
}

// coreUnknownChild checks that a part says what it may hold.
func coreUnknownChild(t *testing.T, p corePlace) {
	t.Helper()
	name := p.children[0].name + "s"
	if p.childNamed(name) != nil {
		return
	}
	doc, line := p.document("", "<"+name+"/>")
	_, _, problems := loadCore(doc)
	if own := speaking(problems, name, line); len(own) != 1 || !strings.Contains(own[0].Text, "did you mean ") {
		t.Errorf("%v for\n%s", problems, doc)
	}
}

// TestMigratingPageShowsTheTables checks that the page shows every row of the
// tables; -rewrite brings it up to date.
func TestMigratingPageShowsTheTables(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(migratingPath)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for name, want := range map[string]string{
		"settings": coreTable("**`<address-setting>`**", artemisSettingPart, hornetQSettingPart),
		"server":   coreTable("**the server**", corePart, hornetQPart) + coreTable("**a `<queue>` of an `<address>`**", addressQueuePart, addressQueuePart),
	} {
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
		if err := os.WriteFile(migratingPath, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// coreTable writes what an element of Artemis and that of HornetQ hold.
func coreTable(heading string, a, h *part) string {
	var b strings.Builder
	lines := coreLines(nil, a, "", func(p *part) string {
		if a != h && !has(h, p.name) {
			return " (Artemis)"
		}
		return ""
	})
	if a != h {
		lines = coreLines(lines, h, "", func(p *part) string {
			if has(a, p.name) {
				return "-"
			}
			return " (HornetQ)"
		})
	}
	write(&b, heading, lines)
	return b.String()
}

// has reports whether a part has a child of that name.
func has(p *part, name string) bool { return p.childNamed(name) != nil }

// coreLines adds the lines for what p holds; mark says for which product, "-":
// not again.
func coreLines(lines []tableLine, p *part, prefix string, mark func(*part) string) []tableLine {
	for _, a := range p.attrs {
		lines = add(lines, "`"+prefix+a.name+"`"+defText(a), a.fate.outcome(a.why))
	}
	for _, c := range p.children {
		product := mark(c)
		if product == "-" || c.name == "address-setting" {
			continue
		}
		switch {
		case c.leaf:
			lines = add(lines, "`"+prefix+"<"+c.name+">`"+defText(c.value)+product, c.value.fate.outcome(c.value.why))
		case c.opaque || c.fate == honoured && len(c.children) == 0:
			lines = add(lines, "`"+prefix+"<"+c.name+">`"+product, c.fate.outcome(c.why))
		case c.name == "queue" && prefix != "<queues>":
			lines = add(lines, "`"+prefix+"<queue>`"+product, "honoured")
		default:
			if c.fate == honoured {
				lines = add(lines, "`"+prefix+"<"+c.name+">`"+product, "honoured")
			}
			lines = coreLines(lines, c, prefix+"<"+c.name+">", func(*part) string { return product })
		}
	}
	return lines
}

// defText writes a default that asks for nothing.
func defText(a attr) string {
	if a.def == "" || a.fate == honoured {
		return ""
	}
	return " (" + a.def + ")"
}
