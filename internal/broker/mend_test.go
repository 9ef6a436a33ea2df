package broker

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// A record is a key and a value of a store.
type record struct{ key, value []byte }

// dump reads all that a stopped house has stored.
func (h *house) dump() (all []record) {
	h.t.Helper()
	h.behind(func(shard store.Shard, _ *store.Batch) {
		err := shard.Scan([]byte{0}, []byte{0xff}, func(k, v []byte) bool {
			all = append(all, record{bytes.Clone(k), bytes.Clone(v)})
			return true
		})
		if err != nil {
			h.t.Fatal(err)
		}
	})
	return all
}

// behind changes the store of a stopped house.
func (h *house) behind(f func(store.Shard, *store.Batch)) {
	h.t.Helper()
	h.damaged.Store(true)
	shard, err := h.store.Acquire(h.t.Context(), 0, "test")
	if err != nil {
		h.t.Fatal(err)
	}
	b, answered := new(store.Batch), make(chan error, 1)
	f(shard, b)
	shard.Commit(b, func(err error) { answered <- err })
	if err := <-answered; err != nil {
		h.t.Fatal(err)
	}
	if err := shard.Release(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// openOn opens the house, which is stopped, on other records.
func (h *house) openOn(all []record) {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.store = memstore.New(memstore.Options{Crashable: true, SyncTime: time.Millisecond})
	h.behind(func(_ store.Shard, b *store.Batch) {
		for _, r := range all {
			b.Put(r.key, r.value)
		}
	})
	h.open()
}

var (
	xaIn  = queueNamed("XA.IN")
	xaOut = queueNamed("XA.OUT")
)

// fill puts in something of everything that there is a record for, and ends as a process
// that was killed does.
func (h *house) fill() {
	h.t.Helper()
	for _, name := range []string{"s1", "s2"} {
		k := h.client()
		k.c.info.ClientID = name
		k.consume(news, func(s *ConsumerSpec) { s.Subscription = name })
		k.c.Close(message.Closed, "", -1)
	}
	c := h.client()
	for _, text := range []string{"n1", "n2"} {
		c.must(c.send(c.msg(news, text), ""))
	}
	for _, text := range []string{"m1", "m2", "m3", "m4"} {
		c.must(c.send(c.msg(orders, text, expiring(24*time.Hour)), ""))
	}
	c.must(c.send(c.msg(orders, "job", in(time.Hour)), ""))
	c.must(c.send(c.msg(xaIn, "a"), ""))
	c.must(c.send(c.msg(xaIn, "b"), ""))
	c.come(queueNamed("Consumer.A.VirtualTopic.X"), "region = 'eu'")
	k := c.consume(orders)
	got := c.take()
	c.must(c.ack(queue.Poison, k, got[1], got[1], 1, "", "no"))
	k = c.consume(xaIn)
	got = c.take()
	c.beginXA(xidA)
	c.must(c.ack(queue.Standard, k, got[0], got[0], 1, xidA.String()))
	c.must(c.send(c.msg(xaOut, "x"), xidA.String()))
	if _, err := c.prepare(xidA); err != nil {
		h.t.Fatal(err)
	}
	h.kill()
	h.stop()
}

// drain takes all that the house gives its clients in two days, by its text: how often,
// and how many dead letters cannot be read.
func (h *house) drain() (got map[string]int, unreadable int) {
	h.t.Helper()
	got = map[string]int{}
	c := h.client()
	if err := c.commitXA(xidA, false); err != nil {
		h.t.Errorf("the prepared transaction: %v", err)
	}
	var all []*client
	seen := map[string]bool{}
	for range 60 {
		for _, q := range h.broker.Queues() {
			if !seen[q.Name.Name] && q.Name != dlq {
				seen[q.Name.Name] = true
				k := h.client()
				k.last = k.consume(q.Name)
				all = append(all, k)
			}
		}
		for _, name := range []string{"s1", "s2"} {
			if !seen[name] {
				seen[name] = true
				k := h.client()
				k.c.info.ClientID = name
				k.last = k.consume(news, func(s *ConsumerSpec) { s.Subscription = name })
				all = append(all, k)
			}
		}
		for _, k := range all {
			k.each(func(d *Delivery) {
				m, err := d.Load()
				if err != nil {
					d.Undispatchable(err)
					return
				}
				got[string(m.Body)]++
				k.must(k.ack(queue.Standard, k.last, *d, *d, 1, ""))
			})
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	}
	page, _, err := h.broker.Look(h.t.Context(), At(dlq), Cursor{}, 100)
	if err == nil {
		for i := range page {
			if m, err := h.broker.Read(&page[i]); err == nil {
				got[string(m.Body)]++
			} else {
				unreadable++
			}
		}
	}
	return got, unreadable
}

// Each record of the store is damaged, one at a time, and in several ways: the broker
// starts, nothing that was not hit is missing, nobody is stopped, what was hit is told of,
// and afterwards all is as if nothing had been.
func TestEachRecordDamaged(t *testing.T) {
	t.Parallel()
	policy := func(o *Options) {
		remembering(SelectorMemory{On: true})(o)
		withProperties(o)
		o.Policy = func(d message.Destination) Policy {
			if d != orders {
				return Policy{}
			}
			return anHourLater(d)
		}
	}
	all := map[string]int{"m1": 1, "m2": 1, "m3": 1, "m4": 1, "n1": 2, "n2": 2, "job": 1, "b": 1, "x": 1}
	var whole []record
	inHouse(t, policy, func(h *house) {
		h.fill()
		whole = h.dump()
		h.open()
		if got, unreadable := h.drain(); !maps.Equal(got, all) || unreadable != 0 {
			t.Errorf("without damage: %v, %d unreadable", got, unreadable)
		}
	})
	kinds := map[byte]bool{}
	for i, r := range whole {
		kinds[r.key[0]] = true
		ways := map[string][]byte{"flipped": bytes.Clone(r.value), "truncated": r.value[:len(r.value)/2], "of another version": append([]byte{9}, r.value[1:]...), "missing": nil}
		ways["flipped"][len(r.value)/2] ^= 8
		for way, v := range ways {
			if r.key[0] == 'v' {
				continue // the store's own: it is refused
			}
			t.Run(fmt.Sprintf("%c %d %s", r.key[0], i, way), func(t *testing.T) {
				t.Parallel()
				changed := slices.Clone(whole)
				changed[i].value = v
				if v == nil {
					changed = slices.Delete(changed, i, i+1)
				}
				oneDamaged(t, policy, all, r.key[0], way, changed)
			})
		}
	}
	for _, k := range "vqedmrxlhnsyjwkpio" {
		if !kinds[byte(k)] {
			t.Errorf("there is no %c record", k)
		}
	}
}

func oneDamaged(t *testing.T, policy func(*Options), all map[string]int, kind byte, way string, changed []record) {
	inHouse(t, policy, func(h *house) {
		h.stop()
		h.openOn(changed)
		got, unreadable := h.drain()
		lost, twice := 0, 0
		for text, n := range all {
			lost += max(n-got[text], 0)
			twice += max(got[text]-n, 0)
		}
		told := h.broker.Counted(RecordDamaged) + h.broker.Counted(Inconsistent)
		mayLose := unreadable
		switch {
		case kind == 'm', kind == 'e' && way == "missing", kind == 'w' && way == "missing":
			mayLose = max(mayLose, 1)
		}
		if lost > mayLose || twice > 0 {
			t.Errorf("%v, want %v", got, all)
		}
		if lost > 0 && unreadable == 0 && told == 0 && kind != 'w' {
			t.Errorf("%v is lost in silence", got)
		}
		if n := h.broker.Counted(DestinationLost); n != 0 {
			t.Errorf("%d destinations were lost", n)
		}
		if bytes.IndexByte([]byte("qednhjpio"), kind) >= 0 && way != "missing" && told == 0 {
			t.Error("nothing was told")
		}
		h.restart()
		for _, q := range append(h.broker.Queues(), h.broker.Subscriptions()...) {
			if left := q.Messages; q.Name != dlq && left != 0 || q.Name == dlq && left != int64(unreadable) {
				t.Errorf("%s has %d messages afterwards", q.Name, left)
			}
		}
		if n := h.broker.ScheduledMessages(); n != 0 && kind != 'w' {
			t.Errorf("%d messages are scheduled afterwards", n)
		}
		if n := h.broker.Counted(RecordDamaged) + h.broker.Counted(Inconsistent); n != 0 {
			t.Errorf("%d records are damaged after another start", n)
		}
	})
}

// truncate cuts the n-th record of a kind short while the broker runs.
func (h *house) truncate(kind byte, n int) {
	h.t.Helper()
	h.damaged.Store(true)
	var batch store.Batch
	err := h.shard.Scan([]byte{kind}, []byte{kind + 1}, func(k, v []byte) bool {
		if n--; n == 0 {
			batch.Delete(bytes.Clone(k))
			batch.Put(bytes.Clone(k), bytes.Clone(v[:len(v)/2]))
		}
		return n > 0
	})
	if err != nil || batch.Len() != 2 {
		h.t.Fatalf("there are no so many records of kind %c: %v", kind, err)
	}
	answered := make(chan error, 1)
	h.shard.Commit(&batch, func(err error) { answered <- err })
	if err := <-answered; err != nil {
		h.t.Fatal(err)
	}
}

// However an entry is come upon that is damaged while the broker runs, it is mended: it
// keeps its place, and only a message that is gone as well becomes a dead letter.
func TestEntryDamagedBehindTheWindow(t *testing.T) {
	t.Parallel()
	window := func(o *Options) { o.Limits.WindowEntries = 2 }
	all := []string{"m1", "m2", "m3", "m4", "m5*1?", "m6", "m7", "m8"}
	for name, test := range map[string]struct {
		do   func(h *house, c *client)
		left []string
	}{
		"delivered": {func(*house, *client) {}, all},
		"browsed": {func(h *house, c *client) {
			p, _, err := h.broker.Look(h.t.Context(), At(orders), Cursor{}, 100)
			if c.must(err); len(p) != len(all) {
				h.t.Errorf("%d entries are shown", len(p))
			}
		}, all},
		"moved": {func(h *house, c *client) {
			o, err := h.broker.Move(h.t.Context(), At(orders), queueNamed("OTHER"), Selection{})
			if c.must(err); o.Taken != len(all) {
				h.t.Errorf("moved: %+v", o)
			}
			h.is(queueNamed("OTHER"), "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8")
		}, nil},
		"purged": {func(h *house, c *client) {
			o, err := h.broker.Purge(h.t.Context(), At(orders), Selection{})
			if c.must(err); o.Taken != len(all) {
				h.t.Errorf("purged: %+v", o)
			}
		}, nil},
		"without its message": {func(h *house, c *client) { h.truncate('m', 5) }, slices.Delete(slices.Clone(all), 4, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, window, func(h *house) {
				c := h.client()
				for i := range all {
					c.must(c.send(c.msg(orders, fmt.Sprintf("m%d", i+1)), ""))
				}
				h.kill()
				h.truncate('e', 5)
				c = h.client()
				test.do(h, c)
				c.last = c.consume(orders)
				var got []string
				for range len(all) {
					c.each(func(d *Delivery) {
						if _, err := d.Load(); err != nil {
							d.Undispatchable(err)
							return
						}
						got = append(got, texts([]Delivery{*d})...)
						c.must(c.ack(queue.Standard, c.last, *d, *d, 1, ""))
					})
				}
				if diff := cmp.Diff(test.left, got); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
				if told, lost := h.broker.Counted(RecordDamaged), h.broker.Counted(DestinationLost); told != 1 || lost != 0 || h.broker.RecordsAside() != 1 {
					t.Errorf("told %d times, %d destinations lost, %d records aside", told, lost, h.broker.RecordsAside())
				}
				h.restart()
				if st, _ := h.broker.Status(orders); st.Messages != 0 || st.Bytes != 0 {
					t.Errorf("%d messages of %d bytes are left", st.Messages, st.Bytes)
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}
