package broker

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// strictOrderDispatchPolicy: what several producers send at the same time comes to all
// subscriptions of a topic in one order, and each producer's order is kept.
func TestOneOrderForAllSubscriptions(t *testing.T) {
	const producers, each = 4, 150
	news := message.Destination{Kind: message.Topic, Name: "news"}
	all := message.Destination{Kind: message.Topic, Name: ">"}
	for _, tt := range []struct {
		name       string
		persistent func(n int) bool
		durable    bool // subscriptions, besides the others
		tx         bool
	}{
		{"in memory", func(int) bool { return false }, true, false},
		{"persistent", func(int) bool { return true }, true, false},
		{"both, without durable subscriptions", func(n int) bool { return n%3 == 0 }, false, false},
		{"in transactions", func(int) bool { return true }, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHouse(t, func(o *Options) { o.OneOrder = true }, func(h *house) {
				var readers []*client
				for i, d := range []message.Destination{news, all, news, all} {
					c := h.client()
					c.consume(d, func(s *ConsumerSpec) {
						if tt.durable && i > 1 {
							s.Subscription = "sub"
						}
					})
					readers = append(readers, c)
				}
				var sending sync.WaitGroup
				for p := range producers {
					c := h.client()
					sending.Go(func() {
						for n := range each {
							tx := ""
							if tt.tx {
								tx = fmt.Sprint("tx", n)
								c.must(c.c.Begin(tx))
							}
							m := c.msg(news, fmt.Sprintf("%d.%03d", p, n), func(m *message.Message) { m.Persistent = tt.persistent(n) })
							c.must(c.send(m, tx))
							if tt.tx {
								c.must(c.settle(c.c.Commit, tx))
							}
						}
					})
				}
				sending.Wait()
				first := texts(readers[0].take())
				if len(first) != producers*each {
					t.Fatalf("%d messages, want %d", len(first), producers*each)
				}
				last := map[byte]string{}
				for _, s := range first {
					if s <= last[s[0]] {
						t.Fatalf("%s after %s", s, last[s[0]])
					}
					last[s[0]] = s
				}
				for i, c := range readers[1:] {
					if got := texts(c.take()); !slices.Equal(got, first) {
						t.Errorf("subscription %d has another order than the first", i+1)
					}
				}
			})
		})
	}
}
