package records

// The sizes of an arena's blocks: they double from the first to the last. A
// block above keepBytes is not kept for the next batch.
const (
	firstBlockBytes = 4 << 10
	lastBlockBytes  = 256 << 10
	keepBytes       = 1 << 20
)

// An arena is the memory of a batch's keys and values: few allocations, and none
// once its batch is in use again. What was taken from it stays where it is until
// reset.
type arena struct{ block []byte }

// room gives an empty slice to append n bytes to, and then to give to take. One
// room at a time.
func (a *arena) room(n int) []byte {
	if cap(a.block)-len(a.block) < n {
		a.block = make([]byte, 0, max(n, min(max(2*cap(a.block), firstBlockBytes), lastBlockBytes)))
	}
	return a.block[len(a.block):]
}

// take keeps what was appended to the last room.
func (a *arena) take(b []byte) []byte {
	if len(a.block)+cap(b) == cap(a.block) { // else it outgrew the room, and has memory of its own
		a.block = a.block[:len(a.block)+len(b)]
	}
	return b[:len(b):len(b)]
}

// reset forgets all that was taken.
func (a *arena) reset() {
	if cap(a.block) > keepBytes {
		a.block = nil
	}
	a.block = a.block[:0]
}
