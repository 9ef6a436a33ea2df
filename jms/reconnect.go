package jms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A brokerList is where to connect to. Guarded by the connection's mutex.
type brokerList struct {
	own     []endpoint // of the URL
	told    []endpoint // by the broker: tried first (OpenWire 13)
	next    *endpoint  // the broker wants us there; nil: anywhere
	move    bool       // the broker wants us there, and has said so before the connection was open
	left    string     // the address of the link that has broken: tried last; empty: none has
	opening *link      // on its way to become the connection's link
	broken  chan struct{}
	spare   []*link // backup=true: connected, kept alive, and waiting
}

func newBrokerList(u brokerURL) brokerList {
	return brokerList{own: u.endpoints, broken: make(chan struct{}, 1)}
}

// open connects for the first time.
func (c *Connection) open(ctx context.Context) error {
	if c.url.failover == nil {
		return c.connect(ctx, c.url.endpoints[0])
	}
	f := c.url.failover
	limit := f.startupMaxReconnectAttempts
	if limit < 0 {
		limit = f.maxReconnectAttempts
	}
	if err := c.reconnect(ctx, limit, false); err != nil {
		return err
	}
	c.parts.Go(c.keepConnected)
	return nil
}

// keepConnected connects anew each time the link breaks, until the connection ends.
func (c *Connection) keepConnected() {
	f := c.url.failover
	var look <-chan time.Time
	stop := func() {}
	if f.backup || f.priorityBackup {
		look, stop = c.clock.At(c.clock.Now().Add(backupPause))
	}
	defer func() { stop() }()
	for {
		select {
		case <-c.root.Done():
			c.dropSpares()
			return
		case <-look:
			c.lookAround()
			look, stop = c.clock.At(c.clock.Now().Add(backupPause))
			continue
		case <-c.brokers.broken:
		}
		c.mu.Lock()
		connected := c.link != nil
		c.mu.Unlock()
		if connected {
			continue
		}
		if err := c.reconnect(c.root, f.maxReconnectAttempts, true); err != nil {
			c.mu.Lock()
			c.failLocked(err)
			c.mu.Unlock()
			c.dropSpares()
			return
		}
	}
}

// reconnect tries the brokers in turn until one takes us, ctx ends, or limit attempts
// after the first failed; -1: no limit.
func (c *Connection) reconnect(ctx context.Context, limit int, again bool) error {
	f := c.url.failover
	delay := f.initialReconnectDelay
	var last error
	for attempt := 0; ; attempt++ {
		if again && !f.reconnectSupported {
			return &Error{Op: "fail over", Kind: ErrUnavailable, Text: "reconnectSupported=false"}
		}
		for _, e := range c.candidates(ctx) {
			if l := c.spare(e); l != nil {
				if last = c.adopt(ctx, l, again); last == nil {
					return nil
				}
			}
			if last = c.connectAs(ctx, e, again); last == nil {
				return nil
			}
			if ctx.Err() != nil {
				return &Error{Op: "connect", Kind: ErrUnavailable, Err: errors.Join(context.Cause(ctx), last)}
			}
			if errors.Is(last, ErrSecurity) || errors.Is(last, ErrInvalidClientID) && !again {
				return last // no other attempt will do better (OpenWire 14)
			}
		}
		if limit >= 0 && attempt >= limit {
			return &Error{Op: "connect", Kind: ErrUnavailable, Text: fmt.Sprintf("no broker after %d attempts", attempt+1), Err: last}
		}
		if w := f.warnAfterReconnectAttempts; w > 0 && (attempt+1)%w == 0 {
			c.log.Warn("jms: still no broker", "attempts", attempt+1, "err", last)
		}
		wake, stop := c.clock.At(c.clock.Now().Add(delay))
		select {
		case <-wake:
		case <-ctx.Done():
			stop()
			return &Error{Op: "connect", Kind: ErrUnavailable, Err: errors.Join(context.Cause(ctx), last)}
		}
		if f.useExponentialBackOff {
			delay = min(time.Duration(float64(delay)*f.reconnectDelayExponent), f.maxReconnectDelay)
		}
	}
}

// candidates lists where to try, in order.
func (c *Connection) candidates(ctx context.Context) []endpoint {
	f := c.url.failover
	fromFile, err := endpointsFrom(ctx, f.updateURIsURL)
	if err != nil {
		c.log.Warn("jms: updateURIsURL", "err", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.brokers.next; n != nil {
		c.brokers.next = nil
		return []endpoint{*n}
	}
	own := append(slices.Clone(c.brokers.own), fromFile...)
	if f.randomize {
		rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	}
	all := append(slices.Clone(c.brokers.told), own...)
	if f.priorityBackup {
		slices.SortStableFunc(all, func(a, b endpoint) int { return c.rank(a) - c.rank(b) })
	}
	slices.SortStableFunc(all, func(a, b endpoint) int { return c.lastLocked(a) - c.lastLocked(b) })
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(e endpoint) bool {
		was := seen[e.address]
		seen[e.address] = true
		return was
	})
}

// lastLocked is 1 for the broker whose connection has broken: another one may be there
// sooner, and a broker that sends its clients away ends their connections.
func (c *Connection) lastLocked(e endpoint) int {
	if e.address == c.brokers.left {
		return 1
	}
	return 0
}

// rank is 0 for a broker that is preferred: one of priorityURIs, or the first of the URL.
func (c *Connection) rank(e endpoint) int {
	f := c.url.failover
	if f.priorityURIs == "" {
		if len(c.url.endpoints) > 0 && e.address == c.url.endpoints[0].address {
			return 0
		}
		return 1
	}
	for _, u := range splitList(f.priorityURIs) {
		if p, _, err := parseChild(u, nil); err == nil && p[0].address == e.address {
			return 0
		}
	}
	return 1
}

// Limits of a list of brokers that is read.
const (
	maxListBytes = 1 << 20
	listTime     = 5 * time.Second // for a list that is asked for over HTTP
)

// endpointsFrom reads more brokers from a file or by HTTP: URIs parted by commas or
// lines.
func endpointsFrom(ctx context.Context, where string) ([]endpoint, error) {
	if where == "" {
		return nil, nil
	}
	b, err := readList(ctx, where)
	if err != nil {
		return nil, err
	}
	var all []endpoint
	for _, part := range splitList(strings.ReplaceAll(string(b), "\n", ",")) {
		es, _, err := parseChild(part, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, es...)
	}
	return all, nil
}

func readList(ctx context.Context, where string) ([]byte, error) {
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		return fetchList(ctx, where)
	}
	path := strings.TrimPrefix(strings.TrimPrefix(where, "file:"), "//")
	if strings.Contains(path, "://") {
		return nil, &Error{Op: "updateURIsURL " + where, Kind: ErrInvalidOption, Text: "only files, http and https can be read"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxListBytes))
}

// fetchList asks for a list by HTTP.
func fetchList(ctx context.Context, where string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, &Error{Op: "updateURIsURL " + where, Kind: ErrUnavailable, Text: r.Status}
	}
	return io.ReadAll(io.LimitReader(r.Body, maxListBytes))
}

func (c *Connection) connect(ctx context.Context, e endpoint) error {
	return c.connectAs(ctx, e, false)
}

// connectAs connects to one broker and makes it the connection's.
func (c *Connection) connectAs(ctx context.Context, e endpoint, again bool) error {
	l, err := c.dialLink(ctx, e)
	if err != nil {
		return err
	}
	return c.adopt(ctx, l, again)
}

// dialLink makes a link that lives, and is nobody's yet.
func (c *Connection) dialLink(ctx context.Context, e endpoint) (*link, error) {
	c.attempts.Add(1)
	l, err := dial(ctx, e, c.dial, c.tls, c.clock)
	if err != nil {
		return nil, err
	}
	l.start(&linkSource{c: c, l: l}, func(ds wire.DataStructure) { c.received(l, ds) }, func(err error) { c.interrupted(l, err) })
	return l, nil
}

// adopt opens the connection on a negotiated link (OpenWire 13), replays what there is,
// and lets the queue flow.
func (c *Connection) adopt(ctx context.Context, l *link, again bool) error {
	info := *c.user
	info.FailoverReconnect = again
	c.mu.Lock()
	c.brokers.opening, c.brokers.move = l, false
	if c.url.failover != nil {
		l.first = append(l.first, item{cmd: &wire.ConnectionControl{FaultTolerant: true, ConnectedBrokers: wire.NewText(""), ReconnectTo: wire.NewText("")}})
	}
	k := &call{id: c.numberLocked(&info, true), cmd: &info, done: make(chan struct{})}
	c.pending[k.id] = k
	l.first = append(l.first, c.itemOf(k))
	if l.hello != nil { // it was a spare one: the broker has spoken already
		c.brokerInfoLocked(l.hello)
	}
	select {
	case <-l.broken: // and has gone since
		c.completeLocked(k.id, nil, &Error{Op: "connect to " + l.endpoint.uri, Kind: ErrUnavailable, Err: l.why})
	default:
	}
	c.mu.Unlock()
	l.poke()
	wait, done := bounded(ctx, c.connectBound())
	_, err := c.await(wait, "connect to "+l.endpoint.uri, k)
	done()
	c.mu.Lock()
	delete(c.pending, k.id)
	c.brokers.opening = nil
	if err == nil && c.failure != nil {
		err = c.failure
	}
	if err != nil {
		c.mu.Unlock()
		l.close()
		if !errors.Is(err, ErrSecurity) && !errors.Is(err, ErrInvalidClientID) && !errors.Is(err, ErrUnavailable) {
			err = &Error{Op: "connect", Kind: ErrUnavailable, Err: err}
		}
		return err
	}
	select {
	case <-l.broken:
		c.mu.Unlock()
		l.close()
		return &Error{Op: "connect to " + l.endpoint.uri, Kind: ErrUnavailable, Err: l.why}
	default:
	}
	c.link, c.brokers.left = l, ""
	c.replayLocked()
	c.changed.ring()
	for _, s := range c.sessions {
		s.changed.ring()
	}
	if again {
		c.events.post(event{transport: TransportEvent{Broker: l.endpoint.uri}})
		c.log.Info("jms: connection resumed", "broker", l.endpoint.uri)
	} else {
		c.watchLocked()
	}
	l.poke()
	if c.brokers.move { // nothing is under way yet
		c.brokers.move = false
		c.rebalanceLocked()
	}
	c.mu.Unlock()
	return nil
}

// connectBound is how long the answer to ConnectionInfo is waited for.
func (c *Connection) connectBound() time.Duration {
	if d := c.o.Timeouts.ConnectResponse; d > 0 {
		return d
	}
	if c.url.failover != nil {
		return defaultConnectionTimeout
	}
	return 0
}

// interrupted is called when a link has broken.
func (c *Connection) interrupted(l *link, why error) {
	why = &Error{Op: "connection to " + l.endpoint.uri, Kind: ErrUnavailable, Err: why}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.brokers.opening == l {
		for id, k := range c.pending {
			if _, ok := k.cmd.(*wire.ConnectionInfo); ok {
				c.completeLocked(id, nil, why)
			}
		}
		return
	}
	if c.link != l {
		return
	}
	c.link, c.brokers.left = nil, l.endpoint.address
	c.parts.Go(l.close) // waits for what is left of it; parts is not yet waited for while there is a link
	switch {
	case c.closing:
		c.endAllLocked(why)
		return
	case c.url.failover == nil:
		c.failLocked(why)
		return
	}
	c.log.Info("jms: connection interrupted", "err", why)
	c.events.post(event{transport: TransportEvent{Interrupted: true, Err: why}})
	c.suspendLocked()
	c.changed.ring()
	for _, s := range c.sessions {
		s.changed.ring()
	}
	select {
	case c.brokers.broken <- struct{}{}:
	default:
	}
}

// connectionControlLocked goes where the broker wants its clients (OpenWire 13). A plain
// connection stays where it is.
func (c *Connection) connectionControlLocked(m *wire.ConnectionControl) {
	f := c.url.failover
	if f == nil {
		return
	}
	if to := m.ReconnectTo.Value; to != "" && f.reconnectSupported {
		es, _, err := parseChild(to, nil)
		if err != nil {
			c.log.Warn("jms: the broker wants us where we cannot go", "err", err)
			return
		}
		c.brokers.own, c.brokers.next = es, &es[0]
		c.moveLocked()
		return
	}
	if m.ConnectedBrokers.Value == "" || !f.updateURIsSupported {
		return
	}
	var told []endpoint
	for _, part := range splitList(m.ConnectedBrokers.Value) {
		es, _, err := parseChild(part, nil)
		if err != nil {
			c.log.Warn("jms: the broker tells of one that we cannot use", "err", err)
			continue
		}
		told = append(told, es...)
	}
	same := slices.EqualFunc(told, c.brokers.told, func(a, b endpoint) bool { return a.address == b.address })
	c.brokers.told = told
	switch {
	case !m.RebalanceConnection || !f.rebalanceUpdateURIs || same || len(told) == 0:
	case c.link == nil: // the answer to ConnectionInfo is still to come
		c.brokers.move = true
	default:
		c.rebalanceLocked()
	}
}

// rebalanceLocked goes to the first of the brokers that the present one tells of, if it
// is another.
func (c *Connection) rebalanceLocked() {
	if told := c.brokers.told; len(told) > 0 && told[0].address != c.link.endpoint.address {
		c.brokers.next = &told[0]
		c.moveLocked()
	}
}

// moveLocked gives the present broker up.
func (c *Connection) moveLocked() {
	if l := c.link; l != nil {
		l.end(errors.New("the broker sends its clients elsewhere"))
	}
}

// backupPause is how often spare links, and better brokers, are looked for.
const backupPause = time.Second

// lookAround keeps spare links to other brokers, and moves to a better one.
func (c *Connection) lookAround() {
	f := c.url.failover
	c.mu.Lock()
	current := c.link
	c.brokers.spare = slices.DeleteFunc(c.brokers.spare, func(l *link) bool {
		select {
		case <-l.broken:
			return true
		default:
			return false
		}
	})
	have := len(c.brokers.spare)
	c.mu.Unlock()
	if current == nil {
		return
	}
	better := f.priorityBackup && c.rank(current.endpoint) > 0
	for _, e := range c.candidates(c.root) {
		if e.address == current.endpoint.address || better && c.rank(e) > 0 || !better && (!f.backup || have >= f.backupPoolSize) {
			continue
		}
		l, err := c.dialLink(c.root, e)
		if err != nil {
			continue
		}
		c.mu.Lock()
		c.brokers.spare = append(c.brokers.spare, l)
		if better {
			c.brokers.next = &e
			current.end(errors.New("a broker of higher priority is there"))
		}
		c.mu.Unlock()
		if have++; better {
			return
		}
	}
}

// spare takes the spare link to a broker; nil: there is none.
func (c *Connection) spare(e endpoint) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range c.brokers.spare {
		if l.endpoint.address == e.address {
			c.brokers.spare = slices.Delete(c.brokers.spare, i, i+1)
			return l
		}
	}
	return nil
}

func (c *Connection) dropSpares() {
	c.mu.Lock()
	spare := c.brokers.spare
	c.brokers.spare = nil
	c.mu.Unlock()
	for _, l := range spare {
		l.close()
	}
}
