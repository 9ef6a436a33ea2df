package config

import (
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// The queues of an acceptor's virtual topics have the settings of the topic's address, as
// they are queues of that address in Artemis.
func TestQueuesOfVirtualTopicsHaveTheTopicsSettings(t *testing.T) { // R-HQ-136
	t.Parallel()
	c := &Config{
		Interceptors: &Interceptors{VirtualTopics: []VirtualTopic{{Name: "VirtualTopic.>", Prefix: "Consumer.*."}, {Name: ">", Postfix: ".Copy"}}},
		Addresses:    &AddressSettings{product: artemis, syntax: defaultWildcards, addressOf: map[message.Destination]string{}},
	}
	c.topicAddresses()
	for name, want := range map[string]string{
		"Consumer.A.VirtualTopic.Orders":     "VirtualTopic.Orders",
		"Consumer.A.VirtualTopic.Orders.New": "VirtualTopic.Orders.New",
		"Consumer.A.Orders":                  "Consumer.A.Orders",
		"Consumer.VirtualTopic.Orders":       "Consumer.VirtualTopic.Orders",
		"Consumer.A":                         "Consumer.A",
		"Other.A.VirtualTopic.Orders":        "Other.A.VirtualTopic.Orders",
		"Orders.Copy":                        "Orders.Copy",
	} {
		if got := c.Addresses.address(message.Destination{Kind: message.Queue, Name: name}); got != want {
			t.Errorf("%s has the address %s, want %s", name, got, want)
		}
	}
	q, err := c.Meant(&ListenerOptions{}, message.Destination{Kind: message.Queue, Name: "VirtualTopic.Orders::Consumer.A.VirtualTopic.Orders"})
	if err != nil || q.Name != "Consumer.A.VirtualTopic.Orders" {
		t.Errorf("by its full name it is %s, %v", q, err)
	}
}
