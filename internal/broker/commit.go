package broker

import (
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/records"
)

// commit ends a turn: it writes the effects that are for the store in one batch,
// and lets the others out when that batch is on disk.
func (d *destination) commit() {
	g := d.turnGroup()
	d.group = nil
	g.effects = d.machine.EndTurn(g.effects)
	d.mu.Lock()
	d.stats = d.machine.Stats() // also of a turn without effects: what arrives from elsewhere has none
	d.mu.Unlock()
	for _, f := range d.counted {
		f(nil)
	}
	clear(d.counted)
	d.counted = d.counted[:0]
	d.b.roomChanged(d)
	if len(g.effects) == 0 {
		g.free()
		return
	}
	w := turnWriter{d: d, group: g, relaxed: true, quiet: true, err: d.broken}
	switch {
	case w.err != nil: // nothing of it is written
	case weight(g.effects) > d.b.splitBytes():
		for _, e := range w.storeApart(g.effects) {
			w.store(e)
		}
	default:
		for i := range g.effects {
			if e := &g.effects[i]; e.ForStore() {
				w.store(e)
			}
		}
	}
	if w.recount {
		d.mu.Lock()
		d.stats = d.machine.Stats()
		d.mu.Unlock()
	}
	w.direct = w.err == nil && g.parts == nil && g.batch.Empty() && len(g.actions) == 0 && d.out.idle()
	for i := range g.effects {
		if e := &g.effects[i]; !e.ForStore() {
			w.world(e)
		}
	}
	for i := range g.effects {
		d.settleMemory(&g.effects[i])
	}
	clear(g.effects)
	g.effects = g.effects[:0]
	w.send()
	d.raiseFloors()
}

// settleMemory decides, at the end of a turn, which messages stay in memory.
func (d *destination) settleMemory(e *queue.Effect) {
	it := e.Item
	if it == nil {
		return
	}
	switch e.Kind {
	case queue.Append:
		switch {
		case !it.Kept():
			d.drop(it)
		case it.Message != nil && it.Charged == 0:
			d.keepOrDrop(it)
		}
	case queue.Deliver:
		switch {
		case it.Stored && !d.advisories.Consumed:
			d.drop(it)
		case it.Stored && it.Message != nil && it.Charged == 0: // it is told of when it is consumed
			d.keepOrDrop(it)
		}
	case queue.Remove, queue.Transfer, queue.Forget:
		d.drop(it)
	}
}

// keepOrDrop keeps the message of a stored item in memory while there is room.
func (d *destination) keepOrDrop(it *queue.Item) {
	if d.b.memory.charge(it.SizeBytes) {
		it.Charged = it.SizeBytes
	} else {
		it.Message = nil
	}
}

func (d *destination) drop(it *queue.Item) {
	it.Message = nil
	d.b.memory.giveBack(it)
}

// A turnWriter turns the effects of one turn into the batch and the actions of its group.
type turnWriter struct {
	d       *destination
	group   *group
	relaxed bool // nothing in the batch is to outlive the process
	direct  bool // there is no batch to wait for: what is for the world goes at once
	quiet   bool // all that is written is that messages were acknowledged
	recount bool // what became of an item was only known here
	err     error
}

func (w *turnWriter) store(e *queue.Effect) {
	d, it := w.d, e.Item
	lane := records.Lane(e.Lane)
	w.relaxed = w.relaxed && it != nil && it.Transient
	w.quiet = w.quiet && (e.Kind == queue.DropMark || e.Kind == queue.Remove && e.Reason == queue.Acknowledged)
	switch e.Kind {
	case queue.Append:
		if it.Transient {
			w.group.batch.PutTransientMessage(it.Body, it.Message)
		} else {
			w.group.batch.PutMessage(it.Body, it.Message, 1)
		}
		w.group.batch.Append(d.id, lane, &it.Entry)
	case queue.Remove:
		if it.Stored {
			d.remove(&w.group.batch, it, lane, false)
			d.removed++
		}
	case queue.Transfer:
		d.removed++
		w.transfer(e)
	case queue.SaveCounts:
		it.HasCounts = true
		w.group.batch.PutCounts(d.id, lane, it.Position, &it.Counts)
		d.index(&w.group.batch, it, lane)
	case queue.SaveAttempt:
		w.group.batch.PutAttempt(it.Story, e.Attempt)
		if e.Number > 0 {
			w.group.batch.DropAttempt(it.Story, int(e.Number))
		}
	case queue.PutMark:
		w.group.batch.PutMark(d.id, records.MarkID(e.Number), e.How, e.Positions)
	case queue.DropMark:
		w.group.batch.DropMark(d.id, records.MarkID(e.Number))
	case queue.PutProducer:
		if d.durable {
			w.group.batch.PutProducer(d.id, e.Name, int64(e.Number), d.b.now())
		}
	case queue.DropProducer:
		if d.durable {
			w.group.batch.DropProducer(d.id, e.Name)
		}
	}
}

// remove takes an item out of the store, with all that is known of it there; keepBody:
// it goes elsewhere, and body and story with it.
func (d *destination) remove(b *records.Batch, it *queue.Item, lane records.Lane, keepBody bool) {
	b.Remove(d.id, lane, it.StoredEntry(), countsOf(it), keepBody)
	if it.Indexed != 0 {
		b.DropDue(d.id, lane, it.Position, it.Indexed)
	}
}

// index makes the index of due times say what an item's counts say.
func (d *destination) index(b *records.Batch, it *queue.Item, lane records.Lane) {
	if it.Indexed == it.Due {
		return
	}
	if it.Indexed != 0 {
		b.DropDue(d.id, lane, it.Position, it.Indexed)
	}
	if it.Due != 0 {
		b.PutDue(d.id, lane, it.Position, it.Due)
	}
	it.Indexed = it.Due
}

// countsOf is what the store has of an item's counts; nil if it has nothing.
func countsOf(it *queue.Item) *message.Counts {
	if it.HasCounts || it.Story != 0 {
		return &it.Counts
	}
	return nil
}

func (w *turnWriter) world(e *queue.Effect) {
	d := w.d
	switch e.Kind {
	case queue.Deliver:
		w.tell(action{kind: actDeliver, sink: e.Consumer.Handle.(Sink), delivery: d.delivery(e)})
		if d.advisories.Dispatched {
			w.dispatched(e)
		}
	case queue.Nothing:
		w.tell(action{kind: actDeliver, sink: e.Consumer.Handle.(Sink), delivery: Delivery{Kind: NothingToPull, Consumer: e.Consumer.ID, source: d}})
	case queue.Answer:
		w.tell(action{kind: actAnswer, done: e.Done, err: e.Err})
	case queue.PageIn:
		lane, after, n := e.Lane, e.Number, e.Counter
		w.tell(action{kind: actDo, do: func() { d.orderPage(lane, after, n) }})
	case queue.Search:
		lane, after, n := e.Lane, e.Number, e.Counter
		w.tell(action{kind: actDo, do: func() { d.orderSearch(lane, after, n) }})
	case queue.PageTimes:
		x, from, n := e.Index, e.From, e.Counter
		w.tell(action{kind: actDo, do: func() { d.orderTimes(x, from, n) }})
	case queue.Abort:
		a := abortion{connection: e.Consumer.Connection, consumer: e.Consumer.ID, cause: e.Cause, text: e.Text, end: e.End}
		w.tell(action{kind: actDo, do: func() { d.abort(a) }})
	case queue.Tell:
		if ev, ok := d.event(e); ok {
			w.tell(action{kind: actEvent, b: d.b, event: &ev})
		}
	}
}

// tell lets an action out with its turn.
func (w *turnWriter) tell(a action) {
	if w.direct {
		a.perform(nil)
	} else {
		w.group.actions = append(w.group.actions, a)
	}
}

func (d *destination) delivery(e *queue.Effect) Delivery {
	it := e.Item
	dl := Delivery{Consumer: e.Consumer.ID, Entry: it.Entry, Message: it.Message, Counter: e.Counter, Hint: e.Hint,
		Delay: it.Delay, Renamed: it.Suppressed > 0, GroupFirst: e.First, source: d, stored: it.Stored}
	switch {
	case d.sub == nil:
		dl.Destination = d.name
	case it.Overlay != nil:
		dl.Destination = it.Overlay.Destination
	case it.Message != nil:
		dl.Destination = it.Message.Destination
	} // else Load finds it
	if it.Message != nil && it.Overlay != nil {
		dl.Message = it.Message.With(it.Overlay)
	}
	return dl
}

// send hands the batch over. The group leaves when it is answered. A batch of
// acknowledgements that nobody waits for is put off; where a turn has something to
// tell, what was put off before it is not any more.
func (w *turnWriter) send() {
	d, g := w.d, w.group
	if w.direct {
		g.free()
		return
	}
	g.putOff = w.quiet && !w.relaxed && len(g.actions) == 0 && !g.batch.Empty()
	hurry := d.out.push(g)
	switch {
	case w.err != nil:
		g.undo()
		d.out.done(g, w.err)
		if d.broken == nil {
			d.failHere(w.err)
		}
	case g.batch.Empty() && !(hurry && len(g.actions) > 0):
		d.out.done(g, nil)
	default:
		switch {
		case w.relaxed && !g.batch.Empty():
			g.batch.Relax()
		case g.putOff:
			g.batch.PutOff()
		default:
			g.batch.Await(answers(g.actions))
		}
		d.b.o.Records.Commit(&g.batch, g.answered)
	}
}

// answers counts who waits for one of the actions.
func answers(all []action) (n int) {
	for i := range all {
		if all[i].kind == actAnswer {
			n++
		}
	}
	return n
}

// event translates what a machine tells. That a message became a dead letter is
// told by the move.
func (d *destination) event(e *queue.Effect) (Event, bool) {
	kinds := map[queue.EventKind]EventKind{
		queue.ItemExpired: Expired, queue.ItemDiscarded: Discarded,
		queue.Suppressed: Suppressed, queue.Kept: Kept, queue.StrayAck: StrayAck, queue.Inconsistent: Inconsistent,
		queue.FailureCounted: Failed, queue.ItemArrived: MessageSent, queue.ItemConsumed: MessageConsumed,
		queue.ItemLonely: NoConsumer, queue.ConsumerSlow: SlowConsumer, queue.ItemEvicted: Evicted,
	}
	kind, ok := kinds[e.Event]
	ev := Event{Kind: kind, Destination: d.name, Text: e.Text}
	if e.Item != nil {
		ev.Message = e.Item.ID
	}
	switch kind {
	case Inconsistent:
		d.b.o.Records.CountAnew(d.id)
	case Expired, Discarded:
		ev.Copy = d.copyOf(kind, e.Item)
	case MessageSent, MessageConsumed, NoConsumer:
		ev.Copy = d.copyOf(kind, e.Item)
		ok = ok && ev.Copy != nil
	case Evicted:
		ev.Consumer, ev.Count = e.Consumer.ID, e.Counter
		d.evicted(&ev, e.Item)
	case SlowConsumer:
		ev.Consumer = e.Consumer.ID
		if ok = ok && d.b.watched(kind, d.name); ok {
			ev.ClientID, ev.Spec = e.Consumer.ClientID, d.b.specOf(e.Consumer)
		}
	}
	return ev, ok
}

// dispatched tells of a message on its way to a consumer.
func (w *turnWriter) dispatched(e *queue.Effect) {
	c := w.d.copyOf(MessageDispatched, e.Item)
	if c == nil {
		return
	}
	w.tell(action{kind: actEvent, b: w.d.b, event: &Event{
		Kind: MessageDispatched, Destination: w.d.name, Message: c.ID, Consumer: e.Consumer.ID, Copy: c}})
}
