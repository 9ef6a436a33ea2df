package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// DeadLetterQueues is the reply of /api/v1/dead-letter-queues: the queues that
// have a dead letter among the first SampleMessages, and those that have messages
// and are where dead letters go.
type DeadLetterQueues struct {
	Queues []Queue `json:"queues"`
}

// DeadLetters tells of the dead letters at the head of a queue.
type DeadLetters struct {
	// Sampled is how many messages were looked at, Found how many of them are dead
	// letters. Where Sampled is the number of messages in the queue, Found is exact.
	Sampled int `json:"sampled"`
	Found   int `json:"found"`
	// Oldest is when the first one became a dead letter.
	Oldest time.Time `json:"oldest,omitzero"`
	// From counts those that were found by where they failed.
	From map[string]int `json:"from"`
}

func (s *surface) deadLetterQueues(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	reply := DeadLetterQueues{Queues: []Queue{}}
	all, targets := s.b.Queues(), s.b.DeadLetterQueues()
	for i := range all {
		if all[i].Messages == 0 {
			continue
		}
		found, err := s.sample(r.Context(), broker.At(all[i].Name))
		if err != nil {
			return nil, err
		}
		if found == nil && targets[all[i].Name] { // what applications themselves have sent there
			found = &DeadLetters{Sampled: int(min(all[i].Messages, SampleMessages)), From: map[string]int{}}
		}
		if found != nil {
			q := queueOf(&all[i])
			q.DeadLetters = found
			reply.Queues = append(reply.Queues, q)
		}
	}
	return reply, nil
}

// sample looks at the head of a queue for dead letters; nil: there is none.
func (s *surface) sample(ctx context.Context, place broker.Place) (*DeadLetters, error) {
	page, _, err := s.b.Look(ctx, place, broker.Cursor{}, SampleMessages)
	if err != nil {
		return nil, err
	}
	found := &DeadLetters{Sampled: len(page), From: map[string]int{}}
	for i := range page {
		p := &page[i]
		if !broker.IsDeadLetter(&p.Entry) {
			continue
		}
		if found.Found++; found.Found == 1 {
			_, at, err := s.lastAttempt(p)
			if err != nil {
				return nil, err
			}
			found.Oldest = at
		}
		found.From[p.Entry.Overlay.OriginalDestination.String()]++
	}
	if found.Found == 0 {
		return nil, nil
	}
	return found, nil
}

// lastAttempt is the newest line of an entry's story, nil if it has none, and when
// a dead letter became one, as far as that can be told: with its last attempt, or when
// it expired. Of what was evicted, or found nobody to get it, nothing tells that.
func (s *surface) lastAttempt(p *broker.Peek) (*message.Attempt, time.Time, error) {
	story, err := s.b.Story(p)
	if err != nil {
		return nil, time.Time{}, err
	}
	var at int64
	if o := p.Entry.Overlay; o != nil {
		cause, _ := o.Added[broker.FailureCause].(string)
		at, _ = redelivery.ExpiredAt(cause)
	}
	if n := len(story); n > 0 {
		last := &story[n-1]
		return last, timeOf(max(at, last.Ended)), nil
	}
	return nil, timeOf(at), nil
}
