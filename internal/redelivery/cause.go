package redelivery

import "github.com/nixiemq/nixie/internal/message"

// PoisonKind says what a client's poison cause tells about the attempt.
type PoisonKind uint8

// The kinds of poison cause.
const (
	OtherPoison         PoisonKind = iota // nothing we know
	DeliveryLimit                         // "Delivery[n]": the application failed delivery n (R-CLIENT-48)
	DispatchLimit                         // "Dispatch[n]" or "listener dispatch[n]": no application saw it; the counter told was n (R-CLIENT-31)
	SessionLimit                          // "Exceeded ra redelivery policy limit": a server session gave up (R-CLIENT-4B)
	SuppressedDuplicate                   // "Suppressing duplicate delivery on connection", or "Duplicate delivery to SESSION" (R-CLIENT-35)
)

// ParsePoison reads a poison cause, with or without its class before ": ". n is
// the number in brackets, 0 where there is none.
func ParsePoison(text string) (kind PoisonKind, n int) { return OtherPoison, 0 }

// ExpiredCause is the cause text of a message that expired (R-BRK-23).
func ExpiredCause(expiration int64) string { return "" }

// LimitCause is the cause text of a message that failed n times under p, in the
// form a Java client gives it (R-CLIENT-48); cause is the last failure's text.
func LimitCause(n int, p *Policy, cause string) string { return "" }

// StoreDuplicateCause is the cause text of a duplicate met in the store.
func StoreDuplicateCause(d message.Destination) string { return "" }
