package redelivery

import "github.com/nixiemq/nixie/internal/message"

// Rules are what holds for the failed messages of one destination: the outcome
// of the configuration, of whichever dialect. The zero value is ActiveMQ
// unconfigured: the broker sets no limit and no delay of its own, and dead
// letters go to ActiveMQ.DLQ. Rules are not changed once in use.
type Rules struct {
	// Redelivery is the broker-side policy; nil: none, and the broker delivers
	// again at once until the client gives up.
	Redelivery *Policy
	DeadLetter DeadLetterStrategy
	// Expiry is for what dies because its time to live has passed, where it goes
	// another way than other dead letters: the expiry-address of an address-setting.
	// A discarding one drops them. Unset: DeadLetter is for them, too.
	Expiry     DeadLetterStrategy
	Duplicates DuplicateAction // what is done with a message a client took for a duplicate

	// DropAtLimit drops what Redelivery gives up instead of dead-lettering it:
	// redeliveryPlugin with sendToDlqIfMaxRetriesExceeded="false".
	DropAtLimit bool
	// DropWithoutPolicy drops a poisoned message where Redelivery is nil:
	// redeliveryPlugin with fallbackToDeadLetter="false".
	DropWithoutPolicy bool

	// Drop drops every message that would become a dead letter:
	// discardingDLQBrokerPlugin. It goes before what holds for dead letter queues.
	Drop Drop

	// DeadLetterQueue declares the destination to be a dead letter queue
	// (isDLQ=true): whatever is in it counts as a dead letter (R-DLQ-21).
	DeadLetterQueue bool
	// StrategyNamed and RedeliveryNamed say that DeadLetter, or Redelivery, was
	// given for this very destination and not by a pattern. Then it holds for dead
	// letters in it, too (R-EDGE-28, R-EDGE-31).
	StrategyNamed, RedeliveryNamed bool
	// DeadLetterUnrouted makes a dead letter of a message that is sent to a topic
	// nobody subscribes to: send-to-dla-on-no-route (R-HQ-109).
	DeadLetterUnrouted bool
	// KeepUnroutedDead keeps a dead letter in ActiveMQ.DLQ where its target is a topic
	// without a durable subscription, instead of dropping it (R-HQ-140).
	KeepUnroutedDead bool
	// Origins says which properties a dead letter gets beside ActiveMQ's.
	Origins Origins

	// DeadLetterNonDurable makes dead letters of what topic consumers without a
	// durable subscription poison, or cannot be sent (R-EDGE-13). Default false: it
	// is dropped and counted, as in ActiveMQ (R-BRK-15).
	DeadLetterNonDurable bool

	Name   string // what people call these rules, e.g. the pattern of a policyEntry
	Source string // where they were written, "file:line"; may be empty
}

// Origins says which properties tell where a moved message was (spec section 7 of
// HornetQ's). ActiveMQ's are set in any case.
type Origins uint8

// The properties there are.
const (
	NoOrigins      Origins = iota
	HornetQOrigins         // _HQ_ORIG_ADDRESS and its like; a second move keeps those of the first (R-HQ-65)
	ArtemisOrigins         // _AMQ_ORIG_ADDRESS and its like; a second move replaces them
)

// DuplicateAction says what becomes of a message that a client refused as a
// duplicate although its earlier delivery was never acknowledged (R-EDGE-09).
type DuplicateAction uint8

// The actions on a suppressed duplicate.
const (
	RequeueDuplicate    DuplicateAction = iota // offer it again, under another id on the wire; the tenth refusal makes a dead letter
	DeadLetterDuplicate                        // a dead letter at once, as in ActiveMQ
	DiscardDuplicate                           // drop it, counted
)

// Drop says when messages that would become dead letters are dropped instead
// (R-DLQ-40, R-DLQ-41).
type Drop uint8

// When to drop.
const (
	DropNever Drop = iota
	DropLast       // what Redelivery has given up, or has no say in
	DropFirst      // also what a client gives up, before Redelivery is asked
)

// Facts are what Decide knows about the failed message and its failure.
type Facts struct {
	Cause    message.Cause
	Counted  bool   // the policy counts the attempt that ends; see message.Cause
	Failures int    // the message's failures so far, this one included if it counts
	Text     string // the failure's text; for Poison the client's "CLASS: MESSAGE", "" for none

	Destination  message.Destination // where the message is
	Subscription Subscription        // the durable subscription it is in; zero: none
	Persistent   bool
	Expired      bool  // its time to live has passed by our clock
	Expiration   int64 // when it expires, Unix milliseconds; 0: never

	// DeadLetterQueue: the message is a dead letter already, or where its dead
	// letters would go. A destination that is its own target is recognised without it.
	DeadLetterQueue bool
	// Retained: its Expiration is the time that the strategy which made a dead letter of
	// it allows dead letters (DeadLetterStrategy.Expiration), or the policy of the queue
	// that they are kept in.
	Retained bool
	// Holds is how often the message has been held back where it is (decisions
	// Hold and Keep) since it came there.
	Holds int
}

// Action is what becomes of a failed message.
type Action uint8

// The actions there are.
const (
	// Again: available to every consumer at once, ahead of the others (R-CNT-09).
	Again Action = iota + 1
	// Later: a broker-side policy brings it back at Due, not before; Due may be
	// now. Its next dispatch carries the property redeliveryDelay = Delay.
	Later
	// Hold: it keeps its place and its counts; until Due it is held back from the
	// connection that failed it, and others may have it at once.
	Hold
	// Keep: it stays in its own dead letter queue, in its place. The count of
	// failures starts again at 0; the story goes on. With a Due it is held back as
	// under Hold; without one it has expired and stays, its expiration set aside.
	Keep
	// DeadLetter: it moves to Target, with CauseText.
	DeadLetter
	// Discard: it is removed, and counted under Reason.
	Discard
)

var actions = [...]string{Again: "again", Later: "later", Hold: "hold", Keep: "keep", DeadLetter: "dead-letter", Discard: "discard"}

// String gives the action in the word that the ledger and the docs use.
func (a Action) String() string {
	if int(a) < len(actions) && actions[a] != "" {
		return actions[a]
	}
	return "undecided"
}

// Reason says why a message is not simply delivered again. It is a label of
// metrics: few values, no details.
type Reason string

// The reasons there are.
const (
	ReasonPoison         Reason = "poison"                // the client gave up
	ReasonLimit          Reason = "limit"                 // the broker-side policy is exhausted
	ReasonExpired        Reason = "expired"               // its time to live has passed
	ReasonUndispatchable Reason = "undispatchable"        // it cannot be written to a consumer
	ReasonDuplicate      Reason = "duplicate"             // the client took it for one it had
	ReasonNonPersistent  Reason = "non-persistent"        // the strategy keeps no non-persistent ones
	ReasonDiscarding     Reason = "discarding"            // the strategy keeps none
	ReasonPlugin         Reason = "discarding-plugin"     // Rules.Drop
	ReasonTemporary      Reason = "temporary"             // a temporary topic's, or it expired in a temporary queue
	ReasonNoPolicy       Reason = "no-policy"             // Rules.DropWithoutPolicy
	ReasonOwnQueue       Reason = "own-dead-letter-queue" // DeadLetterStrategy.DiscardOwn
	ReasonRetention      Reason = "retention"             // a dead letter has been kept for as long as its strategy's expiration says
	ReasonUnsubscribed   Reason = "no-subscriber"         // its dead letters go to a topic that nobody subscribes to
	ReasonEvicted        Reason = "evicted"               // too much waited for a slow topic consumer
	ReasonExpiresFirst   Reason = "expires-first"         // Later ends with its expiration, not with its delay
)

// A Decision is what becomes of a failed message, and why.
type Decision struct {
	Action    Action
	Rest      int64               // Keep: until when it is held back from everybody; 0: from nobody but who failed it
	Due       int64               // Later, Hold, Keep: Unix milliseconds; 0: none
	Delay     int64               // Later: the policy's delay in milliseconds, at least 0
	Target    message.Destination // DeadLetter
	Reason    Reason              // DeadLetter, Discard, Keep, Hold: why; Later: ReasonExpiresFirst or ""
	CauseText string              // DeadLetter: dlqDeliveryFailureCause (R-DLQ-01); "": the property is absent
	By        string              // name and source of the policy or rules that decided, for the ledger
}
