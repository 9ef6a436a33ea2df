package broker

import (
	"context"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Reload is what of a broker's options can change while it runs.
type Reload struct {
	Policy       func(message.Destination) Policy // nil: the defaults
	Interceptors Interceptors
	Destinations []message.Destination // made if they are not there; those that are stay
	// Lifetimes, Unrouted, OnlyDeclared, Limited and OneOrder are as in Options.
	Lifetimes, Unrouted, OnlyDeclared, Limited, OneOrder bool
}

// Reload makes other options hold: for destinations that are there from their next
// turn on, for new ones at once, and it returns when all have them. Every decision
// is made by the old policy or by the new one, never by a mixture. Decisions that
// were taken stay: what is scheduled keeps its time, dead letters lie where they are.
// Policy.Prioritized only counts for destinations that are made from now on, Exclusive
// and Prefetch for consumers that come from now on.
//
// An error, ErrInvalid, is about the interceptors or destinations; then nothing has
// changed.
func (b *Broker) Reload(ctx context.Context, r Reload) error {
	i, err := r.Interceptors.compile()
	if err != nil {
		return err
	}
	if err := checkDestinations(r.Destinations); err != nil {
		return err
	}
	answered := b.swap(&r, i)
	if err := b.makeAll(r.Destinations); err != nil {
		return err
	}
	b.rememberSelectors()
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// swap makes a reload hold. answered is closed when every destination has heard of it.
func (b *Broker) swap(r *Reload, i *interceptors) (answered <-chan struct{}) {
	b.creating.Lock() // a destination is made with the old policy and is among all, or with the new one
	defer b.creating.Unlock()
	b.policies.Store(&r.Policy)
	b.interceptors.Store(i)
	b.lifetimes.Store(r.Lifetimes)
	b.unrouted.Store(r.Unrouted)
	b.declared.Store(r.OnlyDeclared)
	b.limited.Store(r.Limited)
	b.order.on.Store(r.OneOrder)
	b.reloadRooms()
	b.mu.Lock()
	clear(b.virtual)
	kept := b.beginPastsLocked()
	all := b.destinationsLocked()
	b.mu.Unlock()
	b.retainAgain(kept)
	closed := make(chan struct{})
	done := countdown(len(all), func(error) { close(closed) })
	for _, d := range all {
		p := b.policy(d.name)
		w := work{do: func() { d.setPolicy(&p); done(nil) }, stopped: done}
		if !d.box.force(w) {
			done(nil) // it is gone
		}
	}
	return closed
}

// destinationsLocked are all queues and subscriptions there are.
func (b *Broker) destinationsLocked() []*destination {
	all := make([]*destination, 0, len(b.queues)+len(b.subscriptions))
	for _, d := range b.queues {
		all = append(all, d)
	}
	for _, s := range b.subscriptions {
		all = append(all, s.d)
	}
	return all
}

// setPolicy runs in the destination's goroutine.
func (d *destination) setPolicy(p *Policy) {
	d.mu.Lock()
	d.rules, d.exclusive = p.Rules, p.Exclusive
	d.mu.Unlock()
	d.advisories = p.Advisories
	d.apply(queue.SetPolicy{Rules: p.Rules, Marks: d.b.marks(d.durable, p), Tells: p.Advisories.tells(d.sub), Bounds: boundsOf(p, d.sub), Rebalance: p.Rebalance, AckTimeout: p.AckTimeout.Milliseconds(),
		Backlog: p.Backlog, Slow: p.Slow.limits(), OneByOne: p.OneByOne})
}

// forOne reports whether a queue's messages go to one consumer at a time, whatever
// its consumers ask for.
func (d *destination) forOne() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exclusive && d.sub == nil
}

// rulesNow are the rules that hold.
func (d *destination) rulesNow() redelivery.Rules {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rules
}

// marks reports whether hand-outs are marked under a policy.
func (b *Broker) marks(durable bool, p *Policy) bool {
	if p.Marks != nil {
		return durable && *p.Marks
	}
	return durable && !b.o.MarksOff
}
