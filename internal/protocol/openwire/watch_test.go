package openwire

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// TestKeepAlives wants a keep-alive after the initial delay and then every third
// of the inactivity duration, unless something else was sent (OpenWire 3.4).
func TestKeepAlives(t *testing.T) {
	t.Parallel()
	f := peerFormat()
	f.MaxInactivityDuration, f.InitialDelay = 6*time.Second, time.Second
	inScript(t, nil, func(h *house, _ *script) {
		p := h.peer(f)
		start := time.Now()
		var at []time.Duration
		for range 24 {
			time.Sleep(500 * time.Millisecond)
			p.send(&wire.KeepAliveInfo{}) // so that we live
			if time.Since(start) == 4*time.Second {
				p.do(&wire.FlushCommand{})
			}
			for _, c := range p.all() {
				if k, ok := c.(*wire.KeepAliveInfo); ok {
					if k.CommandID != 0 || k.ResponseRequired {
						t.Errorf("%+v", k)
					}
					at = append(at, time.Since(start))
				}
			}
		}
		want := []time.Duration{1, 3, 7, 9, 11} // not at 5, as a Response was sent at 4
		if len(at) != len(want) {
			t.Fatalf("keep-alives at %v", at)
		}
		for i := range want {
			if at[i] != want[i]*time.Second {
				t.Errorf("keep-alives at %v", at)
			}
		}
		p.hangUp()
	})
}

// TestSilenceEndsTheConnection wants a silent peer noticed between R and 2R after
// its last byte, and not before the initial delay (OpenWire 3.4).
func TestSilenceEndsTheConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silence, delay time.Duration // announced
		speak          time.Duration // when the peer says something for the last time
		want           time.Duration // when it is closed
	}{
		"from the beginning":   {30 * time.Second, 10 * time.Second, 0, 40 * time.Second},
		"the shorter one wins": {3 * time.Second, 5 * time.Second, 0, 8 * time.Second},
		"after a sign of life": {3 * time.Second, time.Second, 2 * time.Second, 7 * time.Second},
		"ours is the shorter":  {time.Hour, time.Hour, 0, 40 * time.Second},
		"no initial delay":     {3 * time.Second, 0, 0, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := peerFormat()
			f.MaxInactivityDuration, f.InitialDelay = c.silence, c.delay
			inScript(t, nil, func(h *house, s *script) {
				p := h.peer(f)
				start := time.Now()
				p.connect()
				if c.speak > 0 {
					time.Sleep(c.speak)
					p.send(nil) // a null frame: any byte will do
				}
				<-p.ended
				if d := time.Since(start); d != c.want {
					t.Errorf("closed after %v, want %v", d, c.want)
				}
				h.close()
				if log := h.log.String(); !strings.Contains(log, "nothing was heard") {
					t.Errorf("log:\n%s", log)
				}
				if calls := s.took(); !strings.HasPrefix(calls[len(calls)-1], "Close(connection-lost, nothing was heard for ") {
					t.Errorf("calls %v", calls)
				}
			})
		})
	}
}

// TestNoMonitor wants neither keep-alives nor an end where one side has none
// (OpenWire 3.3).
func TestNoMonitor(t *testing.T) {
	t.Parallel()
	off := peerFormat()
	off.MaxInactivityDuration = 0
	for name, c := range map[string]struct {
		format wire.WireFormat
		ours   time.Duration
	}{
		"theirs is off": {format: off},
		"ours is off":   {format: peerFormat(), ours: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, func(o *Options) { o.MaxInactivity = c.ours }, func(h *house, _ *script) {
				p := h.peer(c.format)
				p.connect()
				time.Sleep(24 * time.Hour)
				if got := p.all(); len(got) > 0 {
					t.Errorf("got %+v", got)
				}
				p.hangUp()
			})
		})
	}
}

// TestStrangers wants a peer that has agreed on no inactivity monitor and does not say who
// it is, or has taken that back, closed 5 minutes after its last word. The backup of a
// failover client says nothing but that it lives, and stays.
func TestStrangers(t *testing.T) {
	t.Parallel()
	off := peerFormat()
	off.MaxInactivityDuration = 0
	for name, c := range map[string]struct {
		format wire.WireFormat
		speaks time.Duration // the pause between its keep-alives; 0: none
		leaves bool
		open   time.Duration // at the least, after its last word
		closed time.Duration // 0: never
	}{
		"silent":        {format: off, open: 5 * time.Minute, closed: 6 * time.Minute},
		"has gone":      {format: off, leaves: true, open: 5 * time.Minute, closed: 6 * time.Minute},
		"a backup":      {format: peerFormat(), speaks: 10 * time.Second},
		"a slow backup": {format: off, speaks: 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScript(t, nil, func(h *house, _ *script) {
				p := h.peer(c.format)
				if c.leaves {
					p.connect()
					time.Sleep(time.Hour)
					p.do(&wire.RemoveInfo{ObjectID: p.connection()})
				}
				start := time.Now()
				for c.speaks > 0 && time.Since(start) < 6*time.Hour {
					time.Sleep(c.speaks)
					p.send(&wire.KeepAliveInfo{})
				}
				p.all()
				if c.closed == 0 {
					p.connect() // it is still there
					p.hangUp()
					return
				}
				<-p.ended
				if d := time.Since(start); d < c.open || d > c.closed {
					t.Errorf("closed after %v", d)
				}
				h.close()
				if log := h.log.String(); !strings.Contains(log, "no ConnectionInfo") {
					t.Errorf("log:\n%s", log)
				}
			})
		})
	}
}

// TestBytesOfALargeFrameAreLife sends a frame so slowly that it takes longer than
// the silence that is allowed (OpenWire 3.4).
func TestBytesOfALargeFrameAreLife(t *testing.T) {
	t.Parallel()
	f := peerFormat()
	f.MaxInactivityDuration, f.InitialDelay = 3*time.Second, time.Second
	inScript(t, nil, func(h *house, s *script) {
		p := h.peer(f)
		p.connect()
		p.produce(1, 0)
		m := p.text(1, queueNamed("Q"), strings.Repeat("slow ", 20))
		frame, err := p.enc.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range frame {
			time.Sleep(time.Second)
			if _, err := p.conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := len(s.messages()); n != 1 {
			t.Errorf("%d messages arrived", n)
		}
		p.hangUp()
	})
}

// TestBusyIsNotSilent keeps the reader in a command for longer than the silence
// that is allowed: the peer is not to blame.
func TestBusyIsNotSilent(t *testing.T) {
	t.Parallel()
	f := peerFormat()
	f.MaxInactivityDuration, f.InitialDelay = 3*time.Second, time.Second
	inScript(t, nil, func(h *house, s *script) {
		p := h.peer(f)
		p.connect()
		s.failing("Begin", slow{})
		p.tell(&wire.TransactionInfo{ConnectionID: p.connection(), TransactionID: p.txID(1), Type: wire.TransactionBegin})
		time.Sleep(61 * time.Second)
		p.do(&wire.FlushCommand{})
		p.hangUp()
	})
}

// TestABusyClientIsNotClosed has a client whose listener works in the thread that reads:
// it reads nothing for an hour, and its keep-alives show that it lives. It is closed when
// these end.
func TestABusyClientIsNotClosed(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, s *script) {
		p := h.client()
		s.sink.Deliver(delivery(1, "is worked on"))
		p.dispatched()
		p.pause()
		for i := range uint64(12) {
			s.sink.Deliver(delivery(i+2, strings.Repeat("x", 2*flushBytes)))
		}
		start := time.Now()
		for time.Since(start) < time.Hour {
			time.Sleep(10 * time.Second)
			p.send(&wire.KeepAliveInfo{})
		}
		p.resume()
		for range 12 {
			p.dispatched()
		}
		p.pause()
		for i := range uint64(12) {
			s.sink.Deliver(delivery(i+20, strings.Repeat("x", 2*flushBytes)))
		}
		start = time.Now()
		h.close()
		if d := time.Since(start); d < 30*time.Second || d > 80*time.Second {
			t.Errorf("closed after %v", d)
		}
		p.resume()
		<-p.ended
	})
}

// A slow is an error that takes a minute to look at.
type slow struct{}

func (slow) Error() string {
	time.Sleep(time.Minute)
	return "slow"
}
