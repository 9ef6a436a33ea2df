// Package listener runs a handler on the messages of a destination, with as many
// workers as there is work for, through losses of the connection, until it is told to
// stop: what Spring's DefaultMessageListenerContainer is to a Java program.
//
//	c, err := listener.New(listener.Options{
//		Factory:        factory,
//		Destination:    jms.Queue("ORDERS"),
//		Transacted:     true,
//		MinConcurrency: 2,
//		MaxConcurrency: 10,
//		Handler:        func(ctx context.Context, m *jms.Message) error { … },
//	})
//	err = c.Run(ctx) // until ctx ends, and the messages at work are done
//
// A message is acknowledged, or its transaction committed, when its handler has
// returned nil. An error, a panic, or a time-out that the handler reports is a failure
// of that message: it is redelivered by the policy, or becomes a dead letter.
//
//	Run ─┬─ worker: receive → handle → commit, or fail        min to max of them
//	     ├─ …          │ connection lost: back off, connect, go on
//	     └─ drain: no more receives; what is at work is waited for
//
// The laws: each worker has a session of its own; a consumer with a failed message is
// kept until that message is settled, whatever the cache level, so that retries are
// the same at every level (C26); while there is no broker the workers together make
// one connection attempt after another, never more.
package listener
