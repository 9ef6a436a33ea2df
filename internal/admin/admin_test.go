package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/queue"
)

func TestNewNeedsABroker(t *testing.T) {
	t.Parallel()
	if _, err := admin.New(admin.Options{}); err == nil {
		t.Error("made without a broker")
	}
}

func TestDestinationsAreListed(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.send("ORDERS", "one")
		c.send("ORDERS", "two")
		c.consume("BILLS")
		c.consume("PRICES", func(s *broker.ConsumerSpec) { s.Destination.Kind = message.Topic })
		c.consume("NEWS", func(s *broker.ConsumerSpec) {
			s.Destination.Kind, s.Subscription, s.Selector = message.Topic, "reader", "x = 1"
		})
		c.send("RUMOURS", "to nobody", func(m *message.Message) { m.Destination.Kind = message.Topic })
		var got admin.Destinations
		h.get("/api/v1/destinations", &got)
		want := admin.Destinations{
			Queues: []admin.Queue{
				{Name: "BILLS", Counts: admin.Counts{Consumers: 1}},
				{Name: "ORDERS", Counts: admin.Counts{Messages: 2, Waiting: 2, Enqueued: 2}},
			},
			Topics: []admin.Topic{{Name: "NEWS"}, {Name: "PRICES"}, {Name: "RUMOURS", Enqueued: 1}},
			Subscriptions: []admin.Subscription{
				{Topic: "PRICES", ClientID: "app", Counts: admin.Counts{Consumers: 1}},
				{Topic: "NEWS", ClientID: "app", Name: "reader", Durable: true, Selector: "x = 1", Counts: admin.Counts{Consumers: 1}},
			},
		}
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(admin.Counts{}, "Bytes")); d != "" {
			h.t.Error(d)
		}
		if got.Queues[1].Bytes <= 0 {
			h.t.Errorf("ORDERS has %d bytes, want some", got.Queues[1].Bytes)
		}
	})
}

func TestDeadLetterIsShownWithItsStory(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		begin := time.Now()
		dead := h.kill("ORDERS", 1)[0]

		var got admin.Detail
		h.get("/api/v1/queues/ActiveMQ.DLQ/messages/"+url.PathEscape(dead), &got)
		if got.ID != dead || got.State != "waiting" || got.Kind != "TextMessage" || got.Attempts != 7 || got.Failures != 0 {
			h.t.Errorf("message is %+v", got.Message)
		}
		if d := cmp.Diff(admin.Body{Text: "order 1", Bytes: 4 + len("order 1")}, got.Body); d != "" {
			h.t.Error(d)
		}
		wantProps := map[string]any{"dlqDeliveryFailureCause": cause, "originalExpiration": 0.0, "deliveryAttempts": 7.0}
		if d := cmp.Diff(wantProps, got.Properties); d != "" {
			h.t.Error(d)
		}
		wantHeaders := admin.Headers{Destination: "queue://ActiveMQ.DLQ", OriginalDestination: "queue://ORDERS", DeliveryMode: "PERSISTENT",
			Priority: 4, Timestamp: begin.UTC(), BrokerInTime: got.DeadLetter.At}
		if d := cmp.Diff(wantHeaders, got.Headers); d != "" {
			h.t.Error(d)
		}
		if len(got.Story) != 7 {
			h.t.Fatalf("story has %d lines, want 7: %+v", len(got.Story), got.Story)
		}
		if first := got.Story[0]; first.Cause != "recover" || first.Decision != "client" || first.Uncertain || !got.Story[1].Uncertain {
			h.t.Errorf("the first lines are %+v", got.Story[:2])
		}
		line := got.Story[6]
		if line.Cause != "poison" || line.Decision != "dead-letter" || !line.Counted || line.ClientID != "app" ||
			line.Address != "10.0.0.7:5000" || line.Protocol != "openwire" || !strings.Contains(line.Text, "Delivery[7]") {
			h.t.Errorf("line is %+v", line)
		}
		if got.DeadLetter == nil || got.DeadLetter.From != "queue://ORDERS" || got.DeadLetter.Cause != cause || got.DeadLetter.LastCause != "poison" ||
			!got.DeadLetter.At.Equal(line.Ended) {
			h.t.Errorf("dead letter is %+v", got.DeadLetter)
		}
	})
}

func TestPropertiesAreShown(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		props, err := wire.AppendMap(nil, wire.Map{{Key: "customer", Value: "4711"}, {Key: "tries", Value: int32(3)}})
		if err != nil {
			h.t.Fatal(err)
		}
		c := h.client()
		id := c.send("ORDERS", "fine", func(m *message.Message) {
			m.Properties, m.CorrelationID, m.Type, m.GroupID, m.GroupSequence = props, "corr", "order", "g", 2
			m.ReplyTo = message.Destination{Kind: message.Queue, Name: "ANSWERS"}
			m.Persistent, m.Priority = false, 9
		})
		var got admin.Detail
		h.get("/api/v1/queues/ORDERS/messages/"+url.PathEscape(id), &got)
		if d := cmp.Diff(map[string]any{"customer": "4711", "tries": 3.0}, got.Properties); d != "" {
			h.t.Error(d)
		}
		want := admin.Headers{Destination: "queue://ORDERS", DeliveryMode: "NON_PERSISTENT", Priority: 9, Timestamp: got.Headers.Timestamp,
			CorrelationID: "corr", Type: "order", GroupID: "g", GroupSequence: 2, ReplyTo: "queue://ANSWERS"}
		if d := cmp.Diff(want, got.Headers); d != "" {
			h.t.Error(d)
		}
		if got.DeadLetter != nil {
			h.t.Errorf("it is no dead letter: %+v", got.DeadLetter)
		}
	})
}

func TestMessagesComeInPages(t *testing.T) {
	t.Parallel()
	// The window is smaller than the queue, so that pages come from the store too.
	small := func(b *broker.Options, _ *admin.Options) { b.Limits.WindowEntries = 4 }
	inHouse(t, small, func(h *house) {
		c := h.client()
		var want []string
		for i := range 25 {
			want = append(want, c.send("ORDERS", fmt.Sprint("order ", i)))
		}
		var got []string
		next, pages := "", 0
		for {
			var page admin.Page
			h.get("/api/v1/queues/ORDERS/messages?limit=10&after="+next, &page)
			for _, m := range page.Messages {
				got = append(got, m.ID)
			}
			if page.Total != 25 { // C19
				h.t.Errorf("page %d tells of %d in all, want 25", pages, page.Total)
			}
			pages++
			if next = page.Next; next == "" {
				break
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			h.t.Error(d)
		}
		if pages != 3 {
			h.t.Errorf("%d pages, want 3", pages)
		}
		var q admin.Queue
		h.get("/api/v1/queues/ORDERS", &q)
		if q.Messages != 25 || q.Dispatched != 0 {
			h.t.Errorf("looking changed something: %+v", q)
		}
	})
}

func TestDeadLetterQueuesAreFound(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.kill("ORDERS", 3)
		h.kill("BILLS", 2)
		c := h.client()
		c.send("ORDERS", "alive")
		var got admin.DeadLetterQueues
		h.get("/api/v1/dead-letter-queues", &got)
		if len(got.Queues) != 1 || got.Queues[0].Name != "ActiveMQ.DLQ" || got.Queues[0].Messages != 5 {
			h.t.Fatalf("found %+v", got.Queues)
		}
		dl := got.Queues[0].DeadLetters
		if d := cmp.Diff(map[string]int{"queue://ORDERS": 3, "queue://BILLS": 2}, dl.From); d != "" {
			h.t.Error(d)
		}
		if dl.Sampled != 5 || dl.Found != 5 || dl.Oldest.IsZero() {
			h.t.Errorf("sample is %+v", dl)
		}
		// What applications send to a dead letter queue themselves is no dead letter, and found.
		h.post("/api/v1/queues/ActiveMQ.DLQ/purge", "", &admin.Purged{})
		c.send("ActiveMQ.DLQ", "by hand")
		h.get("/api/v1/dead-letter-queues", &got)
		if len(got.Queues) != 1 || got.Queues[0].Messages != 1 || got.Queues[0].DeadLetters.Found != 0 {
			h.t.Errorf("found %+v", got.Queues)
		}
	})
}

func TestExpiredMessageTellsWhenItDied(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		expires := time.Now().Add(time.Minute)
		id := c.send("ORDERS", "late", func(m *message.Message) { m.Expiration = expires.UnixMilli() })
		time.Sleep(2 * time.Minute)
		var got admin.Detail
		h.get("/api/v1/queues/ActiveMQ.DLQ/messages/"+url.PathEscape(id), &got)
		if got.DeadLetter == nil || !strings.Contains(got.DeadLetter.Cause, "Message Expired") || !got.DeadLetter.At.Equal(expires) || got.DeadLetter.LastCause != "" {
			h.t.Errorf("dead letter is %+v, want one of %v", got.DeadLetter, expires)
		}
		if got.Story == nil || len(got.Story) != 0 {
			h.t.Errorf("story is %v, want an empty list", got.Story)
		}
	})
}

func TestRedriveBringsBack(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		ids := h.kill("ORDERS", 3)
		var got admin.Redriven
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", fmt.Sprintf(`{"ids":[%q,"ID:not-there"]}`, ids[1]), &got)
		if d := cmp.Diff(admin.Redriven{Where: admin.Where{Queue: "ActiveMQ.DLQ"}, Moved: 1, Stayed: admin.Stayed{Asked: 2}}, got); d != "" {
			h.t.Error(d)
		}
		var back admin.Detail
		h.get("/api/v1/queues/ORDERS/messages/"+url.PathEscape(ids[1]), &back)
		if back.DeadLetter != nil || len(back.Story) != 7 || back.RedeliveryCounter != 0 {
			h.t.Errorf("what is back: %+v", back)
		}
		var all admin.Redriven
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", `{"all":true}`, &all)
		if d := cmp.Diff(admin.Redriven{Where: admin.Where{Queue: "ActiveMQ.DLQ"}, Moved: 2}, all); d != "" {
			h.t.Error(d)
		}
		var q admin.Queue
		h.get("/api/v1/queues/ORDERS", &q)
		if q.Messages != 3 {
			h.t.Errorf("ORDERS has %d messages, want 3", q.Messages)
		}
		if n := h.broker.Counted(broker.Redriven); n != 3 {
			h.t.Errorf("%d counted as redriven, want 3", n)
		}
		if !strings.Contains(h.log.String(), "dead letters brought back") {
			h.t.Errorf("nobody can see in the log who did it:\n%s", h.log)
		}
	})
}

func TestRedriveFindsWhatIsOnlyInTheStore(t *testing.T) {
	t.Parallel()
	small := func(b *broker.Options, _ *admin.Options) { b.Limits.WindowEntries = 4 }
	inHouse(t, small, func(h *house) {
		h.kill("ORDERS", 30)
		var all admin.Redriven
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", `{"all":true}`, &all)
		if d := cmp.Diff(admin.Redriven{Where: admin.Where{Queue: "ActiveMQ.DLQ"}, Moved: 30}, all); d != "" {
			h.t.Error(d)
		}
	})
}

// What has no place to go back to is not lost on the way.
func TestRedriveLeavesWhatHasNoPlaceToGoBackTo(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		reader := func(s *broker.ConsumerSpec) { s.Destination.Kind, s.Subscription = message.Topic, "reader" }
		c := h.client()
		id := c.consume("NEWS", reader)
		c.send("NEWS", "old", func(m *message.Message) {
			m.Destination.Kind, m.Expiration = message.Topic, time.Now().Add(time.Minute).UnixMilli()
		})
		c.c.CloseConsumer(h.t.Context(), id, queue.UnknownLast, nil)
		c.take()
		time.Sleep(2 * time.Minute)
		var q admin.Queue
		if h.get("/api/v1/queues/ActiveMQ.DLQ", &q); q.Messages != 1 {
			h.t.Fatalf("there is no dead letter: %+v", q.Counts)
		}
		if err := c.c.Unsubscribe(h.t.Context(), "reader"); err != nil {
			h.t.Fatal(err)
		}
		var got admin.Redriven
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", `{"all":true}`, &got)
		if got.Moved != 0 {
			h.t.Errorf("%d moved to a topic that nobody subscribes to durably", got.Moved)
		}
		c.consume("NEWS", reader)
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", `{"all":true}`, &got)
		if got.Moved != 1 {
			h.t.Errorf("%d moved to the subscription, want 1", got.Moved)
		}
	})
}

func TestCountsAreRightAfterAStart(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.kill("ORDERS", 3)
		h.restart()
		var got admin.DeadLetterQueues
		h.get("/api/v1/dead-letter-queues", &got)
		if len(got.Queues) != 1 || got.Queues[0].Messages != 3 || got.Queues[0].DeadLetters.Found != 3 {
			h.t.Errorf("found %+v, want 3 in one queue", got.Queues)
		}
		var all admin.Redriven
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", `{"all":true}`, &all)
		if all.Moved != 3 {
			h.t.Errorf("moved %d, want 3", all.Moved)
		}
	})
}

func TestPurgeRemovesWhatNobodyHas(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for range 5 {
			c.send("ORDERS", "x")
		}
		c.consume("ORDERS", func(s *broker.ConsumerSpec) { s.Prefetch = 2 })
		c.take()
		var got admin.Purged
		h.post("/api/v1/queues/ORDERS/purge", "", &got)
		if d := cmp.Diff(admin.Purged{Where: admin.Where{Queue: "ORDERS"}, Removed: 3, Stayed: admin.Stayed{Out: 2}}, got); d != "" {
			h.t.Error(d)
		}
		var q admin.Queue
		h.get("/api/v1/queues/ORDERS", &q)
		if q.Messages != 2 || q.Out != 2 {
			h.t.Errorf("left: %+v, want the 2 that the consumer has", q.Counts)
		}
	})
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	for name, odd := range map[string]string{
		"slash":     "a/b",
		"dots":      "..",
		"percent":   "100%25 sure",
		"unicode":   "Bücher 📚",
		"query":     "a?b=c&d#e",
		"colon":     "queue:x",
		"plus":      "a+b c",
		"backslash": `a\b`,
		"slashes":   "//",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				c := h.client()
				id := c.send(odd, "hello", func(m *message.Message) { m.ID = message.ID{Text: "ID:odd/id?" + odd} })
				path := "/api/v1/queues/" + segment(odd)
				var q admin.Queue
				h.get(path, &q)
				if q.Name != odd || q.Messages != 1 {
					h.t.Errorf("queue is %+v", q)
				}
				var m admin.Detail
				h.get(path+"/messages/"+segment(id), &m)
				if m.ID != id || m.Queue != odd {
					h.t.Errorf("message is %q of %q, want %q of %q", m.ID, m.Queue, id, odd)
				}
			})
		})
	}
}

// segment escapes a name so that no dots are left that a path would lose.
func segment(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }

func TestTemporaryQueuesHaveAPrefix(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		temp := message.Destination{Kind: message.TempQueue, Name: c.id + ":1"}
		if err := c.c.AddDestination(h.t.Context(), temp); err != nil {
			h.t.Fatal(err)
		}
		var all admin.Destinations
		h.get("/api/v1/destinations", &all)
		if len(all.Queues) != 1 || all.Queues[0].Name != "temp-queue://"+temp.Name || !all.Queues[0].Temporary {
			h.t.Fatalf("queues are %+v", all.Queues)
		}
		var q admin.Queue
		h.get("/api/v1/queues/"+url.PathEscape(all.Queues[0].Name), &q)
		if q.Name != all.Queues[0].Name {
			h.t.Errorf("queue is %+v", q)
		}
	})
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	const dlq = "/api/v1/queues/ActiveMQ.DLQ"
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		kind, says         string
	}{
		"no such path":             {method: "GET", path: "/api/v1/nothing", status: 404, kind: "not-found", says: "/api/v1"},
		"no console yet":           {method: "GET", path: "/", status: 404, kind: "not-found", says: "/api/v1"},
		"a name with a bare slash": {method: "GET", path: "/api/v1/queues/a/b", status: 404, kind: "not-found", says: "%2F"},
		"no such queue":            {method: "GET", path: "/api/v1/queues/NOPE", status: 404, kind: "not-found", says: "queue://NOPE does not exist"},
		"a topic for a queue":      {method: "GET", path: "/api/v1/queues/topic:%2F%2FNEWS/messages", status: 400, kind: "invalid", says: "topic://NEWS is a topic"},
		"purge of a topic":         {method: "POST", path: "/api/v1/queues/topic:%2F%2FNEWS/purge", status: 400, kind: "invalid", says: "name a queue, or a durable subscription"},
		"pages of no such queue":   {method: "GET", path: "/api/v1/queues/NOPE/messages", status: 404, kind: "not-found", says: "NOPE"},
		"no such message":          {method: "GET", path: dlq + "/messages/ID:nope", status: 404, kind: "not-found", says: "ID:nope"},
		"redrive of no such queue": {method: "POST", path: "/api/v1/queues/NOPE/redrive", body: `{"all":true}`, status: 404, kind: "not-found", says: "NOPE"},
		"purge of no such queue":   {method: "POST", path: "/api/v1/queues/NOPE/purge", status: 404, kind: "not-found", says: "NOPE"},
		"GET of an action":         {method: "GET", path: dlq + "/redrive", status: 405, kind: "invalid", says: "only POST"},
		"POST of a list":           {method: "POST", path: "/api/v1/destinations", status: 405, kind: "invalid", says: "only GET and HEAD"},
		"DELETE of a queue":        {method: "DELETE", path: dlq, status: 405, kind: "invalid", says: "DELETE is not possible"},
		"cursor of letters":        {method: "GET", path: dlq + "/messages?after=x", status: 400, kind: "invalid", says: "cursor"},
		"cursor of another lane":   {method: "GET", path: dlq + "/messages?after=10-1", status: 400, kind: "invalid", says: "cursor"},
		"cursor below zero":        {method: "GET", path: dlq + "/messages?after=0--1", status: 400, kind: "invalid", says: "cursor"},
		"limit 0":                  {method: "GET", path: dlq + "/messages?limit=0", status: 400, kind: "invalid", says: "1 to 1000"},
		"limit too large":          {method: "GET", path: dlq + "/messages?limit=1001", status: 400, kind: "invalid", says: "1 to 1000"},
		"limit of letters":         {method: "GET", path: dlq + "/messages?limit=all", status: 400, kind: "invalid", says: "1 to 1000"},
		"unknown parameter":        {method: "GET", path: dlq + "/messages?page=3", status: 400, kind: "invalid", says: `"page"`},
		"no JSON":                  {method: "POST", path: dlq + "/redrive", body: "all", status: 400, kind: "invalid", says: "JSON"},
		"nothing":                  {method: "POST", path: dlq + "/redrive", status: 400, kind: "invalid", says: "no JSON object"},
		"half a JSON object":       {method: "POST", path: dlq + "/redrive", body: `{"ids":["a"`, status: 400, kind: "invalid", says: "JSON"},
		"two JSON objects":         {method: "POST", path: dlq + "/redrive", body: `{"all":true}{}`, status: 400, kind: "invalid", says: "more behind"},
		"unknown field":            {method: "POST", path: dlq + "/redrive", body: `{"everything":true}`, status: 400, kind: "invalid", says: "everything"},
		"wrong type":               {method: "POST", path: dlq + "/redrive", body: `{"ids":"ID:1"}`, status: 400, kind: "invalid", says: "JSON"},
		"neither ids nor all":      {method: "POST", path: dlq + "/redrive", body: `{}`, status: 400, kind: "invalid", says: "say which"},
		"both ids and all":         {method: "POST", path: dlq + "/redrive", body: `{"all":true,"ids":["a"]}`, status: 400, kind: "invalid", says: "say which"},
		"purge of who knows what":  {method: "POST", path: dlq + "/purge", body: `{}`, status: 400, kind: "invalid", says: "say which"},
		"a limit below 0":          {method: "POST", path: dlq + "/purge", body: `{"all":true,"limit":-1}`, status: 400, kind: "invalid", says: "limit"},
		"a bad selector":           {method: "POST", path: dlq + "/purge", body: `{"selector":"a ="}`, status: 400, kind: "invalid", says: "selector"},
		"move to nowhere":          {method: "POST", path: dlq + "/move", body: `{"all":true}`, status: 400, kind: "invalid", says: "say where to"},
		"move to a pattern":        {method: "POST", path: dlq + "/move", body: `{"all":true,"to":"A.>"}`, status: 400, kind: "invalid", says: "no single"},
		"redrive from no DLQ":      {method: "POST", path: "/api/v1/queues/ORDERS/redrive", body: `{"all":true}`, status: 409, kind: "wrong-state", says: "no dead letter queue"},
		"a form": {method: "POST", path: dlq + "/redrive", body: "all=true", headers: []string{"Content-Type", "application/x-www-form-urlencoded"},
			status: 400, kind: "invalid", says: "Content-Type: application/json"},
		"a huge body": {method: "POST", path: dlq + "/redrive", body: `{"ids":["` + strings.Repeat("x", admin.MaxRequestBytes) + `"]}`,
			status: 413, kind: "over-limit", says: "larger than 1048576"},
		"a page of another origin": {method: "POST", path: dlq + "/purge", headers: []string{"Sec-Fetch-Site", "cross-site"},
			status: 403, kind: "denied", says: "another origin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				h.kill("ORDERS", 1)
				text := h.refused(h.do(tt.method, tt.path, tt.body, tt.headers...), tt.status, tt.kind)
				if !strings.Contains(text, tt.says) {
					h.t.Errorf("error is %q, want it to say %q", text, tt.says)
				}
				var q admin.Queue
				if h.get(dlq, &q); q.Messages != 1 {
					h.t.Errorf("the refused request changed something: %+v", q.Counts)
				}
			})
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	space := admin.Space{FreeBytes: 10, TotalBytes: 100, UsedBytes: 5}
	set := func(b *broker.Options, a *admin.Options) {
		b.Name = "east"
		a.Space = func() (admin.Space, error) { return space, nil }
	}
	inHouse(t, set, func(h *house) {
		begin := time.Now()
		h.client()
		time.Sleep(90 * time.Second)
		var got admin.Status
		h.get("/api/v1", &got)
		want := admin.Status{Broker: "east", Version: "1.2.3", Started: begin.UTC(), UptimeSeconds: 90, Connections: 1, Disk: space}
		if d := cmp.Diff(want, got); d != "" {
			h.t.Error(d)
		}
		if w := h.do(http.MethodHead, "/api/v1", ""); w.Code != http.StatusOK {
			h.t.Errorf("HEAD: status %d", w.Code)
		}
	})
}

// A dead letter is reached however deep it lies.
func TestRedriveByIDReachesAnyDepth(t *testing.T) {
	t.Parallel()
	small := func(b *broker.Options, _ *admin.Options) { b.Limits.WindowEntries = 4 }
	inHouse(t, small, func(h *house) {
		ids := h.kill("ORDERS", 30)
		var got admin.Redriven
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", fmt.Sprintf(`{"ids":[%q]}`, ids[29]), &got)
		if got.Moved != 1 {
			h.t.Errorf("reply %+v, want 1 moved", got)
		}
		h.post("/api/v1/queues/ActiveMQ.DLQ/redrive", `{"all":true,"limit":20,"dryRun":true}`, &got)
		if got.Moved != 20 || !got.DryRun {
			h.t.Errorf("reply %+v, want 20 that would move", got)
		}
		var q admin.Queue
		if h.get("/api/v1/queues/ActiveMQ.DLQ", &q); q.Messages != 29 {
			h.t.Errorf("%d messages are left, want 29", q.Messages)
		}
	})
}

func TestMoveTakesAPartElsewhere(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for i := range 6 {
			c.send("ORDERS", "x", func(m *message.Message) { m.Type = []string{"even", "odd"}[i%2] })
		}
		c.consume("ORDERS", func(s *broker.ConsumerSpec) { s.Prefetch = 2 })
		c.take()
		var got admin.Moved
		h.post("/api/v1/queues/ORDERS/move", `{"to":"ORDERS.ODD","selector":"JMSType = 'odd'"}`, &got)
		want := admin.Moved{Where: admin.Where{Queue: "ORDERS"}, To: "queue://ORDERS.ODD", Moved: 2, Stayed: admin.Stayed{Out: 1}}
		if d := cmp.Diff(want, got); d != "" {
			h.t.Error(d)
		}
		var page admin.Page
		h.get("/api/v1/queues/ORDERS.ODD/messages", &page)
		if len(page.Messages) != 2 || page.Messages[0].Headers.OriginalDestination != "queue://ORDERS" { // R-JMX-01
			h.t.Errorf("what was moved: %+v", page.Messages)
		}
		if !strings.Contains(h.log.String(), "messages moved") {
			h.t.Errorf("nobody can see in the log who did it:\n%s", h.log)
		}
	})
}

// Durable subscriptions are looked at, purged and moved as queues are.
func TestDurableSubscriptionsByHand(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		id := c.consume("NEWS", func(s *broker.ConsumerSpec) { s.Destination.Kind, s.Subscription = message.Topic, "a/b" })
		c.c.CloseConsumer(h.t.Context(), id, queue.UnknownLast, nil)
		for range 3 {
			c.send("NEWS", "x", func(m *message.Message) { m.Destination.Kind = message.Topic })
		}
		var all admin.Destinations
		h.get("/api/v1/destinations", &all)
		path := "/api/v1/subscriptions/" + url.PathEscape(all.Subscriptions[0].ClientID) + "/" + url.PathEscape("a/b")
		var page admin.Page
		h.get(path+"/messages", &page)
		if len(page.Messages) != 3 || page.Subscription != "a/b" {
			h.t.Errorf("page is %+v", page)
		}
		var moved admin.Moved
		h.post(path+"/move", fmt.Sprintf(`{"to":"NEWS.KEPT","ids":[%q]}`, page.Messages[1].ID), &moved)
		var purged admin.Purged
		h.post(path+"/purge", "", &purged)
		if moved.Moved != 1 || purged.Removed != 2 {
			h.t.Errorf("moved %+v, purged %+v", moved, purged)
		}
		h.refused(h.do("POST", "/api/v1/subscriptions/nobody/a/purge", ""), 404, "not-found")
		h.refused(h.do("POST", "/api/v1/subscriptions/nobody/a/delete", ""), 404, "not-found")
		h.refused(h.do("POST", path+"/move", `{"to":"topic://NOBODY","all":true}`), 409, "wrong-state")
	})
}
