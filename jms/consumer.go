package jms

import (
	"context"
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Consumer receives messages: by its Receive methods, or by a handler. Its methods
// may be called by several goroutines; see Session.
type Consumer struct {
	session *Session
	id      *wire.ConsumerID
	info    *wire.ConsumerInfo
	from    Destination

	// Guarded by the connection's mutex.
	in       inbox
	set      *policySet
	override *redelivery.Policy // SetRedeliveryPolicy
	chosen   map[message.Destination]*redelivery.Policy
	handler  Handler
	pull     pullState
	finished bool // browser: all was sent; pull: the last one found nothing
	closing  bool // closed once the transaction, or the handler, has ended
	closed   bool
	failure  error // why, where it was not the application
}

// pullState is what a pull consumer has asked the broker for.
type pullState uint8

const (
	noPull pullState = iota
	timedPull
	endlessPull
)

// consumerOptions are what a consumer is made with.
type consumerOptions struct {
	selector     string
	noLocal      bool
	subscription string
	browser      bool
	policy       *RedeliveryPolicy
	prefetch     int // -1: the connection's
}

// A ConsumerOption says how a consumer receives.
type ConsumerOption func(*consumerOptions)

// WithSelector takes only messages that match a JMS selector.
func WithSelector(s string) ConsumerOption { return func(o *consumerOptions) { o.selector = s } }

// WithNoLocal takes no messages that this connection has sent; topics only.
func WithNoLocal() ConsumerOption { return func(o *consumerOptions) { o.noLocal = true } }

// WithPolicy gives the consumer a redelivery policy of its own.
func WithPolicy(p RedeliveryPolicy) ConsumerOption { return func(o *consumerOptions) { o.policy = &p } }

// WithPrefetch sets how many messages are sent ahead; 0: none, each is asked for.
func WithPrefetch(n int) ConsumerOption {
	return func(o *consumerOptions) { o.prefetch = min(max(n, 0), maxPrefetch) }
}

// CreateConsumer opens a consumer on a queue or topic. A temporary destination must
// be this connection's own.
func (s *Session) CreateConsumer(ctx context.Context, d Destination, options ...ConsumerOption) (*Consumer, error) {
	return s.subscribe(ctx, "create consumer on "+d.String(), d, options, consumerOptions{prefetch: -1})
}

// CreateDurableSubscriber opens the durable subscription of a name, which with the
// connection's client id identifies it (set ConnectionFactory.ClientID). It goes on
// collecting messages while nobody is there, until Unsubscribe.
func (s *Session) CreateDurableSubscriber(ctx context.Context, topic Destination, name string, options ...ConsumerOption) (*Consumer, error) {
	op := "create durable subscriber on " + topic.String()
	if topic.d.Kind != message.Topic {
		return nil, &Error{Op: op, Kind: ErrInvalidDestination, Text: "only topics have durable subscriptions"}
	}
	if name == "" {
		return nil, &Error{Op: op, Kind: ErrInvalidDestination, Text: "the subscription has no name"}
	}
	return s.subscribe(ctx, op, topic, options, consumerOptions{subscription: name, prefetch: -1})
}

// Unsubscribe deletes a durable subscription, which nobody may be using.
func (s *Session) Unsubscribe(ctx context.Context, name string) error {
	c := s.c
	_, err := c.request(ctx, "unsubscribe "+name, &wire.RemoveSubscriptionInfo{
		ConnectionID: c.user.ConnectionID, SubscriptionName: wire.NewText(name), ClientID: c.user.ClientID})
	return err
}

func (s *Session) subscribe(ctx context.Context, op string, d Destination, options []ConsumerOption, o consumerOptions) (*Consumer, error) {
	for _, set := range options {
		set(&o)
	}
	c := s.c
	switch {
	case d.IsZero():
		return nil, &Error{Op: op, Kind: ErrInvalidDestination, Text: "the destination has no name"}
	case d.IsTemporary() && !strings.HasPrefix(d.Name(), c.id+":"):
		return nil, &Error{Op: op, Kind: ErrInvalidDestination, Text: "a temporary destination can only be consumed by the connection that made it"}
	}
	info, err := s.consumerInfo(d, &o)
	if err != nil {
		return nil, &Error{Op: op, Kind: ErrInvalidDestination, Err: err}
	}
	k := &Consumer{session: s, from: d, info: info, chosen: map[message.Destination]*redelivery.Policy{}}
	if o.policy != nil {
		k.override = o.policy.internal()
	}
	c.mu.Lock()
	if err := s.aliveLocked(op); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	s.consumerN++
	k.id = &wire.ConsumerID{ConnectionID: c.id, SessionID: s.id.Value, Value: s.consumerN}
	info.ConsumerID = k.id
	k.set = c.set
	k.in = inbox{last: wire.LastDeliveredNone, s: s.inboxSettings(k, &o)}
	s.consumers = append(s.consumers, k)
	c.byID[*k.id] = k
	call := c.callLocked(info, nil)
	c.mu.Unlock()
	ctx, done := bounded(ctx, c.o.Timeouts.Request)
	defer done()
	if _, err := c.await(ctx, op, call); err != nil {
		c.mu.Lock()
		k.removeLocked()
		if call.err == nil && c.failure == nil { // ctx ended: the broker may have it all the same
			c.postLocked(&wire.RemoveInfo{ObjectID: k.id, LastDeliveredSequenceID: wire.LastDeliveredNone})
		}
		c.mu.Unlock()
		return nil, err
	}
	return k, nil
}

// inboxSettings are what a consumer's inbox goes by. The mutex is held.
func (s *Session) inboxSettings(k *Consumer, o *consumerOptions) inboxSettings {
	c := s.c
	t := inboxSettings{
		consumer: k.id, mode: s.mode, topic: k.from.IsTopic(), durable: o.subscription != "", browser: o.browser,
		nonBlocking: c.o.NonBlockingRedelivery, prioritized: c.o.MessagePrioritySupported,
		expiry: c.o.ConsumerExpiryCheckEnabled, prefetch: int(k.info.PrefetchSize), jitter: jitter, policy: k.policyFor,
	}
	t.individual = s.Transacted() && (c.o.TransactedIndividualAck || t.nonBlocking || t.prioritized)
	if o.browser {
		t.mode = AutoAcknowledge
	}
	if s.mode == AutoAcknowledge && !o.browser && !c.tolerant { // R-CLIENT-22
		t.optimize, t.optimizeMax = c.o.OptimizeAcknowledge || k.info.OptimizedAcknowledge, c.o.OptimizeAcknowledgeTimeOut
	}
	if c.url.failover != nil && c.o.CheckForDuplicates && !o.browser && !s.Transacted() {
		t.depth = c.o.AuditDepth
	}
	return t
}

// consumerInfo is what the broker is told of a consumer (R-URI-20).
func (s *Session) consumerInfo(d Destination, o *consumerOptions) (*wire.ConsumerInfo, error) {
	c := s.c
	p := c.o.Prefetch
	i := &wire.ConsumerInfo{
		Destination: d.wire(), DispatchAsync: c.o.Consumer.DispatchAsync, Exclusive: c.o.Consumer.Exclusive, Retroactive: c.o.Consumer.Retroactive,
		Selector: wire.TextOrNull(o.selector), NoLocal: o.noLocal, SubscriptionName: wire.TextOrNull(o.subscription), Browser: o.browser,
		MaximumPendingMessageLimit: int32(p.MaximumPendingMessageLimit), OptimizedAcknowledge: c.o.OptimizeAcknowledge && s.mode == AutoAcknowledge && !o.browser,
	}
	window := p.Queue
	switch {
	case o.browser:
		window = p.QueueBrowser
	case o.subscription != "" && s.mode == AutoAcknowledge && c.o.Consumer.OptimizedMessageDispatch:
		window = p.OptimizeDurableTopic
	case o.subscription != "":
		window = p.DurableTopic
	case d.IsTopic():
		window = p.Topic
	}
	if o.subscription != "" {
		i.ClientID = c.user.ClientID
	}
	all, err := parseOptions(d.options)
	if err != nil {
		return nil, err
	}
	own, others := split(all, "consumer.")
	for _, other := range others {
		if !strings.HasPrefix(other.name, "producer.") {
			return nil, fmt.Errorf("destination option %q is neither a consumer's nor a producer's", other.name)
		}
	}
	priority, sel := 0, o.selector
	err = apply("destination "+d.String(), own, map[string]setter{
		"prefetchSize": prefetchInto(&window), "maximumPendingMessageLimit": int32Into(&i.MaximumPendingMessageLimit),
		"noLocal": boolInto(&i.NoLocal), "dispatchAsync": boolInto(&i.DispatchAsync), "retroactive": boolInto(&i.Retroactive),
		"selector": textInto(&sel), "exclusive": boolInto(&i.Exclusive), "priority": intInto(&priority), "browser": boolInto(&i.Browser),
		"networkSubscription": boolInto(&i.NetworkSubscription), "optimizedAcknowledge": boolInto(&i.OptimizedAcknowledge), "noRangeAcks": boolInto(&i.NoRangeAcks),
	})
	if err != nil {
		return nil, err
	}
	if priority < -128 || priority > 127 {
		return nil, fmt.Errorf("consumer.priority %d is not from 0 to 127", priority)
	}
	if o.prefetch >= 0 {
		window = o.prefetch
	}
	i.Priority, i.PrefetchSize, i.Selector = int8(priority), int32(window), wire.TextOrNull(sel)
	return i, nil
}

// policyFor is the policy for messages of a destination. The mutex is held.
func (k *Consumer) policyFor(d message.Destination) *redelivery.Policy {
	if k.override != nil {
		return k.override
	}
	p := k.chosen[d]
	if p == nil {
		p = k.set.lookup(d)
		k.chosen[d] = p
	}
	return p
}

// SetRedeliveryPolicy gives the consumer a policy of its own, for failures from now on
// (R-URI-02).
func (k *Consumer) SetRedeliveryPolicy(p RedeliveryPolicy) {
	k.session.c.mu.Lock()
	defer k.session.c.mu.Unlock()
	k.override = p.internal()
}

// Destination is what the consumer was made for.
func (k *Consumer) Destination() Destination { return k.from }

// Waiting is how many messages failed at this consumer and wait to be delivered again
// by it. Where it is closed before, the broker gives them to whoever comes, at once.
func (k *Consumer) Waiting() int {
	k.session.c.mu.Lock()
	defer k.session.c.mu.Unlock()
	return len(k.in.waiting)
}

// ID is the consumer's id, as it stands in the stories of messages.
func (k *Consumer) ID() string { return k.id.String() }

// arriveLocked takes a dispatch.
func (k *Consumer) arriveLocked(m *wire.MessageDispatch) {
	if m.Message == nil { // R-CLIENT-02
		k.finished = true
		k.pull = noPull
	} else {
		k.pull = noPull
		k.in.arrive(k, m, k.session.c.now())
		k.session.flushLocked(k)
	}
	k.session.changed.ring()
}

func (k *Consumer) aliveLocked(op string) error {
	if k.failure != nil {
		return &Error{Op: op, Err: k.failure}
	}
	if err := k.session.aliveLocked(op); err != nil {
		return err
	}
	if k.closed || k.closing {
		return &Error{Op: op, Kind: ErrClosed, Text: "the consumer is closed"}
	}
	return nil
}

// Close closes the consumer. Where the open transaction has messages of it, or its
// handler runs, the broker is told when that has ended (R-CLIENT-55).
func (k *Consumer) Close() error {
	c := k.session.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.closed || k.closing || k.session.closed {
		return nil
	}
	k.closing = true
	k.finishLocked()
	k.session.changed.ring()
	return nil
}

// finishLocked ends a consumer that was closed, once nothing of it is under way.
func (k *Consumer) finishLocked() {
	if !k.closing || k.closed {
		return
	}
	for _, d := range k.in.had {
		if d.handled || k.session.Transacted() {
			return
		}
	}
	if k.session.Transacted() && k.in.unseen() > 0 {
		return
	}
	k.leaveLocked()
}

// leaveLocked forgets a consumer, and tells the broker what its application had.
func (k *Consumer) leaveLocked() {
	s, c := k.session, k.session.c
	k.in.flush(c.now())
	last := k.in.leave()
	s.flushLocked(k)
	k.removeLocked()
	if c.failure == nil && !c.closing {
		c.postLocked(&wire.RemoveInfo{ObjectID: k.id, LastDeliveredSequenceID: last})
	}
}

// removeLocked forgets a consumer.
func (k *Consumer) removeLocked() {
	k.closed = true
	s := k.session
	delete(s.c.byID, *k.id)
	for i, o := range s.consumers {
		if o == k {
			s.consumers = append(s.consumers[:i:i], s.consumers[i+1:]...)
			return
		}
	}
}
