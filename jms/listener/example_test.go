package listener_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/server"
	"github.com/nixiemq/nixie/jms"
	"github.com/nixiemq/nixie/jms/listener"
)

// A container runs until its context ends, and then finishes what is at work.
func Example() {
	none := ""
	cfg, _, err := config.Load(config.Options{Data: config.Memory, Listen: []string{"tcp://127.0.0.1:0"}, Admin: &none})
	if err != nil {
		log.Fatal(err)
	}
	broker, err := server.Start(context.Background(), server.Options{Config: cfg, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Stop()
	var url string
	if _, err := fmt.Sscanf(broker.Ready(), "nixie ready openwire=%s", &url); err != nil {
		log.Fatal(err)
	}

	factory, err := jms.NewConnectionFactory(url)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fed := make(chan struct{})
	go func() { defer close(fed); feed(factory) }()
	c, err := listener.New(listener.Options{
		Factory:        factory,
		Destination:    jms.Queue("ORDERS"),
		Transacted:     true,
		MinConcurrency: 1,
		MaxConcurrency: 10,
		MessageTimeout: time.Minute,
		Handler: func(ctx context.Context, m *jms.Message) error {
			fmt.Println(m.Text())
			if m.Text() == "order 3" {
				cancel() // enough
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Run(ctx); err != nil {
		log.Fatal(err)
	}
	<-fed // it may not have heard yet that its orders are there
	fmt.Println("processed", c.Stats().Succeeded)
	// Unordered output:
	// order 1
	// order 2
	// order 3
	// processed 3
}

// feed sends the example's orders.
func feed(factory *jms.ConnectionFactory) {
	ctx := context.Background()
	conn, err := factory.CreateConnection(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.CreateSession(jms.SessionTransacted)
	if err != nil {
		log.Fatal(err)
	}
	producer, err := session.CreateProducer(ctx, jms.Queue("ORDERS"))
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		if err := producer.Send(ctx, jms.NewText(fmt.Sprintf("order %d", i+1))); err != nil {
			log.Fatal(err)
		}
	}
	if err := session.Commit(ctx); err != nil {
		log.Fatal(err)
	}
}
