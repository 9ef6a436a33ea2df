package broker

import (
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// TestOfflineSubscriptionsEnd is offlineDurableSubscriberTimeout (section 7.1): from
// when the last user left, or the broker started, and never one in use.
func TestOfflineSubscriptionsEnd(t *testing.T) {
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	inHouse(t, func(o *Options) { o.Offline = OfflineLimit{After: time.Hour, Every: time.Minute} }, func(h *house) {
		names := func() string {
			list := ""
			for _, s := range h.broker.Subscriptions() {
				list += s.Subscription + " "
			}
			return list
		}
		durable := func(c *client, name string) string {
			return c.consume(news, func(s *ConsumerSpec) { s.Subscription = name })
		}
		c := h.client()
		used, left := durable(c, "used"), durable(c, "left")
		c.must(c.send(c.msg(news, "m1"), ""))
		c.take()
		c.closeConsumer(left, Delivery{})
		time.Sleep(59 * time.Minute)
		if got := names(); got != "left used " && got != "used left " {
			t.Errorf("before its time: %s", got)
		}
		time.Sleep(2 * time.Minute)
		if got := names(); got != "used " {
			t.Errorf("after its time: %s", got)
		}
		if n := h.broker.Counted(SubscriptionTimedOut); n != 1 {
			t.Errorf("told %d times", n)
		}
		c.closeConsumer(used, Delivery{})
		c.c.Close(message.Closed, "", -1)
		time.Sleep(30 * time.Minute)
		h.restart()
		time.Sleep(45 * time.Minute)
		if got := names(); got != "used " {
			t.Errorf("a restart counts anew: %s", got)
		}
		c = h.client()
		again := durable(c, "used") // client ids are new in each test connection: another subscription
		c.closeConsumer(again, Delivery{})
		time.Sleep(20 * time.Minute)
		if got := names(); got != "used " {
			t.Errorf("in the end: %s", got)
		}
		c.c.Close(message.Closed, "", -1)
	})
}
