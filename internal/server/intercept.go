package server

import (
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
)

// interceptors are the virtual and composite destinations of a configuration; without any
// ActiveMQ's built-in virtual topic alone, since its clients count on it.
func interceptors(cfg *config.Config) broker.Interceptors {
	c := cfg.Interceptors
	if c == nil {
		c = config.DefaultInterceptors()
	}
	var all broker.Interceptors
	if s := cfg.SelectorCache; s != nil {
		all.Memory = broker.SelectorMemory{On: true, Single: s.SingleSelectorPerDestination, NotWild: s.IgnoreWildcardSelectors}
	}
	for _, v := range c.VirtualTopics {
		all.VirtualTopics = append(all.VirtualTopics, broker.VirtualTopic{
			Name: v.Name, Prefix: v.Prefix, Postfix: v.Postfix, SelectorAware: v.SelectorAware, KeepDestination: !v.SetOriginalDestination, DropFull: v.DropOnResourceLimit,
		})
	}
	for _, k := range c.Composites {
		one := broker.Composite{
			Destination: message.Destination{Kind: k.Kind, Name: k.Name},
			ForwardOnly: k.ForwardOnly, SendWhenNotMatched: k.SendWhenNotMatched,
		}
		for _, f := range k.ForwardTo {
			one.ForwardTo = append(one.ForwardTo, broker.Forward{Destination: f.Destination, Selector: f.Selector, Otherwise: f.Otherwise})
		}
		all.Composites = append(all.Composites, one)
	}
	for _, f := range c.Filters {
		all.Filters = append(all.Filters, broker.Filter{Destination: f.Queue, Selector: f.Selector})
	}
	for _, m := range c.Mirrors {
		all.Mirrors = append(all.Mirrors, broker.Mirror{Prefix: m.Prefix, Postfix: m.Postfix, Temporary: m.Temporary, KeptOnly: m.KeptOnly})
	}
	return all
}
