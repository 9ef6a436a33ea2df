package jms

import (
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Unlimited as RedeliveryPolicy.MaximumRedeliveries means that redelivery never
// ends (R-POL-16).
const Unlimited = redelivery.Unlimited

// NoMaximumDelay as RedeliveryPolicy.MaximumRedeliveryDelay means that the delay
// has no cap.
const NoMaximumDelay = redelivery.NoMaximumDelay

// A RedeliveryPolicy says how often, and after which delay, a message whose
// processing failed is delivered again: ActiveMQ's, with the same arithmetic, which
// is also the broker's. Start from DefaultRedeliveryPolicy; the zero value never
// redelivers. Delays are whole milliseconds. A policy is a value: what it was given
// to keeps a copy of its own (R-EDGE-24).
type RedeliveryPolicy struct {
	MaximumRedeliveries      int           // after the first delivery; Unlimited: no end; default 6
	InitialRedeliveryDelay   time.Duration // before redelivery 1, never capped nor spread; default 1 s
	RedeliveryDelay          time.Duration // before the later ones, and the base of growth after a delay of 0; default 1 s
	MaximumRedeliveryDelay   time.Duration // cap on exponential growth; default NoMaximumDelay
	UseExponentialBackOff    bool          // multiply the delay before; default false
	BackOffMultiplier        float64       // used only above 1; default 5
	UseCollisionAvoidance    bool          // spread the delay by chance; default false
	CollisionAvoidanceFactor float64       // the spread, as a part of the delay; default 0.15
	PreDispatchCheck         bool          // in transacted sessions, give up what the broker says is past the limit, before delivery (R-CLIENT-30); default true
}

// DefaultRedeliveryPolicy is ActiveMQ's: six redeliveries, one second apart.
func DefaultRedeliveryPolicy() RedeliveryPolicy { return publicPolicy(ptr(redelivery.DefaultPolicy())) }

// Delay is the time before redelivery k, 1 being the first; 0 or less: at once.
// Collision avoidance is left out.
func (p RedeliveryPolicy) Delay(k int) time.Duration { return p.internal().Delay(k, nil) }

// String is the policy as a Java client prints it in a poison cause (R-CLIENT-49).
func (p RedeliveryPolicy) String() string { return p.internal().String() }

func (p RedeliveryPolicy) internal() *redelivery.Policy {
	return &redelivery.Policy{
		MaximumRedeliveries:      p.MaximumRedeliveries,
		InitialRedeliveryDelay:   p.InitialRedeliveryDelay,
		RedeliveryDelay:          p.RedeliveryDelay,
		MaximumRedeliveryDelay:   p.MaximumRedeliveryDelay,
		UseExponentialBackOff:    p.UseExponentialBackOff,
		BackOffMultiplier:        p.BackOffMultiplier,
		UseCollisionAvoidance:    p.UseCollisionAvoidance,
		CollisionAvoidanceFactor: p.CollisionAvoidanceFactor,
		PreDispatchCheck:         p.PreDispatchCheck,
	}
}

func publicPolicy(p *redelivery.Policy) RedeliveryPolicy {
	return RedeliveryPolicy{
		MaximumRedeliveries:      p.MaximumRedeliveries,
		InitialRedeliveryDelay:   p.InitialRedeliveryDelay,
		RedeliveryDelay:          p.RedeliveryDelay,
		MaximumRedeliveryDelay:   p.MaximumRedeliveryDelay,
		UseExponentialBackOff:    p.UseExponentialBackOff,
		BackOffMultiplier:        p.BackOffMultiplier,
		UseCollisionAvoidance:    p.UseCollisionAvoidance,
		CollisionAvoidanceFactor: p.CollisionAvoidanceFactor,
		PreDispatchCheck:         p.PreDispatchCheck,
	}
}

func ptr[T any](v T) *T { return &v }

// RedeliveryPolicies are policies by destination, wildcards included: ActiveMQ's
// RedeliveryPolicyMap, with its precedence of overlapping patterns made
// deterministic (R-MAP-13). The zero value is empty. Not safe for use by several
// goroutines at a time; whatever is given one copies it.
type RedeliveryPolicies struct {
	entries  []policyEntry
	fallback *RedeliveryPolicy
}

type policyEntry struct {
	key    message.Destination
	policy RedeliveryPolicy
}

// Put adds the policy of a destination, which may be a pattern or a list.
func (m *RedeliveryPolicies) Put(d Destination, p RedeliveryPolicy) {
	m.entries = append(m.entries, policyEntry{d.d, p})
}

// SetDefault sets the policy where no entry matches. Without one it is the
// broker's wish, and where the broker has none, DefaultRedeliveryPolicy.
func (m *RedeliveryPolicies) SetDefault(p RedeliveryPolicy) { m.fallback = &p }

func (m *RedeliveryPolicies) clone() RedeliveryPolicies {
	c := RedeliveryPolicies{entries: append([]policyEntry(nil), m.entries...)}
	if m.fallback != nil {
		c.fallback = ptr(*m.fallback)
	}
	return c
}

// A policySet is what holds for a connection's consumers at one time. It does not
// change. The order: the application's entries, its default, what the broker
// wishes, ActiveMQ's default.
type policySet struct {
	own    redelivery.Map[*redelivery.Policy]
	wishes *redelivery.WishMap // nil: none
}

func newPolicySet(own RedeliveryPolicies, wishes *redelivery.WishMap) *policySet {
	s := &policySet{wishes: wishes}
	for _, e := range own.entries {
		s.own.Put(e.key, e.policy.internal().ForDestination(e.key))
	}
	if own.fallback != nil {
		s.own.SetDefault(own.fallback.internal())
	}
	return s
}

// lookup finds the policy for the messages of a destination: the one each message
// came from, also where its consumer's is a pattern or a list (R-MAP-14, better).
func (s *policySet) lookup(d message.Destination) *redelivery.Policy {
	if p, ok := s.own.Lookup(d); ok {
		return p
	}
	if p := s.wishes.Lookup(d); p != nil {
		return p
	}
	return ptr(redelivery.DefaultPolicy())
}

// ParseRedeliveryPolicy reads "maximumRedeliveries=3&initialRedeliveryDelay=100" with the
// names that a URL has after "jms.redeliveryPolicy."; what is not there has ActiveMQ's
// default, what is unknown is ErrInvalidOption.
func ParseRedeliveryPolicy(s string) (RedeliveryPolicy, error) {
	p := DefaultRedeliveryPolicy()
	options, err := parseOptions(s)
	if err != nil {
		return p, err
	}
	return p, apply("redelivery policy", options, policySetters(&p))
}
