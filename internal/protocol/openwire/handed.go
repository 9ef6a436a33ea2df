package openwire

import (
	"container/list"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
	"github.com/nixiemq/nixie/internal/queue"
)

// A handed lists what a consumer of several queues has, in the order in which it went
// to the client. To a client that is one list, and its acknowledgements are ranges of
// it, whichever queues lie between (R-MAP-03, OpenWire 10.4); our queues know nothing
// of each other. So a range is taken apart here, where the order is known: each queue
// is told of its messages one by one. The outbox guards it.
type handed struct {
	order list.List                // of *handOut
	at    map[uint64]*list.Element // by position, which no two queues share
	ends  int                      // rollbacks so far
	n     uint64                   // hand-outs so far
	gone  [goneHandOuts]*handOut   // the newest that were settled, in a ring
	next  int
}

// goneHandOuts is how many of those that were settled are remembered: the last message
// that an application has had may be one of them.
const goneHandOuts = 64

// A handOut is one message of a handed.
type handOut struct {
	position uint64
	number   uint64 // in the order of the hand-outs
	id       message.ID
	from     message.Destination
	tx       string // the open transaction that has acknowledged it
	told     bool   // a DELIVERED has covered it
	batch    int    // the rollback that left it with the client; 0: none did
}

// add notes a delivery. What is handed out once more stands where it is last.
func (h *handed) add(d *broker.Delivery) {
	h.remove(d.Entry.Position)
	h.n++
	h.at[d.Entry.Position] = h.order.PushBack(&handOut{position: d.Entry.Position, number: h.n, id: d.Entry.ID, from: d.Destination})
}

func (h *handed) remove(position uint64) {
	if e := h.at[position]; e != nil {
		h.order.Remove(e)
		delete(h.at, position)
		h.gone[h.next] = e.Value.(*handOut)
		h.next = (h.next + 1) % goneHandOuts
	}
}

// settled is the hand-out of a position that was settled; nil: it is not known.
func (h *handed) settled(position uint64) (newest *handOut) {
	for _, o := range h.gone {
		if o != nil && o.position == position && (newest == nil || o.number > newest.number) {
			newest = o
		}
	}
	return newest
}

// find gets what a client names: by position, or by id for one that does not repeat
// the position. Copies of one message in several queues have one id.
func (h *handed) find(r queue.Ref, from message.Destination) *list.Element {
	if e := h.at[r.Position]; e != nil {
		return e
	}
	var found *list.Element
	for e := h.order.Front(); e != nil && !r.ID.IsZero(); e = e.Next() {
		if o := e.Value.(*handOut); o.id.String() == r.ID.String() {
			if o.from == from {
				return e
			}
			if found == nil {
				found = e
			}
		}
	}
	return found
}

// apart takes an acknowledgement apart, into one for each message. What names nothing
// that the consumer has stays as it is, for its queue to refuse. Where the number of
// messages shows that the client means others than are found here, nothing is
// acknowledged: what its application has not seen must not go.
func (h *handed) apart(a broker.Ack) ([]broker.Ack, error) {
	last := h.find(a.Last, a.Destination)
	first := h.order.Front()
	switch {
	case a.Type == queue.Individual:
		first = last
	case !a.First.IsZero():
		if f := h.find(a.First, a.Destination); f != nil || a.Type != queue.Delivered { // else it was acknowledged meanwhile
			first = f
		}
	}
	if first == nil || last == nil {
		return []broker.Ack{a}, nil
	}
	meant, ok := h.between(first, last)
	stale := a.First.Stale || a.Last.Stale
	if exact := a.Type == queue.Standard || a.Type == queue.Poison; exact && stale && first != last {
		meant, ok = h.kept(a, last), true
	}
	if batch := h.batch(a, first, last); batch != nil {
		meant, ok = batch, true
	}
	if counted := a.Type == queue.Standard && len(meant) > 0; !ok || counted && a.Count != len(meant) {
		return nil, fmt.Errorf("unmatched acknowledge of %d messages from %s to %s: consumer %s has %d between them here: %w",
			a.Count, a.First, a.Last, a.Consumer, len(meant), message.ErrInvalid)
	}
	old := map[*handOut]bool{first.Value.(*handOut): a.First.Stale, last.Value.(*handOut): a.Last.Stale} // and both: all between
	parts := make([]broker.Ack, len(meant))
	for i, o := range meant {
		one := a
		one.Destination, one.Count, one.Before = o.from, 1, o != last.Value.(*handOut)
		one.Last = queue.Ref{Position: o.position, ID: o.id, Stale: !o.told && (old[o] || a.First.Stale && a.Last.Stale)}
		one.First = one.Last
		parts[i] = one
	}
	h.settle(parts)
	return parts, nil
}

// between are the messages from first to last that no transaction has; not ok, if last
// was handed out before first.
func (h *handed) between(first, last *list.Element) (all []*handOut, ok bool) {
	for e := first; e != nil; e = e.Next() {
		if o := e.Value.(*handOut); o.tx == "" {
			all = append(all, o)
		}
		if e == last {
			return all, true
		}
	}
	return nil, false
}

// batch is what the client had in the transaction that it has rolled back, where it says
// of just these that it delivers them once more, or has given them up; else nil (see the
// same of package queue).
func (h *handed) batch(a broker.Ack, first, last *list.Element) (all []*handOut) {
	n := first.Value.(*handOut).batch
	if a.Type != queue.Redelivered && a.Type != queue.Poison || a.First.IsZero() || a.Count < 2 || n == 0 || n != last.Value.(*handOut).batch {
		return nil
	}
	for e := h.order.Front(); e != nil; e = e.Next() {
		if o := e.Value.(*handOut); o.tx == "" && o.batch == n {
			all = append(all, o)
		}
	}
	if len(all) != a.Count {
		return nil
	}
	return all
}

// kept are the messages of a range that begins with one which the client has of its
// connection before, where the order was another one. It has told us with a DELIVERED
// for each that it knows of our dispatch of those; with what went out up to the last of
// the range, if that is of this connection, they are what the application has had.
func (h *handed) kept(a broker.Ack, last *list.Element) (all []*handOut) {
	before := !a.Last.Stale
	for e := h.order.Front(); e != nil; e = e.Next() {
		if o := e.Value.(*handOut); o.tx == "" && (o.told || before) {
			all = append(all, o)
		}
		before = before && e != last
	}
	return all
}

// settle forgets what acknowledgements end, and notes what a transaction has.
func (h *handed) settle(parts []broker.Ack) {
	for _, a := range parts {
		switch a.Type {
		case queue.Delivered:
			h.at[a.Last.Position].Value.(*handOut).told = true
			continue
		case queue.Redelivered, queue.Unmatched:
			continue
		}
		if a.Tx != "" && transactional(a.Type) {
			h.at[a.Last.Position].Value.(*handOut).tx = a.Tx
		} else {
			h.remove(a.Last.Position)
		}
	}
}

// had is a DELIVERED for each message that the application has had, if last is the
// position of the newest of them. Of one that was settled it is known when it was handed
// out. One that is not known is another consumer's: then positions tell, as they do for
// all consumers (R-CNT-03).
func (h *handed) had(consumer string, last int64) []broker.Ack {
	var all []broker.Ack
	end, settled := h.at[uint64(max(last, 0))], h.settled(uint64(max(last, 0)))
	for e := h.order.Front(); e != nil; e = e.Next() {
		o := e.Value.(*handOut)
		had := int64(o.position) <= last
		switch {
		case end != nil:
			had = true
		case settled != nil:
			had = o.number < settled.number
		}
		if o.tx == "" && had {
			ref := queue.Ref{Position: o.position, ID: o.id}
			all = append(all, broker.Ack{Consumer: consumer, Destination: o.from, Type: queue.Delivered, Closing: true, First: ref, Last: ref, Count: 1})
		}
		if e == end {
			break
		}
	}
	return all
}

// ended takes in that a transaction is over. After a rollback the client has what it
// had, in the same order.
func (h *handed) ended(tx string, committed bool) {
	h.ends++
	for e := h.order.Front(); e != nil; {
		o, next := e.Value.(*handOut), e.Next()
		switch {
		case o.tx != tx:
		case committed:
			h.remove(o.position)
		default:
			o.tx, o.batch = "", h.ends
		}
		e = next
	}
}

// several has what a consumer of several queues is handed kept in mind, until forget.
func (o *outbox) several(consumer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handed == nil {
		o.handed = map[string]*handed{}
	}
	o.handed[consumer] = &handed{at: map[uint64]*list.Element{}}
}

// forget ends that. ok says whether the consumer has several queues, and had what its
// application has had of them.
func (o *outbox) forget(consumer string, last int64) (had []broker.Ack, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.handed[consumer]
	if h == nil {
		return nil, false
	}
	delete(o.handed, consumer)
	return h.had(consumer, last), true
}

// closing is last for the end of a consumer. One of several queues has told each of
// them by then what its application has had, and nothing more is to be said.
func (s *session) closing(consumer string, last int64) int64 {
	had, ok := s.out.forget(consumer, last)
	if !ok || !tells(last) {
		return last
	}
	for _, a := range had {
		s.client.broker.Ack(s.ctx, a, nil)
	}
	return -1
}

// tells reports whether the last of a RemoveInfo says what the application has had.
func tells(last int64) bool { return last != queue.UnknownLast && last != queue.UnsaidLast }

// closeSeveral closes the consumers of several queues before the others of their
// session, or of the connection, are closed with one last for all. What it returns
// calls done when these are closed too.
func (s *session) closeSeveral(last int64, of func(wire.ConsumerID) bool, done func(error)) func(error) {
	var open []string
	for id, text := range s.client.consumers {
		if tells(last) && of(id) && s.out.isSeveral(text) {
			open = append(open, text)
		}
	}
	if len(open) == 0 {
		return done
	}
	slices.Sort(open) // so that what happens does not depend on the map
	done = together(len(open)+1, done)
	for _, text := range open {
		s.client.broker.CloseConsumer(s.ctx, text, s.closing(text, last), done)
	}
	return done
}

// isSeveral reports whether a consumer is one of several queues.
func (o *outbox) isSeveral(consumer string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handed[consumer] != nil
}

// unwritten takes in that a delivery did not get to the client after all.
func (o *outbox) unwritten(d *broker.Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.handed[d.Consumer]; h != nil {
		h.remove(d.Entry.Position)
	}
}

// apart is an acknowledgement, taken apart if its consumer has several queues.
func (o *outbox) apart(a broker.Ack) ([]broker.Ack, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.handed[a.Consumer]; h != nil {
		return h.apart(a)
	}
	return []broker.Ack{a}, nil
}

// over is done for the end of a transaction, which committed says of success.
func (o *outbox) over(tx string, committed bool, done func(error)) func(error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.handed) == 0 {
		return done
	}
	return func(err error) {
		o.mu.Lock()
		for _, h := range o.handed {
			h.ended(tx, committed && err == nil)
		}
		o.mu.Unlock()
		done(err)
	}
}

// several reports whether a consumer of a destination may have messages of more than
// one queue. All topics of a consumer are one subscription.
func several(d message.Destination) bool {
	return !d.IsTopic() && (d.IsComposite() || d.IsPattern())
}

// together calls done once, when all n answers have come, with what failed.
func together(n int, done func(error)) func(error) {
	var mu sync.Mutex
	var failed error
	return func(err error) {
		mu.Lock()
		n--
		failed = errors.Join(failed, err)
		last, all := n == 0, failed
		mu.Unlock()
		if last {
			done(all)
		}
	}
}
