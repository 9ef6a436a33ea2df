package openwire

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// TestConnectionInfoRefused wants the exception, and the socket closed 2 s later
// (OpenWire 9.3, 14).
func TestConnectionInfoRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command wire.Command
		fail    error
		class   string
	}{
		"without client id": {
			command: &wire.ConnectionInfo{ConnectionID: &wire.ConnectionID{Value: "c"}},
			class:   classInvalidClientID,
		},
		"without connection id": {
			command: &wire.ConnectionInfo{ClientID: wire.NewText("x")},
			class:   classJMS,
		},
		"client id in use": {
			command: &wire.ConnectionInfo{ConnectionID: &wire.ConnectionID{Value: "c"}, ClientID: wire.NewText("x")},
			fail:    fmt.Errorf("client id x is in use: %w", message.ErrExists),
			class:   classInvalidClientID,
		},
		"denied": {
			command: &wire.ConnectionInfo{ConnectionID: &wire.ConnectionID{Value: "c"}, ClientID: wire.NewText("x")},
			fail:    fmt.Errorf("wrong password: %w", message.ErrDenied),
			class:   classSecurity,
		},
		"a broker": {
			command: &wire.BrokerInfo{BrokerName: wire.NewText("other")},
			class:   classJMS,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				s.failing("Connect", c.fail)
				p := h.peer(peerFormat())
				start := time.Now()
				p.fails(c.command, c.class, "")
				p.fails(&wire.ConsumerInfo{ConsumerID: p.consumerID(1)}, classIllegalState, "")
				<-p.ended
				if d := time.Since(start); d != refusalDelay {
					t.Errorf("closed after %v", d)
				}
				if !strings.Contains(h.log.String(), "connection refused") || !strings.Contains(h.log.String(), "addr=pipe") {
					t.Errorf("log:\n%s", h.log)
				}
			})
		})
	}
}

func TestRefusedClientThatClosesAtOnce(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, _ *script) {
		p := h.peer(peerFormat())
		start := time.Now()
		p.fails(&wire.ConnectionInfo{ConnectionID: p.connection()}, classInvalidClientID, "")
		p.hangUp()
		h.close()
		if d := time.Since(start); d != 0 {
			t.Errorf("gone after %v", d)
		}
	})
}

func TestConnectionInfo(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, s *script) {
		f := peerFormat()
		f.ProviderVersion = "5.16.7"
		p := h.peer(f)
		p.tell(&wire.ConnectionControl{FaultTolerant: true}) // OpenWire 13
		p.do(&wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("me"), UserName: wire.NewText("bob"), Manageable: true, FailoverReconnect: true})
		if diff := cmp.Diff([]string{"Connect(ID:peer-1, me, true, true)"}, s.took()); diff != "" {
			t.Error(diff)
		}
		if s.info.User != "bob" || s.info.Address != "pipe" || s.info.Protocol != "openwire" {
			t.Errorf("client info %+v", s.info)
		}
		control, ok := p.take().(*wire.ConnectionControl)
		if !ok || control.ConnectedBrokers != wire.NewText("") || control.ReconnectTo != wire.NewText("") || control.FaultTolerant {
			t.Errorf("after ConnectionInfo came %+v", control)
		}
		p.leave()
		want := []string{"Close(closed, connection closed, -2)"}
		if diff := cmp.Diff(want, s.took()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestConnectionEnds wants the broker told how a connection ended (OpenWire 9.3, 10.7).
func TestConnectionEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*peer)
		want string
	}{
		"closed": {
			end: func(p *peer) {
				p.do(&wire.RemoveInfo{ObjectID: p.connection(), LastDeliveredSequenceID: 42})
				p.tell(&wire.ShutdownInfo{})
			},
			want: "Close(closed, connection closed, 42)",
		},
		"shut down": {
			end:  func(p *peer) { p.tell(&wire.ShutdownInfo{}) },
			want: "Close(closed, connection closed, -2)",
		},
		"closed and hung up": {
			end: func(p *peer) {
				p.do(&wire.RemoveInfo{ObjectID: p.connection(), LastDeliveredSequenceID: 42})
				p.hangUp()
			},
			want: "Close(closed, connection closed, 42)",
		},
		"hung up": {
			end:  func(p *peer) { p.hangUp() },
			want: "Close(connection-lost, read: the client has hung up, -2)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				p := h.client()
				s.took()
				c.end(p)
				<-p.ended
				if diff := cmp.Diff([]string{c.want}, s.took()); diff != "" {
					t.Error(diff)
				}
				h.close()
				if got := h.log.String(); got != "" {
					t.Errorf("log: %s", got)
				}
				p.conn.Close()
			})
		})
	}
}

func TestBrokerStops(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, s *script) {
		p := h.client()
		s.took()
		h.stop()
		<-p.ended
		if diff := cmp.Diff([]string{"Close(broker-stopped, the broker stops, -2)"}, s.took()); diff != "" {
			t.Error(diff)
		}
		h.close()
		if got := h.log.String(); got != "" {
			t.Errorf("log: %s", got)
		}
	})
}

// TestTakeOver replays what a failover client sends when it comes back while its
// old socket still stands (OpenWire 13, R-CLIENT-61).
func TestTakeOver(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		old := h.client()
		old.produce(1, 0)
		old.consume(1, queueNamed("Q"), 10)
		old.do(old.text(1, queueNamed("Q"), "one"))
		old.dispatched()

		p := h.peer(peerFormat())
		p.id = old.id
		p.tell(&wire.ConnectionControl{FaultTolerant: true})
		p.do(&wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("client of " + p.id), FaultTolerant: true, FailoverReconnect: true})
		p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: -1}})
		p.tell(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
		p.produce(1, 0)
		p.do(p.text(1, queueNamed("Q"), "one")) // its answer was lost: not stored twice
		p.consume(1, queueNamed("Q"), 0)
		<-old.ended
		if got := p.all(); len(got) > 0 {
			t.Errorf("a consumer with prefetch 0 got %+v", got)
		}
		p.do(&wire.ConsumerControl{ConsumerID: p.consumerID(1), Destination: queueNamed("Q"), Prefetch: 10})
		d := p.dispatched()
		if body(t, d) != "one" || d.RedeliveryCounter == 0 {
			t.Errorf("dispatched %q with counter %d", body(t, d), d.RedeliveryCounter)
		}
		p.do(ack(d, wire.AckStandard))
		if got := p.all(); len(got) > 0 {
			t.Errorf("more was dispatched: %+v", got)
		}
		p.leave()
		old.conn.Close()
	})
}

func TestClientIDInUse(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		first := h.client()
		p := h.peer(peerFormat())
		p.fails(&wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("client of " + first.id)}, classInvalidClientID, "already in use")
		<-p.ended
		first.leave()
		second := h.peer(peerFormat())
		second.do(&wire.ConnectionInfo{ConnectionID: second.connection(), ClientID: wire.NewText("client of " + first.id)})
		second.leave()
	})
}

// TestSessionTakesItsOwnAlong wants producers and consumers of a removed session
// forgotten, and others kept.
func TestSessionTakesItsOwnAlong(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, s *script) {
		p := h.client()
		p.do(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 2}})
		p.produce(1, 0)
		p.consume(1, queueNamed("Q"), 1)
		other := &wire.ConsumerID{ConnectionID: p.id, SessionID: 2, Value: 1}
		p.do(&wire.ConsumerInfo{ConsumerID: other, Destination: queueNamed("Q")})
		p.do(&wire.RemoveInfo{ObjectID: &wire.SessionID{ConnectionID: p.id, Value: 1}})
		p.fails(&wire.RemoveInfo{ObjectID: p.consumerID(1)}, classIllegalState, "")
		p.fails(&wire.RemoveInfo{ObjectID: p.producerID(1)}, classIllegalState, "")
		p.do(&wire.RemoveInfo{ObjectID: other})
		p.hangUp()
		synctest.Wait()
	})
}

func TestQuietFirst(t *testing.T) { // R-CLIENT-43
	t.Parallel()
	for version, want := range map[string]bool{
		"ActiveMQ 5.15.16": true, "ActiveMQ 5.16.7": true, "ActiveMQ 5.17.2": true, "ActiveMQ 5.18.0": false, "ActiveMQ 5.19.1": false,
		"ActiveMQ 6.0.0-SNAPSHOT": false, "ActiveMQ 5.18-SNAPSHOT": false, "ActiveMQ 6.3.1": false, "ActiveMQ 4.1": true, "ActiveMQ ": true, " ": true,
		"Apache.NMS 2.0": true, wire.DefaultWireFormat().ProviderName + " 1": false,
	} {
		name, number, _ := strings.Cut(version, " ")
		if got := quietFirst(wire.WireFormat{ProviderName: name, ProviderVersion: number}); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

// TestObjectsAreBounded wants a connection refused more of a kind than it may have.
func TestObjectsAreBounded(t *testing.T) {
	t.Parallel()
	inScript(t, func(o *Options) { o.Limits.Objects = 3 }, func(h *house, _ *script) {
		p := h.client() // which has two sessions, its own and 1
		p.do(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 2}})
		p.do(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 2}})
		p.fails(&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 3}}, classResourceAllocation, "3 sessions")
		for n := range int64(3) {
			p.produce(n, 0)
			p.consume(n, queueNamed("Q"), 1)
			p.do(p.transaction(n, wire.TransactionBegin))
		}
		p.fails(&wire.ProducerInfo{ProducerID: p.producerID(4)}, classResourceAllocation, "3 producers")
		p.fails(&wire.ConsumerInfo{ConsumerID: p.consumerID(4), Destination: queueNamed("Q")}, classResourceAllocation, "3 consumers")
		p.fails(p.transaction(4, wire.TransactionBegin), classResourceAllocation, "3 transactions")
		p.do(&wire.RemoveInfo{ObjectID: p.consumerID(1)})
		p.consume(4, queueNamed("Q"), 1)
		p.hangUp()
	})
}

// TestConsumersAndProducersOfAConnectionAreBounded is what a transportConnector says, with
// the error that ActiveMQ gives. The consumer of advisories in the connection's own
// session does not count.
func TestConsumersAndProducersOfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	inScript(t, func(o *Options) { o.Limits.Consumers, o.Limits.Producers = 2, 1 }, func(h *house, _ *script) {
		p := h.client()
		own := p.consumerID(9)
		own.SessionID = connectionSession
		advisories := message.Destination{Kind: message.Topic, Name: "ActiveMQ.Advisory.TempQueue"}
		p.do(&wire.ConsumerInfo{ConsumerID: own, Destination: wire.NewDestination(advisories)})
		p.consume(1, queueNamed("Q"), 1)
		p.consume(2, queueNamed("Q"), 1)
		p.fails(&wire.ConsumerInfo{ConsumerID: p.consumerID(3), Destination: queueNamed("Q")}, classIllegalState, "maximumConsumersAllowedPerConnection")
		p.do(&wire.RemoveInfo{ObjectID: p.consumerID(1)})
		p.consume(3, queueNamed("Q"), 1)
		p.produce(1, 0)
		p.produce(1, 0) // once more
		p.fails(&wire.ProducerInfo{ProducerID: p.producerID(2)}, classIllegalState, "maximumProducersAllowedPerConnection")
		p.hangUp()
	})
}

// TestPrefetchIsBounded wants a consumer that asks for a larger window than there
// is to be told so, when it comes and when it changes.
func TestPrefetchIsBounded(t *testing.T) {
	t.Parallel()
	inScript(t, func(o *Options) { o.Limits.Prefetch = 100 }, func(h *house, s *script) {
		p := h.client()
		p.consume(1, queueNamed("Q"), 100)
		if got := p.take(); got != nil {
			t.Errorf("got %+v", got)
		}
		p.consume(2, queueNamed("Q"), 101)
		p.do(&wire.ConsumerControl{ConsumerID: p.consumerID(1), Prefetch: 1 << 30})
		for _, want := range []int64{2, 1} {
			c, ok := p.take().(*wire.ConsumerControl)
			if !ok || c.Prefetch != 100 || c.Close || c.ConsumerID.Value != want {
				t.Errorf("got %+v", c)
			}
		}
		calls := s.took()
		if last := calls[len(calls)-1]; last != "SetPrefetch(ID:peer-1:1:1, 100)" {
			t.Errorf("calls %q", calls)
		}
		p.hangUp()
	})
}
