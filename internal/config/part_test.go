package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// needed is what an element must have so that it is no error by itself.
var needed = map[role]string{
	roleBroker:    `schedulerSupport="true"`, // for the redeliveryPlugin
	roleConnector: `uri="tcp://127.0.0.1:1"`, rolePolicyEntry: `queue="base.>"`, roleRedeliveryPolicy: `queue="base.>"`,
	roleDestination: `physicalName="Q"`, roleComposite: `name="Q"`, roleAuthorizationEntry: `queue="base.>"`,
	rolePersistency: `persistenceFlag="true"`,
}

// must is needed for an element inside another, each with a space in front.
func must(p, parent *part) []string {
	switch {
	case parent != nil && (parent.name == "deadLetterQueue" || parent.name == "destination" || parent.name == "forwardTo" && p.name != "filteredDestination"):
		return []string{`physicalName="Q"`}
	case p.name == "filteredDestination":
		return []string{`queue="Q"`}
	case p.name == "authenticationUser":
		return []string{`username="u"`, `password="p"`}
	case p.name == "uniquePropertyMessageEvictionStrategy":
		return []string{`propertyName="P"`}
	case p.name == "discardingDLQBrokerPlugin":
		return []string{`dropAll="false"`}
	case needed[p.role] != "":
		return []string{needed[p.role]}
	}
	return nil
}

// holds is what an element must hold so that it is no error by itself.
func holds(p *part) string {
	switch {
	case p.name == "deadLetterQueue" || p.name == "destination":
		return `<queue physicalName="Q"/>`
	case p.role == roleComposite:
		return `<forwardTo><queue physicalName="Q"/></forwardTo>`
	case p.role == roleAuthentication:
		return `<users><authenticationUser username="u" password="p"/></users>`
	}
	return ""
}

// placed is a part and the way to it from the broker element.
type placed struct {
	path []*part
	*part
}

// name is the path in words.
func (p placed) String() string {
	var s []string
	for _, step := range p.path {
		s = append(s, step.name)
	}
	return strings.Join(append(s, p.name), "/")
}

// allParts lists every part of the table.
func allParts(p *part, path []*part) []placed {
	all := []placed{{slices.Clone(path), p}}
	for _, c := range p.children {
		all = append(all, allParts(c, append(slices.Clone(path), p))...)
	}
	return all
}

// document writes a file that has the part, every element and the attribute in
// question on a line of their own, and returns the lines of both. leave is an
// attribute that is needed and not written; content is put inside.
func (p placed) document(attribute, content string) (text string, line, attrLine int) {
	var b strings.Builder
	end := ""
	for i, step := range append(slices.Clone(p.path), p.part) {
		line = i + 1
		var parent *part
		if i > 0 {
			parent = p.path[i-1]
		}
		given := slices.DeleteFunc(must(step, parent), func(m string) bool {
			return step == p.part && (before(attribute) == before(m) || before(attribute) == "name" && before(m) == "physicalName" || slices.Contains([]string{"topic", "tempQueue", "tempTopic"}, before(attribute)) && before(m) == "queue")
		})
		if i+1 < len(p.path) && p.path[i+1].name == "destination" || i+1 == len(p.path) && p.name == "destination" {
			given = nil // it is what names the destinations
		}
		fmt.Fprintf(&b, "<%s %s", step.name, strings.Join(given, " "))
		if step == p.part {
			fmt.Fprintf(&b, "\n%s", attribute)
		}
		b.WriteString(">")
		if step.name == "authorizationPlugin" { // it needs users
			end = "</" + step.name + "><simpleAuthenticationPlugin>" + `<users><authenticationUser username="u" password="p"/></users>` + "</simpleAuthenticationPlugin>" + end
			b.WriteString("\n")
			continue
		}
		b.WriteString("\n")
		end = "</" + step.name + ">" + end
	}
	if content == "" {
		content = holds(p.part)
	}
	return b.String() + content + end, line, line + 1
}

// before is what stands before the equals sign.
func before(attribute string) string {
	name, _, _ := strings.Cut(attribute, "=")
	return name
}

// jaasFiles are what a jaasAuthenticationPlugin needs beside the document.
var jaasFiles = map[string]string{
	"login.config": "activemq-domain { " + activeMQJAAS.classes + "PropertiesLoginModule" + " required; };\nother { " + activeMQJAAS.classes + "PropertiesLoginModule" +
		" required org.apache.activemq.jaas.properties.user=\"other.properties\"; };",
	"users.properties": "u=p", "other.properties": "o=p", "groups.properties": "g=u,o",
}

// load reads a document that is the whole file.
func load(document string) (*Config, []Notice, []Notice) {
	c, notices, err := Load(Options{File: "f", ReadFile: func(path string) ([]byte, error) {
		if text, ok := jaasFiles[path]; ok {
			return []byte(text), nil
		}
		return []byte(document), nil
	}})
	var problem *Error
	errors.As(err, &problem)
	if problem == nil {
		return c, notices, nil
	}
	return c, notices, problem.Problems
}

// speaking picks the notices that speak of a part on a line.
func speaking(list []Notice, part string, line int) []Notice {
	var own []Notice
	for _, n := range list {
		if n.Part == part && n.Line == line {
			own = append(own, n)
		}
	}
	return own
}

// TestEveryPartIsNamed puts every element of the table (spec section 7) into a
// file of its own: what is left out is a warning, what is refused an error, both
// with its line, and everything else is silent (R-XML-03).
func TestEveryPartIsNamed(t *testing.T) {
	t.Parallel()
	for _, p := range allParts(brokerPart, nil) {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			doc, line, _ := p.document("", "")
			_, notices, problems := load(doc)
			warned, failed := speaking(notices, p.name, line), speaking(problems, p.name, line)
			wantWarned, wantFailed := 0, 0
			switch p.fate {
			case leftOut:
				wantWarned = 1
			case refused:
				wantFailed = 1
			}
			if p.role == roleBroker {
				wantWarned = 1 // it has no connectors
			}
			if len(warned) != wantWarned || len(failed) != wantFailed {
				t.Errorf("warnings %v, errors %v for\n%s", warned, failed, doc)
			}
			if (p.fate == leftOut || p.fate == refused) && p.why == "" {
				t.Error("has no reason")
			}
			if strings.HasSuffix(p.why, ".") || strings.HasSuffix(p.why, "!") {
				t.Errorf("reason ends a sentence: %q", p.why)
			}
		})
	}
}

// TestEveryAttributeIsNamed does the same with every attribute: its default is
// silent, another value is named or honoured, a value of the wrong kind and a
// misspelt name are errors.
func TestEveryAttributeIsNamed(t *testing.T) {
	t.Parallel()
	for _, p := range allParts(brokerPart, nil) {
		if p.opaque || p.fate == refused {
			continue
		}
		for _, a := range p.attrs {
			t.Run(p.String()+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				part := p.name + " " + a.name
				count := func(value string) (warned, failed []Notice) {
					doc, _, line := p.document(fmt.Sprintf("%s=%q", a.name, value), "")
					_, notices, problems := load(doc)
					return speaking(notices, part, line), speaking(problems, part, line)
				}
				if a.def != "" {
					if w, f := count(a.def); len(w)+len(f) != 0 {
						t.Errorf("the default is named: %v %v", w, f)
					}
				}
				w, f := count(other(a))
				want := map[fate][2]int{refused: {0, 1}, leftOut: {1, 0}}[a.fate]
				if a.name == "dataDirectory" {
					want = [2]int{1, 0} // messages are not kept there
				}
				if got := [2]int{len(w), len(f)}; got != want {
					t.Errorf("%s: warnings %v, errors %v", other(a), w, f)
				}
				if (a.fate == leftOut || a.fate == refused) && a.why == "" {
					t.Error("has no reason")
				}
				if a.kind != text {
					if _, f := count("so-so"); len(f) != 1 {
						t.Errorf("a value of the wrong kind: %v", f)
					}
				}
				misspelt(t, p, a)
			})
		}
	}
}

// other is a value that is well-formed and not the default.
func other(a attr) string {
	switch a.kind {
	case boolean:
		if a.def == "true" {
			return "false"
		}
		return "true"
	case integer, size, decimal:
		if strings.HasPrefix(a.name, "percent") || a.name == "storeUsageHighWaterMark" {
			return "12"
		}
		return "1234"
	}
	switch a.name {
	case "uri":
		return "tcp://127.0.0.1:9"
	case "purgeRecoveredXATransactionStrategy":
		return "COMMIT"
	case "keyStoreType", "trustStoreType":
		return "PKCS12"
	}
	return "other"
}

// misspelt checks that a name with a letter too many is an error with the
// nearest name.
func misspelt(t *testing.T, p placed, a attr) {
	t.Helper()
	doc, _, line := p.document(a.name+`x="1"`, "")
	_, _, problems := load(doc)
	own := speaking(problems, p.name+" "+a.name+"x", line)
	if len(own) != 1 || !strings.Contains(own[0].Text, "did you mean") {
		t.Errorf("misspelt name: %v", own)
	}
}

// TestEveryHonouredAttributeCounts checks that each attribute which the table
// calls honoured changes the Config.
func TestEveryHonouredAttributeCounts(t *testing.T) {
	t.Parallel()
	for _, p := range allParts(brokerPart, nil) {
		for _, a := range p.attrs {
			if a.fate != honoured || slices.Contains([]string{"dataDirectory", "autoStart", "producerFlowControl", "useTempMirroredQueues"}, a.name) { // see the fixtures memory-adapter, refused, limits and mirrored-interceptors
				continue
			}
			t.Run(p.String()+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				doc, _, _ := p.document("", "")
				without, _, _ := load(doc)
				values := []string{other(a)}
				if a.kind == boolean {
					values = []string{"true", "false"}
				}
				for _, v := range values {
					doc, _, _ := p.document(fmt.Sprintf("%s=%q", a.name, v), "")
					with, _, problems := load(doc)
					if with == nil {
						t.Fatalf("%v for\n%s", problems, doc)
					}
					if without == nil || !cmp.Equal(with, without, saidAlike) {
						return
					}
				}
				t.Errorf("no value of it changes the Config:\n%s", doc)
			})
		}
	}
}

// saidAlike compares what a Config says, without the places where it was said.
var saidAlike = cmp.FilterPath(func(p cmp.Path) bool {
	name := p.Last().String()
	return name == ".Source" || name == ".Settings"
}, cmp.Ignore())

// TestUnknownChildren checks that every element that may hold others says which
// when it holds another.
func TestUnknownChildren(t *testing.T) {
	t.Parallel()
	for _, p := range allParts(brokerPart, nil) {
		if p.opaque || p.fate == refused || len(p.children) == 0 {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			name := p.children[0].name + "s"
			doc, _, line := p.document("", "<"+name+"/>")
			_, _, problems := load(doc)
			own := speaking(problems, name, line+1)
			if len(own) != 1 || !strings.Contains(own[0].Text, "did you mean "+p.children[0].name) {
				t.Errorf("%v for\n%s", problems, doc)
			}
		})
	}
}
