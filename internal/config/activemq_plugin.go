package config

// Reasons that several plugins share.
const (
	whyNoLogin = "nobody would be asked for a password; remove it, and listen on loopback or add --allow-anonymous, only if everybody who can reach the broker may use it"
	whyNoRoute = "messages would not be forwarded; send to the targets directly, or wait for a release that offers it"
)

// pluginsPart is the list of plugins (section 7.7). A plugin of a class of one's
// own is refused: what it does to messages cannot be known.
var pluginsPart = &part{name: "plugins", fate: accepted, children: []*part{
	redeliveryPluginPart,
	refusedPlugin("discardingDLQBrokerPlugin", "dead letters would be kept instead of dropped; remove it to keep them"),
	refusedPlugin("simpleAuthenticationPlugin", whyNoLogin),
	refusedPlugin("jaasAuthenticationPlugin", whyNoLogin),
	refusedPlugin("jaasCertificateAuthenticationPlugin", whyNoLogin),
	refusedPlugin("jaasDualAuthenticationPlugin", whyNoLogin),
	refusedPlugin("authorizationPlugin", "everybody could read and write everywhere; remove it only if everybody who can reach the broker may"),
	refusedPlugin("timeStampingBrokerPlugin", "messages would keep their own time stamps and expirations; remove it if the senders' clocks are right and no ceiling is needed"),
	refusedPlugin("forcePersistencyModeBrokerPlugin", "messages would keep the delivery mode of their senders; remove it if the senders set the right one"),
	refusedPlugin("destinationPathSeparatorPlugin", "names with another separator would not be the same destination; use dots in names"),
	refusedPlugin("camelRoutesBrokerPlugin", whyNoRoute),
	refusedPlugin("bean", "a plugin of a class of one's own is Java code and is not run; what it does to messages would not happen"),
	leftOutPlugin("statisticsBrokerPlugin", "queries to ActiveMQ.Statistics destinations are not answered; the numbers stand at the admin listener"),
	leftOutPlugin("loggingBrokerPlugin", "the broker has its own log"),
	leftOutPlugin("connectionDotFilePlugin", "no dot files are written"),
	leftOutPlugin("destinationDotFilePlugin", "no dot files are written"),
	leftOutPlugin("multicastTraceBrokerPlugin", "commands are not traced to the network"),
	leftOutPlugin("udpTraceBrokerPlugin", "commands are not traced to the network"),
	leftOutPlugin("traceBrokerPathPlugin", "messages carry no property with the brokers they passed; there is only this one"),
	leftOutPlugin("destinationsPlugin", "destinations are remembered in any case"),
	leftOutPlugin("virtualSelectorCacheBrokerPlugin", "there are no virtual topics yet whose selectors it could remember"),
	leftOutPlugin("runtimeConfigurationPlugin", "the file is read at start alone; restart to change it"),
}}

func refusedPlugin(name, why string) *part {
	return &part{name: name, fate: refused, why: why, opaque: true}
}

func leftOutPlugin(name, why string) *part {
	return &part{name: name, fate: leftOut, why: why, opaque: true}
}
