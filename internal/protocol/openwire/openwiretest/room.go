// Package openwiretest serves a broker that keeps its messages in memory over pipes, in
// one process and, in a bubble of testing/synctest, in virtual time. Only tests use it.
package openwiretest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// A Room is a broker that clients reach by Dial. It may be stopped, killed and started
// again; what its store has stays.
type Room struct {
	t   testing.TB
	set func(*broker.Options, *openwire.Options)

	store store.Store

	mu      sync.Mutex
	running *running
	conns   []net.Conn // both ends of every pipe
	dials   int
}

// running is one life of the broker.
type running struct {
	broker *broker.Broker
	server *openwire.Server
	shard  store.Shard
	ctx    context.Context // of the connections
	stop   context.CancelFunc
	end    context.CancelFunc // of what is behind them
	served sync.WaitGroup
	behind sync.WaitGroup
}

// Open starts a room; set may change what the broker and its server are made of. The
// caller closes it, in a bubble before the bubble ends.
func Open(t testing.TB, set func(*broker.Options, *openwire.Options)) *Room {
	t.Helper()
	r := &Room{t: t, set: set, store: memstore.New(memstore.Options{})}
	r.Start()
	return r
}

// Start begins a life of the broker.
func (r *Room) Start() {
	r.t.Helper()
	ctx := context.Background()
	shard, err := r.store.Acquire(ctx, 0, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	rec, err := records.Open(ctx, shard, records.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	advisories, err := openwire.NewAdvisories("ID:room-broker", "localhost", "tcp://room:61616", log)
	if err != nil {
		r.t.Fatal(err)
	}
	bo := broker.Options{Records: rec, Listen: advisories.Listen, Properties: openwire.Property}
	oo := openwire.Options{Advisories: advisories, Log: log}
	if r.set != nil {
		r.set(&bo, &oo)
	}
	n := &running{shard: shard}
	if n.broker, err = broker.New(bo); err != nil {
		r.t.Fatal(err)
	}
	oo.Broker = openwire.On(n.broker)
	if n.server, err = openwire.New(oo); err != nil {
		r.t.Fatal(err)
	}
	n.ctx, n.stop = context.WithCancel(ctx)
	rest, end := context.WithCancel(ctx)
	n.end = end
	n.behind.Go(func() { _ = n.broker.Run(rest) })
	n.behind.Go(func() { advisories.Run(rest, openwire.On(n.broker)) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = n
}

// ErrDown is why Dial fails while the broker is stopped.
var ErrDown = errors.New("connection refused: the broker is down")

// Dial opens a connection, as a net.Dialer's DialContext does.
func (r *Room) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials++
	if r.running == nil {
		return nil, ErrDown
	}
	ours, theirs := net.Pipe()
	n := r.running
	r.conns = append(r.conns, ours, theirs)
	n.served.Go(func() { n.server.Serve(n.ctx, theirs) })
	return ours, nil
}

// Dials is how often Dial was called.
func (r *Room) Dials() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}

// Cut breaks every connection, as a network does.
func (r *Room) Cut() {
	r.mu.Lock()
	conns := slices.Clone(r.conns)
	r.conns = nil
	r.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// Broker is the broker that runs.
func (r *Room) Broker() *broker.Broker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running.broker
}

// SetBrokers replaces the list of brokers that the present broker tells its clients.
func (r *Room) SetBrokers(brokers ...string) {
	r.mu.Lock()
	n := r.running
	r.mu.Unlock()
	n.server.SetBrokers(brokers)
}

// Stop ends the broker's life, in order; Start begins another.
func (r *Room) Stop() {
	r.t.Helper()
	r.mu.Lock()
	n := r.running
	r.running = nil
	r.mu.Unlock()
	if n == nil {
		return
	}
	n.stop()
	n.served.Wait()
	n.end()
	n.behind.Wait()
	if err := n.shard.Release(context.Background()); err != nil {
		r.t.Error(err)
	}
}

// Close ends the room.
func (r *Room) Close() {
	r.t.Helper()
	r.Stop()
	r.Cut()
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
}
