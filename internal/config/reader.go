package config

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// maxPolicies bounds the entries of a policy map: a lookup reads them all.
const maxPolicies = 2000

// read hands an honoured element to its reader.
func (w *walker) read(r role, e *element) {
	switch r {
	case roleBroker:
		w.broker(e)
	case roleConnector:
		w.connector(e)
	case roleConnectors:
		w.connectorList(e)
	case rolePolicyEntry:
		w.policyEntry(e)
	case roleDefaultEntry:
		w.defaultEntry(e)
	case roleSystemUsage:
		w.systemUsage(e)
	case roleMemoryStore:
		w.inMemory(e.at("keeps nothing"))
	case roleKahaDB:
		w.kahaDB(e)
	case roleDestination:
		w.destination(e)
	case roleRedeliveryPlugin:
		w.redeliveryPlugin(e)
	case roleRedeliveryPolicy:
		w.redeliveryPolicy(e)
	case roleDefaultRedelivery:
		w.defaultRedelivery(e)
	case roleInterceptors:
		w.interceptors(e)
	case roleMirroredQueue:
		w.mirroredQueue(e)
	case roleVirtualTopic:
		w.virtualTopic(e)
	case roleComposite:
		w.composite(e)
	case roleDiscarding:
		w.discarding(e)
	case roleSelectorCache:
		w.selectorCache(e)
	case roleTimeStamping:
		w.timeStamping(e)
	case rolePersistency:
		w.persistency(e)
	case roleAuthentication:
		w.authentication(e)
	case roleJAAS:
		w.jaas(e)
	case roleAuthorization:
		w.authorization(e)
	case roleAuthorizationEntry:
		w.authorizationEntry(e)
	case roleDefaultAuthorization:
		w.oneEntry(e, &w.rights.Default)
	case roleTempAuthorization:
		w.oneEntry(e, &w.rights.Temporary)
	case roleMemoryUsage:
		w.memoryUsage(e)
	case roleStoreUsage:
		w.storeUsage(e)
	case roleSSLContext:
		w.sslContext(e)
	}
}

// given returns the attribute of that name, unless it is absent or was reported
// as bad.
func (e *element) given(name string) (attribute, bool) {
	for _, a := range e.attrs {
		if a.space == "" && a.name == name {
			return a, !a.bad
		}
	}
	return attribute{}, false
}

// string stores the value of an attribute that is given.
func (w *walker) string(e *element, name string, into *string) {
	if a, ok := e.given(name); ok {
		*into = a.value
	}
}

// bool stores the value of an attribute that is given and well-formed; one that
// is not was reported by the walk.
func (w *walker) bool(e *element, name string, into *bool) {
	if a, ok := e.given(name); ok {
		if b, err := parseBool(a.value); err == nil {
			*into = b
		}
	}
}

// int is bool for whole numbers from low on.
func (w *walker) int(e *element, name string, low int64, into *int) {
	w.intBetween(e, name, low, math.MaxInt64/1_000_000, func(n int64) { *into = int(n) })
}

// intBetween is int with both ends, and a taker.
func (w *walker) intBetween(e *element, name string, low, high int64, take func(int64)) {
	a, ok := e.given(name)
	if !ok {
		return
	}
	if _, err := integer.canonical(a.value); err != nil {
		return
	}
	n, err := parseInt(a.value, low, high)
	if err != nil {
		w.fail(e.atAttr(a, err.Error()))
		return
	}
	take(n)
}

// float is bool for numbers.
func (w *walker) float(e *element, name string, into *float64) {
	a, ok := e.given(name)
	if !ok {
		return
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(a.value), 64)
	switch {
	case err != nil: // reported
	case math.IsNaN(f) || math.IsInf(f, 0):
		w.fail(e.atAttr(a, fmt.Sprintf("%q is no number to reckon with", a.value)))
	default:
		*into = f
	}
}

// broker reads the attributes of the broker element.
func (w *walker) broker(e *element) {
	if a, ok := e.given("brokerName"); ok {
		if a.value == "" {
			w.fail(e.atAttr(a, "is empty; give a name or remove the attribute"))
		} else {
			w.cfg.BrokerName = a.value
		}
	}
	persistent := true
	w.bool(e, "persistent", &persistent)
	if !persistent {
		a, _ := e.given("persistent")
		w.inMemory(e.atAttr(a, "keeps nothing"))
	}
	w.bool(e, "schedulerSupport", &w.cfg.SchedulerSupport)
	_, says := e.given("schedulerSupport")
	w.cfg.NoScheduler = says && !w.cfg.SchedulerSupport
	w.int(e, "maxSchedulerRepeatAllowed", 1, &w.cfg.MaxSchedulerRepeat)
	w.bool(e, "populateJMSXUserID", &w.cfg.UserID)
	remove := false
	w.bool(e, "deleteAllMessagesOnStartup", &remove)
	w.cfg.DeleteAllMessages = w.cfg.DeleteAllMessages || remove // which the store's element may ask for, too
	w.intBetween(e, "offlineDurableSubscriberTimeout", -1, math.MaxInt64, func(n int64) {
		w.cfg.OfflineSubscriptionLimit = redelivery.FromMillis(max(n, 0))
	})
	w.intBetween(e, "offlineDurableSubscriberTaskSchedule", 1, math.MaxInt64, func(n int64) { w.cfg.OfflineSubscriptionCheck = redelivery.FromMillis(n) })
	w.intBetween(e, "timeBeforePurgeTempDestinations", 0, math.MaxInt64, func(n int64) { w.cfg.KeepTemporaryQueues = redelivery.FromMillis(n) })
	w.bool(e, "allowTempAutoCreationOnSend", &w.cfg.MakeTemporaryQueues)
	w.bool(e, "rejectDurableConsumers", &w.cfg.RejectDurableConsumers)
	advisories := true
	w.bool(e, "advisorySupport", &advisories)
	w.cfg.NoAdvisories = !advisories
	w.needScheduler(e)
	w.builtInInterceptors(e)
	w.joinAccess()
	w.joinLimits()
	if a, ok := e.given("dataDirectory"); ok && w.cfg.DataDir != Memory && !sameDir(a.value, w.cfg.DataDir) {
		w.warn(e.atAttr(a, fmt.Sprintf("%q is left out: messages are kept in %s; --data changes that", a.value, w.cfg.DataDir)))
	}
}

// kahaDB reads what of a store that is not used asks for something all the same.
func (w *walker) kahaDB(e *element) {
	remove := false
	w.bool(e, "deleteAllMessages", &remove)
	w.cfg.DeleteAllMessages = w.cfg.DeleteAllMessages || remove
	a, ok := e.given("purgeRecoveredXATransactionStrategy")
	if !ok {
		return
	}
	switch strings.ToUpper(strings.TrimSpace(a.value)) {
	case "NEVER":
	case "COMMIT":
		w.cfg.Prepared = CommitPrepared
	case "ROLLBACK":
		w.cfg.Prepared = RollBackPrepared
	default:
		w.fail(e.atAttr(a, fmt.Sprintf("%q is neither NEVER nor COMMIT nor ROLLBACK", a.value)))
	}
}

// sameDir reports whether two paths name the same directory, by their text.
func sameDir(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }

// inMemory makes the broker keep nothing, as the part of n says. A --data that
// asks for something else is named.
func (w *walker) inMemory(n Notice) {
	if w.data.given && w.data.dir != Memory {
		n.Text += fmt.Sprintf(": --data %s is not used; remove this from the file to keep messages", w.data.dir)
		w.warn(n)
	}
	w.cfg.Persistent, w.cfg.DataDir = false, Memory
}

// connector reads one transportConnector.
func (w *walker) connector(e *element) {
	w.connectorElements++
	if w.withoutListener {
		return
	}
	a, ok := e.given("uri")
	switch {
	case !hasAttr(e, "uri"):
		w.fail(e.at("has no uri; give one such as uri=\"" + DefaultListen + "\""))
		return
	case !ok:
		return // reported
	}
	r := parseListener(a.value)
	for _, text := range r.errors {
		w.fail(e.atAttr(a, text))
	}
	for _, text := range r.warnings {
		w.warn(e.atAttr(a, text))
	}
	if r.notOffer != "" {
		address, _, _ := strings.Cut(a.value, "?") // its options may hold a password
		w.warn(e.atAttr(a, fmt.Sprintf("%q is left out: %s is not offered yet, nothing listens there", address, r.notOffer)))
		return
	}
	if len(r.errors) > 0 {
		return
	}
	start := true
	w.bool(e, "autoStart", &start)
	if !start {
		w.warn(e.atAttr(a, "nothing listens there, as autoStart is false"))
		return
	}
	l := r.listener
	w.string(e, "name", &l.Name)
	w.bool(e, "allowLinkStealing", &l.Options.AllowLinkStealing)
	w.bool(e, "updateClusterClients", &l.Options.UpdateClusterClients)
	w.bool(e, "rebalanceClusterClients", &l.Options.RebalanceClusterClients)
	w.bool(e, "updateClusterClientsOnRemove", &l.Options.UpdateClusterClientsOnRemove)
	if a, ok := e.given("updateClusterFilter"); ok {
		if err := setClusterFilter(&l.Options, a.value); err != nil {
			w.fail(e.atAttr(a, err.Error()))
		}
	}
	for _, a := range []struct {
		name string
		into *int
	}{{"maximumConsumersAllowedPerConnection", &l.Options.MaximumConsumers}, {"maximumProducersAllowedPerConnection", &l.Options.MaximumProducers}} {
		w.intBetween(e, a.name, 1, math.MaxInt32, func(n int64) { *a.into = int(n % math.MaxInt32) }) // the largest is no limit
	}
	if l.Name == "" {
		l.Name = OpenWire
	}
	l.Source = e.source()
	w.connectors = append(w.connectors, l)
}

// hasAttr reports whether e has the attribute, bad or not.
func hasAttr(e *element, name string) bool {
	for _, a := range e.attrs {
		if a.name == name {
			return true
		}
	}
	return false
}

// connectorList ends the list of connectors.
func (w *walker) connectorList(e *element) {
	switch {
	case w.connectorElements == 0:
	case w.withoutListener:
		w.warn(e.at(fmt.Sprintf("is left out: --listen takes the place of the file's connectors (%d)", w.connectorElements)))
	case len(w.connectors) == 0 && len(w.problems) == 0:
		w.fail(e.at("none of the connectors can be served; add one for OpenWire, such as uri=\"" + DefaultListen + "\", or give --listen"))
	}
}

// systemUsage reads what becomes of producers when there is no space.
func (w *walker) systemUsage(e *element) {
	w.usage = settingsOf(e, systemUsagePart.children[0].attrs)
	if a, ok := e.given("sendFailIfNoSpace"); ok {
		if fail, err := parseBool(a.value); err == nil && fail {
			w.cfg.Store.OnFull, w.usageFails = Fail, true
		} else if err == nil {
			w.cfg.Store.OnFull = Block
		}
	}
	w.intBetween(e, "sendFailIfNoSpaceAfterTimeout", 0, math.MaxInt64, func(n int64) {
		if w.cfg.Store.FailAfter = redelivery.FromMillis(n); n > 0 && !w.usageFails {
			w.cfg.Store.OnFull = Block // so long
		}
	})
}

// memoryUsage reads how much memory messages may take.
func (w *walker) memoryUsage(e *element) {
	w.size(e, "limit", &w.cfg.MemoryBytes)
}

// storeUsage reads how large the store may grow.
func (w *walker) storeUsage(e *element) {
	w.size(e, "limit", &w.cfg.Store.MaxBytes)
	if a, ok := e.given("percentLimit"); ok {
		w.intBetween(e, "percentLimit", 0, 100, func(n int64) { w.cfg.Store.MaxPercent = float64(n) })
		if hasAttr(e, "limit") {
			w.warn(e.atAttr(a, "and limit are both given: the smaller of the two holds"))
		}
	}
}

// size is bool for numbers of bytes. 0 is no limit, as without the attribute.
func (w *walker) size(e *element, name string, into *int64) {
	if a, ok := e.given(name); ok {
		if n, err := parseSize(a.value); err == nil {
			*into = n
		}
	}
}

// policyAttr is the attribute of a policyEntry that holds its pattern, by kind.
var policyAttr = []struct {
	name string
	kind message.DestinationKind
}{{"queue", message.Queue}, {"topic", message.Topic}, {"tempQueue", message.TempQueue}, {"tempTopic", message.TempTopic}}

// policyEntry reads one entry of the policy map.
func (w *walker) policyEntry(e *element) {
	entry := w.settings(e)
	for _, d := range w.patternOf(e) {
		if len(w.cfg.Policies) == maxPolicies {
			w.fail(e.at(fmt.Sprintf("more than %d policy entries", maxPolicies)))
			return
		}
		own := entry
		own.Destination, own.Rules.Name = d, "policyEntry "+d.String()
		own.Limits = entry.Limits.of(d.Kind)
		w.cfg.Policies = append(w.cfg.Policies, own)
	}
}

// defaultEntry reads the entry for destinations that no other matches.
func (w *walker) defaultEntry(e *element) {
	if w.cfg.DefaultPolicy != nil {
		w.fail(e.at("is the second default entry; remove one"))
		return
	}
	entry := w.settings(e)
	entry.Rules.Name = "policyEntry by default"
	w.cfg.DefaultPolicy = &entry
}

// dispatchPolicy reads in which order a topic's subscriptions get what is sent.
func (w *walker) dispatchPolicy(entry *element, p *PolicyEntry) {
	const strict = "strictOrderDispatchPolicy"
	holder := entry.find("dispatchPolicy")
	if holder == nil {
		return
	}
	if e := holder.find(strict); e != nil {
		p.StrictTopicOrder = true
		p.Settings = append(p.Settings, Setting{Name: "strictTopicOrder", Value: strict, Source: e.source()})
	}
}

// settings reads what an entry says, save its pattern.
func (w *walker) settings(e *element) PolicyEntry {
	p := PolicyEntry{Source: e.source(), Settings: settingsOf(e, policyAttrs)}
	w.bool(e, "prioritizedMessages", &p.PrioritizedMessages)
	if a, ok := e.given("persistJMSRedelivered"); ok {
		if b, err := parseBool(a.value); err == nil {
			p.PersistJMSRedelivered = &b
		}
	}
	for _, row := range prefetchRows {
		w.intBetween(e, row.name, 0, maxPrefetch, func(n int64) {
			window := int(n)
			*row.into(&p.Prefetch) = &window
		})
	}
	w.bool(e, "allConsumersExclusiveByDefault", &p.AllConsumersExclusive)
	w.bool(e, "strictOrderDispatch", &p.StrictOrderDispatch)
	w.intBetween(e, "maxDestinations", -1, math.MaxInt32, func(n int64) {
		p.MaxDestinations, p.OnlyDeclared = int(max(n, 0)), n == 0 // 0: none is made
	})
	w.int(e, "consumersBeforeDispatchStarts", 0, &p.ConsumersBeforeDispatch)
	millis := 0
	w.int(e, "timeBeforeDispatchStarts", 0, &millis)
	p.TimeBeforeDispatch = time.Duration(millis) * time.Millisecond
	w.bool(e, "alwaysRetroactive", &p.AlwaysRetroactive)
	w.recovery(e, &p)
	w.dispatchPolicy(e, &p)
	for _, f := range p.Advisories.Flags() {
		w.bool(e, f.Name, f.Value)
	}
	p.Rules = redelivery.Rules{Source: p.Source}
	w.strategy(e, &p)
	w.slowConsumers(e, &p)
	w.limits(e, &p)
	w.backlog(e, &p)
	return p
}
