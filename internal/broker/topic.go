package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/selector"
)

// A subscription gets copies of what is sent to a topic. Broker.mu guards user;
// the rest does not change.
type subscription struct {
	d        *destination
	topic    message.Destination // may be a pattern or a composite
	parts    []message.Destination
	selector *selector.Selector
	text     string // of the selector
	noLocal  bool
	durable  bool
	clientID string
	name     string
	user     *consumer // who consumes it now; nil: an inactive durable subscription
	left     int64     // when its last user left, or the broker started, Unix milliseconds; guarded as user
}

// label names a durable subscription as dead letter queues of its own do (R-DLS-12).
func (s *subscription) label() string { return s.clientID + ":" + s.name }

// wants reports whether the subscription is to get a message that the connection
// from sends to topic.
func (s *subscription) wants(b *Broker, topic message.Destination, m *message.Message, from string) bool {
	if s.noLocal && s.isOf(b, from) {
		return false
	}
	return b.selects(s.selector, m)
}

// isOf reports whether a connection's consumer uses the subscription now. It may leave
// at any time, so the answer is about the moment. A durable one belongs to its client
// also while nobody uses it (JMS 2.0, 8.3.3).
func (s *subscription) isOf(b *Broker, connection string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.durable {
		c := b.connections[connection]
		return c != nil && c.info.ClientID == s.clientID
	}
	return s.user != nil && s.user.c.info.ID == connection
}

// covers reports whether the subscription is to the topic.
func (s *subscription) covers(topic message.Destination) bool { return covers(s.parts, topic) }

// covers reports whether what has these parts is or fits the topic.
func covers(parts []message.Destination, topic message.Destination) bool {
	return slices.ContainsFunc(parts, func(p message.Destination) bool { return p.Matches(topic) })
}

// A route is what becomes of a message that is sent to a topic: who gets it, and where it is
// counted. It is not changed later.
type route struct {
	to   []*subscription
	sent *atomic.Int64
}

// route lists the subscriptions to a topic, which comes to be by its use by a connection;
// "": by the broker's own.
func (b *Broker) route(topic message.Destination, by string) []*subscription {
	return b.routeOf(topic, by).to
}

func (b *Broker) routeOf(topic message.Destination, by string) route {
	b.mu.Lock()
	if found, ok := b.routes[topic]; ok {
		b.mu.Unlock()
		return found
	}
	var found route
	for _, s := range b.subscriptions {
		if s.covers(topic) {
			found.to = append(found.to, s)
		}
	}
	if len(b.routes) >= maxRoutes {
		clear(b.routes)
	}
	added := b.addTopicsLocked(topic)
	if found.sent = b.topics[topic]; found.sent == nil {
		found.sent = new(atomic.Int64) // of advisories nobody asks how many there were
	}
	b.routes[topic] = found
	b.mu.Unlock()
	b.tellTopics(added, by)
	return found
}

// addTopicsLocked notes which topics there are, and returns those that are new.
// Those of advisories are not counted among them (OpenWire 12), nor are patterns.
func (b *Broker) addTopicsLocked(names ...message.Destination) (added []message.Destination) {
	for _, n := range names {
		if n.Kind == message.Topic && !n.IsPattern() && !n.IsAdvisory() && b.topics[n] == nil {
			b.topics[n] = new(atomic.Int64)
			added = append(added, n)
		}
	}
	return added
}

// tellTopics tells of topics that came to be by a connection; "": by the broker itself.
func (b *Broker) tellTopics(added []message.Destination, by string) {
	for _, n := range added {
		b.tell(Event{Kind: QueueAdded, Destination: n, Connection: by})
	}
}

// maxRoutes is how many topics' routes are remembered.
const maxRoutes = 10_000

// openSubscription opens a subscription that the records know.
func (b *Broker) openSubscription(i records.QueueInfo) (*destination, error) {
	sel, err := parseSelector(i.Selector)
	if err != nil {
		return nil, err
	}
	s := &subscription{topic: i.Destination, parts: i.Destination.Parts(), selector: sel, text: i.Selector,
		noLocal: i.NoLocal, durable: true, clientID: i.ClientID, name: i.Subscription, left: b.now()}
	s.d = b.newDestination(i.Destination, s, i.ID, true)
	if err := s.d.restore(); err != nil {
		return nil, err
	}
	b.addSubscription(s)
	return s.d, nil
}

func parseSelector(text string) (*selector.Selector, error) {
	if text == "" {
		return nil, nil
	}
	return selector.Parse(text)
}

func (b *Broker) addSubscription(s *subscription) {
	b.mu.Lock()
	added, by := b.addSubscriptionLocked(s), s.byLocked()
	b.mu.Unlock()
	b.tellTopics(added, by)
}

// by is the connection whose consumer made the subscription; "": it is from the store.
// Broker.mu is held.
func (s *subscription) byLocked() string {
	if s.user == nil {
		return ""
	}
	return s.user.c.info.ID
}

// addSubscriptionLocked returns the topics that are new by it.
func (b *Broker) addSubscriptionLocked(s *subscription) (added []message.Destination) {
	b.subscriptions = append(b.subscriptions, s)
	clear(b.routes)
	if s.watches() {
		b.watchers.Add(1)
	}
	return b.addTopicsLocked(s.parts...)
}

func (b *Broker) removeSubscriptionLocked(s *subscription) {
	kept := make([]*subscription, 0, len(b.subscriptions))
	for _, o := range b.subscriptions {
		if o != s {
			kept = append(kept, o)
		}
	}
	if len(kept) < len(b.subscriptions) {
		b.ended.add(s.d)
		if s.watches() {
			b.watchers.Add(-1)
		}
	}
	b.subscriptions = kept
	clear(b.routes)
}

// mayBeDurable says why there is no durable subscription of a client to a topic; nil: there
// may be.
func (b *Broker) mayBeDurable(clientID, name string, to message.Destination) error {
	durable := func(format string, args ...any) error {
		return fmt.Errorf("durable subscription %s to %s: %w", name, to, fmt.Errorf(format, args...))
	}
	switch parts := to.Parts(); {
	case b.o.RejectDurable:
		return durable("durable subscriptions are not allowed here (rejectDurableConsumers): %w", message.ErrDenied)
	case clientID == "":
		return durable("the connection has no client id: %w", message.ErrInvalid)
	case slices.ContainsFunc(parts, message.Destination.IsTemporary):
		return durable("a temporary topic ends with its connection, and what is kept of it would too; subscribe without a name: %w", message.ErrInvalid)
	case slices.ContainsFunc(parts, message.Destination.IsAdvisory):
		return durable("advisories are news of the moment, and are not kept for who is away; subscribe without a name: %w", message.ErrInvalid)
	}
	return nil
}

// subscribe finds or makes the subscription of a topic consumer, and makes the
// consumer its user. A durable one is told apart by client id and name; if it is
// there with another topic, selector or noLocal, it is made anew (OpenWire 10.1).
func (b *Broker) subscribe(k *consumer, sel *selector.Selector) (*subscription, error) {
	spec := k.spec
	durable := spec.Subscription != ""
	clientID := k.c.info.ClientID
	if durable {
		if err := b.mayBeDurable(clientID, spec.Subscription, spec.Destination); err != nil {
			return nil, err
		}
	}
	for {
		if old, err := b.resume(k); old != nil || err != nil {
			return old, err
		}
		s := &subscription{topic: spec.Destination, parts: spec.Destination.Parts(), selector: sel, text: spec.Selector,
			noLocal: spec.NoLocal, durable: durable, clientID: clientID, name: spec.Subscription, user: k}
		err := b.begin(s, spec.Retroactive)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, message.ErrExists) { // else it was made just now
			return nil, err
		}
	}
}

// resume makes a consumer the user of its durable subscription, if that is there as it wants
// it; another one of the name is ended.
func (b *Broker) resume(k *consumer) (*subscription, error) {
	spec, clientID := k.spec, k.c.info.ClientID
	for spec.Subscription != "" {
		b.mu.Lock()
		old := b.durableLocked(clientID, spec.Subscription)
		if old == nil {
			b.mu.Unlock()
			break
		}
		if old.user != nil {
			b.mu.Unlock()
			return nil, old.inUse()
		}
		if old.is(spec.Destination, spec.Selector, spec.NoLocal) {
			old.user = k
			b.mu.Unlock()
			return old, nil
		}
		old.user = k // nobody else takes it meanwhile
		b.mu.Unlock()
		err := b.mayDiscard(old.d)
		b.mu.Lock()
		old.user, old.left = nil, b.now()
		if err == nil {
			b.removeSubscriptionLocked(old)
		}
		b.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if err := b.discard(old.d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// is reports whether a subscription is to this, and not another one of the same name.
func (s *subscription) is(topic message.Destination, selector string, noLocal bool) bool {
	return s.topic == topic && s.text == selector && s.noLocal == noLocal
}

// begin begins a subscription: ErrExists where there is a durable one of its name.
func (b *Broker) begin(s *subscription, retroactive bool) error {
	b.creating.Lock()
	defer b.creating.Unlock()
	if s.durable {
		b.mu.Lock()
		old := b.durableLocked(s.clientID, s.name)
		b.mu.Unlock()
		if old != nil {
			return fmt.Errorf("durable subscription %s of client %s to %s: %w", s.name, s.clientID, old.topic, message.ErrExists)
		}
	}
	s.d = b.newDestination(s.topic, s, b.freshID(message.Destination{}, s.durable), s.durable)
	if s.durable {
		s.d.record(records.QueueInfo{ID: s.d.id, Destination: s.topic, ClientID: s.clientID, Subscription: s.name,
			Selector: s.text, NoLocal: s.noLocal, Created: b.now()})
	}
	if err := s.d.start(b.ctx); err != nil {
		return err
	}
	if err := b.join(s, retroactive); err != nil {
		_ = b.discard(s.d) // nobody has found it yet
		return err
	}
	return nil
}

// CreateSubscription makes a durable subscription ahead of its client, which gets what is sent
// from now on. One that is there already is left alone.
//
// Errors: ErrInvalid for what names no topic, or a selector that is none; ErrExists where
// there is one of the name with another topic, selector or noLocal, whose messages would be
// lost.
func (b *Broker) CreateSubscription(clientID, name string, topic message.Destination, text string) error {
	switch topics, err := onlyTopics(topic); {
	case err != nil:
		return err
	case !topics || name == "" || topic.Name == "":
		return fmt.Errorf("durable subscription %q to %q: it needs a name and a topic: %w", name, topic, message.ErrInvalid)
	}
	if err := b.mayBeDurable(clientID, name, topic); err != nil {
		return err
	}
	sel, err := parseSelector(text)
	if err != nil {
		return err
	}
	b.mu.Lock()
	old := b.durableLocked(clientID, name)
	b.mu.Unlock()
	if old != nil && old.is(topic, text, false) {
		return nil
	}
	return b.begin(&subscription{topic: topic, parts: topic.Parts(), selector: sel, text: text, durable: true,
		clientID: clientID, name: name, left: b.now()}, false)
}

func (b *Broker) durableLocked(clientID, name string) *subscription {
	for _, s := range b.subscriptions {
		if s.durable && s.clientID == clientID && s.name == name {
			return s
		}
	}
	return nil
}

// leave ends a consumer's use of a subscription. Without a durable name that is
// its end.
func (b *Broker) leave(s *subscription, k *consumer) {
	b.mu.Lock()
	if s.user == k {
		s.user, s.left = nil, b.now()
	}
	if !s.durable {
		b.removeSubscriptionLocked(s)
	}
	b.mu.Unlock()
	switch {
	case s.durable:
	case s.d.snapshot().Waiting > 0, b.o.Records.Knows(s.d.id): // some of it may lie in the store
		b.running.Go(func() { _ = b.discard(s.d) }) // the only error is that the broker stops
	default:
		s.d.abandon(fmt.Errorf("%s: consumer closed: %w", s.topic, message.ErrNotFound))
		s.d.retire()
		b.roomChanged(s.d)
	}
}

// Unsubscribe deletes a durable subscription of the client: ErrState if it is in
// use, ErrNotFound if there is none.
func (c *Connection) Unsubscribe(_ context.Context, name string) error {
	b := c.b
	b.mu.Lock()
	s := b.durableLocked(c.info.ClientID, name)
	b.mu.Unlock()
	if s == nil {
		return fmt.Errorf("durable subscription %s of client %s: %w", name, c.info.ClientID, message.ErrNotFound)
	}
	if err := c.info.Principal.Check(access.Unsubscribe, s.topic); err != nil {
		return err
	}
	return b.unsubscribe(s, c.info.ID)
}

// unsubscribe deletes a durable subscription that nobody uses, for the connection by; "":
// for the broker itself.
func (b *Broker) unsubscribe(s *subscription, by string) error {
	b.mu.Lock()
	taken := s.user != nil
	b.mu.Unlock()
	if taken {
		return s.inUse()
	}
	if err := b.mayDiscard(s.d); err != nil {
		return err
	}
	b.mu.Lock()
	if taken = s.user != nil; !taken {
		b.removeSubscriptionLocked(s)
	}
	b.mu.Unlock()
	if taken {
		return s.inUse()
	}
	if err := b.discard(s.d); err != nil {
		return err
	}
	b.tell(Event{Kind: SubscriptionRemoved, Destination: s.topic, Connection: by, ClientID: s.clientID,
		Spec: &ConsumerSpec{Destination: s.topic, Subscription: s.name}, Count: b.Consumers(s.topic)})
	return nil
}
