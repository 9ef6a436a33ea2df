package broker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/store"
)

// A disk is free space that a test sets.
type disk struct{ free atomic.Uint64 }

func (d *disk) space() (store.Space, error) {
	return store.Space{FreeBytes: d.free.Load(), TotalBytes: 100 << 30}, nil
}

const limit = 2 << 30 // 2 % of the disk is larger than 256 MiB

func TestProducersAreRefusedWhileTheDiskIsNearlyFull(t *testing.T) {
	d := &disk{}
	d.free.Store(limit + 1)
	inHouse(t, func(o *Options) { o.Space = d.space }, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "m1"), ""))
		c.must(c.send(c.msg(orders, "m2"), ""))
		k := c.consume(orders)
		got := c.take()
		d.free.Store(limit - 1)
		time.Sleep(2 * spaceInterval)
		if err := c.send(c.msg(orders, "m3"), ""); !errors.Is(err, message.ErrOverLimit) {
			t.Errorf("send to a full disk: %v, want over limit", err)
		}
		c.must(c.c.Begin("TX:1"))
		if err := c.send(c.msg(orders, "m4"), "TX:1"); !errors.Is(err, message.ErrOverLimit) {
			t.Errorf("transacted send to a full disk: %v, want over limit", err)
		}
		// Acknowledging, dead-lettering and reading go on.
		c.must(c.ack(queue.Standard, k, got[0], got[0], 1, ""))
		c.must(c.ack(queue.Poison, k, got[1], got[1], 1, "", poisonText(1)))
		c.must(c.send(c.msg(orders, "passing", func(m *message.Message) { m.Persistent = false }), ""))
		c.consume(dlq)
		want(t, "while full", c.take(), "passing", "m2")
		if n := h.broker.Counted(DiskLow); n != 1 {
			t.Errorf("told %d times, want once", n)
		}
		d.free.Store(limit + 1)
		time.Sleep(2 * spaceInterval)
		c.must(c.send(c.msg(orders, "m5"), ""))
		want(t, "after", c.take(), "m5")
		c.c.Close(message.Closed, "", -1)
	})
}

// What a fast disk takes in a second may be more than the reserve: so it is looked at
// after so many bytes, too, the oftener the less is left.
func TestFastProducersAreRefusedBeforeTheReserveIsUsedUp(t *testing.T) {
	const body, above = 1 << 20, 256 << 20
	for name, tx := range map[string]string{"alone": "", "in transactions": "TX:1"} {
		t.Run(name, func(t *testing.T) {
			d := &disk{}
			d.free.Store(limit + above)
			inHouse(t, func(o *Options) { o.Space = d.space }, func(h *house) {
				c := h.client()
				start := time.Now()
				large := strings.Repeat("x", body)
				for n := range above {
					if tx != "" {
						c.must(c.c.Begin(tx))
					}
					err := c.send(c.msg(orders, large), tx)
					if free := d.free.Load(); free < limit-8*body || err != nil && n < 64 {
						t.Errorf("after %d messages %d MiB are free, of which %d are the reserve: %v", n, free>>20, limit>>20, err)
						break
					}
					if errors.Is(err, message.ErrOverLimit) {
						break
					}
					c.must(err)
					if tx != "" {
						c.must(c.settle(c.c.Commit, tx))
					}
					d.free.Add(^uint64(2*body - 1)) // its log, and its table
					synctest.Wait()
				}
				if took := time.Since(start); took >= spaceInterval {
					t.Errorf("it took %v", took)
				}
				c.c.Close(message.ConnectionLost, "", -1)
			})
		})
	}
}

func TestProducersWaitForTheDiskIfAsked(t *testing.T) {
	d := &disk{}
	inHouse(t, func(o *Options) { o.Space, o.BlockWhenFull = d.space, true }, func(h *house) {
		c := h.client()
		time.AfterFunc(time.Hour, func() { d.free.Store(limit + 1) })
		start := time.Now()
		c.must(c.send(c.msg(orders, "m1"), ""))
		if waited := time.Since(start); waited < time.Hour || waited > time.Hour+2*spaceInterval {
			t.Errorf("waited %v, want an hour", waited)
		}
		d.free.Store(0)
		time.Sleep(2 * spaceInterval)
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
		defer cancel()
		answered := make(chan error, 1)
		c.c.Send(ctx, c.msg(orders, "m2"), "", func(err error) { answered <- err })
		if err := <-answered; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("send that gave up: %v", err)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestLargeTransactionIsStagedAndComesOutWhole(t *testing.T) {
	inHouse(t, func(o *Options) { o.Limits.TransactionBytes = 4096 }, func(h *house) {
		c := h.client()
		c.must(c.c.Begin("TX:1"))
		c.must(c.c.Begin("TX:2"))
		for _, s := range bodies(20) {
			c.must(c.send(c.msg(orders, s), "TX:1"))
			c.must(c.send(c.msg(orders, "never "+s), "TX:2"))
		}
		c.must(c.settle(c.c.Commit, "TX:1"))
		c.must(c.settle(c.c.Rollback, "TX:2"))
		h.kill()
		c = h.client()
		k := c.consume(orders)
		got := c.take()
		want(t, "committed", got, bodies(20)...)
		c.must(c.ack(queue.Standard, k, got[0], got[19], 20, ""))
		c.take()
		if n := h.broker.Queues()[0].Messages; n != 0 {
			t.Errorf("%d messages left", n)
		}
		c.c.Close(message.Closed, "", -1)
	})
}

func TestSendBeforeATransactionStaysAheadOfIt(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		var wanted []string
		for i := range 100 {
			a, b := bodies(200)[2*i], bodies(200)[2*i+1]
			wanted = append(wanted, a, b)
			answered := make(chan error, 1)
			c.c.Send(h.t.Context(), c.msg(orders, a), "", func(err error) { answered <- err }) // nobody waits yet
			c.must(c.c.Begin("TX"))
			c.must(c.send(c.msg(orders, b), "TX"))
			c.must(c.settle(c.c.Commit, "TX"))
			c.must(<-answered)
		}
		c.consume(orders)
		want(t, "order", c.take(), wanted...)
		c.c.Close(message.Closed, "", -1)
	})
}

// TestStoreLimit is storeUsage (spec section 7.6), in bytes and in percent of the disk.
func TestStoreLimit(t *testing.T) {
	t.Parallel()
	space := func(used uint64) store.Space {
		return store.Space{FreeBytes: 50 << 30, TotalBytes: 100 << 30, UsedBytes: used}
	}
	for name, c := range map[string]struct {
		limits Limits
		used   uint64
		full   bool
	}{
		"no limit":               {Limits{}, 90 << 30, false},
		"below":                  {Limits{MaxStoreBytes: 10 << 30}, 10 << 30, false},
		"above":                  {Limits{MaxStoreBytes: 10 << 30}, 10<<30 + 1, true},
		"percent below":          {Limits{MaxStorePercent: 20}, 20 << 30, false},
		"percent above":          {Limits{MaxStorePercent: 20}, 21 << 30, true},
		"the smaller one: bytes": {Limits{MaxStoreBytes: 10 << 30, MaxStorePercent: 20}, 15 << 30, true},
		"the smaller one: share": {Limits{MaxStoreBytes: 30 << 30, MaxStorePercent: 20}, 25 << 30, true},
		"the reserve holds, too": {Limits{MaxStoreBytes: 99 << 30, MinFreeBytes: 51 << 30}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.limits.exceeded(space(c.used)); (err != nil) != c.full || err != nil && !errors.Is(err, message.ErrOverLimit) {
				t.Errorf("%v, want full %t", err, c.full)
			}
		})
	}
}

// What is not to outlive the process goes to the disk all the same where there is no
// memory for it. Its producers are stopped then as all others are: else they would fill
// the disk, and the broker would end.
func TestNonPersistentMessagesDoNotFillTheDisk(t *testing.T) {
	passing := func(m *message.Message) { m.Persistent = false }
	news := message.Destination{Kind: message.Topic, Name: "NEWS"}
	for name, c := range map[string]struct {
		to     message.Destination
		limits Limits
		body   string
	}{
		"a deep queue":        {orders, Limits{WindowEntries: 100}, "x"},
		"no memory is left":   {orders, Limits{MessageBytes: 1 << 20}, strings.Repeat("x", 20_000)},
		"a subscriber behind": {news, Limits{WindowEntries: 100}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{}
			inHouse(t, func(o *Options) { o.Space, o.Limits = d.space, c.limits }, func(h *house) {
				p, k := h.client(), h.client()
				id := k.consume(c.to, func(s *ConsumerSpec) { s.Prefetch = 1 })
				refused := 0
				for range 1000 {
					if err := p.send(p.msg(c.to, c.body, passing), ""); errors.Is(err, message.ErrOverLimit) {
						refused++
					} else {
						p.must(err)
					}
				}
				if refused == 0 || refused > 990 {
					t.Errorf("%d of 1000 messages were refused", refused)
				}
				if n := h.storedTransient(); n > 3 {
					t.Errorf("%d of them are on the full disk", n)
				}
				got := k.take()
				for len(got) > 0 { // consuming makes room
					k.must(k.ack(queue.Standard, id, got[0], got[0], 1, ""))
					got = k.take()
				}
				p.must(p.send(p.msg(c.to, "after", passing), ""))
				want(t, "afterwards", k.take(), "after")
				p.c.Close(message.Closed, "", -1)
				k.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// storedTransient counts the entries in the store that do not outlive the process.
func (h *house) storedTransient() int {
	h.t.Helper()
	n := 0
	if err := h.shard.Scan([]byte("te"), []byte("tf"), func([]byte, []byte) bool { n++; return true }); err != nil {
		h.t.Fatal(err)
	}
	return n
}
