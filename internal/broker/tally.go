package broker

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A tally counts the events of one kind since the start, and apart by their texts
// for the kinds whose texts are words of a short list: the causes of failures and
// the reasons for discarding.
type tally struct {
	total atomic.Int64

	mu sync.Mutex
	by map[string]int64
}

const (
	// maxTallied is how many texts of a kind are counted apart; more would be a
	// mistake of ours, and must not take memory without end.
	maxTallied = 64
	// otherTexts is what the rest is counted under.
	otherTexts = "other"
)

func (t *tally) add(text string, n int64) {
	t.total.Add(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.by[text]; !known && len(t.by) >= maxTallied {
		text = otherTexts
	}
	if t.by == nil {
		t.by = map[string]int64{}
	}
	t.by[text] += n
}

func (t *tally) texts() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.by)
}

// eventCounts counts events by kind since the start.
type eventCounts [eventKinds]tally

func (c *eventCounts) count(e Event) {
	switch e.Kind {
	case Failed, Discarded:
		c[e.Kind].add(e.Text, 1)
	default:
		c[e.Kind].total.Add(1)
	}
}

// Counted is how many events of a kind there were since the start.
func (b *Broker) Counted(kind EventKind) int64 { return b.counts[kind].total.Load() }

// CountedBy is Counted apart by Event.Text: Failed by its cause, Discarded by its
// reason. It is empty for the other kinds, and never has more than 65 keys; what is
// beyond is under "other".
func (b *Broker) CountedBy(kind EventKind) map[string]int64 { return b.counts[kind].texts() }
