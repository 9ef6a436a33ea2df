package broker

import (
	"time"

	"github.com/nixiemq/nixie/internal/queue"
)

// The clock of a machine may be set, and a machine may sleep: then the clock shows more
// time than has passed for those who wait. Whoever waits for a time of day has to reckon
// anew how long that is, and a queue that was told a time which was wrong must not go on
// by it: its redeliveries would be late by as much.

const (
	// stepInterval is how often the clock is looked at.
	stepInterval = 10 * time.Second
	// leastStep is by how much it must have been set to matter.
	leastStep = time.Second
)

// watchClock has everybody look at the clock when it was set.
func (b *Broker) watchClock() {
	b.running.Go(func() {
		begin, ahead := b.o.Clock.Now(), time.Duration(0)
		for {
			wake, release := b.o.Clock.At(b.o.Clock.Now().Add(stepInterval))
			select {
			case <-wake:
			case <-b.ctx.Done():
				release()
				return
			}
			now := b.o.Clock.Now()
			is := now.Round(0).Sub(begin.Round(0)) - b.o.Clock.Since(begin)
			if step := is - ahead; step.Abs() >= leastStep {
				ahead = is
				b.o.Log.Warn("the clock was set, or the machine has slept", "by", step.Round(time.Millisecond))
				b.clockWasSet()
			}
		}
	})
}

// clockWasSet has everybody who waits for a time reckon anew.
func (b *Broker) clockWasSet() {
	b.mu.Lock()
	all := b.destinationsLocked()
	b.mu.Unlock()
	for _, d := range all {
		d.box.force(work{do: func() {
			d.rearm = true
			d.apply(queue.ClockSet{Now: d.b.now()})
		}})
	}
	if b.scheduler != nil {
		b.scheduler.box.force(work{do: func() {}, stopped: func(error) {}}) // it arms its timer in each round
	}
}
