package broker

import (
	"context"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// Pause has a queue hand out nothing until it is to go on, or the broker is started anew:
// consumers keep what they have, and may acknowledge or give it back; messages come,
// expire and are moved as ever. was tells whether it was paused before. ErrNotFound where
// there is no such queue.
func (b *Broker) Pause(ctx context.Context, name message.Destination, on bool) (was bool, err error) {
	d := b.known(name)
	if d == nil {
		return false, fmt.Errorf("%s does not exist: %w", name, message.ErrNotFound)
	}
	b.mu.Lock()
	was = b.paused[name]
	if on {
		b.paused[name] = true // also for a queue that is lost and opened anew
	} else {
		delete(b.paused, name)
	}
	b.mu.Unlock()
	return was, d.do(ctx, func() { d.apply(queue.Pause{On: on}) })
}

// isPaused reports whether a queue hands out nothing.
func (b *Broker) isPaused(name message.Destination) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused[name]
}
