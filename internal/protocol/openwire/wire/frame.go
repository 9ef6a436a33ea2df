package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

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
	size, err := readSize(r)
	switch {
	case err != nil:
		return nil, err
	case size < 1:
		return nil, fmt.Errorf("frame of %d bytes: %w", size, message.ErrInvalid)
	case size > limit:
		return nil, fmt.Errorf("frame of %d bytes, the limit is %d: %w", size, limit, message.ErrOverLimit)
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

// readSize reads the size of a frame. From a bufio.Reader it does so without
// allocating.
func readSize(r io.Reader) (int64, error) {
	if br, ok := r.(*bufio.Reader); ok {
		head, err := br.Peek(4)
		if err != nil {
			if len(head) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		size := int64(int32(binary.BigEndian.Uint32(head)))
		_, err = br.Discard(4)
		return size, err
	}
	var head [4]byte
	_, err := io.ReadFull(r, head[:])
	return int64(int32(binary.BigEndian.Uint32(head[:]))), err
}
