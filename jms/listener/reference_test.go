package listener

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nixiemq/nixie/jms"
)

// Against a real ActiveMQ, as the client's tests (NIXIE_JMS_URL=tcp://host:port): every
// message is processed though one in ten fails once, one is given up, and the workers
// come and go.
func TestAgainstAReference(t *testing.T) {
	url := os.Getenv("NIXIE_JMS_URL")
	if url == "" || url == "start" {
		t.Skip("NIXIE_JMS_URL names no broker")
	}
	queue := jms.Queue(fmt.Sprintf("LISTENER.%d", time.Now().UnixNano()))
	f, err := jms.NewConnectionFactory(url)
	ok(t, err)
	conn, err := f.CreateConnection(t.Context())
	ok(t, err)
	s, err := conn.CreateSession(jms.SessionTransacted)
	ok(t, err)
	p, err := s.CreateProducer(t.Context(), queue)
	ok(t, err)
	const n = 200
	for i := range n {
		ok(t, p.Send(t.Context(), jms.NewText(fmt.Sprint(i))))
	}
	ok(t, s.Commit(t.Context()))
	ok(t, conn.Close())
	var mu sync.Mutex
	seen, bad := map[string]int{}, 0
	done := make(chan struct{})
	c, stop := run(t, Options{Factory: f, Destination: queue, Transacted: true, MinConcurrency: 2, MaxConcurrency: 6, Prefetch: 5,
		Policy: policy(2, 10*time.Millisecond, 10*time.Millisecond),
		Handler: func(_ context.Context, m *jms.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if m.Text() == "77" {
				if bad++; bad == 3 && len(seen) == n-1 {
					close(done)
				}
				return errors.New("always")
			}
			if len(m.Text())%10 == 1 && !m.Redelivered() {
				return errors.New("once")
			}
			if seen[m.Text()]++; len(seen) == n-1 && bad >= 3 {
				close(done)
			}
			return nil
		}})
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Errorf("after a minute %d of %d processed, %d failures of the bad one", len(seen), n-1, bad)
	}
	ok(t, stop())
	if s := c.Stats(); bad != 3 || s.Succeeded != n-1 {
		t.Errorf("%d deliveries of the bad one, %+v", bad, s)
	}
}
