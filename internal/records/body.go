package records

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// Limits of what is stored.
const (
	// DefaultChunkBytes is Options.ChunkBytes where it is zero.
	DefaultChunkBytes = 256 << 10
	// MinChunkBytes and MaxChunkBytes bound Options.ChunkBytes. A chunk and a
	// header together fit in one value of any engine, which is a MiB.
	MinChunkBytes = 4 << 10
	MaxChunkBytes = 512 << 10
	// HeaderBytes bounds all of a message but its body and properties.
	HeaderBytes = 256 << 10
	// valueBytes bounds every value.
	valueBytes = MaxChunkBytes + HeaderBytes + 4<<10
)

// Flags of a stored message.
const (
	flagPersistent = 1 << iota
	flagCompressed
	flagPieces           // the body is in pieces
	flagPiecesProperties // and so are the properties, before it
	bodyFlags            = iota
)

// overheadBytes is what Message.SizeBytes counts beyond body and properties.
var overheadBytes = (&message.Message{}).SizeBytes()

// Check reports message.ErrOverLimit where the header of m, which is all but
// body and properties, is too large to be stored (HeaderBytes).
func Check(m *message.Message) error {
	if n := headerBytes(m); n > HeaderBytes {
		return fmt.Errorf("header of message is %d bytes, limit %d: %w", n, HeaderBytes, message.ErrOverLimit)
	}
	return nil
}

// headerBytes is an upper bound for the header of m.
func headerBytes(m *message.Message) int {
	const fixed = 16 + 16*binary.MaxVarintLen64 // single bytes, numbers and lengths
	return fixed + len(m.ID.Producer) + len(m.ID.Text) + len(m.Destination.Name) + len(m.OriginalDestination.Name) +
		len(m.ReplyTo.Name) + len(m.CorrelationID) + len(m.Type) + len(m.GroupID) + len(m.UserID) + len(m.TransactionID) +
		len(m.Extra) + addedBytes(m.Added)
}

// pieces is the number of pieces of a message with this Message.SizeBytes, for
// chunks of so many bytes; 0: its body is in one value with its header.
func pieces(sizeBytes int32, chunk int) int {
	content := int(sizeBytes) - overheadBytes
	if content <= chunk {
		return 0
	}
	return (content + chunk - 1) / chunk
}

// appendBody writes the fields of m; n is its number of pieces.
func appendBody(v []byte, m *message.Message, n int, chunk int) ([]byte, error) {
	var flags byte
	if m.Persistent {
		flags |= flagPersistent
	}
	if m.Compressed {
		flags |= flagCompressed
	}
	if n > 0 {
		flags |= flagPieces
		if len(m.Properties) > chunk {
			flags |= flagPiecesProperties
		}
	}
	v = append(v, flags, byte(m.Format), byte(m.Kind), m.Priority)
	v = appendID(v, m.ID)
	v = appendDestination(v, m.Destination)
	v = appendDestination(v, m.OriginalDestination)
	v = appendDestination(v, m.ReplyTo)
	v = binary.AppendVarint(v, m.Expiration)
	v = binary.AppendVarint(v, m.Timestamp)
	v = binary.AppendVarint(v, m.BrokerInTime)
	v = appendString(v, m.CorrelationID)
	v = appendString(v, m.Type)
	v = appendString(v, m.GroupID)
	v = binary.AppendVarint(v, int64(m.GroupSequence))
	v = appendString(v, m.UserID)
	v = appendString(v, m.TransactionID)
	v = appendOptional(v, m.Extra)
	v, err := appendAdded(v, m.Added)
	if flags&flagPieces == 0 {
		return appendOptional(appendOptional(v, m.Properties), m.Body), err
	}
	v = binary.AppendUvarint(v, uint64(n))
	if flags&flagPiecesProperties == 0 {
		v = appendOptional(v, m.Properties)
	} else {
		v = binary.AppendUvarint(v, uint64(len(m.Properties))) // above a chunk, so never nil
	}
	if m.Body == nil {
		return append(v, 0), err
	}
	return binary.AppendUvarint(v, uint64(len(m.Body))+1), err
}

// A shape says what of a stored message lies in pieces.
type shape struct {
	pieces     int
	properties int // bytes of them in pieces; 0: they are in the header
	body       int // bytes of it in pieces
	noBody     bool
}

// decodeBody reads what appendBody wrote. The message refers to fields.
func decodeBody(fields []byte) (*message.Message, shape, bool) {
	r := reader{b: fields}
	flags := r.byte()
	m := &message.Message{
		Persistent: flags&flagPersistent != 0, Compressed: flags&flagCompressed != 0,
		Format: message.Format(r.byte()), Kind: message.BodyKind(r.byte()), Priority: r.byte(),
	}
	m.ID = r.id()
	m.Destination, m.OriginalDestination, m.ReplyTo = r.destination(), r.destination(), r.destination()
	m.Expiration, m.Timestamp, m.BrokerInTime = r.varint(), r.varint(), r.varint()
	m.CorrelationID, m.Type, m.GroupID, m.GroupSequence = r.string(), r.string(), r.string(), r.int32()
	m.UserID, m.TransactionID = r.string(), r.string()
	m.Extra, m.Added = r.optional(), r.added()
	var s shape
	if flags&flagPieces == 0 {
		m.Properties, m.Body = r.optional(), r.optional()
		return m, s, r.done() && flags < flagPieces
	}
	s.pieces = r.count()
	if flags&flagPiecesProperties == 0 {
		m.Properties = r.optional()
	} else {
		s.properties = r.count()
	}
	if body := r.count(); body == 0 {
		s.noBody = true
	} else {
		s.body = body - 1
	}
	ok := r.done() && flags < 1<<bodyFlags && s.pieces > 0 && (flags&flagPiecesProperties == 0) == (s.properties == 0)
	return m, s, ok
}

// count reads a number that fits an int32 and for which nothing is allocated.
func (r *reader) count() int {
	u := r.uvarint()
	if u > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int(u)
}

func appendID(v []byte, id message.ID) []byte {
	v = appendString(v, id.Producer)
	v = binary.AppendVarint(v, id.Sequence)
	return appendString(v, id.Text)
}

func (r *reader) id() message.ID {
	return message.ID{Producer: r.name(), Sequence: r.varint(), Text: r.string()}
}

// assemble reads the pieces of a message into it: the properties where they are
// there, and the body if wanted.
func (r *Records) assemble(m *message.Message, s shape, e *message.Entry, withBody bool) error {
	want := s.properties
	if withBody {
		want += s.body
	}
	if want == 0 {
		if withBody && !s.noBody {
			m.Body = []byte{}
		}
		return nil
	}
	lo := appendSeqKey(make([]byte, 0, keyBytes), e.Transient, kindPiece, e.Body)
	var content []byte
	var damage error
	next := uint32(0)
	err := r.shard.Scan(lo, successor(lo), func(k, v []byte) bool {
		fields, err := unseal(k, v)
		if err != nil || len(k) != len(lo)+4 || binary.BigEndian.Uint32(k[len(lo):]) != next {
			damage = corrupt(k)
			return false
		}
		if next == 0 { // pieces are equally long but for the last, so the first bounds the whole
			content = make([]byte, 0, min(want, len(fields)*s.pieces))
		}
		next++
		content = append(content, fields[:min(len(fields), want-len(content))]...)
		return len(content) < want
	})
	switch {
	case errors.Is(err, store.ErrDamaged):
		return fmt.Errorf("read body %d: %w: %w", e.Body, message.ErrCorrupt, err)
	case err != nil:
		return fmt.Errorf("read body %d: %w", e.Body, err)
	case damage != nil:
		return damage
	case len(content) < want:
		return fmt.Errorf("body %d has %d of %d bytes: %w", e.Body, len(content), want, message.ErrCorrupt)
	}
	if s.properties > 0 {
		m.Properties = content[:s.properties:s.properties]
	}
	if withBody && !s.noBody {
		m.Body = content[s.properties:]
	}
	return nil
}

// Message reads the message of an entry, as its overlay changes it. It is
// message.ErrNotFound where the body is gone (its last entry was removed), and
// message.ErrCorrupt where it is damaged.
func (r *Records) Message(e *message.Entry) (*message.Message, error) { return r.read(e, true) }

// Header is Message without Body where the body is large enough to lie apart
// from the header; a small one is there.
func (r *Records) Header(e *message.Entry) (*message.Message, error) { return r.read(e, false) }

func (r *Records) read(e *message.Entry, withBody bool) (*message.Message, error) {
	k := appendSeqKey(make([]byte, 0, keyBytes), e.Transient, kindBody, e.Body)
	fields, err := r.get(k)
	if err != nil {
		return nil, err
	}
	m, s, ok := decodeBody(fields)
	if !ok {
		return nil, corrupt(k)
	}
	if s.pieces > 0 {
		if err := r.assemble(m, s, e, withBody); err != nil {
			return nil, err
		}
	}
	return m.With(e.Overlay), nil
}
