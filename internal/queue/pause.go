package queue

// Pause stops the handing out, or lets it go on. What consumers have they keep, and may
// acknowledge or give back; messages come, expire and become due as ever. Pulls with a
// time-out end with nothing.
type Pause struct{ On bool }

func (Pause) command() {}

// pause stops the handing out, or lets it go on with this turn.
func (m *Machine) pause(on bool) {
	m.o.Paused = on
	for _, c := range m.consumers { // nobody is slow for having been given nothing
		if c.rateEnds = 0; !on && m.o.Slow.Rate > 0 && c.held.n > 0 {
			m.beginRate(c)
		}
	}
}

// handsOut reports whether anything may be handed out now, if a consumer has room.
func (m *Machine) handsOut() bool { return m.gathersUntil == 0 && !m.o.Paused }
