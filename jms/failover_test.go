package jms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
)

const failoverURL = "failover:(tcp://room)?initialReconnectDelay=10&jms.redeliveryPolicy.initialRedeliveryDelay=0"

// A cutter is a network that breaks when it is told to: after the next write, so that
// the broker has got it and cannot answer.
type cutter struct {
	room  room
	armed atomic.Bool
	cuts  atomic.Int64
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.room.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, c: c}, nil
}

type cutConn struct {
	net.Conn
	c    *cutter
	deaf atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if !c.c.armed.CompareAndSwap(true, false) {
		return c.Conn.Write(b)
	}
	c.c.cuts.Add(1)
	c.deaf.Store(true)
	n, err := c.Conn.Write(b)
	c.Conn.Close()
	return n, err
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		return 0, io.EOF
	}
	return n, err
}

// C21: the connection breaks between every send and its reply.
func TestC21SendsAcrossCuts(t *testing.T) {
	for name, transacted := range map[string]bool{"persistent": false, "transacted": true} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, r room) {
				cut := &cutter{room: r}
				f := factory(t, r, failoverURL)
				f.Dial = cut.dial
				c := connect(t, f)
				mode := AutoAcknowledge
				if transacted {
					mode = SessionTransacted
				}
				s := session(t, c, mode)
				p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
				var want []string
				for i := range 100 {
					text := fmt.Sprint(i)
					want = append(want, text)
					cut.armed.Store(true)
					ok(t, p.Send(t.Context(), NewText(text)))
					if transacted {
						rest(time.Second) // the cut, and the replay
						ok(t, s.Commit(t.Context()))
					}
				}
				cut.armed.Store(false)
				if n := cut.cuts.Load(); n < 100 {
					t.Errorf("only %d cuts", n)
				}
				k := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
				if got := texts(t, k, time.Second); !slices.Equal(got, want) {
					t.Errorf("got %d: %v", len(got), got)
				}
				ok(t, c.Close())
				if dead := deadLetters(t, r); len(dead) > 0 {
					t.Errorf("%d dead letters: %s", len(dead), causeOf(t, dead[0]))
				}
			})
		})
	}
}

// C21: the connection breaks before the acknowledgement of what was processed.
func TestC21ProcessedOnceAcrossCuts(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, failoverURL))
		var sent []string
		for i := range 50 {
			sent = append(sent, fmt.Sprint(i))
		}
		send(t, session(t, c, AutoAcknowledge), Queue("A"), sent...)
		k := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
		var got []string
		ok(t, k.Handle(func(_ context.Context, m *Message) error {
			got = append(got, m.Text())
			if len(got)%5 == 0 {
				r.Cut() // the handler goes on: its message comes again meanwhile, or after
				time.Sleep(time.Duration(len(got)%2) * time.Second)
			}
			return nil
		}))
		for range 10 {
			rest(time.Minute)
		}
		if !slices.Equal(got, sent) {
			t.Errorf("processed %v", got)
		}
		if left := texts(t, must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t), time.Second); left != nil {
			t.Errorf("left %v", left)
		}
		ok(t, c.Close())
		if dead := deadLetters(t, r); len(dead) > 0 {
			t.Errorf("%d dead letters: %s", len(dead), causeOf(t, dead[0]))
		}
	})
}

// R-EDGE-09: a message that the application holds over a fail-over is acknowledged after it.
func TestIndividualAcknowledgeAcrossACut(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, failoverURL))
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "1", "2", "3")
		k := must(session(t, c, IndividualAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
		one, two := must(k.Receive(t.Context()))(t), must(k.Receive(t.Context()))(t)
		r.Cut()
		ok(t, one.Acknowledge(t.Context())) // before its copy comes
		rest(time.Second)
		ok(t, two.Acknowledge(t.Context())) // after it
		if m := must(k.Receive(t.Context()))(t); m.Text() != "3" {
			t.Errorf("got %q", m.Text())
		} else {
			ok(t, m.Acknowledge(t.Context()))
		}
		if got := texts(t, k, time.Second); got != nil {
			t.Errorf("came again: %v", got)
		}
		ok(t, c.Close())
		if dead := deadLetters(t, r); len(dead) > 0 {
			t.Errorf("dead letter: %s", causeOf(t, dead[0]))
		}
	})
}

// What the application recovers from before the copies of it have come is delivered again.
func TestRecoverAcrossACut(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, failoverURL))
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "1", "2")
		s := session(t, c, IndividualAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		for range 2 {
			must(k.Receive(t.Context()))(t)
		}
		r.Stop()
		r.Cut()
		rest(time.Millisecond) // the client has noticed
		ok(t, s.Recover())
		r.Start()
		for _, want := range []string{"1", "2"} {
			m := must(k.ReceiveTimeout(t.Context(), time.Second))(t)
			if m.Text() != want || !m.Redelivered() {
				t.Errorf("got %q, counter %d", m.Text(), m.RedeliveryCounter)
			}
			ok(t, m.Acknowledge(t.Context()))
		}
		ok(t, c.Close())
	})
}

// R-CLIENT-60: in a ClientAcknowledge session what was delivered comes again.
func TestClientAcknowledgeAcrossACut(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, failoverURL))
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "1", "2")
		k := must(session(t, c, ClientAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
		one := must(k.Receive(t.Context()))(t)
		r.Cut()
		rest(time.Second)
		ok(t, one.Acknowledge(t.Context())) // acknowledges nothing
		again := must(k.Receive(t.Context()))(t)
		if again.Text() != "1" || !again.Redelivered() {
			t.Errorf("got %q, counter %d", again.Text(), again.RedeliveryCounter)
		}
		two := must(k.Receive(t.Context()))(t)
		ok(t, two.Acknowledge(t.Context()))
		if got := texts(t, k, time.Second); got != nil {
			t.Errorf("came again: %v", got)
		}
		ok(t, c.Close())
	})
}

// R-CLIENT-63, R-EDGE-33: with a wait period the transaction goes on over the fail-over;
// without one it is rolled back, and its messages come again.
func TestTransactionAcrossACut(t *testing.T) {
	for name, tt := range map[string]struct {
		options  string
		prefetch int // 0: nothing comes again unless it is asked for
		down     time.Duration
		err      error
		left     []string
	}{
		"the messages came again before the commit":    {"", 10, 0, nil, nil},
		"the commit waits for the broker and for them": {"&jms.consumerFailoverRedeliveryWaitPeriod=5000", 10, 2 * time.Second, nil, nil},
		"they do not come, and it is rolled back":      {"", 0, 2 * time.Second, ErrTransactionRolledBack, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			inRoom(t, func(t *testing.T, r *openwiretest.Room) {
				c := connect(t, factory(t, r, failoverURL+tt.options))
				send(t, session(t, c, AutoAcknowledge), Queue("A"), "1", "2")
				s := session(t, c, SessionTransacted)
				k := must(s.CreateConsumer(t.Context(), Queue("A"), WithPrefetch(tt.prefetch)))(t)
				for range 2 {
					must(k.Receive(t.Context()))(t)
				}
				send(t, s, Queue("OUT"), "result")
				if tt.down == 0 {
					r.Cut()
					rest(time.Second)
				} else {
					r.Stop()
					rest(time.Millisecond)
					go func() {
						time.Sleep(tt.down)
						r.Start()
					}()
				}
				if err := s.Commit(t.Context()); !errors.Is(err, tt.err) {
					t.Errorf("commit: %v", err)
				}
				if got := texts(t, k, 3*time.Second); !slices.Equal(got, tt.left) {
					t.Errorf("came again: %v", got)
				}
				ok(t, s.Commit(t.Context()))
				out := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("OUT")))(t)
				var want []string
				if tt.err == nil {
					want = []string{"result"}
				}
				if got := texts(t, out, time.Second); !slices.Equal(got, want) {
					t.Errorf("results %v, want %v", got, want)
				}
				ok(t, c.Close())
				if dead := deadLetters(t, r); len(dead) > 0 {
					t.Errorf("dead letter: %s", causeOf(t, dead[0]))
				}
			})
		})
	}
}

// R-CLIENT-62: a commit whose answer was lost is in doubt.
func TestCommitInDoubt(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		cut := &cutter{room: r}
		f := factory(t, r, failoverURL)
		f.Dial = cut.dial
		c := connect(t, f)
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "1")
		s := session(t, c, SessionTransacted)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		must(k.Receive(t.Context()))(t)
		cut.armed.Store(true)
		err := s.Commit(t.Context())
		if !errors.Is(err, ErrInDoubt) || !errors.Is(err, ErrTransactionRolledBack) {
			t.Errorf("commit: %v", err)
		}
		if m, err := k.ReceiveTimeout(t.Context(), 3*time.Second); err == nil && !m.Redelivered() {
			t.Error("it came again without saying so")
		}
		ok(t, s.Commit(t.Context()))
		ok(t, c.Close())
		if dead := deadLetters(t, r); len(dead) > 0 {
			t.Errorf("dead letter: %s", causeOf(t, dead[0]))
		}
	})
}

// C22: restarts in the middle of transacted batches lose and dead-letter nothing.
func TestC22RestartsInABatch(t *testing.T) {
	for _, kill := range []bool{false, true} {
		for _, prefetch := range []int{1, 100, 1000} {
			t.Run(fmt.Sprintf("kill=%v prefetch=%d", kill, prefetch), func(t *testing.T) {
				inRoom(t, func(t *testing.T, r *openwiretest.Room) {
					f := factory(t, r, fmt.Sprintf("failover:(tcp://room)?jms.prefetchPolicy.queuePrefetch=%d", prefetch))
					c := connect(t, f)
					var sent []string
					for i := range 200 {
						sent = append(sent, fmt.Sprint(i))
					}
					send(t, session(t, c, AutoAcknowledge), Queue("A"), sent...)
					s := session(t, c, SessionTransacted)
					k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
					var batch, committed, doubtful, first []string
					rolledBack := 0
					ok(t, k.Handle(func(ctx context.Context, m *Message) error {
						if !slices.Contains(first, m.Text()) {
							first = append(first, m.Text())
						}
						if slices.Contains(committed, m.Text()) && !(slices.Contains(doubtful, m.Text()) && m.Redelivered()) {
							t.Errorf("%s was committed, and comes again, redelivered %v", m.Text(), m.Redelivered())
						}
						batch = append(batch, m.Text())
						time.Sleep(60 * time.Millisecond)
						if len(batch) < 5 {
							return nil
						}
						err := s.Commit(ctx)
						switch {
						case err == nil:
							committed = append(committed, batch...)
						case errors.Is(err, ErrInDoubt):
							rolledBack++
							committed, doubtful = append(committed, batch...), append(doubtful, batch...)
						case errors.Is(err, ErrTransactionRolledBack):
							rolledBack++
							if err := s.Rollback(ctx); err != nil {
								t.Error(err)
							}
						default:
							t.Errorf("commit: %v", err)
						}
						batch = nil
						return nil
					}))
					for _, at := range []time.Duration{time.Second, 2770 * time.Millisecond, 3310 * time.Millisecond} {
						time.Sleep(at)
						if kill {
							r.Cut()
						}
						r.Stop()
						time.Sleep(500 * time.Millisecond)
						r.Start()
					}
					rest(time.Minute)
					slices.SortFunc(committed, func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
					if got := slices.Compact(committed); !slices.Equal(got, sent) {
						t.Errorf("%d of 200 committed", len(got))
					}
					if !slices.Equal(first, sent) {
						t.Errorf("first deliveries out of order: %v", first)
					}
					if rolledBack > 3 {
						t.Errorf("%d rollback exceptions of 3 restarts", rolledBack)
					}
					ok(t, c.Close())
					if dead := deadLetters(t, r); len(dead) > 0 {
						t.Errorf("%d dead letters: %s", len(dead), causeOf(t, dead[0]))
					}
				})
			})
		}
	}
}

// What waits for its redelivery waits on over a fail-over, with its count.
func TestRedeliveryDelayAcrossACut(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		f := factory(t, r, "failover:(tcp://room)")
		p := quick(5)
		p.InitialRedeliveryDelay = 10 * time.Second
		f.SetRedeliveryPolicy(p)
		c := connect(t, f)
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "1")
		s := session(t, c, SessionTransacted)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		must(k.Receive(t.Context()))(t)
		start := time.Now()
		ok(t, s.Rollback(t.Context()))
		rest(2 * time.Second)
		r.Cut()
		m := must(k.Receive(t.Context()))(t)
		if since := time.Since(start); since != 10*time.Second || m.RedeliveryCounter < 1 {
			t.Errorf("after %v with counter %d", since, m.RedeliveryCounter)
		}
		ok(t, s.Commit(t.Context()))
		ok(t, c.Close())
	})
}

// Everything there was is there after a fail-over: temporary queues, pull consumers,
// receivers that wait.
func TestEverythingIsReplayed(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, failoverURL+"&jms.watchTopicAdvisories=true"))
		var events []string
		c.OnTransport(func(e TransportEvent) { events = append(events, fmt.Sprintf("%v %s", e.Interrupted, e.Broker)) })
		c.OnException(func(err error) { t.Errorf("exception: %v", err) })
		s := session(t, c, AutoAcknowledge)
		temp := must(s.CreateTemporaryQueue(t.Context()))(t)
		onTemp := must(s.CreateConsumer(t.Context(), temp))(t)
		pull := must(s.CreateConsumer(t.Context(), Queue("PULL"), WithPrefetch(0)))(t)
		durable := must(s.CreateDurableSubscriber(t.Context(), Topic("T"), "sub"))(t)
		p := must(s.CreateProducer(t.Context(), Destination{}))(t)
		pulled := make(chan string, 1)
		go func() {
			m, err := pull.Receive(context.Background())
			if err != nil {
				pulled <- err.Error()
				return
			}
			pulled <- m.Text()
		}()
		rest(time.Second)
		r.Stop()
		sent := make(chan error, 1)
		go func() { sent <- p.Send(context.Background(), NewText("while down"), To(Queue("PULL"))) }()
		rest(5 * time.Second)
		r.Start()
		ok(t, <-sent)
		if got := <-pulled; got != "while down" {
			t.Errorf("pulled %q", got)
		}
		for d, k := range map[Destination]*Consumer{temp: onTemp, Topic("T"): durable} {
			ok(t, p.Send(t.Context(), NewText("after"), To(d)))
			if m := must(k.Receive(t.Context()))(t); m.Text() != "after" {
				t.Errorf("%v: %q", d, m.Text())
			}
		}
		ok(t, c.Close())
		if want := []string{"true ", "false tcp://room"}; !slices.Equal(events, want) {
			t.Errorf("events %v", events)
		}
	})
}

func TestAttemptsEnd(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		r.Stop()
		f := factory(t, r, "failover:(tcp://a,tcp://b)?startupMaxReconnectAttempts=2&initialReconnectDelay=100&maxReconnectDelay=200")
		start := time.Now()
		if _, err := f.CreateConnection(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Errorf("connect: %v", err)
		}
		if r.Dials() != 6 || time.Since(start) != 300*time.Millisecond {
			t.Errorf("%d attempts in %v", r.Dials(), time.Since(start))
		}
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		if _, err := factory(t, r, "failover:(tcp://a)").CreateConnection(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("connect without end: %v", err)
		}
		r.Start()
		c := connect(t, factory(t, r, "failover:(tcp://a)?maxReconnectAttempts=3&timeout=1000"))
		ended := make(chan error, 1)
		c.OnException(func(err error) { ended <- err })
		p := must(session(t, c, AutoAcknowledge).CreateProducer(t.Context(), Queue("A")))(t)
		r.Stop()
		if err := <-ended; !errors.Is(err, ErrUnavailable) {
			t.Errorf("exception listener: %v", err)
		}
		if err := p.Send(t.Context(), NewText("x")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("send: %v", err)
		}
		ok(t, c.Close())
		r.Start()
		c = connect(t, factory(t, r, "failover:(tcp://a)?timeout=1000"))
		p = must(session(t, c, AutoAcknowledge).CreateProducer(t.Context(), Queue("A")))(t)
		r.Stop()
		rest(time.Millisecond)
		start = time.Now()
		if err := p.Send(t.Context(), NewText("x")); !errors.Is(err, ErrUnavailable) || time.Since(start) != time.Second {
			t.Errorf("send: %v after %v", err, time.Since(start))
		}
		ok(t, c.Close())
	})
}
