package openwire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// messageVectors gives every message in the vectors, decoded from version 12.
func messageVectors(t *testing.T) map[string]*wire.Message {
	t.Helper()
	files, err := vectors()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*wire.Message{}
	for _, kind := range []string{"Message", "BytesMessage", "MapMessage", "ObjectMessage", "StreamMessage", "TextMessage", "BlobMessage"} {
		var file struct {
			Cases []struct {
				Name   string
				Frames map[string]map[string][]string
			}
		}
		if err := json.Unmarshal(files["ActiveMQ"+kind+".json"], &file); err != nil {
			t.Fatal(kind, err)
		}
		for _, c := range file.Cases {
			frames := c.Frames["v12"]["loose"]
			frame, err := hex.DecodeString(frames[0])
			if err != nil {
				t.Fatal(err)
			}
			dec := wire.NewDecoder()
			dec.Negotiated(wire.Settings{Version: 12, StackTrace: true})
			ds, err := dec.Decode(frame[wire.SizeBytes:])
			if err != nil {
				t.Fatalf("%s %s: %v", kind, c.Name, err)
			}
			all[kind+" "+c.Name] = ds.(*wire.Message)
			empty := *ds.(*wire.Message)
			empty.CorrelationID, empty.Type = wire.NewText(""), wire.NewText("")
			all[kind+" "+c.Name+" with empty headers"] = &empty
		}
	}
	return all
}

// TestRoundTrip sends every message of the vectors in and out again and wants it
// back as it was, but for what the broker sets (OpenWire 7).
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	seen := map[message.BodyKind]bool{}
	for name, in := range messageVectors(t) {
		if in.ProducerID == nil || in.MessageID == nil || in.Destination == nil {
			continue // no client sends that
		}
		m, err := incoming(in, in.ProducerID.String(), 1234, (*wire.Destination).Destination, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		seen[in.Kind] = true
		if !aliases(m.Body, in.Content) || !aliases(m.Properties, in.MarshalledProperties) {
			t.Errorf("%s: content or properties were copied", name)
		}
		d := &broker.Delivery{Consumer: "c:1:1", Destination: m.Destination, Message: m, Counter: 3, Entry: message.Entry{Position: 77}}
		var o outgoing
		dispatch, err := o.dispatch(d, 5678)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := expected(in)
		if diff := cmp.Diff(want, dispatch.Message, sameTransaction, sameBytes); diff != "" {
			t.Errorf("%s (-in +out):\n%s", name, diff)
		}
		// R-CLIENT-01: the client goes by the dispatch's counter
		if dispatch.RedeliveryCounter != 3 || *dispatch.ConsumerID != (wire.ConsumerID{ConnectionID: "c", SessionID: 1, Value: 1}) {
			t.Errorf("%s: dispatch %+v", name, dispatch)
		}
	}
	for kind := message.PlainBody; kind <= message.BlobBody; kind++ {
		if !seen[kind] {
			t.Errorf("no %v among the vectors", kind)
		}
	}
}

var (
	sameTransaction = cmp.Comparer(func(a, b wire.TransactionID) bool { return a == b || a != nil && b != nil && a.Key() == b.Key() })
	// sameBytes is faster than looking at one byte after the other
	sameBytes = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })
)

// expected is a message as it comes out again.
func expected(in *wire.Message) *wire.Message {
	w := *in
	w.BaseCommand = wire.BaseCommand{}
	for _, text := range []*wire.Text{&w.GroupID, &w.UserID} {
		*text = wire.TextOrNull(text.Value) // an empty text is none
	}
	id := *in.MessageID
	id.BrokerSequenceID, id.TextView = 77, wire.TextOrNull(id.TextView.Value)
	if id.ProducerID == nil {
		id.ProducerID = in.ProducerID
	}
	w.MessageID, w.ProducerID = &id, id.ProducerID
	w.Priority = min(max(w.Priority, 0), 9)
	w.Expiration = max(w.Expiration, 0)
	w.RedeliveryCounter, w.BrokerInTime, w.BrokerOutTime = 3, 1234, 5678
	w.JMSXGroupFirstForConsumer = false
	kept := in.TransactionID
	if kept == nil {
		kept = in.OriginalTransactionID
	}
	w.TransactionID, w.OriginalTransactionID = kept, nil
	if in.OriginalDestination != nil {
		w.TransactionID, w.OriginalTransactionID = nil, kept
	}
	for _, d := range []**wire.Destination{&w.Destination, &w.OriginalDestination, &w.ReplyTo} {
		trimmed, err := (*d).Destination()
		if err == nil {
			*d = wire.NewDestination(trimmed)
		}
	}
	return &w
}

// aliases reports whether a and b are the same memory.
func aliases(a, b []byte) bool {
	return len(a) == len(b) && (a == nil) == (b == nil) && (len(a) == 0 || &a[0] == &b[0])
}

func textMessage(t *testing.T) *message.Message {
	t.Helper()
	properties, err := wire.AppendMap(nil, wire.Map{{Key: "colour", Value: "red"}, {Key: "redeliveryDelay", Value: int64(99)}, {Key: "n", Value: int32(7)}})
	if err != nil {
		t.Fatal(err)
	}
	return &message.Message{ID: message.ID{Producer: "p:1:1", Sequence: 1}, Destination: message.Destination{Kind: message.Queue, Name: "Q"},
		Format: message.OpenWire, Kind: message.TextBody, Body: wire.AppendTextBody(nil, "hello"), Properties: properties}
}

// TestAddedProperties wants what the broker has added to win, the hint to go with
// its dispatch alone, and the message's own bytes untouched (R-CLIENT-30).
func TestAddedProperties(t *testing.T) {
	t.Parallel()
	m := textMessage(t)
	m.Added = map[string]any{"colour": "blue", "originalExpiration": int64(0)}
	before := bytes.Clone(m.Properties)
	var o outgoing
	for _, c := range []struct {
		hint bool
		want wire.Map
	}{
		{true, wire.Map{{Key: "n", Value: int32(7)}, {Key: "colour", Value: "blue"}, {Key: "originalExpiration", Value: int64(0)}, {Key: "redeliveryDelay", Value: int64(250)}}},
		{false, wire.Map{{Key: "redeliveryDelay", Value: int64(99)}, {Key: "n", Value: int32(7)}, {Key: "colour", Value: "blue"}, {Key: "originalExpiration", Value: int64(0)}}},
	} {
		d := &broker.Delivery{Consumer: "c:1:1", Destination: m.Destination, Message: m, Hint: c.hint, Delay: 250}
		dispatch, err := o.dispatch(d, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeMap(dispatch.Message.MarshalledProperties)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("hint %v: %s", c.hint, diff)
		}
	}
	m.Added = nil
	dispatch, err := o.dispatch(&broker.Delivery{Consumer: "c:1:1", Message: m}, 0)
	if err != nil || !aliases(dispatch.Message.MarshalledProperties, m.Properties) {
		t.Errorf("properties without anything to add were copied, %v", err)
	}
	if !bytes.Equal(before, m.Properties) {
		t.Error("the message's own properties were changed")
	}
}

// TestDispatchErrors wants messages that cannot be encoded told apart.
func TestDispatchErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*broker.Delivery)
		kind   error
	}{
		"properties that are no map":  {func(d *broker.Delivery) { d.Message.Properties, d.Hint = []byte{1, 2, 3}, true }, message.ErrInvalid},
		"kept fields that are broken": {func(d *broker.Delivery) { d.Message.Extra = []byte{1, 2, 3} }, message.ErrCorrupt},
		"kept fields of another type": {func(d *broker.Delivery) { d.Message.Extra = []byte{wire.CodeShutdownInfo, 0, 0, 0, 0, 0} }, message.ErrCorrupt},
		"no such consumer":            {func(d *broker.Delivery) { d.Consumer = "x" }, message.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &broker.Delivery{Consumer: "c:1:1", Message: textMessage(t)}
			c.change(d)
			var o outgoing
			if _, err := o.dispatch(d, 0); !errors.Is(err, c.kind) {
				t.Errorf("error %v, want %v", err, c.kind)
			}
		})
	}
}

// TestForeignIDs wants ids of other protocols to have a producer, without which
// Java cannot read them (OpenWire 8.1).
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id       message.ID
		producer wire.ProducerID
		text     string
	}{
		"ours":               {message.ID{Producer: "c:2:1", Sequence: 5}, wire.ProducerID{ConnectionID: "c", SessionID: 2, Value: 1}, "c:2:1:5"},
		"with a text":        {message.ID{Producer: "c:2:1", Sequence: 5, Text: "abc"}, wire.ProducerID{ConnectionID: "c", SessionID: 2, Value: 1}, "ID:abc"},
		"only a text":        {message.ID{Text: "ID:abc"}, wire.ProducerID{}, "ID:abc"},
		"another producer's": {message.ID{Producer: "stomp", Sequence: 5}, wire.ProducerID{ConnectionID: "stomp"}, "ID:stomp:5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o outgoing
			id, producer := o.messageID(c.id)
			if producer == nil || *producer != c.producer || id.String() != c.text {
				t.Errorf("id %s of producer %v", id.String(), producer)
			}
		})
	}
}

// TestMemoForgets wants what an outgoing remembers bounded.
func TestMemoForgets(t *testing.T) {
	t.Parallel()
	var o outgoing
	for i := range int64(10 * memoIDs) {
		o.messageID(message.ID{Producer: (&wire.ProducerID{ConnectionID: "c", Value: i}).String()})
		o.destination(message.Destination{Kind: message.Queue, Name: string(rune('a' + i))})
	}
	if len(o.producers.known) > memoIDs || len(o.destinations.known) > memoIDs {
		t.Errorf("remembers %d producers, %d destinations", len(o.producers.known), len(o.destinations.known))
	}
}

// TestComposite wants copies of a composite to have the destination that they are
// dispatched from (OpenWire 8.2).
func TestComposite(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("A"), 10)
		p.consume(2, topicNamed("B"), 10)
		p.do(p.text(1, queueNamed("A, topic://B,A"), "hello"))
		got := map[string]string{}
		for range 2 {
			d := p.dispatched()
			if body(t, d) != "hello" || *d.Message.Destination != *d.Destination {
				t.Errorf("dispatch %+v of %+v", d, d.Message)
			}
			got[d.ConsumerID.String()] = d.Destination.String() + " of " + d.Message.OriginalDestination.String()
		}
		want := map[string]string{p.id + ":1:1": "queue://A of queue://A, topic://B,A", p.id + ":1:2": "topic://B of queue://A, topic://B,A"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if more := p.take(); more != nil {
			t.Errorf("then came %T", more)
		}
		p.leave()
	})
}

func TestWildcardConsumer(t *testing.T) { // OpenWire 10.2
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("ORDERS.>"), 10)
		p.do(p.text(1, queueNamed("ORDERS.EU"), "hello"))
		d := p.dispatched()
		if d.Destination.PhysicalName != "ORDERS.EU" {
			t.Errorf("destination %v", d.Destination)
		}
		p.do(ack(d, wire.AckStandard))
		p.fails(p.text(2, queueNamed("ORDERS.*"), "nowhere"), classInvalidDestination, "")
		p.leave()
	})
}
