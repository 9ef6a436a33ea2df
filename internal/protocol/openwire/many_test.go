package openwire

import (
	"fmt"
	"testing"
)

// TestFiveThousandConnections, each with a consumer, are served side by side, and
// leave nothing behind.
func TestFiveThousandConnections(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const n = 5000
	inHouse(t, nil, func(h *house) {
		peers := make([]*peer, n)
		for i := range peers {
			p := h.client()
			p.consume(1, queueNamed(fmt.Sprintf("Q.%d", i%100)), 1)
			peers[i] = p
		}
		sender := h.client()
		sender.produce(1, 0)
		for i := range n {
			sender.do(sender.text(int64(i+1), queueNamed(fmt.Sprintf("Q.%d", i%100)), "m"))
		}
		for _, p := range peers { // each has prefetch 1, and each queue as many messages as consumers
			p.do(ack(p.dispatched(), 2))
		}
		if got := h.broker.Connections(); got != n+1 {
			t.Errorf("%d connections, want %d", got, n+1)
		}
		for _, p := range peers {
			p.hangUp()
		}
		sender.leave()
		if got := len(h.broker.ConsumersOpen()) + len(h.broker.ProducersOpen()); got != 0 {
			t.Errorf("%d are left", got)
		}
	})
}
