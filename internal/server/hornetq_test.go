package server

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// A bench is a broker in virtual time that was made from a configuration file.
type bench struct {
	t      *testing.T
	broker *broker.Broker
	n      atomic.Int64
}

// onBench runs f with a broker made from a broker.xml that has the settings, and
// what else the core element is to hold.
func onBench(t *testing.T, settings string, f func(b *bench), more ...string) {
	t.Helper()
	c, _, err := config.Load(config.Options{File: "broker.xml", ReadFile: func(path string) ([]byte, error) {
		if path != "broker.xml" {
			return nil, os.ErrNotExist
		}
		return []byte(`<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<name>case</name><security-enabled>false</security-enabled>
<acceptors><acceptor name="all">tcp://127.0.0.1:61616</acceptor></acceptors>
<address-settings>` + settings + `</address-settings>
<addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses>
` + strings.Join(more, "") + `</core></configuration>`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{SyncTime: time.Millisecond})
		shard, err := store.Acquire(t.Context(), 0, "test")
		if err != nil {
			t.Fatal(err)
		}
		rec, err := records.Open(t.Context(), shard, records.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t}
		r := c.Resolver()
		b.broker, err = broker.New(broker.Options{Records: rec, Policy: policies(c), Lifetimes: r.Lifetimes(), Unrouted: r.Unrouted(), Limited: r.Limited(),
			Destinations: c.Destinations, Interceptors: interceptors(c)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = b.broker.Run(ctx) }()
		f(b)
		cancel()
		<-ended
		if err := shard.Release(context.Background()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A worker is a connection with one consumer.
type worker struct {
	b        *bench
	c        *broker.Connection
	consumer string
	mu       sync.Mutex
	got      []broker.Delivery
	kicked   error // why the broker ended the connection
}

func (w *worker) Deliver(d broker.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, d)
}

// worker connects and consumes a queue with a prefetch of 1.
func (b *bench) worker(name string) *worker {
	b.t.Helper()
	id := fmt.Sprintf("ID:w-%d", b.n.Add(1))
	w := &worker{b: b, consumer: id + ":1:1"}
	var err error
	if w.c, err = b.broker.Connect(b.t.Context(), broker.ClientInfo{ID: id, ClientID: id, Address: "pipe", Protocol: "test", Kick: w.kick}, w); err != nil {
		b.t.Fatal(err)
	}
	d := message.Destination{Kind: message.Queue, Name: name}
	if err := w.c.Subscribe(b.t.Context(), broker.ConsumerSpec{ID: w.consumer, Session: id + ":1", Destination: d, Prefetch: 1}); err != nil {
		b.t.Fatal(err)
	}
	return w
}

func (w *worker) kick(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kicked = why
}

// receive waits at most so long for a message; nil: none came.
func (w *worker) receive(limit time.Duration) *broker.Delivery {
	w.b.t.Helper()
	for end := time.Now().Add(limit); ; {
		synctest.Wait()
		w.mu.Lock()
		var d *broker.Delivery
		if len(w.got) > 0 {
			d = &w.got[0]
			w.got = w.got[1:]
		}
		w.mu.Unlock()
		if d != nil {
			if _, err := d.Load(); err != nil {
				w.b.t.Fatal(err)
			}
			return d
		}
		if !time.Now().Before(end) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// commit acknowledges a message.
func (w *worker) commit(d *broker.Delivery) {
	w.b.t.Helper()
	answered := make(chan error, 1)
	ref := queue.Ref{Position: d.Entry.Position, ID: d.Entry.ID}
	w.c.Ack(w.b.t.Context(), broker.Ack{Consumer: w.consumer, Destination: d.Destination, Type: queue.Standard, Count: 1, First: ref, Last: ref},
		func(err error) { answered <- err })
	if err := <-answered; err != nil {
		w.b.t.Fatal(err)
	}
}

// closeWithout ends the session in good order, with the message received and not
// acknowledged, as a transacted client does that does not commit.
func (w *worker) closeWithout(d *broker.Delivery) {
	last := int64(-1)
	if d != nil {
		last = int64(d.Entry.Position)
	}
	w.c.Close(message.Closed, "", last)
}

// cut takes the connection away.
func (w *worker) cut() {
	w.c.Close(message.ConnectionLost, "connection reset by peer", queue.UnknownLast)
}

// send sends a persistent text.
func (b *bench) send(name, body string) {
	b.t.Helper()
	id := fmt.Sprintf("ID:p-%d", b.n.Add(1))
	c, err := b.broker.Connect(b.t.Context(), broker.ClientInfo{ID: id, ClientID: id, Address: "pipe", Protocol: "test", Kick: func(error) {}}, &worker{b: b})
	if err != nil {
		b.t.Fatal(err)
	}
	answered := make(chan error, 1)
	c.Send(b.t.Context(), &message.Message{ID: message.ID{Producer: id + ":1:1", Sequence: 1}, Destination: message.Destination{Kind: message.Queue, Name: name},
		Persistent: true, Priority: 4, Kind: message.TextBody, Format: message.OpenWire, Body: []byte(body)}, "", func(err error) { answered <- err })
	if err := <-answered; err != nil {
		b.t.Fatal(err)
	}
	c.Close(message.Closed, "", -1)
}

// rest lists the bodies in a queue.
func (b *bench) rest(name string) []string {
	b.t.Helper()
	time.Sleep(2 * time.Second)
	w := b.worker(name)
	var all []string
	for d := w.receive(time.Second); d != nil; d = w.receive(time.Second) {
		all = append(all, string(d.Message.Body))
		w.commit(d)
	}
	w.closeWithout(nil)
	return all
}

func TestC01LimitsOfAddressSettings(t *testing.T) { // C01, broker.xml: R-HQ-40, R-HQ-41
	const settings = `<address-setting match="LIMIT.#"><dead-letter-address>DLQ</dead-letter-address></address-setting>
<address-setting match="LIMIT.THREE"><max-delivery-attempts>3</max-delivery-attempts></address-setting>
<address-setting match="LIMIT.ONE"><max-delivery-attempts>1</max-delivery-attempts></address-setting>
<address-setting match="LIMIT.ENDLESS"><max-delivery-attempts>-1</max-delivery-attempts></address-setting>
<address-setting match="LIMIT.ZERO"><max-delivery-attempts>0</max-delivery-attempts></address-setting>`
	for name, tt := range map[string]struct{ fail, deliveries int }{
		"LIMIT.THREE":   {100, 3},
		"LIMIT.ONE":     {100, 1},
		"LIMIT.TEN":     {100, 10}, // by default
		"LIMIT.ENDLESS": {50, 51},
		"LIMIT.ZERO":    {12, 13},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, settings, func(b *bench) {
				b.send(name, "m")
				deliveries := 0
				for {
					w := b.worker(name)
					d := w.receive(5 * time.Second)
					if d == nil {
						w.closeWithout(nil)
						break
					}
					if deliveries++; d.Counter != deliveries-1 {
						t.Errorf("delivery %d carries JMSXDeliveryCount %d", deliveries, d.Counter+1)
					}
					if deliveries > tt.fail {
						w.commit(d)
						d = nil
					}
					w.closeWithout(d)
				}
				if deliveries != tt.deliveries {
					t.Errorf("%d deliveries, want %d", deliveries, tt.deliveries)
				}
				var want []string
				if tt.fail == 100 {
					want = []string{"m"}
				}
				if diff := cmp.Diff(want, b.rest("DLQ")); diff != "" {
					t.Errorf("dead letters (-want +got):\n%s", diff)
				}
				if left := b.rest(name); len(left) != 0 {
					t.Errorf("left at the source: %v", left)
				}
			})
		})
	}
}

func TestC02PoisonThatKillsItsConsumer(t *testing.T) { // C02, broker.xml: R-HQ-71, better than R-HQ-43
	const settings = `<address-setting match="CRASH.#"><dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>5</max-delivery-attempts></address-setting>`
	onBench(t, settings, func(b *bench) {
		for _, body := range []string{"P", "G1", "G2", "G3"} {
			b.send("CRASH.Q", body)
		}
		var seen []string
		connections := 0
		for ; connections < 12; connections++ {
			w := b.worker("CRASH.Q")
			d := w.receive(3 * time.Second)
			for ; d != nil && string(d.Message.Body) != "P"; d = w.receive(3 * time.Second) {
				seen = append(seen, fmt.Sprintf("%s*%d", d.Message.Body, d.Counter))
				w.commit(d)
			}
			if d == nil {
				w.closeWithout(nil)
				break
			}
			seen = append(seen, fmt.Sprintf("P*%d", d.Counter))
			w.cut()
		}
		if diff := cmp.Diff([]string{"P*0", "P*1", "P*2", "P*3", "P*4", "G1*0", "G2*0", "G3*0"}, seen); diff != "" {
			t.Errorf("deliveries (-want +got):\n%s", diff)
		}
		if connections > 7 {
			t.Errorf("%d connections, want at most 7", connections)
		}
		if diff := cmp.Diff([]string{"P"}, b.rest("DLQ")); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	})
}

func TestC05DelayHoldsWhenConsumersComeAndGo(t *testing.T) { // C05, broker.xml: better than R-HQ-33
	const settings = `<address-setting match="CHURN.#"><dead-letter-address>DLQ</dead-letter-address>
<max-delivery-attempts>9</max-delivery-attempts><redelivery-delay>4000</redelivery-delay></address-setting>`
	onBench(t, settings, func(b *bench) {
		b.send("CHURN.Q", "m")
		var mu sync.Mutex
		var at []time.Time
		var workers sync.WaitGroup
		start := time.Now()
		for n := range 5 {
			workers.Go(func() {
				for i := n; time.Since(start) < 14*time.Second; i++ {
					w := b.worker("CHURN.Q")
					var d *broker.Delivery
					for end := time.Now().Add(time.Second); d == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
						w.mu.Lock()
						if len(w.got) > 0 {
							d = &w.got[0]
						}
						w.mu.Unlock()
					}
					if d != nil {
						mu.Lock()
						if d.Counter != len(at) {
							t.Errorf("delivery %d carries JMSXDeliveryCount %d", len(at)+1, d.Counter+1)
						}
						at = append(at, time.Now())
						mu.Unlock()
					}
					if i%2 == 0 {
						w.closeWithout(d)
					} else {
						w.cut()
					}
				}
			})
		}
		workers.Wait()
		if len(at) < 3 || len(at) > 4 {
			t.Errorf("%d deliveries in 14 s, want 3 or 4", len(at))
		}
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d < 3950*time.Millisecond || d > 5*time.Second {
				t.Errorf("delivery %d came after %v", i+1, d)
			}
		}
		if dead := b.rest("DLQ"); len(dead) != 0 {
			t.Errorf("dead letters: %v", dead)
		}
	})
}

func TestDiverts(t *testing.T) { // R-HQ-111: dead letters by the settings of the address they were diverted to
	const settings = `<address-setting match="#"><dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts></address-setting>
<address-setting match="audit"><dead-letter-address>audit.dead</dead-letter-address></address-setting>`
	onBench(t, settings, func(b *bench) {
		b.send("orders", "m")
		for _, name := range []string{"orders", "audit"} {
			w := b.worker(name)
			d := w.receive(time.Second)
			if d == nil {
				t.Fatalf("nothing in %s", name)
			}
			w.closeWithout(d)
		}
		b.send("away", "n")
		for name, want := range map[string][]string{"DLQ": {"m"}, "audit.dead": {"m"}, "orders": nil, "audit": nil, "away": nil, "there": {"n"}} {
			if diff := cmp.Diff(want, b.rest(name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}, `<diverts><divert name="a"><address>orders</address><forwarding-address>audit</forwarding-address></divert>
<divert name="b"><address>away</address><forwarding-address>there</forwarding-address><exclusive>true</exclusive></divert></diverts>`)
}

// TestSlowConsumersAreKilled is slow-consumer-threshold with its policies: who
// acknowledges too little while there is enough loses its connection, or is told of.
func TestSlowConsumersAreKilled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy string
		pause  time.Duration // of the worker, between messages
		there  int
		killed bool
	}{
		"too slow":           {"KILL", time.Second, 40, true},
		"fast enough":        {"KILL", 400 * time.Millisecond, 40, false},
		"too little to do":   {"KILL", time.Second, 9, false},
		"only to be told of": {"NOTIFY", time.Second, 40, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBench(t, `<address-setting match="#"><dead-letter-address>DLQ</dead-letter-address><slow-consumer-threshold>2</slow-consumer-threshold>
<slow-consumer-check-period>5</slow-consumer-check-period><slow-consumer-policy>`+tt.policy+`</slow-consumer-policy></address-setting>`, func(b *bench) {
				for i := range tt.there {
					b.send("work", fmt.Sprint(i))
				}
				w := b.worker("work")
				killed := func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return w.kicked != nil
				}
				start := time.Now()
				for d := w.receive(time.Second); d != nil && !killed(); d = w.receive(time.Second) {
					time.Sleep(tt.pause)
					w.commit(d)
				}
				if killed() != tt.killed {
					t.Errorf("killed: %v", w.kicked)
				}
				if took := time.Since(start); tt.killed && (took < 5*time.Second || took > 7*time.Second) {
					t.Errorf("after %v", took)
				}
				w.cut()
			})
		})
	}
}
