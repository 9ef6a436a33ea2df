package redelivery

import (
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

func TestExpiryAddress(t *testing.T) { // R-HQ-57, R-HQ-59, R-HQ-63
	t.Parallel()
	graves := message.Destination{Kind: message.Queue, Name: "ExpiryQueue"}
	toGraves := SharedStrategy()
	toGraves.DeadLetterQueue, toGraves.ProcessNonPersistent = graves, true
	dead := SharedStrategy()
	dead.ProcessNonPersistent = true
	policy := HornetQPolicy()
	expired := func(f *Facts) { f.Expired, f.Expiration = true, now-5 }
	for name, tt := range map[string]struct {
		expiry DeadLetterStrategy
		facts  Facts
		want   Decision
	}{
		"it goes to the expiry address":        {toGraves, with(failed(message.Expired, 0), expired), Decision{Action: DeadLetter, Target: graves, Reason: ReasonExpired, By: "default"}},
		"whatever ended its last delivery":     {toGraves, with(failed(message.Rollback, 3), expired), Decision{Action: DeadLetter, Target: graves, Reason: ReasonExpired, By: "default"}},
		"not persistent":                       {toGraves, with(failed(message.Expired, 0), expired, func(f *Facts) { f.Persistent = false }), Decision{Action: DeadLetter, Target: graves, Reason: ReasonExpired, By: "default"}},
		"poison is poison":                     {toGraves, with(failed(message.Poison, 3), expired), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonPoison, By: "default"}},
		"the limit is the limit":               {toGraves, failed(message.Rollback, 10), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonLimit, By: "default"}},
		"without an address it is dropped":     {DiscardingStrategy(), with(failed(message.Expired, 0), expired), Decision{Action: Discard, Reason: ReasonExpired, By: "default"}},
		"unset: with the other dead letters":   {DeadLetterStrategy{}, with(failed(message.Expired, 0), expired), Decision{Action: DeadLetter, Target: dlq, Reason: ReasonExpired, By: "default"}},
		"in the expiry queue itself it stays":  {toGraves, with(failed(message.Expired, 0), expired, func(f *Facts) { f.Destination = graves }), Decision{Action: Keep, Reason: ReasonExpired, By: "default"}},
		"a dead letter goes there":             {toGraves, with(failed(message.Expired, 0), expired, func(f *Facts) { f.Destination, f.DeadLetterQueue = dlq, true }), Decision{Action: DeadLetter, Target: graves, Reason: ReasonExpired, By: "default"}},
		"a dead letter with a time is dropped": {DiscardingStrategy(), with(failed(message.Expired, 0), expired, func(f *Facts) { f.Destination, f.DeadLetterQueue = dlq, true }), Decision{Action: Discard, Reason: ReasonExpired, By: "default"}},
		"a temporary queue's message is gone":  {toGraves, with(failed(message.Expired, 0), expired, func(f *Facts) { f.Destination.Kind = message.TempQueue }), Decision{Action: Discard, Reason: ReasonTemporary, By: "default"}},
		"a failed dead letter stays all the same": {toGraves, with(failed(message.Poison, 1), func(f *Facts) { f.Destination, f.DeadLetterQueue = dlq, true }),
			Decision{Action: Keep, Due: now + FirstHoldMillis, Reason: ReasonPoison, By: "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, Rules{Redelivery: &policy, DeadLetter: dead, Expiry: tt.expiry}, tt.facts, tt.want)
		})
	}
}
