package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/selector"
)

// given lists what a command handed out, as "consumer position".
func given(effects []Effect) []string {
	var all []string
	for i := range effects {
		if e := &effects[i]; e.Kind == Deliver {
			first := ""
			if e.First {
				first = " first"
			}
			all = append(all, e.Consumer.ID+" "+string(rune('0'+e.Item.Position))+first)
		}
	}
	return all
}

func groupedItem(position uint64, group string, sequence int32) *Item {
	it := NewItem(position, &message.Message{ID: message.ID{Producer: "P", Sequence: int64(position)}, Persistent: true, GroupID: group, GroupSequence: sequence})
	it.Durable = true
	return it
}

func TestGroupCases(t *testing.T) {
	t.Parallel()
	attach := func(id string, set func(*Consumer)) Command {
		c := &Consumer{ID: id, Connection: id, Prefetch: 10}
		if set != nil {
			set(c)
		}
		return Attach{Consumer: c}
	}
	send := func(position uint64, group string, sequence int32) Command {
		return Enqueue{Item: groupedItem(position, group, sequence)}
	}
	only := func(text string) func(*Consumer) {
		return func(c *Consumer) {
			s, err := selector.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			c.Selector = s
		}
	}
	ack := func(consumer string, position uint64) Command {
		return Ack{Consumer: consumer, Type: Individual, Last: Ref{Position: position}, Count: 1}
	}
	for name, tt := range map[string]struct {
		do   []Command
		want []string
	}{
		"R-GRP-01 a group stays with its first consumer": {
			[]Command{attach("a", nil), send(1, "A", 0), attach("b", nil), send(2, "A", 0), send(3, "B", 0), send(4, "A", 0)},
			[]string{"a 1 first", "a 2", "b 3 first", "a 4"}},
		"R-GRP-01 sequence 1 begins anew": {
			[]Command{attach("a", nil), send(1, "A", 1), send(2, "A", 2), attach("b", nil), send(3, "A", 1), send(4, "A", 2)},
			[]string{"a 1 first", "a 2", "b 3 first", "b 4"}},
		"R-GRP-01 a message that comes back does not begin anew": {
			[]Command{attach("a", nil), send(1, "A", 1), attach("b", nil),
				Ack{Consumer: "a", Type: Poison, First: Ref{Position: 1}, Last: Ref{Position: 1}, Count: 1, Text: "java.lang.Throwable: Suppressing duplicate delivery on connection, consumer x"}},
			[]string{"a 1 first", "a 1"}},
		"R-GRP-01 a negative sequence closes the group": {
			[]Command{attach("a", nil), send(1, "A", 0), attach("b", nil), send(2, "B", 0), send(3, "A", -1), send(4, "C", 0), send(5, "A", 0)},
			[]string{"a 1 first", "b 2 first", "a 3", "a 4 first", "b 5 first"}},
		"R-GRP-03 its owner dies, and what it had goes first": {
			[]Command{attach("a", nil), send(1, "A", 0), send(2, "A", 0), attach("b", nil),
				Detach{Consumer: "a", Last: -1, Cause: message.Closed}, send(3, "A", 0)},
			[]string{"a 1 first", "a 2", "b 1 first", "b 2", "b 3"}},
		"an owner whose selector does not want a message leaves it to others": {
			[]Command{attach("a", only("JMSPriority = 0")), attach("b", only("JMSPriority = 9")),
				Enqueue{Item: withPriority(groupedItem(1, "A", 0), 0)}, Enqueue{Item: withPriority(groupedItem(2, "A", 0), 9)}, Enqueue{Item: withPriority(groupedItem(3, "A", 0), 0)}},
			[]string{"a 1 first", "b 2", "a 3"}},
		"R-EXC-01 an exclusive consumer has all groups, when their owners are done": {
			[]Command{attach("a", nil), send(1, "A", 0), attach("b", func(c *Consumer) { c.Exclusive = true }), send(2, "A", 0), send(3, "B", 0), ack("a", 1)},
			[]string{"a 1 first", "b 3 first", "b 2 first"}},
		"the owner is full, and others are served meanwhile": {
			[]Command{attach("a", func(c *Consumer) { c.Prefetch = 1 }), send(1, "A", 0), attach("b", nil), send(2, "A", 0), send(3, "", 0), ack("a", 1)},
			[]string{"a 1 first", "b 3", "a 2"}},
		"a higher priority goes before a smaller share": {
			[]Command{attach("a", nil), attach("b", func(c *Consumer) { c.Priority = 5 }), send(1, "A", 0), send(2, "B", 0)},
			[]string{"b 1 first", "b 2 first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, do := newQueue(Options{Grouped: true, Properties: func(*message.Message, string) (selector.Value, bool) { return selector.Value{}, false }})
			var got []string
			for _, c := range tt.do {
				got = append(got, given(do(c))...)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func withPriority(it *Item, priority uint8) *Item {
	it.Priority, it.Message.Priority = priority, priority
	return it
}
