package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// One message among many is listed by a selector, however deep it lies, and pages of what
// a selector fits leave nothing out (C19).
func TestMessagesAreListedBySelector(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *broker.Options, _ *admin.Options) { o.Limits.WindowEntries = 20 }, func(h *house) {
		c := h.client()
		const n = 700
		for i := range n {
			c.send("ORDERS", "x", func(m *message.Message) { m.Type = []string{"one", "two", "three"}[i%3] })
		}
		last := c.send("ORDERS", "x", func(m *message.Message) { m.Type, m.CorrelationID = "one", "4711" })
		list := func(selector string, limit int) (ids []string, pages int) {
			for after := ""; ; pages++ {
				var page admin.Page
				h.get(fmt.Sprintf("/api/v1/queues/ORDERS/messages?limit=%d&selector=%s&after=%s", limit, url.QueryEscape(selector), after), &page)
				if page.Total != n+1 || page.Selector != selector || len(page.Messages) > limit {
					h.t.Fatalf("page of %d, total %d, selector %q", len(page.Messages), page.Total, page.Selector)
				}
				for _, m := range page.Messages {
					ids = append(ids, m.ID)
				}
				if after = page.Next; after == "" {
					return ids, pages + 1
				}
			}
		}
		if ids, _ := list("JMSCorrelationID = '4711'", 10); len(ids) != 1 || ids[0] != last {
			h.t.Errorf("found %q", ids)
		}
		if ids, pages := list("JMSType = 'two'", 100); len(ids) != 233 || pages != 3 {
			h.t.Errorf("%d of the type, on %d pages", len(ids), pages)
		}
		if ids, _ := list("JMSType = 'none'", 1); len(ids) != 0 {
			h.t.Errorf("found %q", ids)
		}
		text := h.refused(h.do(http.MethodGet, "/api/v1/queues/ORDERS/messages?selector="+url.QueryEscape("a ="), ""), 400, "invalid")
		if !strings.Contains(text, "selector") {
			h.t.Errorf("refused with %q", text)
		}
	})
}

func TestQueuesArePausedAndDeleted(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.send("A/B", "x")
		var paused admin.Paused
		h.post("/api/v1/queues/A%2FB/pause", "", &paused)
		if d := cmp.Diff(admin.Paused{Queue: "A/B", Paused: true}, paused); d != "" {
			h.t.Error(d)
		}
		id := c.consume("A/B")
		if got := c.take(); len(got) != 0 {
			h.t.Errorf("a paused queue handed out %d", len(got))
		}
		var q admin.Queue
		if h.get("/api/v1/queues/A%2FB", &q); !q.Paused {
			h.t.Error("nobody can see that it is paused")
		}
		h.refused(h.do(http.MethodPost, "/api/v1/queues/A%2FB/delete", ""), 409, "wrong-state")
		h.post("/api/v1/queues/A%2FB/resume", "{}", &paused)
		if !paused.Was || paused.Paused || len(c.take()) != 1 {
			h.t.Errorf("resumed: %+v", paused)
		}
		c.c.CloseConsumer(h.t.Context(), id, queue.UnknownLast, nil)
		c.take()
		h.refused(h.do(http.MethodPost, "/api/v1/queues/NOPE/pause", ""), 404, "not-found")
		h.refused(h.do(http.MethodPost, "/api/v1/queues/A%2FB/pause", `{"all":true}`), 400, "invalid")
		if text := h.refused(h.do(http.MethodPost, "/api/v1/queues/A%2FB/delete", ""), 409, "wrong-state"); !strings.Contains(text, "has messages (1)") {
			h.t.Errorf("refused with %q", text)
		}
		for _, dry := range []bool{true, false} {
			var gone admin.Deleted
			h.post("/api/v1/queues/A%2FB/delete", fmt.Sprintf(`{"withMessages":true,"dryRun":%v}`, dry), &gone)
			if d := cmp.Diff(admin.Deleted{Where: admin.Where{Queue: "A/B"}, Messages: 1, DryRun: dry}, gone); d != "" {
				h.t.Error(d)
			}
		}
		h.refused(h.do(http.MethodGet, "/api/v1/queues/A%2FB", ""), 404, "not-found")
		c.send("NEWS", "x", func(m *message.Message) { m.Destination.Kind = message.Topic })
		h.post("/api/v1/topics/NEWS/delete", "", &admin.Deleted{})
		h.refused(h.do(http.MethodPost, "/api/v1/topics/NEWS/delete", ""), 404, "not-found")
		for _, news := range []string{"queue paused", "queue resumed", "destination removed"} {
			if !strings.Contains(h.log.String(), news) {
				h.t.Errorf("the log does not tell: %s", news)
			}
		}
	})
}
