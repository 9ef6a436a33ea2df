package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// TestMessageGroups: whose the groups of a queue are can be seen, and they can be taken
// from a consumer, whose members come first all the same.
func TestMessageGroups(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		of := func(group string) func(*message.Message) { return func(m *message.Message) { m.GroupID = group } }
		first := c.consume("ORDERS")
		for _, group := range []string{"A", "B", "B"} {
			c.send("ORDERS", "x", of(group))
		}
		got := c.take()
		second := c.consume("ORDERS")
		group := func(name, consumer string, out int, leaving bool) admin.Group {
			return admin.Group{Group: name, Consumer: consumer, ClientID: "app", Address: "10.0.0.7:5000", Out: out, Leaving: leaving}
		}
		want := func(groups ...admin.Group) {
			h.t.Helper()
			var reply admin.Groups
			h.get("/api/v1/queues/ORDERS/groups", &reply)
			if d := cmp.Diff(admin.Groups{Queue: "ORDERS", Groups: append([]admin.Group{}, groups...)}, reply); d != "" {
				h.t.Errorf("(-want +got):\n%s", d)
			}
		}
		want(group("A", first, 1, false), group("B", first, 2, false))
		if owners := h.value("/read/" + queueBean + "ORDERS/MessageGroups"); !cmp.Equal(owners, any(map[string]any{"A": first, "B": first})) {
			h.t.Errorf("MessageGroups: %v", owners)
		}

		var released admin.Released
		h.post("/api/v1/queues/ORDERS/groups/release", `{"group":"A"}`, &released)
		if released != (admin.Released{Queue: "ORDERS", Released: 1}) {
			h.t.Errorf("%+v", released)
		}
		want(group("A", first, 1, true), group("B", first, 2, false))
		c.send("ORDERS", "x", of("A"))
		if early := c.take(); len(early) > 0 {
			h.t.Errorf("while its owner has one, another went out: %+v", early)
		}
		c.ack(queue.Standard, got[0], "")
		if next := c.take(); len(next) != 1 || next[0].Consumer != second {
			h.t.Errorf("then this went to the other consumer, which owns none: %+v", next)
		}
		want(group("A", second, 1, false), group("B", first, 2, false))

		h.exec(queueBean+"ORDERS", "removeMessageGroup", "A")
		h.exec(queueBean+"ORDERS", "removeMessageGroup", "")
		want(group("A", second, 1, true), group("B", first, 2, false))
		h.exec(queueBean+"ORDERS", "removeAllMessageGroups")
		want(group("A", second, 1, true), group("B", first, 2, true))
		h.post("/api/v1/queues/ORDERS/groups/release", `{"all":true}`, &released)
		if released.Released != 2 || !strings.Contains(h.log.String(), "message groups taken from their owners") {
			h.t.Errorf("%+v; log:\n%s", released, h.log)
		}
		for _, body := range []string{"", "{}", `{"group":"A","all":true}`, `{"id":"A"}`} {
			h.refused(h.do(http.MethodPost, "/api/v1/queues/ORDERS/groups/release", body), 400, "invalid")
		}
		h.refused(h.do(http.MethodGet, "/api/v1/queues/NOPE/groups", ""), 404, "not-found")
		h.refused(h.do(http.MethodPost, "/api/v1/queues/NOPE/groups/release", `{"all":true}`), 404, "not-found")
	})
}
