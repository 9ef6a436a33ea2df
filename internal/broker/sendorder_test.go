package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// What a client sends to a queue alone comes behind what it sent there with other
// queues before, also where it waits for no answer (R-MAP-05, JMS 1.1 section 4.4.10.2).
func TestOrderOfSendsToOneAndToSeveral(t *testing.T) {
	t.Parallel()
	both := message.Destination{Kind: message.Queue, Name: parcels.Name + "," + shelf.Name}
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.consume(parcels)
		var sent []string
		for i := range 50 {
			to := both
			if i%3 == 1 {
				to = parcels
			}
			sent = append(sent, fmt.Sprint(i))
			c.c.Send(h.t.Context(), c.msg(to, sent[i]), "", c.must)
		}
		want(t, "received", c.take(), sent...)
	})
}

// A pattern is for consumers. What is sent to one, alone or in a list, is refused, in a
// transaction too, and nothing of a list is sent; a list of nothing names nothing
// (R-MAP-03, R-MAP-05).
func TestPatternsCannotBeSentTo(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		c := h.client()
		c.must(c.c.Begin("TX:1"))
		for to, says := range map[message.Destination]string{
			queueNamed("B.*"):           "queue://B.* is a pattern",
			topicNamed("B.>"):           "topic://B.> is a pattern",
			queueNamed("A,B.*"):         "queue://B.* is a pattern",
			queueNamed("A,topic://T.>"): "topic://T.> is a pattern",
			queueNamed(" , "):           "names no destination",
		} {
			for _, tx := range []string{"", "TX:1"} {
				if err := c.send(c.msg(to, "m"), tx); !errors.Is(err, message.ErrInvalid) || !strings.Contains(err.Error(), says) {
					t.Errorf("sent to %s in %q: %v, want it to say %q", to, tx, err, says)
				}
			}
		}
		c.must(c.settle(c.c.Commit, "TX:1"))
		for _, q := range h.broker.Queues() {
			t.Errorf("there is a queue %s with %d messages", q.Name, q.Messages)
		}
		err := c.c.Subscribe(h.t.Context(), ConsumerSpec{ID: c.id + ":1:99", Session: c.id + ":1", Destination: queueNamed(" , "), Prefetch: 1})
		if !errors.Is(err, message.ErrInvalid) {
			t.Errorf("consumer of nothing: %v", err)
		}
	})
}
