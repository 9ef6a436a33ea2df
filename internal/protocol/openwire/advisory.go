package openwire

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// Advisories tell clients what happens in the broker, by messages on topics of their
// own (OpenWire 12). A Java client refuses to send to a temporary destination that
// it was not told of; the rest is for tools.
//
// The broker's events are the only source, so that it does not matter which
// protocol a destination is made with and why it goes: plug Listen into
// broker.Options. Events must come before the call that causes them returns;
// then a session that waits with after answers behind its advisory. Run publishes,
// one advisory after the other.
//
// It is safe for concurrent use. A nil Advisories tells nobody.
type Advisories struct {
	log        *slog.Logger
	origin     wire.Map
	properties []byte // origin alone, encoded
	producer   wire.ProducerID
	sequence   atomic.Int64
	quiet      bool
	wake       chan struct{} // holds one token while there is something to do

	mu      sync.Mutex
	todo    []notice // at most maxNotices beside those of temporary destinations and of sessions that wait
	dropped int      // since the last time that this was logged
	stopped bool
}

// A notice is an event to publish, or a function to call when all before it is
// published.
type notice struct {
	event broker.Event
	call  func()
}

// NewAdvisories makes advisories that come from the broker so named. Run begins to
// send them.
func NewAdvisories(brokerID, brokerName, brokerURL string, log *slog.Logger) (*Advisories, error) {
	origin := wire.Map{
		{Key: "originBrokerId", Value: brokerID},
		{Key: "originBrokerName", Value: brokerName},
		{Key: "originBrokerURL", Value: brokerURL},
	}
	properties, err := wire.AppendMap(nil, origin)
	if err != nil {
		return nil, fmt.Errorf("advisories: %w", err)
	}
	return &Advisories{
		log:        cmp.Or(log, slog.New(slog.DiscardHandler)),
		origin:     origin,
		properties: properties,
		producer:   wire.ProducerID{ConnectionID: brokerID, SessionID: connectionSession, Value: 1},
		wake:       make(chan struct{}, 1),
	}, nil
}

// Quiet leaves all advisories out but those of temporary destinations, without which
// Java clients refuse to answer requests (advisorySupport="false"). It is called before
// anything else.
func (a *Advisories) Quiet() { a.quiet = true }

// Topic is AdvisoryTopic, of what these advisories tell of.
func (a *Advisories) Topic(kind broker.EventKind, d message.Destination) message.Destination {
	if a.quiet && kind != broker.TempAdded && kind != broker.TempRemoved {
		return message.Destination{}
	}
	return AdvisoryTopic(kind, d)
}

// Listen takes an event of the broker. It does not block, and passes over what no
// advisory is made of.
func (a *Advisories) Listen(e broker.Event) {
	switch e.Kind {
	case broker.Expired, broker.Discarded, broker.Evicted, broker.DeadLettered: // without a copy, nobody watches them
		if e.Copy == nil {
			return
		}
	}
	if !a.Topic(e.Kind, e.Destination).IsZero() {
		a.add(notice{event: e})
	}
}

// after calls f when all that Listen has taken so far is with the consumers.
func (a *Advisories) after(f func()) {
	if a == nil || !a.add(notice{call: f}) {
		f()
	}
}

// maxNotices is how many events may wait to be published. Beyond it they are left
// out, and the log says how many: who watches every message of a busy broker must
// not take its memory. Those of temporary destinations are never left out.
const maxNotices = 10_000

// add reports whether the notice will be seen to.
func (a *Advisories) add(n notice) bool {
	a.mu.Lock()
	ok := !a.stopped
	switch {
	case !ok:
	case len(a.todo) >= maxNotices && n.call == nil && !n.event.Destination.IsTemporary():
		a.dropped++
	default:
		a.todo = append(a.todo, n)
	}
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default: // the token that is there serves for this one too
	}
	return ok
}

// Run publishes until ctx ends. Who waits then is told that all is done.
func (a *Advisories) Run(ctx context.Context, b Broker) error {
	for ctx.Err() == nil {
		for _, n := range a.take(false) {
			a.carryOut(ctx, b, n)
		}
		a.confess(ctx)
		select {
		case <-a.wake:
		case <-ctx.Done():
		}
	}
	for _, n := range a.take(true) {
		if n.call != nil {
			n.call()
		}
	}
	return nil
}

// confess logs what was left out.
func (a *Advisories) confess(ctx context.Context) {
	a.mu.Lock()
	n := a.dropped
	a.dropped = 0
	a.mu.Unlock()
	if n > 0 {
		a.log.LogAttrs(ctx, slog.LevelWarn, "advisories were left out: they came faster than they can be published", slog.Int(keyCount, n))
	}
}

func (a *Advisories) take(last bool) []notice {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.todo
	a.todo, a.stopped = nil, a.stopped || last
	return taken
}

func (a *Advisories) carryOut(ctx context.Context, b Broker, n notice) {
	if n.call != nil {
		n.call()
		return
	}
	if !b.Watched(a.Topic(n.event.Kind, n.event.Destination)) {
		return
	}
	m, err := a.message(n.event)
	published := make(chan error, 1) // takes the one answer
	if err == nil {
		err = b.Publish(ctx, m, func(err error) { published <- err })
	}
	if err == nil {
		select {
		case err = <-published:
		case <-ctx.Done():
			return
		}
	}
	if err != nil && ctx.Err() == nil {
		a.log.LogAttrs(ctx, slog.LevelWarn, "advisory was not sent",
			slog.String(keyDestination, n.event.Destination.String()), slog.Any(keyError, err))
	}
}
