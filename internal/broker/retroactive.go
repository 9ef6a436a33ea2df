package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// A Recovery says which of a topic's newest messages a retroactive consumer is
// given when it comes: those within all limits that are not zero. The zero value
// is none (ActiveMQ's subscriptionRecoveryPolicy).
type Recovery struct {
	Count int
	Bytes int64
	Age   time.Duration
	// Always gives them to every consumer without a durable subscription.
	Always bool
}

func (r Recovery) none() bool { return r.Count == 0 && r.Bytes == 0 && r.Age == 0 }

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
	b.mu.Lock()
	p, known := b.pasts[topic]
	b.mu.Unlock()
	if !known {
		if rule := b.policy(topic).Recovery; !rule.none() {
			p = &past{rule: rule}
		}
		b.mu.Lock()
		if other, raced := b.pasts[topic]; raced {
			p = other
		} else {
			if len(b.pasts) >= maxRoutes {
				clear(b.pasts)
			}
			b.pasts[topic] = p
		}
		b.mu.Unlock()
	}
	if p == nil {
		return
	}
	c := *m
	c.Destination = topic
	b.mu.Lock()
	b.remembered++
	p.add(remembered{number: b.remembered, at: b.now(), from: from, message: &c})
	b.mu.Unlock()
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
		for _, r := range p.kept {
			if r.number > number && (p.rule.Age == 0 || now-r.at <= p.rule.Age.Milliseconds()) {
				missed = append(missed, r)
			}
		}
	}
	slices.SortFunc(missed, func(x, y remembered) int { return cmp.Compare(x.number, y.number) })
	return missed
}

// join lets a new subscription be found. A retroactive one is first given what its
// topics have kept; so what is sent from now on comes behind that.
func (b *Broker) join(s *subscription, retroactive bool) {
	if s.durable {
		b.addSubscription(s)
		return
	}
	for number := uint64(0); ; {
		b.mu.Lock()
		missed := b.missedLocked(s, number, !retroactive)
		if len(missed) == 0 {
			added := b.addSubscriptionLocked(s)
			b.mu.Unlock()
			b.tellTopics(added)
			return
		}
		b.mu.Unlock()
		for _, r := range missed {
			number = r.number
			m := r.message
			if m.Expiration > 0 && b.now() > m.Expiration || !s.wants(b, m.Destination, m, r.from) {
				continue
			}
			e := queue.Enqueue{Item: queue.NewItem(0, m)}
			b.chargeOrSpill(&e)
			if !s.d.box.force(work{command: e}) {
				b.memory.discharge(e.Item.Charged)
			}
		}
	}
}
