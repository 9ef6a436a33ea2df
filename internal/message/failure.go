package message

import "fmt"

// Cause says why a delivery attempt ended without an acknowledgement. Every
// protocol's words are translated to these, and nothing else is decided on.
type Cause uint8

// The causes there are. "Counts" means that the policy counts the attempt.
const (
	NoCause        Cause = iota
	Rollback             // the transaction that took it was rolled back; counts
	Recover              // Session.recover, or a listener's exception outside a transaction; counts
	Nack                 // the protocol's own "no"; counts
	Released             // given back unused; does not count
	Poison               // the client has given up on it
	Closed               // consumer, session or connection closed with it unacknowledged; counts if the application had it
	ConnectionLost       // the socket went; counts if the application may have had it
	AckTimeout           // our limit for an acknowledgement passed; counts
	Expired              // its time to live passed; final
	Undispatchable       // it cannot be written to this consumer; final
	BrokerStopped        // we went down while it was out; does not count
	Duplicate            // the client took it for a copy of one it had; does not count
	Evicted              // too much waited for a slow topic consumer, and it never got it; final
)

var causes = [...]string{"none", "rollback", "recover", "nack", "released", "poison", "closed", "connection-lost",
	"ack-timeout", "expired", "undispatchable", "broker-stopped", "duplicate", "evicted"}

// String gives the cause in the word that console, CLI and docs use.
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c]
	}
	return fmt.Sprintf("cause-%d", uint8(c))
}

// A Failure is one signal that a delivery attempt ended without success.
type Failure struct {
	Cause    Cause
	Text     string // the client's words, or ours; for a poison ack "CLASS: MESSAGE"
	Consumer string
	ClientID string
	Address  string // the peer's network address
	Protocol string
	At       int64 // Unix milliseconds
}

// An Attempt is one line of a message's story: a delivery that ended without
// success, and what was decided.
type Attempt struct {
	Number     int   // 1 is the first attempt
	HandedOut  int64 // Unix milliseconds; 0: not known
	Ended      int64 // Unix milliseconds
	Cause      Cause
	Text       string
	Consumer   string
	ClientID   string
	Address    string
	Protocol   string
	Counted    bool   // the policy counted it
	Policy     string // name of the policy that decided, with file:line where it has one
	Decision   string // "again", "later", "dead-letter", "discard", "keep"
	NextDue    int64  // when it may be delivered again; 0: at once, or never
	Redeliver  int    // the counter told to the client at this delivery
	Uncertain  bool   // reconstructed from a later signal, not seen itself
	Successors int    // further attempts dropped after this line to keep the story bounded
}
