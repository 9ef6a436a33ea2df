package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// addresses looks at the address-settings of a HornetQ or Artemis file: each with
// what is merged for a destination that it fits.
func addresses(l *linter) {
	s := l.c.Addresses
	if s == nil {
		return
	}
	for _, p := range s.Patterns() {
		e := l.resolver.Policy(p.Sample)
		k := keyed{kind: "address-setting", name: p.Match, source: p.Source}
		l.judge(k, e.Rules.Redelivery, e.Settings)
		b := &buried{k, &e.Rules, e.Rules.DeadLetter, e.Settings, l}
		given := func(name string) bool {
			return slices.ContainsFunc(b.settings, func(s config.Setting) bool { return s.Name == name && s.Value != "" })
		}
		target := e.Rules.DeadLetter.Target(p.Sample, subscriptionOf(p.Sample))
		if fit := s.Matching(p.Sample); len(fit) > 0 && fit[len(fit)-1].Source != p.Source || p.Sample.IsTemporary() {
			continue // what is missing is told once, of the widest setting
		}
		switch {
		case !given("dead-letter-address") && s.KeepsWithoutAddress():
			b.note("no-dead-letter-address", "match", "there is no dead-letter-address: dead letters are kept in "+redelivery.DefaultDeadLetterQueue+", where the product drops them", "write a dead-letter-address")
		case !given("dead-letter-address"):
			b.warn("no-dead-letter-address", "match", "there is no dead-letter-address: what fails for good is gone", "write a dead-letter-address")
		case target.Kind == message.Topic:
			b.warn("dead-letters-unbound", "dead-letter-address", fmt.Sprintf("dead letters go to %s, a topic: those that come while it has no subscription are kept in %s", target, redelivery.DefaultDeadLetterQueue), "name an address with a queue")
		case !slices.Contains(l.c.Destinations, target) && !given("auto-create-dead-letter-resources"):
			b.note("dead-letters-unbound", "dead-letter-address", fmt.Sprintf("no queue of the file is bound to the dead-letter-address: %s is made when it is needed, where the product drops the messages", target), "declare the queue")
		}
		if !given("expiry-address") {
			b.note("expired-vanish", "expiry-address", "there is no expiry-address: messages whose time to live passes are gone", "write an expiry-address to keep them")
		}
	}
	l.once()
}

// once removes findings that several settings have in common: those that speak of
// one line.
func (l *linter) once() {
	seen := map[string]bool{}
	l.found = slices.DeleteFunc(l.found, func(f Finding) bool {
		if !strings.HasPrefix(f.Part, "address-setting ") {
			return false
		}
		key := f.Code + " " + f.Source
		was := seen[key]
		seen[key] = true
		return was
	})
}
