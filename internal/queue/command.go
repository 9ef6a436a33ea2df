package queue

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Command is what is asked of a queue. Done, where a command has one and it is
// not nil, is answered by an Answer effect.
type Command interface{ command() }

// Enqueue adds a message that has just arrived. The position must be above that
// of every Enqueue before it.
type Enqueue struct {
	Item *Item
	// Spill says that there is no memory left for the message itself: it goes to
	// the store even if it is not to outlive the process.
	Spill bool
	// Producer, if set, is checked for duplicates: a message whose sequence is not
	// above the last one of its producer is answered, counted, and not added (C21).
	Producer string
	Done     func(error)
}

// Expect announces positions that someone else is about to store in this queue.
type Expect struct{ Positions []uint64 }

// Arrive adds items that were expected and are now stored, or are not to be.
type Arrive struct {
	Items []*Item
	// Moved says that they come from another destination: their producers have not
	// sent them here.
	Moved bool
	// Noted says that the store does not yet know them as the last of their producers.
	Noted bool
}

// Cancel takes an Expect back.
type Cancel struct{ Positions []uint64 }

// Attach adds a consumer.
type Attach struct {
	Consumer *Consumer
	Done     func(error)
}

// UnknownLast is the value of Detach.Last that says that nobody knows what the
// application has had (R-CNT-02).
const UnknownLast = -2

// UnsaidLast is the value of Detach.Last that says that the client went in order and
// did not tell what its application has had.
const UnsaidLast = 0

// Detach removes a consumer; what it has not acknowledged goes back.
type Detach struct {
	Consumer string
	// Last is the position of the last message the application had; -1 if none,
	// UnknownLast if nobody knows (R-CNT-02). With UnsaidLast nothing is charged but
	// what DELIVERED acks cover; the rest is suspected.
	Last int64
	// Cause is Closed, ConnectionLost or BrokerStopped.
	Cause message.Cause
	Text  string
	// Charge says that, where Last is unknown, the next message in hand-out order
	// counts as failed: it is the one its session was at.
	Charge bool
	Done   func(error)
}

// SetPrefetch changes a consumer's window (ConsumerControl, R-CLIENT-61). Above 0 it
// ends what the consumer had pulled.
type SetPrefetch struct {
	Consumer string
	Prefetch int
	Done     func(error)
}

// Pull asks for one message for a consumer of prefetch 0; it is nothing to others.
// Unanswered, it ends with a Nothing effect when Until has passed: 0 waits for ever,
// a negative value does not wait (R-CLIENT-50).
type Pull struct {
	Consumer string
	Until    int64
	Stop     bool // ends what the consumer has asked for, without an answer
	Done     func(error)
}

// AckType is what an acknowledgement says, with OpenWire's numbers (R-WIRE-01).
type AckType uint8

// The types of acknowledgement.
const (
	Delivered   AckType = 0 // widens the window
	Poison      AckType = 1 // the client has given up
	Standard    AckType = 2 // done
	Redelivered AckType = 3 // the client delivers it once more by itself
	Individual  AckType = 4 // done, Last alone
	Unmatched   AckType = 5
	ExpiredAck  AckType = 6 // expired in the client's hands
)

// A Ref names a message in an acknowledgement: by position if that is known, else by id.
type Ref struct {
	Position uint64
	ID       message.ID
	// Stale says that the client means a dispatch on a connection before this one.
	// That is no longer there; but a client that has told, by a DELIVERED ack, that
	// it knows of the message's dispatch on this connection may go on naming the
	// first one.
	Stale bool
}

// IsZero reports whether the ref names nothing.
func (r Ref) IsZero() bool { return r.Position == 0 && r.ID.IsZero() }

// String names the message for people: by its id, if that is known.
func (r Ref) String() string {
	if r.ID.IsZero() {
		return fmt.Sprintf("position %d", r.Position)
	}
	return r.ID.String()
}

// Ack acknowledges a range of what a consumer has, in the order of the hand-out.
type Ack struct {
	Consumer string
	Type     AckType
	First    Ref // zero: from the oldest
	Last     Ref
	Count    int    // as the client reckons it
	Before   bool   // the client's own range ends with a later message: Text is about that one
	Closing  bool   // of a DELIVERED: the consumer is about to close, and tells of no other delivery than it has told of
	Tx       string // "": outside a transaction
	Text     string // of a poison ack: "CLASS: MESSAGE"
	// Quiet says that nobody waits: Done is called only with an error.
	Quiet bool
	Done  func(error)
}

// Prepare asks which items an open transaction has acknowledged. Reply is called
// at once, within Apply.
type Prepare struct {
	Tx    string
	Reply func([]*Item)
}

// Foretell asks what the Settle of a rollback will count, so that the batch which makes
// the rollback true has it. Reply is called at once, within Apply. Settle writes it once
// more, with what becomes of the items.
type Foretell struct {
	Tx    string
	Cause message.Cause
	Text  string
	Reply func([]Foretold)
}

// Foretold is what a rollback will make of one item: its counts, and the line that its
// story gains, for which line Drop goes, if that is not 0.
type Foretold struct {
	Item    *Item
	Counts  message.Counts
	Attempt *message.Attempt
	Drop    int
}

// Settle ends a transaction. On commit its removals are in the store already.
type Settle struct {
	Tx     string
	Commit bool
	Cause  message.Cause // of a rollback: Rollback, or ConnectionLost
	Text   string
	// TakeBack says that on a rollback also what consumers still have goes back:
	// their client has not rolled back, and redelivers nothing by itself.
	TakeBack bool
	Done     func(error)
}

// Undispatchable says that an item could not be written to its consumer.
type Undispatchable struct {
	Consumer string
	Position uint64
	Text     string
}

// Paged brings entries that a PageIn effect asked for, in the order of positions.
type Paged struct {
	Lane  uint8
	Items []*Item
	Short bool // there were no more
}

// Searched brings entries that a Search effect asked for, in the order of positions.
type Searched struct {
	Lane  uint8
	Items []*Item
	Short bool // there were no more but those of which a command is still to tell
}

// Timed brings entries that a PageTimes effect asked for, in the order of the index.
type Timed struct {
	Index Index
	Items []TimedItem
	Last  TimeKey // the place in the index up to which it was read
	End   bool    // there was nothing behind
}

// ForgetProducer drops what is kept to tell a producer's duplicates.
type ForgetProducer struct{ Producer string }

// Browse lists items in memory with positions above After in one lane, in order.
// Reply gets them and the position behind which the rest is only in the store,
// math.MaxUint64 if nothing is. It is called within Apply and must copy.
type Browse struct {
	Lane  uint8
	After uint64
	Max   int
	Reply func(items []*Item, bound uint64)
}

// Extract takes items that no consumer has out of one lane: to where Target says,
// or for good if Purge. What is in memory comes first, then what is in the store
// alone, which the owner reads and gives as Stored. A lane of any depth is gone
// through by one Extract after another, each from the Last of the one before.
type Extract struct {
	Lane uint8
	// After and Upto bound the positions that are looked at: above After, and not
	// above Upto; an Upto of 0 is no bound.
	After, Upto uint64
	// Stored are entries of the lane above After, as just read from the store, in
	// order. Those that are in memory, or not here yet, are passed over.
	Stored []*Item
	// Look is how many items are looked at, and Max how many are taken, at the
	// most; 0: no bound. No more is looked at either when what Wants cost is what
	// selectors may take of a turn.
	Look, Max int
	// Wants reports whether an item is meant, and the steps that it took to find out;
	// nil: all are.
	Wants func(*Item) (meant bool, steps int)
	// Dry only counts.
	Dry    bool
	Purge  bool
	Target func(*Item) (Move, bool) // false: leave it; not called if Purge
	// Done is told when what was done is in the store, or that it is not.
	Done func(Extracted, error)
}

// Extracted is what came of an Extract.
type Extracted struct {
	Taken int
	Out   int // those meant that consumers have, or transactions: they stay (R-EDGE-51)
	Left  int // those meant that Target left
	// Last is the position up to which everything that could be looked at was.
	Last uint64
	// Full says that a bound ended it early.
	Full bool
	// Alone are the positions that were taken out of the store alone. Their owner
	// tells with a Gone when they are not there any more.
	Alone []uint64
}

// Gone says that what an Extract took out of the store alone is not there any more:
// no page that is read from now on has it.
type Gone struct{ Positions []uint64 }

// SetPolicy changes what is configured for the queue. Decisions that were taken
// stay: what is scheduled keeps its time.
type SetPolicy struct {
	Rules redelivery.Rules
	Marks bool
	Tells Tells
	// Bounds hold for what comes; more consumers than it allows stay.
	Bounds Bounds
	// AckTimeout holds for what is at consumers too.
	AckTimeout int64
	// Backlog holds for what waits already, too, and Slow for consumers that are slow.
	Backlog  Backlog
	Slow     SlowLimits
	OneByOne bool
	// Rebalance holds for consumers that come from now on.
	Rebalance bool
}

// ClockSet says that the clock was set back, perhaps: from now on it is Now, although a
// later time was told before. What was decided keeps its times.
type ClockSet struct{ Now int64 }

// Tick lets time pass: due items, ended holds, expirations.
type Tick struct{}

func (Enqueue) command()        {}
func (Expect) command()         {}
func (Arrive) command()         {}
func (Cancel) command()         {}
func (Attach) command()         {}
func (Detach) command()         {}
func (SetPrefetch) command()    {}
func (Pull) command()           {}
func (Ack) command()            {}
func (Prepare) command()        {}
func (Foretell) command()       {}
func (Settle) command()         {}
func (Undispatchable) command() {}
func (Paged) command()          {}
func (Searched) command()       {}
func (Timed) command()          {}
func (ForgetProducer) command() {}
func (Browse) command()         {}
func (Extract) command()        {}
func (Gone) command()           {}
func (SetPolicy) command()      {}
func (ClockSet) command()       {}
func (Tick) command()           {}
