package queue

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

// newQueue makes a queue and a function that applies commands to it, each in a turn
// of its own, and returns what it told.
func newQueue(o Options) (m *Machine, do func(Command) []Effect) {
	o.Destination = message.Destination{Kind: message.Queue, Name: "Q"}
	o.Redelivers, o.Marks = true, true
	m = New(o)
	return m, func(c Command) []Effect { return m.EndTurn(m.Apply(c, begin, nil)) }
}

func durableItem(position uint64) *Item {
	it := NewItem(position, &message.Message{ID: message.ID{Producer: "P", Sequence: int64(position)}, Persistent: true})
	it.Durable = true
	return it
}

// kindsOf lists the kinds of effects.
func kindsOf(effects []Effect) []EffectKind {
	var kinds []EffectKind
	for i := range effects {
		kinds = append(kinds, effects[i].Kind)
	}
	return kinds
}

func TestOldestIsWhatTheSessionIsAt(t *testing.T) {
	t.Parallel()
	m, do := newQueue(Options{})
	if _, ok := m.Oldest("c"); ok {
		t.Error("a consumer that is not there has something")
	}
	do(Attach{Consumer: &Consumer{ID: "c", Prefetch: 2}})
	if _, ok := m.Oldest("c"); ok {
		t.Error("a consumer that was handed nothing has something")
	}
	do(Enqueue{Item: durableItem(1)})
	m.Apply(Enqueue{Item: durableItem(2)}, begin+5, nil)
	if at, ok := m.Oldest("c"); !ok || at != begin {
		t.Errorf("the oldest was handed out at %d, %v; want %d", at, ok, begin)
	}
	do(Ack{Consumer: "c", Type: Standard, Last: Ref{Position: 1}, Count: 1, Tx: "T"})
	if at, ok := m.Oldest("c"); !ok || at != begin+5 {
		t.Errorf("what its transaction acknowledged is behind it: %d, %v; want %d", at, ok, begin+5)
	}
}

func TestCountsThatComeWithAMessageAreStored(t *testing.T) {
	t.Parallel()
	m, do := newQueue(Options{})
	it := durableItem(1)
	it.Due = begin + 1000 // a delay that the producer asked for, say
	if diff := cmp.Diff([]EffectKind{Append, SaveCounts}, kindsOf(do(Enqueue{Item: it}))); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if m.Next() != it.Due || it.State() != "scheduled" {
		t.Errorf("it is %s, and next is %d", it.State(), m.Next())
	}
}

func TestProducersNotHeardOfForLongestAreForgotten(t *testing.T) {
	t.Parallel()
	m, do := newQueue(Options{})
	m.RestoreProducers(map[string]int64{"restored": 7})
	position := uint64(0)
	send := func(producer string, sequence int64) (taken bool, forgotten int) {
		position++
		it := durableItem(position)
		it.ID.Sequence = sequence
		effects := do(Enqueue{Item: it, Producer: producer})
		for i := range effects {
			switch effects[i].Kind {
			case Append:
				taken = true
			case DropProducer:
				forgotten++
			}
		}
		return taken, forgotten
	}
	if taken, _ := send("restored", 7); taken {
		t.Error("a duplicate of before the restart was taken")
	}
	send("quiet", 1)
	all := 0
	for i := range 2 * maxProducers {
		_, n := send(fmt.Sprintf("producer-%d", i), 1)
		all += n
		send("busy", int64(i+1))
	}
	if taken, _ := send("busy", 1); taken {
		t.Error("a producer that is heard of all the time was forgotten")
	}
	if taken, _ := send("quiet", 1); !taken {
		t.Error("a producer not heard of for longest is still remembered")
	}
	if known := len(m.producers.young) + len(m.producers.old); known > maxProducers || all < maxProducers {
		t.Errorf("%d are known and %d were forgotten", known, all)
	}
}

func TestLaneOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prioritized bool
		priority    uint8
		want        uint8
	}{
		"arrival alone decides":                 {false, 9, 5},
		"R-PRI-01 the highest goes first":       {true, 9, 0},
		"R-PRI-01 the lowest goes last":         {true, 0, 9},
		"a priority beyond 9 is the highest":    {true, 200, 0},
		"the default priority has the same one": {true, message.DefaultPriority, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Prioritized: tt.prioritized}
			if got := o.LaneOf(tt.priority); got != tt.want {
				t.Errorf("lane %d, want %d", got, tt.want)
			}
		})
	}
}

// TestTimeDoesNotStepBack: a clock that is set back must not reorder anything.
func TestTimeDoesNotStepBack(t *testing.T) {
	t.Parallel()
	m, do := newQueue(Options{})
	do(Attach{Consumer: &Consumer{ID: "c", Prefetch: 0}})
	do(Pull{Consumer: "c", Until: begin + 10})
	if told := m.Apply(Tick{}, begin-1000, nil); len(told) > 0 {
		t.Errorf("a step back told %v", kindsOf(told))
	}
	if told := m.Apply(Tick{}, begin+10, nil); len(told) != 1 || told[0].Kind != Nothing {
		t.Errorf("the time of the pull has passed: %v", kindsOf(told))
	}
}

// TestSteadyStateAllocatesNothing: but for the item itself, which the caller makes.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	x := newBench(2, 100)
	for range 100 {
		x.enqueue() // so that maps and slices have their size
	}
	x.endTurn()
	n := testing.AllocsPerRun(1000, func() {
		it := x.enqueue()
		if it.consumer == nil {
			t.Fatal("nobody has it")
		}
		k := it.consumer
		x.endTurn()
		x.apply(Ack{Consumer: k.ID, Type: Individual, Last: Ref{Position: it.Position}, Count: 1})
		x.endTurn()
	})
	if n > 1 {
		t.Errorf("%v allocations a message, want the item alone", n)
	}
}
