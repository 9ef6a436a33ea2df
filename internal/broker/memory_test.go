package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// What is in memory for a topic's consumers is counted once for all of them, until
// each has acknowledged it or has gone; and what was left to the store for want of
// memory, or since a consumer is far behind, goes with that consumer.
func TestATopicsCopiesShareOneMessageUntilTheirConsumersHaveGone(t *testing.T) {
	for name, c := range map[string]struct {
		limit   int64 // of the messages in memory
		counted int64
	}{
		"there is room": {64 << 20, 2000*(1025+2*itemBytes) - 997*itemBytes}, // a window of 1,000 beside the three
		"there is none": {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(o *Options) { o.Limits.MessageBytes = c.limit }, func(h *house) {
				stored := func() (n int) {
					if err := h.shard.Scan(nil, nil, func(_, _ []byte) bool { n++; return true }); err != nil {
						t.Fatal(err)
					}
					return n
				}
				topic := message.Destination{Kind: message.Topic, Name: "PRICES"}
				few, all := h.client(), h.client()
				few.consume(topic, func(s *ConsumerSpec) { s.Prefetch = 3 })
				all.consume(topic, func(s *ConsumerSpec) { s.Prefetch = 5000 })
				p := h.client()
				before := stored()
				for i := range 2000 {
					p.must(p.send(p.msg(topic, "m", func(m *message.Message) { m.Persistent = false }), ""))
					if i%100 == 0 {
						time.Sleep(time.Second)
					}
				}
				if n := len(few.take()); n != 3 {
					t.Errorf("the consumer with a window of 3 has %d", n)
				}
				if n := h.broker.memory.used.Load(); n != c.counted {
					t.Errorf("%d bytes are counted, want %d", n, c.counted)
				}
				if stored() == before {
					t.Error("nothing was left to the store")
				}
				few.c.Close(message.Closed, "", -1)
				all.c.Close(message.Closed, "", -1)
				synctest.Wait()
				time.Sleep(time.Second)
				if n := h.broker.memory.used.Load(); n != 0 {
					t.Errorf("%d bytes are still counted", n)
				}
				if n := stored(); n != before {
					t.Errorf("%d keys are still stored", n-before)
				}
			})
		})
	}
}
