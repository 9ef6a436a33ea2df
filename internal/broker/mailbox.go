package broker

import (
	"context"
	"errors"
	"sync"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// work is what a destination's goroutine is given to do: a command for its
// machine, or something to do between commands.
type work struct {
	command queue.Command
	do      func()
	stopped func(error) // called instead, where the destination stops before its turn
}

// A mailbox holds what waits for a destination's goroutine. Clients wait while
// it is full; the destinations themselves never do.
type mailbox struct {
	limit int
	wake  chan struct{} // holds one token while there is something to take

	mu     sync.Mutex
	queue  []work
	closed error
	room   chan struct{} // closed when something was taken; nil while nobody waits
}

func newMailbox(limit int) *mailbox {
	return &mailbox{limit: limit, wake: make(chan struct{}, 1)}
}

// put adds w, and waits for room. It fails when ctx ends or the mailbox is closed.
func (m *mailbox) put(ctx context.Context, w work) error {
	for {
		m.mu.Lock()
		if m.closed != nil {
			m.mu.Unlock()
			return m.closed
		}
		if len(m.queue) < m.limit {
			m.queue = append(m.queue, w)
			m.mu.Unlock()
			m.signal()
			return nil
		}
		if m.room == nil {
			m.room = make(chan struct{})
		}
		room := m.room
		m.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// force adds w at once. It reports whether the mailbox still takes anything.
func (m *mailbox) force(w work) bool {
	m.mu.Lock()
	if m.closed != nil {
		m.mu.Unlock()
		return false
	}
	m.queue = append(m.queue, w)
	m.mu.Unlock()
	m.signal()
	return true
}

// isClosed reports whether the mailbox takes nothing any more.
func (m *mailbox) isClosed() bool { return m.reason() != nil }

// reason is why the mailbox takes nothing any more.
func (m *mailbox) reason() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// left is why the mailbox takes nothing any more; nil where its destination was removed,
// and the messages with it.
func (m *mailbox) left() error {
	if err := m.reason(); !errors.Is(err, message.ErrNotFound) {
		return err
	}
	return nil
}

func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default: // the token that is there serves for this one too
	}
}

// take gets all that waits; spare is memory for what comes next.
func (m *mailbox) take(spare []work) []work {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.queue
	m.queue = spare[:0]
	m.release()
	return taken
}

func (m *mailbox) release() {
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
}

// close makes put fail with err and returns what was not taken.
func (m *mailbox) close(err error) []work {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed == nil {
		m.closed = err
	}
	left := m.queue
	m.queue = nil
	m.release()
	return left
}
