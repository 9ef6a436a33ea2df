package config

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Wishes are the redelivery policies by destination that clients of ours are asked to
// go by: those that the broker itself goes by. The first layer are the policy entries,
// the second the redeliveryPlugin, as in Resolver.Policy; a layer without a policy is
// left out.
func (c *Config) Wishes() redelivery.Wishes {
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
