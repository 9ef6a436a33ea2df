package broker

import (
	"log/slog"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
	"github.com/nixiemq/nixie/internal/store"
)

// Options are what a broker is made of.
type Options struct {
	// Name is the broker's name; default "localhost".
	Name string
	// Records is where everything is kept. The broker does not close it.
	Records *records.Records
	Clock   clock.Clock
	Log     *slog.Logger
	// Policy tells what is configured for a destination; nil: the defaults.
	Policy func(message.Destination) Policy
	// Destinations are queues and topics that are made at start.
	Destinations []message.Destination
	// Interceptors are the virtual and composite destinations.
	Interceptors Interceptors
	// Properties looks up one property of a message, for selectors.
	Properties func(m *message.Message, name string) (selector.Value, bool)
	// Jitter is uniform in [-1, 1).
	Jitter func() float64
	// Space tells how much room the store has; nil: no end of it.
	Space  func() (store.Space, error)
	Limits Limits
	// MarksOff turns the hand-out marks off where the policy says nothing.
	MarksOff bool
	// BlockWhenFull makes producers wait while the disk is full, instead of
	// failing their sends.
	BlockWhenFull bool
	// FailAfter is how long they wait then before their sends fail all the same; 0:
	// without end.
	FailAfter time.Duration
	// Limited says that some Policy has a Flow; false: nobody looks for them.
	Limited bool
	// OneOrder gives what several producers send to topics to all subscriptions in one
	// order (strictOrderDispatchPolicy), of all topics, as it costs little; false: each
	// producer's order is kept.
	OneOrder bool
	// Stamping sets the times of what clients send; nil: they stay.
	Stamping *Stamping
	// UserID writes the user of a connection into what it sends (JMSXUserID).
	UserID bool
	// RejectDurable refuses durable subscriptions.
	RejectDurable bool
	// Offline ends durable subscriptions that nobody uses; zero: none.
	Offline OfflineLimit
	// KeepTemps is how long the temporary queues of a client that may repeat (see
	// ClientInfo) are kept when its connection is lost; 0: not at all.
	KeepTemps time.Duration
	// MakeTemps makes a temporary queue that is sent to and is not there; it is kept as
	// KeepTemps says (allowTempAutoCreationOnSend).
	MakeTemps bool
	// ForcePersistent makes all that clients send persistent, or nothing; nil: as
	// the producers say (forcePersistencyModeBrokerPlugin).
	ForcePersistent *bool
	// Prepared says what becomes, as the broker starts, of distributed transactions that an
	// earlier process has prepared (purgeRecoveredXATransactionStrategy).
	Prepared PreparedFate
	// NoScheduler turns the scheduler off: messages that ask for a delay are delivered
	// at once (schedulerSupport="false").
	NoScheduler bool
	// MaxRepeat is how often a scheduled message may be repeated; default
	// schedule.DefaultMaxRepeat (maxSchedulerRepeatAllowed).
	MaxRepeat int
	// AdvisoryTopic is the topic on which events of a kind and a destination are
	// published; zero: none. What costs something to tell is told only where that
	// topic is watched. nil: no event is published.
	AdvisoryTopic func(EventKind, message.Destination) message.Destination
	// Lifetimes says that some Policy has a Lifetime; false: nobody looks for them.
	Lifetimes bool
	// OnlyDeclared says that some Policy has OnlyDeclared or MaxDestinations; false:
	// nobody looks.
	OnlyDeclared bool
	// Unrouted says that the Rules of some Policy have DeadLetterUnrouted; false:
	// nobody looks for them.
	Unrouted bool
	// Listen gets every event, in the order of its destination. It must not block.
	Listen func(Event)
}

// A Policy is what is configured for a destination.
type Policy struct {
	Rules       redelivery.Rules
	Prioritized bool
	Marks       *bool // persistJMSRedelivered; nil: as the broker does
	Exclusive   bool  // a queue's messages go to one consumer at a time
	Prefetch    Prefetch
	Advisories  Advisories
	// AckTimeout is how long a message may be at a consumer without acknowledgement:
	// then it has failed (cause ack-timeout); 0: for ever. It must be longer than the
	// longest work on a message, and it is not for topic consumers without a durable name.
	AckTimeout time.Duration
	// Lifetime changes the expiration of what comes to the destination; nil: nothing.
	Lifetime *redelivery.Lifetime
	Recovery Recovery // of a topic
	// Backlog bounds what waits for a topic's consumers without a durable name, and
	// Slow says how slow consumers may be.
	Backlog Backlog
	Slow    Slow
	// OneByOne fills the window of one of a queue's consumers before the next gets
	// anything; else they have their turns (strictOrderDispatch).
	OneByOne bool
	// Gather is what a queue waits for before it hands out.
	Gather Gather
	Flow   Flow
	// MaxConsumers is how many consumers a queue may have at a time, RingSize how many
	// messages may wait (of a durable subscription, too), and PurgeAlone drops a
	// queue's messages while it has no consumer (see queue.Bounds). The zero values
	// bound nothing.
	MaxConsumers int
	RingSize     int64
	PurgeAlone   bool
	// LastValue is the property of which a queue, or a subscription, keeps the newest
	// message of each value alone (see queue.Options); empty: it keeps all. It counts
	// for destinations that are made from now on.
	LastValue string
	// Rebalance has a queue's message groups bound anew when a consumer comes.
	Rebalance bool
	// OnlyDeclared refuses clients that use a destination which is not there yet.
	OnlyDeclared bool
	// MaxDestinations is how many destinations of a kind clients may make that Pattern
	// covers (policyEntry maxDestinations); 0: any number.
	MaxDestinations int
	Pattern         message.Destination
}

// A PreparedFate is what becomes of prepared transactions at the start.
type PreparedFate uint8

// The fates there are.
const (
	KeepPrepared     PreparedFate = iota // their transaction manager, or someone by hand, ends them
	CommitPrepared                       // they are committed
	RollBackPrepared                     // they are rolled back
)

// A Gather is how many consumers a queue waits for before it hands anything out, and
// how long at the most (see queue.Gather). The zero value is: it does not wait.
type Gather struct {
	Consumers int
	Wait      time.Duration
}

// A Backlog bounds what waits for a consumer: see queue.Backlog.
type Backlog = queue.Backlog

// Where a backlog's limit comes from, and what goes first.
const (
	ConstantLimit       = queue.ConstantLimit
	WindowLimit         = queue.WindowLimit
	EvictOldest         = queue.EvictOldest
	EvictLowestPriority = queue.EvictLowestPriority
	EvictSuperseded     = queue.EvictSuperseded
)

// Slow says how slow a consumer may be before it is closed: see queue.SlowLimits.
// The zero value is no limit.
type Slow struct {
	For, Well, Unacked time.Duration
	Times              int
	// Rate is messages a second, in each Period; with Notify it is only told.
	Rate   float64
	Period time.Duration
	Notify bool
	// EndConnection ends the consumer's whole connection.
	EndConnection bool
}

func (s Slow) limits() queue.SlowLimits {
	return queue.SlowLimits{For: s.For.Milliseconds(), Times: s.Times, Well: s.Well.Milliseconds(), Unacked: s.Unacked.Milliseconds(),
		Rate: s.Rate, Period: s.Period.Milliseconds(), Notify: s.Notify, End: s.EndConnection}
}

// Advisories are the events that are told of a destination only where its policy
// asks for them (policyEntry advisoryFor...). The zero value is ActiveMQ's default.
type Advisories struct {
	Discarded, Sent, Consumed, Dispatched bool
	SlowConsumer, FastProducer, WhenFull  bool
	NoConsumer                            bool // sendAdvisoryIfNoConsumers
	Bodies                                bool // includeBodyForAdvisory
}

// Limits bound the broker's memory and its use of the disk. Zero values mean the
// defaults.
type Limits struct {
	// WindowEntries is how many waiting entries of a queue are in memory; default
	// queue.DefaultWindow.
	WindowEntries int
	// ScheduledEntries is how many entries of a queue that wait for a redelivery are in
	// memory; default queue.DefaultScheduled.
	ScheduledEntries int
	// MessageBytes is what messages may take in memory before they are left to
	// the store alone; default 64 MiB.
	MessageBytes int64
	// MailboxCommands is how many commands of clients a destination lets wait;
	// then the connections that send them wait too. Default 4096.
	MailboxCommands int
	// UnansweredSends is how many sends of a connection may be unanswered, and
	// UnansweredBytes how large they may be together; then the connection is not
	// read. Defaults 512 and 16 MiB.
	UnansweredSends int
	UnansweredBytes int64
	// TransactionBytes is how much of a transaction is kept in memory; the rest is
	// staged in the store. Default 1 MiB.
	TransactionBytes int64
	// TransactionTime is how long a distributed transaction may be neither prepared
	// nor ended before it is rolled back; default 0: for ever, as in ActiveMQ.
	TransactionTime time.Duration
	// BrowseEntries is the size of a browser's page; default 200.
	BrowseEntries int
	// MinFreeBytes is the free space on the disk below which producers of
	// persistent messages are refused; default the larger of 256 MiB and 2 %.
	MinFreeBytes   uint64
	MinFreePercent float64
	// MaxStoreBytes and MaxStorePercent (of the disk) are what the store may use
	// before producers of persistent messages are refused; 0: no such limit.
	MaxStoreBytes   uint64
	MaxStorePercent float64
}

func (l Limits) withDefaults() Limits {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&l.MailboxCommands, 4096)
	set(&l.UnansweredSends, 512)
	set(&l.BrowseEntries, 200)
	if l.MessageBytes <= 0 {
		l.MessageBytes = 64 << 20
	}
	if l.UnansweredBytes <= 0 {
		l.UnansweredBytes = 16 << 20
	}
	if l.TransactionBytes <= 0 {
		l.TransactionBytes = 1 << 20
	}
	if l.MinFreeBytes == 0 && l.MinFreePercent == 0 {
		l.MinFreeBytes, l.MinFreePercent = 256<<20, 2
	}
	return l
}
