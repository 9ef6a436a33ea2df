package jms

import (
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// What a fail-over does to an inbox (section 3.7). The broker gives everything that
// was not acknowledged to whoever comes, so what we had may come again, to us or to
// somebody else. A copy of what the application has, or has done with, is never
// delivered as if it were new, and never called poison (R-EDGE-09, C21): it is
// acknowledged, or takes the place of the one that the application holds.

// maxCuts is for how many fail-overs what was acknowledged is remembered.
const maxCuts = 3

// interrupt is called when the link has broken.
func (in *inbox) interrupt() {
	orphans := map[string]*delivery{}
	if in.s.topic && !in.s.durable { // nothing of it ever comes again
		for _, d := range in.had {
			d.stage = gone
		}
		in.waiting, in.had, in.lazy, in.recent, in.orphans = nil, nil, nil, nil, nil
	}
	keep := func(d *delivery, settled bool) {
		d.stage, d.settled = orphan, settled
		orphans[d.key] = d
	}
	if in.s.depth > 0 {
		for _, key := range in.recent { // their acknowledgements may not have arrived
			orphans[key] = &delivery{key: key, stage: orphan, settled: true}
		}
		for _, d := range in.lazy {
			keep(d, true)
		}
	}
	for _, d := range in.waiting { // what it was told to wait for holds on (C05)
		d.failed = true
		keep(d, false)
	}
	for _, d := range in.had {
		if in.s.mode == ClientAcknowledge && !d.handled { // R-CLIENT-60
			d.stage = gone
			continue
		}
		keep(d, false)
	}
	for key, d := range in.orphans { // of a fail-over before, whose copies never came
		d.cuts++
		if _, ok := orphans[key]; !ok && d.stage == orphan && (!d.settled || d.cuts < maxCuts) {
			orphans[key] = d
		}
	}
	for _, d := range in.ready {
		d.stage = gone
	}
	in.orphans = orphans
	in.ready, in.waiting, in.had, in.lazy, in.recent, in.acks = nil, nil, nil, nil, nil, nil
	in.out = outstanding{}
	in.unreported = 0
	in.last, in.lastOrder = -1, 0
}

// returned deals with a dispatch whose message the inbox had on a link before. It
// reports whether that was all there is to do.
func (in *inbox) returned(d *delivery, now int64) bool {
	o := in.orphans[d.key]
	if o == nil {
		return false
	}
	delete(in.orphans, d.key)
	switch {
	case o.settled: // processed: the acknowledgement was lost
		in.stats.duplicates++
		if in.s.mode == IndividualAcknowledge {
			in.ackOne(d, wire.AckIndividual, nil)
		} else {
			in.ackOne(d, wire.AckStandard, nil)
		}
		in.settle(d)
		in.remember(d)
		return true
	case o.failed: // it waits on
		d.counter, d.failures = max(d.counter, o.known()), o.failures
		d.due = o.due
		if d.due > now {
			in.wait(d)
			return true
		}
		return false
	}
	in.adopt(o, d)
	return true
}

// known is how many failures of a delivery there were for sure. Where the broker has told
// of more than it counts for, as of a message that may have been seen, that is left out:
// what it tells with the copy is newer.
func (d *delivery) known() int {
	if d.brought {
		return d.failures
	}
	return d.counter
}

// adopt lets the delivery that the application has go on as the copy that has come.
func (in *inbox) adopt(o, d *delivery) {
	in.stats.duplicates++
	in.out.remove(d)
	o.w.MessageID = d.w.MessageID // the broker may have numbered it anew
	o.counter = max(d.counter, o.known())
	o.from, o.order, o.told, o.brought = d.from, d.order, d.told, d.brought
	o.stage = delivered
	in.out.add(o)
	in.had = append(in.had, o)
	in.reached(o)
	switch {
	case in.transacted() && in.s.individual:
		in.ackOne(o, wire.AckIndividual, nil)
	case in.transacted(), in.s.mode == ClientAcknowledge, in.s.mode == IndividualAcknowledge:
		in.report(o)
	}
}

// unseen counts what the open transaction had delivered and what has not come again.
func (in *inbox) unseen() int {
	n := 0
	for _, o := range in.orphans {
		if o.transactional() {
			n++
		}
	}
	return n
}

// transactional reports whether an orphan belongs to the open transaction.
func (d *delivery) transactional() bool {
	return d.consumer != nil && d.stage == orphan && !d.settled && !d.failed && d.consumer.in.transacted()
}

// forgetUnseen gives up what has not come again: when it does, it is delivered anew.
func (in *inbox) forgetUnseen() {
	for key, o := range in.orphans {
		if o.transactional() {
			o.stage = gone
			delete(in.orphans, key)
		}
	}
}

// remember keeps the id of what was acknowledged, for the next fail-over.
func (in *inbox) remember(d *delivery) {
	if in.s.depth <= 0 {
		return
	}
	if len(in.recent) >= 2*in.s.depth {
		in.recent = append([]string(nil), in.recent[len(in.recent)-in.s.depth:]...)
	}
	in.recent = append(in.recent, d.key)
}
