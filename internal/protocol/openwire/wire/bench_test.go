package wire

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

const benchConnection = "ID:host.example-40001-1700000000000-0:1"

// benchMessage is a text message of 1 KiB as a JMS client sends it.
func benchMessage() *Message {
	producer := &ProducerID{ConnectionID: benchConnection, SessionID: 1, Value: 1}
	return &Message{
		BaseCommand:          BaseCommand{CommandID: 1234, ResponseRequired: true},
		Kind:                 message.TextBody,
		ProducerID:           producer,
		Destination:          &Destination{Kind: CodeActiveMQQueue, PhysicalName: "ORDERS.IN"},
		MessageID:            &MessageID{ProducerID: producer, ProducerSequenceID: 77, BrokerSequenceID: 100077},
		Persistent:           true,
		Priority:             4,
		Timestamp:            1700000000123,
		Content:              AppendTextBody(nil, strings.Repeat("x", 1024)),
		MarshalledProperties: []byte{0, 0, 0, 1, 0, 1, 'a', primInteger, 0, 0, 0, 7},
		BrokerInTime:         1700000000124,
		BrokerOutTime:        1700000000125,
	}
}

func benchDispatch() *MessageDispatch {
	m := benchMessage()
	return &MessageDispatch{
		ConsumerID:  &ConsumerID{ConnectionID: benchConnection, SessionID: 1, Value: 1},
		Destination: m.Destination,
		Message:     m,
	}
}

func benchAck() *MessageAck {
	m := benchMessage()
	return &MessageAck{
		BaseCommand:    BaseCommand{CommandID: 1235},
		Destination:    m.Destination,
		ConsumerID:     &ConsumerID{ConnectionID: benchConnection, SessionID: 1, Value: 1},
		TransactionID:  &LocalTransactionID{Value: 12, ConnectionID: &ConnectionID{Value: benchConnection}},
		AckType:        AckStandard,
		FirstMessageID: m.MessageID,
		LastMessageID:  m.MessageID,
		MessageCount:   1,
	}
}

var benchObjects = []struct {
	name string
	ds   DataStructure
}{
	{"text", benchMessage()},
	{"dispatch", benchDispatch()},
	{"ack", benchAck()},
}

var benchEncodings = []struct {
	name string
	s    Settings
}{
	{"tight+cache", Settings{Version: MaxVersion, Tight: true, Cache: true, CacheSize: 1024}},
	{"loose", Settings{Version: MaxVersion}},
}

// BenchmarkEncode encodes objects whose ids are in the cache already.
func BenchmarkEncode(b *testing.B) {
	for _, enc := range benchEncodings {
		for _, o := range benchObjects {
			b.Run(enc.name+"/"+o.name, func(b *testing.B) {
				_, e := pair(enc.s)
				buf, err := e.Append(nil, o.ds)
				if err != nil {
					b.Fatal(err)
				}
				buf, _ = e.Append(buf[:0], o.ds)
				b.ReportAllocs()
				b.SetBytes(int64(len(buf)))
				for b.Loop() {
					if buf, err = e.Append(buf[:0], o.ds); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkDecode decodes frames that refer to the cache for their ids, as the
// broker does: the frames are lent, and the results used again.
func BenchmarkDecode(b *testing.B) {
	for _, enc := range benchEncodings {
		for _, o := range benchObjects {
			b.Run(enc.name+"/"+o.name, func(b *testing.B) {
				d, e := pair(enc.s)
				var frame []byte
				for range 2 {
					out, err := e.Append(nil, o.ds)
					if err != nil {
						b.Fatal(err)
					}
					frame = out[4:]
					if _, err := d.Decode(frame); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				b.SetBytes(int64(len(frame)))
				for b.Loop() {
					ds, err := d.DecodeLent(frame)
					if err != nil {
						b.Fatal(err)
					}
					d.Reuse(ds)
				}
			})
		}
	}
}

// BenchmarkReadFrame reads frames of 1 KiB off a stream.
func BenchmarkReadFrame(b *testing.B) {
	_, e := pair(benchEncodings[0].s)
	frame, err := e.Append(nil, benchMessage())
	if err != nil {
		b.Fatal(err)
	}
	source := bytes.NewReader(nil)
	stream := bufio.NewReader(source)
	b.ReportAllocs()
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		source.Reset(frame)
		stream.Reset(source)
		if _, err := ReadFrame(stream, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLookupProperty finds the last of ten properties.
func BenchmarkLookupProperty(b *testing.B) {
	var m Map
	for _, key := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"} {
		m = append(m, Entry{key, "the value of " + key})
	}
	props, err := AppendMap(nil, m)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := LookupProperty(props, "ten"); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkMergeProperties adds a dead letter's properties to two others.
func BenchmarkMergeProperties(b *testing.B) {
	props, err := AppendMap(nil, Map{{"order", int64(7)}, {"customer", "ACME"}})
	if err != nil {
		b.Fatal(err)
	}
	add := Map{{"dlqDeliveryFailureCause", "java.lang.RuntimeException: no"}, {"originalExpiration", int64(0)}}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := MergeProperties(buf, props, add); err != nil {
			b.Fatal(err)
		}
	}
}
