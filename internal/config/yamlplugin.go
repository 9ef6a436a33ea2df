package config

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// redeliveryPlugin is redelivery with patterns of its own.
func (y yamlReader) redeliveryPlugin(name string) yamlKey {
	return section(y, name, &y.cfg.Redelivery, func() *RedeliveryPlugin {
		return &RedeliveryPlugin{FallbackToDeadLetter: true, SendToDLQIfMaxRetriesExceeded: true}
	}, func(y yamlReader, p *RedeliveryPlugin) []yamlKey {
		own := y.recording(name, &p.Settings)
		return []yamlKey{
			own.flag("fallbackToDeadLetter", &p.FallbackToDeadLetter).says("Make a dead letter of what its client gives up where no policy is for it; false drops it; default true."),
			own.flag("sendToDlqIfMaxRetriesExceeded", &p.SendToDLQIfMaxRetriesExceeded).says("Make a dead letter of what a policy gives up; false drops it; default true."),
			y.redeliveryEntries("policies", p).says("The policies. One is chosen for a destination, whole."),
			section(y, "default", &p.Default, func() *RedeliveryEntry { return &RedeliveryEntry{Policy: redelivery.DefaultPolicy()} },
				func(y yamlReader, e *RedeliveryEntry) []yamlKey {
					return y.recording(name+".default", &e.Settings).redelivery(&e.Policy)
				}, func(_ string, node ast.Node, e *RedeliveryEntry) {
					e.Policy.Source, e.Policy.Name = y.source(first(node)), "redeliveryPolicy by default"
				}).says("The policy where none of policies matches."),
		}
	}, func(_ string, node ast.Node, p *RedeliveryPlugin) { p.Source = y.source(first(node)) })
}

// redeliveryEntries is the list of the plugin's policies.
func (y yamlReader) redeliveryEntries(name string, p *RedeliveryPlugin) yamlKey {
	return listOf[RedeliveryEntry]{
		fresh: func() RedeliveryEntry { return RedeliveryEntry{Policy: redelivery.DefaultPolicy()} },
		keys: func(y yamlReader, part string, e *RedeliveryEntry) []yamlKey {
			return append(y.patternKeys(&e.Policy.Destination), y.recording(part, &e.Settings).redelivery(&e.Policy)...)
		},
		source: func(e *RedeliveryEntry) string { return e.Policy.Source },
		oneOf:  patternNames,
	}.key(y, name, func() []RedeliveryEntry { return p.Policies }, func(part string, node ast.Node, e RedeliveryEntry) {
		parts := e.Policy.Destination.Parts()
		if len(p.Policies)+len(parts) > maxPolicies {
			y.fail(y.at(first(node), part, fmt.Sprintf("more than %d redelivery policies", maxPolicies)))
			return
		}
		for _, d := range parts {
			e.Policy.Destination, e.Policy.Source, e.Policy.Name = d, y.source(first(node)), "redeliveryPolicy "+d.String()
			p.Policies = append(p.Policies, e)
		}
	})
}

// discarding drops dead letters.
func (y yamlReader) discarding(name string) yamlKey {
	return section(y, name, &y.cfg.Discarding, func() *DiscardingPlugin {
		return &DiscardingPlugin{DropAll: true, DropTemporaryTopics: true, DropTemporaryQueues: true}
	}, func(y yamlReader, p *DiscardingPlugin) []yamlKey {
		own := y.recording(name, &p.Settings)
		return []yamlKey{
			own.flag("dropAll", &p.DropAll).says("Drop all dead letters, whatever the other keys say; default true."),
			own.flag("dropTemporaryTopics", &p.DropTemporaryTopics).says("Drop those of temporary topics; default true."),
			own.flag("dropTemporaryQueues", &p.DropTemporaryQueues).says("Drop those of temporary queues; default true."),
			y.texts("dropOnly", &p.DropOnly).says("Drop those of destinations whose whole name matches one of these regular expressions."),
			own.flag("first", &p.First).says("Drop what a client gives up at once, before a redelivery policy has a say; default false."),
		}
	}, func(part string, node ast.Node, p *DiscardingPlugin) {
		p.Source = y.source(first(node))
		for _, text := range p.DropOnly {
			if _, err := wholeName(text); err != nil {
				y.fail(y.at(first(node), part+".dropOnly", "pattern "+text+" cannot be used: "+err.Error()))
			}
		}
	})
}

// timeStamping sets times by the broker's clock.
func (y yamlReader) timeStamping(name string) yamlKey {
	return section(y, name, &y.cfg.TimeStamping, func() *TimeStamping { return &TimeStamping{} }, func(y yamlReader, p *TimeStamping) []yamlKey {
		return []yamlKey{
			y.duration("zeroExpirationOverride", 0, &p.ZeroExpirationOverride).says("The time to live of messages that have none; 0, the default: they keep none."),
			y.duration("ttlCeiling", 0, &p.TTLCeiling).says("The longest time to live; 0, the default: no ceiling."),
			y.flag("futureOnly", &p.FutureOnly).says("Change nothing where that would move the expiration to an earlier time; default false."),
		}
	}, func(_ string, node ast.Node, p *TimeStamping) { p.Source = y.source(first(node)) })
}

// selectorCache remembers selectors of consumers that are away.
func (y yamlReader) selectorCache(name string) yamlKey {
	return section(y, name, &y.cfg.SelectorCache, func() *SelectorCache { return &SelectorCache{} }, func(y yamlReader, p *SelectorCache) []yamlKey {
		return []yamlKey{
			y.flag("singleSelectorPerDestination", &p.SingleSelectorPerDestination).says("Remember the last selector of a queue alone, beside that there were consumers without one; default false."),
			y.flag("ignoreWildcardSelectors", &p.IgnoreWildcardSelectors).says("Remember no selector with a LIKE that has a wildcard; default false."),
		}
	}, func(_ string, node ast.Node, p *SelectorCache) { p.Source = y.source(first(node)) })
}

// A madeAtStart is one element of destinations.
type madeAtStart struct {
	destination message.Destination
	dead        bool
}

// destinations are made at start.
func (y yamlReader) destinations(name string) yamlKey {
	c := y.cfg
	list := listOf[madeAtStart]{
		fresh: func() madeAtStart { return madeAtStart{} },
		keys: func(y yamlReader, _ string, m *madeAtStart) []yamlKey {
			return []yamlKey{
				y.destination("name", &m.destination).says("A queue, or topic://NAME."),
				y.flag("deadLetterQueue", &m.dead).says("It is a dead letter queue: whatever is in it counts as a dead letter; default false."),
			}
		},
		needs: []string{"name"},
	}.key(y, name, func() []madeAtStart {
		var all []madeAtStart
		for _, d := range c.Destinations {
			m := madeAtStart{destination: d}
			for _, dead := range c.DeadLetterQueues {
				m.dead = m.dead || dead == d
			}
			all = append(all, m)
		}
		return all
	}, func(_ string, _ ast.Node, m madeAtStart) {
		c.Destinations = append(c.Destinations, m.destination)
		if m.dead {
			c.DeadLetterQueues = append(c.DeadLetterQueues, m.destination)
		}
	})
	return list
}

// virtualTopics are topics whose messages also go to queues.
func (y yamlReader) virtualTopics(name string) yamlKey {
	c := y.cfg
	k := listOf[VirtualTopic]{
		fresh: DefaultVirtualTopic,
		keys: func(y yamlReader, _ string, v *VirtualTopic) []yamlKey {
			return []yamlKey{
				y.name("name", &v.Name).says("The topics: a name or a pattern; default >."),
				y.text("prefix", &v.Prefix).says("What stands before the topic's name in the names of its queues; default Consumer.*."),
				y.text("postfix", &v.Postfix).says("What stands behind it; default nothing."),
				y.flag("selectorAware", &v.SelectorAware).says("Send a queue only what a consumer of it selects; default false."),
				y.flag("local", &v.Local).says("Leave out messages that come from other brokers; default false."),
				y.flag("transactedSend", &v.TransactedSend).says("Make the copies of a message one unit, which they always are; default false."),
				y.flag("dropOnResourceLimit", &v.DropOnResourceLimit).says("Leave out queues that refuse for want of space, instead of failing the send; default false."),
				y.flag("setOriginalDestination", &v.SetOriginalDestination).says("Give copies the queue as their destination, and the topic as the original one; default true."),
			}
		},
		source: func(v *VirtualTopic) string { return v.Source },
	}.key(y, name, func() []VirtualTopic {
		if c.Interceptors == nil {
			return nil
		}
		return append([]VirtualTopic{}, c.Interceptors.VirtualTopics...)
	}, func(part string, node ast.Node, v VirtualTopic) {
		v.Source = y.source(first(node))
		if v.Prefix == "" && v.Postfix == "" {
			y.fail(y.at(first(node), part, `has neither prefix nor postfix, so that its queues cannot be told apart; give one such as prefix: Consumer.*.`))
			return
		}
		c.Interceptors.VirtualTopics = append(c.Interceptors.VirtualTopics, v)
	})
	take := k.take
	k.take = func(part string, node ast.Node) {
		if c.Interceptors == nil {
			c.Interceptors = &Interceptors{}
		}
		c.Interceptors.VirtualTopics = nil // not the one that holds by default
		take(part, node)
	}
	return k
}

// composites are destinations that hand messages on.
func (y yamlReader) composites(name string) yamlKey {
	c := y.cfg
	return listOf[CompositeDestination]{
		fresh: func() CompositeDestination { return CompositeDestination{ForwardOnly: true} },
		keys: func(y yamlReader, _ string, d *CompositeDestination) []yamlKey {
			var keys []yamlKey
			for _, k := range policyAttr[:2] { // queue and topic
				key := y.name(k.name, new(string))
				key.take = func(part string, node ast.Node) {
					d.Kind = k.kind
					y.name(k.name, &d.Name).take(part, node)
				}
				key.show = func() yamlValue {
					if d.Kind != k.kind {
						return nil
					}
					return yamlText(d.Name)
				}
				keys = append(keys, key.says("Its name, or a pattern."))
			}
			return append(keys,
				y.flag("forwardOnly", &d.ForwardOnly).says("Keep no copy in the destination itself; default true."),
				y.flag("sendWhenNotMatched", &d.SendWhenNotMatched).says("Keep a message here that no target selects; default false."),
				y.forwardTo("forwardTo", d).says("Where messages go; at least one."))
		},
		source: func(d *CompositeDestination) string { return d.Source },
		oneOf:  patternNames[:2],
		needs:  []string{"forwardTo"},
	}.key(y, name, func() []CompositeDestination {
		if c.Interceptors == nil {
			return nil
		}
		return c.Interceptors.Composites
	}, func(part string, node ast.Node, d CompositeDestination) {
		if len(d.ForwardTo) == 0 {
			y.fail(y.at(first(node), part, "has no targets in forwardTo"))
			return
		}
		d.Source = y.source(first(node))
		if c.Interceptors == nil {
			c.Interceptors = DefaultInterceptors()
		}
		c.Interceptors.Composites = append(c.Interceptors.Composites, d)
	})
}

// queueFilters are queues that take only some of what is sent to them.
func (y yamlReader) queueFilters(name string) yamlKey {
	c := y.cfg
	return listOf[QueueFilter]{
		fresh: func() QueueFilter { return QueueFilter{} },
		keys: func(y yamlReader, _ string, f *QueueFilter) []yamlKey {
			return []yamlKey{
				y.name("queue", &f.Queue.Name).says("The queue's name."),
				y.name("selector", &f.Selector).says("Which messages it takes."),
			}
		},
		source: func(f *QueueFilter) string { return f.Source },
		needs:  []string{"queue", "selector"},
	}.key(y, name, func() []QueueFilter {
		if c.Interceptors == nil {
			return nil
		}
		return c.Interceptors.Filters
	}, func(part string, node ast.Node, f QueueFilter) {
		f.Queue.Kind, f.Source = message.Queue, y.source(first(node))
		switch {
		case f.Queue.IsComposite(), f.Queue.IsPattern():
			y.fail(y.at(first(node), part+".queue", fmt.Sprintf("%q is not one queue", f.Queue.Name)))
			return
		case c.Interceptors == nil:
			c.Interceptors = DefaultInterceptors()
		}
		c.Interceptors.Filters = append(c.Interceptors.Filters, f)
	})
}

// mirroredQueues are topics that get what is sent to all queues.
func (y yamlReader) mirroredQueues(name string) yamlKey {
	c := y.cfg
	return listOf[MirroredQueues]{
		fresh: DefaultMirroredQueues,
		keys: func(y yamlReader, _ string, m *MirroredQueues) []yamlKey {
			return []yamlKey{
				y.text("prefix", &m.Prefix).says("What stands before the queue's name in the topic's; default VirtualTopic.Mirror."),
				y.text("postfix", &m.Postfix).says("What stands behind it; default nothing."),
				y.flag("temporary", &m.Temporary).says("Mirror temporary queues, too; default true."),
				y.flag("keptOnly", &m.KeptOnly).says("Leave out what a composite destination only hands on; default false."),
			}
		},
		source: func(m *MirroredQueues) string { return m.Source },
	}.key(y, name, func() []MirroredQueues {
		if c.Interceptors == nil {
			return nil
		}
		return c.Interceptors.Mirrors
	}, func(part string, node ast.Node, m MirroredQueues) {
		if text := m.wrong(); text != "" {
			y.fail(y.at(first(node), part, text))
			return
		}
		m.Source = y.source(first(node))
		if c.Interceptors == nil {
			c.Interceptors = DefaultInterceptors()
		}
		c.Interceptors.Mirrors = append(c.Interceptors.Mirrors, m)
	})
}

// forwardTo is the list of a composite destination's targets.
func (y yamlReader) forwardTo(name string, d *CompositeDestination) yamlKey {
	return listOf[ForwardTarget]{
		fresh: func() ForwardTarget { return ForwardTarget{} },
		keys: func(y yamlReader, _ string, t *ForwardTarget) []yamlKey {
			return []yamlKey{
				y.destination("to", &t.Destination).says("One queue, or topic://NAME."),
				y.text("selector", &t.Selector).says("Which messages go there; default all."),
				y.flag("otherwise", &t.Otherwise).says("Only those that no target without this gets; default false."),
			}
		},
		needs: []string{"to"},
	}.key(y, name, func() []ForwardTarget { return d.ForwardTo }, func(_ string, _ ast.Node, t ForwardTarget) {
		d.ForwardTo = append(d.ForwardTo, t)
	})
}
