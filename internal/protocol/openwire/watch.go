package openwire

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A pulse is what the reader lets the watch see.
type pulse struct {
	signs   atomic.Uint64 // bytes that arrived, and commands that were carried out
	waiting atomic.Bool   // the reader waits for the peer, not the peer for it
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

// watch keeps the connection's time limits and closes it in the end.
func (s *session) watch() error {
	defer s.conn.Close()
	settings, err := s.awaitPeer()
	if err != nil {
		return err
	}
	m := newMonitor(s, settings)
	for {
		wake, stop := s.server.o.Clock.At(m.next())
		select {
		case <-wake:
		case <-s.ctx.Done():
			stop()
			return context.Cause(s.ctx)
		}
		if err := m.check(s.server.o.Clock.Now()); err != nil {
			return err
		}
	}
}

// awaitPeer waits until the settings are negotiated (OpenWire 2).
func (s *session) awaitPeer() (wire.Settings, error) {
	limit := s.server.o.Limits.ConnectAttemptTimeout
	wake, stop := s.server.o.Clock.At(s.server.o.Clock.Now().Add(limit))
	defer stop()
	select {
	case settings := <-s.negotiated:
		return settings, nil
	case <-s.ctx.Done():
		return wire.Settings{}, context.Cause(s.ctx)
	case <-wake:
		return wire.Settings{}, fmt.Errorf("no WireFormatInfo within %v: %w", limit, message.ErrInvalid)
	}
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
	for _, t := range []time.Time{m.nextRead, m.nextSend} {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	return at
}

// check does what is due at now. An error is the end of the connection.
func (m *monitor) check(now time.Time) error {
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

// look ends the connection of a peer that does not read what is written to it.
func (m *monitor) look(now time.Time) error {
	since := m.s.writer.since.Load()
	if since == 0 {
		return nil
	}
	if d := now.Sub(time.Unix(0, since)); d >= m.s.server.o.Limits.WriteTimeout {
		return fmt.Errorf("the client has read nothing for %v while data waits: %w", d, message.ErrUnavailable)
	}
	return nil
}
