package admin

import (
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// An Attempt is one line of a message's story: a delivery that ended without
// success, and what was decided. Of a long story the first 10 and the last 90 lines
// are kept; Number shows the gap.
type Attempt struct {
	Number    int       `json:"number"`
	HandedOut time.Time `json:"handedOut,omitzero"`
	Ended     time.Time `json:"ended"`
	Cause     string    `json:"cause"`
	Text      string    `json:"text,omitempty"`
	Consumer  string    `json:"consumer,omitempty"`
	ClientID  string    `json:"clientId,omitempty"`
	Address   string    `json:"address,omitempty"`
	Protocol  string    `json:"protocol,omitempty"`
	// Counted says that the policy counted it.
	Counted bool `json:"counted"`
	// Policy is the name of the policy that decided, with file and line.
	Policy string `json:"policy,omitempty"`
	// Decision is again, later, dead-letter, discard, keep, hold, or client: the
	// client redelivers it by itself.
	Decision string    `json:"decision"`
	NextDue  time.Time `json:"nextDue,omitzero"`
	// RedeliveryCounter is what the client was told at this delivery.
	RedeliveryCounter int `json:"redeliveryCounter"`
	// Uncertain says that nobody saw it: a later signal told of it.
	Uncertain bool `json:"uncertain,omitempty"`
}

func attemptOf(a *message.Attempt) Attempt {
	return Attempt{
		Number: a.Number, HandedOut: timeOf(a.HandedOut), Ended: timeOf(a.Ended), Cause: a.Cause.String(), Text: a.Text,
		Consumer: a.Consumer, ClientID: a.ClientID, Address: a.Address, Protocol: a.Protocol, Counted: a.Counted,
		Policy: a.Policy, Decision: a.Decision, NextDue: timeOf(a.NextDue), RedeliveryCounter: a.Redeliver, Uncertain: a.Uncertain,
	}
}
