package records

import (
	"encoding/binary"

	"github.com/nixiemq/nixie/internal/message"
)

// A QueueID names a stored queue or durable subscription in keys. Its owner
// chooses it, and uses it for no other queue while this one exists.
type QueueID uint32

// FirstPassing is where the ids begin of what does not outlive the process. What the store
// has under them after that belongs to nobody.
const FirstPassing QueueID = 1 << 31

// A Lane is an order class in a queue: lower lanes go first. It is 9 - priority
// where the destination is prioritized, and DefaultLane for all messages else.
type Lane uint8

// lastLane is the highest that there is.
const lastLane Lane = 9

// DefaultLane is the lane of every message of a queue without priorities: that
// of message.DefaultPriority, so that a queue can be prioritized later.
const DefaultLane Lane = 9 - message.DefaultPriority

// QueueInfo is what is stored of a queue or durable subscription itself.
type QueueInfo struct {
	ID          QueueID
	Destination message.Destination // the queue; for a subscription its topic, which may be a pattern or composite
	// ClientID and Subscription name a durable subscription; else they are "".
	ClientID, Subscription string
	Selector               string // "": none
	NoLocal                bool
	DeadLetters            bool  // it is a dead letter queue
	Created                int64 // Unix milliseconds
	// Selectors are those of consumers that a queue has had; see Batch.PutSelectors.
	Selectors []string
}

// Flags of a stored queue.
const (
	queueNoLocal = 1 << iota
	queueDeadLetters
	queueFlags = iota
)

func queueRoom(i *QueueInfo) int {
	return 2 + 5*binary.MaxVarintLen64 + len(i.Destination.Name) + len(i.ClientID) + len(i.Subscription) + len(i.Selector)
}

// appendQueue writes what the key does not say of i.
func appendQueue(v []byte, i *QueueInfo) []byte {
	var flags byte
	if i.NoLocal {
		flags |= queueNoLocal
	}
	if i.DeadLetters {
		flags |= queueDeadLetters
	}
	v = appendDestination(append(v, flags), i.Destination)
	v = appendString(v, i.ClientID)
	v = appendString(v, i.Subscription)
	v = appendString(v, i.Selector)
	return binary.AppendVarint(v, i.Created)
}

func selectorsRoom(all []string) int {
	n := binary.MaxVarintLen64
	for _, s := range all {
		n += binary.MaxVarintLen64 + len(s)
	}
	return n
}

// appendSelectors writes the selectors of a queue's consumers.
func appendSelectors(v []byte, all []string) []byte {
	v = binary.AppendUvarint(v, uint64(len(all)))
	for _, s := range all {
		v = appendString(v, s)
	}
	return v
}

func decodeSelectors(r *reader) (all []string, ok bool) {
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		all = append(all, r.string())
	}
	return all, r.done()
}

// decodeQueue reads into i what appendQueue wrote; ID comes from the key.
func decodeQueue(r *reader, i *QueueInfo) bool {
	flags := r.byte()
	i.NoLocal, i.DeadLetters = flags&queueNoLocal != 0, flags&queueDeadLetters != 0
	i.Destination = r.destination()
	i.ClientID, i.Subscription, i.Selector = r.string(), r.string(), r.string()
	i.Created = r.varint()
	return r.done() && flags < 1<<queueFlags
}
