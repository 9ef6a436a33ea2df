package jms

import (
	"slices"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// An inbox is what a consumer has been sent, and decides what becomes of it: the
// client's half of redelivery (section 3 of the specification). It is pure: time
// and chance are arguments, and what it wants to tell the broker it leaves in
// acks, in the order in which it is to be sent. The connection's mutex guards it.
type inbox struct {
	s inboxSettings

	order   int64 // arrivals so far
	ready   []*delivery
	waiting []*delivery // blocking: by arrival; else by due time
	had     []*delivery // delivered and not settled, oldest first
	lazy    []*delivery // processed, their acknowledgement put off
	out     outstanding

	unreported int   // delivered since the last DELIVERED acknowledgement
	last       int64 // the broker sequence of what the application had that arrived last; -1: none
	lastOrder  int64 // the order of its arrival
	lazySince  int64 // Unix milliseconds of the last acknowledgement; 0: none

	orphans map[string]*delivery // over a fail-over, by JMSMessageID
	recent  []string             // ids acknowledged last, for the next fail-over
	stats   inboxStats

	acks []*wire.MessageAck
}

// inboxSettings are what an inbox goes by. They do not change, but for the prefetch.
type inboxSettings struct {
	consumer    *wire.ConsumerID
	mode        AckMode
	individual  bool // transacted, each message acknowledged by itself
	nonBlocking bool
	prioritized bool
	topic       bool
	durable     bool // topic: a durable subscription
	browser     bool
	expiry      bool // look at the expiration
	optimize    bool
	optimizeMax time.Duration
	prefetch    int
	policy      func(message.Destination) *redelivery.Policy
	jitter      func() float64
	depth       int // how many acknowledged ids are remembered; 0: none
}

// inboxStats count what happened since the consumer was made.
type inboxStats struct {
	delivered, redelivered, poisoned, expired, duplicates int64
}

func (in *inbox) transacted() bool { return in.s.mode == SessionTransacted }

// arrive takes a dispatch.
func (in *inbox) arrive(owner *Consumer, w *wire.MessageDispatch, now int64) {
	in.order++
	d := &delivery{consumer: owner, w: w.Message, from: w.Destination, key: w.Message.MessageID.String(), order: in.order,
		counter: int(w.RedeliveryCounter), told: int(w.RedeliveryCounter)}
	if v, ok, _ := wire.LookupProperty(w.Message.MarshalledProperties, "redeliveryDelay"); ok && v != nil {
		d.brought = true
	}
	in.out.add(d)
	if in.returned(d, now) {
		return
	}
	in.makeReady(d)
}

// makeReady puts a delivery at the end of what is ready, or where its priority asks.
func (in *inbox) makeReady(d *delivery) {
	d.stage = ready
	if !in.s.prioritized {
		in.ready = append(in.ready, d)
		return
	}
	at := len(in.ready)
	for at > 0 && in.ready[at-1].w.Priority < d.w.Priority {
		at--
	}
	in.ready = slices.Insert(in.ready, at, d)
}

// next hands out the next delivery. Where there is none yet it is nil, and at is when
// to ask again: Unix milliseconds, 0 for when something changes.
func (in *inbox) next(now int64, listener bool) (d *delivery, at int64) {
	for {
		if d, at = in.pick(now); d == nil {
			return nil, at
		}
		if in.usable(d, now, listener) {
			break
		}
	}
	d.stage = delivered
	if d.failures > 0 {
		in.stats.redelivered++
	}
	in.stats.delivered++
	in.had = append(in.had, d)
	in.reached(d)
	return d, 0
}

// pick takes the delivery whose turn it is.
func (in *inbox) pick(now int64) (*delivery, int64) {
	var at int64
	if len(in.waiting) > 0 {
		d := in.waiting[0]
		if d.due <= now {
			in.waiting = in.waiting[1:]
			return d, 0
		}
		if !in.s.nonBlocking { // everything behind it waits (R-CLIENT-45)
			return nil, d.due
		}
		at = d.due
	}
	if len(in.ready) == 0 {
		return nil, at
	}
	d := in.ready[0]
	in.ready[0] = nil
	if in.ready = in.ready[1:]; len(in.ready) == 0 {
		in.ready = nil
	}
	return d, 0
}

// usable makes the checks before delivery (section 3.3). What does not pass them is
// dealt with.
func (in *inbox) usable(d *delivery, now int64, listener bool) bool {
	if in.s.browser {
		return true
	}
	if in.s.expiry && d.w.Expiration > 0 && now > d.w.Expiration { // R-CLIENT-33, R-CLIENT-34
		in.stats.expired++
		in.reached(d)
		in.ackOne(d, wire.AckExpired, nil)
		in.settle(d)
		return false
	}
	if in.transacted() && d.failures == 0 {
		text, poison := in.policyOf(d).Undeliverable(d.told, d.brought, listener, in.s.consumer.String())
		if poison { // R-CLIENT-30, R-CLIENT-31
			in.stats.poisoned++
			in.ackOne(d, wire.AckPoison, wire.NewThrowable(throwableClass, shortened(text)))
			in.settle(d)
			return false
		}
	}
	return true
}

// policyOf is the policy of the destination that the message came from.
func (in *inbox) policyOf(d *delivery) *redelivery.Policy {
	from, err := d.from.Destination()
	if err != nil {
		from = message.Destination{}
	}
	return in.s.policy(from)
}

// deliveredTo does what is due when a delivery goes to the application: the
// acknowledgements of the modes that acknowledge later (section 3.2).
func (in *inbox) deliveredTo(d *delivery) {
	switch {
	case in.s.browser:
		in.processed(d, 0)
	case in.transacted() && in.s.individual:
		in.ackOne(d, wire.AckIndividual, nil)
	case in.transacted(), in.s.mode == ClientAcknowledge, in.s.mode == IndividualAcknowledge:
		in.report(d)
	}
}

// report widens the broker's window each time half of it was delivered (R-CLIENT-20).
// What was delivered in another order than it arrived is told in several ranges: whatever
// a range covers counts as delivered, also what only waits here.
func (in *inbox) report(d *delivery) {
	d.untold = true
	in.unreported++
	if in.s.prefetch == 0 || 2*in.unreported < in.s.prefetch {
		return
	}
	var ds []*delivery
	for _, o := range in.had {
		if o.untold {
			ds, o.untold = append(ds, o), false
		}
	}
	all, left := runs(byArrival(ds)), int32(in.unreported)
	for i, r := range all {
		n := left
		if i < len(all)-1 {
			n = min(r.n, left)
		}
		left -= n
		in.acks = append(in.acks, &wire.MessageAck{Destination: r.first.from, ConsumerID: in.s.consumer, AckType: wire.AckDelivered,
			FirstMessageID: r.first.w.MessageID, LastMessageID: r.last.w.MessageID, MessageCount: n})
	}
	in.unreported = 0
}

// processed acknowledges in the modes that do so by themselves: at once, or in
// batches.
func (in *inbox) processed(d *delivery, now int64) {
	if d.stage != delivered && d.stage != orphan {
		return
	}
	if d.stage == orphan { // its copy, if it comes, is acknowledged and not delivered
		d.settled = true
		return
	}
	in.drop(d)
	lazily := in.s.mode == DupsOKAcknowledge && in.s.topic || in.s.optimize && in.s.mode == AutoAcknowledge
	if !lazily || in.s.prefetch == 0 {
		in.ackOne(d, wire.AckStandard, nil)
		in.settle(d)
		in.remember(d)
		return
	}
	d.stage = acked
	in.lazy = append(in.lazy, d)
	if in.lazySince == 0 {
		in.lazySince = now
	}
	full := 2*len(in.lazy) >= in.s.prefetch
	if in.s.optimize { // R-CLIENT-12: 65 % of the window, or its time
		full = 100*len(in.lazy) >= 65*in.s.prefetch || in.s.optimizeMax > 0 && now-in.lazySince >= in.s.optimizeMax.Milliseconds()
	}
	if full {
		in.flush(now)
	}
}

// flush sends the acknowledgements that were put off.
func (in *inbox) flush(now int64) {
	if len(in.lazy) == 0 {
		return
	}
	in.ackRuns(in.lazy, false)
	for _, d := range in.lazy {
		in.settle(d)
		in.remember(d)
	}
	in.lazy, in.lazySince = nil, now
}

// acknowledgeAll acknowledges all that was delivered: ClientAcknowledge.
func (in *inbox) acknowledgeAll() {
	in.ackRuns(in.had, false)
	in.acknowledgedCount(len(in.had))
	for _, d := range in.had {
		in.settle(d)
		in.remember(d)
	}
	in.had = nil
}

// acknowledgeOne acknowledges one delivery: IndividualAcknowledge. It reports whether
// there was something to acknowledge.
func (in *inbox) acknowledgeOne(d *delivery) bool {
	switch d.stage {
	case orphan:
		d.settled = true
		return true
	case delivered:
		in.drop(d)
		in.ackOne(d, wire.AckIndividual, nil)
		in.acknowledgedCount(1)
		in.settle(d)
		in.remember(d)
		return true
	}
	return false
}

// acknowledgedCount takes what was acknowledged off what is to be reported (R-CLIENT-23).
func (in *inbox) acknowledgedCount(n int) {
	in.unreported = max(0, in.unreported-n)
}

// endTransaction acknowledges, within the transaction that ends, what was delivered:
// all of it, or what a rollback is to count (R-CLIENT-40).
func (in *inbox) endTransaction(counts func(*delivery) bool) {
	if in.s.individual {
		return // done already
	}
	var ds []*delivery
	for _, d := range in.had {
		if counts == nil || counts(d) {
			ds = append(ds, d)
		}
	}
	in.ackRuns(ds, true)
	in.acknowledgedCount(len(ds))
}

// committed forgets what a transaction took.
func (in *inbox) committed() {
	for _, d := range in.had {
		in.settle(d)
	}
	in.had = nil
}

// ackRuns acknowledges deliveries in gapless ranges.
func (in *inbox) ackRuns(ds []*delivery, tx bool) {
	for _, r := range runs(byArrival(slices.Clone(ds))) {
		a := &wire.MessageAck{Destination: r.first.from, ConsumerID: in.s.consumer, AckType: wire.AckStandard,
			FirstMessageID: r.first.w.MessageID, LastMessageID: r.last.w.MessageID, MessageCount: r.n}
		if tx {
			a.TransactionID = pendingTx
		}
		in.acks = append(in.acks, a)
	}
}

// pendingTx stands for the transaction of the session, which puts its own in.
var pendingTx = &wire.LocalTransactionID{}

// ackOne acknowledges one delivery.
func (in *inbox) ackOne(d *delivery, how wire.AckType, cause *wire.Throwable) {
	a := &wire.MessageAck{Destination: d.from, ConsumerID: in.s.consumer, AckType: how,
		FirstMessageID: d.w.MessageID, LastMessageID: d.w.MessageID, MessageCount: 1, PoisonCause: cause}
	if how == wire.AckIndividual { // R-CLIENT-12
		a.FirstMessageID = nil
		if in.transacted() {
			a.TransactionID = pendingTx
		}
	}
	in.acks = append(in.acks, a)
}

// settle lets a delivery go: neither we nor the broker have it any more.
func (in *inbox) settle(d *delivery) {
	d.stage = gone
	in.out.remove(d)
}

// drop takes a delivery out of those that the application has.
func (in *inbox) drop(d *delivery) {
	if i := slices.Index(in.had, d); i >= 0 {
		in.had = slices.Delete(in.had, i, i+1)
	}
}

// reached notes that the application got as far as d. It is the order of arrival that
// counts: what the broker gives once more comes behind what it has numbered higher.
func (in *inbox) reached(d *delivery) {
	d.seen = true
	if d.order >= in.lastOrder {
		in.last, in.lastOrder = d.sequence(), d.order
	}
}

// leave is what RemoveInfo says (OpenWire 10.7): the last message that the application
// has and has not acknowledged, or else the last that it had. All before it count as
// delivered. So what it has behind one that it never saw, which it may from a link
// before this one, or because of its priority, is told by DELIVERED acknowledgements.
func (in *inbox) leave() int64 {
	last, behind := int64(wire.LastDeliveredNone), false
	for d := in.out.head; d != nil; d = d.next {
		told := d.stage == waiting && !d.silent // that it failed
		switch {
		case !d.seen: // also what failed on a link before, and waits
			if !behind && last == wire.LastDeliveredNone && d.order > in.lastOrder {
				last = in.last
			}
			behind = true
		case !behind:
			last = d.sequence()
			if !told && (d.failures > 0 || d.brought) { // the broker would think of the delivery before
				in.ackOne(d, wire.AckDelivered, nil)
			}
		case !told:
			in.ackOne(d, wire.AckDelivered, nil)
		}
	}
	if in.out.head == nil {
		return in.last
	}
	return last
}
