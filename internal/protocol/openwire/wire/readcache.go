package wire

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// maxCacheBytes bounds what the strings and bytes of one connection's cached
// objects may add up to, so that a peer cannot park its memory with us.
const maxCacheBytes = 4 << 20

// A readCache holds the objects the peer has numbered (OpenWire 5). Its owner
// is the reader. It grows with the slots in use.
type readCache struct {
	slots []DataStructure
	size  int // slots there may be
	bytes int
}

func (c *readCache) reset(size int) {
	if size <= 0 {
		size = maxCacheSize
	}
	*c = readCache{size: size}
}

// slot reads a slot number: -1, or one within the cache.
func (r *reader) slot() int {
	n := int(r.int16())
	if n < -1 || n >= r.cache.size {
		r.fail("cache slot %d of %d", n, r.cache.size)
		return -1
	}
	return n
}

// cachedObject reads a slot number and gives what is there, nil for an empty
// slot, as the reference does.
func (r *reader) cachedObject() DataStructure {
	n := r.slot()
	if n == -1 && r.err == nil {
		r.fail("reference to cache slot -1")
	}
	if n < 0 || n >= len(r.cache.slots) {
		return nil
	}
	return r.cache.slots[n]
}

// failClass reports a cached object that is of the wrong class for its field.
func (r *reader) failClass(ds DataStructure) { r.fail("cached object is of type %d", ds.Code()) }

// store puts an object, or nil for null, into a slot.
func (r *reader) store(slot int, ds DataStructure) {
	if slot < 0 || r.err != nil {
		return
	}
	c := &r.cache
	for slot >= len(c.slots) {
		c.slots = append(c.slots, nil)
	}
	c.bytes += cachedBytes(ds) - cachedBytes(c.slots[slot])
	c.slots[slot] = ds
	if c.bytes > maxCacheBytes {
		r.err = fmt.Errorf("cached objects of more than %d bytes: %w", maxCacheBytes, message.ErrOverLimit)
	}
}

// cachedAny reads RemoveInfo's object. Only ids and destinations may have a slot:
// the peer could make us keep whole messages otherwise.
func (r *reader) cachedAny() DataStructure {
	if !r.cacheOn {
		return r.nestedAny()
	}
	if !r.flag() {
		return r.cachedObject()
	}
	slot := r.slot()
	ds := r.nestedAny()
	if _, ok := ds.(keyed); !ok && ds != nil && slot >= 0 {
		r.fail("data type %d in the cache", ds.Code())
	}
	r.store(slot, ds)
	return ds
}

// cachedBytes is the memory that an object refers to.
func cachedBytes(ds DataStructure) int {
	switch x := ds.(type) {
	case *Destination:
		return len(x.PhysicalName)
	case *ConnectionID:
		return len(x.Value)
	case *SessionID:
		return len(x.ConnectionID)
	case *ConsumerID:
		return len(x.ConnectionID)
	case *ProducerID:
		return len(x.ConnectionID)
	case *BrokerID:
		return len(x.Value)
	case *LocalTransactionID:
		if x.ConnectionID != nil {
			return len(x.ConnectionID.Value)
		}
	case *XATransactionID:
		return len(x.GlobalTransactionID) + len(x.BranchQualifier)
	}
	return 0
}
