package admin

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels of sums.
const (
	others    = "(others)"    // beyond MaxSeries
	temporary = "(temporary)" // temporary queues, whose names never come back
	passing   = "(passing)"   // a topic's subscriptions that are not durable
)

// Seats say which destinations have metrics of their own: the first MaxSeries,
// until they are gone. So a series does not come and go with the rank of its
// queue. They are safe for concurrent use.
type seats struct {
	mu    sync.Mutex
	taken map[string]bool
}

// assign reports for each key, of which none is twice, whether it has a seat.
func (s *seats) assign(keys []string) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[string]bool, len(keys))
	for _, k := range keys {
		there[k] = s.taken[k]
	}
	for k := range s.taken {
		if !there[k] {
			delete(s.taken, k)
		}
	}
	if s.taken == nil {
		s.taken = map[string]bool{}
	}
	for _, k := range keys {
		if !there[k] && len(s.taken) < MaxSeries {
			there[k], s.taken[k] = true, true
		}
	}
	return there
}

// plain is a text as a label may have it: valid UTF-8.
func plain(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// A series is a destination with the labels of its metrics, or a sum of several.
type series struct {
	labels []string
	counts Counts
	sum    bool // it has gauges alone: counters that lose a part would go back
}

func (c *collector) collectQueues(ch chan<- prometheus.Metric) {
	all := c.s.b.Queues()
	gauge(ch, c.broker.queues, float64(len(all)))
	list, paused := newSeriesList(), 0
	for i := range all {
		if all[i].Paused {
			paused++
		}
		if st := &all[i]; st.Name.IsTemporary() {
			list.add(countsOf(st), true, temporary)
		} else {
			list.add(countsOf(st), false, plain(st.Name.Name))
		}
	}
	gauge(ch, c.broker.paused, float64(paused))
	c.queue.collect(ch, list.seated(&c.queues, others))
}

func (c *collector) collectSubscriptions(ch chan<- prometheus.Metric) {
	all := c.s.b.Subscriptions()
	gauge(ch, c.broker.subscriptions, float64(len(all)))
	list := newSeriesList()
	for i := range all {
		st := &all[i]
		if st.Name.IsAdvisory() || st.Name.IsTemporary() {
			continue // clients' own housekeeping
		}
		if st.Durable {
			list.add(countsOf(st), false, plain(st.Name.Name), plain(st.ClientID), plain(st.Subscription))
		} else {
			list.add(countsOf(st), true, plain(st.Name.Name), "", passing)
		}
	}
	c.subscription.collect(ch, list.seated(&c.subscriptions, others, "", ""))
}

// collect sends the metrics of a list.
func (d *destinationDescs) collect(ch chan<- prometheus.Metric, list []*series) {
	for _, s := range list {
		for _, state := range []struct {
			name string
			n    int64
		}{{"waiting", s.counts.Waiting}, {"out", s.counts.Out - s.counts.AtClients}, {"at-clients", s.counts.AtClients}, {"scheduled", s.counts.Scheduled}} {
			gauge(ch, d.messages, float64(state.n), append(s.labels[:len(s.labels):len(s.labels)], state.name)...)
		}
		gauge(ch, d.bytes, float64(s.counts.Bytes), s.labels...)
		gauge(ch, d.consumers, float64(s.counts.Consumers), s.labels...)
		if s.sum {
			continue
		}
		for i, n := range counterNames {
			counter(ch, d.counters[i], n.value(&s.counts), s.labels...)
		}
	}
}

// A seriesList has at most one series for each set of labels.
type seriesList struct {
	byKey map[string]*series
	keys  []string // in the order of coming
}

func newSeriesList() *seriesList { return &seriesList{byKey: map[string]*series{}} }

// add puts counts under labels. Where those are there already, the series becomes
// a sum.
func (l *seriesList) add(c Counts, sum bool, labels ...string) {
	key := strings.Join(labels, "\x00")
	if s := l.byKey[key]; s != nil {
		s.counts.add(&c)
		s.sum = true
		return
	}
	l.byKey[key] = &series{labels: labels, counts: c, sum: sum}
	l.keys = append(l.keys, key)
}

// seated lists the series that have a seat, and the sum of the others under rest.
func (l *seriesList) seated(s *seats, rest ...string) []*series {
	has := s.assign(l.keys)
	var list []*series
	left := &series{labels: rest, sum: true}
	for _, k := range l.keys {
		if has[k] {
			list = append(list, l.byKey[k])
		} else {
			left.counts.add(&l.byKey[k].counts)
		}
	}
	if len(list) < len(l.keys) {
		list = append(list, left)
	}
	return list
}

// add adds the gauges of other.
func (c *Counts) add(other *Counts) {
	c.Waiting += other.Waiting
	c.Out += other.Out
	c.AtClients += other.AtClients
	c.Scheduled += other.Scheduled
	c.Bytes += other.Bytes
	c.Consumers += other.Consumers
}
