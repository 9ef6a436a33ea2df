package broker

import (
	"context"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/queue"
	"github.com/nixiemq/nixie/internal/redelivery"
	"github.com/nixiemq/nixie/internal/selector"
)

// A Selection says which messages of a place someone means: those that are there
// when the call comes and fit all that is set.
type Selection struct {
	IDs      []string // nil: whatever the id
	Selector string   // as JMS has it; empty: all
	Max      int      // at the most, the oldest first; 0: no bound
	Dry      bool     // only count what would be done
}

// An Outcome is what became of the messages that a Selection means.
type Outcome struct {
	Taken int // moved or removed; of a dry run, those that would be
	Out   int // that consumers or open transactions have: they stay (R-EDGE-51)
	Left  int // that have no place to go to: they stay
}

// Purge removes messages that no consumer has, also those that wait for their retry
// (C07). On an error the Outcome tells how far it came.
func (b *Broker) Purge(ctx context.Context, from Place, what Selection) (Outcome, error) {
	return b.takeOut(ctx, from, what, nil, queue.Extract{Purge: true})
}

// Move moves messages that no consumer has to a queue, or to a topic's durable
// subscriptions, each in one batch (R-JMX-01, R-EDGE-11). They can be had there at
// once, with a failure count that begins anew; an expiration is kept. A dead letter
// stays one, so that it can be redriven from there.
//
// Errors: ErrInvalid for a target that names no single permanent destination, or
// the place itself; ErrState for a topic that nobody subscribes to durably.
func (b *Broker) Move(ctx context.Context, from Place, to message.Destination, what Selection) (Outcome, error) {
	if err := b.mayHold(to, from, "move"); err != nil {
		return Outcome{}, err
	}
	d, err := b.find(from)
	if err != nil {
		return Outcome{}, err
	}
	move := queue.Move{Target: to, ByHand: true, ToWork: !b.forDeadLetters(to)}
	return b.takeOut(ctx, from, what, nil, queue.Extract{Target: func(it *queue.Item) (queue.Move, bool) {
		return move, d.keptAt(to, it)
	}})
}

// mayHold says why messages of a place cannot be moved or copied (verb) to a
// destination; nil: they can.
func (b *Broker) mayHold(to message.Destination, from Place, verb string) error {
	switch {
	case to.IsComposite(), to.IsPattern(), to.IsZero(), to.Name == "", to.IsTemporary(), to.IsAdvisory():
		return fmt.Errorf("cannot %s to %q: it names no single queue or topic: %w", verb, to, message.ErrInvalid)
	case to == from.Queue:
		return fmt.Errorf("cannot %s from %s to itself: %w", verb, to, message.ErrInvalid)
	case !b.takesBack(to) && !b.interceptors.Load().apply(to):
		return fmt.Errorf("cannot %s to %s: nobody subscribes to it durably, so nothing would be kept: %w", verb, to, message.ErrState)
	}
	return nil
}

// keptAt reports whether anyone stores an item that is moved to a destination which
// may hand it on.
func (d *destination) keptAt(to message.Destination, it *queue.Item) bool {
	if to.IsQueue() && !d.b.interceptors.Load().handsOn(to) {
		return true
	}
	header, err := d.headerOf(it)
	if err != nil {
		return false
	}
	copies, err := d.b.keeps(readdressed(header, to))
	return err == nil && len(copies) > 0
}

// Redrive brings dead letters back to where they failed, each in one batch; those
// that have no place to go back to are left. Messages of the place that are no dead
// letters are not meant. ErrState where the place is no dead letter queue at all:
// it has no dead letter, and no policy sends any there (C18).
//
// What is redriven is persistent and does not expire (R-JMX-02).
func (b *Broker) Redrive(ctx context.Context, from Place, what Selection) (Outcome, error) {
	return b.redrive(ctx, from, what, queue.Move{Redrive: true})
}

// RedriveAsSent is Redrive with the delivery mode that the message was sent with, and
// with its time to live, which begins anew.
func (b *Broker) RedriveAsSent(ctx context.Context, from Place, what Selection) (Outcome, error) {
	return b.redrive(ctx, from, what, queue.Move{Redrive: true, AsSent: true})
}

func (b *Broker) redrive(ctx context.Context, from Place, what Selection, move queue.Move) (Outcome, error) {
	d, err := b.find(from)
	if err != nil {
		return Outcome{}, err
	}
	dead := func(it *queue.Item) bool { return IsDeadLetter(&it.Entry) }
	seen := false
	o, err := b.takeOut(ctx, from, what, func(it *queue.Item) bool { seen = seen || dead(it); return dead(it) },
		queue.Extract{Target: func(it *queue.Item) (queue.Move, bool) {
			m := move
			m.Target = it.Overlay.OriginalDestination
			return m, m.Target != d.name && b.takesHome(it.Overlay)
		}})
	if err == nil && !seen && !b.forDeadLetters(d.name) {
		err = fmt.Errorf("%s is no dead letter queue: none of its messages is a dead letter, and no policy sends any there: %w", from, message.ErrState)
	}
	return o, err
}

// IsDeadLetter reports whether an entry came where it is because it failed or
// expired elsewhere. One that was brought back is none any more.
func IsDeadLetter(e *message.Entry) bool { return queue.IsDeadLetter(e) }

// forDeadLetters reports whether a destination is declared to be a dead letter queue, or
// dead letters of what there is now would go there.
func (b *Broker) forDeadLetters(name message.Destination) bool {
	return b.policy(name).Rules.DeadLetterQueue || b.DeadLetterQueues()[name]
}

// DeadLetterQueues are the destinations that dead letters of what there is now would go
// to, those of others than themselves, and the queues that are declared to be for them.
func (b *Broker) DeadLetterQueues() map[message.Destination]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[message.Destination]bool{}
	add := func(d *destination) {
		r := d.rulesNow()
		if target := r.DeadLetter.Target(d.options.Destination, d.options.Subscription); target != d.name {
			all[target] = true
		}
		if r.Expiry.Kind != redelivery.UnsetStrategy {
			if target := r.Expiry.Target(d.options.Destination, d.options.Subscription); target != d.name {
				all[target] = true
			}
		}
		if d.sub == nil && r.DeadLetterQueue {
			all[d.name] = true
		}
	}
	for _, d := range b.queues {
		add(d)
	}
	for _, s := range b.subscriptions {
		if s.durable {
			add(s.d)
		}
	}
	return all
}

// takesBack reports whether a dead letter that goes back to a destination is kept
// there: not by a topic without durable subscriptions, nor by a temporary queue
// that is gone.
func (b *Broker) takesBack(to message.Destination) bool {
	switch to.Kind {
	case message.Queue:
		return true
	case message.TempQueue:
		return b.known(to) != nil
	}
	for _, s := range b.route(to, "") {
		if s.durable {
			return true
		}
	}
	return false
}

// takesHome reports whether a dead letter that goes back to where it failed is kept
// there.
func (b *Broker) takesHome(o *message.Overlay) bool {
	home := o.OriginalDestination
	if !home.IsTopic() {
		return b.takesBack(home)
	}
	all, err := b.direct(home)
	return err == nil && len(gaveUp(all, o.Added)) > 0
}

// takeOut takes messages out that a selection means and of which also says that
// they may be; nil: all may.
func (b *Broker) takeOut(ctx context.Context, from Place, what Selection, also func(*queue.Item) bool, e queue.Extract) (Outcome, error) {
	d, err := b.find(from)
	if err != nil {
		return Outcome{}, err
	}
	w, err := d.wanted(what)
	if err != nil {
		return Outcome{}, err
	}
	w.also = also
	e.Dry = what.Dry
	e.Wants = w.wants
	o, err := d.extract(ctx, e, what.Max)
	if err == nil {
		err = w.err
	}
	return o, err
}

// wanted is a selection among the messages of d.
func (d *destination) wanted(what Selection) (*wanted, error) {
	sel, err := parseSelector(what.Selector)
	return &wanted{d: d, ids: setOf(what.IDs), selector: sel}, err
}

// wanted decides which items a selection means. It is used by the goroutine of d,
// and read when that has answered.
type wanted struct {
	d        *destination
	ids      map[string]bool
	also     func(*queue.Item) bool
	selector *selector.Selector
	err      error // of the first message that could not be read; it is left
}

func (w *wanted) wants(it *queue.Item) (meant bool, steps int) {
	if w.also != nil && !w.also(it) {
		return false, 1
	}
	return w.fits(it.ID, it.Counter(), func() (*message.Message, error) { return w.d.headerOf(it) })
}

// fits is wants by what the selection itself says; counter is what a client would be
// told at a delivery now.
func (w *wanted) fits(id message.ID, counter int, header func() (*message.Message, error)) (meant bool, steps int) {
	if w.ids != nil && !w.ids[id.String()] {
		return false, 1
	}
	if w.selector == nil {
		return true, 1
	}
	m, err := header()
	if err != nil {
		if w.err == nil {
			w.err = fmt.Errorf("message %s stays: %w", id, err)
		}
		return false, queue.ReadSteps
	}
	l := w.d.b.lookup(m, counter)
	meant = w.selector.Matches(l)
	return meant, queue.ReadSteps + l.Steps
}

func setOf(ids []string) map[string]bool {
	if ids == nil {
		return nil
	}
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
