package redelivery

import (
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// throwable is the class that Java shows before a cause text which came without
// one, and that ActiveMQ's broker gives its own (R-DLQ-01).
const throwable = "java.lang.Throwable: "

// What a Java client's poison causes begin with (R-CLIENT-31, -35, -48, -4B).
const (
	deliveryPrefix         = "Delivery["
	dispatchPrefix         = "Dispatch["
	listenerDispatchPrefix = "listener dispatch["
	sessionLimitPrefix     = "Exceeded ra redelivery policy limit"
	suppressingPrefix      = "Suppressing duplicate delivery on connection"
	sessionDuplicatePrefix = "Duplicate delivery to "
)

// PoisonKind says what a client's poison cause tells about the attempt.
type PoisonKind uint8

// The kinds of poison cause.
const (
	OtherPoison         PoisonKind = iota // nothing we know
	DeliveryLimit                         // "Delivery[n]": the application failed delivery n (R-CLIENT-48)
	DispatchLimit                         // "Dispatch[n]" or "listener dispatch[n]": no application saw it; it was told the counter n (R-CLIENT-31)
	SessionLimit                          // "Exceeded ra redelivery policy limit": a server session gave up (R-CLIENT-4B)
	SuppressedDuplicate                   // "Suppressing duplicate delivery on connection" or "Duplicate delivery to SESSION" (R-CLIENT-35)
)

// ParsePoison reads a poison cause, with or without the class that Java writes
// before it. n is the number in brackets, 0 where there is none. Only the
// beginning counts: the text may quote an application's exception, which may say
// anything.
func ParsePoison(text string) (kind PoisonKind, n int) {
	text = withoutClass(text)
	for _, p := range []struct {
		prefix string
		kind   PoisonKind
	}{
		{deliveryPrefix, DeliveryLimit},
		{dispatchPrefix, DispatchLimit},
		{listenerDispatchPrefix, DispatchLimit},
	} {
		rest, ok := strings.CutPrefix(text, p.prefix)
		if !ok {
			continue
		}
		digits, _, closed := strings.Cut(rest, "]")
		n, err := strconv.ParseUint(digits, 10, 31)
		if !closed || err != nil {
			return OtherPoison, 0
		}
		return p.kind, int(n)
	}
	switch {
	case strings.HasPrefix(text, sessionLimitPrefix):
		return SessionLimit, 0
	case strings.HasPrefix(text, suppressingPrefix), strings.HasPrefix(text, sessionDuplicatePrefix):
		return SuppressedDuplicate, 0
	}
	return OtherPoison, 0
}

// withoutClass cuts leading class names, "CLASS: ", off a cause text. There are
// two where Java did not know the class it was sent (R-DLQ-02).
func withoutClass(text string) string {
	for {
		class, rest, ok := strings.Cut(text, ": ")
		if !ok || strings.ContainsFunc(class, notInClass) {
			return text
		}
		text = rest
	}
}

// notInClass reports whether r cannot stand in a class name.
func notInClass(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '$':
		return false
	}
	return true
}

// expiredText is how the cause of a message that expired begins.
const expiredText = throwable + "Message Expired. Expiration:"

// ExpiredCause is the cause text of a message that expired (R-BRK-23).
func ExpiredCause(expiration int64) string { return expiredText + strconv.FormatInt(expiration, 10) }

// ExpiredAt reports whether cause says that a message expired, and when, in Unix
// milliseconds.
func ExpiredAt(cause string) (millis int64, ok bool) {
	text, ok := strings.CutPrefix(cause, expiredText)
	if !ok {
		return 0, false
	}
	millis, err := strconv.ParseInt(text, 10, 64)
	return millis, err == nil
}

// LimitCause is the cause text of a message that the broker-side policy p gave
// up after n failures, in the form a Java client gives its own (R-CLIENT-48), so
// that the same searches find it. cause is the last failure's text, "" for none.
func LimitCause(n int, p *Policy, cause string) string {
	if cause == "" {
		cause = "null"
	}
	return throwable + deliveryPrefix + strconv.Itoa(n) + "] exceeds redelivery policy limit:" + p.String() + ", cause:" + cause
}

// UndispatchableCause is the cause text of a message that could not be written
// to a consumer (R-BRK-17); text says why.
func UndispatchableCause(text string) string {
	return throwable + "Message cannot be dispatched: " + text
}

// StoreDuplicateCause is the cause text of a duplicate met in the store
// (R-BRK-32).
func StoreDuplicateCause(d message.Destination) string {
	return throwable + "duplicate from store for " + d.String()
}

// PagedDuplicateCause is the cause text of a duplicate met while a queue reads
// on (R-BRK-33).
func PagedDuplicateCause(d message.Destination) string {
	return throwable + "duplicate paged in from cursor for " + d.String()
}

// DiscardCause is the cause text of a message that a topic subscription of the
// given consumer dropped for want of room (R-DLS-01).
func DiscardCause(consumerID string) string {
	return throwable + "Subscription discard. ID:" + consumerID
}

// causeText gives the dead letter's dlqDeliveryFailureCause. The words of the
// client go before ours.
func (r Rules) causeText(f Facts, why Reason) string {
	switch {
	case why == ReasonExpired:
		return ExpiredCause(f.Expiration)
	case why == ReasonUndispatchable:
		return UndispatchableCause(f.Text)
	case why == ReasonDuplicate && f.Text == "":
		return throwable + suppressingPrefix
	case why == ReasonLimit && (f.Cause != message.Poison || f.Text == ""):
		text := f.Text
		if text == "" && f.Cause != message.Poison {
			text = f.Cause.String()
		}
		return LimitCause(f.Failures, r.Redelivery, text)
	}
	return f.Text
}
