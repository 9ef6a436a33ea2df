package policy

import (
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// configOf is a configuration with one entry for all queues.
func configOf(rules redelivery.Rules) *config.Config {
	return &config.Config{Policies: []config.PolicyEntry{{
		Destination: message.Destination{Kind: message.Queue, Name: ">"}, Source: "f.yaml:3", Rules: rules}}}
}

// ask makes a question of "name=value" words.
func ask(t *testing.T, words string) Question {
	t.Helper()
	values, err := url.ParseQuery(words)
	if err != nil {
		t.Fatal(err)
	}
	values.Set(DestinationParam, "ORDERS")
	q, err := Ask(values, SimulateParams())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestTimeLines(t *testing.T) {
	t.Parallel()
	second := redelivery.Rules{Redelivery: brokerPolicy(2, time.Second, 3*time.Second)}
	keeping := redelivery.SharedStrategy()
	keeping.ProcessExpired = false
	for name, tt := range map[string]struct {
		rules redelivery.Rules
		words string
		want  string // each turn at+work, and the end
	}{
		"it succeeds at the third delivery":            {second, "client-max=0&fail=2&work=200ms", "0 1200 4400 processed at 4600"},
		"it never fails":                               {second, "fail=0", "0 processed at 0"},
		"it always fails":                              {second, "client-max=0", "0 1000 4000 dead-letter at 4000 queue://ActiveMQ.DLQ limit"},
		"the client gives up, there is no policy":      {redelivery.Rules{}, "client-max=1", "0 1000 dead-letter at 1000 queue://ActiveMQ.DLQ poison"},
		"C15 a time to live ends within the delay":     {second, "client-max=0&ttl=2s", "0 1000 dead-letter at 2001 queue://ActiveMQ.DLQ expired"},
		"R-DLS-20 expired ones are not kept":           {redelivery.Rules{DeadLetter: keeping, Redelivery: second.Redelivery}, "client-max=0&ttl=2s", "0 1000 discard at 2001  expired"},
		"a client's redelivery past the time to live":  {redelivery.Rules{}, "ttl=1500ms", "0 1000 dead-letter at 2000 queue://ActiveMQ.DLQ expired"},
		"R-EDGE-12 non-persistent ones are not kept":   {second, "client-max=0&non-persistent", "0 1000 4000 discard at 4000  non-persistent"},
		"R-PLG-20 dropped at the limit":                {redelivery.Rules{Redelivery: second.Redelivery, DropAtLimit: true}, "client-max=0", "0 1000 4000 discard at 4000  limit"},
		"no policy and fallbackToDeadLetter=false":     {redelivery.Rules{DropWithoutPolicy: true}, "client-max=0", "0 discard at 0  no-policy"},
		"C03 client and broker: the count goes on":     {second, "client-max=1&client-initial=0", "0 0 3000 dead-letter at 3000 queue://ActiveMQ.DLQ limit"},
		"a client that sends NACK is under the policy": {second, "client-max=none", "0 1000 4000 dead-letter at 4000 queue://ActiveMQ.DLQ limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Simulate(configOf(tt.rules), ask(t, tt.words))
			var got []string
			for _, turn := range s.Present.Turns {
				got = append(got, number(float64(turn.AtMillis)))
			}
			end := s.Present.End
			got = append(got, end.How+" at "+number(float64(end.AtMillis)))
			if end.How != EndProcessed {
				got = append(got, end.Target, end.Reason)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("%s\nwant %s", text, tt.want)
			}
			if s.Present.Chance != nil || s.Tried != nil {
				t.Error("there is no chance in it, and nothing is tried")
			}
		})
	}
}

func TestOddsAreExact(t *testing.T) {
	t.Parallel()
	s := Simulate(configOf(redelivery.Rules{Redelivery: brokerPolicy(2, time.Second, 3*time.Second)}), ask(t, "client-max=0&odds=30%25"))
	c := s.Present.Chance
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if !c.Exact || len(c.Deliveries) != 3 || len(c.Ends) != 2 || s.Present.End != nil {
		t.Fatalf("%+v", c)
	}
	near("once", c.Deliveries[0].Share, 0.7)
	near("twice", c.Deliveries[1].Share, 0.21)
	near("three times", c.Deliveries[2].Share, 0.09)
	near(c.Ends[0].How, c.Ends[0].Share, 1-0.027)
	near(c.Ends[1].How, c.Ends[1].Share, 0.027)
	if c.Ends[1].Target != "queue://ActiveMQ.DLQ" || c.EndMillis.P50 != 0 || c.EndMillis.P90 != 1000 || c.EndMillis.Most != 4000 {
		t.Errorf("%+v", c)
	}
}

func TestTheSameSeedGivesTheSameChance(t *testing.T) {
	t.Parallel()
	p := brokerPolicy(4, time.Second, time.Second)
	p.UseCollisionAvoidance, p.CollisionAvoidanceFactor = true, 0.5
	c := configOf(redelivery.Rules{Redelivery: p})
	of := func(words string) Percentiles { return Simulate(c, ask(t, words)).Present.Chance.EndMillis }
	one, again, other := of("client-max=0&seed=7"), of("client-max=0&seed=7"), of("client-max=0&seed=8")
	if one != again || one == other {
		t.Errorf("seed 7: %+v and %+v, seed 8: %+v", one, again, other)
	}
	// Four delays: the first is certain, the others are even between half and one
	// and a half seconds; their sum lies evenly about four seconds.
	if one.Least < 2500 || one.Most > 5500 || one.P50 < 3900 || one.P50 > 4100 || one.P99 < one.P90 || one.P90 < one.P50 {
		t.Errorf("%+v", one)
	}
}

func TestARareEndIsToldThoughNoRunCameToIt(t *testing.T) {
	t.Parallel()
	c := Simulate(configOf(redelivery.Rules{}), ask(t, "odds=1%25")).Present.Chance
	if len(c.Ends) != 2 || math.Abs(c.Ends[1].Share-1e-14) > 1e-20 || c.Ends[1].Target != "queue://ActiveMQ.DLQ" {
		t.Errorf("%+v", c.Ends)
	}
}

func TestHowManyWait(t *testing.T) { // Little's law
	t.Parallel()
	s := Simulate(configOf(redelivery.Rules{Redelivery: brokerPolicy(2, time.Second, 3*time.Second)}),
		ask(t, "client-max=1&client-initial=500ms&rate=600/m"))
	want := &Waiting{PerSecond: 10, Client: 5, Broker: 30, Deliveries: 30}
	if diff := cmp.Diff(want, s.Present.Waiting); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	endless := Simulate(configOf(redelivery.Rules{}), ask(t, "client-max=-1&rate=1"))
	if endless.Present.Waiting != nil || len(endless.Present.Notes) != 2 {
		t.Errorf("%+v", endless.Present)
	}
}

func TestChangesAreTriedBesideWhatIsConfigured(t *testing.T) {
	t.Parallel()
	c := configOf(redelivery.Rules{Redelivery: brokerPolicy(2, time.Second, 3*time.Second)})
	s := Simulate(c, ask(t, "client-max=0&max=3&multiplier=2&cap=3s&initial=500ms&delay=9s"))
	want := map[string]string{"arithmetic": "activemq", "maximumRedeliveries": "3", "initialRedeliveryDelay": "500ms", "redeliveryDelay": "9s",
		"useExponentialBackOff": "true", "backOffMultiplier": "2", "maximumRedeliveryDelay": "3s", "useCollisionAvoidance": "false", "collisionAvoidanceFactor": "0.15"}
	if diff := cmp.Diff(want, s.Tried.Policy); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
	if s.Present.End.AtMillis != 4000 || s.Tried.End.AtMillis != 500+1000+2000 || len(s.Tried.Notes) != 0 {
		t.Errorf("%+v\n%+v", s.Present.End, s.Tried.End)
	}
	if p := c.Policies[0].Rules.Redelivery; p.MaximumRedeliveries != 2 {
		t.Error("the configuration was changed")
	}
	if s := Simulate(c, ask(t, "multiplier=2&exponential=false")); s.Tried.Policy["useExponentialBackOff"] != "false" {
		t.Error("exponential=false is not heard")
	}
	if s := Simulate(c, ask(t, "jitter=20%25")); s.Tried.Policy["collisionAvoidanceFactor"] != "0.2" || s.Tried.Chance == nil {
		t.Errorf("%+v", s.Tried)
	}
	if s := Simulate(configOf(redelivery.Rules{}), ask(t, "max=3")); len(s.Tried.Notes) != 1 || s.Present.Policy != nil {
		t.Errorf("%+v", s)
	}
}

func TestTheClientsURL(t *testing.T) {
	t.Parallel()
	const text = "failover:(tcp://mq1:61616?keepAlive=true,tcp://mq2:61616)?jms.prefetchPolicy.all=1&jms.redeliveryPolicy.maximumRedeliveries=3" +
		"&jms.redeliveryPolicy.initialRedeliveryDelay=500&jms.redeliveryPolicy.redeliveryDelay=700&jms.redeliveryPolicy.useExponentialBackOff=true" +
		"&jms.redeliveryPolicy.backOffMultiplier=1.5&jms.redeliveryPolicy.maximumRedeliveryDelay=9000&jms.redeliveryPolicy.useCollisionAvoidance=true" +
		"&jms.redeliveryPolicy.collisionAvoidancePercent=20&jms.redeliveryPolicy.preDispatchCheck=false"
	want := redelivery.Policy{MaximumRedeliveries: 3, InitialRedeliveryDelay: 500 * time.Millisecond, RedeliveryDelay: 700 * time.Millisecond,
		MaximumRedeliveryDelay: 9 * time.Second, UseExponentialBackOff: true, BackOffMultiplier: 1.5, UseCollisionAvoidance: true, CollisionAvoidanceFactor: 0.2}
	if diff := cmp.Diff(want, ask(t, "client-url="+url.QueryEscape(text)).Client.Policy); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.MaximumRedeliveries = 9
	if diff := cmp.Diff(want, ask(t, "client-max=9&client-url="+url.QueryEscape(text)).Client.Policy); diff != "" {
		t.Errorf("what is said goes before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(redelivery.DefaultPolicy(), ask(t, "client-url=tcp://mq1:61616").Client.Policy); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongRunsAreFewer(t *testing.T) {
	t.Parallel()
	p := brokerPolicy(-1, time.Second, time.Second)
	p.UseCollisionAvoidance, p.UseExponentialBackOff = true, true
	start := time.Now()
	c := Simulate(configOf(redelivery.Rules{Redelivery: p}), ask(t, "runs=100000&client-max=0")).Present.Chance
	if c.Runs < 1 || c.Runs > 100 || time.Since(start) > time.Minute {
		t.Errorf("%d runs", c.Runs)
	}
}

func TestQuestionsThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"destination=":                      "destination: is empty",
		"destination=A,B":                   "destination: queue://A,B stands for several",
		"destination=A.>":                   "destination: queue://A.> stands for several",
		"":                                  "destination: give one",
		"destination=A&destination=B":       "destination: give one",
		"destination=A&nonsense=1":          "nonsense: is not known here",
		"destination=A&fail=1&fail=2":       "fail: is given twice",
		"destination=A&fail=-1":             "fail: \"-1\" is neither",
		"destination=A&odds=130%25":         "odds: \"130%\" is no share",
		"destination=A&odds=NaN":            "odds: \"NaN\" is no share",
		"destination=A&work=-1s":            "work: \"-1s\" is less than nothing",
		"destination=A&work=soon":           "work: \"soon\" is no time",
		"destination=A&work=1us":            "finer than a millisecond",
		"destination=A&rate=fast":           "rate: \"fast\" is no rate",
		"destination=A&runs=0":              "runs: \"0\" is no number from 1",
		"destination=A&runs=100001":         "runs: \"100001\" is no number from 1",
		"destination=A&seed=x":              "seed: \"x\" is no number",
		"destination=A&max=many":            "max: \"many\" is no whole number",
		"destination=A&max=3000000000":      "is no whole number",
		"destination=A&multiplier=NaN":      "multiplier: \"NaN\" is no number",
		"destination=A&cap=x":               "cap: \"x\" is no time",
		"destination=A&exponential=perhaps": "exponential: \"perhaps\" is neither",
		"destination=A&non-persistent=x":    "non-persistent: \"x\" is neither",
		"destination=A&jitter=-1":           "jitter: \"-1\" is no share",
		"destination=A&client-initial=1us":  "client-initial: \"1us\" is finer",
		"destination=A&client-max=x":        "client-max: \"x\" is no whole number",
		"destination=A&client-url=x?jms.redeliveryPolicy.maximum=1":                "client-url: jms.redeliveryPolicy.maximum is no property",
		"destination=A&client-url=x?jms.redeliveryPolicy.maximumRedeliveries=some": `"some" is no number`,
		"destination=A&client-url=x?jms.redeliveryPolicy.useExponentialBackOff=y":  `"y" is neither true nor false`,
		"destination=A&client-exponential=no":                                      "client-exponential",
	} {
		values, err := url.ParseQuery(words)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Ask(values, SimulateParams()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
}
