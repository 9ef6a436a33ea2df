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

func TestWishesOfAddressSettings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		root string
		xml  string
	}{
		"hornetq": {hornetQRoot, settingsXML(
			[]string{"#", "max-delivery-attempts", "3", "redelivery-delay", "500"},
			[]string{"jms.queue.ORDERS.#", "max-delivery-attempts", "5"},
			[]string{"jms.queue.ORDERS.NEW", "redelivery-delay", "7"},
			[]string{"jms.topic.*.X", "max-delivery-attempts", "8"})},
		"hornetq, all queues": {hornetQRoot, settingsXML([]string{"jms.queue.#", "max-delivery-attempts", "4"}, []string{"jms.#", "redelivery-delay", "9"})},
		"artemis": {artemisRoot, settingsXML(
			[]string{"#", "max-delivery-attempts", "3"},
			[]string{"ORDERS.#", "max-delivery-attempts", "5", "redelivery-delay", "20", "redelivery-delay-multiplier", "2"},
			[]string{"ORDERS.NEW", "max-delivery-attempts", "-1"})},
		"nothing matches": {artemisRoot, settingsXML([]string{"ORDERS.#", "max-delivery-attempts", "5"})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := coreConfig(t, tt.root, tt.xml)
			text, err := c.Wishes().Properties()
			if err != nil {
				t.Fatal(err)
			}
			w, err := redelivery.ParseWishes(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []message.Destination{queueNamed("ORDERS"), queueNamed("ORDERS.OLD"), queueNamed("ORDERS.NEW"), queueNamed("Z"), topicNamed("A.X"), topicNamed("A.Y")} {
				want, got := c.Resolver().Policy(d).Rules.Redelivery, w.Map().Lookup(d)
				if got == nil || got.MaximumRedeliveries != want.MaximumRedeliveries {
					t.Fatalf("%v: clients are asked for %v, the broker has %v\n%s", d, got, want, text)
				}
				for k := range 5 {
					if a, b := got.Delay(k+1, nil), want.Delay(k+1, nil); a != b {
						t.Errorf("%v: delay %d is %v for clients, and %v for the broker", d, k+1, a, b)
					}
				}
			}
		})
	}
}
