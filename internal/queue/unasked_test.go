package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A member of a group has its place again when it is read from the store, although its
// time has come (C24). One that the policy gives up has none.
func TestPolicyIsAskedBeforeAMemberOfAGroupHasItsPlace(t *testing.T) {
	t.Parallel()
	p := redelivery.DefaultPolicy()
	p.MaximumRedeliveries = 1
	o := Options{Destination: message.Destination{Kind: message.Queue, Name: "Q"}, Redelivers: true, Grouped: true}
	o.Rules.Redelivery = &p
	d := newShelf()
	for n, failures := range []int32{2, 1, 0} {
		it := groupedItem(uint64(n+1), "G", 0)
		it.Stored = true
		if err := d.append(o.LaneOf(message.DefaultPriority), it); err != nil {
			t.Fatal(err)
		}
		if failures > 0 {
			d.counts[it.Position] = message.Counts{Failures: failures, Attempts: failures, Unasked: true, Due: begin + int64(failures)}
		}
	}
	m := d.open(o)
	var dead []uint64
	var got []string
	effects := m.Apply(Attach{Consumer: &Consumer{ID: "a", Connection: "a", Prefetch: 10}}, begin+5, nil)
	for len(effects) > 0 {
		effects = m.EndTurn(effects)
		got = append(got, given(effects)...)
		var next []Effect
		for i := range effects {
			switch e := &effects[i]; e.Kind {
			case Transfer:
				dead = append(dead, e.Item.Position)
			case PageTimes:
				next = m.Apply(d.times(e.Index, e.From, e.Counter), begin+5, next)
			case PageIn:
				next = m.Apply(d.page(e.Lane, e.Number, e.Counter), begin+5, next)
			}
		}
		effects = next
	}
	if diff := cmp.Diff([]string{"a 2 first", "a 3"}, got); diff != "" || len(dead) != 1 || dead[0] != 1 {
		t.Errorf("dead letters %v, want 1; handed out (-want +got):\n%s", dead, diff)
	}
}
