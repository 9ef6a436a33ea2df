package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/nixiemq/nixie/internal/message"
)

// MaxFirstFrameBytes is the limit to give ReadFrame for a peer's first frame. A
// WireFormatInfo with all that is known is under 1 KiB.
const MaxFirstFrameBytes = 64 << 10

// firstStepBytes is how much ReadFrame allocates before anything of the frame
// has arrived.
const firstStepBytes = 64 << 10

// ReadFrame reads one frame from r and returns its body, without the size, in
// memory of its own. It allocates by what arrives: as much as the size says only
// up to 64 KiB, then twice as much as has arrived.
//
// A size below 1 is message.ErrInvalid, one above limit bytes
// message.ErrOverLimit. At the end of the stream the error is io.EOF, within a
// frame io.ErrUnexpectedEOF; other errors are r's own.
func ReadFrame(r io.Reader, limit int64) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int64(int32(binary.BigEndian.Uint32(head[:])))
	switch {
	case size < 1:
		return nil, fmt.Errorf("frame of %d bytes: %w", size, message.ErrInvalid)
	case size > limit:
		return nil, fmt.Errorf("frame of %d bytes, the limit is %d: %w", size, limit, message.ErrOverLimit)
	case size > math.MaxInt:
		return nil, fmt.Errorf("frame of %d bytes: %w", size, message.ErrOverLimit)
	}
	frame := make([]byte, min(size, firstStepBytes))
	for have := 0; ; {
		n, err := io.ReadFull(r, frame[have:])
		have += n
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if int64(have) == size {
			return frame, nil
		}
		grown := make([]byte, min(size, 2*int64(have)))
		copy(grown, frame)
		frame = grown
	}
}
