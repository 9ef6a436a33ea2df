package config

import (
	cryptotls "crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// coreAcceptor reads an acceptor of HornetQ, which speaks the core protocol or
// STOMP and so is named and left out (R-HQ-127).
func (w *coreFile) coreAcceptor(e *element) {
	w.acceptorElements++
	params := map[string]string{"host": "localhost", "port": "5445", "protocol": "core", "protocols": ""}
	for _, p := range e.children {
		if p.name == "param" {
			params[p.attr("key")] = p.attr("value")
		}
	}
	class := ""
	if c := e.find("factory-class"); c != nil {
		class = c.text
	}
	n := e.at("")
	n.Part = "acceptor " + e.attr("name")
	if strings.HasSuffix(class, "InVMAcceptorFactory") {
		n.Text = "is left out: it is for calls inside one Java process"
		w.warn(n)
		return
	}
	protocol := strings.ToUpper(params["protocol"])
	if params["protocols"] != "" {
		protocol = strings.ToUpper(params["protocols"])
	}
	if protocol == "CORE" {
		protocol = "HornetQ's core protocol"
	}
	n.Text = fmt.Sprintf("%s:%s is left out: %s is not offered yet, nothing listens there", params["host"], params["port"], protocol)
	w.warn(n)
}

// An acceptorOption is an option of an Artemis acceptor: either it is honoured
// (set), or refused, or leaving it out is safe unless it is the default anyway.
type acceptorOption struct {
	set     func(*ListenerOptions, string) error
	def     string
	refused string
}

// acceptorOptions are the options that mean something for OpenWire (R-HQ-136),
// and the defaults of others. What is not here tunes Netty, or another protocol.
var acceptorOptions = map[string]acceptorOption{
	"connectionsAllowed":                {set: setConnectionsAllowed},
	"tcpNoDelay":                        {set: setNoDelay},
	"maxInactivityDuration":             {set: setInactivity},
	"maxInactivityDurationInitalDelay":  {set: setInitialDelay}, // Artemis' own spelling
	"openwireMaxPacketSize":             {set: setMaxFrame},
	"protocols":                         {set: func(*ListenerOptions, string) error { return nil }},
	"anycastPrefix":                     {set: setAnycastPrefix},
	"multicastPrefix":                   {set: setMulticastPrefix},
	"securityDomain":                    {refused: "its users are those of another domain than the rest's; keep the users in one domain"},
	"tcpSendBufferSize":                 {def: "1048576"},
	"tcpReceiveBufferSize":              {def: "1048576"},
	"useEpoll":                          {def: "true"},
	"useKQueue":                         {def: "true"},
	"useKeepAlive":                      {def: "true"},
	"amqpMinLargeMessageSize":           {def: "102400"},
	"amqpCredits":                       {def: "1000"},
	"amqpLowCredits":                    {def: "300"},
	"amqpDuplicateDetection":            {def: "true"},
	"supportAdvisory":                   {def: "true"},
	"suppressInternalManagementObjects": {def: "true"},
	"handshake-timeout":                 {def: "10"},
	"sslEnabled":                        {set: setSSL},
	"keyStorePath":                      {set: setCertificate},
	"keyStorePassword":                  {set: setKeyStorePassword},
	"keyStoreType":                      {set: setStoreType},
	"trustStorePath":                    {set: setTrustPath},
	"trustStorePassword":                {set: setTrustPassword},
	"trustStoreType":                    {set: setStoreType},
	"needClientAuth":                    {set: setNeedClientAuth},
	"wantClientAuth":                    {set: setWantClientAuth},
	"enabledProtocols":                  {set: setProtocols},
	"enabledCipherSuites":               {set: setCipherSuites},
	"verifyHost":                        {set: setVerifyHost},
	"trustAll":                          {set: setTrustAll},
	"crlPath":                           {refused: "certificates of clients that were revoked would be let in; remove it, and take who is not to be let in out of the trust store"},
	"trustManagerFactoryPlugin":         {refused: "it is Java code, which says whom to trust; name a trustStorePath"},
	"sniHost":                           {refused: "clients that ask for another host would be let in; remove it if that does not matter"},
	"directDeliver":                     {def: "true"},
	"batchDelay":                        {def: "0"},
}

// virtualTopicOption is the option that gives consumers of some queues a copy of what is sent
// to a topic (R-HQ-136). It counts for all listeners here.
const virtualTopicOption = "virtualTopicConsumerWildcards"

// topicsOf reads the virtual topics of an acceptor, but for those that another one had.
func (w *coreFile) topicsOf(e *element) {
	_, query, _ := strings.Cut(e.text, "?")
	given, err := acceptorQuery(query)
	if err != nil || given[virtualTopicOption] == "" {
		return // what is wrong with a query is told where it is used
	}
	topics, err := virtualConsumers(given[virtualTopicOption], e.source())
	if err != nil {
		n := e.at(fmt.Sprintf("option %s: %v", virtualTopicOption, err))
		n.Part = "acceptor " + e.attr("name")
		w.fail(n)
	}
	for _, v := range topics {
		same := func(o VirtualTopic) bool { return o.Name == v.Name && o.Prefix == v.Prefix }
		if !slices.ContainsFunc(w.consumerTopics, same) {
			w.consumerTopics = append(w.consumerTopics, v)
		}
	}
}

// setConnectionsAllowed sets how many connections may be open; -1: no bound.
func setConnectionsAllowed(o *ListenerOptions, s string) error {
	n, err := parseInt(s, -1, 1<<31-1)
	o.MaximumConnections = int(max(0, n))
	return err
}

func setSSL(o *ListenerOptions, s string) (err error) {
	o.TLS.On, err = parseBool(s)
	return err
}

// setTrustAll takes Artemis' default: not every certificate is trusted.
func setTrustAll(_ *ListenerOptions, s string) error {
	on, err := parseBool(s)
	if on {
		return errors.New("any certificate would be let in; name a trustStorePath")
	}
	return err
}

// uriAcceptor reads an acceptor of Artemis. One that speaks OpenWire, alone or
// among others, is served; the rest is named (R-HQ-136).
func (w *coreFile) uriAcceptor(e *element) {
	w.acceptorElements++
	if e.bad {
		return
	}
	w.topicsOf(e) // they hold whatever clients connect to
	if len(w.opts.Listen) > 0 {
		return
	}
	n := e.at("")
	n.Part = "acceptor " + e.attr("name")
	say := func(report func(Notice), format string, args ...any) {
		n.Text = fmt.Sprintf(format, args...)
		report(n)
	}
	scheme, rest, ok := strings.Cut(e.text, "://")
	if !ok {
		say(w.fail, "%q is not a URI such as tcp://localhost:61616", shortened(e.text))
		return
	}
	address, query, _ := strings.Cut(rest, "?")
	given, err := acceptorQuery(query)
	if err != nil {
		say(w.fail, "%v", err)
		return
	}
	place := scheme + "://" + address
	switch strings.ToLower(scheme) {
	case "tcp", "netty":
	case "vm", "invm":
		say(w.warn, "%s is left out: it is for calls inside one Java process", place)
		return
	default:
		say(w.fail, "scheme %q is not known%s", scheme, didYouMean(strings.ToLower(scheme), []string{"tcp", "vm"}))
		return
	}
	var others []string
	speaks := given["protocols"] == "" // then it speaks all there are
	for p := range strings.SplitSeq(given["protocols"], ",") {
		switch p = strings.ToUpper(strings.TrimSpace(p)); p {
		case "":
		case "OPENWIRE":
			speaks = true
		default:
			others = append(others, p)
		}
	}
	if given["protocols"] == "" {
		others = []string{"other protocols than OpenWire"}
	}
	if !speaks {
		say(w.warn, "%s is left out: %s not offered yet, nothing listens there", place, are(others))
		return
	}
	l := Listener{Name: e.attr("name"), Protocol: OpenWire, URI: place, Options: DefaultListenerOptions(), Source: e.source()}
	if l.Name == "" {
		l.Name = OpenWire
	}
	if l.Host, l.Port, err = splitAddress(strings.TrimSuffix(address, "/")); err != nil {
		say(w.fail, "%v", err)
		return
	}
	var left []string
	for _, name := range sortedKeys(given) {
		o, value := acceptorOptions[name], given[name]
		switch {
		case name == virtualTopicOption: // read above
		case o.refused != "":
			say(w.fail, "option %s=%s %s%s", name, value, notOfferedText, o.refused)
		case o.set != nil:
			if err := o.set(&l.Options, value); err != nil {
				say(w.fail, "option %s: %v", name, err)
			}
		case o.def == "" || !strings.EqualFold(value, o.def):
			left = append(left, name)
		}
	}
	l.Options.MaxInactivity = max(0, l.Options.MaxInactivity)
	tls := &l.Options.TLS
	for _, s := range []*KeyFile{&tls.Keys, &tls.Trust} {
		if s.Path != "" {
			s.Path = storePath(w.readFile, e.file, s.Path)
		}
	}
	warnings, problems := tls.negotiable(&cryptotls.Config{})
	if !tls.On && *tls != (TLSOptions{}) {
		*tls, problems = TLSOptions{}, nil
		warnings = []string{"what it says of TLS is left out, as sslEnabled is not true"}
	}
	for _, text := range warnings {
		say(w.warn, "%s", text)
	}
	for _, text := range problems {
		say(w.fail, "%s", text)
	}
	if len(others) > 0 {
		say(w.warn, "is served as OpenWire; %s not offered yet", are(others))
	}
	if len(left) > 0 {
		say(w.warn, "options %s are left out: they tune Netty, advisories or other protocols", strings.Join(left, ", "))
	}
	w.listeners = append(w.listeners, l)
}

// are puts words into a sentence before what is said of them.
func are(words []string) string {
	last := len(words) - 1
	switch {
	case last == 0 && !strings.Contains(words[0], " "):
		return words[0] + " is"
	case last == 0:
		return words[0] + " are"
	}
	return strings.Join(words[:last], ", ") + " and " + words[last] + " are"
}

// acceptorQuery takes the options of an acceptor's URI apart; they are separated
// by ";" or "&".
func acceptorQuery(query string) (map[string]string, error) {
	given := map[string]string{}
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == ';' || r == '&' }) {
		name, value, _ := strings.Cut(pair, "=")
		name, errName := url.QueryUnescape(strings.TrimSpace(name))
		value, errValue := url.QueryUnescape(strings.TrimSpace(value))
		if errName != nil || errValue != nil {
			return nil, fmt.Errorf("option %q is badly escaped", pair)
		}
		given[name] = value
	}
	return given, nil
}

// sortedKeys lists the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// listenersOf ends the list of acceptors. A file without one that speaks OpenWire,
// as all of HornetQ's are, gets the default listener.
func (w *coreFile) listenersOf() {
	place := w.root
	if w.acceptors != nil {
		place = w.acceptors
	}
	switch {
	case len(w.opts.Listen) > 0 && w.acceptorElements > 0:
		w.warn(place.at(fmt.Sprintf("is left out: --listen takes the place of the file's acceptors (%d)", w.acceptorElements)))
	case len(w.opts.Listen) > 0:
	case len(w.listeners) > 0:
		w.cfg.Listeners = w.listeners
	case w.acceptorElements == 0:
		w.warn(place.at("has no acceptors; the default listener for OpenWire is started: " + DefaultListen))
	case len(w.problems) == 0:
		w.warn(place.at("has none that speaks OpenWire; the default listener for OpenWire is started: " + DefaultListen + "; give another with --listen"))
	}
}
