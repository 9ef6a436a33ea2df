package config

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// The -D names that say what a HornetQ or Artemis file cannot.
const (
	// defineVersion is the version of HornetQ that a file was written for: its
	// schema does not tell.
	defineVersion = "nixie.hornetq-version"
	// defineNoAddress says what becomes of a dead letter without a
	// dead-letter-address: keep (default), or drop as in the products (R-HQ-140).
	defineNoAddress = "nixie.dead-letters-without-address"
)

// switches are the -D names that are not placeholders and are for files of HornetQ and
// Artemis, with the values they take.
var switches = map[string][]string{
	defineVersion:   {"2.2", "2.3", "2.4"},
	defineNoAddress: {"keep", "drop"},
}

// A coreFile loads a HornetQ or Artemis file, and hornetq-jms.xml beside it.
type coreFile struct {
	*loader
	product product
	root    *element
	steps   int
	// includes counts the files that XInclude brought in.
	includes int

	settings  []*element // address-setting elements, in order
	syntax    wildcardSyntax
	temporary string
	bindings  []binding
	diverts   []divert

	acceptors        *element // the list; nil: there is none
	consumerTopics   []VirtualTopic
	acceptorElements int
	listeners        []Listener

	security   *element // security-enabled, where the file has it
	insecure   bool     // and says false
	securities []*element
	mapped     map[string][]string // the roles that have another role, too
	management string              // management-address; empty: the default
	nameless   *element            // reject-empty-validated-user, where it is true
}

// coreTransactionTimeout is the default of transaction-timeout.
const coreTransactionTimeout = 5 * time.Minute

// loadHornetQ reads a document of HornetQ with that root into the Config.
func (l *loader) loadHornetQ(root *element) {
	l.cfg.TransactionTimeout = coreTransactionTimeout
	w := &coreFile{loader: l, product: hornetQ, root: root, syntax: defaultWildcards}
	w.document(root, hornetQPart)
	w.jmsFile()
	w.finishFile()
}

// loadArtemis reads a document of Artemis with that root into the Config.
func (l *loader) loadArtemis(root *element) {
	l.cfg.TransactionTimeout = coreTransactionTimeout
	w := &coreFile{loader: l, product: artemis, root: root, syntax: defaultWildcards}
	w.include(root, 0)
	if core := root.find("core"); core != nil {
		if m := core.find("literal-match-markers"); m != nil {
			w.syntax.markers = m.text
		}
	} else {
		l.fail(root.at("holds no core element"))
	}
	w.document(root, artemisPart)
	w.finishFile()
}

// document fills the placeholders of a document and walks it.
func (w *coreFile) document(root *element, p *part) {
	props := w.placeholders(root.file)
	for name := range switches {
		delete(props.fixed, name)
	}
	w.expand(root, props)
	w.walk(root, p, 0)
}

// expand fills the placeholders of e and all it holds.
func (w *coreFile) expand(e *element, props *placeholders) {
	for i := range e.attrs {
		a := &e.attrs[i]
		v, err := props.expand(a.value)
		if err != nil {
			w.fail(e.atAttr(*a, err.Error()))
			a.bad = true
			continue
		}
		a.value = v
	}
	v, err := props.expand(e.text)
	if err != nil {
		w.fail(e.at(err.Error()))
		e.bad = true
	}
	e.text = v
	for _, c := range e.children {
		w.expand(c, props)
	}
}

// jmsName is the file in which HornetQ keeps JMS destinations.
const jmsName = "hornetq-jms.xml"

// jmsFile reads hornetq-jms.xml, which HornetQ deploys beside its configuration
// (R-HQ-133), where there is one.
func (w *coreFile) jmsFile() {
	if filepath.Base(w.root.file) == jmsName {
		return
	}
	path := filepath.Join(filepath.Dir(w.root.file), jmsName)
	raw, err := w.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		w.fail(Notice{File: path, Text: "cannot be read: " + err.Error()})
		return
	}
	root, problem := parseXML(path, raw)
	switch {
	case problem != nil:
		w.fail(*problem)
	case root.name != "configuration" || root.space != "urn:hornetq":
		w.fail(root.at("is not the root of a HornetQ configuration"))
	default:
		w.document(root, hornetQPart)
	}
}

// read hands an honoured element to its reader.
func (w *coreFile) read(r role, e *element) {
	switch r {
	case roleServerName:
		if e.text == "" {
			w.fail(e.at("is empty; give a name or remove the element"))
			return
		}
		w.cfg.BrokerName = e.text
	case rolePersistence:
		if on, err := parseBool(e.text); err == nil && !on {
			w.inMemory(e.at("keeps nothing"))
		}
	case roleDeliveryCount:
		// False is the products' default, and not said here: counts are always kept.
		if on, err := parseBool(e.text); err == nil && on {
			w.cfg.HandOutMarks = true
		}
	case roleTransactionTimeout:
		w.transactionTimeout(e)
	case roleSecurity:
		on, err := parseBool(e.text)
		w.security, w.insecure = e, err == nil && !on
	case roleSecuritySetting:
		w.securities = append(w.securities, e)
	case roleRoleMapping:
		w.roleMapping(e)
	case roleManagementAddress:
		w.management = e.text
	case roleRejectNameless:
		if on, err := parseBool(e.text); err == nil && on {
			w.nameless = e
		}
	case roleValidatedUser:
		on, err := parseBool(e.text)
		w.cfg.UserID = err == nil && on
	case roleAcceptors:
		w.acceptors = e
	case roleCoreAcceptor:
		w.coreAcceptor(e)
	case roleURIAcceptor:
		w.uriAcceptor(e)
	case roleAddressSetting:
		w.settings = append(w.settings, e)
	case roleWildcards:
		w.wildcards(e)
	case roleTemporaryNamespace:
		w.temporary = e.text
	case roleCoreQueue:
		w.coreQueue(e)
	case roleJMSQueue:
		w.jmsDestination(e, message.Queue)
	case roleJMSTopic:
		w.jmsDestination(e, message.Topic)
	case roleAddress:
		w.addressElement(e)
	case roleDivert:
		w.divertElement(e)
	}
}

// wildcards reads the characters that patterns are written with (R-HQ-14).
func (w *coreFile) wildcards(e *element) {
	for name, into := range map[string]*string{"delimiter": &w.syntax.delimiter, "any-words": &w.syntax.anyWords, "single-word": &w.syntax.singleWord} {
		c := e.find(name)
		switch {
		case c == nil || c.bad:
		case len([]rune(c.text)) != 1:
			w.fail(c.at("is one character"))
		default:
			*into = c.text
		}
	}
}

// finishFile puts together what the whole file says.
func (w *coreFile) finishFile() {
	if w.syntax.markers != "" && len([]rune(w.syntax.markers)) != 2 {
		w.fail(w.root.find("core").find("literal-match-markers").at("is two characters, such as ()"))
		w.syntax.markers = ""
	}
	s := &AddressSettings{product: w.product, syntax: w.syntax, temporary: w.temporary,
		bound: map[string]message.Destination{}, addressOf: map[message.Destination]string{}}
	w.switches(s)
	w.cfg.Addresses = s
	// Virtual topics are those that acceptors ask for; scheduled delivery is on in both products.
	w.cfg.Interceptors, w.cfg.SchedulerSupport = &Interceptors{VirtualTopics: w.consumerTopics}, true
	w.bind(s)
	w.divertAll(s)
	for _, e := range w.settings {
		w.addressSetting(s, e)
	}
	w.ownSettings(s)
	w.judgeSettings(s)
	for i := range s.settings {
		s.settings[i].place = nil
	}
	w.listenersOf()
	w.secure(s)
	if w.nameless != nil && w.cfg.Access == nil {
		w.fail(w.nameless.at("cannot be kept: nobody is asked for a user, so messages without one would be accepted; set it to false"))
	}
}

// switches reads the -D names of these files.
func (w *coreFile) switches(s *AddressSettings) {
	s.drop = w.defines[defineNoAddress] == "drop"
	switch version := w.defines[defineVersion]; {
	case version == "":
	case w.product == artemis:
		w.fail(Notice{File: "-D", Part: defineVersion, Text: "is for files of HornetQ, and this one is Artemis'"})
	default:
		s.as23 = version == "2.3"
		s.version = version
	}
}

// checkSwitch checks a -D whose name is one of ours; ok is false for a value or a
// name that is not known.
func checkSwitch(name, value string) (text string, ok bool) {
	values, known := switches[name]
	switch {
	case name == defineCluster: // its list is checked when it is read
	case !known:
		names := []string{defineCluster}
		for n := range switches {
			names = append(names, n)
		}
		return "is not known" + didYouMean(name, names), false
	case !slices.Contains(values, value):
		return "is one of " + strings.Join(values, ", "), false
	}
	return "", true
}

// unusedSwitches names what -D says about files of HornetQ and Artemis, where the
// file is none.
func (l *loader) unusedSwitches() {
	if l.cfg.Addresses != nil || len(l.problems) > 0 {
		return
	}
	for _, name := range sortedKeys(switches) {
		if _, given := l.defines[name]; given {
			l.warn(Notice{File: "-D", Part: name, Text: "has no effect: it is for files of HornetQ and Artemis"})
		}
	}
}

// inMemory makes the broker keep nothing; a --data that asks for something else is
// named.
func (w *coreFile) inMemory(n Notice) {
	if w.data.given && w.data.dir != Memory {
		n.Text += ": --data " + w.data.dir + " is not used; remove this from the file to keep messages"
		w.warn(n)
	}
	w.cfg.Persistent, w.cfg.DataDir = false, Memory
}

// transactionTimeout reads milliseconds. What is no number was told of already.
func (w *coreFile) transactionTimeout(e *element) {
	if _, err := integer.canonical(e.text); err != nil {
		return
	}
	ms, err := parseInt(e.text, 0, math.MaxInt64/int64(time.Millisecond))
	if err != nil {
		w.fail(e.at(err.Error()))
		return
	}
	w.cfg.TransactionTimeout = time.Duration(ms) * time.Millisecond
}
