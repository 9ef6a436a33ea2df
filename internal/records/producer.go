package records

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A producer id is whatever the client chose. Above maxProducerKey bytes its
// start and its SHA-256 stand for it in the key; the value has it whole.
const (
	maxProducerKey = 256
	producerStart  = 128
)

func producerName(producer string) string {
	if len(producer) <= maxProducerKey {
		return producer
	}
	sum := sha256.Sum256([]byte(producer))
	return producer[:producerStart] + "#" + hex.EncodeToString(sum[:])
}

func producerRoom(producer string) int { return 3*binary.MaxVarintLen64 + len(producer) }

// appendProducer writes a producer's last sequence and when it was used; the id
// only where the key has not all of it.
func appendProducer(v []byte, producer string, seq, at int64) []byte {
	v = binary.AppendVarint(v, seq)
	v = binary.AppendVarint(v, at)
	if len(producer) <= maxProducerKey {
		producer = ""
	}
	return appendString(v, producer)
}

// decodeProducer returns the id "" where it is in the key.
func decodeProducer(r *reader) (producer string, seq, at int64, ok bool) {
	seq, at, producer = r.varint(), r.varint(), r.string()
	return producer, seq, at, r.done()
}

// Producers reads the last sequence of each producer of a queue.
func (r *Records) Producers(q QueueID) (map[string]int64, error) {
	lo := appendQueueKey(make([]byte, 0, keyBytes), false, kindProducer, q)
	last := map[string]int64{}
	err := r.scan(lo, successor(lo), 0, 0, func(k []byte, f *reader) bool {
		producer, seq, _, ok := decodeProducer(f)
		if producer == "" {
			producer = string(k[len(lo):])
		}
		last[producer] = seq
		return ok
	})
	if err != nil {
		return nil, fmt.Errorf("read producers of queue %d: %w", q, err)
	}
	return last, nil
}
