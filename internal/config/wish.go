package config

import (
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Wishes are the redelivery policies by destination that clients of ours are asked to
// go by: those that the broker itself goes by. The first layer are the policy entries,
// the second the redeliveryPlugin, as in Resolver.Policy; a layer without a policy is
// left out.
//
// Of a HornetQ or Artemis file it is one layer, with the merged policy of each
// address-setting, and last that of addresses without one. Where two patterns of which
// neither is the narrower both match, the broker merges them and a client takes one.
func (c *Config) Wishes() redelivery.Wishes {
	if c.Addresses != nil {
		return redelivery.Wishes{c.Addresses.wishes()}
	}
	var w redelivery.Wishes
	var entries []redelivery.Wish
	for i := range c.Policies {
		entries = append(entries, redelivery.Wish{Destination: c.Policies[i].Destination, Policy: c.Policies[i].Rules.Redelivery})
	}
	if c.DefaultPolicy != nil {
		entries = append(entries, redelivery.Wish{Destination: message.Destination{}, Policy: c.DefaultPolicy.Rules.Redelivery})
	}
	w = withPolicies(w, entries)
	if c.Redelivery != nil {
		var plugged []redelivery.Wish
		for i := range c.Redelivery.Policies {
			p := &c.Redelivery.Policies[i].Policy
			for _, part := range p.Destination.Parts() {
				plugged = append(plugged, redelivery.Wish{Destination: part, Policy: p})
			}
		}
		if d := c.Redelivery.Default; d != nil {
			plugged = append(plugged, redelivery.Wish{Policy: &d.Policy})
		}
		w = withPolicies(w, plugged)
	}
	return w
}

// withPolicies adds a layer that has a policy at all.
func withPolicies(w redelivery.Wishes, layer []redelivery.Wish) redelivery.Wishes {
	for _, wish := range layer {
		if wish.Policy != nil {
			return append(w, layer)
		}
	}
	return w
}

// wishes are the policies of the address-settings, each under the destinations that its
// pattern stands for.
func (s *AddressSettings) wishes() []redelivery.Wish {
	var layer []redelivery.Wish
	for i := range s.settings {
		told := s.told(&s.settings[i])
		for _, d := range s.settings[i].pattern.destinations(s) {
			sample := told.Sample
			sample.Kind = d.Kind
			layer = append(layer, redelivery.Wish{Destination: d, Policy: s.policy(sample).Rules.Redelivery})
		}
	}
	rest := s.redelivery(merged{})
	return append(layer, redelivery.Wish{Policy: &rest})
}

// destinations are the destinations that a pattern stands for, in OpenWire's syntax.
func (p *addressPattern) destinations(s *AddressSettings) []message.Destination {
	if p.literal {
		return []message.Destination{s.destination(p.text)}
	}
	words := make([]string, 0, len(p.words)+1)
	for _, w := range p.words {
		if w == s.syntax.singleWord {
			w = "*"
		}
		words = append(words, w)
	}
	if p.tail { // of a glued "news#" the nearest is everything from news down
		if p.bare && !p.glued && strings.Trim(strings.Join(words, "."), ".") != "" {
			words = append(words, "*") // HornetQ's "#" is one word at least (R-HQ-12)
		}
		words = append(words, ">")
	}
	if !p.tail && !slices.Contains(words, "*") {
		return []message.Destination{s.destination(p.text)}
	}
	if s.product == hornetQ && len(words) > 1 && words[0] == "jms" {
		kind := map[string]message.DestinationKind{"queue": message.Queue, "topic": message.Topic, "tempqueue": message.TempQueue, "temptopic": message.TempTopic}[words[1]]
		if kind != message.NoDestination && len(words) > 2 {
			if name := strings.Join(words[2:], "."); name != "*.>" {
				return []message.Destination{{Kind: kind, Name: name}}
			}
			return []message.Destination{{Kind: kind, Name: ">"}}
		}
		if words[1] == "*" || words[1] == ">" { // "jms.#"
			words = []string{">"}
		}
	}
	var all []message.Destination
	for _, kind := range []message.DestinationKind{message.Queue, message.Topic, message.TempQueue, message.TempTopic} {
		all = append(all, message.Destination{Kind: kind, Name: strings.Join(words, ".")})
	}
	return all
}
