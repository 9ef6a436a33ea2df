package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/jms"
	"github.com/spf13/cobra"
)

const consumeLong = `
Receive messages from any broker that speaks OpenWire: NixieMQ or ActiveMQ Classic, and
let some of them fail, to see what becomes of them.
` + clientHelp + `

It ends when --count messages were processed, when none came for --idle, or when it is
interrupted; without the first two it waits for more. What was sent ahead to it goes back;
of several --consumers each finishes the message it is at. --ack says how messages are
acknowledged:

  auto        each when it was processed
  dups-ok     the same; of topics in batches
  client      all that were delivered, after every --batch messages
  individual  each by itself
  transacted  by a transaction for every --batch messages

A message that is to fail (--fail, --fail-matching) is redelivered by the policy: that of
the URL (jms.redeliveryPolicy.*), of --policy, or else what the broker wishes.`

const consumeExample = `
  nixie consume ORDERS --idle 2s
  nixie consume ORDERS --fail 10% --ack transacted --policy maximumRedeliveries=2,initialRedeliveryDelay=100
  nixie consume ORDERS --fail-matching 4711 --json | jq .text
  nixie consume topic://NEWS --durable reader --client-id desk
  nixie consume ORDERS --browse`

// consumeFlags are the flags of 'consume'.
type consumeFlags struct {
	count, consumers, batch, prefetch int
	idle, work                        time.Duration
	ack, fail, matching, policy       string
	selector, durable                 string
	nonBlocking, browse               bool
	share                             float64
	mode                              jms.AckMode
}

var ackModes = map[string]jms.AckMode{"auto": jms.AutoAcknowledge, "dups-ok": jms.DupsOKAcknowledge, "client": jms.ClientAcknowledge,
	"individual": jms.IndividualAcknowledge, "transacted": jms.SessionTransacted}

func consumeCommand(e *env) *cobra.Command {
	var k *client
	var o consumeFlags
	c := &cobra.Command{
		Use:     "consume DESTINATION",
		Short:   "Receive messages from a broker, and let some fail",
		Long:    strings.TrimSpace(consumeLong),
		Example: strings.Trim(consumeExample, "\n"),
		Args:    arguments(1),
		RunE: func(c *cobra.Command, args []string) error {
			from, err := destinationOf(args)
			if err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			f, err := k.factory()
			if err != nil {
				return err
			}
			if err := o.setPolicy(f); err != nil {
				return err
			}
			if o.durable != "" && f.ClientID == "" {
				return usageError{errors.New("--durable needs --client-id: the two together identify the subscription")}
			}
			f.Options.NonBlockingRedelivery = f.Options.NonBlockingRedelivery || o.nonBlocking
			if o.browse {
				return o.browseQueue(c.Context(), k, f, from)
			}
			return consume(c.Context(), k, f, from, &o)
		},
	}
	k = clientFlags(e, c)
	fl := c.Flags()
	fl.IntVarP(&o.count, "count", "n", 0, "end after so `many` messages were processed, and leave the others; 0: do not")
	fl.DurationVar(&o.idle, "idle", 0, "end when none came for this `time`; 0: do not")
	fl.StringVar(&o.ack, "ack", "auto", "`how` to acknowledge: auto, dups-ok, client, individual or transacted")
	fl.IntVar(&o.batch, "batch", 1, "commit or acknowledge after so `many` messages, with --ack transacted or client")
	fl.StringVar(&o.fail, "fail", "0%", "let this `share` of the deliveries fail, by chance")
	fl.StringVar(&o.matching, "fail-matching", "", "let every message fail whose text has `TEXT` in it")
	fl.StringVar(&o.policy, "policy", "", "redelivery policy, `NAME=VALUE,...`, by ActiveMQ's names")
	fl.BoolVar(&o.nonBlocking, "non-blocking", false, "let others pass a message that waits for its redelivery")
	fl.DurationVar(&o.work, "work", 0, "take this `time` for each message")
	fl.IntVar(&o.prefetch, "prefetch", -1, "let the broker send so `many` messages ahead; -1: as the URL says, or 1000")
	fl.IntVar(&o.consumers, "consumers", 1, "receive with so `many` consumers at a time")
	fl.StringVar(&o.selector, "selector", "", "receive only what matches this JMS `selector`")
	fl.StringVar(&o.durable, "durable", "", "`name` of a durable subscription; needs --client-id")
	fl.BoolVar(&o.browse, "browse", false, "look at what is in a queue, and take nothing")
	return c
}

func (o *consumeFlags) check() (err error) {
	if o.share, err = share(o.fail); err != nil {
		return err
	}
	var ok bool
	if o.mode, ok = ackModes[o.ack]; !ok {
		return usageError{fmt.Errorf("--ack %q is none of auto, dups-ok, client, individual, transacted", o.ack)}
	}
	switch {
	case o.count < 0 || o.batch < 1 || o.consumers < 1 || o.idle < 0 || o.work < 0:
		return usageError{errors.New("--count, --idle and --work are not below 0, --batch and --consumers not below 1")}
	case o.durable != "" && o.consumers > 1:
		return usageError{errors.New("a durable subscription has one consumer")}
	case o.prefetch == 0:
		return usageError{errors.New("--prefetch 0 cannot be used with this command; 1 is the least")}
	}
	return nil
}

// setPolicy reads --policy, with the names that a URL has after jms.redeliveryPolicy.
func (o *consumeFlags) setPolicy(f *jms.ConnectionFactory) error {
	if o.policy == "" {
		return nil
	}
	p, err := jms.ParseRedeliveryPolicy(strings.ReplaceAll(o.policy, ",", "&"))
	if err != nil {
		return usageError{fmt.Errorf("--policy: %w", err)}
	}
	f.SetRedeliveryPolicy(p)
	return nil
}

// A received is what is printed of a delivery.
type received struct {
	ID          string         `json:"id"`
	Destination string         `json:"destination"`
	Delivery    int            `json:"delivery"` // JMSXDeliveryCount
	Redelivered bool           `json:"redelivered,omitempty"`
	Type        string         `json:"type"` // of the body: text, bytes, map, stream, object, none
	Text        string         `json:"text,omitempty"`
	Body        any            `json:"body,omitempty"` // of other types than text
	Properties  map[string]any `json:"properties,omitempty"`
	Correlation string         `json:"correlationId,omitempty"`
	Failed      string         `json:"failed,omitempty"`
}

// A consumed is the summary.
type consumed struct {
	Received    int64   `json:"received"`
	Processed   int64   `json:"processed"`
	Failed      int64   `json:"failed"`
	Redelivered int64   `json:"redelivered"`
	Seconds     float64 `json:"seconds"`
	PerSecond   float64 `json:"perSecond"`
}

// A consumption is one run of 'consume'.
type consumption struct {
	k *client
	o *consumeFlags

	conn                                     *jms.Connection
	received, processed, failed, redelivered atomic.Int64
	last                                     atomic.Int64 // when something happened, Unix nanoseconds
	done                                     context.CancelCauseFunc
}

// errEnough ends a consumption as it should.
var errEnough = errors.New("enough")

func consume(ctx context.Context, k *client, f *jms.ConnectionFactory, from jms.Destination, o *consumeFlags) (err error) {
	ctx, done := context.WithCancelCause(ctx)
	defer done(nil)
	n := &consumption{k: k, o: o, done: done}
	conn, err := k.connect(ctx, f)
	if err != nil {
		return err
	}
	conn.OnException(func(err error) {
		if errors.Is(err, jms.ErrUnavailable) {
			done(err)
			return
		}
		fmt.Fprintf(k.e.err, "nixie: %v\n", err)
	})
	start := time.Now()
	n.conn = conn
	n.last.Store(start.UnixNano())
	var readers []*reader
	for range o.consumers {
		r, err := n.open(ctx, from)
		if err != nil {
			return errors.Join(err, conn.Close())
		}
		readers = append(readers, r)
	}
	if err := conn.Start(); err != nil {
		return errors.Join(err, conn.Close())
	}
	if o.count == 0 && o.idle == 0 && !k.quiet {
		fmt.Fprintln(k.e.err, "waits for messages until it is interrupted; --idle 2s or --count N ends it")
	}
	n.wait(ctx)
	took := time.Since(start)
	_ = conn.Stop() // what comes now is given back
	for _, r := range readers {
		err = errors.Join(err, r.settle(context.WithoutCancel(ctx)))
	}
	err = errors.Join(err, conn.Close())
	sum := consumed{n.received.Load(), n.processed.Load(), n.failed.Load(), n.redelivered.Load(), took.Seconds(), perSecond(n.received.Load(), took)}
	text := fmt.Sprintf("%s received in %.1f s, %.0f a second: %d processed, %d failed, %d redelivered", count(sum.Received, "message", "messages"),
		sum.Seconds, sum.PerSecond, sum.Processed, sum.Failed, sum.Redelivered)
	err = errors.Join(err, k.summary(text, sum))
	if why := context.Cause(ctx); !errors.Is(why, errEnough) && !errors.Is(why, context.Canceled) {
		err = errors.Join(why, err)
	}
	return err
}

// A reader is one session with its consumer.
type reader struct {
	session *jms.Session
	mode    jms.AckMode
	mu      sync.Mutex   // the handler has it, and at the end who settles the rest
	open    int          // messages that were processed and are not settled, guarded by mu
	last    *jms.Message // the last of them, guarded by mu
}

// open makes a reader.
func (n *consumption) open(ctx context.Context, from jms.Destination) (*reader, error) {
	s, err := n.conn.CreateSession(n.o.mode)
	if err != nil {
		return nil, err
	}
	var options []jms.ConsumerOption
	if n.o.selector != "" {
		options = append(options, jms.WithSelector(n.o.selector))
	}
	if n.o.prefetch > 0 {
		options = append(options, jms.WithPrefetch(n.o.prefetch))
	}
	var c *jms.Consumer
	if n.o.durable != "" {
		c, err = s.CreateDurableSubscriber(ctx, from, n.o.durable, options...)
	} else {
		c, err = s.CreateConsumer(ctx, from, options...)
	}
	if err != nil {
		return nil, err
	}
	r := &reader{session: s, mode: n.o.mode}
	return r, c.Handle(func(ctx context.Context, m *jms.Message) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := n.process(ctx, m); err != nil {
			if r.mode == jms.SessionTransacted {
				r.open = 0 // all of the transaction is rolled back
			}
			return err
		}
		if r.open, r.last = r.open+1, m; r.open < n.o.batch && r.batches() {
			return nil
		}
		return r.settleLocked(context.WithoutCancel(ctx))
	})
}

// batches reports whether several messages are settled together.
func (r *reader) batches() bool {
	return r.mode == jms.ClientAcknowledge || r.mode == jms.SessionTransacted
}

// settle commits or acknowledges what was processed and is part of no whole batch.
func (r *reader) settle(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == 0 || !r.batches() {
		return nil
	}
	return r.settleLocked(ctx)
}

func (r *reader) settleLocked(ctx context.Context) error {
	r.open = 0
	switch r.mode {
	case jms.SessionTransacted:
		return r.session.Commit(ctx)
	case jms.ClientAcknowledge, jms.IndividualAcknowledge:
		return r.last.Acknowledge(ctx)
	}
	return nil
}

// process works on one delivery.
func (n *consumption) process(ctx context.Context, m *jms.Message) error {
	n.last.Store(time.Now().UnixNano())
	n.received.Add(1)
	if m.Redelivered() {
		n.redelivered.Add(1)
	}
	if n.o.work > 0 {
		_ = sleep(ctx, n.o.work) // cut short at the end: the message is still processed
	}
	line := receivedOf(m)
	var err error
	switch {
	case n.o.matching != "" && strings.Contains(m.Text(), n.o.matching):
		err = fmt.Errorf("the text has %q in it, which --fail-matching lets fail", n.o.matching)
	case n.o.share > 0 && rand.Float64() < n.o.share:
		err = errors.New("failed by chance, as --fail asks")
	}
	if err != nil {
		n.failed.Add(1)
		line.Failed = err.Error()
	}
	if perr := n.k.print(line.String(), line); perr != nil {
		n.done(perr)
	}
	if err == nil && n.processed.Add(1) == int64(n.o.count) {
		_ = n.conn.Stop() // what else was sent ahead is not looked at, and goes back
		n.done(errEnough)
	}
	n.last.Store(time.Now().UnixNano())
	return err
}

// wait waits for the end.
func (n *consumption) wait(ctx context.Context) {
	if n.o.idle <= 0 {
		<-ctx.Done()
		return
	}
	for {
		left := n.o.idle - time.Since(time.Unix(0, n.last.Load()))
		if left <= 0 {
			n.done(errEnough)
			return
		}
		if sleep(ctx, left) != nil {
			return
		}
	}
}

// browseQueue prints what is in a queue.
func (o *consumeFlags) browseQueue(ctx context.Context, k *client, f *jms.ConnectionFactory, from jms.Destination) (err error) {
	conn, err := k.connect(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.Start(); err != nil {
		return err
	}
	s, err := conn.CreateSession(jms.AutoAcknowledge)
	if err != nil {
		return err
	}
	b, err := s.CreateBrowser(from, o.selector)
	if err != nil {
		return err
	}
	n := 0
	for m, err := range b.Messages(ctx) {
		if err != nil {
			return err
		}
		line := receivedOf(m)
		if err := k.print(line.String(), line); err != nil {
			return err
		}
		if n++; n == o.count {
			break
		}
	}
	return nil
}

func receivedOf(m *jms.Message) *received {
	r := &received{ID: m.ID, Destination: m.Destination.String(), Delivery: m.DeliveryCount(), Redelivered: m.Redelivered(), Correlation: m.CorrelationID, Type: "none"}
	if len(m.Properties) > 0 {
		r.Properties = m.Properties
	}
	switch b := m.Body.(type) {
	case jms.Text:
		r.Type, r.Text = "text", string(b)
	case jms.NullText:
		r.Type = "text"
	case jms.Bytes:
		r.Type, r.Body = "bytes", hex.EncodeToString(b)
	case jms.Object:
		r.Type, r.Body = "object", hex.EncodeToString(b)
	case jms.Map:
		r.Type, r.Body = "map", map[string]any(b)
	case jms.Stream:
		r.Type, r.Body = "stream", []any(b)
	case jms.Blob:
		r.Type, r.Body = "blob", b
	}
	return r
}

// bodyWidth is how much of a body stands in a line.
const bodyWidth = 120

// String is the line for people.
func (r *received) String() string {
	text := r.Text
	if r.Type != "text" {
		text = fmt.Sprintf("<%s> %v", r.Type, r.Body)
	}
	line := fmt.Sprintf("%s  %d  %s", r.ID, r.Delivery, short(oneLine(text), bodyWidth))
	if r.Failed != "" {
		line += "  FAILED: " + r.Failed
	}
	return line
}
