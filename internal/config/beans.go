package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Namespaces of Spring.
const (
	beansSpace   = "http://www.springframework.org/schema/beans"
	contextSpace = "http://www.springframework.org/schema/context"
)

// beans are the top-level elements of a document and of those it imports, by id.
// Elements of the broker refer to them (R-XML-06).
type beans struct {
	byID     map[string]*element
	used     map[*element]bool
	expanded map[*element]bool
	settled  map[*element]bool
	props    *placeholders
}

func newBeans(props *placeholders) *beans {
	return &beans{byID: map[string]*element{}, used: map[*element]bool{},
		expanded: map[*element]bool{}, settled: map[*element]bool{}, props: props}
}

// expand fills the placeholders of e and all it holds, once.
func (b *beans) expand(e *element, r *report) {
	if b.expanded[e] {
		return
	}
	b.expanded[e] = true
	for i := range e.attrs {
		a := &e.attrs[i]
		v, err := b.props.expand(a.value)
		if err != nil {
			r.fail(e.atAttr(*a, err.Error()))
			a.bad = true
			continue
		}
		a.value = v
	}
	v, err := b.props.expand(e.text)
	if err != nil {
		r.fail(e.at(err.Error()))
	}
	e.text = v
	for _, c := range e.children {
		b.expand(c, r)
	}
}

// settle brings e, which p describes, to the form that the tables know: a
// reference to a bean becomes the bean, a bean of one of ActiveMQ's classes
// becomes its element, lists dissolve.
func (b *beans) settle(e *element, p *part, r *report) {
	if b.settled[e] {
		return
	}
	b.settled[e] = true
	attrs := e.attrs[:0:0]
	var children []*element
	for _, a := range e.attrs {
		id, isRef := strings.CutPrefix(a.value, "#")
		if !isRef || strings.HasPrefix(id, "{") || a.bad || p.childNamed(a.name) == nil {
			attrs = append(attrs, a)
			continue
		}
		holder := &element{space: e.space, name: a.name, file: e.file, line: a.line}
		if target := b.lookup(id, e.atAttr(a, ""), r); target != nil {
			holder.children = []*element{target}
		}
		children = append(children, holder)
	}
	for _, c := range e.children {
		children = append(children, b.plain(c, r, 0)...)
	}
	e.attrs, e.children = attrs, children
}

// plain returns what a child stands for: itself, what it refers to, or what it
// lists.
func (b *beans) plain(c *element, r *report, depth int) []*element {
	if isCore(c.space) || depth > maxDepth {
		return []*element{c}
	}
	switch c.name {
	case "bean":
		return []*element{fromBean(c)}
	case "ref":
		id := c.attr("bean") + c.attr("local")
		if target := b.lookup(id, c.at(""), r); target != nil {
			return []*element{target}
		}
		return nil
	case "list", "set", "array":
		var all []*element
		for _, item := range c.children {
			all = append(all, b.plain(item, r, depth+1)...)
		}
		return all
	}
	return []*element{c}
}

// lookup finds a top-level bean; a miss is reported at place.
func (b *beans) lookup(id string, place Notice, r *report) *element {
	e := b.byID[id]
	if e == nil {
		var ids []string
		if !r.full() {
			ids = slices.Collect(maps.Keys(b.byID))
		}
		place.Text = fmt.Sprintf("refers to %q, and no bean has that id%s", id, didYouMean(id, ids))
		r.fail(place)
		return nil
	}
	b.used[e] = true
	b.expand(e, r)
	if isCore(e.space) {
		return e
	}
	return fromBean(e)
}

// elementNames are the elements of classes whose element is not the class name
// with a small first letter.
var elementNames = map[string]string{
	"DiscardingDeadLetterStrategy": "discarding",
	"ActiveMQQueue":                "queue",
	"ActiveMQTopic":                "topic",
	"ActiveMQTempQueue":            "tempQueue",
	"ActiveMQTempTopic":            "tempTopic",
	"KahaDBPersistenceAdapter":     "kahaDB",
	"KahaDBStore":                  "kahaDB",
	"BrokerService":                "broker",
	"SpringSslContext":             "sslContext",
	"XBeanBrokerService":           "broker",
}

// springProperties is the namespace in which attributes of a bean are its properties.
const springProperties = "http://www.springframework.org/schema/p"

// beanAttributes are those of a bean that change nothing in what it stands for. Others,
// such as parent, would.
var beanAttributes = []string{"id", "name", "class", "scope", "lazy-init", "primary", "depends-on", "autowire", "init-method", "destroy-method"}

// fromBean makes of a Spring bean of one of ActiveMQ's classes the element that
// says the same. A bean of another class stays a "bean".
func fromBean(bean *element) *element {
	if bean.name != "bean" {
		return bean
	}
	class := bean.attr("class")
	short := class[strings.LastIndexByte(class, '.')+1:]
	if !strings.HasPrefix(class, "org.apache.activemq.") || short == "" {
		return bean
	}
	e := &element{space: coreSpaces[0], name: elementNames[short], file: bean.file, line: bean.line}
	if e.name == "" {
		first := []rune(short)
		first[0] = unicode.ToLower(first[0])
		e.name = string(first)
	}
	for _, a := range bean.attrs {
		switch {
		case a.space == springProperties:
			if name, isRef := strings.CutSuffix(a.name, "-ref"); isRef {
				a.name, a.value = name, "#"+a.value
			}
			a.space = ""
			e.attrs = append(e.attrs, a)
		case a.space == "" && !slices.Contains(beanAttributes, a.name):
			e.attrs = append(e.attrs, a) // it says more than the element can: an error there
		}
	}
	for _, c := range bean.children {
		switch c.name {
		case "property":
			addBeanProperty(e, c)
		case "constructor-arg": // the name of a destination
			a := attribute{name: "physicalName", value: c.attr("value"), line: c.line}
			if v := c.find("value"); v != nil {
				a.value, a.line = v.text, v.line
			}
			e.attrs = append(e.attrs, a)
		default:
			e.children = append(e.children, c)
		}
	}
	return e
}

// addBeanProperty adds a property to e, as an attribute where it is a value and
// as a child where it is more.
func addBeanProperty(e, property *element) {
	name := property.attr("name")
	for _, a := range property.attrs {
		switch a.name {
		case "value":
			e.attrs = append(e.attrs, attribute{name: name, value: a.value, line: a.line, bad: a.bad})
			return
		case "ref":
			e.attrs = append(e.attrs, attribute{name: name, value: "#" + a.value, line: a.line, bad: a.bad})
			return
		}
	}
	if v := property.find("value"); v != nil {
		e.attrs = append(e.attrs, attribute{name: name, value: v.text, line: v.line})
		return
	}
	if property.find("null") != nil {
		return
	}
	e.children = append(e.children, &element{space: e.space, name: name, file: property.file, line: property.line, children: property.children})
}
