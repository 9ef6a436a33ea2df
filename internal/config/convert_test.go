package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// placeless compares configurations without the places at which things stand, and
// what is derived from these.
var placeless = []cmp.Option{
	cmpopts.IgnoreFields(Config{}, "File"),
	cmpopts.IgnoreFields(Listener{}, "Source", "URI"),
	cmpopts.IgnoreFields(ClusterBroker{}, "Source"),
	cmpopts.IgnoreFields(Certificates{}, "Source"),
	cmpopts.IgnoreFields(PolicyEntry{}, "Source", "Settings"),
	cmpopts.IgnoreFields(redelivery.Rules{}, "Name", "Source"),
	cmpopts.IgnoreFields(redelivery.Policy{}, "Name", "Source", "Destination"),
	cmpopts.IgnoreFields(RedeliveryPlugin{}, "Source", "Settings"),
	cmpopts.IgnoreFields(RedeliveryEntry{}, "Settings"),
	cmpopts.IgnoreFields(DiscardingPlugin{}, "Source", "Settings"),
	cmpopts.IgnoreFields(TimeStamping{}, "Source"),
	cmpopts.IgnoreFields(SelectorCache{}, "Source"),
	cmpopts.IgnoreFields(VirtualTopic{}, "Source"),
	cmpopts.IgnoreFields(CompositeDestination{}, "Source"),
	cmpopts.IgnoreFields(MirroredQueues{}, "Source"),
	cmpopts.IgnoreFields(QueueFilter{}, "Source"),
	cmpopts.IgnoreFields(access.Options{}, "Source"),
	cmpopts.IgnoreFields(access.User{}, "Source"),
	cmpopts.IgnoreFields(access.Entry{}, "Source"),
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b *SecuritySettings) bool { return plain(reflect.ValueOf(a)) == plain(reflect.ValueOf(b)) }),
	cmp.Comparer(func(a, b *access.Hash) bool { return a == b || a != nil && b != nil && a.Text() == b.Text() }),
	cmp.Comparer(func(a, b *AddressSettings) bool { return reflect.DeepEqual(withoutPlaces(a), withoutPlaces(b)) }),
}

// withoutPlaces copies address-settings without the places at which they stand.
func withoutPlaces(s *AddressSettings) *AddressSettings {
	if s == nil {
		return nil
	}
	bare := *s
	bare.settings = nil
	for _, a := range s.settings {
		values := map[string]Setting{}
		for name, v := range a.values {
			if text, err := settingKinds[name].canonical(v.Value); err == nil {
				v.Value = text
			}
			v.Source = ""
			values[name] = v
		}
		a.values, a.source, a.place = values, "", nil
		bare.settings = append(bare.settings, a)
	}
	return &bare
}

// fromText loads a configuration from a text.
func fromText(text []byte) (*Config, error) {
	c, _, err := Load(Options{File: "f", AllowAnonymous: true, WithoutKeys: true, ReadFile: func(path string) ([]byte, error) {
		if path != "f" {
			return nil, fs.ErrNotExist
		}
		return text, nil
	}})
	return c, err
}

// TestWrittenIsRead writes whatever configuration there can be, and reads it again.
func TestWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		text := WriteYAML(c, []Notice{{File: rapid.String().Draw(t, "file"), Line: 3, Part: "p", Text: rapid.String().Draw(t, "notice")}})
		got, err := fromText(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got.AllowAnonymous = c.AllowAnonymous // given to be able to load
		if diff := cmp.Diff(c, got, placeless...); diff != "" {
			t.Fatalf("(-written +read):\n%s\n%s", diff, text)
		}
	})
}

// anyConfig draws a configuration that Load could return.
func anyConfig(t *rapid.T) *Config {
	l := newLoader(Options{})
	l.flags()
	c := l.cfg
	name := rapid.StringMatching(`[A-Za-z0-9_.\-äß €#'":]{0,8}[A-Za-z]`)
	pattern := rapid.SampledFrom([]string{"A", "orders.eu", "orders.>", "*.B", ">", "true", "12", "null", "a: b", "#x", "ä.ö", "'", `"`, "- x", "{", "0x1F"})
	some := func(n string) bool { return rapid.Bool().Draw(t, n) }
	number := func(n string) float64 { return rapid.Float64Range(-10, 1e9).Draw(t, n) }
	delay := func(n string) time.Duration {
		return redelivery.FromMillis(rapid.SampledFrom([]int64{0, 1, -5, 1000, 1500, 60_000, 5_400_000, math.MaxInt64, math.MinInt64, 1_234_567}).Draw(t, n))
	}
	positive := func(n string) time.Duration { return max(0, delay(n)) }
	destination := func(n string, kinds ...message.DestinationKind) message.Destination {
		return message.Destination{Kind: rapid.SampledFrom(kinds).Draw(t, n+" kind"), Name: pattern.Draw(t, n)}
	}
	single := func(n string) message.Destination {
		return message.Destination{Kind: rapid.SampledFrom([]message.DestinationKind{message.Queue, message.Topic}).Draw(t, n+" kind"),
			Name: rapid.SampledFrom([]string{"Q", "a b", "true", "ä", "x:y"}).Draw(t, n)}
	}
	listing := func(n string, f func()) {
		for range rapid.IntRange(0, 2).Draw(t, n) {
			f()
		}
	}
	groups := func(n string) []string { return rapid.SliceOfN(name, 0, 2).Draw(t, n) }
	policy := func() *redelivery.Policy {
		p := redelivery.DefaultPolicy()
		p.MaximumRedeliveries = rapid.IntRange(-3, 9).Draw(t, "limit")
		p.InitialRedeliveryDelay, p.RedeliveryDelay, p.MaximumRedeliveryDelay = delay("initial"), delay("delay"), delay("cap")
		p.UseExponentialBackOff, p.UseCollisionAvoidance = some("exponential"), some("jitter")
		p.BackOffMultiplier, p.CollisionAvoidanceFactor = number("multiplier"), number("factor")
		if some("hornetq") {
			p.Arithmetic = redelivery.HornetQ{}
		}
		return &p
	}
	strategy := func() redelivery.DeadLetterStrategy {
		s := rapid.SampledFrom([]redelivery.DeadLetterStrategy{{}, redelivery.SharedStrategy(), redelivery.IndividualStrategy(), redelivery.DiscardingStrategy()}).Draw(t, "strategy")
		if s.Kind == redelivery.UnsetStrategy {
			return s
		}
		s.ProcessExpired, s.ProcessNonPersistent, s.DiscardOwn, s.Expiration = some("expired"), some("non-persistent"), some("own"), positive("expiration")
		if s.Kind == redelivery.Shared {
			s.DeadLetterQueue = single("dead letter queue")
		}
		if s.Kind == redelivery.Individual {
			s.QueuePrefix, s.QueueSuffix, s.TopicPrefix, s.TopicSuffix = name.Draw(t, "qp"), name.Draw(t, "qs"), name.Draw(t, "tp"), name.Draw(t, "ts")
			s.UseQueueForQueueMessages, s.UseQueueForTopicMessages, s.DestinationPerDurableSubscriber = some("uq"), some("ut"), some("ds")
		}
		return s
	}
	entry := func() PolicyEntry {
		p := PolicyEntry{PrioritizedMessages: some("prioritized"), Rules: redelivery.Rules{DropAtLimit: some("drop"), DropWithoutPolicy: some("drop too"),
			Duplicates: redelivery.DuplicateAction(rapid.IntRange(0, 2).Draw(t, "duplicates")), Drop: redelivery.Drop(rapid.IntRange(0, 2).Draw(t, "drop all")), DeadLetter: strategy()}}
		p.Rules.DeadLetterUnrouted, p.Rules.KeepUnroutedDead, p.Rules.Origins = some("unrouted"), some("kept"), redelivery.Origins(rapid.IntRange(0, 2).Draw(t, "origins"))
		if some("lifetime") {
			bound := rapid.SampledFrom([]int64{-1, 0, 1500, 60_000})
			p.GroupRebalance = some("rebalance")
			p.LastValueKey = rapid.SampledFrom([]string{"", "key"}).Draw(t, "last value")
			p.MaxConsumers, p.RingSize, p.PurgeOnNoConsumers, p.OnlyDeclared = rapid.IntRange(0, 9).Draw(t, "max consumers"), rapid.Int64Range(0, 9).Draw(t, "ring"), some("purge"), some("declared")
			p.MaxDestinations = rapid.IntRange(0, 9).Draw(t, "max destinations")
			p.ConsumersBeforeDispatch, p.TimeBeforeDispatch = rapid.IntRange(0, 9).Draw(t, "consumers"), time.Duration(rapid.IntRange(0, 9).Draw(t, "gathering"))*time.Second
			p.Recovery, p.AlwaysRetroactive = &Recovery{Count: rapid.IntRange(0, 9).Draw(t, "recovered"), Bytes: rapid.IntRange(0, 9).Draw(t, "bytes"), Age: time.Duration(rapid.IntRange(0, 9).Draw(t, "age")) * time.Second, Retained: some("retained")}, some("retroactive")
			p.Lifetime = &redelivery.Lifetime{Never: some("never"), Delay: bound.Draw(t, "life"), Least: bound.Draw(t, "least"), Most: bound.Draw(t, "most")}
		}
		if some("limits") {
			p.Limits = &Limits{MaxBytes: rapid.SampledFrom([]int64{0, 1, 1 << 20}).Draw(t, "max bytes"), MaxMessages: rapid.IntRange(0, 9).Draw(t, "max messages"),
				DurableSubscriptions: some("durable"), Queues: some("queues"), OnFull: rapid.SampledFrom([]OnFull{"", Fail, Block, Drop}).Draw(t, "full"),
				FailAfter: positive("fail after"), StoreHighWaterMark: float64(rapid.IntRange(0, 100).Draw(t, "mark")), WarnInterval: positive("warn")}
		}
		switch rapid.IntRange(0, 2).Draw(t, "expiry") {
		case 1:
			p.Rules.Expiry = redelivery.DiscardingStrategy()
		case 2:
			p.Rules.Expiry = redelivery.SharedStrategy()
			p.Rules.Expiry.ProcessNonPersistent, p.Rules.Expiry.DeadLetterQueue = true, single("expiry queue")
		}
		p.AckTimeout = rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Minute}).Draw(t, "ack timeout")
		p.AllConsumersExclusive, p.Rules.DeadLetterNonDurable, p.StrictOrderDispatch, p.StrictTopicOrder = some("exclusive"), some("non-durable"), some("strict order"), some("one order")
		if some("backlog") {
			p.Backlog = freshBacklog()
			if some("windows") {
				p.Backlog.Windows = rapid.SampledFrom([]float64{0, 0.5, 2.5}).Draw(t, "rate of windows")
			} else {
				p.Backlog.Limit = rapid.IntRange(-1, 2000).Draw(t, "backlog limit")
			}
			p.Backlog.Evict = rapid.SampledFrom([]Eviction{EvictOldest, EvictLowestPriority, EvictSuperseded}).Draw(t, "evict")
			if p.Backlog.Evict == EvictSuperseded || some("property") {
				p.Backlog.Property = "x" + name.Draw(t, "evicted by")
			}
		}
		if some("slow consumers") {
			p.SlowConsumers = &SlowConsumers{MaxDuration: positive("slow for"), MaxCount: rapid.IntRange(0, 9).Draw(t, "slow times"), CheckPeriod: max(time.Millisecond, positive("check")),
				MaxTimeSinceLastAck: positive("unacked"), AbortConnection: some("abort connection"), MinRate: rapid.SampledFrom([]float64{0, 0.5, 100}).Draw(t, "rate"), Notify: some("notify")}
		}
		for _, row := range prefetchRows {
			if some(row.name) {
				n := rapid.IntRange(0, maxPrefetch).Draw(t, "window")
				*row.into(&p.Prefetch) = &n
			}
		}
		for _, f := range p.Advisories.Flags() {
			*f.Value = some(f.Name)
		}
		if some("marks") {
			b := some("mark")
			p.PersistJMSRedelivered = &b
		}
		if some("redelivery") {
			p.Rules.Redelivery = policy()
		}
		return p
	}
	all := []message.DestinationKind{message.Queue, message.Topic, message.TempQueue, message.TempTopic}

	c.BrokerName = name.Draw(t, "broker")
	c.BrokerName = strings.TrimSpace(c.BrokerName)
	if some("memory") {
		c.DataDir, c.Persistent = Memory, false
	}
	c.Admin = rapid.SampledFrom([]string{"", "127.0.0.1:8161", "127.0.0.1:0"}).Draw(t, "admin")
	c.AllowAnonymous, c.HandOutMarks, c.MemoryBytes = some("anonymous"), some("hand-out marks"), rapid.SampledFrom([]int64{0, 1, 1 << 20, 3 << 30}).Draw(t, "memory")
	c.UserID, c.RejectDurableConsumers, c.NoAdvisories = some("user id"), some("reject"), some("no advisories")
	c.Listeners = nil
	for range rapid.IntRange(1, 3).Draw(t, "listeners") {
		r := parseListener(rapid.SampledFrom([]string{DefaultListen, "nio://127.0.0.1:0?maximumConnections=9", "tcp://0.0.0.0:61616?maximumConsumersAllowedPerConnection=3&maximumProducersAllowedPerConnection=4&wireFormat.maxFrameSize=1000&socketBufferSize=4096&allowLinkStealing=true&anycastPrefix=q%2F,jms.queue.&multicastPrefix=jms.topic.",
			"ssl://127.0.0.1:2?needClientAuth=true&wantClientAuth=true&transport.enabledProtocols=TLSv1.2&transport.enabledCipherSuites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256&certificate=a%26b.pem&key=a.key&keyStorePassword=p%3D&keyPassword=q&trust=c.pem&trustStorePassword=r",
			"tcp://127.0.0.1:1?updateClusterClients=true&rebalanceClusterClients=true&updateClusterClientsOnRemove=true&updateClusterFilter=a.*%2Cb%26c%20%25"}).Draw(t, "uri"))
		if some("named") {
			r.listener.Name = name.Draw(t, "listener")
		}
		if some("options of another dialect") {
			r.listener.Options.MaxInactivity, r.listener.Options.NoDelay, r.listener.Options.KeepAlive = 5*time.Second, some("no delay"), some("keep alive")
		}
		c.Listeners = append(c.Listeners, r.listener)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "cluster") {
		b := ClusterBroker{URI: fmt.Sprintf("tcp://b%d:61616?soTimeout=1&x=%%20", i), Source: "f:1"}
		if some("named broker") {
			b.Name = name.Draw(t, "broker")
		}
		c.Cluster = append(c.Cluster, b)
	}
	if some("certificates") {
		c.Certificates = Certificates{Keys: KeyFile{"broker.ks", "broker.key", "it's", "p w"}, Trust: KeyFile{Path: "broker.ts", Password: "1"}, Source: "f:1"}
	}
	c.Store = StoreLimits{MinFreeBytes: rapid.SampledFrom([]int64{0, 1000, 1 << 30}).Draw(t, "free"), MinFreePercent: rapid.SampledFrom([]float64{0, 2, 2.5}).Draw(t, "free %"),
		MaxBytes: rapid.SampledFrom([]int64{0, 1 << 20}).Draw(t, "max"), MaxPercent: rapid.SampledFrom([]float64{0, 99.5}).Draw(t, "max %"),
		OnFull: rapid.SampledFrom([]OnFull{Fail, Block}).Draw(t, "on full"), FailAfter: positive("fail after")}
	switch rapid.IntRange(0, 2).Draw(t, "scheduler") {
	case 1:
		c.SchedulerSupport = true
	case 2:
		c.NoScheduler = true
	}
	c.DeleteAllMessages = some("delete all messages")
	c.OfflineSubscriptionLimit = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "offline")
	c.OfflineSubscriptionCheck = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "offline check")
	c.MakeTemporaryQueues = some("makes temporary queues")
	c.KeepTemporaryQueues = rapid.SampledFrom([]time.Duration{0, DefaultKeepTemporaryQueues, time.Minute}).Draw(t, "temporary queues")
	c.Prepared = rapid.SampledFrom([]PreparedFate{KeepPrepared, CommitPrepared, RollBackPrepared}).Draw(t, "prepared transactions")
	c.TransactionTimeout = rapid.SampledFrom([]time.Duration{0, 1500 * time.Millisecond, 5 * time.Minute}).Draw(t, "transactions")
	c.MaxSchedulerRepeat = rapid.SampledFrom([]int{0, 5}).Draw(t, "repeat")
	if some("address-settings") {
		s := &AddressSettings{product: artemis, syntax: defaultWildcards, drop: some("drop"), temporary: rapid.SampledFrom([]string{"", "TEMP"}).Draw(t, "temporary"),
			bound: map[string]message.Destination{}, addressOf: map[message.Destination]string{}}
		if some("hornetq") {
			s.product, s.version = hornetQ, rapid.SampledFrom([]string{"", "2.2", "2.3"}).Draw(t, "version")
			s.as23 = s.version == "2.3"
		}
		if some("wildcards") {
			s.syntax = wildcardSyntax{"/", "+", "%", "()"}
		}
		listing("settings", func() {
			match := rapid.SampledFrom([]string{s.syntax.anyWords, "a" + s.syntax.delimiter + s.syntax.singleWord, "a.b", "(a.b)", "news" + s.syntax.anyWords}).Draw(t, "match")
			p, err := parseAddressPattern(match, s.product, s.syntax)
			if err != nil {
				t.Fatal(err)
			}
			a := addressSetting{pattern: p, values: map[string]Setting{}}
			for _, element := range settingOrder {
				if some(element) && element != setSlowPolicy && element != setSlowUnit && element != setSlowPeriod {
					if element == setMaxConsumers || element == setRing {
						a.values[element] = Setting{Name: element, Value: rapid.SampledFrom([]string{"-1", "7"}).Draw(t, "bound")}
						continue
					}
					values := map[kind][]string{text: {"DLQ", "", "a b"}, boolean: {"true", "false"}, integer: {"0", "-1", "5000"}, decimal: {"0.5", "1"}}[settingKinds[element]]
					a.values[element] = Setting{Name: element, Value: rapid.SampledFrom(values).Draw(t, "value")}
				}
			}
			for element, values := range map[string][]string{setSlowPolicy: {slowKill, slowNotify}, setSlowUnit: {"MESSAGES_PER_SECOND", "MESSAGES_PER_DAY"}, setSlowPeriod: {"1", "60"}} {
				if some(element) {
					a.values[element] = Setting{Name: element, Value: rapid.SampledFrom(values).Draw(t, "slow value")}
				}
			}
			if !slices.ContainsFunc(s.settings, func(b addressSetting) bool { return b.pattern.text == p.text && b.pattern.literal == p.literal }) {
				s.settings = append(s.settings, a)
			}
		})
		if some("bound") {
			s.bound["x"], s.addressOf[single("bound to")] = single("bound"), "y"
		}
		c.Addresses = s
	}
	beside := c.Addresses == nil // policies have no place beside address-settings
	listing("policies", func() {
		if !beside {
			return
		}
		p := entry()
		p.Destination = destination("pattern", all...)
		c.Policies = append(c.Policies, p)
	})
	if beside && some("default") {
		p := entry()
		c.DefaultPolicy = &p
	}
	if beside && some("plugin") {
		c.Redelivery = &RedeliveryPlugin{FallbackToDeadLetter: some("fallback"), SendToDLQIfMaxRetriesExceeded: some("send")}
		listing("redelivery policies", func() {
			p := policy()
			p.Destination = destination("redelivery pattern", all...)
			c.Redelivery.Policies = append(c.Redelivery.Policies, RedeliveryEntry{Policy: *p})
		})
		if some("default redelivery") {
			c.Redelivery.Default = &RedeliveryEntry{Policy: *policy()}
		}
	}
	if beside && some("discarding") {
		c.Discarding = &DiscardingPlugin{DropAll: some("a"), DropTemporaryTopics: some("t"), DropTemporaryQueues: some("q"), First: some("f"),
			DropOnly: rapid.SliceOfN(rapid.SampledFrom([]string{"A.*", `\d+#`, "x|y"}), 0, 2).Draw(t, "only")}
	}
	if some("time stamping") {
		c.TimeStamping = &TimeStamping{ZeroExpirationOverride: positive("zero"), TTLCeiling: positive("ceiling"), FutureOnly: some("future")}
	}
	if some("force") {
		b := some("persistent")
		c.ForcePersistent = &b
	}
	listing("destinations", func() {
		d := single("made")
		if slices.Contains(c.Destinations, d) {
			return
		}
		if c.Destinations = append(c.Destinations, d); some("dead") {
			c.DeadLetterQueues = append(c.DeadLetterQueues, d)
		}
	})
	if some("selector cache") {
		c.SelectorCache = &SelectorCache{SingleSelectorPerDestination: some("single"), IgnoreWildcardSelectors: some("wild")}
	}
	if some("interceptors") {
		c.Interceptors = &Interceptors{}
		listing("virtual topics", func() {
			v := VirtualTopic{Name: pattern.Draw(t, "virtual"), Prefix: name.Draw(t, "prefix"), Postfix: name.Draw(t, "postfix"), SelectorAware: some("s"), Local: some("l"),
				TransactedSend: some("t"), DropOnResourceLimit: some("d"), SetOriginalDestination: some("o")}
			if some("as ActiveMQ's own") {
				v.Prefix, v.Postfix = "Consumer.*.", ""
			}
			c.Interceptors.VirtualTopics = append(c.Interceptors.VirtualTopics, v)
		})
		listing("filters", func() {
			c.Interceptors.Filters = append(c.Interceptors.Filters, QueueFilter{Queue: message.Destination{Kind: message.Queue, Name: name.Draw(t, "filtered")}, Selector: "a = 'b'"})
		})
		listing("mirrors", func() {
			c.Interceptors.Mirrors = append(c.Interceptors.Mirrors, MirroredQueues{Prefix: name.Draw(t, "prefix"), Postfix: name.Draw(t, "postfix"), Temporary: some("t"), KeptOnly: some("k")})
		})
		listing("composites", func() {
			d := CompositeDestination{Kind: single("kind").Kind, Name: pattern.Draw(t, "composite"), ForwardOnly: some("f"), SendWhenNotMatched: some("w")}
			for range rapid.IntRange(1, 2).Draw(t, "targets") {
				d.ForwardTo = append(d.ForwardTo, ForwardTarget{Destination: single("target"), Selector: rapid.SampledFrom([]string{"", "a = 'b'", `x LIKE "%"`}).Draw(t, "selector"), Otherwise: some("o")})
			}
			c.Interceptors.Composites = append(c.Interceptors.Composites, d)
		})
	}
	if some("access") {
		c.Access = &access.Options{Anonymous: true, AnonymousUser: name.Draw(t, "anonymous user"), AnonymousGroup: name.Draw(t, "anonymous group")}
		listing("users", func() {
			u := access.User{Name: fmt.Sprintf("u%d", len(c.Access.Users)), Password: access.Secret(rapid.StringN(0, 12, 40).Draw(t, "password")), Groups: groups("groups")}
			if some("hash") {
				u.Password = ""
				u.Hash, _ = access.ParseHash("1024:0aff:" + strings.Repeat("1c", 64))
			}
			c.Access.Users = append(c.Access.Users, u)
		})
		c.Access.AnonymousInstead = some("anonymous instead")
		if some("admins") {
			c.Access.AdminGroups = groups("admins")
		}
		if c.Addresses != nil && some("security settings") {
			s := &SecuritySettings{addresses: c.Addresses}
			listing("security settings", func() {
				p, err := parseAddressPattern(rapid.SampledFrom([]string{c.Addresses.syntax.anyWords, "a.b", "(a.b)", "a.b::q"}).Draw(t, "match"), c.Addresses.product, c.Addresses.syntax)
				if err != nil {
					t.Fatal(err)
				}
				a := securitySetting{pattern: p, roles: map[string][]string{}}
				for _, name := range permissions {
					if some(name) && (c.Addresses.product == artemis || !slices.Contains(artemisOnly, name)) {
						a.roles[name] = groups("roles")
					}
				}
				s.add(a)
			})
			c.Access.Settings = s
		} else if some("authorization") {
			rights := func() access.Entry {
				return access.Entry{Read: groups("read"), Write: groups("write"), Admin: groups("admin")}
			}
			c.Access.Authorization = &access.Authorization{}
			listing("rights", func() {
				e := rights()
				e.Destination = destination("rights", message.Queue, message.Topic)
				c.Access.Authorization.Entries = append(c.Access.Authorization.Entries, e)
			})
			if some("default rights") {
				e := rights()
				c.Access.Authorization.Default = &e
			}
			if some("temporary rights") {
				e := rights()
				c.Access.Authorization.Temporary = &e
			}
		}
	}
	c.topicAddresses()
	return c
}

// dialects are the files of other dialects in testdata that can be loaded, by name.
func dialects(t *testing.T) map[string]Options {
	t.Helper()
	all := map[string]Options{}
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = fixtureOptions(t, archive)
	}
	cases, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			all[f.Name] = Options{File: f.Name, ReadFile: func(string) ([]byte, error) { return f.Data, nil }}
		}
	}
	return all
}

// TestConvertKeepsWhatHolds converts every file there is, and compares what holds
// for a set of destinations, and all else, with what the file itself says.
func TestConvertKeepsWhatHolds(t *testing.T) {
	t.Parallel()
	var asked []message.Destination
	for _, kind := range []message.DestinationKind{message.Queue, message.Topic, message.TempQueue, message.TempTopic} {
		for _, name := range []string{"A", "orders", "orders.eu", "orders.eu.x", "LIMIT.THREE", "BOTH.FIVE", "SpecialQueue", "FEED.OWN", "ActiveMQ.DLQ", "DLQ.A", "x.y.z", "jms.queue.A"} {
			asked = append(asked, message.Destination{Kind: kind, Name: name})
		}
	}
	converted := 0
	for name, opts := range dialects(t) {
		opts.AllowAnonymous, opts.Data, opts.Admin, opts.HandOutMarks, opts.Listen, opts.WithoutKeys = true, "", nil, nil, nil, true
		want, _, err := Load(opts)
		if err != nil {
			if _, _, err := Convert(opts); !errors.As(err, new(*Error)) {
				t.Errorf("%s: converted, although it cannot be loaded: %v", name, err)
			}
			continue
		}
		text, notices, err := Convert(opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		converted++
		got, err := fromText(text)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if diff := cmp.Diff(want, got, placeless...); diff != "" {
			t.Errorf("%s (-file +converted):\n%s\n%s", name, diff, text)
		}
		for _, d := range asked {
			effective := func(c *Config) Effective {
				e := c.Resolver().Policy(d)
				e.Found = false // an entry that says nothing may be left out
				return e
			}
			if diff := cmp.Diff(effective(want), effective(got), placeless...); diff != "" {
				t.Errorf("%s %s (-file +converted):\n%s", name, d, diff)
			}
		}
		for _, n := range notices {
			if !bytes.Contains(text, []byte(n.File)) {
				t.Errorf("%s: no word about %v", name, n)
			}
		}
	}
	if converted < 20 {
		t.Errorf("only %d files were converted", converted)
	}
}

func TestConvertedText(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/seed/redelivery.xml")
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := Convert(Options{File: "activemq.xml", ReadFile: func(string) ([]byte, error) { return raw, nil }})
	if err != nil {
		t.Fatal(err)
	}
	want := `# From activemq.xml.
# What did not carry over, or has a word to it:
#   activemq.xml:1: broker: has no connectors; listening on tcp://127.0.0.1:61616

scheduler: true

redeliveryPlugin:
  policies:
    # activemq.xml:9
    - queue: SpecialQueue
      maximumRedeliveries: 4
      redeliveryDelay: 10s
  default:
    maximumRedeliveries: 4
    initialRedeliveryDelay: 5s
    redeliveryDelay: 10s
`
	head, rest, _ := strings.Cut(string(text), "\n\n")
	wantHead, wantRest, _ := strings.Cut(want, "\n\n")
	if diff := cmp.Diff(wantRest, rest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(head, strings.Join(strings.Split(wantHead, "\n")[:2], "\n")) {
		t.Errorf("head:\n%s", head)
	}
	if text, _, err := Convert(Options{File: "f", ReadFile: func(string) ([]byte, error) { return nil, nil }}); err != nil || !strings.Contains(string(text), "# Nothing differs") {
		t.Errorf("%s %v", text, err)
	}
}

// TestEveryKeyIsDescribed looks at the table behind reader, writer and schema.
func TestEveryKeyIsDescribed(t *testing.T) {
	t.Parallel()
	var walk func(path string, f yamlForm)
	walk = func(path string, f yamlForm) {
		seen := map[string]bool{}
		for _, k := range f.keys {
			if k.form.doc == "" {
				t.Errorf("%s.%s has no description", path, k.name)
			}
			if seen[k.name] {
				t.Errorf("%s.%s is there twice", path, k.name)
			}
			seen[k.name] = true
			walk(path+"."+k.name, k.form)
		}
		for _, name := range slices.Concat(f.oneOf, f.needs) {
			if !seen[name] {
				t.Errorf("%s needs %s, which is no key", path, name)
			}
		}
		if f.of != nil {
			walk(path+"[]", *f.of)
		}
		for _, e := range f.either {
			walk(path, e)
		}
	}
	walk("", yamlForm{keys: yamlReader{loader: newLoader(Options{})}.top()})
}

// TestEveryFieldIsDrawn: a field that anyConfig does not draw would not be seen to be
// lost.
func TestEveryFieldIsDrawn(t *testing.T) {
	t.Parallel()
	elsewhere := []string{"config.securitySetting.source", // no settings, or none that a file has
		"config.Config.File", "config.Listener.Secure", "config.PolicyEntry.Settings", "config.RedeliveryPlugin.Settings", "config.RedeliveryEntry.Settings", "config.DiscardingPlugin.Settings",
		"config.addressSetting.source", "config.addressSetting.place",
		"redelivery.Rules.DeadLetterQueue", "redelivery.Rules.StrategyNamed", "redelivery.Rules.RedeliveryNamed", // the resolver's
		"redelivery.Policy.PreDispatchCheck",                                                                                                            // not used by the broker
		"redelivery.DeadLetterStrategy.EnableAudit", "redelivery.DeadLetterStrategy.MaxAuditDepth", "redelivery.DeadLetterStrategy.MaxProducersToAudit", // no effect
	}
	drawn, types := map[string]bool{}, map[reflect.Type]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			types[v.Type()] = true
			for i := range v.NumField() {
				if !v.Field(i).IsZero() {
					drawn[v.Type().String()+"."+v.Type().Field(i).Name] = true
				}
				walk(v.Field(i))
			}
		}
	}
	missing := func() (names []string) {
		for typ := range types {
			for i := range typ.NumField() {
				name := typ.String() + "." + typ.Field(i).Name
				if !drawn[name] && !slices.Contains(elsewhere, name) && !strings.HasSuffix(name, ".Source") && !strings.HasSuffix(name, "Rules.Name") && !strings.HasSuffix(name, "Policy.Name") {
					names = append(names, name)
				}
			}
		}
		return names
	}
	for range 50 { // some fields need luck
		rapid.Check(t, func(t *rapid.T) { walk(reflect.ValueOf(*anyConfig(t))) })
		if len(missing()) == 0 {
			return
		}
	}
	t.Errorf("%v are never drawn: our own YAML must be able to say them, and anyConfig must draw them", missing())
}

// TestSchemaIsOnThePage compares the schema that is published with the table; -rewrite
// brings it up to date.
func TestSchemaIsOnThePage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/nixie-config.schema.json"
	if *rewrite {
		if err := os.WriteFile(path, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(Schema())); diff != "" {
		t.Errorf("go test ./internal/config -run Schema -rewrite writes it anew (-file +table):\n%s", diff)
	}
}

// TestSchemaTakesWhatIsWritten holds the schema against what the writer writes, and
// against files that the reader refuses.
func TestSchemaTakesWhatIsWritten(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := WriteYAML(anyConfig(t), nil)
		if problem := validate(schema, parsed(t, text), ""); problem != "" {
			t.Fatalf("%s\n%s", problem, text)
		}
	})
	for text, want := range map[string]string{
		"queeu: 1": "queeu is not known", "policies:\n  - prioritizedMessages: true": "none of",
		"policies:\n  - {queue: A, topic: B}": "none of", "policies:\n  - {queue: A, redelivery: {redeliveryDelay: soon}}": "redeliveryDelay",
		"store: {minFreePercent: 101}": "minFreePercent", "store: {minFree: x}": "minFree", "store: {onFull: drop}": "onFull", "handOutMarks: maybe": "handOutMarks",
		"listeners: [{name: x}]": "listeners", "destinations: [{deadLetterQueue: true}]": "lacks name",
		"policies:\n  - {queue: A, deadLetterStrategy: {kind: discarding, queuePrefix: x}}": "deadLetterStrategy",
		"maxSchedulerRepeat: 1.5": "maxSchedulerRepeat",
	} {
		if problem := validate(schema, parsed(t, []byte(text)), ""); !strings.Contains(problem, want) {
			t.Errorf("%s: %q, want %s", text, problem, want)
		}
		if _, err := fromText([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// parsed reads YAML as JSON has it.
func parsed(t interface{ Fatal(...any) }, text []byte) any {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v = nil
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// validate checks a value against a schema, as far as ours use the language; empty:
// it is valid.
func validate(s map[string]any, v any, path string) string {
	if types, ok := s["type"]; ok && !ofType(types, v) {
		return fmt.Sprintf("%s: %v is not %v", path, v, types)
	}
	if words, ok := s["enum"].([]any); ok && !slices.Contains(words, v) {
		return fmt.Sprintf("%s: %v is none of %v", path, v, words)
	}
	if all, ok := s["anyOf"].([]any); ok && !slices.ContainsFunc(all, func(e any) bool { return validate(e.(map[string]any), v, path) == "" }) {
		return path + " fits none"
	}
	switch v := v.(type) {
	case string:
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			return path + ": " + v
		}
	case float64:
		if low, ok := s["minimum"].(float64); ok && v < low {
			return path + " is too small"
		}
		if high, ok := s["maximum"].(float64); ok && v > high {
			return path + " is too large"
		}
	case []any:
		for i, e := range v {
			if problem := validate(s["items"].(map[string]any), e, fmt.Sprintf("%s[%d]", path, i)); problem != "" {
				return problem
			}
		}
	case map[string]any:
		known, ok := s["properties"].(map[string]any)
		if !ok {
			return ""
		}
		for name, e := range v {
			if known[name] == nil {
				return path + "." + name + " is not known"
			}
			if problem := validate(known[name].(map[string]any), e, path+"."+name); problem != "" {
				return problem
			}
		}
		for _, name := range namesIn(s["required"]) {
			if _, ok := v[name]; !ok {
				return path + " lacks " + name
			}
		}
		if one, ok := s["oneOf"].([]any); ok {
			n := 0
			for _, e := range one {
				if _, ok := v[namesIn(e.(map[string]any)["required"])[0]]; ok {
					n++
				}
			}
			if n != 1 {
				return path + " has more or none of several"
			}
		}
	}
	return ""
}

func namesIn(v any) []string {
	var names []string
	all, _ := v.([]any)
	for _, n := range all {
		names = append(names, n.(string))
	}
	return names
}

// ofType reports whether v is of one of the types.
func ofType(types, v any) bool {
	names := namesIn(types)
	if name, ok := types.(string); ok {
		names = []string{name}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		switch v := v.(type) {
		case nil:
			return name == "null"
		case bool:
			return name == "boolean"
		case string:
			return name == "string"
		case float64:
			return name == "number" || name == "integer" && v == math.Trunc(v)
		case []any:
			return name == "array"
		}
		return name == "object"
	})
}
