package openwire

import (
	"fmt"
	"sync"

	"github.com/nixiemq/nixie/internal/message"
)

// maxInterrupted bounds how many lost connections are remembered for their open
// transactions.
const maxInterrupted = 4096

// interrupted remembers, of connections that were lost, the transactions that were
// open and in whose sessions consumers had messages. Java clients replay the sends of
// such a transaction on their next connection, and its commit, but none of its
// acknowledgements (R-CLIENT-62): committed as it comes, what the transaction
// consumed would be delivered again, and what it sent be sent twice. It is safe for
// concurrent use.
type interrupted struct {
	mu     sync.Mutex
	of     map[string]map[string]bool // by connection id, then by transaction id
	oldest []string                   // connection ids, in the order in which they were lost
}

// lose remembers the open transactions of a client whose connection is lost, or
// that was sent away: it may come back.
func (i *interrupted) lose(c *client) {
	open := map[string]bool{}
	for id, t := range c.transactions {
		if c.listens(t, c.broker.Holds) {
			open[id] = true
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(open) == 0 {
		delete(i.of, c.id)
		return
	}
	if i.of == nil {
		i.of = map[string]map[string]bool{}
	}
	if i.of[c.id] == nil {
		i.oldest = append(i.oldest, c.id)
	}
	i.of[c.id] = open
	if len(i.oldest) > maxInterrupted {
		delete(i.of, i.oldest[0])
		i.oldest = i.oldest[1:]
	}
}

// was reports whether the transaction was open on the connection before.
func (i *interrupted) was(connection, tx string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.of[connection][tx]
}

// listens reports whether a transaction may have acknowledgements: there is such a
// consumer in a session of its own; in any session, while it has not shown its own.
func (c *client) listens(t *transaction, such func(consumer string) bool) bool {
	for id, text := range c.consumers {
		session := id.Session()
		if session.Value != connectionSession && (len(t.sessions) == 0 || t.sessions[session]) && such(text) {
			return true
		}
	}
	return false
}

// errNotReplayed fails the commit of a transaction that came back without its
// acknowledgements.
var errNotReplayed = fmt.Errorf("the connection was lost, and what the transaction consumed is not acknowledged on the new one: %w", message.ErrState)
