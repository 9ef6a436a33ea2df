package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// redeliveryYAML is one entry for queue Q with a redelivery; its keys begin on
// line 4.
func redeliveryYAML(keys ...string) string {
	return "policies:\n  - queue: Q\n    redelivery:\n      " + strings.Join(keys, "\n      ") + "\n"
}

// strategyYAML is the same with a dead letter strategy.
func strategyYAML(keys ...string) string {
	return "policies:\n  - queue: Q\n    deadLetterStrategy:\n      " + strings.Join(keys, "\n      ") + "\n"
}

// lintCases are configurations, the clients' limit, and what is found: "LINE
// SEVERITY CODE". What is found in every configuration is left out.
var lintCases = map[string]struct {
	file, clientMax string
	want            []string
}{
	"nothing":                                            {"", "6", nil},
	"a limit that stops nobody":                          {"policies:\n  - queue: Q\n    limits:\n      maxBytes: 1 mb\n      queues: false\n", "6", []string{"5 note limit-unused"}},
	"a queue's backlog":                                  {"policies:\n  - queue: Q\n    backlog:\n      limit: 7\n", "6", []string{"4 note backlog-unused"}},
	"a topic's backlog":                                  {"policies:\n  - topic: T\n    backlog:\n      limit: 7\n", "6", nil},
	"a limit":                                            {"policies:\n  - queue: Q\n    limits:\n      maxBytes: 1 mb\n", "6", nil},
	"a topic's limit":                                    {"policies:\n  - topic: T\n    limits: {maxBytes: 1 mb, queues: false}\n", "6", nil},
	"a limit that drops":                                 {"policies:\n  - queue: Q\n    limits:\n      maxMessages: 7\n      onFull: drop\n", "6", []string{"5 warning drop-when-full"}},
	"the intended set-up (C03)":                          {redeliveryYAML("maximumRedeliveries: 4"), "0", nil},
	"C03 the client's limit is the larger":               {redeliveryYAML("maximumRedeliveries: 2"), "6", []string{"4 warning client-limit"}},
	"C03 the client goes first":                          {redeliveryYAML("maximumRedeliveries: 6"), "6", []string{"4 note client-first"}},
	"C03 a client without end":                           {redeliveryYAML("maximumRedeliveries: 6"), "-1", []string{"4 warning client-limit"}},
	"C03 no client limit":                                {redeliveryYAML("maximumRedeliveries: 6"), "none", nil},
	"C25 endless without delay":                          {redeliveryYAML("maximumRedeliveries: -1", "redeliveryDelay: 0", "initialRedeliveryDelay: 0"), "0", []string{"4 warning hot-loop"}},
	"endless with a delay":                               {redeliveryYAML("maximumRedeliveries: -1"), "0", []string{"4 note endless"}},
	"R-POL-11 a multiplier alone":                        {redeliveryYAML("backOffMultiplier: 2"), "0", []string{"4 warning multiplier-unused"}},
	"R-POL-11 multiplier 1":                              {redeliveryYAML("useExponentialBackOff: true", "backOffMultiplier: 1"), "0", []string{"5 warning no-growth"}},
	"nothing grows from 0":                               {redeliveryYAML("useExponentialBackOff: true", "redeliveryDelay: 0", "initialRedeliveryDelay: 0"), "0", []string{"4 warning no-growth"}},
	"R-POL-11 a cap without growth":                      {redeliveryYAML("maximumRedeliveryDelay: 10s"), "0", []string{"4 warning cap-unused"}},
	"E13 a cap below the delay":                          {redeliveryYAML("useExponentialBackOff: true", "redeliveryDelay: 2s", "initialRedeliveryDelay: 2s", "maximumRedeliveryDelay: 1s"), "0", []string{"7 warning cap-below-delay"}},
	"E14 a first delay above the cap":                    {redeliveryYAML("useExponentialBackOff: true", "initialRedeliveryDelay: 30s", "maximumRedeliveryDelay: 2s"), "0", []string{"6 note cap-below-delay"}},
	"a cap beyond the last delay":                        {redeliveryYAML("useExponentialBackOff: true", "maximumRedeliveries: 2", "maximumRedeliveryDelay: 1h"), "0", []string{"6 note cap-unreached"}},
	"a cap that is reached":                              {redeliveryYAML("useExponentialBackOff: true", "maximumRedeliveries: 9", "maximumRedeliveryDelay: 1m"), "0", nil},
	"R-POL-12 a factor that is off":                      {redeliveryYAML("collisionAvoidanceFactor: 0.3"), "0", []string{"4 warning jitter-unused"}},
	"R-POL-12 a factor of 0":                             {redeliveryYAML("useCollisionAvoidance: true", "collisionAvoidanceFactor: 0"), "0", []string{"5 warning jitter-unused"}},
	"R-POL-13 only a first delay":                        {redeliveryYAML("useCollisionAvoidance: true", "maximumRedeliveries: 1"), "0", []string{"4 warning jitter-unused"}},
	"a spread of no delay":                               {redeliveryYAML("useCollisionAvoidance: true", "redeliveryDelay: 0", "initialRedeliveryDelay: 0"), "0", []string{"4 warning jitter-unused"}},
	"R-POL-12 more than all":                             {redeliveryYAML("useCollisionAvoidance: true", "collisionAvoidanceFactor: 1.5"), "0", []string{"5 warning jitter-wide"}},
	"R-POL-04 a negative delay":                          {redeliveryYAML("initialRedeliveryDelay: -1s"), "0", []string{"4 warning negative-delay"}},
	"E6 the first delay is another":                      {redeliveryYAML("redeliveryDelay: 10s"), "0", []string{"4 note first-delay"}},
	"a long way":                                         {redeliveryYAML("useExponentialBackOff: true", "maximumRedeliveries: 12"), "0", []string{"4 note long"}},
	"R-DLS-20 non-persistent ones":                       {strategyYAML("processNonPersistent: false"), "0", []string{"4 note non-persistent-vanish"}},
	"R-DLS-20 expired ones":                              {strategyYAML("processNonPersistent: true", "processExpired: false"), "0", []string{"5 note expired-vanish"}},
	"discarding":                                         {strategyYAML("kind: discarding"), "0", []string{"4 warning discarding"}},
	"a time to live of dead letters":                     {strategyYAML("processNonPersistent: true", "expiration: 1h"), "0", []string{"5 note dead-letters-expire"}},
	"a time to live where they are dropped":              {strategyYAML("processNonPersistent: true", "expiration: 1h", "deadLetterQueue: D") + "  - queue: D\n    deadLetterStrategy: {kind: shared, deadLetterQueue: D, processNonPersistent: true, discardOwn: true}\n", "0", []string{"5 warning dead-letters-expire", "8 warning discard-own"}},
	"a time to live where they go on":                    {strategyYAML("processNonPersistent: true", "expiration: 1h", "deadLetterQueue: D") + "  - queue: D\n    deadLetterStrategy: {kind: shared, deadLetterQueue: E, processNonPersistent: true}\n", "0", []string{"5 warning dead-letters-expire"}},
	"to a topic":                                         {strategyYAML("processNonPersistent: true", "deadLetterQueue: topic://graves"), "0", []string{"5 warning dead-letters-unbound"}},
	"to topics":                                          {strategyYAML("kind: individual", "processNonPersistent: true", "useQueueForQueueMessages: false"), "0", []string{"6 warning dead-letters-unbound"}},
	"R-DLS-04 its own":                                   {strategyYAML("kind: individual", "processNonPersistent: true", "queuePrefix: ''"), "0", []string{"6 warning own-dead-letter-queue"}},
	"R-EDGE-28 round and round":                          {strategyYAML("processNonPersistent: true", "deadLetterQueue: D") + "  - queue: D\n    deadLetterStrategy: {deadLetterQueue: Q, processNonPersistent: true}\n", "0", []string{"5 error dead-letter-loop", "7 error dead-letter-loop"}},
	"R-EDGE-28 on, but not round":                        {strategyYAML("processNonPersistent: true", "deadLetterQueue: D") + "  - queue: D\n    deadLetterStrategy: {deadLetterQueue: E, processNonPersistent: true}\n", "0", nil},
	"R-EDGE-28 a pattern does not hold for dead letters": {strategyYAML("processNonPersistent: true", "deadLetterQueue: D") + "  - queue: '>'\n    deadLetterStrategy: {deadLetterQueue: Q, processNonPersistent: true}\n", "0", nil},
	"dropped at the limit":                               {"policies:\n  - queue: Q\n    redelivery: {maximumRedeliveries: 1}\n    dropAtLimit: true\n", "0", []string{"4 warning drop-at-limit"}},
	"dropped without a policy":                           {"defaultPolicy:\n  dropWithoutPolicy: true\n", "0", []string{"2 warning drop-without-policy"}},
	"R-DLQ-40 all dead letters dropped":                  {"policies:\n  - queue: Q\n    dropDeadLetters: last\n", "0", []string{"3 warning drop-dead-letters"}},
	"R-DLQ-40 by the plugin":                             {"<broker><plugins>\n<discardingDLQBrokerPlugin dropAll='true'/></plugins></broker>", "0", []string{"1 note not-honoured", "2 warning drop-dead-letters"}},
	"R-EDGE-09 duplicates":                               {"policies:\n  - queue: Q\n    duplicates: discard\n", "0", []string{"3 note duplicates-vanish"}},
	"R-MAP-13 apart":                                     {"policies:\n  - queue: A.*\n  - queue: '*.B'\n", "0", []string{"3 warning overlap"}},
	"R-MAP-12 by chance":                                 {"policies:\n  - queue: A.*\n  - queue: A.>\n", "0", []string{"3 warning overlap"}},
	"C17 twice":                                          {"policies:\n  - queue: '>'\n  - topic: '>'\n  - queue: '>'\n", "0", []string{"2 warning twice"}},
	"R-MAP-11 one narrower than the other":               {"policies:\n  - queue: A.>\n  - queue: A.B\n", "0", nil},
	"R-MAP-03 a star in a step":                          {"policies:\n  - queue: orders*\n", "0", []string{"2 warning no-wildcard"}},
	"R-MAP-03 a tail in the middle":                      {"policies:\n  - queue: A.>.B\n", "0", []string{"2 warning no-wildcard"}},
	"R-MAP-02 a tail twice":                              {"policies:\n  - queue: A.>.>\n", "0", nil},
	"HornetQ's wildcard":                                 {"policies:\n  - queue: 'orders.#'\n", "0", []string{"2 warning no-wildcard"}},
	"a default for nothing":                              {"policies:\n  - queue: '>'\n  - topic: '>'\n  - tempQueue: '>'\n  - tempTopic: '>'\ndefaultPolicy:\n  prioritizedMessages: true\n", "0", []string{"7 warning unused"}},
	"R-PLG-20 the plugin's switches": {"<broker schedulerSupport='true'><plugins><redeliveryPlugin fallbackToDeadLetter='false'\n sendToDlqIfMaxRetriesExceeded='false'/></plugins></broker>", "0",
		[]string{"1 warning drop-without-policy", "1 note not-honoured", "2 warning drop-at-limit"}},
	"R-POL-16 a limit below -1": {"<broker schedulerSupport='true'><plugins><redeliveryPlugin><redeliveryPolicyMap><defaultEntry>\n<redeliveryPolicy maximumRedeliveries='-2'/></defaultEntry></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>", "0",
		[]string{"1 note not-honoured", "2 warning negative-limit"}},
	"the plugin's policies, too": {"<broker schedulerSupport='true'><plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyEntries>\n<redeliveryPolicy queue='A.*' backOffMultiplier='2'/>\n<redeliveryPolicy queue='A.>'/></redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>", "0",
		[]string{"1 note not-honoured", "2 warning multiplier-unused", "3 warning overlap"}},
	"C01 max-delivery-attempts of 0": {"addressSettings:\n  settings:\n    - match: A\n      max-delivery-attempts: 0\n      redelivery-delay: 5\n      dead-letter-address: D\n      expiry-address: E\ndestinations: [{name: D}]\n", "0",
		[]string{"4 note endless", "4 warning zero-attempts"}},
	"R-HQ-44 no address": {"addressSettings:\n  settings:\n    - match: A\n      expiry-address: E\n", "0", []string{"3 note no-dead-letter-address"}},
	"R-HQ-44 no address, and dropped as in the products": {"addressSettings:\n  dropWithoutAddress: true\n  settings:\n    - match: A\n      expiry-address: E\n", "0", []string{"4 warning no-dead-letter-address"}},
	"R-HQ-140 no queue at the address":                   {"addressSettings:\n  settings:\n    - match: '#'\n      expiry-address: E\n      dead-letter-address: D\n", "0", []string{"5 note dead-letters-unbound"}},
	"R-HQ-56 no expiry-address":                          {"addressSettings:\n  settings:\n    - match: '#'\n      dead-letter-address: D\ndestinations: [{name: D}]\n", "0", []string{"3 note expired-vanish"}},
	"R-HQ-19 what is inherited is told once":             {"addressSettings:\n  settings:\n    - match: '#'\n      dead-letter-address: D\n      expiry-address: E\n      redelivery-delay: 1000\n      max-redelivery-delay: 10\n    - match: A\n      max-delivery-attempts: 3\ndestinations: [{name: D}]\n", "0", []string{"7 warning cap-below-delay"}},
	"a redelivery before the plugin's":                   {"policies:\n  - queue: A.>\n    redelivery: {}\nredeliveryPlugin:\n  policies:\n    - queue: A.B\n    - queue: B\n", "0", []string{"6 warning shadowed"}},
	"R-EDGE-31 a redelivery for dead letters":            {strategyYAML("processNonPersistent: true", "deadLetterQueue: D") + "redeliveryPlugin:\n  policies:\n    - queue: D\n", "0", []string{"5 note dead-letters-redelivered"}},
	"what is not honoured":                               {"<broker\n mbeanInvocationTimeout='5'/>", "0", []string{"1 note not-honoured", "2 note not-honoured"}},
	"what is refused":                                    {"policies:\n  - queu: A\n", "0", []string{"2 error refused"}},
}

func TestLint(t *testing.T) {
	t.Parallel()
	for name, tt := range lintCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, lintOf(t, tt.file, tt.clientMax)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func lintOf(t *testing.T, file, clientMax string) []string {
	t.Helper()
	client, err := AskLint(url.Values{"client-max": {clientMax}})
	if err != nil {
		t.Fatal(err)
	}
	c, notices, err := config.Load(config.Options{File: "f", AllowAnonymous: true, ReadFile: func(path string) ([]byte, error) {
		if path != "f" {
			return nil, fs.ErrNotExist
		}
		return []byte(file), nil
	}})
	var bad *config.Error
	var report Report
	if errors.As(err, &bad) {
		report = Refused("f", bad, notices)
	} else {
		report = Lint(c, notices, client)
	}
	var got []string
	for _, f := range report.Findings {
		if codes[f.Code] == "" {
			t.Errorf("code %s is not listed", f.Code)
		}
		if f.Text == "" || strings.Contains(f.Text+f.Remedy, "\n") {
			t.Errorf("%+v", f)
		}
		if f.Source != "f" { // what is found in every configuration
			_, line := splitSource(f.Source)
			got = append(got, fmt.Sprintf("%d %s %s", line, f.Severity, f.Code))
		}
	}
	return got
}

// TestEveryCodeIsTestedAndDocumented compares the list of codes with the cases and
// with the page.
func TestEveryCodeIsTestedAndDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, tt := range lintCases {
		for _, w := range tt.want {
			tested[w[strings.LastIndexByte(w, ' ')+1:]] = true
		}
	}
	elsewhere := []string{"no-scheduler", "overlaps", "more"} // tested below
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if row := fmt.Sprintf("| `%s` | %s |", code, codes[code]); !strings.Contains(string(page), row) {
			t.Errorf("docs/policies.md has no row %s", row)
		}
		if !tested[code] && !slices.Contains(elsewhere, code) {
			t.Errorf("no case finds %s", code)
		}
	}
}

// TestLintOfConfigurationsThatNoFileGives makes them by hand.
func TestLintOfConfigurationsThatNoFileGives(t *testing.T) {
	t.Parallel()
	hornetq := func(change func(p *redelivery.Policy)) *config.Config {
		p := redelivery.HornetQPolicy()
		p.Source, p.RedeliveryDelay, p.MaximumRedeliveryDelay = "f:1", 1000e6, 10000e6
		change(&p)
		return &config.Config{Policies: []config.PolicyEntry{{Destination: message.Destination{Kind: message.Queue, Name: "Q"}, Source: "f:1",
			Rules: redelivery.Rules{Redelivery: &p}}}}
	}
	many := &config.Config{}
	for i := range maxCompared + 1 {
		many.Policies = append(many.Policies, config.PolicyEntry{Destination: message.Destination{Kind: message.Queue, Name: "A*"}, Source: fmt.Sprintf("f:%d", 1+i)})
	}
	zero := hornetq(func(p *redelivery.Policy) { p.MaximumRedeliveries = -1 })
	zero.Policies[0].Settings = []config.Setting{{Name: "max-delivery-attempts", Value: "0", Source: "f:1"}}
	for name, tt := range map[string]struct {
		config *config.Config
		want   []string
	}{
		"R-PLG-01":                {&config.Config{NoScheduler: true, Redelivery: &config.RedeliveryPlugin{FallbackToDeadLetter: true, SendToDLQIfMaxRetriesExceeded: true}}, []string{"no-scheduler"}},
		"too many":                {many, []string{"overlaps", "no-wildcard", "more"}},
		"C01 zero attempts":       {zero, []string{"zero-attempts", "endless"}},
		"R-HQ-29 as it should be": {hornetq(func(p *redelivery.Policy) { p.UseExponentialBackOff, p.BackOffMultiplier = true, 2 }), nil},
		"R-HQ-32 no room to grow": {hornetq(func(p *redelivery.Policy) {
			p.UseExponentialBackOff, p.BackOffMultiplier, p.MaximumRedeliveryDelay = true, 2, 1000e6
		}), []string{"no-growth"}},
		"R-HQ-35 it shrinks": {hornetq(func(p *redelivery.Policy) { p.UseExponentialBackOff, p.BackOffMultiplier = true, 0.5 }), []string{"no-growth"}},
		"nothing to multiply": {hornetq(func(p *redelivery.Policy) {
			p.UseExponentialBackOff, p.BackOffMultiplier, p.RedeliveryDelay = true, 2, 0
		}), []string{"no-growth"}},
		"R-HQ-35 a cap of nothing": {hornetq(func(p *redelivery.Policy) { p.MaximumRedeliveryDelay = 0 }), []string{"cap-below-delay"}},
		"R-HQ-32 a cap below":      {hornetq(func(p *redelivery.Policy) { p.MaximumRedeliveryDelay = 500e6 }), []string{"cap-below-delay"}},
		"R-HQ-31 the first is spread": {hornetq(func(p *redelivery.Policy) {
			p.MaximumRedeliveries, p.UseCollisionAvoidance, p.CollisionAvoidanceFactor = 1, true, 0.5
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range Lint(tt.config, nil, Client{None: true}).Findings {
				if f.Source != "" && !slices.Contains(got, f.Code) || f.Code == "no-scheduler" || f.Code == "more" {
					got = append(got, f.Code)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
