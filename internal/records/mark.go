package records

import (
	"encoding/binary"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// A MarkID names a hand-out mark within its queue.
type MarkID uint64

func markRoom(positions []uint64) int { return 1 + (1+len(positions))*binary.MaxVarintLen64 }

// appendMark writes positions as differences, which are small in hand-out order.
func appendMark(v []byte, how message.HandOut, positions []uint64) []byte {
	v = append(v, byte(how))
	v = binary.AppendUvarint(v, uint64(len(positions)))
	last := uint64(0)
	for _, pos := range positions {
		v = binary.AppendVarint(v, int64(pos-last))
		last = pos
	}
	return v
}

// decodeMark gives each position of a mark to f.
func decodeMark(r *reader, f func(pos uint64, how message.HandOut)) bool {
	how := message.HandOut(r.byte())
	pos := uint64(0)
	for range r.length(1) {
		pos += uint64(r.varint())
		if r.bad {
			return false
		}
		f(pos, how)
	}
	return r.done()
}

// Marks reads the hand-out marks of a queue: for each position how it was handed
// out, by the mark with the highest id that names it, and the ids of all marks,
// in order.
func (r *Records) Marks(q QueueID) (map[uint64]message.HandOut, []MarkID, error) {
	lo := appendQueueKey(make([]byte, 0, keyBytes), false, kindMark, q)
	marks, ids := map[uint64]message.HandOut{}, []MarkID(nil)
	err := r.scan(lo, successor(lo), len(lo)+8, 0, func(k []byte, f *reader) bool {
		ids = append(ids, MarkID(uint64At(k, len(lo))))
		return decodeMark(f, func(pos uint64, how message.HandOut) { marks[pos] = how })
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read marks of queue %d: %w", q, err)
	}
	return marks, ids, nil
}
