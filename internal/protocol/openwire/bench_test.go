package openwire

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// benchSettings are what Java clients negotiate.
var benchSettings = wire.Settings{Version: wire.MaxVersion, Tight: true, Cache: true, CacheSize: 1024, StackTrace: true, MaxFrame: DefaultMaxFrameBytes}

func benchMessage(b *testing.B) *wire.Message {
	b.Helper()
	properties, err := wire.AppendMap(nil, wire.Map{{Key: "colour", Value: "red"}, {Key: "n", Value: int32(7)}})
	if err != nil {
		b.Fatal(err)
	}
	producer := &wire.ProducerID{ConnectionID: "ID:host.example-40001-1700000000000-0:1", SessionID: 1, Value: 1}
	return &wire.Message{Kind: message.TextBody, ProducerID: producer, Destination: queueNamed("ORDERS"), Persistent: true, Priority: 4, Timestamp: 1700000000000,
		MessageID: &wire.MessageID{ProducerID: producer, ProducerSequenceID: 1}, Content: make([]byte, 1024), MarshalledProperties: properties}
}

// BenchmarkThrough is what the room does for a message of 1 KiB: decode its frame,
// translate, translate back, encode the dispatch.
func BenchmarkThrough(b *testing.B) {
	enc, dec := wire.NewEncoder(), wire.NewDecoder()
	enc.Negotiated(benchSettings)
	dec.Negotiated(benchSettings)
	m := benchMessage(b)
	first, err := enc.Append(nil, m)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := dec.Decode(first[wire.SizeBytes:]); err != nil {
		b.Fatal(err)
	}
	frame, err := enc.Append(nil, m) // what refers to the cache, as all but the first do
	if err != nil {
		b.Fatal(err)
	}
	out := newOutbox(Limits{}.withDefaults(), new(stock), func(err error) { b.Error(err) })
	w := newWriter(out, io.Discard, clock.System{})
	w.enc.Negotiated(benchSettings)
	text := m.ProducerID.String()
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		ds, err := dec.DecodeLent(frame[wire.SizeBytes:])
		if err != nil {
			b.Fatal(err)
		}
		in, err := incoming(ds.(*wire.Message), text, 0, (*wire.Destination).Destination, "")
		dec.Reuse(ds)
		if err != nil {
			b.Fatal(err)
		}
		i := item{delivery: broker.Delivery{Consumer: "ID:host.example-40001-1700000000000-0:1:1:1", Destination: in.Destination, Message: in, Entry: message.Entry{Position: 7, ID: in.ID}}}
		if err := w.item(&i); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDispatch is a delivery from the broker's call to the bytes for the
// socket, through the outbox.
func BenchmarkDispatch(b *testing.B) {
	m := &message.Message{ID: message.ID{Producer: "ID:host.example-40001-1700000000000-0:1:1:1", Sequence: 1}, Destination: message.Destination{Kind: message.Queue, Name: "ORDERS"},
		Persistent: true, Priority: 4, Kind: message.TextBody, Format: message.OpenWire, Body: make([]byte, 1024)}
	d := broker.Delivery{Consumer: "ID:host.example-40001-1700000000000-0:1:1:1", Destination: m.Destination, Message: m, Entry: message.Entry{Position: 7, ID: m.ID}}
	out := newOutbox(Limits{Deliveries: 1 << 30}.withDefaults(), new(stock), func(err error) { b.Error(err) })
	w := newWriter(out, io.Discard, clock.System{})
	ended := make(chan error, 1)
	out.start = func() {
		go func() {
			if over, err := w.run(); over || err != nil {
				ended <- err
			}
		}()
	}
	out.negotiated(benchSettings)
	b.SetBytes(1024)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		out.Deliver(d)
		if n++; n%1000 == 0 {
			runtime.Gosched()
		}
	}
	out.finish()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkConnection is the memory of a connection with a session, a producer and
// a consumer that are idle, the pipe and the peer's end of it included.
func BenchmarkConnection(b *testing.B) {
	server, err := New(Options{Broker: &script{fail: map[string]error{}}})
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	for b.Loop() {
		conn := quietPeer(b, server, ctx, done)
		defer conn.Close()
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/float64(n), "B/conn")
	cancel()
	for range n {
		<-done
	}
}

// quietPeer connects and stays silent; done gets a value when its session has ended.
func quietPeer(b *testing.B, server *Server, ctx context.Context, done chan<- struct{}) io.Closer {
	b.Helper()
	ours, theirs := net.Pipe()
	go func() {
		server.Serve(ctx, theirs)
		done <- struct{}{}
	}()
	f := wire.DefaultWireFormat()
	info, err := f.Info()
	if err != nil {
		b.Fatal(err)
	}
	answered := make(chan struct{})
	go func() { // the peer's reader, until the third answer
		dec := wire.NewDecoder()
		for n := 0; n < 5; n++ {
			frame, err := wire.ReadFrame(ours, 1<<20)
			if err != nil {
				return
			}
			if ds, err := dec.Decode(frame); err == nil {
				if _, ok := ds.(*wire.WireFormatInfo); ok {
					dec.Negotiated(benchSettings)
				}
			}
		}
		close(answered)
	}()
	enc := wire.NewEncoder()
	id := &wire.ConnectionID{Value: "ID:bench"}
	session := &wire.SessionID{ConnectionID: id.Value, Value: 1}
	base := wire.BaseCommand{CommandID: 1, ResponseRequired: true}
	for i, c := range []wire.DataStructure{
		info,
		&wire.ConnectionInfo{BaseCommand: base, ConnectionID: id, ClientID: wire.NewText("bench")},
		&wire.SessionInfo{SessionID: session},
		&wire.ProducerInfo{BaseCommand: base, ProducerID: &wire.ProducerID{ConnectionID: id.Value, SessionID: 1, Value: 1}},
		&wire.ConsumerInfo{BaseCommand: base, ConsumerID: &wire.ConsumerID{ConnectionID: id.Value, SessionID: 1, Value: 1}, Destination: queueNamed("ORDERS")},
	} {
		frame, err := enc.Append(nil, c)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ours.Write(frame); err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			enc.Negotiated(benchSettings)
		}
	}
	<-answered
	return ours
}
