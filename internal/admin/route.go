package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
)

// A call carries one request out. Its result is the reply, as JSON.
type call func(*http.Request) (any, error)

// routes is the table of everything that is served. Names in a path are one
// segment each: what is special in it, a slash above all, is written as %2F.
func (s *surface) routes(metrics, beans http.Handler) http.Handler {
	mux := http.NewServeMux()
	text := func(path string, h http.Handler) {
		mux.Handle(path, only(http.MethodGet, h))
	}
	text("/livez", http.HandlerFunc(s.livez))
	text("/healthz", http.HandlerFunc(s.healthz))
	text("/readyz", http.HandlerFunc(s.readyz))
	text("/metrics", s.login(false, metrics))

	get := func(path string, c call) { mux.Handle(path, only(http.MethodGet, s.login(false, s.reply(c)))) }
	post := func(path string, c call) { mux.Handle(path, only(http.MethodPost, s.login(true, s.reply(c)))) }
	get("/api/v1", s.status)
	get("/api/v1/destinations", s.destinations)
	get("/api/v1/dead-letter-queues", s.deadLetterQueues)
	get("/api/v1/queues/{queue}", s.queue)
	get("/api/v1/scheduled", s.scheduled)
	post("/api/v1/scheduled/remove", s.removeAllScheduled)
	post("/api/v1/scheduled/{id}/remove", s.removeScheduled)
	get("/api/v1/transactions", s.transactions)
	post("/api/v1/transactions/{id}/commit", s.commitTransaction)
	post("/api/v1/transactions/{id}/rollback", s.rollbackTransaction)
	post("/api/v1/transactions/{id}/forget", s.forgetTransaction)
	post("/api/v1/reload", s.reload)
	get("/api/v1/connections", s.connections)
	post("/api/v1/connections/move", s.moveConnections)
	post("/api/v1/connections/{id}/close", s.closeConnection)
	get("/api/v1/policy", s.explain)
	get("/api/v1/policy/simulate", s.simulate)
	get("/api/v1/policy/lint", s.lint)
	for _, place := range []string{"/api/v1/queues/{queue}", "/api/v1/subscriptions/{client}/{subscription}"} {
		get(place+"/messages", s.messages)
		get(place+"/messages/{id}", s.message)
		post(place+"/redrive", s.redrive)
		post(place+"/move", s.move)
		post(place+"/copy", s.copy)
		post(place+"/purge", s.purge)
		post(place+"/delete", s.remove)
	}
	post("/api/v1/queues/{queue}/pause", s.pause)
	post("/api/v1/queues/{queue}/resume", s.resume)
	get("/api/v1/queues/{queue}/groups", s.groups)
	post("/api/v1/queues/{queue}/groups/release", s.releaseGroups)
	post("/api/v1/topics/{topic}/delete", s.removeTopic)
	mux.HandleFunc("/", notServed)

	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusForbidden, kindOf(message.ErrDenied), "a page of another origin may not change anything here")
	}))
	rest := guard.Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isForBeans(r) { // who has rules of its own for paths, and for pages of other origins
			beans.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// notServed answers what has no route.
func notServed(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, kindOf(message.ErrNotFound),
		fmt.Sprintf("there is nothing at %s; the API begins at /api/v1, and a name with a slash in it is written with %%2F", r.URL.EscapedPath()))
}

// only lets one method pass, and HEAD where it is GET.
func only(method string, h http.Handler) http.Handler {
	allowed := []string{method}
	if method == http.MethodGet {
		allowed = append(allowed, http.MethodHead)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(allowed, r.Method) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			writeError(w, http.StatusMethodNotAllowed, kindOf(message.ErrInvalid),
				fmt.Sprintf("%s is not possible at %s, only %s", r.Method, r.URL.EscapedPath(), strings.Join(allowed, " and ")))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// reply makes a handler of a call.
func (s *surface) reply(c call) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := receive(w, r); err != nil {
			s.refuse(w, r, err)
			return
		}
		if name := r.PathValue("queue"); strings.HasPrefix(name, "topic://") {
			s.refuse(w, r, fmt.Errorf("%s is a topic, and its messages are with its subscriptions: name a queue, or a durable subscription "+
				"(nixie: --client and --subscription): %w", name, message.ErrInvalid))
			return
		}
		result, err := c(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, result)
	})
}

// bodyTime is how long the body of a request may take to come, so that nobody holds a
// connection with one that never does. What is done with it may take longer.
const bodyTime = 30 * time.Second

// receive reads a request's body, which is then in memory. Errors: ErrInvalid for one
// that does not come in time or breaks off, ErrOverLimit for one that is too large.
func receive(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	limit := http.NewResponseController(w)
	if err := limit.SetReadDeadline(clock.System{}.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bound the time of a request: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return fmt.Errorf("the request is larger than %d bytes: %w", large.Limit, message.ErrOverLimit)
	case err != nil:
		return fmt.Errorf("the request did not come whole: %w: %w", err, message.ErrInvalid)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := limit.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bound the time of a request: %w", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // nothing was sent yet, so that it can be told
		status = http.StatusInternalServerError
		text.Reset()
		_ = e.Encode(Error{Text: "the reply cannot be written: " + err.Error(), Kind: "internal"})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // whoever asked may have gone
}

// errNoObject is the error of decode for a request without a body.
var errNoObject = fmt.Errorf("the request has no JSON object: %w", message.ErrInvalid)

// decode reads the JSON object that a request carries into v. Fields that v does
// not have, and anything behind the object, are message.ErrInvalid.
func decode(r *http.Request, v any) error {
	if t := r.Header.Get("Content-Type"); t != "" && !strings.HasPrefix(t, "application/json") {
		return fmt.Errorf("the request is %q, and JSON is wanted: send Content-Type: application/json: %w", t, message.ErrInvalid)
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more behind the object")
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return errNoObject
	}
	return fmt.Errorf("the request's JSON: %w: %w", err, message.ErrInvalid)
}

// query checks that a request asks for nothing else than what is known.
func query(r *http.Request, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		switch {
		case len(known) == 0:
			return fmt.Errorf("parameter %q is not known here: there are none: %w", name, message.ErrInvalid)
		case !slices.Contains(known, name):
			return fmt.Errorf("parameter %q is not known here, only %s: %w", name, strings.Join(known, ", "), message.ErrInvalid)
		}
	}
	return nil
}
