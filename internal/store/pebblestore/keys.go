package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Keys in Pebble:
//
//	0x00 'e' shard(2)     epoch(8) of the shard's last owner
//	0x01 shard(2) key     a key of a shard
//
// Integers are big-endian. A shard's keys end where the next shard's begin.
const (
	spaceEngine = 0x00
	spaceShards = 0x01
	prefixBytes = 3 // of a shard's key
)

// appendKey appends the place of key k of a shard.
func appendKey(b []byte, shard uint16, k []byte) []byte {
	b = append(b, spaceShards, byte(shard>>8), byte(shard))
	return append(b, k...)
}

// putKey is appendKey into b, which has the size needed.
func putKey(b []byte, shard uint16, k []byte) {
	b[0], b[1], b[2] = spaceShards, byte(shard>>8), byte(shard)
	copy(b[prefixBytes:], k)
}

// appendEnd appends the place behind the last key of a shard.
func appendEnd(b []byte, shard uint16) []byte {
	if shard == 1<<16-1 {
		return append(b, spaceShards+1)
	}
	return append(b, spaceShards, byte((shard+1)>>8), byte(shard+1))
}

func epochKey(shard uint16) []byte {
	return []byte{spaceEngine, 'e', byte(shard >> 8), byte(shard)}
}

// readEpochs returns the epochs of all shards that ever had an owner.
func readEpochs(db *pebble.DB) (map[uint16]uint64, error) {
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{spaceEngine, 'e'},
		UpperBound: []byte{spaceEngine, 'e' + 1},
	})
	if err != nil {
		return nil, fmt.Errorf("read epochs: %w", err)
	}
	epochs := map[uint16]uint64{}
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Key()) != 4 || len(it.Value()) != 8 {
			err = fmt.Errorf("read epochs: key %x has a value of %d bytes", it.Key(), len(it.Value()))
			break
		}
		epochs[binary.BigEndian.Uint16(it.Key()[2:])] = binary.BigEndian.Uint64(it.Value())
	}
	if closeErr := it.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("read epochs: %w", closeErr)
	}
	return epochs, err
}
