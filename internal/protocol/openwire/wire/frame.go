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
// A size below 1 is message.ErrInvalid, one above limit bytes a *TooLarge, or
// ErrInvalid where it is how another protocol begins. At the end of the stream the
// error is io.EOF, within a frame io.ErrUnexpectedEOF; other errors are r's own.
func ReadFrame(r io.Reader, limit int64) ([]byte, error) {
	size, err := readSize(r)
	switch {
	case err != nil:
		return nil, err
	case size < 1:
		return nil, fmt.Errorf("frame of %d bytes: %w", size, message.ErrInvalid)
	case size > limit && stranger(uint32(size)) != "":
		return nil, fmt.Errorf("what came begins like %s, and is no OpenWire: %w", stranger(uint32(size)), message.ErrInvalid)
	case size > limit:
		return nil, &TooLarge{Size: size, Limit: limit}
	}
	frame := make([]byte, min(size, firstStepBytes))
	for have := 0; ; {
		n, err := io.ReadFull(r, frame[have:])
		have += n
		if err != nil {
			return nil, endWithin(err, true)
		}
		if int64(have) == size {
			return frame, nil
		}
		grown := make([]byte, min(size, 2*int64(have)))
		copy(grown, frame)
		frame = grown
	}
}

// Speaks names the protocol of a peer by the first bytes that it sends, OpenWire among
// them; "" if none is known that begins so.
func Speaks(first []byte) string {
	if len(first) <= SizeBytes {
		return ""
	}
	size := binary.BigEndian.Uint32(first)
	if size <= MaxFirstFrameBytes && first[SizeBytes] == CodeWireFormatInfo {
		return "OpenWire"
	}
	return stranger(size)
}

// TooLarge is the error of a frame above the limit, of which nothing but its size has
// been read. It is message.ErrOverLimit.
type TooLarge struct{ Size, Limit int64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("frame of %d bytes, the limit is %d (wireFormat.maxFrameSize, the smaller one of client and broker): %v", e.Size, e.Limit, message.ErrOverLimit)
}

// Unwrap makes it message.ErrOverLimit.
func (e *TooLarge) Unwrap() error { return message.ErrOverLimit }

// stranger names the protocol whose first four bytes were taken for a size, "" if none
// is known that begins so: who comes with the wrong URL, or to the wrong port, is to
// read that, and not of a huge frame.
func stranger(size uint32) string {
	switch start := string(binary.BigEndian.AppendUint32(nil, size)); start {
	case "GET ", "HEAD", "POST", "PUT ", "HTTP":
		return "HTTP"
	case "AMQP":
		return start
	case "CONN", "STOM":
		return "STOMP"
	case "HORN":
		return "HornetQ's core protocol"
	case "ARTE":
		return "Artemis' core protocol"
	}
	switch {
	case size>>16 == 0x1603: // a record of a handshake
		return "TLS (an ssl:// URL, where tcp:// is served)"
	case size>>24 == 0x10 && (size&0xffff == 4 || size&0xffff == 6): // CONNECT, and the length of MQTT's name
		return "MQTT"
	}
	return ""
}

// SizeBytes is the length of the size in front of a frame.
const SizeBytes = 4

// PeekFrame waits for a frame of which r's buffer can hold the whole, and returns its
// body in r's memory: it is good until r is used again, and remains to be discarded
// with the SizeBytes before it. whole is false for a larger one, and for a size that
// ReadFrame refuses: that is what is left to do. Errors are as ReadFrame's.
func PeekFrame(r *bufio.Reader, limit int64) (frame []byte, whole bool, err error) {
	head, err := r.Peek(SizeBytes)
	if err != nil {
		return nil, false, endWithin(err, len(head) > 0)
	}
	size := int64(int32(binary.BigEndian.Uint32(head)))
	if size < 1 || size > limit || size > int64(r.Size()-SizeBytes) {
		return nil, false, nil
	}
	frame, err = r.Peek(SizeBytes + int(size))
	if err != nil {
		return nil, false, endWithin(err, true)
	}
	return frame[SizeBytes:], true, nil
}

// endWithin is the error of the end of the stream, which is another one within a
// frame.
func endWithin(err error, within bool) error {
	if within && errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readSize reads the size of a frame. From a bufio.Reader it does so without
// allocating.
func readSize(r io.Reader) (int64, error) {
	if br, ok := r.(*bufio.Reader); ok {
		head, err := br.Peek(SizeBytes)
		if err != nil {
			return 0, endWithin(err, len(head) > 0)
		}
		size := int64(int32(binary.BigEndian.Uint32(head)))
		_, err = br.Discard(SizeBytes)
		return size, err
	}
	var head [SizeBytes]byte
	_, err := io.ReadFull(r, head[:])
	return int64(int32(binary.BigEndian.Uint32(head[:]))), err
}
