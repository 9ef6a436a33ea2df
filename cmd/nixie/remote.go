package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/spf13/cobra"
)

const (
	defaultBroker = "http://127.0.0.1:8161"
	// passwordVariable holds the password: a command line is there for all to see.
	passwordVariable = "NIXIE_PASSWORD"
	// maxReplyBytes bounds what is read of a reply.
	maxReplyBytes = 64 << 20
	dialLimit     = 5 * time.Second
)

// A remote is a running broker, as its admin listener shows it, and how to print
// what it says.
type remote struct {
	e      *env
	url    string
	user   string
	asJSON bool
}

// remoteFlags adds the flags that all commands have which talk to a broker.
func remoteFlags(e *env, c *cobra.Command) *remote {
	r := &remote{e: e}
	f := c.Flags()
	f.StringVar(&r.url, "broker", defaultBroker, "admin `URL` of the broker; its ready line shows it")
	f.StringVar(&r.user, "user", "", "`name` to log in with; the password is taken from the environment variable "+passwordVariable)
	f.BoolVar(&r.asJSON, "json", false, "print the broker's reply as JSON")
	return r
}

// get asks for a path and reads the reply into v.
func (r *remote) get(ctx context.Context, path string, v any) error {
	return r.do(ctx, http.MethodGet, path, nil, v)
}

// post sends body and reads the reply into v.
func (r *remote) post(ctx context.Context, path string, body, v any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return r.do(ctx, http.MethodPost, path, content, v)
}

func (r *remote) do(ctx context.Context, method, path string, content []byte, v any) error {
	base, err := r.base()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(content))
	if err != nil {
		return usageError{fmt.Errorf("--broker %s: %w", r.url, err)}
	}
	req.Header.Set("Accept", "application/json")
	if content != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.user != "" {
		password, _ := r.e.lookup(passwordVariable)
		req.SetBasicAuth(r.user, password)
	}
	client := &http.Client{Transport: &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialLimit}).DialContext,
	}}
	defer client.CloseIdleConnections()
	reply, err := client.Do(req)
	if err != nil {
		return r.unreachable(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxReplyBytes))
	if err != nil {
		return fmt.Errorf("broker at %s: reply: %w", r.url, err)
	}
	return r.read(reply, text, v)
}

// base is the broker's URL without a slash at its end.
func (r *remote) base() (string, error) {
	text := r.url
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return "", usageError{fmt.Errorf("--broker %q is no address like %s", r.url, defaultBroker)}
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// unreachable says what can be done about a broker that does not answer.
func (r *remote) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	var cause *url.Error
	if errors.As(err, &cause) {
		err = cause.Err
	}
	hint := "is it running ('nixie serve'), and is this the admin address that its ready line shows? Name another with --broker URL"
	if strings.Contains(err.Error(), "malformed HTTP") {
		hint = "that is no admin listener, perhaps a port for clients: take the admin address that the ready line shows"
	}
	return fmt.Errorf("no answer from a broker at %s: %w\n%s", r.url, err, hint)
}

// read takes the broker's reply apart.
func (r *remote) read(reply *http.Response, text []byte, v any) error {
	if reply.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, v); err != nil {
			return fmt.Errorf("what answers at %s is no NixieMQ broker, or a newer one: %w", r.url, err)
		}
		return nil
	}
	var refusal admin.Error
	if err := json.Unmarshal(text, &refusal); err == nil && refusal.Text != "" {
		if refusal.Kind == "not-found" && strings.HasSuffix(refusal.Text, "does not exist: not found") {
			return errors.New(refusal.Text + "\n'nixie queue list' shows the queues there are, 'nixie dlq list' those with dead letters")
		}
		return errors.New(refusal.Text)
	}
	return fmt.Errorf("what answers at %s is no NixieMQ broker: %s", r.url, reply.Status)
}

// queuePath is the path of a queue, with what follows.
func queuePath(queue, rest string) string { return "/api/v1/queues/" + segment(queue) + rest }

// segment escapes a name for one segment of a path. Dots alone would be taken for
// a step up.
func segment(name string) string {
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
