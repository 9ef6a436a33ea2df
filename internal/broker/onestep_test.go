package broker

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/store/errstore"
)

// TestWhatMovesIsOneStep loses the power at each batch in turn while a message moves:
// afterwards it is in one of the places, never in both and never in none.
func TestWhatMovesIsOneStep(t *testing.T) { // R-EDGE-01, R-EDGE-11, R-BRK-14, R-DLQ-08
	t.Parallel()
	both := queueNamed("A,B")
	for name, tt := range map[string]struct {
		set   func(*Options)
		first func(h *house, c *client)     // before the power may go
		then  func(h *house, c *client)     // while it may
		whole []map[message.Destination]int // what may be there, how often
	}{
		"a dead letter": {nil,
			func(h *house, c *client) { c.must(c.send(c.msg(orders, "m"), "")); c.last = c.consume(orders) },
			func(_ *house, c *client) {
				d := c.take()[0]
				_ = c.ack(queue.Poison, c.last, d, d, 1, "", poisonText(1))
			},
			[]map[message.Destination]int{{orders: 1}, {dlq: 1}}},
		"an expiry": {nil,
			func(h *house, c *client) { c.must(c.send(c.msg(orders, "m", expiring(time.Second)), "")) },
			func(h *house, c *client) { time.Sleep(2 * time.Second) },
			[]map[message.Destination]int{{dlq: 1}}}, // if not before, then after
		"a redrive": {nil,
			func(h *house, c *client) { h.deadLetters(orders, 1) },
			func(h *house, c *client) { _, _ = h.broker.Redrive(h.t.Context(), dlqAt, Selection{}) },
			[]map[message.Destination]int{{orders: 1}, {dlq: 1}}},
		"a move": {nil,
			func(h *house, c *client) { c.must(c.send(c.msg(orders, "m"), "")) },
			func(h *house, c *client) { _, _ = h.broker.Move(h.t.Context(), At(orders), shelf, Selection{}) },
			[]map[message.Destination]int{{orders: 1}, {shelf: 1}}},
		"R-EDGE-07, R-PLG-25 a redelivery by the broker": {policed(3, time.Second, time.Second, 0),
			func(h *house, c *client) { c.must(c.send(c.msg(orders, "m"), "")); c.last = c.consume(orders) },
			func(_ *house, c *client) {
				d := c.take()[0]
				_ = c.ack(queue.Poison, c.last, d, d, 1, "", poisonText(1))
				time.Sleep(2 * time.Second)
			},
			[]map[message.Destination]int{{orders: 1}}},
		"R-EDGE-46, R-SCH-15 a scheduled message that is due": {nil,
			func(h *house, c *client) { c.must(c.send(c.msg(orders, "m", in(time.Second)), "")) },
			func(h *house, c *client) { time.Sleep(2 * time.Second) },
			[]map[message.Destination]int{{orders: 1}}},
		"R-VT-07 a send to two queues": {nil,
			func(h *house, c *client) {},
			func(h *house, c *client) { _ = c.send(c.msg(both, "m"), "") },
			[]map[message.Destination]int{{}, {queueNamed("A"): 1, queueNamed("B"): 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make([]bool, len(tt.whole))
			for n, more := 1, true; more; n++ {
				if n > 20 {
					t.Fatal("this never ends")
				}
				inHouse(t, tt.set, func(h *house) {
					h.stop()
					h.faults = errstore.Wrap(h.store)
					h.open()
					c := h.client()
					tt.first(h, c)
					time.Sleep(tick)
					before := h.faults.Commits()
					h.faults.Fail(n, errstore.Fault{Err: errors.New("no power"), Dead: true})
					tt.then(h, c)
					c.take()
					more = h.faults.Commits() >= before+n
					h.kill()
					time.Sleep(3 * time.Second) // what is due comes
					there := map[message.Destination]int{}
					for _, q := range h.broker.Queues() {
						if k := len(h.all(At(q.Name))); k > 0 {
							there[q.Name] = k
						}
					}
					i := slices.IndexFunc(tt.whole, func(w map[message.Destination]int) bool { return maps.Equal(w, there) })
					if i < 0 {
						t.Fatalf("batch %d lost: %v", n, there)
					}
					seen[i] = true
				})
			}
			if slices.Contains(seen, false) {
				t.Errorf("the power never went in a way that leaves each of %v: %v", tt.whole, seen)
			}
		})
	}
}
