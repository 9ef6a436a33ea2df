package jms

import (
	"cmp"
	"slices"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// failAll fails everything that the application has, each message by itself
// (R-EDGE-15). causeOf says what the application said of each.
func (in *inbox) failAll(now int64, causeOf func(*delivery) verdict) {
	in.flush(now) // what was processed is acknowledged before anything comes again (R-EDGE-52)
	for _, o := range in.orphans {
		o.failed = o.failed || !o.settled && o.stage == orphan
	}
	had := in.had
	in.had = nil
	in.acknowledgedCount(len(had))
	byArrival(had)
	var counted []*delivery
	var words *wire.Throwable
	for _, d := range had {
		v := causeOf(d)
		if in.decide(d, now, v) && !v.uncounted {
			counted = append(counted, d)
			words = v.throwable
		}
	}
	in.reportFailures(counted, words)
}

// failOne fails one delivery. The others that the application has stay with it.
func (in *inbox) failOne(d *delivery, now int64, v verdict) {
	switch d.stage {
	case orphan:
		d.failed = true
		return
	case delivered:
	default:
		return // settled, or failed already
	}
	in.flush(now)
	in.drop(d)
	in.acknowledgedCount(1)
	if in.decide(d, now, v) && !v.uncounted {
		in.reportFailures([]*delivery{d}, v.throwable)
	}
}

// decide gives a failed delivery up, or lets it wait for its redelivery. It reports
// whether it comes again.
func (in *inbox) decide(d *delivery, now int64, v verdict) bool {
	if !v.uncounted {
		d.counter++
	}
	d.failures++
	d.silent = v.uncounted
	f := redelivery.LocalFacts{Counter: d.counter, Cause: v.text, Uncounted: v.uncounted, GiveUp: v.giveUp, Retry: redelivery.NoRetry}
	if v.giveUp && v.uncounted {
		f.Uncounted = false
	}
	if v.retry != nil {
		f.Retry = max(0, v.retry.Milliseconds())
	}
	decision := in.policyOf(d).DecideLocal(f, in.s.jitter)
	if decision.Poison {
		in.stats.poisoned++
		in.ackOne(d, wire.AckPoison, &wire.Throwable{Class: throwableClass, Message: wire.NewText(shortened(decision.Text)), Cause: v.throwable})
		in.settle(d)
		return false
	}
	d.due = dueAt(now, decision.Delay)
	in.wait(d)
	return true
}

// dueAt is a time after a delay, which may be negative or beyond all time.
func dueAt(now, delay int64) int64 {
	if delay <= 0 {
		return now
	}
	if now > 0 && delay > 1<<62-now {
		return 1 << 62
	}
	return now + delay
}

// wait puts a delivery among those that wait: in blocking mode in the order of
// arrival, as order is kept, else in the order of their times.
func (in *inbox) wait(d *delivery) {
	d.stage = waiting
	at, _ := slices.BinarySearchFunc(in.waiting, d, func(a, b *delivery) int {
		if in.s.nonBlocking {
			return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.order, b.order))
		}
		return cmp.Compare(a.order, b.order)
	})
	in.waiting = slices.Insert(in.waiting, at, d)
}

// reportFailures tells the broker of local failures, from the first on (R-CLIENT-43,
// R-EDGE-14): one REDELIVERED for each gapless range. The application's words go with
// it where there are any; a Java client sends none there, and ActiveMQ ignores them.
func (in *inbox) reportFailures(ds []*delivery, words *wire.Throwable) {
	for _, r := range runs(ds) {
		in.acks = append(in.acks, &wire.MessageAck{Destination: r.first.from, ConsumerID: in.s.consumer, AckType: wire.AckRedelivered,
			FirstMessageID: r.first.w.MessageID, LastMessageID: r.last.w.MessageID, MessageCount: r.n, PoisonCause: words})
	}
}
