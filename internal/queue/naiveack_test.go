package queue

import (
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// span is the range an acknowledgement names; nil if there is none.
func (q *naive) span(c *naiveConsumer, a Ack) []*naiveItem {
	held := q.held(c)
	index := func(r Ref) int {
		return slices.IndexFunc(held, func(it *naiveItem) bool { return it.position == r.Position })
	}
	from, to := 0, index(a.Last)
	if a.Type == Individual {
		a.First = a.Last
	}
	if !a.First.IsZero() {
		from = index(a.First)
	}
	if from < 0 && a.Type == Delivered { // it may have been acknowledged by itself meanwhile
		from = 0
	}
	if from < 0 || to < from {
		return nil
	}
	return held[from : to+1]
}

func (q *naive) ack(a Ack) {
	c := q.consumer(a.Consumer)
	if c == nil || !c.handed {
		return
	}
	if c.lapsed && a.Type != Unmatched {
		if a.Type == Individual {
			a.First = a.Last
		}
		has := func(r Ref) bool {
			return slices.ContainsFunc(q.held(c), func(it *naiveItem) bool { return it.position == r.Position })
		}
		switch {
		case !has(a.Last), !a.First.IsZero() && !has(a.First) && a.Tx != "":
			if a.Type != Delivered {
				q.wake(c)
			}
			return
		case !a.First.IsZero() && !has(a.First):
			a.First = Ref{}
		}
	}
	q.wake(c)
	if a.Type == Unmatched {
		return
	}
	span := q.span(c, a)
	if span == nil || a.Type == Standard && a.Tx == "" && q.o.Redelivers && a.Count != len(span) && !c.lapsed || a.Type == Poison && a.Tx != "" {
		return
	}
	c.progress = q.now
	switch a.Type {
	case Delivered:
		q.widen(c, max(a.Count, 0))
	case Poison, ExpiredAck:
		q.widen(c, -1)
	}
	newest := span[len(span)-1]
	missed := q.missed(c, a, newest)
	for _, it := range span[:len(span)-1] {
		q.ackOne(c, a, it, min(missed, 1))
	}
	q.ackOne(c, a, newest, missed)
}

// missed is how many attempts of the newest of a range nobody announced.
func (q *naive) missed(c *naiveConsumer, a Ack, newest *naiveItem) int {
	kind, n := redelivery.ParsePoison(a.Text)
	switch {
	case a.Type == Redelivered && c.quiet && newest.attempt == open && newest.countTold == 0 && !newest.written && newest.tx == "":
		return 1
	case a.Type == Poison && kind == redelivery.DeliveryLimit:
		n -= newest.excess + newest.failures
		if newest.attempt == open || newest.attempt == announced {
			n--
		}
		return max(n, 0)
	}
	return 0
}

func (q *naive) ackOne(c *naiveConsumer, a Ack, it *naiveItem, missed int) {
	if a.Type == Delivered {
		it.covered, it.coveredAt = true, q.now
		if it.attempt != charged {
			it.attempt = open
		}
		return
	}
	if it.tx != "" {
		return
	}
	switch {
	case a.Type == Redelivered:
		for range missed {
			q.count(it)
		}
		if q.signal(it, message.Recover) {
			q.foresee(it, message.Recover)
		}
		it.attempt = announced
	case a.Type == Poison:
		q.poison(it, a.Text, missed)
	case a.Type == ExpiredAck:
		q.leave(it, 1)
		it.lines++
		if q.expired(it) || !q.o.Redelivers {
			q.decide(it, message.Expired, "", false)
			return
		}
		if it.unasked {
			q.decide(it, message.Released, "", true)
			return
		}
		q.hold(it, max(it.expires+1, q.now+1000))
	case a.Tx != "":
		it.tx, it.attempt = a.Tx, open
		if a.Type == Individual {
			q.widen(c, 1)
		}
		q.tx[a.Tx] = append(q.tx[a.Tx], it)
	default:
		q.widen(c, -1)
		q.leave(it, 0)
		q.gone(it, "remove")
	}
}

// leave takes an item from its consumer, whose window can be widened by no more
// than it has. unread is 1 if its application did not have it.
func (q *naive) leave(it *naiveItem, unread int) {
	it.state = waiting
	if s := &it.consumer.settled[unread]; it.handed > s.handed {
		s.handed, s.position = it.handed, it.position
	}
	it.consumer.extension = min(it.consumer.extension, len(q.held(it.consumer)))
}

func (q *naive) poison(it *naiveItem, text string, missed int) {
	kind, _ := redelivery.ParsePoison(text)
	switch kind {
	case redelivery.SuppressedDuplicate:
		q.leave(it, 1)
		if it.failures == 0 {
			it.suspect = max(it.suspect, message.HandedOut)
		}
		it.lines++
		q.decide(it, message.Duplicate, text, false)
	case redelivery.DispatchLimit:
		q.leave(it, 1)
		it.lines++
		q.decide(it, message.Poison, text, false)
	default:
		q.leave(it, 0)
		for range missed {
			q.count(it)
		}
		counted := q.signal(it, message.Poison)
		q.decide(it, message.Poison, text, counted || it.attempt == rolledBack)
	}
}

func (q *naive) signal(it *naiveItem, cause message.Cause) bool {
	told := it.attempt == charged
	if it.attempt == rolledBack {
		told = cause == message.Recover || cause == message.Poison || cause == message.Closed
	} else if it.attempt == announced {
		told = cause == message.Closed
	}
	if told {
		return false
	}
	q.count(it)
	return true
}

func (q *naive) count(it *naiveItem) {
	it.failures++
	it.lines++
	it.written, it.suspect = true, message.NotHandedOut
}

func (q *naive) settle(s Settle) {
	items := q.tx[s.Tx]
	delete(q.tx, s.Tx)
	for _, it := range items {
		if s.Commit {
			if it.state == out {
				q.widen(it.consumer, -1)
				q.leave(it, 0)
			}
			q.gone(it, "forget")
			continue
		}
		it.tx = ""
		counted := q.signal(it, s.Cause)
		if it.state == limbo {
			q.decide(it, s.Cause, s.Text, counted)
			continue
		}
		q.widen(it.consumer, -1)
		if counted {
			q.foresee(it, s.Cause)
		}
		it.attempt = rolledBack
		if s.Cause == message.ConnectionLost {
			it.attempt = charged
		}
	}
}
