package queue

// A Gather lets a queue wait for consumers before it begins to hand out, so that
// message groups are spread over all of them and not bound to the first (ActiveMQ's
// consumersBeforeDispatchStarts and timeBeforeDispatchStarts). It waits anew whenever
// a consumer comes while there is none. The zero value waits for nothing.
type Gather struct {
	Consumers int   // so many, at the most for Wait
	Wait      int64 // milliseconds; 0 with Consumers: defaultWait
}

// defaultWait is ActiveMQ's wait for a number of consumers, in milliseconds.
const defaultWait = 1000

// gather notes that a consumer is here, among all that are.
func (m *Machine) gather() {
	g := m.o.Gather
	if len(m.consumers) == 1 && (g.Consumers > 0 || g.Wait > 0) {
		wait := g.Wait
		if wait == 0 {
			wait = defaultWait
		}
		m.gathersUntil = m.now + wait
	}
	if g.Consumers > 0 && len(m.consumers) >= g.Consumers {
		m.gathersUntil = 0
	}
}

// gathered ends the wait, if its time has passed or nobody is left to wait with.
func (m *Machine) gathered() {
	if m.gathersUntil <= m.now || len(m.consumers) == 0 {
		m.gathersUntil = 0
	}
}
