package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// TestLaws gives a machine and a naive queue the same random commands, several a
// turn and with crashes between turns, and wants the same deliveries and ends from
// both, and from the store what the naive queue knows.
func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newDriver(t)
		t.Repeat(map[string]func(*rapid.T){
			"enqueue":        d.enqueue,
			"expect":         d.expect,
			"arrive":         d.arrive,
			"attach":         d.attach,
			"detach":         d.detach,
			"lose":           d.lose,
			"prefetch":       d.prefetch,
			"pull":           d.pull,
			"ack":            d.ack,
			"acknowledge":    d.acknowledge,
			"poison":         d.poison,
			"stray":          d.stray,
			"settle":         d.settle,
			"undispatchable": d.undispatchable,
			"extract":        d.extract,
			"sleep":          d.sleep,
			"turn":           d.endTurn,
			"crash":          d.crash,
			"":               d.check,
		})
		d.drain(t)
	})
}

// A driver applies commands to both and compares.
type driver struct {
	o        Options
	m        *Machine
	q        *naive
	shelf    *shelf
	messages map[uint64]*message.Message
	small    bool // a small window; then each command is a turn
	position uint64
	expected []*Item // not arrived yet; those that are stored are on the shelf
	alive    map[uint64]bool
	ids      int // consumers and transactions so far
	effects  []Effect
	seen     int      // effects that were collected
	told     []string // by the machine, and not compared yet
}

func newDriver(t *rapid.T) *driver {
	d := &driver{shelf: newShelf(), messages: map[uint64]*message.Message{}, alive: map[uint64]bool{}}
	d.small = rapid.Bool().Draw(t, "small window")
	d.o = Options{
		Destination: message.Destination{Kind: message.Queue, Name: rapid.SampledFrom([]string{"Q", "Q", redelivery.DefaultDeadLetterQueue}).Draw(t, "name")},
		Prioritized: rapid.Bool().Draw(t, "prioritized"),
		Marks:       true,
		Redelivers:  rapid.IntRange(0, 9).Draw(t, "redelivers") > 0,
		Read: func(e *message.Entry) (*message.Message, error) {
			return d.messages[e.Position].With(e.Overlay), nil
		},
		Properties: func(*message.Message, string) (selector.Value, bool) { return selector.Value{}, false },
	}
	if rapid.IntRange(0, 2).Draw(t, "limited") == 0 {
		d.o.AckTimeout = 2500
	}
	if d.small && rapid.Bool().Draw(t, "few scheduled") {
		d.o.Scheduled = rapid.IntRange(1, 2).Draw(t, "scheduled")
	}
	if d.small {
		d.o.Window = rapid.IntRange(1, 4).Draw(t, "window")
	}
	if rapid.Bool().Draw(t, "policy") {
		p := redelivery.DefaultPolicy()
		p.MaximumRedeliveries = rapid.IntRange(-1, 4).Draw(t, "limit")
		p.InitialRedeliveryDelay = time.Duration(rapid.IntRange(0, 6).Draw(t, "delay")) * time.Second
		d.o.Rules.Redelivery = &p
	}
	d.m, d.q = New(d.o), newNaive(d.o)
	d.q.now = begin
	return d
}

// do gives both a command and compares what they tell.
func (d *driver) do(t *rapid.T, c Command, naively func()) {
	t.Helper()
	naively()
	d.q.pass()
	d.effects = d.m.Apply(c, d.q.now, d.effects)
	if d.small {
		d.endTurn(t)
		return
	}
	d.compare(t)
}

// compare compares what was told since the last time.
func (d *driver) compare(t *rapid.T) {
	t.Helper()
	d.collect(t)
	if d.small || len(d.m.consumers) == 0 { // what is not in memory ends as the pages come: in another order
		d.q.told, d.told = endsLast(d.q.told), endsLast(d.told)
	}
	if diff := cmp.Diff(d.q.told, d.told); diff != "" {
		t.Fatalf("the machine (+) does not do what the naive queue (-) does: %v\n%s", d.m.broken(), diff)
	}
	d.q.told, d.told = nil, nil
}

// endsLast puts what ends behind what is delivered, in the order of the texts.
func endsLast(told []string) []string {
	slices.SortStableFunc(told, func(a, b string) int {
		aDelivers, bDelivers := strings.HasPrefix(a, "deliver"), strings.HasPrefix(b, "deliver")
		switch {
		case aDelivers && bDelivers:
			return 0
		case aDelivers:
			return -1
		case bDelivers:
			return 1
		}
		return strings.Compare(a, b)
	})
	return told
}

// collect writes the new effects down as the naive queue does. Each item ends once.
func (d *driver) collect(t *rapid.T) {
	t.Helper()
	words := map[EffectKind]string{Remove: "remove", Transfer: "transfer", Forget: "forget"}
	for ; d.seen < len(d.effects); d.seen++ {
		e := &d.effects[d.seen]
		switch e.Kind {
		case Deliver:
			if p := d.o.Rules.Redelivery; p != nil && d.o.Redelivers && e.Item.Durable && !d.q.ownDeadLetter(e.Item.Position) && p.Exhausted(int(e.Item.Failures)) {
				t.Fatalf("%d is delivered after %d failures, and the policy allows %d redeliveries", e.Item.Position, e.Item.Failures, p.MaximumRedeliveries)
			}
			d.told = append(d.told, fmt.Sprintf("deliver %d to %s counter=%d hint=%v", e.Item.Position, e.Consumer.ID, e.Counter, e.Hint))
		case Remove, Transfer, Forget:
			if e.Item.Kept() || !d.alive[e.Item.Position] {
				t.Fatalf("%d ends; still here: %v, alive before: %v", e.Item.Position, e.Item.Kept(), d.alive[e.Item.Position])
			}
			delete(d.alive, e.Item.Position)
			d.told = append(d.told, fmt.Sprintf("%s %d", words[e.Kind], e.Item.Position))
		}
	}
}

// endTurn ends the turn, and the turns of the pages that follow from it.
func (d *driver) endTurn(t *rapid.T) {
	t.Helper()
	for more := true; more; {
		d.effects = d.m.EndTurn(d.effects)
		d.collect(t)
		var pages []Command
		for i := range d.effects {
			if err := d.shelf.apply(&d.effects[i]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range d.effects {
			switch e := &d.effects[i]; e.Kind {
			case PageIn:
				pages = append(pages, d.shelf.page(e.Lane, e.Number, e.Counter))
			case Search:
				pages = append(pages, d.shelf.search(e.Lane, e.Number, e.Counter))
			case PageTimes:
				n := e.Counter
				if d.small {
					n = 1 + d.o.Window
				}
				pages = append(pages, d.shelf.times(e.Index, e.From, n))
			case Answer:
				e.Done(e.Err)
			}
		}
		d.effects, d.seen = d.effects[:0], 0
		for _, p := range pages {
			d.effects = d.m.Apply(p, d.q.now, d.effects)
		}
		if more = len(pages) > 0; !more && d.m.unfinished {
			d.effects = d.m.Apply(Tick{}, d.q.now, d.effects)
			more = true
		}
	}
	for _, it := range d.q.items {
		it.fresh = false
	}
	d.compare(t)
	d.checkShelf(t)
}

// check checks the machine's own laws, after each command.
func (d *driver) check(t *rapid.T) {
	if err := d.m.broken(); err != nil {
		t.Fatal(err)
	}
	var want, got [3]int64
	for _, it := range d.q.items {
		switch it.state {
		case scheduled:
			want[1]++
		case out, limbo:
			want[0]++
		default:
			want[2]++
		}
	}
	s := d.m.Stats()
	bytes := int64(0)
	for _, it := range d.q.items {
		bytes += int64(it.size)
	}
	if s.Bytes != bytes {
		t.Fatalf("%d bytes are counted, and %d are there", s.Bytes, bytes)
	}
	got = [...]int64{s.Out, s.Scheduled, s.Waiting}
	if !d.m.horizons[ByDue].all { // what is in the store alone is not known to be scheduled
		want, got = [...]int64{want[0], 0, want[1] + want[2]}, [...]int64{got[0], 0, got[1] + got[2]}
	}
	if got != want {
		t.Fatalf("out, scheduled and waiting are %d; want %d", got, want)
	}
}

// checkShelf checks, at the end of a turn, that the store has what is to outlive
// the process, all of it and nothing else, with the right counts.
func (d *driver) checkShelf(t *rapid.T) {
	t.Helper()
	want := map[uint64]message.Counts{}
	for _, it := range d.q.items {
		if it.durable {
			want[it.position] = message.Counts{Failures: int32(it.failures), Holds: int32(it.holds), Attempts: int32(it.lines),
				Due: it.due, Unasked: it.unasked}
		}
	}
	got := map[uint64]message.Counts{}
	for position, e := range d.shelf.entries {
		if !e.entry.Transient && !slices.ContainsFunc(d.expected, func(it *Item) bool { return it.Position == position }) {
			c := d.shelf.counts[position]
			got[position] = message.Counts{Failures: c.Failures, Holds: c.Holds, Attempts: c.Attempts, Due: c.Due, Unasked: c.Unasked}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the store does not have (+) what it should (-):\n%s", diff)
	}
	if diff := cmp.Diff(d.q.durable, d.shelf.producers); diff != "" {
		t.Fatalf("producers as stored (+), as they are (-):\n%s", diff)
	}
	for position, lines := range d.shelf.stories {
		if n := int(d.shelf.counts[position].Attempts); len(lines) != min(n, firstLines+lastLines) {
			t.Fatalf("the story of %d has %d lines after %d attempts", position, len(lines), n)
		}
	}
}

// crash kills the process between two turns and opens the queue anew.
func (d *driver) crash(t *rapid.T) {
	d.endTurn(t)
	for _, it := range d.expected { // what was being stored was stored, or was not
		if _, ok := d.shelf.entries[it.Position]; ok {
			d.q.enqueue(d.naively(it), false, true)
			d.alive[it.Position] = true
		}
	}
	d.expected = nil
	d.q.crash()
	for position := range d.alive {
		if !slices.ContainsFunc(d.q.items, func(it *naiveItem) bool { return it.position == position }) {
			delete(d.alive, position)
		}
	}
	d.shelf.crash()
	d.m = d.shelf.open(d.o)
	d.q.pass()
	d.effects = d.m.Apply(Tick{}, d.q.now, d.effects)
	d.endTurn(t)
}

// drain lets one consumer that wants everything have it: nothing may be missing.
func (d *driver) drain(t *rapid.T) {
	d.crash(t)
	d.pass(t, time.Hour)
	c := &Consumer{ID: "drain", Connection: "drain", Prefetch: 1 << 20}
	d.do(t, Attach{Consumer: c}, func() { d.q.attach(&naiveConsumer{id: c.ID, connection: c.Connection, prefetch: c.Prefetch}) })
	d.endTurn(t)
	d.check(t)
	if n := len(d.alive); n != c.Held() {
		t.Fatalf("%d are alive, and %d came", n, c.Held())
	}
}
