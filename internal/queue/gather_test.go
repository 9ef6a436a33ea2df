package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGather(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gather Gather
		second int64 // when the second consumer comes; 0: never
		begins int64 // ms after the first consumer
	}{
		"at once":                           {Gather{}, 0, 0},
		"for one consumer":                  {Gather{Consumers: 1}, 0, 0},
		"for two, and the second comes":     {Gather{Consumers: 2}, 300, 300},
		"for two, who do not come":          {Gather{Consumers: 2}, 0, 1000},
		"for two, within a time":            {Gather{Consumers: 2, Wait: 5000}, 4000, 4000},
		"for two, and the time ends before": {Gather{Consumers: 2, Wait: 5000}, 6000, 5000},
		"for a time alone":                  {Gather{Wait: 5000}, 300, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, do := newQueue(Options{Gather: tt.gather, Grouped: true})
			do(Enqueue{Item: groupedItem(1, "A", 0)})
			do(Enqueue{Item: groupedItem(2, "B", 0)})
			got := given(do(Attach{Consumer: &Consumer{ID: "a", Prefetch: 10}}))
			var at int64
			for at = 0; len(got) == 0 && at < 10_000; {
				next := m.Next() - begin
				if tt.second > at && (next < 0 || tt.second <= next) {
					at = tt.second
					got = given(m.EndTurn(m.Apply(Attach{Consumer: &Consumer{ID: "b", Prefetch: 10}}, begin+at, nil)))
					continue
				}
				if next < 0 {
					t.Fatal("nothing is to wake it")
				}
				at = next
				got = given(m.EndTurn(m.Apply(Tick{}, begin+at, nil)))
			}
			want := []string{"a 1 first", "a 2 first"}
			if tt.second != 0 && tt.second <= tt.begins {
				want[1] = "b 2 first"
			}
			if diff := cmp.Diff(want, got); diff != "" || at != tt.begins {
				t.Errorf("after %d ms, want %d (-want +got):\n%s", at, tt.begins, diff)
			}
		})
	}
}

// TestGatherAnew: who comes when nobody is there waits again.
func TestGatherAnew(t *testing.T) {
	t.Parallel()
	m, do := newQueue(Options{Gather: Gather{Wait: 5000}})
	do(Attach{Consumer: &Consumer{ID: "a", Prefetch: 1}})
	do(Detach{Consumer: "a", Last: -1})
	if m.Next() != 0 {
		t.Errorf("it waits with nobody there, until %d", m.Next())
	}
	m.Apply(Attach{Consumer: &Consumer{ID: "b", Prefetch: 1}}, begin+9000, nil)
	if m.Next() != begin+14_000 {
		t.Errorf("it waits until %d", m.Next()-begin)
	}
}
