package admin_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
)

func TestReload(t *testing.T) { // issue 3, item 10
	t.Parallel()
	changes := []config.Change{{Part: "policy queue://A", Setting: "x", Old: "1", New: "2", OldSource: "f:1", NewSource: "f:2"}}
	var asked []bool
	set := func(_ *broker.Options, a *admin.Options) {
		a.Reload = func(_ context.Context, dry bool) (*admin.Reloaded, error) {
			asked = append(asked, dry)
			switch len(asked) {
			case 1, 2:
				return &admin.Reloaded{File: "f", Changes: changes, Warnings: []string{"w"}}, nil
			case 3:
				return &admin.Reloaded{File: "f"}, nil
			}
			return nil, fmt.Errorf("f:3: nonsense: %w", message.ErrInvalid)
		}
	}
	inHouse(t, set, func(h *house) {
		var got admin.Reloaded
		h.post("/api/v1/reload", `{"dryRun":true}`, &got)
		if d := cmp.Diff(admin.Reloaded{File: "f", Changes: changes, Warnings: []string{"w"}, DryRun: true}, got); d != "" {
			h.t.Error(d)
		}
		got = admin.Reloaded{}
		h.post("/api/v1/reload", "", &got)
		if d := cmp.Diff(admin.Reloaded{File: "f", Changes: changes, Warnings: []string{"w"}}, got); d != "" {
			h.t.Error(d)
		}
		if w := h.do("POST", "/api/v1/reload", ""); w.Body.String() != "{\"file\":\"f\",\"changes\":[]}\n" {
			h.t.Errorf("nothing changed: %s", w.Body)
		}
		h.refused(h.do("POST", "/api/v1/reload", ""), 400, "invalid")
		h.refused(h.do("POST", "/api/v1/reload", `{"dry":true}`), 400, "invalid")
		h.refused(h.do("GET", "/api/v1/reload", ""), 405, "invalid")
		if d := cmp.Diff([]bool{true, false, false, false}, asked); d != "" {
			h.t.Error(d)
		}
	})
	inHouse(t, nil, func(h *house) { h.refused(h.do("POST", "/api/v1/reload", ""), 409, "wrong-state") })
}
