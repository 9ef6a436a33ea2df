package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
)

// TestIDTexts checks the text forms (OpenWire 8.1).
func TestIDTexts(t *testing.T) {
	t.Parallel()
	producer := &ProducerID{ConnectionID: "ID:h-1-2-0:1", SessionID: 3, Value: 7}
	tests := map[string]interface{ String() string }{
		"ID:h-1-2-0:1":        &ConnectionID{Value: "ID:h-1-2-0:1"},
		"ID:h-1-2-0:0":        &BrokerID{Value: "ID:h-1-2-0:0"},
		"ID:h-1-2-0:1:-1":     &SessionID{ConnectionID: "ID:h-1-2-0:1", Value: -1},
		"ID:h-1-2-0:1:-1:1":   &ConsumerID{ConnectionID: "ID:h-1-2-0:1", SessionID: -1, Value: 1},
		"ID:h-1-2-0:1:3:7":    producer,
		"ID:h-1-2-0:1:3:7:12": &MessageID{ProducerID: producer, ProducerSequenceID: 12, BrokerSequenceID: 5},
		"ID:foreign":          &MessageID{TextView: NewText("foreign"), ProducerID: producer},
		"ID:foreign too":      &MessageID{TextView: NewText("ID:foreign too")},
		"TX:ID:h-1-2-0:1:12":  &LocalTransactionID{ConnectionID: &ConnectionID{Value: "ID:h-1-2-0:1"}, Value: 12},
		"TX::12":              &LocalTransactionID{Value: 12},
		"XID:[4,globalId=0ffffffff7f,branchId=ffffff80]": &XATransactionID{FormatID: 4, GlobalTransactionID: []byte{0, 0xff, 0x7f}, BranchQualifier: []byte{0x80}},
		"XID:[-1,globalId=,branchId=]":                   &XATransactionID{FormatID: -1},
		"queue://A":                                      &Destination{Kind: CodeActiveMQQueue, PhysicalName: "A"},
		"topic://A":                                      &Destination{Kind: CodeActiveMQTopic, PhysicalName: "A"},
		"temp-queue://A":                                 &Destination{Kind: CodeActiveMQTempQueue, PhysicalName: "A"},
		"temp-topic://A":                                 &Destination{Kind: CodeActiveMQTempTopic, PhysicalName: "A"},
		"POISON":                                         AckPoison,
		"COMMIT_ONE_PHASE":                               TransactionCommitOnePhase,
		"REMOVE":                                         DestinationRemove,
		"AckType(99)":                                    AckType(99),
	}
	for want, id := range tests {
		if got := id.String(); got != want {
			t.Errorf("%#v is %q, want %q", id, got, want)
		}
	}
}

// TestParseIDs checks the way back (OpenWire 8.1).
func TestParseIDs(t *testing.T) {
	t.Parallel()
	if got, err := ParseSessionID("a:b:-1"); err != nil || got != (SessionID{ConnectionID: "a:b", Value: -1}) {
		t.Errorf("session: %+v, %v", got, err)
	}
	if got, err := ParseConsumerID("a:b:3:7"); err != nil || got != (ConsumerID{ConnectionID: "a:b", SessionID: 3, Value: 7}) {
		t.Errorf("consumer: %+v, %v", got, err)
	}
	got, err := ParseProducerID("conn:1:2")
	if err != nil || got != (ProducerID{ConnectionID: "conn", SessionID: 1, Value: 2}) {
		t.Errorf("producer: %+v, %v", got, err)
	}
	if got.Session() != (SessionID{ConnectionID: "conn", Value: 1}) {
		t.Errorf("session of the producer: %+v", got.Session())
	}
	tx, err := ParseLocalTransactionID("TX:a:b:9")
	if err != nil || tx.String() != "TX:a:b:9" || tx.Value != 9 {
		t.Errorf("transaction: %+v, %v", tx, err)
	}
	id := ParseMessageID("a:b:1:2:3")
	want := &MessageID{ProducerID: &ProducerID{ConnectionID: "a:b", SessionID: 1, Value: 2}, ProducerSequenceID: 3}
	if diff := cmp.Diff(want, id); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if got := ParseMessageID("ID:some.other"); got.TextView != NewText("ID:some.other") || got.ProducerID != nil {
		t.Errorf("foreign message: %+v", got)
	}
}

func TestParseIDsRefuse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "conn", "conn:1", "conn:1:x", "conn::2", "conn:1:99999999999999999999"} {
		if got, err := ParseProducerID(s); err == nil || got != (ProducerID{}) {
			t.Errorf("producer %q: %+v, %v", s, got, err)
		} else {
			wantKind(t, err, message.ErrInvalid)
		}
		_, err := ParseConsumerID(s)
		wantKind(t, err, message.ErrInvalid)
		_, err = ParseLocalTransactionID(s)
		wantKind(t, err, message.ErrInvalid)
	}
	for _, s := range []string{"", "conn", "conn:x"} {
		_, err := ParseSessionID(s)
		wantKind(t, err, message.ErrInvalid)
	}
	_, err := ParseLocalTransactionID("TX:conn")
	wantKind(t, err, message.ErrInvalid)
}

// TestMessageIDs checks the translation to and from the broker's form.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		id   message.ID
		wire *MessageID
	}{
		"normal": {message.ID{Producer: "c:1:2", Sequence: 3},
			&MessageID{ProducerID: &ProducerID{ConnectionID: "c", SessionID: 1, Value: 2}, ProducerSequenceID: 3}},
		"foreign": {message.ID{Text: "x"}, &MessageID{TextView: NewText("x")}},
		"both": {message.ID{Producer: "c:1:2", Sequence: 3, Text: "x"},
			&MessageID{TextView: NewText("x"), ProducerID: &ProducerID{ConnectionID: "c", SessionID: 1, Value: 2}, ProducerSequenceID: 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := NewMessageID(test.id)
			if diff := cmp.Diff(test.wire, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
			if back := got.ID(); back != test.id {
				t.Errorf("back to %+v", back)
			}
		})
	}
	_, err := NewMessageID(message.ID{Producer: "nonsense"})
	wantKind(t, err, message.ErrInvalid)
	if id := (*MessageID)(nil).ID(); !id.IsZero() {
		t.Errorf("ID of nil is %v", id)
	}
}

// TestTransactionKeys checks that keys do not run together where texts do
// (OpenWire 8.1: the text of an XA id is ambiguous).
func TestTransactionKeys(t *testing.T) {
	t.Parallel()
	a := &XATransactionID{GlobalTransactionID: []byte{0x11, 0x01}}
	b := &XATransactionID{GlobalTransactionID: []byte{0x01, 0x11}}
	if a.String() != b.String() || a.Key() == b.Key() {
		t.Errorf("texts %s and %s, keys %s and %s", a, b, a.Key(), b.Key())
	}
	local := &LocalTransactionID{Value: 1, ConnectionID: &ConnectionID{Value: "c"}}
	if local.Key() != "TX:c:1" {
		t.Errorf("key %s", local.Key())
	}
}

// TestDestinations checks both forms and the trimming (OpenWire 8.2).
func TestDestinations(t *testing.T) {
	t.Parallel()
	for kind := message.Queue; kind <= message.TempTopic; kind++ {
		want := message.Destination{Kind: kind, Name: "A.B"}
		if got, err := NewDestination(want).Destination(); err != nil || got != want {
			t.Errorf("%v becomes %v, %v", want, got, err)
		}
	}
	if d := NewDestination(message.Destination{}); d != nil {
		t.Errorf("no destination becomes %v", d)
	}
	if d, err := (*Destination)(nil).Destination(); err != nil || !d.IsZero() {
		t.Errorf("nil becomes %v, %v", d, err)
	}
	if s := (*Destination)(nil).String(); s != "" {
		t.Errorf("nil prints as %q", s)
	}
	d := &Destination{Kind: CodeActiveMQTopic, PhysicalName: " A?consumer.prefetchSize=1 "}
	if got, err := d.Destination(); err != nil || got != (message.Destination{Kind: message.Topic, Name: "A"}) {
		t.Errorf("%v becomes %v, %v", d, got, err)
	}
	_, err := (&Destination{Kind: CodeActiveMQQueue, PhysicalName: " "}).Destination()
	wantKind(t, err, message.ErrInvalid)
}
