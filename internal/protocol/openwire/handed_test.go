package openwire

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// sendTo sends numbered texts to A, B and C in turn.
func sendTo(p *peer, n int) {
	for i := range n {
		p.do(p.text(int64(i+1), queueNamed(string(rune('A'+i%3))), fmt.Sprint(i)))
	}
}

// have takes n dispatches, and gives them with body#counter, sorted.
func have(p *peer, n int) (got []*wire.MessageDispatch, labels []string) {
	p.t.Helper()
	for range n {
		d := p.dispatched()
		got = append(got, d)
		labels = append(labels, fmt.Sprintf("%s#%d", body(p.t, d), d.RedeliveryCounter))
	}
	slices.Sort(labels)
	if rest := p.all(); len(rest) > 0 {
		p.t.Errorf("more than %d were dispatched: %+v", n, rest)
	}
	return got, labels
}

// span acknowledges from one dispatch to another, as Java clients do: with the
// destination of the last.
func span(first, last *wire.MessageDispatch, n int, how wire.AckType) *wire.MessageAck {
	a := ack(last, how)
	a.FirstMessageID, a.MessageCount = first.Message.MessageID, int32(n)
	return a
}

func left(h *house) map[string]int64 {
	m := map[string]int64{}
	for _, q := range h.broker.Queues() {
		m[q.Name.Name] = q.Messages
	}
	return m
}

// R-MAP-03, OpenWire 10.4: a range covers what lies between in the client's order,
// whichever queues it came from.
func TestAckOverSeveralQueues(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"A,B,C", "*"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				p := h.client()
				p.produce(1, 0)
				p.consume(1, queueNamed(from), 100)
				sendTo(p, 9)
				got, _ := have(p, 9)
				p.do(span(got[0], got[8], 9, wire.AckDelivered))
				p.do(span(got[2], got[4], 3, wire.AckStandard))
				if diff := cmp.Diff(map[string]int64{"A": 2, "B": 2, "C": 2}, left(h)); diff != "" {
					t.Errorf("after three (-want +got):\n%s", diff)
				}
				p.do(ack(got[8], wire.AckIndividual))
				all := span(got[0], got[7], 5, wire.AckStandard)
				all.FirstMessageID = nil // from the oldest
				p.do(all)
				if diff := cmp.Diff(map[string]int64{"A": 0, "B": 0, "C": 0}, left(h)); diff != "" {
					t.Errorf("after all (-want +got):\n%s", diff)
				}
				p.hangUp()
			})
		})
	}
}

// A transaction has all of its range, and after its rollback the client acknowledges
// the same range once more.
func TestTransactionOverSeveralQueues(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("A,B,C"), 100)
		sendTo(p, 6)
		got, _ := have(p, 6)
		for n, end := range []wire.TransactionType{wire.TransactionRollback, wire.TransactionCommitOnePhase} {
			p.tell(p.transaction(int64(n), wire.TransactionBegin))
			a := span(got[0], got[4], 5, wire.AckStandard)
			a.TransactionID = p.txID(int64(n))
			p.tell(a)
			p.do(span(got[0], got[4], 5, wire.AckDelivered)) // of what the transaction has
			p.do(p.transaction(int64(n), end))
		}
		if diff := cmp.Diff(map[string]int64{"A": 0, "B": 0, "C": 1}, left(h)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.do(span(got[5], got[5], 1, wire.AckStandard))
		p.hangUp()
	})
}

// R-VT-05: copies of one message have one id, and are told apart by where they lie.
func TestCopiesAtOneConsumer(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("A,B,C"), 100)
		p.do(p.text(1, queueNamed("A,B,C"), "one"))
		got, _ := have(p, 3)
		p.do(span(got[0], got[1], 2, wire.AckStandard))
		sum := int64(0)
		for _, n := range left(h) {
			sum += n
		}
		if sum != 1 {
			t.Errorf("%d are left, want 1: %v", sum, left(h))
		}
		old := span(got[2], got[2], 1, wire.AckStandard) // of a client that does not repeat brokerSequenceId
		id := *got[2].Message.MessageID
		id.BrokerSequenceID = 0
		old.FirstMessageID, old.LastMessageID = &id, &id
		p.do(old)
		if n := left(h)[got[2].Destination.PhysicalName]; n != 0 {
			t.Errorf("%d are left in %s", n, got[2].Destination.PhysicalName)
		}
		p.hangUp()
	})
}

// A window counts for each queue, and DELIVERED over all of them widens each: a
// transaction larger than the window does not stand still.
func TestDeliveredOverSeveralQueues(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("A,B,C"), 2)
		sendTo(p, 30)
		var got []*wire.MessageDispatch
		for len(got) < 30 {
			more, _ := have(p, 6)
			got = append(got, more...)
			p.do(span(more[0], more[5], 6, wire.AckDelivered))
		}
		p.do(span(got[0], got[29], 30, wire.AckStandard))
		if diff := cmp.Diff(map[string]int64{"A": 0, "B": 0, "C": 0}, left(h)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.hangUp()
	})
}

// R-CNT-02, R-CNT-03: the last message that the application had is the last of all its
// queues, in the order in which the client got them.
func TestClosedConsumerOfSeveralQueues(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*peer) wire.DataStructure{
		"consumer":   func(p *peer) wire.DataStructure { return p.consumerID(1) },
		"session":    func(p *peer) wire.DataStructure { id := p.consumerID(1).Session(); return &id },
		"connection": func(p *peer) wire.DataStructure { return p.connection() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				p, q := h.client(), h.client()
				q.produce(1, 0)
				p.consume(1, queueNamed("A,B,C"), 100)
				sendTo(q, 6)
				got, _ := have(p, 6)
				p.do(&wire.RemoveInfo{ObjectID: remove(p), LastDeliveredSequenceID: got[3].Message.MessageID.BrokerSequenceID})
				q.consume(1, queueNamed("A,B,C"), 100)
				_, labels := have(q, 6)
				var want []string
				for i, d := range got {
					n := 0
					if i <= 3 {
						n = 1
					}
					want = append(want, fmt.Sprintf("%s#%d", body(t, d), n))
				}
				slices.Sort(want)
				if diff := cmp.Diff(want, labels); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				p.hangUp()
				q.hangUp()
			})
		})
	}
}

// R-CNT-02, R-CNT-20: Java clients up to 5.11 close their connection with 0, whatever was
// delivered: all of it is flagged, and none counted. A consumer's own 0 means none.
func TestClientThatDoesNotTellItsLast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remove  func(*peer) wire.DataStructure
		flagged int32
	}{
		"consumer":   {func(p *peer) wire.DataStructure { return p.consumerID(1) }, 0},
		"session":    {func(p *peer) wire.DataStructure { id := p.consumerID(1).Session(); return &id }, 0},
		"connection": {func(p *peer) wire.DataStructure { return p.connection() }, 1},
	} {
		for queues, n := range map[string]int{"A": 1, "A,B,C": 3} {
			t.Run(name+" of "+queues, func(t *testing.T) {
				t.Parallel()
				inHouse(t, nil, func(h *house) {
					q := h.client()
					q.produce(1, 0)
					sendTo(q, 3)
					for range 2 { // twice counts no more than once
						p := h.client()
						p.consume(1, queueNamed(queues), 100)
						have(p, n)
						p.do(&wire.RemoveInfo{ObjectID: c.remove(p), LastDeliveredSequenceID: 0})
						p.hangUp()
					}
					q.consume(1, queueNamed(queues), 100)
					got, _ := have(q, n)
					for _, d := range got {
						if d.RedeliveryCounter != c.flagged {
							t.Errorf("%s: counter %d, want %d", body(t, d), d.RedeliveryCounter, c.flagged)
						}
					}
					q.hangUp()
				})
			})
		}
	}
}

// C02: where nobody knows what the application had, it was at one message, not at one
// of each queue.
func TestLostConsumerOfSeveralQueues(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p, q := h.client(), h.client()
		q.produce(1, 0)
		p.consume(1, queueNamed("A,B,C"), 100)
		sendTo(q, 6)
		have(p, 6)
		p.leave()
		failed := int64(0)
		for _, s := range h.broker.Queues() {
			failed += s.Stats.Failed
		}
		if failed != 1 {
			t.Errorf("%d failures are counted, want 1", failed)
		}
		q.consume(1, queueNamed("A,B,C"), 100)
		got, _ := have(q, 6)
		for _, d := range got {
			if d.RedeliveryCounter != 1 {
				t.Errorf("%s is told %d, want 1: it may have been delivered", body(t, d), d.RedeliveryCounter)
			}
		}
		q.hangUp()
	})
}

func (p *peer) pulls(timeout int64) {
	p.t.Helper()
	p.tell(&wire.MessagePull{ConsumerID: p.consumerID(1), Timeout: timeout})
}

// R-CLIENT-50: a pull gets one message, or one answer that there is none, of however
// many queues.
func TestPullOfSeveralQueues(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p, q := h.client(), h.client()
		q.produce(1, 0)
		sendTo(q, 3)
		p.consume(1, queueNamed("A,B,C"), 0)
		want := map[string]bool{}
		for range 3 {
			p.pulls(0)
			got, labels := have(p, 1)
			want[labels[0]] = true
			p.do(ack(got[0], wire.AckStandard))
		}
		if len(want) != 3 {
			t.Errorf("got %v", want)
		}
		p.pulls(-1)
		if got, _ := have(p, 1); got[0].Message != nil {
			t.Errorf("got %+v, want nothing", got[0].Message)
		}

		// One waits: one answer, when the time has passed, and not before.
		begin := time.Now()
		p.pulls(1000)
		if rest := p.all(); len(rest) > 0 {
			t.Errorf("answered at once: %+v", rest)
		}
		time.Sleep(2 * time.Second)
		if got, _ := have(p, 1); got[0].Message != nil || time.Since(begin) < time.Second {
			t.Errorf("got %+v after %v, want nothing after 1s", got[0].Message, time.Since(begin))
		}

		// One that is served wants nothing more of the others.
		p.pulls(0)
		if rest := p.all(); len(rest) > 0 {
			t.Errorf("there was nothing: %+v", rest)
		}
		q.do(q.text(10, queueNamed("B"), "b"))
		_, labels := have(p, 1)
		if diff := cmp.Diff([]string{"b#0"}, labels); diff != "" {
			t.Error(diff)
		}
		q.do(q.text(11, queueNamed("A"), "a"))
		q.do(q.text(12, queueNamed("C"), "c"))
		if rest := p.all(); len(rest) > 0 {
			t.Errorf("nobody asked for %+v", rest)
		}
		p.hangUp()
		q.hangUp()
	})
}

// A pattern may cover no queue yet.
func TestPullOfNoQueueYet(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p, q := h.client(), h.client()
		q.produce(1, 0)
		p.consume(1, queueNamed("late.*"), 0)
		for _, timeout := range []int64{-1, 500} {
			p.pulls(timeout)
			time.Sleep(time.Second)
			if got, _ := have(p, 1); got[0].Message != nil {
				t.Errorf("timeout %d: got %+v, want nothing", timeout, got[0].Message)
			}
		}
		p.pulls(60_000)
		q.do(q.text(1, queueNamed("late.a"), "a"))
		if _, labels := have(p, 1); labels[0] != "a#0" {
			t.Errorf("got %v", labels)
		}
		time.Sleep(2 * time.Minute)
		for _, ds := range p.all() { // but for signs of life
			if d, ok := ds.(*wire.MessageDispatch); ok {
				t.Errorf("the pull was answered twice: %+v", d)
			}
		}
		p.hangUp()
		q.hangUp()
	})
}

// What cannot be written is not part of a client's ranges.
func TestUnwrittenIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	inScript(t, nil, func(h *house, s *script) {
		p := h.client()
		p.consume(1, queueNamed("A,B"), 10)
		for i, text := range []string{"a", "b", "c"} {
			d := delivery(uint64(i+1), text)
			d.Consumer = p.consumerID(1).String()
			if text == "b" {
				d.Message = nil // and there is nothing to load it from
			}
			s.sink.Deliver(d)
		}
		got, _ := have(p, 2)
		s.took()
		p.do(span(got[0], got[1], 2, wire.AckStandard))
		want := []string{
			"Ack(ID:peer-1:1:1, queue://Q, 2, first 1 p:1:1:1, last 1 p:1:1:1, 1, tx , )",
			"Ack(ID:peer-1:1:1, queue://Q, 2, first 3 p:1:1:3, last 3 p:1:1:3, 1, tx , )",
		}
		if diff := cmp.Diff(want, s.took()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.hangUp()
	})
}

// A range that does not fit the order in which messages went out, or their number, is
// refused: it must not take what lies between for what was meant.
func TestRangeInAnotherOrder(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p := h.client()
		p.produce(1, 0)
		p.consume(1, queueNamed("A,B,C"), 100)
		sendTo(p, 6)
		got, _ := have(p, 6)
		p.fails(span(got[3], got[1], 3, wire.AckStandard), classJMS, "unmatched acknowledge")
		p.fails(span(got[1], got[3], 2, wire.AckStandard), classJMS, "unmatched acknowledge")
		if diff := cmp.Diff(map[string]int64{"A": 2, "B": 2, "C": 2}, left(h)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.do(span(got[0], got[5], 6, wire.AckStandard))
		p.hangUp()
	})
}

// R-CLIENT-46, nonBlockingRedelivery: what a client rolled back together is what it means
// by REDELIVERED and POISON, in whatever order it had it, and whatever else it has
// between the first and the last.
func TestRolledBackInAnotherOrder(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"A", "A,B,C"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				p := h.client()
				p.produce(1, 0)
				p.consume(1, queueNamed(from), 100)
				for i := range 6 {
					to := "A"
					if from != "A" {
						to = string(rune('A' + i%3))
					}
					p.do(p.text(int64(i+1), queueNamed(to), fmt.Sprint(i)))
				}
				got, _ := have(p, 6)
				slices.SortFunc(got, func(a, b *wire.MessageDispatch) int {
					return int(a.Message.MessageID.ProducerSequenceID - b.Message.MessageID.ProducerSequenceID)
				})
				tx := int64(0)
				rolledBack := func(how wire.AckType, numbers ...int) {
					tx++
					p.tell(p.transaction(tx, wire.TransactionBegin))
					for _, n := range numbers {
						a := ack(got[n], wire.AckIndividual)
						a.TransactionID = p.txID(tx)
						p.tell(a)
					}
					p.do(p.transaction(tx, wire.TransactionRollback))
					a := span(got[numbers[0]], got[numbers[len(numbers)-1]], len(numbers), how)
					a.FirstMessageID = got[numbers[0]].Message.MessageID
					if how == wire.AckPoison {
						a.PoisonCause = wire.NewThrowable("java.lang.Throwable", "Delivery[2] exceeds redelivery policy limit:RedeliveryPolicy {}, cause:null")
					}
					p.do(a)
				}
				rolledBack(wire.AckRedelivered, 0, 3) // 1 and 2 wait in the client
				rolledBack(wire.AckRedelivered, 5, 1) // the other way round
				rolledBack(wire.AckPoison, 3, 5, 0)
				p.do(&wire.RemoveInfo{ObjectID: p.consumerID(1), LastDeliveredSequenceID: -1})
				p.consume(2, queueNamed(from), 100)
				_, labels := have(p, 3)
				if diff := cmp.Diff([]string{"1#1", "2#0", "4#0"}, labels); diff != "" {
					t.Errorf("left (-want +got):\n%s", diff)
				}
				p.consume(3, queueNamed("ActiveMQ.DLQ"), 100)
				dead, labels := have(p, 3)
				if diff := cmp.Diff([]string{"0#0", "3#0", "5#0"}, labels); diff != "" {
					t.Errorf("dead (-want +got):\n%s", diff)
				}
				for _, d := range dead {
					if n, _, err := wire.LookupProperty(d.Message.MarshalledProperties, "deliveryAttempts"); n != int64(2) || err != nil {
						t.Errorf("%s after %v attempts, %v, want 2", body(t, d), n, err)
					}
				}
				p.hangUp()
			})
		})
	}
}

// What has waited in the client for its redelivery when its consumer is closed has failed
// once, of several queues as of one.
func TestClosedAfterARollbackOverSeveralQueues(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"A", "A,B,C"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				p, q := h.client(), h.client()
				q.produce(1, 0)
				p.consume(1, queueNamed(from), 100)
				sendTo(q, 9)
				n := 9
				if from == "A" {
					n = 3
				}
				got, _ := have(p, n)
				p.tell(p.transaction(1, wire.TransactionBegin))
				a := span(got[0], got[1], 2, wire.AckStandard)
				a.TransactionID = p.txID(1)
				p.tell(a)
				p.do(p.transaction(1, wire.TransactionRollback))
				p.do(span(got[0], got[1], 2, wire.AckRedelivered))
				p.do(&wire.RemoveInfo{ObjectID: p.consumerID(1), LastDeliveredSequenceID: got[1].Message.MessageID.BrokerSequenceID})
				q.consume(1, queueNamed(from), 100)
				want := labelled(t, got, 2)
				if _, labels := have(q, n); !slices.Equal(want, labels) {
					t.Errorf("got %q, want %q", labels, want)
				}
				p.hangUp()
				q.hangUp()
			})
		})
	}
}

// labelled are the labels of dispatches of which the first n have failed once.
func labelled(t *testing.T, got []*wire.MessageDispatch, n int) (all []string) {
	t.Helper()
	for i, d := range got {
		failures := 0
		if i < n {
			failures = 1
		}
		all = append(all, fmt.Sprintf("%s#%d", body(t, d), failures))
	}
	slices.Sort(all)
	return all
}

// What was handed out after the last message that the application has had is unseen, also
// where that was acknowledged, and came to the broker later.
func TestClosedAfterAnAckOverSeveralQueues(t *testing.T) {
	t.Parallel()
	inHouse(t, nil, func(h *house) {
		p, q := h.client(), h.client()
		q.produce(1, 0)
		q.consume(1, queueNamed("A"), 1)
		q.do(q.text(1, queueNamed("A"), "old"))
		have(q, 1)
		q.do(q.text(2, queueNamed("B"), "new"))
		p.consume(1, queueNamed("A,B"), 100)
		got, _ := have(p, 1)
		q.do(&wire.RemoveInfo{ObjectID: q.consumerID(1), LastDeliveredSequenceID: -1})
		have(p, 1) // and its application has not seen it
		p.do(ack(got[0], wire.AckStandard))
		p.do(&wire.RemoveInfo{ObjectID: p.consumerID(1), LastDeliveredSequenceID: got[0].Message.MessageID.BrokerSequenceID})
		q.consume(2, queueNamed("A,B"), 100)
		if _, labels := have(q, 1); !slices.Equal(labels, []string{"old#0"}) {
			t.Errorf("got %q, want it uncounted", labels)
		}
		p.hangUp()
		q.hangUp()
	})
}

// R-BRK-02: of a DELIVERED only the last must still be there; the first may have been
// acknowledged by itself meanwhile (INDIVIDUAL_ACKNOWLEDGE).
func TestDeliveredWhoseFirstHasGone(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"A", "A,B,C"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			inHouse(t, nil, func(h *house) {
				p, q := h.client(), h.client()
				q.produce(1, 0)
				p.consume(1, queueNamed(from), 100)
				sendTo(q, 15)
				n := 15
				if from == "A" {
					n = 5
				}
				got, _ := have(p, n)
				p.do(ack(got[0], wire.AckIndividual))
				p.do(span(got[0], got[2], 3, wire.AckDelivered))
				p.do(&wire.RemoveInfo{ObjectID: p.consumerID(1), LastDeliveredSequenceID: -1})
				q.consume(1, queueNamed(from), 100)
				want := labelled(t, got[1:], 2)
				if _, labels := have(q, n-1); !slices.Equal(want, labels) {
					t.Errorf("got %q, want %q", labels, want)
				}
				p.hangUp()
				q.hangUp()
			})
		})
	}
}
