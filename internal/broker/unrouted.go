package broker

import (
	"maps"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// unrouted makes a dead letter of a message that was sent to a topic, or to a queue
// with a filter, and that nobody gets, where its rules ask for it (R-HQ-109). It goes
// one way, and what becomes of it there is no matter of these rules (R-HQ-110). What
// a filter keeps out otherwise is dropped, and told.
func (x *expansion) unrouted(to message.Destination, m *message.Message) error {
	b := x.b
	if !b.unrouted.Load() || to.Kind != message.Topic && !x.kept[to] || to.IsAdvisory() {
		x.dropped(to, m)
		return nil
	}
	rules := b.policy(to).Rules
	target := rules.DeadLetter.Target(to, redelivery.Subscription{})
	if !rules.DeadLetterUnrouted || target.IsZero() || target == to {
		x.dropped(to, m)
		return nil
	}
	dead := readdressed(m, target)
	dead.OriginalDestination = to
	dead.Added = map[string]any{FailureCause: unroutedText + to.String(), DeliveryAttempts: int64(0), OriginalExpiration: m.Expiration}
	maps.Copy(dead.Added, m.Added)
	if dead.Persistent = true; !m.Persistent {
		dead.Added[OriginalDeliveryMode] = "NON_PERSISTENT"
	}
	dead.Expiration = b.expirationAt(target, 0)
	origin{b: b, kind: rules.Origins, from: to, number: b.o.Records.Next(1)}.stamp(dead.Added, m)
	before := len(x.copies)
	if err := x.send(target, dead); err != nil {
		return err
	}
	if len(x.copies) == before && rules.KeepUnroutedDead {
		dead.Destination = asideQueue
		return x.send(asideQueue, dead)
	}
	return nil
}

// dropped tells that a queue's filter kept a message out that nobody else gets.
func (x *expansion) dropped(to message.Destination, m *message.Message) {
	if x.kept[to] {
		x.b.tell(Event{Kind: Discarded, Destination: to, Message: m.ID, Text: "the queue's filter does not select it"})
	}
}

// unroutedText begins the cause of such a dead letter.
const unroutedText = "java.lang.Throwable: nobody gets what is sent to "
