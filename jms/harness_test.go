package jms

import (
	"context"
	"errors"
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

func inRoomWith(t *testing.T, set func(*broker.Options, *openwire.Options), f func(t *testing.T, r *openwiretest.Room)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := openwiretest.Open(t, set)
		f(t, r)
		r.Close()
	})
}

// factory is a factory for the room.
func factory(t *testing.T, r *openwiretest.Room, url string) *ConnectionFactory {
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
func deadLetters(t testing.TB, r *openwiretest.Room) []*Message {
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
		m, err := k.ReceiveTimeout(context.Background(), 100*time.Millisecond)
		if errors.Is(err, ErrNoMessage) {
			return all
		}
		ok(t, err)
		all = append(all, m)
	}
}

// rest lets time pass, and then everything that is due happen.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
