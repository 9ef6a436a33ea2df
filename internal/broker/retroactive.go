package broker

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/selector"
)

// A Recovery says which of a topic's newest messages a retroactive consumer is
// given when it comes: those within all limits that are not zero. The zero value
// is none (ActiveMQ's subscriptionRecoveryPolicy).
type Recovery struct {
	Count int
	Bytes int64
	Age   time.Duration
	// Retained also keeps the last message that its sender asked to retain, whatever the
	// limits (retainedMessageSubscriptionRecoveryPolicy).
	Retained bool
	// Always gives them to every consumer without a durable subscription.
	Always bool
}

func (r Recovery) none() bool { return r.unlimited() && !r.Retained }

// unlimited reports whether there is no limit: then none of the newest are kept.
func (r Recovery) unlimited() bool { return r.Count == 0 && r.Bytes == 0 && r.Age == 0 }

// The property by which a sender asks to have a message retained, and the one that
// tells that it was. What is retained loses the first and does not expire, as in
// ActiveMQ; a message without a body takes the retained one away.
const (
	retainProperty   = "ActiveMQ.Retain"
	retainedProperty = "ActiveMQ.Retained"
)

// What is kept of a topic, whatever its policy says.
const (
	maxRecovered      = 10_000
	maxRecoveredBytes = 16 << 20
)

// A past is what a topic has kept. It is in memory alone, and Broker.mu guards it.
type past struct {
	rule  Recovery
	kept  []remembered // the oldest first
	bytes int64
	// retained is the message that its sender asked to retain; nil: none.
	retained *remembered
}

type remembered struct {
	number  uint64 // in the order in which they were sent
	at      int64  // Unix milliseconds
	from    string // the connection that sent it
	message *message.Message
}

// remember keeps a message that is on its way to a topic, where its policy asks for
// that. It comes before the topic's subscriptions are looked up: a consumer that
// comes in between finds it here, or is found.
func (b *Broker) remember(topic message.Destination, m *message.Message, from string) {
	if topic.Kind != message.Topic || topic.IsAdvisory() {
		return
	}
	p := b.pastOf(topic)
	if p == nil {
		return
	}
	c := *m
	c.Destination = topic
	retain := p.rule.Retained && b.asksToRetain(m)
	b.mu.Lock()
	b.remembered++
	r := remembered{number: b.remembered, at: b.now(), from: from, message: &c}
	if !p.rule.unlimited() {
		p.add(r)
	}
	if retain {
		p.retain(r)
	}
	b.mu.Unlock()
}

// pastOf is what a topic has kept; nil: its policy does not ask for that.
func (b *Broker) pastOf(topic message.Destination) *past {
	b.mu.Lock()
	p, known := b.pasts[topic]
	b.mu.Unlock()
	if known {
		return p
	}
	if rule := b.policy(topic).Recovery; !rule.none() {
		p = &past{rule: rule}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if other, raced := b.pasts[topic]; raced {
		return other
	}
	return b.addPastLocked(topic, p)
}

// addPastLocked notes what is kept of a topic. Of very many topics only those with a
// retained message are remembered; of one too many nothing is kept.
func (b *Broker) addPastLocked(topic message.Destination, p *past) *past {
	if len(b.pasts) >= maxRoutes {
		maps.DeleteFunc(b.pasts, func(_ message.Destination, p *past) bool { return p == nil || p.retained == nil })
	}
	if len(b.pasts) >= maxRoutes {
		if !b.retainedFull {
			b.retainedFull = true
			b.o.Log.Warn("too many topics have a retained message: of others nothing is kept for retroactive consumers", "n", maxRoutes)
		}
		return nil
	}
	b.pasts[topic] = p
	return p
}

// beginPastsLocked begins what topics keep anew, and returns what they had retained.
func (b *Broker) beginPastsLocked() map[message.Destination]*remembered {
	kept := map[message.Destination]*remembered{}
	for topic, p := range b.pasts {
		if p != nil && p.retained != nil {
			kept[topic] = p.retained
		}
	}
	clear(b.pasts)
	return kept
}

// retainAgain gives topics back what they had retained, where the new policy retains.
func (b *Broker) retainAgain(kept map[message.Destination]*remembered) {
	for topic, r := range kept {
		rule := b.policy(topic).Recovery
		b.mu.Lock()
		if b.pasts[topic] == nil && rule.Retained {
			b.pasts[topic] = &past{rule: rule}
		}
		if p := b.pasts[topic]; p != nil && p.rule.Retained && p.retained == nil {
			p.retained = r
		}
		b.mu.Unlock()
	}
}

// asksToRetain reports whether a message's sender wants it retained.
func (b *Broker) asksToRetain(m *message.Message) bool {
	if b.o.Properties == nil {
		return false
	}
	v, ok := b.o.Properties(m, retainProperty)
	return ok && (v == selector.BoolValue(true) || strings.EqualFold(v.Text(), "true"))
}

// retain keeps a message in place of the one retained before.
func (p *past) retain(r remembered) {
	if p.retained = nil; len(r.message.Body) == 0 {
		return
	}
	c := *r.message
	c.Expiration = 0
	c.Added = maps.Clone(c.Added)
	if c.Added == nil {
		c.Added = map[string]any{}
	}
	c.Added[retainedProperty], c.Added[retainProperty] = true, false
	r.message = &c
	p.retained = &r
}

func (p *past) add(r remembered) {
	p.kept = append(p.kept, r)
	p.bytes += int64(r.message.SizeBytes())
	drop := 0
	for drop < len(p.kept) && p.over(len(p.kept)-drop, p.kept[drop].at, r.at) {
		p.bytes -= int64(p.kept[drop].message.SizeBytes())
		p.kept[drop] = remembered{}
		drop++
	}
	p.kept = p.kept[drop:]
}

// over reports whether the oldest of n, sent at a time, is to go.
func (p *past) over(n int, at, now int64) bool {
	r := p.rule
	return n > maxRecovered || p.bytes > maxRecoveredBytes ||
		r.Count > 0 && n > r.Count || r.Bytes > 0 && p.bytes > r.Bytes || r.Age > 0 && now-at > r.Age.Milliseconds()
}

// missedLocked lists what a subscription would have been sent after number, in the
// order in which it was sent. Its selector is not asked yet.
func (b *Broker) missedLocked(s *subscription, number uint64, always bool) []remembered {
	var missed []remembered
	now := b.now()
	for topic, p := range b.pasts {
		if p == nil || always && !p.rule.Always || !s.covers(topic) {
			continue
		}
		if r := p.retained; r != nil && r.number > number {
			missed = append(missed, *r)
		}
		for _, r := range p.kept {
			if p.retained != nil && r.number == p.retained.number {
				continue // it is given once
			}
			if r.number > number && (p.rule.Age == 0 || now-r.at <= p.rule.Age.Milliseconds()) {
				missed = append(missed, r)
			}
		}
	}
	slices.SortFunc(missed, func(x, y remembered) int { return cmp.Compare(x.number, y.number) })
	return missed
}

// join lets a new subscription be found. A retroactive one is first given what its
// topics have kept, a durable one for good; so what is sent from now on comes behind that.
func (b *Broker) join(s *subscription, retroactive bool) error {
	if s.durable && !retroactive {
		b.addSubscription(s)
		return nil
	}
	for number := uint64(0); ; {
		b.mu.Lock()
		missed := b.missedLocked(s, number, !retroactive)
		if len(missed) == 0 {
			added, by := b.addSubscriptionLocked(s), s.byLocked()
			b.mu.Unlock()
			b.tellTopics(added, by)
			return nil
		}
		b.mu.Unlock()
		u := b.newUnit()
		for _, r := range missed {
			number = r.number
			m := r.message
			if m.Expiration > 0 && b.now() > m.Expiration || !s.wants(b, m.Destination, m, r.from) {
				continue
			}
			if s.durable {
				u.add(copyFor{to: s.d, message: m}, m)
				continue
			}
			e := queue.Enqueue{Item: queue.NewItem(0, m)}
			b.chargeOrSpill(&e)
			if !s.d.box.force(work{command: e}) {
				b.memory.discharge(e.Item.Charged)
			}
		}
		answered := make(chan error, 1)
		u.commit(func(err error) { answered <- err })
		if err := <-answered; err != nil {
			return err
		}
	}
}
