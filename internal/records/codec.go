package records

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// formatVersion is the version of all keys and values. See the package comment
// for what must happen when it changes.
const formatVersion = 1

// sumBytes is the length of the checksum at the end of a value.
const sumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal ends a value that begins with its version.
func seal(k, v []byte) []byte {
	return binary.BigEndian.AppendUint32(v, checksum(k, v))
}

func checksum(k, v []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, k), castagnoli, v)
}

// unseal gives the fields of a value, which lie within v. Damage is
// message.ErrCorrupt.
func unseal(k, v []byte) ([]byte, error) {
	n := len(v) - sumBytes
	if n < 1 || checksum(k, v[:n]) != binary.BigEndian.Uint32(v[n:]) {
		return nil, corrupt(k)
	}
	if v[0] != formatVersion {
		return nil, &Damaged{key: bytes.Clone(k), text: fmt.Sprintf("is of format %d", v[0])}
	}
	return v[1:n], nil
}

func corrupt(k []byte) error { return &Damaged{key: bytes.Clone(k)} }

// A reader takes fields from the front of b. After the first field that is not
// there it is bad, and gives zero values.
type reader struct {
	b   []byte
	bad bool
	// names are those that name returned last, and at the place for the next.
	names [4]string
	at    int
}

// done reports whether everything was read, and nothing was missing.
func (r *reader) done() bool { return !r.bad && len(r.b) == 0 }

func (r *reader) fail() { r.bad, r.b = true, nil }

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	u, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 { // none, too long, or not the shortest form
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return u
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// int32 reads a varint that must fit.
func (r *reader) int32() int32 {
	i := r.varint()
	if int64(int32(i)) != i {
		r.fail()
	}
	return int32(i)
}

// length reads a number of things of which each takes at least size bytes of
// what is left, so that it may be allocated for.
func (r *reader) length(size int) int {
	u := r.uvarint()
	if u > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(u)
}

// bytes reads bytes behind their length; they lie within the value.
func (r *reader) bytes() []byte {
	n := r.length(1)
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) string() string { return string(r.bytes()) }

// name reads a string that is often the same as one read shortly before, such as
// a producer's id on a page of entries, and then shares its memory.
func (r *reader) name() string {
	s := r.bytes()
	if len(s) == 0 {
		return ""
	}
	for _, name := range r.names {
		if name == string(s) {
			return name
		}
	}
	name := string(s)
	r.names[r.at] = name
	r.at = (r.at + 1) % len(r.names)
	return name
}

// optional reads bytes that may be nil, which is not the same as empty.
func (r *reader) optional() []byte {
	u := r.uvarint()
	if u == 0 || u-1 > uint64(len(r.b)) {
		if u != 0 {
			r.fail()
		}
		return nil
	}
	n := int(u - 1)
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) destination() message.Destination {
	k := message.DestinationKind(r.byte())
	return message.Destination{Kind: k, Name: r.name()}
}

func appendString(v []byte, s string) []byte {
	return append(binary.AppendUvarint(v, uint64(len(s))), s...)
}

func appendOptional(v, s []byte) []byte {
	if s == nil {
		return append(v, 0)
	}
	return append(binary.AppendUvarint(v, uint64(len(s))+1), s...)
}

func appendDestination(v []byte, d message.Destination) []byte {
	return appendString(append(v, byte(d.Kind)), d.Name)
}

// The types of an added property.
const (
	addedInt    = 1
	addedString = 2
	addedByte   = 3
)

// appendAdded writes added properties by name. A value of a type that
// message.Message does not allow is message.ErrInvalid.
func appendAdded(v []byte, added map[string]any) ([]byte, error) {
	if added == nil {
		return append(v, 0), nil
	}
	v = binary.AppendUvarint(v, uint64(len(added))+1)
	if len(added) == 0 {
		return v, nil
	}
	names := make([]string, 0, len(added))
	for name := range added {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v = appendString(v, name)
		switch x := added[name].(type) {
		case int64:
			v = binary.AppendVarint(append(v, addedInt), x)
		case string:
			v = appendString(append(v, addedString), x)
		case int8:
			v = append(v, addedByte, byte(x))
		default:
			return v, fmt.Errorf("added property %s of type %T: %w", name, x, message.ErrInvalid)
		}
	}
	return v, nil
}

// addedBytes is an upper bound for what appendAdded writes.
func addedBytes(added map[string]any) int {
	n := binary.MaxVarintLen64
	for name, x := range added {
		n += len(name) + 1 + 2*binary.MaxVarintLen64
		if s, ok := x.(string); ok {
			n += len(s)
		}
	}
	return n
}

func (r *reader) added() map[string]any {
	u := r.uvarint()
	if u == 0 || u-1 > uint64(len(r.b)/3) { // a name's length, a type and a value take three bytes
		if u != 0 {
			r.fail()
		}
		return nil
	}
	added := make(map[string]any, u-1)
	last := ""
	for i := range u - 1 {
		name := r.string()
		if i > 0 && name <= last {
			r.fail()
		}
		last = name
		switch r.byte() {
		case addedInt:
			added[name] = r.varint()
		case addedString:
			added[name] = r.string()
		case addedByte:
			added[name] = int8(r.byte())
		default:
			r.fail()
		}
		if r.bad {
			return nil
		}
	}
	return added
}
