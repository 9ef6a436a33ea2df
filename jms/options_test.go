package jms

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
)

// browsed lists what the broker still has.
func browsed(t testing.TB, s *Session, q Destination) []string {
	t.Helper()
	var all []string
	for m, err := range must(s.CreateBrowser(q, ""))(t).Messages(context.Background()) {
		ok(t, err)
		all = append(all, m.Text())
	}
	return all
}

// optimizedAckScheduledAckInterval: what was put off is sent from time to time.
func TestScheduledAcknowledgements(t *testing.T) {
	for name, tt := range map[string]struct {
		interval string
		want     []string
	}{"without": {"", []string{"1", "2"}}, "with": {"&jms.optimizedAckScheduledAckInterval=500", nil}} {
		t.Run(name, func(t *testing.T) {
			inRoom(t, func(t *testing.T, r *openwiretest.Room) {
				c := connect(t, factory(t, r, "tcp://room?jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=0"+tt.interval))
				s := session(t, c, AutoAcknowledge)
				send(t, s, Queue("A"), "1", "2")
				k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
				if got := texts(t, k, time.Second); len(got) != 2 {
					t.Errorf("received %v", got)
				}
				if got := browsed(t, s, Queue("A")); !slices.Equal(got, tt.want) {
					t.Errorf("the broker still has %v, want %v", got, tt.want)
				}
				ok(t, c.Close())
			})
		})
	}
}

// sendAcksAsync=false: an acknowledgement has arrived when the call returns.
func TestSynchronousAcknowledgements(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room?jms.sendAcksAsync=false"))
		other := connect(t, factory(t, r, "tcp://room"))
		for _, mode := range []AckMode{AutoAcknowledge, ClientAcknowledge, IndividualAcknowledge} {
			s := session(t, c, mode)
			send(t, session(t, other, AutoAcknowledge), Queue("A"), "x")
			k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
			ok(t, must(k.Receive(t.Context()))(t).Acknowledge(t.Context()))
			if got := browsed(t, session(t, other, AutoAcknowledge), Queue("A")); got != nil {
				t.Errorf("%v: the broker still has %v", mode, got)
			}
			ok(t, s.Close())
		}
		ok(t, c.Close())
		ok(t, other.Close())
	})
}

// consumerExpiryCheckEnabled=false delivers what expired in the client's hands.
func TestExpiryCheckOff(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "tcp://room?jms.consumerExpiryCheckEnabled=false"))
		s := session(t, c, AutoAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		ok(t, p.Send(t.Context(), NewText("short"), WithTimeToLive(time.Second)))
		rest(2 * time.Second)
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"short"}) {
			t.Errorf("got %v", got)
		}
		ok(t, c.Close())
	})
}

// sendTimeout and requestTimeout end what waits for a broker.
func TestTimeouts(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "failover:(tcp://room)?jms.sendTimeout=2000&jms.requestTimeout=3000"))
		s := session(t, c, AutoAcknowledge)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		r.Stop()
		rest(time.Millisecond)
		for name, tt := range map[string]struct {
			f    func() error
			want time.Duration
		}{
			"send":    {func() error { return p.Send(context.Background(), NewText("x")) }, 2 * time.Second},
			"request": {func() error { _, err := s.CreateConsumer(context.Background(), Queue("B")); return err }, 3 * time.Second},
		} {
			start := time.Now()
			if err := tt.f(); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != tt.want {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
		}
		ok(t, c.Close())
		r.Start()
	})
}

// disableTimeStampsByDefault, exclusiveConsumer, alwaysSyncSend and their like reach the wire.
func TestDefaultsReachTheWire(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room?jms.disableTimeStampsByDefault=true&jms.exclusiveConsumer=true&jms.alwaysSyncSend=true&jms.useRetroactiveConsumer=true"))
		s := session(t, c, AutoAcknowledge)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		ok(t, p.Send(t.Context(), NewText("x"), WithDeliveryMode(NonPersistent)))
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		if m := must(k.Receive(t.Context()))(t); !m.Timestamp.IsZero() {
			t.Errorf("timestamp %v", m.Timestamp)
		}
		if !k.info.Exclusive || !k.info.Retroactive {
			t.Errorf("%+v", k.info)
		}
		ok(t, c.Close())
	})
}
