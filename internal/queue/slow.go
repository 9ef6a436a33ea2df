package queue

import (
	"fmt"
	"math"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// A consumer is slow when its window is full while items wait for it; one of a topic
// without a durable name when more wait than its window holds, or when some of what
// waited was evicted. It is well again when it has no more than 40 % of its window.
// Those who asked are told of it (Tells.Slow).
//
// A consumer that is slow for too long, or comes to be so too often, is aborted, as is
// one that has not acknowledged what it has for too long: it gets nothing more, and
// the owner closes it, or its connection.
//
// A queue's consumer is never well while there is a backlog, however fast it is. So
// each acknowledgement of it is as good as being well, and only one that hangs is
// aborted. (ActiveMQ 5.17 does not find slow consumers of queues at all.) A topic's
// consumer without a durable name has all its backlog to itself, and must catch up.

// SlowLimits say how slow a consumer may be. The zero value is no limit.
type SlowLimits struct {
	// For is how long it may be slow, in milliseconds; 0: for ever.
	For int64
	// Times is how often it may come to be slow without having been well for Well
	// milliseconds between; 0: any number.
	Times int
	Well  int64
	// Unacked is how long it may have a message and acknowledge nothing, in
	// milliseconds; 0: for ever.
	Unacked int64
	// Rate is how many messages a second it has to acknowledge in each Period at whose
	// beginning there were enough for it; 0: any number. Period is in milliseconds. Notify
	// only tells of one that does not (slow-consumer-threshold of HornetQ and Artemis).
	Rate   float64
	Period int64
	Notify bool
	// End is set where the consumer's whole connection is to go.
	End bool
}

func (l *SlowLimits) none() bool { return l.For == 0 && l.Times == 0 && l.Unacked == 0 && l.Rate == 0 }

// rateNeeds is how many messages a consumer has to acknowledge in a period.
func (l *SlowLimits) rateNeeds() int {
	return int(min(math.Ceil(l.Rate*float64(l.Period)/1000), math.MaxInt32))
}

// slowShare is the part of its window, in percent, down to which a consumer has to
// come to be no longer slow, as in ActiveMQ's PrefetchSubscription.isLowWaterMark.
const slowShare = 40

// slowness is what is known of how slow a consumer is.
type slowness struct {
	slow      bool
	slowSince int64 // when it came to be slow
	wellSince int64 // when it was no longer slow
	times     int   // how often it came to be slow, since it was well for a while
	unacked   int64 // when SlowLimits.Unacked is looked at; 0: not before something happens
	aborted   bool
	abortedAt int64
	// The present period of SlowLimits.Rate.
	rateEnds int64 // when it ends; 0: none has begun
	acked    int   // acknowledged in it
	had      int   // messages that it had, or that waited, when it began
}

// watchSlow notes which consumers came to be slow, or well again.
func (m *Machine) watchSlow() {
	if !m.o.Tells.Slow && m.o.Slow.none() {
		return
	}
	waiting := int(m.waitingNow())
	if m.o.Paused {
		waiting = 0 // for nobody
	}
	for _, c := range m.consumers {
		switch {
		case c.Prefetch == 0 || c.aborted:
		case c.slow:
			if c.held.n*100 <= c.Prefetch*slowShare {
				c.slow, c.wellSince = false, m.now
			}
		case m.isSlow(c, waiting):
			m.cameToBeSlow(c)
		}
		c.dropped = false
	}
}

func (m *Machine) isSlow(c *Consumer, waiting int) bool {
	switch {
	case c.room() || waiting == 0 && !c.dropped:
		return false
	case m.o.Redelivers:
		return true
	}
	return c.dropped || c.Prefetch > 1 && waiting > c.Prefetch
}

func (m *Machine) cameToBeSlow(c *Consumer) {
	if c.times > 0 && m.now-c.wellSince >= m.o.Slow.Well {
		c.times = 0
	}
	c.slow, c.slowSince = true, m.now
	c.times++
	if m.o.Tells.Slow {
		m.emit(Effect{Kind: Tell, Event: ConsumerSlow, Consumer: c})
	}
	if n := m.o.Slow.Times; n > 0 && c.times >= n {
		m.abort(c, message.Closed, fmt.Sprintf("the consumer was slow %d times", c.times))
	}
}

// slowUntil is when a slow consumer is aborted; math.MaxInt64: never.
func (m *Machine) slowUntil(c *Consumer) int64 {
	if !c.slow || c.aborted || m.o.Slow.For == 0 {
		return math.MaxInt64
	}
	since := c.slowSince
	if m.o.Redelivers {
		since = max(since, c.progress)
	}
	return since + m.o.Slow.For
}

// nextAbort is when checkSlow has something to do; math.MaxInt64: never.
func (m *Machine) nextAbort() int64 {
	next := int64(math.MaxInt64)
	if m.o.Slow.none() {
		return next
	}
	for _, c := range m.consumers {
		next = min(next, m.slowUntil(c))
		if c.unacked != 0 && !c.aborted {
			next = min(next, c.unacked)
		}
		if c.rateEnds != 0 && !c.aborted {
			next = min(next, c.rateEnds)
		}
	}
	return next
}

// checkSlow aborts the consumers whose time has come.
func (m *Machine) checkSlow() {
	if m.o.Slow.none() {
		return
	}
	m.checkRates()
	for _, c := range m.consumers {
		if m.slowUntil(c) <= m.now {
			m.abort(c, message.Closed, fmt.Sprintf("the consumer was slow for %v", millis(m.o.Slow.For)))
		}
		if c.unacked == 0 || c.unacked > m.now || c.aborted {
			continue
		}
		if c.unacked = m.unackedUntil(c); c.unacked != 0 && c.unacked <= m.now {
			m.abort(c, message.AckTimeout, fmt.Sprintf("the consumer acknowledged nothing for %v", millis(m.o.Slow.Unacked)))
		}
	}
}

// checkRates ends the periods that are over. A consumer that has nothing has no
// period: the next one begins when it is handed something.
func (m *Machine) checkRates() {
	if m.o.Slow.Rate == 0 {
		return
	}
	needs := m.o.Slow.rateNeeds()
	for _, c := range m.consumers {
		if c.rateEnds == 0 || c.rateEnds > m.now || c.aborted {
			continue
		}
		acked, had := c.acked, c.had
		if c.rateEnds = 0; c.held.n > 0 {
			m.beginRate(c)
		}
		switch {
		case acked >= needs || had < needs:
		case m.o.Slow.Notify:
			m.emit(Effect{Kind: Tell, Event: ConsumerSlow, Consumer: c})
		default:
			m.abort(c, message.Closed, fmt.Sprintf("the consumer acknowledged %d messages in %v, and not %d", acked, millis(m.o.Slow.Period), needs))
		}
	}
}

// beginRate begins a period of a consumer.
func (m *Machine) beginRate(c *Consumer) {
	c.rateEnds, c.acked, c.had = m.now+m.o.Slow.Period, 0, c.held.n+int(m.waitingNow())
}

// unackedUntil is when a consumer will have acknowledged nothing for too long; 0: it
// has nothing to acknowledge.
func (m *Machine) unackedUntil(c *Consumer) int64 {
	if since := m.waitsSince(c); since != 0 {
		return since + m.o.Slow.Unacked
	}
	return 0
}

// abort gives a consumer nothing more, and has its owner close it. cause is what
// becomes of a message that its application has. Until it is detached what it alone
// may have, of groups or as the exclusive one, waits for that.
func (m *Machine) abort(c *Consumer, cause message.Cause, text string) {
	c.aborted, c.abortedAt = true, m.now
	m.emit(Effect{Kind: Abort, Consumer: c, Cause: cause, End: m.o.Slow.End, Text: text})
}

// setSlow changes the limits. Those who have been aborted stay so.
func (m *Machine) setSlow(l SlowLimits) {
	m.o.Slow = l
	for _, c := range m.consumers {
		if c.unacked = 0; l.Unacked > 0 {
			c.unacked = m.unackedUntil(c)
		}
		if c.rateEnds = 0; l.Rate > 0 && c.held.n > 0 {
			m.beginRate(c)
		}
	}
}

// closing reports whether an aborted consumer has acknowledged something since: then it
// is closing, and its application is at nothing that it still has.
func (c *Consumer) closing() bool { return c.aborted && c.progress > c.abortedAt }

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
