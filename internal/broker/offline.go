package broker

import (
	"fmt"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// An OfflineLimit ends durable subscriptions that nobody uses any more, with their
// messages: ActiveMQ's offlineDurableSubscriberTimeout. The time counts from when
// the last user left, and anew from the broker's start.
type OfflineLimit struct {
	// After is how long; 0 or less: for ever.
	After time.Duration
	// Every is how often is looked; default 5 minutes.
	Every time.Duration
}

// watchOffline looks at the subscriptions now and then.
func (b *Broker) watchOffline() {
	l := b.o.Offline
	if l.After <= 0 {
		return
	}
	if l.Every <= 0 {
		l.Every = 5 * time.Minute
	}
	b.running.Go(func() {
		for {
			wake, release := b.o.Clock.At(b.o.Clock.Now().Add(l.Every))
			select {
			case <-wake:
				b.endOffline(b.now() - l.After.Milliseconds())
			case <-b.ctx.Done():
				release()
				return
			}
		}
	})
}

// endOffline removes the durable subscriptions that were left before a time, Unix
// milliseconds. One that is wanted meanwhile, or that a transaction still needs,
// stays until the next look.
func (b *Broker) endOffline(before int64) {
	b.mu.Lock()
	var idle []*subscription
	for _, s := range b.subscriptions {
		if s.durable && s.user == nil && s.left <= before {
			idle = append(idle, s)
		}
	}
	b.mu.Unlock()
	for _, s := range idle {
		since := time.UnixMilli(s.left).UTC().Format(time.DateTime)
		if err := b.unsubscribe(s, ""); err == nil {
			b.tell(Event{Kind: SubscriptionTimedOut, Destination: s.topic, ClientID: s.clientID,
				Text: fmt.Sprintf("subscription %s of client %s, offline since %s", s.name, s.clientID, since)})
		}
	}
}

// inUse is the error of what a subscription with a user cannot do.
func (s *subscription) inUse() error {
	return fmt.Errorf("durable subscription %s of client %s is in use: %w", s.name, s.clientID, message.ErrState)
}
