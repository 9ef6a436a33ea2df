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
	"sync/atomic"
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
	t      testing.TB
	set    func(*broker.Options, *openwire.Options)
	engine Engine
	store  store.Store

	mu      sync.Mutex
	running *running
	conns   []net.Conn // both ends of every pipe
	dials   int
}

// An Engine is what the store of a room is made by.
type Engine interface {
	// Open opens the store.
	Open() (store.Store, error)
	// Crash takes the power away: from now on Open opens what a disk would have kept.
	// The store that is open goes on, and is closed later: nothing it does counts.
	Crash()
}

// memory is the engine that keeps everything and loses nothing.
type memory struct{}

func (memory) Open() (store.Store, error) { return memstore.New(memstore.Options{}), nil }

func (memory) Crash() { panic("a room in memory has no disk: open it with OpenOn") }

// running is one life of the broker.
type running struct {
	dead   atomic.Bool // nothing it says is heard any more
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
	return OpenOn(t, memory{}, set)
}

// OpenOn starts a room whose store can crash.
func OpenOn(t testing.TB, e Engine, set func(*broker.Options, *openwire.Options)) *Room {
	t.Helper()
	r := &Room{t: t, set: set, engine: e}
	r.openStore()
	r.Start()
	return r
}

func (r *Room) openStore() {
	r.t.Helper()
	s, err := r.engine.Open()
	if err != nil {
		r.t.Fatal(err)
	}
	r.store = s
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
	n.served.Go(func() { n.server.Serve(n.ctx, &mortal{Conn: theirs, life: n}) })
	return ours, nil
}

// mortal is the broker's end of a connection, which falls silent when the broker is
// killed.
type mortal struct {
	net.Conn
	life *running
}

func (m *mortal) Write(b []byte) (int, error) {
	if m.life.dead.Load() {
		return 0, net.ErrClosed
	}
	return m.Conn.Write(b)
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

// Kill ends the broker as a loss of power does: what it says from now on nobody hears,
// and what the disk did not have is lost. Start begins another life.
func (r *Room) Kill() {
	r.t.Helper()
	r.mu.Lock()
	n := r.running
	r.mu.Unlock()
	if n != nil {
		n.dead.Store(true)
	}
	r.engine.Crash()
	r.Cut()
	r.Stop()
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
	r.openStore()
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
