package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// A bench is a queue that is kept going: what it hands out goes into out.
type bench struct {
	m        *Machine
	effects  []Effect
	position uint64
	message  *message.Message
}

func newBench(consumers, prefetch int) *bench {
	x := &bench{
		m:       New(Options{Destination: message.Destination{Kind: message.Queue, Name: "Q"}, Redelivers: true, Marks: true}),
		message: &message.Message{ID: message.ID{Producer: "P"}, Persistent: true, Priority: message.DefaultPriority, Body: make([]byte, 1024)},
	}
	for i := range consumers {
		x.apply(Attach{Consumer: &Consumer{ID: fmt.Sprintf("consumer-%d", i), Connection: fmt.Sprintf("connection-%d", i), Prefetch: prefetch}})
	}
	x.endTurn()
	return x
}

func (x *bench) apply(c Command) { x.effects = x.m.Apply(c, begin, x.effects) }

// endTurn ends a turn and forgets what it told.
func (x *bench) endTurn() {
	x.effects = x.m.EndTurn(x.effects)
	clear(x.effects)
	x.effects = x.effects[:0]
}

func (x *bench) enqueue() *Item {
	x.position++
	it := NewItem(x.position, x.message)
	it.ID.Sequence = int64(x.position)
	it.Durable = true
	x.apply(Enqueue{Item: it, Producer: "P"})
	return it
}

// BenchmarkSteady is a message at a time: enqueued, handed out in the same turn,
// and acknowledged in the next.
func BenchmarkSteady(b *testing.B) {
	for _, consumers := range []int{1, 8, 200} {
		b.Run(fmt.Sprintf("consumers=%d", consumers), func(b *testing.B) {
			x := newBench(consumers, 1000)
			b.ReportAllocs()
			for b.Loop() {
				it := x.enqueue()
				k := it.consumer
				x.endTurn()
				x.apply(Ack{Consumer: k.ID, Type: Standard, First: Ref{Position: x.position}, Last: Ref{Position: x.position}, Count: 1})
				x.endTurn()
			}
		})
	}
}

// BenchmarkTurns is the same with 100 messages a turn, and range acknowledgements.
func BenchmarkTurns(b *testing.B) {
	x := newBench(1, 1000)
	b.ReportAllocs()
	for b.Loop() {
		first := x.position + 1
		for range 100 {
			x.enqueue()
		}
		x.endTurn()
		x.apply(Ack{Consumer: "consumer-0", Type: Standard, First: Ref{Position: first}, Last: Ref{Position: x.position}, Count: 100})
		x.endTurn()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/message")
}

// BenchmarkDrain hands a backlog out that lies in the store: pages in, marks out.
func BenchmarkDrain(b *testing.B) {
	const backlog = 10_000
	pages := make([]message.Entry, backlog)
	for i := range pages {
		pages[i] = NewItem(uint64(i+1), &message.Message{ID: message.ID{Producer: "P", Sequence: int64(i)}, Persistent: true}).Entry
	}
	b.ReportAllocs()
	for b.Loop() {
		x := newBench(0, 0)
		x.m.Restore(x.m.o.LaneOf(message.DefaultPriority), 1, backlog, backlog*1024)
		x.apply(Attach{Consumer: &Consumer{ID: "c", Prefetch: 1000}})
		for done := 0; done < backlog; {
			x.effects = x.m.EndTurn(x.effects)
			var first, last uint64
			n := 0
			var ask *Paged
			var times []Timed
			for i := range x.effects {
				switch e := &x.effects[i]; e.Kind {
				case Deliver:
					if n == 0 {
						first = e.Item.Position
					}
					n, last = n+1, e.Item.Position
				case PageTimes:
					times = append(times, Timed{Index: e.Index, End: true})
				case PageIn:
					ask = &Paged{Lane: e.Lane}
					for p := e.Number; p < min(e.Number+uint64(e.Counter), backlog); p++ {
						ask.Items = append(ask.Items, StoredItem(pages[p], message.Counts{}, false))
					}
				}
			}
			clear(x.effects)
			x.effects = x.effects[:0]
			for _, c := range times {
				x.apply(c)
			}
			if ask != nil {
				x.apply(*ask)
			}
			if n > 0 {
				x.apply(Ack{Consumer: "c", Type: Standard, First: Ref{Position: first}, Last: Ref{Position: last}, Count: n})
				done += n
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/backlog, "ns/message")
}

// BenchmarkRollback is a message that is acknowledged in a transaction, rolled back
// and announced, again and again.
func BenchmarkRollback(b *testing.B) {
	x := newBench(1, 10)
	x.enqueue()
	x.endTurn()
	ref := Ref{Position: 1}
	b.ReportAllocs()
	for b.Loop() {
		x.apply(Ack{Consumer: "consumer-0", Type: Standard, First: ref, Last: ref, Count: 1, Tx: "T"})
		x.apply(Settle{Tx: "T", Cause: message.Rollback})
		x.apply(Ack{Consumer: "consumer-0", Type: Redelivered, First: ref, Last: ref, Count: 1})
		x.endTurn()
	}
}

// BenchmarkSelectors is a queue of messages that nobody wants, consumers that each
// want one kind of message, and such messages.
func BenchmarkSelectors(b *testing.B) {
	x := newBench(0, 0)
	for i := range 8 {
		x.apply(Attach{Consumer: &Consumer{ID: fmt.Sprintf("consumer-%d", i), Prefetch: 1, Selector: parsed[kinds[0]]}})
	}
	for range 900 {
		x.enqueue()
	}
	x.endTurn()
	x.message = &message.Message{ID: message.ID{Producer: "P"}, Persistent: true, Type: kinds[0]}
	b.ReportAllocs()
	for b.Loop() {
		it := x.enqueue()
		k := it.consumer
		x.endTurn()
		x.apply(Ack{Consumer: k.ID, Type: Standard, First: Ref{Position: x.position}, Last: Ref{Position: x.position}, Count: 1})
		x.endTurn()
	}
}

// BenchmarkCorrelated is a reply queue: each consumer waits for the correlation id of
// its own, and each message is for one of them. Behind is how many messages that nobody
// wants lie before them.
func BenchmarkCorrelated(b *testing.B) {
	for _, tt := range []struct{ consumers, behind int }{{1, 0}, {100, 0}, {1000, 0}, {1, 5000}, {1000, 5000}} {
		b.Run(fmt.Sprintf("consumers=%d/behind=%d", tt.consumers, tt.behind), func(b *testing.B) {
			x := newBench(0, 0)
			var messages []*message.Message
			for i := range tt.consumers {
				id := fmt.Sprintf("ID:host-40000-1700000000000-1:1:1:%d", i)
				s, err := selector.Parse("JMSCorrelationID = '" + id + "'")
				if err != nil {
					b.Fatal(err)
				}
				messages = append(messages, &message.Message{ID: message.ID{Producer: "P"}, Persistent: true, CorrelationID: id, Body: make([]byte, 1024)})
				x.apply(Attach{Consumer: &Consumer{ID: id, Prefetch: 1, Selector: s}})
			}
			for range tt.behind {
				x.enqueue()
				x.endTurn()
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x.message = messages[i*7919%len(messages)] // in no order that helps
				it := x.enqueue()
				k := it.consumer
				x.endTurn()
				x.apply(Ack{Consumer: k.ID, Type: Standard, First: Ref{Position: x.position}, Last: Ref{Position: x.position}, Count: 1})
				x.endTurn()
			}
		})
	}
}

// BenchmarkDelayed is a message that fails, waits for its delay and is handed out
// again, while 100,000 others wait for theirs.
func BenchmarkDelayed(b *testing.B) {
	const outstanding = 100_000
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries, p.InitialRedeliveryDelay, p.RedeliveryDelay = redelivery.Unlimited, 10*time.Second, 10*time.Second
	o := Options{Destination: message.Destination{Kind: message.Queue, Name: "Q"}, Redelivers: true, Marks: true, Rules: redelivery.Rules{Redelivery: &p}}
	x := &bench{m: New(o), message: &message.Message{ID: message.ID{Producer: "P"}, Persistent: true, Priority: message.DefaultPriority}}
	x.apply(Attach{Consumer: &Consumer{ID: "c", Connection: "C", Prefetch: outstanding + 1}})
	now := int64(begin)
	fail := func(position uint64) {
		ref := Ref{Position: position}
		x.effects = x.m.Apply(Ack{Consumer: "c", Type: Poison, First: ref, Last: ref, Count: 1, Text: "x"}, now, x.effects)
	}
	for range outstanding {
		x.enqueue()
		fail(x.position)
		x.endTurn()
		now++ // each is due at its own millisecond
	}
	b.ReportAllocs()
	for b.Loop() {
		now = max(now, x.m.Next())
		x.effects = x.m.Apply(Tick{}, now, x.effects)
		var back []uint64
		for i := range x.effects {
			if e := &x.effects[i]; e.Kind == Deliver {
				back = append(back, e.Item.Position)
			}
		}
		if len(back) == 0 {
			b.Fatal("nothing is due")
		}
		x.endTurn()
		for _, position := range back {
			fail(position)
		}
		x.endTurn()
	}
}
