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

// Roots of documents around the elements of a test.
const (
	hornetQRoot = `<configuration xmlns="urn:hornetq"><security-enabled>false</security-enabled>%s</configuration>`
	artemisRoot = `<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><security-enabled>false</security-enabled>%s</core></configuration>`
)

// coreConfig loads a document that is fine, with -D values.
func coreConfig(t *testing.T, root, inside string, defines ...string) *Config {
	t.Helper()
	c, _, err := Load(Options{File: "f", Defines: defines, ReadFile: func(path string) ([]byte, error) {
		if path != "f" {
			return nil, os.ErrNotExist
		}
		return fmt.Appendf(nil, root, inside), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// settingsXML writes address-settings: match, then pairs of element and value.
func settingsXML(settings ...[]string) string {
	var b strings.Builder
	b.WriteString("<address-settings>")
	for _, s := range settings {
		fmt.Fprintf(&b, "<address-setting match=%q>", s[0])
		for i := 1; i < len(s); i += 2 {
			fmt.Fprintf(&b, "<%s>%s</%s>", s[i], s[i+1], s[i])
		}
		b.WriteString("</address-setting>")
	}
	return b.String() + "</address-settings>"
}

func queueNamed(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}

func topicNamed(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: name}
}

func TestAddressSettingsMerge(t *testing.T) { // R-HQ-19, R-HQ-21
	t.Parallel()
	for name, tt := range map[string]struct{ root, prefix string }{"HornetQ": {hornetQRoot, "jms.queue."}, "Artemis": {artemisRoot, ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := coreConfig(t, tt.root, settingsXML(
				[]string{"#", "dead-letter-address", tt.prefix + "X", "max-delivery-attempts", "5"},
				[]string{tt.prefix + "a.b", "redelivery-delay", "100"}))
			e := c.Resolver().Policy(queueNamed("a.b"))
			p := e.Rules.Redelivery
			if p.MaximumRedeliveries != 4 || p.RedeliveryDelay != 100*time.Millisecond || p.MaximumRedeliveryDelay != time.Second {
				t.Errorf("policy %s", p)
			}
			if got := e.Rules.DeadLetter.Target(queueNamed("a.b"), redelivery.Subscription{}); got != queueNamed("X") {
				t.Errorf("dead letters go to %s", got)
			}
			if e.Rules.Name != "address-setting "+tt.prefix+"a.b" || !e.Found || !e.PrioritizedMessages {
				t.Errorf("%+v", e)
			}
			want := []Setting{{"max-delivery-attempts", "5", "f:1"}, {"redelivery-delay", "100", "f:1"}, {"dead-letter-address", tt.prefix + "X", "f:1"}}
			if diff := cmp.Diff(want, e.Settings); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddressSettingsDoNotSpoilEachOther(t *testing.T) { // R-HQ-23, R-HQ-150
	t.Parallel()
	c := coreConfig(t, artemisRoot, settingsXML(
		[]string{"#", "dead-letter-address", "DLQ"},
		[]string{"a.*", "redelivery-delay", "1"},
		[]string{"*.y", "max-delivery-attempts", "3"}))
	r := c.Resolver()
	if p := r.Policy(queueNamed("a.y")).Rules.Redelivery; p.MaximumRedeliveries != 2 || p.RedeliveryDelay != time.Millisecond {
		t.Errorf("a.y: %s", p)
	}
	if p := r.Policy(queueNamed("a.z")).Rules.Redelivery; p.MaximumRedeliveries != 9 || p.RedeliveryDelay != time.Millisecond {
		t.Errorf("a.z, after a.y was looked up: %s", p)
	}
}

func TestDefaultsWithoutAnySetting(t *testing.T) { // R-HQ-20, section 2.1; R-HQ-44, R-HQ-140, R-HQ-57
	t.Parallel()
	for name, root := range map[string]string{"HornetQ": hornetQRoot, "Artemis": artemisRoot} {
		for drop, want := range map[string]redelivery.StrategyKind{"keep": redelivery.Shared, "drop": redelivery.Discarding} {
			e := coreConfig(t, root, "", "nixie.dead-letters-without-address="+drop).Resolver().Policy(queueNamed("Q"))
			p := e.Rules.Redelivery
			if e.Found || p.MaximumRedeliveries != 9 || p.DelayMillis(1, nil) != 0 || e.Lifetime != nil {
				t.Errorf("%s: %+v, %s", name, e, p)
			}
			if e.Rules.DeadLetter.Kind != want || e.Rules.Expiry.Kind != redelivery.Discarding {
				t.Errorf("%s, %s: dead letters %s, expired %s", name, drop, e.Rules.DeadLetter.Kind, e.Rules.Expiry.Kind)
			}
			if want == redelivery.Shared && e.Rules.DeadLetter.DeadLetterQueue.Name != redelivery.DefaultDeadLetterQueue {
				t.Errorf("%s: dead letters go to %s", name, e.Rules.DeadLetter.DeadLetterQueue)
			}
		}
	}
}

func TestRedeliveryElements(t *testing.T) { // R-HQ-21, R-HQ-29, R-HQ-32, R-HQ-41
	t.Parallel()
	for name, tt := range map[string]struct {
		root    string
		pairs   []string
		defines []string
		limit   int
		delays  []int64
	}{
		"R-HQ-30":                            {artemisRoot, []string{"redelivery-delay", "1000", "redelivery-delay-multiplier", "2"}, nil, 9, []int64{1000, 2000, 4000, 8000, 10000, 10000}},
		"R-HQ-151 HornetQ as 2.4":            {hornetQRoot, []string{"redelivery-delay", "1000", "redelivery-multiplier", "2"}, nil, 9, []int64{1000, 2000, 4000, 8000, 10000, 10000}},
		"R-HQ-32 HornetQ as 2.3":             {hornetQRoot, []string{"redelivery-delay", "1000", "redelivery-delay-multiplier", "2"}, []string{"nixie.hornetq-version=2.3"}, 9, []int64{1000, 1000, 1000}},
		"R-HQ-32 2.3 with a cap of its own":  {hornetQRoot, []string{"redelivery-delay", "1000", "redelivery-delay-multiplier", "2", "max-redelivery-delay", "3000"}, []string{"nixie.hornetq-version=2.3"}, 9, []int64{1000, 2000, 3000}},
		"R-HQ-41 three deliveries":           {artemisRoot, []string{"max-delivery-attempts", "3"}, nil, 2, []int64{0, 0}},
		"R-HQ-41 one delivery":               {artemisRoot, []string{"max-delivery-attempts", "1"}, nil, 0, nil},
		"R-HQ-41 zero is endless":            {artemisRoot, []string{"max-delivery-attempts", "0"}, nil, redelivery.Unlimited, nil},
		"R-HQ-41 minus one is endless":       {hornetQRoot, []string{"max-delivery-attempts", "-1"}, nil, redelivery.Unlimited, nil},
		"R-HQ-41 minus seven is endless too": {hornetQRoot, []string{"max-delivery-attempts", "-7"}, nil, redelivery.Unlimited, nil},
		"R-HQ-35 no delay":                   {artemisRoot, []string{"redelivery-delay", "-5"}, nil, 9, []int64{0, 0}},
		"R-HQ-35 a cap of -1":                {artemisRoot, []string{"redelivery-delay", "1000", "max-redelivery-delay", "-1"}, nil, 9, []int64{0, 0}},
		"R-HQ-35 a cap of 0":                 {artemisRoot, []string{"redelivery-delay", "1000", "max-redelivery-delay", "0"}, nil, 9, []int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := coreConfig(t, tt.root, settingsXML(append([]string{"#"}, tt.pairs...)), tt.defines...).Resolver().Policy(queueNamed("Q")).Rules.Redelivery
			if p.MaximumRedeliveries != tt.limit {
				t.Errorf("limit %d, want %d", p.MaximumRedeliveries, tt.limit)
			}
			for i, want := range tt.delays {
				if got := p.DelayMillis(i+1, nil); got != want {
					t.Errorf("delay %d is %d, want %d", i+1, got, want)
				}
			}
		})
	}
}

func TestCollisionAvoidanceElement(t *testing.T) { // R-HQ-31
	t.Parallel()
	p := coreConfig(t, artemisRoot, settingsXML([]string{"#", "redelivery-delay", "1000", "redelivery-collision-avoidance-factor", "0.5"})).Resolver().Policy(queueNamed("Q")).Rules.Redelivery
	if got := p.DelayMillis(1, func() float64 { return -0.5 }); got != 750 {
		t.Errorf("delay %d, want 750", got)
	}
}

func TestWhereDeadLettersGo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		root, inside string
		from         message.Destination
		dead, late   message.Destination // late zero: expired messages are dropped
	}{
		"R-HQ-02 HornetQ's names": {hornetQRoot, settingsXML([]string{"#", "dead-letter-address", "jms.queue.DLQ", "expiry-address", "jms.topic.Late"}),
			queueNamed("orders"), queueNamed("DLQ"), topicNamed("Late")},
		"R-HQ-03 a name of HornetQ's core": {hornetQRoot, settingsXML([]string{"jms.queue.#", "dead-letter-address", "graves"}),
			queueNamed("orders"), queueNamed("graves"), message.Destination{}},
		"R-HQ-04 a topic by its address": {hornetQRoot, settingsXML([]string{"jms.queue.#", "dead-letter-address", "jms.queue.Q"}, []string{"jms.topic.news", "dead-letter-address", "jms.queue.T"}),
			topicNamed("news"), queueNamed("T"), message.Destination{}},
		"R-HQ-02 Artemis' names are bare": {artemisRoot, settingsXML([]string{"orders.#", "dead-letter-address", "DLQ", "expiry-address", "ExpiryQueue"}),
			topicNamed("orders.eu"), queueNamed("DLQ"), queueNamed("ExpiryQueue")},
		"R-HQ-22 an empty expiry-address unsets it": {artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ", "expiry-address", "ExpiryQueue"}, []string{"keep", "expiry-address", ""}),
			queueNamed("keep"), queueNamed("DLQ"), message.Destination{}},
		"R-HQ-22 R-HQ-140 an empty dead-letter-address keeps them": {artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ"}, []string{"x", "dead-letter-address", ""}),
			queueNamed("x"), queueNamed(redelivery.DefaultDeadLetterQueue), message.Destination{}},
		"R-HQ-52 R-HQ-54 R-HQ-62 a queue for each address": {artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ", "auto-create-dead-letter-resources", "true", "expiry-address", "Exp", "auto-create-expiry-resources", "true"}),
			queueNamed("orders"), queueNamed("DLQ.orders"), queueNamed("EXP.orders")},
		"R-HQ-52 by the address, for a topic too": {artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ", "auto-create-dead-letter-resources", "true", "dead-letter-queue-prefix", "dead/", "dead-letter-queue-suffix", "!"}),
			topicNamed("news"), queueNamed("dead/news!"), message.Destination{}},
		"R-HQ-52 not without an address": {artemisRoot, settingsXML([]string{"#", "auto-create-dead-letter-resources", "true"}),
			queueNamed("orders"), queueNamed(redelivery.DefaultDeadLetterQueue), message.Destination{}},
		"R-HQ-52 no DLQ.DLQ": {artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ", "auto-create-dead-letter-resources", "true"}),
			queueNamed("DLQ.orders"), queueNamed("DLQ.orders"), message.Destination{}},
		"R-HQ-45 the queue that is bound to the address": {artemisRoot, settingsXML([]string{"#", "dead-letter-address", "graves"}) + `<addresses><address name="graves"><anycast><queue name="cemetery"/></anycast></address></addresses>`,
			queueNamed("orders"), queueNamed("cemetery"), message.Destination{}},
		"R-HQ-03 an address that is a topic": {artemisRoot, settingsXML([]string{"#", "dead-letter-address", "graves"}) + `<addresses><address name="graves"><multicast/></address></addresses>`,
			queueNamed("orders"), topicNamed("graves"), message.Destination{}},
		"R-HQ-04 a queue by its address": {artemisRoot, settingsXML([]string{"graves", "dead-letter-address", "A"}, []string{"cemetery", "dead-letter-address", "B"}) + `<addresses><address name="graves"><anycast><queue name="cemetery"/></anycast></address></addresses>`,
			queueNamed("cemetery"), queueNamed("A"), message.Destination{}},
		"R-HQ-04 a temporary queue in its namespace": {artemisRoot, "<temporary-queue-namespace>tmp</temporary-queue-namespace>" + settingsXML([]string{"tmp.#", "dead-letter-address", "A"}),
			message.Destination{Kind: message.TempQueue, Name: "ID:1"}, queueNamed("A"), message.Destination{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := coreConfig(t, tt.root, tt.inside).Resolver().Policy(tt.from)
			if got := e.Rules.DeadLetter.Target(tt.from, redelivery.Subscription{}); got != tt.dead {
				t.Errorf("dead letters go to %s, want %s", got, tt.dead)
			}
			if got := e.Rules.Expiry.Target(tt.from, redelivery.Subscription{}); got != tt.late {
				t.Errorf("expired messages go to %s, want %s", got, tt.late)
			}
			if e.Rules.DeadLetterNonDurable != tt.from.IsTopic() {
				t.Errorf("R-HQ-02: what subscriptions without a name poison becomes a dead letter: %t", e.Rules.DeadLetterNonDurable)
			}
			if !e.Rules.DeadLetter.ProcessNonPersistent {
				t.Error("R-HQ-49: messages that are not durable make no dead letters")
			}
		})
	}
}

func TestDeadLettersDoNotGoRound(t *testing.T) { // R-HQ-112, R-HQ-113, R-HQ-146
	t.Parallel()
	r := coreConfig(t, artemisRoot, settingsXML(
		[]string{"#", "dead-letter-address", "DLQ"},
		[]string{"DLQ", "dead-letter-address", "DLQ2"},
		[]string{"x", "dead-letter-address", "y"},
		[]string{"y", "dead-letter-address", "z"},
		[]string{"z", "dead-letter-address", "x"},
		[]string{"w", "dead-letter-address", "x"},
		[]string{"e1", "expiry-address", "e2", "expiry-delay", "5"},
		[]string{"e2", "expiry-address", "e1", "expiry-delay", "5"},
		[]string{"f1", "expiry-address", "f2", "expiry-delay", "5"},
		[]string{"f2", "expiry-address", "f1"})).Resolver()
	for name, moves := range map[string]bool{"DLQ": true, "DLQ2": false, "orders": false, "x": false, "y": false, "z": false, "w": true} {
		if got := r.Policy(queueNamed(name)).Rules.StrategyNamed; got != moves {
			t.Errorf("a dead letter in %s moves on: %t, want %t", name, got, moves)
		}
	}
	for name, want := range map[string]string{"e1": "e1", "e2": "e2", "f1": "f2", "f2": "f1"} {
		if got := r.Policy(queueNamed(name)).Rules.Expiry.Target(queueNamed(name), redelivery.Subscription{}); got.Name != want {
			t.Errorf("what expires in %s goes to %s, want %s", name, got, want)
		}
	}
}

func TestLifetimeElements(t *testing.T) { // R-HQ-24, R-HQ-61
	t.Parallel()
	inside := settingsXML([]string{"#", "expiry-delay", "5"}, []string{"jms.queue.own", "expiry-delay", "6"}, []string{"jms.queue.other", "redelivery-delay", "1"})
	r := coreConfig(t, hornetQRoot, inside).Resolver()
	for name, want := range map[string]int64{"any": 5, "own": 6} {
		if l := r.Policy(queueNamed(name)).Lifetime; l == nil || l.Delay != want {
			t.Errorf("HornetQ: %s lives %+v, want %d", name, l, want)
		}
	}
	if l := r.Policy(queueNamed("other")).Lifetime; l != nil {
		t.Errorf("HornetQ: expiry-delay was inherited: %+v", l)
	}
	r = coreConfig(t, artemisRoot, settingsXML([]string{"#", "expiry-delay", "5"}, []string{"other", "redelivery-delay", "1"},
		[]string{"bounded", "expiry-delay", "-1", "min-expiry-delay", "7", "max-expiry-delay", "9"}, []string{"never", "no-expiry", "true"})).Resolver()
	for name, want := range map[string]redelivery.Lifetime{
		"other":   {Delay: 5, Least: -1, Most: -1},
		"bounded": {Delay: -1, Least: 7, Most: 9},
		"never":   {Never: true, Delay: 5, Least: -1, Most: -1},
	} {
		if l := r.Policy(queueNamed(name)).Lifetime; l == nil || *l != want {
			t.Errorf("Artemis: %s lives %+v, want %+v", name, l, want)
		}
	}
}

func TestPrecedenceAcrossTheFile(t *testing.T) { // R-HQ-16, R-HQ-17
	t.Parallel()
	order := []string{"a.b.c", "a.b.*", "a.*.c", "a.*.*", "*.b.c", "*.*.c", "*.*.*", "a.b.#", "a.*.#", "a.#", "*.#", "#"}
	for i := range order {
		var settings [][]string
		for j := len(order) - 1; j >= i; j-- { // the most general first
			settings = append(settings, []string{order[j], "max-delivery-attempts", fmt.Sprint(j + 10)})
		}
		p := coreConfig(t, artemisRoot, settingsXML(settings...)).Resolver().Policy(queueNamed("a.b.c")).Rules.Redelivery
		if p.MaximumRedeliveries != i+9 {
			t.Errorf("without the first %d: max-delivery-attempts %d, want that of %s", i, p.MaximumRedeliveries+1, order[i])
		}
	}
}

func TestEndlessDelaysEndSomewhere(t *testing.T) { // R-HQ-153
	t.Parallel()
	p := coreConfig(t, artemisRoot, settingsXML([]string{"#", "redelivery-delay", fmt.Sprint(int64(math.MaxInt64)), "redelivery-delay-multiplier", "9"})).Resolver().Policy(queueNamed("Q")).Rules.Redelivery
	for k := 1; k < 50; k++ {
		if d := p.DelayMillis(k, nil); d <= 0 {
			t.Fatalf("delay %d is %d", k, d)
		}
	}
}

func TestHandOutMarksOfTheFile(t *testing.T) { // R-HQ-81: true asks for them; false is the products' default, and ours is better (R-HQ-82)
	t.Parallel()
	for _, root := range []string{hornetQRoot, artemisRoot} {
		for value, want := range map[string]bool{"true": true, "false": true} {
			if c := coreConfig(t, root, "<persist-delivery-count-before-delivery>"+value+"</persist-delivery-count-before-delivery>"); c.HandOutMarks != want {
				t.Errorf("%s: marks %t", value, c.HandOutMarks)
			}
		}
	}
}

// TestCasesOfArtemis loads the broker.xml of every acceptance case that has one.
func TestCasesOfArtemis(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/cases/artemis.txtar")
	if err != nil {
		t.Fatal(err)
	}
	const graves = "; queue://DLQ; keep non-persistent"
	want := map[string]map[string]string{
		"C01.xml": {"LIMIT.THREE": "2 after 0 0 0 0" + graves, "LIMIT.ONE": "0 after 0 0 0 0" + graves, "LIMIT.ENDLESS": "-1 after 0 0 0 0" + graves,
			"LIMIT.ZERO": "-1 after 0 0 0 0" + graves, "X": "9 after 0 0 0 0; queue://ActiveMQ.DLQ; keep non-persistent"},
		"C02.xml": {"CRASH.Q": "4 after 0 0 0 0" + graves},
		"C05.xml": {"CHURN.Q": "8 after 4000 4000 4000 4000" + graves},
		"C23.xml": {"OUT.Q": "2 after 1000 1000 1000 1000" + graves},
	}
	for _, f := range archive.Files {
		doc := fmt.Sprintf(artemisRoot, `<name>case</name><persistence-enabled>true</persistence-enabled>
<acceptors><acceptor name="all">tcp://127.0.0.1:61616</acceptor></acceptors>`+string(f.Data)+`<addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses>`)
		c, notices, problems := loadCore(doc)
		if len(problems) > 0 {
			t.Errorf("%s: %v", f.Name, problems)
			continue
		}
		zero := 0
		for _, n := range notices {
			if n.Part == "max-delivery-attempts" && strings.Contains(n.Text, "no limit") {
				zero++
			}
		}
		if f.Name == "C01.xml" && zero != 1 {
			t.Errorf("%s: %d warnings about the limit of 0 in %v", f.Name, zero, notices)
		}
		for name, text := range want[f.Name] {
			if got := effectiveText(c.Resolver(), name); got != text {
				t.Errorf("%s, %s: %q, want %q", f.Name, name, got, text)
			}
		}
	}
}

func TestDiffOfAddressSettings(t *testing.T) { // issue 3, item 10, R-HQ-139: what holds for an address can change by a reload
	t.Parallel()
	from := coreConfig(t, artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ", "max-delivery-attempts", "5"}))
	to := coreConfig(t, artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ", "max-delivery-attempts", "7"}, []string{"a.#", "expiry-delay", "5"}))
	var lines []string
	for _, c := range Diff(from, to) {
		lines = append(lines, c.String())
	}
	want := []string{"address-setting # max-delivery-attempts: 5 (f:1) → 7 (f:1)", "address-setting a.#: not set → given (f:1)", "address-setting a.# expiry-delay: not set → 5 (f:1)"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	merged := from.Reloaded(to)
	if left := Diff(merged, to); len(left) != 0 {
		t.Errorf("still different after a reload: %v", left)
	}
	r := merged.Resolver()
	if p := r.Policy(queueNamed("a.b")); p.Rules.Redelivery.MaximumRedeliveries != 6 || p.Lifetime == nil || !r.Lifetimes() {
		t.Errorf("%+v", p)
	}
}

func TestExclusiveQueues(t *testing.T) { // section 2.2, R-HQ-135
	t.Parallel()
	r := coreConfig(t, artemisRoot, settingsXML([]string{"#", "dead-letter-address", "DLQ"}, []string{"a.#", "default-exclusive-queue", "true"}, []string{"c", "max-delivery-attempts", "3"})+
		`<addresses><address name="b"><anycast><queue name="b" exclusive="true"/></anycast></address>
<address name="c"><anycast><queue name="c" exclusive="true"/></anycast></address><address name="d"><anycast><queue name="d" exclusive="false"/></anycast></address></addresses>`).Resolver()
	for name, want := range map[string]bool{"a.x": true, "b": true, "c": true, "d": false} {
		e := r.Policy(queueNamed(name))
		if e.AllConsumersExclusive != want {
			t.Errorf("%s is exclusive: %t", name, e.AllConsumersExclusive)
		}
		if got := e.Rules.DeadLetter.Target(queueNamed(name), redelivery.Subscription{}); got != queueNamed("DLQ") {
			t.Errorf("dead letters of %s go to %s", name, got)
		}
	}
	if p := r.Policy(queueNamed("c")).Rules.Redelivery; p.MaximumRedeliveries != 2 {
		t.Errorf("the setting of c is gone: %s", p)
	}
}

// TestQueueSettings is what the settings of an address, and a queue's own, say of its
// consumers and of what it keeps (section 2.2, R-HQ-135).
func TestQueueSettings(t *testing.T) {
	t.Parallel()
	r := coreConfig(t, artemisRoot, settingsXML(
		[]string{"#", "dead-letter-address", "DLQ", "default-max-consumers", "5", "default-ring-size", "-1"},
		[]string{"wait.#", "default-consumers-before-dispatch", "3"},
		[]string{"wait.short", "default-delay-before-dispatch", "2500"},
		[]string{"wait.not", "default-delay-before-dispatch", "0"},
		[]string{"wait.time", "default-consumers-before-dispatch", "0", "default-delay-before-dispatch", "2500"},
		[]string{"ring.#", "default-ring-size", "100", "default-purge-on-no-consumers", "true"},
		[]string{"fixed.#", "auto-create-queues", "false"},
		[]string{"groups", "default-group-rebalance", "true"},
		[]string{"last.#", "default-last-value-queue", "true"},
		[]string{"last.key", "default-last-value-key", "symbol"},
		[]string{"last.not", "default-last-value-queue", "false"},
		[]string{"closed.#", "auto-create-addresses", "false"})+
		`<addresses>
<address name="own"><anycast><queue name="own" max-consumers="1" ring-size="7" purge-on-no-consumers="true" consumers-before-dispatch="2" delay-before-dispatch="100"/></anycast></address>
<address name="stocks"><anycast><queue name="stocks" last-value-key="ticker"/></anycast></address>
<address name="marks"><multicast><queue name="values" last-value="true"/></multicast></address>
<address name="more"><anycast><queue name="more" max-consumers="-1"/></anycast></address>
<address name="news"><multicast><queue name="archive" exclusive="true" max-consumers="2"/><queue name="audit" ring-size="9"/></multicast></address>
<address name="in"><anycast><queue name="inbox" purge-on-no-consumers="true"/></anycast></address>
</addresses>`).Resolver()
	type kept struct {
		consumers, gather int
		wait              time.Duration
		ring              int64
		purge, declared   bool
		exclusive         bool
		key               string
		rebalance         bool
	}
	for d, want := range map[message.Destination]kept{
		queueNamed("x"):          {consumers: 5},
		queueNamed("wait.x"):     {consumers: 5, gather: 3, wait: WithoutEnd},
		queueNamed("wait.short"): {consumers: 5, gather: 3, wait: 2500 * time.Millisecond},
		queueNamed("wait.not"):   {consumers: 5},
		queueNamed("wait.time"):  {consumers: 5},
		queueNamed("ring.x"):     {consumers: 5, ring: 100, purge: true},
		queueNamed("fixed.x"):    {consumers: 5, declared: true},
		topicNamed("fixed.x"):    {consumers: 5},
		queueNamed("closed.x"):   {consumers: 5, declared: true},
		topicNamed("closed.x"):   {consumers: 5, declared: true},
		queueNamed("groups"):     {consumers: 5, rebalance: true},
		queueNamed("last.x"):     {consumers: 5, key: "_AMQ_LVQ_NAME"},
		queueNamed("last.key"):   {consumers: 5, key: "symbol"},
		queueNamed("last.not"):   {consumers: 5},
		queueNamed("stocks"):     {consumers: 5, key: "ticker"},
		queueNamed("values"):     {consumers: 5, key: "_AMQ_LVQ_NAME"},
		topicNamed("marks"):      {consumers: 5},
		queueNamed("own"):        {consumers: 1, ring: 7, purge: true, gather: 2, wait: 100 * time.Millisecond},
		queueNamed("more"):       {},
		queueNamed("archive"):    {consumers: 2, exclusive: true},
		queueNamed("audit"):      {consumers: 5, ring: 9},
		topicNamed("news"):       {consumers: 5},
		queueNamed("inbox"):      {consumers: 5, purge: true},
		queueNamed("in"):         {consumers: 5},
	} {
		e := r.Policy(d)
		got := kept{e.MaxConsumers, e.ConsumersBeforeDispatch, e.TimeBeforeDispatch, e.RingSize, e.PurgeOnNoConsumers, e.OnlyDeclared, e.AllConsumersExclusive, e.LastValueKey, e.GroupRebalance}
		if got != want {
			t.Errorf("%s: %+v, want %+v", d, got, want)
		}
		if to := e.Rules.DeadLetter.Target(d, redelivery.Subscription{}); to != queueNamed("DLQ") {
			t.Errorf("%s: dead letters go to %s", d, to)
		}
	}
	old := coreConfig(t, hornetQRoot, settingsXML([]string{"#", "last-value-queue", "true"}, []string{"jms.queue.a", "max-delivery-attempts", "3"})).Resolver()
	for name, want := range map[string]string{"a": "", "b": "_HQ_LVQ_NAME"} { // R-HQ-26: it is not inherited
		if got := old.Policy(queueNamed(name)).LastValueKey; got != want {
			t.Errorf("HornetQ's %s: %q, want %q", name, got, want)
		}
	}
	if !r.OnlyDeclared() || coreConfig(t, artemisRoot, "").Resolver().OnlyDeclared() {
		t.Error("whether anybody need look")
	}
}

// TestSlowConsumerSettings is slow-consumer-threshold and what goes with it: only a
// threshold above 0 looks for slow consumers.
func TestSlowConsumerSettings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		root string
		set  []string
		want *SlowConsumers
	}{
		"none":             {hornetQRoot, []string{"slow-consumer-policy", "KILL", "slow-consumer-check-period", "9"}, nil},
		"switched off":     {hornetQRoot, []string{"slow-consumer-threshold", "-1", "slow-consumer-policy", "KILL"}, nil},
		"told by default":  {hornetQRoot, []string{"slow-consumer-threshold", "10"}, &SlowConsumers{MinRate: 10, CheckPeriod: 5 * time.Second, AbortConnection: true, Notify: true}},
		"killed":           {hornetQRoot, []string{"slow-consumer-threshold", "10", "slow-consumer-policy", "KILL", "slow-consumer-check-period", "60"}, &SlowConsumers{MinRate: 10, CheckPeriod: time.Minute, AbortConnection: true}},
		"in Artemis' unit": {artemisRoot, []string{"slow-consumer-threshold", "90", "slow-consumer-threshold-measurement-unit", "MESSAGES_PER_MINUTE", "slow-consumer-policy", "NOTIFY"}, &SlowConsumers{MinRate: 1.5, CheckPeriod: 5 * time.Second, AbortConnection: true, Notify: true}},
	} {
		e := coreConfig(t, tt.root, settingsXML(append([]string{"#"}, tt.set...))).Resolver().Policy(queueNamed("x"))
		if diff := cmp.Diff(tt.want, e.SlowConsumers); diff != "" || e.Advisories.ForSlowConsumers != (tt.want != nil) {
			t.Errorf("%s (-want +got), told %v:\n%s", name, e.Advisories.ForSlowConsumers, diff)
		}
	}
	for _, c := range [][2]string{{setSlowPolicy, "kill"}, {setSlowUnit, "SECONDS"}, {setSlowPeriod, "0"}} {
		if err := checkSlow(c[0], c[1]); err == nil {
			t.Errorf("%s %s is no error", c[0], c[1])
		}
	}
}

// TestFullAddresses is address-full-policy: it holds where a limit is given.
func TestFullAddresses(t *testing.T) {
	t.Parallel()
	limits := func(set func(*Limits)) *Limits {
		l := DefaultLimits()
		l.DurableSubscriptions = true
		set(l)
		return l
	}
	for name, tt := range map[string]struct {
		settings []string
		want     *Limits
		limited  bool
	}{
		"nothing":             {nil, nil, false},
		"a limit alone pages": {[]string{"max-size-bytes", "1000"}, nil, false},
		"page":                {[]string{"max-size-bytes", "1000", "address-full-policy", "PAGE"}, nil, false},
		"block without limit": {[]string{"max-size-bytes", "-1", "address-full-policy", "BLOCK"}, nil, true},
		"block":               {[]string{"max-size-bytes", "10Mb", "address-full-policy", "BLOCK"}, limits(func(l *Limits) { l.MaxBytes = 10 << 20 }), true},
		"fail":                {[]string{"max-size-messages", "7", "address-full-policy", "FAIL"}, limits(func(l *Limits) { l.MaxMessages, l.OnFull = 7, Fail }), true},
		"drop":                {[]string{"max-size-bytes", "1MiB", "address-full-policy", "DROP"}, limits(func(l *Limits) { l.MaxBytes, l.OnFull = 1<<20, Drop }), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := coreConfig(t, artemisRoot, settingsXML(append([]string{"#"}, tt.settings...))).Resolver()
			got := r.Policy(message.Destination{Kind: message.Queue, Name: "Q"}).Limits
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if r.Limited() != tt.limited {
				t.Errorf("limited: %t", r.Limited())
			}
		})
	}
}
