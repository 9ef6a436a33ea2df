package config

// The elements of an address-setting that are honoured (spec sections 2.1, 2.2).
const (
	setDeadLetterAddress = "dead-letter-address"
	setExpiryAddress     = "expiry-address"
	setExpiryDelay       = "expiry-delay"
	setMinExpiryDelay    = "min-expiry-delay"
	setMaxExpiryDelay    = "max-expiry-delay"
	setNoExpiry          = "no-expiry"
	setDelay             = "redelivery-delay"
	setMultiplier        = "redelivery-delay-multiplier"
	setCollision         = "redelivery-collision-avoidance-factor"
	setMaxDelay          = "max-redelivery-delay"
	setAttempts          = "max-delivery-attempts"
	setNoRoute           = "send-to-dla-on-no-route"
	setAutoDeadLetter    = "auto-create-dead-letter-resources"
	setDeadLetterPrefix  = "dead-letter-queue-prefix"
	setDeadLetterSuffix  = "dead-letter-queue-suffix"
	setAutoExpiry        = "auto-create-expiry-resources"
	setExpiryPrefix      = "expiry-queue-prefix"
	setExpirySuffix      = "expiry-queue-suffix"
	setExclusive         = "default-exclusive-queue"
	setGroupRebalance    = "default-group-rebalance"
	setMaxConsumers      = "default-max-consumers"
	setConsumersBefore   = "default-consumers-before-dispatch"
	setDelayBefore       = "default-delay-before-dispatch"
	setRing              = "default-ring-size"
	setPurge             = "default-purge-on-no-consumers"
	setLastValueQueue    = "last-value-queue"
	setLastValue         = "default-last-value-queue"
	setLastValueKey      = "default-last-value-key"

	setAutoCreateQueues    = "auto-create-queues"
	setAutoCreateAddresses = "auto-create-addresses"
	setMaxBytes            = "max-size-bytes"
	setMaxMessages         = "max-size-messages"
	setFullPolicy          = "address-full-policy"
	setSlowRate            = "slow-consumer-threshold"
	setSlowUnit            = "slow-consumer-threshold-measurement-unit"
	setSlowPeriod          = "slow-consumer-check-period"
	setSlowPolicy          = "slow-consumer-policy"
)

// Reasons that several elements of an address-setting share.
const (
	whyPaging      = "memory is bounded for the whole broker, and what does not fit is in the store"
	whyAddressFull = "what is in the store is bounded by the disk's reserve alone, and nothing is dropped for it"
	whyCounters    = "counters are always kept, and read at the admin listener"
	whyAutoCreate  = "a queue or topic is made when it is first used, and stays"
	whyClients     = "a client says what it is for each destination"
	whyBuckets     = "each group has a consumer of its own (see docs/groups.md)"
	whyFirstKey    = "the first message of a group for a consumer has the property JMSXGroupFirstForConsumer, whatever the name here"
)

// commonSettings are the elements that an address-setting has in both products.
var commonSettings = []*part{
	leafPart(setDeadLetterAddress, text, "", honoured, ""),
	leafPart(setExpiryAddress, text, "", honoured, ""),
	leafPart(setExpiryDelay, integer, "", honoured, ""),
	leafPart(setDelay, integer, "", honoured, ""),
	leafPart(setMultiplier, decimal, "", honoured, ""),
	leafPart(setMaxDelay, integer, "", honoured, ""),
	leafPart(setAttempts, integer, "", honoured, ""),
	leafPart(setNoRoute, boolean, "", honoured, ""),
	leafPart(setMaxBytes, text, "-1", honoured, ""),
	leafPart("page-size-bytes", text, "10485760", leftOut, whyPaging),
	leafPart("page-max-cache-size", integer, "5", leftOut, whyPaging),
	leafPart(setFullPolicy, text, "PAGE", honoured, ""),
	leafPart("message-counter-history-day-limit", integer, "0", leftOut, whyCounters),
	leafPart("redistribution-delay", integer, "-1", leftOut, "there is no cluster to hand messages on to"),
	leafPart(setSlowRate, integer, "", honoured, ""),
	leafPart(setSlowPeriod, integer, "", honoured, ""),
	leafPart(setSlowPolicy, text, "", honoured, ""),
	leafPart(setLastValueQueue, boolean, "", honoured, ""),
}

// hornetQSettingPart is one address-setting of HornetQ.
var hornetQSettingPart = &part{name: "address-setting", fate: honoured, role: roleAddressSetting,
	attrs: []attr{{"match", text, "", honoured, ""}}, children: commonSettings}

// artemisSettingPart is one address-setting of Artemis.
var artemisSettingPart = &part{name: "address-setting", fate: honoured, role: roleAddressSetting,
	attrs: []attr{{"match", text, "", honoured, ""}}, children: append(append([]*part(nil), commonSettings...),
		leafPart(setCollision, decimal, "", honoured, ""),
		leafPart(setNoExpiry, boolean, "", honoured, ""),
		leafPart(setMinExpiryDelay, integer, "", honoured, ""),
		leafPart(setMaxExpiryDelay, integer, "", honoured, ""),
		leafPart(setAutoDeadLetter, boolean, "", honoured, ""),
		leafPart(setDeadLetterPrefix, text, "", honoured, ""),
		leafPart(setDeadLetterSuffix, text, "", honoured, ""),
		leafPart(setAutoExpiry, boolean, "", honoured, ""),
		leafPart(setExpiryPrefix, text, "", honoured, ""),
		leafPart(setExpirySuffix, text, "", honoured, ""),
		leafPart(setMaxMessages, text, "-1", honoured, ""),
		leafPart("max-size-bytes-reject-threshold", text, "-1", leftOut, whyAddressFull),
		leafPart("max-read-page-messages", text, "-1", leftOut, whyPaging),
		leafPart("max-read-page-bytes", text, "", leftOut, whyPaging),
		leafPart("prefetch-page-messages", text, "", leftOut, whyPaging),
		leafPart("prefetch-page-bytes", text, "", leftOut, whyPaging),
		leafPart("page-limit-bytes", text, "-1", leftOut, whyAddressFull),
		leafPart("page-limit-messages", text, "-1", leftOut, whyAddressFull),
		leafPart("page-full-policy", text, "", leftOut, whyAddressFull),
		leafPart("disk-full-policy", text, "", leftOut, whyAddressFull),
		leafPart(setSlowUnit, text, "", honoured, ""),
		leafPart("management-browse-page-size", integer, "200", leftOut, "a browser sees every message"),
		leafPart("management-message-attribute-size-limit", integer, "256", leftOut, "messages are shown whole"),
		leafPart("retroactive-message-count", integer, "0", refused, "new subscriptions would not get earlier messages; set it to 0 if none relies on that"),
		leafPart("enable-metrics", boolean, "true", leftOut, whyCounters),
		leafPart("enable-ingress-timestamp", boolean, "false", refused, "messages would not carry the time at which they came in; set it to false if no consumer reads that"),
		leafPart(setConsumersBefore, integer, "", honoured, ""),
		leafPart(setDelayBefore, integer, "", honoured, ""),
		leafPart("default-consumer-window-size", integer, "1048576", leftOut, "each client says how much it prefetches"),
		leafPart(setRing, integer, "", honoured, ""),
		leafPart(setMaxConsumers, integer, "", honoured, ""),
		leafPart(setPurge, boolean, "", honoured, ""),
		leafPart("default-queue-routing-type", text, "MULTICAST", leftOut, whyClients),
		leafPart("default-address-routing-type", text, "MULTICAST", leftOut, whyClients),
		leafPart(setExclusive, boolean, "", honoured, ""),
		leafPart("default-non-destructive", boolean, "false", refused, "messages would be removed when they are acknowledged; set it to false if nobody reads them twice"),
		leafPart(setLastValue, boolean, "", honoured, ""),
		leafPart(setLastValueKey, text, "", honoured, ""),
		leafPart(setGroupRebalance, boolean, "", honoured, ""),
		leafPart("default-group-rebalance-pause-dispatch", boolean, "", accepted, ""),
		leafPart("default-group-buckets", integer, "-1", leftOut, whyBuckets),
		leafPart("default-group-first-key", text, "JMSXGroupFirstForConsumer", leftOut, whyFirstKey),
		leafPart(setAutoCreateQueues, boolean, "", honoured, ""),
		leafPart("auto-delete-queues", boolean, "", accepted, ""),
		leafPart("auto-delete-created-queues", boolean, "false", leftOut, whyAutoCreate),
		leafPart("auto-delete-queues-delay", integer, "0", leftOut, whyAutoCreate),
		leafPart("auto-delete-queues-message-count", integer, "0", leftOut, whyAutoCreate),
		leafPart("auto-delete-queues-skip-usage-check", boolean, "false", leftOut, whyAutoCreate),
		leafPart(setAutoCreateAddresses, boolean, "", honoured, ""),
		leafPart("auto-delete-addresses", boolean, "", accepted, ""),
		leafPart("auto-delete-addresses-delay", integer, "0", leftOut, whyAutoCreate),
		leafPart("auto-delete-addresses-skip-usage-check", boolean, "false", leftOut, whyAutoCreate),
		leafPart("auto-create-jms-queues", boolean, "true", leftOut, whyAutoCreate),
		leafPart("auto-delete-jms-queues", boolean, "", accepted, ""),
		leafPart("auto-create-jms-topics", boolean, "true", leftOut, whyAutoCreate),
		leafPart("auto-delete-jms-topics", boolean, "", accepted, ""),
		leafPart("config-delete-queues", text, "OFF", leftOut, "queues that are not in the file stay"),
		leafPart("config-delete-addresses", text, "OFF", leftOut, "addresses that are not in the file stay"),
		leafPart("config-delete-diverts", text, "OFF", leftOut, "diverts are those of the file"),
		leafPart("id-cache-size", integer, "", leftOut, whyDuplicateIDs),
		leafPart("initial-queue-buffer-size", integer, "8192", leftOut, whyPaging),
	)}

// settingAliases are other names of elements, by their name in small letters:
// WildFly's, and Artemis' older ones.
var settingAliases = map[string]string{
	"redelivery-multiplier":                 setMultiplier,
	"last-value-key":                        setLastValueKey,
	"enable-expiry-resources":               setAutoExpiry,
	"default-last-value":                    setLastValue,
	"slow-consumer-threshold-unit":          setSlowUnit,
	"redelivery-collision-avoidance-factor": setCollision,
}
