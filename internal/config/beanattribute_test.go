package config

import (
	"strings"
	"testing"
)

// TestBeanAttributes: what a bean says by its attributes is honoured or an error, as what
// it says by elements.
func TestBeanAttributes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ attributes, prefix, problem string }{
		"properties":        {`xmlns:p="http://www.springframework.org/schema/p" p:queuePrefix="PP."`, "PP.", ""},
		"of Spring's alone": {`init-method="start" destroy-method="stop" lazy-init="true" scope="singleton"`, "ActiveMQ.DLQ.Queue.", ""},
		"parent":            {`parent="base"`, "", "parent"},
		"factory":           {`factory-method="make"`, "", "factory-method"},
		"unknown property":  {`xmlns:p="http://www.springframework.org/schema/p" p:queuePrefx="PP."`, "", "queuePrefx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _, problems := load(`<beans><bean id="s" class="org.apache.activemq.broker.region.policy.IndividualDeadLetterStrategy" ` + c.attributes + `/>
<broker><destinationPolicy><policyMap><policyEntries><policyEntry queue=">" deadLetterStrategy="#s"/></policyEntries></policyMap></destinationPolicy></broker></beans>`)
			if c.problem != "" {
				if len(problems) != 1 || !strings.Contains(problems[0].String(), c.problem) {
					t.Errorf("%v, want one about %s", problems, c.problem)
				}
				return
			}
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := cfg.Policies[0].Rules.DeadLetter.QueuePrefix; got != c.prefix {
				t.Errorf("prefix %q, want %q", got, c.prefix)
			}
		})
	}
}
