package broker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

// TestProducersHeldBackAreToldOf: once for each destination and producer, until
// there is room again, and only where the policy asks for it.
func TestProducersHeldBackAreToldOf(t *testing.T) {
	d := &disk{}
	d.free.Store(limit + 1)
	quiet := message.Destination{Kind: message.Queue, Name: "QUIET"}
	inHouse(t, func(o *Options) {
		o.Space = d.space
		o.Policy = func(d message.Destination) Policy {
			return Policy{Advisories: Advisories{WhenFull: d != quiet, FastProducer: d != quiet}}
		}
	}, func(h *house) {
		c := h.client()
		told := func() (all []string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, e := range h.events {
				switch e.Kind {
				case Full:
					all = append(all, "full "+e.Destination.Name)
				case FastProducer:
					all = append(all, "fast "+e.Destination.Name+" "+e.Producer)
				}
			}
			h.events = nil
			return all
		}
		for range 2 { // it is told anew when it has been enough meanwhile
			d.free.Store(limit - 1)
			time.Sleep(2 * spaceInterval)
			for range 3 {
				_ = c.send(c.msg(orders, "no room"), "")
				_ = c.send(c.msg(quiet, "no room"), "")
			}
			if diff := cmp.Diff([]string{"full ORDERS", "fast ORDERS " + c.id + ":1:1"}, told()); diff != "" {
				t.Error(diff)
			}
			d.free.Store(limit + 1)
			time.Sleep(2 * spaceInterval)
		}
		c.c.Close(message.Closed, "", -1)
	})
}
