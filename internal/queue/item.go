package queue

import (
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/message"
)

// An Item is an entry in the memory of a queue, with what its deliveries have
// come to so far. Only the queue's owner touches it. There are many: small fields
// stand together, so that they share a word.
type Item struct {
	message.Entry
	message.Counts
	// Message is the message itself, without the overlay, while memory allows; nil:
	// it is in the store.
	Message *message.Message
	// Charged is the owner's note of how many bytes it counts for the item against
	// its memory, and Share of what it counts for Message together with other items;
	// nil: nothing.
	Share   *Share
	Charged int32
	// HasCounts says that the store has a record of the item's Counts.
	HasCounts bool
	// Durable says that the item is to outlive the process.
	Durable bool
	// Stored says that the item is in the store, for good or for want of memory.
	Stored bool
	lane   uint8
	// Indexed is the time under which the store's index of due times has the item; 0:
	// it has not. It is the owner's, who keeps it equal to Due with SaveCounts.
	Indexed int64
	// Lines is the story of an item that is not to outlive the process.
	Lines []message.Attempt
	// Suppressed is how often a client took the item for a copy of one it knew. Its
	// next dispatch needs another name on the wire, or it will be again.
	Suppressed int32

	// Where it is, beside its lane and place: first its indexes in the heaps.
	dueAt      int32
	holdAt     int32
	expiryAt   int32
	rank       uint64 // its order within its list: the position, or a number given on return
	next, prev *Item
	list       *list
	heldFrom   string // a connection that must wait for it until heldUntil, or everyone
	heldUntil  int64
	thenFrom   string // a connection that must wait for it after that, until thenUntil
	thenUntil  int64
	due        int64 // when a scheduled item may go
	aside      int64 // the expiration that the store has of one that does not expire any more

	// The present delivery, or the one that just ended.
	consumer  *Consumer // that has it, or had it when it went into limbo
	number    uint64    // of the consumer's hand-outs, from 1
	tx        string    // the open transaction that acknowledged it
	batch     uint64    // the rollback that left it with its client; 0: none did
	place     place
	attempt   attempt
	local     bool            // its consumer redelivers it by itself
	covered   bool            // a DELIVERED ack told that the application has it
	how       message.HandOut // the kind of the present hand-out
	saved     message.HandOut // Suspect in the counts that the store has
	touched   bool            // it is looked at when the turn ends
	dirty     bool            // its counts are saved then
	handedOut int64
	coveredAt int64            // when a DELIVERED ack told so last
	told      int              // the counter told at the hand-out
	excess    int              // told beyond the failures known then
	line      *message.Attempt // the newest line of the delivery's story; nil: it has none
	lineTurn  uint64           // the turn that saved it

	turn   uint64           // the turn that stored it
	mark   *mark            // the stored mark that names it
	header *message.Message // headers and properties alone, once a selector needed them

	value  string // by which a last-value queue compares it; known where valued
	valued bool
}

// A Share is a message in memory that items of several queues have: its bytes are
// counted once, until the last of them gives it up.
type Share struct {
	Bytes int32
	Items atomic.Int32 // that have it
}

// A place is where in its queue an item is.
type place uint8

const (
	nowhere place = iota // not yet here, or gone
	waiting
	returned
	scheduled
	out
	deep  // ahead of the window, known for the sake of its times
	limbo // acknowledged in a transaction that is still open, its consumer gone
)

// An attempt is how far the present delivery of an item has come.
type attempt uint8

const (
	open       attempt = iota // the application may have it
	rolledBack                // a rollback ended it; REDELIVERED or POISON may still speak of the same
	announced                 // the client has said that it delivers it once more
	charged                   // the loss of its connection ended it
)

// NewItem makes an item of a message that has just arrived.
func NewItem(position uint64, m *message.Message) *Item {
	return &Item{Entry: message.NewEntry(position, m), Message: m}
}

// StoredItem makes an item of what the store has of it. Counts go before what the
// entry itself says of its hand-out.
func StoredItem(e message.Entry, c message.Counts, hasCounts bool) *Item {
	it := &Item{Entry: e, Counts: c, HasCounts: hasCounts, Durable: !e.Transient, Stored: true}
	if !hasCounts {
		it.Suspect = e.Out
	}
	it.saved, it.Indexed = it.Suspect, it.Due
	it.Suppressed = c.Holds // perhaps held for another reason; another name does no harm
	return it
}

// StoredEntry is the item's entry as the store has it.
func (it *Item) StoredEntry() *message.Entry {
	if it.aside == 0 {
		return &it.Entry
	}
	e := it.Entry
	e.Expiration = it.aside
	return &e
}

// Expired reports whether the item's time to live has passed (R-BRK-20).
func (it *Item) Expired(now int64) bool { return it.Expiration > 0 && now > it.Expiration }

// counter is what a client is told at a delivery: the failures, at least 1 if
// nobody knows what became of an earlier hand-out, and one more than the failures
// if its application had asked for it and was waiting. hint says that suspicion
// raised it: the client's limit must not be applied to it (R-CLIENT-30).
func (it *Item) counter() (n int, hint bool) {
	n = int(it.Failures)
	switch it.Suspect {
	case message.Pulled:
		return n + 1, true
	case message.HandedOut:
		if n == 0 {
			return 1, true
		}
	}
	return n, false
}

// Counter is what a client would be told at a delivery now.
func (it *Item) Counter() int { n, _ := it.counter(); return n }

// Kept reports whether the item is in the queue's memory.
func (it *Item) Kept() bool { return it.place != nowhere }

// LaneNumber is the lane the item is in.
func (it *Item) LaneNumber() uint8 { return it.lane }

// State says where an item is, for people.
func (it *Item) State() string {
	switch it.place {
	case out:
		return "out"
	case scheduled:
		return "scheduled"
	case limbo:
		return "in-transaction"
	case returned:
		return "returned"
	}
	return "waiting"
}
