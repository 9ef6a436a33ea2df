package openwire

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

func tempQueue(p *peer, n int) *wire.Destination {
	return &wire.Destination{Kind: wire.CodeActiveMQTempQueue, PhysicalName: fmt.Sprintf("%s:%d", p.id, n)}
}

// tempWatch is the consumer that Java clients open first (OpenWire 9.2).
func tempWatch(p *peer) *wire.ConsumerInfo {
	return &wire.ConsumerInfo{ConsumerID: &wire.ConsumerID{ConnectionID: p.id, SessionID: -1, Value: 1},
		Destination: topicNamed("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"), PrefetchSize: 1000, NoLocal: true, DispatchAsync: true}
}

func (p *peer) watchTemps() {
	p.t.Helper()
	p.do(tempWatch(p))
}

// advisory takes the next thing received, which must be an advisory of a
// temporary destination.
func (p *peer) advisory() *wire.DestinationInfo {
	p.t.Helper()
	d := p.dispatched()
	m := d.Message
	if m.Kind != message.PlainBody || m.Type.Value != "Advisory" || m.Persistent || m.Priority != 0 || m.Timestamp != 0 || m.Content != nil {
		p.t.Errorf("advisory %+v", m)
	}
	if v, ok, err := wire.LookupProperty(m.MarshalledProperties, "originBrokerName"); !ok || err != nil || v != "localhost" {
		p.t.Errorf("originBrokerName %v, %v", v, err)
	}
	info, ok := m.DataStructure.(*wire.DestinationInfo)
	if !ok {
		p.t.Fatalf("the advisory is about a %T", m.DataStructure)
	}
	return info
}

// TestTempDestinationsAreAdvertised wants every client to know of a temporary
// destination before the one that made it is answered, and of its end (OpenWire 12).
func TestTempDestinationsAreAdvertised(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		owner, other := h.client(), h.client()
		owner.watchTemps()
		other.watchTemps()
		to := tempQueue(owner, 1)
		owner.next++
		add := &wire.DestinationInfo{BaseCommand: wire.BaseCommand{CommandID: owner.next, ResponseRequired: true}, ConnectionID: owner.connection(), Destination: to}
		owner.send(add)
		// the owner gets its own advisory, and gets it before the answer
		if info := owner.advisory(); *info.Destination != *to || info.OperationType != wire.DestinationAdd || info.ConnectionID.Value != owner.id {
			t.Errorf("the owner got %+v", info)
		}
		if r, ok := owner.take().(*wire.Response); !ok || r.CorrelationID != add.CommandID {
			t.Errorf("then came %+v", r)
		}
		if info := other.advisory(); *info.Destination != *to || info.OperationType != wire.DestinationAdd {
			t.Errorf("the other got %+v", info)
		}

		late := h.client()
		late.watchTemps()
		if info := late.advisory(); *info.Destination != *to || info.OperationType != wire.DestinationAdd {
			t.Errorf("a late one got %+v", info)
		}

		owner.do(&wire.DestinationInfo{ConnectionID: owner.connection(), Destination: to, OperationType: wire.DestinationRemove})
		for _, p := range []*peer{owner, other, late} {
			if info := p.advisory(); *info.Destination != *to || info.OperationType != wire.DestinationRemove {
				t.Errorf("%s got %+v", p.id, info)
			}
		}
		// a connection that is lost takes its temporary destinations along
		topic := &wire.Destination{Kind: wire.CodeActiveMQTempTopic, PhysicalName: owner.id + ":2"}
		owner.do(&wire.DestinationInfo{ConnectionID: owner.connection(), Destination: topic})
		owner.hangUp()
		for _, p := range []*peer{other, late} {
			for _, want := range []wire.DestinationOperation{wire.DestinationAdd, wire.DestinationRemove} {
				if info := p.advisory(); *info.Destination != *topic || info.OperationType != want {
					t.Errorf("%s got %+v, want %v", p.id, info, want)
				}
			}
		}
		other.leave()
		late.leave()
	})
}

// TestWelcomeBeforeTheAnswer wants a client that has just connected to know of every
// temporary destination when its consumer of advisories is answered: it may be there to
// send one reply, and refuses to send it to a destination that it does not know.
func TestWelcomeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		owner := h.client()
		for n := range 3 {
			owner.do(&wire.DestinationInfo{ConnectionID: owner.connection(), Destination: tempQueue(owner, n)})
		}
		late := h.client() // with a window that is too small for all
		late.next++
		watch := tempWatch(late)
		watch.PrefetchSize = 2
		watch.BaseCommand = wire.BaseCommand{CommandID: late.next, ResponseRequired: true}
		late.send(watch)
		for n := range 3 {
			if info := late.advisory(); *info.Destination != *tempQueue(owner, n) {
				t.Errorf("advisory %d: %+v", n, info)
			}
		}
		if r, ok := late.take().(*wire.Response); !ok || r.CorrelationID != watch.CommandID {
			t.Errorf("then came %+v", r)
		}
		late.do(tempWatch(late)) // a replay
	})
}

// TestRequestReply is a request with an answer to a temporary queue, over two
// connections.
func TestRequestReply(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		asking, answering := h.client(), h.client()
		answering.watchTemps()
		answering.consume(1, queueNamed("REQUESTS"), 10)
		reply := tempQueue(asking, 1)
		asking.do(&wire.DestinationInfo{ConnectionID: asking.connection(), Destination: reply})
		asking.consume(1, reply, 10)
		asking.produce(1, 0)
		request := asking.text(1, queueNamed("REQUESTS"), "ping")
		request.ReplyTo, request.Persistent = reply, false
		asking.tell(request)
		if info := answering.advisory(); *info.Destination != *reply {
			t.Errorf("advisory %+v", info)
		}
		d := answering.dispatched()
		if *d.Message.ReplyTo != *reply {
			t.Errorf("reply to %v", d.Message.ReplyTo)
		}
		answering.produce(1, 0)
		answering.do(answering.text(1, d.Message.ReplyTo, "pong"))
		if got := asking.dispatched(); body(t, got) != "pong" || *got.Destination != *reply {
			t.Errorf("answer %+v", got)
		}
		asking.leave()
		answering.fails(answering.text(2, reply, "too late"), classNoDestination, "")
		answering.leave()
	})
}

// TestWelcomeTakesBack wants a temporary destination taken back that goes while a
// new consumer is told of it.
func TestWelcomeTakesBack(t *testing.T) {
	t.Parallel()
	a, err := NewAdvisories("ID:b", "b", "tcp://b", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	stays := broker.TempDestination{Destination: message.Destination{Kind: message.TempQueue, Name: "c:1"}, Connection: "c"}
	goes := broker.TempDestination{Destination: message.Destination{Kind: message.TempQueue, Name: "c:2"}, Connection: "c"}
	topic := broker.TempDestination{Destination: message.Destination{Kind: message.TempTopic, Name: "c:3"}, Connection: "c"}
	b := &vanishing{lists: [][]broker.TempDestination{{goes, stays, topic}, {stays, topic}}}
	a.welcome(t.Context(), b, b, broker.ConsumerSpec{ID: "k", Destination: message.Destination{Kind: message.Topic, Name: "ActiveMQ.Advisory.TempQueue"}})
	var got []string
	for _, m := range b.sent {
		extra, err := decodeExtra(m.Extra)
		if err != nil {
			t.Fatal(err)
		}
		info := extra.DataStructure.(*wire.DestinationInfo)
		got = append(got, fmt.Sprintf("%v %v", info.OperationType, info.Destination))
	}
	want := []string{"ADD temp-queue://c:2", "ADD temp-queue://c:1", "REMOVE temp-queue://c:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A vanishing is a broker whose temporary destinations change between two looks.
type vanishing struct {
	script
	lists [][]broker.TempDestination
}

func (v *vanishing) TempDestinations() []broker.TempDestination {
	first := v.lists[0]
	v.lists = v.lists[1:]
	return first
}

// TestNoAdvisories serves without them.
func TestNoAdvisories(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, _ *script) {
		p := h.client()
		p.do(&wire.DestinationInfo{ConnectionID: p.connection(), Destination: tempQueue(p, 1)})
		p.watchTemps()
		p.hangUp()
	})
}
