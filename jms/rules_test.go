package jms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// C03: limits of the client and of the broker together stay bounded, and the count never
// runs backwards.
func TestC03BothLimits(t *testing.T) {
	for name, tt := range map[string]struct{ client, broker, want int }{
		"client 6, broker 6": {6, 6, 7},
		"client 2, broker 5": {2, 5, 6},
		"client 6, broker 2": {6, 2, 7},
		"client 0, broker 5": {0, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			p := redelivery.DefaultPolicy()
			p.MaximumRedeliveries = tt.broker
			set := func(o *broker.Options, _ *openwire.Options) {
				o.Policy = func(message.Destination) broker.Policy { return broker.Policy{Rules: redelivery.Rules{Redelivery: &p}} }
			}
			inRoomWith(t, set, func(t *testing.T, r *openwiretest.Room) {
				f := factory(t, r, fmt.Sprintf("tcp://room?jms.redeliveryPolicy.maximumRedeliveries=%d&jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0", tt.client))
				c := connect(t, f)
				send(t, session(t, c, AutoAcknowledge), Queue("BOTH"), "x")
				s := session(t, c, SessionTransacted)
				k := must(s.CreateConsumer(t.Context(), Queue("BOTH")))(t)
				var counts []int
				for len(counts) < 40 {
					m, err := k.ReceiveTimeout(t.Context(), 5*time.Second)
					if errors.Is(err, ErrNoMessage) {
						break
					}
					ok(t, err)
					counts = append(counts, m.DeliveryCount())
					ok(t, s.Rollback(t.Context()))
				}
				if len(counts) > tt.want || !slices.IsSorted(counts) {
					t.Errorf("counts %v, want at most %d, and never less than before", counts, tt.want)
				}
				ok(t, c.Close())
				if dead := deadLetters(t, r); len(dead) != 1 {
					t.Errorf("%d dead letters", len(dead))
				}
			})
		})
	}
}

// R-CLIENT-30, R-CLIENT-31, R-CLIENT-32, R-CLIENT-52: what is past the limit by the broker's count is
// given up unread, and the receive goes on for the rest of its time.
func TestPastTheLimitBeforeDelivery(t *testing.T) {
	for _, prefetch := range []int{0, 10} {
		t.Run(fmt.Sprintf("prefetch %d", prefetch), func(t *testing.T) {
			inRoom(t, func(t *testing.T, r *openwiretest.Room) {
				generous, strict := factory(t, r, "tcp://room"), factory(t, r, "tcp://room")
				generous.SetRedeliveryPolicy(quick(9))
				strict.SetRedeliveryPolicy(quick(1))
				c := connect(t, generous)
				send(t, session(t, c, AutoAcknowledge), Queue("A"), "old")
				s := session(t, c, SessionTransacted)
				k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
				for range 3 {
					must(k.Receive(t.Context()))(t)
					ok(t, s.Rollback(t.Context()))
				}
				ok(t, c.Close())
				c = connect(t, strict)
				send(t, session(t, c, AutoAcknowledge), Queue("A"), "new")
				s = session(t, c, SessionTransacted)
				k = must(s.CreateConsumer(t.Context(), Queue("A"), WithPrefetch(prefetch)))(t)
				if m := must(k.ReceiveTimeout(t.Context(), time.Second))(t); m.Text() != "new" {
					t.Errorf("got %q", m.Text())
				}
				ok(t, s.Commit(t.Context()))
				dead := deadLetters(t, r)
				if len(dead) != 1 || !strings.Contains(causeOf(t, dead[0]), "Dispatch[3] to "+k.ID()+" exceeds redelivery policy limit:") {
					t.Errorf("dead letters %v", dead)
				}
				ok(t, c.Close())
			})
		})
	}
}

// R-CLIENT-53: during the delay a pull consumer sees neither the failed message nor others.
func TestPullConsumerWaitsForTheRedelivery(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		f := factory(t, r, "tcp://room")
		f.SetRedeliveryPolicy(quick(3))
		c := connect(t, f)
		s := session(t, c, SessionTransacted)
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "1", "2")
		k := must(s.CreateConsumer(t.Context(), Queue("A"), WithPrefetch(0)))(t)
		must(k.Receive(t.Context()))(t)
		start := time.Now()
		ok(t, s.Rollback(t.Context()))
		if _, err := k.ReceiveNoWait(t.Context()); !errors.Is(err, ErrNoMessage) {
			t.Errorf("no wait: %v", err)
		}
		if m := must(k.Receive(t.Context()))(t); m.Text() != "1" || time.Since(start) != 100*time.Millisecond {
			t.Errorf("got %q after %v", m.Text(), time.Since(start))
		}
		if m := must(k.Receive(t.Context()))(t); m.Text() != "2" {
			t.Errorf("got %q", m.Text())
		}
		ok(t, s.Commit(t.Context()))
		if err := k.Handle(func(context.Context, *Message) error { return nil }); !errors.Is(err, ErrIllegalState) { // R-CLIENT-51
			t.Errorf("a handler on a pull consumer: %v", err)
		}
		ok(t, c.Close())
	})
}

// R-CLIENT-55: a consumer that is closed within a transaction stays until its end.
func TestConsumerClosedWithinATransaction(t *testing.T) {
	for name, end := range map[string]func(*Session) error{
		"commit":   func(s *Session) error { return s.Commit(context.Background()) },
		"rollback": func(s *Session) error { return s.Rollback(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, r room) {
				c := connect(t, factory(t, r, "tcp://room"))
				s := session(t, c, SessionTransacted)
				send(t, session(t, c, AutoAcknowledge), Queue("A"), "1", "2")
				k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
				must(k.Receive(t.Context()))(t)
				ok(t, k.Close())
				if _, err := k.Receive(t.Context()); !errors.Is(err, ErrClosed) {
					t.Errorf("receive: %v", err)
				}
				other := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
				if got := texts(t, other, time.Second); got != nil {
					t.Errorf("before the end: %v", got)
				}
				ok(t, end(s))
				want := []string{"2"}
				if name == "rollback" {
					want = []string{"1", "2"}
				}
				if got := texts(t, other, time.Second); !slices.Equal(got, want) {
					t.Errorf("after the end: %v, want %v", got, want)
				}
				ok(t, c.Close())
			})
		})
	}
}

// R-CLIENT-59, R-CLIENT-51: the broker closes a consumer, and changes a window.
func TestConsumerControl(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "tcp://room"))
		told := make(chan error, 1)
		c.OnException(func(err error) { told <- err })
		k := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("A")))(t)
		c.mu.Lock()
		l := c.link
		c.mu.Unlock()
		c.received(l, &wire.ConsumerControl{ConsumerID: k.id, Prefetch: 7})
		if k.in.s.prefetch != 7 {
			t.Errorf("prefetch %d", k.in.s.prefetch)
		}
		c.received(l, &wire.ConsumerControl{ConsumerID: k.id, Close: true})
		if err := <-told; !errors.Is(err, ErrClosed) {
			t.Errorf("told %v", err)
		}
		if _, err := k.Receive(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("receive: %v", err)
		}
		rest(time.Second)
		if n := r.Broker().Consumers(message.Destination{Kind: message.Queue, Name: "A"}); n != 0 {
			t.Errorf("the broker has not heard of it: it has %d consumers", n)
		}
		ok(t, c.Close())
	})
}

// OpenWire 10.6: a producer waits while its window is used up.
func TestProducerWindow(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room?jms.producerWindowSize=4096&jms.useAsyncSend=true"))
		s := session(t, c, AutoAcknowledge)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		for i := range 200 {
			ok(t, p.Send(t.Context(), NewText(fmt.Sprint(i))))
			c.mu.Lock()
			if p.unacked > 4096+2048 {
				t.Errorf("%d bytes are under way", p.unacked)
			}
			c.mu.Unlock()
		}
		rest(time.Second)
		c.mu.Lock()
		if p.unacked != 0 {
			t.Errorf("%d bytes were not given back", p.unacked)
		}
		c.mu.Unlock()
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		if got := texts(t, k, time.Second); len(got) != 200 {
			t.Errorf("%d arrived", len(got))
		}
		ok(t, c.Close())
	})
}

// Calls that wait end with their contexts, and with the connection.
func TestWaitsEnd(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "failover:(tcp://room)"))
		s := session(t, c, SessionTransacted)
		p := must(session(t, c, AutoAcknowledge).CreateProducer(t.Context(), Queue("A")))(t)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		send(t, s, Queue("A"), "x")
		r.Stop()
		rest(time.Millisecond)
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		for name, f := range map[string]func() error{
			"send":            func() error { return p.Send(ctx, NewText("x")) },
			"commit":          func() error { return s.Commit(ctx) },
			"receive":         func() error { _, err := k.Receive(ctx); return err },
			"create consumer": func() error { _, err := s.CreateConsumer(ctx, Queue("B")); return err },
		} {
			if err := f(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ended := make(chan error, 1)
		go func() {
			_, err := k.Receive(context.Background())
			ended <- err
		}()
		rest(time.Second)
		ok(t, c.Close())
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("receive at close: %v", err)
		}
		for name, f := range map[string]func() error{
			"send":           func() error { return p.Send(t.Context(), NewText("x")) },
			"commit":         func() error { return s.Commit(t.Context()) },
			"create session": func() error { _, err := c.CreateSession(AutoAcknowledge); return err },
			"start":          c.Start,
		} {
			if err := f(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s after close: %v", name, err)
			}
		}
		ok(t, c.Close())
		r.Start()
	})
}

// jms.messagePrioritySupported: what is prefetched comes by priority.
func TestPriorityInTheClient(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room?jms.messagePrioritySupported=true"))
		s := session(t, c, AutoAcknowledge)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		for i, priority := range []int{4, 9, 0, 9, 4} {
			ok(t, p.Send(t.Context(), NewText(fmt.Sprintf("%d-%d", priority, i)), WithPriority(priority)))
		}
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		rest(100 * time.Millisecond) // they are all prefetched
		if got, want := texts(t, k, time.Second), []string{"9-1", "9-3", "4-0", "4-4", "0-2"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		ok(t, c.Close())
	})
}

// Stop holds deliveries back, Start lets them go on.
func TestStopAndStart(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room"))
		s := session(t, c, AutoAcknowledge)
		send(t, s, Queue("A"), "x")
		ok(t, c.Stop())
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		if got := texts(t, k, time.Second); got != nil {
			t.Errorf("while stopped: %v", got)
		}
		ok(t, c.Start())
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"x"}) {
			t.Errorf("after the start: %v", got)
		}
		ok(t, c.Close())
	})
}

// What has gone back to the broker can no longer be settled, and says so.
func TestSettlingAfterItsConsumerIsClosed(t *testing.T) {
	for _, mode := range []AckMode{ClientAcknowledge, IndividualAcknowledge} {
		everywhere(t, func(t *testing.T, r room) {
			c := connect(t, factory(t, r, "tcp://room"))
			s := session(t, c, mode)
			send(t, session(t, c, AutoAcknowledge), Queue("A"), "1")
			k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
			m := must(k.Receive(t.Context()))(t)
			ok(t, k.Close())
			if err := m.Acknowledge(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("%v: acknowledge: %v", mode, err)
			}
			if err := m.Fail(nil); !errors.Is(err, ErrClosed) {
				t.Errorf("%v: fail: %v", mode, err)
			}
			ok(t, c.Close())
		})
	}
}

// OpenWire 6.4: the group is a field, however it was set.
func TestGroupProperties(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room"))
		s := session(t, c, AutoAcknowledge)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		ok(t, p.Send(t.Context(), NewText("x").SetProperty("JMSXGroupID", "g").SetProperty("JMSXGroupSeq", 7).SetProperty("other", true)))
		m := must(must(s.CreateConsumer(t.Context(), Queue("A")))(t).Receive(t.Context()))(t)
		if m.GroupID != "g" || m.GroupSequence != 7 || len(m.Properties) != 1 {
			t.Errorf("group %q, %d, properties %v", m.GroupID, m.GroupSequence, m.Properties)
		}
		ok(t, c.Close())
	})
}

// A message that does not fit the wire is an error, and spoils its transaction whole.
func TestTooLargeAMessage(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "tcp://room?wireFormat.maxFrameSize=10000"))
		big := NewText(strings.Repeat("x", 20000))
		s := session(t, c, AutoAcknowledge)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		if err := p.Send(t.Context(), big); !errors.Is(err, ErrMessageFormat) {
			t.Errorf("send: %v", err)
		}
		tx := session(t, c, SessionTransacted)
		p = must(tx.CreateProducer(t.Context(), Queue("A")))(t)
		ok(t, p.Send(t.Context(), NewText("small")))
		ok(t, p.Send(t.Context(), big))
		if err := tx.Commit(t.Context()); !errors.Is(err, ErrTransactionRolledBack) {
			t.Errorf("commit: %v", err)
		}
		ok(t, p.Send(t.Context(), NewText("after")))
		ok(t, tx.Commit(t.Context()))
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"after"}) {
			t.Errorf("arrived %v", got)
		}
		ok(t, c.Close())
	})
}

// A topic's messages never come again after a fail-over: a transaction does not wait for
// them.
func TestTopicTransactionAcrossACut(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, failoverURL))
		s := session(t, c, SessionTransacted)
		k := must(s.CreateConsumer(t.Context(), Topic("T")))(t)
		send(t, session(t, c, AutoAcknowledge), Topic("T"), "x")
		must(k.Receive(t.Context()))(t)
		send(t, s, Queue("OUT"), "result")
		r.Cut()
		rest(time.Second)
		ok(t, s.Commit(t.Context()))
		out := must(session(t, c, AutoAcknowledge).CreateConsumer(t.Context(), Queue("OUT")))(t)
		if got := texts(t, out, time.Second); !slices.Equal(got, []string{"result"}) {
			t.Errorf("results %v", got)
		}
		ok(t, c.Close())
	})
}

// Who closes from within would wait for itself: it is told so, and nothing hangs.
func TestCloseFromWithin(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		c := connect(t, factory(t, r, "tcp://room"))
		s := session(t, c, AutoAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		told := make(chan error, 3)
		ok(t, k.Handle(func(context.Context, *Message) error {
			told <- s.Close()
			told <- c.Close()
			return k.Close() // a consumer may be
		}))
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "x")
		c.OnException(func(error) { told <- c.Close() })
		rest(time.Second)
		r.Cut()
		for range 3 {
			if err := <-told; !errors.Is(err, ErrIllegalState) {
				t.Errorf("close from within: %v", err)
			}
		}
		ok(t, c.Close())
	})
}

// A message that its client has delivered once more, and that its consumer is closed with,
// has failed once more.
func TestClosedWithARedelivery(t *testing.T) {
	for _, mode := range []AckMode{ClientAcknowledge, IndividualAcknowledge} {
		t.Run(mode.String(), func(t *testing.T) {
			everywhere(t, func(t *testing.T, r room) {
				c := connect(t, factory(t, r, "tcp://room?jms.redeliveryPolicy.initialRedeliveryDelay=0"))
				send(t, session(t, c, AutoAcknowledge), Queue("A"), "x")
				for n := 0; n < 6; n += 2 {
					s := session(t, c, mode)
					k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
					for i := range 2 {
						if m := must(k.Receive(t.Context()))(t); m.RedeliveryCounter != n+i && reference == nil {
							t.Errorf("delivery %d is told %d", n+i+1, m.RedeliveryCounter)
						}
						if i == 0 {
							ok(t, s.Recover())
						}
					}
					ok(t, s.Close())
				}
				ok(t, c.Close())
			})
		})
	}
}

// What a policy of the broker's brings to the consumer that gave it up, and that is closed
// with it, has failed once more.
func TestClosedWithWhatWasGivenUpBefore(t *testing.T) {
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = 5, 0, 0
	set := func(o *broker.Options, _ *openwire.Options) {
		o.Policy = func(message.Destination) broker.Policy { return broker.Policy{Rules: redelivery.Rules{Redelivery: &p}} }
	}
	for _, mode := range []AckMode{ClientAcknowledge, IndividualAcknowledge} {
		t.Run(mode.String(), func(t *testing.T) {
			inRoomWith(t, set, func(t *testing.T, r *openwiretest.Room) {
				c := connect(t, factory(t, r, "tcp://room?jms.redeliveryPolicy.maximumRedeliveries=0"))
				send(t, session(t, c, AutoAcknowledge), Queue("A"), "x")
				for n := 0; n < 6; n += 2 {
					s := session(t, c, mode)
					k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
					for i := range 2 {
						if m := must(k.Receive(t.Context()))(t); m.RedeliveryCounter != n+i {
							t.Errorf("delivery %d is told %d", n+i+1, m.RedeliveryCounter)
						}
						if i == 0 {
							ok(t, s.Recover())
						}
					}
					ok(t, s.Close())
				}
				ok(t, c.Close())
				if dead := deadLetters(t, r); len(dead) != 1 {
					t.Errorf("%d dead letters", len(dead))
				}
			})
		})
	}
}
