package wire

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// A Decoder decodes the frames that one peer sends on one connection, in their
// order. It is not safe for concurrent use.
type Decoder struct {
	r          reader
	negotiated bool
}

// NewDecoder returns a decoder for the first frame of a connection, which must
// be a WireFormatInfo (OpenWire 2).
func NewDecoder() *Decoder { return &Decoder{r: reader{version: MaxVersion}} }

// Negotiated switches the decoder to what the peers have agreed on, with an
// empty cache.
func (d *Decoder) Negotiated(s Settings) {
	d.negotiated = true
	d.r = reader{version: s.Version, tight: s.Tight, cacheOn: s.Cache, stackTrace: s.StackTrace, names: new(nameTable)}
	d.r.cache.reset(s.CacheSize)
}

// Decode decodes the body of one frame, without its size. The null frame gives
// nil and no error. Frames that end early or late, unknown types and all else
// that no peer may send are message.ErrInvalid, and the connection is of no
// further use; too much cached is message.ErrOverLimit.
//
// Byte fields of the result alias frame, which must not be written to as long
// as they are in use; strings do not. Objects from the cache are shared with
// other results: nobody may change them in place.
func (d *Decoder) Decode(frame []byte) (DataStructure, error) { return d.decode(frame, false) }

// DecodeLent is Decode of a frame that is only lent: nothing of the result aliases it.
func (d *Decoder) DecodeLent(frame []byte) (DataStructure, error) { return d.decode(frame, true) }

// Reuse gives a result back of which nothing is needed any more but what its fields
// refer to, ids of messages excepted: a later result is made of it.
func (d *Decoder) Reuse(ds DataStructure) {
	switch x := ds.(type) {
	case *Message:
		d.r.reuseID(x.MessageID)
		d.r.message = x
	case *MessageAck:
		d.r.reuseID(x.FirstMessageID)
		d.r.reuseID(x.LastMessageID)
		d.r.ack = x
	}
}

// Begins tells of which message a frame is that begins so, as far as its number and
// whether its sender waits for an answer; nil: of none. Nothing that comes behind the
// frame can be decoded, as it may refer to what is in its rest.
func (d *Decoder) Begins(start []byte) *BaseCommand {
	d.r.b, d.r.p, d.r.err, d.r.bits, d.r.bitPos, d.r.depth = start, 0, nil, nil, 0, 0
	if m, ok := d.r.frame().(*Message); ok {
		return m.Base()
	}
	return nil
}

func (d *Decoder) decode(frame []byte, lent bool) (DataStructure, error) {
	r := &d.r
	r.lent = lent
	r.b, r.p, r.err, r.bits, r.bitPos, r.depth = frame, 0, nil, nil, 0, 0
	if !d.negotiated && (len(frame) == 0 || frame[0] != CodeWireFormatInfo) {
		return nil, fmt.Errorf("first frame is no WireFormatInfo: %w", message.ErrInvalid)
	}
	ds := r.frame()
	switch {
	case r.err != nil:
	case r.p != len(frame):
		r.fail("%d surplus bytes", len(frame)-r.p)
	case len(r.bits)*8-r.bitPos >= 8:
		r.fail("surplus booleans")
	}
	r.b, r.bits = nil, nil
	if r.err != nil {
		if len(frame) == 0 {
			return nil, fmt.Errorf("decode frame: %w", r.err)
		}
		return nil, fmt.Errorf("decode frame of type %d: %w", frame[0], r.err)
	}
	return ds, nil
}
