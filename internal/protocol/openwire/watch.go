package openwire

import (
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A pulse is what the reader lets the watch see.
type pulse struct {
	signs   atomic.Uint64 // bytes that arrived, and commands that were carried out
	waiting atomic.Bool   // the reader waits for the peer, not the peer for it
	known   atomic.Bool   // the peer has said with a ConnectionInfo who it is
}

// A pulseReader counts what arrives. most, the most bytes that one Read gave since it
// was last looked at, is the reader's.
type pulseReader struct {
	r     io.Reader
	pulse *pulse
	most  int
}

func (r *pulseReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.pulse.signs.Add(uint64(n))
	r.most = max(r.most, n)
	return n, err
}

// A watch keeps the connection's time limits: first how long the peer may take to say
// what it can do (OpenWire 2), then those of the monitor. It has no goroutine but
// while it looks.
type watch struct {
	s *session

	mu      sync.Mutex
	monitor *monitor // nil until the settings are negotiated
	ended   bool
	looks   int         // that were arranged
	stop    func() bool // takes the last of them back
}

// begin gives the peer time for its first frame.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waitLocked(w.s.server.o.Clock.Now().Add(w.s.server.o.Limits.ConnectAttemptTimeout))
}

// negotiated begins the monitor.
func (w *watch) negotiated(settings wire.Settings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.cancelLocked()
	w.monitor = newMonitor(w.s, settings)
	w.waitLocked(w.monitor.next())
}

// leaveIn ends the connection after d, as the client is to go to another broker.
func (w *watch) leaveIn(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.monitor == nil || !w.monitor.leave.IsZero() {
		return
	}
	w.cancelLocked()
	w.monitor.leave = w.s.server.o.Clock.Now().Add(d)
	w.waitLocked(w.monitor.next())
}

// end lets nothing be looked at any more.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.cancelLocked()
}

func (w *watch) waitLocked(t time.Time) {
	w.s.helped.Add(1)
	w.looks++
	number := w.looks
	w.stop = w.s.server.o.Clock.Call(t, func() {
		defer w.s.helped.Done()
		w.s.guard("watch", func() error { return w.look(number) })
	})
}

func (w *watch) cancelLocked() {
	if w.stop != nil && w.stop() {
		w.s.helped.Done() // else it looks, and finds that it need not
	}
	w.stop = nil
}

// look does what is due. An error is the end of the connection.
func (w *watch) look(number int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended, number < w.looks:
		return nil
	case w.monitor == nil:
		return fmt.Errorf("no WireFormatInfo within %v: %w", w.s.server.o.Limits.ConnectAttemptTimeout, message.ErrInvalid)
	}
	if err := w.monitor.check(w.s.server.o.Clock.Now()); err != nil {
		return err
	}
	w.waitLocked(w.monitor.next())
	return nil
}

// writeChecks is how many times within the write time limit it is looked at.
const writeChecks = 4

// A monitor does what is to be done from time to time: the inactivity monitor's
// write and read checks (OpenWire 3.4), and the look at a Write that takes too long.
type monitor struct {
	s        *session
	silence  time.Duration // R of OpenWire 3.4; 0: no inactivity monitor
	pause    time.Duration // W: between two write checks
	sent     uint64        // at the last write check
	signs    uint64        // at the last read check
	nextRead time.Time     // zero: never
	nextSend time.Time     // zero: never
	nextLook time.Time     // at the Write that goes on
	heard    uint64        // signs at the last look
	heardAt  time.Time     // the look at which something had been heard last
	leave    time.Time     // the client is to go to another broker then; zero: never
}

// shortSilence is the R up to which W is R itself.
const shortSilence = 3 * time.Millisecond

func newMonitor(s *session, settings wire.Settings) *monitor {
	now := s.server.o.Clock.Now()
	m := &monitor{s: s, silence: settings.MaxInactivityDuration, nextLook: now.Add(s.server.o.Limits.WriteTimeout / writeChecks)}
	if m.silence > 0 {
		m.pause = m.silence / 3
		if m.silence <= shortSilence {
			m.pause = m.silence
		}
		m.nextRead, m.nextSend = now.Add(settings.InitialDelay), now.Add(settings.InitialDelay)
		m.sent, _ = s.out.activity()
		m.signs = math.MaxUint64 // the first check only sees where to begin
	}
	return m
}

// next is when to check.
func (m *monitor) next() time.Time {
	at := m.nextLook
	for _, t := range []time.Time{m.nextRead, m.nextSend, m.leave} {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	return at
}

// check does what is due at now. An error is the end of the connection.
func (m *monitor) check(now time.Time) error {
	if !m.leave.IsZero() && !now.Before(m.leave) {
		return errSentAway
	}
	if !now.Before(m.nextLook) {
		m.nextLook = now.Add(m.s.server.o.Limits.WriteTimeout / writeChecks)
		if err := m.look(now); err != nil {
			return err
		}
	}
	if m.silence <= 0 {
		return nil
	}
	if !now.Before(m.nextSend) {
		m.nextSend = now.Add(m.pause)
		sent, busy := m.s.out.activity()
		if sent == m.sent && !busy {
			m.s.out.keepAlive()
		}
		m.sent = sent
	}
	if !now.Before(m.nextRead) {
		m.nextRead = now.Add(m.silence)
		signs := m.s.pulse.signs.Load()
		if signs == m.signs && m.s.pulse.waiting.Load() {
			return fmt.Errorf("nothing was heard for %v: %w", m.silence, message.ErrUnavailable)
		}
		m.signs = signs
	}
	return nil
}

// look ends the connection of a peer that does not read what is written to it, and does
// not say anything either. One that does is busy: a client whose listener works in the
// thread that reads (jms.alwaysSessionAsync=false, a ServerSessionPool that waits) takes
// as long as that, and its keep-alives come from another one. What waits for it is bounded.
//
// Without an inactivity monitor it ends that of a peer, too, that does not say who it is.
// With one, such a peer is a failover client's backup, and shows that it lives.
func (m *monitor) look(now time.Time) error {
	if signs := m.s.pulse.signs.Load(); signs != m.heard {
		m.heard, m.heardAt = signs, now
	}
	if limit := m.s.server.o.Limits.StrangerTimeout; m.silence <= 0 && !m.s.pulse.known.Load() && now.Sub(m.heardAt) >= limit {
		return fmt.Errorf("no ConnectionInfo, and nothing else was heard for %v: %w", limit, message.ErrUnavailable)
	}
	since := m.s.writer.since.Load()
	if since == 0 {
		return nil
	}
	begin := time.Unix(0, since)
	if m.heardAt.After(begin) {
		begin = m.heardAt
	}
	if d := now.Sub(begin); d >= m.s.server.o.Limits.WriteTimeout {
		return fmt.Errorf("the client has read nothing for %v while data waits: %w", d, message.ErrUnavailable)
	}
	return nil
}
