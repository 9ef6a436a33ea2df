// Package config turns what a user says, in flags, in the environment and in a
// file of one of several dialects, into one checked structure.
//
// It reads files and nothing else: no socket is opened, no data directory is
// touched, and the environment comes in as a function. Its neighbours are
// message (destinations, kinds of error) and redelivery (policies); server reads
// the [Config] that [Load] returns.
//
// Its laws:
//
//   - Nothing is ignored in silence. A part of a file that is not honoured is
//     named with file and line: a warning ([Notice]) where leaving it out is
//     safe, an error where it would change what happens to a message.
//   - A part that only repeats ActiveMQ's default is no reason to speak.
//   - All errors of a file are reported, not the first alone.
//   - The same input gives the same Config, notices and errors, in the same order.
//
// A dialect is a table of parts (activemq_*.go; hornetq_*.go and artemis_*.go,
// where an element's text is its value) and a walk over it. All fill the same
// Config; the address-settings of HornetQ and Artemis merge, and so have a
// structure of their own in it, behind the same [Resolver].
package config

import (
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Defaults, where neither a flag nor a file says otherwise.
const (
	DefaultBrokerName = "localhost"
	DefaultDataDir    = "./nixie-data"
	DefaultListen     = "tcp://127.0.0.1:61616"
	DefaultAdmin      = "127.0.0.1:8161"

	// Memory is the data directory that keeps nothing.
	Memory = ":memory:"

	// The reserve of the disk is the larger of these two.
	DefaultMinFreeBytes   int64 = 256 << 20
	DefaultMinFreePercent       = 2.0

	// DefaultMaxFrameBytes is wireFormat.maxFrameSize where a connector sets none.
	DefaultMaxFrameBytes int64 = 104857600
	// DefaultMaxInactivity is wireFormat.maxInactivityDuration where a connector sets none.
	DefaultMaxInactivity = 30 * time.Second
	// DefaultMaxInactivityInitialDelay is wireFormat.maxInactivityDurationInitalDelay where a connector sets none.
	DefaultMaxInactivityInitialDelay = 10 * time.Second
)

// OpenWire is the protocol of ActiveMQ's own clients, as the ready line names it.
const OpenWire = "openwire"

// Config is everything a broker needs to know to start. Load checks it; a
// Config made by hand must keep what the fields promise. It is not changed
// after Load returns.
type Config struct {
	// BrokerName is never empty.
	BrokerName string
	// Persistent is false where nothing is kept; then DataDir is Memory.
	Persistent bool
	// DataDir is the data directory as the user wrote it, or Memory.
	DataDir string
	// Listeners are in the order of the ready line; there is at least one.
	Listeners []Listener
	// Admin is HOST:PORT of the admin listener; empty: none.
	Admin string
	// AllowAnonymous permits listening beyond loopback without authentication.
	AllowAnonymous bool
	// HandOutMarks asks for durable hand-out marks in the batch that enqueues.
	HandOutMarks bool
	// Policies are the destination policies, in the order of the file, which
	// decides between overlapping patterns of equal rank (R-MAP-13).
	Policies []PolicyEntry
	// DefaultPolicy applies where none of Policies matches; nil: there is none.
	// Its Destination is zero.
	DefaultPolicy *PolicyEntry
	// SchedulerSupport says that the file asks for the scheduler, and NoScheduler that
	// it says "false". Where it says nothing, messages with AMQ_SCHEDULED properties
	// are scheduled: who sets them expects a delay. In ActiveMQ nothing means false.
	SchedulerSupport, NoScheduler bool
	// MaxSchedulerRepeat is how often a scheduled message may be repeated
	// (maxSchedulerRepeatAllowed); 0: the broker's default.
	MaxSchedulerRepeat int
	// TransactionTimeout is how long a distributed (XA) transaction may be neither
	// prepared nor ended before it is rolled back; 0: for ever, as in ActiveMQ.
	TransactionTimeout time.Duration
	// Prepared says what becomes at the start of distributed transactions that an earlier
	// process has prepared (purgeRecoveredXATransactionStrategy of kahaDB).
	Prepared PreparedFate
	// Redelivery is the redeliveryPlugin; nil: there is none.
	Redelivery *RedeliveryPlugin
	// Discarding is the discardingDLQBrokerPlugin; nil: there is none.
	Discarding *DiscardingPlugin
	// TimeStamping is the timeStampingBrokerPlugin; nil: there is none.
	TimeStamping *TimeStamping
	// SelectorCache is the virtualSelectorCacheBrokerPlugin; nil: there is none.
	SelectorCache *SelectorCache
	// ForcePersistent makes every message that clients send persistent, or none;
	// nil: they stay as their senders made them.
	ForcePersistent *bool
	// UserID writes who sent a message into its JMSXUserID, whatever the sender says
	// (populateJMSXUserID); default false.
	UserID bool
	// DeleteAllMessages empties the store at every start, subscriptions and scheduled
	// messages included (deleteAllMessagesOnStartup); default false.
	DeleteAllMessages bool
	// OfflineSubscriptionLimit is after which time a durable subscription that nobody
	// uses is removed, with its messages (offlineDurableSubscriberTimeout); 0: never.
	OfflineSubscriptionLimit time.Duration
	// OfflineSubscriptionCheck is how often is looked; 0: every five minutes.
	OfflineSubscriptionCheck time.Duration
	// KeepTemporaryQueues is how long the temporary queues of a client that may come back
	// are kept when its connection is lost (timeBeforePurgeTempDestinations); 0: not at all.
	KeepTemporaryQueues time.Duration
	// MakeTemporaryQueues makes a temporary queue that is sent to and is not there
	// (allowTempAutoCreationOnSend); default false.
	MakeTemporaryQueues bool
	// NoAdvisories sends none but those of temporary destinations, which clients depend
	// on (advisorySupport="false").
	NoAdvisories bool
	// RejectDurableConsumers refuses durable subscriptions; default false.
	RejectDurableConsumers bool
	// Access says who clients are and what they may do; nil: nobody is asked.
	Access *access.Options
	// Destinations are made at start, in the order of the file. Each is one queue
	// or topic, without wildcard.
	Destinations []message.Destination
	// DeadLetterQueues are those of Destinations that the file marks as dead letter
	// queues, with isDLQ=true (R-DLQ-21).
	DeadLetterQueues []message.Destination
	// Interceptors are the virtual and composite destinations; nil: none are
	// configured, and ActiveMQ's virtual topic VirtualTopic.> holds (see
	// DefaultInterceptors).
	Interceptors *Interceptors
	// MemoryBytes is what messages may take in memory before they are left to the
	// store alone; 0: the broker's default.
	MemoryBytes int64
	// Addresses are the address-settings of a HornetQ or Artemis file; nil: it is
	// none. Then there are no Policies.
	Addresses *AddressSettings
	// Certificates are those of the listeners with TLS that name none of their own.
	Certificates Certificates
	// Cluster lists the brokers that clients may use, this one perhaps among them; nil:
	// this one stands alone.
	Cluster []ClusterBroker
	// Store limits what producers may fill.
	Store StoreLimits
	// File is the file that was read, as the user named it; empty: none.
	File string
}

// Listener is one address on which a protocol is spoken.
type Listener struct {
	// Name is the connector's name in its file; "openwire" where it has none.
	Name string
	// Protocol is OpenWire; other protocols will follow.
	Protocol string
	// Host is an IP address or a name, without brackets; empty: all addresses.
	Host string
	// Port is 0 to 65535; 0: the system picks one.
	Port int
	// URI is the connector's URI as written, placeholders filled in, without passwords.
	URI string
	// Options are the options of the URI that are honoured.
	Options ListenerOptions
	// Secure is what clients with TLS are served with; nil: they come without, or the
	// files of keys were not to be read.
	Secure *Secure
	// Source is where the listener was asked for: "FILE:LINE", "--listen" or "default".
	Source string
}

// ListenerOptions are the honoured options of a connector's URI.
type ListenerOptions struct {
	// MaxFrameBytes bounds one frame (wireFormat.maxFrameSize); above 0.
	MaxFrameBytes int64
	// MaximumConnections bounds the connections that are open at a time
	// (maximumConnections); 0: no bound of its own.
	MaximumConnections int
	// MaximumConsumers and MaximumProducers are how many a client may open on one
	// connection; 0: no bound of their own (maximumConsumersAllowedPerConnection,
	// maximumProducersAllowedPerConnection).
	MaximumConsumers, MaximumProducers int
	// MaxInactivity is offered in the wire format negotiation
	// (wireFormat.maxInactivityDuration, milliseconds); 0: no inactivity monitor.
	MaxInactivity time.Duration
	// MaxInactivityInitialDelay is the time before the first check
	// (wireFormat.maxInactivityDurationInitalDelay, milliseconds).
	MaxInactivityInitialDelay time.Duration
	// SocketBufferBytes is the size of the socket's buffers
	// (socketBufferSize, transport.socketBufferSize); 0: the system's.
	SocketBufferBytes int
	// AllowLinkStealing lets a client take over the client id of another connection,
	// which is ended; default false: it is refused (allowLinkStealing).
	AllowLinkStealing bool
	// AnycastPrefix and MulticastPrefix stand before names that clients give; a name
	// with one is that of a queue, or a topic, without it. Several have commas
	// between them; empty: none (anycastPrefix, multicastPrefix of an acceptor).
	AnycastPrefix, MulticastPrefix string
	// UpdateClusterClients tells clients of the brokers of Config.Cluster, and of this
	// one; default false.
	UpdateClusterClients bool
	// RebalanceClusterClients asks clients that connect to spread over these brokers;
	// default false.
	RebalanceClusterClients bool
	// UpdateClusterClientsOnRemove tells connected clients when a broker has been taken
	// from the list; default false: they learn of it with the next one that is added.
	UpdateClusterClientsOnRemove bool
	// UpdateClusterFilter says of which other brokers clients are told; see
	// ClusterFilter. Empty: of all.
	UpdateClusterFilter string
	// NoDelay is TCP_NODELAY (transport.tcpNoDelay, wireFormat.tcpNoDelayEnabled); default true.
	NoDelay bool
	// KeepAlive is SO_KEEPALIVE (keepAlive, transport.keepAlive); default true.
	KeepAlive bool
	// TLS is for clients that come with TLS.
	TLS TLSOptions
}

// DefaultListenerOptions are those of a connector whose URI has no options.
func DefaultListenerOptions() ListenerOptions {
	return ListenerOptions{
		MaxFrameBytes:             DefaultMaxFrameBytes,
		MaxInactivity:             DefaultMaxInactivity,
		MaxInactivityInitialDelay: DefaultMaxInactivityInitialDelay,
		NoDelay:                   true,
		KeepAlive:                 true,
	}
}

// PolicyEntry is what one entry of the destination policy says. Entries do not
// merge: one is chosen for a destination, whole (R-EDGE-20).
type PolicyEntry struct {
	// Destination is the pattern; zero in Config.DefaultPolicy. It is never a
	// composite: an entry written for "A,B" becomes two (R-MAP-06).
	Destination message.Destination
	// PrioritizedMessages orders by priority before arrival; default false.
	PrioritizedMessages bool
	// AckTimeout is how long a message may be at a consumer without acknowledgement; 0:
	// for ever. Only our own YAML has it.
	AckTimeout time.Duration
	// PersistJMSRedelivered turns durable hand-out marks on or off for these
	// destinations; nil: as Config.HandOutMarks says.
	PersistJMSRedelivered *bool
	// Prefetch are the windows of consumers that ask for their library's default.
	Prefetch Prefetch
	// AllConsumersExclusive gives a queue's messages to one consumer at a time,
	// whatever the consumers ask for; default false.
	AllConsumersExclusive bool
	// StrictOrderDispatch fills the window of one of a queue's consumers before the next
	// of its priority gets anything; default false: they have their turns.
	StrictOrderDispatch bool
	// Backlog bounds what waits for topic consumers without a durable subscription; nil:
	// everything waits. SlowConsumers closes slow ones; nil: none.
	Backlog       *Backlog
	SlowConsumers *SlowConsumers
	// ConsumersBeforeDispatch is how many consumers a queue waits for before it hands
	// anything out, and TimeBeforeDispatch how long at the most, or alone; 0: it does
	// not wait (consumersBeforeDispatchStarts, timeBeforeDispatchStarts).
	ConsumersBeforeDispatch int
	TimeBeforeDispatch      time.Duration // or WithoutEnd
	// MaxConsumers is how many consumers a queue may have at a time; 0: any number.
	MaxConsumers int
	// RingSize is how many messages of a queue, or of a durable subscription, may wait
	// for a consumer: for one more the first of them is dropped; 0: any number.
	RingSize int64
	// PurgeOnNoConsumers drops what a queue has when its last consumer goes, and what
	// comes while there is none; default false.
	PurgeOnNoConsumers bool
	// LastValueKey is the property of which a queue, or a subscription, keeps the newest
	// message of each value alone; empty: it keeps all.
	LastValueKey string
	// GroupRebalance has a queue's message groups bound anew when a consumer comes,
	// each when its consumer is done with what it has of it; default false.
	GroupRebalance bool
	// OnlyDeclared refuses clients that use a queue or topic which is not there yet;
	// default false: it is made.
	OnlyDeclared bool
	// MaxDestinations is how many destinations of the entry's kind clients may make that
	// its pattern covers; 0: any number.
	MaxDestinations int
	// StrictTopicOrder gives what several producers send to a topic to all who have
	// subscribed in one order; default false: each producer's order is kept.
	StrictTopicOrder bool
	// Recovery is what of a topic is kept for retroactive consumers; nil: nothing.
	// AlwaysRetroactive takes every consumer without a durable subscription for one.
	Recovery          *Recovery
	AlwaysRetroactive bool
	// Advisories are the news that are told of these destinations on request.
	Advisories Advisories
	// Rules are for messages that fail there. Its zero value is ActiveMQ's default.
	// A Redelivery given here wins over the redeliveryPlugin, with its DropAtLimit.
	Rules redelivery.Rules
	// Lifetime changes the expiration of what is sent to these destinations; nil: it
	// stays what it is.
	Lifetime *redelivery.Lifetime
	// Limits bound what producers may put there; nil: the disk's reserve alone does.
	Limits *Limits
	// Settings are the values that the file gives for the entry, in its order.
	Settings []Setting
	// Source is "FILE:LINE" of the entry.
	Source string
}

// WithoutEnd is a time that does not pass.
const WithoutEnd = time.Duration(math.MaxInt64)

// Prefetch are the windows that take the place of a client's own defaults
// (R-XML-20); nil: the client's stays.
type Prefetch struct {
	Queue        *int // queuePrefetch; instead of 1000
	QueueBrowser *int // queueBrowserPrefetch; instead of 500
	Topic        *int // topicPrefetch; instead of 32767
	DurableTopic *int // durableTopicPrefetch; instead of 100, or 1000 (optimizeDurableTopicPrefetch)
}

// A prefetchRow is one of the four, by its name in all dialects.
type prefetchRow struct {
	name string
	into func(*Prefetch) **int
}

var prefetchRows = []prefetchRow{
	{"queuePrefetch", func(p *Prefetch) **int { return &p.Queue }},
	{"queueBrowserPrefetch", func(p *Prefetch) **int { return &p.QueueBrowser }},
	{"topicPrefetch", func(p *Prefetch) **int { return &p.Topic }},
	{"durableTopicPrefetch", func(p *Prefetch) **int { return &p.DurableTopic }},
}

// maxPrefetch is the largest window that an int of Java's can say.
const maxPrefetch = 1<<31 - 1

// policyMap makes the map that finds the entry for a destination (R-MAP-07).
func (c *Config) policyMap() *redelivery.Map[PolicyEntry] {
	m := new(redelivery.Map[PolicyEntry])
	for _, p := range c.Policies {
		m.Put(p.Destination, p)
	}
	if c.DefaultPolicy != nil {
		m.SetDefault(*c.DefaultPolicy)
	}
	return m
}

// OnFull says what happens to a producer while the disk's reserve is reached.
type OnFull string

// What can happen to a producer whose message does not fit.
const (
	// Fail refuses the message with a clear error; the default.
	Fail OnFull = "fail"
	// Block lets the producer wait until there is room.
	Block OnFull = "block"
	// Drop discards the message; for Limits alone.
	Drop OnFull = "drop"
)

// StoreLimits says when producers are stopped. Acknowledgements, dead-lettering
// and reads go on inside the reserve.
type StoreLimits struct {
	// MinFreeBytes and MinFreePercent (of the file system, 0 to 100) are the
	// reserve that producers may not use: the larger of the two.
	MinFreeBytes   int64
	MinFreePercent float64
	// OnFull is Fail or Block.
	OnFull OnFull
	// FailAfter is how long a producer waits before its send fails all the same; 0:
	// without end.
	FailAfter time.Duration
	// MaxBytes and MaxPercent (of the file system) are the most that the store may
	// use before producers are stopped: the smaller of the two; 0: no such limit.
	MaxBytes   int64
	MaxPercent float64
}
