package broker

import (
	"sync"
	"sync/atomic"
)

// A topicOrder gives what several producers send to topics to every subscription in one
// order, where that is asked for. What is stored has the order of its numbers, which is
// that in which it is handed to the store and answered by it; what is answered, and what
// does not outlive the process, comes to one subscription after the other, and the next
// message only then.
//
// There are two locks, since a hand-over may wait for room that only answers make.
type topicOrder struct {
	on       atomic.Bool
	writing  sync.Mutex // numbering, until it is handed to the store
	arriving sync.Mutex // giving a unit to all who get it
}

// hold holds one of the locks, where there is to be one order, until it is let go.
func (o *topicOrder) hold(l *sync.Mutex) (letGo func()) {
	if !o.on.Load() {
		return func() {}
	}
	l.Lock()
	return l.Unlock
}
