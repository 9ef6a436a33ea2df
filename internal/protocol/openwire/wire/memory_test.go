package wire

import (
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

// TestDecodeBoundsMemory decodes the frames that yield the most memory for their
// length, and wants no more than the fuzz test allows.
func TestDecodeBoundsMemory(t *testing.T) {
	nulls := &DataArrayResponse{Data: make([]DataStructure, 32767)}
	arrays := &DataArrayResponse{}
	for range 20 {
		arrays.Data = append(arrays.Data, &DataArrayResponse{Data: make([]DataStructure, 10_000)})
	}
	messages, stacks := &DataArrayResponse{}, &DataArrayResponse{}
	for range 2000 {
		messages.Data = append(messages.Data, &Message{Kind: message.PlainBody})
		stacks.Data = append(stacks.Data, &ExceptionResponse{Exception: &Throwable{Stack: make([]StackElement, 20)}})
	}
	tests := map[string]DataStructure{"nulls": nulls, "arrays": arrays, "messages": messages, "stacks": stacks}
	for name, ds := range tests {
		for _, s := range []Settings{loose, tight, looseCache, tightCache} {
			frame := body(t, s, ds)
			n := allocated(func() {
				d, _ := pair(s)
				if _, err := d.Decode(frame); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			if most := uint64(1<<16 + 256*len(frame)); n > most {
				t.Errorf("%s, tight %t: %d bytes allocated for a frame of %d", name, s.Tight, n, len(frame))
			}
		}
	}
}
