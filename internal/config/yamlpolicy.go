package config

import (
	"fmt"
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// policies is the list of policies.
func (y yamlReader) policies(name string) yamlKey {
	c := y.cfg
	return listOf[PolicyEntry]{
		fresh: func() PolicyEntry { return PolicyEntry{} },
		keys: func(y yamlReader, part string, p *PolicyEntry) []yamlKey {
			return append(y.patternKeys(&p.Destination), y.entry(part, p)...)
		},
		source: func(p *PolicyEntry) string { return p.Source },
		oneOf:  patternNames,
	}.key(y, name, func() []PolicyEntry { return c.Policies }, func(part string, node ast.Node, p PolicyEntry) {
		p.Source = y.source(first(node))
		parts := p.Destination.Parts()
		if len(c.Policies)+len(parts) > maxPolicies {
			y.fail(y.at(first(node), part, fmt.Sprintf("more than %d policies", maxPolicies)))
			return
		}
		for _, d := range parts {
			p.Destination = d
			p.named("policy " + d.String())
			c.Policies = append(c.Policies, p)
		}
	})
}

// named gives the rules of an entry their name, and its source.
func (p *PolicyEntry) named(s string) {
	p.Rules.Name, p.Rules.Source = s, p.Source
	if r := p.Rules.Redelivery; r != nil {
		own := *r // the parts of a composite each have their own
		own.Name, own.Destination = s, p.Destination
		p.Rules.Redelivery = &own
	}
}

// entry are the keys that every policy has. The values are kept in its Settings.
func (y yamlReader) entry(part string, p *PolicyEntry) []yamlKey {
	y = y.recording(part, &p.Settings)
	keys := []yamlKey{
		y.flag("prioritizedMessages", &p.PrioritizedMessages).says("Order by priority before arrival; default false."),
		y.choice("persistJMSRedelivered", &p.PersistJMSRedelivered).says("Record every hand-out in the store; default as handOutMarks."),
		y.window(prefetchRows[0], &p.Prefetch, "consumers of queues", 1000), y.window(prefetchRows[1], &p.Prefetch, "browsers", 500),
		y.window(prefetchRows[2], &p.Prefetch, "consumers of topics", 32767), y.window(prefetchRows[3], &p.Prefetch, "durable subscriptions", 100),
		y.flag("allConsumersExclusive", &p.AllConsumersExclusive).says("Give a queue's messages to one consumer at a time, whatever the consumers ask for; default false."),
		y.flag("strictOrderDispatch", &p.StrictOrderDispatch).says("Fill the window of one of a queue's consumers before the next of its priority gets anything; default false: they have their turns."),
		section(y, "backlog", &p.Backlog, freshBacklog, yamlReader.backlog, y.checkBacklog).
			says("Bound what waits for a topic's consumer without a durable subscription; what is too much is evicted: a dead letter, as deadLetterStrategy says, or dropped. Absent: everything waits."),
		section(y, "slowConsumers", &p.SlowConsumers, freshSlowConsumers, yamlReader.slowConsumers, nil).
			says("Close consumers that are too slow; absent: none is."),
		y.duration("ackTimeout", 0, &p.AckTimeout).says("How long a message may be at a consumer without acknowledgement before it has failed; default 0s: for ever. Longer than the longest work on a message."),
		section(y, "redelivery", &p.Rules.Redelivery, freshRedelivery, yamlReader.redelivery, func(_ string, node ast.Node, r *redelivery.Policy) {
			r.Source = y.source(first(node))
		}).says("Redelivery by the broker, as ActiveMQ's RedeliveryPolicy; absent: limit and delays are the clients' own."),
		y.flag("dropAtLimit", &p.Rules.DropAtLimit).says("Drop what redelivery gives up, instead of making a dead letter of it; default false."),
		y.flag("deadLetterNonDurable", &p.Rules.DeadLetterNonDurable).says("Make dead letters of what topic consumers without a durable subscription poison; default false, as in ActiveMQ: it is dropped."),
		y.flag("dropWithoutPolicy", &p.Rules.DropWithoutPolicy).says("Drop what its client gives up where there is no redelivery; default false."),
		word(y, "dropDeadLetters", dropWords, &p.Rules.Drop).says("Drop what would become a dead letter: never (the default), last, what redelivery gives up too, or first, before redelivery is asked."),
		word(y, "duplicates", duplicateWords, &p.Rules.Duplicates).says("What becomes of a message that a client takes for a duplicate although nobody acknowledged it: requeue (the default), dead-letter as in ActiveMQ, or discard."),
		y.strategy("deadLetterStrategy", &p.Rules.DeadLetter).says("Where dead letters go, and which messages become none; default: all to ActiveMQ.DLQ."),
		y.expiry("expiry", &p.Rules.Expiry).says("Where messages go whose time to live passes: dead-letter (the default), as deadLetterStrategy says, discard, or a queue or topic://NAME."),
		section(y, "lifetime", &p.Lifetime, func() *redelivery.Lifetime { return &redelivery.Lifetime{Delay: -1, Least: -1, Most: -1} }, yamlReader.lifetime, nil).
			says("Change when messages that are sent here expire; absent: they expire when their senders say."),
		section(y, "limits", &p.Limits, DefaultLimits, yamlReader.limits, nil).
			says("Stop the producers of a destination that is full; absent: the disk's reserve alone stops them."),
		y.flag("deadLetterUnrouted", &p.Rules.DeadLetterUnrouted).says("Make a dead letter of what is sent to a topic that nobody subscribes to; default false."),
		y.flag("keepUnroutedDead", &p.Rules.KeepUnroutedDead).says("Keep a dead letter in ActiveMQ.DLQ where its target is a topic without a durable subscription; default false."),
		word(y, "origins", originWords, &p.Rules.Origins).says("Whose properties a dead letter gets beside ActiveMQ's: none (the default), those of hornetq, or of artemis."),
	}
	keys = append(keys,
		y.count("consumersBeforeDispatchStarts", 0, math.MaxInt32, &p.ConsumersBeforeDispatch).says("How many consumers a queue waits for before it hands anything out, so that groups are spread over them; default 0: it does not wait."),
		y.duration("timeBeforeDispatchStarts", 0, &p.TimeBeforeDispatch).says("How long it waits for them at the most, 1s if this is not given; without a number of consumers: how long it waits; default 0."),
		y.count("maxConsumers", 0, math.MaxInt32, &p.MaxConsumers).says("How many consumers a queue may have at a time; default 0: any number."),
		y.messages("ringSize", &p.RingSize).says("How many messages of a queue, or of a durable subscription, may wait for a consumer: for one more the first of them is dropped; default 0: any number."),
		y.flag("purgeOnNoConsumers", &p.PurgeOnNoConsumers).says("Drop what a queue has when its last consumer goes, and what comes while there is none; default false."),
		y.count("maxDestinations", 0, math.MaxInt32, &p.MaxDestinations).says("How many destinations that the policy's pattern covers clients may make; default 0: any number."),
		y.text("lastValueKey", &p.LastValueKey).says("A property: of the messages with one value of it a queue, or a subscription, keeps the newest alone; default none: it keeps all."),
		y.flag("groupRebalance", &p.GroupRebalance).says("Bind a queue's message groups anew when a consumer comes, each when its consumer is done with what it has of it; default false."),
		y.flag("onlyDeclared", &p.OnlyDeclared).says("Refuse clients that use a queue or topic which is not there yet; default false: it is made."),
		section(y, "recovery", &p.Recovery, func() *Recovery { return new(Recovery) }, yamlReader.recovery, nil).
			says("Keep a topic's newest messages in memory for retroactive consumers: those within all the limits that are given; absent: none are."),
		y.flag("strictTopicOrder", &p.StrictTopicOrder).says("Give what several producers send to a topic to all its subscriptions in one order; default false: each producer's order is kept."),
		y.flag("alwaysRetroactive", &p.AlwaysRetroactive).says("Take every consumer of the topic without a durable subscription for a retroactive one; default false."))
	for _, f := range p.Advisories.Flags() {
		keys = append(keys, y.flag(f.Name, f.Value).says("As in ActiveMQ: which news of the destination are told on advisory topics, and how; default false."))
	}
	return keys
}

// window is one of the prefetch values. own is the client's default, in whose place
// it comes.
func (y yamlReader) window(row prefetchRow, in *Prefetch, whose string, own int) yamlKey {
	least, most := 0.0, float64(maxPrefetch)
	into := row.into(in)
	return y.value(row.name, yamlForm{kind: formWhole, low: &least, high: &most}, func(s string) error {
		n, err := parseInt(s, 0, maxPrefetch)
		window := int(n)
		*into = &window
		return err
	}, func() yamlValue {
		if *into == nil {
			return nil
		}
		return yamlPlain(strconv.Itoa(**into))
	}).says(fmt.Sprintf("The window of %s that ask for their library's default, %d; absent: that stays.", whose, own))
}

// originWords say which properties a dead letter gets beside ActiveMQ's.
var originWords = []yamlWord[redelivery.Origins]{
	{"none", redelivery.NoOrigins}, {"hornetq", redelivery.HornetQOrigins}, {"artemis", redelivery.ArtemisOrigins}}

// expiry is where messages go whose time has passed.
func (y yamlReader) expiry(name string, into *redelivery.DeadLetterStrategy) yamlKey {
	return y.value(name, yamlForm{kind: formText}, func(s string) error {
		switch s {
		case "dead-letter":
			*into = redelivery.DeadLetterStrategy{}
			return nil
		case "discard":
			*into = redelivery.DiscardingStrategy()
			return nil
		}
		strategy := redelivery.SharedStrategy()
		strategy.ProcessNonPersistent = true
		d, err := oneDestination(s, message.Queue)
		if err != nil {
			return fmt.Errorf("%w; or write dead-letter or discard", err)
		}
		strategy.DeadLetterQueue = d
		*into = strategy
		return nil
	}, func() yamlValue {
		switch into.Kind {
		case redelivery.UnsetStrategy:
			return yamlPlain("dead-letter")
		case redelivery.Discarding:
			return yamlPlain("discard")
		}
		return yamlText(showDestination(into.DeadLetterQueue))
	})
}

// lifetime are the keys of the bounds of a message's life.
func (y yamlReader) lifetime(l *redelivery.Lifetime) []yamlKey {
	bound := func(name string, into *int64) yamlKey {
		return y.value(name, yamlForm{kind: formEither, either: []yamlForm{{kind: formDuration}, {kind: formWord, words: []string{"none"}}}}, func(s string) error {
			if *into = -1; s == "none" {
				return nil
			}
			d, err := ParseDuration(s)
			if err == nil && d < 0 {
				err = fmt.Errorf("%q is less than nothing; write none for no bound", s)
			}
			*into = d.Milliseconds()
			return err
		}, func() yamlValue {
			if *into < 0 {
				return yamlPlain("none")
			}
			return yamlPlain(showDuration(redelivery.FromMillis(*into)))
		})
	}
	return []yamlKey{
		y.flag("never", &l.Never).says("Take every expiration away; nothing else counts then; default false."),
		bound("default", &l.Delay).says("The time to live of messages that never expire, or none, the default. With it, min and max do not count."),
		bound("min", &l.Least).says("The shortest time to live, or none, the default."),
		bound("max", &l.Most).says("The longest time to live, or none, the default. A message that never expires gets it."),
	}
}

// dropWords say when what would become a dead letter is dropped instead.
var dropWords = []yamlWord[redelivery.Drop]{{"never", redelivery.DropNever}, {"last", redelivery.DropLast}, {"first", redelivery.DropFirst}}

// duplicateWords say what is done with what a client took for a duplicate.
var duplicateWords = []yamlWord[redelivery.DuplicateAction]{
	{"requeue", redelivery.RequeueDuplicate}, {"dead-letter", redelivery.DeadLetterDuplicate}, {"discard", redelivery.DiscardDuplicate}}

// arithmeticWords name the dialects' ways to reckon delays.
var arithmeticWords = []yamlWord[redelivery.Arithmetic]{{"activemq", nil}, {"hornetq", redelivery.HornetQ{}}}

func freshRedelivery() *redelivery.Policy {
	p := redelivery.DefaultPolicy()
	return &p
}

// redelivery are the keys of the broker's redelivery policy. What is not given is
// ActiveMQ's default.
func (y yamlReader) redelivery(p *redelivery.Policy) []yamlKey {
	most := y.value("maximumRedeliveryDelay", yamlForm{kind: formEither, either: []yamlForm{{kind: formDuration}, {kind: formWord, words: []string{"none"}}}},
		func(s string) (err error) {
			if p.MaximumRedeliveryDelay = redelivery.NoMaximumDelay; s != "none" {
				p.MaximumRedeliveryDelay, err = ParseDuration(s)
			}
			return err
		}, func() yamlValue { return yamlPlain(showCap(p.MaximumRedeliveryDelay)) })
	return []yamlKey{
		y.count("maximumRedeliveries", math.MinInt32, math.MaxInt32, &p.MaximumRedeliveries).says("Deliveries after the first; -1: without end; default 6."),
		y.duration("initialRedeliveryDelay", math.MinInt64, &p.InitialRedeliveryDelay).says("The delay before the first redelivery; default 1s."),
		y.duration("redeliveryDelay", math.MinInt64, &p.RedeliveryDelay).says("The delay before the later ones, and what grows after a delay of 0; default 1s."),
		y.flag("useExponentialBackOff", &p.UseExponentialBackOff).says("Multiply the delay before by backOffMultiplier; default false."),
		y.number("backOffMultiplier", &p.BackOffMultiplier).says("Used only with useExponentialBackOff, and above 1; default 5."),
		most.says("A cap on growing delays, or none, the default."),
		y.flag("useCollisionAvoidance", &p.UseCollisionAvoidance).says("Spread delays by chance; default false."),
		y.number("collisionAvoidanceFactor", &p.CollisionAvoidanceFactor).says("The spread as a part of the delay; default 0.15."),
		word(y, "arithmetic", arithmeticWords, &p.Arithmetic).says("How delays are reckoned: as activemq does (the default), or hornetq, and Artemis with it: from redeliveryDelay and the number of failures alone, capped last, shrinking with a multiplier below 1."),
	}
}

// strategyForms are the kinds of strategy, each with its keys.
func (y yamlReader) strategyForms() []yamlForm {
	var forms []yamlForm
	for _, w := range kindWords {
		s := w.value()
		form := yamlForm{kind: formMapping, keys: y.strategyKeys(&s)}
		form.keys[0].form.words = []string{w.name}
		if w.name != "shared" { // which is the default
			form.needs = []string{"kind"}
		}
		forms = append(forms, form)
	}
	return forms
}

// kindWords name the kinds of strategy.
var kindWords = []struct {
	name  string
	value func() redelivery.DeadLetterStrategy
}{{"shared", redelivery.SharedStrategy}, {"individual", redelivery.IndividualStrategy}, {"discarding", redelivery.DiscardingStrategy}}

// strategy is a deadLetterStrategy. Its kind decides which keys there are.
func (y yamlReader) strategy(name string, into *redelivery.DeadLetterStrategy) yamlKey {
	return yamlKey{name, yamlForm{kind: formEither, either: y.strategyForms()}, func(part string, node ast.Node) {
		s := redelivery.SharedStrategy()
		for _, pair := range pairsOf(node) {
			if name, _ := y.scalar(pair.Key); name == "kind" {
				text, _ := y.scalar(pair.Value)
				for _, w := range kindWords {
					if w.name == text {
						s = w.value()
					}
				}
			}
		}
		y.mapping(part, node, y.strategyKeys(&s))
		*into = s
	}, func() yamlValue {
		for _, w := range kindWords {
			if fresh := w.value(); fresh.Kind == into.Kind {
				s := *into
				m := differing(y.strategyKeys(&s), y.strategyKeys(&fresh))
				m.pairs = append([]yamlPair{{"kind", yamlPlain(w.name)}}, m.pairs...)
				return m
			}
		}
		return nil
	}}
}

// strategyKeys are the keys of a strategy of one kind.
func (y yamlReader) strategyKeys(s *redelivery.DeadLetterStrategy) []yamlKey {
	var words []yamlWord[redelivery.StrategyKind]
	for _, w := range kindWords {
		words = append(words, yamlWord[redelivery.StrategyKind]{w.name, w.value().Kind})
	}
	kind := s.Kind // it was looked at first; the value only has to be one of the words
	keys := []yamlKey{
		word(y, "kind", words, &kind).says("shared (the default): one queue or topic for all; individual: one for each destination; discarding: none."),
		y.flag("processExpired", &s.ProcessExpired).says("Keep messages whose time to live passes; default true."),
		y.flag("processNonPersistent", &s.ProcessNonPersistent).says("Keep non-persistent messages; default false."),
		y.duration("expiration", 0, &s.Expiration).says("Time to live of a dead letter; 0, the default: it never expires."),
		y.flag("discardOwn", &s.DiscardOwn).says("Drop what fails or expires in its own dead letter queue, as ActiveMQ does; default false."),
	}
	switch s.Kind {
	case redelivery.Shared:
		k := y.destination("deadLetterQueue", &s.DeadLetterQueue)
		keys = append(keys, k.says("Where all dead letters go: a queue, or topic://NAME; default ActiveMQ.DLQ."))
	case redelivery.Individual:
		keys = append(keys,
			y.text("queuePrefix", &s.QueuePrefix).says("What stands before a queue's name; default ActiveMQ.DLQ.Queue."),
			y.text("queueSuffix", &s.QueueSuffix).says("What stands behind a queue's name; default nothing."),
			y.text("topicPrefix", &s.TopicPrefix).says("What stands before a topic's name; default ActiveMQ.DLQ.Topic."),
			y.text("topicSuffix", &s.TopicSuffix).says("What stands behind a topic's name; default nothing."),
			y.flag("useQueueForQueueMessages", &s.UseQueueForQueueMessages).says("The target is a queue, for messages of queues; default true."),
			y.flag("useQueueForTopicMessages", &s.UseQueueForTopicMessages).says("The target is a queue, for messages of topics; default true."),
			y.flag("destinationPerDurableSubscriber", &s.DestinationPerDurableSubscriber).says("Append .CLIENTID:NAME of the durable subscription; default false."))
	}
	return keys
}

// recovery are the limits of what retroactive consumers are given; 0: no limit.
func (y yamlReader) recovery(r *Recovery) []yamlKey {
	return []yamlKey{
		y.count("count", 0, math.MaxInt32, &r.Count).says("How many messages; 0, the default: as many as the other limits allow."),
		y.count("bytes", 0, math.MaxInt32, &r.Bytes).says("How many bytes; 0, the default: as many as the other limits allow."),
		y.duration("age", 0, &r.Age).says("How old they may be; 0, the default: any age."),
		y.flag("retained", &r.Retained).says("Also keep the last message with the property ActiveMQ.Retain, whatever the limits; default false."),
	}
}
