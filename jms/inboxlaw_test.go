package jms

import (
	"slices"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/redelivery"
	"pgregory.net/rapid"
)

// A ledger is a broker as an inbox sees it: what it believes the consumer to have, in
// the order of dispatch. It is as strict about acknowledgements as ActiveMQ (R-BRK-10).
type ledger struct {
	t         *rapid.T
	in        *inbox
	owner     *Consumer
	out       []int64        // sequences
	sent      []int64        // of this link, ended or not
	had       map[int64]bool // of this link, by the application
	told      map[int64]bool // and the broker knows: by a DELIVERED, or that it has failed
	announced map[int64]bool // the last that the broker knows is that it failed
	ended     map[int64]int  // acknowledged or poisoned, how often
	poisoned  map[int64]bool
	next      int64
	now       int64
}

func (l *ledger) dispatch(seq int64, counter int) {
	l.out, l.sent = append(l.out, seq), append(l.sent, seq)
	id := &wire.MessageID{ProducerID: &wire.ProducerID{ConnectionID: "p", SessionID: 1, Value: 1}, ProducerSequenceID: seq, BrokerSequenceID: seq}
	l.in.arrive(l.owner, &wire.MessageDispatch{ConsumerID: l.in.s.consumer, Destination: &wire.Destination{Kind: wire.CodeActiveMQQueue, PhysicalName: "A"},
		Message: &wire.Message{Kind: message.PlainBody, MessageID: id}, RedeliveryCounter: int32(counter)}, l.now)
	l.obey()
}

// obey carries out what the inbox says, and finds fault with it.
func (l *ledger) obey() {
	acks := l.in.acks
	l.in.acks = nil
	for _, a := range acks {
		to := slices.Index(l.out, a.LastMessageID.ProducerSequenceID)
		from := to
		if a.FirstMessageID != nil {
			from = slices.Index(l.out, a.FirstMessageID.ProducerSequenceID)
		}
		if from < 0 || to < from {
			l.t.Fatalf("%s fits nothing of %v", ackText(a), l.out)
		}
		switch a.AckType {
		case wire.AckDelivered, wire.AckRedelivered:
			for _, seq := range l.out[from : to+1] {
				if !l.had[seq] {
					l.t.Fatalf("%s is said of %d, which no application has had: %v", ackText(a), seq, l.out)
				}
				l.told[seq], l.announced[seq] = true, a.AckType == wire.AckRedelivered
			}
		case wire.AckStandard, wire.AckIndividual, wire.AckPoison, wire.AckExpired:
			if n := int(a.MessageCount); n != to-from+1 {
				l.t.Fatalf("%s says %d, and %v has %d", ackText(a), n, l.out, to-from+1)
			}
			for _, seq := range l.out[from : to+1] {
				l.ended[seq]++
				l.poisoned[seq] = l.poisoned[seq] || a.AckType == wire.AckPoison
			}
			l.out = slices.Delete(l.out, from, to+1)
		}
	}
}

// leave checks what the inbox says when its consumer is closed: of what the broker
// believes it to have, the application had just what that covers, or was told before.
func (l *ledger) leave() {
	last := l.in.leave()
	l.obey()
	upto := slices.Index(l.sent, last)
	if last != -1 && upto < 0 {
		l.t.Fatalf("the last that was delivered is %d, and there were %v", last, l.sent)
	}
	for i, seq := range l.sent {
		switch covered := i <= upto; {
		case !slices.Contains(l.out, seq):
		case covered && !l.had[seq]:
			l.t.Fatalf("%d is delivered by what was told, %d, and no application has had it: %v", seq, last, l.sent)
		case l.had[seq] && !covered && !l.told[seq]:
			l.t.Fatalf("an application has had %d, and the broker does not know: %d is the last of %v", seq, last, l.sent)
		case l.announced[seq] && !l.told[seq]:
			l.t.Fatalf("an application has had %d once more, and the broker does not know: %d is the last of %v", seq, last, l.sent)
		}
	}
}

// anyVerdict draws a failure that counts, mostly, or does not.
func anyVerdict(t *rapid.T) verdict {
	return verdict{uncounted: rapid.IntRange(0, 3).Draw(t, "uncounted") == 0}
}

// TestInboxLaws runs random histories and checks that every acknowledgement fits, that
// nothing is acknowledged twice, that order is kept in blocking mode, that the broker
// is told of what the application has had, and of nothing else, and that in the end the
// broker has nothing left.
func TestInboxLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]AckMode{AutoAcknowledge, ClientAcknowledge, IndividualAcknowledge}).Draw(t, "mode")
		policy := redelivery.DefaultPolicy()
		policy.MaximumRedeliveries = rapid.IntRange(-1, 3).Draw(t, "limit")
		policy.InitialRedeliveryDelay = time.Duration(rapid.IntRange(0, 3).Draw(t, "first delay")) * time.Second
		owner := &Consumer{session: &Session{mode: mode}}
		l := &ledger{t: t, owner: owner, ended: map[int64]int{}, poisoned: map[int64]bool{}, had: map[int64]bool{}, told: map[int64]bool{}, announced: map[int64]bool{}, now: 1000}
		owner.in = inbox{last: -1, s: inboxSettings{consumer: &wire.ConsumerID{ConnectionID: "c", SessionID: 1, Value: 1}, mode: mode,
			nonBlocking: rapid.Bool().Draw(t, "non-blocking"), optimize: rapid.Bool().Draw(t, "optimize"), prefetch: rapid.IntRange(1, 10).Draw(t, "prefetch"),
			policy: func(message.Destination) *redelivery.Policy { return &policy }, depth: 100}}
		l.in = &owner.in
		var held []*delivery // the application's
		processed := map[int64]int{}
		highest := int64(0)
		succeed := func(d *delivery) {
			if d.stage == gone {
				return
			}
			seq := d.w.MessageID.ProducerSequenceID
			switch mode {
			case ClientAcknowledge:
				for _, o := range held {
					if o.stage == delivered {
						processed[o.w.MessageID.ProducerSequenceID]++
					}
				}
				l.in.acknowledgeAll()
			case IndividualAcknowledge:
				processed[seq]++
				l.in.acknowledgeOne(d)
			default:
				processed[seq]++
				d.handled = false
				l.in.processed(d, l.now)
			}
		}
		step := func(what string) {
			switch what {
			case "dispatch":
				l.next++
				l.dispatch(l.next, 0)
			case "deliver":
				if mode == AutoAcknowledge && len(held) > 0 {
					return // its handler takes one at a time
				}
				d, _ := l.in.next(l.now, true)
				if d == nil {
					break
				}
				seq := d.w.MessageID.ProducerSequenceID
				l.had[seq], l.told[seq] = true, false
				l.in.deliveredTo(d)
				d.handled = mode == AutoAcknowledge
				if !l.in.s.nonBlocking && d.failures == 0 && d.counter == 0 && seq < highest {
					t.Fatalf("%d is delivered for the first time after %d", seq, highest)
				}
				highest = max(highest, seq)
				held = append(held, d)
			case "succeed", "fail":
				if len(held) == 0 {
					return
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				d := held[i]
				held = slices.Delete(held, i, i+1)
				if what == "succeed" {
					held = append(held, d) // until it is seen to be gone
					succeed(d)
					held = slices.DeleteFunc(held, func(o *delivery) bool { return o.stage == gone || o == d })
				} else {
					d.handled = false
					l.in.failOne(d, l.now, anyVerdict(t))
				}
			case "fail all":
				v := anyVerdict(t)
				l.in.failAll(l.now, func(*delivery) verdict { return v })
				held = nil
			case "time":
				l.now += 700
			case "cut":
				l.in.interrupt()
				if mode == ClientAcknowledge {
					held = nil
				}
				again := l.out
				l.out, l.sent, l.had, l.announced = nil, nil, map[int64]bool{}, map[int64]bool{}
				for _, d := range held { // it goes on with its copy
					l.had[d.w.MessageID.ProducerSequenceID] = d.stage == orphan
				}
				for _, seq := range again {
					l.dispatch(seq, 1)
				}
			}
			l.obey()
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			step(rapid.SampledFrom([]string{"dispatch", "dispatch", "deliver", "deliver", "succeed", "fail", "fail all", "time", "cut"}).Draw(t, "step"))
		}
		if rapid.Bool().Draw(t, "closes") {
			l.leave()
			return
		}
		for range 500 { // let it end well
			for len(held) > 0 {
				d := held[0]
				succeed(d)
				l.obey()
				held = slices.DeleteFunc(held, func(o *delivery) bool { return o.stage == gone || o == d })
			}
			step("deliver")
			l.now += 700
			if len(l.out) == 0 && len(held) == 0 {
				break
			}
			if len(l.in.lazy) > 0 && len(l.in.ready) == 0 && len(l.in.waiting) == 0 {
				l.in.flush(l.now)
				l.obey()
			}
		}
		if len(l.out) > 0 {
			t.Fatalf("the broker is left with %v; ready %d, waiting %d, had %d", l.out, len(l.in.ready), len(l.in.waiting), len(l.in.had))
		}
		for seq := int64(1); seq <= l.next; seq++ {
			switch {
			case l.ended[seq] != 1:
				t.Fatalf("%d was ended %d times", seq, l.ended[seq])
			case l.poisoned[seq] && processed[seq] > 0 && mode != ClientAcknowledge:
				t.Fatalf("%d was processed, and poisoned", seq)
			case !l.poisoned[seq] && processed[seq] != 1 && mode != ClientAcknowledge:
				t.Fatalf("%d was processed %d times", seq, processed[seq])
			}
		}
	})
}
