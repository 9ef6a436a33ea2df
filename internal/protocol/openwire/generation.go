package openwire

import "sync/atomic"

// A generation tells the connections of one client apart that follow each other
// in a fail-over. A message may be dispatched on the old connection and again on
// the new one while an acknowledgement of its first dispatch is still to come: the
// client replays it. Both dispatches have the same message id; so that the two are
// not confounded (R-BRK-11, R-CLIENT-62), the generation rides in the upper bits
// of the brokerSequenceId, which clients repeat in what they acknowledge and in
// RemoveInfo. 0 is the first connection of a client: its ids are the positions
// themselves. Later generations are larger, as Java takes the largest for the last
// that was delivered.
type generation uint64

const (
	positionBits    = 42 // 4.4 million million messages; positions beyond go without a generation
	generationBits  = 63 - positionBits
	generationMask  = 1<<generationBits - 1
	generationEvery = 16 // milliseconds; they wrap after nine hours
)

// generations hands them out: no two are the same for hours, after a restart of
// the broker as well. It is safe for concurrent use.
type generations struct{ last atomic.Int64 }

// next is a generation for a client that comes back at now (Unix milliseconds).
func (s *generations) next(now int64) generation {
	for {
		last := s.last.Load()
		n := max(now/generationEvery, last+1)
		if n&generationMask == 0 {
			n++
		}
		if s.last.CompareAndSwap(last, n) {
			return generation(n & generationMask)
		}
	}
}

// sequence is the brokerSequenceId for the message at a position.
func (g generation) sequence(position uint64) int64 {
	if position >= 1<<positionBits {
		return int64(position)
	}
	return int64(uint64(g)<<positionBits | position)
}

// position takes a brokerSequenceId that a client sends apart. ours is false for
// that of an earlier connection. What is not above 0 stands for itself.
func (g generation) position(sequence int64) (position int64, ours bool) {
	if sequence <= 0 {
		return sequence, true
	}
	return sequence & (1<<positionBits - 1), generation(sequence>>positionBits) == g
}
