package broker

import (
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// Stamping sets times of what clients send by the broker's clock: ActiveMQ's
// timeStampingBrokerPlugin (spec section 7.7). What the broker sends itself, dead
// letters above all, keeps its times (R-EDGE-27).
type Stamping struct {
	// ZeroExpirationOverride is the time to live of messages that have none; 0:
	// they keep none.
	ZeroExpirationOverride time.Duration
	// TTLCeiling is the longest time to live; 0: no ceiling.
	TTLCeiling time.Duration
	// FutureOnly leaves a message alone whose expiration would not move to a later
	// time.
	FutureOnly bool
}

// apply stamps a message at now, Unix milliseconds. One without a time stamp is
// left alone: its producer asked for that.
func (s *Stamping) apply(m *message.Message, now int64) {
	if s == nil || m.Timestamp <= 0 {
		return
	}
	ttl := s.ZeroExpirationOverride.Milliseconds()
	if m.Expiration > 0 {
		ttl = m.Expiration - m.Timestamp
	}
	if ceiling := s.TTLCeiling.Milliseconds(); ttl > 0 && ceiling > 0 {
		ttl = min(ttl, ceiling)
	}
	expiration := int64(math.MaxInt64)
	if ttl <= math.MaxInt64-now {
		expiration = now + ttl
	}
	if s.FutureOnly && expiration <= m.Expiration {
		return
	}
	if ttl > 0 {
		m.Expiration = expiration
	}
	m.Timestamp = now
}

// shape changes a message that a client sends as the configuration asks.
func (c *Connection) shape(m *message.Message) {
	o := &c.b.o
	if o.Stamping != nil {
		o.Stamping.apply(m, c.b.now())
	}
	if o.ForcePersistent != nil {
		m.Persistent = *o.ForcePersistent
	}
	if o.UserID {
		m.UserID = c.info.User
	}
	if c.b.lifetimes.Load() && !m.Destination.IsComposite() {
		m.Expiration = c.b.expirationAt(m.Destination, m.Expiration)
	}
}

// expirationAt gives the expiration that a message has at a destination, which
// may have rules of its own about that (R-HQ-61).
func (b *Broker) expirationAt(to message.Destination, expiration int64) int64 {
	if !b.lifetimes.Load() {
		return expiration
	}
	return b.policy(to).Lifetime.Expiration(expiration, b.now())
}
