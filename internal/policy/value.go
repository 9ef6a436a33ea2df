package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Value is one thing that holds for a destination.
type Value struct {
	// Name is the path of its key in our own YAML.
	Name string `json:"name"`
	// Value is in the way our own YAML writes it.
	Value string `json:"value"`
	// Source is the "file:line" that decided it, or Default.
	Source string `json:"source"`
	// Written is the word of the file's dialect and its value, where they differ.
	Written string `json:"written,omitempty"`
}

// Default is the source of a value that no line of a file gives.
const Default = "default"

// A field is one row of what can hold for a destination.
type field struct {
	name string
	// words are what the dialects call it, as the names of settings.
	words []string
	// applies says whether it means something; nil: always.
	applies func(*config.Effective) bool
	text    func(*config.Effective) string
}

// fields are all there are, in the order in which they are shown.
var fields = slices.Concat(entryFields, limitFields, redeliveryFields, strategyFields, advisoryFields())

var entryFields = []field{
	{name: "prioritizedMessages", text: func(e *config.Effective) string { return strconv.FormatBool(e.PrioritizedMessages) }},
	{name: "persistJMSRedelivered", words: []string{"persist-delivery-count-before-delivery"}, text: func(e *config.Effective) string {
		if e.PersistJMSRedelivered == nil {
			return "as handOutMarks"
		}
		return strconv.FormatBool(*e.PersistJMSRedelivered)
	}},
	windowField("queuePrefetch", func(p *config.Prefetch) *int { return p.Queue }),
	windowField("queueBrowserPrefetch", func(p *config.Prefetch) *int { return p.QueueBrowser }),
	windowField("topicPrefetch", func(p *config.Prefetch) *int { return p.Topic }),
	windowField("durableTopicPrefetch", func(p *config.Prefetch) *int { return p.DurableTopic }),
	{name: "allConsumersExclusive", words: []string{"allConsumersExclusiveByDefault", "default-exclusive-queue"}, applies: func(e *config.Effective) bool { return e.AllConsumersExclusive },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.AllConsumersExclusive) }},
	{name: "strictOrderDispatch", applies: func(e *config.Effective) bool { return e.StrictOrderDispatch },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.StrictOrderDispatch) }},
	backlogField("limit", func(b *config.Backlog) string { return strconv.Itoa(b.Limit) }, "pendingMessageLimitStrategy"),
	backlogField("windows", func(b *config.Backlog) string { return number(b.Windows) }, "multiplier"),
	backlogField("evict", func(b *config.Backlog) string { return string(b.Evict) }, "messageEvictionStrategy"),
	backlogField("property", func(b *config.Backlog) string { return orEmpty(b.Property) }, "propertyName"),
	slowField("maxSlowDuration", func(s *config.SlowConsumers) string { return duration(s.MaxDuration) }, "slowConsumerStrategy"),
	slowField("maxSlowCount", func(s *config.SlowConsumers) string { return strconv.Itoa(s.MaxCount) }),
	slowField("checkPeriod", func(s *config.SlowConsumers) string { return duration(s.CheckPeriod) }, "slow-consumer-check-period"),
	slowField("maxTimeSinceLastAck", func(s *config.SlowConsumers) string { return duration(s.MaxTimeSinceLastAck) }),
	slowField("abortConnection", func(s *config.SlowConsumers) string { return strconv.FormatBool(s.AbortConnection) }),
	slowField("minRate", func(s *config.SlowConsumers) string { return number(s.MinRate) }, "slow-consumer-threshold", "slow-consumer-threshold-measurement-unit"),
	slowField("notify", func(s *config.SlowConsumers) string { return strconv.FormatBool(s.Notify) }, "slow-consumer-policy"),
	{name: "ackTimeout", applies: func(e *config.Effective) bool { return e.AckTimeout > 0 },
		text: func(e *config.Effective) string { return e.AckTimeout.String() }},
	{name: "duplicates", text: func(e *config.Effective) string { return duplicates[e.Rules.Duplicates] }},
	{name: "dropWithoutPolicy", words: []string{"fallbackToDeadLetter"}, applies: func(e *config.Effective) bool { return !hasPolicy(e) },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.Rules.DropWithoutPolicy) }},
	{name: "dropAtLimit", words: []string{"sendToDlqIfMaxRetriesExceeded"}, applies: hasPolicy,
		text: func(e *config.Effective) string { return strconv.FormatBool(e.Rules.DropAtLimit) }},
	{name: "deadLetterNonDurable", applies: func(e *config.Effective) bool { return e.Rules.DeadLetterNonDurable },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.Rules.DeadLetterNonDurable) }},
	{name: "dropDeadLetters", words: []string{"dropAll", "dropOnly", "discardingDLQBrokerPlugin"},
		applies: func(e *config.Effective) bool { return e.Rules.Drop != redelivery.DropNever },
		text:    func(e *config.Effective) string { return drops[e.Rules.Drop] }},
	{name: "expiry", words: []string{"expiry-address"}, text: func(e *config.Effective) string { return expiryText(e) }},
	{name: "deadLetterUnrouted", words: []string{"send-to-dla-on-no-route"}, text: func(e *config.Effective) string { return strconv.FormatBool(e.Rules.DeadLetterUnrouted) }},
	{name: "keepUnroutedDead", text: func(e *config.Effective) string { return strconv.FormatBool(e.Rules.KeepUnroutedDead) }},
	{name: "origins", text: func(e *config.Effective) string { return origins[e.Rules.Origins] }},
	{name: "consumersBeforeDispatchStarts", words: []string{"default-consumers-before-dispatch"}, applies: func(e *config.Effective) bool { return e.ConsumersBeforeDispatch != 0 },
		text: func(e *config.Effective) string { return strconv.Itoa(e.ConsumersBeforeDispatch) }},
	{name: "timeBeforeDispatchStarts", words: []string{"default-delay-before-dispatch"}, applies: func(e *config.Effective) bool { return e.TimeBeforeDispatch != 0 },
		text: func(e *config.Effective) string {
			if e.TimeBeforeDispatch == config.WithoutEnd {
				return "without end"
			}
			return duration(e.TimeBeforeDispatch)
		}},
	{name: "maxConsumers", words: []string{"default-max-consumers"}, applies: func(e *config.Effective) bool { return e.MaxConsumers != 0 },
		text: func(e *config.Effective) string { return strconv.Itoa(e.MaxConsumers) }},
	{name: "ringSize", words: []string{"default-ring-size"}, applies: func(e *config.Effective) bool { return e.RingSize != 0 },
		text: func(e *config.Effective) string { return strconv.FormatInt(e.RingSize, 10) }},
	{name: "purgeOnNoConsumers", words: []string{"default-purge-on-no-consumers"}, applies: func(e *config.Effective) bool { return e.PurgeOnNoConsumers },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.PurgeOnNoConsumers) }},
	{name: "maxDestinations", applies: func(e *config.Effective) bool { return e.MaxDestinations > 0 },
		text: func(e *config.Effective) string { return strconv.Itoa(e.MaxDestinations) }},
	{name: "groupRebalance", words: []string{"default-group-rebalance"}, applies: func(e *config.Effective) bool { return e.GroupRebalance },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.GroupRebalance) }},
	{name: "lastValueKey", words: []string{"default-last-value-key", "default-last-value-queue", "last-value-queue"}, applies: func(e *config.Effective) bool { return e.LastValueKey != "" },
		text: func(e *config.Effective) string { return e.LastValueKey }},
	{name: "onlyDeclared", words: []string{"auto-create-queues", "auto-create-addresses"}, applies: func(e *config.Effective) bool { return e.OnlyDeclared },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.OnlyDeclared) }},
	{name: "strictTopicOrder", words: []string{"strictOrderDispatchPolicy"}, applies: func(e *config.Effective) bool { return e.StrictTopicOrder },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.StrictTopicOrder) }},
	{name: "alwaysRetroactive", applies: func(e *config.Effective) bool { return e.AlwaysRetroactive },
		text: func(e *config.Effective) string { return strconv.FormatBool(e.AlwaysRetroactive) }},
	{name: "recovery", applies: func(e *config.Effective) bool { return e.Recovery != nil },
		text: func(e *config.Effective) string {
			text := fmt.Sprintf("count %d, bytes %d, age %s", e.Recovery.Count, e.Recovery.Bytes, duration(e.Recovery.Age))
			if e.Recovery.Retained {
				text += ", retained"
			}
			return text
		}},
	lifetimeField("never", func(l *redelivery.Lifetime) string { return strconv.FormatBool(l.Never) }, "no-expiry"),
	lifetimeField("default", func(l *redelivery.Lifetime) string { return lifetimeText(l.Delay) }, "expiry-delay"),
	lifetimeField("min", func(l *redelivery.Lifetime) string { return lifetimeText(l.Least) }, "min-expiry-delay"),
	lifetimeField("max", func(l *redelivery.Lifetime) string { return lifetimeText(l.Most) }, "max-expiry-delay"),
}

// limitFields are the limits of a destination, where it has any.
var limitFields = []field{
	limitField("maxBytes", func(l *config.Limits) string { return strconv.FormatInt(l.MaxBytes, 10) }, "memoryLimit", "max-size-bytes"),
	limitField("maxMessages", func(l *config.Limits) string { return strconv.Itoa(l.MaxMessages) }, "max-size-messages"),
	limitField("queues", func(l *config.Limits) string { return strconv.FormatBool(l.Queues) }, "pendingQueuePolicy"),
	limitField("durableSubscriptions", func(l *config.Limits) string { return strconv.FormatBool(l.DurableSubscriptions) }, "pendingDurableSubscriberPolicy"),
	limitField("onFull", func(l *config.Limits) string { return cmp.Or(string(l.OnFull), "block, for the disk as store.onFull") },
		"sendFailIfNoSpace", "address-full-policy"),
	limitField("failAfter", func(l *config.Limits) string { return duration(l.FailAfter) }, "sendFailIfNoSpaceAfterTimeout"),
	limitField("storeHighWaterMark", func(l *config.Limits) string { return strconv.FormatFloat(l.StoreHighWaterMark, 'f', -1, 64) }, "storeUsageHighWaterMark"),
	limitField("warnInterval", func(l *config.Limits) string { return duration(l.WarnInterval) }, "blockedProducerWarningInterval"),
}

func limitField(name string, text func(*config.Limits) string, words ...string) field {
	return field{name: "limits." + name, words: words, applies: func(e *config.Effective) bool { return e.Limits != nil },
		text: func(e *config.Effective) string { return text(e.Limits) }}
}

var origins = map[redelivery.Origins]string{redelivery.NoOrigins: "none", redelivery.HornetQOrigins: "hornetq", redelivery.ArtemisOrigins: "artemis"}

// expiryText says where messages go whose time has passed, as our own YAML does.
func expiryText(e *config.Effective) string {
	switch e.Rules.Expiry.Kind {
	case redelivery.UnsetStrategy:
		return "dead-letter"
	case redelivery.Discarding:
		return "discard"
	}
	return e.Rules.Expiry.DeadLetterQueue.String()
}

func lifetimeField(name string, text func(*redelivery.Lifetime) string, words ...string) field {
	return field{name: "lifetime." + name, words: words, applies: func(e *config.Effective) bool { return e.Lifetime != nil },
		text: func(e *config.Effective) string { return text(e.Lifetime) }}
}

// lifetimeText writes one bound of a lifetime.
func lifetimeText(ms int64) string {
	if ms < 0 {
		return "none"
	}
	return duration(redelivery.FromMillis(ms))
}

// backlogField is one key of a backlog, shown where there is one.
func backlogField(name string, text func(*config.Backlog) string, words ...string) field {
	return field{name: "backlog." + name, words: words, applies: func(e *config.Effective) bool { return e.Backlog != nil },
		text: func(e *config.Effective) string { return text(e.Backlog) }}
}

// slowField is one limit of slow consumers, shown where there are any.
func slowField(name string, text func(*config.SlowConsumers) string, words ...string) field {
	return field{name: "slowConsumers." + name, words: words, applies: func(e *config.Effective) bool { return e.SlowConsumers != nil },
		text: func(e *config.Effective) string { return text(e.SlowConsumers) }}
}

// windowField is one of the prefetch values, shown where it is given.
func windowField(name string, of func(*config.Prefetch) *int) field {
	return field{name: name, applies: func(e *config.Effective) bool { return of(&e.Prefetch) != nil },
		text: func(e *config.Effective) string { return strconv.Itoa(*of(&e.Prefetch)) }}
}

// advisoryFields are what is told of a destination on request, where it is.
func advisoryFields() []field {
	var all []field
	for i, f := range new(config.Advisories).Flags() {
		value := func(e *config.Effective) bool { return *e.Advisories.Flags()[i].Value }
		all = append(all, field{name: f.Name, applies: value, text: func(e *config.Effective) string { return strconv.FormatBool(value(e)) }})
	}
	return all
}

var drops = map[redelivery.Drop]string{redelivery.DropNever: "never", redelivery.DropLast: "last", redelivery.DropFirst: "first"}

var duplicates = map[redelivery.DuplicateAction]string{
	redelivery.RequeueDuplicate: "requeue", redelivery.DeadLetterDuplicate: "dead-letter", redelivery.DiscardDuplicate: "discard",
}

var redeliveryFields = []field{
	policyField("arithmetic", arithmeticName),
	policyField("maximumRedeliveries", func(p *redelivery.Policy) string { return strconv.Itoa(p.MaximumRedeliveries) }, "max-delivery-attempts"),
	policyField("initialRedeliveryDelay", func(p *redelivery.Policy) string { return duration(p.InitialRedeliveryDelay) }).when(func(e *config.Effective) bool {
		return hasPolicy(e) && arithmeticName(e.Rules.Redelivery) == "activemq" // HornetQ has no first delay of its own
	}),
	policyField("redeliveryDelay", func(p *redelivery.Policy) string { return duration(p.RedeliveryDelay) }, "redelivery-delay"),
	policyField("useExponentialBackOff", func(p *redelivery.Policy) string { return strconv.FormatBool(p.UseExponentialBackOff) }, "redelivery-delay-multiplier"),
	policyField("backOffMultiplier", func(p *redelivery.Policy) string { return number(p.BackOffMultiplier) },
		"redelivery-delay-multiplier", "redelivery-multiplier"),
	policyField("maximumRedeliveryDelay", func(p *redelivery.Policy) string {
		if p.MaximumRedeliveryDelay == redelivery.NoMaximumDelay {
			return "none"
		}
		return duration(p.MaximumRedeliveryDelay)
	}, "max-redelivery-delay"),
	policyField("useCollisionAvoidance", func(p *redelivery.Policy) string { return strconv.FormatBool(p.UseCollisionAvoidance) }, "redelivery-collision-avoidance-factor"),
	policyField("collisionAvoidanceFactor", func(p *redelivery.Policy) string { return number(p.CollisionAvoidanceFactor) },
		"collisionAvoidancePercent", "redelivery-collision-avoidance-factor"),
}

// arithmeticName is the word of our own YAML for the way in which delays are
// reckoned.
func arithmeticName(p *redelivery.Policy) string {
	if _, ok := p.Arithmetic.(redelivery.HornetQ); ok {
		return "hornetq"
	}
	return "activemq"
}

// hasPolicy reports whether the broker has a policy of its own.
func hasPolicy(e *config.Effective) bool { return e.Rules.Redelivery != nil }

func policyField(name string, text func(*redelivery.Policy) string, words ...string) field {
	return field{name: "redelivery." + name, words: append(words, name), applies: hasPolicy,
		text: func(e *config.Effective) string { return text(e.Rules.Redelivery) }}
}

var strategyFields = []field{
	strategyField("kind", func(s *redelivery.DeadLetterStrategy) string { return s.Kind.String() },
		"deadLetterStrategy"),
	strategyField("deadLetterQueue", func(s *redelivery.DeadLetterStrategy) string { return s.DeadLetterQueue.String() },
		"dead-letter-address").of(redelivery.Shared),
	strategyField("queuePrefix", func(s *redelivery.DeadLetterStrategy) string { return orEmpty(s.QueuePrefix) },
		"dead-letter-queue-prefix").of(redelivery.Individual),
	strategyField("queueSuffix", func(s *redelivery.DeadLetterStrategy) string { return orEmpty(s.QueueSuffix) },
		"dead-letter-queue-suffix").of(redelivery.Individual),
	strategyField("topicPrefix", func(s *redelivery.DeadLetterStrategy) string { return orEmpty(s.TopicPrefix) }).of(redelivery.Individual),
	strategyField("topicSuffix", func(s *redelivery.DeadLetterStrategy) string { return orEmpty(s.TopicSuffix) }).of(redelivery.Individual),
	strategyField("useQueueForQueueMessages", func(s *redelivery.DeadLetterStrategy) string { return strconv.FormatBool(s.UseQueueForQueueMessages) }).of(redelivery.Individual),
	strategyField("useQueueForTopicMessages", func(s *redelivery.DeadLetterStrategy) string { return strconv.FormatBool(s.UseQueueForTopicMessages) }).of(redelivery.Individual),
	strategyField("destinationPerDurableSubscriber", func(s *redelivery.DeadLetterStrategy) string {
		return strconv.FormatBool(s.DestinationPerDurableSubscriber)
	}).of(redelivery.Individual),
	strategyField("processExpired", func(s *redelivery.DeadLetterStrategy) string { return strconv.FormatBool(s.ProcessExpired) }),
	strategyField("processNonPersistent", func(s *redelivery.DeadLetterStrategy) string { return strconv.FormatBool(s.ProcessNonPersistent) }),
	strategyField("expiration", func(s *redelivery.DeadLetterStrategy) string { return duration(s.Expiration) }),
	strategyField("discardOwn", func(s *redelivery.DeadLetterStrategy) string { return strconv.FormatBool(s.DiscardOwn) }),
}

// strategyOf is the strategy that holds: an entry without one has ActiveMQ's.
func strategyOf(e *config.Effective) *redelivery.DeadLetterStrategy {
	s := e.Rules.DeadLetter
	if s.Kind == redelivery.UnsetStrategy {
		s = redelivery.SharedStrategy()
	}
	return &s
}

func strategyField(name string, text func(*redelivery.DeadLetterStrategy) string, words ...string) field {
	return field{name: "deadLetterStrategy." + name, words: append(words, name),
		text: func(e *config.Effective) string { return text(strategyOf(e)) }}
}

// of restricts a field of a strategy to a kind.
func (f field) of(k redelivery.StrategyKind) field {
	return f.when(func(e *config.Effective) bool { return strategyOf(e).Kind == k })
}

// when restricts a field.
func (f field) when(applies func(*config.Effective) bool) field {
	f.applies = applies
	return f
}

// valuesOf lists what holds with the line that decided it, and the settings of the
// entry that are behind none of the values.
func valuesOf(e *config.Effective) (values []Value, others []config.Setting) {
	used := make([]bool, len(e.Settings))
	for _, f := range fields {
		v := Value{Name: f.name, Source: Default}
		s := settingOf(e, &f, used)
		if f.applies != nil && !f.applies(e) {
			continue
		}
		v.Value = f.text(e)
		if s != nil {
			v.Source = s.Source
			if s.Name != f.name && s.Name != lastOf(f.name) || !sameValue(s.Value, v.Value) {
				v.Written = fmt.Sprintf("%s=%q", s.Name, s.Value)
			}
		}
		values = append(values, v)
	}
	for i, s := range e.Settings {
		if !used[i] {
			others = append(others, s)
		}
	}
	return values, others
}

// sameValue reports whether a file's text says what ours says, in another way of
// writing it.
func sameValue(written, ours string) bool {
	if strings.EqualFold(strings.TrimSpace(written), ours) {
		return true
	}
	a, err := config.ParseDuration(written)
	if err != nil {
		return false
	}
	b, err := config.ParseDuration(ours)
	return err == nil && a == b
}

// policyValues are the values of a broker's policy.
func policyValues(rules redelivery.Rules) map[string]string {
	e := config.Effective{PolicyEntry: config.PolicyEntry{Rules: rules}}
	values := map[string]string{}
	for _, f := range redeliveryFields {
		if f.applies(&e) {
			values[lastOf(f.name)] = f.text(&e)
		}
	}
	return values
}

// settingOf finds the setting behind a field, the last where there are several,
// and marks it as used.
func settingOf(e *config.Effective, f *field, used []bool) *config.Setting {
	var found *config.Setting
	for i := range e.Settings {
		s := &e.Settings[i]
		if s.Name == f.name || s.Name == lastOf(f.name) || slices.Contains(f.words, s.Name) {
			found, used[i] = s, true
		}
	}
	return found
}

// lastOf is the last key of a path.
func lastOf(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[i+1:]
		}
	}
	return path
}

// duration writes a time as our own YAML has it.
func duration(d time.Duration) string {
	if d%time.Second == 0 {
		s := d.String()
		for _, tail := range []string{"m0s", "h0m"} {
			if n := len(s) - len(tail); n > 0 && s[n:] == tail {
				s = s[:n+1]
			}
		}
		return s
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// orEmpty writes a text, and one without letters so that it is seen.
func orEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
