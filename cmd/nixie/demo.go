package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nixiemq/nixie/internal/admin"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/server"
	"github.com/nixiemq/nixie/jms"
	"github.com/spf13/cobra"
)

const demoLong = `
Show in ten seconds what happens to a message that fails. A broker starts in memory, five
orders are sent to it, and a consumer processes them. One cannot be processed: you see its
attempts and the delays between them, how it becomes a dead letter, and the story it
carries. Then the consumer is mended, the dead letter is brought back, and processed.

Nothing of it touches a broker that runs, or a disk. In a terminal it is in colour, unless
NO_COLOR is set.`

func demoCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "demo",
		Short:   "See in ten seconds what happens to a message that fails",
		Long:    strings.TrimSpace(demoLong),
		Example: "  nixie demo\n  nixie demo | tee demo.txt",
		Args:    arguments(0),
		RunE:    func(c *cobra.Command, _ []string) error { return demo(c.Context(), e) },
	}
}

// The play: its pieces, and how long the audience gets to read.
const (
	demoQueue    = "ORDERS"
	demoOrders   = 5
	demoBad      = 3 // the order that fails
	demoCustomer = "4711"
	demoPause    = 700 * time.Millisecond
	demoLimit    = 30 * time.Second // it takes a third of that
)

// A play is one run of the demo.
type play struct {
	e     *env
	paint painter
	start time.Time

	mu     sync.Mutex
	mended bool // guarded by mu

	handled chan string // texts that were processed; there is room for all
}

func demo(ctx context.Context, e *env) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	p := &play{e: e, paint: painterFor(e), start: time.Now(), handled: make(chan string, demoOrders)}
	p.title("A broker in memory")
	s, err := demoBroker(ctx, e)
	if err != nil {
		return err
	}
	defer s.Stop()
	at := addresses(s.Ready())
	p.say("broker", "nixie serves clients at %s", at["openwire"])
	r := &remote{e: e, url: at["admin"]}

	factory, err := jms.NewConnectionFactory(at["openwire"] + "?jms.nonBlockingRedelivery=true&jms.clientID=demo")
	if err != nil {
		return err
	}
	policy := jms.DefaultRedeliveryPolicy()
	policy.MaximumRedeliveries, policy.InitialRedeliveryDelay, policy.RedeliveryDelay = 3, 400*time.Millisecond, 400*time.Millisecond
	policy.UseExponentialBackOff, policy.BackOffMultiplier = true, 2
	factory.SetRedeliveryPolicy(policy)
	conn, err := factory.CreateConnection(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := p.send(ctx, conn); err != nil {
		return err
	}
	p.title("A consumer: three redeliveries, after 0.4, 0.8 and 1.6 seconds")
	if err := p.consume(ctx, conn, policy); err != nil {
		return err
	}
	if err := p.await(ctx, demoOrders-1); err != nil {
		return err
	}
	dead, err := p.deadLetter(ctx, r)
	if err != nil {
		return err
	}
	return p.redrive(ctx, r, dead)
}

// demoBroker starts the broker, at whatever ports are free.
func demoBroker(ctx context.Context, e *env) (*server.Server, error) {
	listener := "127.0.0.1:0"
	cfg, _, err := config.Load(config.Options{Data: config.Memory, Listen: []string{"tcp://" + listener}, Admin: &listener, LookupEnv: e.lookup})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(e.err, &slog.HandlerOptions{Level: slog.LevelError}))
	return server.Start(ctx, server.Options{Config: cfg, Log: log, Admin: adminOf(ctx, log)})
}

// addresses reads a ready line.
func addresses(ready string) map[string]string {
	at := map[string]string{}
	for field := range strings.FieldsSeq(ready) {
		if name, value, ok := strings.Cut(field, "="); ok {
			at[name] = value
		}
	}
	return at
}

func (p *play) send(ctx context.Context, conn *jms.Connection) error {
	p.title(fmt.Sprintf("%d orders are sent to the queue %s", demoOrders, demoQueue))
	s, err := conn.CreateSession(jms.AutoAcknowledge)
	if err != nil {
		return err
	}
	to, err := s.CreateProducer(ctx, jms.Queue(demoQueue))
	if err != nil {
		return err
	}
	for i := range demoOrders {
		m := jms.NewText(fmt.Sprintf("order %d", i+1)).SetProperty("customer", fmt.Sprint(4708+i+1))
		if err := to.Send(ctx, m); err != nil {
			return err
		}
		p.say("sent", "%s, customer %s", m.Text(), m.Properties["customer"])
	}
	return s.Close()
}

// process is the application: it does not know customer 4711 until it is mended.
func (p *play) process(m *jms.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Properties["customer"] == demoCustomer && !p.mended {
		return fmt.Errorf("customer %s: %w", demoCustomer, &fs.PathError{Op: "read", Path: "customers/" + demoCustomer, Err: fs.ErrNotExist})
	}
	return nil
}

func (p *play) consume(ctx context.Context, conn *jms.Connection, policy jms.RedeliveryPolicy) error {
	s, err := conn.CreateSession(jms.SessionTransacted)
	if err != nil {
		return err
	}
	k, err := s.CreateConsumer(ctx, jms.Queue(demoQueue))
	if err != nil {
		return err
	}
	if err := k.Handle(func(ctx context.Context, m *jms.Message) error {
		n := m.DeliveryCount()
		err := p.process(m)
		switch {
		case err == nil:
			if err := s.Commit(ctx); err != nil {
				return err
			}
			p.good("done", "%s, delivery %d", m.Text(), n)
			p.handled <- m.Text()
			return nil
		case n > policy.MaximumRedeliveries:
			p.bad("failed", "%s, delivery %d: %v. That was the last: the client gives it up", m.Text(), n, err)
		default:
			p.warn("failed", "%s, delivery %d: %v. Again in %v", m.Text(), n, err, policy.Delay(n))
		}
		return err
	}); err != nil {
		return err
	}
	return conn.Start()
}

// await waits until so many orders were processed.
func (p *play) await(ctx context.Context, n int) error {
	for range n {
		select {
		case <-p.handled:
		case <-ctx.Done():
			return fmt.Errorf("the demo takes too long: %w", context.Cause(ctx))
		}
	}
	return nil
}

// deadLetter waits for the dead letter and tells its story.
func (p *play) deadLetter(ctx context.Context, r *remote) (id string, err error) {
	for id == "" {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return "", err
		}
		page, err := r.page(ctx, queuePath("ActiveMQ.DLQ", ""), &pageFlags{limit: 1})
		if err == nil && len(page.Messages) == 1 {
			id = page.Messages[0].ID
		}
	}
	p.bad("dead letter", "order %d is in ActiveMQ.DLQ, moved in one step: never lost, never there twice", demoBad)
	if err := sleep(ctx, demoPause); err != nil {
		return "", err
	}
	p.title("What 'nixie dlq show' tells of it")
	var m admin.Detail
	if err := r.get(ctx, queuePath("ActiveMQ.DLQ", "")+"/messages/"+segment(id), &m); err != nil {
		return "", err
	}
	p.line("  %s from %s", oneLine(m.ID), oneLine(m.DeadLetter.From))
	cause, words, _ := strings.Cut(oneLine(m.DeadLetter.Cause), ", cause:")
	p.line("  cause %s", short(cause, 100))
	p.line("        %s", words)
	for _, a := range m.Story {
		then := "the client delivers it once more"
		if a.Decision == "dead-letter" {
			then = "it becomes a dead letter"
		}
		p.line("  attempt %d  ended %s by %s: %s", a.Number, a.Ended.UTC().Format("15:04:05.000"), a.Cause, then)
	}
	return id, sleep(ctx, 2*demoPause)
}

// redrive mends the application and brings the dead letter back.
func (p *play) redrive(ctx context.Context, r *remote, id string) error {
	p.title("The application is mended, and the order brought back")
	p.mu.Lock()
	p.mended = true
	p.mu.Unlock()
	p.say("$", "nixie dlq redrive --id %s", id)
	var moved admin.Redriven
	if err := r.post(ctx, queuePath("ActiveMQ.DLQ", "/redrive"), admin.Selection{IDs: []string{id}}, &moved); err != nil {
		return err
	}
	if err := p.await(ctx, 1); err != nil {
		return err
	}
	var all admin.Destinations
	if err := r.get(ctx, "/api/v1/destinations", &all); err != nil {
		return err
	}
	p.title("In the end")
	for i := range all.Queues {
		q := &all.Queues[i]
		p.line("  %-14s %s, %s failed", oneLine(q.Name), count(q.Counts.Messages, "message", "messages"), count(q.Counts.Failed, "attempt", "attempts"))
	}
	p.line("")
	p.line("That was %.1f seconds. Your turn: 'nixie serve', then 'nixie produce ORDERS --count 20' and 'nixie consume ORDERS --fail 10%%'.", time.Since(p.start).Seconds())
	return nil
}

// sleep waits, at most until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *play) title(s string) { p.line("\n%s", p.paint.bold(s)) }

func (p *play) say(what, format string, args ...any)  { p.tell(p.paint.plain, what, format, args...) }
func (p *play) good(what, format string, args ...any) { p.tell(p.paint.green, what, format, args...) }
func (p *play) warn(what, format string, args ...any) { p.tell(p.paint.yellow, what, format, args...) }
func (p *play) bad(what, format string, args ...any)  { p.tell(p.paint.red, what, format, args...) }

// tell writes one line of the play, with its time.
func (p *play) tell(paint func(string) string, what, format string, args ...any) {
	p.line("  %s %s %s", p.paint.dim(fmt.Sprintf("%6.2fs", time.Since(p.start).Seconds())), paint(fmt.Sprintf("%-11s", what)), fmt.Sprintf(format, args...))
}

func (p *play) line(format string, args ...any) {
	fmt.Fprintf(p.e.out, format+"\n", args...) // one write; a reader that has gone misses the end
}
