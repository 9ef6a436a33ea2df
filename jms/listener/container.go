package listener

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/clock"
	"github.com/nixiemq/nixie/jms"
)

// A Container runs a handler on the messages of a destination. New makes one.
type Container struct {
	o     Options
	clock clock.Clock
	trail trail

	running atomic.Bool
	workers sync.WaitGroup

	received, succeeded, failed, redelivered, connects, attempts atomic.Int64

	mu sync.Mutex
	// Guarded by mu:
	n, busy int                // workers
	shared  *jms.Connection    // of all workers; nil: none is open
	opening chan struct{}      // closed when the attempt that is under way has ended; nil: none is
	tries   int                // attempts that failed in a row
	fatal   error              // why Run ends before its time
	quit    context.CancelFunc // ends the receives
}

// New checks the options.
func New(o Options) (*Container, error) {
	if err := o.withDefaults(); err != nil {
		return nil, err
	}
	return &Container{o: o, clock: clock.System{}}, nil
}

// Stats are the present counts. It may be called at any time.
func (c *Container) Stats() Stats {
	c.mu.Lock()
	n, busy := c.n, c.busy
	c.mu.Unlock()
	return Stats{Workers: n, Busy: busy, Received: c.received.Load(), Succeeded: c.succeeded.Load(), Failed: c.failed.Load(),
		Redelivered: c.redelivered.Load(), Connects: c.connects.Load(), Attempts: c.attempts.Load()}
}

// Run processes messages until ctx ends; then it drains: nothing more is received, and
// handlers at work are waited for, DrainTimeout long with their contexts alive. It
// returns nil then, or the error that BackOff gave up at. When it returns, no
// goroutine and no connection of it is left. It may be called once.
func (c *Container) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return errors.New("listener: Run was called before")
	}
	receiving, quit := context.WithCancel(ctx)
	defer quit()
	handling, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	c.mu.Lock()
	c.quit = quit
	for range c.o.MinConcurrency {
		c.startLocked(receiving, handling)
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		c.workers.Wait()
		close(done)
	}()
	select {
	case <-receiving.Done():
		c.drain(done, abort)
	case <-done:
	}
	<-done
	c.mu.Lock()
	shared, err := c.shared, c.fatal
	c.shared = nil
	c.mu.Unlock()
	if shared != nil {
		err = errors.Join(err, shared.Close())
	}
	return err
}

// drain waits for the workers, and loses patience after DrainTimeout.
func (c *Container) drain(done <-chan struct{}, abort context.CancelFunc) {
	wake, stop := c.clock.At(c.clock.Now().Add(c.o.DrainTimeout))
	defer stop()
	select {
	case <-done:
	case <-wake:
		c.o.Log.Warn("listener: handlers take longer than the drain time-out", "dest", c.o.Destination, "timeout", c.o.DrainTimeout)
		abort()
	}
}

// startLocked starts a worker.
func (c *Container) startLocked(receiving, handling context.Context) {
	c.n++
	w := &worker{c: c, receiving: receiving, handling: handling}
	c.workers.Go(w.run)
	c.tellWorkers(c.n)
}

func (c *Container) tellWorkers(n int) {
	if c.o.Hooks.Workers != nil {
		c.o.Hooks.Workers(n)
	}
}

// begin counts a worker busy, and starts another where all are.
func (c *Container) begin(w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	if c.busy == c.n && c.n < c.o.MaxConcurrency && w.receiving.Err() == nil {
		c.startLocked(w.receiving, w.handling)
	}
}

func (c *Container) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
}

// mayLeave reports whether a worker without work is one too many, and counts it off.
func (c *Container) mayLeave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n <= c.o.MinConcurrency {
		return false
	}
	c.n--
	c.tellWorkers(c.n)
	return true
}

// leave counts a worker off.
func (c *Container) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.tellWorkers(c.n)
}

// connection gives a worker its connection: the shared one, or at CacheNone one of its
// own. While there is no broker it goes on trying; only one worker does at a time.
func (c *Container) connection(ctx context.Context) (*jms.Connection, error) {
	for {
		c.mu.Lock()
		if c.shared != nil && c.o.Cache != CacheNone {
			shared := c.shared
			c.mu.Unlock()
			return shared, nil
		}
		if c.fatal != nil {
			c.mu.Unlock()
			return nil, c.fatal
		}
		if opening := c.opening; opening != nil {
			c.mu.Unlock()
			select {
			case <-opening:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		c.opening = make(chan struct{})
		c.mu.Unlock()
		conn, err := c.open(ctx)
		c.mu.Lock()
		close(c.opening)
		c.opening = nil
		if err == nil && c.o.Cache != CacheNone {
			c.shared = conn
		}
		c.mu.Unlock()
		return conn, err
	}
}

// open connects, however often it takes.
func (c *Container) open(ctx context.Context) (*jms.Connection, error) {
	for {
		conn, err := c.o.Factory.CreateConnection(ctx)
		if err == nil {
			if err = conn.Start(); err == nil {
				c.connects.Add(1)
				c.mu.Lock()
				c.tries = 0
				c.mu.Unlock()
				conn.OnException(func(err error) { c.o.Log.Warn("listener: connection", "dest", c.o.Destination, "err", err) })
				return conn, nil
			}
			_ = conn.Close()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := c.pause(ctx, err); err != nil {
			return nil, err
		}
	}
}

// pause waits after something that may be better later. An error is the end.
func (c *Container) pause(ctx context.Context, why error) error {
	c.attempts.Add(1)
	c.mu.Lock()
	c.tries++
	attempt := c.tries
	c.mu.Unlock()
	if c.o.Hooks.Recovering != nil {
		c.o.Hooks.Recovering(attempt, why)
	}
	wait := c.o.RecoveryInterval
	if c.o.BackOff != nil {
		wait = c.o.BackOff(attempt)
	}
	c.o.Log.Warn("listener: no broker, or it refuses", "dest", c.o.Destination, "attempt", attempt, "pause", wait, "err", why)
	if wait < 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fatal = why
		c.quit()
		return why
	}
	return c.sleep(ctx, wait)
}

func (c *Container) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	wake, stop := c.clock.At(c.clock.Now().Add(d))
	defer stop()
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lost is called by a worker whose connection is of no more use.
func (c *Container) lost(conn *jms.Connection) {
	c.mu.Lock()
	if c.shared == conn {
		c.shared = nil
	}
	c.mu.Unlock()
	_ = conn.Close() // by whoever comes first; it ends at once, there is no broker to say good-bye to
}

// ExponentialBackOff is a BackOff: first, then each pause factor times the one before, at
// most limit; after attempts of them (0: no end) Run gives up.
func ExponentialBackOff(first time.Duration, factor float64, limit time.Duration, attempts int) func(int) time.Duration {
	return func(attempt int) time.Duration {
		if attempts > 0 && attempt > attempts {
			return -1
		}
		d := float64(first)
		for range attempt - 1 {
			if d *= factor; d >= float64(limit) {
				return limit
			}
		}
		return min(time.Duration(d), limit)
	}
}
