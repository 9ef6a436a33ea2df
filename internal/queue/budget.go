package queue

// A selector may be as long as its client likes, and so may be what it looks at. So what
// consumers' selectors cost is counted, in steps, and bounded for each turn. A consumer
// whose share is used up looks at nothing more in the turn, and goes on in the next one
// from where it stopped: between them the queue does what else is asked of it. At least
// one message is judged in each turn. Nothing of it depends on the time.

const (
	// DefaultTurnSteps is what selectors may take of a turn; about 8 ms.
	DefaultTurnSteps = 8 << 20
	// turnShare is how many consumers that use up their share it takes to use up the turn.
	turnShare = 4
	// ReadSteps is what reading a message's headers and properties from the store costs.
	ReadSteps = 2048
)

// charge adds to what a consumer's selector has cost in this turn.
func (m *Machine) charge(c *Consumer, steps int) {
	c.steps += steps
	m.steps += steps
}

// exhausted reports whether a consumer's selector has used up what it may take of the
// turn, or those of all consumers together have.
func (m *Machine) exhausted(c *Consumer) bool {
	return m.steps >= m.o.TurnSteps || c.steps >= m.o.TurnSteps/turnShare
}

// stopHere notes whether there is more to do in another turn.
func (m *Machine) stopHere() {
	m.unfinished = false
	if m.steps < m.o.TurnSteps/turnShare {
		return
	}
	for _, c := range m.consumers {
		if c.Selector != nil && m.exhausted(c) {
			m.unfinished = true
			return
		}
	}
}

// renew gives selectors what they may take of the next turn.
func (m *Machine) renew() {
	if m.steps == 0 {
		return
	}
	m.steps = 0
	for _, c := range m.consumers {
		c.steps = 0
	}
}
