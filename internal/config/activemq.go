package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// maxImports bounds how many files one file may bring in.
const maxImports = 32

// An activeMQ loads an activemq.xml: the broker element of a Spring document.
type activeMQ struct {
	*loader
	beans   *beans
	brokers []*element
	loose   []*element // top-level elements that are no broker, in order
	imports map[string]bool
}

// loadActiveMQ reads the document with that root into the Config.
func (l *loader) loadActiveMQ(root *element) {
	props := l.placeholders(root.file)
	m := &activeMQ{loader: l, beans: newBeans(props), imports: map[string]bool{filepath.Clean(root.file): true}}
	m.document(root)
	switch len(m.brokers) {
	case 0:
		if len(l.problems) == 0 {
			l.fail(root.at("holds no broker element"))
		}
		return
	case 1:
	default:
		for _, b := range m.brokers[1:] {
			l.fail(b.at("is the second broker of the file; one process runs one broker"))
		}
		return
	}
	m.broker(m.brokers[0])
	for _, e := range m.loose {
		if !m.beans.used[e] {
			l.warn(m.looseNotice(e))
		}
	}
}

// broker judges the broker element and takes what it says.
func (m *activeMQ) broker(e *element) {
	m.beans.expand(e, &m.report)
	w := &walker{report: &m.report, beans: m.beans, cfg: m.cfg, data: m.data, withoutListener: len(m.opts.Listen) > 0, readFile: m.readFile, defines: m.defines}
	if brokerPart.name != e.name { // made of a bean
		e = fromBean(e)
	}
	w.walk(e, brokerPart, 0)
	m.cfg.Listeners = w.connectors
	if w.connectorElements == 0 && !w.withoutListener {
		m.warn(e.at("has no transportConnectors; the default listener is started: " + DefaultListen))
	}
}

// placeholders are the values that a document of that name may use.
func (l *loader) placeholders(file string) *placeholders {
	conf := filepath.Dir(file)
	base := filepath.Join(conf, "..")
	fixed := map[string]string{"activemq.conf": conf, "activemq.base": base, "activemq.home": base}
	for name, value := range l.defines {
		fixed[name] = value
	}
	fixed["activemq.data"] = l.data.dir
	return &placeholders{fixed: fixed, properties: map[string]string{}, lookupEnv: l.opts.LookupEnv}
}

// document takes in a document: its root is the broker itself, or beans.
func (m *activeMQ) document(root *element) {
	if root.name == "broker" {
		m.brokers = append(m.brokers, root)
		return
	}
	if !m.active(root) {
		return
	}
	for _, e := range root.children {
		switch {
		case e.name == "beans" && (e.space == beansSpace || e.space == ""):
			m.document(e)
		case e.name == "broker" && (isCore(e.space) || e.space == "" || e.space == beansSpace), brokerBean(e):
			m.brokers = append(m.brokers, e)
		case e.name == "import":
			m.importFile(e)
		case isConfigurer(e):
			m.configurer(e)
		case e.name == "description":
		case e.name == "alias":
			if target := m.beans.byID[e.attr("name")]; target != nil {
				m.beans.byID[e.attr("alias")] = target
			}
		default:
			for _, id := range append(strings.Fields(strings.ReplaceAll(e.attr("name"), ",", " ")), e.attr("id")) {
				if id != "" {
					m.beans.byID[id] = e
				}
			}
			m.loose = append(m.loose, e)
		}
	}
}

// profilesName is the property that says which profiles of a Spring document are active.
const profilesName = "spring.profiles.active"

// active reports whether the profiles of a beans element, if it has any, are active: one
// of them, or with ! one that is not. Those that are not active are named.
func (m *activeMQ) active(e *element) bool {
	i := slices.IndexFunc(e.attrs, func(a attribute) bool { return a.space == "" && a.name == "profile" })
	if i < 0 {
		return true
	}
	a := e.attrs[i]
	given, ok := m.defines[profilesName]
	if !ok {
		given, _ = m.opts.LookupEnv("SPRING_PROFILES_ACTIVE")
	}
	separated := func(r rune) bool { return r == ',' || r == ';' || r == ' ' }
	on := strings.FieldsFunc(given, separated)
	if len(on) == 0 {
		on = []string{"default"} // as in Spring
	}
	for _, profile := range strings.FieldsFunc(a.value, separated) {
		name, not := strings.CutPrefix(profile, "!")
		if slices.Contains(on, name) != not {
			return true
		}
	}
	m.warn(e.atAttr(a, fmt.Sprintf("%q is not active, and what is in it is left out; -D %s=NAME makes it so", a.value, profilesName)))
	return false
}

// brokerBean reports whether e is a broker written as a plain Spring bean.
func brokerBean(e *element) bool {
	return e.name == "bean" && fromBean(e).name == "broker"
}

// looseNotice says that a top-level element is not part of the broker.
func (m *activeMQ) looseNotice(e *element) Notice {
	what := ""
	if class := e.attr("class"); class != "" {
		what = fmt.Sprintf("of class %s ", class)
	}
	n := e.at(what + "is left out: it is not part of the broker and is not started")
	if id := e.attr("id"); id != "" {
		n.Part += " " + id
	}
	return n
}

// importFile takes in another file of the document. A fragment that brings no
// broker is named and left out, but for the beans that the broker refers to.
func (m *activeMQ) importFile(e *element) {
	resource, err := m.beans.props.expand(e.attr("resource"))
	if err != nil || resource == "" {
		m.fail(e.at("names no resource that could be read"))
		return
	}
	n := func(text string) Notice {
		return Notice{File: e.file, Line: e.line, Part: "import " + resource, Text: text}
	}
	path := m.resourcePath(e.file, resource)
	if filepath.Base(path) == "jetty.xml" {
		m.warn(n("is left out: it is ActiveMQ's web server; the admin listener (--admin) takes its place"))
		return
	}
	if m.imports[path] {
		return // in already
	}
	if m.imports[path] = true; len(m.imports) > maxImports {
		m.fail(n(fmt.Sprintf("more than %d files", maxImports)))
		return
	}
	raw, err := m.readFile(path)
	if err != nil {
		m.fail(n("cannot be read: " + err.Error()))
		return
	}
	root, problem := parseXML(path, raw)
	if problem != nil {
		m.fail(*problem)
		return
	}
	before, loose := len(m.brokers), len(m.loose)
	m.document(root)
	if len(m.brokers) == before {
		m.warn(n("is left out: it brings no broker element; only beans that the broker refers to are used"))
		for _, e := range m.loose[loose:] {
			m.beans.used[e] = true // named with their file
		}
	}
}

// resourcePath turns a Spring resource into a path, relative to the file that
// names it.
func (m *activeMQ) resourcePath(file, resource string) string {
	path := resource
	for _, prefix := range []string{"file:", "classpath:", "classpath*:"} {
		path = strings.TrimPrefix(path, prefix)
	}
	if strings.HasPrefix(path, "//") {
		path = "/" + strings.TrimLeft(path, "/")
	}
	if !filepath.IsAbs(path) && !strings.HasPrefix(resource, "file:") {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return filepath.Clean(path)
}

// isConfigurer reports whether e names properties files for placeholders.
func isConfigurer(e *element) bool {
	if e.space == contextSpace && e.name == "property-placeholder" {
		return true
	}
	return e.name == "bean" && (strings.HasSuffix(e.attr("class"), "PropertyPlaceholderConfigurer") ||
		strings.HasSuffix(e.attr("class"), "PropertySourcesPlaceholderConfigurer"))
}

// configurer reads the properties files that e names, the last of which wins.
func (m *activeMQ) configurer(e *element) {
	optional := strings.EqualFold(e.attr("ignore-resource-not-found"), "true")
	names := strings.Split(e.attr("location"), ",")
	for _, p := range e.children {
		if p.name != "property" {
			continue
		}
		switch p.attr("name") {
		case "location", "locations":
			names = append(names, values(p)...)
		case "ignoreResourceNotFound":
			optional = strings.EqualFold(p.attr("value"), "true")
		case "properties":
			m.inlineProperties(p)
		case "placeholderPrefix", "placeholderSuffix", "valueSeparator":
			if v := strings.TrimSpace(strings.Join(values(p), "")); v != placeholderSigns[p.attr("name")] {
				m.fail(p.at(fmt.Sprintf("%s %q is not offered: write placeholders as ${name} and ${name:default}", p.attr("name"), v)))
			}
		}
	}
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			m.propertiesFile(e, name, optional)
		}
	}
}

// placeholderSigns are what placeholders are written with.
var placeholderSigns = map[string]string{"placeholderPrefix": "${", "placeholderSuffix": "}", "valueSeparator": ":"}

// values lists the values of a property: its attribute, its text, those of its
// list. In an attribute or text they may be separated by commas.
func values(e *element) []string {
	all := strings.Split(e.attr("value"), ",")
	if e.name == "value" {
		all = append(all, strings.Split(e.text, ",")...)
	}
	for _, c := range e.children {
		switch c.name {
		case "value", "list", "set", "array":
			all = append(all, values(c)...)
		}
	}
	return all
}

// inlineProperties takes properties that stand in the document itself.
func (m *activeMQ) inlineProperties(p *element) {
	for _, c := range p.children {
		switch c.name {
		case "value":
			for k, v := range parseProperties(c.text) {
				m.beans.props.properties[k] = v
			}
		case "props":
			for _, prop := range c.children {
				m.beans.props.properties[prop.attr("key")] = prop.text
			}
		}
	}
}

// propertiesFile reads one properties file. A file that is missing is no error
// by itself: a placeholder that needs it will be.
func (m *activeMQ) propertiesFile(e *element, name string, optional bool) {
	expanded, err := m.beans.props.expand(name)
	if err != nil {
		m.fail(e.at(err.Error()))
		return
	}
	path := m.resourcePath(e.file, expanded)
	raw, err := m.readFile(path)
	if err != nil {
		if !optional {
			m.warn(e.at(fmt.Sprintf("properties file %s is left out: %v", path, err)))
		}
		return
	}
	for k, v := range parseProperties(string(raw)) {
		m.beans.props.properties[k] = v
	}
}
