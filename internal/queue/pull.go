package queue

import "slices"

// A pull is a consumer's wish for one message.
type pull struct {
	consumer *Consumer
	until    int64 // 0: for ever
}

// pull notes a wish. A consumer with a window does not wait for the answer: what it
// is to have is on its way (R-CLIENT-51).
func (m *Machine) pull(c Pull) {
	k, err := m.consumer(c.Consumer)
	switch {
	case err == nil && c.Stop:
		m.endWishes(k)
	case err == nil && k.Prefetch == 0:
		until := c.Until
		if until < 0 {
			until = m.now
		}
		m.wake(k)
		k.pulls++
		m.pulls = append(m.pulls, pull{k, until})
	}
	m.answer(c.Done, err)
}

// endWishes forgets what a consumer has asked for.
func (m *Machine) endWishes(k *Consumer) {
	k.pulls = 0
	m.pulls = slices.DeleteFunc(m.pulls, func(p pull) bool { return p.consumer == k })
}

// granted takes the oldest wish of a consumer off the list.
func (m *Machine) granted(k *Consumer) {
	k.pulls--
	if i := slices.IndexFunc(m.pulls, func(p pull) bool { return p.consumer == k }); i >= 0 {
		m.pulls = slices.Delete(m.pulls, i, i+1)
	}
}

// endPulls answers the wishes whose time has passed with "nothing", unless a page
// is on its way that may serve them, or the consumer has not been shown everything.
func (m *Machine) endPulls() {
	if len(m.pulls) == 0 || m.behind() && !m.o.Paused || slices.ContainsFunc(m.lanes[:], func(l *lane) bool { return l != nil && l.paging }) {
		return
	}
	m.pulls = slices.DeleteFunc(m.pulls, func(p pull) bool {
		if p.until == 0 || p.until > m.now || m.mayFind(p.consumer) {
			return false
		}
		p.consumer.pulls--
		m.emit(Effect{Kind: Nothing, Consumer: p.consumer})
		return true
	})
}

// mayFind reports whether there may be something for a consumer at which it has not
// looked yet.
func (m *Machine) mayFind(c *Consumer) bool {
	if !c.room() || !m.exclusively(c) || !m.handsOut() {
		return false
	}
	return c.Selector != nil && m.exhausted(c) || slices.ContainsFunc(m.lanes[:], func(l *lane) bool { return l != nil && l.hides(c) })
}
