package records

import (
	"context"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// A QueueID names a stored queue or durable subscription in keys.
type QueueID uint32

// A Lane is an order class in a queue: 9 - priority where the destination is
// prioritized, else DefaultLane for all.
type Lane uint8

// DefaultLane is the lane of everything in a queue without priorities.
const DefaultLane Lane = 5

// A MarkID names a hand-out mark within its queue.
type MarkID uint64

// QueueInfo describes one stored queue or durable subscription.
type QueueInfo struct {
	ID           QueueID
	Destination  message.Destination
	ClientID     string
	Subscription string
	Selector     string
	NoLocal      bool
	DeadLetters  bool
	Created      int64 // Unix milliseconds
}

// A Count says how much a queue or a lane holds.
type Count struct{ Messages, Bytes int64 }

// Stored is an entry as a page returns it.
type Stored struct {
	Entry     message.Entry
	Counts    message.Counts
	HasCounts bool
}

// Options are the settings of Records.
type Options struct {
	ChunkBytes int
	BatchBytes int
}

// Records is what the broker keeps in one shard.
type Records struct{}

// Open reads what the shard holds.
func Open(ctx context.Context, shard store.Shard, o Options) (*Records, error) {
	return &Records{}, nil
}

// Queues are the queues found at Open, by ID.
func (r *Records) Queues() []QueueInfo { return nil }

// Next gives the first of n fresh sequences.
func (r *Records) Next(n int) uint64 { return 0 }

// Count is what a queue holds.
func (r *Records) Count(q QueueID) Count { return Count{} }

// LaneCount is what a lane holds.
func (r *Records) LaneCount(q QueueID, lane Lane) Count { return Count{} }

// Commit hands b over.
func (r *Records) Commit(b *Batch, done func(error)) {}

// Page reads entries after a position.
func (r *Records) Page(q QueueID, lane Lane, after uint64, n int) ([]Stored, error) { return nil, nil }

// Floor is a position below which no live entry is.
func (r *Records) Floor(q QueueID, lane Lane) uint64 { return 0 }

// Message reads the message of an entry.
func (r *Records) Message(e *message.Entry) (*message.Message, error) { return nil, nil }

// Header reads the message of an entry without a large body.
func (r *Records) Header(e *message.Entry) (*message.Message, error) { return nil, nil }

// Marks reads the hand-out marks of a queue.
func (r *Records) Marks(q QueueID) (map[uint64]message.HandOut, []MarkID, error) {
	return nil, nil, nil
}

// Producers reads the last sequence of each producer of a queue.
func (r *Records) Producers(q QueueID) (map[string]int64, error) { return nil, nil }

// Story reads the lines of a story.
func (r *Records) Story(story uint64) ([]message.Attempt, error) { return nil, nil }
