package queue

import "github.com/nixiemq/nixie/internal/message"

// EffectKind is what an effect asks of the queue's owner.
type EffectKind uint8

// Effects for the store, to be written in one batch in this order.
const (
	Append       EffectKind = iota // Item: entry and body
	Remove                         // Item leaves for good, for Reason
	Transfer                       // Item leaves for Move.Target
	SaveCounts                     // Item's counts
	SaveAttempt                    // Attempt, a line of Item's story; Number: a line to drop, 0 none
	PutMark                        // the mark Number: Positions were handed out as How says
	DropMark                       // the mark Number is no longer needed
	PutProducer                    // Name has sent Number
	DropProducer                   // Name is forgotten
)

// Effects for the world, to be let out when the batch is on disk, in this order.
const (
	Deliver   EffectKind = iota + 100 // Item goes to Consumer, who is told Counter
	Nothing                           // Consumer's pull found nothing
	Answer                            // Done gets Err
	PageIn                            // read up to Counter entries of Lane behind Number
	Search                            // read up to Counter entries of Lane behind Number, for those who look behind the window
	PageTimes                         // read up to Counter places of Index behind From
	Forget                            // Item, removed by its transaction's batch, is no longer needed
	Tell                              // an Event
	Abort                             // Consumer is too slow, as Text says: close it, or, with End, its connection
)

// Reason says why an item was removed.
type Reason uint8

// The reasons there are.
const (
	Acknowledged  Reason = iota
	ExpiredReason        // expired, and not to be kept
	Discarded            // the dead letter strategy keeps no such message
	Purged
)

// A Move says where an item goes and what of it changes on the way.
type Move struct {
	Target message.Destination
	// Why it moves; Redrive says that it is brought back from a dead letter queue,
	// AsSent with its delivery mode and time to live, ByHand that someone wants it
	// elsewhere.
	Cause   message.Cause
	Redrive bool
	AsSent  bool
	ByHand  bool
	// ToWork says, of a dead letter that is moved by hand, that it goes to where no dead
	// letters go: it is worked on there, and what fails there is as of any other message.
	ToWork bool
	// Text is dlqDeliveryFailureCause; "": none is set.
	Text string
	// Expiration is what the moved message has, Unix milliseconds; 0: never.
	Expiration int64
}

// EventKind is what happened.
type EventKind uint8

// What a queue tells of.
const (
	DeadLettered   EventKind = iota // Item to Text
	ItemExpired                     // Item
	ItemDiscarded                   // Item, for Text
	Suppressed                      // a duplicate of Item was not added
	Kept                            // Item failed in its own dead letter queue and stays
	StrayAck                        // an ack that fits nothing was ignored
	Inconsistent                    // the store holds fewer entries than it counted
	FailureCounted                  // Item failed
	ItemArrived                     // Item came in (Tells.Arrived)
	ItemConsumed                    // Item was acknowledged (Tells.Consumed)
	ItemLonely                      // Item, not persistent, came while there is no consumer (Tells.Lonely)
	ConsumerSlow                    // Consumer is slow (Tells.Slow)
	ItemEvicted                     // Item, the Counter-th one, was taken from what waits for Consumer (Options.Backlog)
)

// An Effect is one thing the owner has to do. Which fields count depends on Kind.
type Effect struct {
	Kind      EffectKind
	Event     EventKind
	Reason    Reason
	How       message.HandOut
	Lane      uint8
	First     bool // Deliver: it is the first message of its group for Consumer (R-GRP-03)
	Index     Index
	Hint      bool          // Deliver: tell the property redeliveryDelay
	End       bool          // Abort: the whole connection
	Cause     message.Cause // Abort: of what the consumer has
	Counter   int           // Deliver: what the client is told; PageIn, Search: how many to read; Tell: see the event
	Item      *Item
	Consumer  *Consumer
	Move      *Move
	Attempt   *message.Attempt
	Number    uint64
	From      TimeKey // PageTimes
	Positions []uint64
	Name      string
	Text      string
	Done      func(error)
	Err       error
}

// ForStore reports whether the effect belongs into the batch.
func (e *Effect) ForStore() bool { return e.Kind < Deliver }
