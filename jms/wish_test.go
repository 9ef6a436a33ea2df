package jms

import (
	"errors"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Seed 003: the broker transmits the policy that it prefers in its BrokerInfo, and the
// client can override it.
func TestTheBrokersWishIsHonoured(t *testing.T) {
	wished := redelivery.DefaultPolicy()
	wished.MaximumRedeliveries, wished.InitialRedeliveryDelay = 1, 300*time.Millisecond
	text, err := redelivery.Wishes{{{Destination: message.Destination{Kind: message.Queue, Name: "ORDERS.>"}, Policy: &wished}}}.Properties()
	ok(t, err)
	for name, tt := range map[string]struct {
		url  string
		set  func(*ConnectionFactory)
		want int // limit of ORDERS.NEW
	}{
		"honoured":                                {"tcp://room", nil, 1},
		"the application's default goes before":   {"tcp://room?jms.redeliveryPolicy.maximumRedeliveries=3", nil, 3},
		"the application's entry goes before":     {"tcp://room", func(f *ConnectionFactory) { f.Policies.Put(Queue("ORDERS.*"), quick(4)) }, 4},
		"an entry for others leaves it as it was": {"tcp://room", func(f *ConnectionFactory) { f.Policies.Put(Queue("X"), quick(4)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inRoomWith(t, func(_ *broker.Options, o *openwire.Options) { o.Wishes = func() string { return text } }, func(t *testing.T, r *openwiretest.Room) {
				f := factory(t, r, tt.url)
				if tt.set != nil {
					tt.set(f)
				}
				c := connect(t, f)
				if got := c.RedeliveryPolicy(Queue("ORDERS.NEW")).MaximumRedeliveries; got != tt.want {
					t.Errorf("limit %d, want %d", got, tt.want)
				}
				if p := c.RedeliveryPolicy(Queue("OTHER")); tt.url == "tcp://room" && p != DefaultRedeliveryPolicy() {
					t.Errorf("for others %v", p)
				}
				s := session(t, c, SessionTransacted)
				send(t, session(t, c, AutoAcknowledge), Queue("ORDERS.NEW"), "bad")
				k := must(s.CreateConsumer(t.Context(), Queue("ORDERS.NEW")))(t)
				n := 0
				for {
					if _, err := k.ReceiveTimeout(t.Context(), time.Minute); errors.Is(err, ErrNoMessage) {
						break
					}
					n++
					ok(t, s.Rollback(t.Context()))
				}
				if n != tt.want+1 {
					t.Errorf("%d deliveries, want %d", n, tt.want+1)
				}
				ok(t, c.Close())
			})
		})
	}
}
