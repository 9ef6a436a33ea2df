package broker

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Properties that the broker sets on dead letters (spec 5.4; DeliveryAttempts and
// OriginalSubscription are ours, R-EDGE-18, C12).
const (
	FailureCause         = "dlqDeliveryFailureCause"
	OriginalExpiration   = "originalExpiration"
	OriginalDeliveryMode = "originalDeliveryMode"
	DeliveryAttempts     = queue.DeliveryAttempts
	MovedFrom            = queue.MovedFrom
	OriginalSubscription = "originalSubscription" // CLIENTID:NAME of the durable subscription that gave it up
)

// asideQueue keeps dead letters that nobody stores where they were to go (R-HQ-140).
var asideQueue = message.Destination{Kind: message.Queue, Name: redelivery.DefaultDeadLetterQueue}

// unreadable reports whether an error of reading says that a stored message is damaged, or
// missing.
func unreadable(err error) bool {
	return errors.Is(err, message.ErrCorrupt) || errors.Is(err, message.ErrNotFound)
}

// transfer writes that an item leaves for another destination: out of here and in
// there, with its story, in one batch (R-EDGE-01, R-EDGE-11).
func (w *turnWriter) transfer(e *queue.Effect) {
	d, it := w.d, e.Item
	w.relaxed = false
	header, err := d.headerOf(it)
	if errors.Is(err, message.ErrCorrupt) { // it moves as it lies, and the queue goes on
		header, err = d.standIn(it), nil
	}
	if err != nil {
		w.err = err
		return
	}
	overlay := d.overlay(it, header, e.Move)
	targets, live, err := d.b.receivers(header, overlay, e.Move)
	if err == nil && len(targets)+len(live) == 0 && d.options.Rules.KeepUnroutedDead && !e.Move.Redrive && !e.Move.ByHand {
		aside := *e.Move
		aside.Target = asideQueue
		overlay.Destination, e.Move = aside.Target, &aside
		targets, live, err = d.b.receivers(header, overlay, e.Move)
	}
	moved := it.Stored && !it.Transient
	copies := !moved || len(targets) > 1 && !it.Shared // else it moves as it lies
	var whole *message.Message
	if err == nil && (copies && len(targets) > 0 || len(live) > 0) {
		whole, err = d.whole(it)
	}
	if errors.Is(err, message.ErrCorrupt) {
		if !moved || len(targets) == 0 {
			w.damaged(it, records.Lane(e.Lane))
			return
		}
		if err, live = nil, nil; copies {
			targets, copies = targets[:1], false
		}
	}
	if err != nil {
		w.err = err
		return
	}
	if len(live) > 0 {
		w.passOn(whole, overlay, live)
	}
	if len(targets)+len(live) == 0 { // a topic that nobody subscribes to: it goes the way of all its messages
		d.machine.Unkept()
		w.recount = true
		w.tell(action{kind: actEvent, b: d.b, event: &Event{Kind: Discarded, Destination: d.name, Message: it.ID,
			Text: string(redelivery.ReasonUnsubscribed), Copy: d.copyOf(Discarded, it)}})
	} else {
		w.moved(e)
	}
	if len(targets) == 0 {
		if it.Stored {
			d.remove(&w.group.batch, it, records.Lane(e.Lane), false)
		}
		return
	}
	d.b.numbering.RLock()
	defer d.b.numbering.RUnlock()
	entry := it.Entry
	entry.Position = d.b.o.Records.Next(1)
	entry.Persistent, entry.Expiration, entry.Out, entry.Transient = overlay.Persistent, overlay.Expiration, message.NotHandedOut, false
	entry.Shared = it.Shared && moved || len(targets) > 1
	if copies {
		w.copyBody(it, whole, &entry, len(targets))
	} else {
		d.remove(&w.group.batch, it, records.Lane(e.Lane), true)
		if len(targets) > 1 {
			w.group.batch.AddReferences(entry.Body, len(targets)-1)
		}
	}
	for _, t := range targets {
		counts := message.Counts{HandOuts: it.HandOuts, Attempts: it.Attempts, Story: it.Story}
		entry.Overlay = t.overlay
		gained := queue.StoredItem(entry, counts, it.Story != 0)
		lane := records.Lane(t.to.options.LaneOf(entry.Priority))
		w.group.batch.Append(t.to.id, lane, &gained.Entry)
		if it.Story != 0 {
			w.group.batch.PutCounts(t.to.id, lane, entry.Position, &gained.Counts)
		}
		t.to.box.force(work{command: queue.Expect{Positions: []uint64{entry.Position}}})
		w.group.gains = append(w.group.gains, gain{to: t.to, item: gained})
	}
	if !moved {
		for i := range it.Lines {
			w.group.batch.PutAttempt(it.Story, &it.Lines[i])
		}
	}
}

// passOn gives a message that moves to a topic to consumers without a durable
// subscription, once the batch is on disk.
func (w *turnWriter) passOn(whole *message.Message, o *message.Overlay, to []copyFor) {
	copies := make([]copyFor, len(to))
	for i, c := range to {
		one := *o
		one.Destination = c.message.Destination
		copies[i] = copyFor{to: c.to, message: whole.With(&one)}
	}
	b := w.d.b
	w.tell(action{kind: actDo, do: func() {
		for _, c := range copies {
			b.pass([]copyFor{c}, func(error) {})
		}
	}})
}

// damaged drops an item that would have to be copied, and whose message cannot be read.
func (w *turnWriter) damaged(it *queue.Item, lane records.Lane) {
	if it.Stored {
		w.d.remove(&w.group.batch, it, lane, false)
	}
	w.tell(action{kind: actEvent, b: w.d.b, event: &Event{Kind: Discarded, Destination: w.d.name, Message: it.ID, Text: "its message is damaged"}})
}

// whole is an item's message as it came here, with its body and without its overlay.
func (d *destination) whole(it *queue.Item) (*message.Message, error) {
	if it.Message != nil {
		return it.Message, nil
	}
	plain := it.Entry
	plain.Overlay = nil
	return d.onDisk(func() (*message.Message, error) { return d.b.o.Records.Message(&plain) })
}

// A receiver is a destination that stores a copy of what is moved, and what changes
// about that copy.
type receiver struct {
	to      *destination
	overlay *message.Overlay
}

// receivers lists who gets a copy of a message that is moved to a queue or topic: as of
// one that is sent there (R-DLQ-09), except that what is redriven goes to where it failed
// and nowhere else (C11, R-VT-04). Those of live store none.
func (b *Broker) receivers(header *message.Message, o *message.Overlay, move *queue.Move) (rs []receiver, live []copyFor, err error) {
	if move.Redrive || move.Target.IsQueue() && !b.interceptors.Load().apply(move.Target) {
		all, err := b.direct(move.Target)
		if move.Redrive && move.Target.IsTopic() && err == nil {
			all = gaveUp(all, header.Added)
		}
		rs = make([]receiver, len(all))
		for i, d := range all {
			rs[i] = receiver{d, o}
		}
		return rs, nil, err
	}
	copies, live, err := b.gets(header.With(o))
	rs = make([]receiver, len(copies))
	for i, c := range copies {
		one := *o // where it failed stays where a dead letter says so
		one.Destination = c.message.Destination
		rs[i] = receiver{c.to, &one}
	}
	return rs, live, err
}

// direct lists the destinations that store what is sent to name itself: the queue,
// or a topic's durable subscriptions.
func (b *Broker) direct(name message.Destination) ([]*destination, error) {
	if name.IsQueue() {
		d, err := b.queue(name, "")
		if err != nil {
			return nil, err
		}
		return []*destination{d}, nil
	}
	var all []*destination
	for _, s := range b.route(name, "") {
		if s.durable {
			all = append(all, s.d)
		}
	}
	return all, nil
}

// gaveUp leaves of a topic's durable subscriptions the one that a dead letter names
// as where it failed; all, if it names none (better than R-JMX-06).
func gaveUp(all []*destination, added map[string]any) []*destination {
	name, ok := added[OriginalSubscription]
	if !ok {
		return all
	}
	return slices.DeleteFunc(all, func(d *destination) bool { return d.sub == nil || d.sub.label() != name })
}

// moved tells that an item went elsewhere.
func (w *turnWriter) moved(e *queue.Effect) {
	ev := &Event{Kind: DeadLettered, Destination: w.d.name, Message: e.Item.ID, Text: e.Move.Target.String(), Cause: e.Move.Text}
	switch {
	case e.Move.Redrive:
		ev.Kind = Redriven
	case e.Move.ByHand:
		ev.Kind = Moved
	}
	if ev.Kind == DeadLettered {
		ev.Copy = w.d.copyOf(DeadLettered, e.Item)
	}
	w.tell(action{kind: actEvent, b: w.d.b, event: ev})
}

// copyBody writes the message m of an item that cannot be moved where it lies, under the
// position of the entry.
func (w *turnWriter) copyBody(it *queue.Item, m *message.Message, entry *message.Entry, refs int) {
	if it.Stored {
		w.d.remove(&w.group.batch, it, records.Lane(it.LaneNumber()), false)
	}
	entry.Body = entry.Position
	w.group.batch.PutMessage(entry.Body, m, refs)
}

// headerOf gets an item's message as it is here, perhaps without its body.
func (d *destination) headerOf(it *queue.Item) (*message.Message, error) {
	if it.Message != nil {
		return it.Message.With(it.Overlay), nil
	}
	return d.header(&it.Entry)
}

// overlay says what changes about a message that moves (spec 5.4, R-JMX-02).
func (d *destination) overlay(it *queue.Item, header *message.Message, move *queue.Move) *message.Overlay {
	o := &message.Overlay{
		Destination:   move.Target,
		Persistent:    true,
		Expiration:    move.Expiration,
		TransactionID: header.TransactionID,
		Added:         map[string]any{},
		BrokerInTime:  d.now,
	}
	maps.Copy(o.Added, header.Added)
	if move.ByHand {
		o.Persistent, o.Expiration, o.OriginalDestination = it.Persistent, it.Expiration, header.OriginalDestination
		if o.Added[DeliveryAttempts] == nil { // else it is a dead letter, or was one: ActiveMQ forgets where it failed (R-EDGE-37)
			o.OriginalDestination = header.Destination // R-JMX-01
		}
		delete(o.Added, MovedFrom)
		if move.ToWork && IsDeadLetter(&it.Entry) {
			o.Added[MovedFrom] = d.name.String()
		}
		d.originOf(it, header, move).stamp(o.Added, header)
		return o
	}
	if move.Redrive {
		for name := range o.Added {
			if strings.HasPrefix(name, "dlq") || name == OriginalSubscription || name == MovedFrom || tellsOrigin(name) {
				delete(o.Added, name)
			}
		}
		if move.AsSent {
			d.b.asSent(o, header)
		}
		return o
	}
	o.OriginalDestination = d.name
	delete(o.Added, OriginalSubscription) // of an earlier death
	delete(o.Added, MovedFrom)
	if d.sub != nil {
		o.OriginalDestination = header.Destination
		if d.sub.durable {
			o.Added[OriginalSubscription] = d.sub.label()
		}
	}
	if move.Text != "" {
		o.Added[FailureCause] = move.Text
	}
	if move.Expiration == 0 && !d.b.hasProperty(header, OriginalExpiration) {
		o.Added[OriginalExpiration] = it.Expiration
	}
	if !it.Persistent && !d.b.hasProperty(header, OriginalDeliveryMode) {
		o.Added[OriginalDeliveryMode] = "NON_PERSISTENT"
	}
	o.Added[DeliveryAttempts] = int64(it.Attempts)
	d.originOf(it, header, move).stamp(o.Added, header)
	o.Expiration = d.b.expirationAt(move.Target, o.Expiration)
	return o
}

// asSent gives a dead letter its delivery mode back, and its time to live, beginning
// now. The properties that remember them have done their work.
func (b *Broker) asSent(o *message.Overlay, header *message.Message) {
	if o.Added[OriginalDeliveryMode] == "NON_PERSISTENT" {
		o.Persistent = false
	}
	if e, _ := o.Added[OriginalExpiration].(int64); e > 0 && header.Timestamp > 0 {
		o.Expiration = b.now() + max(e-header.Timestamp, 0)
	}
	delete(o.Added, OriginalDeliveryMode)
	delete(o.Added, OriginalExpiration)
}

func (b *Broker) hasProperty(m *message.Message, name string) bool {
	if _, ok := m.Added[name]; ok {
		return true
	}
	if b.o.Properties == nil || m.Properties == nil {
		return false
	}
	_, ok := b.o.Properties(m, name)
	return ok
}
