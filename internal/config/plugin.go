package config

import "time"

// A DiscardingPlugin drops messages that would become dead letters (spec 5.7).
type DiscardingPlugin struct {
	// DropAll drops every one, whatever the other fields say; default true.
	DropAll bool
	// DropTemporaryTopics and DropTemporaryQueues drop those of such destinations;
	// default true.
	DropTemporaryTopics, DropTemporaryQueues bool
	// DropOnly drops those of destinations whose whole name matches one of these
	// patterns, in the syntax of Go's regexp. Load has checked them.
	DropOnly []string
	// First drops what a client gives up at once, before a redelivery policy has a
	// say; else the policy goes first (R-DLQ-41).
	First    bool
	Settings []Setting
	// Source is "FILE:LINE".
	Source string
}

// A SelectorCache remembers what consumers of the queues of selector aware virtual topics
// have selected, so that these get it also while the consumers are away: ActiveMQ's
// virtualSelectorCacheBrokerPlugin.
type SelectorCache struct {
	// SingleSelectorPerDestination remembers the last selector of a queue alone, beside
	// that there were consumers without one; default false.
	SingleSelectorPerDestination bool
	// IgnoreWildcardSelectors remembers no selector with a LIKE that has a wildcard;
	// default false.
	IgnoreWildcardSelectors bool
	// Source is "FILE:LINE".
	Source string
}

// TimeStamping sets JMSTimestamp and JMSExpiration of what clients send by the
// broker's clock: ActiveMQ's timeStampingBrokerPlugin. A message without a time
// stamp is left alone.
type TimeStamping struct {
	// ZeroExpirationOverride is the time to live of messages that have none; 0:
	// they keep none.
	ZeroExpirationOverride time.Duration
	// TTLCeiling is the longest time to live; 0: no ceiling.
	TTLCeiling time.Duration
	// FutureOnly changes nothing where that would move the expiration to an earlier
	// time; default false.
	FutureOnly bool
	// Source is "FILE:LINE".
	Source string
}
