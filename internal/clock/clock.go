// Package clock is the only room that reads the time. The core takes the time
// as an argument; the shell takes a Clock.
package clock

import (
	"sync"
	"time"
)

// A Clock tells the time and wakes its caller. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// At returns a channel that receives once the time is t or later, and a
	// function that releases it. For the zero time the channel is nil, on which
	// a select waits for ever.
	At(t time.Time) (<-chan time.Time, func())
	// Call has f called, in a goroutine of its own, once the time is t or later. The
	// function it returns takes that back, and reports whether f will not be called.
	Call(t time.Time, f func()) (stop func() bool)
	// Since is how much time has passed since a Now, whatever the clock was set to
	// meanwhile. Where the machine slept it may be less than what the clock shows.
	Since(t time.Time) time.Duration
}

// System is the machine's clock; in a synctest bubble it is the bubble's.
type System struct{}

// Now returns the machine's time.
func (System) Now() time.Time { return time.Now() }

// At wakes the caller at t.
func (System) At(t time.Time) (<-chan time.Time, func()) {
	if t.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(t))
	return timer.C, func() { timer.Stop() }
}

// Call calls f at t.
func (System) Call(t time.Time, f func()) (stop func() bool) {
	return time.AfterFunc(time.Until(t), f).Stop
}

// Since is how long ago t was.
func (System) Since(t time.Time) time.Duration { return time.Since(t) }

// Manual is a clock that is moved by hand, for scripts and for tests of clocks
// that jump. The zero value shows the zero time.
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	waiting map[*waiter]struct{}
}

type waiter struct {
	at time.Time
	c  chan time.Time
	f  func() // instead of c
}

func (w *waiter) wake(now time.Time) {
	if w.f != nil {
		go w.f()
		return
	}
	w.c <- now // never blocks: the buffer takes the one value there is
}

// Now returns the time last set.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Set moves the clock to t, forward or back, and wakes who waited for it.
func (m *Manual) Set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = t
	for w := range m.waiting {
		if !w.at.After(t) {
			w.wake(t)
			delete(m.waiting, w)
		}
	}
}

// At wakes the caller when the clock is set to t or later.
func (m *Manual) At(t time.Time) (<-chan time.Time, func()) {
	if t.IsZero() {
		return nil, func() {}
	}
	w := &waiter{at: t, c: make(chan time.Time, 1)}
	stop := m.add(w)
	return w.c, func() { stop() }
}

// Call calls f when the clock is set to t or later.
func (m *Manual) Call(t time.Time, f func()) (stop func() bool) { return m.add(&waiter{at: t, f: f}) }

// Since is what the clock shows, as nothing else passes.
func (m *Manual) Since(t time.Time) time.Duration { return m.Now().Sub(t) }

// add lets w wait, or wakes it at once.
func (m *Manual) add(w *waiter) (stop func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !w.at.After(m.now) {
		w.wake(m.now)
		return func() bool { return false }
	}
	if m.waiting == nil {
		m.waiting = map[*waiter]struct{}{}
	}
	m.waiting[w] = struct{}{}
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, waits := m.waiting[w]
		delete(m.waiting, w)
		return waits
	}
}
