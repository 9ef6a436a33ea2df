package broker

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
)

// Endings are what destinations had counted that are no more, so that sums over all of them,
// or over a topic's subscriptions, do not fall when one goes. Broker.mu guards them.
type endings struct {
	all          queue.Stats
	topics, wide map[message.Destination]*queue.Stats // of subscriptions: to a topic; to a pattern or a list
}

// maxEndedTopics is of how many topics that is known apart, and of how many others.
const maxEndedTopics = 1_000

// add remembers what a destination has counted that goes now.
func (e *endings) add(d *destination) {
	counted := d.snapshot()
	sumUp(&e.all, &counted)
	if d.sub == nil || d.name.IsTemporary() || d.name.IsAdvisory() {
		return
	}
	in := &e.topics
	if d.name.IsPattern() || d.name.IsComposite() {
		in = &e.wide
	}
	if *in == nil {
		*in = map[message.Destination]*queue.Stats{}
	}
	of := (*in)[d.name]
	switch {
	case of == nil && len(*in) >= maxEndedTopics:
		return
	case of == nil:
		of = new(queue.Stats)
		(*in)[d.name] = of
	}
	sumUp(of, &counted)
}

// sumUp adds to a sum what was counted, but for what there is now.
func sumUp(sum, counted *queue.Stats) {
	sum.Enqueued += counted.Enqueued
	sum.Dequeued += counted.Dequeued
	sum.Dispatched += counted.Dispatched
	sum.Expired += counted.Expired
}

// Ended is what was counted in queues and subscriptions that are no more: Enqueued, Dequeued,
// Dispatched and Expired.
func (b *Broker) Ended() queue.Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended.all
}

// A TopicStatus is what happened to the messages of a topic since the start.
type TopicStatus struct {
	// Sent is how many were sent to it, each once, whoever got it.
	Sent int64
	// Of its subscriptions together, also those that are no more: one that is to several
	// topics, by a pattern or a list, counts with all that it has.
	Dequeued, Dispatched, Expired int64
	Out                           int64 // now
}

// Topic tells what happened in a topic.
func (b *Broker) Topic(name message.Destination) TopicStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	var st TopicStatus
	if sent := b.topics[name]; sent != nil {
		st.Sent = sent.Load()
	}
	var sum queue.Stats
	if counted := b.ended.topics[name]; counted != nil {
		sumUp(&sum, counted)
	}
	for of, counted := range b.ended.wide {
		if covers(of.Parts(), name) {
			sumUp(&sum, counted)
		}
	}
	for _, s := range b.subscriptions {
		if s.covers(name) {
			counted := s.d.snapshot()
			sumUp(&sum, &counted)
			st.Out += counted.Out
		}
	}
	st.Dequeued, st.Dispatched, st.Expired = sum.Dequeued, sum.Dispatched, sum.Expired
	return st
}
