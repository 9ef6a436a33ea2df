package wire

import (
	"encoding/binary"
	"slices"
)

// reserveSlots is how many slots the reference keeps free for one frame.
const reserveSlots = 100

// maxCacheSize is what a negotiated size of 0 stands for (OpenWire 3.3).
const maxCacheSize = 16383

// A cacheKey is the value by which the writer's cache compares objects. The
// zero key is null.
type cacheKey struct {
	code byte
	flag bool
	text string
	a, b int64
}

// keyed is implemented by the classes that can be cached: ids and destinations.
type keyed interface{ cacheKey() cacheKey }

func (x *Destination) cacheKey() cacheKey  { return cacheKey{code: x.Kind, text: x.PhysicalName} }
func (x *ConnectionID) cacheKey() cacheKey { return cacheKey{code: CodeConnectionID, text: x.Value} }
func (x *BrokerID) cacheKey() cacheKey     { return cacheKey{code: CodeBrokerID, text: x.Value} }

func (x *SessionID) cacheKey() cacheKey {
	return cacheKey{code: CodeSessionID, text: x.ConnectionID, a: x.Value}
}

func (x *ConsumerID) cacheKey() cacheKey {
	return cacheKey{code: CodeConsumerID, text: x.ConnectionID, a: x.SessionID, b: x.Value}
}

func (x *ProducerID) cacheKey() cacheKey {
	return cacheKey{code: CodeProducerID, text: x.ConnectionID, a: x.SessionID, b: x.Value}
}

func (x *LocalTransactionID) cacheKey() cacheKey {
	k := cacheKey{code: CodeLocalTransactionID, a: x.Value}
	if x.ConnectionID != nil {
		k.flag, k.text = true, x.ConnectionID.Value
	}
	return k
}

func (x *XATransactionID) cacheKey() cacheKey {
	text := string(x.GlobalTransactionID) + string(x.BranchQualifier)
	shape := int64(len(x.GlobalTransactionID)) << 2
	if x.GlobalTransactionID != nil {
		shape |= 1
	}
	if x.BranchQualifier != nil {
		shape |= 2
	}
	return cacheKey{code: CodeXATransactionID, text: text, a: int64(x.FormatID), b: shape}
}

// A writeCache numbers the objects that the peer is told to remember, exactly
// as the reference does (OpenWire 5). Its owner is the writer.
type writeCache struct {
	size  int
	slots map[cacheKey]int16
	keys  []cacheKey // by slot, as far as slots were used; a zero key with used false is free
	used  []bool
	next  int // the next slot to give away
	evict int // the oldest slot in use

	recent [recentKeys]recentKey // keys of late, by their place

	frameNext  int        // next at the begin of the frame
	frameAdded []cacheKey // what this frame has added
}

func (c *writeCache) reset(size int) {
	if size <= 0 {
		size = maxCacheSize
	}
	*c = writeCache{size: size, slots: map[cacheKey]int16{}}
}

// recentKeys is how many keys are found without the map, which spends most of
// an encoding on hashing. A power of two.
const recentKeys = 16

type recentKey struct {
	key  cacheKey
	slot int16
	set  bool
}

// place is where in recent a key belongs: a hash of what is cheap to look at.
func (k *cacheKey) place() int {
	h := uint(k.code)*7 + uint(k.a)*3 + uint(k.b)*5 + uint(len(k.text))
	if n := len(k.text); n > 0 {
		h += uint(k.text[n-1]) * 11
	}
	return int(h % recentKeys)
}

// find looks a key up.
func (c *writeCache) find(k *cacheKey) (slot int16, ok bool) {
	r := &c.recent[k.place()]
	if r.set && r.key == *k {
		return r.slot, true
	}
	if slot, ok = c.slots[*k]; ok {
		*r = recentKey{*k, slot, true}
	}
	return slot, ok
}

// forget takes a key out of its slot.
func (c *writeCache) forget(slot int) {
	k := &c.keys[slot]
	delete(c.slots, *k)
	if r := &c.recent[k.place()]; r.set && r.key == *k {
		*r = recentKey{}
	}
	*k, c.used[slot] = cacheKey{}, false
}

// begin makes room before a frame: first in, first out.
func (c *writeCache) begin() {
	for len(c.slots) > max(c.size-reserveSlots, 0) {
		if c.evict < len(c.used) && c.used[c.evict] {
			c.forget(c.evict)
		}
		c.evict = (c.evict + 1) % c.size
	}
	c.frameNext, c.frameAdded = c.next, c.frameAdded[:0]
}

// rollback forgets what the frame has added: it will not be sent.
func (c *writeCache) rollback() {
	for _, k := range c.frameAdded {
		if slot, ok := c.slots[k]; ok {
			c.forget(int(slot))
		}
	}
	c.next, c.frameAdded = c.frameNext, c.frameAdded[:0]
}

// add gives the object a slot, or -1 where the cache is full.
func (c *writeCache) add(k cacheKey) int16 {
	slot := c.next
	c.next = (c.next + 1) % c.size
	if len(c.slots) >= c.size {
		return -1
	}
	if slot >= len(c.keys) {
		c.keys = append(c.keys, slices.Repeat([]cacheKey{{}}, slot+1-len(c.keys))...)
		c.used = append(c.used, make([]bool, slot+1-len(c.used))...)
	}
	if c.used[slot] { // next has overtaken evict: a frame used up the reserve
		c.forget(slot)
	}
	c.keys[slot], c.used[slot] = k, true
	c.slots[k] = int16(slot)
	c.frameAdded = append(c.frameAdded, k)
	return int16(slot)
}

// cacheRef writes the head of a cached field. If the object is known that is
// all; otherwise the object follows, and then cacheDone with the same at. In
// loose encoding the object takes its slot before those inside it do, in tight
// encoding after them.
func (w *writer) cacheRef(k cacheKey) (at int, known bool) {
	if slot, ok := w.cache.find(&k); ok {
		w.flag(false)
		w.int16(slot)
		return 0, true
	}
	w.flag(true)
	if !w.tight {
		w.int16(w.cache.add(k))
		return 0, false
	}
	w.int16(0)
	return len(w.dst) - 2, false
}

func (w *writer) cacheDone(at int, k cacheKey) {
	if w.tight {
		binary.BigEndian.PutUint16(w.dst[at:], uint16(w.cache.add(k)))
	}
}

// cachedAny writes RemoveInfo's object; what cannot be cached takes no slot.
func (w *writer) cachedAny(ds DataStructure) {
	if !w.cacheOn {
		w.nestedAny(ds)
		return
	}
	var key cacheKey
	if k, ok := ds.(keyed); ok {
		key = k.cacheKey()
	} else if ds != nil {
		w.flag(true)
		w.int16(-1)
		w.nestedAny(ds)
		return
	}
	at, known := w.cacheRef(key)
	if known {
		return
	}
	w.nestedAny(ds)
	w.cacheDone(at, key)
}
