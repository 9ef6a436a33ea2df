package openwire

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

func TestSendConsumeAcknowledge(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("ORDERS"), 10)
		p.do(p.text(1, queueNamed("ORDERS"), "first"))
		d := p.dispatched()
		if got := body(t, d); got != "first" {
			t.Errorf("text %q", got)
		}
		if d.Destination.String() != "queue://ORDERS" || d.Message.MessageID.BrokerSequenceID == 0 || d.RedeliveryCounter != 0 {
			t.Errorf("dispatch %+v of %+v", d, d.Message)
		}
		p.do(ack(d, wire.AckStandard))
		p.leave()
		q := h.client()
		q.consume(1, queueNamed("ORDERS"), 10)
		if got := q.all(); len(got) > 0 {
			t.Errorf("an acknowledged message was dispatched again: %+v", got)
		}
		q.leave()
	})
}

// A dispatch without a message is the end of a browse, or a pull that found nothing
// (R-CLIENT-02, R-CLIENT-50).
func TestDispatchesWithoutAMessage(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.do(p.text(1, queueNamed("ORDERS"), "first"))
		texts := func() (all []string) {
			for _, c := range p.all() {
				d, ok := c.(*wire.MessageDispatch)
				if !ok {
					t.Errorf("got %T", c)
					continue
				}
				all = append(all, d.ConsumerID.String()+" "+body(t, d))
			}
			return all
		}
		expect := func(what string, want ...string) {
			t.Helper()
			if got := texts(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		browser, puller := p.consumerID(1).String(), p.consumerID(2).String()
		p.tell(&wire.ConsumerInfo{ConsumerID: p.consumerID(1), Destination: queueNamed("ORDERS"), PrefetchSize: 10, Browser: true})
		expect("a browse", browser+" first", browser+" <none>")
		p.do(&wire.ConsumerInfo{ConsumerID: p.consumerID(2), Destination: queueNamed("EMPTY")})
		p.tell(&wire.MessagePull{ConsumerID: p.consumerID(2), Destination: queueNamed("EMPTY"), Timeout: -1})
		expect("a pull that does not wait", puller+" <none>")
		p.tell(&wire.MessagePull{ConsumerID: p.consumerID(2), Destination: queueNamed("EMPTY"), Timeout: 1500})
		time.Sleep(1400 * time.Millisecond)
		expect("a pull that waits")
		time.Sleep(200 * time.Millisecond)
		expect("a pull that has waited", puller+" <none>")
		p.tell(&wire.MessagePull{ConsumerID: p.consumerID(2), Destination: queueNamed("EMPTY")})
		time.Sleep(5 * time.Second)
		expect("a pull that waits for ever")
		p.leave()
	})
}

// A command that waits when its connection ends, since the broker stops, is not answered
// with that: a client that fails over would give an exception to an application whose
// message the next broker takes.
func TestWhatWaitsAtTheEndOfASessionIsNotAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		command wire.BaseCommand
		end     bool
		err     error
		want    int
	}{
		"failed while the session lasts":      {wire.BaseCommand{CommandID: 1, ResponseRequired: true}, false, message.ErrOverLimit, 1},
		"the session ends":                    {wire.BaseCommand{CommandID: 1, ResponseRequired: true}, true, context.Canceled, 0},
		"the session ends, and nobody waits":  {wire.BaseCommand{CommandID: 1}, true, context.Canceled, 0},
		"it was done before the session ends": {wire.BaseCommand{CommandID: 1, ResponseRequired: true}, true, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inScript(t, nil, func(h *house, _ *script) {
				ours, theirs := net.Pipe()
				defer ours.Close()
				n := h.server.newSession(h.ctx, theirs)
				n.out.start = func() {} // nothing is written
				if c.end {
					n.fail(context.Canceled)
				}
				n.later(&c.command)(c.err)
				if n.out.replies != c.want {
					t.Errorf("%d answers, want %d", n.out.replies, c.want)
				}
			})
		})
	}
}
