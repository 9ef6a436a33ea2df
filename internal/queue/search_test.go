package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

// A deepTest is a queue whose entries are all in the store: what it asks for is read
// from the list of what was put there.
type deepTest struct {
	t        *testing.T
	m        *Machine
	stored   []*message.Message // by position, from 1
	gone     map[uint64]bool
	searches int // pages of searches
	turns    int
	got      []string
}

func newDeepTest(t *testing.T, o Options, stored ...*message.Message) *deepTest {
	x := &deepTest{t: t, stored: stored, gone: map[uint64]bool{}}
	o.Destination = message.Destination{Kind: message.Queue, Name: "Q"}
	o.Redelivers, o.Marks = true, true
	o.Read = func(e *message.Entry) (*message.Message, error) { return x.stored[e.Position-1], nil }
	o.Properties = func(m *message.Message, name string) (selector.Value, bool) {
		return selector.StringValue(string(m.Properties)), true
	}
	x.m = New(o)
	if len(stored) > 0 {
		bytes := int64(0)
		for _, m := range stored {
			bytes += int64(m.SizeBytes())
		}
		x.m.Restore(o.LaneOf(message.DefaultPriority), 1, int64(len(stored)), bytes)
	}
	return x
}

// page reads entries behind a position.
func (x *deepTest) page(after uint64, n int) (items []*Item, short bool) {
	for p := after + 1; p <= uint64(len(x.stored)); p++ {
		if len(items) == n {
			return items, false
		}
		if !x.gone[p] {
			items = append(items, StoredItem(x.item(p).Entry, message.Counts{}, false))
		}
	}
	return items, true
}

func (x *deepTest) item(position uint64) *Item {
	it := NewItem(position, x.stored[position-1])
	it.Durable = true
	return it
}

// do gives the machine a command, and what it asks for from then on, each in a turn of
// its own. It returns what was delivered.
func (x *deepTest) do(c Command) []string {
	x.t.Helper()
	x.got = nil
	for todo := []Command{c}; len(todo) > 0; todo = todo[1:] {
		todo = append(todo, x.turn(todo[0])...)
		if len(todo) == 1 && x.m.unfinished {
			todo = append(todo, Tick{})
		}
		if x.turns++; x.turns > 100_000 {
			for _, c := range x.m.consumers {
				x.t.Log(c.ID, c.seen[5].waiting, c.steps, c.room())
			}
			l := x.m.lanes[5]
			x.t.Log(l.search, l.newest, l.ended, l.cursor, l.beyond, l.waiting.n)
			x.t.Fatal("it never comes to an end")
		}
		if x.turns%500 == 0 || len(todo) == 1 {
			if err := x.m.broken(); err != nil && !x.m.o.Grouped { // it knows nothing of groups
				x.t.Fatal(err)
			}
		}
	}
	return x.got
}

// turn gives the machine a command as a turn of its own, and reads what it asks for.
func (x *deepTest) turn(c Command) (read []Command) {
	effects := x.m.EndTurn(x.m.Apply(c, begin, nil))
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case Deliver:
			x.got = append(x.got, fmt.Sprintf("%s %d", e.Consumer.ID, e.Item.Position))
		case Nothing:
			x.got = append(x.got, e.Consumer.ID+" nothing")
		case Remove:
			x.gone[e.Item.Position] = true
		case PageTimes:
			read = append(read, Timed{Index: e.Index, End: true})
		case PageIn:
			items, short := x.page(e.Number, e.Counter)
			read = append(read, Paged{Lane: e.Lane, Items: items, Short: short})
		case Search:
			x.searches++
			items, short := x.page(e.Number, e.Counter)
			read = append(read, Searched{Lane: e.Lane, Items: items, Short: short})
		case Answer:
			if e.Err != nil {
				x.t.Errorf("%T: %v", c, e.Err)
			}
		}
	}
	return read
}

// send enqueues a message.
func (x *deepTest) send(m *message.Message) []string {
	x.stored = append(x.stored, m)
	return x.do(Enqueue{Item: x.item(uint64(len(x.stored)))})
}

func (x *deepTest) want(what string, got []string, want ...string) {
	x.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		x.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (x *deepTest) ack(consumer string, position uint64) []string {
	return x.do(Ack{Consumer: consumer, Type: Individual, Last: Ref{Position: position}})
}

// kept is how many items are in memory.
func (x *deepTest) kept() (n int) {
	for _, l := range x.m.lanes {
		if l != nil {
			x.m.each(l, func(*Item) { n++ })
		}
	}
	return n
}

func ofKind(kind string) *message.Message {
	return &message.Message{ID: message.ID{Producer: "P"}, Persistent: true, Priority: message.DefaultPriority, Type: kind}
}

func many(n int, m *message.Message) []*message.Message {
	all := make([]*message.Message, n)
	for i := range all {
		all[i] = m
	}
	return all
}

func TestWhatIsWantedIsFoundAtAnyDepth(t *testing.T) {
	t.Parallel()
	const n = 100_000
	stored := append(many(n, ofKind("a")), ofKind("b"), ofKind("b"))
	x := newDeepTest(t, Options{}, stored...)
	x.want("behind 100,000 others", x.do(Attach{Consumer: &Consumer{ID: "b", Prefetch: 1, Selector: parsed["b"]}}), fmt.Sprint("b ", n+1))
	if k := x.kept(); k > DefaultWindow+1 {
		t.Errorf("%d are in memory", k)
	}
	if s := x.m.Stats(); s.Waiting != n+1 || s.Out != 1 {
		t.Errorf("%+v", s)
	}
	x.want("and the next", x.ack("b", n+1), fmt.Sprint("b ", n+2))

	before := x.searches
	x.want("it is at the end", x.ack("b", n+2))
	if x.searches > before+1 {
		t.Errorf("%d pages were read to find that nothing is there", x.searches-before)
	}
	before = x.searches
	for range 100 {
		x.want("not wanted", x.send(ofKind("a")))
		p := uint64(len(x.stored) + 1)
		x.want("as it comes by", x.send(ofKind("b")), fmt.Sprint("b ", p))
		x.want("and goes", x.ack("b", p))
	}
	if x.searches != before {
		t.Errorf("%d pages were read where nothing had changed", x.searches-before)
	}

	x.want("others have what was passed over", x.do(Attach{Consumer: &Consumer{ID: "all", Prefetch: 2}}), "all 1", "all 2")
	if x.searches != before {
		t.Errorf("%d pages were searched for who takes everything", x.searches-before)
	}
}

// TestAPullIsAnsweredWhenEverythingWasLookedAt: receiveNoWait finds what is deep.
func TestAPullIsAnsweredWhenEverythingWasLookedAt(t *testing.T) {
	t.Parallel()
	const n = 5000
	x := newDeepTest(t, Options{TurnSteps: 40 * ReadSteps}, append(many(n, ofKind("a")), ofKind("b"))...)
	x.do(Attach{Consumer: &Consumer{ID: "b", Selector: parsed["b"]}})
	x.want("what is there", x.do(Pull{Consumer: "b", Until: -1}), fmt.Sprint("b ", n+1))
	x.want("what is not there", x.do(Pull{Consumer: "b", Until: -1}), "b nothing")
}

// costly is a selector that chooses kind, and needs steps for that: a message's
// property is as long.
func costly(t *testing.T, kind string) *selector.Selector {
	s, err := selector.Parse("(p LIKE '%x%' OR p LIKE '%y%') OR JMSType LIKE '" + kind + "'")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestACostlySelectorTakesOnlyItsShareOfATurn: in each turn another consumer has all
// it wants, and the costly one judges a few messages.
func TestACostlySelectorTakesOnlyItsShareOfATurn(t *testing.T) {
	t.Parallel()
	const n, budget = 300, 64 * ReadSteps
	long := []byte(strings.Repeat("z", 2*budget)) // what one evaluation costs is more than a quarter of it
	x := newDeepTest(t, Options{TurnSteps: budget})
	x.do(Attach{Consumer: &Consumer{ID: "slow", Prefetch: n, Selector: costly(t, "b")}})
	x.do(Attach{Consumer: &Consumer{ID: "quick", Prefetch: 2 * n, Selector: parsed["a"]}})
	var enqueue []Command
	for i := range n {
		m := *ofKind(kinds[i%2])
		m.Properties = long
		x.stored = append(x.stored, &m)
		enqueue = append(enqueue, Enqueue{Item: x.item(uint64(i + 1))})
	}
	x.turns, x.got = 0, nil
	for _, c := range enqueue { // all in one turn
		for _, e := range x.m.Apply(c, begin, nil) {
			if e.Kind == Deliver {
				x.got = append(x.got, e.Consumer.ID)
			}
		}
	}
	quick := 0
	for _, id := range x.got {
		if id == "quick" {
			quick++
		}
	}
	if quick != n/2 || len(x.got) > n/2+2 {
		t.Errorf("in the turn in which they come, the quick one has %d of %d, and the slow one %d", quick, n/2, len(x.got)-quick)
	}
	if !x.m.unfinished || x.m.Next() != begin {
		t.Errorf("it is unfinished: %v, and goes on at %d", x.m.unfinished, x.m.Next())
	}
	x.m.EndTurn(nil)
	first := len(x.got) - quick
	if got := x.do(Tick{}); first+len(got) != n/2 {
		t.Errorf("the slow one has %d of %d in the end", first+len(got), n/2)
	}
	if x.turns < n/4 {
		t.Errorf("it took %d turns", x.turns)
	}
	if x.m.Next() != 0 {
		t.Errorf("there is nothing to do, and it goes on at %d", x.m.Next())
	}
}

// TestManyCostlySelectorsAllGetOn: together they use up the turn, and yet each judges
// everything in the end.
func TestManyCostlySelectorsAllGetOn(t *testing.T) {
	t.Parallel()
	const n, budget = 40, 16 * ReadSteps
	m := *ofKind("a")
	m.Properties = []byte(strings.Repeat("z", budget))
	x := newDeepTest(t, Options{TurnSteps: budget, Window: 8}, many(n, &m)...)
	for i := range 9 {
		x.do(Attach{Consumer: &Consumer{ID: fmt.Sprint("c", i), Prefetch: n, Selector: costly(t, "b")}})
	}
	last := *ofKind("b")
	x.want("it comes to one that had to look at all the others", x.send(&last), "c0 41")
	x.do(Attach{Consumer: &Consumer{ID: "d", Prefetch: 1, Selector: costly(t, "a")}})
	if x.m.Stats().Out != 2 {
		t.Errorf("%+v", x.m.Stats())
	}
}

// TestWhoIsNearTheEndDoesNotWaitForASweep: while one consumer has a long queue searched,
// another one has what comes in.
func TestWhoIsNearTheEndDoesNotWaitForASweep(t *testing.T) {
	t.Parallel()
	const n = 50_000
	x := newDeepTest(t, Options{}, many(n, ofKind("a"))...)
	x.do(Attach{Consumer: &Consumer{ID: "near", Prefetch: 1, Selector: parsed["b"]}})
	x.want("it is full", x.send(ofKind("b")), fmt.Sprint("near ", n+1))
	x.send(ofKind("b"))
	missing, err := selector.Parse("JMSType = 'c'")
	if err != nil {
		t.Fatal(err)
	}
	todo := x.turn(Attach{Consumer: &Consumer{ID: "far", Prefetch: 1, Selector: missing}})
	for range 10 { // it has begun
		todo = append(todo[1:], x.turn(todo[0])...)
	}
	x.got = nil
	todo = append(todo, x.turn(Ack{Consumer: "near", Type: Individual, Last: Ref{Position: n + 1}})...)
	before := x.searches
	for len(x.got) == 0 && len(todo) > 0 && x.searches < before+20 {
		todo = append(todo[1:], x.turn(todo[0])...)
	}
	x.want("within a few pages", x.got, fmt.Sprint("near ", n+2))
}

// TestGroupsOfBusyOwnersDoNotHideOthers: of a window full of messages for one consumer,
// another one has what is behind it.
func TestGroupsOfBusyOwnersDoNotHideOthers(t *testing.T) {
	t.Parallel()
	const n = 5000
	of := func(group string) *message.Message { m := ofKind("a"); m.GroupID = group; return m }
	stored := append(many(n, of("A")), of("B"), of("A"), of("B"), of(""))
	x := newDeepTest(t, Options{Grouped: true, Window: 100}, stored...)
	x.want("the first has group A", x.do(Attach{Consumer: &Consumer{ID: "a", Prefetch: 1}}), "a 1")
	x.want("the second has what is behind", x.do(Attach{Consumer: &Consumer{ID: "b", Prefetch: 10}}),
		fmt.Sprint("b ", n+1), fmt.Sprint("b ", n+3), fmt.Sprint("b ", n+4))
	before := x.searches
	for p := range uint64(200) {
		x.want("the owner goes on", x.ack("a", p+1), fmt.Sprint("a ", p+2))
	}
	if x.searches > before {
		t.Errorf("%d pages were searched, and nothing has changed for the second", x.searches-before)
	}
	x.want("when the owner goes, the group is the second's", x.do(Detach{Consumer: "a", Last: -1, Cause: message.Closed}),
		"b 201", "b 202", "b 203", "b 204", "b 205", "b 206", "b 207")
}
