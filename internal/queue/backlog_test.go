package queue

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// A plainBacklog is a topic's consumer with what waits for it, in the plainest way.
type plainBacklog struct {
	o        Options
	own      int // the consumer's limit
	prefetch int
	waiting  []*Item // in the order of positions
	out      []*Item
	told     []string
	evicted  int
}

func (p *plainBacklog) limit() int {
	n := p.o.Backlog.Most
	if p.o.Backlog.Limits == WindowLimit {
		n = int(p.o.Backlog.Rate * float64(p.prefetch))
	}
	if p.own > 0 && (n < 0 || p.own < n) {
		n = p.own
	}
	if p.o.Backlog.Limits == NoLimit || n < 0 {
		return 1 << 30
	}
	return n
}

func (p *plainBacklog) take(it *Item) {
	p.waiting = slices.DeleteFunc(p.waiting, func(o *Item) bool { return o == it })
}

// settle hands out what there is room for, and evicts what is too much.
func (p *plainBacklog) settle() {
	for len(p.waiting) > 0 && len(p.out) < p.prefetch {
		first := slices.MinFunc(p.waiting, func(a, b *Item) int {
			if p.o.Prioritized && a.Priority != b.Priority {
				return cmp.Compare(b.Priority, a.Priority)
			}
			return cmp.Compare(a.Position, b.Position)
		})
		p.take(first)
		p.out = append(p.out, first)
		p.told = append(p.told, fmt.Sprintf("deliver %d", first.Position))
	}
	for len(p.waiting) > p.limit() {
		for _, it := range p.victims() {
			p.take(it)
			p.evicted++
			how := "drop"
			if it.Persistent {
				how = "dead letter"
			}
			p.told = append(p.told, fmt.Sprintf("evict %d, the %d.: %s", it.Position, p.evicted, how))
		}
	}
}

func (p *plainBacklog) victims() []*Item {
	switch p.o.Backlog.Evicts {
	case EvictLowestPriority:
		return []*Item{slices.MinFunc(p.waiting, func(a, b *Item) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Position, b.Position))
		})}
	case EvictSuperseded:
		var old []*Item
		for i, it := range p.waiting {
			v := it.Message.Added["value"]
			if v != nil && slices.ContainsFunc(p.waiting[i+1:], func(o *Item) bool { return o.Message.Added["value"] == v }) {
				old = append(old, it)
			}
		}
		if len(old) > 0 {
			// in the order in which they were superseded
			newer := func(it *Item) uint64 {
				for _, o := range p.waiting {
					if o.Position > it.Position && o.Message.Added["value"] == it.Message.Added["value"] {
						return o.Position
					}
				}
				return 0
			}
			slices.SortFunc(old, func(a, b *Item) int { return cmp.Compare(newer(a), newer(b)) })
			return old
		}
	}
	return p.waiting[:1]
}

// valued looks up the property that the tests evict by.
func valued(m *message.Message, name string) (selector.Value, bool) {
	v, ok := m.Added[name].(int)
	if !ok {
		return selector.Value{}, false
	}
	return selector.IntValue(int64(v)), true
}

// TestBacklogLaws gives a machine and a plain backlog the same random commands: never
// does more wait than the limit, what is evicted is what the strategy says, each that
// is evicted is told once, with its number, and either dropped or a dead letter, and
// nothing else is lost (R-DLS-01).
func TestBacklogLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits, least, window := []BacklogLimit{ConstantLimit, ConstantLimit, WindowLimit, NoLimit}, -1, DefaultWindow
		if rapid.Bool().Draw(t, "small window") { // it grows with the limit, so there must be one
			limits, least, window = limits[:3], 0, rapid.IntRange(1, 4).Draw(t, "window")
		}
		backlog := func() Backlog {
			return Backlog{Limits: rapid.SampledFrom(limits).Draw(t, "limits"), Most: rapid.IntRange(least, 6).Draw(t, "most"),
				Rate: rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "rate"), Evicts: rapid.SampledFrom([]Eviction{EvictOldest, EvictLowestPriority, EvictSuperseded}).Draw(t, "evicts"), Property: "value"}
		}
		p := &plainBacklog{o: Options{Destination: message.Destination{Kind: message.Topic, Name: "T"}, Prioritized: rapid.Bool().Draw(t, "prioritized"),
			Window: window, Properties: valued, Backlog: backlog()},
			own: rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "own limit"), prefetch: rapid.IntRange(1, 4).Draw(t, "prefetch")}
		m := New(p.o)
		sent, acked := 0, 0
		do := func(c Command) {
			t.Helper()
			p.settle()
			var told []string
			for _, e := range m.EndTurn(m.Apply(c, begin, nil)) {
				switch {
				case e.Kind == Deliver:
					told = append(told, fmt.Sprintf("deliver %d", e.Item.Position))
				case e.Kind == Tell && e.Event == ItemEvicted:
					told = append(told, fmt.Sprintf("evict %d, the %d.: ", e.Item.Position, e.Counter))
				case e.Kind == Remove && e.Reason == Discarded:
					told[len(told)-1] += "drop"
				case e.Kind == Transfer && e.Move.Target.Name == redelivery.DefaultDeadLetterQueue && e.Move.Text == redelivery.DiscardCause("c"):
					told[len(told)-1] += "dead letter"
				}
			}
			if d := diff.Diff(p.told, told); d != "" {
				t.Fatalf("(-plain +machine):\n%s", d)
			}
			p.told = nil
			s := m.Stats()
			if n := int(s.Waiting); n > p.limit() || n != len(p.waiting) {
				t.Fatalf("%d wait, the limit is %d; plainly %d do", n, p.limit(), len(p.waiting))
			}
			if int(s.Evicted) != p.evicted || sent != acked+len(p.waiting)+len(p.out)+p.evicted {
				t.Fatalf("%d evicted of %d sent, plainly %d", s.Evicted, sent, p.evicted)
			}
		}
		do(Attach{Consumer: &Consumer{ID: "c", Prefetch: p.prefetch, MostWaiting: p.own}})
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				sent++
				x := &message.Message{ID: message.ID{Producer: "P", Sequence: int64(sent)}, Persistent: rapid.Bool().Draw(t, "persistent"), Priority: uint8(rapid.IntRange(0, 9).Draw(t, "priority"))}
				if v := rapid.IntRange(0, 3).Draw(t, "value"); v > 0 {
					x.Added = map[string]any{"value": v}
				}
				it := NewItem(uint64(sent), x)
				p.waiting = append(p.waiting, it)
				do(Enqueue{Item: it})
			},
			"acknowledge": func(t *rapid.T) {
				if len(p.out) == 0 {
					t.Skip()
				}
				n := rapid.IntRange(1, len(p.out)).Draw(t, "n")
				last := p.out[n-1]
				p.out = p.out[n:]
				acked += n
				do(Ack{Consumer: "c", Type: Standard, Last: Ref{Position: last.Position}, Count: n})
			},
			"prefetch": func(t *rapid.T) {
				p.prefetch = rapid.IntRange(1, 6).Draw(t, "prefetch")
				do(SetPrefetch{Consumer: "c", Prefetch: p.prefetch})
			},
			"reload": func(t *rapid.T) {
				p.o.Backlog = backlog()
				do(SetPolicy{Backlog: p.o.Backlog})
			},
		})
	})
}

// TestBacklogInTheStore evicts also what was left to the store: it comes by pages.
func TestBacklogInTheStore(t *testing.T) {
	t.Parallel()
	shelf := newShelf()
	m := New(Options{Destination: message.Destination{Kind: message.Topic, Name: "T"}, Window: 2, Properties: valued, Backlog: Backlog{Limits: ConstantLimit, Most: 1}})
	var delivered, evicted []uint64
	do := func(c Command) {
		for todo := []Command{c}; len(todo) > 0; {
			effects := m.EndTurn(m.Apply(todo[0], begin, nil))
			todo = todo[1:]
			for i := range effects {
				if err := shelf.apply(&effects[i]); err != nil {
					t.Fatal(err)
				}
			}
			for i := range effects {
				switch e := &effects[i]; {
				case e.Kind == Deliver:
					delivered = append(delivered, e.Item.Position)
				case e.Kind == Tell && e.Event == ItemEvicted:
					evicted = append(evicted, e.Item.Position)
				case e.Kind == PageIn:
					todo = append(todo, shelf.page(e.Lane, e.Number, e.Counter))
				}
			}
		}
	}
	for i := range 6 { // before its consumer is there, nothing is evicted
		do(Enqueue{Item: NewItem(uint64(i+1), &message.Message{ID: message.ID{Producer: "P", Sequence: int64(i + 1)}})})
	}
	do(Attach{Consumer: &Consumer{ID: "c", Prefetch: 1}})
	if d := diff.Diff([]uint64{1}, delivered) + diff.Diff([]uint64{2, 3, 4, 5}, evicted); d != "" || m.Stats().Waiting != 1 {
		t.Errorf("%d wait; delivered and evicted (-want +got):\n%s", m.Stats().Waiting, d)
	}
}

// TestQueuesEvictNothing: nor do durable subscriptions, whatever their policy says.
func TestQueuesEvictNothing(t *testing.T) {
	t.Parallel()
	m, do := newQueue(Options{Backlog: Backlog{Limits: ConstantLimit, Most: 1}})
	do(Attach{Consumer: &Consumer{ID: "c", Prefetch: 1, MostWaiting: 1}})
	for i := range uint64(9) {
		do(Enqueue{Item: durableItem(i + 1)})
	}
	if s := m.Stats(); s.Evicted != 0 || s.Waiting != 8 {
		t.Errorf("%+v", s)
	}
}
