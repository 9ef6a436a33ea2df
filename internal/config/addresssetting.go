package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// AddressSettings are the address-settings of a HornetQ or Artemis file. Unlike
// ActiveMQ's policy entries they merge: each element comes from the most specific
// pattern that gives it (R-HQ-19). They do not change, so that a look-up never
// spoils the next one, as it does in HornetQ (R-HQ-23, R-HQ-150).
type AddressSettings struct {
	product product
	syntax  wildcardSyntax
	// version is the version of HornetQ that was named; empty: none was, and 2.4
	// holds.
	version string
	// as23 takes HornetQ 2.3's default for max-redelivery-delay (R-HQ-32).
	as23 bool
	// drop is the products' outcome for dead letters without an address: they are
	// lost (R-HQ-44). Else they are kept in ActiveMQ.DLQ (R-HQ-140).
	drop bool
	// temporary is Artemis' temporary-queue-namespace; empty: none (R-HQ-04).
	temporary string
	settings  []addressSetting
	// bound are the addresses of the file that stand for another destination than
	// the queue of their name; addressOf are queues whose address has another name
	// than theirs.
	bound     map[string]message.Destination
	addressOf map[message.Destination]string
	// topics are the virtual topics: their queues have the topic's address.
	topics []topicQueues
}

// An addressSetting is one address-setting of the file.
type addressSetting struct {
	pattern addressPattern
	values  map[string]Setting // by element
	source  string
	place   *element // while the file is read
}

// listed are the settings of one address-setting.
func (a *addressSetting) listed() []Setting { return inOrder(a.values) }

// inOrder lists settings by settingOrder.
func inOrder(values map[string]Setting) []Setting {
	var list []Setting
	for _, name := range settingOrder {
		if v, ok := values[name]; ok {
			list = append(list, v)
		}
	}
	return list
}

// settingOrder is the order in which the settings of an Effective are listed.
var settingOrder = []string{
	setAttempts, setDelay, setMultiplier, setCollision, setMaxDelay,
	setDeadLetterAddress, setAutoDeadLetter, setDeadLetterPrefix, setDeadLetterSuffix, setNoRoute,
	setExpiryAddress, setAutoExpiry, setExpiryPrefix, setExpirySuffix,
	setNoExpiry, setExpiryDelay, setMinExpiryDelay, setMaxExpiryDelay,
	setExclusive, setGroupRebalance, setMaxConsumers, setConsumersBefore, setDelayBefore, setRing, setPurge, setLastValueQueue, setLastValue, setLastValueKey, setAutoCreateQueues, setAutoCreateAddresses,
	setMaxBytes, setMaxMessages, setFullPolicy,
	setSlowRate, setSlowUnit, setSlowPeriod, setSlowPolicy,
}

// Prefixes of HornetQ's addresses of JMS destinations (R-HQ-02).
const (
	jmsQueuePrefix     = "jms.queue."
	jmsTopicPrefix     = "jms.topic."
	jmsTempQueuePrefix = "jms.tempqueue."
	jmsTempTopicPrefix = "jms.temptopic."
)

// Address gives the address of a destination: the name under which settings are
// looked up (R-HQ-02, R-HQ-04).
func (s *AddressSettings) address(d message.Destination) string {
	if a, ok := s.addressOf[d]; ok {
		return a
	}
	if d.Kind == message.Queue {
		for _, t := range s.topics {
			if topic, ok := t.topicOf(d.Name); ok {
				return s.address(message.Destination{Kind: message.Topic, Name: topic})
			}
		}
	}
	if s.product == artemis {
		if d.IsTemporary() && s.temporary != "" {
			return s.temporary + s.syntax.delimiter + d.Name
		}
		return d.Name
	}
	switch d.Kind {
	case message.Topic:
		return jmsTopicPrefix + d.Name
	case message.TempQueue:
		return jmsTempQueuePrefix + d.Name
	case message.TempTopic:
		return jmsTempTopicPrefix + d.Name
	}
	return jmsQueuePrefix + d.Name
}

// destination gives the destination that stands for an address, where dead
// letters can go.
func (s *AddressSettings) destination(address string) message.Destination {
	if d, ok := s.bound[address]; ok {
		return d
	}
	if s.product == hornetQ {
		if name, ok := strings.CutPrefix(address, jmsTopicPrefix); ok {
			return message.Destination{Kind: message.Topic, Name: name}
		}
		address = strings.TrimPrefix(address, jmsQueuePrefix)
	}
	return message.Destination{Kind: message.Queue, Name: address}
}

// merged are the settings that hold for one address.
type merged struct {
	values map[string]Setting
	// own are the values that a pattern gives for this address alone.
	own map[string]bool
	// first is the most specific setting that matches; nil: none does.
	first *addressSetting
}

// merge collects what holds for an address (R-HQ-16, R-HQ-19).
func (s *AddressSettings) merge(address string) merged {
	words := strings.Split(address, s.syntax.delimiter)
	var fit []*addressSetting
	for i := range s.settings {
		if s.settings[i].pattern.matches(address, words) {
			fit = append(fit, &s.settings[i])
		}
	}
	slices.SortStableFunc(fit, func(a, b *addressSetting) int { return a.pattern.compare(&b.pattern) })
	m := merged{values: map[string]Setting{}, own: map[string]bool{}}
	for i, a := range fit {
		if i == 0 {
			m.first = a
		}
		for name, v := range a.values {
			if _, given := m.values[name]; given {
				continue
			}
			if i > 0 && s.product == hornetQ && (name == setExpiryDelay || name == setLastValueQueue) {
				continue // never inherited (R-HQ-24, R-HQ-26)
			}
			m.values[name] = v
			m.own[name] = a.pattern.exact()
		}
	}
	return m
}

// text gives a value; empty where it is not set.
func (m merged) text(name string) string { return m.values[name].Value }

// int gives a number, which the reader of the file has checked.
func (m merged) int(name string, def int64) int64 {
	v, ok := m.values[name]
	if !ok {
		return def
	}
	n, err := parseInt(v.Value, -1<<63, 1<<63-1)
	if err != nil {
		return def
	}
	return n
}

// bool gives a truth value; false where it is not set.
func (m merged) bool(name string) bool {
	b, err := parseBool(m.text(name))
	return err == nil && b
}

// denies reports whether a truth value is set, and false.
func (m merged) denies(name string) bool {
	b, err := parseBool(m.text(name))
	return err == nil && !b
}

// float gives a number with a fraction.
func (m merged) float(name string, def float64) float64 {
	v, ok := m.values[name]
	if !ok {
		return def
	}
	f, err := parseDecimal(v.Value)
	if err != nil {
		return def
	}
	return f
}

// policy tells what holds for a destination.
func (s *AddressSettings) policy(d message.Destination) Effective {
	m := s.mergeFor(d)
	e := Effective{Found: m.first != nil}
	e.Destination = d
	e.PrioritizedMessages = true // R-HQ-90
	e.Rules.Name = "address-setting by default"
	if m.first != nil {
		e.Rules.Name, e.Rules.Source = "address-setting "+m.first.pattern.text, m.first.source
		e.Source, e.Destination.Name = m.first.source, m.first.pattern.text
	}
	e.Settings = inOrder(m.values)
	p := s.redelivery(m)
	p.Destination = d
	p.Name, p.Source = e.Rules.Name, e.Rules.Source
	e.Rules.Redelivery = &p
	e.Rules.RedeliveryNamed = m.own[setAttempts] || m.own[setDelay]
	e.Rules.DeadLetter = s.deadLetters(d, m)
	e.Rules.StrategyNamed = m.own[setDeadLetterAddress] && !s.returns(d, setDeadLetterAddress)
	e.Rules.Expiry = s.expired(d, m)
	e.Rules.DeadLetterUnrouted = m.bool(setNoRoute)
	e.Rules.KeepUnroutedDead = !s.drop
	e.Rules.DeadLetterNonDurable = d.IsTopic() && !d.IsAdvisory() // every subscription is a queue (R-HQ-02)
	e.Rules.Origins = redelivery.HornetQOrigins
	if s.product == artemis {
		e.Rules.Origins = redelivery.ArtemisOrigins
	}
	e.Lifetime = lifetime(m)
	s.ofQueue(d, m, &e.PolicyEntry)
	e.Limits = limitsOf(m)
	e.SlowConsumers = slowConsumersOf(m)
	e.Advisories.ForSlowConsumers = e.SlowConsumers != nil // what a notification is there
	return e
}

// ofQueue sets what holds for a queue as such: its consumers, and what it keeps.
func (s *AddressSettings) ofQueue(d message.Destination, m merged, p *PolicyEntry) {
	p.AllConsumersExclusive = m.bool(setExclusive)
	p.MaxConsumers = int(min(max(m.int(setMaxConsumers, 0), 0), math.MaxInt32))
	p.RingSize = max(m.int(setRing, 0), 0)
	p.PurgeOnNoConsumers = m.bool(setPurge)
	p.GroupRebalance = m.bool(setGroupRebalance)
	p.LastValueKey = m.text(setLastValueKey)
	if p.LastValueKey == "" && (m.bool(setLastValue) || m.bool(setLastValueQueue)) {
		p.LastValueKey = lastValueProperties[s.product]
	}
	p.OnlyDeclared = m.denies(setAutoCreateAddresses) || d.IsQueue() && m.denies(setAutoCreateQueues)
	n, wait := m.int(setConsumersBefore, 0), m.int(setDelayBefore, -1)
	if n <= 0 || wait == 0 {
		return // nothing to wait for: a time alone is none
	}
	p.ConsumersBeforeDispatch, p.TimeBeforeDispatch = int(min(n, math.MaxInt32)), WithoutEnd
	if wait > 0 {
		p.TimeBeforeDispatch = redelivery.FromMillis(wait)
	}
}

// lastValueProperties are the properties that a last-value queue looks at where
// nothing else is said.
var lastValueProperties = map[product]string{hornetQ: "_HQ_LVQ_NAME", artemis: "_AMQ_LVQ_NAME"}

// deliverAtProperties are the properties with which a client says when a message is to
// be delivered (R-HQ-93).
var deliverAtProperties = map[product]string{hornetQ: "_HQ_SCHED_DELIVERY", artemis: "_AMQ_SCHED_DELIVERY"}

// DeliverAt is the property with which clients say when a message is to be delivered, in
// milliseconds since 1970, where the file is HornetQ's or Artemis'; else empty.
func (c *Config) DeliverAt() string {
	if c.Addresses == nil {
		return ""
	}
	return deliverAtProperties[c.Addresses.product]
}

// mergeFor collects what holds for a destination: what its address has, and what a
// queue of another name than its address has of its own.
func (s *AddressSettings) mergeFor(d message.Destination) merged {
	m := s.merge(s.address(d))
	for _, v := range s.ownOf(d) {
		m.values[v.Name], m.own[v.Name] = v, true
	}
	return m
}

// ownOf are the settings of a queue of another name than its address.
func (s *AddressSettings) ownOf(d message.Destination) []Setting {
	address, ok := s.addressOf[d]
	if !ok {
		return nil
	}
	if i := s.exactly(address + fqqnSeparator + d.Name); i >= 0 {
		return s.settings[i].listed()
	}
	return nil
}

// exactly finds the setting for a name that is no pattern; -1: there is none.
func (s *AddressSettings) exactly(name string) int {
	return slices.IndexFunc(s.settings, func(a addressSetting) bool { return a.pattern.exact() && a.pattern.text == name })
}

// redelivery makes the policy of what holds for an address.
func (s *AddressSettings) redelivery(m merged) redelivery.Policy {
	p := redelivery.HornetQPolicy()
	p.MaximumRedeliveries = redelivery.MaximumRedeliveriesOf(int(min(max(m.int(setAttempts, redelivery.DefaultMaxDeliveryAttempts), -1), maxAttempts)))
	delay := redelivery.FromMillis(m.int(setDelay, 0))
	p.InitialRedeliveryDelay, p.RedeliveryDelay = delay, delay
	p.BackOffMultiplier = m.float(setMultiplier, 1)
	p.UseExponentialBackOff = p.BackOffMultiplier != 1
	p.CollisionAvoidanceFactor = m.float(setCollision, 0)
	p.UseCollisionAvoidance = p.CollisionAvoidanceFactor > 0
	p.MaximumRedeliveryDelay = redelivery.DerivedMaximumDelay(delay, s.as23)
	if _, ok := m.values[setMaxDelay]; ok {
		p.MaximumRedeliveryDelay = redelivery.FromMillis(max(0, m.int(setMaxDelay, 0))) // -1 is at once, and no NoMaximumDelay (R-HQ-35)
	}
	return p
}

// maxAttempts is the largest max-delivery-attempts; the products have 32 bits.
const maxAttempts = 1<<31 - 1

// deadLetters makes the strategy for messages that fail (R-HQ-44 to R-HQ-52).
func (s *AddressSettings) deadLetters(d message.Destination, m merged) redelivery.DeadLetterStrategy {
	address := m.text(setDeadLetterAddress)
	if address == "" && s.drop {
		return redelivery.DiscardingStrategy()
	}
	strategy := redelivery.SharedStrategy()
	if address != "" {
		strategy.DeadLetterQueue = s.destination(address)
		if m.bool(setAutoDeadLetter) {
			strategy.DeadLetterQueue = s.resource(d, m, setDeadLetterPrefix, "DLQ.", setDeadLetterSuffix)
		}
	}
	strategy.ProcessNonPersistent = true // R-HQ-49
	return strategy
}

// expired makes the strategy for messages whose time has passed (R-HQ-57 to
// R-HQ-62). One that would lead round in a circle leaves them where they are.
func (s *AddressSettings) expired(d message.Destination, m merged) redelivery.DeadLetterStrategy {
	address := m.text(setExpiryAddress)
	if address == "" {
		return redelivery.DiscardingStrategy()
	}
	strategy := redelivery.SharedStrategy()
	strategy.ProcessNonPersistent = true
	switch {
	case s.returns(d, setExpiryAddress):
		strategy.DeadLetterQueue = d
	case m.bool(setAutoExpiry):
		strategy.DeadLetterQueue = s.resource(d, m, setExpiryPrefix, "EXP.", setExpirySuffix)
	default:
		strategy.DeadLetterQueue = s.destination(address)
	}
	return strategy
}

// resource is the queue that is made for the dead letters of one address
// (R-HQ-52): by its name, which all subscriptions of a topic share. Such a queue
// has no other for its own.
func (s *AddressSettings) resource(d message.Destination, m merged, prefixName, def, suffixName string) message.Destination {
	prefix, suffix := def, m.text(suffixName)
	if v, ok := m.values[prefixName]; ok {
		prefix = v.Value
	}
	name := s.address(d)
	if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) && prefix+suffix != "" {
		return d
	}
	return message.Destination{Kind: message.Queue, Name: prefix + name + suffix}
}

// returns reports whether messages of d that move on from queue to queue would
// come back to d (R-HQ-112, R-HQ-113). Dead letters move on where their queue is
// named by a setting of its own, what has expired where it is given a time again.
func (s *AddressSettings) returns(d message.Destination, element string) bool {
	at := d
	for i := range min(len(s.settings)+1, maxMoves) {
		m := s.merge(s.address(at))
		switch {
		case m.text(element) == "":
			return false
		case i > 0 && element == setDeadLetterAddress && !m.own[element]:
			return false
		case element == setExpiryAddress && lifetime(m) == nil:
			return false
		}
		next := s.destination(m.text(element))
		if next == at { // it stays there in any case
			return false
		}
		if next == d {
			return true
		}
		at = next
	}
	return false
}

// maxMoves bounds how far the way of a dead letter is looked along.
const maxMoves = 32

// lifetime makes the bounds of a message's life; nil: there are none (R-HQ-61).
func lifetime(m merged) *redelivery.Lifetime {
	l := redelivery.Lifetime{Never: m.bool(setNoExpiry), Delay: m.int(setExpiryDelay, -1),
		Least: m.int(setMinExpiryDelay, -1), Most: m.int(setMaxExpiryDelay, -1)}
	if !l.Never && l.Delay < 0 && l.Least < 0 && l.Most < 0 {
		return nil
	}
	return &l
}

// Values of address-full-policy.
const (
	fullBlock = "BLOCK"
	fullFail  = "FAIL"
	fullDrop  = "DROP"
	fullPage  = "PAGE"
)

// limitsOf are the limits of an address; nil: what does not fit is paged, which is that
// it waits in the store. An address counts all that its queues have (durable
// subscriptions included).
func limitsOf(m merged) *Limits {
	l := DefaultLimits()
	l.DurableSubscriptions = true
	l.MaxBytes, _ = addressSize(m.text(setMaxBytes))
	n, _ := addressSize(m.text(setMaxMessages))
	l.MaxMessages = int(min(n, math.MaxInt32))
	switch m.text(setFullPolicy) {
	case fullBlock:
	case fullFail:
		l.OnFull = Fail
	case fullDrop:
		l.OnFull = Drop
	default:
		return nil
	}
	if l.MaxBytes == 0 && l.MaxMessages == 0 {
		return nil
	}
	return l
}

// limits reports whether a setting stops producers, or drops what they send.
func (s *AddressSettings) limits() bool {
	return slices.ContainsFunc(s.settings, func(a addressSetting) bool {
		v, given := a.values[setFullPolicy]
		return given && v.Value != fullPage
	})
}

// addressSize reads a limit of an address; 0: there is none.
func addressSize(s string) (int64, error) {
	if s == "" || strings.HasPrefix(strings.TrimSpace(s), "-") {
		return 0, nil
	}
	return parseSize(strings.ReplaceAll(strings.ToLower(s), "ib", "b"))
}

// Equal reports whether two files have the same settings, in the same places.
func (s *AddressSettings) Equal(o *AddressSettings) bool { return reflect.DeepEqual(s, o) }

// add puts a setting to the others. Of two with one match Artemis keeps the
// first, HornetQ the last (R-HQ-11); the one that is not used is returned.
func (s *AddressSettings) add(a addressSetting) (unused *addressSetting) {
	i := slices.IndexFunc(s.settings, func(b addressSetting) bool {
		return b.pattern.text == a.pattern.text && b.pattern.literal == a.pattern.literal
	})
	switch {
	case i < 0:
		s.settings = append(s.settings, a)
		return nil
	case s.product == artemis:
		return &a
	}
	old := s.settings[i]
	s.settings[i] = a
	return &old
}

// gives reports whether any setting has one of these elements, so that nobody
// need look where there are none.
func (s *AddressSettings) gives(names ...string) bool {
	return slices.ContainsFunc(s.settings, func(a addressSetting) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := a.values[n]; return ok })
	})
}

// parseDecimal reads a number with a fraction, which must be one to reckon with.
func parseDecimal(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return f, nil
}

// A SettingPattern is one address-setting, as people ask about it.
type SettingPattern struct {
	// Match is its pattern, Source its "FILE:LINE".
	Match, Source string
	// Sample is a destination that it fits, though a narrower one may, too.
	Sample message.Destination
}

// Patterns lists all settings, in the order of the file.
func (s *AddressSettings) Patterns() []SettingPattern {
	all := make([]SettingPattern, len(s.settings))
	for i := range s.settings {
		all[i] = s.told(&s.settings[i])
	}
	return all
}

// Matching lists the settings that are merged for d, the most specific first.
func (s *AddressSettings) Matching(d message.Destination) []SettingPattern {
	address := s.address(d)
	var fit []*addressSetting
	for i := range s.settings {
		if s.settings[i].pattern.matches(address, strings.Split(address, s.syntax.delimiter)) {
			fit = append(fit, &s.settings[i])
		}
	}
	slices.SortStableFunc(fit, func(a, b *addressSetting) int { return a.pattern.compare(&b.pattern) })
	all := make([]SettingPattern, len(fit))
	for i, a := range fit {
		all[i] = s.told(a)
	}
	return all
}

func (s *AddressSettings) told(a *addressSetting) SettingPattern {
	p := SettingPattern{Match: a.pattern.text, Source: a.source, Sample: message.Destination{Kind: message.Queue, Name: a.pattern.text}}
	if _, queue, ok := strings.Cut(a.pattern.text, fqqnSeparator); ok {
		p.Sample.Name = queue
	}
	if a.pattern.exact() && s.product == artemis {
		return p
	}
	words := slices.Clone(a.pattern.words)
	for i, w := range words {
		if w == s.syntax.singleWord {
			words[i] = "x"
		}
	}
	if a.pattern.tail {
		words = append(words, "x")
	}
	name := strings.Join(words, s.syntax.delimiter)
	p.Sample.Name = name
	if s.product == hornetQ {
		for _, k := range []struct {
			prefix string
			kind   message.DestinationKind
		}{{jmsQueuePrefix, message.Queue}, {jmsTopicPrefix, message.Topic}, {jmsTempQueuePrefix, message.TempQueue}, {jmsTempTopicPrefix, message.TempTopic}} {
			if rest, ok := strings.CutPrefix(name, k.prefix); ok && rest != "" {
				p.Sample = message.Destination{Kind: k.kind, Name: rest}
			}
		}
	}
	return p
}

// KeepsWithoutAddress reports whether dead letters without a dead-letter-address are
// kept in ActiveMQ.DLQ, and not dropped as in the products (R-HQ-140).
func (s *AddressSettings) KeepsWithoutAddress() bool { return !s.drop }
