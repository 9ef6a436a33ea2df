package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/config"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/store"
)

// Options are what a server needs beside its configuration.
type Options struct {
	Config *config.Config
	Log    *slog.Logger
	Clock  clock.Clock // nil: the machine's
	// Load reads the configuration once more, for Reload; nil: there is no file that
	// could have changed.
	Load func() (*config.Config, []config.Notice, error)
	// Admin makes the handler of the admin listener; nil: it only tells that the
	// server is alive.
	Admin func(*Server) http.Handler
	// OnFatal is told when the store can no longer be written; nil: the engine
	// prints what to do and ends the process.
	OnFatal func(error)
}

// A Server is a running broker with its listeners. Start makes one.
type Server struct {
	o          Options
	Broker     *broker.Broker
	store      store.Store
	shard      store.Shard
	access     *access.Control // nil: nobody is asked who they are
	advisories *openwire.Advisories
	listeners  []*listener
	admin      *adminListener
	files      *descriptors
	started    time.Time
	config     atomic.Pointer[config.Config] // changed with reloading held
	reloading  sync.Mutex

	// conns ends the connections; rest ends what is behind them.
	conns     context.Context
	stopConns context.CancelFunc
	rest      context.Context
	stopRest  context.CancelFunc
	serving   sync.WaitGroup // listeners and connections
	behind    sync.WaitGroup // broker and advisories
}

// Start opens the store and begins to serve. It returns when every listener
// accepts. Where it fails, nothing is left running.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	s := &Server{o: o, started: o.Clock.Now()}
	s.config.Store(o.Config)
	if a := o.Config.Access; a != nil {
		s.access = access.New(*a)
	}
	s.conns, s.stopConns = context.WithCancel(context.Background())
	s.rest, s.stopRest = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if s.files, err = shareOut(openFiles()); err != nil {
		return nil, err
	}
	if s.store, err = openStore(o, s.files); err != nil {
		return nil, err
	}
	if s.shard, err = s.store.Acquire(ctx, 0, fmt.Sprintf("nixie %s, process %d", o.Config.BrokerName, os.Getpid())); err != nil {
		return nil, err
	}
	if o.Config.DeleteAllMessages {
		if err := s.empty(); err != nil {
			return nil, fmt.Errorf("empty %s: %w", o.Config.DataDir, err)
		}
	}
	rec, err := records.Open(ctx, s.shard, records.Options{BatchBytes: s.store.Limits().BatchBytes})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Config.DataDir, err)
	}
	if err := s.startBroker(rec); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) startBroker(rec *records.Records) error {
	c := s.o.Config
	id := brokerID(s.started)
	var err error
	s.advisories, err = openwire.NewAdvisories(id, c.BrokerName, c.Listeners[0].URI, s.o.Log)
	if err != nil {
		return err
	}
	if c.NoAdvisories {
		s.advisories.Quiet()
	}
	events := &eventLog{log: s.o.Log, clock: s.o.Clock}
	s.Broker, err = broker.New(broker.Options{
		Name:         c.BrokerName,
		Records:      rec,
		Clock:        s.o.Clock,
		Log:          s.o.Log,
		Destinations: c.Destinations,
		Interceptors: interceptors(c),
		Properties:   openwire.Property,
		Jitter:       func() float64 { return 2*rand.Float64() - 1 },
		Space:        s.store.Space,
		Limits: broker.Limits{
			MinFreeBytes:    uint64(c.Store.MinFreeBytes),
			MinFreePercent:  c.Store.MinFreePercent,
			TransactionTime: c.TransactionTimeout,
			MaxStoreBytes:   uint64(c.Store.MaxBytes),
			MaxStorePercent: c.Store.MaxPercent,
			MessageBytes:    c.MemoryBytes,
		},
		Stamping:        stamping(c.TimeStamping),
		ForcePersistent: c.ForcePersistent,
		UserID:          c.UserID,
		Offline:         broker.OfflineLimit{After: c.OfflineSubscriptionLimit, Every: c.OfflineSubscriptionCheck},
		Prepared:        preparedFates[c.Prepared],
		KeepTemps:       c.KeepTemporaryQueues,
		MakeTemps:       c.MakeTemporaryQueues,
		RejectDurable:   c.RejectDurableConsumers,
		Lifetimes:       c.Resolver().Lifetimes(),
		Limited:         c.Resolver().Limited(),
		OneOrder:        c.Resolver().Ordered(),
		Unrouted:        c.Resolver().Unrouted(),
		OnlyDeclared:    c.Resolver().OnlyDeclared(),
		MarksOff:        !c.HandOutMarks,
		NoScheduler:     c.NoScheduler,
		MaxRepeat:       c.MaxSchedulerRepeat,
		BlockWhenFull:   c.Store.OnFull == config.Block,
		FailAfter:       c.Store.FailAfter,
		Policy:          policies(c),
		AdvisoryTopic:   s.advisories.Topic,
		Listen: func(e broker.Event) {
			s.advisories.Listen(e)
			events.listen(e)
		},
	})
	if err != nil {
		return err
	}
	s.behind.Go(func() { _ = s.Broker.Run(s.rest) })
	s.behind.Go(func() { s.advisories.Run(s.rest, openwire.On(s.Broker)) })
	return nil
}

// preparedFates are the broker's words for the configuration's.
var preparedFates = map[config.PreparedFate]broker.PreparedFate{
	config.KeepPrepared: broker.KeepPrepared, config.CommitPrepared: broker.CommitPrepared, config.RollBackPrepared: broker.RollBackPrepared,
}

// policies tells the broker what a configuration has for a destination.
func policies(c *config.Config) func(message.Destination) broker.Policy {
	resolver := c.Resolver()
	return func(d message.Destination) broker.Policy {
		e := resolver.Policy(d)
		return broker.Policy{Rules: e.Rules, Prioritized: e.PrioritizedMessages, Marks: e.PersistJMSRedelivered,
			Exclusive:    e.AllConsumersExclusive,
			AckTimeout:   e.AckTimeout,
			Lifetime:     e.Lifetime,
			Recovery:     recoveryOf(&e.PolicyEntry),
			Backlog:      backlogOf(e.Backlog),
			Slow:         slowOf(e.SlowConsumers),
			OneByOne:     e.StrictOrderDispatch,
			MaxConsumers: e.MaxConsumers, RingSize: e.RingSize, PurgeAlone: e.PurgeOnNoConsumers, LastValue: e.LastValueKey, Rebalance: e.GroupRebalance, OnlyDeclared: e.OnlyDeclared,
			MaxDestinations: e.MaxDestinations, Pattern: patternOf(&e, d),
			Flow:       flowOf(e.Limits.For(d)),
			Gather:     broker.Gather{Consumers: e.ConsumersBeforeDispatch, Wait: e.TimeBeforeDispatch},
			Prefetch:   broker.Prefetch{Queue: e.Prefetch.Queue, Browser: e.Prefetch.QueueBrowser, Topic: e.Prefetch.Topic, Durable: e.Prefetch.DurableTopic},
			Advisories: advisoriesOf(e.Advisories)}
	}
}

func stamping(c *config.TimeStamping) *broker.Stamping {
	if c == nil {
		return nil
	}
	return &broker.Stamping{ZeroExpirationOverride: c.ZeroExpirationOverride, TTLCeiling: c.TTLCeiling, FutureOnly: c.FutureOnly}
}

// brokerID makes an id as ActiveMQ's, new at every start.
func brokerID(at time.Time) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return fmt.Sprintf("ID:%s-%d-%d-0:1", host, os.Getpid(), at.UnixMilli())
}

// Ready is the line that says where the server is to be found.
func (s *Server) Ready() string {
	var b strings.Builder
	b.WriteString("nixie ready")
	for _, l := range s.listeners {
		fmt.Fprintf(&b, " %s=%s", l.config.Protocol, l.uri())
	}
	admin := "off"
	if s.admin != nil {
		admin = s.admin.url()
	}
	fmt.Fprintf(&b, " admin=%s data=%s", admin, s.o.Config.DataDir)
	return b.String()
}

// Addresses lists the listeners, as name and URI, with the ports that they have.
func (s *Server) Addresses() [][2]string {
	all := make([][2]string, len(s.listeners))
	for i, l := range s.listeners {
		all[i] = [2]string{l.name(), l.uri()}
	}
	return all
}

// Config is the configuration that holds: what the server was started with, and what
// was reloaded since.
func (s *Server) Config() *config.Config { return s.config.Load() }

// Access says who clients and people are; nil: nobody is asked.
func (s *Server) Access() *access.Control { return s.access }

// Started is when the server began to start.
func (s *Server) Started() time.Time { return s.started }

// Space is the room under the store.
func (s *Server) Space() (store.Space, error) { return s.store.Space() }

// stopLimit is how long the end of the store is waited for.
const stopLimit = 30 * time.Second

// Stop ends everything, in order: clients keep what they have until the next
// start, nothing that was accepted is lost.
func (s *Server) Stop() {
	for _, l := range s.listeners {
		l.close()
	}
	if s.admin != nil {
		s.admin.close()
	}
	s.stopConns()
	s.serving.Wait()
	s.stopRest()
	s.behind.Wait()
	if s.shard != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if err := s.shard.Release(ctx); err != nil && !errors.Is(err, store.ErrClosed) {
			s.o.Log.Error("give the store up", "err", err)
		}
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.o.Log.Error("close the store", "err", err)
		}
	}
}

// isClosed reports whether err only says that a listener was closed.
func isClosed(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed)
}

// advisoriesOf is what a policy has told, as the broker has it.
func advisoriesOf(a config.Advisories) broker.Advisories {
	return broker.Advisories{
		Discarded: a.ForDiscardingMessages, Sent: a.ForDelivery, Consumed: a.ForConsumed, Dispatched: a.ForDispatched,
		SlowConsumer: a.ForSlowConsumers, FastProducer: a.ForFastProducers, WhenFull: a.WhenFull,
		NoConsumer: a.IfNoConsumers, Bodies: a.IncludeBody,
	}
}

// patternOf is the pattern of what holds for a destination: all of its kind, where it
// holds by default.
func patternOf(e *config.Effective, d message.Destination) message.Destination {
	if e.Destination.IsZero() {
		return message.Destination{Kind: d.Kind, Name: ">"}
	}
	return e.Destination
}

// flowOf is what a policy lets producers put into a destination, as the broker has it.
func flowOf(l *config.Limits) broker.Flow {
	if l == nil {
		return broker.Flow{}
	}
	return broker.Flow{
		MaxBytes: l.MaxBytes, MaxMessages: int64(l.MaxMessages), DurableToo: l.DurableSubscriptions, FailAfter: l.FailAfter,
		StorePercent: l.StoreHighWaterMark, WarnEvery: l.WarnInterval,
		OnFull: map[config.OnFull]broker.FullAction{config.Block: broker.Wait, config.Fail: broker.Refuse, config.Drop: broker.Drop}[l.OnFull],
	}
}

// recoveryOf is what a policy keeps for retroactive consumers, as the broker has it.
func recoveryOf(p *config.PolicyEntry) broker.Recovery {
	r := broker.Recovery{Always: p.AlwaysRetroactive}
	if k := p.Recovery; k != nil {
		r.Count, r.Bytes, r.Age, r.Retained = k.Count, int64(k.Bytes), k.Age, k.Retained
	}
	return r
}

// backlogOf is the bound of what waits for a topic's consumer, as the broker has it.
func backlogOf(c *config.Backlog) broker.Backlog {
	if c == nil {
		return broker.Backlog{}
	}
	b := broker.Backlog{Limits: broker.ConstantLimit, Most: c.Limit, Property: c.Property}
	if c.Windows >= 0 {
		b.Limits, b.Rate = broker.WindowLimit, c.Windows
	}
	switch c.Evict {
	case config.EvictLowestPriority:
		b.Evicts = broker.EvictLowestPriority
	case config.EvictSuperseded:
		b.Evicts = broker.EvictSuperseded
	}
	return b
}

// slowOf is how slow consumers may be, as the broker has it.
func slowOf(c *config.SlowConsumers) broker.Slow {
	if c == nil {
		return broker.Slow{}
	}
	s := broker.Slow{Unacked: c.Unacked(), Rate: c.MinRate, Period: c.CheckPeriod, Notify: c.Notify, EndConnection: c.AbortConnection}
	if s.Unacked == 0 {
		s.For, s.Times, s.Well = c.MaxDuration, c.MaxCount, c.CheckPeriod
	}
	return s
}
