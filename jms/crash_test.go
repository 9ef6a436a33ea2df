package jms

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/protocol/openwire/openwiretest"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/pebblestore"
)

var (
	crashSeeds = flag.Int("crash.seeds", 3, "how many random histories of each kind TestCountsSurviveCrashes runs")
	crashFrom  = flag.Uint64("crash.from", 1, "the first of them")
)

// A disk is a store in a directory that loses what was not synced, or some of it, when
// the power goes.
type disk struct {
	t  testing.TB
	fs *vfs.MemFS
	r  *rand.Rand
}

func (d *disk) Open() (store.Store, error) {
	return pebblestore.Open("data", pebblestore.Options{FS: d.fs, MemTableBytes: 256 << 10, CacheBytes: 1 << 20, ReserveBytes: -1,
		OnFatal: func(err error) { d.t.Errorf("the store cannot be written: %v", err) }})
}

func (d *disk) Crash() {
	d.fs = d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: d.r.IntN(101), RNG: d.r})
}

// A crashKind is what a history is made of.
type crashKind struct {
	clientLimit int
	policy      *redelivery.Policy // the broker's own
	durable     bool               // durable subscriptions instead of queues
	failover    bool               // connections outlive the broker
	options     string             // of the clients' URL
	sorted      bool               // the queues are prioritized, and some consumers select
	modes       []AckMode
}

// limit is how many redeliveries there may be.
func (k *crashKind) limit() int {
	if k.policy == nil {
		return k.clientLimit
	}
	return max(k.clientLimit, k.policy.MaximumRedeliveries)
}

func brokerPolicy(limit int, delay time.Duration) *redelivery.Policy {
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = limit, delay, delay
	return &p
}

func addressPolicy(attempts int, delay time.Duration) *redelivery.Policy {
	p := redelivery.HornetQPolicy()
	p.MaximumRedeliveries, p.RedeliveryDelay = redelivery.MaximumRedeliveriesOf(attempts), delay
	return &p
}

// TestCountsSurviveCrashes runs applications that fail at random on a broker that is
// killed at random, with its real store, against a model of what they saw and were told
// (DESIGN section 3, "One attempt, one failure"):
//
//   - what was committed is gone, and never comes again;
//   - everything else is there, once: in its queue, or a dead letter;
//   - a dead letter was seen by an application;
//   - what an application saw before comes flagged as redelivered, and is told no fewer
//     failures than were answered;
//   - the story has every failure that was answered, and no more than there were attempts;
//   - once more failures were answered than the limit allows, no application sees it; a
//     policy of the broker's is asked when a client is gone, or the broker was.
func TestCountsSurviveCrashes(t *testing.T) {
	if reference != nil {
		t.Skip("it needs a broker of its own, in virtual time")
	}
	transacted, all := []AckMode{SessionTransacted}, []AckMode{SessionTransacted, SessionTransacted, ClientAcknowledge, IndividualAcknowledge, AutoAcknowledge}
	for name, k := range map[string]crashKind{
		"the client's limit":                        {clientLimit: 2, modes: transacted},
		"the client's limit, all modes":             {clientLimit: 3, modes: all},
		"the broker's limit":                        {clientLimit: 0, policy: brokerPolicy(2, 50*time.Millisecond), modes: all},
		"the broker's limit, and the client's":      {clientLimit: 1, policy: brokerPolicy(3, 0), modes: transacted},
		"the broker's limit below the client's":     {clientLimit: 3, policy: brokerPolicy(1, 50*time.Millisecond), modes: transacted},
		"address-settings":                          {clientLimit: 0, policy: addressPolicy(3, 20*time.Millisecond), modes: all},
		"durable subscriptions (C12)":               {clientLimit: 1, durable: true, modes: transacted},
		"over fail-overs":                           {clientLimit: 2, failover: true, modes: transacted},
		"over fail-overs, all modes":                {clientLimit: 3, failover: true, modes: all},
		"over fail-overs, the broker's limit":       {clientLimit: 1, policy: brokerPolicy(2, 20*time.Millisecond), failover: true, modes: transacted},
		"priorities and selectors":                  {clientLimit: 2, sorted: true, modes: all},
		"priorities and selectors, over fail-overs": {clientLimit: 3, sorted: true, failover: true, options: "jms.messagePrioritySupported=true", modes: all},
		"delays and selectors":                      {clientLimit: 0, policy: brokerPolicy(3, 70*time.Millisecond), sorted: true, modes: all},
		"redelivery that does not block":            {clientLimit: 3, options: "jms.nonBlockingRedelivery=true", modes: all},
		"messages of a transaction by themselves":   {clientLimit: 2, options: "jms.transactedIndividualAck=true", failover: true, modes: all},
		"durable subscriptions, the broker's limit": {clientLimit: 0, policy: brokerPolicy(2, 20*time.Millisecond), durable: true, modes: transacted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range *crashSeeds {
				seed := *crashFrom + uint64(n)
				if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { newCrashWorld(t, k, seed).run() })
				}) {
					return
				}
			}
		})
	}
}

// A crashModel is what is known of one message, or of one subscription's copy of it.
type crashModel struct {
	attempts  int  // an application got it
	answered  int  // its failure was answered
	over      bool // the broker's policy was asked after more than it allows
	overAt    time.Time
	committed bool // and that was answered
	inDoubt   bool // it may have been acknowledged
}

type crashWorld struct {
	t    *testing.T
	kind crashKind
	seed uint64
	disk *disk
	room *openwiretest.Room
	log  []string

	mu   sync.Mutex
	of   map[string]*crashModel
	done bool
}

const crashWorkers, crashMessages = 4, 24

func newCrashWorld(t *testing.T, k crashKind, seed uint64) *crashWorld {
	return &crashWorld{t: t, kind: k, seed: seed, of: map[string]*crashModel{},
		disk: &disk{t: t, fs: vfs.NewCrashableMem(), r: rand.New(rand.NewPCG(seed, 7))}}
}

func (w *crashWorld) run() {
	w.room = openwiretest.OpenOn(w.t, w.disk, func(o *broker.Options, _ *openwire.Options) {
		o.Policy = func(message.Destination) broker.Policy {
			return broker.Policy{Rules: redelivery.Rules{Redelivery: w.kind.policy}, Prioritized: w.kind.sorted}
		}
	})
	w.fill()
	var workers sync.WaitGroup
	for n := range crashWorkers {
		workers.Go(func() { (&crashWorker{w: w, n: n, r: rand.New(rand.NewPCG(w.seed, uint64(n)))}).work() })
	}
	r := rand.New(rand.NewPCG(w.seed, 99))
	for range 25 {
		time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
		switch p := r.IntN(10); {
		case p < 6:
			w.room.Kill()
			w.lost("killed")
		case p < 7:
			w.room.Stop()
			w.room.Cut()
			w.lost("stopped")
		default:
			w.room.Cut()
			w.lost("cut")
			continue
		}
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
		w.room.Start()
	}
	w.mu.Lock()
	w.done = true
	w.mu.Unlock()
	workers.Wait()
	w.room.Kill()
	w.room.Start()
	time.Sleep(time.Second) // what a policy is asked about at the start
	w.compare()
	w.room.Close()
	if w.t.Failed() {
		for _, line := range w.log {
			w.t.Log(line)
		}
	}
}

func (w *crashWorld) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(format, args...)
}

func (w *crashWorld) noteLocked(format string, args ...any) {
	w.log = append(w.log, time.Now().Format("05.000000 ")+fmt.Sprintf(format, args...))
}

// lost notes that all connections are lost. Whatever clients were to deliver once more by
// themselves is the broker's policy's now.
func (w *crashWorld) lost(how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked("%s", how)
	for _, o := range w.of {
		if !o.over && w.kind.policy != nil && w.kind.policy.Exhausted(o.answered) {
			o.over, o.overAt = true, time.Now()
		}
	}
}

func (w *crashWorld) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// queues are where a worker takes its messages from.
var crashQueues = []Destination{Queue("A"), Queue("B")}

// fill sends what there is to do. Where they are subscriptions, each worker has one.
func (w *crashWorld) fill() {
	f := factory(w.t, w.room, "tcp://room")
	if w.kind.durable {
		for n := range crashWorkers {
			c := connect(w.t, w.worker(n))
			must(session(w.t, c, AutoAcknowledge).CreateDurableSubscriber(w.t.Context(), Topic("T"), "s"))(w.t)
			ok(w.t, c.Close())
		}
	}
	c := connect(w.t, f)
	s := session(w.t, c, AutoAcknowledge)
	for i := range crashMessages {
		text := fmt.Sprint("m", i)
		if !w.kind.durable {
			p := must(s.CreateProducer(w.t.Context(), crashQueues[i%len(crashQueues)]))(w.t)
			ok(w.t, p.Send(w.t.Context(), NewText(text), WithPriority(i%7)))
			ok(w.t, p.Close())
			w.of[text] = &crashModel{}
			continue
		}
		send(w.t, s, Topic("T"), text)
		for n := range crashWorkers {
			w.of[fmt.Sprintf("%s for w%d", text, n)] = &crashModel{}
		}
	}
	ok(w.t, c.Close())
}

// worker makes the factory of a worker's connections.
func (w *crashWorld) worker(n int) *ConnectionFactory {
	url := "tcp://room"
	if w.kind.failover {
		url = "failover:(tcp://room)?initialReconnectDelay=10&timeout=2000"
	}
	switch {
	case w.kind.options == "":
	case w.kind.failover:
		url += "&" + w.kind.options
	default:
		url += "?" + w.kind.options
	}
	f := factory(w.t, w.room, url)
	p := DefaultRedeliveryPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = w.kind.clientLimit, 10*time.Millisecond, 10*time.Millisecond
	f.SetRedeliveryPolicy(p)
	if w.kind.durable {
		f.ClientID = fmt.Sprint("w", n)
	}
	return f
}

// A crashWorker is an application: it connects, does some rounds of work, and begins
// anew when its connection has gone.
type crashWorker struct {
	w    *crashWorld
	n    int
	r    *rand.Rand
	conn atomic.Pointer[net.Conn]
}

func (k *crashWorker) work() {
	for !k.w.ended() {
		f := k.w.worker(k.n)
		f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := k.w.room.Dial(ctx, network, address)
			if err == nil {
				k.conn.Store(&conn)
			}
			return conn, err
		}
		c, err := f.CreateConnection(context.Background())
		if err == nil {
			err = k.rounds(c)
			_ = c.Close()
		}
		if err != nil {
			time.Sleep(time.Duration(1+k.r.IntN(30)) * time.Millisecond)
		}
	}
}

// rounds works on one connection until it is lost, or given up.
func (k *crashWorker) rounds(c *Connection) error {
	mode := k.w.kind.modes[k.r.IntN(len(k.w.kind.modes))]
	s, err := c.CreateSession(mode)
	if err != nil {
		return err
	}
	options := []ConsumerOption{WithPrefetch([]int{0, 1, 2, 5, 100}[k.r.IntN(5)])}
	if k.w.kind.sorted && k.r.IntN(2) == 0 {
		options = append(options, WithSelector([]string{"JMSPriority > 3", "JMSPriority < 4"}[k.r.IntN(2)]))
	}
	var consumers []*Consumer
	if k.w.kind.durable {
		sub, err := s.CreateDurableSubscriber(context.Background(), Topic("T"), "s", options...)
		if err != nil {
			return err
		}
		consumers = append(consumers, sub)
	} else {
		for _, q := range crashQueues {
			if k.r.IntN(4) == 0 {
				continue
			}
			one, err := s.CreateConsumer(context.Background(), q, options...)
			if err != nil {
				return err
			}
			consumers = append(consumers, one)
		}
	}
	if len(consumers) == 0 {
		return nil
	}
	if err := c.Start(); err != nil {
		return err
	}
	for range 1 + k.r.IntN(8) {
		if on, err := k.round(c, s, consumers); !on || err != nil {
			return err
		}
		if i := k.r.IntN(len(consumers)); len(consumers) > 1 && k.r.IntN(8) == 0 {
			k.w.note("w%d closes %s", k.n, consumers[i].ID())
			ok(k.w.t, consumers[i].Close())
			consumers = slices.Delete(consumers, i, i+1)
		}
	}
	if k.r.IntN(2) == 0 {
		return nil
	}
	k.w.note("w%d closes its session", k.n)
	return s.Close()
}

// round receives something and does something about it. on is false where the
// connection is to be closed.
func (k *crashWorker) round(c *Connection, s *Session, consumers []*Consumer) (on bool, err error) {
	var got []*Message
	for range 1 + k.r.IntN(3) {
		m, err := consumers[k.r.IntN(len(consumers))].ReceiveTimeout(context.Background(), time.Duration(k.r.IntN(100))*time.Millisecond)
		switch {
		case errors.Is(err, ErrNoMessage):
			continue
		case err != nil:
			return false, err
		}
		k.saw(s, m)
		got = append(got, m)
	}
	if len(got) == 0 {
		return true, nil
	}
	time.Sleep(time.Duration(k.r.IntN(40)) * time.Millisecond)
	switch p := k.r.IntN(20); {
	case p < 1:
		k.w.note("w%d cuts its connection", k.n)
		_ = (*k.conn.Load()).Close()
		return false, errors.New("cut")
	case p < 2:
		k.w.note("w%d closes its connection", k.n)
		return false, nil
	case s.Transacted() && p < 5:
		return true, k.commit(s, got)
	case s.Transacted():
		return true, k.rollBack(s, got)
	case s.Mode() == AutoAcknowledge:
		return true, nil // it was acknowledged as it was received
	case p < 5:
		k.doubt(got)
		return true, got[k.r.IntN(len(got))].Acknowledge(context.Background())
	case p < 10 && s.Mode() == IndividualAcknowledge:
		return true, got[0].Fail(errors.New("failed"))
	case p < 12:
		return true, s.RecoverBecause(DoNotCount(errors.New("nobody is to blame")))
	}
	return true, s.Recover()
}

// key names a message, and whose copy it is.
func (k *crashWorker) key(m *Message) string {
	if k.w.kind.durable {
		return fmt.Sprintf("%s for w%d", m.Text(), k.n)
	}
	return m.Text()
}

// saw notes that an application has a message.
func (k *crashWorker) saw(s *Session, m *Message) {
	w, key := k.w, k.key(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked("w%d (%s) gets %s told %d", k.n, s.Mode(), key, m.RedeliveryCounter)
	o := w.of[key]
	switch {
	case o.committed:
		w.t.Errorf("%s comes although its commit was answered", key)
	case o.attempts > 0 && !m.Redelivered():
		w.t.Errorf("%s comes a second time and is not flagged", key)
	case m.RedeliveryCounter < o.answered:
		w.t.Errorf("%s is told %d, and %d failures were answered", key, m.RedeliveryCounter, o.answered)
	case o.over && o.overAt.Before(time.Now()): // else its client had it before the connection was lost
		w.t.Errorf("%s comes after %d failures, and the broker's policy has given it up", key, o.answered)
	case o.answered > w.kind.limit() && (s.Transacted() || w.kind.policy != nil):
		w.t.Errorf("%s comes after %d failures, and may be redelivered %d times", key, o.answered, w.kind.limit())
	}
	o.attempts++
	if s.Mode() == AutoAcknowledge {
		o.inDoubt = true
	}
}

func (k *crashWorker) doubt(got []*Message) {
	k.each(got, "in doubt", func(o *crashModel) { o.inDoubt = true })
}

func (k *crashWorker) each(got []*Message, what string, f func(*crashModel)) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	for _, m := range got {
		f(k.w.of[k.key(m)])
		k.w.noteLocked("w%d %s %s", k.n, what, k.key(m))
	}
}

func (k *crashWorker) commit(s *Session, got []*Message) error {
	k.doubt(got)
	err := s.Commit(context.Background())
	if err == nil {
		k.each(got, "has committed", func(o *crashModel) { o.committed = true })
	}
	return err
}

func (k *crashWorker) rollBack(s *Session, got []*Message) error {
	err := s.Rollback(context.Background())
	if err == nil && k.w.kind.failover { // perhaps it only knows that the connection's end has done it
		k.each(got, "has rolled back, perhaps,", func(*crashModel) {})
	} else if err == nil {
		k.each(got, "has rolled back", func(o *crashModel) { o.answered++ })
	}
	return err
}

// compare looks where the messages are, and what their stories tell.
func (w *crashWorld) compare() {
	b := w.room.Broker()
	there := map[string]int{}
	look := func(at broker.Place, dead bool, of func(*message.Message) string) {
		for c := (broker.Cursor{}); !c.End; {
			page, next, err := b.Look(w.t.Context(), at, c, 100)
			if errors.Is(err, message.ErrNotFound) {
				return
			}
			ok(w.t, err)
			for i := range page {
				m := must(b.Read(&page[i]))(w.t)
				key := of(m)
				there[key]++
				w.judge(key, dead, page[i].Counts, must(b.Story(&page[i]))(w.t))
			}
			c = next
		}
	}
	plain := func(m *message.Message) string { return textOf(w.t, m) }
	if w.kind.durable {
		for n := range crashWorkers {
			look(broker.Place{ClientID: fmt.Sprint("w", n), Subscription: "s"}, false,
				func(m *message.Message) string { return fmt.Sprintf("%s for w%d", plain(m), n) })
		}
	} else {
		for _, q := range crashQueues {
			look(broker.At(message.Destination{Kind: message.Queue, Name: q.Name()}), false, plain)
		}
	}
	look(broker.At(message.Destination{Kind: message.Queue, Name: "ActiveMQ.DLQ"}), true, func(m *message.Message) string {
		if whose, ok := m.Added[broker.OriginalSubscription].(string); ok {
			return plain(m) + " for " + whose[:len(whose)-len(":s")]
		}
		return plain(m)
	})
	for key, o := range w.of {
		switch n := there[key]; {
		case n > 1:
			w.t.Errorf("%s is there %d times", key, n)
		case n == 1 && o.committed:
			w.t.Errorf("%s is there although its commit was answered", key)
		case n == 0 && !o.committed && !o.inDoubt:
			w.t.Errorf("%s is lost: %+v", key, *o)
		}
	}
}

// judge compares what is known of a message with what happened to it.
func (w *crashWorld) judge(key string, dead bool, c message.Counts, story []message.Attempt) {
	o := w.of[key]
	if o == nil {
		w.t.Errorf("%q is there, and was never sent", key)
		return
	}
	counted, lost := 0, 0
	for i := range story {
		if story[i].Counted {
			counted++
		}
		if story[i].Cause == message.ConnectionLost { // perhaps on its way to the application
			lost++
		}
	}
	tells := func() (all []string) {
		for _, a := range story {
			all = append(all, fmt.Sprintf("#%d %s of %s out %s ended %s counted=%v %q", a.Number, a.Cause, a.Consumer, time.UnixMilli(a.HandedOut).Format("05.000"),
				time.UnixMilli(a.Ended).Format("05.000"), a.Counted, a.Text))
		}
		return all
	}
	numbers := slices.IsSortedFunc(story, func(a, b message.Attempt) int { return a.Number - b.Number })
	switch {
	case !numbers || len(story) > 0 && story[len(story)-1].Number != int(c.Attempts):
		w.t.Errorf("%s: %d attempts, and the story %q", key, c.Attempts, tells())
	case !dead && int(c.Failures) != counted:
		w.t.Errorf("%s has %d failures, and its story %d: %q", key, c.Failures, counted, tells())
	case counted < o.answered:
		w.t.Errorf("%s: %d failures were answered, and %d are known: %q", key, o.answered, counted, tells())
	case counted-lost > o.attempts:
		w.t.Errorf("%s: an application saw it %d times, and %d failures are counted: %q", key, o.attempts, counted, tells())
	case dead && o.attempts == 0 && counted > lost:
		w.t.Errorf("%s is a dead letter, and no application saw it: %q", key, tells())
	}
}

// textOf reads the text of a message as the broker has it.
func textOf(t *testing.T, m *message.Message) string {
	t.Helper()
	return must(openwire.ShowBody(m, 100))(t).Text
}
