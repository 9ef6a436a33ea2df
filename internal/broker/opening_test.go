package broker

import (
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// A queue that has something to dead letter as soon as it is opened does so while the
// broker still opens others: the dead letter queue that is there is not to be made anew.
func TestDeadLettersOfTheStartGoToTheQueueThatIsThere(t *testing.T) {
	t.Parallel()
	slow := false
	set := func(o *Options) {
		o.Policy = func(d message.Destination) Policy {
			if slow && d == dlq { // it is opened last
				time.Sleep(time.Second)
			}
			return Policy{}
		}
	}
	inHouse(t, set, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(orders, "first", expiring(time.Second)), ""))
		time.Sleep(2 * time.Second)
		c.must(c.send(c.msg(orders, "second", expiring(time.Minute)), ""))
		c.c.Close(message.Closed, "", queue.UnknownLast)
		h.holds(At(dlq), "first")
		h.stop()
		time.Sleep(2 * time.Minute)
		slow = true
		h.open()
		time.Sleep(time.Second)
		h.restart()
		time.Sleep(time.Second)
		h.holds(At(dlq), "first", "second")
	})
}
