package queue

import (
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
}

func newPageRace(t *rapid.T) *pageRace {
	r := &pageRace{shelf: newShelf(), due: map[uint64]bool{}}
	r.o = Options{
		Destination: message.Destination{Kind: message.Queue, Name: "Q"},
		Redelivers:  true,
		Marks:       true,
		Prioritized: rapid.Bool().Draw(t, "prioritized"),
		Window:      rapid.IntRange(1, 4).Draw(t, "window"),
	}
	r.m = New(r.o)
	r.attach(t)
	return r
}

func (r *pageRace) attach(t *rapid.T) {
	r.consumer++
	r.do(t, Attach{Consumer: &Consumer{ID: r.id(), Prefetch: rapid.IntRange(1, 4).Draw(t, "prefetch")}})
}

func (r *pageRace) id() string { return string(rune('a' + r.consumer%26)) }

// do applies a command as a turn of its own.
func (r *pageRace) do(t *rapid.T, c Command) {
	effects := r.m.EndTurn(r.m.Apply(c, begin, nil))
	for i := range effects {
		e := &effects[i]
		if err := r.shelf.apply(e); err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case Deliver:
			if !r.due[e.Item.Position] {
				t.Fatalf("%d is delivered, and is not due", e.Item.Position)
			}
			delete(r.due, e.Item.Position)
			r.held = append(r.held, e.Item)
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
		case PageIn, PageTimes:
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
	m := &message.Message{Priority: uint8(rapid.IntRange(3, 5).Draw(t, "priority")), Persistent: durable}
	if rapid.IntRange(0, 2).Draw(t, "expires") == 0 { // soon, but time stands still
		m.Expiration = begin + int64(rapid.IntRange(1, 2000).Draw(t, "expiration"))
	}
	it := NewItem(r.position, m)
	it.Durable = durable
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
	r.do(t, Ack{Consumer: r.id(), Type: Individual, Last: Ref{Position: it.Position}})
}

// leave closes the consumer, which had nothing, and another comes.
func (r *pageRace) leave(t *rapid.T) {
	for _, it := range r.held {
		r.due[it.Position] = true
	}
	r.held = nil
	r.do(t, Detach{Consumer: r.id(), Last: -1, Cause: message.Closed})
	r.attach(t)
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
	if len(r.due) > 0 || len(r.shelf.entries) > 0 {
		t.Fatalf("never delivered: %v; still stored: %d", r.due, len(r.shelf.entries))
	}
}
