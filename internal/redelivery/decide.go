package redelivery

import (
	"math"

	"github.com/nixiemq/nixie/internal/message"
)

// The first and the longest time that a message is held back from a connection
// that poisoned it in its own dead letter queue; each hold is twice the one
// before.
const (
	FirstHoldMillis   = 1_000
	LongestHoldMillis = 60_000
)

// Decide returns what becomes of a message that failed at now (Unix
// milliseconds). jitter is uniform in (-1, 1) and is called only for a policy
// that spreads its delays; nil is no spread. Decide has no other input: no
// clock, no chance, no store.
//
// Expiry goes first: what is past its time is never delivered again. Then come
// the final causes, then the broker-side policy. Without one, every other
// failure makes the message available again at once.
func (r Rules) Decide(f Facts, now int64, jitter func() float64) Decision {
	f.DeadLetterQueue = f.DeadLetterQueue || r.DeadLetterQueue
	switch f.Cause {
	case message.Expired:
		return r.end(f, now, ReasonExpired)
	case message.Undispatchable:
		return r.end(f, now, ReasonUndispatchable)
	case message.Evicted:
		return r.end(f, now, ReasonEvicted)
	case message.Poison:
		return r.poisoned(f, now, jitter)
	}
	switch {
	case f.Expired:
		return r.end(f, now, ReasonExpired)
	case f.Cause == message.Duplicate:
		return r.duplicate(f, now)
	case !f.Counted || !r.policed(f):
		return Decision{Action: Again, By: r.origin()}
	}
	return r.redeliver(f, now, jitter)
}

// policed reports whether a broker-side policy has a say. It has none over dead
// letters, unless it names their queue: they would be scheduled round and round in
// it (R-EDGE-31).
func (r Rules) policed(f Facts) bool {
	return r.Redelivery != nil && (!f.DeadLetterQueue || r.RedeliveryNamed)
}

// poisoned decides about a message that its client has given up. What is past
// its expiration as well dies of the poison: its text says more.
func (r Rules) poisoned(f Facts, now int64, jitter func() float64) Decision {
	if r.policed(f) && !f.Expired && r.Drop != DropFirst {
		return r.redeliver(f, now, jitter)
	}
	if r.Redelivery == nil && r.DropWithoutPolicy && !r.own(f) && !f.Expired {
		return Decision{Action: Discard, Reason: ReasonNoPolicy, By: r.origin()}
	}
	return r.end(f, now, ReasonPoison)
}

// redeliver is the broker-side policy's decision (R-PLG-20, R-PLG-21).
func (r Rules) redeliver(f Facts, now int64, jitter func() float64) Decision {
	p := r.Redelivery
	if p.Exhausted(f.Failures) {
		return r.end(f, now, ReasonLimit)
	}
	d := Decision{Action: Later, By: r.policyOrigin()}
	d.Delay = max(0, p.DelayMillis(f.Failures, jitter))
	d.Due = addMillis(now, d.Delay)
	if f.Expiration > 0 && d.Due > f.Expiration {
		d.Due, d.Reason = max(now, f.Expiration+1), ReasonExpiresFirst
	}
	return d
}

// maxSuppressions is how often a message may be refused as a duplicate before it
// becomes a dead letter. A client that fails over may refuse it once each time.
const maxSuppressions = 10

// duplicate decides about a message that a client refused as a copy of one it
// had, although that one was never acknowledged (R-EDGE-09). It keeps its place;
// the protocol sees to it that the client does not recognise it again.
func (r Rules) duplicate(f Facts, now int64) Decision {
	switch {
	case r.Duplicates == DiscardDuplicate:
		return Decision{Action: Discard, Reason: ReasonDuplicate, By: r.origin()}
	case r.Duplicates == RequeueDuplicate && f.Holds < maxSuppressions:
		return Decision{Action: Hold, Due: now, Reason: ReasonDuplicate, By: r.origin()}
	}
	return r.end(f, now, ReasonDuplicate)
}

// end decides about a message that is not delivered again where it is.
func (r Rules) end(f Facts, now int64, why Reason) Decision {
	d := Decision{Reason: why, By: r.origin()}
	if why == ReasonLimit {
		d.By = r.policyOrigin()
	}
	strategy, own := r.DeadLetter, r.own(f)
	if why == ReasonExpired && r.Expiry.Kind != UnsetStrategy {
		strategy, own = r.Expiry, r.Expiry.Target(f.Destination, f.Subscription) == f.Destination // R-HQ-59
	}
	refused := strategy.refuses(f.Persistent, f.Expired)
	switch {
	case r.Drop != DropNever:
		d.Action, d.Reason = Discard, ReasonPlugin
	case own && why == ReasonExpired && f.Retained && r.Expiry.Kind == UnsetStrategy:
		d.Action, d.Reason = Discard, ReasonRetention
	case own && strategy.DiscardOwn:
		d.Action, d.Reason = Discard, ReasonOwnQueue
	case own:
		d.Action = Keep
		if why != ReasonExpired {
			d.Due = addMillis(now, hold(f.Holds))
			if f.Holds > 0 { // whoever comes fails it: several readers, or one that connects anew, would have it in a hot loop
				d.Rest = addMillis(now, FirstHoldMillis)
			}
		}
	case f.Destination.IsTemporary() && (f.Destination.IsTopic() || why == ReasonExpired): // R-BRK-26; poison of a temporary queue is as of any (R-DLS-01, R-DLS-10)
		d.Action, d.Reason = Discard, ReasonTemporary
	case why == ReasonLimit && r.DropAtLimit:
		d.Action = Discard
	case refused == ReasonDiscarding && why == ReasonExpired && strategy == r.Expiry:
		d.Action = Discard // for the reason that it expired
	case refused != "":
		d.Action, d.Reason = Discard, refused
	default:
		d.Action = DeadLetter
		d.Target = strategy.Target(f.Destination, f.Subscription)
		d.CauseText = r.causeText(f, why)
	}
	return d
}

// own reports whether the message is where its dead letters would go, or is a dead
// letter that no strategy names the queue of (R-DLS-04, R-EDGE-28).
func (r Rules) own(f Facts) bool {
	return f.DeadLetterQueue && !r.StrategyNamed || r.DeadLetter.Target(f.Destination, f.Subscription) == f.Destination
}

// hold is the time in milliseconds that a message is held back from the
// connection that failed it, after so many holds before.
func hold(before int) int64 {
	const doublings = 6 // one second doubled so often is past the longest hold
	return min(int64(FirstHoldMillis)<<min(max(before, 0), doublings), LongestHoldMillis)
}

// origin names the rules, for the ledger.
func (r Rules) origin() string { return origin(r.Name, r.Source) }

// policyOrigin names the broker-side policy, or the rules where it has no name.
func (r Rules) policyOrigin() string {
	if r.Redelivery.Name == "" && r.Redelivery.Source == "" {
		return r.origin()
	}
	return origin(r.Redelivery.Name, r.Redelivery.Source)
}

// origin writes a name with its "file:line", or what there is of them.
func origin(name, source string) string {
	switch {
	case name == "" && source == "":
		return "default"
	case source == "":
		return name
	case name == "":
		return source
	}
	return name + " (" + source + ")"
}

// addMillis adds a delay to a time and ends at the largest int64.
func addMillis(t, delay int64) int64 {
	if delay > 0 && t > math.MaxInt64-delay {
		return math.MaxInt64
	}
	return t + delay
}
