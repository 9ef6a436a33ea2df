package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

var kinds = []string{"a", "b"}

// parsed are the selectors of the kinds.
var parsed = func() map[string]*selector.Selector {
	all := map[string]*selector.Selector{"": nil}
	for _, k := range kinds {
		all[k], _ = selector.Parse("JMSType = '" + k + "'")
	}
	return all
}()

// item draws an item at the next position.
func (d *driver) item(t *rapid.T) *Item {
	d.position++
	m := &message.Message{
		ID:         message.ID{Producer: rapid.SampledFrom([]string{"P", "R"}).Draw(t, "producer"), Sequence: int64(d.position)},
		Priority:   uint8(rapid.IntRange(3, 5).Draw(t, "priority")),
		Persistent: rapid.IntRange(0, 4).Draw(t, "durable") > 0,
		Type:       rapid.SampledFrom(kinds).Draw(t, "kind"),
	}
	if rapid.IntRange(0, 9).Draw(t, "resent") == 0 {
		m.ID.Sequence = int64(rapid.IntRange(1, int(d.position)).Draw(t, "sequence"))
	}
	if rapid.IntRange(0, 3).Draw(t, "expires") == 0 {
		m.Expiration = d.q.now + int64(rapid.IntRange(-1, 5).Draw(t, "expiration"))*1000
	}
	m.Body = make([]byte, rapid.IntRange(0, 3).Draw(t, "size"))
	it := NewItem(d.position, m)
	it.Durable = m.Persistent
	d.messages[d.position] = m
	return it
}

// naively makes the naive queue's item of the same.
func (d *driver) naively(it *Item) *naiveItem {
	return &naiveItem{position: it.Position, producer: it.ID.Producer, sequence: uint64(it.ID.Sequence), kind: d.messages[it.Position].Type,
		lane: d.o.LaneOf(it.Priority), durable: it.Durable, expires: it.Expiration, storedExpires: it.Expiration, size: it.SizeBytes}
}

func (d *driver) enqueue(t *rapid.T) {
	it := d.item(t)
	n := d.naively(it)
	e := Enqueue{Item: it, Spill: rapid.IntRange(0, 4).Draw(t, "spill") == 0}
	if rapid.Bool().Draw(t, "checked") {
		e.Producer = it.ID.Producer
	}
	d.alive[it.Position] = true
	d.do(t, e, func() {
		before := d.q.last[n.producer]
		_, known := d.q.last[n.producer]
		d.q.enqueue(n, e.Producer != "", false)
		if e.Producer != "" && known && int64(n.sequence) <= before {
			delete(d.alive, it.Position)
		}
	})
}

// expect announces positions that a transaction or another queue is storing.
func (d *driver) expect(t *rapid.T) {
	if d.small && len(d.expected) >= d.o.Window {
		t.Skip("a page of nothing but what is expected stops the paging until it arrives")
	}
	it := d.item(t)
	it.Durable, it.Stored, it.Persistent = true, true, true
	it.Overlay = &message.Overlay{Persistent: true, Expiration: it.Expiration} // no producer's own
	d.do(t, Expect{Positions: []uint64{it.Position}}, func() {})
	d.expected = append(d.expected, it)
	if rapid.Bool().Draw(t, "stored at once") {
		d.store(t, it)
	}
}

func (d *driver) store(t *rapid.T, it *Item) {
	if _, ok := d.shelf.entries[it.Position]; ok {
		return
	}
	if err := d.shelf.append(d.o.LaneOf(it.Priority), it); err != nil {
		t.Fatal(err)
	}
}

func (d *driver) arrive(t *rapid.T) {
	if len(d.expected) == 0 {
		t.Skip("nothing is expected")
	}
	i := rapid.IntRange(0, len(d.expected)-1).Draw(t, "which")
	it := d.expected[i]
	d.expected = slices.Delete(d.expected, i, i+1)
	_, stored := d.shelf.entries[it.Position]
	if !stored && rapid.IntRange(0, 3).Draw(t, "cancel") == 0 {
		d.do(t, Cancel{Positions: []uint64{it.Position}}, func() {})
		return
	}
	d.store(t, it)
	d.alive[it.Position] = true
	d.do(t, Arrive{Items: []*Item{it}, Moved: it.Overlay != nil}, func() { d.q.enqueue(d.naively(it), false, true) })
}

func (d *driver) attach(t *rapid.T) {
	if len(d.q.consumers) >= 5 {
		t.Skip("enough consumers")
	}
	d.ids++
	c := &naiveConsumer{
		id:         fmt.Sprintf("c%d", d.ids),
		connection: rapid.SampledFrom([]string{"K", "L"}).Draw(t, "connection"),
		prefetch:   rapid.IntRange(0, 5).Draw(t, "prefetch"),
		priority:   int8(rapid.SampledFrom([]int{0, 0, 0, 1, 127}).Draw(t, "priority")),
		exclusive:  rapid.IntRange(0, 9).Draw(t, "exclusive") == 0,
		kind:       rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "kind"),
		quiet:      rapid.Bool().Draw(t, "quiet"),
	}
	d.do(t, Attach{Consumer: &Consumer{ID: c.id, Connection: c.connection, Prefetch: c.prefetch, Priority: c.priority, Exclusive: c.exclusive,
		Selector: parsed[c.kind], QuietFirst: c.quiet}}, func() { d.q.attach(c) })
}

// any draws a consumer.
func (d *driver) any(t *rapid.T) *naiveConsumer {
	if len(d.q.consumers) == 0 {
		t.Skip("no consumer")
	}
	return rapid.SampledFrom(d.q.consumers).Draw(t, "consumer")
}

func (d *driver) detach(t *rapid.T) {
	c := d.any(t)
	last := rapid.SampledFrom([]int64{-1, -1, UnsaidLast}).Draw(t, "none")
	if held := d.q.held(c); len(held) > 0 && rapid.Bool().Draw(t, "had some") {
		last = int64(rapid.SampledFrom(held).Draw(t, "last").position) + int64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "other's"))
	}
	d.remove(t, c, Detach{Last: last, Cause: message.Closed})
}

func (d *driver) lose(t *rapid.T) {
	cause := rapid.SampledFrom([]message.Cause{message.ConnectionLost, message.ConnectionLost, message.Closed, message.BrokerStopped}).Draw(t, "cause")
	d.remove(t, d.any(t), Detach{Last: UnknownLast, Cause: cause, Charge: rapid.Bool().Draw(t, "charge")})
}

func (d *driver) remove(t *rapid.T, c *naiveConsumer, cmd Detach) {
	cmd.Consumer = c.id
	d.do(t, cmd, func() { d.q.detach(c, cmd) })
}

func (d *driver) prefetch(t *rapid.T) {
	c := d.any(t)
	n := rapid.IntRange(0, 5).Draw(t, "prefetch")
	d.do(t, SetPrefetch{Consumer: c.id, Prefetch: n}, func() {
		c.prefetch = n
		if n > 0 {
			c.pulls = nil
		} else {
			c.extension = 0
		}
	})
}

func (d *driver) pull(t *rapid.T) {
	c := d.any(t)
	until := rapid.SampledFrom([]int64{-1, 0, d.q.now + 1500}).Draw(t, "until")
	d.do(t, Pull{Consumer: c.id, Until: until}, func() {
		if c.prefetch == 0 {
			d.q.wake(c)
			if until < 0 {
				until = d.q.now
			}
			c.pulls = append(c.pulls, until)
		}
	})
}

// span draws a range of what a consumer has.
func (d *driver) span(t *rapid.T) (c *naiveConsumer, first, last *naiveItem, n int) {
	c = d.any(t)
	held := d.q.held(c)
	if len(held) == 0 {
		t.Skip("it has nothing")
	}
	from := rapid.IntRange(0, len(held)-1).Draw(t, "first")
	to := rapid.IntRange(from, len(held)-1).Draw(t, "last")
	return c, held[from], held[to], to - from + 1
}

func (d *driver) send(t *rapid.T, a Ack) { d.do(t, a, func() { d.q.ack(a) }) }

// ack acknowledges in any way that is allowed, but for good.
func (d *driver) ack(t *rapid.T) {
	c, first, last, n := d.span(t)
	kind := rapid.SampledFrom([]AckType{Delivered, Redelivered, ExpiredAck, Redelivered}).Draw(t, "type")
	d.send(t, Ack{Consumer: c.id, Type: kind, First: Ref{Position: first.position}, Last: Ref{Position: last.position}, Count: n})
}

// acknowledge acknowledges for good, in a transaction or not.
func (d *driver) acknowledge(t *rapid.T) {
	c, first, last, n := d.span(t)
	a := Ack{Consumer: c.id, Type: Standard, First: Ref{Position: first.position}, Last: Ref{Position: last.position}, Count: n}
	if rapid.Bool().Draw(t, "individual") {
		a.Type = Individual
	}
	a.Tx = rapid.SampledFrom([]string{"", "T", "U"}).Draw(t, "transaction")
	d.send(t, a)
}

func (d *driver) poison(t *rapid.T) {
	c, first, last, n := d.span(t)
	d.send(t, Ack{Consumer: c.id, Type: Poison, First: Ref{Position: first.position}, Last: Ref{Position: last.position}, Count: n,
		Text: rapid.SampledFrom([]string{"", "x: y", "Delivery[2]", "a.B: Delivery[3] exceeds", "Dispatch[9]", "Suppressing duplicate delivery on connection"}).Draw(t, "cause")})
}

// stray acknowledges what may not be there, or not be allowed.
func (d *driver) stray(t *rapid.T) {
	ref := func(name string) Ref {
		return Ref{Position: uint64(rapid.IntRange(0, int(d.position)+1).Draw(t, name))}
	}
	d.send(t, Ack{
		Consumer: rapid.SampledFrom([]string{"c1", "c2", "c3", "c4"}).Draw(t, "consumer"),
		Type:     AckType(rapid.IntRange(0, 6).Draw(t, "type")),
		First:    ref("first"), Last: ref("last"),
		Count: rapid.IntRange(-1, 3).Draw(t, "count"),
		Tx:    rapid.SampledFrom([]string{"", "T"}).Draw(t, "transaction"),
	})
}

func (d *driver) settle(t *rapid.T) {
	if len(d.q.tx) == 0 {
		t.Skip("no transaction")
	}
	s := Settle{Tx: rapid.SampledFrom(slices.Sorted(maps.Keys(d.q.tx))).Draw(t, "transaction"), Commit: rapid.Bool().Draw(t, "commit")}
	if s.Commit {
		d.endTurn(t) // what was told before goes before the transaction's batch
		d.effects = d.m.Apply(Prepare{Tx: s.Tx, Reply: func(items []*Item) {
			for _, it := range items {
				if err := d.shelf.remove(it.lane, it); err != nil {
					t.Fatal(err)
				}
			}
		}}, d.q.now, d.effects)
	} else {
		s.Cause = rapid.SampledFrom([]message.Cause{message.Rollback, message.ConnectionLost}).Draw(t, "cause")
	}
	d.do(t, s, func() { d.q.settle(s) })
}

func (d *driver) undispatchable(t *rapid.T) {
	c, it, _, _ := d.span(t)
	d.do(t, Undispatchable{Consumer: c.id, Position: it.position, Text: "corrupt"}, func() {
		if it.tx == "" {
			d.q.leave(it, 1)
			it.lines++
			d.q.decide(it, message.Undispatchable, "corrupt", false)
		}
	})
}

// extract takes one message out by hand, wherever in its lane it is.
func (d *driver) extract(t *rapid.T) {
	if len(d.q.items) == 0 {
		t.Skip("there is nothing")
	}
	it := rapid.SampledFrom(d.q.items).Draw(t, "item")
	purge := rapid.Bool().Draw(t, "purge")
	id := d.messages[it.position].ID.String()
	if d.small {
		d.endTurn(t) // the store has what went before
	}
	var plucked []uint64
	d.do(t, Extract{
		Lane: it.lane, Stored: d.shelf.page(it.lane, 0, len(d.shelf.entries)).Items,
		Max: 1, Purge: purge,
		Wants:  func(it *Item) (bool, int) { return it.ID.String() == id, 1 },
		Target: func(*Item) (Move, bool) { return Move{}, true },
		Done:   func(x Extracted, _ error) { plucked = x.Alone },
	}, func() {
		for _, same := range d.q.extractable(it.lane) {
			if d.messages[same.position].ID.String() == id {
				d.q.gone(same, map[bool]string{true: "remove", false: "transfer"}[purge])
				return
			}
		}
	})
	if len(plucked) > 0 {
		d.do(t, Gone{plucked}, func() {})
	}
}

func (d *driver) sleep(t *rapid.T) {
	d.pass(t, time.Duration(rapid.IntRange(1, 6).Draw(t, "half seconds"))*500*time.Millisecond)
}

// pass lets time pass. With a small window it does so as the machine asks for it, from one
// Next to the next: of what is overdue and in the store alone the machine hands out page
// after page, in the order of the due times, and the naive queue has no pages.
func (d *driver) pass(t *rapid.T, a time.Duration) {
	until := d.q.now + a.Milliseconds()
	for d.small {
		next := d.m.Next()
		if next <= d.q.now || next >= until {
			break
		}
		d.q.now = next
		d.do(t, Tick{}, func() {})
	}
	d.q.now = until
	d.do(t, Tick{}, func() {})
}
