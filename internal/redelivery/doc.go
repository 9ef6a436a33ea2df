// Package redelivery holds the policies of redelivery and dead-lettering, and
// takes the one decision there is: what becomes of a message whose delivery
// failed, whatever the protocol and the cause.
//
// Its laws: it is pure (time, chance and facts are arguments; nothing is kept
// between calls), it imports only message, and every outcome says why. A message
// is never dropped without a Reason that the caller can count (R-EDGE-02).
//
//	Facts ──┐
//	Rules ──┼─ Decide ─→ Again | Later | Hold | Keep | DeadLetter | Discard
//	now   ──┘
//
// A Policy says how often and after which delay a message is redelivered; its
// Arithmetic is that of the dialect the policy was written in. A
// DeadLetterStrategy says where a dead letter goes and what is not kept. A Map
// finds either by destination, with ActiveMQ's precedence of overlapping
// patterns made deterministic (R-MAP-13).
//
// Rule ids (R-POL-10 and the like) are those of the project's specification of
// ActiveMQ's behaviour; tests cite them.
package redelivery
