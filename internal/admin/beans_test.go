package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/jolokia"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/queue"
)

const (
	brokerBean = "org.apache.activemq:type=Broker,brokerName=localhost"
	queueBean  = brokerBean + ",destinationType=Queue,destinationName="
)

// A said is a reply of Jolokia's.
type said struct {
	Request   map[string]any
	Value     any
	Status    int
	ErrorType string `json:"error_type"`
	Error     string
	Timestamp int64
}

func (h *house) said(w interface{ String() string }, v any) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(w.String()), v); err != nil {
		h.t.Fatalf("reply: %v: %s", err, w)
	}
}

// ask sends a GET request to Jolokia, as curl does.
func (h *house) ask(path string, headers ...string) said {
	h.t.Helper()
	w := h.do(http.MethodGet, "/api/jolokia"+path, "", headers...)
	if w.Code != http.StatusOK {
		h.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var s said
	h.said(w.Body, &s)
	return s
}

// value is ask for what must succeed.
func (h *house) value(path string) any {
	h.t.Helper()
	s := h.ask(path)
	if s.Status != 200 || s.Timestamp == 0 {
		h.t.Errorf("%s: %+v", path, s)
	}
	return s.Value
}

// exec calls an operation with a POST.
func (h *house) exec(bean, operation string, args ...any) said {
	h.t.Helper()
	text, err := json.Marshal(map[string]any{"type": "exec", "mbean": bean, "operation": operation, "arguments": args})
	if err != nil {
		h.t.Fatal(err)
	}
	var s said
	h.said(h.do(http.MethodPost, "/console/jolokia/", string(text), "Origin", "http://localhost").Body, &s)
	return s
}

// What a probe of ActiveMQ's reads, as it reads it: single values, several, by patterns.
func TestProbesReadBeans(t *testing.T) {
	t.Parallel()
	inHouse(t, func(_ *broker.Options, o *admin.Options) {
		o.Connectors = func() []jolokia.Connector {
			return []jolokia.Connector{{Name: "openwire", URI: "tcp://127.0.0.1:61616"}}
		}
	}, func(h *house) {
		h.kill("BILLS", 2)
		c := h.client()
		for i := range 3 {
			c.send("ORDERS", fmt.Sprint(i))
		}
		c.consume("ORDERS", func(s *broker.ConsumerSpec) { s.Prefetch = 1 })
		c.take()
		for path, want := range map[string]any{
			"/read/" + queueBean + "ORDERS/QueueSize":                                   3.0,
			"/read/" + queueBean + "ORDERS/InFlightCount":                               1.0,
			"/read/" + queueBean + "ORDERS/EnqueueCount":                                3.0,
			"/read/" + queueBean + "ORDERS/ConsumerCount":                               1.0,
			"/read/" + queueBean + "ORDERS/DLQ":                                         false,
			"/read/" + queueBean + "ActiveMQ.DLQ/DLQ":                                   true,
			"/read/" + queueBean + "ActiveMQ.DLQ/QueueSize":                             2.0,
			"/read/" + queueBean + "ORDERS/QueueSize,Name":                              map[string]any{"QueueSize": 3.0, "Name": "ORDERS"},
			"/read/" + brokerBean + "/TotalMessageCount":                                5.0,
			"/read/" + brokerBean + "/BrokerName":                                       "localhost",
			"/read/" + brokerBean + "/TransportConnectors/openwire":                     "tcp://127.0.0.1:61616",
			"/read/" + brokerBean + "/Queues/0":                                         map[string]any{"objectName": queueBean + "ActiveMQ.DLQ"},
			"/read/" + brokerBean + "/TotalQueuesCount":                                 3.0,
			"/read/" + brokerBean + ",service=Health/CurrentStatus":                     "Good",
			"/read/org.apache.activemq:destinationName=B*,destinationType=Queue,*/Name": map[string]any{"org.apache.activemq:brokerName=localhost,destinationName=BILLS,destinationType=Queue,type=Broker": map[string]any{"Name": "BILLS"}},
			"/search/" + brokerBean + ",connector=*,connectorName=*":                    []any{"org.apache.activemq:brokerName=localhost,connector=clientConnectors,connectorName=openwire,type=Broker"},
			"/version/info/product":                                                     "activemq",
		} {
			if strings.HasPrefix(path, "/version") {
				path, want = "/version", nil
				if v := h.value(path).(map[string]any); v["protocol"] != "7.2" {
					h.t.Errorf("version: %v", v)
				}
				continue
			}
			if d := cmp.Diff(want, h.value(path)); d != "" {
				h.t.Errorf("%s (-want +got):\n%s", path, d)
			}
		}
		consumers := h.value("/search/org.apache.activemq:endpoint=Consumer,*").([]any)
		if len(consumers) != 1 {
			h.t.Fatalf("consumers: %v", consumers)
		}
		if got := h.value("/read/" + url.PathEscape(consumers[0].(string)) + "/PrefetchSize"); got != 1.0 {
			h.t.Errorf("its window: %v", got)
		}
		if got := h.value("/read/" + queueBean + "ORDERS/Subscriptions").([]any); len(got) != 1 {
			h.t.Errorf("subscriptions: %v", got)
		}
		all := h.value("/read/" + queueBean + "ORDERS").(map[string]any)
		for _, name := range []string{"QueueSize", "EnqueueCount", "DequeueCount", "DispatchCount", "InFlightCount", "ExpiredCount", "ConsumerCount",
			"ProducerCount", "MemoryPercentUsage", "AverageMessageSize", "Paused", "Name", "DLQ", "Subscriptions"} {
			if _, ok := all[name]; !ok {
				h.t.Errorf("attribute %s is missing", name)
			}
		}
	})
}

// Several requests in one, of which some fail, and one that cannot be read.
func TestBeansInBulk(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		h.client().send("ORDERS", "x")
		var all []said
		h.said(h.do(http.MethodPost, "/api/jolokia", fmt.Sprintf(`[{"type":"read","mbean":%q,"attribute":["QueueSize","Name"]},
			{"type":"READ","mbean":%q,"attribute":"Nope"},{"type":"read","mbean":%q},{"type":"dance"},
			{"type":"exec","mbean":%q,"operation":"nope","arguments":[]}, {"type":"write","mbean":%q,"attribute":"MemoryLimit","value":1}]`,
			queueBean+"ORDERS", queueBean+"ORDERS", queueBean+"NOPE", queueBean+"ORDERS", queueBean+"ORDERS")).Body, &all)
		var got []string
		for _, s := range all {
			got = append(got, fmt.Sprintf("%d %s", s.Status, s.ErrorType))
		}
		want := []string{"200 ", "404 javax.management.AttributeNotFoundException", "404 javax.management.InstanceNotFoundException",
			"400 java.lang.IllegalArgumentException", "400 java.lang.IllegalArgumentException", "400 javax.management.AttributeNotFoundException"}
		if d := cmp.Diff(want, got); d != "" {
			h.t.Errorf("(-want +got):\n%s", d)
		}
		if d := cmp.Diff(map[string]any{"QueueSize": 1.0, "Name": "ORDERS"}, all[0].Value); d != "" {
			h.t.Error(d)
		}
		if got := all[0].Request["mbean"]; got != "org.apache.activemq:brokerName=localhost,destinationName=ORDERS,destinationType=Queue,type=Broker" {
			h.t.Errorf("the request is told as %v", got)
		}
		for _, body := range []string{"{", "[", `"x"`, `[1]`} {
			if w := h.do(http.MethodPost, "/api/jolokia", body); w.Code != 200 || !strings.Contains(w.Body.String(), `"status":400`) {
				h.t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		}
	})
}

// What scripts do with queues and dead letters: browse, move, copy, remove, retry, purge,
// pause (section 5.8).
func TestBeansAct(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		ids := h.kill("ORDERS", 5)
		dlq := queueBean + "ActiveMQ.DLQ"
		is := func(s said, want any) {
			h.t.Helper()
			if d := cmp.Diff(want, s.Value); d != "" || s.Status != 200 {
				h.t.Errorf("%+v (-want +got):\n%s", s, d)
			}
		}
		fails := func(s said, status int, text string) {
			h.t.Helper()
			if s.Status != status || !strings.Contains(s.Error, text) {
				h.t.Errorf("%+v, want %d, %q", s, status, text)
			}
		}
		browsed := h.exec(dlq, "browse()").Value.([]any)
		first := browsed[0].(map[string]any)
		if len(browsed) != 5 || first["JMSMessageID"] != ids[0] || first["Text"] != "order 1" || first["JMSDeliveryMode"] != "PERSISTENT" ||
			first["OriginalDestination"] != "queue://ORDERS" || first["StringProperties"].(map[string]any)["dlqDeliveryFailureCause"] != cause {
			h.t.Errorf("browsed: %v", first)
		}
		if got := h.exec(dlq, "browse(java.lang.String)", "JMSMessageID = '"+ids[3]+"'").Value.([]any); len(got) != 1 {
			h.t.Errorf("browsed by selector: %v", got)
		}
		if got := h.value("/exec/" + dlq + "/getMessage/" + url.PathEscape(ids[2])).(map[string]any); got["Text"] != "order 3" {
			h.t.Errorf("got %v", got)
		}
		is(h.ask("/exec/"+dlq+"/getMessage/ID:nope"), nil)
		is(h.exec(dlq, "copyMatchingMessagesTo(java.lang.String,java.lang.String)", "JMSMessageID = '"+ids[4]+"'", "LOOK"), 1.0)
		is(h.exec(dlq, "moveMessageTo", ids[4], "queue://ASIDE"), true)
		is(h.exec(dlq, "moveMessageTo", ids[4], "ASIDE"), false)
		is(h.exec(dlq, "moveMatchingMessagesTo", "", "ActiveMQ.DLQ"), 0.0) // R-JMX-04
		is(h.exec(dlq, "removeMessage", ids[3]), true)
		is(h.ask("/exec/"+dlq+"/retryMessage(java.lang.String)/"+ids[0]), true)
		fails(h.exec(dlq, "retryMessage", ids[0]), 404, "no dead letter "+ids[0])
		is(h.exec(dlq, "retryMessages()"), 2.0)
		is(h.exec(dlq, "retryMessages()"), 0.0)
		fails(h.exec(queueBean+"ORDERS", "retryMessages"), 500, "Retry of message is only possible on Dead Letter Queues!")
		is(h.exec(queueBean+"ORDERS", "removeMatchingMessages(java.lang.String,int)", nil, 1), 1.0)
		fails(h.exec(queueBean+"ORDERS", "removeMatchingMessages", "a ="), 400, "selector")
		fails(h.exec(queueBean+"ORDERS", "removeMatchingMessages", "a", "b"), 400, "argument 2")
		fails(h.exec(queueBean+"ORDERS", "purge", 1, 2), 400, "Signatures found: purge(), purge(long)")
		fails(h.exec(queueBean+"ORDERS", "purge()", 1), 400, "requires 0 parameters, not 1")
		is(h.exec(queueBean+"ORDERS", "pause"), nil)
		if h.value("/read/"+queueBean+"ORDERS/Paused") != true {
			h.t.Error("it is not paused")
		}
		is(h.exec(queueBean+"ORDERS", "resume"), nil)
		is(h.exec(queueBean+"ORDERS", "purge"), nil)
		is(h.ask("/read/"+queueBean+"ORDERS/QueueSize"), 0.0)
		is(h.exec(brokerBean, "addQueue", "NEW"), nil)
		is(h.exec(brokerBean, "removeQueue", "NEW"), nil)
		fails(h.exec(brokerBean, "removeQueue", "NEW"), 404, "queue://NEW does not exist")
		fails(h.ask("/read/"+queueBean+"NEW/QueueSize"), 404, "NEW")
		if !strings.Contains(h.log.String(), "bean asked to act") || strings.Contains(h.log.String(), "browse") {
			h.t.Errorf("the log:\n%s", h.log)
		}
	})
}

// A message that a consumer has is not retried behind its back, and who asks is told
// (R-EDGE-51).
func TestBeansLeaveWhatConsumersHave(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		ids := h.kill("ORDERS", 2)
		c := h.client()
		c.consume("ActiveMQ.DLQ", func(s *broker.ConsumerSpec) { s.Prefetch = 1 })
		c.take()
		if s := h.exec(queueBean+"ActiveMQ.DLQ", "retryMessage", ids[0]); s.Status != 409 || !strings.Contains(s.Error, "a consumer has") {
			h.t.Errorf("%+v", s)
		}
		if s := h.exec(queueBean+"ActiveMQ.DLQ", "retryMessages"); s.Value != 1.0 {
			h.t.Errorf("%+v", s)
		}
	})
}

// A durable subscription whose application is gone is found and destroyed.
func TestBeansOfDurableSubscriptions(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		id := c.consume("NEWS", func(s *broker.ConsumerSpec) { s.Destination.Kind, s.Subscription = message.Topic, "daily" })
		c.send("NEWS", "x", func(m *message.Message) { m.Destination.Kind = message.Topic })
		if s := h.exec(brokerBean, "destroyDurableSubscriber", "app", "daily"); s.Status != 409 {
			h.t.Errorf("destroyed in use: %+v", s)
		}
		c.c.CloseConsumer(h.t.Context(), id, queue.UnknownLast, nil)
		c.take()
		bean := brokerBean + ",destinationType=Topic,destinationName=NEWS,endpoint=Consumer,clientId=app,consumerId=Durable(app_daily)"
		if got := h.value("/read/" + brokerBean + "/InactiveDurableTopicSubscribers/0"); got.(map[string]any)["objectName"] != bean {
			h.t.Errorf("found %v", got)
		}
		if got := h.value("/read/" + bean + "/PendingQueueSize"); got != 1.0 {
			h.t.Errorf("%v wait", got)
		}
		if s := h.exec(bean, "destroy"); s.Status != 200 {
			h.t.Errorf("destroy: %+v", s)
		}
		if got := h.value("/read/" + brokerBean + "/InactiveDurableTopicSubscribers").([]any); len(got) != 0 {
			h.t.Errorf("left: %v", got)
		}
		topic := "/read/" + brokerBean + ",destinationType=Topic,destinationName=NEWS/"
		if got := h.value(topic + "EnqueueCount"); got != 1.0 {
			h.t.Errorf("%v were sent to the topic", got)
		}
		for range 2 { // as ActiveMQ, it does not mind one that is there
			if s := h.ask("/exec/" + brokerBean + "/createDurableSubscriber/app/daily/NEWS/[null]"); s.Status != 200 || s.Value.(map[string]any)["objectName"] != bean {
				h.t.Errorf("made %+v", s)
			}
		}
		c.send("NEWS", "y", func(m *message.Message) { m.Destination.Kind = message.Topic })
		c.take()
		if got := h.value("/read/" + bean + "/PendingQueueSize"); got != 1.0 {
			h.t.Errorf("%v wait for the one that was made", got)
		}
		if s := h.exec(brokerBean, "createDurableSubscriber", "app", "daily", "NEWS", "x = 1"); s.Status != 409 {
			h.t.Errorf("made with another selector: %+v", s)
		}
		if s := h.ask("/exec/" + brokerBean + "/addQueue/[null]"); s.Status != 400 {
			h.t.Errorf("a queue without a name: %+v", s)
		}
	})
}

// Who browses more than a reply has is told, and can say how many are enough (R-JMX-20,
// C19).
func TestBrowseIsNeverCutSilently(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for range jolokia.MaxBrowse + 1 {
			c.send("DEEP", "x")
		}
		if s := h.ask("/exec/" + queueBean + "DEEP/browse()"); s.Status != 400 || !strings.Contains(s.Error, "more than 10000") {
			h.t.Errorf("%d: %s", s.Status, s.Error)
		}
		if got := h.value("/exec/" + queueBean + "DEEP/browse()?maxCollectionSize=7").([]any); len(got) != 7 {
			h.t.Errorf("%d messages", len(got))
		}
	})
}

// A page of another origin gets nothing; a script that says Origin: http://localhost, as
// ActiveMQ asks of it, does.
func TestBeansAreNotForForeignPages(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		for _, tt := range []struct {
			headers []string
			code    int
		}{
			{nil, 200},
			{[]string{"Origin", "http://localhost"}, 200},
			{[]string{"Origin", "http://127.0.0.1:8161"}, 200},
			{[]string{"Origin", "http://example.com"}, 200}, // the test's own host
			{[]string{"Origin", "https://elsewhere.org"}, 403},
			{[]string{"Referer", "https://elsewhere.org/x"}, 403},
			{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
			{[]string{"Sec-Fetch-Site", "cross-site", "Origin", "http://localhost"}, 403},
			{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		} {
			if w := h.do(http.MethodGet, "/api/jolokia/version", "", tt.headers...); w.Code != tt.code {
				h.t.Errorf("%q: %d, want %d", tt.headers, w.Code, tt.code)
			}
		}
		if w := h.do(http.MethodDelete, "/api/jolokia", ""); w.Code != 405 {
			h.t.Errorf("DELETE: %d", w.Code)
		}
	})
}

// Every bean is described in the list, each operation that it names can be called by its
// signature, and all attributes can be read.
func TestBeansAreListed(t *testing.T) {
	t.Parallel()
	inHouse(t, func(_ *broker.Options, o *admin.Options) {
		o.Send = func(context.Context, message.Destination, map[string]any, string) (string, error) { return "ID:x", nil }
	}, func(h *house) {
		c := h.client()
		c.consume("ORDERS")
		c.consume("NEWS", func(s *broker.ConsumerSpec) { s.Destination.Kind, s.Subscription = message.Topic, "daily" })
		connection := brokerBean + ",connector=clientConnectors,connectorName=main,connectionViewType=clientId,connectionName=app"
		for i, bean := range h.value("/read/" + connection + "/Consumers").([]any) {
			if s := h.ask("/read/" + url.PathEscape(bean.(map[string]any)["objectName"].(string)) + "/Active"); s.Value != true {
				h.t.Errorf("consumer %d of the connection: %+v", i, s)
			}
		}
		if s := h.exec(connection, "stop"); s.Status != 200 || !c.kicked.Load() {
			h.t.Errorf("stop: %+v", s)
		}
		c.c.AddProducer(c.id+":1:9", message.Destination{})
		c.send("LATER", "x", func(m *message.Message) { m.Schedule = &message.Schedule{Delay: time.Hour.Milliseconds()} })
		beans := h.value("/list/org.apache.activemq").(map[string]any)
		var classes []string
		for properties, b := range beans {
			class := b.(map[string]any)["class"].(string)
			classes = append(classes, class[strings.LastIndexByte(class, '.')+1:])
			s := h.ask("/read/org.apache.activemq:" + url.PathEscape(properties))
			if s.Status != 200 || len(s.Value.(map[string]any)) != len(b.(map[string]any)["attr"].(map[string]any)) {
				h.t.Errorf("%s: %+v", properties, s)
			}
		}
		slices.Sort(classes)
		want := []string{"BrokerView", "ConnectionView", "DurableSubscriptionView", "HealthView", "JobSchedulerView", "ProducerView", "QueueView", "SubscriptionView", "TopicView"}
		if d := cmp.Diff(want, slices.Compact(classes)); d != "" {
			h.t.Errorf("(-want +got):\n%s", d)
		}
		overloads := h.value("/list/org.apache.activemq/" + strings.TrimPrefix(queueBean, "org.apache.activemq:") + "ORDERS/op/purge").([]any)
		if len(overloads) != 2 {
			h.t.Errorf("purge: %v", overloads)
		}
		if s := h.exec(queueBean+"ORDERS", "sendTextMessage(java.util.Map,java.lang.String)", map[string]any{"n": 1}, "x"); s.Value != "ID:x" {
			h.t.Errorf("%+v", s)
		}
	})
}

// A text message that someone sends by hand is one like any other, with its headers and
// properties; what is no header or property is refused.
func TestSendTextMessage(t *testing.T) {
	t.Parallel()
	poster := &openwire.Poster{Clock: clock.System{}}
	inHouse(t, func(_ *broker.Options, o *admin.Options) { o.Send = poster.Send }, func(h *house) {
		poster.Broker = h.broker
		c := h.client()
		c.consume("ORDERS")
		send := "sendTextMessage(java.util.Map,java.lang.String)"
		s := h.exec(queueBean+"ORDERS", send, map[string]any{"JMSType": "t", "JMSPriority": 7, "JMSDeliveryMode": 1, "n": 42, "big": 1 << 40, "half": 0.5, "yes": true}, "hello")
		got := c.take()
		if len(got) != 1 || s.Value != got[0].Entry.ID.String() {
			h.t.Fatalf("%+v, delivered %+v", s, got)
		}
		m := got[0].Message
		properties, err := openwire.Properties(m)
		if err != nil {
			h.t.Fatal(err)
		}
		want := map[string]any{"n": int32(42), "big": int64(1 << 40), "half": 0.5, "yes": true}
		if d := cmp.Diff(want, properties); d != "" || m.Type != "t" || m.Priority != 7 || m.Persistent {
			h.t.Errorf("sent %+v (-want +got):\n%s", m, d)
		}
		h.exec(queueBean+"ORDERS", "sendTextMessageWithProperties(java.lang.String)", "body=hello,JMSType=t,n=x=y,username=me,password=secret")
		h.exec(queueBean+"ORDERS", "sendTextMessageWithProperties(java.lang.String,java.lang.String)", "JMSType=t;body=a,b", ";")
		for i, d := range c.take() {
			properties, err := openwire.Properties(d.Message)
			want := []map[string]any{{"n": "x=y"}, nil}[i]
			if body, bad := openwire.ShowBody(d.Message, 100); err != nil || bad != nil || d.Message.Type != "t" || !maps.Equal(properties, want) || body.Text != []string{"hello", "a,b"}[i] {
				h.t.Errorf("as one text came %+v with %v: %v", d.Message, properties, err)
			}
		}
		if s := h.exec(queueBean+"ORDERS", "sendTextMessageWithProperties", "hello"); s.Status != 400 {
			h.t.Errorf("what is no name and value: %+v", s)
		}
		sent := time.Now()
		h.exec(queueBean+"ORDERS", send, map[string]any{"AMQ_SCHEDULED_DELAY": "5000", "timeToLive": "60000", "n": 1}, "later")
		if got := c.take(); len(got) > 0 {
			h.t.Errorf("at once came %+v", got)
		}
		time.Sleep(5 * time.Second)
		if got := c.take(); len(got) != 1 || got[0].Message.Expiration != sent.Add(65*time.Second).UnixMilli() {
			h.t.Errorf("after the delay came %+v", got)
		}
		for name, value := range map[string]any{"JMSPriority": 10, "JMSDeliveryMode": "x", "JMSMessageID": "ID:x", "list": []int{1},
			"AMQ_SCHEDULED_DELAY": -1, "timeToLive": "long"} {
			if s := h.exec(queueBean+"ORDERS", send, map[string]any{name: value}, "hello"); s.Status != 400 || !strings.Contains(s.Error, name) {
				h.t.Errorf("%s %v: %+v", name, value, s)
			}
		}
	})
}

// The bean of scheduled messages lists and removes those that are next due in a time, to
// the second.
func TestJobsOfATime(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for i := range 4 {
			c.send("ORDERS", "x", func(m *message.Message) { m.Schedule = &message.Schedule{Delay: int64(i/2+1) * 60_000} })
		}
		const jobs = "org.apache.activemq:type=Broker,brokerName=localhost,service=JobScheduler,name=JMS"
		count := func(v any) int { return len(v.(map[string]any)) }
		next := h.value("/read/" + jobs + "/NextScheduleTime").(string)
		if n := count(h.value("/read/" + jobs + "/AllJobs")); n != 4 {
			h.t.Errorf("AllJobs: %d", n)
		}
		if n := count(h.value("/read/" + jobs + "/NextScheduleJobs")); n < 1 || n > 2 { // the two were not sent in the same millisecond, perhaps
			h.t.Errorf("NextScheduleJobs: %d", n)
		}
		if n := count(h.exec(jobs, "getAllJobs", next, next).Value); n != 2 {
			h.t.Errorf("getAllJobs: %d", n)
		}
		h.exec(jobs, "removeAllJobs(java.lang.String,java.lang.String)", "1999-01-01 00:00:00", next)
		if n := count(h.value("/read/" + jobs + "/AllJobs")); n != 2 {
			h.t.Errorf("AllJobs after some were removed: %d", n)
		}
		if s := h.exec(jobs, "getAllJobs", "now", next); s.Status != 400 {
			h.t.Errorf("%+v", s)
		}
		h.exec(jobs, "removeAllJobs()")
		if n := count(h.value("/read/" + jobs + "/NextScheduleJobs")); n != 0 {
			h.t.Errorf("NextScheduleJobs when there are none: %d", n)
		}
	})
}
