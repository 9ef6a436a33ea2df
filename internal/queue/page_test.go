package queue

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
)

// TestPagesMayBeReadAtAnyTime brings pages late, read at any moment between the
// asking and the coming, while messages are enqueued, stored by others, and arrive
// in any order. Whatever happens, each message comes once and none is missing.
func TestPagesMayBeReadAtAnyTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newPageRace(t)
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": r.enqueue,
			"expect":  r.expect,
			"store":   r.store,
			"arrive":  r.arrive,
			"cancel":  r.cancel,
			"read":    r.read,
			"bring":   r.bring,
			"ack":     r.ack,
			"leave":   r.leave,
			"second":  r.second,
			"purge":   r.purge,
			"":        r.check,
		})
		r.finish(t)
	})
}

// A pageRace is a queue whose pages come when the test says so.
type pageRace struct {
	m        *Machine
	o        Options
	shelf    *shelf
	position uint64
	asked    []Effect  // pages not read yet
	pages    []Command // read, and not brought
	expected []*Item   // not stored yet
	stored   []*Item   // not arrived yet
	plucked  []uint64  // out of the store alone, and not said to be gone
	due      map[uint64]bool
	held     []*Item // by the consumer
	purged   int     // by the last purge
	consumer int
	wants    map[string]string // the kind that each consumer wants; "": all
	items    map[uint64]*Item  // all there were
	returned map[uint64]bool   // given back at some time
	kinds    []string          // to draw from for consumers
}

func newPageRace(t *rapid.T) *pageRace {
	r := &pageRace{shelf: newShelf(), due: map[uint64]bool{}, wants: map[string]string{}, items: map[uint64]*Item{}, returned: map[uint64]bool{},
		kinds: rapid.SampledFrom([][]string{{""}, {"a"}, {"", "a", "b"}}).Draw(t, "kinds")}
	r.o = Options{
		Destination: message.Destination{Kind: message.Queue, Name: "Q"},
		Redelivers:  true,
		Marks:       true,
		Prioritized: rapid.Bool().Draw(t, "prioritized"),
		Window:      rapid.IntRange(1, 4).Draw(t, "window"),
		TurnSteps:   rapid.SampledFrom([]int{0, turnShare, 4 * ReadSteps}).Draw(t, "steps"),
		Read: func(e *message.Entry) (*message.Message, error) {
			return r.items[e.Position].Message, nil
		},
	}
	r.m = New(r.o)
	r.attach(t)
	return r
}

func (r *pageRace) attach(t *rapid.T) {
	r.consumer++
	kind := rapid.SampledFrom(r.kinds).Draw(t, "kind")
	r.wants[r.id()] = kind
	r.do(t, Attach{Consumer: &Consumer{ID: r.id(), Prefetch: rapid.IntRange(1, 4).Draw(t, "prefetch"), Selector: parsed[kind]}})
}

// second has another consumer come, which stays.
func (r *pageRace) second(t *rapid.T) {
	if len(r.wants) >= 4 {
		t.Skip("enough")
	}
	r.attach(t)
}

func (r *pageRace) id() string { return fmt.Sprintf("c%d", r.consumer) }

// delivered checks that nothing which its consumer wants should have gone before it:
// of what was never given back, nothing of a lane before, and nothing of a lower
// position.
func (r *pageRace) delivered(t *rapid.T, e *Effect) {
	it, kind := e.Item, r.wants[e.Consumer.ID]
	if !r.due[it.Position] {
		t.Fatalf("%d is delivered, and is not due", it.Position)
	}
	if kind != "" && kind != r.items[it.Position].Message.Type {
		t.Fatalf("%d is delivered to %s, which does not want it", it.Position, e.Consumer.ID)
	}
	delete(r.due, it.Position)
	r.held = append(r.held, it)
	if r.returned[it.Position] {
		return
	}
	for p := range r.due {
		o := r.items[p]
		before := r.o.LaneOf(o.Priority) < it.lane || r.o.LaneOf(o.Priority) == it.lane && p < it.Position
		if before && !r.returned[p] && (kind == "" || o.Message.Type == kind) {
			t.Fatalf("%d is delivered to %s before %d", it.Position, e.Consumer.ID, p)
		}
	}
}

// do applies a command as a turn of its own.
func (r *pageRace) do(t *rapid.T, c Command) {
	r.apply(t, c)
	for range 100 {
		if !r.m.unfinished {
			return
		}
		r.apply(t, Tick{})
	}
	t.Fatal("there is always more to do")
}

func (r *pageRace) apply(t *rapid.T, c Command) {
	effects := r.m.EndTurn(r.m.Apply(c, begin, nil))
	for i := range effects {
		e := &effects[i]
		if err := r.shelf.apply(e); err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case Deliver:
			r.delivered(t, e)
		case Remove:
			if e.Reason == Purged {
				if !r.due[e.Item.Position] {
					t.Fatalf("%d is purged, and is not there", e.Item.Position)
				}
				delete(r.due, e.Item.Position)
				r.purged++
			}
		case Answer:
			e.Done(e.Err)
		case PageIn, PageTimes, Search:
			r.asked = append(r.asked, *e)
		case Tell:
			if e.Event == Inconsistent {
				t.Fatal("the store is said to be inconsistent")
			}
		}
	}
}

func (r *pageRace) item(t *rapid.T, durable bool) *Item {
	r.position++
	m := &message.Message{Priority: uint8(rapid.IntRange(3, 5).Draw(t, "priority")), Persistent: durable, Type: rapid.SampledFrom(kinds).Draw(t, "type")}
	if rapid.IntRange(0, 2).Draw(t, "expires") == 0 { // soon, but time stands still
		m.Expiration = begin + int64(rapid.IntRange(1, 2000).Draw(t, "expiration"))
	}
	it := NewItem(r.position, m)
	it.Durable = durable
	r.items[r.position] = NewItem(r.position, m)
	return it
}

func (r *pageRace) enqueue(t *rapid.T) {
	it := r.item(t, rapid.IntRange(0, 3).Draw(t, "durable") > 0)
	r.due[it.Position] = true
	r.do(t, Enqueue{Item: it})
}

func (r *pageRace) expect(t *rapid.T) {
	it := r.item(t, true)
	it.Stored = true
	r.expected = append(r.expected, it)
	r.do(t, Expect{Positions: []uint64{it.Position}})
}

// take draws one of a list and takes it out.
func take(t *rapid.T, from *[]*Item) *Item {
	if len(*from) == 0 {
		t.Skip("there is none")
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	it := (*from)[i]
	*from = append((*from)[:i:i], (*from)[i+1:]...)
	return it
}

func (r *pageRace) store(t *rapid.T) {
	it := take(t, &r.expected)
	r.stored = append(r.stored, it)
	if err := r.shelf.append(r.o.LaneOf(it.Priority), it); err != nil {
		t.Fatal(err)
	}
}

func (r *pageRace) arrive(t *rapid.T) {
	it := take(t, &r.stored)
	r.due[it.Position] = true
	r.do(t, Arrive{Items: []*Item{it}, Moved: it.Overlay != nil})
}

func (r *pageRace) cancel(t *rapid.T) {
	r.do(t, Cancel{Positions: []uint64{take(t, &r.expected).Position}})
}

// read reads a page that was asked for; a lane has one at most.
func (r *pageRace) read(t *rapid.T) {
	if len(r.asked) == 0 {
		t.Skip("no page is asked for")
	}
	e := r.asked[0]
	r.asked = r.asked[1:]
	if e.Kind == PageTimes {
		r.pages = append(r.pages, r.shelf.times(e.Index, e.From, rapid.IntRange(1, 4).Draw(t, "times")))
		return
	}
	if e.Kind == Search {
		r.pages = append(r.pages, r.shelf.search(e.Lane, e.Number, rapid.IntRange(1, 4).Draw(t, "entries")))
		return
	}
	r.pages = append(r.pages, r.shelf.page(e.Lane, e.Number, e.Counter))
}

func (r *pageRace) bring(t *rapid.T) {
	if len(r.pages) == 0 {
		t.Skip("no page was read")
	}
	p := r.pages[0]
	r.pages = r.pages[1:]
	r.do(t, p)
}

func (r *pageRace) ack(t *rapid.T) {
	it := take(t, &r.held)
	r.do(t, Ack{Consumer: it.consumer.ID, Type: Individual, Last: Ref{Position: it.Position}})
}

// leave closes a consumer, whose application had nothing, and another comes.
func (r *pageRace) leave(t *rapid.T) {
	r.close(t, rapid.SampledFrom(slices.Sorted(maps.Keys(r.wants))).Draw(t, "consumer"))
	r.attach(t)
}

func (r *pageRace) close(t *rapid.T, id string) {
	r.held = slices.DeleteFunc(r.held, func(it *Item) bool {
		mine := it.consumer.ID == id
		if mine {
			r.due[it.Position], r.returned[it.Position] = true, true
		}
		return mine
	})
	delete(r.wants, id)
	r.do(t, Detach{Consumer: id, Last: -1, Cause: message.Closed})
}

// purge takes out some of what nobody has, deep in the store too. A page that was
// read before may still bring it.
func (r *pageRace) purge(t *rapid.T) {
	number := rapid.SampledFrom([]uint8{4, 5, 6}).Draw(t, "lane")
	cursor, _ := r.m.Depth(number)
	after := max(cursor, uint64(rapid.IntRange(0, int(r.position)).Draw(t, "after")))
	if rapid.Bool().Draw(t, "from the start") {
		after = 0
	}
	r.purged = 0
	r.do(t, Extract{Lane: number, After: after, Purge: true,
		Stored: r.shelf.page(number, after, rapid.IntRange(1, 6).Draw(t, "page")).Items,
		Max:    rapid.IntRange(0, 3).Draw(t, "max"),
		Done: func(x Extracted, _ error) {
			if r.purged != x.Taken {
				t.Fatalf("%d taken, and %d went", x.Taken, r.purged)
			}
			r.plucked = append(r.plucked, x.Alone...)
		}})
}

func (r *pageRace) check(t *rapid.T) {
	if len(r.pages) == 0 { // none that was read before is on its way
		r.m.Apply(Gone{r.plucked}, begin, nil)
		r.plucked = nil
	}
	if err := r.m.broken(); err != nil {
		t.Fatal(err)
	}
	if s := r.m.Stats(); s.Waiting != int64(len(r.due)) || s.Out != int64(len(r.held)) {
		t.Fatalf("waiting %d and out %d; it says %d and %d", len(r.due), len(r.held), s.Waiting, s.Out)
	}
	for _, number := range []uint8{4, 5, 6} {
		floor := r.m.Floor(number)
		for position, e := range r.shelf.entries {
			if e.lane == number && position < floor {
				t.Fatalf("%d is below the floor of lane %d, which is %d", position, number, floor)
			}
		}
	}
}

// finish lets everything come to its end.
func (r *pageRace) finish(t *rapid.T) {
	for len(r.expected) > 0 {
		r.store(t)
	}
	for len(r.stored) > 0 {
		r.arrive(t)
	}
	for r.settle(t); ; r.settle(t) {
		for p := range r.due { // nobody who is there wants it
			for id, kind := range r.wants {
				if kind == "" || kind == r.items[p].Message.Type {
					t.Fatalf("%d is not delivered to %s, which wants it", p, id)
				}
			}
		}
		if r.kinds[0] == "" && len(r.kinds) == 1 {
			break
		}
		r.kinds = []string{""}
		r.attach(t)
	}
	if len(r.due) > 0 || len(r.shelf.entries) > 0 {
		t.Fatalf("never delivered: %v; still stored: %d", r.due, len(r.shelf.entries))
	}
}

// settle lets consumers have all they want.
func (r *pageRace) settle(t *rapid.T) {
	for len(r.asked)+len(r.pages)+len(r.held) > 0 {
		for len(r.asked) > 0 {
			r.read(t)
		}
		for len(r.pages) > 0 {
			r.bring(t)
		}
		for len(r.held) > 0 {
			r.ack(t)
		}
	}
}
