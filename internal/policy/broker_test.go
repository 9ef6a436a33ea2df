package policy_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/policy"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/jms"
)

// entry is a configuration with one entry for all queues.
func entry(rules redelivery.Rules) *config.Config {
	return &config.Config{Policies: []config.PolicyEntry{{
		Destination: message.Destination{Kind: message.Queue, Name: ">"}, Source: "f:1", Rules: rules}}}
}

// delays is a broker's policy.
func delays(limit int, initial, later time.Duration, multiplier float64) *redelivery.Policy {
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, initial, later
	p.UseExponentialBackOff, p.BackOffMultiplier = multiplier > 1, multiplier
	return &p
}

// TestTheAnswerIsWhatHappens lets a client fail at a broker in virtual time, and
// compares the times of the deliveries, and where the message ends, with what the
// question was answered.
func TestTheAnswerIsWhatHappens(t *testing.T) {
	hornetq := redelivery.HornetQPolicy()
	hornetq.MaximumRedeliveries, hornetq.RedeliveryDelay, hornetq.MaximumRedeliveryDelay = 4, time.Second, 3*time.Second
	hornetq.UseExponentialBackOff, hornetq.BackOffMultiplier = true, 2
	graves := redelivery.IndividualStrategy()
	graves.QueuePrefix = "DLQ."
	for name, tt := range map[string]struct {
		rules  redelivery.Rules
		client string // the words of the question
	}{
		"C03.1 six and six":                      {redelivery.Rules{Redelivery: delays(6, time.Second, time.Second, 1)}, "client-max=6&client-initial=0&client-delay=0"},
		"C03.2 two and five":                     {redelivery.Rules{Redelivery: delays(5, time.Second, time.Second, 1)}, "client-max=2&client-initial=0&client-delay=0"},
		"C03.3 six and two":                      {redelivery.Rules{Redelivery: delays(2, time.Second, time.Second, 1)}, "client-max=6&client-initial=0&client-delay=0"},
		"C03.4 none and five":                    {redelivery.Rules{Redelivery: delays(5, time.Second, time.Second, 1)}, "client-max=0"},
		"C04 growing delays":                     {redelivery.Rules{Redelivery: delays(4, time.Second, time.Second, 2)}, "client-max=0"},
		"the client's delays, then the broker's": {redelivery.Rules{Redelivery: delays(4, time.Second, 3*time.Second, 2)}, "client-max=2&client-initial=100ms&client-delay=200ms"},
		"the client alone":                       {redelivery.Rules{}, "client-max=3&client-initial=500ms&client-multiplier=2"},
		"the client gives up at once":            {redelivery.Rules{DeadLetter: graves}, "client-max=0"},
		"HornetQ's arithmetic":                   {redelivery.Rules{Redelivery: &hornetq, DeadLetter: graves}, "client-max=0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := entry(tt.rules)
				values, err := url.ParseQuery("destination=ORDERS&" + tt.client)
				if err != nil {
					t.Fatal(err)
				}
				q, err := policy.Ask(values, policy.ExplainParams())
				if err != nil {
					t.Fatal(err)
				}
				x := policy.Explain(c, q)
				happened := fail(t, c, &q)
				var told []time.Duration
				for _, s := range x.Schedule.Steps {
					told = append(told, time.Duration(s.AtMillis)*time.Millisecond)
				}
				if !slices.EqualFunc(told, happened.at, near) {
					t.Errorf("deliveries at %v, and it was said %v", happened.at, told)
				}
				if g := x.Grave.Destination; happened.grave != g {
					t.Errorf("it ended in %s, and it was said %s", happened.grave, g)
				}
			})
		})
	}
}

// TestTheSimulationIsWhatHappens does the same with a message that does not live for
// ever, or is not persistent, or succeeds in the end.
func TestTheSimulationIsWhatHappens(t *testing.T) {
	three := redelivery.Rules{Redelivery: delays(2, time.Second, 3*time.Second, 1)}
	dropping := redelivery.SharedStrategy()
	dropping.ProcessExpired = false
	for name, tt := range map[string]struct {
		rules redelivery.Rules
		words string
	}{
		"it succeeds at the third delivery":      {three, "client-max=0&fail=2"},
		"C15 it expires within the delay":        {three, "client-max=0&ttl=2s"},
		"R-DLS-20 what expires is dropped":       {redelivery.Rules{Redelivery: three.Redelivery, DeadLetter: dropping}, "client-max=0&ttl=2s"},
		"it expires while its client waits":      {redelivery.Rules{}, "client-max=3&client-initial=1s&client-delay=1s&ttl=1500ms"},
		"R-EDGE-12 it is not persistent":         {three, "client-max=0&non-persistent=true"},
		"R-PLG-20 it is dropped at the limit":    {redelivery.Rules{Redelivery: three.Redelivery, DropAtLimit: true}, "client-max=0"},
		"R-PLG-21 no policy, and no dead letter": {redelivery.Rules{DropWithoutPolicy: true}, "client-max=1&client-initial=100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := entry(tt.rules)
				values, err := url.ParseQuery("destination=ORDERS&" + tt.words)
				if err != nil {
					t.Fatal(err)
				}
				q, err := policy.Ask(values, policy.SimulateParams())
				if err != nil {
					t.Fatal(err)
				}
				s := policy.Simulate(c, q).Present
				happened := fail(t, c, &q)
				var told []time.Duration
				for _, turn := range s.Turns {
					told = append(told, time.Duration(turn.AtMillis)*time.Millisecond)
				}
				if !slices.EqualFunc(told, happened.at, near) {
					t.Errorf("deliveries at %v, and it was said %v", happened.at, told)
				}
				if happened.grave != s.End.Target {
					t.Errorf("it ended in %q, and it was said %+v", happened.grave, s.End)
				}
			})
		})
	}
}

// near leaves the few milliseconds that the way through pipes and the store takes.
func near(a, b time.Duration) bool { return (a - b).Abs() <= 20*time.Millisecond }

// A story is what happened to a message that always failed.
type story struct {
	at    []time.Duration // of its deliveries, since the first
	grave string          // where it lies in the end
}

// fail sends a message to ORDERS and fails all its deliveries.
func fail(t *testing.T, c *config.Config, q *policy.Question) story {
	t.Helper()
	resolver := c.Resolver()
	room := openwiretest.Open(t, func(o *broker.Options, _ *openwire.Options) {
		o.Policy = func(d message.Destination) broker.Policy { return broker.Policy{Rules: resolver.Policy(d).Rules} }
	})
	defer room.Close()
	f, err := jms.NewConnectionFactory("tcp://room")
	must(t, err)
	f.Dial = room.Dial
	p := q.Client.Policy
	f.SetRedeliveryPolicy(jms.RedeliveryPolicy{MaximumRedeliveries: p.MaximumRedeliveries, InitialRedeliveryDelay: p.InitialRedeliveryDelay,
		RedeliveryDelay: p.RedeliveryDelay, MaximumRedeliveryDelay: p.MaximumRedeliveryDelay, UseExponentialBackOff: p.UseExponentialBackOff,
		BackOffMultiplier: p.BackOffMultiplier, PreDispatchCheck: true})
	connection, err := f.CreateConnection(t.Context())
	must(t, err)
	defer func() { must(t, connection.Close()) }()
	must(t, connection.Start())
	s, err := connection.CreateSession(jms.SessionTransacted)
	must(t, err)
	producer, err := s.CreateProducer(t.Context(), jms.Queue("ORDERS"))
	must(t, err)
	options := []jms.SendOption{jms.WithTimeToLive(q.Trial.TimeToLive)}
	if !q.Trial.Persistent {
		options = append(options, jms.WithDeliveryMode(jms.NonPersistent))
	}
	must(t, producer.Send(t.Context(), jms.NewText("order 1"), options...))
	must(t, s.Commit(t.Context()))
	consumer, err := s.CreateConsumer(t.Context(), jms.Queue("ORDERS"))
	must(t, err)
	var happened story
	var first time.Time
	for {
		_, err := consumer.ReceiveTimeout(t.Context(), time.Hour)
		if errors.Is(err, jms.ErrNoMessage) {
			break
		}
		must(t, err)
		if first.IsZero() {
			first = time.Now()
		}
		happened.at = append(happened.at, time.Since(first))
		if len(happened.at) > 50 {
			t.Fatal("it does not end")
		}
		if len(happened.at) > q.Trial.Failures {
			must(t, s.Commit(t.Context()))
			continue
		}
		must(t, s.Rollback(t.Context()))
	}
	for _, st := range room.Broker().Queues() {
		if st.Messages > 0 {
			happened.grave += fmt.Sprint(st.Name)
		}
	}
	return happened
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
