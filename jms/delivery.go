package jms

import (
	"cmp"
	"slices"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// A stage is where a delivery is in its consumer's hands.
//
//	arrive → ready → delivered → gone (acknowledged, poisoned, expired)
//	           ↑         │
//	           └ waiting ┘ failed: until its time
//	delivered → acked → gone, or back to delivered: within a transaction
//	delivered → orphan → delivered, or gone: over a fail-over
type stage uint8

const (
	ready     stage = iota
	delivered       // the application has it, or had it
	waiting         // for its redelivery
	acked           // acknowledged in a transaction that is ending
	orphan          // delivered on a link that broke; its copy may come again
	gone
)

// A delivery is one message in a consumer's hands. Guarded by the connection's mutex.
type delivery struct {
	consumer *Consumer
	w        *wire.Message
	from     *wire.Destination
	key      string // JMSMessageID
	order    int64  // of arrival at the consumer
	counter  int    // failed deliveries before the present one
	told     int    // the counter that the broker sent
	brought  bool   // a broker-side policy counts for it: it has the property redeliveryDelay
	stage    stage
	due      int64 // waiting: Unix milliseconds
	seen     bool  // the application has had it, of this link
	untold   bool  // and no DELIVERED acknowledgement has told so

	handled  bool // a handler has it at present
	settled  bool // orphan: acknowledged while its copy had not come
	failed   bool // orphan: failed while its copy had not come
	cuts     int  // orphan: fail-overs since it became one
	failures int  // local failures
	silent   bool // of the last of them the broker was not told (DoNotCount)

	prev, next *delivery // in the consumer's outstanding list
}

// sequence is the broker's number of the message.
func (d *delivery) sequence() int64 { return d.w.MessageID.BrokerSequenceID }

// message is the application's message. Where it cannot be read, the error says why.
func (d *delivery) message() (*Message, error) {
	m, err := fromDispatch(d.w, d.counter)
	m.delivery, m.again = d, d.failures > 0
	return m, err
}

// An outstanding list has what the broker believes a consumer to have, in the order
// of arrival: ranges of acknowledgements must be gapless in it.
type outstanding struct{ head, tail *delivery }

func (l *outstanding) add(d *delivery) {
	d.prev, d.next = l.tail, nil
	if l.tail == nil {
		l.head = d
	} else {
		l.tail.next = d
	}
	l.tail = d
}

func (l *outstanding) remove(d *delivery) {
	if d.prev == nil {
		if l.head != d {
			return // not in it
		}
		l.head = d.next
	} else {
		d.prev.next = d.next
	}
	if d.next == nil {
		l.tail = d.prev
	} else {
		d.next.prev = d.prev
	}
	d.prev, d.next = nil, nil
}

// A run is a gapless range of deliveries.
type run struct {
	first, last *delivery
	n           int32
}

// byArrival sorts deliveries in the order of arrival.
func byArrival(ds []*delivery) []*delivery {
	slices.SortFunc(ds, func(a, b *delivery) int { return cmp.Compare(a.order, b.order) })
	return ds
}

// runs parts deliveries, in the order of arrival, into gapless ranges.
func runs(ds []*delivery) []run {
	var all []run
	for _, d := range ds {
		if n := len(all); n > 0 && all[n-1].last.next == d {
			all[n-1].last = d
			all[n-1].n++
			continue
		}
		all = append(all, run{d, d, 1})
	}
	return all
}
