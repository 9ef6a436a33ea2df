package queue

import "github.com/nixiemq/nixie/internal/selector"

// A Consumer takes messages from a queue. The exported fields are set before it
// is attached and not changed afterwards, except by commands.
type Consumer struct {
	ID         string
	Connection string
	Session    string
	ClientID   string
	Address    string
	Protocol   string
	Prefetch   int // messages that may be out at a time; 0: only what it pulls
	Priority   int8
	Exclusive  bool
	Selector   *selector.Selector // nil: everything
	// QuietFirst says that the client does not announce its first local
	// redelivery outside a transaction (R-CLIENT-43, clients up to 5.17).
	QuietFirst bool
	// Handle is the owner's own; the machine only carries it.
	Handle any

	held      list // what it has, in the order of the hand-out
	extension int  // by how much DELIVERED acks widen the window (R-BRK-02)
	pulls     int  // messages it asked for and did not get yet
	handed    bool // something was dispatched to it
	full      bool // it had no room when it was last looked at
}

// room reports whether another message may be dispatched to it (R-BRK-01).
func (c *Consumer) room() bool {
	if c.Prefetch == 0 {
		return c.pulls > 0
	}
	return c.held.n-c.extension < c.Prefetch
}

// shrink takes n from the window's extension (R-BRK-02).
func (c *Consumer) shrink(n int) { c.extension = max(0, c.extension-n) }

// Held is how many messages it has.
func (c *Consumer) Held() int { return c.held.n }

// Oldest is when a consumer was handed the oldest message that it still has and
// that its transaction has not acknowledged.
func (m *Machine) Oldest(consumer string) (at int64, ok bool) {
	k := m.byID[consumer]
	if k == nil {
		return 0, false
	}
	for it := k.held.head; it != nil; it = it.next {
		if it.tx == "" && it.attempt != charged {
			return it.handedOut, true
		}
	}
	return 0, false
}
