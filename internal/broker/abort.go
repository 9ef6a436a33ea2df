package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// An abortion is the end of a consumer that is too slow (R-BRK-40, R-BRK-41).
type abortion struct {
	connection, consumer string
	cause                message.Cause // of a message that its application has
	text                 string
	end                  bool // the whole connection
}

// abortGrace is how long a consumer has to close itself, as in ActiveMQ.
const abortGrace = time.Second

// errAborted ends the connection of a consumer that is too slow.
var errAborted = errors.New("the connection is ended for a slow consumer")

// abort asks a consumer to close, and removes it if it does not; or it ends its
// connection. What it has goes back.
func (d *destination) abort(a abortion) {
	b := d.b
	b.mu.Lock()
	c := b.connections[a.connection]
	b.mu.Unlock()
	if c == nil || b.stop.Load() {
		return
	}
	k := c.consumer(a.consumer)
	if k == nil || !k.aborted.CompareAndSwap(nil, &a) {
		return // it has gone, or another of its queues has done it
	}
	b.tell(Event{Kind: ConsumerAborted, Destination: d.name, Connection: a.connection, Consumer: a.consumer, ClientID: c.info.ClientID, Text: a.text})
	if a.end {
		c.info.Kick(fmt.Errorf("%w: %s of %s: %s", errAborted, a.consumer, d.label(), a.text))
		return
	}
	c.sink.Deliver(Delivery{Kind: CloseConsumer, Consumer: a.consumer})
	b.running.Go(func() { c.removeLater(k) })
}

// removeLater removes a consumer that was asked to close, unless it closes in time.
// What its application has had is not known then.
func (c *Connection) removeLater(k *consumer) {
	wake, stop := c.b.o.Clock.At(c.b.o.Clock.Now().Add(abortGrace))
	defer stop()
	select {
	case <-wake:
	case <-c.ctx.Done():
		return
	}
	if c.enter() != nil {
		return // the connection closes, and the consumer with it
	}
	defer c.busy.Done()
	c.remove([]*consumer{k}, queue.UnknownLast, message.Closed, "", func(error) {})
}
