package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// A lateSink notes how late messages come: each body says when it is due.
type lateSink struct {
	mu   sync.Mutex
	due  func(Delivery) time.Time
	late []time.Duration
	done chan struct{} // closed when want have come
	want int
	got  func(Delivery)
}

// Deliver takes a delivery, and says how late it is where due knows.
func (s *lateSink) Deliver(d Delivery) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.due(d); !at.IsZero() {
		if s.late = append(s.late, now.Sub(at)); len(s.late) == s.want {
			close(s.done)
		}
	} else {
		s.got(d)
	}
}

func (s *lateSink) report(b *testing.B) {
	slices.Sort(s.late)
	ms := func(at int) float64 { return float64(s.late[at*(len(s.late)-1)/1000].Microseconds()) / 1000 }
	b.ReportMetric(ms(500), "p50-ms-late")
	b.ReportMetric(ms(990), "p99-ms-late")
	b.ReportMetric(ms(0), "first-ms-late")
}

func benchBroker(b *testing.B, set func(*Options)) (*Broker, func()) {
	s := memstore.New(memstore.Options{})
	shard, err := s.Acquire(context.Background(), 0, "bench")
	if err != nil {
		b.Fatal(err)
	}
	rec, err := records.Open(context.Background(), shard, records.Options{})
	if err != nil {
		b.Fatal(err)
	}
	o := Options{Records: rec}
	if set != nil {
		set(&o)
	}
	br, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); br.Run(ctx) }()
	return br, func() { cancel(); <-ended; _ = s.Close() }
}

// The benchmarks of lateness have 100,000 messages outstanding that come due over ten
// seconds, in real time and on a store in memory: what they show is the broker's own.
const (
	benchOutstanding = 100_000
	benchSpread      = 10 * time.Second
)

// BenchmarkRedeliveryLateness is failed messages that wait for a policy of the
// broker's.
func BenchmarkRedeliveryLateness(b *testing.B) {
	for b.Loop() {
		var mu sync.Mutex
		failed := map[uint64]time.Time{}
		var fail []Delivery
		s := &lateSink{want: benchOutstanding, done: make(chan struct{})}
		p := redelivery.DefaultPolicy()
		p.InitialRedeliveryDelay = benchSpread
		br, stop := benchBroker(b, func(o *Options) {
			o.Policy = func(message.Destination) Policy { return Policy{Rules: redelivery.Rules{Redelivery: &p}} }
		})
		first := make(chan struct{})
		s.due = func(d Delivery) time.Time {
			mu.Lock()
			defer mu.Unlock()
			return failed[d.Entry.Position]
		}
		s.got = func(d Delivery) {
			if fail = append(fail, d); len(fail) == benchOutstanding {
				close(first)
			}
		}
		c, err := br.Connect(context.Background(), ClientInfo{ID: "bench", Kick: func(error) {}}, s)
		if err != nil {
			b.Fatal(err)
		}
		for i := range benchOutstanding {
			c.Send(context.Background(), &message.Message{ID: message.ID{Producer: "p", Sequence: int64(i + 1)}, Destination: orders, Persistent: true,
				Body: make([]byte, 1024)}, "", nil)
		}
		if err := c.Subscribe(context.Background(), ConsumerSpec{ID: "k", Session: "s", Destination: orders, Prefetch: 2 * benchOutstanding}); err != nil {
			b.Fatal(err)
		}
		<-first
		for i, d := range fail { // at an even rate, so that they come due at one
			if i%100 == 0 {
				time.Sleep(benchSpread / benchOutstanding * 100)
			}
			ref := queue.Ref{Position: d.Entry.Position}
			mu.Lock()
			failed[d.Entry.Position] = time.Now().Add(benchSpread)
			mu.Unlock()
			c.Ack(context.Background(), Ack{Consumer: "k", Destination: orders, Type: queue.Poison, First: ref, Last: ref, Count: 1, Text: "x"}, nil)
		}
		<-s.done
		s.report(b)
		stop()
	}
}

// BenchmarkScheduleLateness is messages that their producer wants delivered later.
func BenchmarkScheduleLateness(b *testing.B) {
	for b.Loop() {
		br, stop := benchBroker(b, nil)
		s := &lateSink{want: benchOutstanding, done: make(chan struct{})}
		begin := time.Now().Add(benchSpread)
		due := func(i int64) time.Time { return begin.Add(time.Duration(i) * (benchSpread / benchOutstanding)) }
		s.due = func(d Delivery) time.Time { return due(d.Entry.ID.Sequence) }
		c, err := br.Connect(context.Background(), ClientInfo{ID: "bench", Kick: func(error) {}}, s)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Subscribe(context.Background(), ConsumerSpec{ID: "k", Session: "s", Destination: orders, Prefetch: 2 * benchOutstanding}); err != nil {
			b.Fatal(err)
		}
		for i := range int64(benchOutstanding) {
			c.Send(context.Background(), &message.Message{ID: message.ID{Producer: "p", Sequence: i + 1}, Destination: orders, Persistent: true,
				Body: make([]byte, 1024), Schedule: &message.Schedule{Delay: time.Until(due(i+1)).Milliseconds() + 1}}, "", nil)
		}
		if time.Now().After(begin) {
			b.Fatal(fmt.Errorf("sending took %v", time.Since(begin.Add(-benchSpread))))
		}
		<-s.done
		s.report(b)
		stop()
	}
}

// A countingSink counts what comes.
type countingSink struct{ n atomic.Int64 }

// Deliver counts a delivery.
func (s *countingSink) Deliver(Delivery) { s.n.Add(1) }

// BenchmarkSelectorConsumers is sends to a queue on which each consumer waits for a
// value of its own, in a header field or a property.
func BenchmarkSelectorConsumers(b *testing.B) {
	for _, field := range []string{"JMSCorrelationID", "property"} {
		for _, consumers := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("%s/consumers=%d", field, consumers), func(b *testing.B) {
				br, stop := benchBroker(b, func(o *Options) {
					o.Properties = func(m *message.Message, _ string) (selector.Value, bool) {
						return selector.StringValue(m.CorrelationID), true
					}
				})
				defer stop()
				s := &countingSink{}
				c, err := br.Connect(context.Background(), ClientInfo{ID: "bench", Kick: func(error) {}}, s)
				if err != nil {
					b.Fatal(err)
				}
				ids := make([]string, consumers)
				for i := range ids {
					ids[i] = fmt.Sprintf("ID:host-40000-1700000000000-1:1:1:%d", i)
					if err := c.Subscribe(context.Background(), ConsumerSpec{ID: ids[i], Session: "s", Destination: orders, Prefetch: 1 << 30,
						Selector: field + " = '" + ids[i] + "'"}); err != nil {
						b.Fatal(err)
					}
				}
				answered := make(chan error, 100)
				done := func(err error) { answered <- err }
				i := 0
				for ; b.Loop(); i++ {
					if i >= cap(answered) {
						if err := <-answered; err != nil {
							b.Fatal(err)
						}
					}
					c.Send(context.Background(), &message.Message{ID: message.ID{Producer: "p", Sequence: int64(i + 1)}, Destination: orders, Persistent: true,
						CorrelationID: ids[i*7919%len(ids)], Body: make([]byte, 100)}, "", done)
				}
				for range min(i, cap(answered)) {
					<-answered
				}
				if n := s.n.Load(); n != int64(i) {
					b.Fatalf("%d of %d came", n, i)
				}
			})
		}
	}
}
