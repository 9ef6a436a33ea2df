package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
)

// An eventLog logs what an operator would tell a colleague. What can come in
// masses is logged once per interval and destination, with how often it came.
type eventLog struct {
	log   *slog.Logger
	clock clock.Clock

	mu   sync.Mutex
	last map[eventKey]*eventRun
}

type eventKey struct {
	kind        broker.EventKind
	destination string
	text        string
}

// An eventRun is how often something was left out of the log since it was last in it.
type eventRun struct {
	logged time.Time
	left   int
}

// eventInterval is how long the same news of the same destination is not logged again.
const eventInterval = 10 * time.Second

// maxEventKeys bounds what the log remembers.
const maxEventKeys = 1000

var eventLines = map[broker.EventKind]struct {
	level slog.Level
	text  string
}{
	broker.DeadLettered:         {slog.LevelWarn, "message became a dead letter"},
	broker.Expired:              {slog.LevelInfo, "message expired"},
	broker.Discarded:            {slog.LevelWarn, "message discarded"},
	broker.Evicted:              {slog.LevelWarn, "message evicted: too much waits for a slow subscriber"},
	broker.ConsumerAborted:      {slog.LevelWarn, "slow consumer aborted"},
	broker.Suppressed:           {slog.LevelInfo, "message sent again was not added twice"},
	broker.Kept:                 {slog.LevelWarn, "message failed in its own dead letter queue, and stays there"},
	broker.StrayAck:             {slog.LevelInfo, "acknowledgement fits nothing, ignored"},
	broker.Failed:               {slog.LevelInfo, "delivery failed"},
	broker.Inconsistent:         {slog.LevelError, "the store holds fewer entries of the queue than it counted"},
	broker.RecordDamaged:        {slog.LevelError, "a record of the store is damaged, and was mended as far as can be"},
	broker.Redriven:             {slog.LevelInfo, "dead letter brought back"},
	broker.Moved:                {slog.LevelInfo, "message moved by hand"},
	broker.DiskLow:              {slog.LevelError, "disk nearly full"},
	broker.DiskEnough:           {slog.LevelInfo, "disk has room again"},
	broker.TransactionTimedOut:  {slog.LevelWarn, "distributed transaction timed out"},
	broker.SubscriptionTimedOut: {slog.LevelWarn, "durable subscription removed, with its messages: nobody has used it for too long"},
	broker.ProducerWaits:        {slog.LevelWarn, "producer waits for room"},
	broker.LetIn:                {slog.LevelWarn, "messages went in above the limit"},
	broker.DestinationLost:      {slog.LevelError, "destination stopped; it is opened anew from the store"},
}

func (l *eventLog) listen(e broker.Event) {
	line, ok := eventLines[e.Kind]
	if !ok {
		return
	}
	left, now := l.due(eventKey{e.Kind, e.Destination.String(), e.Text})
	if !now {
		return
	}
	attrs := []slog.Attr{slog.String("dest", e.Destination.String())}
	if !e.Message.IsZero() {
		attrs = append(attrs, slog.String("msg", e.Message.String()))
	}
	if e.Consumer != "" {
		attrs = append(attrs, slog.String("consumer", e.Consumer))
	}
	if e.Text != "" {
		attrs = append(attrs, slog.String("detail", e.Text))
	}
	if e.Cause != "" {
		attrs = append(attrs, slog.String("cause", e.Cause))
	}
	if left > 0 {
		attrs = append(attrs, slog.Int("more_like_it", left))
	}
	l.log.LogAttrs(context.Background(), line.level, line.text, attrs...)
}

// due reports whether an event is to be logged now, and how many like it were not.
func (l *eventLog) due(k eventKey) (left int, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.clock.Now()
	run := l.last[k]
	if run != nil && at.Sub(run.logged) < eventInterval {
		run.left++
		return 0, false
	}
	if l.last == nil || len(l.last) >= maxEventKeys {
		l.last = map[eventKey]*eventRun{}
	}
	if run != nil {
		left = run.left
	}
	l.last[k] = &eventRun{logged: at}
	return left, true
}
