package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// top are the keys of the document.
func (y yamlReader) top() []yamlKey {
	c := y.cfg
	return []yamlKey{
		y.value("brokerName", func(s string) error {
			if s == "" {
				return errors.New("is empty; give a name or remove the key")
			}
			c.BrokerName = s
			return nil
		}),
		y.value("data", func(s string) error {
			switch {
			case s == "":
				return errors.New("is empty; give a directory, or :memory: to keep nothing")
			case !y.data.given: // else --data wins
				c.DataDir, c.Persistent = s, s != Memory
			}
			return nil
		}),
		{"admin", func(part string, node ast.Node) {
			y.adminPlace = y.at(node, part, "")
			if y.text("admin", &c.Admin).take(part, node); c.Admin == "off" {
				c.Admin = ""
			}
		}},
		y.flag("allowAnonymous", &y.fileAllowsAnonymous),
		y.flag("populateJMSXUserID", &c.UserID),
		y.flag("rejectDurableConsumers", &c.RejectDurableConsumers),
		y.flag("handOutMarks", &c.HandOutMarks),
		{"listeners", func(part string, node ast.Node) { y.sequence(part, node, y.listener) }},
		{"store", func(part string, node ast.Node) { y.mapping(part, node, y.store()) }},
		{"policies", func(part string, node ast.Node) { y.sequence(part, node, y.policy) }},
		{"defaultPolicy", y.defaultPolicy},
	}
}

// store are the keys under store.
func (y yamlReader) store() []yamlKey {
	s := &y.cfg.Store
	return []yamlKey{
		y.bytes("minFree", &s.MinFreeBytes),
		y.value("minFreePercent", func(text string) error {
			p, err := strconv.ParseFloat(text, 64)
			if err != nil || !(p >= 0 && p <= 100) {
				return fmt.Errorf("%q is not a percentage from 0 to 100", text)
			}
			s.MinFreePercent = p
			return nil
		}),
		y.value("onFull", func(text string) error {
			if s.OnFull = OnFull(text); s.OnFull != Fail && s.OnFull != Block {
				return fmt.Errorf("%q is neither %s nor %s", text, Fail, Block)
			}
			return nil
		}),
	}
}

// listener reads one element of listeners: a URI, or a mapping with name and uri.
func (y yamlReader) listener(part string, node ast.Node) {
	var name, uri string
	place, before := node, len(y.problems)
	if s, ok := y.scalar(node); ok {
		uri = s
	} else {
		y.mapping(part, node, []yamlKey{y.text("name", &name), {"uri", func(part string, n ast.Node) {
			place = n
			y.text("uri", &uri).take(part, n)
		}}})
	}
	if len(y.opts.Listen) > 0 {
		y.warn(y.at(place, part, "is left out: --listen takes the place of the file's listeners"))
		return
	}
	if uri == "" && len(y.problems) > before {
		return
	}
	r := parseListener(uri)
	if r.notOffer != "" {
		r.errors = append(r.errors, r.notOffer+" is not offered yet")
	}
	for _, text := range r.errors {
		y.fail(y.at(place, part, text))
	}
	for _, text := range r.warnings {
		y.warn(y.at(place, part, text))
	}
	if len(r.errors) > 0 {
		return
	}
	if name != "" {
		r.listener.Name = name
	}
	r.listener.Source = y.source(place)
	y.cfg.Listeners = append(y.cfg.Listeners, r.listener)
}

// entry are the keys that every policy has. The values are kept in its Settings.
func (y yamlReader) entry(part string, p *PolicyEntry) []yamlKey {
	y = y.recording(part, &p.Settings)
	keys := []yamlKey{
		y.flag("prioritizedMessages", &p.PrioritizedMessages),
		y.value("persistJMSRedelivered", func(s string) error {
			b, err := parseBool(s)
			p.PersistJMSRedelivered = &b
			return err
		}),
		y.window(prefetchRows[0], &p.Prefetch), y.window(prefetchRows[1], &p.Prefetch),
		y.window(prefetchRows[2], &p.Prefetch), y.window(prefetchRows[3], &p.Prefetch),
		y.flag("allConsumersExclusive", &p.AllConsumersExclusive),
		{"redelivery", func(part string, node ast.Node) { p.Rules.Redelivery = y.redelivery(part, node) }},
		y.flag("dropAtLimit", &p.Rules.DropAtLimit),
		y.flag("deadLetterNonDurable", &p.Rules.DeadLetterNonDurable),
		y.flag("dropWithoutPolicy", &p.Rules.DropWithoutPolicy),
		word(y, "dropDeadLetters", dropWords, &p.Rules.Drop),
		word(y, "duplicates", duplicateWords, &p.Rules.Duplicates),
		{"deadLetterStrategy", func(part string, node ast.Node) { p.Rules.DeadLetter = y.strategy(part, node) }},
		y.value("expiry", func(s string) (err error) { p.Rules.Expiry, err = expiryStrategy(s); return err }),
		{"lifetime", func(part string, node ast.Node) { p.Lifetime = y.lifetime(part, node) }},
		y.flag("deadLetterUnrouted", &p.Rules.DeadLetterUnrouted),
		y.flag("keepUnroutedDead", &p.Rules.KeepUnroutedDead),
		word(y, "origins", originWords, &p.Rules.Origins),
	}
	for _, f := range p.Advisories.Flags() {
		keys = append(keys, y.flag(f.Name, f.Value))
	}
	return keys
}

// window reads one of the prefetch values.
func (y yamlReader) window(row prefetchRow, into *Prefetch) yamlKey {
	return y.value(row.name, func(s string) error {
		n, err := parseInt(s, 0, maxPrefetch)
		window := int(n)
		*row.into(into) = &window
		return err
	})
}

// originWords say which properties a dead letter gets beside ActiveMQ's.
var originWords = []yamlWord[redelivery.Origins]{
	{"none", redelivery.NoOrigins}, {"hornetq", redelivery.HornetQOrigins}, {"artemis", redelivery.ArtemisOrigins}}

// expiryStrategy reads where messages go whose time has passed.
func expiryStrategy(s string) (redelivery.DeadLetterStrategy, error) {
	switch s {
	case "dead-letter":
		return redelivery.DeadLetterStrategy{}, nil
	case "discard":
		return redelivery.DiscardingStrategy(), nil
	}
	strategy := redelivery.SharedStrategy()
	strategy.ProcessNonPersistent = true
	d, err := message.ParseDestination(s, message.Queue)
	if problem := badTarget(d, err); problem != "" {
		return strategy, errors.New(problem + ", or write dead-letter or discard")
	}
	strategy.DeadLetterQueue = d
	return strategy, nil
}

// lifetime reads the bounds of a message's life.
func (y yamlReader) lifetime(part string, node ast.Node) *redelivery.Lifetime {
	l := &redelivery.Lifetime{Delay: -1, Least: -1, Most: -1}
	bound := func(name string, into *int64) yamlKey {
		return y.value(name, func(s string) error {
			if *into = -1; s == "none" {
				return nil
			}
			d, err := ParseDuration(s)
			if err == nil && d < 0 {
				err = fmt.Errorf("%q is less than nothing; write none for no bound", s)
			}
			*into = d.Milliseconds()
			return err
		})
	}
	y.mapping(part, node, []yamlKey{y.flag("never", &l.Never), bound("default", &l.Delay), bound("min", &l.Least), bound("max", &l.Most)})
	return l
}

// dropWords say when what would become a dead letter is dropped instead.
var dropWords = []yamlWord[redelivery.Drop]{{"never", redelivery.DropNever}, {"last", redelivery.DropLast}, {"first", redelivery.DropFirst}}

// duplicateWords say what is done with what a client took for a duplicate.
var duplicateWords = []yamlWord[redelivery.DuplicateAction]{
	{"requeue", redelivery.RequeueDuplicate}, {"dead-letter", redelivery.DeadLetterDuplicate}, {"discard", redelivery.DiscardDuplicate}}

// redelivery reads the broker's redelivery policy. What is not given is ActiveMQ's
// default.
func (y yamlReader) redelivery(part string, node ast.Node) *redelivery.Policy {
	p := redelivery.DefaultPolicy()
	p.Name, p.Source = "redelivery", y.source(first(node))
	y.mapping(part, node, []yamlKey{
		y.count("maximumRedeliveries", redelivery.Unlimited, math.MaxInt32, &p.MaximumRedeliveries),
		y.duration("initialRedeliveryDelay", &p.InitialRedeliveryDelay),
		y.duration("redeliveryDelay", &p.RedeliveryDelay),
		y.flag("useExponentialBackOff", &p.UseExponentialBackOff),
		y.number("backOffMultiplier", math.Inf(-1), &p.BackOffMultiplier),
		y.value("maximumRedeliveryDelay", func(s string) (err error) {
			if p.MaximumRedeliveryDelay = redelivery.NoMaximumDelay; s != "none" {
				p.MaximumRedeliveryDelay, err = ParseDuration(s)
			}
			return err
		}),
		y.flag("useCollisionAvoidance", &p.UseCollisionAvoidance),
		y.number("collisionAvoidanceFactor", 0, &p.CollisionAvoidanceFactor),
		word(y, "arithmetic", arithmeticWords, &p.Arithmetic),
	})
	return &p
}

// arithmeticWords name the dialects' ways to reckon delays.
var arithmeticWords = []yamlWord[redelivery.Arithmetic]{{"activemq", redelivery.ActiveMQ{}}, {"hornetq", redelivery.HornetQ{}}}

// policy reads one element of policies.
func (y yamlReader) policy(part string, node ast.Node) {
	entry := PolicyEntry{Source: y.source(first(node))}
	var patterns []message.Destination
	keys := y.entry(part, &entry)
	for _, k := range policyAttr {
		keys = append(keys, y.value(k.name, func(s string) error {
			d, err := message.ParseDestination(s, k.kind)
			if err != nil {
				return errors.New(`names no destination; give a name or a pattern such as ">"`)
			}
			patterns = append(patterns, d)
			return nil
		}))
	}
	before := len(y.problems)
	y.mapping(part, node, keys)
	switch {
	case len(y.problems) > before:
	case len(patterns) != 1:
		y.fail(y.at(first(node), part, "is for one of queue, topic, tempQueue or tempTopic; write one entry for each"))
	case len(y.cfg.Policies)+len(patterns[0].Parts()) > maxPolicies:
		y.fail(y.at(first(node), part, fmt.Sprintf("more than %d policies", maxPolicies)))
	default:
		for _, d := range patterns[0].Parts() {
			entry.Destination = d
			entry.name("policy " + d.String())
			y.cfg.Policies = append(y.cfg.Policies, entry)
		}
	}
}

// name gives the rules of an entry their name, and its source.
func (p *PolicyEntry) name(s string) {
	p.Rules.Name, p.Rules.Source = s, p.Source
	if r := p.Rules.Redelivery; r != nil {
		named := *r // the parts of a composite each have their own
		named.Name, named.Destination = s, p.Destination
		p.Rules.Redelivery = &named
	}
}

// defaultPolicy reads the policy for destinations that no other matches.
func (y yamlReader) defaultPolicy(part string, node ast.Node) {
	entry := PolicyEntry{Source: y.source(first(node))}
	y.mapping(part, node, y.entry(part, &entry))
	entry.name("default policy")
	y.cfg.DefaultPolicy = &entry
}

// first returns the node where a mapping begins: its own token is the colon of
// its first pair.
func first(node ast.Node) ast.Node {
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return n.Values[0].Key
		}
	case *ast.MappingValueNode:
		return n.Key
	}
	return node
}

// strategy reads a deadLetterStrategy. Its kind decides which keys there are.
func (y yamlReader) strategy(part string, node ast.Node) redelivery.DeadLetterStrategy {
	s := redelivery.SharedStrategy()
	if m, ok := node.(*ast.MappingNode); ok {
		for _, pair := range m.Values {
			if name, _ := y.scalar(pair.Key); name == "kind" {
				s = y.kind(part, pair.Value)
			}
		}
	}
	keys := []yamlKey{
		y.text("kind", new(string)), // it was looked at first
		y.flag("processExpired", &s.ProcessExpired),
		y.flag("processNonPersistent", &s.ProcessNonPersistent),
		y.value("expiration", func(text string) (err error) {
			if s.Expiration, err = ParseDuration(text); err == nil && s.Expiration < 0 {
				err = fmt.Errorf("%q is less than nothing; 0 means never", text)
			}
			return err
		}),
		y.flag("discardOwn", &s.DiscardOwn),
	}
	switch s.Kind {
	case redelivery.Shared:
		keys = append(keys, y.value("deadLetterQueue", func(text string) error {
			d, err := message.ParseDestination(text, message.Queue)
			if problem := badTarget(d, err); problem != "" {
				return errors.New(problem)
			}
			s.DeadLetterQueue = d
			return nil
		}))
	case redelivery.Individual:
		keys = append(keys,
			y.text("queuePrefix", &s.QueuePrefix), y.text("queueSuffix", &s.QueueSuffix),
			y.text("topicPrefix", &s.TopicPrefix), y.text("topicSuffix", &s.TopicSuffix),
			y.flag("useQueueForQueueMessages", &s.UseQueueForQueueMessages),
			y.flag("useQueueForTopicMessages", &s.UseQueueForTopicMessages),
			y.flag("destinationPerDurableSubscriber", &s.DestinationPerDurableSubscriber))
	}
	y.mapping(part, node, keys)
	return s
}

// kind returns the strategy of a kind, with its defaults.
func (y yamlReader) kind(part string, node ast.Node) redelivery.DeadLetterStrategy {
	text, _ := y.scalar(node)
	switch text {
	case "shared":
	case "individual":
		return redelivery.IndividualStrategy()
	case "discarding":
		return redelivery.DiscardingStrategy()
	default:
		y.fail(y.at(node, part+".kind", fmt.Sprintf("%q is none of shared, individual and discarding", text)))
	}
	return redelivery.SharedStrategy()
}
