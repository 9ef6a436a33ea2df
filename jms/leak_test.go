package jms_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nixiemq/nixie/jms"
	"go.uber.org/goleak"
)

// Over real sockets, with many goroutines at work: nothing is lost, nothing races, and
// after Close nothing is left.
func TestManyGoroutinesAndNoneLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	url, stop := broker()
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const senders, each = 4, 250
	conn := open(ctx, "failover:("+url+")?jms.prefetchPolicy.queuePrefetch=10&jms.redeliveryPolicy.initialRedeliveryDelay=0")
	var seen sync.Map
	var processed atomic.Int64
	done := make(chan struct{})
	for i := range 4 {
		mode := []jms.AckMode{jms.AutoAcknowledge, jms.IndividualAcknowledge, jms.SessionTransacted, jms.ClientAcknowledge}[i]
		s := check(conn.CreateSession(mode))
		k := check(s.CreateConsumer(ctx, jms.Queue("MANY")))
		err := k.Handle(func(ctx context.Context, m *jms.Message) error {
			if len(m.Text())%7 == 0 && !m.Redelivered() {
				return fmt.Errorf("once")
			}
			var err error
			if mode == jms.SessionTransacted {
				err = s.Commit(ctx)
			} else {
				err = m.Acknowledge(ctx)
			}
			if err != nil {
				return err
			}
			if _, twice := seen.LoadOrStore(m.Text(), true); twice {
				t.Errorf("%s was processed twice", m.Text())
			}
			if processed.Add(1) == senders*each {
				close(done)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p := check(check(conn.CreateSession(jms.AutoAcknowledge)).CreateProducer(ctx, jms.Queue("MANY")))
	var sending sync.WaitGroup
	for n := range senders {
		sending.Go(func() {
			for i := range each {
				if err := p.Send(ctx, jms.NewText(fmt.Sprintf("%d/%d", n, i)), jms.Async()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sending.Wait()
	<-done
	waiting := check(check(conn.CreateSession(jms.AutoAcknowledge)).CreateConsumer(ctx, jms.Queue("EMPTY")))
	var received sync.WaitGroup
	received.Go(func() {
		if _, err := waiting.Receive(ctx); err == nil {
			t.Error("received from a queue that is empty")
		}
	})
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	received.Wait()
}
