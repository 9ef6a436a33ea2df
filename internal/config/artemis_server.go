package config

// artemisPart is the configuration of Artemis: broker.xml.
var artemisPart = &part{name: "configuration", fate: honoured, children: []*part{
	corePart,
	{name: "jms", fate: accepted, children: jmsParts},
}}

// corePart is the element core of broker.xml (spec section 15.3).
var corePart = &part{name: "core", fate: honoured, children: joined(
	commonServer,
	[]*part{
		{name: "acceptors", fate: honoured, role: roleAcceptors, children: []*part{{name: "acceptor", fate: honoured, role: roleURIAcceptor, leaf: true,
			value: attr{"acceptor", text, "", honoured, ""}, attrs: []attr{{"name", text, "", honoured, ""}}}}},
		securitySettingsPart(artemisSecurityParts...),
		{name: "address-settings", fate: accepted, children: []*part{artemisSettingPart}},
		wildcardsPart,
		{name: "literal-match-markers", fate: honoured, leaf: true, value: attr{"literal-match-markers", text, "", honoured, ""}},
		{name: "temporary-queue-namespace", fate: honoured, role: roleTemporaryNamespace, leaf: true, value: attr{"temporary-queue-namespace", text, "", honoured, ""}},
		addressesPart,
		haPolicyPart,
		{name: "populate-validated-user", fate: honoured, role: roleValidatedUser, leaf: true, value: attr{"populate-validated-user", boolean, "", honoured, ""}},
		{name: "reject-empty-validated-user", fate: honoured, role: roleRejectNameless, leaf: true, value: attr{"reject-empty-validated-user", boolean, "", honoured, ""}},
		leafPart("max-redelivery-records", integer, "10", leftOut, "every count and due time is kept, and survives a restart"),
		leafPart("suppress-session-notifications", boolean, "false", accepted, ""),
		leafPart("amqp-use-core-subscription-naming", boolean, "false", leftOut, "AMQP is not offered yet"),
		leafPart("uuid-namespace", text, "", leftOut, "the broker makes its own ids"),
		leafPart("internal-naming-prefix", text, "", leftOut, "nothing internal has an address"),
		leafPart("system-property-prefix", text, "", leftOut, "values come from the environment and from -D NAME=VALUE"),
		leafPart("resolve-protocols", boolean, "true", leftOut, "which protocols there are is not looked for"),
		leafPart("resolveProtocols", boolean, "true", leftOut, "which protocols there are is not looked for"),
	},
	left(whyDirectory, text, "node-manager-lock-directory", ""),
	left(whyJournal, text, "journal-datasync", "true", "journal-pool-files", "-1", "journal-device-block-size", "", "journal-file-open-timeout", "5",
		"journal-lock-acquisition-timeout", "-1", "journal-max-atticjournal-files", "", "journal-retention-directory", ""),
	left(whySynced, boolean, "large-message-sync", "true"),
	left(whyPages, text, "read-whole-page", "false", "purge-page-folders", "true", "page-sync-timeout", ""),
	left(whyExactTime, integer, "address-queue-scan-period", "30000", "connection-ttl-check-interval", "2000"),
	left(whyReload, integer, "configuration-file-refresh-period", "5000"),
	left(whyCritical, text, "critical-analyzer", "true", "critical-analyzer-timeout", "120000", "critical-analyzer-check-period", "60000", "critical-analyzer-policy", "LOG"),
	left(whyDisk, text, "global-max-size", "-1", "global-max-messages", "-1", "max-disk-usage", "90", "min-disk-free", "-1", "disk-scan-period", "5000"),
	left(whyNetworkCheck, text, "network-check-NIC", "", "network-check-URL-list", "", "network-check-list", "", "network-check-period", "10000",
		"network-check-timeout", "1000", "network-check-ping-command", "", "network-check-ping6-command", ""),
	left(whyNoJMXAtAll, text, "jmx-use-broker-name", "true"),
	left(whyAuthCache, text, "authentication-cache-size", "1000", "authorization-cache-size", "1000"),
	left(whyManagement, text, "view-permission-method-match-pattern", "", "management-message-rbac", "false", "management-rbac-prefix", "mops"),
	left("the broker stops at once, and loses nothing", text, "graceful-shutdown-enabled", "false", "graceful-shutdown-timeout", "-1"),
	left("there is no mirror", text, "mirror-ack-manager-page-attempts", "", "mirror-ack-manager-queue-attempts", "", "mirror-ack-manager-retry-delay", "",
		"mirror-ack-manager-warn-unacked", "", "mirror-page-transaction", "false"),
	shut(leftOut, whyCounting, "metrics", "metrics-plugin"),
	shut(leftOut, whyJournal, "store"),
	shut(leftOut, "users have no limits of their own", "resource-limit-settings"),
	shut(leftOut, "clients stay where they connected", "connection-routers", "balancers"),
	shut(leftOut, "it only tunes what Artemis logs", "logging"),
	shutInside("federations", whyNotForwarded, "federation"),
	shutInside("broker-connections", whyNotForwarded, "amqp-connection"),
	[]*part{{name: "broker-plugins", fate: accepted, children: []*part{{name: "broker-plugin", fate: refused, opaque: true, harmless: loggingPlugins,
		why: "a plugin " + whyJavaCode + "; what it does to messages would not happen; remove it if that is not needed. LoggingActiveMQServerPlugin and NotificationActiveMQServerPlugin do nothing to messages, and are a warning"}}}},
)}

// loggingPlugins are Artemis' own plugins that only tell what happens.
var loggingPlugins = []string{
	"org.apache.activemq.artemis.core.server.plugin.impl.LoggingActiveMQServerPlugin",
	"org.apache.activemq.artemis.core.server.plugin.impl.NotificationActiveMQServerPlugin",
}

// wildcardsPart says how patterns are written (R-HQ-14).
var wildcardsPart = &part{name: "wildcard-addresses", fate: honoured, role: roleWildcards, children: []*part{
	leafPart("routing-enabled", boolean, "true", leftOut, "the wildcards of clients always work"),
	leafPart("enabled", boolean, "true", leftOut, "the wildcards of clients always work"),
	leafPart("delimiter", text, "", honoured, ""),
	leafPart("any-words", text, "", honoured, ""),
	leafPart("single-word", text, "", honoured, ""),
}}

// addressesPart are the addresses of the file with their queues (R-HQ-135).
var addressesPart = &part{name: "addresses", fate: accepted, children: []*part{{
	name: "address", fate: honoured, role: roleAddress,
	attrs: []attr{{"name", text, "", honoured, ""}, {"enable-metrics", boolean, "true", leftOut, whyCounting}},
	children: []*part{
		{name: "anycast", fate: accepted, children: []*part{addressQueuePart}},
		{name: "multicast", fate: accepted, children: []*part{addressQueuePart}},
	}}}}

// addressQueuePart is a queue of an address.
var addressQueuePart = &part{name: "queue", fate: accepted,
	attrs: []attr{
		{"name", text, "", honoured, ""},
		{"max-consumers", integer, "", honoured, ""},
		{"purge-on-no-consumers", boolean, "", honoured, ""},
		{"exclusive", boolean, "", honoured, ""},
		{"last-value", boolean, "", honoured, ""},
		{"last-value-key", text, "", honoured, ""},
		{"non-destructive", boolean, "false", refused, "messages would be removed when they are acknowledged; remove it if nobody reads them twice"},
		{"consumers-before-dispatch", integer, "", honoured, ""},
		{"delay-before-dispatch", integer, "", honoured, ""},
		{"ring-size", integer, "", honoured, ""},
		{"group-rebalance", boolean, "", honoured, ""},
		{"group-rebalance-pause-dispatch", boolean, "", accepted, ""},
		{"group-buckets", integer, "-1", leftOut, whyBuckets},
		{"group-first-key", text, "JMSXGroupFirstForConsumer", leftOut, whyFirstKey},
		{"enabled", boolean, "", honoured, ""},
		{"enable-metrics", boolean, "true", leftOut, whyCounting},
		{"auto-delete", boolean, "false", leftOut, whyAutoCreate},
		{"user", text, "", leftOut, "a queue belongs to nobody"},
	},
	children: []*part{
		leafPart("durable", boolean, "true", leftOut, "every queue is durable; whether a message is kept is the message's own affair"),
		leafPart("user", text, "", leftOut, "a queue belongs to nobody"),
		{name: "filter", fate: honoured, attrs: []attr{{"string", text, "", honoured, ""}}},
	}}

// haPolicyPart says how a broker and its backup stand in for each other.
var haPolicyPart = &part{name: "ha-policy", fate: accepted, children: []*part{
	{name: "live-only", fate: accepted, opaque: true},
	{name: "primary-only", fate: accepted, opaque: true},
	{name: "replication", fate: refused, why: "messages would not be copied to the backup; " + whyAlone, opaque: true},
	{name: "shared-store", fate: accepted, children: []*part{
		{name: "master", fate: leftOut, why: whyNoBackup, opaque: true},
		{name: "primary", fate: leftOut, why: whyNoBackup, opaque: true},
		{name: "slave", fate: refused, why: "the broker would serve clients although the file makes it a backup; remove it to start an ordinary broker", opaque: true},
		{name: "backup", fate: refused, why: "the broker would serve clients although the file makes it a backup; remove it to start an ordinary broker", opaque: true},
		{name: "colocated", fate: refused, why: "messages would not be copied to the backup; " + whyAlone, opaque: true},
	}},
}}
