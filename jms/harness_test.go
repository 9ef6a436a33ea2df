package jms

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
)

// inRoom runs f in virtual time, with a broker in memory.
func inRoom(t *testing.T, f func(t *testing.T, r *openwiretest.Room)) {
	t.Helper()
	inRoomWith(t, nil, f)
}

// A room is a broker, ours in virtual time or the reference in real time.
type room interface {
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	Cut()
	Dials() int
}

// everywhere runs f with our broker in virtual time, or where the tests are run against
// a reference (see reference_test.go), with that.
func everywhere(t *testing.T, f func(t *testing.T, r room)) {
	t.Helper()
	if reference == nil {
		inRoom(t, func(t *testing.T, r *openwiretest.Room) { f(t, r) })
		return
	}
	reference.clear(t)
	f(t, reference)
	reference.Cut()
}

func inRoomWith(t *testing.T, set func(*broker.Options, *openwire.Options), f func(t *testing.T, r *openwiretest.Room)) {
	t.Helper()
	if reference != nil {
		t.Skip("it needs a broker of its own, in virtual time")
	}
	synctest.Test(t, func(t *testing.T) {
		r := openwiretest.Open(t, set)
		f(t, r)
		r.Close()
	})
}

// factory is a factory for the room.
func factory(t *testing.T, r room, url string) *ConnectionFactory {
	t.Helper()
	f, err := NewConnectionFactory(url)
	if err != nil {
		t.Fatal(err)
	}
	f.Dial = r.Dial
	return f
}

// connect opens and starts a connection, and closes it in the end.
func connect(t *testing.T, f *ConnectionFactory) *Connection {
	t.Helper()
	c, err := f.CreateConnection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// must is for what has to succeed.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func session(t testing.TB, c *Connection, mode AckMode) *Session {
	t.Helper()
	return must(c.CreateSession(mode))(t)
}

// send sends texts, each by itself.
func send(t testing.TB, s *Session, d Destination, texts ...string) {
	t.Helper()
	p := must(s.CreateProducer(context.Background(), d))(t)
	for _, text := range texts {
		ok(t, p.Send(context.Background(), NewText(text)))
	}
	ok(t, p.Close())
}

// texts receives until nothing comes for a while.
func texts(t testing.TB, k *Consumer, patience time.Duration) []string {
	t.Helper()
	var all []string
	for {
		m, err := k.ReceiveTimeout(context.Background(), patience)
		if errors.Is(err, ErrNoMessage) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Text())
	}
}

// deadLetters takes what is in the dead letter queue.
func deadLetters(t testing.TB, r room) []*Message {
	t.Helper()
	f, err := NewConnectionFactory("tcp://room")
	ok(t, err)
	f.Dial = r.Dial
	c := must(f.CreateConnection(context.Background()))(t)
	defer c.Close()
	ok(t, c.Start())
	s := session(t, c, AutoAcknowledge)
	k := must(s.CreateConsumer(context.Background(), Queue("ActiveMQ.DLQ")))(t)
	var all []*Message
	for {
		m, err := k.ReceiveTimeout(context.Background(), 300*time.Millisecond)
		if errors.Is(err, ErrNoMessage) {
			return all
		}
		ok(t, err)
		all = append(all, m)
	}
}

// rest lets time pass, and then everything that is due happen.
func rest(d time.Duration) {
	if reference != nil {
		time.Sleep(min(d, patience) + 200*time.Millisecond)
		return
	}
	time.Sleep(d)
	synctest.Wait()
}

// patience is the longest rest in real time.
const patience = 2 * time.Second

// took reports whether something took as long as it should: to the nanosecond in
// virtual time.
func took(d, want time.Duration) bool {
	if reference != nil {
		return d >= want-10*time.Millisecond && d <= want+600*time.Millisecond
	}
	return d == want
}

// A stamp is what happened when, written "what@when".
type stamps struct {
	mu    sync.Mutex
	start time.Time
	all   []string
	at    []time.Duration
}

func stampsFrom(start time.Time) *stamps { return &stamps{start: start} }

func (s *stamps) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.at = append(s.all, fmt.Sprintf(format, args...)), append(s.at, time.Since(s.start))
}

// check compares what happened with what should have.
func (s *stamps) check(t testing.TB, want []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	good := len(s.all) == len(want)
	for i := range s.all {
		got = append(got, fmt.Sprintf("%s@%v", s.all[i], s.at[i]))
		if !good {
			continue
		}
		what, when, _ := strings.Cut(want[i], "@")
		d, err := time.ParseDuration(when)
		ok(t, err)
		good = s.all[i] == what && took(s.at[i], d)
	}
	if !good {
		t.Errorf("got %v, want %v", got, want)
	}
}
