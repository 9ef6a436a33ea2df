package server

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/nixiemq/nixie/internal/message"
)

// The store has its share of what the process may open, and clients have the rest: where
// there is little, too.
func TestDescriptorsAreSharedOut(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint64]struct {
		tables, admin int
		clients       int64
	}{
		0:       {mostTables, mostAdmin, 1<<30 - mostTables - mostAdmin - ownFiles}, // nobody knows
		152:     {leastTables, leastAdmin, leastClients},
		200:     {leastTables, leastAdmin, 56},
		1024:    {256, 64, 656},
		4096:    {mostTables, mostAdmin, 2792},
		1 << 40: {mostTables, mostAdmin, 1<<30 - mostTables - mostAdmin - ownFiles},
	} {
		d, err := shareOut(limit)
		if err != nil || d.tables != want.tables || d.admin != want.admin || d.clients != want.clients {
			t.Errorf("of %d: %+v, %v; want %+v", limit, d, err, want)
		}
	}
	if _, err := shareOut(151); !errors.Is(err, message.ErrOverLimit) {
		t.Errorf("too few are shared out: %v", err)
	}
	d, _ := shareOut(152)
	for range leastClients {
		if !d.take() {
			t.Fatal("a client is refused for whom there is room")
		}
	}
	if d.take() {
		t.Error("one client too many is let in")
	}
	if d.give(); !d.take() {
		t.Error("a client is refused after another has gone")
	}
}

// A fakeListener accepts what is sent to it.
type fakeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *fakeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *fakeListener) Close() error   { close(l.closed); return nil }
func (l *fakeListener) Addr() net.Addr { return nil }

// A listener that is bounded lets others wait until a connection is closed, and ends all the same.
func TestBoundedListenerWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &fakeListener{conns: make(chan net.Conn, 2), closed: make(chan struct{})}
		l := newBoundedListener(inner, 1)
		accepted := make(chan net.Conn, 2)
		ended := make(chan error, 1)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- c
			}
		}()
		for range 2 {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			inner.conns <- ours
		}
		synctest.Wait()
		if len(accepted) != 1 {
			t.Fatalf("%d connections are open, and there is room for one", len(accepted))
		}
		first := <-accepted
		for range 2 { // once more does no harm
			if err := first.Close(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(accepted) != 1 {
			t.Fatalf("%d connections were accepted after the first, which is closed", len(accepted))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener ended with %v", err)
		}
	})
}
