package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// An application is a small OpenWire client, for scripts to run as the command
// "app". It connects to $OPENWIRE, as $APP_USER with $APP_PASSWORD where they are set.
type application struct {
	conn     net.Conn
	enc      *wire.Encoder
	dec      *wire.Decoder
	id       string
	commands int32
	sent     int64
	got      []*wire.MessageDispatch // not yet looked at
}

const appUsage = `usage:
  app CONNECTION send QUEUE TEXT [NAME=VALUE...]  send a persistent text message
  app CONNECTION flood QUEUE N [NAME=VALUE...]    send N persistent text messages, with the property n: 0, 1, ...;
                                                  JMSTimeToLive is in milliseconds
  app CONNECTION poison QUEUE N                   fail N messages three times each, and give them up
  app CONNECTION receive QUEUE                    receive a message, acknowledge and print it
  app CONNECTION prepare QUEUE TEXT NUMBER        prepare a distributed transaction of that number: receive a message from
                                                  the queue, and send the text to OUT
  app CONNECTION end QUEUE commit|rollback NUMBER end it
  app CONNECTION subscribe TOPIC NAME             make a durable subscription
  app CONNECTION publish TOPIC TEXT [NAME=VALUE...]
                                                  send a persistent text message to a topic`

// appMain is the program. The ids of its messages are CONNECTION:1:1:1 and so on.
func appMain() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, appUsage)
		os.Exit(2)
	}
	a, err := connect(os.Getenv("OPENWIRE"), os.Args[1])
	if err == nil {
		err = a.run(os.Args[2], wire.Destination{Kind: wire.CodeActiveMQQueue, PhysicalName: os.Args[3]}, os.Args[4:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

func (a *application) run(what string, queue wire.Destination, args []string) error {
	switch {
	case what == "send" && len(args) > 0:
		return a.send(&queue, args[0], args[1:])
	case what == "flood" && len(args) > 0:
		var n int
		if _, err := fmt.Sscan(args[0], &n); err != nil {
			return err
		}
		for i := range n {
			if err := a.send(&queue, fmt.Sprint(i), args[1:], wire.Entry{Key: "n", Value: int64(i)}); err != nil {
				return err
			}
		}
		return nil
	case what == "poison" && len(args) == 1:
		var n int
		if _, err := fmt.Sscan(args[0], &n); err != nil {
			return err
		}
		return a.poison(&queue, n)
	case what == "receive" && len(args) == 0:
		return a.receive(&queue)
	case what == "prepare" && len(args) == 2:
		return a.prepare(&queue, args[0], args[1])
	case what == "end" && len(args) == 2:
		how := map[string]wire.TransactionType{"commit": wire.TransactionCommitTwoPhase, "rollback": wire.TransactionRollback}
		return a.ask(a.transaction(how[args[0]], args[1]))
	case what == "subscribe" && len(args) == 1:
		queue.Kind = wire.CodeActiveMQTopic
		return a.ask(&wire.ConsumerInfo{ConsumerID: &wire.ConsumerID{ConnectionID: a.id, SessionID: 1, Value: 1}, Destination: &queue,
			PrefetchSize: 1000, SubscriptionName: wire.NewText(args[0])})
	case what == "publish" && len(args) > 0:
		queue.Kind = wire.CodeActiveMQTopic
		return a.send(&queue, args[0], args[1:])
	}
	return fmt.Errorf("cannot %s with %q", what, args)
}

// appTime is how long an application takes at the most.
const appTime = time.Minute

// connect opens a connection with a session and a producer.
func connect(url, id string) (*application, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(appTime)); err != nil {
		return nil, err
	}
	a := &application{conn: conn, enc: wire.NewEncoder(), dec: wire.NewDecoder(), id: id}
	if err := a.negotiate(); err != nil {
		return nil, err
	}
	for _, c := range []wire.Command{
		&wire.ConnectionInfo{ConnectionID: &wire.ConnectionID{Value: id}, ClientID: wire.NewText(id),
			UserName: wire.TextOrNull(os.Getenv("APP_USER")), Password: wire.TextOrNull(os.Getenv("APP_PASSWORD"))},
		&wire.SessionInfo{SessionID: &wire.SessionID{ConnectionID: id, Value: 1}},
		&wire.ProducerInfo{ProducerID: &wire.ProducerID{ConnectionID: id, SessionID: 1, Value: 1}},
	} {
		if err := a.ask(c); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *application) negotiate() error {
	own := wire.DefaultWireFormat()
	// Java clients from 5.18 on announce every redelivery.
	own.ProviderName, own.ProviderVersion, own.MaxInactivityDuration = "ActiveMQ", "5.19.0", 0
	info, err := own.Info()
	if err != nil {
		return err
	}
	if err := a.write(info); err != nil {
		return err
	}
	first, err := a.read()
	if err != nil {
		return err
	}
	announced, ok := first.(*wire.WireFormatInfo)
	if !ok {
		return fmt.Errorf("the first command is a %T", first)
	}
	theirs, err := wire.ParseWireFormat(announced)
	if err != nil {
		return err
	}
	settings, err := wire.Negotiate(own, theirs)
	if err != nil {
		return err
	}
	a.enc.Negotiated(settings)
	a.dec.Negotiated(settings)
	return nil
}

func (a *application) write(ds wire.DataStructure) error {
	frame, err := a.enc.Append(nil, ds)
	if err == nil {
		_, err = a.conn.Write(frame)
	}
	return err
}

func (a *application) read() (wire.DataStructure, error) {
	frame, err := wire.ReadFrame(a.conn, 1<<20)
	if err != nil {
		return nil, err
	}
	return a.dec.Decode(frame)
}

// ask sends a command and waits for its answer. Messages that come before it are
// kept.
func (a *application) ask(c wire.Command) error {
	a.commands++
	c.Base().CommandID, c.Base().ResponseRequired = a.commands, true
	if err := a.write(c); err != nil {
		return err
	}
	for {
		ds, err := a.read()
		if err != nil {
			return err
		}
		switch ds := ds.(type) {
		case *wire.Response, *wire.IntegerResponse:
			return nil
		case *wire.ExceptionResponse:
			return fmt.Errorf("%T: %s", c, ds.Exception)
		case *wire.MessageDispatch:
			a.got = append(a.got, ds)
		}
	}
}

// transaction is a command about the distributed transaction of a number.
func (a *application) transaction(what wire.TransactionType, number string) *wire.TransactionInfo {
	return &wire.TransactionInfo{ConnectionID: &wire.ConnectionID{Value: a.id}, TransactionID: transactionID(number), Type: what}
}

func transactionID(number string) *wire.XATransactionID {
	return &wire.XATransactionID{FormatID: 7, GlobalTransactionID: []byte(number), BranchQualifier: []byte{1}}
}

func (a *application) prepare(queue *wire.Destination, text, number string) error {
	consumer, err := a.consume(queue)
	if err != nil {
		return err
	}
	d, err := a.next()
	if err != nil {
		return err
	}
	if err := a.ask(a.transaction(wire.TransactionBegin, number)); err != nil {
		return err
	}
	out := a.text(&wire.Destination{Kind: wire.CodeActiveMQQueue, PhysicalName: "OUT"}, text)
	out.TransactionID = transactionID(number)
	for _, c := range []wire.Command{
		&wire.MessageAck{AckType: wire.AckStandard, Destination: queue, ConsumerID: consumer, MessageCount: 1, TransactionID: transactionID(number),
			FirstMessageID: d.Message.MessageID, LastMessageID: d.Message.MessageID},
		out, a.transaction(wire.TransactionEnd, number), a.transaction(wire.TransactionPrepare, number),
	} {
		if err := a.ask(c); err != nil {
			return err
		}
	}
	return nil
}

// text is the next message of the application.
func (a *application) text(queue *wire.Destination, text string) *wire.Message {
	a.sent++
	m := &wire.Message{Kind: message.TextBody, Destination: queue, Persistent: true, Priority: message.DefaultPriority,
		ProducerID: &wire.ProducerID{ConnectionID: a.id, SessionID: 1, Value: 1}, Timestamp: time.Now().UnixMilli(),
		Content: wire.AppendTextBody(nil, text)}
	m.MessageID = &wire.MessageID{ProducerID: m.ProducerID, ProducerSequenceID: a.sent}
	return m
}

func (a *application) send(queue *wire.Destination, text string, properties []string, others ...wire.Entry) error {
	m := a.text(queue, text)
	all := wire.Map(others)
	for _, p := range properties {
		name, value, _ := strings.Cut(p, "=")
		if name == "JMSTimeToLive" {
			ms, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return err
			}
			m.Expiration = m.Timestamp + ms
			continue
		}
		all = append(all, wire.Entry{Key: name, Value: value})
	}
	var err error
	if m.MarshalledProperties, err = wire.AppendMap(nil, all); err != nil {
		return err
	}
	return a.ask(m)
}

// consume attaches the consumer of the application.
func (a *application) consume(queue *wire.Destination) (*wire.ConsumerID, error) {
	id := &wire.ConsumerID{ConnectionID: a.id, SessionID: 1, Value: 1}
	return id, a.ask(&wire.ConsumerInfo{ConsumerID: id, Destination: queue, PrefetchSize: 1000})
}

// next waits for a message.
func (a *application) next() (*wire.MessageDispatch, error) {
	for len(a.got) == 0 {
		ds, err := a.read()
		if err != nil {
			return nil, err
		}
		if d, ok := ds.(*wire.MessageDispatch); ok {
			a.got = append(a.got, d)
		}
	}
	d := a.got[0]
	a.got = a.got[1:]
	return d, nil
}

// poison does what a Java client does with a message that fails under a limit of
// two redeliveries.
func (a *application) poison(queue *wire.Destination, n int) error {
	consumer, err := a.consume(queue)
	if err != nil {
		return err
	}
	for range n {
		d, err := a.next()
		if err != nil {
			return err
		}
		for _, ack := range []*wire.MessageAck{
			{AckType: wire.AckRedelivered}, {AckType: wire.AckRedelivered},
			{AckType: wire.AckPoison, PoisonCause: wire.NewThrowable("java.lang.Throwable",
				"Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {maximumRedeliveries = 2}, cause:java.lang.IllegalStateException: no such customer")},
		} {
			ack.Destination, ack.ConsumerID, ack.MessageCount = queue, consumer, 1
			ack.FirstMessageID, ack.LastMessageID = d.Message.MessageID, d.Message.MessageID
			if err := a.ask(ack); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *application) receive(queue *wire.Destination) error {
	consumer, err := a.consume(queue)
	if err != nil {
		return err
	}
	d, err := a.next()
	if err != nil {
		return err
	}
	body, err := wire.DecodeBody(d.Message.Kind, d.Message.Content, d.Message.Compressed, 1<<20)
	if err != nil {
		return err
	}
	fmt.Printf("%s, redelivery counter %d: %s\n", d.Message.MessageID, d.RedeliveryCounter, body.Text.Value)
	return a.ask(&wire.MessageAck{AckType: wire.AckStandard, Destination: queue, ConsumerID: consumer, MessageCount: 1,
		FirstMessageID: d.Message.MessageID, LastMessageID: d.Message.MessageID})
}
