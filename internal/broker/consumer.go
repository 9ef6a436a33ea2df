package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// A consumer is what a client has subscribed: to one queue, to several, to a
// topic's subscription, or as a browser. mu guards places, to which queues that
// come to be later are added, until it has left.
type consumer struct {
	c       *Connection
	spec    ConsumerSpec
	sub     *subscription
	browser *browser
	puller  *puller                  // of one of several queues
	wish    atomic.Pointer[int64]    // Pull.Until of its last pull; nil: it has not pulled
	aborted atomic.Pointer[abortion] // the consumer was told to close, since it is too slow

	mu     sync.Mutex
	places []*destination
	left   bool // it is attached to nothing any more
}

func (k *consumer) at(d *destination) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.places {
		if p == d {
			return true
		}
	}
	return false
}

func (k *consumer) all() []*destination {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*destination(nil), k.places...)
}

// leaves lets the consumer be attached to nothing any more, and returns where it is.
func (k *consumer) leaves() []*destination {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = true
	return append([]*destination(nil), k.places...)
}

// come has a destination attach the consumer, unless it has left. It is in its places
// then, and its Attach in front of the Detach of whoever finds it there.
func (k *consumer) come(d *destination, attach queue.Attach) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left {
		return fmt.Errorf("consumer %s has left: %w", k.spec.ID, message.ErrNotFound)
	}
	if !d.box.force(work{command: attach}) {
		return d.box.reason()
	}
	k.places = append(k.places, d)
	return nil
}

// place is where the consumer has messages of a destination from.
func (k *consumer) place(d message.Destination) *destination {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.places) == 1 {
		return k.places[0]
	}
	for _, p := range k.places {
		if p.name == d {
			return p
		}
	}
	return nil
}

// specOf is what a client has asked for with a consumer; one that is about to go is
// described by what its queue knows of it.
func (b *Broker) specOf(q *queue.Consumer) *ConsumerSpec {
	b.mu.Lock()
	c := b.connections[q.Connection]
	b.mu.Unlock()
	if c != nil {
		if k := c.consumer(q.ID); k != nil {
			return &k.spec
		}
	}
	return &ConsumerSpec{ID: q.ID, Session: q.Session, Prefetch: q.Prefetch, Priority: q.Priority, Exclusive: q.Exclusive}
}

// Subscribe adds a consumer. Deliveries may reach the sink before it returns. A
// consumer that is there already stays as it is (OpenWire 13).
//
// Errors: ErrInvalid for a bad selector, or a durable subscription without client
// id; ErrDenied where the client may not read or create; ErrState for a durable
// subscription in use; ErrNotFound for a temporary queue that is gone.
func (c *Connection) Subscribe(_ context.Context, spec ConsumerSpec) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.busy.Done()
	if c.consumer(spec.ID) != nil {
		return nil
	}
	if spec.Destination.IsZero() || len(spec.Destination.Parts()) == 0 {
		return fmt.Errorf("consumer %s names no destination: %w", spec.ID, message.ErrInvalid)
	}
	if err := c.mayConsume(spec); err != nil {
		return err
	}
	sel, err := parseSelector(spec.Selector)
	if err != nil {
		return err
	}
	k := &consumer{c: c, spec: spec}
	topics, err := onlyTopics(spec.Destination)
	if err != nil {
		return err
	}
	if !topics {
		if sel, err = k.selector(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.consumers[spec.ID] = k
	c.mu.Unlock()
	switch {
	case topics:
		err = k.attachTopic(sel)
	case spec.Browser:
		err = k.browse(sel)
	default:
		err = k.attachQueues(sel)
	}
	if err != nil {
		c.mu.Lock()
		delete(c.consumers, spec.ID)
		c.mu.Unlock()
		return err
	}
	k.joined()
	return nil
}

// selector is what a consumer of queues selects. noLocal is a part of it: what the client
// itself has sent is for others, as in ActiveMQ, and known by the ids of its producers,
// which begin with that of its connection.
func (k *consumer) selector() (*selector.Selector, error) {
	text := k.spec.Selector
	if k.spec.NoLocal {
		id := strings.NewReplacer("'", "''", "!", "!!", "%", "!%", "_", "!_").Replace(k.c.info.ID)
		others := "JMSMessageID NOT LIKE '" + id + ":%' ESCAPE '!'"
		if text != "" {
			others = "(" + text + ") AND " + others
		}
		text = others
	}
	return parseSelector(text)
}

// onlyTopics reports whether all parts are topics; a mixture is ErrInvalid.
func onlyTopics(d message.Destination) (bool, error) {
	topics, queues := 0, 0
	for _, p := range d.Parts() {
		if p.IsTopic() {
			topics++
		} else {
			queues++
		}
	}
	if topics > 0 && queues > 0 {
		return false, fmt.Errorf("consumer of %q: queues and topics cannot be mixed: %w", d.Name, message.ErrInvalid)
	}
	return topics > 0, nil
}

func (k *consumer) attachTopic(sel *selector.Selector) error {
	s, err := k.c.b.subscribe(k, sel)
	if err != nil {
		return err
	}
	k.sub = s
	if err := k.attach(s.d, nil); err != nil { // its selector is applied before its queue
		k.c.b.leave(s, k)
		return err
	}
	return nil
}

// attachQueues attaches to every queue of the destination, and for a pattern to
// those that come to be later.
func (k *consumer) attachQueues(sel *selector.Selector) error {
	b := k.c.b
	parts := k.spec.Destination.Parts()
	if len(parts) > 1 || parts[0].IsPattern() {
		k.puller = newPuller(k)
	}
	for _, part := range parts {
		if !part.IsPattern() {
			if err := k.attachQueue(part, sel); err != nil {
				k.detach(queue.Detach{Last: -1, Cause: message.Closed}, nil)
				return err
			}
			continue
		}
		if b.interceptors.Load().ofPattern(part) {
			if _, err := b.queue(part, k.c.info.ID); err != nil {
				return err
			}
		}
		b.mu.Lock()
		b.patterns[k] = true
		var there []*destination
		for name, d := range b.queues {
			if part.Matches(name) {
				there = append(there, d)
			}
		}
		b.mu.Unlock()
		for _, d := range there {
			if err := k.attach(d, sel); err != nil && !errors.Is(err, message.ErrNotFound) { // else it was removed just now
				k.detach(queue.Detach{Last: -1, Cause: message.Closed}, nil)
				return err
			}
		}
	}
	return nil
}

// attachQueue attaches to a queue, and makes it if there is none: also where it is
// removed just now.
func (k *consumer) attachQueue(name message.Destination, sel *selector.Selector) error {
	for {
		d, err := k.c.b.queue(name, k.c.info.ID)
		if err != nil {
			return err
		}
		if err = k.attach(d, sel); !d.wasRemoved(err) || name.IsTemporary() {
			return err
		}
	}
}

// joinPatternsLocked attaches the consumers whose pattern covers a new queue.
func (b *Broker) joinPatternsLocked(d *destination) {
	for k := range b.patterns {
		for _, part := range k.spec.Destination.Parts() {
			if part.IsPattern() && part.Matches(d.name) {
				sel, _ := k.selector() // it was parsed before
				b.running.Go(func() { _ = k.attach(d, sel) })
				break
			}
		}
	}
}

// attach adds the consumer to one destination and waits until it is there.
func (k *consumer) attach(d *destination, sel *selector.Selector) error {
	d.addReader(k, sel)
	info := k.c.info
	sink := k.c.sink
	if k.puller != nil {
		sink = k.puller
	}
	answered := make(chan error, 1)
	err := k.come(d, queue.Attach{
		Consumer: &queue.Consumer{
			ID: k.spec.ID, Connection: info.ID, Session: k.spec.Session, ClientID: info.ClientID, Address: info.Address,
			Protocol: info.Protocol, Prefetch: k.spec.Prefetch, Priority: k.spec.Priority, Exclusive: k.spec.Exclusive || d.forOne(),
			MostWaiting: k.spec.MostWaiting, Selector: sel, QuietFirst: info.QuietFirst, Handle: sink,
		},
		Done: func(err error) { answered <- err },
	})
	if err != nil {
		d.removeReader(k)
		return err
	}
	if k.puller != nil {
		k.puller.joined(d)
	}
	select {
	case err = <-answered:
	case <-d.ended:
		select {
		case err = <-answered: // before it ended
		default:
			err = errStopped
		}
	}
	if err != nil {
		k.leave(d)
		return err
	}
	k.c.b.rememberSelector(d, sel)
	return nil
}

// leave forgets a destination that did not take the consumer.
func (k *consumer) leave(d *destination) {
	d.removeReader(k)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.places = slices.DeleteFunc(k.places, func(p *destination) bool { return p == d })
}

// An Ack is what a client says of messages it has: see queue.Ack.
type Ack struct {
	Consumer    string
	Destination message.Destination
	Type        queue.AckType
	First, Last queue.Ref
	Count       int
	Before      bool // see queue.Ack
	Closing     bool // see queue.Ack
	Tx          string
	Text        string
	// Quiet says that nobody waits for the answer: done need not be called without an
	// error, and what the acknowledgement writes may go to the disk a little later,
	// with something else. Not within a transaction.
	Quiet bool
	// Unseen says that the client keeps the message from its application, which still
	// waits where it has pulled it.
	Unseen bool
}

// Ack acknowledges messages. One of a consumer that is not there is told as an
// event and otherwise ignored (R-BRK-12).
func (c *Connection) Ack(ctx context.Context, a Ack, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	if err := c.enter(); err != nil {
		done(err)
		return
	}
	defer c.busy.Done()
	k := c.consumer(a.Consumer)
	if k != nil && k.browser != nil {
		k.browser.widen(a.Count, false)
		done(nil)
		return
	}
	transactional := a.Type == queue.Standard || a.Type == queue.Individual
	var d *destination
	if k != nil {
		d = k.place(a.Destination)
	}
	if d == nil {
		c.b.tell(Event{Kind: StrayAck, Destination: a.Destination, Consumer: a.Consumer, Connection: c.info.ID, Message: a.Last.ID,
			Text: "its consumer is not there"})
		if a.Tx != "" && transactional {
			c.MarkRollbackOnly(a.Tx, queue.ErrStray)
		}
		done(nil)
		return
	}
	if a.Tx != "" && transactional {
		t, err := c.transaction(a.Tx)
		if err == nil {
			err = t.enter()
		}
		if err != nil {
			done(err)
			return
		}
		defer t.leave()
		t.uses(d)
		done = t.unlessStray(done)
	}
	if a.Tx != "" && !transactional && a.Type != queue.Poison {
		a.Tx = "" // a DELIVERED ack is never transactional (OpenWire 10.4)
	}
	err := d.box.put(ctx, work{command: queue.Ack{Consumer: a.Consumer, Type: a.Type, First: a.First, Last: a.Last,
		Count: a.Count, Before: a.Before, Closing: a.Closing, Tx: a.Tx, Text: cut(a.Text), Quiet: a.Quiet && a.Tx == "", Done: done}})
	if err != nil {
		done(err)
		return
	}
	if kind, _ := redelivery.ParsePoison(a.Text); a.Unseen || a.Type == queue.Poison && kind == redelivery.SuppressedDuplicate {
		k.pullAgain(ctx)
	}
}

// unlessStray makes the transaction roll back if its acknowledgement fits nothing,
// which is no error of the acknowledgement itself: after a fail-over it happens.
func (t *transaction) unlessStray(done func(error)) func(error) {
	return func(err error) {
		if errors.Is(err, queue.ErrStray) {
			why := err
			t.rollbackOnly.CompareAndSwap(nil, &why)
			err = nil
		}
		done(err)
	}
}

// maxTextBytes is how much of a client's words about a failure is kept.
const maxTextBytes = 32 << 10

func cut(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxTextBytes], "") + "..."
}

// Pull asks for one message of a consumer with prefetch 0: for ever if timeout is
// 0, without waiting if it is negative. The answer comes through the sink.
func (c *Connection) Pull(ctx context.Context, id string, timeout time.Duration) error {
	k := c.consumer(id)
	if k == nil {
		return fmt.Errorf("pull of consumer %s: %w", id, message.ErrNotFound)
	}
	if k.browser != nil {
		k.browser.widen(1, true)
		return nil
	}
	until := int64(0)
	switch {
	case timeout < 0:
		until = -1
	case timeout > 0:
		until = c.b.now() + timeout.Milliseconds()
	}
	k.wish.Store(&until)
	return k.pull(ctx, until)
}

func (k *consumer) pull(ctx context.Context, until int64) error {
	if k.puller != nil {
		k.puller.want(until)
		return nil
	}
	for _, d := range k.all() {
		if err := d.box.put(ctx, work{command: queue.Pull{Consumer: k.spec.ID, Until: until}}); err != nil {
			return err
		}
	}
	return nil
}

// pullAgain renews the last pull, within the time that is left to it: the client has kept
// the message that was its answer from the application, and asks for no other (R-EDGE-09).
func (k *consumer) pullAgain(ctx context.Context) {
	if until := k.wish.Load(); until != nil {
		_ = k.pull(ctx, *until) // else the queue or the client is gone
	}
}

// SetPrefetch changes a consumer's window.
func (c *Connection) SetPrefetch(ctx context.Context, id string, n int, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	k := c.consumer(id)
	if k == nil {
		done(fmt.Errorf("consumer %s: %w", id, message.ErrNotFound))
		return
	}
	if k.browser != nil {
		k.browser.resize(n)
		done(nil)
		return
	}
	if k.puller != nil {
		k.puller.reset()
	}
	places := k.all()
	answer := countdown(len(places), done)
	for _, d := range places {
		if err := d.box.put(ctx, work{command: queue.SetPrefetch{Consumer: id, Prefetch: n, Done: answer}}); err != nil {
			answer(err)
		}
	}
}

// CloseConsumer removes a consumer; last is what RemoveInfo said.
func (c *Connection) CloseConsumer(_ context.Context, id string, last int64, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	k := c.consumer(id)
	if k == nil {
		done(fmt.Errorf("consumer %s: %w", id, message.ErrNotFound))
		return
	}
	c.remove([]*consumer{k}, last, message.Closed, "consumer closed", done)
}

// CloseSession removes the consumers of a session.
func (c *Connection) CloseSession(_ context.Context, session string, last int64, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	var of []*consumer
	c.mu.Lock()
	for _, k := range c.consumers {
		if k.spec.Session == session {
			of = append(of, k)
		}
	}
	c.mu.Unlock()
	c.remove(of, last, message.Closed, "session closed", done)
}

// remove detaches consumers, but for those that someone else has removed. done is
// called when what they had is back.
func (c *Connection) remove(consumers []*consumer, last int64, cause message.Cause, text string, done func(error)) {
	c.mu.Lock()
	ours := make([]*consumer, 0, len(consumers))
	for _, k := range consumers {
		if c.consumers[k.spec.ID] == k {
			delete(c.consumers, k.spec.ID)
			ours = append(ours, k)
		}
	}
	c.mu.Unlock()
	answer := countdown(len(ours), done)
	for _, k := range ours {
		d := queue.Detach{Last: last, Cause: cause, Text: text, Charge: true}
		if a := k.aborted.Load(); a != nil { // it closes because we asked for it
			d.Cause, d.Text = a.cause, a.text
		}
		k.detach(d, answer)
	}
}

// detachAll detaches every consumer and waits. Where nobody knows what the
// application had, the next message of each session is the one it was at: only
// that one is charged (DESIGN section 3).
func (c *Connection) detachAll(consumers []*consumer, last int64, cause message.Cause, text string) {
	charged := c.chargeable(consumers, last)
	var all sync.WaitGroup
	all.Add(len(consumers))
	for _, k := range consumers {
		k.detach(queue.Detach{Last: last, Cause: cause, Text: text, Charge: charged[k]}, func(error) { all.Done() })
	}
	all.Wait()
	c.mu.Lock()
	clear(c.consumers)
	c.mu.Unlock()
}

// chargeable chooses, for each session, the consumer that was handed its oldest
// unsettled message first.
func (c *Connection) chargeable(consumers []*consumer, last int64) map[*consumer]bool {
	bySession := map[string][]*consumer{}
	for _, k := range consumers {
		if k.browser == nil {
			bySession[k.spec.Session] = append(bySession[k.spec.Session], k)
		}
	}
	charged := map[*consumer]bool{}
	for _, of := range bySession {
		var first *consumer
		var when int64
		for _, k := range of {
			if len(of) == 1 || last != queue.UnknownLast {
				charged[k] = true
				continue
			}
			if at, _, ok := k.oldest(); ok && (first == nil || at < when) {
				first, when = k, at
			}
		}
		if first != nil {
			charged[first] = true
		}
	}
	return charged
}

// oldest is when the consumer was handed the oldest message it still has, and where.
func (k *consumer) oldest() (at int64, where *destination, ok bool) {
	for _, d := range k.all() {
		err := d.do(d.b.ctx, func() {
			if t, has := d.machine.Oldest(k.spec.ID); has && (!ok || t < at) {
				at, where, ok = t, d, true
			}
		})
		if err != nil {
			continue // it is gone, and so is what the consumer had of it
		}
	}
	return at, where, ok
}

// Holds reports whether a consumer has messages that no transaction has taken for
// good.
func (c *Connection) Holds(id string) bool {
	k := c.consumer(id)
	if k == nil {
		return false
	}
	for _, d := range k.all() {
		var holds bool
		err := d.do(d.b.ctx, func() { holds = d.machine.Holds(id) })
		if err == nil && holds { // else it is gone, and so is what the consumer had of it
			return true
		}
	}
	return false
}

// detach takes the consumer from everywhere. done is called when it has gone; it may be nil.
func (k *consumer) detach(cmd queue.Detach, done func(error)) {
	b := k.c.b
	b.mu.Lock()
	delete(b.patterns, k)
	if k.sub != nil && k.sub.durable && k.sub.user == k {
		k.sub.user, k.sub.left = nil, k.c.b.now() // the next one may attach at once: its command comes behind ours
	}
	b.mu.Unlock()
	if k.browser != nil {
		k.browser.close()
	}
	finished := func(err error) {
		if k.sub != nil {
			b.leave(k.sub, k)
		}
		k.gone()
		if done != nil {
			done(err)
		}
	}
	places := k.leaves()
	answer := countdown(len(places), finished)
	at := map[*destination]bool{} // where the message is that the application may have been at
	if cmd.Charge {
		for _, d := range places {
			at[d] = true
		}
	}
	if len(places) > 1 && cmd.Charge && cmd.Last == queue.UnknownLast {
		_, where, _ := k.oldest()
		at = map[*destination]bool{where: true}
	}
	for _, d := range places {
		d.removeReader(k)
		cmd.Charge = at[d]
		cmd.Consumer, cmd.Done = k.spec.ID, answer
		if !d.box.force(work{command: cmd}) {
			answer(nil)
		}
	}
}
