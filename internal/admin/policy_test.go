package admin_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/policy"
	"github.com/nixiemq/nixie/internal/redelivery"
)

func TestPoliciesAreExplained(t *testing.T) {
	t.Parallel()
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.RedeliveryDelay = 8, 2*time.Second
	c := &config.Config{File: "a.xml", Policies: []config.PolicyEntry{{Source: "a.xml:3",
		Destination: message.Destination{Kind: message.Queue, Name: "orders.>"}, Rules: redelivery.Rules{Redelivery: &p}}}}
	inHouse(t, func(_ *broker.Options, o *admin.Options) { o.Config = func() *config.Config { return c } }, func(h *house) {
		var x policy.Explanation
		h.get("/api/v1/policy?destination=orders.eu&client-max=0", &x)
		if x.Schedule.Deliveries != 9 || x.Schedule.EndMillis != 15_000 || x.Entry.Source != "a.xml:3" || x.File != "a.xml" {
			t.Errorf("%+v", x)
		}
		var s policy.Simulation
		h.get("/api/v1/policy/simulate?destination=queue://orders.eu&client-max=0&fail=1&max=2", &s)
		if s.Present.End.AtMillis != 1000 || s.Tried == nil {
			t.Errorf("%+v", s)
		}
		var l policy.Report
		h.get("/api/v1/policy/lint", &l)
		if len(l.Findings) != 2 || l.Findings[0].Code != "client-first" {
			t.Errorf("%+v", l)
		}
		h.get("/api/v1/policy/lint?client-max=-1", &l)
		if l.Clean() {
			t.Errorf("%+v", l)
		}
		h.refused(h.do(http.MethodGet, "/api/v1/policy/lint?destination=A", ""), http.StatusBadRequest, "invalid")
		if text := h.refused(h.do(http.MethodGet, "/api/v1/policy", ""), http.StatusBadRequest, "invalid"); text != "destination: give one, such as queue://ORDERS" {
			t.Error(text)
		}
		if text := h.refused(h.do(http.MethodGet, "/api/v1/policy?destination=A&fail=3", ""), http.StatusBadRequest, "invalid"); text != "fail: is not known here" {
			t.Error(text)
		}
		h.refused(h.do(http.MethodGet, "/api/v1/policy/simulate?destination=A&odds=2", ""), http.StatusBadRequest, "invalid")
		h.refused(h.do(http.MethodPost, "/api/v1/policy?destination=A", ""), http.StatusMethodNotAllowed, "invalid")
	})
	inHouse(t, nil, func(h *house) {
		h.refused(h.do(http.MethodGet, "/api/v1/policy?destination=A", ""), http.StatusServiceUnavailable, "unavailable")
		h.refused(h.do(http.MethodGet, "/api/v1/policy/simulate?destination=A", ""), http.StatusServiceUnavailable, "unavailable")
		h.refused(h.do(http.MethodGet, "/api/v1/policy/lint", ""), http.StatusServiceUnavailable, "unavailable")
	})
}
