package jms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A wiretap keeps what the client writes.
type wiretap struct {
	net.Conn
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *wiretap) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.b.Write(b)
	w.mu.Unlock()
	return w.Conn.Write(b)
}

// traced runs f on a connection and gives the acknowledgements and transactions that it
// wrote. #n is the message of sequence n.
func traced(t *testing.T, url string, f func(t *testing.T, c *Connection)) (trace []string) {
	t.Helper()
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		sender := connect(t, factory(t, r, "tcp://room"))
		var all []string
		for i := range 12 {
			all = append(all, fmt.Sprint(i+1))
		}
		send(t, session(t, sender, AutoAcknowledge), Queue("A"), all...)
		ok(t, sender.Close())
		var tap *wiretap
		fac := factory(t, r, url)
		fac.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := r.Dial(ctx, network, address)
			tap = &wiretap{Conn: conn}
			return tap, err
		}
		c := connect(t, fac)
		c.mu.Lock()
		settings := c.link.settings
		c.mu.Unlock()
		f(t, c)
		rest(time.Second)
		ok(t, c.Close())
		trace = decodeTrace(t, &tap.b, settings)
	})
	return trace
}

func decodeTrace(t testing.TB, in *bytes.Buffer, settings wire.Settings) (trace []string) {
	t.Helper()
	dec := wire.NewDecoder()
	for in.Len() > 0 {
		frame, err := wire.ReadFrame(in, 1<<20)
		ok(t, err)
		ds, err := dec.Decode(frame)
		ok(t, err)
		switch m := ds.(type) {
		case *wire.WireFormatInfo:
			dec.Negotiated(settings)
		case *wire.MessageAck:
			trace = append(trace, ackText(m))
		case *wire.TransactionInfo:
			trace = append(trace, m.Type.String())
		case *wire.RemoveInfo:
			if _, ok := m.ObjectID.(*wire.ConnectionID); ok {
				trace = append(trace, fmt.Sprintf("REMOVE(%d)", m.LastDeliveredSequenceID))
			}
		case *wire.ShutdownInfo:
			trace = append(trace, "SHUTDOWN")
		}
	}
	return trace
}

func ackText(m *wire.MessageAck) string {
	var b strings.Builder
	b.WriteString(m.AckType.String() + "(")
	if m.FirstMessageID != nil {
		fmt.Fprintf(&b, "#%d..", m.FirstMessageID.ProducerSequenceID)
	}
	fmt.Fprintf(&b, "#%d,%d", m.LastMessageID.ProducerSequenceID, m.MessageCount)
	if m.TransactionID != nil {
		b.WriteString(",tx")
	}
	return b.String() + ")"
}

// R-CLIENT-12: prefetch 10, 12 queued, 7 received.
func TestTracesOfEveryMode(t *testing.T) {
	const url = "tcp://room?jms.prefetchPolicy.queuePrefetch=10"
	seven := func(mode AckMode, then func(t *testing.T, s *Session, ms []*Message)) func(*testing.T, *Connection) {
		return func(t *testing.T, c *Connection) {
			s := session(t, c, mode)
			k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
			var ms []*Message
			for range 7 {
				ms = append(ms, must(k.Receive(t.Context()))(t))
			}
			if then != nil {
				then(t, s, ms)
			}
		}
	}
	var auto []string
	for i := range 7 {
		auto = append(auto, fmt.Sprintf("STANDARD(#%d..#%d,1)", i+1, i+1))
	}
	for name, tt := range map[string]struct {
		url  string
		f    func(*testing.T, *Connection)
		want []string
	}{
		"auto":           {url, seven(AutoAcknowledge, nil), auto},
		"auto optimized": {url + "&jms.optimizeAcknowledge=true", seven(AutoAcknowledge, nil), []string{"STANDARD(#1..#7,7)"}},
		"client": {url, seven(ClientAcknowledge, func(t *testing.T, _ *Session, ms []*Message) { ok(t, ms[6].Acknowledge(t.Context())) }),
			[]string{"DELIVERED(#1..#5,5)", "STANDARD(#1..#7,7)"}},
		"individual": {url, seven(IndividualAcknowledge, func(t *testing.T, _ *Session, ms []*Message) {
			ok(t, ms[2].Acknowledge(t.Context()))
			ok(t, ms[0].Acknowledge(t.Context()))
		}), []string{"DELIVERED(#1..#5,5)", "INDIVIDUAL(#3,1)", "INDIVIDUAL(#1,1)"}},
		"transacted": {url, seven(SessionTransacted, func(t *testing.T, s *Session, _ []*Message) { ok(t, s.Commit(t.Context())) }),
			[]string{"BEGIN", "DELIVERED(#1..#5,5,tx)", "STANDARD(#1..#7,7,tx)", "COMMIT_ONE_PHASE"}},
		"transacted individual": {url + "&jms.transactedIndividualAck=true", seven(SessionTransacted, func(t *testing.T, s *Session, _ []*Message) { ok(t, s.Commit(t.Context())) }),
			[]string{"BEGIN", "INDIVIDUAL(#1,1,tx)", "INDIVIDUAL(#2,1,tx)", "INDIVIDUAL(#3,1,tx)", "INDIVIDUAL(#4,1,tx)", "INDIVIDUAL(#5,1,tx)", "INDIVIDUAL(#6,1,tx)", "INDIVIDUAL(#7,1,tx)", "COMMIT_ONE_PHASE"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := traced(t, tt.url, tt.f)
			if n := len(got) - 2; n < 0 || !slices.Equal(got[:n], tt.want) {
				t.Errorf("got  %v\nwant %v, REMOVE, SHUTDOWN", got, tt.want)
			}
		})
	}
}

const limitOne = "tcp://room?jms.prefetchPolicy.queuePrefetch=1&jms.redeliveryPolicy.maximumRedeliveries=%d&jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"

// R-WIRE-02, with what the source tree sends from the first redelivery on.
func TestTraceOfATransactedPoison(t *testing.T) {
	got := traced(t, fmt.Sprintf(limitOne, 1), func(t *testing.T, c *Connection) {
		s := session(t, c, SessionTransacted)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		for range 2 {
			must(k.Receive(t.Context()))(t)
			ok(t, s.Rollback(t.Context()))
		}
	})
	want := []string{"BEGIN", "DELIVERED(#1..#1,1,tx)", "STANDARD(#1..#1,1,tx)", "ROLLBACK", "REDELIVERED(#1..#1,1)",
		"BEGIN", "DELIVERED(#1..#1,1,tx)", "STANDARD(#1..#1,1,tx)", "ROLLBACK", "POISON(#1..#1,1)"}
	if n := len(got) - 2; n < 0 || !slices.Equal(got[:n], want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// R-WIRE-03: an AutoAcknowledge handler fails three times, limit 2.
func TestTraceOfAHandlersPoison(t *testing.T) {
	got := traced(t, fmt.Sprintf(limitOne, 2), func(t *testing.T, c *Connection) {
		s := session(t, c, AutoAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		n := 0
		ok(t, k.Handle(func(_ context.Context, m *Message) error {
			if m.Text() == "1" {
				return errors.New("no")
			}
			n++
			return nil
		}))
	})
	want := []string{"REDELIVERED(#1..#1,1)", "REDELIVERED(#1..#1,1)", "POISON(#1..#1,1)", "STANDARD(#2..#2,1)"}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// R-WIRE-06, R-CLIENT-57: closing in a transaction rolls it back before the remove, which
// says what was delivered.
func TestTraceOfACloseInATransaction(t *testing.T) {
	got := traced(t, "tcp://room", func(t *testing.T, c *Connection) {
		s := session(t, c, SessionTransacted)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		for range 2 {
			must(k.Receive(t.Context()))(t)
		}
	})
	if len(got) != 6 || !slices.Equal(got[:4], []string{"BEGIN", "STANDARD(#1..#2,2,tx)", "ROLLBACK", "REDELIVERED(#1..#2,2)"}) ||
		!strings.HasPrefix(got[4], "REMOVE(") || got[4] == "REMOVE(-1)" || got[4] == "REMOVE(-2)" || got[5] != "SHUTDOWN" {
		t.Errorf("got %v", got)
	}
}

// R-EDGE-52: what was processed is acknowledged before the failed message comes again.
func TestTraceOfAnOptimizedFailure(t *testing.T) {
	got := traced(t, "tcp://room?jms.optimizeAcknowledge=true&jms.prefetchPolicy.queuePrefetch=100&jms.redeliveryPolicy.initialRedeliveryDelay=0", func(t *testing.T, c *Connection) {
		k := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
		ok(t, k.Handle(func(_ context.Context, m *Message) error {
			if m.Text() == "6" && !m.Redelivered() {
				return errors.New("once")
			}
			return nil
		}))
	})
	if want := []string{"STANDARD(#1..#5,5)", "REDELIVERED(#6..#6,1)", "STANDARD(#6..#12,7)"}; len(got) < 3 || !slices.Equal(got[:3], want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Section 3.2: DUPS_OK on a topic acknowledges at half the window, and at close.
func TestTraceOfDupsOKOnATopic(t *testing.T) {
	got := traced(t, "tcp://room?jms.prefetchPolicy.topicPrefetch=10", func(t *testing.T, c *Connection) {
		k := must(session(t, c, DupsOKAcknowledge).CreateConsumer(t.Context(), Topic("T")))(t)
		send(t, session(t, c, AutoAcknowledge), Topic("T"), "1", "2", "3", "4", "5", "6", "7")
		for range 7 {
			must(k.Receive(t.Context()))(t)
		}
	})
	if want := []string{"STANDARD(#1..#5,5)", "STANDARD(#6..#7,2)"}; len(got) != 4 || !slices.Equal(got[:2], want) {
		t.Errorf("got  %v\nwant %v, REMOVE, SHUTDOWN", got, want)
	}
}
