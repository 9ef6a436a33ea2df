package admin_test

import (
	"fmt"
	"net/http"
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
		for _, bad := range []string{"?after=x", "?after=-1-2", "?limit=0", "?until=1"} {
			h.refused(h.do(http.MethodGet, "/api/v1/scheduled"+bad, ""), http.StatusBadRequest, "invalid")
		}
	})
}
