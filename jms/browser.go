package jms

import (
	"context"
	"errors"
	"iter"
)

// A QueueBrowser looks at the messages of a queue without taking them.
type QueueBrowser struct {
	session  *Session
	queue    Destination
	selector string
}

// CreateBrowser makes a browser of a queue; selector may be "".
func (s *Session) CreateBrowser(queue Destination, selector string) (*QueueBrowser, error) {
	if !queue.IsQueue() {
		return nil, &Error{Op: "browse " + queue.String(), Kind: ErrInvalidDestination, Text: "only queues can be browsed"}
	}
	return &QueueBrowser{session: s, queue: queue, selector: selector}, nil
}

// Messages goes through the messages that are in the queue now. Each use asks the
// broker anew. An error is the last thing it yields.
func (b *QueueBrowser) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		o := consumerOptions{browser: true, selector: b.selector, prefetch: -1}
		k, err := b.session.subscribe(ctx, "browse "+b.queue.String(), b.queue, nil, o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer k.Close()
		for {
			m, err := k.Receive(ctx)
			if errors.Is(err, ErrNoMessage) {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
