package jolokia

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
)

// A Connector is a listener of the broker.
type Connector struct{ Name, URI string }

// Options are what the handler is made of.
type Options struct {
	// Broker is what is shown. It must not be nil.
	Broker  *broker.Broker
	Version string
	Started time.Time
	// Clock tells the time; nil: the machine's.
	Clock clock.Clock
	// Log gets what people did; nil: nowhere.
	Log *slog.Logger
	// Connectors lists the listeners; nil: they are not known.
	Connectors func() []Connector
	// Space tells what the store has taken of the disk, and what it may take, in bytes;
	// a limit of 0: there is none.
	Space func() (used, limit uint64)
	// MayAct fails where whoever asks may only look; MayRead where they may not see a
	// place's messages. nil: everybody may.
	MayAct  func(*http.Request) error
	MayRead func(*http.Request, broker.Place) error
	// Body decodes a message's body for people, and tells its size; nil: bodies are not
	// shown.
	Body func(m *message.Message, limit int) (text string, size int, err error)
	// Properties decodes a message's properties to plain values; nil: those that the
	// broker has added.
	Properties func(*message.Message) (map[string]any, error)
	// Send sends a text message for whoever asks; nil: nobody can.
	Send func(ctx context.Context, to message.Destination, headers map[string]any, text string) (id string, err error)
}

// MaxListed is how many beans list shows, and a pattern reads.
const MaxListed = 20_000

// An agent answers requests.
type agent struct {
	o Options
	b *broker.Broker
}

// New makes the handler; paths are those behind /api/jolokia. It fails without a broker.
func New(o Options) (http.Handler, error) {
	if o.Broker == nil {
		return nil, errors.New("jolokia: no broker")
	}
	o.Version = cmp.Or(o.Version, "unknown")
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Connectors == nil {
		o.Connectors = func() []Connector { return nil }
	}
	if o.Space == nil {
		o.Space = func() (uint64, uint64) { return 0, 0 }
	}
	if o.MayAct == nil {
		o.MayAct = func(*http.Request) error { return nil }
	}
	if o.MayRead == nil {
		o.MayRead = func(*http.Request, broker.Place) error { return nil }
	}
	if o.Properties == nil {
		o.Properties = func(m *message.Message) (map[string]any, error) { return m.Added, nil }
	}
	a := &agent{o: o, b: o.Broker}
	return http.HandlerFunc(a.serve), nil
}

func (a *agent) serve(w http.ResponseWriter, r *http.Request) {
	if err := foreign(r); err != nil {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, err.Error()+"\n")
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		q, err := fromPath(r.URL.EscapedPath(), r.URL.Query())
		write(w, a.answer(r, q, err))
	case http.MethodPost:
		all, faults, bulk, err := fromBody(w, r)
		switch {
		case err != nil:
			write(w, a.answer(r, nil, err))
		case !bulk:
			write(w, a.answer(r, all[0], faults[0]))
		default:
			replies := make([]any, len(all))
			for i := range all {
				replies[i] = a.answer(r, all[i], faults[i])
			}
			write(w, replies)
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// foreign fails for what a browser sends from a page of another origin, so that no page
// makes a user's browser purge a queue. Scripts say "Origin: http://localhost", as
// ActiveMQ asks of them; no browser's page is there without Sec-Fetch-Site.
func foreign(r *http.Request) error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return nil
	case "":
	default:
		return errors.New("a page of another origin may not ask for anything here")
	}
	for _, header := range []string{"Origin", "Referer"} {
		text := r.Header.Get(header)
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Host != r.Host && !loopback(u.Hostname()) {
			return fmt.Errorf("%s %q is another origin: leave it out, or say http://localhost", header, text)
		}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func write(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil { // nothing was sent yet, so that it can be told
		text, _ = json.Marshal(map[string]any{"status": 500, "error_type": classException, "error": "the reply cannot be written: " + err.Error()})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(text, '\n')) // whoever asked may have gone
}

// answer is the reply to one request, or to one that could not be read.
func (a *agent) answer(r *http.Request, q *request, err error) map[string]any {
	reply := map[string]any{"timestamp": a.o.Clock.Now().Unix()}
	if q != nil {
		reply["request"] = q.echo
	}
	var v any
	if err == nil {
		v, err = a.do(r, q)
	}
	if err != nil {
		f := faultOf(err)
		reply["status"], reply["error_type"], reply["error"] = f.status, f.class, f.Error()
		return reply
	}
	reply["status"], reply["value"] = 200, v
	return reply
}

// do does what a request asks for.
func (a *agent) do(r *http.Request, q *request) (any, error) {
	switch q.kind {
	case "version":
		return map[string]any{"agent": "nixie-" + a.o.Version, "protocol": "7.2", "config": map[string]any{},
			"info": map[string]any{"product": "activemq", "vendor": "NixieMQ", "version": a.o.Version}}, nil
	case "list":
		return a.list(r, q.path)
	}
	n, err := parseName(q.mbean)
	if err != nil {
		return nil, err
	}
	var v any
	switch q.kind {
	case "search":
		found := []any{}
		for _, b := range a.find(r, n) {
			found = append(found, b.name.canonical().String())
		}
		return found, nil
	case "write":
		return nil, &fault{400, classAttribute, fmt.Sprintf("attribute %s of %s cannot be set here: what it says is a matter of the configuration ('nixie config reload')", strings.Join(q.attributes, ", "), n)}
	case "exec":
		v, err = a.exec(r, q, n)
	default:
		v, err = a.read(r, q, n)
	}
	if err != nil {
		return nil, err
	}
	return into(v, q.path)
}

// read gets attributes of one bean, or of all that a pattern fits, by their names.
func (a *agent) read(r *http.Request, q *request, n name) (any, error) {
	if !n.isPattern() {
		b, err := a.one(r, n)
		if err != nil {
			return nil, err
		}
		values, err := b.read(q.attributes, false)
		if err == nil && q.single {
			return values[q.attributes[0]], nil
		}
		return values, err
	}
	all := map[string]any{}
	for _, b := range a.find(r, n) {
		values, err := b.read(q.attributes, true)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			all[b.name.canonical().String()] = values
		}
		if len(all) > MaxListed {
			return nil, badRequest("%s fits more than %d beans: say it more narrowly", n, MaxListed)
		}
	}
	if len(all) == 0 {
		return nil, &fault{404, classInstance, fmt.Sprintf("No MBean with pattern %s found for reading attributes", n)}
	}
	return all, nil
}

func (a *agent) exec(r *http.Request, q *request, n name) (any, error) {
	b, err := a.one(r, n)
	if err != nil {
		return nil, err
	}
	o, err := b.operation(q.operation, len(q.arguments))
	if err != nil {
		return nil, err
	}
	if !o.looks() {
		if err := a.o.MayAct(r); err != nil {
			return nil, err
		}
	}
	ctx := context.WithValue(r.Context(), mostKey{}, q.most)
	v, err := o.call(ctx, q.arguments)
	if !o.looks() {
		user, _, _ := r.BasicAuth()
		a.o.Log.LogAttrs(r.Context(), slog.LevelInfo, "bean asked to act", slog.String("dest", n.String()), slog.String("detail", o.signature()),
			slog.String("by", user), slog.String("peer", r.RemoteAddr), slog.Any("result", v), slog.Any("err", err))
	}
	return v, err
}

// mostKey is under which a call's context holds maxCollectionSize.
type mostKey struct{}

// one finds the bean of a name.
func (a *agent) one(r *http.Request, n name) (*bean, error) {
	found := a.find(r, n)
	if n.isPattern() || len(found) != 1 {
		return nil, &fault{404, classInstance, n.String()}
	}
	return found[0], nil
}

// list describes all beans: by domain, and by the properties of their names.
func (a *agent) list(r *http.Request, path []string) (any, error) {
	pattern := name{domain: domain, open: true}
	if len(path) > 1 && path[0] == domain {
		n, err := parseName(domain + ":" + path[1])
		if err != nil {
			return nil, err
		}
		pattern, path = n, slices.Clone(path)
		path[1] = n.canonical().properties()
	}
	found := a.find(r, pattern)
	if len(found) > MaxListed {
		return nil, badRequest("there are %d beans, more than %d: give the path of one, or search", len(found), MaxListed)
	}
	beans, known := map[string]any{}, map[string]any{} // by name, and by class
	for _, b := range found {
		if known[b.class] == nil {
			known[b.class] = b.described()
			if len(path) < 2 { // all of them: each class is written once, and copied
				text, err := json.Marshal(known[b.class])
				if err != nil {
					return nil, err
				}
				known[b.class] = json.RawMessage(text)
			}
		}
		beans[b.name.canonical().properties()] = known[b.class]
	}
	return into(map[string]any{domain: beans}, path)
}
