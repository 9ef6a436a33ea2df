package selector

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

// full is a message with every field set.
var full = message.Message{
	ID:                  message.ID{Producer: "ID:host-1-2:1:1:1", Sequence: 7},
	Destination:         message.Destination{Kind: message.Queue, Name: "ActiveMQ.DLQ"},
	OriginalDestination: message.Destination{Kind: message.Topic, Name: "ORDERS"},
	ReplyTo:             message.Destination{Kind: message.TempQueue, Name: "ID:t"},
	Persistent:          true,
	Priority:            9,
	Expiration:          2000,
	Timestamp:           1000,
	BrokerInTime:        1001,
	CorrelationID:       "c",
	Type:                "t",
	GroupID:             "g",
	GroupSequence:       3,
	UserID:              "u",
	TransactionID:       "tx",
	Added:               map[string]any{"dlqDeliveryFailureCause": "why", "redeliveryDelay": int64(500), "flag": true, "odd": []byte("x"), "none": nil, "n": 4, "n32": int32(5), "f": 1.5},
}

func TestHeaderFields(t *testing.T) { // JMS 3.8.1.1; ActiveMQ's PropertyExpression
	t.Parallel()
	props := properties{"rank": IntValue(1), "redeliveryDelay": IntValue(9), "JMSXAppID": StringValue("app"), "JMSXUserID": StringValue("by property"), "JMSPriority": IntValue(1)}
	set := &MessageLookup{Message: &full, Properties: props.Lookup, RedeliveryCounter: 2}
	unset := &MessageLookup{Message: &message.Message{}, Properties: props.Lookup}
	bare := &MessageLookup{Message: &message.Message{}}
	for name, tt := range map[string]struct {
		lookup Lookup
		want   map[string]Value // NULL: not there
	}{
		"all set": {set, map[string]Value{
			"JMSDeliveryMode": StringValue("PERSISTENT"), "JMSPriority": IntValue(9), "JMSMessageID": StringValue("ID:host-1-2:1:1:1:7"),
			"JMSTimestamp": IntValue(1000), "JMSCorrelationID": StringValue("c"), "JMSType": StringValue("t"), "JMSRedelivered": BoolValue(true),
			"JMSXGroupID": StringValue("g"), "JMSXGroupSeq": IntValue(3), "JMSXDeliveryCount": IntValue(3), "JMSXUserID": StringValue("u"),
			"JMSDestination": StringValue("topic://ORDERS"), "JMSExpiration": IntValue(2000), "JMSReplyTo": StringValue("temp-queue://ID:t"),
			"JMSXProducerTXID": StringValue("tx"), "JMSActiveMQBrokerInTime": IntValue(1001),
			"rank": IntValue(1), "JMSXAppID": StringValue("app"), "absent": {}, "JMSAbsent": {}, "jmspriority": {},
			"dlqDeliveryFailureCause": StringValue("why"), "redeliveryDelay": IntValue(500), "flag": BoolValue(true), "odd": OpaqueValue(),
			"n": IntValue(4), "n32": IntValue(5), "f": FloatValue(1.5),
		}},
		"nothing set": {unset, map[string]Value{
			"JMSDeliveryMode": StringValue("NON_PERSISTENT"), "JMSPriority": IntValue(0), "JMSMessageID": {}, "JMSTimestamp": IntValue(0), "JMSCorrelationID": {},
			"JMSType": {}, "JMSRedelivered": BoolValue(false), "JMSXGroupID": {}, "JMSXGroupSeq": IntValue(0), "JMSXDeliveryCount": IntValue(1),
			"JMSXUserID": StringValue("by property"), "JMSDestination": {}, "JMSExpiration": IntValue(0), "JMSReplyTo": {}, "redeliveryDelay": IntValue(9),
		}},
		"no properties": {bare, map[string]Value{"rank": {}, "JMSXUserID": {}, "JMSPriority": IntValue(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, want := range tt.want {
				got, ok := tt.lookup.Lookup(name)
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(Value{})); diff != "" || ok != (want.Kind() != Null) {
					t.Errorf("%s, found %v (-want +got):\n%s", name, ok, diff)
				}
			}
		})
	}
	moved := full
	moved.OriginalDestination = message.Destination{}
	if got, _ := (&MessageLookup{Message: &moved}).Lookup("JMSDestination"); got != StringValue("queue://ActiveMQ.DLQ") {
		t.Errorf("JMSDestination of a message that was not moved is %v", got)
	}
}

func TestSelectByHeaderFields(t *testing.T) {
	t.Parallel()
	l := &MessageLookup{Message: &full, RedeliveryCounter: 1}
	for text, want := range map[string]bool{
		"JMSDeliveryMode = 'PERSISTENT' AND JMSPriority > 4":     true,
		"JMSDeliveryMode = 'NON_PERSISTENT'":                     false,
		"JMSRedelivered AND JMSXDeliveryCount = 2":               true,
		"JMSMessageID = 'ID:host-1-2:1:1:1:7'":                   true,
		"JMSMessageID LIKE 'ID:host-%' AND JMSXGroupSeq = 3":     true,
		"JMSDestination = 'topic://ORDERS'":                      true,
		"dlqDeliveryFailureCause LIKE 'w%' AND none IS NULL":     true,
		"JMSExpiration - JMSTimestamp = 1000 AND JMSType <> 'x'": true,
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Matches(l); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestHeaderLookupAllocatesNothing(t *testing.T) {
	s, err := Parse("JMSType = 't' AND JMSPriority BETWEEN 4 AND 9 AND JMSRedelivered AND JMSXGroupID IN ('f', 'g') AND redeliveryDelay > 100")
	if err != nil {
		t.Fatal(err)
	}
	l := &MessageLookup{Message: &full, RedeliveryCounter: 1}
	if n := testing.AllocsPerRun(100, func() { s.Matches(l) }); n != 0 || !s.Matches(l) {
		t.Errorf("%v allocations and %v, want none and a match", n, s.Matches(l))
	}
}

func BenchmarkMatches(b *testing.B) {
	for name, text := range map[string]string{
		"one header":   "JMSType = 't'",
		"one property": "redeliveryDelay > 100",
		"typical":      "JMSType = 't' AND (JMSPriority > 4 OR redeliveryDelay BETWEEN 1 AND 1000) AND dlqDeliveryFailureCause LIKE '%hy%'",
	} {
		b.Run(name, func(b *testing.B) {
			s, err := Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			l := &MessageLookup{Message: &full, RedeliveryCounter: 1}
			b.ReportAllocs()
			for b.Loop() {
				if !s.Matches(l) {
					b.Fatal("no match")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("JMSType = 't' AND (JMSPriority > 4 OR redeliveryDelay BETWEEN 1 AND 1000) AND cause LIKE '%hy%'"); err != nil {
			b.Fatal(err)
		}
	}
}
