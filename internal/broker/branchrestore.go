package broker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// restoreBranches takes over the prepared transactions of an earlier process. It
// comes before the destinations are opened, which ask for what is theirs.
func (b *Broker) restoreBranches() {
	found := b.o.Records.Prepared()
	for i := range found {
		p := &found[i]
		if p.Outcome == records.Ended {
			b.branches.remember(ended{id: p.XID.String(), record: p.Sequence})
			continue
		}
		br := &branch{transaction: transaction{b: b, id: p.XID.String(), over: true, queues: map[*destination]bool{}}, xid: p.XID,
			begun: p.At, state: branchPrepared, stored: p}
		if p.Outcome != records.InDoubt {
			br.state = branchByHand
		}
		for _, s := range p.Sends {
			br.sends = append(br.sends, heldSend{staged: s.Sequence, size: s.SizeBytes, schedule: s.Schedule})
		}
		b.branches.of[br.id] = br
	}
}

// joinBranches tells the prepared transactions which destinations have what they
// acknowledge.
func (b *Broker) joinBranches() {
	of := map[records.QueueID]*destination{}
	b.mu.Lock()
	for _, d := range b.queues {
		of[d.id] = d
	}
	for _, s := range b.subscriptions {
		of[s.d.id] = s.d
	}
	b.mu.Unlock()
	for _, br := range b.branches.of {
		for i := range br.stored.Acks {
			if d := of[br.stored.Acks[i].Queue]; d != nil { // else it was removed, and the messages with it
				br.queues[d] = true
			}
		}
	}
}

// purgeBranches ends the prepared transactions of earlier processes, if that is wanted:
// nobody is told, and their transaction managers find nothing.
func (b *Broker) purgeBranches() error {
	if b.o.Prepared == KeepPrepared {
		return nil
	}
	for _, t := range b.Transactions() {
		br, _, err := b.branches.take(t.XID, branchEnding, branchPrepared)
		if err != nil {
			continue // it was ended by hand, and is kept for its transaction manager
		}
		answered := make(chan error, 1)
		done, what := func(err error) { answered <- err }, "committed"
		if b.o.Prepared == CommitPrepared {
			br.commitPrepared(b.ctx, nil, false, done)
		} else {
			what = "rolled back"
			br.rollBackPrepared(b.ctx, false, done)
		}
		if err := b.await(answered); err != nil {
			return fmt.Errorf("prepared transaction of an earlier process: %w", err)
		}
		b.o.Log.Warn("a prepared transaction of an earlier process was ended at the start, as configured", "transaction", t.XID.String(),
			"outcome", what, "prepared", time.UnixMilli(t.Prepared).UTC(), "client", t.ClientID, "messages_sent", t.Sends, "messages_received", t.Acks)
	}
	return nil
}

// resolve finds the destinations that the transaction's messages are in now: one that
// was lost meanwhile is opened anew, one that was removed has taken them along.
func (br *branch) resolve() error {
	now := map[*destination]bool{}
	for _, d := range br.places() {
		n, err := br.b.current(d)
		if err != nil {
			return err
		}
		if n != nil {
			now[n] = true
		}
	}
	br.mu.Lock()
	defer br.mu.Unlock()
	br.queues = now
	return nil
}

// current is the destination that has taken d's place, or d itself; nil if there is
// none.
func (b *Broker) current(d *destination) (*destination, error) {
	if d.sub != nil || !d.durable {
		if d.box.isClosed() && !d.durable {
			return nil, nil
		}
		return d, nil
	}
	b.mu.Lock()
	n, lost := b.queues[d.name], b.lost[d.name]
	b.mu.Unlock()
	switch {
	case n != nil && n.id == d.id:
		return n, nil
	case n == nil && lost:
		return b.queue(d.name, "")
	}
	return nil, nil
}

// held are the entries of a queue that prepared transactions acknowledge, by lane and
// position.
func (g *branches) held(q records.QueueID) map[uint8]map[uint64]queue.Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := map[uint8]map[uint64]queue.Held{}
	consumers := map[records.Holder]*queue.Consumer{}
	for _, br := range g.of {
		if br.stored == nil {
			continue
		}
		for i := range br.stored.Acks {
			a := &br.stored.Acks[i]
			if a.Queue != q {
				continue
			}
			k := consumers[a.Holder]
			if k == nil {
				k = &queue.Consumer{ID: a.Holder.Consumer, Connection: a.Holder.Connection, ClientID: a.Holder.ClientID,
					Address: a.Holder.Address, Protocol: a.Holder.Protocol}
				consumers[a.Holder] = k
			}
			lane := found[uint8(a.Lane)]
			if lane == nil {
				lane = map[uint64]queue.Held{}
				found[uint8(a.Lane)] = lane
			}
			lane[a.Position] = queue.Held{Tx: br.id, Consumer: k, HandedOut: a.HandedOut, HandOuts: a.HandOuts, Told: int(a.Told)}
		}
	}
	return found
}

// mayDiscard fails where a prepared transaction has acknowledged something of a
// destination: its outcome needs the messages.
func (b *Broker) mayDiscard(d *destination) error {
	b.branches.mu.Lock()
	defer b.branches.mu.Unlock()
	for _, br := range b.branches.of {
		if br.stored == nil {
			continue
		}
		for i := range br.stored.Acks {
			if br.stored.Acks[i].Queue == d.id {
				return fmt.Errorf("%s has messages of transaction %s, which is prepared and must end first: %w", d.label(), br.id, message.ErrState)
			}
		}
	}
	return nil
}

// heldPage is how many entries are read at once for restoreHeld, at the most.
const heldPage = 1000

// restoreHeld tells the machine of what prepared transactions acknowledge here.
func (d *destination) restoreHeld() error {
	var all []queue.HeldItem
	for lane, held := range d.b.branches.held(d.id) {
		positions := slices.Sorted(maps.Keys(held))
		for len(positions) > 0 {
			page, err := d.stored(lane, positions[0]-1, min(len(positions), heldPage))
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break // they are gone, and all behind them
			}
			for i := range page {
				e := &page[i]
				if h, ok := held[e.Entry.Position]; ok {
					all = append(all, queue.HeldItem{Lane: lane, Item: queue.StoredItem(e.Entry, e.Counts, e.HasCounts), Held: h})
				}
			}
			last := page[len(page)-1].Entry.Position
			for len(positions) > 0 && positions[0] <= last {
				positions = positions[1:]
			}
		}
	}
	d.machine.RestoreHeld(all)
	return nil
}
