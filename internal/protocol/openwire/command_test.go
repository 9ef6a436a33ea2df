package openwire

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

var errDisk = errors.New("the disk is gone")

// A command is a row of the table of OpenWire 9.3: what a connected client sends,
// what the broker is asked, and what the client is answered.
var commands = map[string]struct {
	command func(p *peer) wire.Command
	fail    map[string]error // what the broker answers
	calls   []string
	class   string // of the exception; "" for a Response
	text    string
}{
	"session": {
		command: func(p *peer) wire.Command {
			return &wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: p.id, Value: 2}}
		},
	},
	"producer": {
		command: func(p *peer) wire.Command { return &wire.ProducerInfo{ProducerID: p.producerID(7)} },
	},
	"producer of an unknown session": {
		command: func(p *peer) wire.Command {
			return &wire.ProducerInfo{ProducerID: &wire.ProducerID{ConnectionID: p.id, SessionID: 99, Value: 1}}
		},
		class: classIllegalState, text: "session ID:peer-1:99 is not open",
	},
	"producer without id": {
		command: func(*peer) wire.Command { return &wire.ProducerInfo{} },
		class:   classJMS,
	},
	"consumer": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: p.consumerID(9), Destination: queueNamed(" A , B ?consumer.prefetchSize=1"), PrefetchSize: 5,
				Selector: wire.NewText("a = 1"), Exclusive: true, Priority: 3, NoLocal: true, Browser: true, SubscriptionName: wire.NewText("ignored")}
		},
		calls: []string{"Subscribe({ID:ID:peer-1:1:9 Session:ID:peer-1:1 Destination:queue://A , B Prefetch:5 Selector:a = 1 NoLocal:true Browser:true Exclusive:true Priority:3 MostWaiting:0 Retroactive:false Subscription:})"},
	},
	"durable consumer": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: p.consumerID(9), Destination: topicNamed("T"), PrefetchSize: -1, SubscriptionName: wire.NewText("s")}
		},
		calls: []string{"Subscribe({ID:ID:peer-1:1:9 Session:ID:peer-1:1 Destination:topic://T Prefetch:0 Selector: NoLocal:false Browser:false Exclusive:false Priority:0 MostWaiting:0 Retroactive:false Subscription:s})"},
	},
	"durable consumer in use": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: p.consumerID(9), Destination: topicNamed("T"), SubscriptionName: wire.NewText("s")}
		},
		fail:  map[string]error{"Subscribe": fmt.Errorf("durable subscription s is in use: %w", message.ErrState)},
		calls: []string{"Subscribe({ID:ID:peer-1:1:9 Session:ID:peer-1:1 Destination:topic://T Prefetch:0 Selector: NoLocal:false Browser:false Exclusive:false Priority:0 MostWaiting:0 Retroactive:false Subscription:s})"},
		class: classJMS, text: "in use",
	},
	"consumer with a bad selector": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: p.consumerID(9), Destination: queueNamed("A"), Selector: wire.NewText("a =")}
		},
		fail:  map[string]error{"Subscribe": fmt.Errorf("selector ends early: %w", message.ErrInvalid)},
		calls: []string{"Subscribe({ID:ID:peer-1:1:9 Session:ID:peer-1:1 Destination:queue://A Prefetch:0 Selector:a = NoLocal:false Browser:false Exclusive:false Priority:0 MostWaiting:0 Retroactive:false Subscription:})"},
		class: classInvalidSelector, text: "selector ends early",
	},
	"consumer with a selector of what cannot be consumed": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: p.consumerID(9), Destination: topicNamed("T"), Selector: wire.NewText("a = 1"), SubscriptionName: wire.NewText("s")}
		},
		fail:  map[string]error{"Subscribe": fmt.Errorf("the topic is temporary: %w", message.ErrInvalid)},
		calls: []string{"Subscribe({ID:ID:peer-1:1:9 Session:ID:peer-1:1 Destination:topic://T Prefetch:0 Selector:a = 1 NoLocal:false Browser:false Exclusive:false Priority:0 MostWaiting:0 Retroactive:false Subscription:s})"},
		class: classInvalidDestination, text: "temporary",
	},
	"consumer of nothing": {
		command: func(p *peer) wire.Command { return &wire.ConsumerInfo{ConsumerID: p.consumerID(9)} },
		class:   classInvalidDestination,
	},
	"consumer of an unknown session": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: &wire.ConsumerID{ConnectionID: p.id, SessionID: 99, Value: 1}, Destination: queueNamed("A")}
		},
		class: classIllegalState,
	},
	"consumer that is known": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: p.consumerID(1), Destination: queueNamed("ELSEWHERE")}
		},
	},
	"consumer of the connection's own session": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerInfo{ConsumerID: &wire.ConsumerID{ConnectionID: p.id, SessionID: -1, Value: 1}, Destination: topicNamed("T")}
		},
		calls: []string{"Subscribe({ID:ID:peer-1:-1:1 Session:ID:peer-1:-1 Destination:topic://T Prefetch:0 Selector: NoLocal:false Browser:false Exclusive:false Priority:0 MostWaiting:0 Retroactive:false Subscription:})"},
	},
	"prefetch": {
		command: func(p *peer) wire.Command {
			return &wire.ConsumerControl{ConsumerID: p.consumerID(1), Destination: queueNamed("Q"), Prefetch: 77}
		},
		calls: []string{"SetPrefetch(ID:peer-1:1:1, 77)"},
	},
	"prefetch of an unknown consumer": {
		command: func(p *peer) wire.Command { return &wire.ConsumerControl{ConsumerID: p.consumerID(99), Prefetch: 77} },
	},
	"message": {
		command: func(p *peer) wire.Command { return p.text(5, queueNamed("Q"), "hello") },
		calls:   []string{"Send(ID:peer-1:1:1:5, queue://Q, )"},
	},
	"message of a producer that is closed": { // failover: with trackMessages sends what it has kept
		command: func(p *peer) wire.Command {
			m := p.text(5, queueNamed("Q"), "hello")
			m.ProducerID = p.producerID(99)
			m.MessageID.ProducerID = m.ProducerID
			return m
		},
		calls: []string{"Send(ID:peer-1:1:99:5, queue://Q, )"},
	},
	"message of another client's producer": {
		command: func(p *peer) wire.Command {
			m := p.text(5, queueNamed("Q"), "hello")
			m.ProducerID = &wire.ProducerID{ConnectionID: "ID:stranger", SessionID: 1, Value: 1}
			return m
		},
		class: classJMS, text: "its producer is not one of this connection",
	},
	"message without destination": {
		command: func(p *peer) wire.Command { return p.text(5, nil, "hello") },
		class:   classInvalidDestination,
	},
	"message to an empty name": {
		command: func(p *peer) wire.Command { return p.text(5, queueNamed(" ?a=b"), "hello") },
		class:   classInvalidDestination,
	},
	"message without id": {
		command: func(p *peer) wire.Command {
			m := p.text(5, queueNamed("Q"), "hello")
			m.MessageID = nil
			return m
		},
		class: classJMS,
	},
	"message to a temporary destination that is gone": {
		command: func(p *peer) wire.Command {
			return p.text(5, &wire.Destination{Kind: wire.CodeActiveMQTempQueue, PhysicalName: "ID:x:1"}, "hello")
		},
		fail:  map[string]error{"Send": fmt.Errorf("temp-queue://ID:x:1: %w", message.ErrNotFound)},
		calls: []string{"Send(ID:peer-1:1:1:5, temp-queue://ID:x:1, )"},
		class: classNoDestination,
	},
	"message when the disk is full": {
		command: func(p *peer) wire.Command { return p.text(5, queueNamed("Q"), "hello") },
		fail:    map[string]error{"Send": fmt.Errorf("disk: %w", message.ErrOverLimit)},
		calls:   []string{"Send(ID:peer-1:1:1:5, queue://Q, )"},
		class:   classResourceAllocation,
	},
	"message when the store fails": {
		command: func(p *peer) wire.Command { return p.text(5, queueNamed("Q"), "hello") },
		fail:    map[string]error{"Send": errDisk},
		calls:   []string{"Send(ID:peer-1:1:1:5, queue://Q, )"},
		class:   classJMS, text: errDisk.Error(),
	},
	"message of an unknown transaction": {
		command: func(p *peer) wire.Command {
			m := p.text(5, queueNamed("Q"), "hello")
			m.TransactionID = p.txID(3)
			return m
		},
		class: classJMS, text: "Transaction 'TX:ID:peer-1:3' has not been started.",
	},
	"acknowledgement": {
		command: func(p *peer) wire.Command {
			return &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(1), AckType: wire.AckStandard, MessageCount: 2,
				FirstMessageID: &wire.MessageID{ProducerID: p.producerID(1), ProducerSequenceID: 1, BrokerSequenceID: 11},
				LastMessageID:  &wire.MessageID{ProducerID: p.producerID(1), ProducerSequenceID: 2, BrokerSequenceID: 12}}
		},
		calls: []string{"Ack(ID:peer-1:1:1, queue://Q, 2, first 11 ID:peer-1:1:1:1, last 12 ID:peer-1:1:1:2, 2, tx , )"},
	},
	"poison acknowledgement": {
		command: func(p *peer) wire.Command {
			return &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(1), AckType: wire.AckPoison, MessageCount: 1,
				LastMessageID: &wire.MessageID{ProducerID: p.producerID(1), ProducerSequenceID: 2, BrokerSequenceID: 12},
				PoisonCause:   wire.NewThrowable("java.lang.Throwable", "Delivery[7] exceeds")}
		},
		calls: []string{"Ack(ID:peer-1:1:1, queue://Q, 1, first 0 :0, last 12 ID:peer-1:1:1:2, 1, tx , java.lang.Throwable: Delivery[7] exceeds)"},
	},
	"acknowledgement of a message it does not have": {
		command: func(p *peer) wire.Command {
			return &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(1), AckType: wire.AckStandard}
		},
		fail:  map[string]error{"Ack": fmt.Errorf("unmatched acknowledge: %w", message.ErrInvalid)},
		calls: []string{"Ack(ID:peer-1:1:1, queue://Q, 2, first 0 :0, last 0 :0, 0, tx , )"},
		class: classJMS, text: "unmatched acknowledge",
	},
	"acknowledgement of an unknown consumer": {
		command: func(p *peer) wire.Command {
			return &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(99), AckType: wire.AckIndividual}
		},
		calls: []string{"Ack(ID:peer-1:1:99, queue://Q, 4, first 0 :0, last 0 :0, 0, tx , )"},
	},
	"acknowledgement of no known type": {
		command: func(p *peer) wire.Command { return &wire.MessageAck{ConsumerID: p.consumerID(1), AckType: 7} },
		class:   classJMS,
	},
	"acknowledgement in an unknown transaction": {
		command: func(p *peer) wire.Command {
			return &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(1), AckType: wire.AckStandard, TransactionID: p.txID(9)}
		},
		class: classJMS, text: "Transaction 'TX:ID:peer-1:9' has not been started.",
	},
	"delivered acknowledgement is never transactional": {
		command: func(p *peer) wire.Command {
			return &wire.MessageAck{Destination: queueNamed("Q"), ConsumerID: p.consumerID(1), AckType: wire.AckDelivered, TransactionID: p.txID(9), MessageCount: 5}
		},
		calls: []string{"Ack(ID:peer-1:1:1, queue://Q, 0, first 0 :0, last 0 :0, 5, tx , )"},
	},
	"pull": {
		command: func(p *peer) wire.Command { return &wire.MessagePull{ConsumerID: p.consumerID(1), Timeout: 1500} },
		calls:   []string{"Pull(ID:peer-1:1:1, 1.5s)"},
	},
	"pull for ever": {
		command: func(p *peer) wire.Command { return &wire.MessagePull{ConsumerID: p.consumerID(1)} },
		calls:   []string{"Pull(ID:peer-1:1:1, 0s)"},
	},
	"pull without wait": {
		command: func(p *peer) wire.Command { return &wire.MessagePull{ConsumerID: p.consumerID(1), Timeout: -1} },
		calls:   []string{"Pull(ID:peer-1:1:1, -1ns)"},
	},
	"pull of an unknown consumer": {
		command: func(p *peer) wire.Command { return &wire.MessagePull{ConsumerID: p.consumerID(99)} },
		class:   classIllegalArgument,
	},
	"unknown transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: p.txID(8), Type: wire.TransactionCommitOnePhase}
		},
		class: classJMS, text: "Transaction 'TX:ID:peer-1:8' has not been started.",
	},
	"rollback of an unknown transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: p.txID(8), Type: wire.TransactionRollback}
		},
		class: classJMS, text: "Transaction 'TX:ID:peer-1:8' has not been started.",
	},
	"prepare of a local transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: p.txID(8), Type: wire.TransactionPrepare}
		},
		class: classJMS,
	},
	"unknown demand of a transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: p.txID(8), Type: 99}
		},
		class: classIO,
	},
	"transaction without id": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), Type: wire.TransactionBegin}
		},
		class: classJMS,
	},
	"begin of a distributed transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: wire.TransactionBegin}
		},
		calls: []string{"BeginXA(XID:[1,globalId=01,branchId=02], false)"},
	},
	"rollback of a distributed transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: wire.TransactionRollback}
		},
		calls: []string{"RollbackXA(XID:[1,globalId=01,branchId=02])"},
	},
	"commit of a distributed transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: wire.TransactionCommitTwoPhase}
		},
		calls: []string{"CommitXA(XID:[1,globalId=01,branchId=02], false)"},
	},
	"one-phase commit of a distributed transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: wire.TransactionCommitOnePhase}
		},
		calls: []string{"CommitXA(XID:[1,globalId=01,branchId=02], true)"},
	},
	"forget of a distributed transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: wire.TransactionForget}
		},
		calls: []string{"ForgetXA(XID:[1,globalId=01,branchId=02])"},
	},
	"end of a distributed transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: wire.TransactionEnd}
		},
		calls: nil,
	},
	"commit of an unknown distributed transaction": {
		command: func(p *peer) wire.Command {
			return &wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: xid(), Type: wire.TransactionCommitTwoPhase}
		},
		fail:  map[string]error{"CommitXA": fmt.Errorf("transaction has not been started: %w", message.ErrNotFound)},
		calls: []string{"CommitXA(XID:[1,globalId=01,branchId=02], false)"},
		class: classXA, text: "has not been started: not found xaErrorCode:-4",
	},
	"message of a distributed transaction": {
		command: func(p *peer) wire.Command {
			m := p.text(5, queueNamed("Q"), "hello")
			m.TransactionID = xid()
			return m
		},
		class: classXA, text: "has not been started. xaErrorCode:-4",
	},
	"destination": {
		command: func(p *peer) wire.Command {
			return &wire.DestinationInfo{ConnectionID: p.connection(), Destination: queueNamed("NEW")}
		},
		calls: []string{"AddDestination(queue://NEW)"},
	},
	"remove of a destination in use": {
		command: func(p *peer) wire.Command {
			return &wire.DestinationInfo{ConnectionID: p.connection(), Destination: queueNamed("NEW"), OperationType: wire.DestinationRemove}
		},
		fail:  map[string]error{"RemoveDestination": fmt.Errorf("queue://NEW has consumers: %w", message.ErrState)},
		calls: []string{"RemoveDestination(queue://NEW)"},
		class: classJMS, text: "has consumers",
	},
	"destination with an unknown operation": {
		command: func(p *peer) wire.Command {
			return &wire.DestinationInfo{ConnectionID: p.connection(), Destination: queueNamed("NEW"), OperationType: 5}
		},
		class: classJMS,
	},
	"no destination": {
		command: func(p *peer) wire.Command { return &wire.DestinationInfo{ConnectionID: p.connection()} },
		class:   classInvalidDestination,
	},
	"unsubscribe": {
		command: func(p *peer) wire.Command {
			return &wire.RemoveSubscriptionInfo{ConnectionID: p.connection(), SubscriptionName: wire.NewText("s"), ClientID: wire.NewText("someone else")}
		},
		calls: []string{"Unsubscribe(s)"},
	},
	"unsubscribe in use": {
		command: func(p *peer) wire.Command { return &wire.RemoveSubscriptionInfo{SubscriptionName: wire.NewText("s")} },
		fail:    map[string]error{"Unsubscribe": fmt.Errorf("s is in use: %w", message.ErrState)},
		calls:   []string{"Unsubscribe(s)"},
		class:   classJMS,
	},
	"unsubscribe of nothing": {
		command: func(p *peer) wire.Command { return &wire.RemoveSubscriptionInfo{SubscriptionName: wire.NewText("s")} },
		fail:    map[string]error{"Unsubscribe": fmt.Errorf("s: %w", message.ErrNotFound)},
		calls:   []string{"Unsubscribe(s)"},
		class:   classInvalidDestination,
	},
	"remove of a consumer": {
		command: func(p *peer) wire.Command {
			return &wire.RemoveInfo{ObjectID: p.consumerID(1), LastDeliveredSequenceID: 17}
		},
		calls: []string{"CloseConsumer(ID:peer-1:1:1, 17)"},
	},
	"remove of an unknown consumer": {
		command: func(p *peer) wire.Command { return &wire.RemoveInfo{ObjectID: p.consumerID(99)} },
		class:   classIllegalState,
	},
	"remove of a producer": {
		command: func(p *peer) wire.Command { return &wire.RemoveInfo{ObjectID: p.producerID(1)} },
		calls:   []string{"CloseProducer(ID:peer-1:1:1)"},
	},
	"remove of an unknown producer": {
		command: func(p *peer) wire.Command { return &wire.RemoveInfo{ObjectID: p.producerID(99)} },
		class:   classIllegalState,
	},
	"remove of a session": {
		command: func(p *peer) wire.Command {
			return &wire.RemoveInfo{ObjectID: &wire.SessionID{ConnectionID: p.id, Value: 1}, LastDeliveredSequenceID: -1}
		},
		calls: []string{"CloseProducer(ID:peer-1:1:1)", "CloseSession(ID:peer-1:1, -1)"},
	},
	"remove of an unknown session": {
		command: func(p *peer) wire.Command {
			return &wire.RemoveInfo{ObjectID: &wire.SessionID{ConnectionID: p.id, Value: 99}}
		},
		class: classIllegalState,
	},
	"remove of an unknown connection": {
		command: func(*peer) wire.Command { return &wire.RemoveInfo{ObjectID: &wire.ConnectionID{Value: "ID:nobody"}} },
	},
	"remove of something else": {
		command: func(*peer) wire.Command { return &wire.RemoveInfo{ObjectID: queueNamed("Q")} },
		class:   classJMS,
	},
	"second ConnectionInfo": {
		command: func(p *peer) wire.Command {
			return &wire.ConnectionInfo{ConnectionID: p.connection(), ClientID: wire.NewText("x")}
		},
	},
	"ConnectionInfo of another connection": {
		command: func(*peer) wire.Command {
			return &wire.ConnectionInfo{ConnectionID: &wire.ConnectionID{Value: "ID:other"}, ClientID: wire.NewText("x")}
		},
		class: classIllegalState,
	},
	"ConnectionControl": {command: func(*peer) wire.Command { return &wire.ConnectionControl{FaultTolerant: true} }},
	"FlushCommand":      {command: func(*peer) wire.Command { return &wire.FlushCommand{} }},
	"ControlCommand":    {command: func(*peer) wire.Command { return &wire.ControlCommand{Command: wire.NewText("shutdown")} }},
	"ConnectionError":   {command: func(*peer) wire.Command { return &wire.ConnectionError{} }},
	"ProducerAck":       {command: func(*peer) wire.Command { return &wire.ProducerAck{} }},
	"MessageDispatch":   {command: func(*peer) wire.Command { return &wire.MessageDispatch{} }},
	"notification":      {command: func(*peer) wire.Command { return &wire.MessageDispatchNotification{} }},
	"ReplayCommand":     {command: func(*peer) wire.Command { return &wire.ReplayCommand{} }},
}

func xid() *wire.XATransactionID {
	return &wire.XATransactionID{FormatID: 1, GlobalTransactionID: []byte{1}, BranchQualifier: []byte{2}}
}

func TestCommands(t *testing.T) { // OpenWire 9.3, 14
	t.Parallel()
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				p := h.client()
				p.produce(1, 0)
				p.consume(1, queueNamed("Q"), 1)
				s.took()
				for method, err := range c.fail {
					s.failing(method, err)
				}
				if c.class == "" {
					p.do(c.command(p))
				} else {
					p.fails(c.command(p), c.class, c.text)
				}
				if diff := cmp.Diff(c.calls, s.took()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				p.hangUp()
			})
		})
	}
}

// TestCommandsNobodyWaitsFor wants a ConnectionError where the same command fails
// and no answer was asked for, nothing where it does not, and a connection that
// lives on (OpenWire 9.1, 14).
func TestCommandsNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				p := h.client()
				p.produce(1, 0)
				p.consume(1, queueNamed("Q"), 1)
				for method, err := range c.fail {
					s.failing(method, err)
				}
				p.tell(c.command(p))
				got := p.all()
				switch {
				case c.class == "" && len(got) > 0:
					t.Errorf("got %+v, want nothing", got)
				case c.class != "":
					if e, ok := got[0].(*wire.ConnectionError); !ok || e.Exception.Class != c.class || len(got) > 1 {
						t.Errorf("got %T %+v, want one ConnectionError with %s", got[0], got, c.class)
					}
				}
				p.do(&wire.FlushCommand{})
				p.hangUp()
			})
		})
	}
}

// TestCommandsBeforeConnectionInfo wants refusals and no calls, but SessionInfo
// and ConnectionControl are answered (OpenWire 13, 14).
func TestCommandsBeforeConnectionInfo(t *testing.T) {
	t.Parallel()
	answered := map[string]bool{"session": true, "prefetch": true, "prefetch of an unknown consumer": true, "remove of an unknown connection": true}
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, s *script) {
				p := h.peer(peerFormat())
				command := c.command(p)
				if _, ok := command.(*wire.ConnectionInfo); ok {
					p.hangUp()
					return
				}
				got := p.ask(command)
				_, ok := got.(*wire.Response)
				if want := answered[name] || len(c.calls) == 0 && c.class == "" && !needsConnection(command); ok != want {
					t.Errorf("answered with %T", got)
				}
				if got == nil {
					t.Error("no answer")
				}
				if calls := s.took(); len(calls) > 0 {
					t.Errorf("calls: %v", calls)
				}
				p.hangUp()
			})
		})
	}
}

func needsConnection(c wire.Command) bool {
	switch c.(type) {
	case *wire.ProducerInfo, *wire.ConsumerInfo, *wire.Message, *wire.MessageAck, *wire.MessagePull, *wire.TransactionInfo, *wire.RemoveSubscriptionInfo, *wire.DestinationInfo:
		return true
	}
	return false
}

// TestCommandsWithoutAnswer wants no answer even where one is asked for (OpenWire 9.3).
func TestCommandsWithoutAnswer(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, _ *script) {
		p := h.client()
		for _, c := range []wire.Command{&wire.Response{}, &wire.ExceptionResponse{}, &wire.DataResponse{}, &wire.DataArrayResponse{Data: []wire.DataStructure{}}, &wire.IntegerResponse{}} {
			if got := p.ask(c); got != nil {
				t.Errorf("%T was answered with %T", c, got)
			}
		}
		p.send(nil)
		if got := p.all(); len(got) > 0 {
			t.Errorf("got %+v", got)
		}
		got := p.ask(&wire.KeepAliveInfo{})
		if echo, ok := p.take().(*wire.KeepAliveInfo); got != nil || !ok || echo.ResponseRequired || echo.CommandID != 0 {
			t.Errorf("the keep-alive was answered with %T, and echoed %v", got, ok)
		}
		p.hangUp()
	})
}

func TestRecoverIsAnEmptyArray(t *testing.T) { // OpenWire 11, 17.14
	t.Parallel()
	inScript(t, nil, func(h *house, _ *script) {
		p := h.client()
		got, ok := p.ask(&wire.TransactionInfo{ConnectionID: p.connection(), Type: wire.TransactionRecover}).(*wire.DataArrayResponse)
		if !ok || got.Data == nil || len(got.Data) != 0 {
			t.Errorf("RECOVER was answered with %+v", got)
		}
		p.hangUp()
	})
}
