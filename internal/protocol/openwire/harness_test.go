package openwire

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// A house is a server on a broker, real or scripted.
type house struct {
	t      *testing.T
	server *Server
	broker *broker.Broker // nil: a scripted one
	log    *logBuffer
	ctx    context.Context // of the server
	stop   context.CancelFunc
	served sync.WaitGroup
	n      int
}

// inHouse runs f in a bubble of virtual time with a server on a broker that keeps
// its messages in memory.
func inHouse(t *testing.T, set func(*Options), f func(h *house)) {
	t.Helper()
	inBrokerHouse(t, func(*broker.Options) {}, set, f)
}

// inBrokerHouse is inHouse with other options of the broker.
func inBrokerHouse(t *testing.T, setBroker func(*broker.Options), set func(*Options), f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		shard, err := store.Acquire(t.Context(), 0, "test")
		if err != nil {
			t.Fatal(err)
		}
		rec, err := records.Open(t.Context(), shard, records.Options{})
		if err != nil {
			t.Fatal(err)
		}
		advisories, err := NewAdvisories("ID:test-broker", "localhost", "tcp://test:61616", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		bo := broker.Options{Records: rec, Listen: advisories.Listen, AdvisoryTopic: AdvisoryTopic, Properties: Property}
		setBroker(&bo)
		b, err := broker.New(bo)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		running.Go(func() { advisories.Run(ctx, On(b)) })
		o := Options{Broker: On(b), Advisories: advisories}
		if set != nil {
			set(&o)
		}
		h := newHouse(t, o)
		h.broker = b
		f(h)
		h.close()
		cancel()
		running.Wait()
		if err := shard.Release(context.Background()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// newHouse is a server with options whose broker may be scripted. The caller is in
// a bubble, and closes it.
func newHouse(t *testing.T, o Options) *house {
	t.Helper()
	h := &house{t: t, log: &logBuffer{}}
	o.Log = slog.New(slog.NewTextHandler(h.log, nil))
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.server = server
	h.ctx, h.stop = context.WithCancel(context.Background())
	t.Cleanup(h.stop)
	return h
}

// close waits until every connection has ended.
func (h *house) close() { h.served.Wait() }

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

// dial opens a connection without saying anything on it.
func (h *house) dial() net.Conn {
	h.t.Helper()
	ours, theirs := net.Pipe()
	h.served.Go(func() { h.server.Serve(h.ctx, theirs) })
	return ours
}

// A peer is a scripted client. What it receives is read at once and kept.
type peer struct {
	t    *testing.T
	h    *house
	conn net.Conn
	enc  *wire.Encoder
	id   string
	next int32 // command id

	settings wire.Settings
	ended    chan struct{} // closed when the stream has ended

	mu     sync.Mutex
	got    []wire.DataStructure // not yet looked at
	paused chan struct{}        // nil: everything is read
}

// peerFormat is what peers announce.
func peerFormat() wire.WireFormat {
	f := wire.DefaultWireFormat()
	f.ProviderName, f.ProviderVersion = "ActiveMQ", "5.18.0"
	return f
}

// peer opens a connection and negotiates.
func (h *house) peer(format wire.WireFormat) *peer {
	h.t.Helper()
	h.n++
	p := &peer{t: h.t, h: h, conn: h.dial(), enc: wire.NewEncoder(), id: fmt.Sprintf("ID:peer-%d", h.n), ended: make(chan struct{})}
	info, err := format.Info()
	if err != nil {
		h.t.Fatal(err)
	}
	settings := make(chan wire.Settings, 1)
	go p.listen(format, settings)
	p.send(info)
	synctest.Wait()
	p.settings = <-settings
	p.enc.Negotiated(p.settings)
	if _, ok := p.take().(*wire.BrokerInfo); !ok {
		h.t.Fatal("the first command is no BrokerInfo")
	}
	return p
}

// listen keeps what arrives.
func (p *peer) listen(format wire.WireFormat, settings chan wire.Settings) {
	defer close(p.ended)
	dec := wire.NewDecoder()
	for {
		frame, err := wire.ReadFrame(p.conn, 1<<30)
		if err != nil {
			return
		}
		ds, err := dec.Decode(frame)
		if err != nil {
			p.t.Errorf("decode what the server sends: %v", err)
			return
		}
		if info, ok := ds.(*wire.WireFormatInfo); ok {
			theirs, err := wire.ParseWireFormat(info)
			if err != nil {
				p.t.Error(err)
				return
			}
			s, err := wire.Negotiate(format, theirs)
			if err != nil {
				p.t.Error(err)
				return
			}
			dec.Negotiated(s)
			settings <- s
			continue
		}
		p.mu.Lock()
		p.got = append(p.got, ds)
		for p.paused != nil {
			paused := p.paused
			p.mu.Unlock()
			<-paused
			p.mu.Lock()
		}
		p.mu.Unlock()
	}
}

// pause stops reading after the next frame, resume goes on.
func (p *peer) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = make(chan struct{})
}

func (p *peer) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.paused)
	p.paused = nil
}

// send writes one command.
func (p *peer) send(ds wire.DataStructure) {
	p.t.Helper()
	frame, err := p.enc.Append(nil, ds)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.conn.Write(frame); err != nil {
		p.t.Fatalf("write %T: %v", ds, err)
	}
}

// take waits until nothing moves and gives the oldest thing received; nil if there
// is none.
func (p *peer) take() wire.DataStructure {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.got) == 0 {
		return nil
	}
	first := p.got[0]
	p.got = p.got[1:]
	return first
}

// all gives everything received.
func (p *peer) all() []wire.DataStructure {
	p.t.Helper()
	var all []wire.DataStructure
	for ds := p.take(); ds != nil; ds = p.take() {
		all = append(all, ds)
	}
	return all
}

// tell sends a command that asks for no answer.
func (p *peer) tell(c wire.Command) {
	p.t.Helper()
	p.next++
	c.Base().CommandID, c.Base().ResponseRequired = p.next, false
	p.send(c)
}

// ask sends a command that asks for an answer, and gives it. What comes before it
// stays to be taken.
func (p *peer) ask(c wire.Command) wire.DataStructure {
	p.t.Helper()
	p.next++
	id := p.next
	c.Base().CommandID, c.Base().ResponseRequired = id, true
	p.send(c)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, ds := range p.got {
		if correlated(ds, id) {
			p.got = append(p.got[:i:i], p.got[i+1:]...)
			return ds
		}
	}
	return nil
}

// correlated reports whether ds answers the command.
func correlated(ds wire.DataStructure, id int32) bool {
	v := reflect.Indirect(reflect.ValueOf(ds)).FieldByName("CorrelationID")
	return v.IsValid() && v.Kind() == reflect.Int32 && int32(v.Int()) == id
}

// do sends a command that must succeed.
func (p *peer) do(c wire.Command) {
	p.t.Helper()
	if _, ok := p.ask(c).(*wire.Response); !ok {
		p.t.Fatalf("%T was not answered with a Response; log:\n%s", c, p.h.log)
	}
}

// fails sends a command that must fail with an exception of the class, whose text
// holds text.
func (p *peer) fails(c wire.Command, class, text string) {
	p.t.Helper()
	got := p.ask(c)
	e, ok := got.(*wire.ExceptionResponse)
	if !ok {
		p.t.Fatalf("%T was answered with %T, want an exception", c, got)
	}
	if e.Exception.Class != class || !strings.Contains(e.Exception.Message.Value, text) {
		p.t.Errorf("%T failed with %s, want %s with %q", c, e.Exception, class, text)
	}
}

// client opens a connection with one session, 1.
func (h *house) client() *peer {
	h.t.Helper()
	p := h.peer(peerFormat())
	p.connect()
	return p
}

func (p *peer) connect() {
	p.t.Helper()
	p.do(&wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("client of " + p.id)})
	p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
}

func (p *peer) connection() *wire.ConnectionID { return &wire.ConnectionID{Value: p.id} }

func (p *peer) consumerID(n int64) *wire.ConsumerID {
	return &wire.ConsumerID{ConnectionID: p.id, SessionID: 1, Value: n}
}

func (p *peer) producerID(n int64) *wire.ProducerID {
	return &wire.ProducerID{ConnectionID: p.id, SessionID: 1, Value: n}
}

func (p *peer) txID(n int64) *wire.LocalTransactionID {
	return &wire.LocalTransactionID{Value: n, ConnectionID: p.connection()}
}

// hangUp closes the connection without a word.
func (p *peer) hangUp() {
	p.conn.Close()
	<-p.ended
	synctest.Wait()
}

// leave closes the connection as clients do.
func (p *peer) leave() {
	p.t.Helper()
	p.do(&wire.RemoveInfo{ObjectID: p.connection(), LastDeliveredSequenceID: wire.LastDeliveredUnknown})
	p.tell(&wire.ShutdownInfo{})
	<-p.ended
	p.conn.Close()
}

func queueNamed(name string) *wire.Destination {
	return &wire.Destination{Kind: wire.CodeActiveMQQueue, PhysicalName: name}
}

func topicNamed(name string) *wire.Destination {
	return &wire.Destination{Kind: wire.CodeActiveMQTopic, PhysicalName: name}
}

// produce opens a producer.
func (p *peer) produce(n int64, window int32) {
	p.t.Helper()
	p.do(&wire.ProducerInfo{ProducerID: p.producerID(n), WindowSize: window})
}

// consume opens a consumer.
func (p *peer) consume(n int64, from *wire.Destination, prefetch int32) {
	p.t.Helper()
	p.do(&wire.ConsumerInfo{ConsumerID: p.consumerID(n), Destination: from, PrefetchSize: prefetch, DispatchAsync: true})
}

// text is a text message of producer 1.
func (p *peer) text(sequence int64, to *wire.Destination, text string) *wire.Message {
	return &wire.Message{
		Kind: message.TextBody, ProducerID: p.producerID(1), Destination: to, Persistent: true, Priority: 4,
		MessageID: &wire.MessageID{ProducerID: p.producerID(1), ProducerSequenceID: sequence},
		Timestamp: time.Now().UnixMilli(), Content: wire.AppendTextBody(nil, text),
	}
}

// dispatched takes the next thing received, which must be a dispatch.
func (p *peer) dispatched() *wire.MessageDispatch {
	p.t.Helper()
	got := p.take()
	d, ok := got.(*wire.MessageDispatch)
	if !ok {
		p.t.Fatalf("got %T %+v, want a dispatch; log:\n%s", got, got, p.h.log)
	}
	return d
}

// ack is an acknowledgement of one dispatch.
func ack(d *wire.MessageDispatch, how wire.AckType) *wire.MessageAck {
	return &wire.MessageAck{Destination: d.Destination, ConsumerID: d.ConsumerID, AckType: how,
		FirstMessageID: d.Message.MessageID, LastMessageID: d.Message.MessageID, MessageCount: 1}
}

// body is the text of a dispatched message.
func body(t *testing.T, d *wire.MessageDispatch) string {
	t.Helper()
	if d.Message == nil {
		return "<none>"
	}
	b, err := wire.DecodeBody(d.Message.Kind, d.Message.Content, d.Message.Compressed, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return b.Text.Value
}
