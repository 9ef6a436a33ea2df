package broker

import (
	"maps"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// unrouted makes a dead letter of a message that was sent to a topic and that
// nobody gets, where the topic's rules ask for it (R-HQ-109). It goes one way, and
// what becomes of it there is no matter of these rules (R-HQ-110).
func (x *expansion) unrouted(to message.Destination, m *message.Message) error {
	b := x.b
	if !b.unrouted.Load() || to.Kind != message.Topic || to.IsAdvisory() {
		return nil
	}
	rules := b.policy(to).Rules
	target := rules.DeadLetter.Target(to, redelivery.Subscription{})
	if !rules.DeadLetterUnrouted || target.IsZero() || target == to {
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

// unroutedText begins the cause of such a dead letter.
const unroutedText = "java.lang.Throwable: nobody gets what is sent to "
