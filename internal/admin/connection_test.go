package admin_test

import (
	"fmt"
	"math"
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
