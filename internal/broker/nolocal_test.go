package broker

import (
	"sync"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// What is sent while a noLocal consumer leaves is decided about without it, by another
// goroutine than its own.
func TestNoLocalConsumersLeaveWhileTheirTopicIsSentTo(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		prices := message.Destination{Kind: message.Topic, Name: "PRICES"}
		from, c := h.client(), h.client()
		var sending sync.WaitGroup
		const rounds = 200
		stop := make(chan struct{})
		sending.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				from.c.Send(h.t.Context(), from.msg(prices, "p"), "", func(err error) {
					if err != nil {
						t.Errorf("send: %v", err)
					}
				})
			}
		})
		for range rounds {
			k := c.consume(prices, func(s *ConsumerSpec) { s.NoLocal = true })
			c.closeConsumer(k, Delivery{})
		}
		close(stop)
		sending.Wait()
		k := from.consume(prices, func(s *ConsumerSpec) { s.NoLocal = true })
		from.must(from.send(from.msg(prices, "own"), ""))
		other := h.client()
		other.must(other.send(other.msg(prices, "other's"), ""))
		want(t, "noLocal", from.take(), "other's")
		from.closeConsumer(k, Delivery{})
	})
}
