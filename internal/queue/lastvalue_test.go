package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// TestLastValueLaws goes through random lives of a last-value queue: of what waits no
// two have one value, and the newest message of a value is there until a consumer is
// done with it, or it is a dead letter.
func TestLastValueLaws(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := redelivery.DefaultPolicy()
		p.MaximumRedeliveries, p.InitialRedeliveryDelay = 2, time.Second
		o := Options{Destination: message.Destination{Kind: message.Queue, Name: "Q"}, Redelivers: true, Marks: true, LastValue: "type", Rules: redelivery.Rules{Redelivery: &p},
			Properties: func(m *message.Message, _ string) (selector.Value, bool) { return selector.StringValue(m.Type), true }}
		m := New(o)
		now := int64(begin)
		newest, done := map[string]uint64{}, map[uint64]bool{}
		held := map[string][]uint64{}
		do := func(c Command) {
			for _, e := range m.EndTurn(m.Apply(c, now, nil)) {
				switch {
				case e.Kind == Deliver:
					held[e.Consumer.ID] = append(held[e.Consumer.ID], e.Item.Position)
				case e.Kind == Transfer, e.Kind == Remove && e.Reason == Acknowledged:
					done[e.Item.Position] = true
				}
			}
		}
		for position := uint64(1); position < 200; {
			c := fmt.Sprintf("c%d", r.IntN(3))
			switch r.IntN(8) {
			case 0, 1, 2:
				it := durableItem(position)
				it.Message.Type = string(rune('a' + r.IntN(4)))
				newest[it.Message.Type] = position
				do(Enqueue{Item: it})
				position++
			case 3:
				do(Attach{Consumer: &Consumer{ID: c, Connection: c, Prefetch: 1 + r.IntN(3)}})
			case 4:
				do(Detach{Consumer: c, Last: []int64{-1, 0, UnknownLast, int64(position)}[r.IntN(4)], Cause: message.Closed})
				held[c] = nil
			case 5, 6:
				if len(held[c]) == 0 {
					continue
				}
				first := held[c][0]
				held[c] = held[c][1:]
				typ, text := Individual, ""
				if r.IntN(2) == 0 {
					typ, text = Poison, "Delivery[1]"
				}
				do(Ack{Consumer: c, Type: typ, First: Ref{Position: first}, Last: Ref{Position: first}, Count: 1, Text: text})
			case 7:
				now += r.Int64N(3000)
				do(Tick{})
			}
			waits, there := map[string]uint64{}, map[uint64]bool{}
			m.Each(func(it *Item) {
				there[it.Position] = true
				if it.place == out || it.place == limbo {
					return
				}
				if other := waits[it.Message.Type]; other != 0 {
					t.Fatalf("seed %d: %d and %d wait, both %s", seed, other, it.Position, it.Message.Type)
				}
				waits[it.Message.Type] = it.Position
			})
			for value, p := range newest {
				if !there[p] && !done[p] {
					t.Fatalf("seed %d: %d is lost, the newest of %s", seed, p, value)
				}
			}
		}
		if len(m.newest) > 4 {
			t.Fatalf("seed %d: %d values are remembered", seed, len(m.newest))
		}
	}
}
