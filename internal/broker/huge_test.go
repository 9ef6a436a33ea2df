package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/store/errstore"
)

// TestManyFailuresAtOnceAreCounted fails more at once than the store takes in one batch:
// all of it is counted when that is answered, and whichever batch is lost, each message
// is in one place, with what is known of it.
func TestManyFailuresAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	const n = 600
	words := poisonText(1) + strings.Repeat("x", 2000)
	for name, tt := range map[string]struct {
		fail func(c *client, k string, got []Delivery) error
		dead bool
	}{
		"a rollback": {func(c *client, k string, got []Delivery) error {
			c.must(c.c.Begin("TX:1"))
			c.must(c.ack(queue.Standard, k, got[0], got[n-1], n, "TX:1"))
			return c.settle(c.c.Rollback, "TX:1")
		}, false},
		"recover": {func(c *client, k string, got []Delivery) error {
			return c.ack(queue.Redelivered, k, got[0], got[n-1], n, "")
		}, false},
		"a close": {func(c *client, k string, got []Delivery) error {
			done := make(chan error, 1)
			c.c.CloseConsumer(c.h.t.Context(), k, int64(got[n-1].Entry.Position), func(err error) { done <- err })
			return <-done
		}, false},
		"poison": {func(c *client, k string, got []Delivery) error {
			return c.ack(queue.Poison, k, got[0], got[n-1], n, "", words)
		}, true},
	} {
		for _, lost := range []int{0, 1, 2, 5} {
			t.Run(fmt.Sprintf("%s, batch %d lost", name, lost), func(t *testing.T) {
				t.Parallel()
				inHouse(t, nil, func(h *house) {
					h.stop()
					h.batchBytes = 256 << 10
					h.faults = errstore.Wrap(h.store)
					h.open()
					c := h.client()
					for i := range n {
						c.must(c.send(c.msg(orders, fmt.Sprint(i)), ""))
					}
					k := c.consume(orders, func(s *ConsumerSpec) { s.Prefetch = n })
					got := c.take()
					if len(got) != n {
						t.Fatalf("got %d", len(got))
					}
					h.faults.Fail(lost, errstore.Fault{Err: errNoPower, Dead: true})
					err := tt.fail(c, k, got)
					h.kill()
					failed, whole := h.failures(n)
					switch {
					case whole != n:
						t.Errorf("%d of %d messages are there", whole, n)
					case lost == 0 && (err != nil || failed != n):
						t.Errorf("%v: %d of %d failures are counted", err, failed, n)
					case lost != 0 && err == nil && failed != n:
						t.Errorf("it was answered, and %d of %d failures are counted", failed, n)
					case lost != 0 && !errors.Is(err, errNoPower) && failed != n:
						t.Errorf("it was answered with %v", err)
					}
					if n := h.depth(dlq.Name); tt.dead && int(n) != failed {
						t.Errorf("%d dead letters of %d that failed", n, failed)
					}
				})
			})
		}
	}
}

// failures counts the messages of which one failure is known, and all there are.
func (h *house) failures(n int) (failed, all int) {
	h.t.Helper()
	for _, q := range h.broker.Queues() {
		page, _, err := h.broker.Look(h.t.Context(), At(q.Name), Cursor{}, n)
		if err != nil {
			h.t.Fatal(err)
		}
		for i := range page {
			all++
			story, err := h.broker.Story(&page[i])
			if err != nil {
				h.t.Fatal(err)
			}
			if len(story) == 1 && story[0].Counted {
				failed++
			} else if len(story) > 0 || page[i].Counts.Failures > 0 {
				h.t.Errorf("%d failures, and the story %v", page[i].Counts.Failures, story)
			}
		}
	}
	return failed, all
}
