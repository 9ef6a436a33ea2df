package broker

import (
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// TestStamping is the timeStampingBrokerPlugin of section 7.7: the producer's
// clock, its time stamp, is 1000 behind or before ours.
func TestStamping(t *testing.T) {
	t.Parallel()
	const now = 100_000
	for name, c := range map[string]struct {
		stamping                      *Stamping
		timestamp, expiration         int64
		wantTimestamp, wantExpiration int64
	}{
		"none":                               {nil, 99_000, 109_000, 99_000, 109_000},
		"a slow clock":                       {&Stamping{}, 99_000, 109_000, now, now + 10_000},
		"a fast clock":                       {&Stamping{}, 101_000, 111_000, now, now + 10_000},
		"without a time to live":             {&Stamping{}, 99_000, 0, now, 0},
		"an override where there is none":    {&Stamping{ZeroExpirationOverride: 5 * time.Second}, 99_000, 0, now, now + 5_000},
		"no override where there is one":     {&Stamping{ZeroExpirationOverride: 5 * time.Second}, 99_000, 109_000, now, now + 10_000},
		"a ceiling":                          {&Stamping{TTLCeiling: 3 * time.Second}, 99_000, 109_000, now, now + 3_000},
		"a ceiling that is not reached":      {&Stamping{TTLCeiling: 30 * time.Second}, 99_000, 109_000, now, now + 10_000},
		"a ceiling gives no time to live":    {&Stamping{TTLCeiling: 3 * time.Second}, 99_000, 0, now, 0},
		"a ceiling on the override":          {&Stamping{ZeroExpirationOverride: time.Minute, TTLCeiling: 3 * time.Second}, 99_000, 0, now, now + 3_000},
		"without a time stamp":               {&Stamping{ZeroExpirationOverride: time.Second}, 0, 0, 0, 0},
		"future only, a slow clock":          {&Stamping{FutureOnly: true}, 99_000, 109_000, now, now + 10_000},
		"future only, a fast clock":          {&Stamping{FutureOnly: true}, 101_000, 111_000, 101_000, 111_000},
		"future only, no time to live":       {&Stamping{FutureOnly: true}, 99_000, 0, now, 0},
		"expired before it was sent":         {&Stamping{}, 99_000, 98_000, now, 98_000},
		"a time to live that has no end":     {&Stamping{}, 1, 1<<63 - 1, now, 1<<63 - 1},
		"an override beyond the end of time": {&Stamping{ZeroExpirationOverride: 1<<63 - 1}, 99_000, 0, now, now + (1<<63-1)/1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &message.Message{Timestamp: c.timestamp, Expiration: c.expiration}
			c.stamping.apply(m, now)
			if m.Timestamp != c.wantTimestamp || m.Expiration != c.wantExpiration {
				t.Errorf("%d, %d; want %d, %d", m.Timestamp, m.Expiration, c.wantTimestamp, c.wantExpiration)
			}
		})
	}
}

// TestShape stamps what clients send, and nothing else: a dead letter keeps its
// times (R-EDGE-27).
func TestShape(t *testing.T) {
	force := true
	inHouse(t, func(o *Options) {
		o.Stamping, o.ForcePersistent = &Stamping{ZeroExpirationOverride: time.Minute}, &force
	}, func(h *house) {
		c := h.client()
		k := c.consume(orders)
		sent := time.Now().UnixMilli()
		c.must(c.send(c.msg(orders, "m1", func(m *message.Message) { m.Persistent, m.Timestamp = false, sent-5000 }), ""))
		got := c.take()
		if e := got[0].Entry; e.Expiration != sent+60_000 || !e.Persistent {
			t.Errorf("expiration %d, want %d; persistent %v", e.Expiration, sent+60_000, e.Persistent)
		}
		time.Sleep(10 * time.Second)
		c.must(c.ack(queue.Poison, k, got[0], got[0], 1, "", poisonText(1)))
		c.consume(dlq)
		dead := c.take()
		m, err := dead[0].Load()
		if err != nil || m.Expiration != 0 || m.Timestamp != sent {
			t.Errorf("%+v %v", m, err)
		}
		c.c.Close(message.Closed, "", -1)
	})
}
