package policy

import (
	"math"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Fate is what becomes of a message in the end.
type Fate struct {
	// What happens to it: gives-up, expires, cannot-be-delivered.
	When       string `json:"when"`
	Persistent bool   `json:"persistent"`
	// Action is redelivery's word: dead-letter, discard, keep, again, later.
	Action string `json:"action"`
	// Target is where a dead letter goes.
	Target string `json:"target,omitempty"`
	// Reason is redelivery's word for why it is dropped or kept.
	Reason string `json:"reason,omitempty"`
	// Setting is the key of our own YAML that decided so, where a message is dropped.
	Setting string `json:"setting,omitempty"`
}

// deciders are the keys behind the reasons for which a message is dropped.
var deciders = map[redelivery.Reason]string{
	redelivery.ReasonNonPersistent: "deadLetterStrategy.processNonPersistent",
	redelivery.ReasonExpired:       "deadLetterStrategy.processExpired",
	redelivery.ReasonDiscarding:    "deadLetterStrategy.kind",
	redelivery.ReasonNoPolicy:      "dropWithoutPolicy",
	redelivery.ReasonLimit:         "dropAtLimit",
	redelivery.ReasonPlugin:        "dropDeadLetters",
	redelivery.ReasonOwnQueue:      "deadLetterStrategy.discardOwn",
}

// deciderOf is the key behind a decision to drop a message.
func deciderOf(d redelivery.Decision, rules *redelivery.Rules) string {
	switch {
	case d.Action != redelivery.Discard:
		return ""
	case d.Reason == redelivery.ReasonExpired && rules.Expiry.Kind != redelivery.UnsetStrategy:
		return "expiry"
	}
	return deciders[d.Reason]
}

// When a fate comes about.
const (
	WhenGivenUp = "given-up"       // its last delivery failed
	WhenExpired = "expired"        // its time to live passed
	WhenUnsent  = "undispatchable" // it cannot be written to a consumer
)

// fatesOf asks the rules what becomes of messages of a destination.
func fatesOf(q *Question, e *config.Effective, endless bool) []Fate {
	var all []Fate
	for _, persistent := range []bool{true, false} {
		if !endless {
			all = append(all, fateOf(WhenGivenUp, q, e, persistent))
		}
		all = append(all, fateOf(WhenExpired, q, e, persistent), fateOf(WhenUnsent, q, e, persistent))
	}
	return all
}

// fateOf asks the rules about one message.
func fateOf(when string, q *Question, e *config.Effective, persistent bool) Fate {
	f := redelivery.Facts{Destination: q.Destination, Subscription: subscriptionOf(q.Destination), Persistent: persistent, Counted: true}
	switch when {
	case WhenGivenUp:
		f.Cause, f.Failures = q.Client.cause(), math.MaxInt
	case WhenExpired:
		f.Cause, f.Counted, f.Expired, f.Expiration = message.Expired, false, true, 1
	case WhenUnsent:
		f.Cause, f.Counted = message.Undispatchable, false
	}
	d := e.Rules.Decide(f, 1, nil)
	fate := Fate{When: when, Persistent: persistent, Action: d.Action.String(), Reason: string(d.Reason), Setting: deciderOf(d, &e.Rules)}
	if !d.Target.IsZero() {
		fate.Target = d.Target.String()
	}
	return fate
}

// cause is how a client tells the broker that it will not deliver a message again
// by itself.
func (c Client) cause() message.Cause {
	if c.None {
		return message.Nack
	}
	return message.Poison
}

// subscriptionOf stands for a durable subscription to a topic: only these, and
// queues, have dead letters.
func subscriptionOf(d message.Destination) redelivery.Subscription {
	if d.IsTopic() {
		return redelivery.Subscription{ClientID: "CLIENT", Name: "SUBSCRIPTION"}
	}
	return redelivery.Subscription{}
}
