package records

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// cmpBytes compares bytes at once, and tells none from empty.
var cmpBytes = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })

// failer is the part of testing.TB that rapid.T has too.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// openShard gives a new shard in memory that tells of broken promises.
func openShard(t testing.TB) store.Shard {
	t.Helper()
	shard, stop := newShard(t)
	t.Cleanup(stop)
	return shard
}

func newShard(t failer) (store.Shard, func()) {
	t.Helper()
	return acquire(t, memstore.Options{OnMisuse: func(text string) { t.Errorf("store: %s", text) }})
}

func acquire(t failer, o memstore.Options) (store.Shard, func()) {
	t.Helper()
	s := memstore.New(o)
	shard, err := s.Acquire(context.Background(), 1, "test")
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return shard, func() { _ = s.Close() }
}

// testBatchBytes is so little that pieces go ahead of what has many.
const testBatchBytes = 48 << 10

// open opens records as tests want them: small chunks, batches, strides and
// memory, so that what is rare happens.
func open(t failer, shard store.Shard) *Records {
	t.Helper()
	r, err := Open(context.Background(), shard, Options{ChunkBytes: MinChunkBytes, BatchBytes: testBatchBytes, stride: 16, keep: 4})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return r
}

// commit hands a batch over and waits for a good answer.
func commit(t failer, r *Records, fill func(b *Batch)) {
	t.Helper()
	if err := tryCommit(r, fill); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func tryCommit(r *Records, fill func(b *Batch)) error {
	var b Batch
	fill(&b)
	answer := make(chan error, 1) // the one answer
	r.Commit(&b, func(err error) { answer <- err })
	return <-answer
}

// put changes the store behind the back of Records.
func put(t failer, shard store.Shard, fill func(b *store.Batch)) {
	t.Helper()
	var b store.Batch
	fill(&b)
	answer := make(chan error, 1) // the one answer
	shard.Commit(&b, func(err error) { answer <- err })
	if err := <-answer; err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// fullMessage has something in each field.
func fullMessage() *message.Message {
	return &message.Message{
		ID:                  message.ID{Producer: "ID:host-1:1:2:3", Sequence: 77, Text: "own-id"},
		Destination:         message.Destination{Kind: message.Queue, Name: "ORDERS"},
		OriginalDestination: message.Destination{Kind: message.Topic, Name: "ORDERS.IN"},
		ReplyTo:             message.Destination{Kind: message.TempQueue, Name: "ID:host-1:1:1"},
		Persistent:          true, Priority: 7, Expiration: 1790000000123, Timestamp: 1780000000000, BrokerInTime: 1780000000005,
		CorrelationID: "corr-1", Type: "order", GroupID: "g-9", GroupSequence: -1, UserID: "alice", TransactionID: "TX:ID:host-1:1:4",
		Format: message.OpenWire, Kind: message.TextBody, Compressed: true,
		Properties: []byte{1, 2, 3}, Body: []byte("hello"), Extra: []byte{},
		Added: map[string]any{"dlqDeliveryFailureCause": "java.lang.RuntimeException: no", "redeliveryDelay": int64(-5)},
	}
}

// entryFor is an entry at pos of which seq is the body.
func entryFor(m *message.Message, pos, seq uint64) *message.Entry {
	return &message.Entry{
		Position: pos, Body: seq, ID: m.ID, SizeBytes: int32(m.SizeBytes()), Priority: m.Priority,
		Persistent: m.Persistent, Expiration: m.Expiration,
	}
}

func fullOverlay() *message.Overlay {
	return &message.Overlay{
		Destination:         message.Destination{Kind: message.Queue, Name: "ActiveMQ.DLQ"},
		OriginalDestination: message.Destination{Kind: message.Queue, Name: "ORDERS"},
		Persistent:          true, Expiration: 12, TransactionID: "TX:1",
		Added: map[string]any{"originalExpiration": int64(1790000000123), "dlqDeliveryFailureCause": "because"},
	}
}

func fullAttempt(number int) message.Attempt {
	return message.Attempt{
		Number: number, HandedOut: 1780000000100, Ended: 1780000000200, Cause: message.Rollback, Text: "rolled back", Consumer: "ID:c:1:1",
		ClientID: "client-1", Address: "tcp://10.0.0.1:4711", Protocol: "openwire", Counted: true, Policy: "orders (activemq.xml:12)",
		Decision: "later", NextDue: 1780000001200, Redeliver: 2, Uncertain: true, Successors: 3,
	}
}

func fullJob(seq uint64) Job {
	return Job{Sequence: seq, ID: "ID:host-1:1:2:3:77", Destination: message.Destination{Kind: message.Topic, Name: "PRICES"}, Due: 1780000001200,
		Created: 1780000000200, Delay: 1000, Period: 500, Repeat: 3, Cron: "*/5 * * * *", Fired: 2, SizeBytes: 1024}
}

func fullCounts() message.Counts {
	return message.Counts{Failures: 3, HandOuts: 5, Holds: 1, Attempts: 4, Story: 900, Suspect: message.Pulled, Due: 1780000001200}
}

func fullQueue(id QueueID) QueueInfo {
	return QueueInfo{
		ID: id, Destination: message.Destination{Kind: message.Topic, Name: "PRICES.>"}, ClientID: "client-1", Subscription: "sub",
		Selector: "price > 3", NoLocal: true, DeadLetters: true, Created: 1780000000000,
		Selectors: []string{"", "price > 3"},
	}
}

func plainQueue(id QueueID) QueueInfo {
	return QueueInfo{ID: id, Destination: message.Destination{Kind: message.Queue, Name: "ORDERS"}, Created: 1780000000000}
}

func fullPrepared() *Prepared {
	one := Holder{Consumer: "ID:c:1:1", Connection: "ID:c", ClientID: "client-1", Address: "tcp://10.0.0.1:4711", Protocol: "openwire"}
	two := one
	two.Consumer = "ID:c:1:2"
	return &Prepared{
		Sequence: 42, XID: message.XID{Format: 1, Global: "\x00\xff", Branch: "\x01"}, At: 1780000000250, Holder: Holder{Connection: "ID:c", ClientID: "client-1"},
		Sends: []PreparedSend{{Sequence: 41, SizeBytes: 1024, Schedule: &message.Schedule{Delay: 5000, Period: 1000, Repeat: 3, Cron: "0 1 * * *"}}},
		Acks: []PreparedAck{
			{Queue: 7, Lane: 2, Position: 12, HandedOut: 1780000000100, HandOuts: 2, Told: 1, Holder: two},
			{Queue: 7, Lane: 5, Position: 11, HandedOut: 1780000000100, HandOuts: 1, Holder: one},
		},
	}
}
