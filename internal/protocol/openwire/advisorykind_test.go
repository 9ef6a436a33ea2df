package openwire

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

func TestAdvisoryTopics(t *testing.T) {
	t.Parallel()
	orders := message.Destination{Kind: message.Queue, Name: "ORDERS"}
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	for name, c := range map[string]struct {
		kind broker.EventKind
		of   message.Destination
		want string
	}{
		"a connection":              {broker.ClientJoined, message.Destination{}, "Connection"},
		"a queue":                   {broker.QueueAdded, orders, "Queue"},
		"a topic that goes":         {broker.QueueRemoved, news, "Topic"},
		"a temporary queue":         {broker.TempAdded, message.Destination{Kind: message.TempQueue, Name: "c:1"}, "TempQueue"},
		"a consumer":                {broker.ConsumerJoined, orders, "Consumer.Queue.ORDERS"},
		"one of a temporary queue":  {broker.ConsumerLeft, message.Destination{Kind: message.TempQueue, Name: "c:1"}, "Consumer.Queue.c:1"},
		"one of several":            {broker.ConsumerJoined, message.Destination{Kind: message.Topic, Name: "A,B"}, "Consumer.Topic.A&sbquo;B"},
		"a producer":                {broker.ProducerJoined, news, "Producer.Topic.NEWS"},
		"an anonymous one":          {broker.ProducerJoined, message.Destination{}, ""},
		"an expired message":        {broker.Expired, orders, "Expired.Queue.ORDERS"},
		"R-DLQ-30 a dead letter":    {broker.DeadLettered, news, "MessageDLQd.Topic.NEWS"},
		"R-DLQ-32 one dropped":      {broker.Discarded, orders, "MessageDiscarded.Queue.ORDERS"},
		"one evicted":               {broker.Evicted, news, "MessageDiscarded.Topic.NEWS"},
		"R-DLQ-33 nobody to get it": {broker.NoConsumer, news, "NoConsumer.Topic.NEWS"},
		"a full store":              {broker.Full, orders, "FULL.Queue.ORDERS"},
		"an advisory":               {broker.ConsumerJoined, message.Destination{Kind: message.Topic, Name: "ActiveMQ.Advisory.Queue"}, ""},
		"what nobody is told of":    {broker.StrayAck, orders, ""},
	} {
		want := ""
		if c.want != "" {
			want = "topic://ActiveMQ.Advisory." + c.want
		}
		if got := AdvisoryTopic(c.kind, c.of).String(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// watch opens a consumer of advisories.
func (p *peer) watch(topics ...string) {
	p.t.Helper()
	p.do(&wire.ConsumerInfo{ConsumerID: p.consumerID(900), Destination: topicNamed("ActiveMQ.Advisory." + strings.Join(topics, ",ActiveMQ.Advisory.")), PrefetchSize: 1000})
}

// told is what the next advisory says: its topic, what it is about, and a property.
// The newest connection is called client.
func (p *peer) told(property string) string {
	p.t.Helper()
	synctest.Wait()
	d := p.dispatched()
	about := "nothing"
	switch s := d.Message.DataStructure.(type) {
	case *wire.DestinationInfo:
		about = fmt.Sprintf("%v %v", s.OperationType, s.Destination)
	case *wire.ConnectionInfo:
		about = fmt.Sprintf("%s of %q, password %q", s.ConnectionID.Value, s.ClientID.Value, s.Password.Value)
	case *wire.ConsumerInfo:
		about = fmt.Sprintf("%v consumes %v", s.ConsumerID, s.Destination)
	case *wire.ProducerInfo:
		about = fmt.Sprintf("%v produces %v", s.ProducerID, s.Destination)
	case *wire.RemoveInfo:
		about = fmt.Sprintf("%v is gone", s.ObjectID)
	case *wire.Message:
		about = fmt.Sprintf("%v with %d bytes", s.MessageID, len(s.Content))
	}
	text := strings.TrimPrefix(d.Message.Destination.PhysicalName, "ActiveMQ.Advisory.") + ": " + about
	if property != "" {
		v, _, err := wire.LookupProperty(d.Message.MarshalledProperties, property)
		if err != nil {
			p.t.Error(err)
		}
		text += fmt.Sprintf(", %s %v", property, v)
	}
	if v, ok, _ := wire.LookupProperty(d.Message.MarshalledProperties, "originBrokerName"); !ok || v != "localhost" {
		p.t.Errorf("originBrokerName %v", v)
	}
	return strings.ReplaceAll(text, fmt.Sprintf("ID:peer-%d", p.h.n), "client")
}

func expectTold(t *testing.T, p *peer, property string, want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, p.told(property))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestClientsAreAdvertised wants connections, consumers, producers and destinations
// told to those who watch, as they come and go, and to a late watcher what is there
// (OpenWire 12).
func TestClientsAreAdvertised(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		watcher := h.client()
		watcher.watch("Consumer.>", "Producer.>", "Queue")
		late := h.client()
		p := h.client()
		p.consume(1, queueNamed("ORDERS"), 10)
		expectTold(t, watcher, "consumerCount",
			"Queue: ADD queue://ORDERS, consumerCount <nil>",
			"Consumer.Queue.ORDERS: client:1:1 consumes queue://ORDERS, consumerCount 1")
		p.consume(2, queueNamed("ORDERS"), 10)
		expectTold(t, watcher, "consumerCount", "Consumer.Queue.ORDERS: client:1:2 consumes queue://ORDERS, consumerCount 2")
		p.do(&wire.ProducerInfo{ProducerID: p.producerID(1), Destination: queueNamed("ORDERS")})
		expectTold(t, watcher, "producerCount", "Producer.Queue.ORDERS: client:1:1 produces queue://ORDERS, producerCount 1")
		p.produce(2, 0) // anonymous: nobody is told
		p.do(&wire.ProducerInfo{ProducerID: p.producerID(3), Destination: queueNamed("B,C")})
		expectTold(t, watcher, "producerCount",
			"Queue: ADD queue://B, producerCount <nil>", "Queue: ADD queue://C, producerCount <nil>",
			"Producer.Queue.B: client:1:3 produces queue://B, producerCount 1", "Producer.Queue.C: client:1:3 produces queue://C, producerCount 1")

		late.watch("Consumer.Queue.ORDERS", "Producer.Queue.*", "Queue", "Connection")
		expectTold(t, late, "",
			"Queue: ADD queue://B",
			"Queue: ADD queue://C",
			"Queue: ADD queue://ORDERS",
			"Connection: "+watcher.id+" of \"client of "+watcher.id+"\", password \"\"",
			"Connection: "+late.id+" of \"client of "+late.id+"\", password \"\"",
			"Connection: client of \"client of client\", password \"\"")
		expectTold(t, late, "consumerCount",
			"Consumer.Queue.ORDERS: client:1:1 consumes queue://ORDERS, consumerCount 2",
			"Consumer.Queue.ORDERS: client:1:2 consumes queue://ORDERS, consumerCount 2")
		expectTold(t, late, "producerCount", "Producer.Queue.ORDERS: client:1:1 produces queue://ORDERS, producerCount 1",
			"Producer.Queue.B: client:1:3 produces queue://B, producerCount 1", "Producer.Queue.C: client:1:3 produces queue://C, producerCount 1")

		p.do(&wire.RemoveInfo{ObjectID: p.consumerID(2)})
		expectTold(t, watcher, "consumerCount", "Consumer.Queue.ORDERS: client:1:2 is gone, consumerCount 1")
		p.hangUp()
		expectTold(t, watcher, "consumerCount", "Consumer.Queue.ORDERS: client:1:1 is gone, consumerCount 0")
		expectTold(t, watcher, "producerCount", "Producer.Queue.ORDERS: client:1:1 is gone, producerCount 0",
			"Producer.Queue.B: client:1:3 is gone, producerCount 0", "Producer.Queue.C: client:1:3 is gone, producerCount 0")
		watcher.leave()
		late.leave()
	})
}

// TestMessagesAreAdvertised wants what the policy asks for, and no more (R-DLQ-30
// to -33, R-BRK-25).
func TestMessagesAreAdvertised(t *testing.T) {
	t.Parallel()
	all := broker.Advisories{Sent: true, Consumed: true, Dispatched: true, Discarded: true, SlowConsumer: true, NoConsumer: true}
	configure := func(o *broker.Options) {
		o.Policy = func(d message.Destination) broker.Policy {
			if d.Name == "TOLD" {
				return broker.Policy{Advisories: all}
			}
			return broker.Policy{}
		}
	}
	inBrokerHouse(t, configure, nil, func(h *house) {
		watcher := h.client()
		watcher.watch("MessageDelivered.>", "MessageConsumed.>", "MessageDispatched.>", "MessageDiscarded.>",
			"Expired.>", "MessageDLQd.>", "SlowConsumer.>", "NoConsumer.>")
		p := h.client()
		p.produce(1, 0)
		p.do(p.text(1, queueNamed("TOLD"), "m1"))
		p.do(p.text(2, queueNamed("TOLD"), "m2"))
		for range 2 {
			if got := watcher.told("orignalDestination"); !strings.HasPrefix(got, "MessageDelivered.Queue.TOLD: client:1:1:") || !strings.HasSuffix(got, " with 0 bytes, orignalDestination queue://TOLD") {
				t.Error(got)
			}
		}
		p.consume(1, queueNamed("TOLD"), 1)
		m1 := p.dispatched()
		expectTold(t, watcher, "consumerId",
			"MessageDispatched.Queue.TOLD: client:1:1:1 with 0 bytes, consumerId client:1:1",
			"SlowConsumer.Queue.TOLD: client:1:1 consumes queue://TOLD, consumerId client:1:1")
		p.do(ack(m1, wire.AckStandard))
		m2 := p.dispatched()
		expectTold(t, watcher, "orignalMessageId",
			"MessageConsumed.Queue.TOLD: client:1:1:1 with 0 bytes, orignalMessageId client:1:1:1",
			"MessageDispatched.Queue.TOLD: client:1:1:2 with 0 bytes, orignalMessageId client:1:1:2")
		poison := ack(m2, wire.AckPoison)
		p.do(poison)
		expectTold(t, watcher, "", "MessageDLQd.Queue.TOLD: client:1:1:2 with 0 bytes")

		lonely := p.text(3, topicNamed("TOLD"), "m3")
		lonely.Persistent = false
		p.do(lonely)
		d := watcher.dispatched()
		if d.Message.Destination.PhysicalName != "ActiveMQ.Advisory.NoConsumer.Topic.TOLD" || body(t, d) != "m3" {
			t.Errorf("R-DLQ-33: %+v", d.Message)
		}
		expectTold(t, watcher, "", "MessageDelivered.Topic.TOLD: client:1:1:3 with 0 bytes")

		short := p.text(4, queueNamed("OTHER"), "m4")
		short.Expiration = time.Now().Add(time.Second).UnixMilli()
		p.do(short)
		time.Sleep(2 * time.Second)
		expectTold(t, watcher, "",
			"MessageDLQd.Queue.OTHER: client:1:1:4 with 0 bytes",
			"Expired.Queue.OTHER: client:1:1:4 with 0 bytes")
		p.leave()
		watcher.leave()
	})
}

// TestAdvisoriesSayWho wants what an advisory is about described as its client did, and
// with the connection that is to blame for it (OpenWire 12).
func TestAdvisoriesSayWho(t *testing.T) {
	t.Parallel()
	inBrokerHouse(t, func(o *broker.Options) {
		o.Policy = func(message.Destination) broker.Policy {
			return broker.Policy{Advisories: broker.Advisories{SlowConsumer: true}}
		}
	}, nil, func(h *house) {
		watcher := h.client()
		watcher.watch("Queue", "Topic", "Connection", "Consumer.Topic.NEWS", "SlowConsumer.>")
		about := func() wire.DataStructure {
			synctest.Wait()
			return watcher.dispatched().Message.DataStructure
		}
		by := func(p *peer, s string) string {
			t.Helper()
			i, ok := about().(*wire.DestinationInfo)
			if !ok || i.Destination.String() != s {
				t.Fatalf("told of %+v, want %s", i, s)
			}
			switch {
			case i.ConnectionID == nil:
				return "nobody"
			case i.ConnectionID.Value == p.id:
				return "client"
			}
			return i.ConnectionID.Value
		}
		about() // the watcher itself
		p := h.peer(peerFormat())
		p.hears(false, false)
		p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
		if i, ok := about().(*wire.ConnectionInfo); !ok || i.ConnectionID.Value != p.id || !strings.HasPrefix(i.ClientIP.Value, "tcp://") || i.Password.Value != "" || !i.Manageable {
			t.Errorf("a connection is %+v", i)
		}
		p.produce(1, 0)
		p.consume(1, queueNamed("CONSUMED"), 1)
		p.do(p.text(1, queueNamed("SENT"), "m1"))
		p.do(p.text(2, topicNamed("SENT"), "m2"))
		p.do(&wire.DestinationInfo{ConnectionID: p.connection(), Destination: queueNamed("MADE")})
		p.do(&wire.DestinationInfo{ConnectionID: p.connection(), Destination: queueNamed("MADE"), OperationType: wire.DestinationRemove})
		for _, d := range []string{"queue://CONSUMED", "queue://SENT", "topic://SENT", "queue://MADE", "queue://MADE"} {
			if got := by(p, d); got != "client" {
				t.Errorf("%s came to be, or went, by %s", d, got)
			}
		}

		p.do(&wire.ConsumerInfo{ConsumerID: p.consumerID(2), Destination: topicNamed("NEWS"), PrefetchSize: 1,
			SubscriptionName: wire.NewText("sub"), Selector: wire.NewText("TRUE")})
		if got := by(p, "topic://NEWS"); got != "client" {
			t.Errorf("the topic came to be by %s", got)
		}
		about() // the consumer
		p.do(p.text(3, topicNamed("NEWS"), "m3"))
		p.do(p.text(4, topicNamed("NEWS"), "m4"))
		d := p.dispatched()
		slow, ok := about().(*wire.ConsumerInfo)
		if !ok || *slow.ConsumerID != *p.consumerID(2) || slow.PrefetchSize != 1 || slow.Selector.Value != "TRUE" || slow.SubscriptionName.Value != "sub" {
			t.Errorf("slow is %+v", slow)
		}
		p.do(ack(d, wire.AckPoison))
		if got := by(p, "queue://ActiveMQ.DLQ"); got != "nobody" {
			t.Errorf("the dead letter queue came to be by %s", got)
		}
		p.do(&wire.RemoveInfo{ObjectID: p.consumerID(2)})
		about()
		p.do(&wire.RemoveSubscriptionInfo{ConnectionID: p.connection(), SubscriptionName: wire.NewText("sub"), ClientID: wire.NewText("client of " + p.id)})
		if i, ok := about().(*wire.RemoveSubscriptionInfo); !ok || i.SubscriptionName.Value != "sub" || i.ClientID.Value != "client of "+p.id || i.ConnectionID.Value != p.id {
			t.Errorf("unsubscribed: %+v", i)
		}
		p.leave()
		watcher.leave()
	})
}
