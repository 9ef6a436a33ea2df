// Package jms is a client of ActiveMQ brokers in JMS's words: it speaks OpenWire to
// NixieMQ and to ActiveMQ Classic, and redelivers failed messages as the Java client
// does, or better where that one loses or doubles them.
//
//	factory, err := jms.NewConnectionFactory("tcp://localhost:61616")
//	conn, err := factory.CreateConnection(ctx)
//	defer conn.Close()
//	session, err := conn.CreateSession(jms.AutoAcknowledge)
//	consumer, err := session.CreateConsumer(ctx, jms.Queue("ORDERS"))
//	err = consumer.Handle(func(ctx context.Context, m *jms.Message) error { … })
//	err = conn.Start()
//
// # What becomes of a message that fails
//
// A message fails when its transaction is rolled back, by Session.Recover, by
// Message.Fail, and when its handler returns an error or panics. It is delivered again
// by the RedeliveryPolicy of the destination it came from, each message by itself
// whatever else failed with it; past the limit it is given up, and the broker makes
// it a dead letter. The broker is told of every failed attempt, with the error's
// text, its chain, and the stack of a panic. A handler can answer more than "failed":
// see RetryAfter, DeadLetter and DoNotCount.
//
// The policy is, in this order: the consumer's own, the connection's for the
// destination, the connection's default, what the broker wishes, ActiveMQ's default.
//
// # Waiting, and the end
//
// What can wait takes a context. Errors are *Error, with a kind to test for with
// errors.Is, such as ErrClosed. After Connection.Close no goroutine of it is left.
//
// # How it is built
//
// A Connection has one mutex, which guards the state of all that was made from it and
// is never held while something is waited for. An inbox decides, for one consumer, as
// a pure machine. A link is one network connection; over failover a Connection has
// one after another, and tells each what there is.
//
// Rule ids (R-CLIENT-43) are those of the project's specification of ActiveMQ's
// behaviour, section numbers of OpenWire those of its protocol specification.
package jms
