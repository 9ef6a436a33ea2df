package broker

import (
	"fmt"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// A FullAction is what becomes of a send for which there is no room.
type FullAction uint8

// The actions there are.
const (
	// AsElsewhere: where the destination is full the producer waits; where the disk is,
	// Options.BlockWhenFull says what happens.
	AsElsewhere FullAction = iota
	Wait                   // until there is room
	Refuse                 // with message.ErrOverLimit
	Drop                   // the message is discarded; where the disk is full: as AsElsewhere
)

// A Flow bounds what producers may put into one destination. What the broker itself
// brings there, such as dead letters, is never stopped, but it counts. The zero value
// is no bound.
type Flow struct {
	// MaxBytes and MaxMessages are what may lie in the destination before its producers
	// are stopped (memoryLimit, max-size-bytes); 0: no limit. Of a queue everything
	// counts; of a topic what its slowest consumer has not been handed.
	MaxBytes, MaxMessages int64
	// DurableToo counts a topic's durable subscriptions too, with all that they have.
	DurableToo bool
	// OnFull is what becomes of a send then, and where the disk is full.
	OnFull FullAction
	// FailAfter is how long a producer waits before its send is refused all the same;
	// 0: without end, or for the disk as Options.FailAfter says.
	FailAfter time.Duration
	// StorePercent is the share of the store's limit at which producers of persistent
	// messages are stopped (storeUsageHighWaterMark); 0 and 100: at the limit itself.
	StorePercent float64
	// WarnEvery is how often it is told that a producer still waits; 0: never
	// (blockedProducerWarningInterval).
	WarnEvery time.Duration
}

// DefaultWarnEvery is how often it is told that a producer waits where nothing else is
// configured, as in ActiveMQ.
const DefaultWarnEvery = 30 * time.Second

// wholeStore is the StorePercent at which the store's own limit comes first.
const wholeStore = 100

// A fill is how full everything is that a send adds to.
type fill struct {
	bytes, messages int64   // in the destination, and on their way there
	disk            error   // why nothing more may be stored; nil: it may, or nothing is to be
	storePercent    float64 // what is used of what the store may use; 0: there is no limit
}

// A verdict is what becomes of a send.
type verdict uint8

// The verdicts, the mildest first.
const (
	letIn verdict = iota
	dropIt
	holdIt
	refuseIt
)

// A judge knows what holds for a send besides the Flow of its destination.
type judge struct {
	blocks    bool          // Options.BlockWhenFull
	failAfter time.Duration // Options.FailAfter
	waited    time.Duration // how long the send has waited already
	// over lets the send in above a destination's limit: its connection must be read on.
	// For the disk it may not wait either, and is refused.
	over bool
	// held says that a transaction was let to have it already: now it waits at the most.
	held bool
}

// decide decides about a send to name, and says why it may not go in. refuseAt is when
// one that is held is refused, counted from when it came; 0: never. It is the one
// place for this decision, and has no other input.
//
// Source: ActiveMQ's Queue.send, Topic.send and BaseDestination.waitForSpace: what is
// there is compared, not what it would become, so one message of any size fits.
func (j judge) decide(name message.Destination, f *Flow, is fill) (v verdict, refuseAt time.Duration, why error) {
	if why = f.full(name, is); why != nil && !j.over {
		switch {
		case f.OnFull != Drop && f.OnFull != Refuse:
			return j.hold(f.FailAfter, why)
		case j.held: // and goes in
		case f.OnFull == Drop:
			return dropIt, 0, why
		default:
			return refuseIt, 0, why
		}
	}
	if why = f.noStore(name, is); why == nil {
		return letIn, 0, nil
	}
	waits := f.OnFull == Wait || f.OnFull != Refuse && j.blocks
	switch {
	case !waits && j.held:
		return letIn, 0, nil
	case !waits || j.over:
		return refuseIt, 0, why
	}
	after := f.FailAfter
	if after == 0 {
		after = j.failAfter
	}
	return j.hold(after, why)
}

// hold holds a send until it has waited too long.
func (j judge) hold(after time.Duration, why error) (verdict, time.Duration, error) {
	if after > 0 && j.waited >= after {
		return refuseIt, 0, fmt.Errorf("the producer has waited %v: %w", after, why)
	}
	return holdIt, after, why
}

// full says which limit of the destination is reached; nil: none.
func (f *Flow) full(name message.Destination, is fill) error {
	switch {
	case f.overBytes(is):
		return fmt.Errorf("%s has %d bytes of messages, and its producers are stopped at %d: consume messages, or raise its limit: %w",
			name, is.bytes, f.MaxBytes, message.ErrOverLimit)
	case f.overMessages(is):
		return fmt.Errorf("%s has %d messages, and its producers are stopped at %d: consume messages, or raise its limit: %w",
			name, is.messages, f.MaxMessages, message.ErrOverLimit)
	}
	return nil
}

func (f *Flow) overBytes(is fill) bool    { return f.MaxBytes > 0 && is.bytes >= f.MaxBytes }
func (f *Flow) overMessages(is fill) bool { return f.MaxMessages > 0 && is.messages >= f.MaxMessages }

// noStore says why nothing more may be stored in the destination; nil: it may.
func (f *Flow) noStore(name message.Destination, is fill) error {
	if is.disk != nil {
		return is.disk
	}
	if f.StorePercent > 0 && f.StorePercent < wholeStore && is.storePercent >= f.StorePercent {
		return fmt.Errorf("the store uses %.0f %% of its limit, and producers of %s are stopped at %.0f %% (storeUsageHighWaterMark): consume messages, or raise the limit: %w",
			is.storePercent, name, f.StorePercent, message.ErrOverLimit)
	}
	return nil
}
