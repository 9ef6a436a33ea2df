package records

import (
	"encoding/binary"

	"github.com/nixiemq/nixie/internal/message"
)

// Flags of a stored entry.
const (
	entryPersistent = 1 << iota
	entryShared
	entryOverlay
	entryGroup
	entryArrived // an overlay with a BrokerInTime; it came later than the others
	entryFlags   = iota
)

// entryRoom is an upper bound for the fields of e.
func entryRoom(e *message.Entry) int {
	n := 4 + 7*binary.MaxVarintLen64 + len(e.ID.Producer) + len(e.ID.Text) + len(e.Group)
	if o := e.Overlay; o != nil {
		n += 3 + 6*binary.MaxVarintLen64 + len(o.Destination.Name) + len(o.OriginalDestination.Name) + len(o.TransactionID) +
			addedBytes(o.Added)
	}
	return n
}

// appendEntry writes what the key does not say of e.
func appendEntry(v []byte, e *message.Entry) ([]byte, error) {
	var flags byte
	if e.Persistent {
		flags |= entryPersistent
	}
	if e.Shared {
		flags |= entryShared
	}
	if e.Overlay != nil {
		flags |= entryOverlay
		if e.Overlay.BrokerInTime != 0 {
			flags |= entryArrived
		}
	}
	if e.Group != "" {
		flags |= entryGroup
	}
	v = append(v, flags, e.Priority, byte(e.Out))
	v = binary.AppendVarint(v, int64(e.Position-e.Body)) // 0 but for moved messages
	v = binary.AppendVarint(v, int64(e.SizeBytes))
	v = binary.AppendVarint(v, e.Expiration)
	v = appendID(v, e.ID)
	if e.Group != "" {
		v = append(appendString(v, e.Group), byte(e.Mark))
	}
	if e.Overlay == nil {
		return v, nil
	}
	v, err := appendOverlay(v, e.Overlay)
	if err == nil && flags&entryArrived != 0 {
		v = binary.AppendVarint(v, e.Overlay.BrokerInTime)
	}
	return v, err
}

func appendOverlay(v []byte, o *message.Overlay) ([]byte, error) {
	persistent := byte(0)
	if o.Persistent {
		persistent = 1
	}
	v = append(v, persistent)
	v = appendDestination(v, o.Destination)
	v = appendDestination(v, o.OriginalDestination)
	v = binary.AppendVarint(v, o.Expiration)
	v = appendString(v, o.TransactionID)
	return appendAdded(v, o.Added)
}

// decodeEntry reads into e what appendEntry wrote; Position and Transient come
// from the key and are set before. It keeps nothing of r's bytes.
func decodeEntry(r *reader, e *message.Entry) bool {
	flags := r.byte()
	e.Persistent, e.Shared = flags&entryPersistent != 0, flags&entryShared != 0
	e.Priority, e.Out = r.byte(), message.HandOut(r.byte())
	e.Body = e.Position - uint64(r.varint())
	e.SizeBytes, e.Expiration = r.int32(), r.varint()
	e.ID = r.id()
	if flags&entryGroup != 0 {
		e.Group, e.Mark = r.name(), int8(r.byte())
		if e.Group == "" { // it is never written so
			return false
		}
	}
	if flags&entryOverlay != 0 {
		e.Overlay = r.overlay()
	}
	if flags&entryArrived != 0 {
		if e.Overlay == nil {
			return false
		}
		if e.Overlay.BrokerInTime = r.varint(); e.Overlay.BrokerInTime == 0 { // it is never written so
			return false
		}
	}
	return r.done() && flags < 1<<entryFlags
}

func (r *reader) overlay() *message.Overlay {
	persistent := r.byte()
	if persistent > 1 {
		r.fail()
	}
	return &message.Overlay{
		Persistent: persistent == 1, Destination: r.destination(), OriginalDestination: r.destination(),
		Expiration: r.varint(), TransactionID: r.string(), Added: r.added(),
	}
}

// countsRoom is an upper bound for the fields of counts.
const countsRoom = 2 + 7*binary.MaxVarintLen64

func appendCounts(v []byte, c *message.Counts) []byte {
	v = append(v, byte(c.Suspect))
	v = binary.AppendVarint(v, int64(c.Failures))
	v = binary.AppendVarint(v, int64(c.HandOuts))
	v = binary.AppendVarint(v, int64(c.Holds))
	v = binary.AppendVarint(v, int64(c.Attempts))
	v = binary.AppendUvarint(v, c.Story)
	v = binary.AppendVarint(v, c.Due)
	if c.Delay != 0 || c.Unasked { // fields that came later, and are left out where they say nothing
		v = binary.AppendVarint(v, c.Delay)
	}
	if c.Unasked {
		v = append(v, 1)
	}
	return v
}

func decodeCounts(r *reader, c *message.Counts) bool {
	c.Suspect = message.HandOut(r.byte())
	c.Failures, c.HandOuts, c.Holds, c.Attempts = r.int32(), r.int32(), r.int32(), r.int32()
	c.Story, c.Due = r.uvarint(), r.varint()
	if !r.done() && !r.bad {
		c.Delay = r.varint()
		switch {
		case !r.done() && !r.bad:
			c.Unasked = r.byte() == 1
			return c.Unasked && r.done()
		case c.Delay == 0: // it is never written so
			return false
		}
	}
	return r.done()
}
