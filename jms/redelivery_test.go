package jms

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
)

// quick is a policy with delays of 100, 200, 400 … ms and so many redeliveries.
func quick(limit int) RedeliveryPolicy {
	p := DefaultRedeliveryPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, 100*time.Millisecond, 100*time.Millisecond
	p.UseExponentialBackOff, p.BackOffMultiplier = true, 2
	return p
}

func causeOf(t testing.TB, m *Message) string {
	t.Helper()
	return must(m.Properties.String("dlqDeliveryFailureCause"))(t)
}

// R-POL-13, R-POL-16: N+1 deliveries with the policy's delays, then a dead letter.
func TestRollbackRedeliversByThePolicy(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room")
		f.SetRedeliveryPolicy(quick(3))
		c := connect(t, f)
		s := session(t, c, SessionTransacted)
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "bad")
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		var at []time.Duration
		last := time.Now()
		for {
			m, err := k.ReceiveTimeout(t.Context(), 5*time.Second)
			if errors.Is(err, ErrNoMessage) {
				break
			}
			ok(t, err)
			if m.RedeliveryCounter != len(at) {
				t.Errorf("delivery %d has counter %d", len(at)+1, m.RedeliveryCounter)
			}
			at = append(at, time.Since(last))
			last = time.Now()
			ok(t, s.RollbackBecause(t.Context(), errors.New("no such customer")))
		}
		if want := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}; !slices.EqualFunc(at, want, took) {
			t.Errorf("gaps %v, want %v", at, want)
		}
		dead := deadLetters(t, r)
		if len(dead) != 1 {
			t.Fatalf("%d dead letters", len(dead))
		}
		want := "Delivery[4] exceeds redelivery policy limit:RedeliveryPolicy {destination = null, collisionAvoidanceFactor = 0.15, maximumRedeliveries = 3"
		if cause := causeOf(t, dead[0]); !strings.Contains(cause, want) || !strings.Contains(cause, "no such customer") {
			t.Errorf("cause %q", cause)
		}
		ok(t, c.Close())
	})
}

// R-EDGE-15, better than R-CLIENT-44: the old message at its limit is given up, and its fresh neighbour is not.
func TestEachMessageOfABatchIsDecidedForItself(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room")
		f.SetRedeliveryPolicy(quick(1))
		c := connect(t, f)
		s, p := session(t, c, SessionTransacted), session(t, c, AutoAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		send(t, p, Queue("A"), "old")
		must(k.Receive(t.Context()))(t)
		ok(t, s.Rollback(t.Context()))
		send(t, p, Queue("A"), "fresh")
		for _, want := range []string{"old", "fresh"} {
			if m := must(k.Receive(t.Context()))(t); m.Text() != want {
				t.Errorf("got %q, want %q", m.Text(), want)
			}
		}
		ok(t, s.Rollback(t.Context()))
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"fresh"}) {
			t.Errorf("after the rollback: %v", got)
		}
		ok(t, s.Commit(t.Context()))
		if dead := deadLetters(t, r); len(dead) != 1 || dead[0].Text() != "old" {
			t.Errorf("dead letters %v", dead)
		}
		ok(t, c.Close())
	})
}

// R-CLIENT-45: in blocking mode everything behind the failed message waits, and order is kept.
func TestBlockingRedeliveryKeepsOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room")
		f.SetRedeliveryPolicy(quick(5))
		c := connect(t, f)
		s, p := session(t, c, IndividualAcknowledge), session(t, c, AutoAcknowledge)
		send(t, p, Queue("A"), "1", "2", "3")
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		start := time.Now()
		ok(t, must(k.Receive(t.Context()))(t).Fail(errors.New("again")))
		got := stampsFrom(start)
		for range 3 {
			m := must(k.Receive(t.Context()))(t)
			got.add("%s/%d", m.Text(), m.RedeliveryCounter)
			ok(t, m.Acknowledge(t.Context()))
		}
		got.check(t, []string{"1/1@100ms", "2/0@100ms", "3/0@100ms"})
		ok(t, c.Close())
	})
}

// C04, R-CLIENT-46, R-POL-15: in non-blocking mode each message has its own back-off,
// whatever its neighbours do, and good ones pass.
func TestNonBlockingRedeliveryIsPerMessage(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room?jms.nonBlockingRedelivery=true")
		f.SetRedeliveryPolicy(quick(3))
		c := connect(t, f)
		s, p := session(t, c, SessionTransacted), session(t, c, AutoAcknowledge)
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprintf("P%d", i))
		}
		send(t, p, Queue("A"), append(names, "good")...)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		start := time.Now()
		last, gaps := map[string]time.Time{}, map[string][]time.Duration{}
		for {
			m, err := k.ReceiveTimeout(t.Context(), 5*time.Second)
			if errors.Is(err, ErrNoMessage) {
				break
			}
			ok(t, err)
			if m.Text() == "good" {
				if since := time.Since(start); !took(since, 0) {
					t.Errorf("the good one came after %v", since)
				}
				ok(t, s.Commit(t.Context()))
				continue
			}
			if !last[m.Text()].IsZero() {
				gaps[m.Text()] = append(gaps[m.Text()], time.Since(last[m.Text()]))
			}
			last[m.Text()] = time.Now()
			ok(t, s.Rollback(t.Context()))
		}
		for _, n := range names {
			if want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}; !slices.EqualFunc(gaps[n], want, took) {
				t.Errorf("%s: gaps %v, want %v", n, gaps[n], want)
			}
		}
		var dead []string
		for _, m := range deadLetters(t, r) {
			dead = append(dead, m.Text())
		}
		if !slices.Equal(dead, names) {
			t.Errorf("dead letters %v", dead)
		}
		ok(t, c.Close())
	})
}

// R-EDGE-42, R-EDGE-43: whatever the mode, an error or a panic of a handler is a failure.
func TestHandlerFailures(t *testing.T) {
	boom := fmt.Errorf("load order: %w", &fs.PathError{Op: "open", Path: "/orders/7", Err: fs.ErrNotExist})
	for _, mode := range []AckMode{AutoAcknowledge, ClientAcknowledge, DupsOKAcknowledge, SessionTransacted, IndividualAcknowledge} {
		for name, fail := range map[string]func() error{
			"error": func() error { return boom },
			"panic": func() error { panic(boom) },
		} {
			t.Run(fmt.Sprintf("%v %s", mode, name), func(t *testing.T) {
				everywhere(t, func(t *testing.T, r room) {
					f := factory(t, r, "tcp://room")
					f.SetRedeliveryPolicy(quick(2))
					c := connect(t, f)
					s := session(t, c, mode)
					send(t, session(t, c, AutoAcknowledge), Queue("A"), "bad", "good")
					var got []string
					k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
					ok(t, k.Handle(func(ctx context.Context, m *Message) error {
						got = append(got, fmt.Sprintf("%s/%d", m.Text(), m.RedeliveryCounter))
						if m.Text() == "bad" {
							return fail()
						}
						if s.Transacted() {
							return s.Commit(ctx)
						}
						return m.Acknowledge(ctx)
					}))
					rest(10 * time.Second)
					if want := []string{"bad/0", "bad/1", "bad/2", "good/0"}; !slices.Equal(got, want) {
						t.Errorf("got %v, want %v", got, want)
					}
					ok(t, c.Close())
					dead := deadLetters(t, r)
					if len(dead) != 1 || dead[0].Text() != "bad" {
						t.Fatalf("dead letters %v", dead)
					}
					cause := causeOf(t, dead[0])
					for _, want := range []string{"Delivery[3] exceeds redelivery policy limit:", "load order: open /orders/7: file does not exist"} {
						if !strings.Contains(cause, want) {
							t.Errorf("cause %q lacks %q", cause, want)
						}
					}
					if name == "panic" && !strings.Contains(cause, "*jms.PanicError: panic: ") {
						t.Errorf("cause %q does not tell of the panic", cause)
					}
				})
			})
		}
	}
}

func TestHandlerAnswers(t *testing.T) {
	for _, mode := range []AckMode{AutoAcknowledge, SessionTransacted} {
		for name, tt := range map[string]struct {
			answer func(m *Message) error
			want   []string // counter@time
			dead   string   // in the cause; "": none
		}{
			"retry after": {func(m *Message) error {
				if m.RedeliveryCounter == 0 {
					return fmt.Errorf("wrapped: %w", RetryAfter(7*time.Second, errors.New("busy")))
				}
				return nil
			}, []string{"0@0s", "1@7s"}, ""},
			"retry after holds to the limit": {func(*Message) error { return RetryAfter(0, nil) },
				[]string{"0@0s", "1@0s", "2@0s"}, "Delivery[3] exceeds redelivery policy limit:"},
			"dead letter now": {func(*Message) error { return DeadLetter("no such article", errors.New("4711")) },
				[]string{"0@0s"}, "Delivery[1] given up by the application, cause:"},
			"do not count": {func(m *Message) error {
				if time.Since(m.Timestamp) < time.Second {
					return DoNotCount(errors.New("database down"))
				}
				return nil
			}, []string{"0@0s", "0@100ms", "0@200ms", "0@300ms", "0@400ms", "0@500ms", "0@600ms", "0@700ms", "0@800ms", "0@900ms", "0@1s"}, ""},
			"do not count, and after a time": {func(m *Message) error {
				if time.Since(m.Timestamp) < time.Second {
					return DoNotCount(RetryAfter(500*time.Millisecond, errors.New("database down")))
				}
				return nil
			}, []string{"0@0s", "0@500ms", "0@1s"}, ""},
		} {
			t.Run(fmt.Sprintf("%v %s", mode, name), func(t *testing.T) {
				everywhere(t, func(t *testing.T, r room) {
					f := factory(t, r, "tcp://room")
					f.SetRedeliveryPolicy(quick(2))
					c := connect(t, f)
					s := session(t, c, mode)
					k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
					got := stampsFrom(time.Now())
					ok(t, k.Handle(func(ctx context.Context, m *Message) error {
						got.add("%d", m.RedeliveryCounter)
						if err := tt.answer(m); err != nil {
							return err
						}
						if s.Transacted() {
							return s.Commit(ctx)
						}
						return nil
					}))
					send(t, session(t, c, AutoAcknowledge), Queue("A"), "x")
					for range 1 + strings.Count(name, "retry after")*4 {
						rest(time.Minute)
					}
					if reference == nil || !strings.Contains(name, "do not count") { // as many as there is time for
						got.check(t, tt.want)
					}
					ok(t, c.Close())
					dead := deadLetters(t, r)
					if tt.dead == "" {
						if len(dead) > 0 {
							t.Errorf("dead letter with cause %q", causeOf(t, dead[0]))
						}
						return
					}
					if len(dead) != 1 || !strings.Contains(causeOf(t, dead[0]), tt.dead) {
						t.Errorf("dead letters %v", dead)
					}
				})
			})
		}
	}
}

func TestRecover(t *testing.T) {
	for _, mode := range []AckMode{ClientAcknowledge, IndividualAcknowledge} {
		t.Run(mode.String(), func(t *testing.T) {
			everywhere(t, func(t *testing.T, r room) {
				f := factory(t, r, "tcp://room")
				f.SetRedeliveryPolicy(quick(1))
				c := connect(t, f)
				s := session(t, c, mode)
				send(t, session(t, c, AutoAcknowledge), Queue("A"), "1", "2")
				k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
				for round := range 2 {
					for range 2 {
						if m := must(k.Receive(t.Context()))(t); m.RedeliveryCounter != round {
							t.Errorf("round %d: counter %d", round, m.RedeliveryCounter)
						}
					}
					ok(t, s.Recover())
				}
				if got := texts(t, k, time.Second); got != nil {
					t.Errorf("past the limit: %v", got)
				}
				if dead := deadLetters(t, r); len(dead) != 2 {
					t.Errorf("%d dead letters", len(dead))
				}
				ok(t, c.Close())
			})
		})
	}
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room"))
		if err := session(t, c, SessionTransacted).Recover(); !errors.Is(err, ErrIllegalState) {
			t.Errorf("recover of a transacted session: %v", err)
		}
		if err := session(t, c, AutoAcknowledge).Commit(t.Context()); !errors.Is(err, ErrIllegalState) {
			t.Errorf("commit of an untransacted session: %v", err)
		}
		ok(t, c.Close())
	})
}

// R-EDGE-14: the limit holds however short-lived the consumers are.
func TestTheLimitHoldsOverConsumers(t *testing.T) {
	inRoom(t, func(t *testing.T, r *openwiretest.Room) {
		f := factory(t, r, "tcp://room")
		f.SetRedeliveryPolicy(quick(2))
		c := connect(t, f)
		send(t, session(t, c, AutoAcknowledge), Queue("A"), "bad")
		var counters []int
		for range 10 {
			s := session(t, c, SessionTransacted)
			k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
			if m, err := k.ReceiveTimeout(t.Context(), time.Second); err == nil {
				counters = append(counters, m.RedeliveryCounter)
			}
			ok(t, s.Close())
		}
		if !slices.Equal(counters, []int{0, 1, 2}) {
			t.Errorf("counters %v", counters)
		}
		if dead := deadLetters(t, r); len(dead) != 1 {
			t.Errorf("%d dead letters", len(dead))
		}
		ok(t, c.Close())
	})
}

// R-CLIENT-33, R-WIRE-05: what expires in the client's hands is not delivered.
func TestExpiredInTheClient(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		c := connect(t, factory(t, r, "tcp://room"))
		s := session(t, c, AutoAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		ok(t, p.Send(t.Context(), NewText("short"), WithTimeToLive(time.Second)))
		ok(t, p.Send(t.Context(), NewText("long")))
		rest(2 * time.Second)
		if got := texts(t, k, time.Second); !slices.Equal(got, []string{"long"}) {
			t.Errorf("got %v", got)
		}
		if dead := deadLetters(t, r); len(dead) != 1 || dead[0].Text() != "short" {
			t.Errorf("dead letters %v", dead)
		}
		ok(t, c.Close())
	})
}

// The policies of section 2: by destination, copied (R-POL-06), and overridden by the
// consumer's own (R-URI-01, R-URI-02, R-URI-13).
func TestPoliciesByDestination(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room?jms.redeliveryPolicy.maximumRedeliveries=9")
		f.Policies.Put(Queue("A.>"), quick(1))
		f.Policies.Put(Queue("A.B"), quick(2))
		c := connect(t, f)
		f.Policies.Put(Queue("A.B"), quick(7)) // R-EDGE-24: later connections only
		f.SetRedeliveryPolicy(quick(8))
		for d, want := range map[Destination]int{Queue("A.B"): 2, Queue("A.C"): 1, Queue("X"): 9, Topic("A.B"): 9} {
			if got := c.RedeliveryPolicy(d).MaximumRedeliveries; got != want {
				t.Errorf("%v: limit %d, want %d", d, got, want)
			}
		}
		s := session(t, c, SessionTransacted)
		p := session(t, c, AutoAcknowledge)
		wild := must(s.CreateConsumer(t.Context(), Queue("A.*")))(t)
		send(t, p, Queue("A.B"), "b")
		send(t, p, Queue("A.C"), "c")
		n := map[string]int{}
		for {
			m, err := wild.ReceiveTimeout(t.Context(), 2*time.Second)
			if err != nil {
				break
			}
			n[m.Text()]++
			ok(t, s.Rollback(t.Context()))
		}
		if n["b"] != 3 || n["c"] != 2 { // R-MAP-14: by the queue each message came from
			t.Errorf("deliveries %v", n)
		}
		ok(t, wild.Close())
		own := must(s.CreateConsumer(t.Context(), Queue("A.B"), WithPolicy(quick(0))))(t)
		send(t, p, Queue("A.B"), "b")
		must(own.Receive(t.Context()))(t)
		ok(t, s.Rollback(t.Context()))
		if got := texts(t, own, time.Second); got != nil {
			t.Errorf("limit 0: %v", got)
		}
		ok(t, c.Close())
	})
}

// R-EDGE-52, better than R-CLIENT-41: what was processed is acknowledged before a failed message comes again.
func TestOptimizedAcknowledgementsAreFlushedBeforeARedelivery(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room?jms.optimizeAcknowledge=true&jms.prefetchPolicy.queuePrefetch=100")
		f.SetRedeliveryPolicy(quick(1))
		c := connect(t, f)
		s := session(t, c, AutoAcknowledge)
		var sent []string
		for i := range 8 {
			sent = append(sent, fmt.Sprint(i+1))
		}
		send(t, session(t, c, AutoAcknowledge), Queue("A"), sent...)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		n := map[string]int{}
		ok(t, k.Handle(func(_ context.Context, m *Message) error {
			n[m.Text()]++
			if m.Text() == "6" {
				return errors.New("no")
			}
			return nil
		}))
		rest(5 * time.Second)
		ok(t, c.Close())
		for _, x := range sent {
			if want := map[bool]int{true: 2, false: 1}[x == "6"]; n[x] != want {
				t.Errorf("%s was delivered %d times", x, n[x])
			}
		}
		if dead := deadLetters(t, r); len(dead) != 1 || dead[0].Text() != "6" {
			t.Errorf("dead letters %v", dead)
		}
	})
}

// What was shown once is flagged from then on, also where its failure does not count; and
// whoever closes a consumer that waits with such a message has had it.
func TestWhatDoesNotCountIsFlagged(t *testing.T) {
	everywhere(t, func(t *testing.T, r room) {
		f := factory(t, r, "tcp://room?jms.prefetchPolicy.queuePrefetch=10&jms.messagePrioritySupported=true")
		f.SetRedeliveryPolicy(quick(6))
		c := connect(t, f)
		s := session(t, c, ClientAcknowledge)
		k := must(s.CreateConsumer(t.Context(), Queue("A")))(t)
		p := must(s.CreateProducer(t.Context(), Queue("A")))(t)
		ok(t, p.Send(t.Context(), NewText("low"), WithPriority(1)))
		ok(t, p.Send(t.Context(), NewText("high"), WithPriority(9)))
		rest(time.Second)
		for i, flagged := range []bool{false, true} {
			m := must(k.Receive(t.Context()))(t)
			if m.Text() != "high" || m.Redelivered() != flagged || m.DeliveryCount() != 1 {
				t.Errorf("delivery %d is %q, redelivered %v, count %d", i+1, m.Text(), m.Redelivered(), m.DeliveryCount())
			}
			ok(t, s.RecoverBecause(DoNotCount(errors.New("database down"))))
		}
		ok(t, k.Close())
		m := must(must(s.CreateConsumer(t.Context(), Queue("A")))(t).Receive(t.Context()))(t)
		if m.Text() != "high" || !m.Redelivered() {
			t.Errorf("the next consumer gets %q, redelivered %v", m.Text(), m.Redelivered())
		}
		ok(t, c.Close())
	})
}
