package redelivery

import (
	"strconv"

	"github.com/nixiemq/nixie/internal/message"
)

// LocalFacts are what a client knows about a delivery of its own that failed.
type LocalFacts struct {
	// Counter is the message's redelivery counter, this failure included unless it
	// does not count (R-CLIENT-43).
	Counter int
	// Cause is what the application said, "CLASS: MESSAGE"; "" for a rollback
	// without words.
	Cause string
	// Uncounted: the application asked for the failure not to count.
	Uncounted bool
	// GiveUp: the application asked for the dead letter now.
	GiveUp bool
	// Retry is the delay in milliseconds that the application asked for; negative:
	// the policy's.
	Retry int64
}

// NoRetry as LocalFacts.Retry leaves the delay to the policy.
const NoRetry = -1

// A LocalDecision is what a client does with a message whose delivery failed.
type LocalDecision struct {
	Poison bool   // give it up: a POISON acknowledgement with Text
	Delay  int64  // else: milliseconds until it is delivered again; 0 or less: at once
	Text   string // Poison: the message of the cause, without its class (R-CLIENT-48)
}

// DecideLocal decides what a client does with one message whose delivery failed.
// ActiveMQ's client decides for a whole batch by its last message (R-CLIENT-43,
// R-EDGE-15); a caller of this decides for each.
func (p *Policy) DecideLocal(f LocalFacts, jitter func() float64) LocalDecision {
	switch {
	case f.GiveUp:
		return LocalDecision{Poison: true, Text: deliveryPrefix + strconv.Itoa(f.Counter) + "] given up by the application, cause:" + orNull(f.Cause)}
	case !f.Uncounted && p.Exhausted(f.Counter):
		return LocalDecision{Poison: true, Text: deliveryPrefix + strconv.Itoa(f.Counter) + "] exceeds redelivery policy limit:" + p.String() + ", cause:" + orNull(f.Cause)}
	case f.Retry >= 0:
		return LocalDecision{Delay: f.Retry}
	}
	return LocalDecision{Delay: p.DelayMillis(f.Counter, jitter)}
}

// Undeliverable reports whether a client gives a message up before it delivers it
// (R-CLIENT-30), and with which words (R-CLIENT-31). counter is the broker's,
// brought says that the message has the property redeliveryDelay: a broker-side
// policy counts for it.
func (p *Policy) Undeliverable(counter int, brought, listener bool, consumer string) (text string, poison bool) {
	if !p.PreDispatchCheck || brought || !p.Exhausted(counter) {
		return "", false
	}
	prefix := dispatchPrefix
	if listener {
		prefix = listenerDispatchPrefix
	}
	return prefix + strconv.Itoa(counter) + "] to " + consumer + " exceeds redelivery policy limit:" + p.String(), true
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// ForDestination is p with the destination that its text shows.
func (p *Policy) ForDestination(d message.Destination) *Policy {
	c := *p
	c.Destination = d
	return &c
}
