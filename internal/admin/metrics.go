package admin

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics makes the handler of /metrics, with a registry of its own.
func (s *surface) metrics() (http.Handler, error) {
	r := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newCollector(s),
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(s.o.Log.Handler(), slog.LevelError),
	}), nil
}

// A collector asks the broker when it is asked.
type collector struct {
	s             *surface
	all           []*prometheus.Desc
	broker        brokerDescs
	queue         destinationDescs
	subscription  destinationDescs
	queues        seats
	subscriptions seats
}

// brokerDescs are the metrics of the whole broker.
type brokerDescs struct {
	info, connections, memory, free, total, used, refusing, aside, queues, paused, scheduled, topics, subscriptions *prometheus.Desc
	transactions, waiting, waits, waitSeconds                                                                       *prometheus.Desc
	failures, discards                                                                                              *prometheus.Desc
	events                                                                                                          map[broker.EventKind]*prometheus.Desc
}

// destinationDescs are the metrics of a queue, or of a subscription.
type destinationDescs struct {
	messages, bytes, consumers *prometheus.Desc
	counters                   []*prometheus.Desc // as counterNames
}

// counterNames are what is counted for each destination, with how to find it.
var counterNames = []struct {
	name, help string
	value      func(*Counts) int64
}{
	{"enqueued", "Messages added.", func(c *Counts) int64 { return c.Enqueued }},
	{"dequeued", "Messages that left: acknowledged, expired, moved or removed.", func(c *Counts) int64 { return c.Dequeued }},
	{"dispatched", "Messages handed out to consumers.", func(c *Counts) int64 { return c.Dispatched }},
	{"failed", "Delivery attempts that failed.", func(c *Counts) int64 { return c.Failed }},
	{"dead_lettered", "Messages that became dead letters.", func(c *Counts) int64 { return c.DeadLettered }},
	{"expired", "Messages whose time to live passed.", func(c *Counts) int64 { return c.Expired }},
	{"discarded", "Messages dropped by a rule.", func(c *Counts) int64 { return c.Discarded }},
	{"suppressed", "Messages sent again by their producer and not added twice.", func(c *Counts) int64 { return c.Suppressed }},
	{"kept", "Failures of dead letters in their own dead letter queue.", func(c *Counts) int64 { return c.Kept }},
}

// eventNames are the events that are counted for the whole broker.
var eventNames = map[broker.EventKind]struct{ name, help string }{
	broker.DeadLettered:        {"nixie_dead_letters_total", "Messages that became dead letters."},
	broker.Expired:             {"nixie_expired_total", "Messages whose time to live passed."},
	broker.Suppressed:          {"nixie_suppressed_duplicates_total", "Messages sent again by their producer and not added twice."},
	broker.Evicted:             {"nixie_evicted_total", "Messages taken from what waits for slow subscribers."},
	broker.ConsumerAborted:     {"nixie_consumers_aborted_total", "Consumers that were closed, or whose connection was ended, since they were too slow."},
	broker.Kept:                {"nixie_kept_total", "Failures of dead letters in their own dead letter queue, where they stay."},
	broker.StrayAck:            {"nixie_stray_acks_total", "Acknowledgements that fit nothing and were ignored."},
	broker.Redriven:            {"nixie_redriven_total", "Dead letters brought back to where they failed."},
	broker.Moved:               {"nixie_moved_total", "Messages that people moved to another destination."},
	broker.Inconsistent:        {"nixie_store_inconsistencies_total", "Times that the store held fewer entries of a queue than it counted."},
	broker.RecordDamaged:       {"nixie_store_damaged_records_total", "Records of the store that were damaged, and mended as far as can be."},
	broker.TransactionTimedOut: {"nixie_transactions_timed_out_total", "Distributed transactions that took too long and were rolled back."},
	broker.DestinationLost:     {"nixie_destinations_lost_total", "Destinations stopped after a commit that failed, and opened anew from the store."},
}

func newCollector(s *surface) *collector {
	c := &collector{s: s}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc(name, help, labels, nil)
		c.all = append(c.all, d)
		return d
	}
	c.broker = brokerDescs{
		info:          desc("nixie_info", "1, with what runs.", "broker", "version"),
		connections:   desc("nixie_connections", "Clients that are connected."),
		memory:        desc("nixie_message_memory_bytes", "What messages take in memory."),
		free:          desc("nixie_disk_free_bytes", "Free space on the disk under the store; absent where there is no disk."),
		total:         desc("nixie_disk_size_bytes", "Size of the disk under the store; absent where there is no disk."),
		used:          desc("nixie_store_used_bytes", "What the store takes on the disk; absent where there is no disk."),
		refusing:      desc("nixie_producers_refused", "1 while producers of persistent messages are refused for want of disk space."),
		waiting:       desc("nixie_producers_waiting", "Producers that wait for room now: at a destination's limit, or for the disk."),
		waits:         desc("nixie_waits_total", "Sends and commits that had to wait for room."),
		waitSeconds:   desc("nixie_wait_seconds_total", "How long they have waited together, but for those that still wait."),
		aside:         desc("nixie_store_records_aside", "Damaged records of the store that are kept aside."),
		queues:        desc("nixie_queues", "Queues that exist."),
		paused:        desc("nixie_queues_paused", "Queues that someone has paused: they hand out nothing."),
		scheduled:     desc("nixie_scheduled_messages", "Messages that wait for the time that their producer wants."),
		topics:        desc("nixie_topics", "Topics that are known."),
		subscriptions: desc("nixie_subscriptions", "Subscriptions to topics that exist."),
		transactions:  desc("nixie_transactions", "Distributed transactions, by state.", "state"),
		failures:      desc("nixie_failures_total", "Delivery attempts that failed, by cause.", "cause"),
		discards:      desc("nixie_discards_total", "Messages dropped by a rule, by reason.", "reason"),
		events:        map[broker.EventKind]*prometheus.Desc{},
	}
	for kind, e := range eventNames {
		c.broker.events[kind] = desc(e.name, e.help)
	}
	family := func(prefix string, labels ...string) destinationDescs {
		d := destinationDescs{
			messages:  desc(prefix+"_messages", "Messages it has, by state.", append(labels, "state")...),
			bytes:     desc(prefix+"_stored_bytes", "Size of the messages that are in the store.", labels...),
			consumers: desc(prefix+"_consumers", "Consumers attached to it.", labels...),
		}
		for _, n := range counterNames {
			d.counters = append(d.counters, desc(prefix+"_"+n.name+"_total", n.help, labels...))
		}
		return d
	}
	c.queue = family("nixie_queue", "queue")
	c.subscription = family("nixie_subscription", "topic", "client_id", "subscription")
	return c
}

// Describe tells what Collect may send.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.all {
		ch <- d
	}
}

// Collect asks the broker.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.collectBroker(ch)
	c.collectQueues(ch)
	c.collectSubscriptions(ch)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, v int64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (c *collector) collectBroker(ch chan<- prometheus.Metric) {
	b, d := c.s.b, &c.broker
	gauge(ch, d.info, 1, plain(b.Name()), plain(c.s.o.Version))
	gauge(ch, d.connections, float64(b.Connections()))
	for state, n := range b.TransactionStates() {
		gauge(ch, d.transactions, float64(n), state)
	}
	gauge(ch, d.scheduled, float64(b.ScheduledMessages()))
	gauge(ch, d.aside, float64(b.RecordsAside()))
	gauge(ch, d.memory, float64(b.MemoryBytes()))
	if space, err := c.s.o.Space(); err == nil && space.TotalBytes > 0 {
		gauge(ch, d.free, float64(space.FreeBytes))
		gauge(ch, d.total, float64(space.TotalBytes))
		gauge(ch, d.used, float64(space.UsedBytes))
	}
	refusing := 0.0
	if b.Full() != nil {
		refusing = 1
	}
	gauge(ch, d.refusing, refusing)
	now, sends, waited := b.Waiting()
	gauge(ch, d.waiting, float64(now))
	counter(ch, d.waits, sends)
	ch <- prometheus.MustNewConstMetric(d.waitSeconds, prometheus.CounterValue, waited.Seconds())
	gauge(ch, d.topics, float64(len(b.Topics())))
	for kind, e := range d.events {
		counter(ch, e, b.Counted(kind))
	}
	failures := b.CountedBy(broker.Failed)
	for cause := message.Rollback; cause <= message.Duplicate; cause++ { // also those that did not come yet
		word := cause.String()
		counter(ch, d.failures, failures[word], word)
		delete(failures, word)
	}
	for _, word := range slices.Sorted(maps.Keys(failures)) {
		counter(ch, d.failures, failures[word], plain(word))
	}
	for reason, n := range b.CountedBy(broker.Discarded) {
		counter(ch, d.discards, n, plain(reason))
	}
}
