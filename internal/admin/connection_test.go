package admin_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

func TestMoveConnections(t *testing.T) {
	t.Parallel()
	var asked []string
	alone := false
	set := func(_ *broker.Options, a *admin.Options) {
		a.MoveClients = func(most int, dry bool) (int, int, error) {
			asked = append(asked, fmt.Sprint(most, dry))
			if alone {
				return 0, 0, fmt.Errorf("no listener tells: %w", message.ErrState)
			}
			return 9, min(most, 9), nil
		}
	}
	inHouse(t, set, func(h *house) {
		for body, want := range map[string]admin.MovedConnections{
			`{"count":3}`:                {Moved: 3, Could: 9},
			`{"all":true}`:               {Moved: 9, Could: 9},
			`{"all":true,"dryRun":true}`: {Moved: 9, Could: 9, DryRun: true},
		} {
			var got admin.MovedConnections
			asked = nil
			h.post("/api/v1/connections/move", body, &got)
			if d := cmp.Diff(want, got); d != "" || len(asked) != 1 {
				h.t.Errorf("%s: %q %s", body, asked, d)
			}
		}
		for _, body := range []string{"", "{}", `{"count":0}`, `{"count":-1}`, `{"count":-1,"all":true}`, `{"count":1,"all":true}`, `{"number":1}`} {
			asked = nil
			h.refused(h.do("POST", "/api/v1/connections/move", body), 400, "invalid")
			if len(asked) > 0 {
				h.t.Errorf("%s: %q", body, asked)
			}
		}
		asked = nil
		h.do("POST", "/api/v1/connections/move", `{"all":true}`)
		if d := cmp.Diff([]string{fmt.Sprint(math.MaxInt, false)}, asked); d != "" {
			h.t.Error(d)
		}
		alone = true
		h.refused(h.do("POST", "/api/v1/connections/move", `{"count":3}`), 409, "wrong-state")
		h.refused(h.do("GET", "/api/v1/connections/move", ""), 405, "invalid")
	})
	inHouse(t, nil, func(h *house) {
		h.refused(h.do("POST", "/api/v1/connections/move", `{"count":3}`), 409, "wrong-state")
	})
}

// Who is connected is listed with what it has open, and can be sent away.
func TestConnectionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		k := c.consume("ORDERS", func(s *broker.ConsumerSpec) { s.Selector, s.Prefetch = "a = 1", 7 })
		c.c.AddProducer(c.id+":1:8", message.Destination{Kind: message.Topic, Name: "NEWS"})
		c.c.AddProducer(c.id+":1:9", message.Destination{})
		var all admin.Connections
		h.get("/api/v1/connections", &all)
		want := []admin.Connection{{ID: c.id, ClientID: "app", Address: "10.0.0.7:5000", Protocol: "openwire", Listener: "main",
			Consumers: []admin.Consumer{{ID: k, Destination: "queue://ORDERS", Prefetch: 7, Selector: "a = 1"}},
			Producers: []admin.Producer{{ID: c.id + ":1:8", Destination: "topic://NEWS"}, {ID: c.id + ":1:9"}}}}
		if d := cmp.Diff(want, all.Connections); d != "" {
			h.t.Errorf("(-want +got):\n%s", d)
		}
		var ended admin.ClosedConnection
		h.post("/api/v1/connections/"+url.PathEscape(c.id)+"/close", "", &ended)
		if ended.ID != c.id || !c.kicked.Load() {
			h.t.Errorf("ended %+v, its connection: %v", ended, c.kicked.Load())
		}
		h.refused(h.do(http.MethodPost, "/api/v1/connections/ID:nope/close", ""), 404, "not-found")
	})
}
