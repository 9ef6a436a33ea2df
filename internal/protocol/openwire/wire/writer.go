package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// The longest strings, in bytes of modified UTF-8 (OpenWire 4.5).
const (
	MaxStringBytes      = 32766 // what every peer can be sent
	maxLooseStringBytes = 65535
)

// A writer puts one frame together: bits and bytes side by side in tight
// encoding, bytes alone in loose. The first error sticks.
type writer struct {
	dst []byte // what came before, room for the head, and the bytes so far
	err error

	bits []byte // whole bytes of the boolean stream
	cur  byte   // the byte being filled
	curN uint   // bits in cur

	version    int
	tight      bool
	cacheOn    bool
	stackTrace bool
	cache      writeCache
}

func (w *writer) fail(kind error, format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), kind)
	}
}

func (w *writer) uint8(v byte)     { w.dst = append(w.dst, v) }
func (w *writer) int8(v int8)      { w.dst = append(w.dst, byte(v)) }
func (w *writer) int16(v int16)    { w.dst = binary.BigEndian.AppendUint16(w.dst, uint16(v)) }
func (w *writer) int32(v int32)    { w.dst = binary.BigEndian.AppendUint32(w.dst, uint32(v)) }
func (w *writer) const8(v [8]byte) { w.dst = append(w.dst, v[:]...) }

// flag writes a bool: one bit, or one byte.
func (w *writer) flag(v bool) {
	var bit byte
	if v {
		bit = 1
	}
	if !w.tight {
		w.dst = append(w.dst, bit)
		return
	}
	w.cur |= bit << w.curN
	if w.curN++; w.curN == 8 {
		w.bits = append(w.bits, w.cur)
		w.cur, w.curN = 0, 0
	}
}

// int64 writes a long (OpenWire 4.4).
func (w *writer) int64(v int64) {
	switch {
	case !w.tight:
		w.dst = binary.BigEndian.AppendUint64(w.dst, uint64(v))
	case v == 0:
		w.flag(false)
		w.flag(false)
	case v > 0 && v < 1<<16:
		w.flag(false)
		w.flag(true)
		w.dst = binary.BigEndian.AppendUint16(w.dst, uint16(v))
	case v > 0 && v < 1<<32:
		w.flag(true)
		w.flag(false)
		w.dst = binary.BigEndian.AppendUint32(w.dst, uint32(v))
	default:
		w.flag(true)
		w.flag(true)
		w.dst = binary.BigEndian.AppendUint64(w.dst, uint64(v))
	}
}

func (w *writer) bytes(v []byte) {
	w.flag(v != nil)
	if v == nil {
		return
	}
	w.int32(int32(len(v)))
	w.dst = append(w.dst, v...)
}

func (w *writer) text(t Text) {
	if !t.Valid {
		w.flag(false)
		return
	}
	w.str(t.Value)
}

// str writes a string that is not null (OpenWire 4.5).
func (w *writer) str(s string) {
	w.flag(true)
	at := len(w.dst)
	w.dst = append(w.dst, 0, 0)
	ascii := plainASCII(s)
	if ascii {
		w.dst = append(w.dst, s...)
	} else {
		w.dst = appendModifiedUTF(w.dst, s)
	}
	limit := maxLooseStringBytes
	if w.tight {
		w.flag(ascii)
		limit = MaxStringBytes
	}
	n := len(w.dst) - at - 2
	if n > limit {
		w.fail(message.ErrOverLimit, "string of %d bytes, the limit is %d", n, limit)
	}
	binary.BigEndian.PutUint16(w.dst[at:], uint16(n))
}

// typeCode writes the presence flag and type of a nested object that is not null.
func (w *writer) typeCode(code byte) {
	w.flag(true)
	if w.tight && marshallAware(code) {
		w.flag(false)
	}
	if since := firstVersion(code); since == 0 || since > w.version {
		w.fail(message.ErrInvalid, "data type %d does not exist in version %d", code, w.version)
	}
	w.uint8(code)
}

func (w *writer) nestedAny(ds DataStructure) {
	if ds == nil {
		w.flag(false)
		return
	}
	w.typeCode(ds.Code())
	ds.write(w)
}

func (w *writer) nestedDestination(d *Destination) {
	if d == nil {
		w.flag(false)
		return
	}
	w.typeCode(d.Kind)
	w.str(d.PhysicalName)
}

func (w *writer) nestedMessage(m *Message) {
	if m == nil {
		w.flag(false)
		return
	}
	w.typeCode(m.Code())
	m.write(w)
}

func (w *writer) nestedTransactionID(id TransactionID) {
	if id == nil {
		w.flag(false)
		return
	}
	w.typeCode(id.Code())
	id.write(w)
}

// count begins an array and reports whether elements follow.
func (w *writer) count(n int, present bool) bool {
	w.flag(present)
	if !present {
		return false
	}
	if n > maxCount {
		w.fail(message.ErrOverLimit, "array of %d elements, the limit is %d", n, maxCount)
		return false
	}
	w.int16(int16(n))
	return true
}

// maxCount is the largest array: the count is an int16.
const maxCount = 1<<15 - 1
