package queue

// consumed takes leave of an item whose consumer is done with it.
func (m *Machine) consumed(it *Item) {
	if m.o.Tells.Consumed {
		m.tell(ItemConsumed, it, "")
	}
	m.gone(it)
}

// arrived tells of an item that came in, to those who asked.
func (m *Machine) arrived(it *Item) {
	if m.o.Tells.Arrived {
		m.tell(ItemArrived, it, "")
	}
	if m.o.Tells.Lonely && !it.Persistent && len(m.consumers) == 0 {
		m.tell(ItemLonely, it, "")
	}
}
