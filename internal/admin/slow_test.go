package admin_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// oneConn is a listener with one connection.
type oneConn struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestBodyThatNeverComes: a request whose body comes by the byte is refused after a
// while; what comes in time is read whole, however long the work takes.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every time.Duration // between two bytes
		want  string
	}{
		"in time":  {time.Second, "404"},
		"too slow": {5 * time.Second, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				ours, theirs := net.Pipe()
				l := &oneConn{conns: make(chan net.Conn, 1)}
				l.conns <- theirs
				s := &http.Server{Handler: h.handler}
				var served sync.WaitGroup
				served.Go(func() { _ = s.Serve(l) })
				defer served.Wait()
				defer s.Close()
				body := `{"all": true}`
				served.Go(func() {
					if _, err := fmt.Fprintf(ours, "POST /api/v1/queues/Q/purge HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(body)); err != nil {
						return
					}
					for b := range strings.SplitSeq(body, "") {
						time.Sleep(c.every)
						if _, err := ours.Write([]byte(b)); err != nil {
							return // refused meanwhile
						}
					}
				})
				reply, err := http.ReadResponse(bufio.NewReader(ours), nil)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(reply.Status, c.want) {
					t.Errorf("answered %s, want %s", reply.Status, c.want)
				}
				ours.Close()
			})
		})
	}
}
