package config

// Reasons that several parts of the broker element share.
const (
	whyNoJMX      = "there is no JMX; use the admin listener (--admin)"
	whyNoThreads  = "the broker has no thread pools of that kind"
	whyOneStore   = "messages are kept in the broker's own store in the --data directory, synced before a persistent send is answered"
	whyNoSchedule = "scheduled messages are kept in the --data directory, with all others"
	whyOneProcess = "it concerns how a Java process starts and stops"
	whyNoNetworks = "there are no networks of brokers"
	whyOneUsage   = "memory is bounded for each destination and connection, not for producers and consumers apart"
	whyStopStart  = "start-up and shutdown are decided by the nixie command"
)

// brokerPart is the broker element (spec section 7.1), with all that it may hold.
var brokerPart = &part{
	name: "broker", fate: honoured, role: roleBroker,
	attrs: []attr{
		{"brokerName", text, "", honoured, ""},
		{"persistent", boolean, "true", honoured, ""},
		{"dataDirectory", text, "", honoured, ""},
		{"useJmx", boolean, "true", leftOut, whyNoJMX},
		{"schedulerSupport", boolean, "", honoured, ""},
		{"schedulerDirectory", text, "", leftOut, whyNoSchedule},
		{"schedulerDirectoryFile", text, "", leftOut, whyNoSchedule},
		{"maxSchedulerRepeatAllowed", integer, "", honoured, ""},
		{"deleteAllMessagesOnStartup", boolean, "", honoured, ""},
		{"advisorySupport", boolean, "", honoured, ""},
		{"start", boolean, "true", leftOut, whyStopStart},
		{"useShutdownHook", boolean, "true", leftOut, whyOneProcess},
		{"useVirtualTopics", boolean, "", honoured, ""},
		{"useMirroredQueues", boolean, "", honoured, ""},
		{"useTempMirroredQueues", boolean, "", honoured, ""},
		{"keepDurableSubsActive", boolean, "true", leftOut, "durable subscriptions keep a bounded window in memory, active or not"},
		{"enableMessageExpirationOnActiveDurableSubs", boolean, "false", leftOut, "messages expire at their time on every subscription"},
		{"offlineDurableSubscriberTimeout", integer, "", honoured, ""},
		{"offlineDurableSubscriberTaskSchedule", integer, "", honoured, ""},
		{"populateJMSXUserID", boolean, "", honoured, ""},
		{"useAuthenticatedPrincipalForJMSXUserID", boolean, "false", leftOut, "populateJMSXUserID writes the name of the user who was let in, in any case"},
		{"schedulePeriodForDestinationPurge", integer, "0", leftOut, "destinations stay when they are empty and unused; they cost next to nothing"},
		{"maxPurgedDestinationsPerSweep", integer, "0", leftOut, "destinations are not removed by a sweep"},
		{"dedicatedTaskRunner", boolean, "false", leftOut, whyNoThreads},
		{"enableStatistics", boolean, "true", leftOut, "counters are always kept"},
		{"networkConnectorStartAsync", boolean, "false", leftOut, whyNoNetworks},
		{"splitSystemUsageForProducersConsumers", boolean, "false", leftOut, whyOneUsage},
		{"producerSystemUsagePortion", integer, "60", leftOut, whyOneUsage},
		{"consumerSystemUsagePortion", integer, "40", leftOut, whyOneUsage},
		{"cacheTempDestinations", boolean, "", accepted, ""},
		{"timeBeforePurgeTempDestinations", integer, "", honoured, ""},
		{"allowTempAutoCreationOnSend", boolean, "", honoured, ""},
		{"rejectDurableConsumers", boolean, "", honoured, ""},
		{"rollbackOnlyOnAsyncException", boolean, "true", refused, "a transaction is always marked for rollback when one of its asynchronous sends fails; set it to true"},
		{"maxUncommittedCount", integer, "0", leftOut, "a transaction is not limited by the number of its messages"},
		{"restartAllowed", boolean, "true", leftOut, whyOneProcess},
		{"adjustUsageLimits", boolean, "true", leftOut, "producers are stopped before the disk is full, whatever the limits say"},
		{"monitorConnectionSplits", boolean, "false", leftOut, "it only counts connections for JMX"},
		{"waitForSlave", boolean, "false", leftOut, "there is no slave to wait for"},
		{"waitForSlaveTimeout", integer, "600000", leftOut, "there is no slave to wait for"},
		{"passiveSlave", boolean, "false", refused, "the broker would serve clients although the file makes it a passive slave; remove it to start an ordinary broker"},
		{"masterConnectorURI", text, "", refused, "the broker would not follow its master; remove it to start an ordinary broker"},
		{"shutdownOnMasterFailure", boolean, "false", leftOut, "there is no master to watch"},
		{"shutdownOnSlaveFailure", boolean, "false", leftOut, "there is no slave to watch"},
		{"supportFailOver", boolean, "false", leftOut, "clients that use failover: may reconnect at any time"},
		{"storeOpenWireVersion", integer, "11", leftOut, "the store has a format of its own"},
		{"vmConnectorURI", text, "", leftOut, whyOneProcess},
		{"brokerId", text, "", leftOut, "the broker makes its own id"},
		{"systemExitOnShutdown", boolean, "false", leftOut, whyOneProcess},
		{"systemExitOnShutdownExitCode", integer, "0", leftOut, whyOneProcess},
		{"useLoggingForShutdownErrors", boolean, "false", leftOut, whyOneProcess},
		{"shutdownTimeout", integer, "30000", leftOut, whyStopStart},
		{"useLocalHostBrokerName", boolean, "false", refused, "the broker would not be named after its host; set brokerName instead"},
		{"persistenceThreadPriority", integer, "10", leftOut, whyNoThreads},
		{"taskRunnerPriority", integer, "5", leftOut, whyNoThreads},
		{"mbeanInvocationTimeout", integer, "0", leftOut, whyNoJMX},
		{"dataDirectoryFile", text, "", leftOut, "messages are kept in the --data directory"},
		{"startAsync", boolean, "false", leftOut, whyStopStart},
		{"populateUserNameInMBeans", boolean, "false", leftOut, whyNoJMX},
		{"schedulePeriodForDiskUsageCheck", integer, "0", leftOut, "the disk is looked at every second"},
		{"diskUsageCheckRegrowThreshold", integer, "0", leftOut, "the limits of the disk do not change"},
		{"anonymousProducerAdvisorySupport", boolean, "false", leftOut, "producers without a destination are told of as all others"},
		{"useVirtualDestSubs", boolean, "false", leftOut, whyNoNetworks},
		{"useVirtualDestSubsOnCreation", boolean, "false", leftOut, whyNoNetworks},
		{"tmpDataDirectory", text, "", leftOut, "what does not fit in memory is kept in the --data directory"},
	},
	children: []*part{
		destinationPolicyPart,
		transportConnectorsPart,
		systemUsagePart,
		{name: "producerSystemUsage", fate: leftOut, why: whyOneUsage, opaque: true},
		{name: "consumerSystemUsage", fate: leftOut, why: whyOneUsage, opaque: true},
		pluginsPart,
		destinationInterceptorsPart,
		managementContextPart,
		persistenceAdapterPart,
		{name: "persistenceFactory", fate: leftOut, why: whyOneStore, opaque: true},
		{name: "tempDataStore", fate: leftOut, why: "what does not fit in memory is kept in the --data directory", opaque: true},
		{name: "jobSchedulerStore", fate: leftOut, why: whyNoSchedule, opaque: true},
		{name: "ioExceptionHandler", fate: leftOut, why: "the broker stops, with a message that names the directory, when its disk fails, and loses nothing", opaque: true},
		{name: "taskRunnerFactory", fate: leftOut, why: whyNoThreads, opaque: true},
		destinationsPart,
		{name: "networkConnectors", fate: accepted, children: []*part{
			{name: "networkConnector", fate: refused, role: roleNetworkConnector, why: "messages would not be passed on to the other broker; remove it to start a broker that stands alone, or add -D " + defineCluster + "=" + fromConnectors + " for one that only tells clients of the other", opaque: true},
			{name: "ldapNetworkConnector", fate: refused, why: "messages would not be passed on to the other brokers; remove it to start a broker that stands alone", opaque: true},
			{name: "multicastNetworkConnector", fate: refused, why: "messages would not be passed on to the other brokers; remove it to start a broker that stands alone", opaque: true}}},
		{name: "networkConnectorURIs", fate: refused, why: "messages would not be passed on to the other brokers; remove it to start a broker that stands alone", opaque: true},
		{name: "transportConnectorURIs", fate: refused, why: "write the connectors as transportConnectors, or give them with --listen", opaque: true},
		{name: "proxyConnectors", fate: leftOut, why: "nothing listens there; let clients connect to this broker itself", opaque: true},
		{name: "jmsBridgeConnectors", fate: refused, why: "messages would not be passed on to the other provider; remove it if nothing depends on the bridge", opaque: true},
		sslContextPart,
		{name: "shutdownHooks", fate: leftOut, why: whyOneProcess, opaque: true},
		{name: "services", fate: leftOut, why: "services are Java code and are not started; start them as a client of their own", opaque: true},
		{name: "messageAuthorizationPolicy", fate: refused, why: "every consumer would get the messages it is meant to withhold; give rights with an authorizationPlugin, by destination", opaque: true},
		{name: "destinationFactory", fate: refused, why: "destinations of a class of one's own are not offered; remove it if what they do is not needed", opaque: true},
		{name: "regionBroker", fate: refused, why: "a region broker of one's own is not offered; remove it if what it does is not needed", opaque: true},
		{name: "adminView", fate: leftOut, why: whyNoJMX, opaque: true},
	},
}

// managementContextPart is JMX. A context without a connector asks for nothing
// that could be missed.
var managementContextPart = &part{
	name: "managementContext", fate: accepted,
	children: []*part{{name: "managementContext", fate: accepted,
		attrs: []attr{
			{"createConnector", boolean, "false", leftOut, whyNoJMX}, // true in ActiveMQ; false asks for what there is,
			{"connectorPort", integer, "1099", leftOut, whyNoJMX},
			{"rmiServerPort", integer, "0", leftOut, whyNoJMX},
			{"connectorHost", text, "localhost", leftOut, whyNoJMX},
			{"connectorPath", text, "/jmxrmi", leftOut, whyNoJMX},
			{"jmxDomainName", text, "org.apache.activemq", leftOut, whyNoJMX},
			{"createMBeanServer", boolean, "true", leftOut, whyNoJMX},
			{"findTigerMbeanServer", boolean, "true", leftOut, whyNoJMX},
			{"useMBeanServer", boolean, "true", leftOut, whyNoJMX},
			{"allowRemoteAddressInMBeanNames", boolean, "true", leftOut, whyNoJMX},
			{"suppressMBean", text, "", leftOut, whyNoJMX},
			{"brokerName", text, "", leftOut, whyNoJMX},
			{"MBeanServer", text, "", leftOut, whyNoJMX},
			{"server", text, "", leftOut, whyNoJMX},
		},
		children: []*part{
			{name: "property", fate: leftOut, why: whyNoJMX, opaque: true},
			{name: "environment", fate: leftOut, why: whyNoJMX, opaque: true},
		}}},
}

// persistenceAdapterPart is the store (section 7.5). Which engine it names makes
// no difference, save for one that keeps nothing.
var persistenceAdapterPart = &part{
	name: "persistenceAdapter", fate: accepted,
	children: []*part{
		{name: "memoryPersistenceAdapter", fate: honoured, role: roleMemoryStore, attrs: []attr{
			{"createTransactionStore", boolean, "", accepted, ""}, {"directory", text, "", accepted, ""}, {"brokerName", text, "", accepted, ""},
			{"useExternalMessageReferences", boolean, "", accepted, ""}, {"usageManager", text, "", accepted, ""}}},
		{name: "kahaDB", fate: leftOut, why: whyOneStore, role: roleKahaDB, attrs: append([]attr{
			{"deleteAllMessages", boolean, "", honoured, ""}, {"purgeRecoveredXATransactionStrategy", text, "", honoured, ""}}, kahaAttrs...), children: []*part{
			{name: "locker", fate: leftOut, why: "the --data directory is locked by its own means", opaque: true},
			{name: "indexDirectory", fate: leftOut, why: whyOneStore, opaque: true}}},
		{name: "mKahaDB", fate: leftOut, why: whyOneStore, opaque: true},
		{name: "levelDB", fate: leftOut, why: whyOneStore, opaque: true},
		{name: "replicatedLevelDB", fate: refused, why: "messages would be kept on this machine alone; remove it to start a broker that stands alone", opaque: true},
		{name: "jdbcPersistenceAdapter", fate: leftOut, why: whyOneStore, opaque: true},
		{name: "journaledJDBC", fate: leftOut, why: whyOneStore, opaque: true},
		{name: "journalPersistenceAdapter", fate: leftOut, why: whyOneStore, opaque: true},
		{name: "amqPersistenceAdapter", fate: leftOut, why: whyOneStore, opaque: true},
		{name: "kahaPersistenceAdapter", fate: leftOut, why: whyOneStore, opaque: true},
	},
}

// kahaAttrs are the attributes of kahaDB. They go with their element, which is
// named once with all of them.
var kahaAttrs = inside("directory", "directoryArchive", "indexDirectory", "journalMaxFileLength", "journalMaxWriteBatchSize",
	"concurrentStoreAndDispatchQueues", "concurrentStoreAndDispatchTopics", "maxAsyncJobs", "enableJournalDiskSyncs",
	"journalDiskSyncStrategy", "journalDiskSyncInterval", "checkpointInterval", "cleanupInterval", "cleanupOnStop",
	"indexCacheSize", "indexWriteBatchSize", "enableIndexWriteAsync", "enableIndexDiskSyncs", "enableIndexPageCaching",
	"enableIndexRecoveryFile", "indexLFUEvictionFactor", "useIndexLFRUEviction", "ignoreMissingJournalfiles",
	"checkForCorruptJournalFiles", "checksumJournalFiles", "archiveDataLogs", "archiveCorruptedIndex", "databaseLockedWaitDelay",
	"preallocationStrategy", "preallocationScope", "failIfDatabaseIsLocked", "forceRecoverIndex",
	"maxFailoverProducersToTrack", "failoverProducersAuditDepth", "rewriteOnRedelivery", "compactAcksAfterNoGC",
	"compactAcksIgnoresStoreGrowth", "enableAckCompaction", "enableSubscriptionStatistics", "useLock", "lockKeepAlivePeriod",
	"brokerName", "usage", "transactionIdTransformer", "purgeRecoveredXATransactions",
	"cleanupPeriod", "stopOnError", "brokerService", "usageManager", "scheduledThreadPoolExecutor", "storeOpenWireVersion", "size", "typeSequence")

// inside makes rows for attributes that share the fate of their element.
func inside(names ...string) []attr {
	attrs := make([]attr, len(names))
	for i, n := range names {
		attrs[i] = attr{n, text, "", accepted, ""}
	}
	return attrs
}

// systemUsagePart is the limits of memory and disk (section 7.6); the element
// stands doubled in files.
var systemUsagePart = &part{name: "systemUsage", fate: accepted, children: []*part{{
	name: "systemUsage", fate: honoured, role: roleSystemUsage,
	attrs: []attr{
		{"name", text, "", accepted, ""},
		{"sendFailIfNoSpace", boolean, "", honoured, ""},
		{"sendFailIfNoSpaceExplicitySet", boolean, "false", accepted, ""},
		{"sendFailIfNoSpaceAfterTimeout", integer, "0", honoured, ""},
		{"checkLimitsLogLevel", text, "warn", leftOut, whyDiagnostic},
	},
	children: []*part{
		{name: "memoryUsage", fate: accepted, children: []*part{{name: "memoryUsage", fate: honoured, role: roleMemoryUsage, attrs: append([]attr{
			{"limit", size, "", honoured, ""},
			{"percentOfJvmHeap", integer, "", leftOut, "there is no Java heap; limit says how much memory messages may take"},
			{"percentLimit", integer, "100", leftOut, "it is for limits of the disk"}}, usageAttrs...)}}},
		{name: "storeUsage", fate: accepted, children: []*part{{name: "storeUsage", fate: honoured, role: roleStoreUsage, attrs: append([]attr{
			{"limit", size, "", honoured, ""},
			{"percentLimit", integer, "", honoured, ""}}, usageAttrs...)}}},
		usagePart("tempUsage", "what does not fit in memory is kept in the --data directory, and counts with the store"),
		usagePart("jobSchedulerUsage", "scheduled messages are kept in the --data directory, and count with the store"),
	},
}}}

// usageAttrs are what limits have beside them.
var usageAttrs = []attr{
	{"total", size, "", leftOut, "the size of the disk is asked of the system"},
	{"percentUsageMinDelta", integer, "1", leftOut, whyDiagnostic},
	{"pollingTime", integer, "1000", leftOut, "the disk is looked at every second"},
	{"store", text, "", leftOut, whyOneStore},
	{"name", text, "", accepted, ""},
	{"portion", integer, "0", leftOut, whyOneUsage},
	{"usagePortion", integer, "100", leftOut, whyOneUsage},
	{"usage", integer, "0", leftOut, "what is used is counted, not set"},
	{"percentUsage", integer, "0", leftOut, "what is used is counted, not set"},
	{"parent", text, "", leftOut, whyOneUsage},
	{"executor", text, "", leftOut, whyNoThreads},
}

// usagePart is one limit that is not used; its element stands doubled, too.
func usagePart(name, why string) *part {
	return &part{name: name, fate: accepted, children: []*part{{name: name, fate: leftOut, why: why,
		attrs: inside("limit", "percentOfJvmHeap", "percentLimit", "total", "percentUsageMinDelta", "pollingTime", "store", "name", "portion", "usagePortion", "usage", "percentUsage", "parent", "executor")}}}
}
