package jms

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// What a fail-over does to what is under way (OpenWire 13, section 3.7). What there is
// (sessions, producers, consumers, temporary destinations, open transactions) is told
// to the next broker from the objects themselves; the queue and the calls keep only
// what was asked of the broker and is not known to be done.

// suspendLocked is called when the link has broken.
func (c *Connection) suspendLocked() {
	items := append(c.queue.taken, c.queue.items...)
	c.queue = outqueue{}
	for _, it := range items {
		m, ok := it.cmd.(*wire.Message)
		if ok && m.TransactionID == nil && c.pending[m.CommandID] == nil {
			c.queue.items = append(c.queue.items, it)
			c.queue.bytes += sizeOf(m)
		}
	}
	for _, s := range c.sessions {
		for _, k := range slices.Clone(s.consumers) {
			if k.in.s.browser { // it would see everything again
				k.failure = &Error{Op: "browse " + k.from.String(), Kind: ErrUnavailable, Text: "the connection failed over"}
				k.removeLocked()
				continue
			}
			k.in.interrupt()
			k.pull = noPull
		}
	}
	for id, k := range c.pending {
		if k.replay { // the next broker is told anew
			c.completeLocked(id, nil, ErrUnavailable)
			continue
		}
		switch cmd := k.cmd.(type) {
		case *wire.TransactionInfo:
			if cmd.Type == wire.TransactionCommitOnePhase {
				c.completeLocked(id, nil, ErrInDoubt) // R-CLIENT-62
			} else {
				c.completeLocked(id, nil, nil) // the broker has rolled it back
			}
		case *wire.MessageAck, *wire.RemoveInfo:
			c.completeLocked(id, nil, nil)
		case *wire.Message:
			if cmd.TransactionID != nil { // replayed with its transaction
				c.completeLocked(id, nil, nil)
			}
		}
	}
	for _, p := range c.producersLocked() {
		p.unacked = 0
	}
	c.known = map[message.Destination]bool{}
}

// replayLocked tells a broker what there is, and asks again what it has not answered.
func (c *Connection) replayLocked() {
	kept, calls := c.queue.items, maps.Clone(c.pending)
	for _, m := range c.tracked {
		if !slices.ContainsFunc(kept, func(it item) bool { return it.cmd == m }) {
			kept = append(kept, item{cmd: m})
		}
	}
	c.queue = outqueue{}
	done := map[int32]bool{}
	tell := func(cmd wire.Command) {
		id := cmd.Base().CommandID
		if k := calls[id]; k != nil {
			done[id] = true
			c.enqueueLocked(c.itemOf(k))
			return
		}
		again := cloneCommand(cmd)
		k := c.callLocked(again, func(err error) {
			if err != nil && !c.closing && c.failure == nil && !errors.Is(err, ErrUnavailable) {
				c.events.post(event{err: &Error{Op: "replay after fail-over", Err: err}})
			}
		})
		k.replay = true
	}
	for _, d := range c.temps {
		tell(d)
		c.known[fromWire(d.Destination).d] = true
	}
	if c.watching != nil {
		tell(c.watching.info)
	}
	for _, s := range c.sessions {
		tell(s.info)
		for _, p := range s.producers {
			tell(p.info)
		}
		for _, k := range s.consumers {
			k.in.s.prefetch = int(k.info.PrefetchSize)
			tell(k.info)
		}
		s.replayTransactionLocked()
	}
	var rest []*call
	for id, k := range c.pending {
		if calls[id] == k && !done[id] && !c.queuedLocked(id) {
			rest = append(rest, k)
		}
	}
	for _, k := range rest {
		kept = append(kept, c.itemOf(k))
	}
	slices.SortStableFunc(kept, func(a, b item) int { return cmp.Compare(idOf(a), idOf(b)) })
	for _, it := range kept {
		if !done[idOf(it)] {
			c.enqueueLocked(it)
		}
	}
}

// cloneCommand copies a command of the kinds that are replayed: the link that broke may
// still be reading the one that was sent.
func cloneCommand(cmd wire.Command) wire.Command {
	switch m := cmd.(type) {
	case *wire.SessionInfo:
		return ptr(*m)
	case *wire.ProducerInfo:
		return ptr(*m)
	case *wire.ConsumerInfo:
		return ptr(*m)
	case *wire.DestinationInfo:
		return ptr(*m)
	case *wire.Message:
		return ptr(*m)
	}
	panic("jms: a command of this kind is not replayed")
}

func (c *Connection) queuedLocked(id int32) bool {
	return slices.ContainsFunc(c.queue.items, func(it item) bool { return idOf(it) == id })
}

func idOf(it item) int32 {
	if cmd, ok := it.cmd.(wire.Command); ok {
		return cmd.Base().CommandID
	}
	return 0
}
