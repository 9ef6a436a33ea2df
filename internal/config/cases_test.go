package config

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// effectiveText writes what holds for a destination: limit and first delays of the
// broker's redelivery, where its dead letters go, and the switches that are on.
func effectiveText(r *Resolver, name string) string {
	d, err := message.ParseDestination(name, message.Queue)
	if err != nil {
		return err.Error()
	}
	e := r.Policy(d)
	var b strings.Builder
	if p := e.Rules.Redelivery; p == nil {
		b.WriteString("client")
	} else {
		fmt.Fprintf(&b, "%d after", p.MaximumRedeliveries)
		for k := 1; k <= 4; k++ {
			fmt.Fprintf(&b, " %d", p.DelayMillis(k, nil))
		}
	}
	s := e.Rules.DeadLetter
	fmt.Fprintf(&b, "; %s", s.Target(d, redelivery.Subscription{ClientID: "c", Name: "s"}))
	for _, f := range []struct {
		on   bool
		name string
	}{
		{e.Rules.DropAtLimit, "drop at limit"},
		{e.Rules.DropWithoutPolicy, "drop without policy"},
		{s.Kind != redelivery.UnsetStrategy && !s.ProcessExpired, "drop expired"},
		{s.ProcessNonPersistent, "keep non-persistent"},
		{e.PersistJMSRedelivered != nil && *e.PersistJMSRedelivered, "marks"},
		{e.Rules.DeadLetterQueue, "marked"},
	} {
		if f.on {
			b.WriteString("; " + f.name)
		}
	}
	return b.String()
}

// TestSeedDocuments loads the two documents that the project was made from, as
// they are written: the individual strategy on every queue, and the broker's
// redelivery with its delays E6 (SpecialQueue) and E5 (all others).
func TestSeedDocuments(t *testing.T) {
	t.Parallel()
	policy, err := os.ReadFile("testdata/seed/individual.xml")
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := os.ReadFile("testdata/seed/redelivery.xml")
	if err != nil {
		t.Fatal(err)
	}
	individual, _, problems := load("<broker>" + string(policy) + "</broker>")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	broker, notices, problems := load(string(plugin))
	if len(problems) > 0 || len(notices) != 2 { // it has no connectors, and dots
		t.Fatal(notices, problems)
	}
	for _, c := range []struct {
		config     *Config
		name, want string
	}{
		{individual, "orders", "client; queue://DLQ.orders; drop expired"},
		{individual, "topic://orders", "client; queue://ActiveMQ.DLQ"},
		{broker, "SpecialQueue", "4 after 1000 10000 10000 10000; queue://ActiveMQ.DLQ"},
		{broker, "orders", "4 after 5000 10000 10000 10000; queue://ActiveMQ.DLQ"},
		{broker, "topic://news", "4 after 5000 10000 10000 10000; queue://ActiveMQ.DLQ"},
	} {
		if got := effectiveText(c.config.Resolver(), c.name); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	special := broker.Resolver().Policy(message.Destination{Kind: message.Queue, Name: "SpecialQueue"})
	want := []Setting{{"fallbackToDeadLetter", "true", "f:4"}, {"sendToDlqIfMaxRetriesExceeded", "true", "f:4"},
		{"maximumRedeliveries", "4", "f:9"}, {"redeliveryDelay", "10000", "f:9"}}
	if diff := cmp.Diff(want, special.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if special.Rules.Redelivery.Name != "redeliveryPolicy queue://SpecialQueue" || special.Rules.Redelivery.Source != "f:9" || !special.Found {
		t.Errorf("%+v", special.Rules.Redelivery)
	}
	if !broker.SchedulerSupport || individual.SchedulerSupport {
		t.Error("schedulerSupport")
	}
	if broker.NoScheduler || individual.NoScheduler {
		t.Error("the scheduler is off only where the file says so")
	}
}

// TestCases loads the configuration of every acceptance case that has one and asks
// for what holds there.
func TestCases(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/cases/activemq.txtar")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{
		"C01.xml":       {"LIMIT.THREE": "3 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ", "LIMIT.ENDLESS": "-1 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ", "X": "client; queue://ActiveMQ.DLQ"},
		"C02.xml":       {"X": "4 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ"},
		"C03.xml":       {"BOTH.FIVE": "5 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ"},
		"C04.xml":       {"X": "4 after 1000 2000 4000 8000; queue://ActiveMQ.DLQ"},
		"C05.xml":       {"X": "8 after 4000 4000 4000 4000; queue://ActiveMQ.DLQ"},
		"C06.xml":       {"X": "6 after 1000 4000 16000 64000; queue://ActiveMQ.DLQ"},
		"C07.xml":       {"X": "3 after 5000 5000 5000 5000; queue://ActiveMQ.DLQ"},
		"C08.xml":       {"X": "3 after 1500 1500 1500 1500; queue://ActiveMQ.DLQ"},
		"C11.xml":       {"F.A": "client; queue://DLQ.F.A", "SHARED.X": "client; queue://ActiveMQ.DLQ"},
		"C12.xml":       {"topic://FEED.OWN": "client; queue://DLQ.T.FEED.OWN.c:s", "topic://FEED.ONE": "client; queue://DLQ.T.FEED.ONE"},
		"C13.xml":       {"X": "client; queue://DLQ.X"},
		"C14.xml":       {"KEEP.X": "client; queue://ActiveMQ.DLQ; keep non-persistent", "X": "client; queue://ActiveMQ.DLQ"},
		"C15.xml":       {"X": "3 after 5000 5000 5000 5000; queue://ActiveMQ.DLQ"},
		"C16.xml":       {"X": "client; queue://ActiveMQ.DLQ"},
		"C17-once.xml":  {"X": "client; queue://ActiveMQ.DLQ; drop expired"},
		"C17-twice.xml": {"X": "client; queue://ActiveMQ.DLQ"}, // the later of the two (R-MAP-13, R-EDGE-21)
		"C18.xml":       {"SUFFIX.A": "client; queue://SUFFIX.A.dead", "BIN.A": "client; queue://ops.graveyard", "PRE.A": "client; queue://DLQ.PRE.A"},
		"C21.xml":       {"NOCACHE.A": "client; queue://ActiveMQ.DLQ"},
		"C24.xml":       {"X": "2 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ"},
		"C25.xml":       {"DELAYED.A": "3 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ; marks", "X": "client; queue://ActiveMQ.DLQ; marks"},
		"C26.xml":       {"X": "2 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ"},
	}
	for _, f := range archive.Files {
		c, notices, problems := load(string(f.Data))
		if len(problems) > 0 {
			t.Errorf("%s: %v", f.Name, problems)
			continue
		}
		if f.Name == "C17-twice.xml" && !strings.Contains(fmt.Sprint(notices), "overlaps") {
			t.Errorf("%s: no word about the second entry: %v", f.Name, notices)
		}
		for d, text := range want[f.Name] {
			if got := effectiveText(c.Resolver(), d); got != text {
				t.Errorf("%s %s: %q, want %q", f.Name, d, got, text)
			}
		}
		if len(want[f.Name]) == 0 {
			t.Errorf("%s: nothing is asked", f.Name)
		}
	}
}

// TestResolver joins policy entries and the redeliveryPlugin.
func TestResolver(t *testing.T) {
	t.Parallel()
	const head = `<broker schedulerSupport="true"><destinations><queue physicalName="GRAVES?isDLQ=true"/><queue physicalName="FALSE?isDLQ=false"/></destinations>
<destinationPolicy><policyMap><policyEntries>
<policyEntry queue="A.>"><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry>
<policyEntry queue="A.DLQ"><deadLetterStrategy><individualDeadLetterStrategy/></deadLetterStrategy></policyEntry>
</policyEntries></policyMap></destinationPolicy><plugins>`
	c, _, problems := load(head + `<redeliveryPlugin fallbackToDeadLetter="false" sendToDlqIfMaxRetriesExceeded="false"><redeliveryPolicyMap><redeliveryPolicyEntries>
<redeliveryPolicy queue="A.B, topic://T" maximumRedeliveries="1" initialRedeliveryDelay="0" redeliveryDelay="20"/>
<redeliveryPolicy queue="A.DLQ" maximumRedeliveries="2" useExponentialBackOff="true" backOffMultiplier="1.5" maximumRedeliveryDelay="1200"/>
<redeliveryPolicy tempQueue="false" maximumRedeliveries="0"/>
<redeliveryPolicy queue="J" useCollisionAvoidance="true" collisionAvoidancePercent="30"/>
<redeliveryPolicy queue="K" useCollisionAvoidance="true" collisionAvoidanceFactor="0.3"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := c.Resolver()
	for name, want := range map[string]string{
		"A.B":            "1 after 0 20 20 20; ; drop at limit",
		"topic://T":      "1 after 0 20 20 20; queue://ActiveMQ.DLQ; drop at limit",
		"A.C":            "client; ; drop at limit; drop without policy",
		"A.DLQ":          "2 after 1000 1200 1200 1200; queue://ActiveMQ.DLQ.Queue.A.DLQ; drop at limit",
		"temp-queue://x": "0 after 1000 1000 1000 1000; queue://ActiveMQ.DLQ; drop at limit",
		"B":              "client; queue://ActiveMQ.DLQ; drop at limit; drop without policy",
		"GRAVES":         "client; queue://ActiveMQ.DLQ; drop at limit; drop without policy; marked",
		"FALSE":          "client; queue://ActiveMQ.DLQ; drop at limit; drop without policy", // R-EDGE-26
	} {
		if got := effectiveText(r, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, factor := range map[string]float64{"J": 0.3, "K": 0.3} { // R-POL-01, R-EDGE-23
		if p := r.Policy(message.Destination{Kind: message.Queue, Name: name}).Rules.Redelivery; p.CollisionAvoidanceFactor != factor || !p.UseCollisionAvoidance {
			t.Errorf("%s: %+v", name, p)
		}
	}
	named := r.Policy(message.Destination{Kind: message.Queue, Name: "A.DLQ"}).Rules
	if !named.StrategyNamed || !named.RedeliveryNamed {
		t.Error("R-EDGE-28, R-EDGE-31: entries of the queue's own name hold for dead letters, too")
	}
	if wide := r.Policy(message.Destination{Kind: message.Queue, Name: "A.C"}).Rules; wide.StrategyNamed || wide.RedeliveryNamed {
		t.Error("a pattern names no queue")
	}
	// A policy entry's own redelivery wins over the plugin.
	own := &redelivery.Policy{MaximumRedeliveries: 9, InitialRedeliveryDelay: time.Second}
	c.Policies[0].Rules.Redelivery = own
	if got := c.Resolver().Policy(message.Destination{Kind: message.Queue, Name: "A.B"}).Rules; got.Redelivery != own || got.DropAtLimit {
		t.Errorf("%+v", got)
	}
}

// TestRedeliveryPluginRefused is about files that cannot be meant.
func TestRedeliveryPluginRefused(t *testing.T) {
	t.Parallel()
	policy := func(attrs string) string {
		return `<broker schedulerSupport="true"><plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyEntries><redeliveryPolicy ` + attrs +
			`/></redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>`
	}
	for name, c := range map[string]struct{ file, want string }{
		"R-PLG-01 without a scheduler": {"<broker>\n<plugins><redeliveryPlugin/></plugins></broker>", `f:2: redeliveryPlugin: needs a scheduler, as in ActiveMQ; write schedulerSupport="true" at the broker element (line 1), or remove the plugin`},
		"R-PLG-01 scheduler off":       {`<broker schedulerSupport="false"><plugins><redeliveryPlugin/></plugins></broker>`, "needs a scheduler"},
		"twice":                        {`<broker schedulerSupport="true"><plugins><redeliveryPlugin/><redeliveryPlugin/></plugins></broker>`, "is the second redeliveryPlugin"},
		"two default entries": {`<broker schedulerSupport="true"><plugins><redeliveryPlugin><redeliveryPolicyMap><defaultEntry><redeliveryPolicy/></defaultEntry><defaultEntry><redeliveryPolicy/></defaultEntry></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>`,
			"is the second default entry"},
		"no destination":      {policy(`maximumRedeliveries="3"`), "says for which destinations"},
		"two destinations":    {policy(`queue="A" topic="B"`), "write one entry for each"},
		"a limit beyond int":  {policy(`queue="A" maximumRedeliveries="3000000000"`), "3000000000 is not between"},
		"a percent no short":  {policy(`queue="A" collisionAvoidancePercent="40000"`), "40000 is not between"},
		"percent and factor":  {policy(`queue="A" collisionAvoidancePercent="40" collisionAvoidanceFactor="0.4"`), "say the same"},
		"an endless factor":   {policy(`queue="A" backOffMultiplier="Infinity"`), "no number to reckon with"},
		"a delay of letters":  {policy(`queue="A" redeliveryDelay="soon"`), `"soon" is not a whole number`},
		"an attribute astray": {policy(`queue="A" maximumRedelivery="3"`), "did you mean maximumRedeliveries?"},
	} {
		if _, _, problems := load(c.file); !strings.Contains(fmt.Sprint(problems), c.want) {
			t.Errorf("%s: %v, want %s", name, problems, c.want)
		}
	}
	_, notices, _ := load(`<broker schedulerSupport="true"><plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyEntries>
<redeliveryPolicy queue="A.*"/><redeliveryPolicy queue="A.>"/></redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>`)
	if !strings.Contains(fmt.Sprint(notices), "redeliveryPolicy queue://A.>: overlaps queue://A.*") {
		t.Errorf("R-MAP-13: %v", notices)
	}
}

// TestDiscardingPlugin is R-DLQ-40 and R-DLQ-41: which destinations, and whether
// before the redelivery.
func TestDiscardingPlugin(t *testing.T) {
	t.Parallel()
	const redeliver = `<redeliveryPlugin/>`
	for name, c := range map[string]struct {
		plugins string
		want    map[string]redelivery.Drop
	}{
		"all": {`<discardingDLQBrokerPlugin/>`, map[string]redelivery.Drop{"Q": redelivery.DropLast, "topic://T": redelivery.DropLast}},
		"only": {`<discardingDLQBrokerPlugin dropAll="false" dropOnly="A\..* B"/>`, map[string]redelivery.Drop{"A.X": redelivery.DropLast,
			"A": redelivery.DropNever, "B": redelivery.DropLast, "B.X": redelivery.DropNever, "XB": redelivery.DropNever,
			"temp-queue://x": redelivery.DropLast, "temp-topic://x": redelivery.DropLast}},
		"not temporary ones": {`<discardingDLQBrokerPlugin dropAll="false" dropTemporaryQueues="false" dropTemporaryTopics="false"/>`,
			map[string]redelivery.Drop{"temp-queue://x": redelivery.DropNever, "temp-topic://x": redelivery.DropNever, "Q": redelivery.DropNever}},
		"R-EDGE-29, R-XML-10 behind the redelivery in the file, before it in effect": {redeliver + `<discardingDLQBrokerPlugin/>`, map[string]redelivery.Drop{"Q": redelivery.DropFirst}},
		"before it in the file": {`<discardingDLQBrokerPlugin/>` + redeliver, map[string]redelivery.Drop{"Q": redelivery.DropLast}},
	} {
		config, _, problems := load(`<broker schedulerSupport="true"><plugins>` + c.plugins + `</plugins></broker>`)
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		for d, want := range c.want {
			at, _ := message.ParseDestination(d, message.Queue)
			if got := config.Resolver().Policy(at).Rules.Drop; got != want {
				t.Errorf("%s: %s: %d, want %d", name, d, got, want)
			}
		}
	}
}

// TestEntriesDoNotMerge is R-EDGE-20: the entry that is chosen holds whole, and what
// it does not say is ActiveMQ's default, not what a wider entry says.
func TestEntriesDoNotMerge(t *testing.T) {
	t.Parallel()
	c, _, problems := load(`<broker schedulerSupport="true"><destinationPolicy><policyMap><policyEntries>
<policyEntry queue=">" prioritizedMessages="true"><deadLetterStrategy><individualDeadLetterStrategy queuePrefix="DLQ."/></deadLetterStrategy></policyEntry>
<policyEntry queue="orders.>" queuePrefetch="1"/>
</policyEntries></policyMap></destinationPolicy><plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyEntries>
<redeliveryPolicy queue=">" maximumRedeliveries="3" initialRedeliveryDelay="7"/>
<redeliveryPolicy queue="orders.>" redeliveryDelay="9"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := c.Resolver()
	if got, want := effectiveText(r, "orders.eu"), "6 after 1000 9 9 9; queue://ActiveMQ.DLQ"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := effectiveText(r, "bills"), "3 after 7 1000 1000 1000; queue://DLQ.bills"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e := r.Policy(message.Destination{Kind: message.Queue, Name: "orders.eu"})
	if e.PrioritizedMessages || *e.Prefetch.Queue != 1 {
		t.Errorf("%+v", e.PolicyEntry)
	}
}

// TestOrderOfElements is R-XML-04 and R-XML-05: children may stand in any order.
func TestOrderOfElements(t *testing.T) {
	t.Parallel()
	parts := []string{
		`<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap>%s%s</redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>`,
		`<destinations><queue physicalName="Q"/></destinations>`,
		`<destinationPolicy><policyMap><defaultEntry><policyEntry/></defaultEntry><policyEntries><policyEntry queue="Q">%s</policyEntry></policyEntries></policyMap></destinationPolicy>`,
		`<transportConnectors><transportConnector uri="tcp://127.0.0.1:1"/></transportConnectors>`,
	}
	entries := []any{`<defaultEntry><redeliveryPolicy maximumRedeliveries="1"/></defaultEntry>`, `<redeliveryPolicyEntries><redeliveryPolicy queue="Q"/></redeliveryPolicyEntries>`}
	parts[2] = fmt.Sprintf(parts[2], `<deadLetterStrategy><sharedDeadLetterStrategy><deadLetterQueue><topic physicalName="T"/></deadLetterQueue></sharedDeadLetterStrategy></deadLetterStrategy>`)
	there := fmt.Sprintf(parts[0], entries...) + parts[1] + parts[2] + parts[3]
	back := parts[3] + parts[2] + parts[1] + fmt.Sprintf(parts[0], entries[1], entries[0])
	a, _, problems := load(`<broker schedulerSupport="true">` + there + `</broker>`)
	b, _, more := load(`<broker schedulerSupport="true">` + back + `</broker>`)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	if diff := cmp.Diff(a, b, saidAlike); diff != "" {
		t.Errorf("in another order (-there +back):\n%s", diff)
	}
}

// TestOtherSpellings is about what the schema of ActiveMQ also allows: destinations
// as elements and references, "entries" for lists, "name" for physicalName.
func TestOtherSpellings(t *testing.T) {
	t.Parallel()
	c, _, problems := load(`<beans><bean id="orders" class="org.apache.activemq.command.ActiveMQQueue"><constructor-arg value="orders.>"/></bean>
<broker schedulerSupport="true"><destinations><queue name="GRAVES" DLQ="true"/></destinations>
<destinationPolicy><policyMap><entries>
<policyEntry destination="#orders"><deadLetterStrategy><sharedDeadLetterStrategy><deadLetterQueue><queue name="DEAD"/></deadLetterQueue></sharedDeadLetterStrategy></deadLetterStrategy></policyEntry>
<policyEntry><destination><topic physicalName="T"/></destination><deadLetterStrategy><discarding/></deadLetterStrategy></policyEntry>
</entries></policyMap></destinationPolicy>
<plugins><redeliveryPlugin><redeliveryPolicyMap><entries><redeliveryPolicy maximumRedeliveries="1"><destination><queue name="orders.eu"/></destination></redeliveryPolicy></entries></redeliveryPolicyMap></redeliveryPlugin></plugins>
</broker></beans>`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, want := range map[string]string{
		"orders.eu": "1 after 1000 1000 1000 1000; queue://DEAD",
		"topic://T": "client; ",
		"GRAVES":    "client; queue://ActiveMQ.DLQ; marked",
	} {
		if got := effectiveText(c.Resolver(), name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	_, _, problems = load(`<broker><destinationPolicy><policyMap><policyEntries><policyEntry queue="A"><destination><queue name="B"/></destination></policyEntry>
<policyEntry><destination/></policyEntry><policyEntry><destination><queue/></destination></policyEntry></policyEntries></policyMap></destinationPolicy></broker>`)
	if len(problems) != 3 || !strings.Contains(problems[0].Text, "write one entry for each") {
		t.Error(problems)
	}
}

// TestSlowConsumers is R-XML-22, R-BRK-40 and R-BRK-41: how slow a consumer may be.
func TestSlowConsumers(t *testing.T) {
	t.Parallel()
	entry := func(strategy string) string {
		return `<broker><destinationPolicy><policyMap><policyEntries><policyEntry queue="Q"><slowConsumerStrategy>` + strategy +
			`</slowConsumerStrategy></policyEntry></policyEntries></policyMap></destinationPolicy></broker>`
	}
	for strategy, want := range map[string]*SlowConsumers{
		`<abortSlowConsumerStrategy/>`: {MaxDuration: 30 * time.Second, CheckPeriod: 30 * time.Second},
		`<abortSlowConsumerStrategy maxSlowCount="3" maxSlowDuration="-1" checkPeriod="5000" abortConnection="true"/>`:                {MaxCount: 3, CheckPeriod: 5 * time.Second, AbortConnection: true},
		`<abortSlowConsumerStrategy maxSlowDuration="-1"/>`:                                                                           nil,
		`<abortSlowAckConsumerStrategy/>`:                                                                                             {MaxDuration: 30 * time.Second, MaxTimeSinceLastAck: 30 * time.Second, CheckPeriod: 30 * time.Second},
		`<abortSlowAckConsumerStrategy maxTimeSinceLastAck="5000" ignoreIdleConsumers="true" maxSlowDuration="-1" maxSlowCount="2"/>`: {MaxCount: 2, MaxTimeSinceLastAck: 5 * time.Second, CheckPeriod: 30 * time.Second},
		`<abortSlowAckConsumerStrategy maxTimeSinceLastAck="-1"/>`:                                                                    nil,
		`<abortSlowAckConsumerStrategy maxSlowDuration="0"/>`:                                                                         nil,
		`<bean xmlns="http://www.springframework.org/schema/beans" class="org.apache.activemq.broker.region.policy.AbortSlowAckConsumerStrategy"><property name="maxTimeSinceLastAck" value="60000"/></bean>`: {MaxDuration: 30 * time.Second, MaxTimeSinceLastAck: time.Minute, CheckPeriod: 30 * time.Second},
	} {
		c, warnings, problems := load(entry(strategy))
		if len(problems) > 0 || (want == nil) != strings.Contains(fmt.Sprint(warnings), "no consumer is ever closed") {
			t.Errorf("%s: %v, %v", strategy, problems, warnings)
			continue
		}
		got := c.Resolver().Policy(message.Destination{Kind: message.Queue, Name: "Q"})
		if diff := cmp.Diff(want, got.SlowConsumers); diff != "" || got.AckTimeout != 0 {
			t.Errorf("%s (-want +got), ack time-out %v:\n%s", strategy, got.AckTimeout, diff)
		}
	}
	for strategy, want := range map[string]string{
		`<abortSlowConsumerStrategy/><abortSlowConsumerStrategy/>`:       "has one slowConsumerStrategy",
		`<abortSlowAckConsumerStrategy/><abortSlowAckConsumerStrategy/>`: "has one slowConsumerStrategy",
		`<abortSlowAckConsumerStrategy maxTimeSinceLastAck="0"/>`:        "would close every consumer",
		`<abortSlowConsumerStrategy checkPeriod="0"/>`:                   "0 is not between 1 and",
		`<abortSlowAckConsumerStrategy maxTimeSinceLastAcks="1"/>`:       "did you mean maxTimeSinceLastAck?",
	} {
		if _, _, problems := load(entry(strategy)); !strings.Contains(fmt.Sprint(problems), want) {
			t.Errorf("%s: %v, want %s", strategy, problems, want)
		}
	}
}

// TestUnacked is how long ActiveMQ lets a consumer be, at the least (R-BRK-41).
func TestUnacked(t *testing.T) {
	t.Parallel()
	for want, s := range map[time.Duration]SlowConsumers{
		0:                {MaxDuration: time.Hour, MaxCount: 7, CheckPeriod: time.Second},
		30 * time.Second: {MaxTimeSinceLastAck: 30 * time.Second, MaxDuration: 30 * time.Second, CheckPeriod: 30 * time.Second},
		5 * time.Second:  {MaxTimeSinceLastAck: 5 * time.Second, CheckPeriod: time.Second},
		65 * time.Second: {MaxTimeSinceLastAck: 5 * time.Second, MaxDuration: 90 * time.Second, CheckPeriod: 30 * time.Second},
		6 * time.Second:  {MaxTimeSinceLastAck: 5 * time.Second, MaxDuration: 90 * time.Second, CheckPeriod: time.Second, MaxCount: 2},
		7 * time.Second:  {MaxTimeSinceLastAck: 5 * time.Second, CheckPeriod: time.Second, MaxCount: 3},
	} {
		if got := s.Unacked(); got != want {
			t.Errorf("%+v: %v, want %v", s, got, want)
		}
	}
	far := SlowConsumers{MaxTimeSinceLastAck: math.MaxInt64 - 5, MaxDuration: math.MaxInt64, CheckPeriod: time.Millisecond}
	if got := far.Unacked(); got < far.MaxTimeSinceLastAck {
		t.Errorf("%v overflows", got)
	}
}

// TestBacklogs reads what may wait for a topic's consumer, and what is evicted.
func TestBacklogs(t *testing.T) {
	t.Parallel()
	entry := func(children string) string {
		return `<broker><destinationPolicy><policyMap><policyEntries><policyEntry topic="T">` + children + `</policyEntry></policyEntries></policyMap></destinationPolicy></broker>`
	}
	limit := func(s string) string {
		return "<pendingMessageLimitStrategy>" + s + "</pendingMessageLimitStrategy>"
	}
	evicts := func(s string) string { return "<messageEvictionStrategy>" + s + "</messageEvictionStrategy>" }
	for children, want := range map[string]*Backlog{
		"": nil,
		evicts(`<oldestMessageWithLowestPriorityEvictionStrategy/>`):                                                                                            {Limit: -1, Windows: -1, Evict: EvictLowestPriority}, // a consumer's own limit counts
		limit(`<constantPendingMessageLimitStrategy/>`):                                                                                                         {Limit: -1, Windows: -1, Evict: EvictOldest},
		limit(`<constantPendingMessageLimitStrategy limit="50"/>`):                                                                                              {Limit: 50, Windows: -1, Evict: EvictOldest},
		limit(`<prefetchRatePendingMessageLimitStrategy/>`):                                                                                                     {Limit: -1, Windows: 0.5, Evict: EvictOldest},
		limit(`<prefetchRatePendingMessageLimitStrategy multiplier="2.5"/>`) + evicts(`<oldestMessageWithLowestPriorityEvictionStrategy/>`):                     {Limit: -1, Windows: 2.5, Evict: EvictLowestPriority},
		evicts(`<uniquePropertyMessageEvictionStrategy propertyName="STOCK"/>`) + limit(`<constantPendingMessageLimitStrategy limit="0"/>`):                     {Windows: -1, Evict: EvictSuperseded, Property: "STOCK"},
		evicts(`<uniquePropertyMessageEvictionStrategy evictExpiredMessagesHighWatermark="1000"/>`) + limit(`<constantPendingMessageLimitStrategy limit="9"/>`): {Limit: 9, Windows: -1, Evict: EvictOldest},
	} {
		c, _, problems := load(entry(children))
		if len(problems) > 0 {
			t.Errorf("%s: %v", children, problems)
			continue
		}
		if diff := cmp.Diff(want, c.Resolver().Policy(message.Destination{Kind: message.Topic, Name: "T"}).Backlog); diff != "" {
			t.Errorf("%s (-want +got):\n%s", children, diff)
		}
	}
	for children, want := range map[string]string{
		limit(`<prefetchRatePendingMessageLimitStrategy multiplier="-1"/>`):                                     "is not between 0 and",
		limit(`<constantPendingMessageLimitStrategy/><prefetchRatePendingMessageLimitStrategy/>`):               "has one pendingMessageLimitStrategy",
		evicts(`<oldestMessageEvictionStrategy/><uniquePropertyMessageEvictionStrategy propertyName="STOCK"/>`): "has one messageEvictionStrategy",
	} {
		if _, _, problems := load(entry(children)); !strings.Contains(fmt.Sprint(problems), want) {
			t.Errorf("%s: %v, want %s", children, problems, want)
		}
	}
}

// TestLoginConfig reads JAAS configurations, and says what is wrong with others.
func TestLoginConfig(t *testing.T) {
	t.Parallel()
	got, err := parseLoginConfig("a{ X required; Y sufficient k='v;' l=w ; };b {};")
	want := map[string][]jaasModule{"a": {{"X", "required", map[string]string{}}, {"Y", "sufficient", map[string]string{"k": "v;", "l": "w"}}}, "b": nil}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(jaasModule{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"a X required; };":       `no { behind "a"`,
		"a { X required k v; };": `no = behind "k"`,
		"a { X required k=v }":   `no = behind "}"`,
		"a { X required":         "module X has no end",
		"a { X required; }":      "domain a has no end",
		"a { X required; ":       "domain a has no end",
		"/* a":                   "a comment has no end",
		"a { X required k=\"v }": "a quoted text has no end",
	} {
		if _, err := parseLoginConfig(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
