package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// A house is a broker in memory with its admin surface, in a bubble of virtual time.
type house struct {
	t       *testing.T
	broker  *broker.Broker
	handler http.Handler
	store   *memstore.Store
	set     func(*broker.Options, *admin.Options)
	stop    func()
	log     *logBuffer
	n       int
}

// A logBuffer is a log that tests can read.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func showBody(m *message.Message, limit int) (admin.Body, error) {
	b, err := openwire.ShowBody(m, limit)
	return admin.Body{Text: b.Text, Bytes: b.Bytes, Cut: b.Cut}, err
}

// inHouse runs f with a broker and its surface; set changes their options.
func inHouse(t *testing.T, set func(*broker.Options, *admin.Options), f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{SyncTime: time.Millisecond, OnMisuse: func(s string) { t.Error(s) }})
		h := &house{t: t, log: &logBuffer{}, store: store, set: set}
		h.open()
		defer func() { // also where the test fails: a bubble ends with nothing running
			h.stop()
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(h)
	})
}

// open starts a broker on what the store has.
func (h *house) open() {
	h.t.Helper()
	shard, err := h.store.Acquire(h.t.Context(), 0, "test")
	if err != nil {
		h.t.Fatal(err)
	}
	rec, err := records.Open(h.t.Context(), shard, records.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	bo := broker.Options{Records: rec, Properties: openwire.Property}
	ao := admin.Options{Version: "1.2.3", Started: time.Now(), Body: showBody, Properties: openwire.Properties,
		Log: slog.New(slog.NewTextHandler(h.log, nil))}
	if h.set != nil {
		h.set(&bo, &ao)
	}
	if h.broker, err = broker.New(bo); err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = h.broker.Run(ctx) })
	h.stop = func() {
		cancel()
		running.Wait()
		if err := shard.Release(context.Background()); err != nil {
			h.t.Error(err)
		}
	}
	ao.Broker = h.broker
	if h.handler, err = admin.New(ao); err != nil {
		h.t.Error(err)
	}
}

// restart stops the broker and starts another on the same store.
func (h *house) restart() {
	h.t.Helper()
	h.stop()
	h.open()
}

// do sends one request.
func (h *house) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	h.t.Helper()
	var content io.Reader
	if body != "" {
		content = bytes.NewReader([]byte(body))
	}
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, content)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	synctest.Wait()
	return w
}

// get sends a request that must succeed, and reads the reply into v.
func (h *house) get(path string, v any) {
	h.t.Helper()
	h.read(h.do(http.MethodGet, path, ""), v)
}

// post is get with a body.
func (h *house) post(path, body string, v any) {
	h.t.Helper()
	h.read(h.do(http.MethodPost, path, body, "Content-Type", "application/json"), v)
}

func (h *house) read(w *httptest.ResponseRecorder, v any) {
	h.t.Helper()
	if w.Code != http.StatusOK {
		h.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		h.t.Fatalf("reply: %v", err)
	}
}

// refused sends a request that must be refused with a status and kind, and gives
// the text.
func (h *house) refused(w *httptest.ResponseRecorder, status int, kind string) string {
	h.t.Helper()
	var e admin.Error
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		h.t.Fatalf("status %d, and the reply is no error: %s", w.Code, w.Body)
	}
	if w.Code != status || e.Kind != kind {
		h.t.Errorf("status %d, kind %q, want %d, %q: %s", w.Code, e.Kind, status, kind, e.Text)
	}
	return e.Text
}

// A client is one connection with a consumer's deliveries.
type client struct {
	h   *house
	c   *broker.Connection
	id  string
	seq int64

	kicked atomic.Bool

	mu  sync.Mutex
	got []broker.Delivery
}

// Deliver keeps what is dispatched.
func (c *client) Deliver(d broker.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, d)
}

// take waits until nothing moves and takes what was delivered.
func (c *client) take() []broker.Delivery {
	time.Sleep(10 * time.Millisecond) // the store's time passes too
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

func (h *house) client() *client {
	h.t.Helper()
	h.n++
	c := &client{h: h, id: fmt.Sprintf("ID:host-%d", h.n)}
	conn, err := h.broker.Connect(h.t.Context(), broker.ClientInfo{ID: c.id, ClientID: "app", Address: "10.0.0.7:5000", Protocol: "openwire", Listener: "main",
		Kick: func(error) { c.kicked.Store(true) }}, c)
	if err != nil {
		h.t.Fatal(err)
	}
	c.c = conn
	return c
}

// close ends the connection in good order.
func (c *client) close() { c.c.Close(message.Closed, "connection closed", queue.UnknownLast) }

// send sends a persistent text message; the options change it.
func (c *client) send(to, text string, set ...func(*message.Message)) string {
	c.h.t.Helper()
	c.seq++
	m := &message.Message{ID: message.ID{Producer: c.id + ":1:1", Sequence: c.seq}, Destination: message.Destination{Kind: message.Queue, Name: to},
		Persistent: true, Priority: 4, Kind: message.TextBody, Format: message.OpenWire, Body: wire.AppendTextBody(nil, text),
		Timestamp: time.Now().UnixMilli()}
	for _, f := range set {
		f(m)
	}
	answered := make(chan error, 1)
	c.c.Send(c.h.t.Context(), m, "", func(err error) { answered <- err })
	if err := <-answered; err != nil {
		c.h.t.Fatal(err)
	}
	return m.ID.String()
}

// consume attaches a consumer to a queue.
func (c *client) consume(name string, set ...func(*broker.ConsumerSpec)) string {
	c.h.t.Helper()
	c.h.n++
	spec := broker.ConsumerSpec{ID: fmt.Sprintf("%s:1:%d", c.id, c.h.n), Session: c.id + ":1",
		Destination: message.Destination{Kind: message.Queue, Name: name}, Prefetch: 1000}
	for _, f := range set {
		f(&spec)
	}
	if err := c.c.Subscribe(c.h.t.Context(), spec); err != nil {
		c.h.t.Fatal(err)
	}
	return spec.ID
}

// ack says something of one delivery.
func (c *client) ack(typ queue.AckType, d broker.Delivery, text string) {
	c.h.t.Helper()
	ref := queue.Ref{Position: d.Entry.Position, ID: d.Entry.ID}
	answered := make(chan error, 1)
	c.c.Ack(c.h.t.Context(), broker.Ack{Consumer: d.Consumer, Destination: d.Destination, Type: typ, First: ref, Last: ref, Count: 1, Text: text},
		func(err error) { answered <- err })
	if err := <-answered; err != nil {
		c.h.t.Fatal(err)
	}
}

// cause is what a Java client of 5.x says when it gives up.
const cause = "java.lang.Throwable: Delivery[7] exceeds redelivery policy limit:RedeliveryPolicy {maximumRedeliveries = 6}, cause:null"

// kill makes dead letters of so many messages of a queue, by a client that gives
// them up. It returns their ids.
func (h *house) kill(name string, n int) []string {
	h.t.Helper()
	c := h.client()
	var ids []string
	for i := range n {
		ids = append(ids, c.send(name, fmt.Sprintf("order %d", i+1)))
	}
	c.consume(name)
	for _, d := range c.take() {
		c.ack(queue.Redelivered, d, "")
		c.ack(queue.Poison, d, cause)
	}
	c.take() // what moved has arrived
	c.close()
	return ids
}
