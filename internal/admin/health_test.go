package admin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/store"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	stopping := func(_ *broker.Options, a *admin.Options) { a.Stopping = func() bool { return true } }
	full := func(b *broker.Options, _ *admin.Options) {
		b.Space = func() (store.Space, error) { return store.Space{FreeBytes: 1 << 20, TotalBytes: 1 << 40}, nil }
	}
	broken := func(_ *broker.Options, a *admin.Options) {
		a.Space = func() (admin.Space, error) { return admin.Space{}, errors.New("input/output error") }
	}
	for name, tt := range map[string]struct {
		set    func(*broker.Options, *admin.Options)
		path   string
		status int
		says   string
	}{
		"alive":                                {path: "/livez", status: 200, says: "ok\n"},
		"healthy":                              {path: "/healthz", status: 200, says: "ok\n"},
		"ready":                                {path: "/readyz", status: 200, says: "ok\n"},
		"stopping is alive":                    {set: stopping, path: "/livez", status: 200, says: "ok\n"},
		"stopping is not ready":                {set: stopping, path: "/readyz", status: 503, says: "not ready: the broker is stopping"},
		"stopping is not healthy":              {set: stopping, path: "/healthz", status: 503, says: "stopping"},
		"a full disk is ready, and says so":    {set: full, path: "/readyz", status: 200, says: "ok, but producers of persistent messages are refused: the disk"},
		"a store that does not answer, and so": {set: broken, path: "/readyz", status: 503, says: "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, tt.set, func(h *house) {
				time.Sleep(2 * time.Second) // the disk is looked at every second
				w := h.do(http.MethodGet, tt.path, "")
				if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
					h.t.Errorf("status %d, %q, want %d, %q", w.Code, w.Body, tt.status, tt.says)
				}
			})
		})
	}
}
