package jms

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A Connection is a client's connection to a broker, or over failover to one of
// several. It is safe for concurrent use. Close ends all it started; it must not be
// called from a handler or a listener of the connection's own: that is ErrIllegalState.
type Connection struct {
	o      Options
	url    brokerURL
	tls    *tls.Config
	dial   dialer
	log    *slog.Logger
	clock  clock.Clock
	id     string
	user   *wire.ConnectionInfo
	root   context.Context // ends with the connection
	cancel context.CancelCauseFunc
	parts  sync.WaitGroup // goroutines that are not a link's

	attempts atomic.Int64 // connection attempts so far

	mu sync.Mutex
	// Guarded by mu: everything below, and the state of all sessions, producers and
	// consumers of the connection. It is never held while something is waited for.
	link     *link // nil: there is no broker at the moment
	started  bool
	closing  bool
	failure  error // why the connection has ended; nil: it has not
	queue    outqueue
	pending  map[int32]*call
	command  int32 // the last command id
	changed  bell  // of the connection: link, room, failure
	sessions []*Session
	byID     map[wire.ConsumerID]*Consumer
	sessionN int64
	txN      int64
	temps    map[message.Destination]*wire.DestinationInfo // that this connection made
	known    map[message.Destination]bool                  // temporary destinations there are
	watching *Consumer                                     // of advisories; nil: not watched
	policies RedeliveryPolicies
	wishes   *redelivery.WishMap // the broker's; nil: none
	set      *policySet
	broker   *wire.BrokerInfo // nil: not heard of
	brokers  brokerList
	tracked  []*wire.Message // trackMessages: the last that nobody waited for
	trackedN int             // their bytes
	tolerant bool            // the broker is one of several that replace each other (R-CLIENT-22)
	events   eventQueue
	teller   int64 // the number of the goroutine that runs the listeners
}

// A bell wakes all who wait at it. Guarded by the connection's mutex.
type bell struct{ c chan struct{} }

// wait gives the channel that the next ring closes.
func (b *bell) wait() <-chan struct{} {
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *bell) ring() {
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}

func newConnection(f *ConnectionFactory) *Connection {
	c := &Connection{
		o: f.Options, url: f.url, tls: f.TLS, dial: f.Dial, log: f.Log, clock: f.clock,
		pending: map[int32]*call{}, byID: map[wire.ConsumerID]*Consumer{},
		temps: map[message.Destination]*wire.DestinationInfo{}, known: map[message.Destination]bool{},
		policies: f.Policies.clone(),
	}
	if c.clock == nil {
		c.clock = clock.System{}
	}
	if c.dial == nil {
		c.dial = (&net.Dialer{}).DialContext
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.id = generatedID(c.o.ConnectionIDPrefix, c.clock)
	clientID := f.ClientID
	if clientID == "" {
		clientID = generatedID(c.o.ClientIDPrefix, c.clock)
	}
	c.user = &wire.ConnectionInfo{
		ConnectionID: &wire.ConnectionID{Value: c.id}, ClientID: wire.NewText(clientID),
		UserName: wire.TextOrNull(f.UserName), Password: wire.TextOrNull(f.Password),
		Manageable: true, ClientMaster: true, FaultTolerant: f.url.failover != nil,
	}
	c.root, c.cancel = context.WithCancelCause(context.Background())
	c.set = newPolicySet(c.policies, nil)
	c.brokers = newBrokerList(c.url)
	c.parts.Go(c.tellEvents)
	if c.o.OptimizeAcknowledge && c.o.OptimizedAckScheduledAckInterval > 0 {
		c.parts.Go(c.flushLazily)
	}
	return c
}

// ID is the connection's id.
func (c *Connection) ID() string { return c.id }

// ClientID is the client id that the broker knows the connection by.
func (c *Connection) ClientID() string { return c.user.ClientID.Value }

// Attempts is how many times a network connection was tried so far.
func (c *Connection) Attempts() int64 { return c.attempts.Load() }

// BrokerName is the name of the broker that the connection is with; "" while there
// is none.
func (c *Connection) BrokerName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broker == nil || c.link == nil {
		return ""
	}
	return c.broker.BrokerName.Value
}

// Start lets deliveries begin.
func (c *Connection) Start() error { return c.setStarted(true) }

// Stop holds deliveries back until the next Start. Handlers that run go on.
func (c *Connection) Stop() error { return c.setStarted(false) }

func (c *Connection) setStarted(on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.aliveLocked("start connection"); err != nil {
		return err
	}
	c.started = on
	for _, s := range c.sessions {
		s.changed.ring()
	}
	return nil
}

// SetRedeliveryPolicy sets the default policy of consumers made from now on.
func (c *Connection) SetRedeliveryPolicy(p RedeliveryPolicy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policies.SetDefault(p)
	c.set = newPolicySet(c.policies, c.wishes)
}

// PutRedeliveryPolicy sets the policy of a destination, which may be a pattern, for
// consumers made from now on.
func (c *Connection) PutRedeliveryPolicy(d Destination, p RedeliveryPolicy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policies.Put(d, p)
	c.set = newPolicySet(c.policies, c.wishes)
}

// RedeliveryPolicy is what a consumer made now would go by for messages of d: the
// application's policy, else the broker's wish, else ActiveMQ's default.
func (c *Connection) RedeliveryPolicy(d Destination) RedeliveryPolicy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return publicPolicy(c.set.lookup(d.d))
}

// OnException sets who is told of what goes wrong behind the scenes: commands that
// nobody waits for, and the end of the connection (ErrUnavailable). It is called on
// a goroutine of the connection's own, one error at a time.
func (c *Connection) OnException(f func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events.exception = f
}

// A TransportEvent is a change of the network connection under a Connection.
type TransportEvent struct {
	Interrupted bool   // else: resumed
	Broker      string // the URI, when resumed
	Err         error  // why, when interrupted
}

// OnTransport sets who is told of fail-overs, as OnException is called.
func (c *Connection) OnTransport(f func(TransportEvent)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events.transport = f
}

// aliveLocked is the error of whoever uses a connection that has ended.
func (c *Connection) aliveLocked(op string) error {
	switch {
	case c.failure != nil:
		return &Error{Op: op, Err: c.failure}
	case c.closing:
		return &Error{Op: op, Kind: ErrClosed, Text: "the connection is closed"}
	}
	return nil
}

// Close closes the connection with all its sessions: open transactions are rolled
// back, the broker is told what was delivered, and every goroutine ends. It waits
// for handlers that run, and for the broker at most Timeouts.Close. Further calls do
// nothing.
func (c *Connection) Close() error {
	c.mu.Lock()
	self := goroutine()
	if self != 0 && (c.teller == self || slices.ContainsFunc(c.sessions, func(s *Session) bool { return s.running && s.runner == self })) {
		c.mu.Unlock()
		return selfClose("close connection")
	}
	if c.closing {
		c.mu.Unlock()
		c.parts.Wait()
		return nil
	}
	c.closing = true
	sessions := append([]*Session(nil), c.sessions...)
	for _, s := range sessions {
		s.stopLocked()
	}
	c.changed.ring()
	c.mu.Unlock()
	for _, s := range sessions {
		s.handlers.Wait()
	}
	ctx, done := context.WithTimeout(context.Background(), closeBound(c.o.Timeouts.Close))
	defer done()
	last := wire.LastDeliveredUnknown
	for _, s := range sessions {
		last = max(last, s.dispose(ctx))
	}
	err := c.leave(ctx, last)
	c.cancel(&Error{Op: "use connection", Kind: ErrClosed})
	c.mu.Lock()
	if c.failure == nil {
		c.failure = &Error{Op: "connection", Kind: ErrClosed}
	}
	c.endAllLocked(c.failure)
	l := c.link
	c.mu.Unlock()
	if l != nil {
		l.finish(ctx) // it still takes from the queue: the ShutdownInfo is there
	}
	c.mu.Lock()
	c.link = nil
	c.mu.Unlock()
	c.events.close()
	c.parts.Wait()
	return err
}

const defaultCloseBound = 15 * time.Second

func closeBound(d time.Duration) time.Duration {
	if d <= 0 {
		return defaultCloseBound
	}
	return d
}

// leave takes the connection off the broker (R-CLIENT-57).
func (c *Connection) leave(ctx context.Context, last int64) error {
	c.mu.Lock()
	if c.link == nil || c.failure != nil {
		c.mu.Unlock()
		return nil
	}
	if c.watching != nil {
		c.postLocked(&wire.RemoveInfo{ObjectID: c.watching.id, LastDeliveredSequenceID: wire.LastDeliveredNone})
	}
	k := c.callLocked(&wire.RemoveInfo{ObjectID: c.user.ConnectionID, LastDeliveredSequenceID: last}, nil)
	c.mu.Unlock()
	_, err := c.await(ctx, "close connection", k)
	if errors.Is(err, ErrUnavailable) { // it broke on the way: closed is closed
		err = nil
	}
	c.mu.Lock()
	c.postLocked(&wire.ShutdownInfo{})
	c.mu.Unlock()
	return err
}

// abandon ends a connection that was never opened.
func (c *Connection) abandon(err error) {
	c.mu.Lock()
	c.closing = true
	c.failLocked(err)
	l := c.link
	c.link = nil
	c.mu.Unlock()
	c.cancel(err)
	if l != nil {
		l.close()
	}
	c.events.close()
	c.parts.Wait()
}

// failLocked ends the connection for good: everybody who waits is told.
func (c *Connection) failLocked(err error) {
	if c.failure != nil {
		return
	}
	c.failure = err
	c.endAllLocked(err)
	if !c.closing {
		c.events.post(event{err: err})
	}
}

// endAllLocked wakes whoever waits for anything.
func (c *Connection) endAllLocked(err error) {
	for id, k := range c.pending {
		delete(c.pending, id)
		k.complete(nil, err)
	}
	for _, s := range c.sessions {
		s.changed.ring()
	}
	c.changed.ring()
}
