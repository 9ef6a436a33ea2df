package message

// HandOut says how an entry left its queue for a consumer.
type HandOut uint8

// The ways there are.
const (
	NotHandedOut HandOut = iota
	HandedOut            // dispatched into a consumer's prefetch window
	Pulled               // dispatched to a consumer that had asked for it and was waiting
)

// An Entry is what a queue keeps about a message it holds: enough to order, to
// hand out and to expire it. The message itself is stored once, under Body, and
// any number of queues may refer to it.
type Entry struct {
	Position   uint64 // where in the queue; broker-wide sequence, OpenWire's brokerSequenceId
	Body       uint64 // the sequence under which the message is stored
	ID         ID
	SizeBytes  int32 // Message.SizeBytes
	Priority   uint8
	Persistent bool
	// Shared says that other queues may refer to Body too.
	Shared bool
	// Transient says that the entry, and the body it refers to, do not outlive
	// the process, although they may be in the store for want of memory.
	Transient  bool
	Expiration int64 // Unix milliseconds; 0: never
	// Group is the JMSXGroupID; "": the message is in no group. Mark is GroupStart,
	// GroupEnd, or 0.
	Group string
	Mark  int8
	// Out is how the entry was handed out in the very batch that stored it.
	Out HandOut
	// Overlay is what changed about the message since its body was stored.
	Overlay *Overlay
}

// NewEntry is the entry of a message as it was sent, stored under its position.
func NewEntry(position uint64, m *Message) Entry {
	e := Entry{Position: position, Body: position, ID: m.ID, SizeBytes: int32(m.SizeBytes()), Priority: m.Priority,
		Persistent: m.Persistent, Expiration: m.Expiration, Group: m.GroupID}
	switch {
	case m.GroupID == "":
	case m.GroupSequence < 0:
		e.Mark = GroupEnd
	case m.GroupSequence == 1:
		e.Mark = GroupStart
	}
	return e
}

// The marks of Entry.Mark.
const (
	GroupStart int8 = 1  // JMSXGroupSeq is 1
	GroupEnd   int8 = -1 // JMSXGroupSeq is negative
)

// Counts are what a queue knows about the deliveries of an entry that came back
// at least once. The zero value is an entry of which nothing is known.
type Counts struct {
	Failures int32  // failed attempts that the policy counts
	HandOuts int32  // hand-outs that ended, failed or not
	Holds    int32  // times held back in its own dead letter queue
	Attempts int32  // attempts in the story, also those of which the line is not kept
	Story    uint64 // where the story is kept; 0: there is none
	// Suspect says that it was handed out and nobody knows what became of it.
	Suspect HandOut
	// Due is when a broker-side policy let, or will let, it be delivered again, Unix
	// milliseconds; 0: none did. It stays when the time has passed.
	Due int64
	// Delay is the delay that Due came from, milliseconds; it is told to clients.
	Delay int64
	// Unasked says that the broker-side policy has not decided about the newest
	// failure, since the client was to deliver the message once more by itself. Due is
	// when the policy is to be asked if that client is gone with the process.
	Unasked bool
}
