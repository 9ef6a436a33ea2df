package broker

import (
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/selector"
)

// A SelectorMemory remembers, for the queues of selector aware virtual topics, what their
// consumers have selected: so a queue gets what they will want also while they are away
// (ActiveMQ's SubQueueSelectorCacheBroker). The zero value remembers nothing.
type SelectorMemory struct {
	On bool
	// Single remembers one selector of a queue, the last, beside that there were consumers
	// without one.
	Single bool
	// NotWild leaves out selectors with a LIKE that more than one string fits.
	NotWild bool
}

// How many selectors of a queue are remembered, and how long they are together: each costs
// an evaluation of every message that no other selects, and all are stored at once.
const (
	maxSelectors     = 100
	maxSelectorBytes = 256 << 10
)

// add is what is remembered when a consumer has come, after old; nil, if nothing changes.
// forgot are the oldest, where these are too many.
func (s SelectorMemory) add(old []*selector.Selector, came *selector.Selector) (next, forgot []*selector.Selector) {
	text := came.String()
	if s.NotWild && came.Wild() || slices.ContainsFunc(old, func(o *selector.Selector) bool { return o.String() == text }) {
		return nil, nil
	}
	bytes := len(text)
	for _, o := range old {
		if !s.Single || text == "" || o.String() == "" {
			next, bytes = append(next, o), bytes+len(o.String())
		}
	}
	n := 0
	for len(next)-n >= maxSelectors || bytes > maxSelectorBytes {
		bytes -= len(next[n].String())
		n++
	}
	return append(next[n:], came), next[:n:n]
}

// aware reports whether a queue may be one of a selector aware virtual topic.
func (i *interceptors) aware(queue message.Destination) bool {
	return queue.Kind == message.Queue && slices.ContainsFunc(i.virtual, func(v VirtualTopic) bool {
		return v.SelectorAware && (v.Prefix == "" || message.MatchName(v.Prefix+">", queue.Name))
	})
}

// rememberSelector notes that a consumer with a selector, nil for none, has come to a
// queue. What is sent later is stored later, so that nobody needs to wait for the store.
func (b *Broker) rememberSelector(d *destination, sel *selector.Selector) {
	i := b.interceptors.Load()
	if !i.memory.On || d.sub != nil || !i.aware(d.name) {
		return
	}
	b.creating.Lock() // what is stored last is what was remembered last
	defer b.creating.Unlock()
	b.mu.Lock()
	next, forgot := i.memory.add(b.selectors[d.name], sel)
	if next == nil || b.queues[d.name] != d {
		b.mu.Unlock()
		return
	}
	b.selectors[d.name] = next
	b.mu.Unlock()
	batch := new(records.Batch)
	batch.PutSelectors(d.id, textsOf(next))
	b.o.Records.Commit(batch, func(err error) {
		if err != nil {
			b.o.Log.Warn("selectors of a queue are not stored: they are forgotten when the broker stops", "dest", d.name.String(), "err", err)
		}
	})
	for _, o := range forgot {
		b.o.Log.Warn("too many selectors of a queue are remembered: the oldest is forgotten, and what it alone selects is not kept while its consumers are away",
			"dest", d.name.String(), "detail", o.String())
	}
}

// rememberSelectors is rememberSelector for all consumers that there are.
func (b *Broker) rememberSelectors() {
	b.mu.Lock()
	all := b.destinationsLocked()
	b.mu.Unlock()
	for _, d := range all {
		for _, sel := range d.selectors() {
			b.rememberSelector(d, sel)
		}
	}
}

// recallSelectors takes over what the store has of a queue.
func (b *Broker) recallSelectors(i records.QueueInfo) error {
	var all []*selector.Selector
	for _, text := range i.Selectors {
		sel, err := parseSelector(text)
		if err != nil {
			return err
		}
		all = append(all, sel)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(all) > 0 {
		b.selectors[i.Destination] = all
	}
	return nil
}

// rememberedAt are the selectors that a queue's consumers had, nil for none.
func (b *Broker) rememberedAt(queue message.Destination) []*selector.Selector {
	if !b.interceptors.Load().memory.On {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.selectors[queue]
}

func textsOf(all []*selector.Selector) []string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = s.String()
	}
	return texts
}
