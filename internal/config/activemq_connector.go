package config

// Reasons that several parts of a transportConnector share.
const (
	whyDiscovery = "the broker does not announce itself; give clients its address"
)

// transportConnectorsPart is the list of listeners (section 7.4).
var transportConnectorsPart = &part{
	name: "transportConnectors", fate: honoured, role: roleConnectors,
	children: []*part{{
		name: "transportConnector", fate: honoured, role: roleConnector,
		attrs: []attr{
			{"name", text, "", honoured, ""},
			{"uri", text, "", honoured, ""},
			{"autoStart", boolean, "true", honoured, ""},
			{"discoveryUri", text, "", leftOut, whyDiscovery},
			{"discoveryURI", text, "", leftOut, whyDiscovery},
			{"updateClusterClients", boolean, "false", honoured, ""},
			{"rebalanceClusterClients", boolean, "false", honoured, ""},
			{"updateClusterClientsOnRemove", boolean, "false", honoured, ""},
			{"updateClusterFilter", text, "", honoured, ""},
			{"allowLinkStealing", boolean, "false", honoured, ""},
			{"enableStatusMonitor", boolean, "false", leftOut, whyInactivity},
			{"maximumConsumersAllowedPerConnection", integer, "2147483647", honoured, ""},
			{"maximumProducersAllowedPerConnection", integer, "2147483647", honoured, ""},
			{"auditNetworkProducers", boolean, "false", leftOut, whyNoNetworks},
			{"warnOnRemoteClose", boolean, "false", leftOut, whyDiagnostic},
			{"displayStackTrace", boolean, "false", leftOut, whyDiagnostic},
			{"disableAsyncDispatch", boolean, "false", leftOut, whyThreads},
		},
		children: []*part{
			{name: "discoveryAgent", fate: leftOut, why: whyDiscovery, opaque: true},
			{name: "publishedAddressPolicy", fate: leftOut, why: whyDiscovery, opaque: true},
			{name: "messageAuthorizationPolicy", fate: refused, why: "every consumer would get the messages it is meant to withhold; give rights with an authorizationPlugin, by destination", opaque: true},
			{name: "taskRunnerFactory", fate: leftOut, why: whyNoThreads, opaque: true},
		},
	}},
}
