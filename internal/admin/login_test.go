package admin_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// guarded is a surface that asks who people are: root is one of the admins, sam may
// read OPEN alone.
func guarded(_ *broker.Options, o *admin.Options) {
	o.Access = access.New(access.Options{
		Users: []access.User{
			{Name: "root", Password: "r", Groups: []string{access.Admins}},
			{Name: "sam", Password: "s", Groups: []string{"users"}},
		},
		Authorization: &access.Authorization{Entries: []access.Entry{
			{Destination: message.Destination{Kind: message.Queue, Name: "OPEN"}, Read: []string{"users"}},
		}},
	})
}

// TestLogin asks for everything as everybody.
func TestLogin(t *testing.T) {
	t.Parallel()
	inHouse(t, guarded, func(h *house) {
		c := h.client()
		c.send("OPEN", "x")
		c.send("SHUT", "x")
		as := func(user string) []string {
			if user == "" {
				return nil
			}
			return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user))}
		}
		for _, tt := range []struct {
			user, method, path string
			status             int
		}{
			{"", "GET", "/livez", 200},
			{"", "GET", "/healthz", 200},
			{"", "GET", "/readyz", 200},
			{"", "GET", "/metrics", 401},
			{"", "GET", "/api/v1", 401},
			{"", "POST", "/api/v1/queues/OPEN/purge", 401},
			{"sam:wrong", "GET", "/api/v1", 401},
			{"", "GET", "/api/jolokia/version", 401},
			{"sam:wrong", "GET", "/console/jolokia", 401},
			{"sam:s", "GET", "/console/jolokia", 200},
			{"tom:s", "GET", "/api/v1", 401},
			{"sam:s", "GET", "/metrics", 200},
			{"sam:s", "GET", "/api/v1/destinations", 200},
			{"sam:s", "GET", "/api/v1/queues/OPEN/messages", 200},
			{"sam:s", "GET", "/api/v1/queues/SHUT/messages", 403},
			{"sam:s", "GET", "/api/v1/queues/SHUT/messages/ID:x", 403},
			{"sam:s", "GET", "/api/v1/subscriptions/c/s/messages", 404},
			{"sam:s", "POST", "/api/v1/queues/OPEN/purge", 403},
			{"root:r", "GET", "/api/v1/queues/SHUT/messages", 200},
			{"root:r", "POST", "/api/v1/queues/OPEN/purge", 200},
		} {
			w := h.do(tt.method, tt.path, "", as(tt.user)...)
			if w.Code != tt.status {
				t.Errorf("%s %s as %q: status %d, want %d: %s", tt.method, tt.path, tt.user, w.Code, tt.status, w.Body)
			}
			if asked := w.Header().Get("WWW-Authenticate") != ""; asked != (tt.status == http.StatusUnauthorized) {
				t.Errorf("%s as %q: asks for a login: %t", tt.path, tt.user, asked)
			}
		}
		for path, status := range map[string]int{
			"/read/" + queueBean + "SHUT/QueueSize": 200,
			"/exec/" + queueBean + "OPEN/browse()":  200,
			"/exec/" + queueBean + "SHUT/browse()":  403,
			"/exec/" + queueBean + "OPEN/purge()":   403,
			"/exec/" + brokerBean + "/addQueue/X":   403,
		} {
			if s := h.ask(path, as("sam:s")...); s.Status != status {
				t.Errorf("sam asks %s: %+v, want %d", path, s, status)
			}
		}
		text := h.refused(h.do("POST", "/api/v1/queues/OPEN/purge", "", as("sam:s")...), http.StatusForbidden, "denied")
		if !strings.Contains(text, "only members of the group admins may act") {
			t.Error(text)
		}
		if log := h.log.String(); !strings.Contains(log, "admin login refused") || strings.Contains(log, "wrong") {
			t.Error(log)
		}
		c.close()
	})
}
