package broker

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
)

// MayProduce is nil where the client may send to d, else message.ErrDenied. Send
// asks by itself; a protocol asks when a producer is opened, so that its client
// learns of it there.
func (c *Connection) MayProduce(d message.Destination) error { return c.may(access.Write, d) }

// may is nil where the client may do op on d, and create what of d there is not
// yet (R-XML-31).
func (c *Connection) may(op access.Operation, d message.Destination) error {
	p := c.info.Principal
	if p == nil && !c.b.declared.Load() {
		return nil
	}
	if err := p.Check(op, d); err != nil {
		return err
	}
	for _, part := range d.Parts() {
		if err := c.mayCreate(part); err != nil {
			return err
		}
	}
	return nil
}

// mayConsume is nil where the client may open a consumer: read or browse, create
// what is not there, and subscribe to topics.
func (c *Connection) mayConsume(spec ConsumerSpec) error {
	op := access.Read
	if spec.Browser {
		op = access.Browse
	}
	if err := c.may(op, spec.Destination); err != nil {
		return err
	}
	for _, part := range spec.Destination.Parts() {
		switch {
		case !part.IsTopic():
		case spec.Subscription == "":
			if err := c.info.Principal.Check(access.Subscribe, part); err != nil {
				return err
			}
		default:
			if err := c.info.Principal.Check(access.SubscribeDurably, part); err != nil && !c.b.subscribed(c.info.ClientID, spec.Subscription) {
				return err
			}
		}
	}
	return nil
}

// subscribed reports whether there is a durable subscription.
func (b *Broker) subscribed(clientID, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.durableLocked(clientID, name) != nil
}

// mayCreate is nil where the client may create d, or need not: it is there, or a
// pattern. Whose temporary destination it is that is used is for others to say.
func (c *Connection) mayCreate(d message.Destination) error {
	if d.IsPattern() || d.IsTemporary() {
		return nil
	}
	err := c.info.Principal.Check(access.Create, d)
	if err == nil {
		err = c.b.makesOnUse(d)
	}
	if err != nil && !c.b.there(d) {
		return err
	}
	return nil
}

// makesOnUse is ErrNotFound where a destination is not made by a client's use of it, and
// ErrTooMany where there are as many as its policy allows.
func (b *Broker) makesOnUse(d message.Destination) error {
	if !b.declared.Load() || d.IsAdvisory() {
		return nil
	}
	p := b.policy(d)
	if p.OnlyDeclared {
		return fmt.Errorf("%s does not exist, and is not made by its first use: %w", d, message.ErrNotFound)
	}
	return b.mayMakeMore(d, &p)
}

// ErrTooMany is the error of a client whose destination would be one more than
// Policy.MaxDestinations.
var ErrTooMany = fmt.Errorf("too many destinations: %w", message.ErrOverLimit)

// mayMakeMore is ErrTooMany where a policy has all the destinations that it allows.
func (b *Broker) mayMakeMore(d message.Destination, p *Policy) error {
	if p.MaxDestinations <= 0 {
		return nil
	}
	n := 0
	b.mu.Lock()
	for name := range b.queues {
		if p.Pattern.Matches(name) {
			n++
		}
	}
	for name := range b.topics {
		if p.Pattern.Matches(name) {
			n++
		}
	}
	b.mu.Unlock()
	if n < p.MaxDestinations {
		return nil
	}
	return fmt.Errorf("%s is not made: there are %d destinations for the policy of %s, which is all that its maxDestinations allows; remove one, or raise it: %w", d, n, p.Pattern, ErrTooMany)
}

// there reports whether a queue or topic is known.
func (b *Broker) there(d message.Destination) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queues[d] != nil || b.topics[d] != nil
}
