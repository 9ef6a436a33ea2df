package broker

import "github.com/nixiemq/nixie/internal/message"

// EventKind is what happened in a broker.
type EventKind uint8

// What a broker tells of.
const (
	DeadLettered         EventKind = iota // a message went to the destination Text
	Expired                               // a message's time to live passed
	Discarded                             // a message was dropped, for the reason Text
	Suppressed                            // a message that a producer sent again was not added twice
	Kept                                  // a dead letter failed in its own dead letter queue and stays there
	StrayAck                              // an acknowledgement that fits nothing was ignored; Text tells
	Failed                                // a delivery attempt failed, for the cause Text
	Inconsistent                          // the store held fewer entries of a queue than it counted
	Redriven                              // a dead letter went back to the destination Text
	TempAdded                             // a temporary destination of Connection came to be
	TempRemoved                           // a temporary destination of Connection is gone
	QueueAdded                            // a queue or topic came to be
	QueueRemoved                          // a queue or topic is gone
	ClientJoined                          // Connection, with its ClientID
	ClientLeft                            // Connection
	DiskLow                               // the disk's free space is below the limit; Text tells
	DiskEnough                            // it is above again
	DestinationLost                       // a commit failed and the destination was stopped; Text tells
	Moved                                 // someone moved a message to the destination Text
	ConsumerJoined                        // Spec of Connection; Count: how many consume the destination now
	ConsumerLeft                          // Spec of Connection; Count as above
	ProducerJoined                        // Producer of Connection; Count: how many produce to the destination now
	ProducerLeft                          // Producer of Connection; Count as above
	MessageSent                           // Copy came to the destination
	MessageConsumed                       // Copy was acknowledged
	MessageDispatched                     // Copy went to Consumer
	NoConsumer                            // Copy, not persistent, came while nobody consumes the destination
	SlowConsumer                          // Consumer is slow: its window is full while messages wait
	Evicted                               // a message was taken from what waits for Consumer, the Count-th one
	ConsumerAborted                       // Consumer of Connection is closed, or the whole connection, since it is too slow; Text tells
	FastProducer                          // Producer is held back, or refused
	Full                                  // nothing more may be stored in the destination; Text: what is full
	TransactionTimedOut                   // a distributed transaction of Connection took too long and was rolled back; Text tells
	SubscriptionTimedOut                  // a durable subscription that nobody used was removed; Text tells
	ProducerWaits                         // Producer of Connection still waits for room; Text tells
	SubscriptionRemoved                   // the durable subscription that Spec names is gone; Count: how many consume the destination now
	LetIn                                 // what Connection has sent went in above a destination's limit; Text tells
	RecordDamaged                         // a record of the store was damaged; Text tells which, and what became of it
	eventKinds                            // how many there are
)

// An Event tells of something that happened.
type Event struct {
	Kind        EventKind
	Destination message.Destination
	Message     message.ID
	Connection  string
	ClientID    string
	Consumer    string
	Cause       string // of a dead letter: the text of dlqDeliveryFailureCause
	Text        string
	Err         error
	Client      *ClientInfo   // of ClientJoined
	Spec        *ConsumerSpec // of a consumer that came or went, or is slow
	Producer    string
	Count       int
	// Of Full: what is there, and whether the limit is the destination's own and not the
	// store's.
	Bytes    int64
	OwnLimit bool
	// Copy is the message, without its body unless the policy wants it. Of Expired,
	// Discarded and DeadLettered it is there only where someone watches them.
	Copy *message.Message
}
