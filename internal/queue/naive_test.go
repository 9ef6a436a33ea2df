package queue

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// A naive queue does what a Machine does, in the plainest way: one slice of items,
// no window, no marks, no heap. It tells what it does as lines of text, which the
// law tests compare with the effects of the machine.
type naive struct {
	o         Options
	items     []*naiveItem // in the order of positions
	consumers []*naiveConsumer
	exclusive *naiveConsumer
	next      int
	order     int // counts hand-outs
	tx        map[string][]*naiveItem
	last      map[string]int64 // of producers
	durable   map[string]int64 // of producers, as stored
	now       int64
	told      []string
}

type naiveItem struct {
	position, sequence     uint64
	producer, kind         string
	lane                   uint8
	durable, dead, fresh   bool // fresh: this turn stores it
	expires, storedExpires int64
	size                   int32
	failures, holds, lines int
	suspect, how           message.HandOut
	state                  place
	consumer               *naiveConsumer
	handed                 int // order of the hand-out
	tx                     string
	attempt                attempt
	covered, written       bool
	unasked                bool
	countTold, excess      int
	due, heldUntil         int64
	handedAt, coveredAt    int64
	restsUntil             int64
	heldFrom               string
}

type naiveConsumer struct {
	id, connection, kind string
	prefetch             int
	priority             int8
	exclusive, quiet     bool
	extension            int
	pulls                []int64
	settled              [2]struct { // the newest of what it settled: what its application had, what it refused unread
		position uint64
		handed   int
	}
	handed       bool
	progress     int64
	idle, lapsed bool
}

func newNaive(o Options) *naive {
	return &naive{o: o, tx: map[string][]*naiveItem{}, last: map[string]int64{}, durable: map[string]int64{}}
}

func (q *naive) tell(format string, args ...any) {
	q.told = append(q.told, fmt.Sprintf(format, args...))
}

func (q *naive) consumer(id string) *naiveConsumer {
	for _, c := range q.consumers {
		if c.id == id {
			return c
		}
	}
	return nil
}

// held is what a consumer has, in the order of the hand-out.
func (q *naive) held(c *naiveConsumer) []*naiveItem {
	var held []*naiveItem
	for _, it := range q.items {
		if it.state == out && it.consumer == c {
			held = append(held, it)
		}
	}
	slices.SortFunc(held, func(a, b *naiveItem) int { return cmp.Compare(a.handed, b.handed) })
	return held
}

func (q *naive) room(c *naiveConsumer) bool {
	if c.idle {
		return false
	}
	if c.prefetch == 0 {
		return len(c.pulls) > 0
	}
	return len(q.held(c))-c.extension < c.prefetch
}

func (q *naive) widen(c *naiveConsumer, n int) {
	if c.prefetch != 0 {
		c.extension = max(0, min(c.extension+n, len(q.held(c))))
	}
}

func (q *naive) insert(it *naiveItem) {
	i, _ := slices.BinarySearchFunc(q.items, it.position, func(o *naiveItem, p uint64) int { return cmp.Compare(o.position, p) })
	q.items = slices.Insert(q.items, i, it)
}

func (q *naive) gone(it *naiveItem, how string) {
	q.items = slices.DeleteFunc(q.items, func(o *naiveItem) bool { return o == it })
	it.state = nowhere
	q.tell("%s %d", how, it.position)
}

// enqueue takes a message in; arrived says that it is stored already.
func (q *naive) enqueue(it *naiveItem, checked, arrived bool) {
	if checked {
		if last, ok := q.last[it.producer]; ok && int64(it.sequence) <= last {
			return
		}
		q.last[it.producer] = int64(it.sequence)
		if it.durable {
			q.durable[it.producer] = int64(it.sequence)
		}
	}
	if !arrived && q.expired(it) {
		if !q.o.Redelivers || q.verdict(it, message.Expired, "", false).Action != redelivery.Keep {
			q.decide(it, message.Expired, "", false)
			return
		}
		it.expires, it.storedExpires = 0, 0
	}
	it.state, it.fresh = waiting, !arrived
	q.insert(it)
}

func (q *naive) expired(it *naiveItem) bool { return it.expires > 0 && q.now > it.expires }

// lapse takes from consumers what they should have acknowledged by now.
func (q *naive) lapse() {
	byPriority := slices.Clone(q.consumers)
	slices.SortStableFunc(byPriority, func(a, b *naiveConsumer) int { return cmp.Compare(b.priority, a.priority) })
	for _, c := range byPriority {
		held := slices.DeleteFunc(q.held(c), func(it *naiveItem) bool { return it.tx != "" || it.attempt != open })
		late := map[*naiveItem]bool{}
		oldest := true
		for _, it := range held {
			start := max(it.handedAt, c.progress)
			if it.covered {
				start = it.coveredAt
			}
			if (it.covered || oldest) && q.now >= start+q.o.AckTimeout {
				late[it] = true
			}
			oldest = oldest && it.covered
		}
		if len(late) == 0 {
			continue
		}
		c.idle, c.lapsed = true, true
		for _, it := range held {
			if late[it] {
				q.leave(it, 0)
				q.count(it)
				q.decide(it, message.AckTimeout, "", true)
				continue
			}
			it.state = waiting
			if it.failures == 0 {
				it.suspect = max(it.suspect, message.HandedOut)
			}
			q.giveBack(it)
		}
		c.extension = min(c.extension, len(q.held(c)))
		if q.exclusive == c {
			q.exclusive = nil
			q.elect()
		}
	}
}

// wake is what happens when a consumer is heard of.
func (q *naive) wake(c *naiveConsumer) {
	if c.idle {
		c.idle = false
		q.elect()
	}
}

// pass lets time pass and dispatches.
func (q *naive) pass() {
	if q.o.AckTimeout > 0 && q.o.Redelivers {
		q.lapse()
	}
	for {
		it := q.earliest(func(it *naiveItem) int64 {
			if it.state == scheduled {
				return it.due
			}
			return math.MaxInt64
		})
		if it == nil || it.due > q.now {
			break
		}
		if q.goesOn(it) {
			q.giveBack(it)
		}
	}
	for {
		it := q.earliest(func(it *naiveItem) int64 {
			if it.state == out || it.state == limbo || it.expires == 0 {
				return math.MaxInt64
			}
			return it.expires
		})
		if it == nil || !q.expired(it) {
			break
		}
		it.consumer = nil
		q.decide(it, message.Expired, "", false)
	}
	q.dispatch()
}

// goesOn asks the policy about what an earlier process left unasked.
func (q *naive) goesOn(it *naiveItem) bool {
	if !it.unasked {
		return true
	}
	if a := q.verdict(it, message.BrokerStopped, "", true).Action; a == redelivery.Again || a == redelivery.Later {
		it.unasked = false
		return true
	}
	it.lines++
	q.decide(it, message.BrokerStopped, "", true)
	return false
}

// foresee notes when the policy is to be asked if the process ends before the client
// gives the item back.
func (q *naive) foresee(it *naiveItem, cause message.Cause) {
	if q.o.Rules.Redelivery == nil || !it.durable || !q.o.Redelivers {
		return
	}
	switch d := q.verdict(it, cause, "", true); d.Action {
	case redelivery.Again:
	case redelivery.Later:
		it.unasked, it.due = true, d.Due
	default:
		it.unasked, it.due = true, q.now
	}
}

func (q *naive) earliest(key func(*naiveItem) int64) *naiveItem {
	var best *naiveItem
	for _, it := range q.items {
		if k := key(it); k < math.MaxInt64 && (best == nil || k < key(best)) {
			best = it
		}
	}
	return best
}

func (q *naive) dispatch() {
	for lane := range uint8(lanes) {
		for _, it := range q.ready(lane) {
			if c := q.pick(it); c != nil {
				q.handOut(it, c)
			}
		}
	}
	for _, c := range q.consumers {
		c.pulls = slices.DeleteFunc(c.pulls, func(until int64) bool { return until != 0 && until <= q.now })
	}
}

// ready lists what may be handed out of a lane, in order: first what came back.
func (q *naive) ready(lane uint8) []*naiveItem {
	var list []*naiveItem
	for _, it := range q.items {
		if it.lane == lane && it.state == returned {
			list = append(list, it)
		}
	}
	for _, it := range q.items {
		if it.lane == lane && it.state == waiting {
			list = append(list, it)
		}
	}
	return list
}

func (q *naive) pick(it *naiveItem) *naiveConsumer {
	for priority := 127; priority >= -128; priority-- {
		var group []*naiveConsumer
		for _, c := range q.consumers {
			if int(c.priority) == priority {
				group = append(group, c)
			}
		}
		for i := range group {
			at := (q.next + i) % len(group)
			c := group[at]
			if q.room(c) && (q.exclusive == nil || q.exclusive == c) && (c.kind == "" || c.kind == it.kind) &&
				it.restsUntil <= q.now && (it.heldUntil <= q.now || it.heldFrom != c.connection) {
				q.next = at + 1
				return c
			}
		}
	}
	return nil
}

func (q *naive) handOut(it *naiveItem, c *naiveConsumer) {
	q.order++
	it.state, it.consumer, it.handed = out, c, q.order
	it.attempt, it.covered, it.tx, it.written = open, false, "", false
	it.handedAt = q.now
	n, hint := it.failures, false
	if it.suspect == message.Pulled {
		n, hint = n+1, true
	} else if it.suspect == message.HandedOut && n == 0 {
		n, hint = 1, true
	}
	it.countTold, it.excess = n, n-it.failures
	it.how = message.HandedOut
	if c.prefetch == 0 {
		it.how = message.Pulled
		c.pulls = c.pulls[1:]
	}
	c.handed = true
	hint = hint || it.due != 0 || n > 0 && q.o.Rules.Redelivery != nil
	q.tell("deliver %d to %s counter=%d hint=%v", it.position, c.id, n, hint)
}

func (q *naive) attach(c *naiveConsumer) {
	q.consumers = append(q.consumers, c)
	if c.exclusive && c.priority == 127 {
		q.exclusive = c
	}
	q.elect()
}

func (q *naive) elect() {
	for priority := 127; priority >= -128; priority-- {
		for _, c := range q.consumers {
			if int(c.priority) == priority && c.exclusive && !c.idle && (q.exclusive == nil || c.priority > q.exclusive.priority) {
				q.exclusive = c
			}
		}
	}
}

func (q *naive) detach(c *naiveConsumer, d Detach) {
	held := q.held(c)
	q.consumers = slices.DeleteFunc(q.consumers, func(o *naiveConsumer) bool { return o == c })
	if q.exclusive == c {
		q.exclusive = nil
		q.elect()
	}
	had := q.had(c, held, d)
	for i, it := range held {
		if it.tx != "" {
			it.state = limbo
			continue
		}
		if !q.o.Redelivers {
			q.gone(it, "remove")
			continue
		}
		failed := it.attempt != open || it.unasked
		if had[i] {
			failed = q.signal(it, d.Cause) || failed
		} else if !failed && (d.Last == UnknownLast || d.Last == UnsaidLast) && it.failures == 0 {
			it.suspect = max(it.suspect, message.HandedOut)
		}
		if failed {
			q.decide(it, d.Cause, d.Text, true)
		} else {
			q.giveBack(it)
		}
	}
}

func (q *naive) had(c *naiveConsumer, held []*naiveItem, d Detach) []bool {
	had := make([]bool, len(held))
	at := slices.IndexFunc(held, func(it *naiveItem) bool { return int64(it.position) == d.Last })
	known := d.Last != UnknownLast
	charge := d.Charge
	for _, it := range held { // C02: it tells of each message that its application gets
		charge = charge && !(c.prefetch >= 1 && c.prefetch <= 2 && it.covered && it.attempt == open)
	}
	for i, it := range held {
		switch {
		case known && it.covered && it.attempt == open:
			had[i] = true
		case known && at >= 0 && !(c.settled[0].position == uint64(d.Last) && c.settled[0].handed < held[at].handed):
			had[i] = i <= at
		case known && d.Last > 0 && c.settled[0].position == uint64(d.Last):
			had[i] = it.handed < c.settled[0].handed
		case known && d.Last > 0 && c.settled[1].position == uint64(d.Last):
			had[i] = it.handed < c.settled[1].handed
		case known:
			had[i] = d.Last > 0 && int64(it.position) <= d.Last
		case d.Cause == message.BrokerStopped || it.attempt == charged || it.tx != "":
		case it.covered && it.attempt == open:
			had[i] = true
		default:
			had[i], charge = charge, false
		}
	}
	return had
}

func (q *naive) verdict(it *naiveItem, cause message.Cause, text string, counted bool) redelivery.Decision {
	return q.o.Rules.Decide(redelivery.Facts{
		Cause: cause, Counted: counted, Failures: it.failures, Text: text, Destination: q.o.Destination, Persistent: it.durable,
		Expired: q.expired(it), Expiration: it.expires, DeadLetterQueue: it.dead || q.o.Destination.Name == redelivery.DefaultDeadLetterQueue,
		Holds: it.holds,
	}, q.now, nil)
}

// ownDeadLetter reports whether an item is where no policy has a say.
func (q *naive) ownDeadLetter(position uint64) bool {
	return q.o.Destination.Name == redelivery.DefaultDeadLetterQueue ||
		slices.ContainsFunc(q.items, func(it *naiveItem) bool { return it.position == position && it.dead })
}

func (q *naive) decide(it *naiveItem, cause message.Cause, text string, counted bool) {
	if q.expired(it) && cause != message.Poison && cause != message.Undispatchable {
		cause = message.Expired
	}
	if !q.o.Redelivers {
		q.gone(it, "remove")
		return
	}
	if it.unasked {
		counted = true
		if cause == message.Duplicate {
			cause = message.Released
		}
		it.unasked, it.due = false, 0
	}
	d := q.verdict(it, cause, text, counted)
	switch d.Action {
	case redelivery.Again:
		q.giveBack(it)
	case redelivery.Later:
		if d.Due <= q.now {
			it.due = 0
			q.giveBack(it)
			break
		}
		it.state, it.due, it.consumer = scheduled, d.Due, nil
	case redelivery.Hold:
		it.holds++
		q.hold(it, d.Due)
	case redelivery.Keep:
		it.holds++
		it.failures, it.suspect, it.due = 0, message.NotHandedOut, 0
		if d.Due == 0 {
			it.expires = 0
			if it.fresh {
				it.storedExpires = 0
			}
		}
		q.hold(it, d.Due)
		it.restsUntil = d.Rest
	case redelivery.DeadLetter:
		q.gone(it, "transfer")
	case redelivery.Discard:
		q.gone(it, "remove")
	}
}

func (q *naive) hold(it *naiveItem, until int64) {
	it.state, it.heldUntil, it.heldFrom, it.restsUntil = waiting, until, "", 0
	if it.consumer != nil {
		it.heldFrom = it.consumer.connection
	}
	it.consumer = nil
}

func (q *naive) giveBack(it *naiveItem) {
	it.state, it.consumer = returned, nil
	if it.heldUntil > q.now {
		it.state = waiting
	}
}

// extractable lists what no consumer has of a lane, in the order in which it is
// taken out.
func (q *naive) extractable(lane uint8) []*naiveItem {
	all := q.ready(lane)
	for _, it := range q.items {
		if it.lane == lane && it.state == scheduled {
			all = append(all, it)
		}
	}
	slices.SortFunc(all, func(a, b *naiveItem) int { return cmp.Compare(a.position, b.position) })
	return all
}

// crash is what the next process finds.
func (q *naive) crash() {
	q.consumers, q.exclusive, q.next = nil, nil, 0
	clear(q.tx)
	q.last = map[string]int64{}
	for p, n := range q.durable {
		q.last[p] = n
	}
	q.items = slices.DeleteFunc(q.items, func(it *naiveItem) bool { return !it.durable })
	for _, it := range q.items {
		if q.o.Marks && (it.state == out || it.state == limbo) {
			how := it.how
			if it.attempt == rolledBack {
				how = min(how, message.HandedOut)
			}
			it.suspect = max(it.suspect, how)
		}
		it.state = waiting
		if it.due != 0 { // also if that has passed: it goes before those never handed out
			it.state = scheduled
		}
		it.tx, it.consumer, it.heldUntil, it.restsUntil, it.expires = "", nil, 0, 0, it.storedExpires
	}
}
