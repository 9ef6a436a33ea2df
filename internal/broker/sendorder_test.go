package broker

import (
	"fmt"
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
