package config

// Reasons that several elements of HornetQ's and Artemis' files share.
const (
	whyJournal      = "messages are kept in the broker's own store, which looks after its own files"
	whyDirectory    = "messages are kept in the --data directory"
	whySynced       = "a persistent message, a transaction and an acknowledgement are on disk before they are answered"
	whyPages        = "there are no page files; what does not fit in memory is in the store"
	whyPools        = "there are no thread pools to size"
	whyDuplicateIDs = "resent messages are recognised by their producer's sequence"
	whyCounting     = "counters are always kept, and read at the admin listener"
	whyNoJMXAtAll   = "there is no JMX; use the admin listener (--admin)"
	whyExactTime    = "nothing is looked for from time to time: messages expire, and transactions end, at their time"
	whyWatched      = "connections are watched by their protocol's own inactivity monitor"
	whyClusterUser  = "there is no cluster to log in to"
	whyReload       = "changed files are read when the broker is told to, not by watching them"
	whyConnectors   = "connectors tell clients and other brokers where to connect; nothing here connects to them"
	whyAlone        = "remove it to start a broker that stands alone"
	whyManagement   = "management is at the admin listener (--admin), not by messages"
	whyAuthCache    = "changed users and rights hold as soon as the files are read again"
	whyJavaCode     = "is Java code and is not run"
	whyNetworkCheck = "the broker does not stop when a network cannot be reached"
	whyCritical     = "the broker stops, with a message that names the directory, when its disk fails, and loses nothing"
	whyMemoryCheck  = "memory is bounded by design and not looked at"
	whyDisk         = "producers are stopped by the disk's reserve (see docs/configuration.md)"
	whyNoBackup     = "there is no backup; start the broker again on the same --data directory"
	whyInterceptor  = "an interceptor " + whyJavaCode + "; what it does to messages would not happen; remove it if that is not needed"
	whyNotForwarded = "messages would not be passed on to the other broker; " + whyAlone
)

// left are elements that are safe to leave out, for one reason, as pairs of name
// and default.
func left(why string, k kind, pairs ...string) []*part {
	var parts []*part
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, leafPart(pairs[i], k, pairs[i+1], leftOut, why))
	}
	return parts
}

// shut are elements with a content that nobody looks at.
func shut(f fate, why string, names ...string) []*part {
	var parts []*part
	for _, n := range names {
		parts = append(parts, &part{name: n, fate: f, why: why, opaque: true})
	}
	return parts
}

// shutInside is a list whose items cannot be left out; an empty one asks for
// nothing.
func shutInside(name, why string, items ...string) []*part {
	return []*part{{name: name, fate: accepted, children: shut(refused, why, items...)}}
}

// joined puts lists of parts behind each other.
func joined(lists ...[]*part) []*part {
	var all []*part
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// commonServer are the elements for the server that both products have (spec
// sections 15.1 and 15.3).
var commonServer = joined(
	[]*part{
		{name: "name", fate: honoured, role: roleServerName, leaf: true, value: attr{"name", text, "", honoured, ""}},
		{name: "persistence-enabled", fate: honoured, role: rolePersistence, leaf: true, value: attr{"persistence-enabled", boolean, "", honoured, ""}},
		{name: "persist-delivery-count-before-delivery", fate: honoured, role: roleDeliveryCount, leaf: true,
			value: attr{"persist-delivery-count-before-delivery", boolean, "", honoured, ""}},
		{name: "transaction-timeout", fate: honoured, role: roleTransactionTimeout, leaf: true, value: attr{"transaction-timeout", integer, "300000", honoured, ""}},
		{name: "security-enabled", fate: honoured, role: roleSecurity, leaf: true, value: attr{"security-enabled", boolean, "", honoured, ""}},
		{name: "management-address", fate: honoured, role: roleManagementAddress, leaf: true, value: attr{"management-address", text, "", leftOut, whyManagement + "; its permission manage says who may act there"}},
		{name: "queues", fate: accepted, children: []*part{coreQueuePart}},
		{name: "diverts", fate: accepted, children: []*part{divertPart}},
	},
	left(whyDirectory, text, "bindings-directory", "", "journal-directory", "", "paging-directory", "", "large-messages-directory", ""),
	left(whyJournal, text, "create-bindings-dir", "true", "create-journal-dir", "true", "journal-type", "ASYNCIO",
		"journal-buffer-size", "", "journal-buffer-timeout", "", "journal-file-size", "", "journal-min-files", "2", "journal-max-io", "",
		"journal-compact-min-files", "10", "journal-compact-percentage", "30", "perf-blast-pages", "-1", "run-sync-speed-test", "false",
		"log-journal-write-rate", "false", "journal-perf-blast-pages", "-1"),
	left(whySynced, boolean, "journal-sync-transactional", "true", "journal-sync-non-transactional", "true"),
	left(whyPages, text, "page-max-concurrent-io", "5"),
	left(whyPools, integer, "scheduled-thread-pool-max-size", "5", "thread-pool-max-size", "30", "message-expiry-thread-priority", "3"),
	left(whyPools, boolean, "async-connection-execution-enabled", "true"),
	left(whyDuplicateIDs, text, "id-cache-size", "20000", "persist-id-cache", "true"),
	left(whyCounting, text, "message-counter-enabled", "", "message-counter-sample-period", "10000", "message-counter-max-day-history", "10"),
	left(whyNoJMXAtAll, text, "jmx-management-enabled", "true", "jmx-domain", ""),
	left(whyExactTime, integer, "message-expiry-scan-period", "30000", "transaction-timeout-scan-period", "1000"),
	left(whyWatched, integer, "connection-ttl-override", "-1"),
	left(whyClusterUser, text, "cluster-user", "", "cluster-password", ""),
	left(whyManagement, text, "management-notification-address", ""),
	left(whyAuthCache, integer, "security-invalidation-interval", "10000"),
	left("no password is read from this file", text, "mask-password", "false", "password-codec", ""),
	left("the wildcards of clients always work", boolean, "wild-card-routing-enabled", "true"),
	left(whyMemoryCheck, text, "memory-warning-threshold", "", "memory-measure-interval", "-1", "server-dump-interval", "-1"),
	left("logs go to standard error", text, "log-delegate-factory-class-name", ""),
	shut(leftOut, whyConnectors, "connectors"),
	shut(leftOut, "the broker does not announce itself", "broadcast-groups", "discovery-groups"),
	shut(leftOut, "it only matters in a cluster", "grouping-handler"),
	shutInside("bridges", whyNotForwarded, "bridge"),
	shutInside("cluster-connections", whyNotForwarded, "cluster-connection", "cluster-connection-uri"),
	shutInside("remoting-interceptors", whyInterceptor, "class-name"),
	shutInside("remoting-incoming-interceptors", whyInterceptor, "class-name"),
	shutInside("remoting-outgoing-interceptors", whyInterceptor, "class-name"),
	shutInside("connector-services", "a connector service "+whyJavaCode+"; the messages it moves would stay; remove it if a client moves them", "connector-service"),
)

// coreQueuePart is a queue of the core, in the block queues (R-HQ-129).
var coreQueuePart = &part{name: "queue", fate: honoured, role: roleCoreQueue,
	attrs: []attr{{"name", text, "", honoured, ""}},
	children: []*part{
		leafPart("address", text, "", honoured, ""),
		leafPart("durable", boolean, "true", leftOut, "every queue is durable; whether a message is kept is the message's own affair"),
		{name: "filter", fate: honoured, attrs: []attr{{"string", text, "", honoured, ""}}},
	}}

// jmsParts are the elements of hornetq-jms.xml (R-HQ-133, R-HQ-134), and of the
// block jms of Artemis.
var jmsParts = []*part{
	{name: "queue", fate: honoured, role: roleJMSQueue, attrs: []attr{{"name", text, "", honoured, ""}}, children: []*part{
		{name: "entry", fate: accepted, attrs: []attr{{"name", text, "", leftOut, whyJNDI}}},
		{name: "selector", fate: honoured, attrs: []attr{{"string", text, "", honoured, ""}}},
		leafPart("durable", boolean, "true", leftOut, "every queue is durable; whether a message is kept is the message's own affair")}},
	{name: "topic", fate: honoured, role: roleJMSTopic, attrs: []attr{{"name", text, "", honoured, ""}}, children: []*part{
		{name: "entry", fate: accepted, attrs: []attr{{"name", text, "", leftOut, whyJNDI}}}}},
	{name: "connection-factory", fate: leftOut, why: "clients make their connection factories themselves", opaque: true},
	leafPart("jmx-domain", text, "", leftOut, whyNoJMXAtAll),
}

const whyJNDI = "there is no JNDI; clients name the queue or topic itself"

// hornetQPart is the configuration of HornetQ: hornetq-configuration.xml and
// hornetq-jms.xml, whose root is the same.
var hornetQPart = &part{name: "configuration", fate: honoured, children: joined(
	commonServer,
	[]*part{
		{name: "acceptors", fate: honoured, role: roleAcceptors, children: []*part{{name: "acceptor", fate: honoured, role: roleCoreAcceptor,
			attrs: []attr{{"name", text, "", honoured, ""}},
			children: []*part{
				leafPart("factory-class", text, "", honoured, ""),
				{name: "param", fate: accepted, attrs: []attr{{"key", text, "", accepted, ""}, {"value", text, "", accepted, ""}, {"type", text, "", accepted, ""}}}}}}},
		securitySettingsPart(),
		{name: "address-settings", fate: accepted, children: []*part{hornetQSettingPart}},
		leafPart("clustered", boolean, "false", refused, whyNotForwarded),
		leafPart("backup", boolean, "false", refused, "the broker would serve clients although the file makes it a backup; remove it to start an ordinary broker"),
		leafPart("shared-store", boolean, "true", leftOut, whyNoBackup),
		leafPart("backup-connector-ref", text, "", refused, "messages would not be copied to the backup; "+whyAlone),
		leafPart("file-deployment-enabled", boolean, "", leftOut, whyReload),
	},
	left(whyReload, integer, "file-deployer-scan-period", "5000"),
	left(whyNoBackup, text, "allow-failback", "true", "failback-delay", "5000", "failover-on-shutdown", "false",
		"check-for-live-server", "false", "backup-group-name", "", "live-connector-ref", "", "replication-clustername", "",
		"max-saved-replicated-journal-size", "", "max-saved-replicated-journals-size", ""),
	[]*part{jmsParts[0], jmsParts[1], jmsParts[2]},
)}
