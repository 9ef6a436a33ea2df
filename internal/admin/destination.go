package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// Destinations is the reply of /api/v1/destinations.
type Destinations struct {
	Queues        []Queue        `json:"queues"`
	Topics        []Topic        `json:"topics"`
	Subscriptions []Subscription `json:"subscriptions"`
}

// Counts are how many messages a queue or subscription has, and what happened in
// it since the broker started.
type Counts struct {
	Messages  int64 `json:"messages"`  // all of them
	Waiting   int64 `json:"waiting"`   // those that a consumer may have at once
	Out       int64 `json:"out"`       // those that consumers have
	Scheduled int64 `json:"scheduled"` // those that wait for their time
	// AtClients are those of Out that wait in their clients for a redelivery which
	// the clients have announced; NextDue is when the first of Scheduled may go.
	AtClients int64     `json:"atClients"`
	NextDue   time.Time `json:"nextDue,omitzero"`
	Consumers int64     `json:"consumers"`
	// Bytes is the size of the messages that are in the store.
	Bytes int64 `json:"bytes"`

	Enqueued     int64 `json:"enqueued"`
	Dequeued     int64 `json:"dequeued"`
	Dispatched   int64 `json:"dispatched"`
	Failed       int64 `json:"failed"` // attempts
	DeadLettered int64 `json:"deadLettered"`
	Expired      int64 `json:"expired"`
	Discarded    int64 `json:"discarded"`
	Suppressed   int64 `json:"suppressed"` // duplicates that a producer sent again
	Kept         int64 `json:"kept"`       // failures in its own dead letter queue
	Evicted      int64 `json:"evicted"`    // taken from what waits for a slow subscriber; dead letters of them count there, too
}

// A Queue is one queue at a glance.
type Queue struct {
	// Name is what is written into a path: the queue's own, with "temp-queue://"
	// before it where it is temporary.
	Name      string `json:"name"`
	Temporary bool   `json:"temporary,omitempty"`
	// Paused says that it hands out nothing until it is resumed.
	Paused bool `json:"paused,omitempty"`
	// Selectors are those of consumers that it has had, where they are remembered; "" for
	// one without.
	Selectors []string `json:"selectors,omitempty"`
	Counts
	// Limit tells how far it is from the limit that stops its producers; nil: it has none.
	Limit *Limit `json:"limit,omitempty"`
	// DeadLetters tells of the dead letters at its head; nil where there are none,
	// and in lists of all queues.
	DeadLetters *DeadLetters `json:"deadLetters,omitempty"`
}

// A Topic is one topic at a glance. What is sent to it is in its subscriptions.
type Topic struct {
	Name string `json:"name"`
	// Enqueued is how many messages were sent to it since the broker started, whoever got
	// them. Dequeued and Dispatched are of its subscriptions together.
	Enqueued   int64  `json:"enqueued"`
	Dequeued   int64  `json:"dequeued"`
	Dispatched int64  `json:"dispatched"`
	Limit      *Limit `json:"limit,omitempty"`
}

// A Limit is how far a destination is from the limit that stops its producers.
type Limit struct {
	// MaxBytes and MaxMessages stop producers when Bytes or Messages, which are what
	// counts of the destination, reach them; absent: no such limit.
	MaxBytes    int64 `json:"maxBytes,omitempty"`
	MaxMessages int64 `json:"maxMessages,omitempty"`
	Bytes       int64 `json:"bytes"`
	Messages    int64 `json:"messages"`
	// Waiting are the producers that wait for room there now; Waits are the sends that
	// have waited since the start, and WaitSeconds how long together.
	Waiting     int64   `json:"waiting"`
	Waits       int64   `json:"waits"`
	WaitSeconds float64 `json:"waitSeconds"`
}

func limitOf(l *broker.LimitStatus) *Limit {
	if l == nil {
		return nil
	}
	return &Limit{MaxBytes: l.Flow.MaxBytes, MaxMessages: l.Flow.MaxMessages, Bytes: l.Bytes, Messages: l.Messages,
		Waiting: l.Waiting, Waits: l.Waits, WaitSeconds: l.Waited.Seconds()}
}

// A Subscription is one subscription to a topic at a glance.
type Subscription struct {
	Topic    string `json:"topic"`
	ClientID string `json:"clientId"`
	Name     string `json:"name,omitempty"` // of a durable one
	Durable  bool   `json:"durable"`
	Selector string `json:"selector,omitempty"`
	NoLocal  bool   `json:"noLocal,omitempty"`
	Counts
}

func countsOf(st *broker.QueueStatus) Counts {
	q := &st.Stats
	var next time.Time
	if q.NextDue > 0 {
		next = timeOf(q.NextDue)
	}
	return Counts{
		AtClients: q.AtClients, NextDue: next,
		Messages: st.Messages, Waiting: q.Waiting, Out: q.Out, Scheduled: q.Scheduled, Consumers: q.Consumers, Bytes: st.Bytes,
		Enqueued: q.Enqueued, Dequeued: q.Dequeued, Dispatched: q.Dispatched, Failed: q.Failed, DeadLettered: q.DeadLettered,
		Expired: q.Expired, Discarded: q.Discarded, Suppressed: q.Suppressed, Kept: q.Kept, Evicted: q.Evicted,
	}
}

func queueOf(st *broker.QueueStatus) Queue {
	return Queue{Name: nameOf(st.Name), Temporary: st.Name.IsTemporary(), Paused: st.Paused, Selectors: st.Selectors, Counts: countsOf(st), Limit: limitOf(st.Limit)}
}

// tempQueue is what stands before the name of a temporary queue.
const tempQueue = "temp-queue://"

// nameOf is a queue's name as paths and people have it.
func nameOf(d message.Destination) string {
	if d.Kind == message.TempQueue {
		return tempQueue + d.Name
	}
	return d.Name
}

// queueNamed is the queue that a request's path names.
func queueNamed(r *http.Request) message.Destination {
	name := r.PathValue("queue")
	if rest, ok := strings.CutPrefix(name, tempQueue); ok {
		return message.Destination{Kind: message.TempQueue, Name: rest}
	}
	return message.Destination{Kind: message.Queue, Name: strings.TrimPrefix(name, "queue://")}
}

// placeNamed is the place that a request's path names: a queue, or a durable
// subscription.
func placeNamed(r *http.Request) broker.Place {
	if name := r.PathValue("subscription"); name != "" {
		return broker.Place{ClientID: r.PathValue("client"), Subscription: name}
	}
	return broker.At(queueNamed(r))
}

func whereOf(p broker.Place) Where {
	if p.Subscription != "" {
		return Where{ClientID: p.ClientID, Subscription: p.Subscription}
	}
	return Where{Queue: nameOf(p.Queue)}
}

func (s *surface) destinations(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	all := Destinations{Queues: []Queue{}, Topics: []Topic{}, Subscriptions: []Subscription{}}
	queues, subscriptions := s.b.Queues(), s.b.Subscriptions()
	for i := range queues {
		all.Queues = append(all.Queues, queueOf(&queues[i]))
	}
	for _, t := range s.b.Topics() {
		st := s.b.Topic(t)
		all.Topics = append(all.Topics, Topic{Name: t.Name, Enqueued: st.Sent, Dequeued: st.Dequeued, Dispatched: st.Dispatched, Limit: limitOf(s.b.Limit(t))})
	}
	for i := range subscriptions {
		st := &subscriptions[i]
		all.Subscriptions = append(all.Subscriptions, Subscription{
			Topic: st.Name.Name, ClientID: st.ClientID, Name: st.Subscription, Durable: st.Durable, Selector: st.Selector, NoLocal: st.NoLocal, Counts: countsOf(st)})
	}
	return all, nil
}

func (s *surface) queue(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	st, err := s.statusOf(queueNamed(r))
	if err != nil {
		return nil, err
	}
	q := queueOf(st)
	q.DeadLetters, err = s.sample(r.Context(), broker.At(st.Name))
	return q, err
}

// statusOf is the status of one queue; message.ErrNotFound if there is none.
func (s *surface) statusOf(name message.Destination) (*broker.QueueStatus, error) {
	if st, ok := s.b.Status(name); ok {
		return &st, nil
	}
	return nil, fmt.Errorf("%s does not exist: %w", name, message.ErrNotFound)
}

// What RFC 3339 can say, in milliseconds: the years 1 to 9999. Clients may send any
// number of milliseconds; what is beyond is told as the last of these.
const (
	firstMilli = -62_135_596_799_999
	lastMilli  = 253_402_300_799_999
)

// timeOf is a time of the broker's; zero for 0, which is none.
func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(min(max(millis, firstMilli), lastMilli)).UTC()
}
