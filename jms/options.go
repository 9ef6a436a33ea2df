package jms

import "time"

// Options are what the jms.* options of a URI set, by ActiveMQ's names
// (section 2.4 of the specification). DefaultOptions is where to start from.
type Options struct {
	Prefetch PrefetchPolicy // jms.prefetchPolicy.*

	// NonBlockingRedelivery lets other messages pass those that wait for their
	// redelivery: order is not kept (R-CLIENT-46). Default false.
	NonBlockingRedelivery bool
	// TransactedIndividualAck acknowledges each message of a transaction by itself
	// (R-CLIENT-24). Default false.
	TransactedIndividualAck bool
	// MessagePrioritySupported delivers what is prefetched by priority. Default false.
	MessagePrioritySupported bool
	// CheckForDuplicates looks for messages that come again after a fail-over
	// although they were acknowledged; AuditDepth is how many of a consumer's last
	// are remembered. Default true and 2048.
	CheckForDuplicates bool
	AuditDepth         int
	// ConsumerFailoverRedeliveryWaitPeriod is how long a commit waits, after a
	// fail-over, for the transaction's messages to come again (R-CLIENT-63). Default 0.
	ConsumerFailoverRedeliveryWaitPeriod time.Duration
	// ConsumerExpiryCheckEnabled looks at the expiration before delivery (R-CLIENT-33).
	// Default true.
	ConsumerExpiryCheckEnabled bool
	// OptimizeAcknowledge acknowledges in batches in AutoAcknowledge sessions, at the
	// latest OptimizeAcknowledgeTimeOut after the one before, looked at on the next
	// delivery, and every OptimizedAckScheduledAckInterval where that is above 0.
	// Default false, 300 ms, 0.
	OptimizeAcknowledge              bool
	OptimizeAcknowledgeTimeOut       time.Duration
	OptimizedAckScheduledAckInterval time.Duration
	// SendAcksAsync: acknowledgements outside transactions are not waited for.
	// Default true.
	SendAcksAsync bool
	Consumer      ConsumerDefaults
	Send          SendDefaults
	Timeouts      Timeouts
	// WatchTopicAdvisories refuses a send to a temporary destination that has gone,
	// by the broker's advisories (OpenWire 12). Default true.
	WatchTopicAdvisories bool
	// ClientIDPrefix and ConnectionIDPrefix begin generated ids; default "ID:".
	ClientIDPrefix     string
	ConnectionIDPrefix string
}

// ConsumerDefaults are copied into what a consumer tells the broker.
type ConsumerDefaults struct {
	DispatchAsync            bool // default true
	Exclusive                bool // jms.exclusiveConsumer; default false
	Retroactive              bool // jms.useRetroactiveConsumer; default false
	OptimizedMessageDispatch bool // durable subscribers of AutoAcknowledge sessions get the larger prefetch; default true
}

// SendDefaults say how producers send.
type SendDefaults struct {
	UseAsyncSend        bool // persistent messages are not waited for; default false
	AlwaysSyncSend      bool // all messages are; default false
	UseCompression      bool // bodies are compressed; default false
	DisableTimeStamps   bool // jms.disableTimeStampsByDefault; default false
	ProducerWindowBytes int  // jms.producerWindowSize: what may be on its way unacknowledged; 0: no limit
}

// Timeouts bound what is waited for; 0 is no bound but the context's.
type Timeouts struct {
	Close           time.Duration // jms.closeTimeout: for the broker's answer at Close; default 15 s
	Send            time.Duration // jms.sendTimeout: all sends are waited for then; default 0
	Request         time.Duration // jms.requestTimeout; default 0
	ConnectResponse time.Duration // jms.connectResponseTimeout; default 0
}

// PrefetchPolicy says how many messages a consumer is sent ahead. 0 makes a pull
// consumer: the broker sends what Receive asks for (R-CLIENT-50).
type PrefetchPolicy struct {
	Queue                      int // default 1000
	QueueBrowser               int // default 500
	Topic                      int // default 32767
	DurableTopic               int // default 100
	OptimizeDurableTopic       int // default 1000
	MaximumPendingMessageLimit int // topics only; default 0
}

// maxPrefetch is the largest prefetch; what is above becomes this.
const maxPrefetch = 32767

// DefaultOptions are ActiveMQ's.
func DefaultOptions() Options {
	return Options{
		Prefetch:                   PrefetchPolicy{Queue: 1000, QueueBrowser: 500, Topic: maxPrefetch, DurableTopic: 100, OptimizeDurableTopic: 1000},
		CheckForDuplicates:         true,
		AuditDepth:                 2048,
		ConsumerExpiryCheckEnabled: true,
		OptimizeAcknowledgeTimeOut: 300 * time.Millisecond,
		SendAcksAsync:              true,
		Consumer:                   ConsumerDefaults{DispatchAsync: true, OptimizedMessageDispatch: true},
		Timeouts:                   Timeouts{Close: 15 * time.Second},
		WatchTopicAdvisories:       true,
		ClientIDPrefix:             "ID:",
		ConnectionIDPrefix:         "ID:",
	}
}
