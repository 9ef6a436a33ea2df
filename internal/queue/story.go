package queue

import (
	"strings"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

// Of a long story the first and the last lines are kept.
const (
	firstLines = 10
	lastLines  = 90
)

// signal takes in that the present attempt of an item ended. One attempt is one
// failure: what tells of an attempt that has ended already only adds its words.
// It returns whether the failure was counted now.
func (m *Machine) signal(it *Item, f message.Failure) bool {
	switch {
	case it.attempt == charged,
		it.attempt == rolledBack && (f.Cause == message.Recover || f.Cause == message.Poison || f.Cause == message.Closed),
		it.attempt == announced && f.Cause == message.Closed:
		m.amend(it, f)
		return false
	}
	m.count(it, f, false)
	return true
}

// count adds a failed attempt to an item and a line to its story. uncertain says
// that nobody saw it: a later signal tells of it.
func (m *Machine) count(it *Item, f message.Failure, uncertain bool) {
	it.fails()
	m.stats.Failed++
	m.write(it, f, true, uncertain)
	m.tell(FailureCounted, it, f.Cause.String())
}

// fails counts a failure: now it is known what became of the hand-out.
func (it *Item) fails() {
	it.Failures++
	it.Suspect = message.NotHandedOut
}

// write appends a line to an item's story.
func (m *Machine) write(it *Item, f message.Failure, counted, uncertain bool) {
	drop := it.add(f, counted, uncertain)
	it.lineTurn = 0
	m.changed(it)
	m.save(it, drop)
}

// add makes the newest line of an item's story, and tells which older one is dropped
// for it; 0: none.
func (it *Item) add(f message.Failure, counted, uncertain bool) (drop int) {
	it.Attempts++
	if it.Story == 0 {
		it.Story = it.Position
	}
	it.line = &message.Attempt{
		Number:    int(it.Attempts),
		HandedOut: it.handedOut,
		Ended:     f.At,
		Cause:     f.Cause,
		Text:      f.Text,
		Consumer:  f.Consumer,
		ClientID:  f.ClientID,
		Address:   f.Address,
		Protocol:  f.Protocol,
		Counted:   counted,
		Decision:  "client", // the client redelivers it by itself, until it says otherwise
		Redeliver: it.told,
		Uncertain: uncertain,
	}
	if n := int(it.Attempts) - lastLines; n > firstLines {
		drop = n
	}
	return drop
}

// amend adds the words of a later signal to the newest line.
func (m *Machine) amend(it *Item, f message.Failure) {
	news := f.Text != "" && it.line != nil && !strings.HasSuffix(it.line.Text, f.Text)
	if it.line == nil || !news && f.Cause != message.Poison {
		return
	}
	line := m.newestLine(it)
	if f.Cause == message.Poison {
		line.Cause = f.Cause
	}
	if news && line.Text != "" {
		line.Text += "; "
	}
	if news {
		line.Text += f.Text
	}
	m.save(it, 0)
}

// decided writes the decision into the newest line of the delivery that ended.
func (m *Machine) decided(it *Item, d redelivery.Decision) {
	line := m.newestLine(it)
	if line == nil {
		return
	}
	line.Decision, line.Policy, line.NextDue = d.Action.String(), d.By, d.Due
	m.save(it, 0)
}

// newestLine gets the newest line of the present delivery, to be changed. One that
// an earlier turn saved may be on its way to the store: a copy takes its place.
func (m *Machine) newestLine(it *Item) *message.Attempt {
	if it.line != nil && it.lineTurn != 0 && it.lineTurn != m.turns {
		line := *it.line
		it.line, it.lineTurn = &line, 0
	}
	return it.line
}

// save has the newest line of an item written, and line number drop, if not 0,
// dropped. A line that this turn writes already is read when the turn has ended.
func (m *Machine) save(it *Item, drop int) {
	switch {
	case !it.Durable:
		it.keepLine(drop)
	case it.lineTurn != m.turns:
		it.lineTurn = m.turns
		m.emit(Effect{Kind: SaveAttempt, Item: it, Lane: it.lane, Attempt: it.line, Number: uint64(drop)})
	}
}

// keepLine keeps the story of an item that will not outlive the process in memory.
func (it *Item) keepLine(drop int) {
	if n := len(it.Lines); n > 0 && it.Lines[n-1].Number == it.line.Number {
		it.Lines[n-1] = *it.line
		return
	}
	it.Lines = append(it.Lines, *it.line)
	if drop > 0 && len(it.Lines) > firstLines+lastLines {
		it.Lines = append(it.Lines[:firstLines], it.Lines[firstLines+1:]...)
	}
}

// failure describes a failed attempt of the consumer that has the item.
func (m *Machine) failure(it *Item, cause message.Cause, text string) message.Failure {
	f := message.Failure{Cause: cause, Text: text, At: m.now}
	if c := it.consumer; c != nil {
		f.Consumer, f.ClientID, f.Address, f.Protocol = c.ID, c.ClientID, c.Address, c.Protocol
	}
	return f
}
