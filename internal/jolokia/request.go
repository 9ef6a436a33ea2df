package jolokia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a request.
const (
	// MaxRequestBytes is the largest body.
	MaxRequestBytes = 1 << 20
	// MaxBulk is how many requests one body may have.
	MaxBulk = 1000
)

// A request is one thing that is asked for.
type request struct {
	kind       string // version, read, write, exec, search, list
	mbean      string
	attributes []string // of read; nil: all
	single     bool     // one attribute, whose value is the reply's
	path       []string // into the value, or of list
	operation  string   // perhaps with a signature
	arguments  []any
	most       int // maxCollectionSize; 0: not said
	echo       map[string]any
}

// fromPath reads a GET request: TYPE/MBEAN/..., behind the place where it is served.
func fromPath(path string, parameters url.Values) (*request, error) {
	parts, err := split(path)
	if err != nil {
		return nil, err
	}
	q := &request{kind: "version", echo: map[string]any{"type": "version"}}
	if len(parts) > 0 {
		q.kind, parts = strings.ToLower(parts[0]), parts[1:]
	}
	next := func() (part string) {
		if len(parts) > 0 {
			part, parts = parts[0], parts[1:]
		}
		return part
	}
	switch q.kind {
	case "version":
	case "read":
		q.mbean = next()
		if a := next(); a != "" {
			q.attributes = strings.Split(a, ",")
			q.single = len(q.attributes) == 1
		}
		q.path = parts
	case "write":
		q.mbean, q.attributes = next(), []string{next()}
	case "exec":
		q.mbean, q.operation = next(), next()
		for _, p := range parts {
			q.arguments = append(q.arguments, fromText(p))
		}
	case "search":
		q.mbean = next()
	case "list":
		q.path = parts
	default:
		return nil, unknownType(q.kind)
	}
	if p := parameters.Get("p"); p != "" {
		if q.path, err = split(p); err != nil {
			return nil, err
		}
	}
	if n := parameters.Get("maxCollectionSize"); n != "" {
		if q.most, err = strconv.Atoi(n); err != nil || q.most < 0 {
			return nil, badRequest("maxCollectionSize=%q is no number", n)
		}
	}
	q.describe()
	return q, nil
}

func unknownType(kind string) error {
	return badRequest("type %q is none of read, exec, search, list, version and write", kind)
}

// split takes a path apart, in which !/ is a slash and !! an exclamation mark.
func split(path string) ([]string, error) {
	path = strings.NewReplacer("%21", "!").Replace(strings.Trim(path, "/"))
	if path == "" {
		return nil, nil
	}
	var parts []string
	var part strings.Builder
	end := func() error {
		text, err := url.PathUnescape(part.String())
		if err != nil {
			return badRequest("path: %v", err)
		}
		parts = append(parts, text)
		part.Reset()
		return nil
	}
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '!' && i+1 < len(path):
			i++
			part.WriteByte(path[i])
		case path[i] == '/':
			if err := end(); err != nil {
				return nil, err
			}
		default:
			part.WriteByte(path[i])
		}
	}
	return parts, end()
}

// fromText is an argument in a path: "[null]" is none, and `""` an empty text.
func fromText(text string) any {
	switch text {
	case "[null]":
		return nil
	case `""`:
		return ""
	}
	return text
}

// A posted is a request in a body.
type posted struct {
	Type      string          `json:"type"`
	MBean     string          `json:"mbean"`
	Attribute json.RawMessage `json:"attribute"`
	Path      json.RawMessage `json:"path"`
	Operation string          `json:"operation"`
	Arguments []any           `json:"arguments"`
	Config    struct {
		MaxCollectionSize json.Number `json:"maxCollectionSize"`
	} `json:"config"`
}

// fromBody reads a POST request: one, or an array of them. Requests that cannot be read
// have their error in their place.
func fromBody(w http.ResponseWriter, r *http.Request) (all []*request, faults []error, bulk bool, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBytes))
	if err != nil {
		return nil, nil, false, &fault{413, classArgument, fmt.Sprintf("the request does not come whole, or is larger than %d bytes", MaxRequestBytes)}
	}
	raw := []json.RawMessage{body}
	if bulk = bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")); bulk {
		if err := json.Unmarshal(body, &raw); err != nil {
			return nil, nil, bulk, badRequest("the request's JSON: %v", err)
		}
		if len(raw) > MaxBulk {
			return nil, nil, bulk, badRequest("%d requests at once are more than %d", len(raw), MaxBulk)
		}
	}
	for _, text := range raw {
		q, err := fromJSON(text)
		all, faults = append(all, q), append(faults, err)
	}
	return all, faults, bulk, nil
}

func fromJSON(text []byte) (*request, error) {
	var p posted
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&p); err != nil {
		return nil, badRequest("the request's JSON: %v", err)
	}
	q := &request{kind: strings.ToLower(p.Type), mbean: p.MBean, operation: p.Operation, arguments: p.Arguments}
	if !slices.Contains([]string{"version", "read", "write", "exec", "search", "list"}, q.kind) {
		return nil, unknownType(p.Type)
	}
	var err error
	if q.attributes, q.single, err = textOrList(p.Attribute, "attribute"); err != nil {
		return nil, err
	}
	path, single, err := textOrList(p.Path, "path")
	if err != nil {
		return nil, err
	}
	if q.path = path; single {
		if q.path, err = split(path[0]); err != nil {
			return nil, err
		}
	}
	if n := p.Config.MaxCollectionSize.String(); n != "" {
		if q.most, err = strconv.Atoi(n); err != nil || q.most < 0 {
			return nil, badRequest("maxCollectionSize %q is no number", n)
		}
	}
	q.describe()
	return q, nil
}

// textOrList reads a text, or a list of texts.
func textOrList(raw json.RawMessage, what string) (all []string, single bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false, nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		if one == "" {
			return nil, false, nil
		}
		return []string{one}, true, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, false, badRequest("%s is neither a text nor a list of texts", what)
	}
	return all, false, nil
}

// describe makes what a reply says of its request.
func (q *request) describe() {
	q.echo = map[string]any{"type": q.kind}
	if q.mbean != "" {
		q.echo["mbean"] = q.mbean
		if n, err := parseName(q.mbean); err == nil {
			q.echo["mbean"] = n.canonical().String()
		}
	}
	switch {
	case q.single:
		q.echo["attribute"] = q.attributes[0]
	case q.attributes != nil:
		q.echo["attribute"] = q.attributes
	}
	if q.operation != "" {
		q.echo["operation"] = q.operation
	}
	if q.arguments != nil {
		q.echo["arguments"] = q.arguments
	}
	if len(q.path) > 0 {
		q.echo["path"] = strings.Join(q.path, "/")
	}
}

// into follows a path into a value.
func into(value any, path []string) (any, error) {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[step]
			if !ok {
				return nil, &fault{404, classArgument, fmt.Sprintf("the path leads to %q, and there are only %s", step, strings.Join(slices.Sorted(maps.Keys(v)), ", "))}
			}
			value = inner
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v) {
				return nil, &fault{404, classArgument, fmt.Sprintf("the path leads to element %q of %d", step, len(v))}
			}
			value = v[n]
		default:
			return nil, &fault{404, classArgument, fmt.Sprintf("the path leads to %q inside a value that holds nothing", step)}
		}
	}
	return value, nil
}
