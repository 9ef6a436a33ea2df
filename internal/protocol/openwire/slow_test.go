package openwire

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// TestSlowSubscriberIsTold wants the advisories of a slow subscriber with ActiveMQ's
// properties, and the limit that the consumer itself asked for.
func TestSlowSubscriberIsTold(t *testing.T) {
	t.Parallel()
	inBrokerHouse(t, func(o *broker.Options) {
		o.Policy = func(message.Destination) broker.Policy {
			return broker.Policy{Backlog: broker.Backlog{Limits: broker.ConstantLimit, Most: 5}, Advisories: broker.Advisories{Discarded: true, SlowConsumer: true}}
		}
	}, nil, func(h *house) {
		watcher := h.client()
		watcher.watch("MessageDiscarded.>", "SlowConsumer.>")
		p := h.client()
		p.do(&wire.ConsumerInfo{ConsumerID: p.consumerID(1), Destination: topicNamed("NEWS"), PrefetchSize: 1, MaximumPendingMessageLimit: 1})
		p.produce(1, 0)
		for n := range int64(4) {
			m := p.text(n+1, topicNamed("NEWS"), "x")
			m.Persistent = false
			p.do(m)
		}
		expectTold(t, watcher, "consumerId", "MessageDiscarded.Topic.NEWS: client:1:1:2 with 0 bytes, consumerId client:1:1",
			"SlowConsumer.Topic.NEWS: client:1:1 consumes topic://NEWS, consumerId client:1:1")
		expectTold(t, watcher, "discardedCount", "MessageDiscarded.Topic.NEWS: client:1:1:3 with 0 bytes, discardedCount 2")
		p.leave()
		watcher.leave()
	})
}

// TestSlowConsumerIsClosed: its client is asked to, and whatever it says of a consumer
// that was removed meanwhile is no error (R-BRK-40).
func TestSlowConsumerIsClosed(t *testing.T) {
	t.Parallel()
	inBrokerHouse(t, func(o *broker.Options) {
		o.Policy = func(message.Destination) broker.Policy { return broker.Policy{Slow: broker.Slow{For: time.Second}} }
	}, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		for n := range int64(3) {
			p.do(p.text(n+1, queueNamed("Q"), "x"))
		}
		p.consume(1, queueNamed("Q"), 1)
		d := p.dispatched()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if c, ok := p.take().(*wire.ConsumerControl); !ok || !c.Close || *c.ConsumerID != *p.consumerID(1) {
			t.Errorf("%+v", c)
		}
		time.Sleep(2 * time.Second) // it does not
		p.do(ack(d, wire.AckStandard))
		p.do(&wire.RemoveInfo{ObjectID: p.consumerID(1), LastDeliveredSequenceID: 1})
		p.consume(2, queueNamed("Q"), 10) // its session goes on
		for range 3 {
			p.dispatched()
		}
		p.do(&wire.RemoveInfo{ObjectID: p.consumerID(2)})
		p.fails(&wire.RemoveInfo{ObjectID: p.consumerID(1)}, classIllegalState, "is not open on this connection")
		p.leave()
	})
}

// TestQuietAdvisories tells of temporary destinations alone: without that a Java client
// does not answer to another's (advisorySupport="false").
func TestQuietAdvisories(t *testing.T) {
	t.Parallel()
	a, err := NewAdvisories("ID:b", "b", "tcp://b", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.Quiet()
	queue := message.Destination{Kind: message.Queue, Name: "Q"}
	temp := message.Destination{Kind: message.TempQueue, Name: "c:1"}
	for _, e := range []broker.Event{
		{Kind: broker.QueueAdded, Destination: queue}, {Kind: broker.ConsumerJoined, Destination: temp}, {Kind: broker.ClientJoined},
		{Kind: broker.Evicted, Destination: queue, Copy: &message.Message{}}, {Kind: broker.SlowConsumer, Destination: queue},
		{Kind: broker.TempAdded, Destination: temp}, {Kind: broker.TempRemoved, Destination: temp},
	} {
		a.Listen(e)
	}
	if got := a.take(true); len(got) != 2 || got[0].event.Kind != broker.TempAdded || got[1].event.Kind != broker.TempRemoved {
		t.Errorf("%+v", got)
	}
	b := &vanishing{lists: [][]broker.TempDestination{{{Destination: temp, Connection: "c"}}, {{Destination: temp, Connection: "c"}}}}
	a.welcome(t.Context(), b, b, broker.ConsumerSpec{ID: "k", Destination: message.Destination{Kind: message.Topic, Name: "ActiveMQ.Advisory.>"}})
	for _, m := range b.sent {
		if !strings.HasPrefix(m.Destination.Name, tempQueueAdvisory) {
			t.Errorf("%s", m.Destination)
		}
	}
	if len(b.sent) != 1 {
		t.Errorf("%d were offered", len(b.sent))
	}
}
