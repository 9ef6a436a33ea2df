package policy

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// load reads a configuration as text, under the name f.
func load(t *testing.T, text string) *config.Config {
	t.Helper()
	c, _, err := config.Load(config.Options{File: "f", AllowAnonymous: true, ReadFile: func(path string) ([]byte, error) {
		if path != "f" {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// explain answers about one destination.
func explain(t *testing.T, c *config.Config, destination string, words ...string) Explanation {
	t.Helper()
	q, err := Ask(map[string][]string{DestinationParam: {destination}}, ExplainParams())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		i := slices.IndexFunc(ExplainParams(), func(p Param) bool { return p.Name == name })
		if err := ExplainParams()[i].set(&q, value); err != nil {
			t.Fatal(err)
		}
	}
	q.Client.Policy = q.Changes.client.applied(q.Client.Policy)
	return Explain(c, q)
}

// decided gives "value by source" of one value.
func decided(x Explanation, name string) string {
	for _, v := range x.Values {
		if v.Name == name {
			return strings.TrimSpace(v.Value + " by " + v.Source + " " + v.Written)
		}
	}
	return "absent"
}

const pluginXML = `<broker schedulerSupport="true">
<destinationPolicy><policyMap><policyEntries>
<policyEntry queue=">"
   prioritizedMessages="true" memoryLimit="1mb">
  <deadLetterStrategy>
    <individualDeadLetterStrategy queuePrefix="DLQ."
       processExpired="false"/>
  </deadLetterStrategy>
</policyEntry>
<policyEntry queue="orders.>" producerFlowControl="false"/>
</policyEntries></policyMap></destinationPolicy>
<plugins><redeliveryPlugin fallbackToDeadLetter="true"
    sendToDlqIfMaxRetriesExceeded="false"><redeliveryPolicyMap><redeliveryPolicyMap>
<redeliveryPolicyEntries>
  <redeliveryPolicy queue="orders.*" maximumRedeliveries="9"/>
  <redeliveryPolicy queue="orders.eu" maximumRedeliveries="4"
     redeliveryDelay="10000"/>
</redeliveryPolicyEntries>
</redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>
</broker>`

func TestExplainNamesTheLineBehindEachValue(t *testing.T) {
	t.Parallel()
	x := explain(t, load(t, pluginXML), "queue://orders.eu", "client-max=0")
	want := &Entry{Kind: KindPolicy, Pattern: "queue://orders.>", Source: "f:10", Overruled: []Entry{{Kind: KindPolicy, Pattern: "queue://>", Source: "f:3"}}}
	if diff := cmp.Diff(want, x.Entry); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	want = &Entry{Kind: KindRedelivery, Pattern: "queue://orders.eu", Source: "f:16", Overruled: []Entry{{Kind: KindRedelivery, Pattern: "queue://orders.*", Source: "f:15"}}}
	if diff := cmp.Diff(want, x.Redelivery); diff != "" {
		t.Errorf("redelivery (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"redelivery.maximumRedeliveries":    "4 by f:16",
		"redelivery.redeliveryDelay":        "10s by f:17",
		"redelivery.initialRedeliveryDelay": "1s by default",
		"prioritizedMessages":               "false by default",
		"dropAtLimit":                       `true by f:13 sendToDlqIfMaxRetriesExceeded="false"`,
		"dropWithoutPolicy":                 "absent",
		"deadLetterStrategy.kind":           "shared by default",
	} {
		if got := decided(x, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	other := explain(t, load(t, pluginXML), "billing")
	for name, want := range map[string]string{
		"prioritizedMessages":                "true by f:4",
		"deadLetterStrategy.queuePrefix":     "DLQ. by f:6",
		"deadLetterStrategy.processExpired":  "false by f:7",
		"deadLetterStrategy.queueSuffix":     `"" by default`,
		"deadLetterStrategy.deadLetterQueue": "absent",
		"redelivery.maximumRedeliveries":     "absent",
		"dropWithoutPolicy":                  `false by f:12 fallbackToDeadLetter="true"`,
	} {
		if got := decided(other, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if other.Redelivery != nil || other.Entry.Source != "f:3" || other.Grave.Destination != "queue://DLQ.billing" {
		t.Errorf("%+v", other)
	}
}

// TestExplainSlowConsumers names the lines of both strategies.
func TestExplainSlowConsumers(t *testing.T) {
	t.Parallel()
	c := load(t, `<broker><destinationPolicy><policyMap><policyEntries>
<policyEntry topic=">" strictOrderDispatch="true">
  <pendingMessageLimitStrategy>
    <prefetchRatePendingMessageLimitStrategy
       multiplier="2.5"/>
  </pendingMessageLimitStrategy>
  <messageEvictionStrategy>
    <uniquePropertyMessageEvictionStrategy propertyName="STOCK"/>
  </messageEvictionStrategy>
  <slowConsumerStrategy>
    <abortSlowConsumerStrategy maxSlowDuration="5000"
       abortConnection="true"/>
  </slowConsumerStrategy>
  <subscriptionRecoveryPolicy>
    <retainedMessageSubscriptionRecoveryPolicy><wrapped><lastImageSubscriptionRecoveryPolicy/></wrapped></retainedMessageSubscriptionRecoveryPolicy>
  </subscriptionRecoveryPolicy>
  <dispatchPolicy><strictOrderDispatchPolicy/></dispatchPolicy>
</policyEntry></policyEntries></policyMap></destinationPolicy></broker>`)
	x := explain(t, c, "topic://T")
	for name, want := range map[string]string{
		"strictOrderDispatch":               "true by f:2",
		"backlog.windows":                   `2.5 by f:5 multiplier="2.5"`,
		"backlog.limit":                     `-1 by f:4 pendingMessageLimitStrategy="prefetchRatePendingMessageLimitStrategy"`,
		"backlog.evict":                     `superseded by f:8 messageEvictionStrategy="uniquePropertyMessageEvictionStrategy"`,
		"backlog.property":                  `STOCK by f:8 propertyName="STOCK"`,
		"slowConsumers.maxSlowDuration":     "5s by f:11",
		"slowConsumers.abortConnection":     "true by f:12",
		"slowConsumers.maxTimeSinceLastAck": "0s by default",
		"strictTopicOrder":                  `true by f:17 strictTopicOrder="strictOrderDispatchPolicy"`,
		"recovery":                          `count 1, bytes 0, age 0s, retained by f:15 recovery="retainedMessageSubscriptionRecoveryPolicy"`,
	} {
		if got := decided(x, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestExplainOurOwnYAML(t *testing.T) {
	t.Parallel()
	c := load(t, `policies:
  - queue: orders
    redelivery:
      maximumRedeliveries: 2
      initialRedeliveryDelay: 500ms
      useExponentialBackOff: yes
    duplicates: discard
    deadLetterStrategy:
      kind: shared
      deadLetterQueue: topic://graves
      expiration: 1h
`)
	x := explain(t, c, "orders", "client-max=none")
	for name, want := range map[string]string{
		"redelivery.maximumRedeliveries":     "2 by f:4",
		"redelivery.initialRedeliveryDelay":  "500ms by f:5",
		"redelivery.useExponentialBackOff":   `true by f:6 redelivery.useExponentialBackOff="yes"`,
		"redelivery.backOffMultiplier":       "5 by default",
		"duplicates":                         "discard by f:7",
		"deadLetterStrategy.kind":            "shared by f:9",
		"deadLetterStrategy.deadLetterQueue": "topic://graves by f:10",
		"deadLetterStrategy.expiration":      "1h by f:11",
	} {
		if got := decided(x, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if x.Schedule.Deliveries != 3 || x.Schedule.EndMillis != 500+2500 || x.Redelivery != nil || x.Grave.ExpireMillis != 3600_000 {
		t.Errorf("%+v", x)
	}
}

// TestMergedSettingsNameTheirLines: the limit is told with the line that says it, not with
// that of the most specific setting, and delays that are all none are not spread.
func TestMergedSettingsNameTheirLines(t *testing.T) {
	t.Parallel()
	c := load(t, `<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><security-enabled>false</security-enabled><address-settings>
  <address-setting match="#"><dead-letter-address>DLQ</dead-letter-address><redelivery-delay>1000</redelivery-delay>
    <redelivery-collision-avoidance-factor>0.5</redelivery-collision-avoidance-factor></address-setting>
  <address-setting match="orders.#"><max-delivery-attempts>3</max-delivery-attempts></address-setting>
  <address-setting match="orders.eu"><redelivery-delay>0</redelivery-delay></address-setting>
</address-settings></core></configuration>
`)
	x := explain(t, c, "orders.eu", "client-max=0")
	if x.Broker.Source != "f:4" || x.Broker.Deliveries != 3 {
		t.Errorf("the broker's side: %+v", x.Broker)
	}
	const spread = "spread by chance"
	if notes := strings.Join(x.Notes, "; "); strings.Contains(notes, spread) {
		t.Errorf("notes: %s", notes)
	}
	if notes := strings.Join(explain(t, c, "orders.us", "client-max=0").Notes, "; "); !strings.Contains(notes, spread) {
		t.Errorf("notes: %s", notes)
	}
}

// TestEveryRuleIsShown: a value that explain leaves out would be decided in
// silence.
func TestEveryRuleIsShown(t *testing.T) {
	t.Parallel()
	var shown []string
	for _, f := range fields {
		shown = append(shown, strings.ToLower(lastOf(f.name)))
	}
	elsewhere := map[string]string{
		"Destination": "the pattern of the entry", "Source": "its place", "Name": "its name", "Settings": "what the values are decided by",
		"Prefetch": "its four rows", "Advisories": "one row for each of its flags", "ConsumersBeforeDispatch": "consumersBeforeDispatchStarts", "TimeBeforeDispatch": "timeBeforeDispatchStarts", "Drop": "dropDeadLetters", "Rules": "looked at here", "Redelivery": "looked at here", "DeadLetter": "looked at here",
		"DeadLetterQueue": "of Rules: a fate of kind keep", "StrategyNamed": "the same", "RedeliveryNamed": "the same",
		"PreDispatchCheck": "not used by the broker", "Lifetime": "its fields are", "Limits": "its fields are", "Backlog": "its fields are", "SlowConsumers": "its fields are",
		"MaxDuration": "maxSlowDuration", "MaxCount": "maxSlowCount",
		"EnableAudit": "no dead letter is dropped for having the id of another", "MaxAuditDepth": "the same", "MaxProducersToAudit": "the same",
	}
	for _, v := range []any{config.PolicyEntry{}, config.Backlog{}, config.SlowConsumers{}, redelivery.Rules{}, redelivery.Policy{}, redelivery.DeadLetterStrategy{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if elsewhere[f.Name] == "" && !slices.Contains(shown, strings.ToLower(f.Name)) {
				t.Errorf("%T.%s is not shown", v, f.Name)
			}
		}
	}
}

func TestFates(t *testing.T) {
	t.Parallel()
	const head = "policies:\n  - queue: Q\n    deadLetterStrategy: "
	for name, tt := range map[string]struct {
		yaml, destination string
		words             []string
		want              string
	}{
		"ActiveMQ's default":              {"", "Q", nil, "given-up dead-letter queue://ActiveMQ.DLQ, discard non-persistent; expired dead-letter queue://ActiveMQ.DLQ, discard non-persistent"},
		"C17 expired ones are dropped":    {head + "{processExpired: false}", "Q", nil, "given-up dead-letter queue://ActiveMQ.DLQ, discard non-persistent; expired discard expired, discard non-persistent"},
		"C14 non-persistent ones kept":    {head + "{processNonPersistent: true}", "Q", nil, "given-up dead-letter queue://ActiveMQ.DLQ, dead-letter queue://ActiveMQ.DLQ; expired dead-letter queue://ActiveMQ.DLQ, dead-letter queue://ActiveMQ.DLQ"},
		"discarding":                      {head + "{kind: discarding}", "Q", nil, "given-up discard discarding, discard discarding; expired discard discarding, discard discarding"},
		"a temporary queue":               {"", "temp-queue://T", nil, "given-up dead-letter queue://ActiveMQ.DLQ, discard non-persistent; expired discard temporary, discard temporary"},
		"a dead letter queue keeps":       {"", "ActiveMQ.DLQ", nil, "given-up keep, keep; expired keep, keep"},
		"a client that never gives it up": {"", "Q", []string{"client-max=-1"}, "expired dead-letter queue://ActiveMQ.DLQ, discard non-persistent"},
		"a durable subscription": {"policies:\n  - topic: T\n    deadLetterStrategy: {kind: individual, destinationPerDurableSubscriber: true}", "topic://T", nil,
			"given-up dead-letter queue://ActiveMQ.DLQ.Topic.T.CLIENT:SUBSCRIPTION, discard non-persistent; expired dead-letter queue://ActiveMQ.DLQ.Topic.T.CLIENT:SUBSCRIPTION, discard non-persistent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := explain(t, load(t, tt.yaml), tt.destination, tt.words...)
			var got []string
			for _, when := range []string{WhenGivenUp, WhenExpired} {
				var both []string
				for _, f := range x.Fates {
					if f.When == when {
						word := f.Target
						if f.Action == "discard" {
							word = f.Reason
						}
						both = append(both, strings.TrimSpace(f.Action+" "+word))
					}
				}
				if both != nil {
					got = append(got, when+" "+strings.Join(both, ", "))
				}
			}
			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("%s\nwant %s", text, tt.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	plugin := func(limit int) string {
		return fmt.Sprintf("defaultPolicy:\n  redelivery: {maximumRedeliveries: %d}\n", limit)
	}
	for name, tt := range map[string]struct {
		yaml, destination string
		words             []string
		want              string
	}{
		"no policy":                  {"", "Q", nil, "the broker has no policy of its own here"},
		"nobody has":                 {"", "Q", []string{"client-max=none"}, "nobody sets a limit"},
		"C03 the client's is larger": {plugin(2), "Q", nil, "the client's own limit is the larger: 7 deliveries pass"},
		"C03 the client goes first":  {plugin(8), "Q", nil, "the first 7 deliveries are the client's own"},
		"the client without end":     {plugin(2), "Q", []string{"client-max=-1"}, "the client never gives the message up"},
		"the broker without end":     {plugin(-1), "Q", nil, "the broker's delays begin with number 8"},
		"a topic":                    {"", "topic://T", nil, "durable subscriptions"},
		"a temporary topic":          {"", "temp-topic://T", nil, "has no dead letters"},
		"a temporary queue":          {"", "temp-queue://T", nil, "goes with it when its connection ends"},
		"growth that is none":        {"defaultPolicy:\n  redelivery: {useExponentialBackOff: true, backOffMultiplier: 1}\n", "Q", nil, "no effect with a multiplier of 1"},
		"chance":                     {"defaultPolicy:\n  redelivery: {useCollisionAvoidance: true}\n", "Q", []string{"client-max=0"}, "spread by chance"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if x := explain(t, load(t, tt.yaml), tt.destination, tt.words...); !strings.Contains(strings.Join(x.Notes, "; "), tt.want) {
				t.Errorf("%q, want %s", x.Notes, tt.want)
			}
		})
	}
	if x := explain(t, load(t, plugin(2)), "Q", "client-max=0"); len(x.Notes) != 0 {
		t.Errorf("the intended set-up needs no word: %q", x.Notes)
	}
}
