package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// An Encoder encodes the frames that are sent to one peer on one connection.
// Frames must reach the peer in the order in which they were encoded. It is not
// safe for concurrent use.
type Encoder struct {
	w        writer
	maxFrame int64
	guess    [128]int16 // bytes of the boolean stream of the last frame of a type
}

// NewEncoder returns an encoder for the first frame of a connection, a
// WireFormatInfo, which is loose and not cached (OpenWire 2).
func NewEncoder() *Encoder { return &Encoder{w: writer{version: MaxVersion}} }

// Negotiated switches the encoder to what the peers have agreed on, with an
// empty cache.
func (e *Encoder) Negotiated(s Settings) {
	e.w = writer{version: s.Version, tight: s.Tight, cacheOn: s.Cache, stackTrace: s.StackTrace}
	e.maxFrame = s.MaxFrame
	if s.Cache {
		e.w.cache.reset(s.CacheSize)
	}
}

// Append appends a whole frame with its size to dst; nil is the null frame.
// Where ds cannot be written, dst comes back as it was, and the encoder goes on
// as if it had not been asked: too long a string or frame is
// message.ErrOverLimit, a type the version does not have message.ErrInvalid.
func (e *Encoder) Append(dst []byte, ds DataStructure) ([]byte, error) {
	w, start := &e.w, len(dst)
	w.err, w.bits, w.cur, w.curN = nil, w.bits[:0], 0, 0
	if w.cacheOn {
		w.cache.begin()
	}
	w.dst = append(dst, 0, 0, 0, 0)
	if ds == nil {
		w.uint8(CodeNull)
	} else {
		e.object(ds)
	}
	size := len(w.dst) - start - 4
	if e.maxFrame > 0 && int64(size) > e.maxFrame || int64(size) > maxInt32 {
		w.fail(message.ErrOverLimit, "frame of %d bytes, the limit is %d (wireFormat.maxFrameSize, the smaller one of client and broker)", size, e.maxFrame)
	}
	out := w.dst
	w.dst = nil
	if w.err != nil {
		if w.cacheOn {
			w.cache.rollback()
		}
		return dst, fmt.Errorf("encode frame: %w", w.err)
	}
	binary.BigEndian.PutUint32(out[start:], uint32(size))
	return out, nil
}

const maxInt32 = 1<<31 - 1

// object writes type, boolean stream and fields. The fields come first, behind
// room for as long a stream as the last frame of the type had.
func (e *Encoder) object(ds DataStructure) {
	w, code := &e.w, ds.Code()
	since := firstVersion(code)
	if since == 0 || since > w.version {
		w.fail(message.ErrInvalid, "data type %d does not exist in version %d", code, w.version)
		return
	}
	w.uint8(code)
	if !w.tight {
		ds.write(w)
		return
	}
	var zeros [3 + 1<<8]byte
	head := len(w.dst)
	room := streamSize(int(min(e.guess[code], 255)))
	w.dst = append(w.dst, zeros[:room]...)
	ds.write(w)
	if w.curN > 0 {
		w.bits = append(w.bits, w.cur)
	}
	n := len(w.bits)
	if n > maxCount {
		w.fail(message.ErrOverLimit, "boolean stream of %d bytes", n)
		return
	}
	e.guess[code] = int16(n)
	w.dst = resize(w.dst, head, room, streamSize(n))
	putStream(w.dst[head:], w.bits)
}

// streamSize is the length of a boolean stream of n bytes with its prefix
// (OpenWire 4.2).
func streamSize(n int) int {
	switch {
	case n < 64:
		return 1 + n
	case n < 256:
		return 2 + n
	}
	return 3 + n
}

func putStream(dst, bits []byte) {
	n := len(bits)
	switch {
	case n < 64:
		dst[0] = byte(n)
		copy(dst[1:], bits)
	case n < 256:
		dst[0], dst[1] = 0xc0, byte(n)
		copy(dst[2:], bits)
	default:
		dst[0] = 0x80
		binary.BigEndian.PutUint16(dst[1:], uint16(n))
		copy(dst[3:], bits)
	}
}

// resize turns the have bytes at b[at:] into want bytes by moving what follows.
func resize(b []byte, at, have, want int) []byte {
	if have == want {
		return b
	}
	n := len(b)
	if want > have {
		b = append(b, make([]byte, want-have)...)
	}
	copy(b[at+want:], b[at+have:n])
	return b[:n+want-have]
}
