package admin_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// scrape gets the metrics, by name and labels.
func (h *house) scrape() map[string]string {
	h.t.Helper()
	w := h.do(http.MethodGet, "/metrics", "")
	if w.Code != http.StatusOK {
		h.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	found := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			found[line[:i]] = line[i+1:]
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	space := func(_ *broker.Options, a *admin.Options) {
		a.Space = func() (admin.Space, error) { return admin.Space{FreeBytes: 10, TotalBytes: 100, UsedBytes: 5}, nil }
	}
	inHouse(t, space, func(h *house) {
		ids := h.kill("ORDERS", 2)
		c := h.client()
		c.send("LATE", "x", func(m *message.Message) { m.Expiration = time.Now().Add(time.Second).UnixMilli(); m.Persistent = false })
		c.consume("PRICES", func(s *broker.ConsumerSpec) { s.Destination.Kind = message.Topic })
		c.consume("NEWS", func(s *broker.ConsumerSpec) { s.Destination.Kind, s.Subscription = message.Topic, "reader" })
		temp := message.Destination{Kind: message.TempQueue, Name: c.id + ":1"}
		if err := c.c.AddDestination(h.t.Context(), temp); err != nil {
			h.t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var moved admin.Redriven
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", fmt.Sprintf(`{"ids":[%q]}`, ids[0]), &moved)
		c.take()

		got := h.scrape()
		for name, want := range map[string]string{
			`nixie_info{broker="localhost",version="1.2.3"}`: "1",
			`nixie_connections`:                                          "1",
			`nixie_disk_free_bytes`:                                      "10",
			`nixie_disk_size_bytes`:                                      "100",
			`nixie_store_used_bytes`:                                     "5",
			`nixie_producers_refused`:                                    "0",
			`nixie_producers_waiting`:                                    "0",
			`nixie_waits_total`:                                          "0",
			`nixie_wait_seconds_total`:                                   "0",
			`nixie_queues`:                                               "4",
			`nixie_scheduled_messages`:                                   "0",
			`nixie_topics`:                                               "2",
			`nixie_subscriptions`:                                        "2",
			`nixie_dead_letters_total`:                                   "2",
			`nixie_expired_total`:                                        "1",
			`nixie_redriven_total`:                                       "1",
			`nixie_kept_total`:                                           "0",
			`nixie_suppressed_duplicates_total`:                          "0",
			`nixie_failures_total{cause="poison"}`:                       "2",
			`nixie_failures_total{cause="rollback"}`:                     "0",
			`nixie_discards_total{reason="non-persistent"}`:              "1",
			`nixie_queue_messages{queue="ORDERS",state="waiting"}`:       "1",
			`nixie_queue_messages{queue="ActiveMQ.DLQ",state="waiting"}`: "1",
			`nixie_queue_dead_lettered_total{queue="ORDERS"}`:            "2",
			`nixie_queue_failed_total{queue="ORDERS"}`:                   "14",
			`nixie_queue_consumers{queue="ORDERS"}`:                      "0",
			`nixie_queue_consumers{queue="(temporary)"}`:                 "0",
			`nixie_subscription_consumers{client_id="app",subscription="reader",topic="NEWS"}`:                "1",
			`nixie_subscription_consumers{client_id="",subscription="(passing)",topic="PRICES"}`:              "1",
			`nixie_subscription_messages{client_id="app",state="waiting",subscription="reader",topic="NEWS"}`: "0",
		} {
			if got[name] != want {
				h.t.Errorf("%s is %q, want %q", name, got[name], want)
			}
		}
		for _, name := range []string{"go_goroutines", "process_start_time_seconds", "nixie_message_memory_bytes"} {
			if got[name] == "" {
				h.t.Errorf("%s is missing", name)
			}
		}
	})
}

func TestMetricsOfManyQueuesAreBounded(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for i := range admin.MaxSeries + 5 {
			c.send(fmt.Sprintf("Q%05d", i), "x", func(m *message.Message) { m.Persistent = false })
		}
		c.take()
		got := h.scrape()
		n := 0
		for name := range got {
			if strings.HasPrefix(name, "nixie_queue_consumers{") {
				n++
			}
		}
		if n != admin.MaxSeries+1 {
			h.t.Errorf("%d queues have metrics, want %d", n, admin.MaxSeries+1)
		}
		if v := got[`nixie_queue_messages{queue="(others)",state="waiting"}`]; v != "5" {
			h.t.Errorf("the others have %q messages, want 5", v)
		}
		if _, ok := got[`nixie_queue_enqueued_total{queue="(others)"}`]; ok {
			h.t.Error("a sum whose parts come and go has a counter")
		}
	})
}

func TestMetricsStandOddNames(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.send("a\"b\nc", "x")
		c.send("bad\xff", "x")
		c.send("bad\xfe", "x") // is the same as the one before, once it is UTF-8
		c.take()
		got := h.scrape()
		for name, want := range map[string]string{
			`nixie_queue_messages{queue="a\"b\nc",state="waiting"}`:       "1",
			"nixie_queue_messages{queue=\"bad\uFFFD\",state=\"waiting\"}": "2",
		} {
			if got[name] != want {
				h.t.Errorf("%s is %q, want %q", name, got[name], want)
			}
		}
	})
}

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	inHouse(t, nil, func(h *house) {
		h.kill("ORDERS", 1)
		for series := range h.scrape() {
			name, _, _ := strings.Cut(series, "{")
			short := strings.TrimSuffix(strings.TrimPrefix(name, "nixie_queue"), "total") // _enqueued_
			if strings.HasPrefix(name, "nixie_") && !strings.Contains(string(page), name) && !strings.Contains(string(page), "`"+short+"`") {
				h.t.Errorf("docs/operations.md does not tell of %s", name)
			}
		}
	})
}

// TestLimitsAreShown: how full a destination is, and who waits for it.
func TestLimitsAreShown(t *testing.T) {
	t.Parallel()
	limited := func(o *broker.Options, _ *admin.Options) {
		o.Limited = true
		o.Policy = func(d message.Destination) broker.Policy {
			if d.Name == "FREE" {
				return broker.Policy{}
			}
			return broker.Policy{Flow: broker.Flow{MaxMessages: 2, MaxBytes: 1 << 20}}
		}
	}
	inHouse(t, limited, func(h *house) {
		c := h.client()
		for range 2 {
			c.send("ORDERS", "x")
		}
		c.send("FREE", "x")
		m := &message.Message{ID: message.ID{Producer: c.id + ":1:1", Sequence: 99}, Destination: message.Destination{Kind: message.Queue, Name: "ORDERS"}}
		c.c.Send(h.t.Context(), m, "", func(error) {})
		time.Sleep(time.Minute)
		var all admin.Destinations
		h.get("/api/v1/destinations", &all)
		if len(all.Queues) != 2 || all.Queues[0].Limit != nil {
			t.Fatalf("queues %+v, want FREE without a limit, and ORDERS", all.Queues)
		}
		want := admin.Limit{MaxBytes: 1 << 20, MaxMessages: 2, Bytes: 2 * 1030, Messages: 2, Waiting: 1, Waits: 1}
		got := *all.Queues[1].Limit
		got.Bytes = want.Bytes
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		metrics := h.scrape()
		if metrics["nixie_producers_waiting"] != "1" || metrics["nixie_waits_total"] != "1" {
			t.Errorf("waiting %s, waits %s, want 1 and 1", metrics["nixie_producers_waiting"], metrics["nixie_waits_total"])
		}
		c.c.Close(message.ConnectionLost, "", -1)
		h.get("/api/v1/queues/ORDERS", &all.Queues[1])
		if l := all.Queues[1].Limit; l.Waiting != 0 || l.WaitSeconds != 60 {
			t.Errorf("%+v, want a wait of 60 s that has ended", l)
		}
	})
}
