package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// Bounds on what a frame may make us do.
const (
	maxDepth  = 64   // objects within objects
	maxCauses = 1024 // throwables that cause one another
)

// A reader takes one frame apart: bits and bytes in tight encoding, bytes alone
// in loose. The first error sticks, and all reads after it give zero values.
type reader struct {
	b   []byte
	p   int // next byte
	err error

	bits   []byte // the boolean stream, tight only
	bitPos int

	version    int
	tight      bool
	cacheOn    bool
	stackTrace bool
	depth      int
	cache      readCache
	names      *nameTable

	lent    bool     // the frame is: byte fields are copied
	message *Message // to be used again, as ack and ids
	ack     *MessageAck
	ids     []*MessageID // two at the most
}

// maxReused is how many ids are kept for use again: an acknowledgement has two.
const maxReused = 2

func (r *reader) reuseID(id *MessageID) {
	if id != nil && len(r.ids) < maxReused {
		r.ids = append(r.ids, id)
	}
}

// newMessageID makes a message id, of one that is used again if there is one.
func (r *reader) newMessageID() *MessageID {
	n := len(r.ids) - 1
	if n < 0 {
		return new(MessageID)
	}
	id := r.ids[n]
	r.ids = r.ids[:n]
	*id = MessageID{}
	return id
}

// newCommand makes the object of a frame, of one that is used again if there is one.
func (r *reader) newCommand(code byte) DataStructure {
	switch {
	case code == CodeMessageAck && r.ack != nil:
		x := r.ack
		*x, r.ack = MessageAck{}, nil
		return x
	case isMessage(code) && firstVersion(code) <= r.version && r.message != nil:
		x := r.message
		*x, r.message = Message{Kind: message.BodyKind(code)}, nil
		return x
	}
	return newObject(code, r.version)
}

// fail keeps the first error and ends the frame.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d of %d: %s: %w", r.p, len(r.b), fmt.Sprintf(format, args...), message.ErrInvalid)
	}
	r.p, r.bits, r.bitPos = len(r.b), nil, 0
}

func (r *reader) short() { r.fail("frame ends early") }

// frame reads a whole frame body.
func (r *reader) frame() DataStructure {
	code := r.uint8()
	if code == CodeNull {
		return nil
	}
	ds := r.newCommand(code)
	if ds == nil {
		r.fail("unknown data type %d in version %d", code, r.version)
		return nil
	}
	if r.tight {
		r.booleanStream()
	}
	ds.read(r)
	return ds
}

// booleanStream finds the bits of the frame (OpenWire 4.2).
func (r *reader) booleanStream() {
	n := int(r.uint8())
	switch {
	case n == 0xc0:
		n = int(r.uint8())
	case n == 0x80:
		n = int(r.int16())
	case n > 0x7f:
		n = -1
	}
	if n < 0 {
		r.fail("bad size of the boolean stream")
		return
	}
	r.bits, r.bitPos = r.take(n), 0
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b)-r.p {
		r.short()
		return nil
	}
	p := r.p
	r.p += n
	return r.b[p:r.p:r.p]
}

func (r *reader) uint8() byte {
	if r.p >= len(r.b) {
		r.short()
		return 0
	}
	v := r.b[r.p]
	r.p++
	return v
}

func (r *reader) int8() int8 { return int8(r.uint8()) }

func (r *reader) uint16() uint16 {
	if len(r.b)-r.p < 2 {
		r.short()
		return 0
	}
	v := binary.BigEndian.Uint16(r.b[r.p:])
	r.p += 2
	return v
}

func (r *reader) int16() int16 { return int16(r.uint16()) }

func (r *reader) uint32() uint32 {
	if len(r.b)-r.p < 4 {
		r.short()
		return 0
	}
	v := binary.BigEndian.Uint32(r.b[r.p:])
	r.p += 4
	return v
}

func (r *reader) int32() int32 { return int32(r.uint32()) }

func (r *reader) uint64() uint64 {
	if len(r.b)-r.p < 8 {
		r.short()
		return 0
	}
	v := binary.BigEndian.Uint64(r.b[r.p:])
	r.p += 8
	return v
}

// flag reads a bool: one bit, or one byte (OpenWire 4.3).
func (r *reader) flag() bool {
	if !r.tight {
		return r.uint8() != 0
	}
	i := r.bitPos >> 3
	if i >= len(r.bits) {
		r.short()
		return false
	}
	v := r.bits[i]>>(r.bitPos&7)&1 != 0
	r.bitPos++
	return v
}

// int64 reads a long (OpenWire 4.4).
func (r *reader) int64() int64 {
	if !r.tight {
		return int64(r.uint64())
	}
	if r.flag() {
		if r.flag() {
			return int64(r.uint64())
		}
		return int64(r.uint32())
	}
	if r.flag() {
		return int64(r.uint16())
	}
	return 0
}

func (r *reader) const8() (v [8]byte) {
	copy(v[:], r.take(len(v)))
	return v
}

// bytes reads a byte field; the result aliases the frame, unless that is lent, and is
// nil for null.
func (r *reader) bytes() []byte {
	if !r.flag() {
		return nil
	}
	b := r.take(int(r.int32()))
	if r.lent && b != nil {
		return append(make([]byte, 0, len(b)), b...)
	}
	return b
}

// text reads a string field (OpenWire 4.5).
func (r *reader) text() Text {
	if !r.flag() {
		return Text{}
	}
	s := r.stringData()
	return Text{s, r.err == nil}
}

func (r *reader) stringData() string {
	data, ascii := r.rawString()
	return r.decoded(data, ascii)
}

// str reads the string of an id or a destination and takes null for "". What
// came before is found again, not allocated again.
func (r *reader) str() string {
	if !r.flag() {
		return ""
	}
	data, ascii := r.rawString()
	if r.names == nil || len(data) > maxNameBytes || len(data) == 0 {
		return r.decoded(data, ascii)
	}
	name := r.names.entry(data)
	if *name != string(data) {
		s := r.decoded(data, ascii)
		if len(s) != len(data) || !plainASCII(s) {
			return s
		}
		*name = s
	}
	return *name
}

// rawString reads the bytes of a string. In tight encoding a bit says that there
// is one byte for each character, and then the length is signed.
func (r *reader) rawString() (data []byte, ascii bool) {
	if r.tight && r.flag() {
		return r.take(int(r.int16())), true
	}
	return r.take(int(r.uint16())), false
}

func (r *reader) decoded(data []byte, ascii bool) string {
	if ascii {
		return latin1(data)
	}
	s, ok := decodeUTF(data)
	if !ok {
		r.fail("bad modified UTF-8 in a string of %d bytes", len(data))
	}
	return s
}

// maxNameBytes is the longest string that is kept to be found again.
const maxNameBytes = 256

// A nameTable holds plain ASCII strings of late, by their place.
type nameTable [32]string

func (t *nameTable) entry(data []byte) *string {
	n := uint(len(data))
	h := n*31 + uint(data[n-1])*7 + uint(data[n/2])
	if n > 4 {
		h += uint(data[n-3])*13 + uint(data[n-5])*17
	}
	return &t[h%uint(len(t))]
}

// enter begins a nested object of one class. It reports false for null, and
// where the object is of another class.
func (r *reader) enter(want byte) bool {
	code := r.typeCode()
	if code == CodeNull {
		return false
	}
	if code != want {
		r.fail("data type %d where %d belongs", code, want)
		return false
	}
	return r.deeper()
}

// typeCode reads the presence flag and the type of a nested object, CodeNull
// for null and after an error (OpenWire 4.7).
func (r *reader) typeCode() byte {
	if !r.flag() {
		return CodeNull
	}
	code := r.uint8()
	if code == CodeNull && r.err == nil {
		r.fail("unknown data type 0")
	}
	if r.tight && marshallAware(code) && r.flag() {
		r.fail("a nested object with its own boolean stream")
		return CodeNull
	}
	return code
}

// marshallAware reports whether one more bit stands before a nested object.
func marshallAware(code byte) bool { return isMessage(code) || code == CodeWireFormatInfo }

func (r *reader) deeper() bool {
	if r.depth >= maxDepth {
		r.fail("objects nested deeper than %d", maxDepth)
		return false
	}
	r.depth++
	return true
}

// nestedAny reads a nested object of any class.
func (r *reader) nestedAny() DataStructure {
	code := r.typeCode()
	if code == CodeNull || !r.deeper() {
		return nil
	}
	ds := newObject(code, r.version)
	if ds == nil {
		r.fail("unknown data type %d in version %d", code, r.version)
		return nil
	}
	ds.read(r)
	r.depth--
	return ds
}

func (r *reader) nestedDestination() *Destination {
	code := r.typeCode()
	if code == CodeNull {
		return nil
	}
	if !isDestination(code) {
		r.fail("data type %d where a destination belongs", code)
		return nil
	}
	return &Destination{Kind: code, PhysicalName: r.str()}
}

func (r *reader) nestedMessage() *Message {
	code := r.typeCode()
	if code == CodeNull || !r.deeper() {
		return nil
	}
	if !isMessage(code) || firstVersion(code) > r.version {
		r.fail("data type %d where a message belongs", code)
		return nil
	}
	m := newMessage(code)
	m.read(r)
	r.depth--
	return m
}

func (r *reader) nestedTransactionID() TransactionID {
	code := r.typeCode()
	switch code {
	case CodeNull:
		return nil
	case CodeLocalTransactionID:
		x := new(LocalTransactionID)
		x.read(r)
		return x
	case CodeXATransactionID:
		x := new(XATransactionID)
		x.read(r)
		return x
	}
	r.fail("data type %d where a transaction id belongs", code)
	return nil
}

// count begins an array: its length, and false for null (OpenWire 4.8). A
// length beyond what the frame can hold is an error, so that nothing is
// allocated for it.
func (r *reader) count() (int, bool) {
	if !r.flag() {
		return 0, false
	}
	n, left := int(r.int16()), len(r.b)-r.p
	if r.tight { // an element is a bit at least
		left = len(r.bits)*8 - r.bitPos
	}
	if n < 0 || n > left {
		r.fail("array of %d elements", n)
		return 0, false
	}
	return n, r.err == nil
}
