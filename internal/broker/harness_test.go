package broker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/errstore"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// A house is a broker on a store in memory, whose process can be killed.
type house struct {
	t      *testing.T
	store  *memstore.Store
	faults *errstore.Store // around store, until the next kill; nil: none
	broker *Broker
	shard  store.Shard // what the broker's records lie in
	stop   func()
	events []Event
	mu     sync.Mutex
	set    func(*Options)
	n      int
	// damaged says that a test changes what is stored, behind the broker's back.
	damaged atomic.Bool
	// batchBytes bounds what the store takes in one batch; 0: nothing does.
	batchBytes int
}

// inHouse runs f in a bubble of virtual time with a broker.
func inHouse(t *testing.T, set func(*Options), f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, set: set}
		h.store = memstore.New(memstore.Options{Crashable: true, SyncTime: time.Millisecond, OnMisuse: func(s string) {
			if !h.damaged.Load() {
				t.Error(s)
			}
		}})
		h.open()
		f(h)
		h.stop()
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (h *house) open() {
	h.t.Helper()
	var engine store.Store = h.store
	if h.faults != nil {
		engine = h.faults
	}
	shard, err := engine.Acquire(h.t.Context(), 0, "test")
	if err != nil {
		h.t.Fatal(err)
	}
	rec, err := records.Open(h.t.Context(), shard, records.Options{BatchBytes: h.batchBytes})
	if err != nil {
		h.t.Fatal(err)
	}
	o := Options{Records: rec, Listen: func(e Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, e)
	}}
	if h.set != nil {
		h.set(&o)
	}
	b, err := New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); b.Run(ctx) }()
	h.broker, h.shard = b, shard
	h.stop = func() {
		cancel()
		<-ended
		if err := shard.Release(context.Background()); err != nil && h.faults == nil {
			h.t.Error(err)
		}
	}
}

// restart stops the broker and opens it again on what the store has.
func (h *house) restart() {
	h.t.Helper()
	h.stop()
	h.open()
}

// kill takes the power away: what was not durable is gone.
func (h *house) kill() {
	h.t.Helper()
	after := h.store.Crash()
	h.stop()
	_ = h.store.Close()
	h.store, h.faults = after, nil
	h.open()
}

// A client is one connection whose deliveries are kept in order.
type client struct {
	h    *house
	c    *Connection
	id   string
	mu   sync.Mutex
	got  []Delivery
	seq  int64
	last string // the consumer opened last, where a test keeps it
}

func (c *client) Deliver(d Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, d)
}

func (h *house) client() *client {
	h.t.Helper()
	h.n++
	c := &client{h: h, id: fmt.Sprintf("ID:test-%d", h.n)}
	conn, err := h.broker.Connect(h.t.Context(), ClientInfo{ID: c.id, ClientID: c.id, Address: "pipe", Protocol: "test", Kick: func(error) {}}, c)
	if err != nil {
		h.t.Fatal(err)
	}
	c.c = conn
	return c
}

// msg makes a persistent message; the options change it.
func (c *client) msg(to message.Destination, body string, set ...func(*message.Message)) *message.Message {
	c.seq++
	m := &message.Message{ID: message.ID{Producer: c.id + ":1:1", Sequence: c.seq}, Destination: to, Persistent: true, Priority: 4,
		Kind: message.TextBody, Format: message.OpenWire, Body: []byte(body), Timestamp: time.Now().UnixMilli()}
	for _, f := range set {
		f(m)
	}
	return m
}

// send sends and waits for the answer.
func (c *client) send(m *message.Message, tx string) error {
	answered := make(chan error, 1)
	c.c.Send(c.h.t.Context(), m, tx, func(err error) { answered <- err })
	return <-answered
}

func (c *client) must(err error) {
	c.h.t.Helper()
	if err != nil {
		c.h.t.Fatal(err)
	}
}

// consume subscribes to d and returns the consumer's id.
func (c *client) consume(d message.Destination, set ...func(*ConsumerSpec)) string {
	c.h.t.Helper()
	c.h.n++
	spec := ConsumerSpec{ID: fmt.Sprintf("%s:1:%d", c.id, c.h.n), Session: c.id + ":1", Destination: d, Prefetch: 1000}
	for _, f := range set {
		f(&spec)
	}
	c.must(c.c.Subscribe(c.h.t.Context(), spec))
	return spec.ID
}

// take waits for everything to come to rest and takes what was delivered.
func (c *client) take() []Delivery {
	c.h.t.Helper()
	time.Sleep(10 * time.Millisecond) // the store's time passes too
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	for i := range got {
		if got[i].Kind == MessageDelivery {
			if _, err := got[i].Load(); err != nil {
				c.h.t.Errorf("load %s: %v", got[i].Entry.ID, err)
			}
		}
	}
	return got
}

// texts lists the bodies and counters of what was delivered: "m1" or "m1*2".
func texts(ds []Delivery) []string {
	var all []string
	for _, d := range ds {
		switch d.Kind {
		case EndOfBrowse:
			all = append(all, "end")
		case NothingToPull:
			all = append(all, "nothing")
		case CloseConsumer:
			all = append(all, "close")
		default:
			s := string(d.Message.Body)
			if d.Counter > 0 {
				s += fmt.Sprintf("*%d", d.Counter)
			}
			if d.Hint {
				s += "?"
			}
			all = append(all, s)
		}
	}
	return all
}

func (c *client) ack(typ queue.AckType, consumer string, first, last Delivery, n int, tx string, text ...string) error {
	answered := make(chan error, 1)
	a := Ack{Consumer: consumer, Destination: last.Destination, Type: typ, Count: n, Tx: tx,
		First: queue.Ref{Position: first.Entry.Position, ID: first.Entry.ID}, Last: queue.Ref{Position: last.Entry.Position, ID: last.Entry.ID}}
	if len(text) > 0 {
		a.Text = text[0]
	}
	c.c.Ack(c.h.t.Context(), a, func(err error) { answered <- err })
	return <-answered
}

func (c *client) settle(f func(ctx context.Context, tx string, done func(error)), tx string) error {
	answered := make(chan error, 1)
	f(c.h.t.Context(), tx, func(err error) { answered <- err })
	return <-answered
}
