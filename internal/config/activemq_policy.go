package config

// Reasons that several parts of a policyEntry share.
const (
	whyDefault = "the default entry is for every destination that no other entry matches"
	whyAudit   = "a copy of a message that is already there is always recognised, within bounded memory"
	whyExpiry  = "messages expire at their time, without a sweep"
	whyMemory  = "a destination keeps a bounded window in memory and the rest in the store"
	whyGC      = "destinations stay when they are empty and unused; they cost next to nothing"
	whyPlain   = "it tunes ActiveMQ's own implementation and has no counterpart here"
	whyNoTurns = "a topic's subscriptions do not wait for each other, so none has to be served before another"
)

// destinationPolicyPart is the policy map (section 7.3).
var destinationPolicyPart = &part{name: "destinationPolicy", fate: accepted, children: []*part{
	{name: "policyMap", fate: accepted, children: []*part{
		{name: "policyEntries", fate: accepted, children: []*part{policyEntryPart(rolePolicyEntry, honoured, "")}},
		{name: "entries", fate: accepted, children: []*part{policyEntryPart(rolePolicyEntry, honoured, "")}},
		{name: "defaultEntry", fate: accepted, children: []*part{policyEntryPart(roleDefaultEntry, leftOut, whyDefault)}},
	}}},
}

// policyEntryPart is one entry, of the list or by default. The fate is that of
// its pattern, which the default entry has no use for.
func policyEntryPart(r role, pattern fate, why string) *part {
	attrs := make([]attr, 0, len(policyAttr)+len(policyAttrs))
	for _, k := range policyAttr {
		attrs = append(attrs, attr{k.name, text, "", pattern, why})
	}
	return &part{name: "policyEntry", fate: honoured, role: r, attrs: append(attrs, policyAttrs...),
		children: append([]*part{keyPart(pattern, why)}, policyChildren...)}
}

// policyAttrs are the attributes of an entry, save its pattern.
var policyAttrs = []attr{
	{"prioritizedMessages", boolean, "false", honoured, ""},
	{"persistJMSRedelivered", boolean, "", honoured, ""},
	{"queuePrefetch", integer, "", honoured, ""},
	{"queueBrowserPrefetch", integer, "", honoured, ""},
	{"topicPrefetch", integer, "", honoured, ""},
	{"durableTopicPrefetch", integer, "", honoured, ""},
	{"allConsumersExclusiveByDefault", boolean, "", honoured, ""},

	{"sendDuplicateFromStoreToDLQ", boolean, "false", refused, "copies of a message that is already there are dropped and counted, never dead-lettered; set it to false"},
	{"enableAudit", boolean, "true", leftOut, whyAudit},
	{"maxQueueAuditDepth", integer, "10000", leftOut, whyAudit},
	{"maxAuditDepth", integer, "10000", leftOut, whyAudit},
	{"maxProducersToAudit", integer, "64", leftOut, whyAudit},
	{"expireMessagesPeriod", integer, "30000", leftOut, whyExpiry},
	{"maxExpirePageSize", integer, "400", leftOut, whyExpiry},
	{"strictOrderDispatch", boolean, "", honoured, ""},
	{"usePrefetchExtension", boolean, "true", leftOut, "a window is widened by what a client has delivered and not yet acknowledged for good, as clients rely on"},
	{"advisoryForDiscardingMessages", boolean, "false", honoured, ""},
	{"advisoryForConsumed", boolean, "false", honoured, ""},
	{"advisoryForDelivery", boolean, "false", honoured, ""},
	{"advisoryForDispatched", boolean, "false", honoured, ""},
	{"advisoryForSlowConsumers", boolean, "false", honoured, ""},
	{"advisoryForFastProducers", boolean, "false", honoured, ""},
	{"advisoryWhenFull", boolean, "false", honoured, ""},
	{"includeBodyForAdvisory", boolean, "false", honoured, ""},
	{"sendAdvisoryIfNoConsumers", boolean, "false", honoured, ""},
	{"producerFlowControl", boolean, "true", honoured, ""},
	{"memoryLimit", size, "0", honoured, ""},
	{"sendFailIfNoSpace", boolean, "", honoured, ""},
	{"sendFailIfNoSpaceAfterTimeout", integer, "", honoured, ""},
	{"blockedProducerWarningInterval", integer, "30000", honoured, ""},
	{"storeUsageHighWaterMark", integer, "100", honoured, ""},
	{"cursorMemoryHighWaterMark", integer, "70", leftOut, whyMemory},
	{"maxPageSize", integer, "200", leftOut, whyMemory},
	{"maxBrowsePageSize", integer, "400", leftOut, "a browser sees every message"},
	{"useCache", boolean, "true", leftOut, whyMemory},
	{"lazyDispatch", boolean, "false", leftOut, whyPlain},
	{"optimizedDispatch", boolean, "false", leftOut, whyPlain},
	{"minimumMessageSize", size, "1024", leftOut, whyMemory},
	{"useConsumerPriority", boolean, "true", leftOut, "consumers with a higher priority are always served first"},
	{"timeBeforeDispatchStarts", integer, "0", honoured, ""},
	{"consumersBeforeDispatchStarts", integer, "0", honoured, ""},
	{"messageGroupMapFactoryType", text, "cached", leftOut, whyPlain},
	{"gcInactiveDestinations", boolean, "false", leftOut, whyGC},
	{"inactiveTimeoutBeforeGC", integer, "60000", leftOut, whyGC},
	{"inactiveTimoutBeforeGC", integer, "60000", leftOut, whyGC}, // ActiveMQ's older spelling
	{"gcWithNetworkConsumers", boolean, "false", leftOut, whyGC},
	{"alwaysRetroactive", boolean, "false", honoured, ""},
	{"reduceMemoryFootprint", boolean, "false", leftOut, whyMemory},
	{"doOptimzeMessageStorage", boolean, "true", leftOut, whyPlain},
	{"optimizeMessageStoreInFlightLimit", integer, "10", leftOut, whyPlain},
	{"maxDestinations", integer, "-1", honoured, ""},
	{"useTopicSubscriptionInflightStats", boolean, "true", leftOut, "counters are always kept"},
	{"advancedNetworkStatisticsEnabled", boolean, "false", leftOut, whyNoNetworks},
	{"advancedMessageStatisticsEnabled", boolean, "false", leftOut, "the counters there are stand at the admin listener"},
	{"allowTempDestinationStealing", boolean, "false", leftOut, "a temporary destination belongs to the connection that made it"},
}

// policyChildren are the elements inside an entry.
var policyChildren = []*part{
	deadLetterStrategyPart,
	slowConsumerPart,
	{name: "dispatchPolicy", fate: accepted, children: []*part{
		{name: "roundRobinDispatchPolicy", fate: accepted}, // a topic's subscriptions do not wait for each other; queues have none of these
		{name: "simpleDispatchPolicy", fate: accepted},
		{name: "strictOrderDispatchPolicy", fate: honoured, role: roleNone},
		{name: "priorityDispatchPolicy", fate: leftOut, why: whyNoTurns, opaque: true},
		{name: "priorityNetworkDispatchPolicy", fate: leftOut, why: whyNoNetworks, opaque: true},
		{name: "bean", fate: leftOut, why: whyNoTurns, opaque: true}}},
	{name: "subscriptionRecoveryPolicy", fate: accepted, children: recoveryParts},
	backlogParts[0],
	backlogParts[1],
	{name: "pendingQueuePolicy", fate: accepted, children: cursors("vmQueueCursor", "fileQueueCursor", "storeCursor")},
	{name: "pendingSubscriberPolicy", fate: accepted, children: cursors("vmCursor", "fileCursor")},
	{name: "pendingDurableSubscriberPolicy", fate: accepted, children: cursors("vmDurableCursor", "fileDurableSubscriberCursor", "storeDurableSubscriberCursor")},
	{name: "networkBridgeFilterFactory", fate: leftOut, why: whyNoNetworks, opaque: true},
	{name: "messageInterceptorStrategy", fate: refused, why: "messages would keep the headers that it is meant to change; remove it if nothing depends on that", opaque: true},
	{name: "messageGroupMapFactory", fate: leftOut, why: whyPlain, opaque: true},
}

// recoveryPart is a way to hand earlier messages to retroactive consumers that is not offered.
func recoveryPart(name string) *part {
	return &part{name: name, fate: refused, why: "retroactive topic consumers would not get those messages; use fixedCount, fixedSized, lastImage or timedSubscriptionRecoveryPolicy", opaque: true}
}

// cursors are ways to keep waiting messages. All wait in the store here, behind a bounded
// window in memory; of the first, with which ActiveMQ keeps all in memory, memoryLimit
// counts what waits.
func cursors(names ...string) []*part {
	parts := make([]*part, len(names))
	for i, n := range names {
		parts[i] = &part{name: n, fate: accepted, attrs: inside("immediatePriorityDispatch", "useCache")}
		if n == "vmQueueCursor" || n == "vmDurableCursor" {
			parts[i].fate = honoured
		}
	}
	return parts
}
