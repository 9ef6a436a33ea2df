package jms

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The same tests run against a real ActiveMQ, where what the client does must be the
// same:
//
//	NIXIE_JMS_URL=tcp://127.0.0.1:61616 go test ./jms   # one that runs
//	NIXIE_JMS_URL=start go test ./jms                   # Debian's, by interop/reference/activemq-serve
//
// Tests that need a broker of their own, or restart it, are skipped then.

// reference is the broker to test against; nil: ours.
var reference *realRoom

// A realRoom is a broker somewhere.
type realRoom struct {
	address string

	mu    sync.Mutex
	conns []net.Conn
	dials int
}

func (r *realRoom) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, r.address)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials++
	if err == nil {
		r.conns = append(r.conns, conn)
	}
	return conn, err
}

func (r *realRoom) Dials() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}

func (r *realRoom) Cut() {
	r.mu.Lock()
	conns := slices.Clone(r.conns)
	r.conns = nil
	r.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// clear empties the queues that tests use.
func (r *realRoom) clear(t testing.TB) {
	t.Helper()
	f, err := NewConnectionFactory("tcp://reference")
	ok(t, err)
	f.Dial = r.Dial
	c := must(f.CreateConnection(t.Context()))(t)
	defer c.Close()
	ok(t, c.Start())
	s := session(t, c, AutoAcknowledge)
	for _, name := range []string{"A", "A.B", "A.C", "IN", "OUT", "Q", "REQ", "ORDERS", "ActiveMQ.DLQ"} {
		k := must(s.CreateConsumer(t.Context(), Queue(name), WithPrefetch(100)))(t)
		for {
			if _, err := k.ReceiveTimeout(t.Context(), 30*time.Millisecond); errors.Is(err, ErrNoMessage) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		ok(t, k.Close())
	}
}

func TestMain(m *testing.M) { os.Exit(withReference(m)) }

func withReference(m *testing.M) int {
	url := os.Getenv("NIXIE_JMS_URL")
	if url == "start" {
		started, stop, err := startReference()
		if err != nil {
			fmt.Fprintln(os.Stderr, "no reference broker:", err)
			return 1
		}
		defer stop()
		url = started
	}
	if url != "" {
		u, _, err := parseBrokerURL(url)
		if err != nil {
			fmt.Fprintln(os.Stderr, "NIXIE_JMS_URL:", err)
			return 1
		}
		reference = &realRoom{address: u.endpoints[0].address}
	}
	return m.Run()
}

// startReference starts Debian's ActiveMQ behind the command line of nixie serve.
func startReference() (url string, stop func(), err error) {
	data, err := os.MkdirTemp("", "activemq")
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command("../interop/reference/activemq-serve", "serve", "--listen", "tcp://127.0.0.1:0", "--data", data, "--admin", "")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = os.RemoveAll(data)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	for field := range strings.FieldsSeq(line) {
		if at, ok := strings.CutPrefix(field, "openwire="); ok {
			return at, stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("it said %q: %w", line, err)
}
