package queue

// A last-value queue keeps, of the messages that have the same value of a property
// (Options.LastValue), the newest alone: when one comes while another waits, that one
// goes (R-HQ-96). What consumers have stays theirs; given back, it goes where a
// newer one waits. Messages without the property, or with one that is
// neither text nor a whole number, and dead letters, are let alone
// (R-HQ-157).
//
// Which is the newest is known of what is in memory, so that such a queue has a large
// window. Of more than that the rest is looked at as it comes into the window.

// lastValueWindow is the window of a last-value queue that is given a smaller one.
const lastValueWindow = 100_000

const replacedText = "a newer message of the same key takes its place (last-value)"

// supersede looks at an item that has been put among those that wait: of two with one
// value the older one goes.
func (m *Machine) supersede(it *Item) {
	if m.o.LastValue == "" || m.lastValueOf(it) == "" {
		return
	}
	other := m.newest[it.value]
	switch {
	case other == nil:
		m.newest[it.value] = it
	case other == it:
	case other.Position < it.Position:
		m.newest[it.value] = it
		m.dropFor(other, replacedText)
	default:
		m.dropFor(it, replacedText)
	}
}

// lastValueOf is the value by which an item is compared; empty: it has none.
func (m *Machine) lastValueOf(it *Item) string {
	if it.valued {
		return it.value
	}
	it.valued = true
	if rests(it) {
		return ""
	}
	h, err := m.header(it)
	if err != nil {
		return "" // whoever gets it will fail to read it, and say so
	}
	if v, ok := m.o.Properties(h, m.o.LastValue); ok {
		it.value = v.Text()
	}
	return it.value
}

// outOfSight notes that an item does not wait in memory any more.
func (m *Machine) outOfSight(it *Item) {
	if it.value != "" && m.newest[it.value] == it {
		delete(m.newest, it.value)
	}
}
