package config

import (
	"math"
	"strings"

	"github.com/nixiemq/nixie/internal/redelivery"
)

const whyNoRoute = "messages would not be forwarded; send to the targets directly"

// pluginsPart is the list of plugins (section 7.7). A plugin of a class of one's
// own is refused: what it does to messages cannot be known.
var pluginsPart = &part{name: "plugins", fate: accepted, children: []*part{
	redeliveryPluginPart,
	discardingPart,
	simpleAuthenticationPart,
	authorizationPart,
	timeStampingPart,
	{name: "forcePersistencyModeBrokerPlugin", fate: honoured, role: rolePersistency, attrs: []attr{{"persistenceFlag", boolean, "", honoured, ""}}},
	jaasPart,
	refusedPlugin("jaasCertificateAuthenticationPlugin", whyNoJAAS),
	refusedPlugin("jaasDualAuthenticationPlugin", whyNoJAAS),
	refusedPlugin("destinationPathSeparatorPlugin", "names with another separator would not be the same destination; use dots in names"),
	refusedPlugin("camelRoutesBrokerPlugin", whyNoRoute),
	refusedPlugin("partitionBrokerPlugin", "clients would not be sent to the broker that is theirs; remove it to start a broker for all"),
	refusedPlugin("bean", "a plugin of a class of one's own is Java code and is not run; what it does to messages would not happen; remove it if that is not needed"),
	leftOutPlugin("statisticsBrokerPlugin", "queries to ActiveMQ.Statistics destinations are not answered; the numbers stand at the admin listener"),
	leftOutPlugin("loggingBrokerPlugin", "the broker has its own log"),
	leftOutPlugin("connectionDotFilePlugin", "no dot files are written"),
	leftOutPlugin("destinationDotFilePlugin", "no dot files are written"),
	leftOutPlugin("multicastTraceBrokerPlugin", "commands are not traced to the network"),
	leftOutPlugin("udpTraceBrokerPlugin", "commands are not traced to the network"),
	leftOutPlugin("openTelemetryPlugin", "messages are not traced; the story of each tells of its attempts"), // ActiveMQ 6.3
	leftOutPlugin("traceBrokerPathPlugin", "messages carry no property with the brokers they passed; there is only this one"),
	leftOutPlugin("destinationsPlugin", "destinations are remembered in any case"),
	selectorCachePart,
	leftOutPlugin("runtimeConfigurationPlugin", "the file is read again when the broker is told to (see docs/operations.md), not by itself"),
}}

func refusedPlugin(name, why string) *part {
	return &part{name: name, fate: refused, why: why, opaque: true}
}

func leftOutPlugin(name, why string) *part {
	return &part{name: name, fate: leftOut, why: why, opaque: true}
}

// discardingPart is the plugin that drops dead letters (section 5.7).
var discardingPart = &part{
	name: "discardingDLQBrokerPlugin", fate: honoured, role: roleDiscarding,
	attrs: []attr{
		{"dropAll", boolean, "", honoured, ""},
		{"dropTemporaryTopics", boolean, "", honoured, ""},
		{"dropTemporaryQueues", boolean, "", honoured, ""},
		{"dropOnly", text, "", honoured, ""},
		{"reportInterval", integer, "1000", leftOut, "drops are logged once in ten seconds for each destination, with their number, and counted in nixie_discards_total"},
	},
}

// discarding reads a discardingDLQBrokerPlugin. Where it stands decides whether it
// drops before the redeliveryPlugin is asked, or after (R-DLQ-41): the last plugin of
// a file is the outermost.
func (w *walker) discarding(e *element) {
	if w.cfg.Discarding != nil {
		w.fail(e.at("is the second discardingDLQBrokerPlugin; remove one"))
		return
	}
	p := &DiscardingPlugin{DropAll: true, DropTemporaryTopics: true, DropTemporaryQueues: true, Source: e.source()}
	w.bool(e, "dropAll", &p.DropAll)
	w.bool(e, "dropTemporaryTopics", &p.DropTemporaryTopics)
	w.bool(e, "dropTemporaryQueues", &p.DropTemporaryQueues)
	if a, ok := e.given("dropOnly"); ok {
		for text := range strings.FieldsSeq(a.value) {
			if _, err := wholeName(text); err != nil {
				w.fail(e.atAttr(a, "pattern "+text+" cannot be used: "+err.Error()+"; look-around and back references of Java's patterns are not known here"))
				continue
			}
			p.DropOnly = append(p.DropOnly, text)
		}
		if p.DropAll && len(p.DropOnly) > 0 {
			w.warn(e.atAttr(a, "has no effect, as dropAll is true: every dead letter is dropped; write dropAll=\"false\" to drop only these (R-DLQ-40)"))
		}
	}
	p.First = w.cfg.Redelivery != nil
	p.Settings = settingsOf(e, discardingPart.attrs)
	w.cfg.Discarding = p
}

// timeStampingPart is the plugin that sets times by the broker's clock.
var timeStampingPart = &part{
	name: "timeStampingBrokerPlugin", fate: honoured, role: roleTimeStamping,
	attrs: []attr{
		{"zeroExpirationOverride", integer, "", honoured, ""},
		{"ttlCeiling", integer, "", honoured, ""},
		{"futureOnly", boolean, "", honoured, ""},
		{"processNetworkMessages", boolean, "false", leftOut, whyNoNetworks},
	},
}

// timeStamping reads a timeStampingBrokerPlugin.
func (w *walker) timeStamping(e *element) {
	if w.cfg.TimeStamping != nil {
		w.fail(e.at("is the second timeStampingBrokerPlugin; remove one"))
		return
	}
	p := &TimeStamping{Source: e.source()}
	w.intBetween(e, "zeroExpirationOverride", 0, math.MaxInt64, func(n int64) { p.ZeroExpirationOverride = redelivery.FromMillis(n) })
	w.intBetween(e, "ttlCeiling", 0, math.MaxInt64, func(n int64) { p.TTLCeiling = redelivery.FromMillis(n) })
	w.bool(e, "futureOnly", &p.FutureOnly)
	w.cfg.TimeStamping = p
}

// selectorCachePart is the plugin that remembers selectors of consumers that are away.
var selectorCachePart = &part{
	name: "virtualSelectorCacheBrokerPlugin", fate: honoured, role: roleSelectorCache,
	attrs: []attr{
		{"persistFile", text, "", leftOut, "selectors are kept in the store. The file is Java's own serialization, and is not read: those that are in it count again once their consumers have come"},
		{"singleSelectorPerDestination", boolean, "", honoured, ""},
		{"ignoreWildcardSelectors", boolean, "", honoured, ""},
	},
}

// selectorCache reads a virtualSelectorCacheBrokerPlugin.
func (w *walker) selectorCache(e *element) {
	if w.cfg.SelectorCache != nil {
		w.fail(e.at("is the second virtualSelectorCacheBrokerPlugin; remove one"))
		return
	}
	p := &SelectorCache{Source: e.source()}
	w.bool(e, "singleSelectorPerDestination", &p.SingleSelectorPerDestination)
	w.bool(e, "ignoreWildcardSelectors", &p.IgnoreWildcardSelectors)
	w.cfg.SelectorCache = p
}

// persistency reads a forcePersistencyModeBrokerPlugin, whose flag is false by
// default: nothing is persistent then.
func (w *walker) persistency(e *element) {
	force := false
	w.bool(e, "persistenceFlag", &force)
	w.cfg.ForcePersistent = &force
	if !force {
		w.warn(e.at("makes every message non-persistent, as persistenceFlag is false: they are lost when the broker stops, and become no dead letters unless processNonPersistent is true"))
	}
}
