package listener

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/jms"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func inRoom(t *testing.T, set func(*broker.Options, *openwire.Options), f func(t *testing.T, r *openwiretest.Room)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := openwiretest.Open(t, set)
		f(t, r)
		r.Close()
	})
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func factory(t testing.TB, r *openwiretest.Room, url string) *jms.ConnectionFactory {
	t.Helper()
	f, err := jms.NewConnectionFactory(url)
	ok(t, err)
	f.Dial = r.Dial
	return f
}

func send(t testing.TB, r *openwiretest.Room, d jms.Destination, texts ...string) {
	t.Helper()
	c, err := factory(t, r, "tcp://room").CreateConnection(context.Background())
	ok(t, err)
	s, err := c.CreateSession(jms.AutoAcknowledge)
	ok(t, err)
	p, err := s.CreateProducer(context.Background(), d)
	ok(t, err)
	for _, text := range texts {
		ok(t, p.Send(context.Background(), jms.NewText(text)))
	}
	ok(t, c.Close())
}

// take takes what is in a queue.
func take(t testing.TB, r *openwiretest.Room, d jms.Destination) []string {
	t.Helper()
	c, err := factory(t, r, "tcp://room").CreateConnection(context.Background())
	ok(t, err)
	ok(t, c.Start())
	s, err := c.CreateSession(jms.AutoAcknowledge)
	ok(t, err)
	k, err := s.CreateConsumer(context.Background(), d)
	ok(t, err)
	var all []string
	for {
		m, err := k.ReceiveTimeout(context.Background(), 100*time.Millisecond)
		if errors.Is(err, jms.ErrNoMessage) {
			break
		}
		ok(t, err)
		all = append(all, m.Text())
	}
	ok(t, c.Close())
	return all
}

// A log is what handlers saw.
type log struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func newLog() *log { return &log{start: time.Now()} }

func (l *log) add(m *jms.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s/%d@%v", m.Text(), m.DeliveryCount(), time.Since(l.start)))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// run runs a container until stop is called.
func run(t testing.TB, o Options) (c *Container, stop func() error) {
	t.Helper()
	c, err := New(o)
	ok(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, func() error {
		cancel()
		return <-ended
	}
}

func policy(limit int, first, later time.Duration) *jms.RedeliveryPolicy {
	p := jms.DefaultRedeliveryPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, first, later
	return &p
}

// Seed 000: with initialRedeliveryDelay=0 the first redelivery comes after the smaller
// of receiveTimeout and recoveryInterval, the later ones by redeliveryDelay; with an
// initialRedeliveryDelay above 0 that alone counts.
func TestSeed000WhichSetsTheFirstDelay(t *testing.T) {
	for name, tt := range map[string]struct {
		initial, receive, recovery time.Duration
		want                       []string
	}{
		"receiveTimeout below recoveryInterval": {0, 300 * time.Millisecond, 700 * time.Millisecond, []string{"x/1@0s", "x/2@300ms", "x/3@5.3s", "x/4@10.3s"}},
		"receiveTimeout above recoveryInterval": {0, 700 * time.Millisecond, 200 * time.Millisecond, []string{"x/1@0s", "x/2@200ms", "x/3@5.2s", "x/4@10.2s"}},
		"initialRedeliveryDelay above 0":        {50 * time.Millisecond, 700 * time.Millisecond, 200 * time.Millisecond, []string{"x/1@0s", "x/2@50ms", "x/3@5.05s", "x/4@10.05s"}},
	} {
		t.Run(name, func(t *testing.T) {
			inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
				send(t, r, jms.Queue("A"), "x")
				l := newLog()
				_, stop := run(t, Options{Factory: factory(t, r, "tcp://room"), Destination: jms.Queue("A"), Transacted: true,
					ReceiveTimeout: tt.receive, RecoveryInterval: tt.recovery, Policy: policy(3, tt.initial, 5*time.Second),
					Handler: func(_ context.Context, m *jms.Message) error { l.add(m); return errors.New("no") }})
				time.Sleep(time.Minute)
				ok(t, stop())
				if got := l.all(); !slices.Equal(got, tt.want) {
					t.Errorf("got %v, want %v", got, tt.want)
				}
				if dead := take(t, r, jms.Queue("ActiveMQ.DLQ")); !slices.Equal(dead, []string{"x"}) {
					t.Errorf("dead letters %v", dead)
				}
			})
		})
	}
}

var levels = map[string]CacheLevel{"consumer": CacheConsumer, "session": CacheSession, "connection": CacheConnection, "none": CacheNone}

// everyLevel runs f for all that C26 asks for.
func everyLevel(t *testing.T, f func(t *testing.T, o Options)) {
	for name, level := range levels {
		for _, workers := range []int{1, 5} {
			for _, transacted := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %d workers, transacted=%v", name, workers, transacted), func(t *testing.T) {
					f(t, Options{Cache: level, MinConcurrency: workers, Transacted: transacted, ReceiveTimeout: 500 * time.Millisecond, RecoveryInterval: 500 * time.Millisecond})
				})
			}
		}
	}
}

// C26 part 1: a broker-side policy of two redeliveries, one second apart; client limit 0.
func TestC26BrokerSidePolicy(t *testing.T) {
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries = 2
	set := func(o *broker.Options, _ *openwire.Options) {
		o.Policy = func(message.Destination) broker.Policy { return broker.Policy{Rules: redelivery.Rules{Redelivery: &p}} }
	}
	everyLevel(t, func(t *testing.T, o Options) {
		inRoom(t, set, func(t *testing.T, r *openwiretest.Room) {
			send(t, r, jms.Queue("A"), "m0", "m1", "m2")
			l := newLog()
			o.Factory, o.Destination, o.Policy = factory(t, r, "tcp://room"), jms.Queue("A"), policy(0, 0, 0)
			o.Handler = func(_ context.Context, m *jms.Message) error {
				l.add(m)
				if m.Text() == "m0" {
					return errors.New("always")
				}
				return nil
			}
			_, stop := run(t, o)
			time.Sleep(6 * time.Second)
			ok(t, stop())
			var gaps []time.Duration
			var last time.Duration
			n := 0
			for _, line := range l.all() {
				var text, at string
				var count int
				fmt.Sscanf(line[:2]+" "+line[3:4]+" "+line[5:], "%s %d %s", &text, &count, &at)
				d, err := time.ParseDuration(at)
				ok(t, err)
				if text != "m0" {
					if d > 1100*time.Millisecond {
						t.Errorf("%s came after %v", text, d)
					}
					continue
				}
				if n++; count != n {
					t.Errorf("delivery %d has count %d", n, count)
				}
				if n > 1 {
					gaps = append(gaps, d-last)
				}
				last = d
			}
			if n != 3 {
				t.Errorf("m0 came %d times: %v", n, l.all())
			}
			for _, g := range gaps {
				if g < 950*time.Millisecond || g > 2*time.Second {
					t.Errorf("gap %v: %v", g, l.all())
				}
			}
			if dead := take(t, r, jms.Queue("ActiveMQ.DLQ")); !slices.Equal(dead, []string{"m0"}) {
				t.Errorf("dead letters %v", dead)
			}
		})
	})
}

// C26 part 2: the client's policy, limit 2 and 1 s. Ours keeps the delay at every level.
func TestC26ClientPolicy(t *testing.T) {
	everyLevel(t, func(t *testing.T, o Options) {
		inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
			send(t, r, jms.Queue("A"), "m0")
			l := newLog()
			o.Factory, o.Destination, o.Policy = factory(t, r, "tcp://room"), jms.Queue("A"), policy(2, time.Second, time.Second)
			o.Handler = func(_ context.Context, m *jms.Message) error { l.add(m); return errors.New("always") }
			_, stop := run(t, o)
			time.Sleep(10 * time.Second)
			ok(t, stop())
			if got, want := l.all(), []string{"m0/1@0s", "m0/2@1s", "m0/3@2s"}; !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if dead := take(t, r, jms.Queue("ActiveMQ.DLQ")); !slices.Equal(dead, []string{"m0"}) {
				t.Errorf("dead letters %v", dead)
			}
		})
	})
}

// C26 part 3: the broker is away for five seconds in the middle of 100 messages.
func TestC26Outage(t *testing.T) {
	for _, url := range []string{"tcp://room", "failover:(tcp://room)"} {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s kill=%v", url, kill), func(t *testing.T) {
				everyLevel(t, func(t *testing.T, o Options) {
					if url != "tcp://room" && (o.Cache != CacheConsumer || !o.Transacted) {
						return // fail-over hides the outage from the container, whatever it keeps
					}
					inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
						var sent []string
						for i := range 100 {
							sent = append(sent, fmt.Sprintf("%03d", i))
						}
						send(t, r, jms.Queue("A"), sent...)
						var mu sync.Mutex
						seen := map[string]int{}
						o.Factory, o.Destination = factory(t, r, url), jms.Queue("A")
						var back time.Time
						var first time.Duration
						o.Handler = func(_ context.Context, m *jms.Message) error {
							time.Sleep(50 * time.Millisecond)
							mu.Lock()
							defer mu.Unlock()
							if seen[m.Text()]++; seen[m.Text()] > 1 && !m.Redelivered() {
								t.Errorf("%s came twice, and not flagged redelivered", m.Text())
							}
							if !back.IsZero() && first == 0 {
								first = time.Since(back)
							}
							return nil
						}
						c, stop := run(t, o)
						time.Sleep(700 * time.Millisecond)
						if kill {
							r.Cut()
						}
						r.Stop()
						time.Sleep(100 * time.Millisecond) // what was at work has ended
						before := r.Dials()
						time.Sleep(4900 * time.Millisecond)
						if n := r.Dials() - before; float64(n) > 3*5*float64(o.MinConcurrency) {
							t.Errorf("%d attempts to connect in 5 s", n)
						}
						mu.Lock()
						back = time.Now()
						mu.Unlock()
						r.Start()
						time.Sleep(10 * time.Second)
						ok(t, stop())
						twice := 0
						for _, x := range sent {
							if seen[x] > 1 {
								twice++
							}
							if seen[x] == 0 {
								t.Errorf("%s was never processed", x)
							}
						}
						most := o.MinConcurrency // those at work
						if !o.Transacted {
							most *= 2 // and those whose acknowledgement, which nobody waits for, was lost
						}
						if twice > most {
							t.Errorf("%d messages came twice, want at most %d", twice, most)
						}
						if first > 3*time.Second {
							t.Errorf("at work again after %v", first)
						}
						if left := take(t, r, jms.Queue("A")); left != nil {
							t.Errorf("left %v", left)
						}
						if dead := take(t, r, jms.Queue("ActiveMQ.DLQ")); dead != nil {
							t.Errorf("dead letters %v", dead)
						}
						_ = c.Stats()
					})
				})
			})
		}
	}
}

func TestWorkersComeAndGo(t *testing.T) {
	inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
		var sent []string
		for i := range 60 {
			sent = append(sent, fmt.Sprint(i))
		}
		send(t, r, jms.Queue("A"), sent...)
		c, stop := run(t, Options{Factory: factory(t, r, "tcp://room"), Destination: jms.Queue("A"), Transacted: true, MinConcurrency: 1, MaxConcurrency: 6, Prefetch: 1,
			Handler: func(context.Context, *jms.Message) error { time.Sleep(time.Second); return nil }})
		time.Sleep(7500 * time.Millisecond)
		if s := c.Stats(); s.Workers != 6 || s.Busy != 6 {
			t.Errorf("under load: %+v", s)
		}
		time.Sleep(time.Minute)
		if s := c.Stats(); s.Workers != 1 || s.Busy != 0 || s.Succeeded != 60 {
			t.Errorf("idle: %+v", s)
		}
		ok(t, stop())
	})
}

func TestDrain(t *testing.T) {
	for name, tt := range map[string]struct {
		drain time.Duration
		took  time.Duration
		left  []string
	}{
		"what is at work is waited for":         {time.Minute, 10 * time.Second, []string{"2"}},
		"after the drain time-out contexts end": {3 * time.Second, 3 * time.Second, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
				send(t, r, jms.Queue("A"), "1", "2")
				_, stop := run(t, Options{Factory: factory(t, r, "tcp://room"), Destination: jms.Queue("A"), Transacted: true, DrainTimeout: tt.drain,
					Handler: func(ctx context.Context, _ *jms.Message) error {
						select {
						case <-time.After(11 * time.Second):
							return nil
						case <-ctx.Done():
							return jms.DoNotCount(ctx.Err())
						}
					}})
				time.Sleep(time.Second)
				start := time.Now()
				ok(t, stop())
				if took := time.Since(start); took != tt.took {
					t.Errorf("stopped after %v, want %v", took, tt.took)
				}
				if left := take(t, r, jms.Queue("A")); !slices.Equal(left, tt.left) {
					t.Errorf("left %v, want %v", left, tt.left)
				}
			})
		})
	}
}

func TestMessageTimeoutAndSends(t *testing.T) {
	inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
		send(t, r, jms.Queue("A"), "slow", "good")
		_, stop := run(t, Options{Factory: factory(t, r, "tcp://room"), Destination: jms.Queue("A"), Transacted: true, MessageTimeout: 2 * time.Second, Policy: policy(0, 0, 0),
			Handler: func(ctx context.Context, m *jms.Message) error {
				p, err := SessionOf(ctx).CreateProducer(ctx, jms.Queue("OUT"))
				if err != nil {
					return err
				}
				if err := p.Send(ctx, jms.NewText("done "+m.Text())); err != nil {
					return err
				}
				if m.Text() == "slow" {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return p.Close()
			}})
		time.Sleep(time.Minute)
		ok(t, stop())
		if out := take(t, r, jms.Queue("OUT")); !slices.Equal(out, []string{"done good"}) {
			t.Errorf("sent %v", out)
		}
		if dead := take(t, r, jms.Queue("ActiveMQ.DLQ")); !slices.Equal(dead, []string{"slow"}) {
			t.Errorf("dead letters %v", dead)
		}
	})
}

func TestBackOffGivesUp(t *testing.T) {
	inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
		r.Stop()
		var attempts []int
		c, err := New(Options{Factory: factory(t, r, "tcp://room"), Destination: jms.Queue("A"), MinConcurrency: 3, BackOff: ExponentialBackOff(time.Second, 2, 3*time.Second, 3),
			Hooks:   Hooks{Recovering: func(n int, _ error) { attempts = append(attempts, n) }},
			Handler: func(context.Context, *jms.Message) error { return nil }})
		ok(t, err)
		start := time.Now()
		if err := c.Run(t.Context()); !errors.Is(err, jms.ErrUnavailable) || time.Since(start) != 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if !slices.Equal(attempts, []int{1, 2, 3, 4}) {
			t.Errorf("attempts %v", attempts)
		}
		r.Start()
	})
}

// Spans of one message's attempts are linked, and children of its sender's.
func TestSpans(t *testing.T) {
	inRoom(t, nil, func(t *testing.T, r *openwiretest.Room) {
		recorder := tracetest.NewSpanRecorder()
		tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)).Tracer("test")
		ctx, sender := tracer.Start(t.Context(), "send")
		conn, err := factory(t, r, "tcp://room").CreateConnection(t.Context())
		ok(t, err)
		s, err := conn.CreateSession(jms.AutoAcknowledge)
		ok(t, err)
		p, err := s.CreateProducer(t.Context(), jms.Queue("A"))
		ok(t, err)
		m := jms.NewText("x")
		Inject(ctx, m)
		ok(t, p.Send(t.Context(), m))
		ok(t, conn.Close())
		sender.End()
		_, stop := run(t, Options{Factory: factory(t, r, "tcp://room"), Destination: jms.Queue("A"), Policy: policy(5, time.Second, time.Second), Tracer: tracer,
			Handler: func(_ context.Context, m *jms.Message) error {
				if m.DeliveryCount() < 3 {
					return errors.New("not yet")
				}
				return nil
			}})
		time.Sleep(time.Minute)
		ok(t, stop())
		spans := recorder.Ended()[1:]
		if len(spans) != 3 {
			t.Fatalf("%d spans", len(spans))
		}
		for i, span := range spans {
			if span.Parent().SpanID() != sender.SpanContext().SpanID() || span.SpanContext().TraceID() != sender.SpanContext().TraceID() {
				t.Errorf("attempt %d is no child of the sender's span", i+1)
			}
			links := span.Links()
			if i == 0 && len(links) != 0 || i > 0 && (len(links) != 1 || links[0].SpanContext.SpanID() != spans[i-1].SpanContext().SpanID()) {
				t.Errorf("attempt %d has links %v", i+1, links)
			}
		}
	})
}

func TestBadOptions(t *testing.T) {
	f, err := jms.NewConnectionFactory("")
	ok(t, err)
	h := func(context.Context, *jms.Message) error { return nil }
	for name, o := range map[string]Options{
		"no factory":           {Destination: jms.Queue("A"), Handler: h},
		"no handler":           {Factory: f, Destination: jms.Queue("A")},
		"no destination":       {Factory: f, Handler: h},
		"workers on a topic":   {Factory: f, Destination: jms.Topic("A"), Handler: h, MaxConcurrency: 2},
		"durable on a queue":   {Factory: f, Destination: jms.Queue("A"), Handler: h, Subscription: "s"},
		"durable without name": {Factory: f, Destination: jms.Topic("A"), Handler: h, Subscription: "s"},
		"negative time":        {Factory: f, Destination: jms.Queue("A"), Handler: h, ReceiveTimeout: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
