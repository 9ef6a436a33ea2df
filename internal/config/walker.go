package config

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
)

// role says which reader takes the values of an honoured part.
type role uint8

// The roles there are.
const (
	roleNone role = iota // its parent reads it
	roleBroker
	roleConnectors
	roleConnector
	rolePolicyEntry
	roleDefaultEntry
	roleSystemUsage
	roleMemoryStore
	roleKahaDB
	roleDestination
	roleRedeliveryPlugin
	roleRedeliveryPolicy
	roleDefaultRedelivery
	roleInterceptors
	roleMirroredQueue
	roleVirtualTopic
	roleComposite
	roleDiscarding
	roleTimeStamping
	roleSelectorCache
	rolePersistency
	roleAuthentication
	roleJAAS
	roleAuthorization
	roleAuthorizationEntry
	roleDefaultAuthorization
	roleTempAuthorization
	roleMemoryUsage
	roleStoreUsage
	roleNetworkConnector
	roleSSLContext
)

// coreSpaces begin the namespaces of ActiveMQ's own elements, by its age.
var coreSpaces = []string{"http://activemq.apache.org/schema/core", "http://activemq.org/config/", "http://activemq.apache.org/config/"}

// isCore reports whether a namespace is that of ActiveMQ's elements.
func isCore(space string) bool {
	for _, s := range coreSpaces {
		if strings.HasPrefix(space, s) {
			return true
		}
	}
	return false
}

// A walker goes over a broker element with the table of its parts: it names
// what is not honoured and hands what is to the readers (reader.go).
type walker struct {
	*report
	beans *beans
	cfg   *Config
	data  dataSources
	// steps counts the elements that were walked: beans that refer to each other
	// can make more of them than the file has.
	steps int
	// connectors are the listeners found so far; connectorElements counts all that
	// the file has, served or not.
	connectors        []Listener
	connectorElements int
	readFile          func(path string) ([]byte, error) // a file that the document names
	defines           map[string]string                 // of -D
	withoutListener   bool                              // listeners come from --listen, the file's are not used
	usageFails        bool                              // systemUsage says sendFailIfNoSpace="true"
	usage             []Setting                         // of systemUsage
	// redelivery and intercept are filled before the elements that hold their parts
	// are read.
	redelivery RedeliveryPlugin
	intercept  Interceptors
	rights     access.Authorization
	// authorizationPlace is where the authorizationPlugin stands; empty: nowhere.
	authorizationPlace string
}

// walk judges e, which p describes, and all it holds.
func (w *walker) walk(e *element, p *part, depth int) {
	if w.steps++; depth > maxDepth || w.steps > maxElements {
		if w.steps <= maxElements+1 {
			w.fail(e.at("elements that refer to each other go too deep"))
		}
		w.steps = maxElements + 1 // no more
		return
	}
	switch p.fate {
	case refused:
		if p.role == roleNetworkConnector && w.networkConnector(e) {
			return
		}
		w.fail(e.at(notOfferedText + p.why))
		return
	case leftOut:
		w.warn(e.at(listed(e, p) + "is left out: " + p.why))
	}
	if p.opaque {
		return
	}
	if e.text != "" {
		w.warn(e.at(fmt.Sprintf("the text %q in it is left out: it says nothing", firstOf(e.text))))
	}
	w.beans.settle(e, p, w.report)
	for _, a := range e.attrs {
		w.attr(e, p, a)
	}
	for _, c := range e.children {
		if cp := p.childNamed(c.name); cp != nil {
			w.walk(c, cp, depth+1)
			continue
		}
		w.unknownChild(e, p, c)
	}
	w.read(p.role, e)
}

// firstOf is a text's beginning, on one line.
func firstOf(text string) string {
	const most = 40
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// notOfferedText begins the error for a part that cannot be left out.
const notOfferedText = "is not offered, and leaving it out would change what happens to messages: "

// listed shows the attributes that an element takes with it when it is left out:
// their names alone where nobody knows what they hold.
func listed(e *element, p *part) string {
	var shown []string
	for _, a := range e.attrs {
		row, _ := p.attrNamed(a.name)
		switch {
		case a.space != "" || a.name == "id" || row.fate == honoured:
		case p.opaque:
			shown = append(shown, a.name)
		default:
			shown = append(shown, fmt.Sprintf("%s=%q", a.name, a.value))
		}
	}
	if len(shown) == 0 {
		return ""
	}
	return "with " + strings.Join(shown, ", ") + " "
}

// unknownChild fails for an element that its parent cannot hold.
func (w *walker) unknownChild(e *element, p *part, c *element) {
	if w.full() {
		w.fail(c.at("unknown element")) // counted, not shown
		return
	}
	if c.name == "bean" {
		w.fail(c.at(fmt.Sprintf("a bean of class %q is not known inside %s; what it does would not happen", c.attr("class"), e.name)))
		return
	}
	attrs, children := p.names()
	hint := didYouMean(c.name, children)
	if hint == "" && nearest(c.name, attrs) == c.name {
		hint = "; it is an attribute"
	}
	w.fail(c.at("unknown element inside " + e.name + hint))
}

// attr judges one attribute of e.
func (w *walker) attr(e *element, p *part, a attribute) {
	if a.bad || a.space != "" || a.name == "id" {
		return // reported, or not ActiveMQ's
	}
	row, known := p.attrNamed(a.name)
	if !known && w.full() {
		w.fail(e.atAttr(a, "unknown attribute")) // counted, not shown
		return
	}
	if !known {
		attrs, children := p.names()
		hint := didYouMean(a.name, attrs)
		if p.childNamed(a.name) != nil {
			hint = `; it is an element, or refers to one: "#id"`
		} else if hint == "" {
			hint = didYouMean(a.name, children)
		}
		w.fail(e.atAttr(a, "unknown attribute"+hint))
		return
	}
	if strings.Contains(a.value, "#{") && p.fate != leftOut {
		w.fail(e.atAttr(a, fmt.Sprintf("the expression %s cannot be evaluated; write its value", a.value)))
		return
	}
	value, err := row.kind.canonical(a.value)
	if err != nil {
		w.fail(e.atAttr(a, err.Error()))
		return
	}
	if def, _ := row.kind.canonical(row.def); row.def != "" && value == def {
		return
	}
	switch row.fate {
	case refused:
		w.fail(e.atAttr(a, fmt.Sprintf("%q %s%s", a.value, notOfferedText, row.why)))
	case leftOut:
		w.warn(e.atAttr(a, fmt.Sprintf("%q is left out: %s", a.value, row.why)))
	}
}
