package listener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixiemq/nixie/jms"
	"go.opentelemetry.io/otel/trace"
)

// A CacheLevel says what a worker keeps from one receive to the next. What is not kept
// is made anew each time, which costs the broker more; brokers whose policies choose
// by connection or session may want that.
type CacheLevel uint8

// The cache levels, by Spring's names. The zero value is CacheConsumer.
const (
	CacheConsumer   CacheLevel = iota // everything is kept
	CacheSession                      // the consumer is made anew
	CacheConnection                   // session and consumer are
	CacheNone                         // the connection is, too
)

// Defaults, Spring's.
const (
	DefaultReceiveTimeout   = time.Second
	DefaultRecoveryInterval = 5 * time.Second
	DefaultDrainTimeout     = 30 * time.Second
)

// Options are what a Container is made of. Factory, Destination and Handler are needed.
type Options struct {
	Factory     *jms.ConnectionFactory
	Destination jms.Destination
	Handler     jms.Handler

	// Transacted commits a transaction for each message; what the handler sends in
	// SessionOf's session is part of it. Else each message is acknowledged by itself.
	Transacted bool
	// MinConcurrency workers are always there, and up to MaxConcurrency when all have
	// work. Default 1, and MinConcurrency. A topic without Subscription has one.
	MinConcurrency, MaxConcurrency int
	// IdleReceives is after how many receives in a row without a message a worker above
	// MinConcurrency ends; default 1.
	IdleReceives int

	// ReceiveTimeout is how long a receive waits; default DefaultReceiveTimeout.
	ReceiveTimeout time.Duration
	// RecoveryInterval is the pause between two attempts to connect; default
	// DefaultRecoveryInterval. BackOff, where it is set, decides instead: attempt is 1
	// for the first that failed; a negative pause ends Run with the attempt's error.
	RecoveryInterval time.Duration
	BackOff          func(attempt int) time.Duration

	Cache        CacheLevel
	Selector     string
	Subscription string                // of a durable subscriber; the factory needs a ClientID
	Policy       *jms.RedeliveryPolicy // nil: the factory's for the destination
	Prefetch     int                   // 0: the factory's

	// MessageTimeout ends the handler's context after this time; 0: never. What the
	// handler makes of that is its answer.
	MessageTimeout time.Duration
	// DrainTimeout is how long messages at work are waited for at the end before their
	// handlers' contexts end; default DefaultDrainTimeout.
	DrainTimeout time.Duration

	Log    *slog.Logger // nil: nothing is logged
	Hooks  Hooks
	Tracer trace.Tracer // nil: no spans
}

// Hooks are told what happens, on the worker's goroutine. Any may be nil.
type Hooks struct {
	// Received is called before the handler.
	Received func(m *jms.Message)
	// Done is called when the broker was told how it ended; err is the handler's, or the
	// commit's.
	Done func(m *jms.Message, took time.Duration, err error)
	// Recovering is called after each attempt to connect that failed.
	Recovering func(attempt int, err error)
	// Workers is called when their number has changed.
	Workers func(n int)
}

func (o *Options) withDefaults() error {
	switch {
	case o.Factory == nil:
		return errors.New("listener: no Factory")
	case o.Handler == nil:
		return errors.New("listener: no Handler")
	case o.Destination.IsZero():
		return errors.New("listener: no Destination")
	case o.Cache > CacheNone:
		return fmt.Errorf("listener: there is no cache level %d", o.Cache)
	case o.Subscription != "" && !o.Destination.IsTopic():
		return errors.New("listener: only topics have durable subscriptions")
	case o.Subscription != "" && o.Factory.ClientID == "":
		return errors.New("listener: a durable subscription needs the factory's ClientID")
	}
	o.MinConcurrency = max(o.MinConcurrency, 1)
	o.MaxConcurrency = max(o.MaxConcurrency, o.MinConcurrency)
	if o.Destination.IsTopic() && o.MaxConcurrency > 1 {
		return fmt.Errorf("listener: %d workers on a topic would each get every message, or fight for one durable subscription", o.MaxConcurrency)
	}
	o.IdleReceives = max(o.IdleReceives, 1)
	o.ReceiveTimeout = cmp.Or(o.ReceiveTimeout, DefaultReceiveTimeout)
	o.RecoveryInterval = cmp.Or(o.RecoveryInterval, DefaultRecoveryInterval)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	if o.ReceiveTimeout < 0 || o.RecoveryInterval < 0 || o.DrainTimeout < 0 || o.MessageTimeout < 0 {
		return errors.New("listener: a time is negative")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Stats count what happened since Run began.
type Stats struct {
	Workers     int // that are there now
	Busy        int // of them, with a message
	Received    int64
	Succeeded   int64
	Failed      int64 // handlers that failed, and commits
	Redelivered int64 // of Received
	Connects    int64 // connections made
	Attempts    int64 // attempts to connect that failed
}

type sessionKey struct{}

// SessionOf is the session in which a handler's message was received, from the
// handler's context; nil for any other. Producers made from it send within the
// message's transaction. It is not to be closed, committed or rolled back.
func SessionOf(ctx context.Context) *jms.Session {
	s, _ := ctx.Value(sessionKey{}).(*jms.Session)
	return s
}
