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

// slowShare is the part of its window, in percent, down to which a consumer has to
// come to be no longer slow, as in ActiveMQ's PrefetchSubscription.isLowWaterMark.
const slowShare = 40

// watchSlow tells of each consumer that came to have a full window while items
// wait. It is told once, until the consumer has caught up.
func (m *Machine) watchSlow() {
	if !m.o.Tells.Slow {
		return
	}
	behind := false
	for _, l := range m.lanes {
		behind = behind || l != nil && (l.waiting.n > 0 || l.returned.n > 0 || l.beyond > 0)
	}
	for _, c := range m.consumers {
		switch {
		case c.Prefetch == 0:
		case c.slow:
			c.slow = c.held.n*100 > c.Prefetch*slowShare
		case behind && !c.room():
			c.slow = true
			m.emit(Effect{Kind: Tell, Event: ConsumerSlow, Consumer: c})
		}
	}
}
