package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/redelivery"
)

// Options are what the command line says, and the world that Load may look at.
type Options struct {
	// File is the path of --config; empty: none.
	File string
	// Data is --data; empty: not given.
	Data string
	// Listen holds each --listen URI; they take the place of the file's connectors.
	Listen []string
	// Admin is --admin, HOST:PORT; nil: not given; empty: no admin listener.
	Admin *string
	// AllowAnonymous is --allow-anonymous.
	AllowAnonymous bool
	// Defines holds each -D, as NAME=VALUE.
	Defines []string
	// HandOutMarks is --hand-out-marks; nil: not given.
	HandOutMarks *bool
	// WithoutKeys leaves the files of keys and certificates unread, for those who look at a
	// file elsewhere than where it is served.
	WithoutKeys bool
	// LookupEnv looks up an environment variable; nil: there are none.
	LookupEnv func(name string) (string, bool)
	// ReadFile reads a whole file; nil: from the file system. Tests set it.
	ReadFile func(path string) ([]byte, error)
}

// dataSources says where the data directory comes from.
type dataSources struct {
	dir   string // of --data, or the default
	given bool   // by --data
}

// A loader is one load in progress.
type loader struct {
	report
	opts    Options
	cfg     *Config
	data    dataSources
	defines map[string]string
	// fileAllowsAnonymous is what our own YAML says.
	fileAllowsAnonymous bool
	// adminPlace is where the admin listener was asked for.
	adminPlace Notice
}

// Load reads the file, if there is one, lays the flags over it and checks the
// outcome. The notices are warnings, there with and without an error. The error
// is an *Error with every problem that was found; then the Config is nil.
//
// Precedence: a flag that is given, then the file, then the default. Two parts
// of a file win over a flag, and a notice says so: persistent="false" and
// memoryPersistenceAdapter keep nothing, whatever --data says.
func Load(opts Options) (*Config, []Notice, error) {
	l := newLoader(opts)
	l.define()
	if opts.File != "" {
		l.file()
	}
	l.unusedSwitches()
	l.flags()
	l.exposure()
	l.conflicts()
	l.secure()
	l.cfg.topicAddresses()
	l.clusterNotices()
	notices, err := l.finish()
	if err != nil {
		return nil, notices, err
	}
	return l.cfg, notices, nil
}

// newLoader starts with the defaults.
func newLoader(opts Options) *loader {
	if opts.LookupEnv == nil {
		opts.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if opts.ReadFile == nil {
		opts.ReadFile = readBounded
	}
	data := dataSources{dir: opts.Data, given: opts.Data != ""}
	if !data.given {
		data.dir = DefaultDataDir
	}
	return &loader{opts: opts, data: data, defines: map[string]string{}, cfg: &Config{
		BrokerName:   DefaultBrokerName,
		Persistent:   data.dir != Memory,
		DataDir:      data.dir,
		Admin:        DefaultAdmin,
		HandOutMarks: true,
		Store:        defaultStore(),
		File:         opts.File,

		KeepTemporaryQueues: DefaultKeepTemporaryQueues,
	}}
}

// DefaultKeepTemporaryQueues is the default of Config.KeepTemporaryQueues, and of
// ActiveMQ's timeBeforePurgeTempDestinations.
const DefaultKeepTemporaryQueues = 5 * time.Second

// defaultStore is what holds where nothing is said about the store.
func defaultStore() StoreLimits {
	return StoreLimits{MinFreeBytes: DefaultMinFreeBytes, MinFreePercent: DefaultMinFreePercent, OnFull: Fail}
}

// define takes the -D flags.
func (l *loader) define() {
	for _, d := range l.opts.Defines {
		name, value, ok := strings.Cut(d, "=")
		switch {
		case !ok || name == "":
			l.fail(Notice{File: "-D", Part: d, Text: "is not NAME=VALUE"})
		case name == "activemq.data":
			l.fail(Notice{File: "-D", Part: d, Text: "the data directory is set by --data"})
		case strings.HasPrefix(name, "nixie."):
			if text, ok := checkSwitch(name, value); !ok {
				l.fail(Notice{File: "-D", Part: d, Text: text})
				continue
			}
			l.defines[name] = value
		default:
			l.defines[name] = value
		}
	}
}

// readBounded reads a file of at most maxFileBytes.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// readFile reads a file that must not be larger than maxFileBytes. The error
// does not repeat the path.
func (l *loader) readFile(path string) ([]byte, error) {
	raw, err := l.opts.ReadFile(path)
	if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
		return nil, pathErr.Err
	}
	if err == nil && len(raw) > maxFileBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxFileBytes)
	}
	return raw, err
}

// file reads the configuration file, of whatever dialect it is.
func (l *loader) file() {
	raw, err := l.readFile(l.opts.File)
	if err != nil {
		l.fail(Notice{File: l.opts.File, Text: "cannot be read: " + err.Error()})
		return
	}
	if !looksLikeXML(raw) {
		l.loadYAML(raw)
		return
	}
	root, problem := parseXML(l.opts.File, raw)
	if problem != nil {
		l.fail(*problem)
		return
	}
	switch {
	case root.name == "beans" || root.name == "broker":
		l.loadActiveMQ(root)
	case root.name == "configuration" && root.space == "urn:hornetq":
		l.loadHornetQ(root)
	case root.name == "configuration" && root.space == "urn:activemq":
		l.loadArtemis(root)
	default:
		l.fail(root.at(fmt.Sprintf("is the root of no configuration that is known (namespace %q); known are beans and broker of ActiveMQ, and configuration of HornetQ (urn:hornetq) and of Artemis (urn:activemq)", root.space)))
	}
}

// looksLikeXML reports whether a file is one of the XML dialects: it begins with
// "<", or is UTF-16, which our YAML never is.
func looksLikeXML(raw []byte) bool {
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		return true
	}
	raw = bytes.TrimLeft(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), " \t\r\n")
	return bytes.HasPrefix(raw, []byte("<"))
}

// flags lays what the command line says over what the file said.
func (l *loader) flags() {
	for _, uri := range l.opts.Listen {
		l.listen(uri)
	}
	if len(l.cfg.Listeners) == 0 && len(l.opts.Listen) == 0 {
		d := parseListener(DefaultListen).listener
		d.Source = "default"
		l.cfg.Listeners = []Listener{d}
	}
	if l.opts.Admin != nil {
		l.cfg.Admin, l.adminPlace = *l.opts.Admin, Notice{File: "--admin", Part: *l.opts.Admin}
	}
	l.clusterSwitch()
	l.javaStores()
	if l.opts.HandOutMarks != nil {
		l.cfg.HandOutMarks = *l.opts.HandOutMarks
	}
	l.cfg.AllowAnonymous = l.opts.AllowAnonymous || l.fileAllowsAnonymous
}

// listen takes one --listen.
func (l *loader) listen(uri string) {
	place := Notice{File: "--listen", Part: withoutPasswords(uri)}
	r := parseListener(uri)
	if r.notOffer != "" {
		r.errors = append(r.errors, r.notOffer+" is not offered yet")
	}
	for _, place.Text = range r.errors {
		l.fail(place)
	}
	for _, place.Text = range r.warnings {
		l.warn(place)
	}
	if len(r.errors) == 0 {
		r.listener.Source = "--listen"
		l.cfg.Listeners = append(l.cfg.Listeners, r.listener)
	}
}

// exposure refuses to listen beyond loopback without authentication, unless
// AllowAnonymous permits it.
func (l *loader) exposure() {
	const text = "listens beyond loopback without authentication; name users in the configuration, or add --allow-anonymous to permit that, or listen on 127.0.0.1"
	if l.cfg.Admin != "" {
		host, _, err := splitAddress(l.cfg.Admin)
		place := l.adminPlace
		switch {
		case err != nil:
			place.Text = err.Error() + "; give HOST:PORT, or an empty text for no admin listener"
			l.fail(place)
		case !isLoopback(host) && !l.cfg.AllowAnonymous && l.cfg.Access == nil:
			place.Text = text
			l.fail(place)
		}
	}
	if l.cfg.AllowAnonymous || l.cfg.Access != nil {
		return
	}
	for _, n := range l.cfg.Listeners {
		if !isLoopback(n.Host) {
			l.fail(n.notice(text))
		}
	}
}

// notice makes a notice that speaks of a listener.
func (l Listener) notice(text string) Notice {
	file, line := splitSource(l.Source)
	return Notice{File: file, Line: line, Part: fmt.Sprintf("listener %s (%s)", l.Name, l.URI), Text: text}
}

// splitSource takes "FILE:LINE" apart; line is 0 where there is none.
func splitSource(source string) (file string, line int) {
	i := strings.LastIndexByte(source, ':')
	if n, err := parseInt(source[i+1:], 1, 1<<31); i >= 0 && err == nil {
		return source[:i], int(n)
	}
	return source, 0
}

// maxCompared bounds how many entries are compared in pairs.
const maxCompared = 500

// conflicts warns about entries of which a reader cannot easily tell which one
// wins (R-MAP-13).
func (l *loader) conflicts() {
	list := make([]pattern, len(l.cfg.Policies))
	for i, p := range l.cfg.Policies {
		list[i] = pattern{p.Destination, p.Source}
	}
	l.overlaps("policyEntry", list)
	if l.cfg.Redelivery != nil {
		l.overlaps("redeliveryPolicy", l.cfg.Redelivery.patterns())
	}
}

// overlaps is conflicts for the entries of one map, named as the file calls them.
func (l *loader) overlaps(name string, list []pattern) {
	if n := len(list); n > maxCompared {
		l.warn(Notice{File: l.cfg.File, Text: fmt.Sprintf("overlaps of policies are not looked for, as there are %d of them, more than %d", n, maxCompared)})
		return
	}
	m := new(redelivery.Map[struct{}])
	for _, p := range list {
		m.Put(p.destination, struct{}{})
	}
	for _, c := range m.Conflicts() {
		first, second := list[c.First], list[c.Second]
		winner := first
		if c.Winner == c.Second {
			winner = second
		}
		why := "ActiveMQ chooses by the order of the letters"
		if c.Chance {
			why = "ActiveMQ chooses by chance"
		}
		file, line := splitSource(second.source)
		l.warn(Notice{File: file, Line: line, Part: name + " " + second.destination.String(),
			Text: fmt.Sprintf("overlaps %s (%s): where both match, %s (%s) is used; %s", first.destination, first.source, winner.destination, winner.source, why)})
	}
}
