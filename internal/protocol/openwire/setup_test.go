package openwire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// TestVersionsAndEncodings sends, consumes and acknowledges in every version and
// encoding (OpenWire 16, R-WIRE-01).
func TestVersionsAndEncodings(t *testing.T) {
	t.Parallel()
	for version := wire.MinVersion; version <= wire.MaxVersion; version++ {
		for _, tight := range []bool{false, true} {
			for _, cache := range []bool{false, true} {
				t.Run(fmt.Sprintf("v%d tight=%v cache=%v", version, tight, cache), func(t *testing.T) {
					t.Parallel()
					f := peerFormat()
					f.Version, f.TightEncodingEnabled, f.CacheEnabled = int32(version), tight, cache
					inHouse(t, nil, func(h *house) {
						p := h.peer(f)
						if p.settings.Version != version || p.settings.Tight != tight || p.settings.Cache != cache {
							t.Fatalf("negotiated %+v", p.settings)
						}
						p.connect()
						p.produce(1, 100)
						p.consume(1, queueNamed("Q"), 10)
						p.tell(p.text(1, queueNamed("Q"), "hello"))
						got := p.all()
						acks := 0
						var d *wire.MessageDispatch
						for _, c := range got {
							switch c := c.(type) {
							case *wire.MessageDispatch:
								d = c
							case *wire.ProducerAck:
								acks++
							}
						}
						if d == nil || body(t, d) != "hello" || (acks == 1) != (version >= 3) || len(got) != acks+1 {
							t.Fatalf("got %+v", got)
						}
						p.do(ack(d, wire.AckStandard))
						p.fails(&wire.RemoveInfo{ObjectID: p.consumerID(9)}, classIllegalState, "")
						p.leave()
					})
				})
			}
		}
	}
}

func TestBrokerInfo(t *testing.T) { // OpenWire 9.4
	t.Parallel()
	inScript(t, func(o *Options) { o.BrokerName, o.BrokerID, o.BrokerURL = "name", "id", "tcp://h:1" }, func(h *house, _ *script) {
		conn := h.dial()
		info, err := peerFormat().Info()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			frame, _ := wire.NewEncoder().Append(nil, info)
			_, _ = conn.Write(frame)
		}()
		dec := wire.NewDecoder()
		first := readCommand(t, conn, dec).(*wire.WireFormatInfo)
		ours, err := wire.ParseWireFormat(first)
		if err != nil {
			t.Fatal(err)
		}
		if ours.MaxFrameSize != DefaultMaxFrameBytes || ours.MaxInactivityDuration != 30*time.Second || ours.InitialDelay != 10*time.Second || ours.Version != wire.MaxVersion {
			t.Errorf("announced %+v", ours)
		}
		s, err := wire.Negotiate(peerFormat(), ours)
		if err != nil {
			t.Fatal(err)
		}
		dec.Negotiated(s)
		b := readCommand(t, conn, dec).(*wire.BrokerInfo)
		if b.BrokerID.Value != "id" || b.BrokerName.Value != "name" || b.BrokerURL.Value != "tcp://h:1" || b.FaultTolerantConfiguration || b.CommandID != 0 {
			t.Errorf("BrokerInfo %+v", b)
		}
		conn.Close()
	})
}

func readCommand(t *testing.T, r io.Reader, dec *wire.Decoder) wire.DataStructure {
	t.Helper()
	frame, err := wire.ReadFrame(r, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := dec.Decode(frame)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// hello is a first frame as it should be.
func hello(t *testing.T) []byte {
	t.Helper()
	f := peerFormat()
	f.TightEncodingEnabled, f.CacheEnabled = false, false
	info, err := f.Info()
	if err != nil {
		t.Fatal(err)
	}
	frame, err := wire.NewEncoder().Append(nil, info)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// TestHostileInput wants that connection closed at once, a line in the log with
// the peer's address, and others unaffected (OpenWire 14).
func TestHostileInput(t *testing.T) {
	t.Parallel()
	withSize := func(size uint32, rest ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), rest...)
	}
	edit := func(b []byte, at int, c byte) []byte {
		b = append([]byte(nil), b...)
		b[at] = c
		return b
	}
	for name, c := range map[string]struct {
		first, then []byte
		log         string
	}{
		"HTTP":                             {first: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), log: "what came begins like HTTP, and is no OpenWire"},
		"TLS":                              {first: []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, log: "begins like TLS (an ssl:// URL, where tcp:// is served)"},
		"AMQP":                             {first: []byte("AMQP\x00\x01\x00\x00"), log: "begins like AMQP"},
		"STOMP":                            {first: []byte("CONNECT\naccept-version:1.2\n\n\x00"), log: "begins like STOMP"},
		"MQTT":                             {first: []byte("\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"), log: "begins like MQTT"},
		"a HornetQ client":                 {first: []byte("HORNETQ"), log: "begins like HornetQ's core protocol"},
		"an Artemis client":                {first: []byte("ARTEMIS"), log: "begins like Artemis' core protocol"},
		"nulls":                            {first: make([]byte, 100), log: "invalid"},
		"another first command":            {first: withSize(6, wire.CodeKeepAliveInfo, 0, 0, 0, 1, 0), log: "invalid"},
		"negative length":                  {first: withSize(0xffffffff), log: "invalid"},
		"first frame of 100 MB":            {first: withSize(100 << 20), log: "over limit"},
		"wrong magic":                      {first: edit(hello(t), 5, 'a'), log: "invalid"},
		"version 0":                        {first: edit(hello(t), 16, 0), log: "invalid"},
		"unknown type":                     {first: hello(t), then: withSize(6, 99, 0, 0, 0, 1, 0), log: "invalid"},
		"type above 127":                   {first: hello(t), then: withSize(6, 200, 0, 0, 0, 1, 0), log: "invalid"},
		"frame above the limit":            {first: hello(t), then: withSize(DefaultMaxFrameBytes + 1), log: "over limit"},
		"length 0":                         {first: hello(t), then: withSize(0), log: "invalid"},
		"no command":                       {first: hello(t), then: withSize(4, wire.CodeConnectionID, 1, 0, 0), log: "invalid"},
		"surplus bytes":                    {first: hello(t), then: withSize(7, wire.CodeShutdownInfo, 0, 0, 0, 1, 0, 9), log: "invalid"},
		"frame that ends early":            {first: hello(t), then: withSize(3, wire.CodeShutdownInfo, 0, 0), log: "invalid"},
		"fields longer than the frame":     {first: hello(t), then: withSize(9, wire.CodeConnectionInfo, 0, 0, 0, 1, 1, 1, 0x7f, 0xff), log: "invalid"},
		"partial command, of datagrams":    {first: hello(t), then: withSize(9, wire.CodePartialCommand, 0, 0, 0, 1, 0, 0, 0, 0), log: "invalid"},
		"discovery event, not for clients": {first: hello(t), then: withSize(3, wire.CodeDiscoveryEvent, 0, 0), log: "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, _ *script) {
				other := h.client()
				conn := h.dial()
				gone := drain(conn)
				_, _ = conn.Write(c.first)
				if c.then != nil {
					synctest.Wait()
					_, _ = conn.Write(c.then)
				}
				synctest.Wait()
				select {
				case <-gone:
				default:
					t.Fatal("the connection is still open")
				}
				if log := h.log.String(); !strings.Contains(log, c.log) || !strings.Contains(log, "addr=pipe") || strings.Count(log, "\n") != 1 {
					t.Errorf("log:\n%s", log)
				}
				other.do(&wire.FlushCommand{})
				other.hangUp()
				conn.Close()
			})
		})
	}
}

// TestTooLargeAFrame: a message above the limit is taken in to its end and answered, that
// its client does not send it again and again, and the connection ends.
func TestTooLargeAFrame(t *testing.T) {
	t.Parallel()
	for name, tight := range map[string]bool{"tight": true, "loose": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := peerFormat()
			f.TightEncodingEnabled, f.MaxFrameSize = tight, 1<<30
			inScript(t, func(o *Options) { o.MaxFrameBytes = 10_000 }, func(h *house, s *script) {
				for _, waits := range []bool{true, false} {
					p := h.peer(f)
					p.connect()
					p.produce(1, 0)
					m := p.text(1, queueNamed("Q"), strings.Repeat("large ", 10_000))
					p.enc.Negotiated(wire.Settings{Version: p.settings.Version, Tight: p.settings.Tight, Cache: p.settings.Cache, MaxFrame: 1 << 30})
					if waits {
						p.fails(m, classJMS, "the limit is 10000 (wireFormat.maxFrameSize")
					} else {
						p.tell(m)
						if e, ok := p.take().(*wire.ConnectionError); !ok || !strings.Contains(e.Exception.String(), "wireFormat.maxFrameSize") {
							t.Errorf("told %+v", e)
						}
					}
					p.send(&wire.KeepAliveInfo{})
					<-p.ended
				}
				if n := len(s.messages()); n != 0 {
					t.Errorf("%d messages arrived", n)
				}
				h.close()
				if log := h.log.String(); strings.Count(log, "over limit") != 2 {
					t.Errorf("log:\n%s", log)
				}
			})
		})
	}
}

// drain reads until the stream ends.
func drain(conn net.Conn) chan struct{} {
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(gone)
	}()
	return gone
}

// TestHalfFrames wants connections that end within a frame closed, quietly.
func TestHalfFrames(t *testing.T) {
	t.Parallel()
	first := hello(t)
	for n := 0; n < len(first); n += 7 {
		inScript(t, nil, func(h *house, _ *script) {
			conn := h.dial()
			gone := drain(conn)
			_, _ = conn.Write(first[:n])
			synctest.Wait()
			conn.Close()
			<-gone
		})
	}
}

// TestGarbage sends bytes that a generator makes after a proper beginning: nothing
// may panic or hang.
func TestGarbage(t *testing.T) {
	t.Parallel()
	seed := uint64(1)
	next := func() byte {
		seed = seed*6364136223846793005 + 1442695040888963407
		return byte(seed >> 33)
	}
	for range 100 {
		inScript(t, nil, func(h *house, _ *script) {
			conn := h.dial()
			gone := drain(conn)
			_, _ = conn.Write(hello(t))
			body := make([]byte, 1+int(next())%60)
			for i := range body {
				body[i] = next() % 64
			}
			body[0] = next() % 125
			_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
			synctest.Wait()
			conn.Close()
			<-gone
			h.close()
			if log := h.log.String(); strings.Contains(log, "panicked") {
				t.Fatalf("%x: %s", body, log)
			}
		})
	}
}

func TestSilentPeerIsClosed(t *testing.T) { // OpenWire 2
	t.Parallel()
	inScript(t, nil, func(h *house, _ *script) {
		start := time.Now()
		conn := h.dial()
		<-drain(conn)
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("closed after %v", d)
		}
		h.close()
		if log := h.log.String(); !strings.Contains(log, "no WireFormatInfo within 30s") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// TestPanicEndsThatConnection wants a panic in a session logged, with the stack,
// and nothing else affected.
func TestPanicEndsThatConnection(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, s *script) {
		other := h.client()
		p := h.client()
		s.failing("Begin", panicking{})
		p.tell(&wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: p.txID(1), Type: wire.TransactionBegin})
		<-p.ended
		if log := h.log.String(); !strings.Contains(log, "panicked") || !strings.Contains(log, "stack=") {
			t.Errorf("log:\n%s", log)
		}
		other.do(&wire.FlushCommand{})
		other.hangUp()
	})
}

// A panicking is an error that panics when it is looked at.
type panicking struct{}

func (panicking) Error() string { panic("boom") }
