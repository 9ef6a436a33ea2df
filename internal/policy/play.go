package policy

import (
	"math"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Ends of a message, beside redelivery's words dead-letter, discard and keep.
const (
	EndProcessed = "processed" // a delivery succeeded
	EndNone      = "endless"   // the deliveries that are reckoned are used up
)

// An End is how one message ended.
type End struct {
	Deliveries int    `json:"deliveries"`
	AtMillis   int64  `json:"atMillis"`
	How        string `json:"how"`
	Target     string `json:"target,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Setting    string `json:"setting,omitempty"` // the key of our own YAML that decided so
	// clientMillis and brokerMillis are how long it waited where.
	clientMillis, brokerMillis int64
}

// A Turn is one delivery of a message, and what came of it.
type Turn struct {
	Delivery int   `json:"delivery"`
	AtMillis int64 `json:"atMillis"`
	// EndMillis is when the delivery ended; it is AtMillis plus the work.
	EndMillis int64 `json:"endMillis"`
	// Failed is false for the delivery that succeeded.
	Failed bool `json:"failed"`
	// By says who brings it back: ByClient or ByBroker; empty: nobody.
	By string `json:"by,omitempty"`
	// DelayMillis is how long it waits then.
	DelayMillis int64 `json:"delayMillis"`
	// ExpiresFirst: its time to live ends within the delay.
	ExpiresFirst bool `json:"expiresFirst,omitempty"`
}

// A world is everything one message meets.
type world struct {
	rules       redelivery.Rules
	client      Client
	destination message.Destination
	trial       Trial
}

// play follows one message to its end, at most so many deliveries. fails tells
// which deliveries fail, jitter is the chance of delays, and turn, which may be
// nil, is told of each delivery. The broker's decisions are those of
// redelivery.Decide.
func (w *world) play(most int, fails func(delivery int) bool, jitter func() float64, turn func(Turn)) End {
	var end End
	now, work := int64(0), w.trial.Work.Milliseconds()
	for n := 1; ; n++ {
		if w.expired(now) {
			return w.decided(end, now, w.ask(message.Expired, n-1, now, jitter))
		}
		end.Deliveries = n
		t := Turn{Delivery: n, AtMillis: now, EndMillis: plus(now, work), Failed: fails(n)}
		now = t.EndMillis
		if !t.Failed {
			tell(turn, t)
			end.AtMillis, end.How = now, EndProcessed
			return end
		}
		if !w.client.None && !w.client.Policy.Exhausted(n) {
			t.By, t.DelayMillis = ByClient, max(0, w.client.Policy.DelayMillis(n, jitter))
			end.clientMillis = plus(end.clientMillis, t.DelayMillis)
			now = plus(now, t.DelayMillis)
		} else {
			d := w.ask(w.client.cause(), n, now, jitter)
			if d.Action != redelivery.Later && d.Action != redelivery.Again {
				tell(turn, t)
				return w.decided(end, now, d)
			}
			due := max(d.Due, now) // Again has no due time
			t.By, t.DelayMillis, t.ExpiresFirst = ByBroker, due-now, d.Reason == redelivery.ReasonExpiresFirst
			end.brokerMillis = plus(end.brokerMillis, t.DelayMillis)
			now = due
		}
		tell(turn, t)
		if n == most {
			end.AtMillis, end.How = now, EndNone
			return end
		}
	}
}

func tell(turn func(Turn), t Turn) {
	if turn != nil {
		turn(t)
	}
}

// epoch is when a message is first delivered, for the rules: they take 0 for no
// time at all.
const epoch = 1

// expired reports whether the message is past its time to live.
func (w *world) expired(now int64) bool {
	return w.trial.TimeToLive > 0 && now > w.trial.TimeToLive.Milliseconds()
}

// ask lets the rules decide about a failure.
func (w *world) ask(c message.Cause, failures int, now int64, jitter func() float64) redelivery.Decision {
	f := redelivery.Facts{Cause: c, Counted: c != message.Expired, Failures: failures, Destination: w.destination,
		Subscription: subscriptionOf(w.destination), Persistent: w.trial.Persistent, Expired: w.expired(now)}
	if w.trial.TimeToLive > 0 {
		f.Expiration = plus(w.trial.TimeToLive.Milliseconds(), epoch)
	}
	d := w.rules.Decide(f, plus(now, epoch), jitter)
	if d.Due > 0 && d.Due < math.MaxInt64 {
		d.Due -= epoch
	}
	return d
}

// decided is the end that the rules decided on.
func (w *world) decided(end End, now int64, d redelivery.Decision) End {
	end.AtMillis, end.How, end.Reason, end.Setting = now, d.Action.String(), string(d.Reason), deciderOf(d, &w.rules)
	if !d.Target.IsZero() {
		end.Target = d.Target.String()
	}
	return end
}
