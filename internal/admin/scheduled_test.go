package admin_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/message"
)

func TestScheduledMessagesAreListedAndRemoved(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for i := range 3 {
			c.send("ORDERS", fmt.Sprint("m", i), func(m *message.Message) {
				m.Schedule = &message.Schedule{Delay: int64(3-i) * 60_000, Period: 1000, Repeat: int32(i)}
			})
		}
		var got []admin.ScheduledMessage
		var page admin.Scheduled
		for next := "?limit=2"; next != ""; {
			page = admin.Scheduled{}
			h.get("/api/v1/scheduled"+next, &page)
			got = append(got, page.Messages...)
			if next = page.Next; next != "" {
				next = "?limit=2&after=" + next
			}
		}
		if page.Total != 3 || len(got) != 3 {
			t.Fatalf("%d of %d", len(got), page.Total)
		}
		if m := got[0]; m.Repeat != 2 || m.Destination != "queue://ORDERS" || m.Due.Sub(m.Created) != time.Minute || m.PeriodMillis != 1000 || m.Headers.DeliveryMode != "PERSISTENT" {
			t.Errorf("%+v", m)
		}
		h.post("/api/v1/scheduled/"+got[1].JobID+"/remove", "", &admin.Removed{})
		h.refused(h.do(http.MethodPost, "/api/v1/scheduled/"+got[1].JobID+"/remove", ""), http.StatusNotFound, "not-found")
		h.get("/api/v1/scheduled", &page)
		if page.Total != 2 {
			t.Errorf("%d are left", page.Total)
		}
		var removed admin.Removed
		h.post("/api/v1/scheduled/remove", fmt.Sprintf(`{"from":%q,"until":%q}`, got[0].Due.Format(time.RFC3339Nano), got[0].Due.Format(time.RFC3339Nano)), &removed)
		if removed.Removed != 1 {
			t.Errorf("%d removed that were due at one time", removed.Removed)
		}
		for i := range 300 {
			c.send("ORDERS", "x", func(m *message.Message) { m.Schedule = &message.Schedule{Delay: int64(i+1) * 60_000} })
		}
		h.post("/api/v1/scheduled/remove", `{"all":true}`, &removed)
		if h.get("/api/v1/scheduled", &page); removed.Removed != 301 || page.Total != 0 {
			t.Errorf("%d removed, %d are left", removed.Removed, page.Total)
		}
		for _, bad := range []string{"", "{}", `{"all":true,"until":"2026-01-01T00:00:00Z"}`} {
			h.refused(h.do(http.MethodPost, "/api/v1/scheduled/remove", bad), http.StatusBadRequest, "invalid")
		}
		if log := h.log.String(); !strings.Contains(log, "scheduled message removed") || !strings.Contains(log, "messages=301") {
			t.Errorf("the log does not tell: %s", log)
		}
		for _, bad := range []string{"?after=x", "?after=-1-2", "?limit=0", "?until=1"} {
			h.refused(h.do(http.MethodGet, "/api/v1/scheduled"+bad, ""), http.StatusBadRequest, "invalid")
		}
	})
}

// TestTimesBeyondAllCalendars: what a client says of its messages spoils no page.
func TestTimesBeyondAllCalendars(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.send("ORDERS", "late", func(m *message.Message) {
			m.Schedule = &message.Schedule{Delay: math.MaxInt64, Period: math.MaxInt64, Repeat: 3}
		})
		c.send("ORDERS", "odd", func(m *message.Message) { m.Timestamp, m.Expiration = math.MinInt64, math.MaxInt64 })
		var jobs admin.Scheduled
		h.get("/api/v1/scheduled", &jobs)
		if len(jobs.Messages) != 1 || jobs.Messages[0].Due.Year() != 9999 {
			t.Errorf("scheduled: %+v", jobs)
		}
		var page admin.Page
		h.get("/api/v1/queues/ORDERS/messages", &page)
		if len(page.Messages) != 1 || page.Messages[0].Headers.Expiration.Year() != 9999 || page.Messages[0].Headers.Timestamp.Year() != 1 {
			t.Errorf("page: %+v", page)
		}
		h.get("/api/v1/queues/ORDERS/messages/"+page.Messages[0].ID, &admin.Detail{})
		h.get("/api/v1/destinations", &admin.Destinations{})
	})
}
