package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// TestC24AGroupStaysInOrderThroughADelayedRetry: two consumers of prefetch 1 commit
// everything but roll A0 back, always or once. A dead letter does not stop its group
// (R-GRP-04); neither the restart in between changes anything of the order, nor that the
// consumers are exclusive, so that one of them has everything.
func TestC24AGroupStaysInOrderThroughADelayedRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		failures  int
		kill      bool // the power goes after the first failure
		exclusive bool
	}{
		"A0 always fails": {3, false, false}, "A0 fails once": {1, false, false}, "a crash while it waits": {1, true, false},
		"A0 always fails an exclusive consumer": {3, false, true}, "A0 fails an exclusive consumer once": {1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, policed(2, time.Second, time.Second, 1), func(h *house) {
				x := &groupCase{h: h, owners: map[string]string{}, start: time.Now(), exclusive: tt.exclusive}
				x.join()
				sent := []string{"A0", "B0", "A1", "B1", "A2", "B2", "A3", "B3"}
				if tt.exclusive { // A1 is the next that the consumer of A0 could get
					slices.Sort(sent)
				}
				for _, text := range sent {
					c := x.clients[0]
					c.must(c.send(c.msg(orders, text, func(m *message.Message) { m.GroupID = text[:1] }), ""))
				}
				for range 60 {
					x.step(tt.failures)
					if tt.kill && x.attempts == 1 {
						tt.kill = false
						h.kill()
						x.owners = map[string]string{} // who owns a group is not stored
						x.join()
					}
					time.Sleep(100 * time.Millisecond)
				}
				want := map[string][]string{"A": {"A0", "A1", "A2", "A3"}, "B": {"B0", "B1", "B2", "B3"}}
				if tt.failures > 2 {
					want["A"] = want["A"][1:]
				}
				if diff := cmp.Diff(want, x.committed); diff != "" {
					t.Errorf("committed (-want +got):\n%s", diff)
				}
				if tt.failures <= 2 {
					return
				}
				owner := x.owners["A"]
				if o, err := h.broker.Redrive(h.t.Context(), At(dlq), Selection{}); err != nil || o.Taken != 1 {
					t.Fatalf("redrive: %+v, %v", o, err)
				}
				x.step(0)
				if n := len(x.committed["A"]); n != 4 || x.committed["A"][3] != "A0" || x.owners["A"] != owner {
					t.Errorf("after the redrive: %v, of %s, was %s", x.committed["A"], x.owners["A"], owner)
				}
			})
		})
	}
}

// A groupCase is two consumers that look what they have got now and then.
type groupCase struct {
	h         *house
	clients   []*client
	consumers []string
	owners    map[string]string // by group
	committed map[string][]string
	attempts  int // of A0
	last      time.Time
	start     time.Time
	tx        int
	exclusive bool
}

func (x *groupCase) join() {
	if x.committed == nil {
		x.committed = map[string][]string{}
	}
	x.clients, x.consumers = nil, nil
	for range 2 {
		c := x.h.client()
		x.clients = append(x.clients, c)
		x.consumers = append(x.consumers, c.consume(orders, func(s *ConsumerSpec) { s.Prefetch, s.Exclusive = 1, x.exclusive }))
	}
}

// step lets both consumers handle what they have.
func (x *groupCase) step(failures int) {
	x.h.t.Helper()
	for again := true; again; {
		again = false
		for i, c := range x.clients {
			for _, d := range c.take() {
				again = true
				x.handle(i, c, d, failures)
			}
		}
	}
}

func (x *groupCase) handle(i int, c *client, d Delivery, failures int) {
	t, body, k := x.h.t, string(d.Message.Body), x.consumers[i]
	group := body[:1]
	if owner := x.owners[group]; owner != "" && owner != k {
		t.Errorf("%s came to %s, its group is that of %s", body, k, owner)
	}
	x.owners[group] = k
	c.must(c.ack(queue.Delivered, k, d, d, 1, "")) // as Java clients do, before the application has it
	x.tx++
	tx := fmt.Sprintf("TX:%d", x.tx)
	if body == "A0" && x.attempts < failures {
		if x.attempts++; x.attempts > 1 {
			if gap := time.Since(x.last); gap < time.Second || gap > 1500*time.Millisecond {
				t.Errorf("attempt %d came after %v", x.attempts, gap)
			}
		}
		x.last = time.Now()
		c.rollBack(k, d, tx)
		c.must(c.ack(queue.Poison, k, d, d, 1, "", poisonText(1)))
		return
	}
	c.must(c.c.Begin(tx))
	c.must(c.ack(queue.Standard, k, d, d, 1, tx))
	c.must(c.settle(c.c.Commit, tx))
	x.committed[group] = append(x.committed[group], body)
	if late := time.Since(x.start); group == "B" && late > time.Second {
		t.Errorf("%s was committed after %v", body, late)
	}
}
