package config

import (
	"testing"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// What clients are asked to go by is what the broker goes by.
func TestWishesSayWhatTheBrokerGoesBy(t *testing.T) {
	t.Parallel()
	policy := func(limit int) *redelivery.Policy {
		p := redelivery.DefaultPolicy()
		p.MaximumRedeliveries = limit
		return &p
	}
	queue := func(name string) message.Destination { return message.Destination{Kind: message.Queue, Name: name} }
	plugged := func(name string, limit int) RedeliveryEntry {
		e := RedeliveryEntry{Policy: *policy(limit)}
		if name != "" {
			e.Policy.Destination = queue(name)
		}
		return e
	}
	fallback := plugged("", 9)
	c := &Config{
		Policies: []PolicyEntry{
			{Destination: queue("A.>"), Rules: redelivery.Rules{Redelivery: policy(1)}},
			{Destination: queue("A.B")},
			{Destination: queue("C.>")},
		},
		Redelivery: &RedeliveryPlugin{Policies: []RedeliveryEntry{plugged("A.X", 7), plugged("A.B", 8)}, Default: &fallback},
	}
	text, err := c.Wishes().Properties()
	if err != nil {
		t.Fatal(err)
	}
	w, err := redelivery.ParseWishes(text)
	if err != nil {
		t.Fatal(err)
	}
	resolver := c.Resolver()
	for _, name := range []string{"A.X", "A.B", "C.D", "Z", "A"} {
		want, got := resolver.Policy(queue(name)).Rules.Redelivery, w.Map().Lookup(queue(name))
		if got == nil || got.MaximumRedeliveries != want.MaximumRedeliveries {
			t.Errorf("%s: clients are asked for %v, the broker has %v", name, got, want)
		}
	}
	if w := new(Config).Wishes(); len(w) != 0 {
		t.Errorf("nothing is configured, and wished is %v", w)
	}
}
