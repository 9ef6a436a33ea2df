package admin_test

import (
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

// prepare prepares a transaction that takes a message of a queue, and sends it to OUT.
func (c *client) prepare(xid message.XID, name string) {
	c.h.t.Helper()
	c.send(name, "taken")
	c.consume(name)
	d := c.take()[0]
	answered := make(chan error, 1)
	done := func(err error) { answered <- err }
	must := func() {
		c.h.t.Helper()
		if err := <-answered; err != nil {
			c.h.t.Fatal(err)
		}
	}
	if _, err := c.c.BeginXA(xid, false); err != nil {
		c.h.t.Fatal(err)
	}
	ref := queue.Ref{Position: d.Entry.Position, ID: d.Entry.ID}
	c.c.Ack(c.h.t.Context(), broker.Ack{Consumer: d.Consumer, Destination: d.Destination, Type: queue.Standard, First: ref, Last: ref, Count: 1, Tx: xid.String()}, done)
	must()
	c.seq++
	c.c.Send(c.h.t.Context(), &message.Message{ID: message.ID{Producer: c.id + ":1:1", Sequence: c.seq}, Persistent: true, Body: []byte("sent"),
		Destination: message.Destination{Kind: message.Queue, Name: "OUT"}}, xid.String(), done)
	must()
	c.c.PrepareXA(c.h.t.Context(), xid, func(_ bool, err error) { done(err) })
	must()
}

func TestTransactionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		var all admin.Transactions
		h.get("/api/v1/transactions", &all)
		if all.Transactions == nil || len(all.Transactions) != 0 {
			t.Errorf("without any: %+v", all)
		}
		one, two := message.XID{Format: 1, Global: "one/", Branch: "\xff"}, message.XID{Format: 1, Global: "two"}
		c := h.client()
		c.prepare(one, "ORDERS")
		c.close()
		d := h.client()
		d.prepare(two, "STOCK")
		h.get("/api/v1/transactions", &all)
		if len(all.Transactions) != 2 {
			t.Fatalf("%+v", all)
		}
		got := all.Transactions[0]
		want := admin.Transaction{ID: one.String(), State: "prepared", Begun: got.Begun, Prepared: got.Prepared, Connection: c.id, ClientID: "app",
			Address: "10.0.0.7:5000", Sends: 1, Bytes: 1028, Acks: 1, Destinations: []string{"queue://ORDERS"}}
		if diff := cmp.Diff(want, got); diff != "" || got.Begun.IsZero() || got.Prepared.IsZero() {
			t.Errorf("(-want +got):\n%s", diff)
		}
		path := func(x message.XID, verb string) string {
			return "/api/v1/transactions/" + url.PathEscape(x.String()) + "/" + verb
		}
		var ended admin.Ended
		h.post(path(one, "commit"), "", &ended)
		if ended != (admin.Ended{ID: one.String(), Outcome: "committed"}) {
			t.Errorf("%+v", ended)
		}
		h.post(path(two, "rollback"), "", &ended)
		if ended.Outcome != "rolled-back" {
			t.Errorf("%+v", ended)
		}
		text := h.refused(h.do(http.MethodPost, path(one, "rollback"), ""), http.StatusConflict, "wrong-state")
		if !strings.Contains(text, "committed by hand") {
			t.Errorf("%s", text)
		}
		h.get("/api/v1/transactions", &all)
		if got := all.Transactions[1]; got.State != "by-hand" || got.Outcome != "rolled-back" {
			t.Errorf("%+v", got)
		}
		if body := h.do(http.MethodGet, "/metrics", "").Body.String(); !strings.Contains(body, `nixie_transactions{state="by-hand"} 2`) {
			t.Errorf("metrics lack the transactions")
		}
		for _, x := range []message.XID{one, two} {
			h.post(path(x, "forget"), "", &ended)
		}
		h.refused(h.do(http.MethodPost, path(one, "forget"), ""), http.StatusNotFound, "not-found")
		h.refused(h.do(http.MethodPost, "/api/v1/transactions/XID/commit", ""), http.StatusBadRequest, "invalid")
		h.refused(h.do(http.MethodGet, "/api/v1/transactions?state=x", ""), http.StatusBadRequest, "invalid")
	})
}
