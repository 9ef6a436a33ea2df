package broker

import (
	"context"
	"fmt"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// An ackSink acknowledges each delivery, as a client in AUTO_ACKNOWLEDGE does: from
// a goroutine of its own, in the order in which they came.
type ackSink struct{ came chan ackOf }

type ackOf struct {
	consumer    string
	destination message.Destination
	ref         queue.Ref
}

// Deliver leaves the acknowledgement to run.
func (s *ackSink) Deliver(d Delivery) {
	s.came <- ackOf{d.Consumer, d.Destination, queue.Ref{Position: d.Entry.Position}}
}

// run acknowledges n deliveries.
func (s *ackSink) run(c *Connection, n int, done chan<- struct{}) {
	for range n {
		a := <-s.came
		c.Ack(context.Background(), Ack{Consumer: a.consumer, Destination: a.destination, Type: queue.Standard, First: a.ref, Last: a.ref, Count: 1}, nil)
	}
	done <- struct{}{}
}

// BenchmarkFlow is messages from one producer through the broker, on a store in
// memory: to the only consumer of a queue, or to each of ten subscribers of a topic.
// What it shows is the broker without protocol and disk.
func BenchmarkFlow(b *testing.B) {
	topic := message.Destination{Kind: message.Topic, Name: "PRICES"}
	for _, x := range []struct {
		name       string
		to         message.Destination
		consumers  int
		persistent bool
		limit      int64 // Flow.MaxBytes, which is not reached; 0: none
	}{
		{"queue/persistent", orders, 1, true, 0},
		{"queue/nonpersistent", orders, 1, false, 0},
		{"queue/nonpersistent/limit", orders, 1, false, 1 << 40},
		{"topic/to=10", topic, 10, false, 0},
		{"topic/to=10/limit", topic, 10, false, 1 << 40},
		{"topic/persistent/durable=2", topic, 2, true, 0},
	} {
		b.Run(x.name, func(b *testing.B) {
			br, stop := benchBroker(b, func(o *Options) {
				if o.Limited = x.limit > 0; o.Limited {
					o.Policy = func(message.Destination) Policy { return Policy{Flow: Flow{MaxBytes: x.limit}} }
				}
			})
			defer stop()
			sinks := make([]*ackSink, x.consumers)
			clients := make([]*Connection, x.consumers)
			for i := range sinks {
				sinks[i] = &ackSink{came: make(chan ackOf, 40_000)}
				var err error
				if clients[i], err = br.Connect(context.Background(), ClientInfo{ID: fmt.Sprint("consumer-", i), ClientID: fmt.Sprint("client-", i), Kick: func(error) {}}, sinks[i]); err != nil {
					b.Fatal(err)
				}
				spec := ConsumerSpec{ID: fmt.Sprint("k", i), Session: "s", Destination: x.to, Prefetch: 32_000}
				if x.persistent && x.to.IsTopic() {
					spec.Subscription = "sub"
				}
				if err := clients[i].Subscribe(context.Background(), spec); err != nil {
					b.Fatal(err)
				}
			}
			p, err := br.Connect(context.Background(), ClientInfo{ID: "producer", Kick: func(error) {}}, sinks[0])
			if err != nil {
				b.Fatal(err)
			}
			body := make([]byte, 1024)
			done := make(chan struct{})
			b.ReportAllocs()
			b.ResetTimer()
			for i, s := range sinks {
				go s.run(clients[i], b.N, done)
			}
			for i := range b.N {
				p.Send(context.Background(), &message.Message{ID: message.ID{Producer: "p", Sequence: int64(i + 1)}, Destination: x.to,
					Persistent: x.persistent, Priority: message.DefaultPriority, Body: body}, "", nil)
			}
			for range sinks {
				<-done
			}
		})
	}
}
