package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// diffed loads two texts of one file and tells what is different.
func diffed(t *testing.T, from, to string) []string {
	t.Helper()
	load := func(text string) *Config {
		c, _, err := Load(Options{File: "f", ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := load(from), load(to)
	var lines []string
	for _, c := range Diff(a, b) {
		lines = append(lines, c.String())
	}
	if back := Diff(b, a); len(back) != len(lines) {
		t.Errorf("%d changes back, %d there", len(back), len(lines))
	}
	if same := Diff(a, a); len(same) > 0 {
		t.Errorf("different from itself: %v", same)
	}
	for _, c := range Diff(a.Reloaded(b), b) {
		if !c.Restart {
			t.Errorf("still different after a reload: %v", c)
		}
	}
	for _, c := range Diff(a, a.Reloaded(b)) {
		if c.Restart && c.Setting == "" {
			t.Errorf("changed by a reload: %v", c)
		}
	}
	return lines
}

func TestDiff(t *testing.T) { // issue 3, item 10
	t.Parallel()
	broker := func(parts ...string) string {
		return "<broker xmlns=\"http://activemq.apache.org/schema/core\" schedulerSupport=\"true\">\n" + strings.Join(parts, "\n") + "\n</broker>"
	}
	entries := func(all ...string) string {
		return "<destinationPolicy><policyMap><policyEntries>\n" + strings.Join(all, "\n") + "\n</policyEntries></policyMap></destinationPolicy>"
	}
	plugin := func(switches string, all ...string) string {
		return "<plugins><redeliveryPlugin " + switches + "><redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>\n" + strings.Join(all, "\n") +
			"\n</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"
	}
	virtual := func(all ...string) string {
		return "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>\n" + strings.Join(all, "\n") +
			"\n</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"
	}
	users := func(names ...string) string {
		var all strings.Builder
		for _, n := range names {
			all.WriteString(`<authenticationUser username="` + n + `" password="p" groups="g"/>`)
		}
		return "<plugins><simpleAuthenticationPlugin><users>" + all.String() + "</users></simpleAuthenticationPlugin></plugins>"
	}
	rights := func(entry string) string {
		return "<plugins><authorizationPlugin><map><authorizationMap><authorizationEntries><authorizationEntry " + entry +
			"/></authorizationEntries></authorizationMap></map></authorizationPlugin></plugins>"
	}
	for name, tt := range map[string]struct {
		from, to string
		want     []string
	}{
		"nothing": {broker(), "\n" + broker(), nil},
		"a setting": {
			broker(plugin("", `<redeliveryPolicy queue="A.>" maximumRedeliveries="5" redeliveryDelay="7"/>`)),
			broker("", plugin("", `<redeliveryPolicy queue="A.>" maximumRedeliveries="3"/>`)),
			[]string{"redeliveryPlugin queue://A.> maximumRedeliveries: 5 (f:3) → 3 (f:4)", "redeliveryPlugin queue://A.> redeliveryDelay: 7 (f:3) → not set"},
		},
		"an entry comes, and one goes": {
			broker(entries(`<policyEntry queue="A"/>`)),
			broker(entries(`<policyEntry queue="B" persistJMSRedelivered="true"/>`)),
			[]string{"policy queue://B: not set → given (f:3)", "policy queue://B persistJMSRedelivered: not set → true (f:3)", "policy queue://A: given (f:3) → not set"},
		},
		"the brokers that clients may use": {
			"cluster: [tcp://b:1, tcp://c:1]", "brokerName: localhost\ncluster:\n- tcp://c:1\n- {uri: tcp://d:1, name: d}\n",
			[]string{"cluster tcp://d:1: not set → given (f:4)", "cluster tcp://d:1 name: not set → d (f:4)", "cluster tcp://b:1: given (f:1) → not set"},
		},
		"the order of entries": {
			broker(entries(`<policyEntry queue="A.*.C" persistJMSRedelivered="true"/>`, `<policyEntry queue="A.B.*"/>`)),
			broker(entries(`<policyEntry queue="A.B.*"/>`, `<policyEntry queue="A.*.C" persistJMSRedelivered="true"/>`)),
			[]string{"policies: changed"},
		},
		"what is decided when a queue is made": {
			broker(entries(`<policyEntry queue=">"/>`)),
			broker(entries(`<policyEntry queue=">" prioritizedMessages="true"/>`)),
			[]string{"policy queue://> prioritizedMessages: not set → true (f:3); needs a restart"},
		},
		"the plugin goes": {
			broker(plugin(`fallbackToDeadLetter="false"`, `<redeliveryPolicy queue="A" maximumRedeliveries="1"/>`)), broker(),
			[]string{"redeliveryPlugin: given (f:2) → not set", "redeliveryPlugin fallbackToDeadLetter: false (f:2) → not set",
				"redeliveryPlugin queue://A: given (f:3) → not set", "redeliveryPlugin queue://A maximumRedeliveries: 1 (f:3) → not set"},
		},
		"destinations": {
			broker(`<destinations><queue physicalName="A"/></destinations>`), broker(`<destinations><queue physicalName="A?isDLQ=true"/><topic physicalName="T"/></destinations>`),
			[]string{"destination topic://T: not set → given", "destination queue://A isDLQ: not set → true"},
		},
		"virtual topics": {
			broker(), broker(virtual(`<virtualTopic name="VirtualTopic.>" selectorAware="true"/>`)),
			[]string{"virtualTopic VirtualTopic.> selectorAware: false (default) → true (f:3)"},
		},
		"composites": {
			broker(virtual(`<compositeQueue name="F"><forwardTo><queue physicalName="A"/></forwardTo></compositeQueue>`)),
			broker(virtual(`<compositeQueue name="F"><forwardTo><queue physicalName="A"/><filteredDestination selector="a=1" topic="B"/></forwardTo></compositeQueue>`)),
			[]string{"compositeQueue F forwardTo: queue://A (f:3) → queue://A, topic://B if a=1 (f:3)"},
		},
		"remembered selectors": {
			broker(`<plugins>`, `<virtualSelectorCacheBrokerPlugin/>`, `</plugins>`),
			broker(`<plugins>`, `<virtualSelectorCacheBrokerPlugin ignoreWildcardSelectors="true"/>`, `</plugins>`),
			[]string{"virtualSelectorCacheBrokerPlugin ignoreWildcardSelectors: false (f:3) → true (f:3)"},
		},
		"mirrored queues": {
			broker(`<destinationInterceptors>`, `<mirroredQueue/>`, `</destinationInterceptors>`),
			broker(`<destinationInterceptors>`, `<mirroredQueue/>`, `<virtualDestinationInterceptor/>`, `<mirroredQueue prefix="" postfix=".seen"/></destinationInterceptors>`),
			[]string{"mirroredQueue *.seen: not set → given (f:5)", "mirroredQueue *.seen keptOnly: not set → false (f:5)", "mirroredQueue *.seen temporary: not set → true (f:5)",
				"mirroredQueue VirtualTopic.Mirror.* keptOnly: false (f:3) → true (f:3)"}, // now in front of another
		},
		"what needs a restart": {
			broker(`<transportConnectors><transportConnector uri="tcp://127.0.0.1:1"/></transportConnectors>`),
			strings.Replace(broker(`<transportConnectors><transportConnector uri="tcp://127.0.0.1:2"/></transportConnectors>`), "<broker ", `<broker brokerName="b" `, 1),
			[]string{"brokerName: localhost → b; needs a restart", "listeners: tcp://127.0.0.1:1 → tcp://127.0.0.1:2; needs a restart"},
		},
		"secrets are not shown": {
			broker(`<plugins><simpleAuthenticationPlugin><users><authenticationUser username="u" password="one" groups="g"/></users></simpleAuthenticationPlugin></plugins>`),
			broker(`<plugins><simpleAuthenticationPlugin><users><authenticationUser username="u" password="two" groups="g"/></users></simpleAuthenticationPlugin></plugins>`),
			[]string{"user u password: (secret) (f:2) → (secret) (f:2)"},
		},
		"users and rights": {
			broker(users("a", "b"), rights(`queue="Q" read="g"`)), broker(users("a", "c"), rights(`queue="Q" read="g,h"`)),
			[]string{"user c groups: not set → g (f:2)", "user c password: not set → (secret) (f:2)", "authorizationEntry queue://Q read: g (f:3) → g,h (f:3)",
				"user b groups: g (f:2) → not set", "user b password: (secret) (f:2) → not set"},
		},
		"the first users": {
			broker(), broker(users("a")),
			[]string{"access: nobody is asked for a password → clients are asked for a password; needs a restart"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, diffed(t, tt.from, tt.to)); d != "" {
				t.Errorf("Diff (-want +got):\n%s", d)
			}
		})
	}
}

func TestDiffNamesFieldsThatAreThere(t *testing.T) {
	t.Parallel()
	all := reflect.TypeFor[Config]()
	for name := range live {
		if _, ok := all.FieldByName(name); !ok {
			t.Errorf("Config has no field %s", name)
		}
	}
	for _, name := range quiet {
		if _, ok := all.FieldByName(name); !ok {
			t.Errorf("Config has no field %s", name)
		}
	}
}
