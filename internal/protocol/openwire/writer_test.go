package openwire

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// delivery is a delivery of a text message to consumer c:1:1.
func delivery(position uint64, text string) broker.Delivery {
	m := &message.Message{
		ID: message.ID{Producer: "p:1:1", Sequence: int64(position)}, Destination: message.Destination{Kind: message.Queue, Name: "Q"},
		Persistent: true, Kind: message.TextBody, Format: message.OpenWire, Body: wire.AppendTextBody(nil, text),
	}
	return broker.Delivery{Consumer: "c:1:1", Destination: m.Destination, Message: m, Entry: message.Entry{Position: position, ID: m.ID}}
}

// TestClientThatNeverReads wants its connection closed after the time limit for a
// write, its reader held back by the replies that wait, and others unaffected.
func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	inScript(t, func(o *Options) { o.MaxInactivity = -1; o.Limits.Replies = 100 }, func(h *house, _ *script) {
		other := h.client()
		conn := h.dial()
		start := time.Now()
		f := peerFormat()
		f.TightEncodingEnabled, f.CacheEnabled = false, false
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		enc := wire.NewEncoder()
		frame, _ := enc.Append(nil, info)
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		enc.Negotiated(wire.Settings{Version: wire.MaxVersion})
		sent := 0
		for {
			frame, err := enc.Append(nil, &wire.FlushCommand{BaseCommand: wire.BaseCommand{CommandID: int32(sent), ResponseRequired: true}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(frame); err != nil {
				break
			}
			sent++
		}
		if d := time.Since(start); d < 30*time.Second || d > 38*time.Second {
			t.Errorf("closed after %v", d)
		}
		if most := 100 + readBufferBytes/len(frame); sent < 90 || sent > most+100 {
			t.Errorf("%d commands were taken", sent)
		}
		synctest.Wait()
		if log := h.log.String(); !strings.Contains(log, "has read nothing for") {
			t.Errorf("log:\n%s", log)
		}
		other.do(&wire.FlushCommand{})
		other.hangUp()
		conn.Close()
	})
}

// TestTooManyDeliveriesWait wants the connection of a client closed that has more
// credit than it reads.
func TestTooManyDeliveriesWait(t *testing.T) {
	t.Parallel()
	inScript(t, func(o *Options) { o.Limits.Deliveries = 10 }, func(h *house, s *script) {
		p := h.client()
		big := strings.Repeat("x", 2*flushBytes)
		s.sink.Deliver(delivery(1, big)) // is read
		p.dispatched()
		p.pause()
		for i := range uint64(12) {
			s.sink.Deliver(delivery(i+2, big))
		}
		synctest.Wait()
		p.resume()
		<-p.ended
		h.close()
		if log := h.log.String(); !strings.Contains(log, "too many dispatches wait") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A recorder is a connection that takes what is written, or waits.
type recorder struct {
	mu     sync.Mutex
	bytes  int
	writes int
	block  chan struct{} // nil: does not wait
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.block != nil {
		<-r.block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += len(b)
	r.writes++
	return len(b), nil
}

// TestBatches wants what waits together to be written together, in bounded pieces.
func TestBatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n, size    int
		wantWrites func(bytes int) int
	}{
		"many small ones":   {n: 100, size: 10, wantWrites: func(int) int { return 1 }},
		"a lot":             {n: 1000, size: 1000, wantWrites: func(bytes int) int { return bytes / flushBytes }},
		"one that is large": {n: 1, size: 1 << 20, wantWrites: func(bytes int) int { return bytes / flushBytes }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := newOutbox(Limits{}.withDefaults(), new(stock), func(err error) { t.Error(err) })
			out.negotiated(wire.Settings{Version: wire.MaxVersion})
			for i := range c.n {
				out.Deliver(delivery(uint64(i+1), strings.Repeat("x", c.size)))
			}
			out.finish()
			r := &recorder{}
			if over, err := newWriter(out, r, clock.System{}).run(); err != nil || !over {
				t.Fatal(over, err)
			}
			if want := c.wantWrites(r.bytes); r.writes < want || r.writes > want+want/8 {
				t.Errorf("%d bytes in %d writes, want %d", r.bytes, r.writes, want)
			}
			if out.tally != (tally{}) {
				t.Errorf("left over: %+v", out.tally)
			}
		})
	}
}

// TestOutboxHoldsBodies wants the bodies of what waits counted, and given back.
func TestOutboxHoldsBodies(t *testing.T) {
	t.Parallel()
	out := newOutbox(Limits{HeldBytes: 5000}.withDefaults(), new(stock), func(err error) { t.Error(err) })
	for i := range uint64(10) {
		out.Deliver(delivery(i+1, strings.Repeat("x", 1000)))
	}
	// these cannot be loaded again, so they are held whatever the limit
	if want := 10 * (1024 + 1004); out.held != want || out.deliveries != 10 {
		t.Errorf("held %d bytes of %d deliveries, want %d", out.held, out.deliveries, want)
	}
	out.negotiated(wire.Settings{Version: wire.MaxVersion})
	out.finish()
	if over, err := newWriter(out, io.Discard, clock.System{}).run(); err != nil || !over {
		t.Fatal(over, err)
	}
	if out.tally != (tally{}) {
		t.Errorf("left over: %+v", out.tally)
	}
	out.Deliver(delivery(99, "late"))
	out.post(&wire.KeepAliveInfo{})
	if out.waiting != nil {
		t.Error("something was added after the end")
	}
}

// TestIdleConnectionsKeepLittle wants buffers given back, and no goroutine left.
func TestIdleConnectionsKeepLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := newOutbox(Limits{}.withDefaults(), new(stock), func(err error) { t.Error(err) })
		w := newWriter(out, io.Discard, clock.System{})
		var runs, ended atomic.Int64
		out.start = func() {
			go func() {
				if runs.Add(1)-ended.Load() > 1 {
					t.Error("it runs twice at once")
				}
				if over, err := w.run(); over || err != nil {
					t.Error(over, err)
				}
				ended.Add(1)
			}()
		}
		out.negotiated(wire.Settings{Version: wire.MaxVersion})
		for i := range uint64(1000) {
			out.Deliver(delivery(i+1, "hello"))
		}
		synctest.Wait()
		if w.buf != nil || out.waiting != nil {
			t.Errorf("kept %v and %v", w.buf, out.waiting)
		}
		if runs.Load() == 0 || runs.Load() != ended.Load() {
			t.Errorf("of %d runs %d have ended", runs.Load(), ended.Load())
		}
	})
}

// TestMessageAboveThePeersLimit wants a message that the peer cannot be sent dead
// lettered as undispatchable, and the connection to go on (R-BRK-17).
func TestMessageAboveThePeersLimit(t *testing.T) {
	t.Parallel()
	f := peerFormat()
	f.MaxFrameSize = 10_000
	inHouse(t, nil, func(h *house) {
		producer := h.client()
		producer.produce(1, 0)
		for i, size := range []int{10, 20_000, 30} {
			producer.do(producer.text(int64(i+1), queueNamed("Q"), strings.Repeat("x", size)))
		}
		p := h.peer(f)
		p.connect()
		p.consume(1, queueNamed("Q"), 10)
		for _, want := range []int{10, 30} {
			d := p.dispatched()
			if got := len(body(t, d)); got != want {
				t.Errorf("got a text of %d bytes, want %d", got, want)
			}
			p.do(ack(d, wire.AckStandard))
		}
		if got := p.take(); got != nil {
			t.Errorf("then came %T", got)
		}
		producer.consume(1, queueNamed("ActiveMQ.DLQ"), 10)
		dead := producer.dispatched()
		if got := len(body(t, dead)); got != 20_000 {
			t.Errorf("the dead letter has %d bytes", got)
		}
		if v, _, err := wire.LookupProperty(dead.Message.MarshalledProperties, "dlqDeliveryFailureCause"); err != nil || !strings.Contains(fmt.Sprint(v), "over limit") {
			t.Errorf("dlqDeliveryFailureCause %v, %v", v, err)
		}
		p.leave()
		producer.leave()
	})
}

// TestBodiesAreLoadedInTheirTurn wants messages whose bodies were left to the
// store dispatched in order and whole.
func TestBodiesAreLoadedInTheirTurn(t *testing.T) {
	t.Parallel()
	inHouse(t, func(o *Options) { o.Limits.HeldBytes = 3000 }, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		for i := range int64(50) {
			p.do(p.text(i+1, queueNamed("Q"), fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000))))
		}
		p.consume(1, queueNamed("Q"), 1000)
		for i := range 50 {
			if d := p.dispatched(); !strings.HasPrefix(body(t, d), fmt.Sprintf("%d ", i)) {
				t.Fatalf("dispatch %d has %.10s", i, body(t, d))
			}
		}
		p.leave()
	})
}
