package jms_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/server"
	"github.com/nixiemq/nixie/jms"
)

// broker starts a broker in memory for an example. A program of yours has one already,
// and needs its URL alone.
func broker() (url string, stop func()) {
	none := ""
	cfg, _, err := config.Load(config.Options{Data: config.Memory, Listen: []string{"tcp://127.0.0.1:0"}, Admin: &none})
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.Start(context.Background(), server.Options{Config: cfg, Log: quiet})
	if err != nil {
		log.Fatal(err)
	}
	var at string
	if _, err := fmt.Sscanf(s.Ready(), "nixie ready openwire=%s", &at); err != nil {
		log.Fatal(err)
	}
	return at, s.Stop
}

// open makes a started connection.
func open(ctx context.Context, url string) *jms.Connection {
	factory, err := jms.NewConnectionFactory(url)
	if err != nil {
		log.Fatal(err)
	}
	conn, err := factory.CreateConnection(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := conn.Start(); err != nil {
		log.Fatal(err)
	}
	return conn
}

// check keeps the examples short.
func check[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A message is sent, and the program waits until the broker has it on disk.
func ExampleProducer_Send() {
	url, stop := broker()
	defer stop()
	ctx := context.Background()
	conn := open(ctx, url)
	defer conn.Close()

	session := check(conn.CreateSession(jms.AutoAcknowledge))
	producer := check(session.CreateProducer(ctx, jms.Queue("ORDERS")))
	m := jms.NewText("order 1").SetProperty("customer", "4711")
	if err := producer.Send(ctx, m, jms.WithPriority(7), jms.WithTimeToLive(time.Hour)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Destination, m.Priority, m.ID != "")
	// Output: queue://ORDERS 7 true
}

// A message is received, or the program learns that there is none.
func ExampleConsumer_ReceiveTimeout() {
	url, stop := broker()
	defer stop()
	ctx := context.Background()
	conn := open(ctx, url)
	defer conn.Close()
	session := check(conn.CreateSession(jms.AutoAcknowledge))
	producer := check(session.CreateProducer(ctx, jms.Queue("ORDERS")))
	_ = producer.Send(ctx, jms.NewText("order 1"))

	consumer := check(session.CreateConsumer(ctx, jms.Queue("ORDERS"), jms.WithSelector("JMSPriority > 3")))
	for {
		m, err := consumer.ReceiveTimeout(ctx, 100*time.Millisecond)
		if errors.Is(err, jms.ErrNoMessage) {
			fmt.Println("no more")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Text(), m.DeliveryCount())
	}
	// Output:
	// order 1 1
	// no more
}

// What is received and what is sent for it happen together, or not at all.
func ExampleSession_Commit() {
	url, stop := broker()
	defer stop()
	ctx := context.Background()
	conn := open(ctx, url)
	defer conn.Close()
	feed := check(check(conn.CreateSession(jms.AutoAcknowledge)).CreateProducer(ctx, jms.Queue("ORDERS")))
	_ = feed.Send(ctx, jms.NewText("order 1"))

	session := check(conn.CreateSession(jms.SessionTransacted))
	orders := check(session.CreateConsumer(ctx, jms.Queue("ORDERS")))
	invoices := check(session.CreateProducer(ctx, jms.Queue("INVOICES")))
	m := check(orders.Receive(ctx))
	if err := invoices.Send(ctx, jms.NewText("invoice for "+m.Text())); err != nil {
		_ = session.RollbackBecause(ctx, err)
		return
	}
	switch err := session.Commit(ctx); {
	case errors.Is(err, jms.ErrInDoubt):
		fmt.Println("nobody knows; if it did not happen, order 1 comes again")
	case err != nil:
		fmt.Println("it did not happen, and order 1 comes again:", err)
	default:
		fmt.Println("done")
	}
	// Output: done
}

// What was delivered and not acknowledged is delivered again.
func ExampleSession_Recover() {
	url, stop := broker()
	defer stop()
	ctx := context.Background()
	conn := open(ctx, url+"?jms.redeliveryPolicy.initialRedeliveryDelay=10")
	defer conn.Close()
	session := check(conn.CreateSession(jms.ClientAcknowledge))
	producer := check(session.CreateProducer(ctx, jms.Queue("ORDERS")))
	_ = producer.Send(ctx, jms.NewText("order 1"))
	consumer := check(session.CreateConsumer(ctx, jms.Queue("ORDERS")))

	m := check(consumer.Receive(ctx))
	fmt.Println(m.Text(), m.DeliveryCount(), m.Redelivered())
	if err := session.Recover(); err != nil {
		log.Fatal(err)
	}
	m = check(consumer.Receive(ctx))
	fmt.Println(m.Text(), m.DeliveryCount(), m.Redelivered())
	_ = m.Acknowledge(ctx)
	// Output:
	// order 1 1 false
	// order 1 2 true
}

// A handler that fails past the policy's limit makes a dead letter, with the reason.
func ExampleConsumer_Handle_poison() {
	url, stop := broker()
	defer stop()
	ctx := context.Background()
	factory := check(jms.NewConnectionFactory(url))
	policy := jms.DefaultRedeliveryPolicy()
	policy.MaximumRedeliveries, policy.InitialRedeliveryDelay = 1, 10*time.Millisecond
	factory.Policies.Put(jms.Queue("ORDERS.>"), policy)
	conn := check(factory.CreateConnection(ctx))
	defer conn.Close()
	_ = conn.Start()

	session := check(conn.CreateSession(jms.AutoAcknowledge))
	orders := check(session.CreateConsumer(ctx, jms.Queue("ORDERS.NEW")))
	err := orders.Handle(func(ctx context.Context, m *jms.Message) error {
		fmt.Println("delivery", m.DeliveryCount())
		return errors.New("no such customer")
	})
	if err != nil {
		log.Fatal(err)
	}
	other := check(conn.CreateSession(jms.AutoAcknowledge))
	_ = check(other.CreateProducer(ctx, jms.Queue("ORDERS.NEW"))).Send(ctx, jms.NewText("order 1"))
	dead := check(check(other.CreateConsumer(ctx, jms.Queue("ActiveMQ.DLQ"))).Receive(ctx))
	cause := check(dead.Properties.String("dlqDeliveryFailureCause"))
	fmt.Println(dead.Text(), "from", dead.OriginalDestination)
	fmt.Println(cause[len(cause)-len("no such customer"):])
	// Output:
	// delivery 1
	// delivery 2
	// order 1 from queue://ORDERS.NEW
	// no such customer
}

// A handler can say more than that it failed.
func ExampleRetryAfter() {
	_ = func(ctx context.Context, m *jms.Message) error {
		switch err := process(m); {
		case err == nil:
			return nil
		case errors.Is(err, errDatabaseDown):
			return jms.DoNotCount(jms.RetryAfter(time.Minute, err)) // not the message's fault
		case errors.Is(err, errBusy):
			return jms.RetryAfter(5*time.Second, err)
		case errors.Is(err, errNonsense):
			return jms.DeadLetter("cannot be parsed", err) // never again
		default:
			return err // by the policy
		}
	}
}
