package config

import (
	"fmt"
	"slices"
	"strings"
)

// The roles of the parts of HornetQ's and Artemis' files.
const (
	roleServerName role = iota + 100
	rolePersistence
	roleDeliveryCount
	roleTransactionTimeout
	roleSecurity
	roleSecuritySetting
	roleRoleMapping
	roleManagementAddress
	roleValidatedUser
	roleRejectNameless
	roleAcceptors
	roleCoreAcceptor
	roleURIAcceptor
	roleAddressSetting
	roleWildcards
	roleCoreQueue
	roleJMSQueue
	roleJMSTopic
	roleAddress
	roleTemporaryNamespace
	roleDivert
)

// walk judges e, which p describes, and all it holds, then hands it to its reader.
func (w *coreFile) walk(e *element, p *part, depth int) {
	if w.steps++; w.steps > maxElements { // of all files together
		if w.steps == maxElements+1 {
			w.fail(e.at("is one of more elements than are read"))
		}
		return
	}
	switch {
	case p.fate == refused && slices.Contains(p.harmless, e.attr("class-name")):
		w.warn(e.at("is left out: it only tells what happens; events are in the log"))
		return
	case p.fate == refused:
		w.fail(e.at(notOfferedText + p.why))
		return
	case p.fate == leftOut:
		w.warn(e.at(listed(e, p) + "is left out: " + p.why))
	case p.leaf:
		w.leaf(e, p)
	}
	if p.opaque {
		w.read(p.role, e)
		return
	}
	for i := range e.attrs {
		w.attr(e, p, &e.attrs[i])
	}
	if !p.leaf && e.text != "" {
		w.fail(e.at(fmt.Sprintf("holds elements, and not the text %q", shortened(e.text))))
	}
	for _, c := range e.children {
		if c.space == includeSpace {
			continue // reported
		}
		if p.role == roleAddressSetting {
			c.name = settingName(c.name)
		}
		if cp := p.childNamed(c.name); cp != nil {
			w.walk(c, cp, depth+1)
			continue
		}
		w.unknownChild(e, p, c)
	}
	w.read(p.role, e)
}

// settingName gives the name under which the table has an element of an
// address-setting: both products compare without regard to case (section 2).
func settingName(name string) string {
	lower := strings.ToLower(name)
	if alias, ok := settingAliases[lower]; ok {
		return alias
	}
	return lower
}

// shortened cuts a text for a notice.
func shortened(s string) string {
	const longest = 60
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "..."
	}
	return s
}

// leaf judges the text of an element.
func (w *coreFile) leaf(e *element, p *part) {
	if e.bad {
		return // its placeholders were reported
	}
	text, ok := w.judge(e.text, p.value, e.at(""))
	e.text, e.bad = text, !ok
}

// attr judges one attribute of e.
func (w *coreFile) attr(e *element, p *part, a *attribute) {
	if a.bad || a.space != "" {
		return // reported, or of XML itself
	}
	row, known := p.attrNamed(a.name)
	switch {
	case !known && w.full():
		w.fail(e.atAttr(*a, "unknown attribute")) // counted, not shown
	case !known:
		attrs, _ := p.names()
		w.fail(e.atAttr(*a, "unknown attribute"+didYouMean(a.name, attrs)))
	default:
		_, ok := w.judge(a.value, row, e.atAttr(*a, ""))
		a.bad = !ok
	}
}

// judge checks a value against its row, and says at n what becomes of it. The
// value comes back trimmed; ok is false where it was refused.
func (w *coreFile) judge(value string, row attr, n Notice) (_ string, ok bool) {
	value = strings.TrimSpace(value)
	canonical, err := row.kind.canonical(value)
	if err != nil && !(value == "" && row.def == "" && row.kind == text) {
		n.Text = err.Error()
		w.fail(n)
		return value, false
	}
	if def, _ := row.kind.canonical(row.def); row.def != "" && strings.EqualFold(canonical, def) {
		return value, true
	}
	switch row.fate {
	case refused:
		n.Text = fmt.Sprintf("%q %s%s", value, notOfferedText, row.why)
		w.fail(n)
		return value, false
	case leftOut:
		n.Text = fmt.Sprintf("%q is left out: %s", value, row.why)
		w.warn(n)
	}
	return value, true
}

// unknownChild fails for an element that its parent cannot hold.
func (w *coreFile) unknownChild(e *element, p *part, c *element) {
	if w.full() {
		w.fail(c.at("unknown element")) // counted, not shown
		return
	}
	_, children := p.names()
	w.fail(c.at("unknown element inside " + e.name + didYouMean(c.name, children)))
}
