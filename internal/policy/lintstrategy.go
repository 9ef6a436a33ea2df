package policy

import (
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A buried is one entry whose dead letters go somewhere.
type buried struct {
	keyed
	rules    *redelivery.Rules
	strategy redelivery.DeadLetterStrategy
	settings []config.Setting
	l        *linter
}

// strategies looks at every dead letter strategy of the configuration.
func strategies(l *linter) {
	each := func(p *config.PolicyEntry) {
		if p.Rules.DeadLetter.Kind == redelivery.UnsetStrategy {
			return
		}
		b := &buried{keyed{kind: "policy", pattern: p.Destination, source: p.Source}, &p.Rules, p.Rules.DeadLetter, p.Settings, l}
		for _, check := range []func(*buried){vanishing, expiring, unbound, self, redelivered, chain} {
			check(b)
		}
	}
	for i := range l.c.Policies {
		each(&l.c.Policies[i])
	}
	if l.c.DefaultPolicy != nil {
		each(l.c.DefaultPolicy)
	}
	if l.c.Addresses == nil && (l.c.DefaultPolicy == nil || l.c.DefaultPolicy.Rules.DeadLetter.Kind == redelivery.UnsetStrategy) {
		l.found = append(l.found, Finding{Code: "non-persistent-vanish", Severity: SeverityNote, Source: l.c.File,
			Text:   "where no strategy is configured, non-persistent messages become no dead letters: what fails for good is gone",
			Remedy: "configure a strategy with processNonPersistent to keep them"})
	}
	dropping(l)
}

func (b *buried) warn(code, name, text, remedy string) {
	b.l.add(code, SeverityWarning, b.at(name), text, remedy)
}
func (b *buried) note(code, name, text, remedy string) {
	b.l.add(code, SeverityNote, b.at(name), text, remedy)
}

// at is the entry, at the line of a setting where the file gives it.
func (b *buried) at(name string) *keyed {
	k := b.keyed
	for _, s := range b.settings {
		if s.Name == name || strings.HasSuffix(s.Name, "."+name) {
			k.source = s.Source
		}
	}
	return &k
}

// sample is a destination that the entry may be for.
func (b *buried) sample() message.Destination {
	d := b.pattern
	if d.IsZero() {
		d = message.Destination{Kind: message.Queue, Name: ">"}
	}
	return sampleOf(d)
}

// target is where dead letters of the sample go.
func (b *buried) target() message.Destination {
	d := b.sample()
	if d.IsTemporary() && d.IsTopic() {
		return message.Destination{}
	}
	return b.strategy.Target(d, subscriptionOf(d))
}

// vanishing finds messages that become no dead letters (R-DLS-20).
func vanishing(b *buried) {
	switch {
	case b.strategy.Kind == redelivery.Discarding:
		b.warn("discarding", "kind", "no message becomes a dead letter: what fails for good is gone", "use a shared or an individual strategy if somebody is to see it")
		return
	case !b.strategy.ProcessNonPersistent:
		b.note("non-persistent-vanish", "processNonPersistent", "non-persistent messages become no dead letters: what fails for good is gone", "set processNonPersistent to true to keep them")
	}
	if !b.strategy.ProcessExpired {
		b.note("expired-vanish", "processExpired", "messages whose time to live passes become no dead letters: they are gone", "set processExpired to true to keep them")
	}
}

// expiring finds dead letters that do not stay.
func expiring(b *buried) {
	if b.strategy.Kind == redelivery.Discarding {
		return
	}
	if e := b.strategy.Expiration; e > 0 {
		fate := expiringFate(b.l.resolver, b.target())
		if fate.Action == redelivery.Keep.String() {
			b.note("dead-letters-expire", "expiration", "dead letters have a time to live of "+duration(e)+", and stay in their queue all the same when it passes; only a strategy that names that queue itself moves them on", "configure a strategy for "+b.target().String()+" to have them moved or dropped")
		} else {
			b.warn("dead-letters-expire", "expiration", "dead letters leave their queue after "+duration(e)+", whether or not somebody saw them: "+fateWords(fate), "set expiration to 0 to keep them there")
		}
	}
	if b.strategy.DiscardOwn {
		b.warn("discard-own", "discardOwn", "a dead letter that fails where it lies is gone, as in ActiveMQ", "set discardOwn to false to keep it")
	}
}

// fateWords says a fate in a few words.
func fateWords(f Fate) string {
	if f.Target != "" {
		return "they go to " + f.Target
	}
	return "they are gone"
}

// unbound finds dead letters that nobody may take.
func unbound(b *buried) {
	if t := b.target(); t.Kind == message.Topic {
		name := "useQueueForQueueMessages"
		if b.strategy.Kind == redelivery.Shared {
			name = "deadLetterQueue"
		} else if b.sample().IsTopic() {
			name = "useQueueForTopicMessages"
		}
		b.warn("dead-letters-unbound", name, fmt.Sprintf("dead letters go to %s, a topic: those that come while it has no durable subscription are gone", t), "name a queue, or keep a durable subscription there")
	}
}

// self finds queues that are their own dead letter queue (R-DLS-04).
func self(b *buried) {
	if d := b.sample(); b.strategy.Kind == redelivery.Individual && b.target() == d {
		b.warn("own-dead-letter-queue", "queuePrefix", "with neither prefix nor suffix a queue is its own dead letter queue: what fails for good stays in it and is delivered again, held back a while each time", "set queuePrefix")
	}
}

// maxChain bounds the dead letter queues that are followed.
const maxChain = 20

// redelivered finds dead letter queues that a redelivery policy names: dead letters
// that fail there are scheduled, and stay (R-EDGE-31).
func redelivered(b *buried) {
	t := b.target()
	if t.IsZero() || b.pattern.IsPattern() && b.strategy.Kind == redelivery.Individual {
		return // which queue it is depends on the message's
	}
	if there := b.l.resolver.Policy(t); there.Rules.RedeliveryNamed {
		b.note("dead-letters-redelivered", "deadLetterQueue", fmt.Sprintf("a redelivery policy names %s (%s): dead letters that fail there wait for its delays", t, there.Rules.Redelivery.Source), "")
	}
}

// chain follows the dead letters of dead letter queues that have a strategy of
// their own, by name (R-EDGE-28), and finds those that go round.
func chain(b *buried) {
	if b.pattern.IsZero() || b.pattern.IsPattern() {
		return
	}
	seen := []message.Destination{b.sample()}
	for at := b.target(); !at.IsZero() && len(seen) < maxChain; {
		for i, d := range seen {
			if d == at && i == 0 && len(seen) > 1 {
				b.l.add("dead-letter-loop", SeverityError, b.at("deadLetterQueue"), "dead letters go round: "+path(append(seen, at)), "let one of these queues have no strategy of its own")
				return
			} else if d == at {
				return // the loop is another entry's
			}
		}
		seen = append(seen, at)
		there := b.l.resolver.Policy(at)
		if !there.Rules.StrategyNamed {
			return
		}
		next := there.Rules.DeadLetter.Target(at, subscriptionOf(at))
		if next == at {
			return
		}
		at = next
	}
}

func path(all []message.Destination) string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.String()
	}
	return strings.Join(names, ", ")
}

// dropping finds rules that drop what would be a dead letter elsewhere.
func dropping(l *linter) {
	if r := l.c.Redelivery; r != nil {
		k := func(name string) *keyed {
			k := &keyed{name: "redeliveryPlugin", source: r.Source}
			for _, s := range r.Settings {
				if s.Name == name {
					k.source = s.Source
				}
			}
			return k
		}
		if !r.SendToDLQIfMaxRetriesExceeded {
			l.add("drop-at-limit", SeverityWarning, k("sendToDlqIfMaxRetriesExceeded"), "what a redelivery policy gives up is gone: it becomes no dead letter", "set sendToDlqIfMaxRetriesExceeded to true to keep it")
		}
		if !r.FallbackToDeadLetter {
			l.add("drop-without-policy", SeverityWarning, k("fallbackToDeadLetter"), "what a client gives up where no redelivery policy is for it is gone: it becomes no dead letter", "set fallbackToDeadLetter to true to keep it")
		}
	}
	if d := l.c.Discarding; d != nil {
		l.add("drop-dead-letters", SeverityWarning, &keyed{name: "discardingDLQBrokerPlugin", source: d.Source}, "what would become a dead letter is gone where the plugin says so", "remove it to keep dead letters")
	}
	entries := l.c.Policies
	if l.c.DefaultPolicy != nil {
		entries = append(entries[:len(entries):len(entries)], *l.c.DefaultPolicy)
	}
	for i := range entries {
		p := &entries[i]
		b := &buried{keyed{kind: "policy", pattern: p.Destination, source: p.Source}, &p.Rules, p.Rules.DeadLetter, p.Settings, l}
		if p.Rules.DropAtLimit {
			b.warn("drop-at-limit", "dropAtLimit", "what the broker gives up is gone: it becomes no dead letter", "set dropAtLimit to false to keep it")
		}
		if p.Rules.DropWithoutPolicy {
			b.warn("drop-without-policy", "dropWithoutPolicy", "what a client gives up is gone: it becomes no dead letter", "set dropWithoutPolicy to false to keep it")
		}
		if p.Rules.Drop != redelivery.DropNever {
			b.warn("drop-dead-letters", "dropDeadLetters", "what would become a dead letter is gone", "set dropDeadLetters to never to keep it")
		}
		if p.Rules.Duplicates == redelivery.DiscardDuplicate {
			b.note("duplicates-vanish", "duplicates", "a message that a client takes for one it had is gone, although nobody acknowledged it", "use requeue, the default, to keep it")
		}
	}
}
