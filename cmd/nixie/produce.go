package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/jms"
	"github.com/spf13/cobra"
)

const produceLong = `
Send messages to any broker that speaks OpenWire: NixieMQ or ActiveMQ Classic.
` + clientHelp + `

The text is --text, in which {n} stands for the message's number, or --size random
letters, or with --lines each line of standard input. Without --count it is one message,
with --lines as many as there are lines; --count 0 sends until it is interrupted.`

const produceExample = `
  nixie produce ORDERS --text 'order {n}' --count 5
  nixie produce ORDERS --property n=7 --property "customer='4711'"
  nixie produce ORDERS --count 100000 --size 1024 --producers 4
  nixie produce topic://NEWS --rate 10 --count 0
  jq -c .[] orders.json | nixie produce ORDERS --lines --property source=jq`

// produceFlags are the flags of 'produce'.
type produceFlags struct {
	count, size, producers, batch, priority int
	rate                                    float64
	text                                    string
	lines, nonPersistent, async, compress   bool
	ttl                                     time.Duration
	properties                              []string
	correlation, typ, group, replyTo        string
}

func produceCommand(e *env) *cobra.Command {
	var k *client
	var o produceFlags
	c := &cobra.Command{
		Use:     "produce DESTINATION",
		Short:   "Send messages to a broker",
		Long:    strings.TrimSpace(produceLong),
		Example: strings.Trim(produceExample, "\n"),
		Args:    arguments(1),
		RunE: func(c *cobra.Command, args []string) error {
			if o.lines && !c.Flags().Changed("count") {
				o.count = 0
			}
			to, err := destinationOf(args)
			if err != nil {
				return err
			}
			return produce(c.Context(), k, to, &o, c.InOrStdin())
		},
	}
	k = clientFlags(e, c)
	f := c.Flags()
	f.IntVarP(&o.count, "count", "n", 1, "send so `many` messages; 0: until interrupted")
	f.Float64Var(&o.rate, "rate", 0, "send so many messages `a second`; 0: as fast as it goes")
	f.IntVar(&o.size, "size", 0, "send texts of so many random `bytes`")
	f.StringVar(&o.text, "text", "message {n}", "send this `text`; {n} is the message's number")
	f.BoolVar(&o.lines, "lines", false, "send each line of standard input")
	f.IntVar(&o.producers, "producers", 1, "send from so `many` connections at a time")
	f.IntVar(&o.batch, "batch", 0, "send in transactions of so `many` messages; 0: none")
	f.BoolVar(&o.nonPersistent, "non-persistent", false, "send messages that do not outlive the broker")
	f.BoolVar(&o.async, "async", false, "do not wait for the broker's answer to each")
	f.BoolVar(&o.compress, "compress", false, "compress the bodies")
	f.IntVar(&o.priority, "priority", jms.DefaultPriority, "JMSPriority, `0 to 9`")
	f.DurationVar(&o.ttl, "ttl", 0, "let messages expire after this `time`; 0: never")
	f.StringArrayVarP(&o.properties, "property", "p", nil, "set the property `NAME=VALUE`: a number, true or false, or a string, in single quotes also one of digits; may be repeated")
	f.StringVar(&o.correlation, "correlation-id", "", "JMSCorrelationID")
	f.StringVar(&o.typ, "type", "", "JMSType")
	f.StringVar(&o.group, "group", "", "JMSXGroupID")
	f.StringVar(&o.replyTo, "reply-to", "", "JMSReplyTo, a `destination`")
	return c
}

// A sent is what is printed of a message.
type sent struct {
	ID          string `json:"id"`
	Destination string `json:"destination"`
	Number      int64  `json:"number"`
}

// A produced is the summary.
type produced struct {
	Sent      int64   `json:"sent"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
}

func produce(ctx context.Context, k *client, to jms.Destination, o *produceFlags, in io.Reader) error {
	if o.count < 0 || o.producers < 1 || o.batch < 0 || o.size < 0 || o.rate < 0 || o.ttl < 0 {
		return usageError{errors.New("--count, --batch, --size, --rate and --ttl are not below 0, --producers not below 1")}
	}
	if o.lines && o.producers > 1 {
		return usageError{errors.New("--lines keeps the order of the lines: it has one producer")}
	}
	next, err := o.texts(in)
	if err != nil {
		return err
	}
	f, err := k.factory()
	if err != nil {
		return err
	}
	template, err := o.message()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	var total, taken atomic.Int64
	var group sync.WaitGroup
	for range o.producers {
		group.Go(func() {
			if err := o.run(ctx, k, f, to, next, template, &taken, &total); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	n := total.Load()
	summary := produced{n, took.Seconds(), perSecond(n, took)}
	text := fmt.Sprintf("%s sent in %.1f s, %.0f a second", count(n, "message", "messages"), summary.Seconds, summary.PerSecond)
	if err := k.summary(text, summary); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// texts gives the function that makes the text of message n; false after the last.
func (o *produceFlags) texts(in io.Reader) (func(n int64) (string, bool, error), error) {
	if o.lines {
		if f, ok := in.(*os.File); ok && isTerminal(f) {
			return nil, usageError{errors.New("--lines reads standard input, which is a terminal: pipe something into it")}
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxReplyBytes)
		return func(int64) (string, bool, error) {
			more := lines.Scan()
			return lines.Text(), more, lines.Err()
		}, nil
	}
	return func(n int64) (string, bool, error) {
		if o.size > 0 {
			return filler(o.size), true, nil
		}
		return strings.ReplaceAll(o.text, "{n}", strconv.FormatInt(n, 10)), true, nil
	}, nil
}

// message is what every message has.
func (o *produceFlags) message() (*jms.Message, error) {
	m := &jms.Message{CorrelationID: o.correlation, Type: o.typ, GroupID: o.group}
	if o.replyTo != "" {
		d, err := jms.ParseDestination(o.replyTo)
		if err != nil {
			return nil, usageError{fmt.Errorf("--reply-to: %w", err)}
		}
		m.ReplyTo = d
	}
	for _, p := range o.properties {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usageError{fmt.Errorf("--property %q is not NAME=VALUE", p)}
		}
		m.SetProperty(name, propertyValue(value))
	}
	return m, nil
}

// propertyValue takes a value for what it looks like: in single quotes it is a string,
// as in a selector, so that a string of digits can be sent.
func propertyValue(s string) any {
	if len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return s[1 : len(s)-1]
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	if s == "true" || s == "false" {
		return s == "true"
	}
	return s
}

// run is one producer.
func (o *produceFlags) run(ctx context.Context, k *client, f *jms.ConnectionFactory, to jms.Destination,
	next func(int64) (string, bool, error), template *jms.Message, taken, total *atomic.Int64) (err error) {
	conn, err := k.connect(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.OnException(func(err error) { fmt.Fprintf(k.e.err, "nixie: %v\n", err) })
	mode := jms.AutoAcknowledge
	if o.batch > 0 {
		mode = jms.SessionTransacted
	}
	s, err := conn.CreateSession(mode)
	if err != nil {
		return err
	}
	options := []jms.SendOption{jms.WithPriority(o.priority), jms.WithTimeToLive(o.ttl)}
	if o.nonPersistent {
		options = append(options, jms.WithDeliveryMode(jms.NonPersistent))
	}
	if o.async {
		options = append(options, jms.Async())
	}
	if o.compress {
		options = append(options, jms.WithCompression())
	}
	p, err := s.CreateProducer(ctx, to, options...)
	if err != nil {
		return err
	}
	pace := pacer{rate: o.rate / float64(o.producers)}
	open := 0
	for {
		n := taken.Add(1)
		if o.count > 0 && n > int64(o.count) || pace.wait(ctx) != nil {
			break
		}
		text, more, err := next(n)
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		if !more {
			break
		}
		m := *template
		m.Body = jms.Text(text)
		if err := p.Send(ctx, &m); err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
		if open++; o.batch > 0 && open == o.batch {
			if err := s.Commit(ctx); err != nil {
				return err
			}
			open = 0
		}
		total.Add(1)
		if err := k.print(m.ID, sent{m.ID, to.String(), n}); err != nil {
			return err
		}
	}
	if o.batch > 0 && open > 0 {
		return s.Commit(context.WithoutCancel(ctx))
	}
	return nil
}
