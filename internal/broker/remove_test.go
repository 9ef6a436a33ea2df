package broker

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// busy keeps a queue's goroutine from its mailbox until the function it returns is called.
func (h *house) busy(name message.Destination) (goOn func()) {
	h.t.Helper()
	d, err := h.broker.queue(name, "")
	if err != nil {
		h.t.Fatal(err)
	}
	hold := make(chan struct{})
	d.box.force(work{do: func() { <-hold }, stopped: func(error) {}})
	synctest.Wait()
	return func() { close(hold) }
}

// stored counts what the store has of a kind of record.
func (h *house) stored(kind byte) int {
	h.t.Helper()
	n := 0
	if err := h.shard.Scan([]byte{kind}, []byte{kind + 1}, func([]byte, []byte) bool { n++; return true }); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// A consumer of a pattern is attached to queues as they come to be, by goroutines of
// their own. One that has left meanwhile must not be: nobody would detach it, and what it
// is handed would never come back.
func TestConsumerThatHasLeftIsNotAttachedToANewQueue(t *testing.T) { // R-MAP-03
	inHouse(t, nil, func(h *house) {
		c := h.client()
		for n := range 50 {
			k := c.consume(queueNamed("P.>"))
			c.must(c.c.AddDestination(h.t.Context(), queueNamed(fmt.Sprintf("P.%d", n))))
			c.must(c.settleConsumer(k))
		}
		c.take()
		for _, q := range h.broker.Queues() {
			if q.Stats.Consumers != 0 {
				t.Errorf("%s has %d consumers, and all have left", q.Name, q.Stats.Consumers)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}

// settleConsumer closes a consumer and waits for the answer.
func (c *client) settleConsumer(k string) error {
	answered := make(chan error, 1)
	c.c.CloseConsumer(c.h.t.Context(), k, -1, func(err error) { answered <- err })
	return <-answered
}

// What is on its way to a queue, or to a durable subscription, when that is removed must
// not be found by whoever has its place in the store next: after a restart the highest
// number of a queue that is gone is given again.
func TestWhatComesTooLateForARemovedQueueIsNotFoundByTheNext(t *testing.T) {
	topic := message.Destination{Kind: message.Topic, Name: "T"}
	for name, remove := range map[string]struct {
		to   message.Destination
		make func(h *house, c *client)
		call func(h *house, c *client) error
	}{
		"queue": {orders, func(h *house, c *client) { c.must(c.c.AddDestination(h.t.Context(), orders)) },
			func(h *house, c *client) error { return c.c.RemoveDestination(h.t.Context(), orders) }},
		"durable subscription": {topic, func(h *house, c *client) {
			k := c.consume(topic, func(s *ConsumerSpec) { s.Subscription = "s" })
			c.must(c.settleConsumer(k))
		}, func(h *house, c *client) error { return c.c.Unsubscribe(h.t.Context(), "s") }},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				c := h.client()
				slow := queueNamed("SLOW")
				c.must(c.send(c.msg(slow, "m0"), ""))
				k := c.consume(slow)
				got := c.take()
				remove.make(h, c)
				c.must(c.c.Begin("TX:1"))
				c.must(c.send(c.msg(remove.to, "late"), "TX:1"))
				c.must(c.ack(queue.Standard, k, got[0], got[0], 1, "TX:1"))
				goOn := h.busy(slow)
				answered := make(chan error, 1)
				go c.c.Commit(h.t.Context(), "TX:1", func(err error) { answered <- err })
				synctest.Wait() // it knows where the message goes, and waits for the queue that is busy
				c.must(remove.call(h, c))
				goOn()
				if err := <-answered; err != nil {
					t.Errorf("commit: %v", err)
				}
				if n := h.stored('m'); n != 0 {
					t.Errorf("the store has %d bodies of messages that nobody can have", n)
				}
				c.c.Close(message.Closed, "", -1)
				h.restart()
				c = h.client()
				next := queueNamed("NEXT")
				c.must(c.c.AddDestination(h.t.Context(), next))
				c.consume(next)
				want(t, "of a new queue", c.take())
				for _, q := range h.broker.Queues() {
					if q.Messages != 0 {
						t.Errorf("%s has %d messages", q.Name, q.Messages)
					}
				}
				c.c.Close(message.Closed, "", -1)
			})
		})
	}
}

// A queue is removed, or it has a consumer: never both.
func TestAQueueIsNotRemovedUnderAConsumerThatJustComes(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c, other := h.client(), h.client()
		c.must(c.c.AddDestination(h.t.Context(), orders))
		goOn := h.busy(orders)
		came := make(chan error, 1)
		go func() {
			came <- c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:9", Session: c.id + ":1", Destination: orders, Prefetch: 10})
		}()
		synctest.Wait()
		removed := make(chan error, 1)
		go func() { removed <- other.c.RemoveDestination(h.t.Context(), orders) }()
		synctest.Wait()
		goOn()
		c.must(<-came)
		if err := <-removed; !errors.Is(err, message.ErrState) {
			t.Errorf("removal of a queue with a consumer: %v", err)
		}
		c.must(other.send(other.msg(orders, "m1"), ""))
		want(t, "for the consumer", c.take(), "m1")
		other.c.Close(message.Closed, "", -1)
		c.c.Close(message.Closed, "", -1)
	})
}

// Whoever comes to a queue that is just being removed has a new one.
func TestWhoComesToAQueueThatIsBeingRemovedHasANewOne(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c, other := h.client(), h.client()
		c.must(c.send(c.msg(orders, "old"), ""))
		goOn := h.busy(orders)
		removed := make(chan error, 1)
		go func() { removed <- other.c.RemoveDestination(h.t.Context(), orders) }()
		synctest.Wait()
		came := make(chan error, 1)
		go func() {
			came <- c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:9", Session: c.id + ":1", Destination: orders, Prefetch: 10})
		}()
		synctest.Wait()
		goOn()
		c.must(<-came)
		c.must(<-removed)
		c.must(other.send(other.msg(orders, "new"), ""))
		want(t, "of the new queue", c.take(), "new")
		other.c.Close(message.Closed, "", -1)
		c.c.Close(message.Closed, "", -1)
	})
}

// A queue that is removed while it is sent to leaves nothing in the store, whatever came
// at which moment; and who was told that a message is taken in was told the truth.
func TestNothingIsLeftOfAQueueThatIsRemovedUnderLoad(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c, other := h.client(), h.client()
		for range 20 {
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 30 {
					if err := c.send(c.msg(orders, "m"), ""); err != nil && !errors.Is(err, message.ErrNotFound) {
						t.Errorf("send: %v", err)
					}
				}
			}()
			for range 10 {
				if err := other.c.RemoveDestination(h.t.Context(), orders); err != nil {
					t.Errorf("remove: %v", err)
				}
			}
			<-done
		}
		other.must(other.c.RemoveDestination(h.t.Context(), orders))
		c.take()
		for _, kind := range []byte("meqnuhdys") {
			if n := h.stored(kind); n != 0 {
				t.Errorf("the store has %d records of kind %c", n, kind)
			}
		}
		other.c.Close(message.Closed, "", -1)
		c.c.Close(message.Closed, "", -1)
	})
}

// The number of a new queue is nobody's, whatever there was before the restart: messages
// that wait for the scheduler are counted under a number of their own, far above all.
func TestANewQueueHasANumberOfItsOwn(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.send(c.msg(queueNamed("OLD"), "old"), ""))
		c.must(c.send(c.msg(queueNamed("LATER"), "later", in(time.Hour)), ""))
		c.c.Close(message.Closed, "", -1)
		h.restart()
		c = h.client()
		for _, name := range []string{"NEW", "NEWER"} {
			c.must(c.c.AddDestination(h.t.Context(), queueNamed(name)))
		}
		numbers := map[uint32]message.Destination{}
		for _, q := range h.broker.Queues() {
			d := h.broker.known(q.Name)
			if other, taken := numbers[uint32(d.id)]; taken || d.id == 0 || d.id >= records.FirstPassing {
				t.Errorf("%s has the number %d, and so has %q", q.Name, d.id, other)
			}
			numbers[uint32(d.id)] = q.Name
			if want := map[string]int64{"OLD": 1}[q.Name.Name]; q.Messages != want {
				t.Errorf("%s has %d messages, want %d", q.Name, q.Messages, want)
			}
		}
		c.c.Close(message.Closed, "", -1)
	})
}
