package queue

import (
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

// count adds a failed attempt to an item and a line to its story.
func (m *Machine) count(it *Item, f message.Failure, uncertain bool) {
	it.Failures++
	m.stats.Failed++
	it.Suspect = message.NotHandedOut
	m.line(it, f, true, uncertain)
	m.emit(Effect{Kind: Tell, Event: FailureCounted, Item: it, Text: f.Cause.String()})
}

// line appends a line to an item's story.
func (m *Machine) line(it *Item, f message.Failure, counted, uncertain bool) {
	it.Attempts++
	if it.Story == 0 {
		it.Story = it.Position
	}
	it.last = &message.Attempt{
		Number:    int(it.Attempts),
		HandedOut: it.handedOut,
		Ended:     m.now,
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
	drop := 0
	if n := int(it.Attempts) - lastLines; n > firstLines {
		drop = n
	}
	m.save(it, drop)
}

// amend adds the words of a later signal to the newest line.
func (m *Machine) amend(it *Item, f message.Failure) {
	if it.last == nil {
		return
	}
	line := *it.last // the old one may be on its way to the store
	if f.Cause == message.Poison || line.Cause == message.NoCause {
		line.Cause = f.Cause
	}
	if f.Text != "" && f.Text != line.Text {
		if line.Text != "" {
			line.Text += "; "
		}
		line.Text += f.Text
	}
	it.last = &line
	m.save(it, 0)
}

// decided writes the decision into the newest line.
func (m *Machine) decided(it *Item, d redelivery.Decision) {
	if it.last == nil {
		return
	}
	line := *it.last
	line.Decision, line.Policy, line.NextDue = d.Action.String(), d.By, d.Due
	it.last = &line
	m.save(it, 0)
}

// save has the newest line and the counts of an item written.
func (m *Machine) save(it *Item, drop int) {
	if !it.Durable {
		it.keepLine(drop)
		return
	}
	m.emit(Effect{Kind: SaveAttempt, Item: it, Lane: it.lane, Attempt: it.last, Number: uint64(drop)})
}

// keepLine keeps the story of an item that will not outlive the process in memory.
func (it *Item) keepLine(drop int) {
	if n := len(it.Lines); n > 0 && it.Lines[n-1].Number == it.last.Number {
		it.Lines[n-1] = *it.last
		return
	}
	it.Lines = append(it.Lines, *it.last)
	if drop > 0 && len(it.Lines) > firstLines+lastLines {
		it.Lines = append(it.Lines[:firstLines], it.Lines[firstLines+1:]...)
	}
}

// saveCounts has the counts of an item written.
func (m *Machine) saveCounts(it *Item) {
	if it.Durable {
		m.emit(Effect{Kind: SaveCounts, Item: it, Lane: it.lane})
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
