package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/store/combiner"
)

// quiet acknowledges a delivery without waiting.
func (c *client) quiet(consumer string, d Delivery, done func(error)) {
	ref := queue.Ref{Position: d.Entry.Position}
	c.c.Ack(c.h.t.Context(), Ack{Consumer: consumer, Destination: d.Destination, Type: queue.Standard, First: ref, Last: ref, Count: 1, Quiet: true}, done)
}

// An acknowledgement that nobody waits for goes to the disk with what comes next, or
// soon by itself; and nothing that its queue tells after it leaves before it is there.
func TestQuietAcknowledgements(t *testing.T) {
	for name, c := range map[string]struct {
		then func(c *client, consumer string) // after the acknowledgement of m1
		want []string                         // after the power was cut
	}{
		"the power is cut at once":          {func(*client, string) {}, []string{"m1*1?", "m2*1?"}},
		"a little later":                    {func(*client, string) { time.Sleep(3*combiner.PutOffTime + 2*time.Millisecond) }, []string{"m2*1?"}},
		"behind the answer to another send": {func(c *client, _ string) { c.must(c.send(c.msg(orders, "m3"), "")) }, []string{"m2*1?", "m3*1?"}},
		"behind the answer to another command of its queue": {func(c *client, k string) {
			begin, answered := time.Now(), make(chan error)
			c.c.SetPrefetch(c.h.t.Context(), k, 10, func(err error) { answered <- err })
			c.must(<-answered)
			if d := time.Since(begin); d >= combiner.PutOffTime+time.Millisecond {
				c.h.t.Errorf("answered after %v", d)
			}
		}, []string{"m2*1?"}},
		"behind the end of its consumer": {func(c *client, k string) {
			answered := make(chan error)
			c.c.CloseConsumer(c.h.t.Context(), k, -1, func(err error) { answered <- err })
			c.must(<-answered)
		}, []string{"m2"}},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				a := h.client()
				for _, body := range []string{"m1", "m2"} {
					a.must(a.send(a.msg(orders, body), ""))
				}
				k := a.consume(orders)
				got := a.take()
				a.quiet(k, got[0], func(err error) { t.Errorf("answered with %v", err) })
				synctest.Wait()
				c.then(a, k)
				h.kill()
				b := h.client()
				b.consume(orders)
				if diff := cmp.Diff(c.want, texts(b.take())); diff != "" {
					t.Errorf("after the power cut (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// One that fails is answered all the same.
func TestQuietAcknowledgementsTellOfErrors(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		a := h.client()
		a.must(a.send(a.msg(orders, "m1"), ""))
		k := a.consume(orders)
		d := a.take()[0]
		d.Entry.Position += 100
		answered := make(chan error, 1)
		a.quiet(k, d, func(err error) { answered <- err })
		if err := <-answered; !errors.Is(err, message.ErrInvalid) {
			t.Errorf("answered with %v", err)
		}
	})
}
