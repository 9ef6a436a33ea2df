package jms

import "sync"

// An event is something that the application's listeners are told.
type event struct {
	err       error // for the exception listener; nil: transport
	transport TransportEvent
}

// An eventQueue hands events to the application's listeners, in their order, on a
// goroutine of its own, so that the connection never waits for them. What is in it is
// bounded: of more than maxEvents the oldest go.
type eventQueue struct {
	exception func(error) // both guarded by the connection's mutex
	transport func(TransportEvent)

	mu     sync.Mutex
	all    []event
	ended  bool
	waiter chan struct{} // holds one
	once   sync.Once
}

const maxEvents = 1000

func (q *eventQueue) wake() chan struct{} {
	q.once.Do(func() { q.waiter = make(chan struct{}, 1) })
	return q.waiter
}

func (q *eventQueue) post(e event) {
	q.mu.Lock()
	if len(q.all) == maxEvents {
		q.all = q.all[1:]
	}
	q.all = append(q.all, e)
	q.mu.Unlock()
	q.poke()
}

func (q *eventQueue) poke() {
	select {
	case q.wake() <- struct{}{}:
	default:
	}
}

// close ends the goroutine once it has told what there is.
func (q *eventQueue) close() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	q.poke()
}

// tellEvents runs the listeners.
func (c *Connection) tellEvents() {
	q := &c.events
	c.mu.Lock()
	c.teller = goroutine()
	c.mu.Unlock()
	for {
		q.mu.Lock()
		all, ended := q.all, q.ended
		q.all = nil
		q.mu.Unlock()
		if len(all) == 0 {
			if ended {
				return
			}
			<-q.wake()
			continue
		}
		c.mu.Lock()
		exception, transport := q.exception, q.transport
		c.mu.Unlock()
		for _, e := range all {
			switch {
			case e.err != nil && exception != nil:
				exception(e.err)
			case e.err != nil:
				c.log.Warn("jms: no exception listener was there for this", "err", e.err)
			case transport != nil:
				transport(e.transport)
			}
		}
	}
}
